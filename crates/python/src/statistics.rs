//! The queries. Each has a function for its sensitivity, because calibration needs the sensitivity before the query is
//! created.

use std::sync::{Mutex, PoisonError};

use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::array::{Part, pieces, view};
use super::call::{bad_parameter, without_gil};
use super::sensitivity::Sensitivity;
use super::tape::{Exact, Stream};
use dpmedian_core::release::exact::Form;
use dpmedian_core::statistics::{
    self, ball_counts, ball_size, cluster_gradients, curvature, directions, distance_counts, gradient, grid_cells,
    hessian, mean_shift, objective_differences, pair_counts, ranks, robust_step, shells, size,
};

/// A query about the records, with public parameters only.
#[pyclass(frozen, subclass, module = "dpmedian._core")]
pub(super) struct Statistic(Box<dyn statistics::Statistic>);

impl Statistic {
    /// The query itself.
    pub(super) fn question(&self) -> &dyn statistics::Statistic {
        self.0.as_ref()
    }
}

#[pymethods]
impl Statistic {
    /// The name, as plans and audit records show it.
    #[getter]
    fn name(&self) -> &'static str {
        self.0.name()
    }

    /// How far the answer moves between neighbors.
    #[getter]
    fn sensitivity(&self) -> Sensitivity {
        Sensitivity(self.0.sensitivity())
    }

    /// Whether the answers of shards add up to the answer of all records.
    #[getter]
    fn adds_over_records(&self) -> bool {
        self.0.adds_over_records()
    }

    /// The dimension that the points must have, if the query has one.
    #[getter]
    fn dimension(&self) -> Option<usize> {
        self.0.dimension()
    }
}

/// Creates the query of a class, or raises an error if the parameters are invalid.
fn question<S: statistics::Statistic + 'static>(
    made: Result<S, statistics::BadParameter>,
) -> PyResult<PyClassInitializer<Statistic>> {
    made.map(|question| Statistic(Box::new(question)).into()).map_err(bad_parameter)
}

/// The sum over records of (theta - x)/||theta - x||, in units of 2^-bits.
#[pyclass(frozen, extends = Statistic, module = "dpmedian._core")]
pub(super) struct Gradient;

#[pymethods]
impl Gradient {
    #[new]
    fn new(theta: PyReadonlyArray1<'_, f64>, bits: u32) -> PyResult<PyClassInitializer<Self>> {
        Ok(question(gradient::Gradient::new(theta.as_slice()?, bits))?.add_subclass(Self))
    }

    /// The sensitivity, for calibration.
    #[staticmethod]
    #[pyo3(signature = (d, bits, weighted=false))]
    fn bound(d: usize, bits: u32, weighted: bool) -> Sensitivity {
        Sensitivity::of(gradient::Gradient::bound(d, bits), Form::Vector, d, weighted)
    }
}

/// The sum over the records within a radius of theta of (theta - x)/radius, in units of 2^-bits.
#[pyclass(frozen, extends = Statistic, module = "dpmedian._core")]
pub(super) struct MeanShift;

#[pymethods]
impl MeanShift {
    #[new]
    fn new(theta: PyReadonlyArray1<'_, f64>, radius: f64, bits: u32) -> PyResult<PyClassInitializer<Self>> {
        Ok(question(mean_shift::MeanShift::new(theta.as_slice()?, radius, bits))?.add_subclass(Self))
    }

    /// The sensitivity, for calibration.
    #[staticmethod]
    #[pyo3(signature = (d, bits, weighted=false))]
    fn bound(d: usize, bits: u32, weighted: bool) -> Sensitivity {
        Sensitivity::of(mean_shift::MeanShift::bound(d, bits), Form::Vector, d, weighted)
    }
}

/// The number of records within a radius of theta, in units of 2^-bits.
#[pyclass(frozen, extends = Statistic, module = "dpmedian._core")]
pub(super) struct BallSize;

#[pymethods]
impl BallSize {
    #[new]
    fn new(theta: PyReadonlyArray1<'_, f64>, radius: f64, bits: u32) -> PyResult<PyClassInitializer<Self>> {
        Ok(question(ball_size::BallSize::new(theta.as_slice()?, radius, bits))?.add_subclass(Self))
    }

