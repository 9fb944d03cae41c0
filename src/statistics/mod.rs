//! The statistics that can be queried. Their answers are exact integers, and the file of each statistic proves the
//! sensitivity.
//!
//! A statistic is a query with public parameters. Its file contains the kernel and the contribution of a record. It
//! also proves by how much the answer can change under either neighbor relation, including rounding. When a query is
//! created, [`crate::numeric::float_scale::finite`] maps the coordinates of its points to finite doubles. So a kernel
//! never sees NaN or infinity, and the bounds hold for any point that a mechanism computes.

pub mod parameters;
pub mod second_moments;
pub mod target;

use std::any::Any;
use std::fmt;
use std::ops::Deref;

use crate::release::error::Error;
use crate::release::exact::{Exact, Form, Query};
use crate::release::sample;
use crate::release::sensitivity::Sensitivity;
use crate::release::streams::Stream;
use crate::runtime::identity::Identity;
use crate::runtime::points::Points;
use crate::runtime::pulse::{Interrupted, Pulse};
use crate::runtime::weighting::WEIGHT_BITS;
use parameters::{Arguments, Parameters, Value};

/// The names that the files of the statistics use.
mod prelude {
    pub(super) use super::parameters::{Arguments, Parameters, Value};
    pub(super) use super::{
        BadParameter, Bound, COUNT_BITS_MAX, Kind, Statistic, checked_bits, checked_radii, checked_radius,
        checked_weight, on_lattice,
    };
    pub(super) use crate::numeric::float_scale::finite;
    pub(super) use crate::release::exact::Exact;
    pub(super) use crate::release::sensitivity::Sensitivity;
    pub(super) use crate::runtime::points::Points;
    pub(super) use crate::runtime::pulse::{Interrupted, Pulse};
}

/// The finest lattice of counts. A count is multiplied by 2^bits, and with 62 bits counts up to 2^64 fit 128-bit
/// integers.
pub const COUNT_BITS_MAX: u32 = 62;

/// A query about the records.
pub trait Statistic: Any + Send + Sync {
    /// The dimension that the points must have, or `None` if any dimension is possible.
    fn dimension(&self) -> Option<usize>;

    /// Whether the answers of shards add up to the answer of all records.
    fn adds_over_records(&self) -> bool {
        true
    }

    /// The largest change of the answer between neighboring data sets.
    fn sensitivity(&self) -> Sensitivity;

    /// The public parameters. The trace of a run stores them, and another process that holds records rebuilds the query
    /// from them. They do not contain hidden randomness.
    fn parameters(&self) -> Parameters;

    /// The answer is in units of 2^exponent.
    fn exponent(&self) -> i32 {
        match self.parameters().iter().find(|(name, _)| *name == "bits") {
            Some((_, Value::Number(bits))) => -(*bits as i32),
            _ => 0,
        }
    }

    /// The hidden randomness that decides which weighted records are kept. A query that is not a sum over records is
    /// answered for the kept records only. `None` means that there is no proof for weighted records, so the answer has
    /// no bound.
    fn coins(&self) -> Option<&Stream> {
        None
    }

    /// The exact answer for any number of records. Statistics implement this function, but callers use
    /// [`Issued::answer`], which also stores the information for adding answers of shards. A sum over weighted records
    /// is in units of 2^-20 of the lattice.
    ///
    /// # Panics
    ///
    /// If the points have another dimension than the query.
    fn exact(&self, points: &Points, pulse: &mut dyn Pulse) -> Result<Exact, Interrupted>;
}

/// A query that can be answered: a statistic with its name and its identity. A query that is created again has another
/// identity. In another process, the query has the same identity.
pub struct Issued {
    name: &'static str,
    statistic: Box<dyn Statistic>,
    identity: Identity,
}

impl Issued {
    /// A new query.
    pub fn new<K: Kind>(statistic: K) -> Self {
        Self { name: K::NAME, statistic: Box::new(statistic), identity: Identity::fresh() }
    }

    /// The same query, with the identity that it has in another process.
    pub fn identified(self, identity: Identity) -> Self {
        Self { identity, ..self }
    }

    /// The name, as plans and audit records show it.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The identity.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// The exact answer for any number of records. The answer stores its query and its set of records, so that only
    /// answers to the same query about different records can be added. If records have weights, the answer is the
    /// weighted sum, with the sensitivity of the weighted sum. If a record could not be read, the result is an error.
    ///
    /// # Panics
    ///
    /// If the points have another dimension than the query.
    pub fn answer(&self, points: &Points, pulse: &mut dyn Pulse) -> Result<Exact, Error> {
        let exact = match (points.weighting(), self.coins()) {
            _ if self.adds_over_records() => {
                let (sum, admissions) = (self.exact(points, pulse)?, points.admissions());
                match points.weighting() {
                    None => sum.into_shard(self.identity, admissions),
                    Some(_) => sum.into_weighted_shard(WEIGHT_BITS, self.identity, admissions),
                }
            }
            (None, _) => self.exact(points, pulse)?,
            (Some(_), Some(coins)) => self.exact(&sample::kept(points, coins), pulse)?.thinned(),
            (Some(_), None) => self.exact(&points.unweighted(&[]), pulse)?.unbounded(),
        };
        let exact = exact.about(Query::of(self.name, self.parameters()));
        points.check().map_err(Error::Unreadable)?;
        Ok(exact)
    }
}

impl Deref for Issued {
    type Target = dyn Statistic;

    fn deref(&self) -> &Self::Target {
        self.statistic.as_ref()
    }
}

/// The functions that make a statistic available by its name. The file of each statistic implements them, and
/// [`statistics!`] lists the files.
pub trait Kind: Statistic + Sized {
    /// The name, as plans and audit records show it.
    const NAME: &'static str;

