//! The curvature of the sum of distances at a point, smoothed at a radius.
//!
//! A record farther away than the radius contributes (1 - 1/d) radius/distance, and a nearer record contributes 1. The
//! sum divided by the radius is the second derivative of the sum of distances, averaged over all directions, where the
//! distances of records within the radius are smoothed. [`super::second_moments`] contains the part of the Hessian that
//! depends on the direction.
//!
//! **Neighbors and sensitivity**: 1 under both relations. *Proof.* If the distance exceeds the radius, the computed
//! quotient radius/distance is at most 1, because division rounds correctly. The factor 1 - 1/d lies in [0, 1]. So the
//! contribution of a record lies in [0, 1], also after rounding to a multiple of 2^-20, and two contributions differ by
//! at most 1. ∎

use super::prelude::*;
use crate::numeric::block::AnyBlock;
use crate::numeric::dispatch::{self, Kernel};
use crate::numeric::distance::distances;
use crate::runtime::parallel_fold::{records_per_block, sum_any_records};

/// Contributions are multiples of 2^-20.
pub const CONTRIBUTION_BITS: u32 = 20;

/// The sum of (1 - 1/d) radius/distance over the records beyond the radius, plus the number of records within the
/// radius, in units of 2^-bits.
#[derive(Debug, Clone, PartialEq)]
pub struct Curvature {
    theta: Vec<f64>,
    radius: f64,
    bits: u32,
}

impl Curvature {
    /// The radius must be positive and finite, and bits must be at least [`CONTRIBUTION_BITS`].
    pub fn new(theta: &[f64], radius: f64, bits: u32) -> Result<Self, BadParameter> {
        let (radius, bits) = (checked_radius(radius)?, checked_bits(bits, COUNT_BITS_MAX)?);
        if bits < CONTRIBUTION_BITS {
            return Err(BadParameter(format!(
                "curvature needs a lattice of 2^-{CONTRIBUTION_BITS} or finer, got {bits}"
            )));
        }
        Ok(Self { theta: theta.iter().copied().map(finite).collect(), radius, bits })
    }

    /// The sensitivity in any dimension.
    pub fn bound(bits: u32) -> Sensitivity {
        Sensitivity::of_sum(1.0, 1.0).scaled(bits)
    }
}

/// The sum of a block's contributions, in units of 2^-20.
struct BlockCurvature<'a> {
    block: AnyBlock<'a>,
    theta: &'a [f64],
    radius: f64,
}

impl Kernel for BlockCurvature<'_> {
    type Output = i64;

    #[inline(always)]
    fn run(self) -> i64 {
        let (d, radius) = (self.theta.len(), self.radius);
        distances(self.block, self.theta).into_iter().map(|distance| contribution(distance, radius, d)).sum()
    }
}

/// The contribution of a record at this distance, in units of 2^-20.
#[inline(always)]
pub(super) fn contribution(distance: f64, radius: f64, d: usize) -> i64 {
    // In zero dimensions the factor 1 - 1/d would be negative infinity.
    let factor = (1.0 - 1.0 / d as f64).max(0.0);
    const ONE: f64 = (1u64 << CONTRIBUTION_BITS) as f64;
    // Adding 2^52 to a small number rounds the number to an integer. The low bits of the sum are this integer.
    const ROUNDER: f64 = (1u64 << 52) as f64;
    let beyond = ONE * (factor * (radius / distance));
    let value = if distance <= radius { ONE } else { beyond };
    ((value + ROUNDER).to_bits() - ROUNDER.to_bits()).cast_signed()
}

impl Statistic for Curvature {
    fn dimension(&self) -> Option<usize> {
        Some(self.theta.len())
    }

    fn sensitivity(&self) -> Sensitivity {
        Self::bound(self.bits)
    }

    fn parameters(&self) -> Parameters {
        Parameters::of([("radius", self.radius.into()), ("theta", self.theta.as_slice().into()), ("bits", self.bits.into())])
    }