    /// The sensitivity, for calibration.
    #[staticmethod]
    #[pyo3(signature = (bits, weighted=false))]
    fn bound(bits: u32, weighted: bool) -> Sensitivity {
        Sensitivity::of(ball_size::BallSize::bound(bits), Form::Vector, 1, weighted)
    }
}

/// The sum over records of (x - center)/max(|x - center|, threshold), in units of 2^-bits. Without a center,
/// differences are taken from the origin.
#[pyclass(frozen, extends = Statistic, module = "dpmedian._core")]
pub(super) struct RobustStep(robust_step::RobustStep);

#[pymethods]
impl RobustStep {
    #[new]
    fn new(d: usize, center: Option<Part<'_>>, threshold: f64, bits: u32) -> PyResult<PyClassInitializer<Self>> {
        let center = match center {
            None => robust_step::Center::Origin(d),
            Some(Part::Doubles(center)) => robust_step::Center::Doubles(center.as_slice()?.into()),
            Some(Part::Singles(center)) => robust_step::Center::Singles(center.as_slice()?.into()),
        };
        let made = robust_step::RobustStep::new(center, threshold, bits).map_err(bad_parameter)?;
        if statistics::Statistic::dimension(&made) != Some(d) {
            return Err(PyValueError::new_err(format!("the center must have {d} coordinates")));
        }
        Ok(PyClassInitializer::from(Statistic(Box::new(made.clone()))).add_subclass(Self(made)))
    }

    /// The sensitivity, for calibration.
    #[staticmethod]
    #[pyo3(signature = (d, bits, weighted=false))]
    fn bound(d: usize, bits: u32, weighted: bool) -> Sensitivity {
        Sensitivity::of(robust_step::RobustStep::bound(d, bits), Form::Vector, d, weighted)
    }
}

/// Sums the robust step of records that arrive one by one, and counts the records. The records are not stored. Python
/// code cannot read exact values from this object.
#[pyclass(frozen, module = "dpmedian._core")]
pub(super) struct Accumulator(Mutex<robust_step::Accumulator>);

