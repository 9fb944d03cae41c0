//! The border to Python: the only file that names pyo3 or numpy. Bodies are a few lines; the work is elsewhere.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use nalgebra::{DMatrix, DMatrixView, DVectorView};
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::mechanism::descent::{Descent, Stopped};
use crate::mechanism::inverse_sensitivity as inverse;
use crate::mechanism::inverse_sensitivity::lattice::Lattice;
use crate::mechanism::inverse_sensitivity::rate::Rate;
use crate::nonprivate::{median, objective};
use crate::postprocess::projection::{Ball, Feasible};
use crate::postprocess::{posterior, volumetric_center as center};
use crate::release::tape::{self, BadNoise, Entry, Mismatch, Noise, Request, Streams};
use crate::runtime::pulse::{Interrupted, Pulse};
use crate::runtime::ranking::Ranking;
use crate::runtime::{points, pool};
use crate::sampler::uniform;
use crate::statistics::objective_differences::Candidates;
use crate::statistics::{
    ball_counts as ball, distance_counts as distance, gradient, mean_shift as shift, pair_counts as pair,
};

/// Between two beats that reach the interpreter: often enough for Ctrl-C, seldom enough to cost nothing.
const BEAT: Duration = Duration::from_millis(50);

/// Checks signals and moves the caller's progress bar; keeps the error that stopped the kernel.
struct Heart {
    callback: Option<Py<PyAny>>,
    last: Instant,
    error: Option<PyErr>,
}

impl Pulse for Heart {
    fn beat(&mut self, done: f64) -> Result<(), Interrupted> {
        if self.last.elapsed() < BEAT {
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

/// The one place where the GIL is released, around the pure call.
fn detached<T: Send, E: Send + Into<Failure>>(
    py: Python<'_>,
    callback: Option<Py<PyAny>>,
    work: impl FnOnce(&mut dyn Pulse) -> Result<T, E> + Send,
) -> PyResult<T> {
    let mut heart = Heart { callback, last: Instant::now(), error: None };
    py.detach(|| work(&mut heart)).map_err(|error| match error.into() {
        Failure::Interrupted => heart.error.unwrap_or_else(|| PyRuntimeError::new_err("interrupted")),
        Failure::Error(error) => error,
    })
}

enum Failure {
    Interrupted,
    Error(PyErr),
}

impl From<Interrupted> for Failure {
    fn from(_: Interrupted) -> Self {
        Self::Interrupted
    }
}

impl From<Mismatch> for Failure {
    fn from(mismatch: Mismatch) -> Self {
        Self::Error(PyRuntimeError::new_err(mismatch.0))
    }
}

impl From<BadNoise> for Failure {
    fn from(noise: BadNoise) -> Self {
        Self::Error(PyValueError::new_err(format!("no sampler accepts {:?}", noise.0)))
    }
}

impl From<Stopped> for Failure {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::Interrupted(interrupted) => interrupted.into(),
            Stopped::Mismatch(mismatch) => mismatch.into(),
            Stopped::BadNoise(noise) => noise.into(),
        }
    }
}

fn raised(failure: impl Into<Failure>) -> PyErr {
    match failure.into() {
        Failure::Interrupted => PyRuntimeError::new_err("interrupted"),
        Failure::Error(error) => error,
    }
}

/// A C-order (n, d) array is a d x n matrix, one record per column.
fn view<'a>(array: &'a PyReadonlyArray2<'_, f64>) -> PyResult<DMatrixView<'a, f64>> {
    let shape = array.shape();
    Ok(DMatrixView::from_slice(array.as_slice()?, shape[1], shape[0]))
}

/// Step, reach and smoothing of a public lattice.
fn as_lattice((step, reach, smoothing): (f64, i64, i64)) -> PyResult<Lattice> {
    Lattice::new(step, reach, smoothing).map_err(PyValueError::new_err)
}

type Vector<'py> = Bound<'py, PyArray1<f64>>;
type Integers<'py> = Bound<'py, PyArray1<i64>>;

/// The one validated, clamped and projected copy of the records.
#[pyclass(frozen, module = "dpmedian._core")]
struct Points {
    matrix: DMatrix<f64>,
    /// Made by the first question about ranks.
    ranking: Mutex<Option<Ranking>>,
}

#[pymethods]
impl Points {
    #[new]
    #[pyo3(signature = (array, *, ball=None, replacement=None))]
    fn new(
        py: Python<'_>,
        array: PyReadonlyArray2<'_, f64>,
        ball: Option<(Vec<f64>, f64)>,
        replacement: Option<Vec<f64>>,
    ) -> PyResult<Self> {
        let view = view(&array)?;
        let ball = ball.map(|(center, radius)| Ball::new(center, radius));
        let admitted = py.detach(|| points::admit(view, ball.as_ref(), replacement.as_deref()));
        admitted.map(|matrix| Self { matrix, ranking: Mutex::new(None) }).map_err(|place| {
            PyValueError::new_err(format!("points[{}, {}] is not finite", place.record, place.coordinate))
        })
    }