    fn exact(&self, points: &Points, pulse: &mut dyn Pulse) -> Result<Exact, Interrupted> {
        let (d, theta, radius) = (points.d(), self.theta.as_slice(), self.radius);
        assert_eq!(theta.len(), d, "theta has another dimension than the points");
        let sum = sum_any_records(points, d, records_per_block(d), 1, pulse, |total, block| {
            total[0] += dispatch::vectorised(BlockCurvature { block, theta, radius });
        })?;
        Ok(Exact::vector(vec![sum[0] << (self.bits - CONTRIBUTION_BITS)], self.sensitivity()))
    }
}

impl Kind for Curvature {
    const NAME: &'static str = "curvature";

    fn read(given: &mut Arguments) -> Result<Self, BadParameter> {
        Self::new(&given.floats("theta")?, given.float("radius")?, given.small("bits")?)
    }

    fn bound_of(given: &mut Arguments) -> Result<Bound, BadParameter> {
        Ok(Bound::vector(Self::bound(given.bits(COUNT_BITS_MAX)?), 1))
    }

    #[cfg(test)]
    fn examples(theta: &[f64], scale: f64, _n: usize) -> Vec<Result<Self, BadParameter>> {
        use super::tests::radius;
        vec![Self::new(theta, radius(scale), 24)]
    }
}

#[cfg(test)]
mod tests {
    use nalgebra::DMatrix;
    use proptest::prelude::*;

    use super::*;
    use crate::numeric::block::Block;
    use crate::statistics::tests::values;

    fn curvature(points: &DMatrix<f64>, theta: &[f64], radius: f64) -> i64 {
        values(&Curvature::new(theta, radius, CONTRIBUTION_BITS).unwrap(), points)[0]
    }

    #[test]
    fn within_the_radius_a_record_counts_and_beyond_it_falls_with_the_distance() {
        for d in [1, 2, 3, 200] {
            let factor = 1.0 - 1.0 / d as f64;
            for radius in [1e-300, 0.7, 1e150] {
                for ratio in [0.0, 1e-3, 0.999, 1.0, 1.001, 1.5, 7.0, 1e3, 1e8, 1e140] {
                    let mut points = DMatrix::zeros(d, 1);
                    points[(d - 1, 0)] = ratio * radius;
                    let expected = if ratio <= 1.0 { 1.0 } else { factor / ratio };
                    let found = curvature(&points, &vec![0.0; d], radius) as f64;
                    assert!((found - expected * 2f64.powi(20)).abs() <= 0.5 + 1e-9, "{d} {radius} {ratio}: {found}");
                }
            }
        }
        assert_eq!(curvature(&DMatrix::zeros(0, 3), &[], 1.0), 3 << 20, "no dimension at all");
    }

    proptest! {
        #[test]
        fn any_contribution_lies_between_nothing_and_one(
            distance in prop_oneof![0.0..4.0f64, (-1074i32..1021).prop_map(f64::from).prop_map(f64::exp2), Just(0.0)],
            radius in prop_oneof![1e-3..4.0f64, Just(5e-324), Just(f64::MAX), Just(1.0)],
            d in 1usize..300,
        ) {
            let found = contribution(distance, radius, d);
            prop_assert!((0..=1 << 20).contains(&found));
            prop_assert!(distance > radius || found == 1 << 20);
        }
    }

    #[test]
    fn the_same_sum_on_every_instruction_set_and_for_any_split() {
        let points = DMatrix::from_fn(11, 5000, |i, j| ((i * 31 + j * 17) % 101) as f64 * 0.37);
        let theta = [3.3; 11];
        let whole = curvature(&points, &theta, 40.0);
        let block = |from, count| Block::new(&points.as_slice()[11 * from..11 * (from + count)], 11, count);
        let kernel = |from, count| BlockCurvature { block: block(from, count).into(), theta: &theta, radius: 40.0 };
        assert_eq!(dispatch::portable(kernel(0, 5000)), whole);
        assert_eq!((0..5000).map(|record| dispatch::vectorised(kernel(record, 1))).sum::<i64>(), whole);
    }
}