#[pymethods]
impl Accumulator {
    #[new]
    #[pyo3(signature = (step, weighted=false))]
    fn new(step: &Bound<'_, RobustStep>, weighted: bool) -> Self {
        Self(Mutex::new(robust_step::Accumulator::new(step.get().0.clone(), weighted)))
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

/// In every coordinate the number of records at or below the threshold, in units of 2^-bits. Centered ranks are reduced
/// by half of the number of records.
#[pyclass(frozen, extends = Statistic, module = "dpmedian._core")]
pub(super) struct Ranks;

#[pymethods]
impl Ranks {
    #[new]
    #[pyo3(signature = (thresholds, bits=0, centered=false))]
    fn new(thresholds: PyReadonlyArray1<'_, f64>, bits: u32, centered: bool) -> PyResult<PyClassInitializer<Self>> {
        Ok(question(ranks::Ranks::new(thresholds.as_slice()?, bits, centered))?.add_subclass(Self))
    }

    /// The sensitivity, for calibration.
    #[staticmethod]
    #[pyo3(signature = (d, bits=0, centered=false, weighted=false))]
    fn bound(d: usize, bits: u32, centered: bool, weighted: bool) -> Sensitivity {
        Sensitivity::of(ranks::Ranks::bound(d, bits, centered), Form::Vector, d, weighted)
    }
}

/// A table: for each k, the number of records within 2^(k/4) of theta, minus the target's share of all records, in
/// units of 2^-bits.
#[pyclass(frozen, extends = Statistic, module = "dpmedian._core")]
pub(super) struct DistanceCounts;

#[pymethods]
impl DistanceCounts {
    #[new]
    #[pyo3(signature = (theta, bits=0, target=(0, 0)))]
    fn new(theta: PyReadonlyArray1<'_, f64>, bits: u32, target: (u64, u32)) -> PyResult<PyClassInitializer<Self>> {
        Ok(question(distance_counts::DistanceCounts::new(theta.as_slice()?, bits, target))?.add_subclass(Self))
    }

    /// The sensitivity, for calibration.
    #[staticmethod]
    #[pyo3(signature = (bits=0, target=(0, 0), weighted=false))]
    fn bound(bits: u32, target: (u64, u32), weighted: bool) -> PyResult<Sensitivity> {
        let bound = distance_counts::DistanceCounts::bound(bits, target).map_err(bad_parameter)?;
        Ok(Sensitivity::of(bound, Form::Table, 1, weighted))
    }
}

/// The sum over records of (1 - 1/d) radius/distance beyond the radius and of 1 within the radius, in units of 2^-bits.
#[pyclass(frozen, extends = Statistic, module = "dpmedian._core")]
pub(super) struct Curvature;

#[pymethods]
impl Curvature {
    #[new]
    fn new(theta: PyReadonlyArray1<'_, f64>, radius: f64, bits: u32) -> PyResult<PyClassInitializer<Self>> {
        Ok(question(curvature::Curvature::new(theta.as_slice()?, radius, bits))?.add_subclass(Self))
    }

    /// The sensitivity, for calibration.
    #[staticmethod]
    #[pyo3(signature = (bits, weighted=false))]
    fn bound(bits: u32, weighted: bool) -> Sensitivity {
        Sensitivity::of(curvature::Curvature::bound(bits), Form::Vector, 1, weighted)
    }
}

/// A vector in units of 2^-bits. First the curvature times its weight. Then the sum of radius/distance u u^T over the
/// records beyond the radius, where u is the unit vector from the record to theta. The upper triangle of this matrix is
/// listed in the order of numpy's `triu_indices`, and entries off the diagonal are multiplied by sqrt(2), so that the
/// vector has the Frobenius norm of the matrix.
#[pyclass(frozen, extends = Statistic, module = "dpmedian._core")]
pub(super) struct Hessian;

#[pymethods]
impl Hessian {
    #[new]
    fn new(
        theta: PyReadonlyArray1<'_, f64>,
        radius: f64,
        weight: f64,
        bits: u32,
    ) -> PyResult<PyClassInitializer<Self>> {
        Ok(question(hessian::Hessian::new(theta.as_slice()?, radius, weight, bits))?.add_subclass(Self))
    }

    /// The sensitivity, for calibration.
    #[staticmethod]
    #[pyo3(signature = (d, weight, bits, weighted=false))]
    fn bound(d: usize, weight: f64, bits: u32, weighted: bool) -> PyResult<Sensitivity> {
        let bound = hessian::Hessian::bound(d, weight, bits).map_err(bad_parameter)?;
        Ok(Sensitivity::of(bound, Form::Vector, 1 + d * (d + 1) / 2, weighted))
    }
}

/// A vector in units of 2^-bits. First the gradient. Then the weight times the sum of u u^T over all records, where u
/// is the unit vector from the record to theta. The matrix is listed as in `Hessian`.
#[pyclass(frozen, extends = Statistic, module = "dpmedian._core")]
pub(super) struct GradientAndDirections;

#[pymethods]
impl GradientAndDirections {
    #[new]
    fn new(theta: PyReadonlyArray1<'_, f64>, weight: f64, bits: u32) -> PyResult<PyClassInitializer<Self>> {
        Ok(question(directions::GradientAndDirections::new(theta.as_slice()?, weight, bits))?.add_subclass(Self))
    }

    /// The sensitivity, for calibration.
    #[staticmethod]
    #[pyo3(signature = (d, weight, bits, weighted=false))]
    fn bound(d: usize, weight: f64, bits: u32, weighted: bool) -> PyResult<Sensitivity> {
        let bound = directions::GradientAndDirections::bound(d, weight, bits).map_err(bad_parameter)?;
        Ok(Sensitivity::of(bound, Form::Vector, d + d * (d + 1) / 2, weighted))
    }
}

/// A vector in units of 2^-bits. First the number of records in each shell around theta; a shell is half an octave of
/// the distance in units of the scale. Then the weight times the sum of u u^T over all records, where u is the unit
/// vector from the record to theta. The matrix is listed as in `Hessian`, and left out if the weight is 0.
#[pyclass(frozen, extends = Statistic, module = "dpmedian._core")]
pub(super) struct ShellsAndDirections;

#[pymethods]
impl ShellsAndDirections {
    #[new]
    fn new(theta: PyReadonlyArray1<'_, f64>, scale: f64, weight: f64, bits: u32) -> PyResult<PyClassInitializer<Self>> {
        Ok(question(shells::ShellsAndDirections::new(theta.as_slice()?, scale, weight, bits))?.add_subclass(Self))
    }

    /// The sensitivity, for calibration.
    #[staticmethod]
    #[pyo3(signature = (d, weight, bits, weighted=false))]
    fn bound(d: usize, weight: f64, bits: u32, weighted: bool) -> PyResult<Sensitivity> {
        let bound = shells::ShellsAndDirections::bound(d, weight, bits).map_err(bad_parameter)?;
        Ok(Sensitivity::of(bound, Form::Vector, shells::ShellsAndDirections::values(d, weight), weighted))
    }
}

/// The number of records in each listed cell of a grid in a few axes around theta, in units of 2^-bits.
#[pyclass(frozen, extends = Statistic, module = "dpmedian._core")]
pub(super) struct GridCells;

#[pymethods]
impl GridCells {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "the caller names them")]
    fn new(
        theta: PyReadonlyArray1<'_, f64>,
        axes: PyReadonlyArray2<'_, f64>,
        scale: f64,
        reach: f64,
        side: f64,
        level: u32,
        codes: PyReadonlyArray1<'_, u64>,
        bits: u32,
    ) -> PyResult<PyClassInitializer<Self>> {
        let (theta, axes) = (theta.as_slice()?.to_vec(), axes.as_slice()?.to_vec());
        let grid = grid_cells::Grid { theta, axes, scale, reach, side, level };
        Ok(question(grid_cells::GridCells::new(grid, codes.as_slice()?.to_vec(), bits))?.add_subclass(Self))
    }