    #[getter]
    fn shape(&self) -> (usize, usize) {
        (self.matrix.ncols(), self.matrix.nrows())
    }

    #[pyo3(signature = (theta, bits, pulse=None))]
    fn gradient<'py>(
        &self,
        py: Python<'py>,
        theta: PyReadonlyArray1<'_, f64>,
        bits: u32,
        pulse: Option<Py<PyAny>>,
    ) -> PyResult<Integers<'py>> {
        let theta = theta.as_slice()?;
        let sum = detached(py, pulse, |pulse| gradient::gradient(self.matrix.as_view(), theta, bits, pulse))?;
        Ok(PyArray1::from_vec(py, sum))
    }

    /// The objective at every candidate against the first one, in units of 2^exponent of `difference_range`.
    #[pyo3(signature = (candidates, pulse=None))]
    fn differences<'py>(
        &self,
        py: Python<'py>,
        candidates: PyReadonlyArray2<'_, f64>,
        pulse: Option<Py<PyAny>>,
    ) -> PyResult<Integers<'py>> {
        let candidates = Candidates::new(view(&candidates)?);
        let sums = detached(py, pulse, |pulse| candidates.differences(self.matrix.as_view(), pulse))?;
        Ok(PyArray1::from_vec(py, sums))
    }

    /// The mean shift within a radius, on the gradient's lattice.
    #[pyo3(signature = (theta, radius, bits, pulse=None))]
    fn shift<'py>(
        &self,
        py: Python<'py>,
        theta: PyReadonlyArray1<'_, f64>,
        radius: f64,
        bits: u32,
        pulse: Option<Py<PyAny>>,
    ) -> PyResult<Integers<'py>> {
        let theta = theta.as_slice()?;
        let sum = detached(py, pulse, |pulse| shift::shift(self.matrix.as_view(), theta, radius, bits, pulse))?;
        Ok(PyArray1::from_vec(py, sum))
    }

    /// Records at or below a threshold, in every coordinate.
    #[pyo3(signature = (thresholds, pulse=None))]
    fn ranks<'py>(
        &self,
        py: Python<'py>,
        thresholds: PyReadonlyArray1<'_, f64>,
        pulse: Option<Py<PyAny>>,
    ) -> PyResult<Integers<'py>> {
        let thresholds = thresholds.as_slice()?;
        let counts = detached(py, pulse, |pulse| {
            let mut ranking = self.ranking.lock().unwrap_or_else(|e| e.into_inner());
            if ranking.is_none() {
                *ranking = Some(Ranking::new(self.matrix.as_view(), pulse)?);
            }
            ranking.as_mut().expect("made above").ranks(thresholds, pulse)
        })?;
        Ok(PyArray1::from_vec(py, counts))
    }

    /// Records within each quarter octave of theta.
    #[pyo3(signature = (theta, pulse=None))]
    fn distance_counts<'py>(
        &self,
        py: Python<'py>,
        theta: PyReadonlyArray1<'_, f64>,
        pulse: Option<Py<PyAny>>,
    ) -> PyResult<Integers<'py>> {
        let theta = theta.as_slice()?;
        let counts = detached(py, pulse, |pulse| distance::counts(self.matrix.as_view(), theta, pulse))?;
        Ok(PyArray1::from_vec(py, counts))
    }

    /// The pairings are public randomness of the tape.
    #[pyo3(signature = (tape, radii, pairings, pulse=None))]
    fn pair_counts<'py>(
        &self,
        py: Python<'py>,
        mut tape: PyRefMut<'_, Tape>,
        radii: Vec<f64>,
        pairings: usize,
        pulse: Option<Py<PyAny>>,
    ) -> PyResult<Integers<'py>> {
        let rng = tape.inner.streams().public();
        let points = self.matrix.as_view();
        let counts = detached(py, pulse, |pulse| pair::counts(points, &radii, pairings, rng, pulse))?;
        Ok(PyArray1::from_vec(py, counts))
    }

    /// The number of records within each ascending radius of each record, itself included: shape (n, radii).
    ///
    /// The counts are the same with a tree and without; benches ask for the comparison of all pairs.
    #[pyo3(signature = (radii, pulse=None, *, pairwise=false))]
    fn ball_counts<'py>(
        &self,
        py: Python<'py>,
        radii: Vec<f64>,
        pulse: Option<Py<PyAny>>,
        pairwise: bool,
    ) -> PyResult<Bound<'py, PyArray2<i64>>> {
        let kernel = if pairwise { ball::pairwise_counts } else { ball::counts };
        let counts = detached(py, pulse, |pulse| kernel(self.matrix.as_view(), &radii, pulse))?;
        PyArray1::from_iter(py, counts.iter().map(|&count| i64::from(count))).reshape([counts.ncols(), counts.nrows()])
    }

    /// The sum of the m largest ball counts, for each of the ascending radii.
    #[pyo3(signature = (radii, m, pulse=None))]
    fn top_count_sums<'py>(
        &self,
        py: Python<'py>,
        radii: Vec<f64>,
        m: usize,
        pulse: Option<Py<PyAny>>,
    ) -> PyResult<Integers<'py>> {
        let counts = detached(py, pulse, |pulse| ball::counts(self.matrix.as_view(), &radii, pulse))?;
        Ok(PyArray1::from_vec(py, py.detach(|| ball::top_sums(&counts, m)).into_iter().map(|sum| sum as i64).collect()))
    }

    /// The sum of distances from theta.
    #[pyo3(signature = (theta, pulse=None))]
    fn objective(&self, py: Python<'_>, theta: PyReadonlyArray1<'_, f64>, pulse: Option<Py<PyAny>>) -> PyResult<f64> {
        let theta = theta.as_slice()?;
        detached(py, pulse, |pulse| objective::objective(self.matrix.as_view(), theta, pulse))
    }

    /// The radius of the smallest ball around a center with at least `count` records.
    #[pyo3(signature = (center, count, pulse=None))]
    fn quantile_radius(
        &self,
        py: Python<'_>,
        center: PyReadonlyArray1<'_, f64>,
        count: usize,
        pulse: Option<Py<PyAny>>,
    ) -> PyResult<f64> {
        let center = center.as_slice()?;
        detached(py, pulse, |pulse| objective::quantile_radius(self.matrix.as_view(), center, count, pulse))
    }

    /// The geometric median, not private.
    #[pyo3(signature = (pulse=None))]
    fn median<'py>(&self, py: Python<'py>, pulse: Option<Py<PyAny>>) -> PyResult<Vector<'py>> {
        let median = detached(py, pulse, |pulse| median::geometric_median(self.matrix.as_view(), pulse))?;
        Ok(PyArray1::from_vec(py, median))
    }

    /// The released point of the inverse-sensitivity mechanism, in steps from the center.
    #[pyo3(signature = (tape, *, center, lattice, rate, pulse=None))]
    fn inverse_sensitivity<'py>(
        &self,
        py: Python<'py>,
        mut tape: PyRefMut<'_, Tape>,
        center: Vec<f64>,
        lattice: (f64, i64, i64),
        rate: u64,
        pulse: Option<Py<PyAny>>,
    ) -> PyResult<Integers<'py>> {
        let lattice = as_lattice(lattice)?;
        let rate = Rate::new(rate).ok_or_else(|| PyValueError::new_err("rate must be below 2^56"))?;
        let (points, tape) = (self.matrix.as_view(), tape.inner.as_mut());
        let place = detached(py, pulse, |pulse| inverse::release(points, &center, &lattice, rate, tape, pulse))?;
        Ok(PyArray1::from_vec(py, place))
    }

    /// The exact scores at lattice points of shape (k, d), in units of 2^-31.
    fn inverse_sensitivity_scores<'py>(
        &self,
        py: Python<'py>,
        places: PyReadonlyArray2<'_, i64>,
        center: Vec<f64>,
        lattice: (f64, i64, i64),
    ) -> PyResult<Bound<'py, PyArray1<u64>>> {
        let (lattice, places) = (as_lattice(lattice)?, places.as_slice()?);
        let scores = py.detach(|| inverse::scores(self.matrix.as_view(), &center, &lattice, places));
        Ok(PyArray1::from_vec(py, scores))
    }

    #[pyo3(signature = (tape, name, *, start, balls, step, steps, bits, sigma, pulse=None))]
    #[expect(clippy::too_many_arguments, reason = "named arguments in Python")]
    fn descend<'py>(
        &self,
        py: Python<'py>,
        mut tape: PyRefMut<'_, Tape>,
        name: String,
        start: Vec<f64>,
        balls: Vec<(Vec<f64>, f64)>,
        step: f64,
        steps: usize,
        bits: u32,
        sigma: u64,
        pulse: Option<Py<PyAny>>,
    ) -> PyResult<(Vector<'py>, Vector<'py>)> {
        let mut balls = balls.into_iter().map(|(center, radius)| Ball::new(center, radius));
        let feasible = match (balls.next(), balls.next()) {
            (Some(first), Some(second)) => Feasible::Lens(first, second),
            (Some(only), None) => Feasible::Ball(only),
            _ => return Err(PyValueError::new_err("a descent needs one ball or two")),
        };
        let descent = Descent { name, start, feasible, step, steps, bits, sigma };
        let tape = tape.inner.as_mut();
        let iterates = detached(py, pulse, |pulse| descent.run(self.matrix.as_view(), tape, pulse))?;
        Ok((PyArray1::from_vec(py, iterates.average), PyArray1::from_vec(py, iterates.last)))
    }
}

