//! Exact answers, and the tape that opens them.

use std::sync::{Mutex, PoisonError};

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple, PyType};

use super::call::{Integers, raised};
use super::sensitivity::{Sensitivity, as_neighbours};
use super::statistics::from_parameters;
use dpmedian_core::release::exact::Query;
use dpmedian_core::release::recording::{Entry, Record, Replay};
use dpmedian_core::release::sample;
use dpmedian_core::release::sensitivity::Neighbours;
use dpmedian_core::release::streams::{self, Streams};
use dpmedian_core::release::trace::Traced;
use dpmedian_core::release::{exact, tape};

/// Exact integers, which only a tape can open.
#[pyclass(frozen, module = "dpmedian._core")]
pub(super) struct Exact(pub(super) exact::Exact);

#[pymethods]
impl Exact {
    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// Shows the form and the length, but no value.
    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }

    /// The largest change of the values between neighbors.
    #[getter]
    fn sensitivity(&self) -> Sensitivity {
        Sensitivity(self.0.sensitivity())
    }

    /// One entry of a table or of a vector, as a vector of length one.
    fn pick(&self, index: usize) -> PyResult<Self> {
        self.0.pick(index).map(Self).map_err(raised)
    }

    /// The sum of the answers of all shards. They must answer the same query, which adds over records, and no record
    /// may be in two shards.
    #[staticmethod]
    fn sum(shards: Vec<PyRef<'_, Self>>) -> PyResult<Self> {
        let shards: Vec<&exact::Exact> = shards.iter().map(|shard| &shard.0).collect();
        exact::Exact::sum(&shards).map(Self).map_err(raised)
    }

    /// The caller's own integers, as a vector or as scores. The caller must have proved the sensitivity.
    #[staticmethod]
    #[pyo3(signature = (values, sensitivity, scores=false))]
    fn stated(values: PyReadonlyArray1<'_, i64>, sensitivity: f64, scores: bool) -> PyResult<Self> {
        Ok(Self(exact::Exact::stated(values.as_slice()?, sensitivity, scores)))
    }

    /// A vector that does not depend on the data.
    #[staticmethod]
    fn public(values: PyReadonlyArray1<'_, i64>) -> PyResult<Self> {
        Ok(Self(exact::Exact::public(values.as_slice()?)))
    }
}

/// Hidden randomness of a tape. It is independent of the data, is the same in a replay, and is never shown.
///
/// A stream can be used once.
#[pyclass(frozen, module = "dpmedian._core")]
pub(super) struct Stream(Mutex<Option<streams::Stream>>);

impl Stream {
    /// Takes the randomness out. An error is raised if it was already taken.
    pub(super) fn take(&self) -> PyResult<streams::Stream> {
        let stream = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        stream
            .ok_or_else(|| PyRuntimeError::new_err("this stream of hidden randomness was already used: draw a new one"))
    }
}

/// Hidden coins that round the weights of one data set. Each row has one coin, which does not depend on the process
/// that holds the row.
///
/// Coins can be pickled and sent to the processes that hold the records.
#[pyclass(frozen, module = "dpmedian._core")]
pub(super) struct Coins(pub(super) sample::Coins);

#[pymethods]
impl Coins {
    #[new]
    fn new(key: [u8; 32]) -> Self {
        Self(sample::Coins::from_key(key))
    }

    /// Derives coins from a stream, which is used up.
    #[staticmethod]
    fn of(stream: &Bound<'_, Stream>) -> PyResult<Self> {
        Ok(Self(sample::Coins::of(stream.get().take()?)))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyType>, Bound<'py, PyTuple>)> {
        Ok((py.get_type::<Self>(), PyTuple::new(py, [PyBytes::new(py, self.0.key())])?))
    }
}

/// A row of a trace.
type TraceRow<'py> =
    (String, &'static str, f64, f64, Option<(&'static str, Bound<'py, PyDict>, Option<usize>)>, Option<Integers<'py>>);

/// The kinds of tape.
enum Kind {
    Draw(tape::Draw),
    Record(Record),
    Replay(Replay),
}

/// Every noisy release: drawn, recorded or replayed, under one neighbor relation.
#[pyclass(module = "dpmedian._core")]
pub(super) struct Tape {
    kind: Kind,
    key: Option<[u8; 32]>,
    relation: Neighbours,
}

impl Tape {
    /// The tape for a mechanism. A mechanism cannot distinguish the kinds of tape.
    pub(super) fn tape(&mut self) -> &mut dyn tape::Tape {
        match &mut self.kind {
            Kind::Draw(tape) => tape,
            Kind::Record(tape) => tape,
            Kind::Replay(tape) => tape,
        }
    }

    fn shared(&self) -> &dyn tape::Tape {
        match &self.kind {
            Kind::Draw(tape) => tape,
            Kind::Record(tape) => tape,
            Kind::Replay(tape) => tape,
        }
    }

    fn kept(&self) -> &[Entry] {
        match &self.kind {
            Kind::Draw(_) => &[],
            Kind::Record(tape) => tape.entries(),
            Kind::Replay(tape) => tape.entries(),
        }
    }
}

#[pymethods]
impl Tape {
    /// A tape with fresh noise, from random numbers of the operating system or from the given key.
    #[staticmethod]
    #[pyo3(signature = (key=None, neighbours="replace"))]
    fn draw(key: Option<[u8; 32]>, neighbours: &str) -> PyResult<Self> {
        let relation = as_neighbours(neighbours)?;
        let streams = match key {
            Some(key) => Streams::from_key(key),
            None => Streams::from_system().map_err(|error| {
                PyRuntimeError::new_err(format!("the operating system did not provide random numbers: {error}"))
            })?,
        };
        Ok(Self { kind: Kind::Draw(tape::Draw::new(streams, relation)), key, relation })
    }

