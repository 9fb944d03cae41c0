//! The records: queries about them, and the mechanisms that make many queries.

use std::sync::Arc;

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::array::{Held, Reading};
use super::call::{
    Integers, LatticeArguments, Vector, admitted, as_lattice, check_dimension, detached, raised, without_gil,
};
use super::postprocess::{BallArguments, as_ball, as_feasible};
use super::record_file::RecordFile;
use super::statistics::Statistic;
use super::tape::{Coins, Exact, Stream, Tape};
use dpmedian_core::mechanism::descent::Descent;
use dpmedian_core::mechanism::inverse_sensitivity::{self, DIMENSION_MAX, rate::Rate};
use dpmedian_core::postprocess::projection::Ball;
use dpmedian_core::release::error::Error;
use dpmedian_core::release::sample;
use dpmedian_core::runtime::memory::Table;
use dpmedian_core::runtime::points;

/// The memory of the records of a data set between two calls.
enum Home {
    /// In a caller's array.
    Array(Held),
    /// In memory that this crate owns.
    Own(points::Points<'static>),
}

/// The validated records, which are read in place. Python code cannot read exact values from this object.
#[pyclass(frozen, module = "dpmedian._core")]
pub(super) struct Points {
    home: Home,
    admitted: Arc<points::Admitted>,
}

impl Points {
    pub(super) fn own(points: points::Points<'static>) -> Self {
        Self { admitted: Arc::clone(points.admitted()), home: Home::Own(points) }
    }

    /// A copy of all records of some shards.
    fn joined(shards: &[points::Points<'_>]) -> PyResult<Self> {
        let first = shards.first().ok_or_else(|| PyValueError::new_err("at least one shard is needed"))?;
        for shard in shards {
            check_dimension("a shard", shard.d(), first.d())?;
        }
        if shards.iter().any(|shard| shard.is_weighted()) {
            return Err(PyValueError::new_err(
                "records with weights cannot be joined: join the shards first, then add the weights",
            ));
        }
        let whole = points::Points::concatenate(&shards.iter().collect::<Vec<_>>());
        whole.map(Self::own).map_err(|repeated| PyValueError::new_err(repeated.to_string()))
    }

    /// Borrows the caller's array, if the records are in one.
    fn reading<'py>(&self, py: Python<'py>) -> PyResult<Option<Reading<'py>>> {
        match &self.home {
            Home::Array(held) => held.reading(py).map(Some),
            Home::Own(_) => Ok(None),
        }
    }

    /// The records, which borrow their memory.
    fn borrowed<'a>(&'a self, reading: Option<&'a Reading<'_>>) -> PyResult<points::Points<'a>> {
        let table = match (&self.home, reading) {
            (Home::Own(points), _) => return Ok(points.borrowed()),
            (Home::Array(_), Some(reading)) => reading.table()?,
            (Home::Array(_), None) => return Err(PyValueError::new_err("the array of the records is not borrowed")),
        };
        points::Points::again(table, &self.admitted)
            .ok_or_else(|| PyValueError::new_err("the array of the records has changed its shape"))
    }

    /// Calls `work` with the records.
    pub(super) fn with<T>(&self, py: Python<'_>, work: impl FnOnce(&points::Points<'_>) -> PyResult<T>) -> PyResult<T> {
        let reading = self.reading(py)?;
        work(&self.borrowed(reading.as_ref())?)
    }
}

#[pymethods]
impl Points {
    #[new]
    #[pyo3(signature = (array, *, ball=None, replacement=None))]
    fn new(
        py: Python<'_>,
        array: Reading<'_>,
        ball: Option<BallArguments>,
        replacement: Option<Vec<f64>>,
    ) -> PyResult<Self> {
        let table = array.table()?;
        let ball = checked(ball, replacement.as_ref(), table.d())?;
        let admitted = Arc::clone(admitted(py, table, ball.as_ref(), replacement.as_deref())?.admitted());
        Ok(Self { home: Home::Array(array.held()), admitted })
    }

    /// The records of a file, which stay in the file.
    #[staticmethod]
    #[pyo3(signature = (file, *, ball=None, replacement=None))]
    fn read(
        py: Python<'_>,
        file: &Bound<'_, RecordFile>,
        ball: Option<BallArguments>,
        replacement: Option<Vec<f64>>,
    ) -> PyResult<Self> {
        let table = Table::from(file.get().records()?);
        let ball = checked(ball, replacement.as_ref(), table.d())?;
        admitted(py, table, ball.as_ref(), replacement.as_deref()).map(Self::own)
    }

    /// The dimension.
    #[getter]
    fn d(&self) -> usize {
        self.admitted.d()
    }

    /// The number of records.
    #[getter]
    fn n(&self) -> usize {
        self.admitted.n()
    }

    /// A copy of the records of all shards, one after the other. No two shards may have a record in common.
    #[staticmethod]
    fn concatenate(py: Python<'_>, shards: Vec<PyRef<'_, Self>>) -> PyResult<Self> {
        let readings = shards.iter().map(|shard| shard.reading(py)).collect::<PyResult<Vec<_>>>()?;
        let borrowed = shards.iter().zip(&readings).map(|(shard, reading)| shard.borrowed(reading.as_ref()));
        let borrowed = borrowed.collect::<PyResult<Vec<_>>>()?;
        let whole = without_gil(py, || Self::joined(&borrowed))?;
        for shard in &borrowed {
            shard.check().map_err(|reason| raised(Error::Unreadable(reason)))?;
        }
        Ok(whole)
    }