/// Every noisy release: drawn, recorded or replayed.
#[pyclass(module = "dpmedian._core")]
struct Tape {
    inner: Box<dyn tape::Tape>,
    key: Option<[u8; 32]>,
}

#[pymethods]
impl Tape {
    /// Fresh noise, from the operating system's randomness unless a key is given.
    #[staticmethod]
    #[pyo3(signature = (key=None))]
    fn draw(key: Option<[u8; 32]>) -> PyResult<Self> {
        let streams = match key {
            Some(key) => Streams::from_key(key),
            None => Streams::from_system().map_err(|error| {
                PyRuntimeError::new_err(format!("the operating system gave no randomness: {error}"))
            })?,
        };
        Ok(Self { inner: Box::new(tape::Draw(streams)), key })
    }

    /// Noise from a key, and a record of every release: for tests, because it holds private values.
    #[staticmethod]
    fn record(key: [u8; 32]) -> Self {
        Self { inner: Box::new(tape::Record::new(Streams::from_key(key))), key: Some(key) }
    }

    /// A tape that gives this recording back.
    fn replay(&self) -> PyResult<Self> {
        let key = self.key.ok_or_else(|| PyValueError::new_err("only a tape with a key can be replayed"))?;
        let replay = tape::Replay::new(Streams::from_key(key), self.inner.entries().to_vec());
        Ok(Self { inner: Box::new(replay), key: Some(key) })
    }

