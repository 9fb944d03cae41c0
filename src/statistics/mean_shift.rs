//! The mean shift: the sum of (theta - x)/radius over the records within a radius of theta, on an integer lattice.
//!
//! The sum is computed like [`super::gradient`]: a record contributes a vector of norm at most 1, rounded to multiples
//! of 2^-bits.
//!
//! **Neighbors and sensitivity** (L2, lattice units): the same as for [`super::gradient`]. *Proof.* A record
//! contributes only if its computed distance is at most the radius. So its difference from theta has a norm of at most
//! radius * (1 + (d/2 + 2) 2^-53), by the error bound in [`super::gradient`]. The reciprocal of the radius and the
//! product add 2^-53 each, and rounding to the lattice adds sqrt(d)/2 units. In all, a contribution is not longer than
//! the contribution of a record to the gradient. ∎

use super::gradient::{BITS_MAX, Gradient};
use super::prelude::*;
use crate::numeric::block::Block;
use crate::numeric::dispatch::{self, Kernel};
use crate::numeric::distance::for_each_distance;
use crate::runtime::parallel_fold::{records_per_block, sum_records};

struct BlockShift<'a> {
    block: Block<'a>,
    theta: &'a [f64],
    radius: f64,
    bits: u32,
    total: &'a mut [i64],
}

impl Kernel for BlockShift<'_> {
    type Output = ();

    /// Adding and subtracting 1.5 * 2^(52 - bits) rounds a double to the lattice. A block has at most 2^12 records, so
    /// doubles hold the sum of multiples of 2^-bits exactly.
    #[inline(always)]
    fn run(self) {
        let rounder = 1.5 * f64::from(52 - self.bits).exp2();
        let inverse = 1.0 / self.radius;
        let mut sum = vec![0.0; self.theta.len()];
        for_each_distance(self.block, self.theta, |_, difference, distance| {
            if distance <= self.radius {
                for (sum, x) in sum.iter_mut().zip(difference) {
                    *sum += (x * inverse + rounder) - rounder;
                }
            }
        });
        let unit = f64::from(self.bits).exp2();
        self.total.iter_mut().zip(sum).for_each(|(total, x)| *total += (x * unit) as i64);
    }
}

/// The sum over records within a radius of theta of (theta - x)/radius, in units of 2^-bits.
#[derive(Debug, Clone, PartialEq)]
pub struct MeanShift {
    theta: Vec<f64>,
    radius: f64,
    bits: u32,
}

impl MeanShift {
    /// Bits must be at most [`super::gradient::BITS_MAX`]. The radius must lie between 2^-1020 and 2^1020, so that its
    /// reciprocal is a normal number.
    pub fn new(theta: &[f64], radius: f64, bits: u32) -> Result<Self, BadParameter> {
        let bits = checked_bits(bits, BITS_MAX)?;
        if !(2f64.powi(-1020)..=2f64.powi(1020)).contains(&radius) {
            return Err(BadParameter(format!(
                "the radius of a mean shift must lie between 2^-1020 and 2^1020, got {radius}"
            )));
        }
        Ok(Self { theta: theta.iter().copied().map(finite).collect(), radius, bits })
    }

    /// The sensitivity in `d` dimensions.
    pub fn bound(d: usize, bits: u32) -> Sensitivity {
        Gradient::bound(d, bits)
    }
}

impl Statistic for MeanShift {
    fn dimension(&self) -> Option<usize> {
        Some(self.theta.len())
    }

    fn sensitivity(&self) -> Sensitivity {
        Self::bound(self.theta.len(), self.bits)
    }

    fn parameters(&self) -> Parameters {
        Parameters::of([("radius", self.radius.into()), ("theta", self.theta.as_slice().into()), ("bits", self.bits.into())])
    }

    fn exact(&self, points: &Points, pulse: &mut dyn Pulse) -> Result<Exact, Interrupted> {
        let (d, theta) = (points.d(), self.theta.as_slice());
        assert_eq!(theta.len(), d, "theta has another dimension than the points");
        let sum = sum_records(points, d, records_per_block(d), d, pulse, |total, block| {
            dispatch::vectorised(BlockShift { block, theta, radius: self.radius, bits: self.bits, total });
        })?;
        Ok(Exact::vector(sum, self.sensitivity()))
    }
}

