//! Calls from Python. The GIL is released during a call, signals and progress are handled, and errors become
//! exceptions.

use std::time::{Duration, Instant};

use numpy::PyArray1;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use dpmedian_core::mechanism::inverse_sensitivity::lattice;
use dpmedian_core::postprocess::projection::Ball;
use dpmedian_core::release::error::Error;
use dpmedian_core::runtime::admission::Refused;
use dpmedian_core::runtime::memory::Table;
use dpmedian_core::runtime::points::Points;
use dpmedian_core::runtime::pool;
use dpmedian_core::runtime::pulse::{Interrupted, Pulse};
use dpmedian_core::statistics::BadParameter;

/// The interval at which a kernel calls the interpreter. It is short enough for Ctrl-C, and long enough that the calls
/// take no noticeable time.
const BEAT_INTERVAL: Duration = Duration::from_millis(50);

/// A vector that is returned to Python.
pub(super) type Vector<'py> = Bound<'py, PyArray1<f64>>;
/// Integers that are returned to Python.
pub(super) type Integers<'py> = Bound<'py, PyArray1<i64>>;

/// Checks signals and updates the caller's progress bar. If an error stops the kernel, it is stored here.
struct InterpreterPulse {
    callback: Option<Py<PyAny>>,
    last: Instant,
    error: Option<PyErr>,
}

impl Pulse for InterpreterPulse {
    fn beat(&mut self, done: f64) -> Result<(), Interrupted> {
        if self.last.elapsed() < BEAT_INTERVAL {
            return Ok(());
        }
        self.last = Instant::now();
        Python::attach(|py| {
            py.check_signals()?;
            self.callback.as_ref().map_or(Ok(()), |callback| callback.call1(py, (done,)).map(drop))
        })
        .map_err(|error| {
            self.error = Some(error);
            Interrupted
        })
    }
}

/// Runs `work` without the GIL; no other function releases the GIL.
pub(super) fn without_gil<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    py.detach(work)
}

/// Runs a long call, which can be interrupted and reports its progress.
pub(super) fn detached<T: Send, E: Send + Into<Error>>(
    py: Python<'_>,
    callback: Option<Py<PyAny>>,
    work: impl FnOnce(&mut dyn Pulse) -> Result<T, E> + Send,
) -> PyResult<T> {
    let mut pulse = InterpreterPulse { callback, last: Instant::now(), error: None };
    without_gil(py, || work(&mut pulse)).map_err(|error| match error.into() {
        Error::Interrupted => pulse.error.unwrap_or_else(|| raised(Error::Interrupted)),
        error => raised(error),
    })
}

/// The exception for an error. A refusal becomes a ValueError, because it is about the arguments. Other errors are
/// about the run.
pub(super) fn raised(error: Error) -> PyErr {
    match error {
        Error::Refused(reason) => PyValueError::new_err(reason),
        Error::Unreadable(reason) => unreadable(&reason),
        Error::Interrupted | Error::Mismatch(_) => PyRuntimeError::new_err(error.to_string()),
    }
}

pub(super) fn bad_parameter(bad: BadParameter) -> PyErr {
    PyValueError::new_err(bad.0)
}

fn unreadable(reason: &str) -> PyErr {
    PyOSError::new_err(format!("the file of the records cannot be read: {reason}"))
}

/// Admits records. Signals are checked, but no progress bar is updated.
pub(super) fn admitted<'a>(
    py: Python<'_>,
    table: Table<'a>,
    ball: Option<&Ball>,
    replacement: Option<&[f64]>,
) -> PyResult<Points<'a>> {
    let mut pulse = InterpreterPulse { callback: None, last: Instant::now(), error: None };
    without_gil(py, || Points::admit(table, ball, replacement, &mut pulse)).map_err(|refused| match refused {
        Refused::NonFinite(place) => PyValueError::new_err(place.to_string()),
        Refused::Unreadable(reason) => unreadable(&reason),
        Refused::Interrupted => pulse.error.unwrap_or_else(|| raised(Error::Interrupted)),
    })
}

/// Refuses an argument whose dimension differs from the dimension of the points.
pub(super) fn check_dimension(what: &str, got: usize, d: usize) -> PyResult<()> {
    if got == d {
        return Ok(());
    }
    Err(PyValueError::new_err(format!("{what} has dimension {got}, but the points have dimension {d}")))
}

/// The step, the reach and the smoothing length of a public lattice.
pub(super) type LatticeArguments = (f64, i64, i64);

pub(super) fn as_lattice((step, reach, smoothing): LatticeArguments) -> PyResult<lattice::Lattice> {
    lattice::Lattice::new(step, reach, smoothing).map_err(PyValueError::new_err)
}

/// Sets the number of threads of all later calls. None means RAYON_NUM_THREADS or the number of cores.
///
/// Results have the same bits for any number of threads.
#[pyfunction]
#[pyo3(signature = (threads=None))]
pub(super) fn set_threads(threads: Option<i64>) -> PyResult<()> {
    let most = pool::THREADS_MAX;
    if let Some(got) = threads.filter(|k| !(1..=most as i64).contains(k)) {
        return Err(PyValueError::new_err(format!("threads must be None or lie between 1 and {most}, got {got}")));
    }
    pool::set_threads(threads.map(|k| k as usize));
    Ok(())
}

/// The number of threads of the next call.
#[pyfunction]
pub(super) fn threads() -> usize {
    pool::threads()
}