    /// What was recorded, or replayed with the exact values of this data set: (name, sensitivity, scale, exact, noisy) of
    /// every release.
    fn entries<'py>(&self, py: Python<'py>) -> Vec<(String, f64, f64, Integers<'py>, Integers<'py>)> {
        let row = |entry: &Entry| {
            let Entry { request, exact, noisy } = entry;
            let vector = |values: &[i64]| PyArray1::from_slice(py, values);
            (request.name.clone(), request.sensitivity, request.noise.scale(), vector(exact), vector(noisy))
        };
        self.inner.entries().iter().map(row).collect()
    }

    fn gaussian<'py>(
        &mut self,
        py: Python<'py>,
        name: &str,
        exact: PyReadonlyArray1<'_, i64>,
        sigma: u64,
        sensitivity: f64,
    ) -> PyResult<Integers<'py>> {
        self.noisy(py, name, exact, Noise::Gaussian { sigma }, sensitivity)
    }

    /// Two-sided geometric noise of rate p/q.
    fn laplace<'py>(
        &mut self,
        py: Python<'py>,
        name: &str,
        exact: PyReadonlyArray1<'_, i64>,
        rate: (u64, u64),
        sensitivity: f64,
    ) -> PyResult<Integers<'py>> {
        self.noisy(py, name, exact, Noise::Laplace { p: rate.0, q: rate.1 }, sensitivity)
    }

    /// One-sided geometric noise of rate p/q.
    fn geometric<'py>(
        &mut self,
        py: Python<'py>,
        name: &str,
        exact: PyReadonlyArray1<'_, i64>,
        rate: (u64, u64),
        sensitivity: f64,
    ) -> PyResult<Integers<'py>> {
        self.noisy(py, name, exact, Noise::Geometric { p: rate.0, q: rate.1 }, sensitivity)
    }

    /// The exponential mechanism: an index, with weights exp(-score p/q).
    fn choose(
        &mut self,
        name: &str,
        scores: PyReadonlyArray1<'_, i64>,
        rate: (u64, u64),
        range: f64,
    ) -> PyResult<usize> {
        if scores.is_empty() {
            return Err(PyValueError::new_err("there is nothing to choose from"));
        }
        let request = Request::new(name, Noise::Choice { p: rate.0, q: rate.1 }, range).map_err(raised)?;
        let chosen = self.inner.release(&request, scores.as_slice()?).map_err(raised)?;
        Ok(chosen[0] as usize)
    }

    /// Public randomness: `count` uniform integers below `bound`.
    fn uniform<'py>(&mut self, py: Python<'py>, bound: u64, count: usize) -> PyResult<Bound<'py, PyArray1<u64>>> {
        if bound == 0 {
            return Err(PyValueError::new_err("bound must be positive"));
        }
        let mut rng = self.inner.streams().public();
        Ok(PyArray1::from_vec(py, (0..count).map(|_| uniform::below(&mut rng, bound)).collect()))
    }
}