    /// The sensitivity for this many cells, for calibration.
    #[staticmethod]
    #[pyo3(signature = (cells, bits, weighted=false))]
    fn bound(cells: usize, bits: u32, weighted: bool) -> PyResult<Sensitivity> {
        let bound = grid_cells::GridCells::bound(bits).map_err(bad_parameter)?;
        Ok(Sensitivity::of(bound, Form::Vector, cells, weighted))
    }
}

/// A vector about the records nearest to each center, in units of 2^-bits. First the number of these records for each
/// center, times the first weight. Then their numbers in shells of the distance, times the second weight. Then the sums
/// of (center - x)/max(distance, radius of the center). Records beyond the reach are not counted.
#[pyclass(frozen, extends = Statistic, module = "dpmedian._core")]
pub(super) struct ClusterGradients;

#[pymethods]
impl ClusterGradients {
    #[new]
    fn new(
        centers: PyReadonlyArray2<'_, f64>,
        radii: PyReadonlyArray1<'_, f64>,
        scale: f64,
        reach: f64,
        weights: (f64, f64),
        bits: u32,
    ) -> PyResult<PyClassInitializer<Self>> {
        let d = view(&centers)?.nrows();
        let weights = cluster_gradients::Weights { counts: weights.0, shells: weights.1 };
        let (centers, radii) = (centers.as_slice()?, radii.as_slice()?);
        let made = cluster_gradients::ClusterGradients::new(d, centers, radii, scale, reach, weights, bits);
        Ok(question(made)?.add_subclass(Self))
    }

    /// The sensitivity with k centers, for calibration.
    #[staticmethod]
    #[pyo3(signature = (k, d, weights, bits, weighted=false))]
    fn bound(k: usize, d: usize, weights: (f64, f64), bits: u32, weighted: bool) -> PyResult<Sensitivity> {
        let weights = cluster_gradients::Weights { counts: weights.0, shells: weights.1 };
        let bound = cluster_gradients::ClusterGradients::bound(k, d, weights, bits).map_err(bad_parameter)?;
        Ok(Sensitivity::of(bound, Form::Vector, cluster_gradients::ClusterGradients::values(k, d), weighted))
    }
}