impl Kind for MeanShift {
    const NAME: &'static str = "mean shift";

    fn read(given: &mut Arguments) -> Result<Self, BadParameter> {
        Self::new(&given.floats("theta")?, given.float("radius")?, given.small("bits")?)
    }

    fn bound_of(given: &mut Arguments) -> Result<Bound, BadParameter> {
        let (d, bits) = (given.size("d")?, given.bits(BITS_MAX)?);
        Ok(Bound::vector(Self::bound(d, bits), d))
    }

    #[cfg(test)]
    fn examples(theta: &[f64], scale: f64, _n: usize) -> Vec<Result<Self, BadParameter>> {
        use super::tests::radius;
        vec![Self::new(theta, radius(scale), 40)]
    }
}

#[cfg(test)]
mod tests {
    use nalgebra::DMatrix;
    use proptest::prelude::*;

    use super::*;
    use crate::release::sensitivity::Neighbours;
    use crate::statistics::tests::values;

    fn shift(points: &DMatrix<f64>, theta: &[f64], radius: f64, bits: u32) -> Vec<i64> {
        values(&MeanShift::new(theta, radius, bits).unwrap(), points)
    }

    #[test]
    fn only_records_within_the_radius_count() {
        let points = DMatrix::from_column_slice(2, 3, &[1.0, 0.0, 0.0, 2.0, 0.0, 2.5]);
        assert_eq!(shift(&points, &[0.0, 0.0], 2.0, 10), [-512, -1024]);
    }

    fn value() -> impl Strategy<Value = f64> {
        prop_oneof![-2.0..2.0f64, (-1020i32..1000).prop_map(|e| -(2f64.powi(e))), Just(0.0), Just(5e-324)]
    }

    proptest! {
        #[test]
        fn a_replaced_record_moves_it_by_at_most_the_sensitivity(
            values in proptest::collection::vec(value(), 30), record in proptest::collection::vec(value(), 3),
            octave in -1020i32..1000, bits in 20u32..=40
        ) {
            let points = DMatrix::from_vec(3, 10, values);
            let mut neighbour = points.clone();
            neighbour.column_mut(4).copy_from_slice(&record);
            let at = |points: &DMatrix<f64>| shift(points, &[0.1, -0.2, 0.0], 2f64.powi(octave), bits);
            let moved: f64 = at(&points).iter().zip(at(&neighbour)).map(|(a, b)| (a - b) as f64).map(|x| x * x).sum();
            prop_assert!(moved.sqrt() <= MeanShift::bound(3, bits).under(Neighbours::Replace));
        }
    }

    #[test]
    fn the_sum_is_the_same_however_it_is_split() {
        let points = DMatrix::from_fn(3, 5000, |i, j| ((i * 7919 + j * 104_729) % 1000) as f64 / 997.0);
        let at = |from, count| shift(&points.columns(from, count).into_owned(), &[0.5; 3], 0.7, 32);
        let mut single = vec![0; 3];
        for record in 0..5000 {
            single.iter_mut().zip(at(record, 1)).for_each(|(sum, x)| *sum += x);
        }
        assert_eq!(at(0, 5000), single);
    }

    #[test]
    fn the_same_bits_on_every_instruction_set() {
        let block = DMatrix::from_fn(13, 200, |i, j| ((i * 31 + j * 17) % 101) as f64 * 0.01);
        let mut totals = [[0; 13], [0; 13]];
        let [here, there] = totals.each_mut().map(|total| {
            let block = Block::new(block.as_slice(), 13, 200);
            BlockShift { block, theta: &[0.5; 13], radius: 1.2, bits: 32, total }
        });
        dispatch::portable(here);
        dispatch::vectorised(there);
        assert!(totals[0] == totals[1] && totals[0] != [0; 13]);
    }
}
