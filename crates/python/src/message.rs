//! Messages from one process of a run to another. Both processes see opaque values.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple, PyType};

use super::call::{detached, raised, without_gil};
use super::points::Points;
use super::statistics::Statistic;
use super::tape::{Exact, Stream};
use dpmedian_core::release::error::Error;
use dpmedian_core::release::{exact, message};

/// A query, an answer, records or positions of records, for another process of the run.
///
/// A message can be pickled for the transport. Its `repr` shows only its size. Its bytes are not encrypted.
#[pyclass(frozen, module = "dpmedian._core")]
pub(super) struct Message(message::Message);

#[pymethods]
impl Message {
    #[new]
    fn new(bytes: Vec<u8>) -> Self {
        Self(message::Message::from_bytes(bytes))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyType>, Bound<'py, PyTuple>)> {
        Ok((py.get_type::<Self>(), PyTuple::new(py, [PyBytes::new(py, self.0.bytes())])?))
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }

    /// A query, for other processes.
    #[staticmethod]
    fn query(statistic: &Bound<'_, Statistic>) -> PyResult<Self> {
        made(message::Message::query(statistic.get().query()))
    }

    /// The answer of this process to a query, which is the sum over its shards.
    fn answer(&self, py: Python<'_>, shards: Vec<PyRef<'_, Points>>) -> PyResult<Self> {
        let query = self.0.queried().map_err(raised)?;
        let answer = |shard: &PyRef<'_, Points>| {
            shard.with(py, |points| detached(py, None, |pulse| query.answer(points, pulse)))
        };
        let answers = shards.iter().map(answer).collect::<PyResult<Vec<_>>>()?;
        let sum = exact::Exact::sum(&answers.iter().collect::<Vec<_>>()).map_err(raised)?;
        made(message::Message::answer(&sum))
    }

    /// The sum of the answers of all processes to a query of this process.
    #[staticmethod]
    fn answered(messages: Vec<PyRef<'_, Self>>, statistic: &Bound<'_, Statistic>) -> PyResult<Exact> {
        let query = statistic.get().query();
        let answers: Result<Vec<_>, Error> = messages.iter().map(|message| message.0.answered(query)).collect();
        let answers = answers.map_err(raised)?;
        exact::Exact::sum(&answers.iter().collect::<Vec<_>>()).map(Exact).map_err(raised)
    }

    /// One message for each shard, with the hidden positions of a sample of min(m, n) records. `sizes` are the numbers
    /// of records of the shards.
    #[staticmethod]
    fn places(stream: &Bound<'_, Stream>, sizes: Vec<usize>, m: usize) -> PyResult<Vec<Self>> {
        let places = message::Message::uniform_places(stream.get().take()?, &sizes, m).map_err(raised)?;
        Ok(places.into_iter().map(Self).collect())
    }

    /// One message for each shard, with the hidden positions that coins of this probability choose. `sizes` are the
    /// numbers of records of the shards.
    #[staticmethod]
    fn places_by_coins(stream: &Bound<'_, Stream>, sizes: Vec<usize>, probability: (u64, u32)) -> PyResult<Vec<Self>> {
        let places = message::Message::coin_places(stream.get().take()?, &sizes, probability).map_err(raised)?;
        Ok(places.into_iter().map(Self).collect())
    }

    /// The records of a shard with their weights: all records, or the records at positions that another process chose.
    #[staticmethod]
    #[pyo3(signature = (shard, places=None))]
    fn records(py: Python<'_>, shard: &Bound<'_, Points>, places: Option<PyRef<'_, Self>>) -> PyResult<Self> {
        let places = places.as_ref().map(|places| &places.0);
        shard.get().with(py, |points| {
            made(without_gil(py, || match places {
                None => message::Message::records(points),
                Some(places) => message::Message::records(&places.sampled(points)?),
            }))
        })
    }

    /// The records of several messages, one after the other.
    #[staticmethod]
    fn gathered(messages: Vec<PyRef<'_, Self>>) -> PyResult<Points> {
        let messages: Vec<message::Message> = messages.iter().map(|message| message.0.clone()).collect();
        message::Message::gathered(&messages).map(Points::own).map_err(raised)
    }
}

fn made(message: Result<message::Message, Error>) -> PyResult<Message> {
    message.map(Message).map_err(raised)
}
