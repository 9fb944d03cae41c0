//! The processes of one run: what goes from one to another is enciphered, and opaque at both ends.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple, PyType};

use super::call::{detached, raised, without_gil};
use super::points::Points;
use super::statistics::Statistic;
use super::tape::{Exact, Stream};
use dpmedian_core::release::error::Error;
use dpmedian_core::release::{channel, exact};

/// The key that the processes of one run share. It can be pickled, to get there.
#[pyclass(frozen, module = "dpmedian._core")]
pub(super) struct Channel(channel::Channel);

#[pymethods]
impl Channel {
    #[new]
    #[pyo3(signature = (key=None))]
    fn new(key: Option<[u8; 32]>) -> PyResult<Self> {
        match key {
            Some(key) => Ok(Self(channel::Channel::from_key(key))),
            None => channel::Channel::from_system()
                .map(Self)
                .map_err(|error| PyRuntimeError::new_err(format!("the operating system gave no randomness: {error}"))),
        }
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyType>, Bound<'py, PyTuple>)> {
        Ok((py.get_type::<Self>(), PyTuple::new(py, [PyBytes::new(py, self.0.key())])?))
    }

    /// A query, for other processes.
    fn ask<'py>(&self, py: Python<'py>, statistic: &Bound<'py, Statistic>) -> PyResult<Bound<'py, PyBytes>> {
        sealed(py, self.0.ask(statistic.get().question()))
    }

    /// The answer of this process to a query: the sum over its shards.
    #[pyo3(signature = (question, shards))]
    fn answer<'py>(
        &self,
        py: Python<'py>,
        question: &[u8],
        shards: Vec<PyRef<'py, Points>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let question = self.0.asked(question).map_err(raised)?;
        let answer = |shard: &PyRef<'_, Points>| {
            shard.with(py, |points| detached(py, None, |pulse| question.answer(points, pulse)))
        };
        let answers = shards.iter().map(answer).collect::<PyResult<Vec<_>>>()?;
        let sum = exact::Exact::sum(&answers.iter().collect::<Vec<_>>()).map_err(raised)?;
        sealed(py, self.0.answer(&sum))
    }

    /// The answers of all processes, summed.
    fn answered(&self, messages: Vec<Vec<u8>>, statistic: &Bound<'_, Statistic>) -> PyResult<Exact> {
        let question = statistic.get().question();
        let answers: Result<Vec<_>, Error> =
            messages.iter().map(|message| self.0.answered(message, question)).collect();
        let answers = answers.map_err(raised)?;
        exact::Exact::sum(&answers.iter().collect::<Vec<_>>()).map(Exact).map_err(raised)
    }

    /// Hidden places of min(m, n) records, a message for each shard of these sizes.
    fn places<'py>(
        &self,
        py: Python<'py>,
        stream: &Bound<'py, Stream>,
        sizes: Vec<usize>,
        m: usize,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let places = self.0.uniform_places(stream.get().take()?, &sizes, m).map_err(raised)?;
        Ok(places.iter().map(|message| PyBytes::new(py, message)).collect())
    }

    /// Hidden places by coins of this probability, a message for each shard of these sizes.
    fn places_by_coins<'py>(
        &self,
        py: Python<'py>,
        stream: &Bound<'py, Stream>,
        sizes: Vec<usize>,
        probability: (u64, u32),
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let places = self.0.coin_places(stream.get().take()?, &sizes, probability).map_err(raised)?;
        Ok(places.iter().map(|message| PyBytes::new(py, message)).collect())
    }

    /// The records of a shard, all of them or those at places that another process chose.
    #[pyo3(signature = (shard, places=None))]
    fn records<'py>(
        &self,
        py: Python<'py>,
        shard: &Bound<'py, Points>,
        places: Option<&[u8]>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        shard.get().with(py, |points| {
            let sealed_records = without_gil(py, || match places {
                None => self.0.records(points),
                Some(places) => self.0.records(&self.0.sample(points, places)?),
            });
            sealed(py, sealed_records)
        })
    }

    /// The records of several messages, one after the other.
    fn gathered(&self, messages: Vec<Vec<u8>>) -> PyResult<Points> {
        let parts: Result<Vec<_>, Error> = messages.iter().map(|message| self.0.gathered(message)).collect();
        Points::joined(&parts.map_err(raised)?)
    }
}

fn sealed(py: Python<'_>, message: Result<Vec<u8>, Error>) -> PyResult<Bound<'_, PyBytes>> {
    Ok(PyBytes::new(py, &message.map_err(raised)?))
}