    /// A hidden uniform sample of min(m, n) records without replacement, for neighbors that replace a record.
    fn sample(&self, py: Python<'_>, stream: &Bound<'_, Stream>, m: usize) -> PyResult<Self> {
        let stream = stream.get().take()?;
        self.with(py, |points| without_gil(py, || sample::uniform(points, stream, m)).map(Self::own).map_err(raised))
    }

    /// A hidden sample that contains every record with probability numerator/2^halvings, independently.
    fn sample_by_coins(&self, py: Python<'_>, stream: &Bound<'_, Stream>, probability: (u64, u32)) -> PyResult<Self> {
        let stream = stream.get().take()?;
        self.with(py, |points| {
            without_gil(py, || sample::by_coins(points, stream, probability)).map(Self::own).map_err(raised)
        })
    }

    /// A copy of the records with one weight each, in units of 2^-20 of the cap, rounded by hidden coins.
    ///
    /// `first` is the row of the first record if these records are a part of a data set.
    #[pyo3(signature = (coins, weights, first=0))]
    fn weighted(
        &self,
        py: Python<'_>,
        coins: &Bound<'_, Coins>,
        weights: PyReadonlyArray1<'_, u32>,
        first: usize,
    ) -> PyResult<Self> {
        let (coins, weights) = (&coins.get().0, weights.as_slice()?);
        self.with(py, |points| {
            without_gil(py, || sample::weighted(points, coins, first, weights)).map(Self::own).map_err(raised)
        })
    }

    /// The exact answer to a query, which only a tape can open.
    #[pyo3(signature = (statistic, pulse=None))]
    fn answer(&self, py: Python<'_>, statistic: &Bound<'_, Statistic>, pulse: Option<Py<PyAny>>) -> PyResult<Exact> {
        let statistic = statistic.get().query();
        if let Some(dimension) = statistic.dimension() {
            check_dimension("the question", dimension, self.admitted.d())?;
        }
        self.with(py, |points| detached(py, pulse, |pulse| statistic.answer(points, pulse))).map(Exact)
    }

    /// Noisy projected gradient descent. The result is the average of the iterates, and the last iterate.
    #[pyo3(signature = (tape, name, *, start, balls, step, steps, bits, noise_multiplier, pulse=None))]
    #[expect(clippy::too_many_arguments, reason = "named arguments in Python")]
    fn descend<'py>(
        &self,
        py: Python<'py>,
        mut tape: PyRefMut<'_, Tape>,
        name: String,
        start: Vec<f64>,
        balls: Vec<BallArguments>,
        step: f64,
        steps: usize,
        bits: u32,
        noise_multiplier: f64,
        pulse: Option<Py<PyAny>>,
    ) -> PyResult<(Vector<'py>, Vector<'py>)> {
        let feasible = as_feasible(balls)?;
        check_dimension("the start", start.len(), self.admitted.d())?;
        check_dimension("a ball", feasible.dimension(), self.admitted.d())?;
        let descent = Descent { name, start, feasible, step, steps, bits, noise_multiplier };
        let tape = tape.tape();
        let iterates = self.with(py, |points| detached(py, pulse, |pulse| descent.run(points, tape, pulse)))?;
        Ok((PyArray1::from_vec(py, iterates.average), PyArray1::from_vec(py, iterates.last)))
    }

    /// The released point of the inverse-sensitivity mechanism, in units of the step of the lattice, relative to the
    /// center.
    #[pyo3(signature = (tape, *, center, lattice, rate, pulse=None))]
    fn draw_lattice<'py>(
        &self,
        py: Python<'py>,
        mut tape: PyRefMut<'_, Tape>,
        center: Vec<f64>,
        lattice: LatticeArguments,
        rate: u64,
        pulse: Option<Py<PyAny>>,
    ) -> PyResult<Integers<'py>> {
        let lattice = as_lattice(lattice)?;
        let rate = Rate::new(rate).ok_or_else(|| PyValueError::new_err("rate must be below 2^56"))?;
        check_lattice_dimension(self.admitted.d())?;
        check_dimension("the center", center.len(), self.admitted.d())?;
        let tape = tape.tape();
        let place = self.with(py, |points| {
            detached(py, pulse, |pulse| inverse_sensitivity::release(points, &center, &lattice, rate, tape, pulse))
        })?;
        Ok(PyArray1::from_vec(py, place))
    }
}

/// The ball and the replacement for the admission. They must have the dimension of the records.
fn checked(ball: Option<BallArguments>, replacement: Option<&Vec<f64>>, d: usize) -> PyResult<Option<Ball>> {
    let ball = ball.map(as_ball);
    if let Some(ball) = &ball {
        check_dimension("the ball", ball.dimension(), d)?;
    }
    if let Some(replacement) = replacement {
        check_dimension("the replacement", replacement.len(), d)?;
    }
    Ok(ball)
}

/// Refuses a dimension for which there is no lattice.
pub(super) fn check_lattice_dimension(d: usize) -> PyResult<()> {
    if (1..=DIMENSION_MAX).contains(&d) {
        return Ok(());
    }
    Err(PyValueError::new_err(format!("a lattice has one to {DIMENSION_MAX} dimensions, got {d}")))
}