    /// A tape that records every release, with noise from a key. It holds private values and is for tests only.
    #[staticmethod]
    #[pyo3(signature = (key, neighbours="replace"))]
    fn record(key: [u8; 32], neighbours: &str) -> PyResult<Self> {
        let relation = as_neighbours(neighbours)?;
        let record = Record::new(Streams::from_key(key), relation);
        Ok(Self { kind: Kind::Record(record), key: Some(key), relation })
    }

    /// A tape that returns this recording.
    fn replay(&self) -> PyResult<Self> {
        let key = self.key.ok_or_else(|| PyValueError::new_err("only a tape with a key can be replayed"))?;
        let replay = Replay::new(Streams::from_key(key), self.relation, self.kept().to_vec());
        Ok(Self { kind: Kind::Replay(replay), key: Some(key), relation: self.relation })
    }

    /// The recorded or replayed releases: (name, sensitivity, scale, exact, noisy) for each. After a replay, `exact`
    /// holds the values of the present data set.
    fn entries<'py>(&self, py: Python<'py>) -> Vec<(String, f64, f64, Integers<'py>, Integers<'py>)> {
        let row = |entry: &Entry| {
            let Entry { request, exact, noisy } = entry;
            let vector = |values: &[i64]| PyArray1::from_slice(py, values);
            (request.name.clone(), request.sensitivity, request.noise.scale(), vector(exact), vector(noisy))
        };
        self.kept().iter().map(row).collect()
    }

    /// The releases so far: (name, noise, sensitivity, scale, query, answer) for each release. A query is a statistic,
    /// its public parameters, and the entry that was picked. The list contains no private value.
    fn trace<'py>(&self, py: Python<'py>) -> PyResult<Vec<TraceRow<'py>>> {
        let row = |entry: &Traced| {
            let query = entry.query.as_ref().map(|Query { statistic, parameters, entry }| {
                Ok::<_, PyErr>((*statistic, from_parameters(py, parameters)?, *entry))
            });
            let answer = entry.answer.as_ref().map(|answer| PyArray1::from_slice(py, answer));
            Ok((entry.name.clone(), entry.noise, entry.sensitivity, entry.scale, query.transpose()?, answer))
        };
        self.shared().trace().iter().map(row).collect()
    }

    /// Adds the release of a mechanism that compared noisy values to the trace. `found` is the released index, or None
    /// if no value was found.
    fn outcome(&mut self, name: &str, sensitivity: f64, epsilon: f64, found: Option<i64>) {
        self.tape().outcome(name, sensitivity, epsilon, found);
    }

    /// The neighbor relation of everything that this tape releases.
    #[getter]
    fn neighbours(&self) -> &'static str {
        self.relation.name()
    }

    /// Sets two limits, once: on the sum of (sensitivity/sigma)^2 over Gaussian releases, and on the sum of the bounded
    /// ranges of choices and draws. A release that would exceed a limit raises an error before a value is opened.
    fn allow(&mut self, mu_squared: f64, ranges: f64) -> PyResult<()> {
        self.tape().allow(mu_squared, ranges).map_err(raised)
    }

    /// A vector plus discrete Gaussian noise whose standard deviation is `noise_multiplier` times its sensitivity.
    fn gaussian<'py>(
        &mut self,
        py: Python<'py>,
        name: &str,
        exact: &Bound<'_, Exact>,
        noise_multiplier: f64,
    ) -> PyResult<Integers<'py>> {
        let noisy = self.tape().gaussian(name, &exact.get().0, noise_multiplier).map_err(raised)?;
        Ok(PyArray1::from_vec(py, noisy))
    }

    /// A vector of length one plus two-sided geometric noise of rate p/q.
    fn laplace<'py>(
        &mut self,
        py: Python<'py>,
        name: &str,
        exact: &Bound<'_, Exact>,
        rate: (u64, u64),
    ) -> PyResult<Integers<'py>> {
        let noisy = self.tape().laplace(name, &exact.get().0, rate).map_err(raised)?;
        Ok(PyArray1::from_vec(py, noisy))
    }

    /// A vector of length one plus one-sided geometric noise of rate p/q.
    fn geometric<'py>(
        &mut self,
        py: Python<'py>,
        name: &str,
        exact: &Bound<'_, Exact>,
        rate: (u64, u64),
    ) -> PyResult<Integers<'py>> {
        let noisy = self.tape().geometric(name, &exact.get().0, rate).map_err(raised)?;
        Ok(PyArray1::from_vec(py, noisy))
    }

    /// The exponential mechanism with bounded range `eta`. Returns an index. The larger of `at_least` and the range of
    /// the scores determines the rate.
    #[pyo3(signature = (name, exact, eta, at_least=0))]
    fn choose(&mut self, name: &str, exact: &Bound<'_, Exact>, eta: f64, at_least: u64) -> PyResult<usize> {
        self.tape().choose(name, &exact.get().0, eta, at_least).map_err(raised)
    }

    /// Hidden randomness. It uses up the position of one release.
    fn hidden(&mut self) -> Stream {
        Stream(Mutex::new(Some(self.tape().hidden())))
    }
}

/// The standard deviation of Gaussian noise in lattice units: `noise_multiplier` times a sensitivity, rounded up.
#[pyfunction]
pub(super) fn gaussian_sigma(sensitivity: f64, noise_multiplier: f64) -> u64 {
    tape::gaussian_sigma(sensitivity, noise_multiplier)
}
