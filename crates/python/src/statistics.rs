//! The queries. Every query has a function for its sensitivity, because calibration needs the sensitivity before the
//! query is created.

use std::any::Any;
use std::sync::{Mutex, PoisonError};

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt};

use super::array::{Part, pieces};
use super::call::{bad_parameter, without_gil};
use super::sensitivity::Sensitivity;
use super::tape::{Exact, Stream};
use dpmedian_core::statistics::parameters::{Arguments, Parameters, Value};
use dpmedian_core::statistics::{self, robust_step};

/// A query about the records: a name and public parameters. The file of each statistic in the Rust core describes the
/// statistic and its parameters.
#[pyclass(frozen, module = "dpmedian._core")]
pub(super) struct Statistic(statistics::Issued);

impl Statistic {
    /// The query itself.
    pub(super) fn query(&self) -> &statistics::Issued {
        &self.0
    }
}

#[pymethods]
impl Statistic {
    #[new]
    #[pyo3(signature = (name, /, stream=None, **parameters))]
    fn new(name: &str, stream: Option<&Bound<'_, Stream>>, parameters: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let stream = stream.map(|stream| stream.get().take()).transpose()?;
        let given = Arguments::new(as_parameters(parameters)?, stream);
        statistics::read(name, given).map(Self).map_err(bad_parameter)
    }

    /// The name, as plans and audit records show it.
    #[getter]
    fn name(&self) -> &'static str {
        self.0.name()
    }

    /// The largest change of the answer between neighbors.
    #[getter]
    fn sensitivity(&self) -> Sensitivity {
        Sensitivity(self.0.sensitivity())
    }

    /// Whether the answers of shards add up to the answer of all records.
    #[getter]
    fn adds_over_records(&self) -> bool {
        self.0.adds_over_records()
    }

    /// The dimension that the points must have, or None if any dimension is possible.
    #[getter]
    fn dimension(&self) -> Option<usize> {
        self.0.dimension()
    }

    /// The answer is in units of 2^exponent.
    #[getter]
    fn exponent(&self) -> i32 {
        self.0.exponent()
    }
}

/// The sensitivity of every query with these parameters, and the number of values that are released at once.
#[pyfunction]
#[pyo3(signature = (name, /, **parameters))]
pub(super) fn bound(name: &str, parameters: Option<&Bound<'_, PyDict>>) -> PyResult<(Sensitivity, usize)> {
    let given = Arguments::new(as_parameters(parameters)?, None);
    let bound = statistics::bound(name, given).map_err(bad_parameter)?;
    Ok((Sensitivity(bound.sensitivity), bound.values))
}

/// A parameter from Python. Arrays and lists are tried before numbers, because before numpy 2.4 an array with one
/// element converts to a number. Whole numbers are tried before floats, so that a whole number is not read as a float.
#[derive(FromPyObject)]
enum Given<'py> {
    Doubles(PyReadonlyArray1<'py, f64>),
    Singles(PyReadonlyArray1<'py, f32>),
    Codes(PyReadonlyArray1<'py, u64>),
    Numbers(Vec<u64>),
    Floats(Vec<f64>),
    Number(u64),
    Float(f64),
}

fn as_parameters(given: Option<&Bound<'_, PyDict>>) -> PyResult<Parameters> {
    let given = given.into_iter().flat_map(|given| given.iter());
    let named = given.map(|(name, value)| Ok((name.extract()?, as_value(&value)?)));
    named.collect::<PyResult<_>>().map(Parameters::named)
}

fn as_value(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    // Every variant of `Given` that does not fit creates a Python error, which takes a microsecond. So the most common
    // types are tried before.
    if value.is_instance_of::<PyFloat>() {
        return value.extract().map(Value::Float);
    }
    if value.is_instance_of::<PyInt>()
        && let Ok(number) = value.extract()
    {
        return Ok(Value::Number(number));
    }
    Ok(match value.extract::<Given<'_>>()? {
        Given::Number(number) => Value::Number(number),
        Given::Float(number) => Value::Float(number),
        Given::Doubles(array) => Value::Floats(array.as_array().to_vec()),
        Given::Singles(array) => Value::Singles(array.as_array().to_vec()),
        Given::Codes(array) => Value::Numbers(array.as_array().to_vec()),
        Given::Numbers(numbers) => Value::Numbers(numbers),
        Given::Floats(numbers) => Value::Floats(numbers),
    })
}

/// Converts public parameters for Python. Points and radii become arrays, and whole numbers become a list.
pub(super) fn from_parameters<'py>(py: Python<'py>, parameters: &Parameters) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in parameters.iter() {
        match value {
            Value::Float(value) => dict.set_item(name, value)?,
            Value::Floats(values) => dict.set_item(name, PyArray1::from_slice(py, values))?,
            Value::Singles(values) => dict.set_item(name, PyArray1::from_slice(py, values))?,
            Value::Number(value) => dict.set_item(name, value)?,
            Value::Numbers(values) => dict.set_item(name, values)?,
        }
    }
    Ok(dict)
}

/// Sums the robust step of records that arrive one by one, and counts the records. The records are not stored. Python
/// code cannot read exact values from this object.
#[pyclass(frozen, module = "dpmedian._core")]
pub(super) struct Accumulator(Mutex<robust_step::Accumulator>);

#[pymethods]
impl Accumulator {
    #[new]
    #[pyo3(signature = (step, weighted=false))]
    fn new(step: &Bound<'_, Statistic>, weighted: bool) -> PyResult<Self> {
        let step: &dyn Any = &**step.get().query();
        let step: Option<&robust_step::RobustStep> = step.downcast_ref();
        let step = step.ok_or_else(|| PyValueError::new_err("only a robust step can be summed record by record"))?;
        Ok(Self(Mutex::new(robust_step::Accumulator::new(step.clone(), weighted))))
    }

    /// Adds a record with a weight in units of 2^-20. Its coordinates are in these arrays, in order. Returns False and
    /// adds nothing if a coordinate is not finite.
    #[pyo3(signature = (parts, weight=1048576))]
    fn add(&self, py: Python<'_>, parts: Vec<Part<'_>>, weight: u32) -> PyResult<bool> {
        let record = pieces(&parts)?;
        let added = without_gil(py, || self.0.lock().unwrap_or_else(PoisonError::into_inner).add(&record, weight));
        added.map_err(|refused| {
            PyValueError::new_err(match refused {
                robust_step::NotAdded::Dimension(d) => {
                    format!("the record has {d} coordinates, which is not the dimension of the sum")
                }
                robust_step::NotAdded::Weight => format!("a weight must be at most 2^20, got {weight}"),
                robust_step::NotAdded::Closed => "the sum was already taken".into(),
            })
        })
    }

    /// Adds a record at the center, which is counted and does not move the sum.
    #[pyo3(signature = (weight=1048576))]
    fn add_center(&self, weight: u32) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).add_center(weight);
    }

    /// The number of records, or the sum of their weights, in units of 2^-bits.
    fn size(&self, bits: u32) -> PyResult<Exact> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).size(bits).map(Exact).map_err(bad_parameter)
    }

    /// Takes the sum out of the accumulator. Nothing can be added afterwards.
    fn sum(&self) -> PyResult<Exact> {
        let sum = self.0.lock().unwrap_or_else(PoisonError::into_inner).sum();
        sum.map(Exact).ok_or_else(|| PyValueError::new_err("the sum was already taken"))
    }
}
