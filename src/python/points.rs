//! The records: what may be asked of them, and the mechanisms that ask many times.

use numpy::{PyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::call::{
    Integers, LatticeArguments, Vector, as_lattice, check_dimension, detached, non_finite, raised, view, without_gil,
};
use super::postprocess::{BallArguments, as_ball, as_feasible};
use super::statistics::Statistic;
use super::tape::{Exact, Stream, Tape};
use crate::mechanism::descent::Descent;
use crate::mechanism::inverse_sensitivity::{self, DIMENSION_MAX, rate::Rate};
use crate::release::sample;
use crate::runtime::points;

/// The one validated, clamped and projected copy of the records. No exact number can be read from it.
#[pyclass(frozen, module = "dpmedian._core")]
pub(super) struct Points(points::Points);

#[pymethods]
impl Points {
    #[new]
    #[pyo3(signature = (array, *, ball=None, replacement=None))]
    fn new(
        py: Python<'_>,
        array: PyReadonlyArray2<'_, f64>,
        ball: Option<BallArguments>,
        replacement: Option<Vec<f64>>,
    ) -> PyResult<Self> {
        let view = view(&array)?;
        let ball = ball.map(as_ball);
        if let Some(ball) = &ball {
            check_dimension("the ball", ball.dimension(), view.nrows())?;
        }
        if let Some(replacement) = &replacement {
            check_dimension("the replacement", replacement.len(), view.nrows())?;
        }
        let admit = || points::Points::admit(view, ball.as_ref(), replacement.as_deref());
        without_gil(py, admit).map(Self).map_err(non_finite)
    }

    /// The dimension.
    #[getter]
    fn d(&self) -> usize {
        self.0.d()
    }

    /// The number of records.
    #[getter]
    fn n(&self) -> usize {
        self.0.n()
    }

    /// The records of all shards, one after the other; no two may have a record in common.
    #[staticmethod]
    fn concatenate(py: Python<'_>, shards: Vec<PyRef<'_, Self>>) -> PyResult<Self> {
        let shards: Vec<&points::Points> = shards.iter().map(|shard| &shard.0).collect();
        let first = shards.first().ok_or_else(|| PyValueError::new_err("at least one shard is needed"))?;
        for shard in &shards {
            check_dimension("a shard", shard.d(), first.d())?;
        }
        let whole = without_gil(py, || points::Points::concatenate(&shards));
        whole.map(Self).map_err(|repeated| PyValueError::new_err(repeated.to_string()))
    }

    /// A hidden uniform sample of min(m, n) records without replacement, for neighbours that replace a record.
    fn sample(&self, py: Python<'_>, stream: &Bound<'_, Stream>, m: usize) -> PyResult<Self> {
        let stream = &stream.get().0;
        without_gil(py, || sample::uniform(&self.0, stream, m)).map(Self).map_err(raised)
    }

    /// A hidden sample that has every record with probability numerator/2^halvings, independently.
    fn sample_by_coins(&self, py: Python<'_>, stream: &Bound<'_, Stream>, probability: (u64, u32)) -> PyResult<Self> {
        let stream = &stream.get().0;
        without_gil(py, || sample::by_coins(&self.0, stream, probability)).map(Self).map_err(raised)
    }

    /// The exact answer to a question, which only a tape can open.
    #[pyo3(signature = (statistic, pulse=None))]
    fn answer(&self, py: Python<'_>, statistic: &Bound<'_, Statistic>, pulse: Option<Py<PyAny>>) -> PyResult<Exact> {
        let statistic = statistic.get().question();
        if let Some(dimension) = statistic.dimension() {
            check_dimension("the question", dimension, self.0.d())?;
        }
        detached(py, pulse, |pulse| statistic.answer(&self.0, pulse)).map(Exact)
    }

    /// Noisy projected gradient descent: the average of the iterates, and the last one.
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
        check_dimension("the start", start.len(), self.0.d())?;
        check_dimension("a ball", feasible.dimension(), self.0.d())?;
        let descent = Descent { name, start, feasible, step, steps, bits, noise_multiplier };
        let tape = tape.tape();
        let iterates = detached(py, pulse, |pulse| descent.run(&self.0, tape, pulse))?;
        Ok((PyArray1::from_vec(py, iterates.average), PyArray1::from_vec(py, iterates.last)))
    }

    /// The released point of the inverse-sensitivity mechanism, in steps from the center.
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
        check_lattice_dimension(self.0.d())?;
        check_dimension("the center", center.len(), self.0.d())?;
        let tape = tape.tape();
        let place =
            detached(py, pulse, |pulse| inverse_sensitivity::release(&self.0, &center, &lattice, rate, tape, pulse))?;
        Ok(PyArray1::from_vec(py, place))
    }
}

/// Refuses a dimension without a lattice.
pub(super) fn check_lattice_dimension(d: usize) -> PyResult<()> {
    if (1..=DIMENSION_MAX).contains(&d) {
        return Ok(());
    }
    Err(PyValueError::new_err(format!("a lattice has one to {DIMENSION_MAX} dimensions, got {d}")))
}
