//! The wire format of a query, for records in another process. A query that is read from this format has the identity
//! of the original query.

use super::ball_size::BallSize;
use super::cluster_gradients::{ClusterGradients, Weights};
use super::curvature::Curvature;
use super::directions::GradientAndDirections;
use super::distance_counts::DistanceCounts;
use super::gradient::Gradient;
use super::grid_cells::{Grid, GridCells};
use super::hessian::Hessian;
use super::mean_shift::MeanShift;
use super::objective_differences::ObjectiveDifferences;
use super::ranks::Ranks;
use super::robust_step::{Center, RobustStep};
use super::shells::ShellsAndDirections;
use super::size::Size;
use super::{BadParameter, Statistic};
use crate::release::exact::Exact;
use crate::release::sensitivity::Sensitivity;
use crate::runtime::identity::Identity;
use crate::runtime::points::Points;
use crate::runtime::pulse::{Interrupted, Pulse};
use nalgebra::DMatrixView;

/// The public parameters of a query. The name of the query gives its kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters {
    /// Points and radii.
    pub floats: Vec<f64>,
    /// The bits of the lattice (not for scores), then shares and dimensions.
    pub numbers: Vec<u64>,
}

/// A query that was read from the wire format, with the identity of the original query.
struct Again(Box<dyn Statistic>, Identity);

impl Statistic for Again {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn dimension(&self) -> Option<usize> {
        self.0.dimension()
    }

    fn adds_over_records(&self) -> bool {
        self.0.adds_over_records()
    }

    fn sensitivity(&self) -> Sensitivity {
        self.0.sensitivity()
    }

    fn identity(&self) -> Identity {
        self.1
    }

    fn parameters(&self) -> Parameters {
        self.0.parameters()
    }

    fn exact(&self, points: &Points, pulse: &mut dyn Pulse) -> Result<Exact, Interrupted> {
        self.0.exact(points, pulse)
    }
}

/// The query with this name, these parameters and this identity.
pub fn read(name: &str, parameters: &Parameters, identity: Identity) -> Result<Box<dyn Statistic>, BadParameter> {
    let Parameters { floats, numbers } = parameters;
    let number = |place: usize| numbers.get(place).copied().unwrap_or(u64::MAX);
    let bits = u32::try_from(number(0)).unwrap_or(u32::MAX);
    let around = || floats.split_first().ok_or_else(|| BadParameter("a radius or a weight is missing".into()));
    let question: Box<dyn Statistic> = match name {
        "gradient" => Box::new(Gradient::new(floats, bits)?),
        "mean shift" => Box::new(MeanShift::new(around()?.1, *around()?.0, bits)?),
        "robust step" => {
            let (threshold, center) = around()?;
            Box::new(RobustStep::new(Center::Doubles(center.into()), *threshold, bits)?)
        }
        "curvature" => Box::new(Curvature::new(around()?.1, *around()?.0, bits)?),
        "hessian" => match floats.as_slice() {
            [radius, weight, theta @ ..] => Box::new(Hessian::new(theta, *radius, *weight, bits)?),
            _ => return Err(BadParameter("a radius and a weight are missing".into())),
        },
        "gradient and directions" => Box::new(GradientAndDirections::new(around()?.1, *around()?.0, bits)?),
        "shells and directions" => match floats.as_slice() {
            [scale, weight, theta @ ..] => Box::new(ShellsAndDirections::new(theta, *scale, *weight, bits)?),
            _ => return Err(BadParameter("a scale and a weight are missing".into())),
        },
        "grid cells" => Box::new(grid_cells(floats, numbers)?),
        "cluster gradients" => Box::new(cluster_gradients(floats, numbers)?),
        "ranks" => Box::new(Ranks::new(floats, bits, number(1) == 1)?),
        "distance counts" => Box::new(DistanceCounts::new(floats, bits, (number(1), bits))?),
        "ball size" => Box::new(BallSize::new(around()?.1, *around()?.0, bits)?),
        "size" => Box::new(Size::new(bits)?),
        "objective differences" => {
            let d = usize::try_from(number(0)).unwrap_or(usize::MAX).max(1);
            if !floats.len().is_multiple_of(d) {
                return Err(BadParameter(format!(
                    "{} numbers do not describe candidates in {d} dimensions",
                    floats.len()
                )));
            }
            Box::new(ObjectiveDifferences::new(DMatrixView::from_slice(floats, d, floats.len() / d))?)
        }
        _ => return Err(BadParameter(format!("there is no query {name:?} that another process can answer"))),
    };
    Ok(Box::new(Again(question, identity)))
}

/// The cells of a grid, from the parameters of their statistic.
fn grid_cells(floats: &[f64], numbers: &[u64]) -> Result<GridCells, BadParameter> {
    let missing = || BadParameter("parameters of a grid are missing".into());
    let ([scale, reach, side, points @ ..], [bits, d, level, codes @ ..]) = (floats, numbers) else {
        return Err(missing());
    };
    let (theta, axes) = points.split_at_checked(small(*d) as usize).ok_or_else(missing)?;
    let (theta, axes) = (theta.to_vec(), axes.to_vec());
    let grid = Grid { theta, axes, scale: *scale, reach: *reach, side: *side, level: small(*level) };
    GridCells::new(grid, codes.to_vec(), small(*bits))
}

/// The gradients of clusters, from the parameters of their statistic.
fn cluster_gradients(floats: &[f64], numbers: &[u64]) -> Result<ClusterGradients, BadParameter> {
    let missing = || BadParameter("parameters of clusters are missing".into());
    let ([scale, reach, counts, shells, points @ ..], [bits, d, k]) = (floats, numbers) else {
        return Err(missing());
    };
    let (radii, centers) = points.split_at_checked(small(*k) as usize).ok_or_else(missing)?;
    let weights = Weights { counts: *counts, shells: *shells };
    ClusterGradients::new(small(*d) as usize, centers, radii, *scale, *reach, weights, small(*bits))
}

/// Converts a number to 32 bits. Larger numbers become `u32::MAX`, which every check of lattices and dimensions
/// refuses.
fn small(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
