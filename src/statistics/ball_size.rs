//! The number of records within a radius of a point, or the sum of their weights.
//!
//! **Neighbors and sensitivity**: 1 if a record is added, removed or replaced. *Proof.* A record contributes 1 or 0,
//! depending on its own distance only. So a contribution is at most 1, and two contributions differ by at most 1. With
//! weights, a record contributes either 0 or its weight, which lies between 0 and 1. ∎

use super::prelude::*;
use crate::numeric::block::AnyBlock;
use crate::numeric::dispatch::{self, Kernel};
use crate::numeric::distance::distances;
use crate::runtime::parallel_fold::{records_per_block, sum_any_records};

struct Inside<'a> {
    block: AnyBlock<'a>,
    theta: &'a [f64],
    radius: f64,
}

impl Kernel for Inside<'_> {
    type Output = i64;

    #[inline(always)]
    fn run(self) -> i64 {
        distances(self.block, self.theta).into_iter().map(|distance| i64::from(distance <= self.radius)).sum()
    }
}

/// The number of records within a radius of theta, in units of 2^-bits.
#[derive(Debug, Clone, PartialEq)]
pub struct BallSize {
    theta: Vec<f64>,
    radius: f64,
    bits: u32,
}

impl BallSize {
    /// The radius must be positive and finite. A record whose distance equals the radius is inside.
    pub fn new(theta: &[f64], radius: f64, bits: u32) -> Result<Self, BadParameter> {
        let (radius, bits) = (checked_radius(radius)?, checked_bits(bits, COUNT_BITS_MAX)?);
        Ok(Self { theta: theta.iter().copied().map(finite).collect(), radius, bits })
    }

    /// The sensitivity.
    pub fn bound(bits: u32) -> Sensitivity {
        Sensitivity::of_sum(1.0, 1.0).scaled(bits)
    }
}

impl Statistic for BallSize {
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
        let count = sum_any_records(points, d, records_per_block(d), 1, pulse, |total, block| {
            total[0] += dispatch::vectorised(Inside { block, theta, radius });
        })?;
        Ok(Exact::vector(on_lattice(count, self.bits), self.sensitivity()))
    }
}

impl Kind for BallSize {
    const NAME: &'static str = "ball size";

    fn read(given: &mut Arguments) -> Result<Self, BadParameter> {
        Self::new(&given.floats("theta")?, given.float("radius")?, given.small("bits")?)
    }

    fn bound_of(given: &mut Arguments) -> Result<Bound, BadParameter> {
        Ok(Bound::vector(Self::bound(given.bits(COUNT_BITS_MAX)?), 1))
    }

    #[cfg(test)]
    fn examples(theta: &[f64], scale: f64, _n: usize) -> Vec<Result<Self, BadParameter>> {
        use super::tests::radius;
        vec![Self::new(theta, radius(scale), 21)]
    }
}

#[cfg(test)]
mod tests {
    use nalgebra::DMatrix;

    use super::*;
    use crate::statistics::tests::values;

    #[test]
    fn records_at_the_radius_are_inside() {
        let points = DMatrix::from_column_slice(2, 4, &[0.0, 0.0, 3.0, 4.0, 0.0, 5.1, 1e300, -1e300]);
        let inside = |radius| values(&BallSize::new(&[0.0, 0.0], radius, 3).unwrap(), &points);
        assert_eq!([inside(5.0), inside(4.9), inside(f64::MAX)], [[2 << 3], [1 << 3], [4 << 3]]);
        assert!([0.0, -1.0, f64::NAN, f64::INFINITY].iter().all(|bad| BallSize::new(&[0.0], *bad, 3).is_err()));
    }
}