    /// Whether the statistic is a sum over records that is released with noise. If so, the contribution of a record is
    /// multiplied by its weight.
    const SUM: bool = true;

    /// Creates the query from the parameters of [`Statistic::parameters`].
    fn read(given: &mut Arguments) -> Result<Self, BadParameter>;

    /// The sensitivity of every query with these parameters. Calibration needs the sensitivity before the query is
    /// created.
    fn bound_of(given: &mut Arguments) -> Result<Bound, BadParameter>;

    /// Example queries at a point, for the tests of all statistics. n is the public number of records, and `scale` can
    /// be any number.
    #[cfg(test)]
    fn examples(theta: &[f64], scale: f64, n: usize) -> Vec<Result<Self, BadParameter>>;
}

/// The sensitivity of an answer, and the number of its values that are released at once.
#[derive(Debug, Clone, Copy)]
pub struct Bound {
    /// The sensitivity without weights.
    pub sensitivity: Sensitivity,
    /// The number of values that are released at once.
    pub values: usize,
    form: Form,
}

impl Bound {
    fn vector(sensitivity: Sensitivity, values: usize) -> Self {
        Self { sensitivity, values, form: Form::Vector }
    }

    fn table(sensitivity: Sensitivity) -> Self {
        Self { sensitivity, values: 1, form: Form::Table }
    }

    fn scores(sensitivity: Sensitivity) -> Self {
        Self { sensitivity, values: 1, form: Form::Scores }
    }
}

/// Declares the modules of the statistics, and the functions that find a statistic by its name.
macro_rules! statistics {
    ($($module:ident :: $kind:ident,)*) => {
        $(pub mod $module;)*

        /// The names of all statistics. For each name, the flag is its [`Kind::SUM`].
        pub const KINDS: &[(&str, bool)] = &[$(($module::$kind::NAME, $module::$kind::SUM),)*];

        /// The query with this name and these parameters.
        pub fn read(name: &str, mut given: Arguments) -> Result<Issued, BadParameter> {
            let made = match name {
                $($module::$kind::NAME => Issued::new($module::$kind::read(&mut given)?),)*
                _ => return Err(unknown(name)),
            };
            given.taken(made)
        }

        /// The bound of the statistic with this name. The parameter `weighted` states whether records have weights.
        pub fn bound(name: &str, mut given: Arguments) -> Result<Bound, BadParameter> {
            let weighted = given.flag("weighted")?;
            let (bound, sum) = match name {
                $($module::$kind::NAME => ($module::$kind::bound_of(&mut given)?, $module::$kind::SUM),)*
                _ => return Err(unknown(name)),
            };
            if weighted && !sum {
                return Err(BadParameter(format!("{name} is not a sum over records, so there is no bound for weighted records")));
            }
            let rounding = bound.form.rounding(bound.values);
            let sensitivity = if weighted { bound.sensitivity.weighted(rounding) } else { bound.sensitivity };
            given.taken(Bound { sensitivity, ..bound })
        }

        /// The examples of all statistics.
        #[cfg(test)]
        fn examples(theta: &[f64], scale: f64, n: usize) -> Vec<Issued> {
            let mut all = Vec::new();
            $(all.extend($module::$kind::examples(theta, scale, n).into_iter().map(|made| Issued::new(made.unwrap())));)*
            all
        }
    };
}

statistics! {
    gradient::Gradient,
    mean_shift::MeanShift,
    ball_size::BallSize,
    robust_step::RobustStep,
    ranks::Ranks,
    distance_counts::DistanceCounts,
    curvature::Curvature,
    hessian::Hessian,
    directions::GradientAndDirections,
    objective_differences::ObjectiveDifferences,
    shells::ShellsAndDirections,
    grid_cells::GridCells,
    cluster_gradients::ClusterGradients,
    size::Size,
    pair_counts::PairCounts,
    ball_counts::LargestBallCounts,
}

fn unknown(name: &str) -> BadParameter {
    BadParameter(format!("there is no statistic {name:?}"))
}

/// The error that the public parameters are invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadParameter(pub String);

impl fmt::Display for BadParameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadParameter {}

/// Checks that a lattice of multiples of 2^-bits is not finer than the finest lattice.
fn checked_bits(bits: u32, finest: u32) -> Result<u32, BadParameter> {
    if bits <= finest {
        return Ok(bits);
    }
    Err(BadParameter(format!("a lattice of 2^-{bits} is finer than 2^-{finest}")))
}

/// Checks that a radius is positive and finite.
fn checked_radius(radius: f64) -> Result<f64, BadParameter> {
    if radius > 0.0 && radius.is_finite() {
        return Ok(radius);
    }
    Err(BadParameter(format!("the radius must be positive and finite, got {radius}")))
}

/// Checks that a weight of a part of an answer is positive and at most the largest for which there is a proof.
fn checked_weight(weight: f64, largest: f64) -> Result<f64, BadParameter> {
    if weight > 0.0 && weight <= largest {
        return Ok(weight);
    }
    Err(BadParameter(format!("the weight must be positive and at most {largest}, got {weight}")))
}

/// Checks that radii are finite, not negative and ascending.
pub fn checked_radii(radii: Vec<f64>) -> Result<Vec<f64>, BadParameter> {
    if radii.is_sorted() && radii.iter().all(|radius| radius.is_finite() && *radius >= 0.0) {
        return Ok(radii);
    }
    Err(BadParameter("radii must be finite, not negative and ascending".into()))
}

/// Converts counts to units of 2^-bits.
fn on_lattice(counts: Vec<i128>, bits: u32) -> Vec<i128> {
    counts.into_iter().map(|count| count << bits).collect()
}

#[cfg(test)]
pub(crate) mod tests;