impl Tape {
    fn noisy<'py>(
        &mut self,
        py: Python<'py>,
        name: &str,
        exact: PyReadonlyArray1<'_, i64>,
        noise: Noise,
        sensitivity: f64,
    ) -> PyResult<Integers<'py>> {
        let request = Request::new(name, noise, sensitivity).map_err(raised)?;
        let noisy = self.inner.release(&request, exact.as_slice()?).map_err(raised)?;
        Ok(PyArray1::from_vec(py, noisy))
    }
}

/// A ball cut by half-spaces, and its center.
#[pyclass(module = "dpmedian._core")]
struct Region {
    inner: center::Region,
}

#[pymethods]
impl Region {
    #[classattr]
    const TAU: f64 = center::TAU;

    #[new]
    fn new(origin: PyReadonlyArray1<'_, f64>, radius: f64) -> PyResult<Self> {
        let origin = origin.as_slice()?;
        if origin.is_empty() || origin.iter().any(|x| !x.is_finite()) || !(radius > 0.0 && radius.is_finite()) {
            return Err(PyValueError::new_err(format!(
                "a region needs a finite origin and a positive radius, got {radius}"
            )));
        }
        Ok(Self { inner: center::Region::new(DVectorView::from_slice(origin, origin.len()), radius) })
    }

    #[getter]
    fn center<'py>(&self, py: Python<'py>) -> Vector<'py> {
        PyArray1::from_slice(py, self.inner.center().as_slice())
    }

    #[getter]
    fn cuts(&self) -> usize {
        self.inner.cuts()
    }

    #[getter]
    fn log_volume(&self) -> f64 {
        self.inner.log_volume()
    }

    /// False when the region has collapsed and stays as it was.
    fn cut(&mut self, py: Python<'_>, direction: PyReadonlyArray1<'_, f64>) -> PyResult<bool> {
        let direction = direction.as_slice()?;
        if direction.len() != self.inner.center().len() {
            return Err(PyValueError::new_err("a direction must have the dimension of the region"));
        }
        Ok(py.detach(|| self.inner.cut(DVectorView::from_slice(direction, direction.len()))).is_ok())
    }
}

