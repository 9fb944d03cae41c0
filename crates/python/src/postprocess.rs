//! Post-processing of released values.

use nalgebra::DVectorView;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::call::{Vector, without_gil};
use dpmedian_core::postprocess::projection::{self, Ball};
use dpmedian_core::postprocess::{posterior, volumetric_center};

/// The center and the radius of a ball.
pub(super) type BallArguments = (Vec<f64>, f64);

pub(super) fn as_ball((center, radius): BallArguments) -> Ball {
    Ball::new(center, radius)
}

/// A feasible set: one ball, or the intersection of two balls of the same dimension.
pub(super) fn as_feasible(balls: Vec<BallArguments>) -> PyResult<projection::Feasible> {
    let mut balls = balls.into_iter().map(as_ball);
    match (balls.next(), balls.next(), balls.next()) {
        (Some(first), Some(second), None) if first.dimension() == second.dimension() => {
            Ok(projection::Feasible::Lens(first, second))
        }
        (Some(only), None, None) => Ok(projection::Feasible::Ball(only)),
        _ => Err(PyValueError::new_err("a feasible set is one ball, or two balls of the same dimension")),
    }
}

/// The feasible set of an iterate: a ball, or the intersection of two balls.
#[pyclass(frozen, module = "dpmedian._core")]
pub(super) struct Feasible(projection::Feasible);

#[pymethods]
impl Feasible {
    #[new]
    fn new(balls: Vec<BallArguments>) -> PyResult<Self> {
        as_feasible(balls).map(Self)
    }

    /// The nearest point of the set, finite for any point.
    fn project<'py>(&self, py: Python<'py>, point: PyReadonlyArray1<'_, f64>) -> PyResult<Vector<'py>> {
        let mut point = point.as_slice()?.to_vec();
        if point.len() != self.0.dimension() {
            return Err(PyValueError::new_err("a point must have the dimension of the feasible set"));
        }
        self.0.project(&mut point);
        Ok(PyArray1::from_vec(py, point))
    }
}

/// A ball cut by half-spaces, and its volumetric center.
#[pyclass(module = "dpmedian._core")]
pub(super) struct VolumetricCenter {
    inner: volumetric_center::VolumetricCenter,
}

#[pymethods]
impl VolumetricCenter {
    #[classattr]
    const TAU: f64 = volumetric_center::TAU;

    #[new]
    fn new(origin: PyReadonlyArray1<'_, f64>, radius: f64) -> PyResult<Self> {
        let origin = origin.as_slice()?;
        if origin.is_empty() || origin.iter().any(|x| !x.is_finite()) || !(radius > 0.0 && radius.is_finite()) {
            return Err(PyValueError::new_err(format!(
                "a volumetric center needs a finite origin and a positive radius, got {radius}"
            )));
        }
        let origin = DVectorView::from_slice(origin, origin.len());
        Ok(Self { inner: volumetric_center::VolumetricCenter::new(origin, radius) })
    }

    /// The center of the remaining set.
    #[getter]
    fn center<'py>(&self, py: Python<'py>) -> Vector<'py> {
        PyArray1::from_slice(py, self.inner.center().as_slice())
    }

    /// The number of half-spaces that are kept.
    #[getter]
    fn cuts(&self) -> usize {
        self.inner.cuts()
    }

    /// Keeps the half of the set that lies opposite to a direction. If the set has collapsed, it is not changed, and
    /// the result is false.
    fn cut(&mut self, py: Python<'_>, direction: PyReadonlyArray1<'_, f64>) -> PyResult<bool> {
        let direction = direction.as_slice()?;
        if direction.len() != self.inner.center().len() {
            return Err(PyValueError::new_err("a direction must have the dimension of the volumetric center"));
        }
        Ok(without_gil(py, || self.inner.cut(DVectorView::from_slice(direction, direction.len()))).is_ok())
    }
}

/// The posterior of a search for an index of a grid.
#[pyclass(module = "dpmedian._core")]
pub(super) struct GridPosterior {
    inner: posterior::Grid,
}

#[pymethods]
impl GridPosterior {
    #[new]
    fn new(size: usize, likely: f64, width: f64) -> PyResult<Self> {
        if size == 0 || !(width > 0.0 && likely.is_finite()) {
            return Err(PyValueError::new_err(format!(
                "a grid needs at least one index and a prior of positive width, got {size} indices and the width {width} around {likely}"
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

    fn doubt(&self, around: usize) -> f64 {
        self.inner.doubt(around)
    }
}

/// The posterior of a search for the median of every coordinate.
#[pyclass(module = "dpmedian._core")]
pub(super) struct CoordinatePosterior {
    inner: posterior::Coordinates,
}

#[pymethods]
impl CoordinatePosterior {
    #[new]
    #[pyo3(signature = (dimension, octaves, limit, resolution, likely = None))]
    fn new(
        dimension: usize,
        octaves: (i32, i32),
        limit: f64,
        resolution: f64,
        likely: Option<(f64, f64)>,
    ) -> PyResult<Self> {
        let (first, last) = octaves;
        if first > last || !(limit > 0.0 && limit.is_finite()) {
            return Err(PyValueError::new_err(format!(
                "a posterior needs ascending octaves and a positive limit, got {first} to {last} and {limit}"
            )));
        }
        let likely = match likely {
            None => posterior::Likely::First,
            Some((_, width)) if width.is_nan() || width <= 0.0 => {
                return Err(PyValueError::new_err(format!("the width of a prior must be positive, got {width}")));
            }
            Some((middle, width)) => posterior::Likely::Around(middle, width),
        };
        Ok(Self { inner: posterior::Coordinates::new(dimension, octaves, limit, resolution, likely) })
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

    fn median<'py>(&self, py: Python<'py>) -> Vector<'py> {
        PyArray1::from_vec(py, self.inner.median())
    }

    fn quantile<'py>(&self, py: Python<'py>, share: f64) -> Vector<'py> {
        PyArray1::from_vec(py, self.inner.quantile(share))
    }
}