/// A table: for each of the ascending radii, the number of pairs within the radius, summed over hidden random pairings,
/// minus the target's share of all pairs.
#[pyclass(frozen, extends = Statistic, module = "dpmedian._core")]
pub(super) struct PairCounts;

#[pymethods]
impl PairCounts {
    #[new]
    #[pyo3(signature = (radii, pairings, stream, bits=0, target=(0, 0)))]
    fn new(
        radii: Vec<f64>,
        pairings: usize,
        stream: &Bound<'_, Stream>,
        bits: u32,
        target: (u64, u32),
    ) -> PyResult<PyClassInitializer<Self>> {
        let stream = stream.get().take()?;
        Ok(question(pair_counts::PairCounts::new(radii, pairings, stream, bits, target))?.add_subclass(Self))
    }

    /// The sensitivity, for calibration. It does not depend on weights, because weighted records are kept or dropped as
    /// a whole.
    #[staticmethod]
    #[pyo3(signature = (pairings, bits=0))]
    fn bound(pairings: usize, bits: u32) -> Sensitivity {
        Sensitivity(pair_counts::PairCounts::bound(pairings, bits))
    }
}

/// The number of records, or the sum of their weights, in units of 2^-bits. The number of records is public if
/// neighbors replace a record.
#[pyclass(frozen, extends = Statistic, module = "dpmedian._core")]
pub(super) struct Size;

#[pymethods]
impl Size {
    #[new]
    #[pyo3(signature = (bits=0))]
    fn new(bits: u32) -> PyResult<PyClassInitializer<Self>> {
        Ok(question(size::Size::new(bits))?.add_subclass(Self))
    }

    /// The sensitivity, for calibration.
    #[staticmethod]
    #[pyo3(signature = (bits=0, weighted=false))]
    fn bound(bits: u32, weighted: bool) -> Sensitivity {
        Sensitivity::of(size::Size::bound(bits), Form::Vector, 1, weighted)
    }
}

/// A table: for each of the ascending radii, the sum of the m largest ball counts. A ball count is the number of
/// records within the radius of one record.
#[pyclass(frozen, extends = Statistic, module = "dpmedian._core")]
pub(super) struct LargestBallCounts;

#[pymethods]
impl LargestBallCounts {
    #[new]
    fn new(radii: Vec<f64>, m: usize, n: usize) -> PyResult<PyClassInitializer<Self>> {
        Ok(question(ball_counts::LargestBallCounts::new(radii, m, n))?.add_subclass(Self))
    }

    /// The sensitivity, for calibration.
    #[staticmethod]
    fn bound(m: usize, n: usize) -> Sensitivity {
        Sensitivity(ball_counts::LargestBallCounts::bound(m, n))
    }
}

/// Scores: for each candidate, the sum of distances at the candidate minus the sum of distances at the first candidate,
/// in units of 2^exponent.
#[pyclass(frozen, extends = Statistic, module = "dpmedian._core")]
pub(super) struct ObjectiveDifferences {
    /// The unit is 2^exponent.
    #[pyo3(get)]
    exponent: i32,
}

#[pymethods]
impl ObjectiveDifferences {
    #[new]
    fn new(candidates: PyReadonlyArray2<'_, f64>) -> PyResult<PyClassInitializer<Self>> {
        let made = objective_differences::ObjectiveDifferences::new(view(&candidates)?).map_err(bad_parameter)?;
        let exponent = made.exponent();
        Ok(PyClassInitializer::from(Statistic(Box::new(made))).add_subclass(Self { exponent }))
    }

    /// The sensitivity, for calibration.
    #[staticmethod]
    fn bound(candidates: PyReadonlyArray2<'_, f64>) -> PyResult<Sensitivity> {
        let bound = objective_differences::ObjectiveDifferences::bound(view(&candidates)?);
        bound.map(Sensitivity).map_err(bad_parameter)
    }
}
