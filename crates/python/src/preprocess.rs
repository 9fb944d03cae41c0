//! From a caller's rows to records: ids and labels, units, groups, positions on the globe.

use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::array::view;
use super::call::{Integers, check_dimension, detached, without_gil};
use dpmedian_core::preprocess::groups::contributions;
use dpmedian_core::preprocess::labels::{self, Labels, NONE};
use dpmedian_core::preprocess::reduce::{self, Reducer};
use dpmedian_core::preprocess::sphere::unit_vectors;

/// Integers, or the concatenated bytes of all texts and the position at which each text ends.
#[derive(FromPyObject)]
pub(super) enum LabelArguments<'py> {
    #[pyo3(transparent)]
    Integers(PyReadonlyArray1<'py, i64>),
    #[pyo3(transparent)]
    Text((PyReadonlyArray1<'py, u8>, PyReadonlyArray1<'py, i64>)),
}

impl LabelArguments<'_> {
    fn get(&self) -> PyResult<Labels<'_>> {
        match self {
            Self::Integers(labels) => Ok(Labels::Integers(labels.as_slice()?)),
            Self::Text((bytes, ends)) => Labels::text(bytes.as_slice()?, ends.as_slice()?)
                .ok_or_else(|| PyValueError::new_err("the ends of the texts are not in order")),
        }
    }
}

/// The marks of missing labels, one for each label.
fn marks<'a>(missing: &'a Option<PyReadonlyArray1<'_, bool>>, n: usize) -> PyResult<Option<&'a [bool]>> {
    let marks = missing.as_ref().map(|marks| marks.as_slice()).transpose()?;
    if marks.is_some_and(|marks| marks.len() != n) {
        return Err(PyValueError::new_err(format!("there must be {n} marks, one for each label")));
    }
    Ok(marks)
}

/// Codes of rows, which must be below their count or equal to -1.
fn checked<'a>(codes: &'a PyReadonlyArray1<'_, i64>, count: usize, n: usize) -> PyResult<&'a [i64]> {
    let codes = codes.as_slice()?;
    if codes.len() != n || !codes.iter().all(|&code| (NONE..count as i64).contains(&code)) {
        return Err(PyValueError::new_err(format!("there must be {n} codes, from -1 to below {count}")));
    }
    Ok(codes)
}

/// For each label its rank among the different labels in ascending order (-1 for a missing label), and the number of
/// different labels.
#[pyfunction]
#[pyo3(signature = (labels, missing=None))]
pub(super) fn label_ranks<'py>(
    py: Python<'py>,
    labels: LabelArguments<'_>,
    missing: Option<PyReadonlyArray1<'_, bool>>,
) -> PyResult<(Integers<'py>, usize)> {
    let labels = labels.get()?;
    let marks = marks(&missing, labels.len())?;
    let (codes, count) = without_gil(py, || labels::ranks(&labels, marks));
    Ok((PyArray1::from_vec(py, codes), count))
}

/// For each label its position among the keys, or -1 if it is not a key. The keys must differ.
#[pyfunction]
#[pyo3(signature = (labels, keys, missing=None))]
pub(super) fn label_places<'py>(
    py: Python<'py>,
    labels: LabelArguments<'_>,
    keys: LabelArguments<'_>,
    missing: Option<PyReadonlyArray1<'_, bool>>,
) -> PyResult<Integers<'py>> {
    let (labels, keys) = (labels.get()?, keys.get()?);
    let marks = marks(&missing, labels.len())?;
    let places = without_gil(py, || labels::places(&labels, marks, &keys)).ok_or_else(|| {
        PyValueError::new_err("the keys must be different, and must have the same type as the labels")
    })?;
    Ok(PyArray1::from_vec(py, places))
}

/// One record for each of `units` codes: the "median", the "mean" or the "first" of the finite rows with this code. The
/// record is NaN if there is no such row.
#[pyfunction]
#[pyo3(signature = (array, codes, units, reducer, pulse=None))]
pub(super) fn reduce_units<'py>(
    py: Python<'py>,
    array: PyReadonlyArray2<'_, f64>,
    codes: PyReadonlyArray1<'_, i64>,
    units: usize,
    reducer: &str,
    pulse: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let table = view(&array)?;
    let codes = checked(&codes, units, table.ncols())?;
    let reducer = match reducer {
        "median" => Reducer::Median,
        "mean" => Reducer::Mean,
        "first" => Reducer::First,
        other => return Err(PyValueError::new_err(format!("there is no reducer {other:?}"))),
    };
    let records = detached(py, pulse, |pulse| reduce::reduce(table, codes, units, reducer, pulse))?;
    let shape = [records.ncols(), records.nrows()];
    PyArray1::from_vec(py, records.data.into()).reshape(shape)
}

/// For each row the contribution to which the row belongs, or -1. Also the position at which the contributions of each
/// group begin.
#[pyfunction]
pub(super) fn group_contributions<'py>(
    py: Python<'py>,
    units: PyReadonlyArray1<'_, i64>,
    unit_count: usize,
    groups: PyReadonlyArray1<'_, i64>,
    group_count: usize,
    most: usize,
) -> PyResult<(Integers<'py>, Integers<'py>)> {
    let n = units.len();
    let (units, groups) = (checked(&units, unit_count, n)?, checked(&groups, group_count, n)?);
    let found = without_gil(py, || contributions(units, unit_count, groups, group_count, most));
    Ok((PyArray1::from_vec(py, found.codes), PyArray1::from_vec(py, found.starts)))
}

/// Longitudes and latitudes in degrees, converted to unit vectors. A vector is NaN if there is no such position.
#[pyfunction]
pub(super) fn sphere_vectors<'py>(
    py: Python<'py>,
    positions: PyReadonlyArray2<'_, f64>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let positions = view(&positions)?;
    check_dimension("a position", 2, positions.nrows())?;
    let vectors = without_gil(py, || unit_vectors(positions));
    let shape = [vectors.ncols(), vectors.nrows()];
    PyArray1::from_vec(py, vectors.data.into()).reshape(shape)
}
