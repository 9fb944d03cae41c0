//! The statistics that can be queried: exact integers, with the proof of their sensitivity beside the kernel.
//!
//! A statistic is a query with public parameters. Its file has the kernel, the contribution of a record, and the proof
//! of how far the answer moves under either neighbor relation, including rounding. Parameters that are points are
//! mapped by the same public function when the query is created, [`crate::numeric::float_scale::finite`], so that every
//! kernel sees finite doubles only and every answer is bounded, for any computation of a mechanism.

pub mod ball_counts;
pub mod ball_size;
pub mod cluster_gradients;
pub mod curvature;
pub mod directions;
pub mod distance_counts;
pub mod gradient;
pub mod grid_cells;
pub mod hessian;
pub mod mean_shift;
pub mod objective_differences;
pub mod pair_counts;
pub mod ranks;
pub mod robust_step;
pub mod second_moments;
pub mod shells;
pub mod size;
pub mod target;
pub mod wire;

use std::fmt;

use crate::release::error::Error;
use crate::release::exact::{Exact, Query};
use crate::release::sample;
use crate::release::sensitivity::Sensitivity;
use crate::release::streams::Stream;
use crate::runtime::identity::Identity;
use crate::runtime::points::Points;
use crate::runtime::pulse::{Interrupted, Pulse};
use crate::runtime::weighting::WEIGHT_BITS;
use wire::Parameters;

/// Counts become multiples of 2^bits for bits up to this number, with which 2^64 counts still fit 128 bits.
pub const COUNT_BITS_MAX: u32 = 62;

/// A query about the records.
pub trait Statistic: Send + Sync {
    /// The name, for plans and records.
    fn name(&self) -> &'static str;

    /// The dimension that the points must have, if the query has one.
    fn dimension(&self) -> Option<usize>;

    /// Whether the answers of shards add up to the answer of all records.
    fn adds_over_records(&self) -> bool;

    /// How far the answer moves between neighbors.
    fn sensitivity(&self) -> Sensitivity;

    /// The identity of the query: a query that is created again has another identity, and a copy has the same.
    fn identity(&self) -> Identity;

    /// Its public parameters: for the trace of a run, and for records in another process. Hidden randomness does not
    /// belong to them.
    fn parameters(&self) -> Parameters;

    /// Hidden randomness for coins that keep or drop weighted records, if the query is not a sum over records; the
    /// query is then about the records that are kept. `None` if there is no proof for this; such an answer about
    /// weighted records has no bound.
    fn coins(&self) -> Option<&Stream> {
        None
    }

    /// The exact answer for any number of records, without the information that makes it part of a sum. Statistics
    /// implement this function; callers use `answer`. A sum over weighted records is in units of 2^-20 of the lattice.
    ///
    /// # Panics
    ///
    /// If the points have another dimension than the query.
    fn exact(&self, points: &Points, pulse: &mut dyn Pulse) -> Result<Exact, Interrupted>;

    /// The exact answer for any number of records. It knows its query and its records, so that only shards of one
    /// answer can be summed. If a record could not be read there is no answer. If records have weights it is the
    /// weighted sum, with the sensitivity of that sum.
    ///
    /// # Panics
    ///
    /// If the points have another dimension than the query.
    fn answer(&self, points: &Points, pulse: &mut dyn Pulse) -> Result<Exact, Error> {
        let exact = match (points.weighting(), self.coins()) {
            _ if self.adds_over_records() => {
                let (sum, admissions) = (self.exact(points, pulse)?, points.admissions());
                match points.weighting() {
                    None => sum.into_shard(self.identity(), admissions),
                    Some(_) => sum.into_weighted_shard(WEIGHT_BITS, self.identity(), admissions),
                }
            }
            (None, _) => self.exact(points, pulse)?,
            (Some(_), Some(coins)) => self.exact(&sample::kept(points, coins), pulse)?.thinned(),
            (Some(_), None) => self.exact(&points.unweighted(&[]), pulse)?.unbounded(),
        };
        let exact = exact.about(Query::of(self.name(), self.parameters()));
        points.check().map_err(Error::Unreadable)?;
        Ok(exact)
    }
}

/// An error: public parameters that make no query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadParameter(pub String);

impl fmt::Display for BadParameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadParameter {}

/// Checks that a lattice of multiples of 2^-bits is no finer than the finest.
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

/// Counts in units of 2^-bits.
fn on_lattice(counts: Vec<i128>, bits: u32) -> Vec<i128> {
    counts.into_iter().map(|count| count << bits).collect()
}

#[cfg(test)]
pub(crate) mod tests;
