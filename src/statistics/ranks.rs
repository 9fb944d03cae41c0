//! Ranks: in every coordinate, the number of records at or below a threshold.
//!
//! **Neighbours and sensitivity** (L2): sqrt(d) under both relations. *Proof.* A record adds 0 or 1 to every coordinate's
//! count, so its contribution has a norm of at most sqrt(d), and so has the difference of two contributions. ∎

use super::{BadParameter, COUNT_BITS_MAX, Statistic, checked_bits, on_lattice};
use crate::numeric::float_scale::finite;
use crate::release::exact::Exact;
use crate::release::sensitivity::Sensitivity;
use crate::runtime::points::Points;
use crate::runtime::pulse::{Interrupted, Pulse};

/// For every coordinate, the number of records x with x_j <= threshold_j, in units of 2^-bits.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranks {
    thresholds: Vec<f64>,
    bits: u32,
}

impl Ranks {
    /// One threshold for every coordinate.
    pub fn new(thresholds: &[f64], bits: u32) -> Result<Self, BadParameter> {
        let bits = checked_bits(bits, COUNT_BITS_MAX)?;
        Ok(Self { thresholds: thresholds.iter().copied().map(finite).collect(), bits })
    }

    /// The sensitivity in `d` dimensions.
    pub fn bound(d: usize, bits: u32) -> Sensitivity {
        let root = (d as f64).sqrt().next_up();
        Sensitivity::of_sum(root, root).scaled(bits)
    }
}

impl Statistic for Ranks {
    fn name(&self) -> &'static str {
        "ranks"
    }

    fn dimension(&self) -> Option<usize> {
        Some(self.thresholds.len())
    }

    fn adds_over_records(&self) -> bool {
        true
    }

    fn sensitivity(&self) -> Sensitivity {
        Self::bound(self.thresholds.len(), self.bits)
    }

    fn answer(&self, points: &Points, pulse: &mut dyn Pulse) -> Result<Exact, Interrupted> {
        let ranks = points.ranks(&self.thresholds, pulse)?;
        Ok(Exact::vector(on_lattice(ranks.into_iter().map(i128::from).collect(), self.bits), self.sensitivity()))
    }
}
