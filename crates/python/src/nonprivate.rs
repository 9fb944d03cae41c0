//! Answers without privacy. The array of records is read in place.

use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::array::Reading;
use super::call::{
    Integers, LatticeArguments, Vector, admitted, as_lattice, bad_parameter, check_dimension, detached, without_gil,
};
use super::points::check_lattice_dimension;
use super::sensitivity::as_neighbours;
use dpmedian_core::mechanism::inverse_sensitivity;
use dpmedian_core::nonprivate::{median, objective};
use dpmedian_core::numeric::float_scale::finite;
use dpmedian_core::runtime::points::Points;
use dpmedian_core::statistics::ball_counts::{self, RECORDS_MAX};
use dpmedian_core::statistics::checked_radii;
use dpmedian_core::statistics::gradient::Gradient;

/// Validates an array in one pass.
fn plain<'a>(py: Python<'_>, array: &'a Reading<'_>) -> PyResult<Points<'a>> {
    let table = array.table()?;
    admitted(py, table, None, None)
}

/// Checks that a point has the dimension of the array, and makes its coordinates finite.
fn point(what: &str, theta: PyReadonlyArray1<'_, f64>, d: usize) -> PyResult<Vec<f64>> {
    let theta: Vec<f64> = theta.as_slice()?.iter().copied().map(finite).collect();
    check_dimension(what, theta.len(), d)?;
    Ok(theta)
}

/// The geometric median of one or more records, optionally with positive weights.
#[pyfunction]
#[pyo3(signature = (array, weights=None, pulse=None))]
pub(super) fn nonprivate_median<'py>(
    py: Python<'py>,
    array: Reading<'_>,
    weights: Option<PyReadonlyArray1<'_, f64>>,
    pulse: Option<Py<PyAny>>,
) -> PyResult<Vector<'py>> {
    let points = plain(py, &array)?;
    if points.n() == 0 {
        return Err(PyValueError::new_err("the median needs at least one record"));
    }
    let weights = weights.as_ref().map(|weights| weights.as_slice()).transpose()?;
    let usable = |weights: &[f64]| weights.len() == points.n() && weights.iter().all(|w| (1e-30..=1e30).contains(w));
    if !weights.is_none_or(usable) {
        return Err(PyValueError::new_err("every record must have a weight between 1e-30 and 1e30"));
    }
    let median = detached(py, pulse, |pulse| match weights {
        None => median::geometric_median(&points, pulse),
        Some(weights) => median::weighted_median(&points, weights, pulse),
    })?;
    Ok(PyArray1::from_vec(py, median))
}

/// The sum of distances from theta.
#[pyfunction]
pub(super) fn nonprivate_objective(
    py: Python<'_>,
    array: Reading<'_>,
    theta: PyReadonlyArray1<'_, f64>,
) -> PyResult<f64> {
    let points = plain(py, &array)?;
    let theta = point("theta", theta, points.d())?;
    detached(py, None, |pulse| objective::objective(&points, &theta, pulse))
}

/// The exact gradient of the sum of distances, in units of 2^-bits.
#[pyfunction]
pub(super) fn nonprivate_gradient<'py>(
    py: Python<'py>,
    array: Reading<'_>,
    theta: PyReadonlyArray1<'_, f64>,
    bits: u32,
) -> PyResult<Integers<'py>> {
    let points = plain(py, &array)?;
    let theta = point("theta", theta, points.d())?;
    let gradient = Gradient::new(&theta, bits).map_err(bad_parameter)?;
    let sum = detached(py, None, |pulse| objective::gradient(&points, &gradient, pulse))?;
    let narrow = |x: i128| x.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
    Ok(PyArray1::from_iter(py, sum.into_iter().map(narrow)))
}

/// Checks the radii, and that there are not too many records.
fn balls(radii: Vec<f64>, n: usize) -> PyResult<Vec<f64>> {
    if n > RECORDS_MAX {
        return Err(PyValueError::new_err(format!("the balls of at most {RECORDS_MAX} records can be counted")));
    }
    checked_radii(radii).map_err(bad_parameter)
}

/// For each record and each of the ascending radii, the number of records within the radius, including the record
/// itself. The array has the shape (n, number of radii).
///
/// The counts are the same with and without a tree. Benchmarks use the comparison of all pairs.
#[pyfunction]
#[pyo3(signature = (array, radii, *, pairwise=false))]
pub(super) fn nonprivate_ball_counts<'py>(
    py: Python<'py>,
    array: Reading<'_>,
    radii: Vec<f64>,
    pairwise: bool,
) -> PyResult<Bound<'py, PyArray2<i64>>> {
    let points = plain(py, &array)?;
    let radii = balls(radii, points.n())?;
    let kernel = if pairwise { ball_counts::pairwise_counts } else { ball_counts::counts };
    let counts = detached(py, None, |pulse| kernel(points.dense().view(), &radii, pulse))?;
    PyArray1::from_iter(py, counts.iter().map(|&count| i64::from(count))).reshape([counts.ncols(), counts.nrows()])
}

/// The sum of the m largest ball counts, for each of the ascending radii.
#[pyfunction]
pub(super) fn nonprivate_top_count_sums<'py>(
    py: Python<'py>,
    array: Reading<'_>,
    radii: Vec<f64>,
    m: usize,
) -> PyResult<Integers<'py>> {
    let points = plain(py, &array)?;
    let radii = balls(radii, points.n())?;
    let sums = detached(py, None, |pulse| {
        ball_counts::counts(points.dense().view(), &radii, pulse).map(|counts| ball_counts::top_sums(&counts, m))
    })?;
    Ok(PyArray1::from_iter(py, sums.into_iter().map(|sum| sum as i64)))
}

/// The radius of the smallest ball around a center with at least `count` records.
#[pyfunction]
pub(super) fn nonprivate_quantile_radius(
    py: Python<'_>,
    array: Reading<'_>,
    center: PyReadonlyArray1<'_, f64>,
    count: usize,
) -> PyResult<f64> {
    let points = plain(py, &array)?;
    let (d, n) = (points.d(), points.n());
    let center = point("the center", center, d)?;
    if !(1..=n).contains(&count) {
        return Err(PyValueError::new_err(format!("count must lie between 1 and {n}, got {count}")));
    }
    detached(py, None, |pulse| objective::quantile_radius(&points, &center, count, pulse))
}

/// The exact scores at lattice points, in units of 2^-31. The points have the shape (k, d), and `neighbours` is the
/// name of a relation.
#[pyfunction]
#[pyo3(signature = (array, places, center, lattice, neighbours="replace"))]
pub(super) fn nonprivate_lattice_scores<'py>(
    py: Python<'py>,
    array: Reading<'_>,
    places: PyReadonlyArray2<'_, i64>,
    center: Vec<f64>,
    lattice: LatticeArguments,
    neighbours: &str,
) -> PyResult<Bound<'py, PyArray1<u64>>> {
    let neighbours = as_neighbours(neighbours)?;
    let points = plain(py, &array)?;
    let (lattice, d) = (as_lattice(lattice)?, points.d());
    check_lattice_dimension(d)?;
    check_dimension("the center", center.len(), d)?;
    check_dimension("a place", places.shape()[1], d)?;
    let places = places.as_slice()?;
    let dense = points.dense();
    let scores =
        without_gil(py, || inverse_sensitivity::scores(dense.view(), None, &center, &lattice, places, neighbours));
    Ok(PyArray1::from_vec(py, scores))
}