/// The posterior of a search for an index of a grid.
#[pyclass(module = "dpmedian._core")]
struct GridPosterior {
    inner: posterior::Grid,
}

#[pymethods]
impl GridPosterior {
    #[new]
    fn new(size: usize, likely: f64, width: f64) -> PyResult<Self> {
        if size == 0 || !(width > 0.0 && likely.is_finite()) {
            return Err(PyValueError::new_err(format!(
                "a grid needs an index and a prior of positive width, got {size} indices, {width} around {likely}"
            )));
        }
        Ok(Self { inner: posterior::Grid::new(size, likely, width) })
    }

    fn ask(&mut self) -> usize {
        self.inner.ask()
    }

    fn learn(&mut self, evidence: f64) {
        self.inner.learn(evidence);
    }

    fn mode(&self) -> usize {
        self.inner.mode()
    }
}

/// The posterior of a search for the median of every coordinate.
#[pyclass(module = "dpmedian._core")]
struct CoordinatePosterior {
    inner: posterior::Coordinates,
}

#[pymethods]
impl CoordinatePosterior {
    #[new]
    fn new(dimension: usize, octaves: (i32, i32), limit: f64, resolution: f64) -> PyResult<Self> {
        let (first, last) = octaves;
        if first > last || !(limit > 0.0 && limit.is_finite()) {
            return Err(PyValueError::new_err(format!(
                "a posterior needs ascending octaves and a positive limit, got {first} to {last} and {limit}"
            )));
        }
        Ok(Self { inner: posterior::Coordinates::new(dimension, first, last, limit, resolution) })
    }

    fn ask<'py>(&mut self, py: Python<'py>) -> Vector<'py> {
        PyArray1::from_vec(py, self.inner.ask())
    }

    fn learn(&mut self, evidence: PyReadonlyArray1<'_, f64>) -> PyResult<()> {
        let evidence = evidence.as_slice()?;
        if evidence.len() != self.inner.dimension() {
            return Err(PyValueError::new_err("one answer is needed for every coordinate"));
        }
        self.inner.learn(evidence);
        Ok(())
    }

    fn median<'py>(&mut self, py: Python<'py>) -> Vector<'py> {
        PyArray1::from_vec(py, self.inner.median())
    }
}

/// The exponent of the unit of `Points.differences`, and by how much a difference of two scores may move.
#[pyfunction]
fn difference_range(candidates: PyReadonlyArray2<'_, f64>) -> PyResult<(i32, u64)> {
    let candidates = Candidates::new(view(&candidates)?);
    Ok((candidates.exponent(), candidates.range()))
}

/// The number of threads of every later call; None for RAYON_NUM_THREADS or the number of cores.
///
/// Results have the same bits for any number.
#[pyfunction]
#[pyo3(signature = (threads=None))]
fn set_threads(threads: Option<i64>) -> PyResult<()> {
    let most = pool::THREADS_MAX;
    if let Some(got) = threads.filter(|k| !(1..=most as i64).contains(k)) {
        return Err(PyValueError::new_err(format!("threads must be None or lie between 1 and {most}, got {got}")));
    }
    pool::set_threads(threads.map(|k| k as usize));
    Ok(())
}

#[pyfunction]
fn threads() -> usize {
    pool::threads()
}

#[pyfunction]
fn gradient_sensitivity(d: usize, bits: u32) -> f64 {
    gradient::sensitivity(d, bits)
}

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("FIRST_QUARTER", distance::FIRST)?;
    module.add("LAST_QUARTER", distance::LAST)?;
    module.add_class::<Points>()?;
    module.add_class::<Tape>()?;
    module.add_class::<Region>()?;
    module.add_class::<GridPosterior>()?;
    module.add_class::<CoordinatePosterior>()?;
    module.add_function(wrap_pyfunction!(set_threads, module)?)?;
    module.add_function(wrap_pyfunction!(threads, module)?)?;
    module.add_function(wrap_pyfunction!(gradient_sensitivity, module)?)?;
    module.add_function(wrap_pyfunction!(difference_range, module)?)?;
    Ok(())
}
