//! The curvature of the sum of distances at a point, smoothed at a radius.
//!
//! A record at a distance beyond r = 2^(k/4) contributes (1 - 1/d) r/distance, and one within r contributes 1. Divided by r
//! the sum is the mean over all directions of the second derivative of the sum of distances, where records within r count
//! as if their distances were smoothed at r. The distance is known by its quarter octave, of which the middle is taken.
//!
//! **Neighbours and sensitivity**: 1 under both relations. *Proof.* A record's contribution is a function of its bucket
//! with values in [0, 1], rounded to a multiple of 2^-20 in [0, 1]; two contributions differ by at most 1. ∎

use super::distance_counts::{FIRST_QUARTER_OCTAVE, bucket_counts};
use super::{BadParameter, COUNT_BITS_MAX, Statistic, checked_bits};
use crate::numeric::float_scale::{finite, scale};
use crate::release::exact::Exact;
use crate::release::sensitivity::Sensitivity;
use crate::runtime::points::Points;
use crate::runtime::pulse::{Interrupted, Pulse};

/// Contributions are multiples of 2^-20.
pub const CONTRIBUTION_BITS: u32 = 20;

/// 2^(-1/8), 2^(-3/8), 2^(-5/8), 2^(-7/8): a table, because functions of libraries differ in the last bit.
const ODD_EIGHTH_ROOTS: [f64; 4] =
    [0.917_004_043_204_671_2, 0.771_105_412_703_970_4, 0.648_419_777_325_504_8, 0.545_253_866_332_628_8];

/// The sum over records of min(1, (1 - 1/d) r/distance), or 1 within r of theta, in units of 2^-bits.
#[derive(Debug, Clone, PartialEq)]
pub struct Curvature {
    theta: Vec<f64>,
    quarter_octave: i32,
    bits: u32,
}

impl Curvature {
    /// The radius is 2^(quarter_octave/4); bits are at least [`CONTRIBUTION_BITS`].
    pub fn new(theta: &[f64], quarter_octave: i32, bits: u32) -> Result<Self, BadParameter> {
        let bits = checked_bits(bits, COUNT_BITS_MAX)?;
        if bits < CONTRIBUTION_BITS {
            return Err(BadParameter(format!(
                "curvature needs a lattice of 2^-{CONTRIBUTION_BITS} or finer, got {bits}"
            )));
        }
        Ok(Self { theta: theta.iter().copied().map(finite).collect(), quarter_octave, bits })
    }

    /// The sensitivity in any dimension.
    pub fn bound(bits: u32) -> Sensitivity {
        Sensitivity::of_sum(1.0, 1.0).scaled(bits)
    }
}

/// What a record contributes from a bucket that lies `beyond` quarter octaves outside the radius, in units of 2^-20.
fn contribution(beyond: i64, d: usize) -> i64 {
    if beyond <= 0 {
        return 1 << CONTRIBUTION_BITS;
    }
    // Half a quarter octave back is the middle of the bucket: an odd number of eighths.
    let eighths = 2 * beyond - 1;
    let power = -(eighths / 8).min(1000) as i32;
    let middle = scale(ODD_EIGHTH_ROOTS[(eighths % 8 / 2) as usize], power);
    // In no dimension at all there are no directions, and the factor would be negative.
    let factor = (1.0 - 1.0 / d as f64).max(0.0);
    scale(factor * middle, CONTRIBUTION_BITS as i32).round_ties_even() as i64
}

impl Statistic for Curvature {
    fn name(&self) -> &'static str {
        "curvature"
    }

    fn dimension(&self) -> Option<usize> {
        Some(self.theta.len())
    }

    fn adds_over_records(&self) -> bool {
        true
    }

    fn sensitivity(&self) -> Sensitivity {
        Self::bound(self.bits)
    }

    fn answer(&self, points: &Points, pulse: &mut dyn Pulse) -> Result<Exact, Interrupted> {
        let counts = bucket_counts(points.view(), &self.theta, pulse)?;
        let first = i64::from(FIRST_QUARTER_OCTAVE) - i64::from(self.quarter_octave);
        let term = |(bucket, count): (i64, i128)| count * i128::from(contribution(first + bucket, self.theta.len()));
        let sum: i128 = (0..).zip(counts).map(term).sum();
        Ok(Exact::vector(vec![sum << (self.bits - CONTRIBUTION_BITS)], self.sensitivity()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contributions_fall_with_the_distance() {
        for d in [1, 2, 3, 200] {
            let factor = 1.0 - 1.0 / d as f64;
            assert_eq!((contribution(0, d), contribution(i64::MIN / 4, d)), (1 << 20, 1 << 20));
            for beyond in 1..100 {
                let expected = factor * (-(beyond as f64 - 0.5) / 4.0).exp2() * 2f64.powi(20);
                assert!((contribution(beyond, d) as f64 - expected).abs() <= 0.5 + 1e-9, "{beyond} {d}");
            }
            assert_eq!(contribution(1 << 33, d), 0);
        }
        assert_eq!(contribution(1, 0), 0);
    }
}
