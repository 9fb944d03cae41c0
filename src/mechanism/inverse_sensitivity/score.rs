//! The score in two and three dimensions: half of the norm of the gradient, minus half of the mass at the point.
//!
//! Let h be the smoothing length. A record at distance t from z in the direction u is divided into two parts: with
//! weight w = min(1, t/h) it counts as a record in the direction u, and with weight 1 - w as a record at z. With v = w
//! u the score is
//!
//! s(z) = max(0, (||sum of v|| - sum of (1 - w)) / 2).
//!
//! The program uses integers. It rounds v and w to V and W, in units of 2^-30, such that |V| <= W <= 2^30. The score is
//! max(0, floor(||sum of V||) - sum of (2^30 - W)), in units of 2^-31 of a record.
//!
//! **Neighbors and sensitivity**: 2^31 units (one record) if a record is replaced, and 2^30 units if a record is added
//! or removed. *Proof.* Replacing (V, W) by (V', W') moves the norm by at most |V| + |V'| <= W + W' and the mass by
//! |W - W'|. Together they move by at most 2 max(W, W') <= 2^31. Adding (V, W) moves the norm by at most W, up or down,
//! and raises the mass by 2^30 - W. So the norm minus the mass changes by a number between -2^30 and 2 W - 2^30 <=
//! 2^30. The bounds and the mass are integers, so the bounds also hold after the norm is rounded down. The maximum with
//! zero and the cap at 2^62 are contractions. ∎
//!
//! *Weighted records* contribute c V and c (2^30 - W), with c in [0, 1]. The same bounds hold. *Proof.* Removing such a
//! record moves the norm by at most c W and lowers the mass by c (2^30 - W). So the norm minus the mass changes by a
//! number between c (2^30 - 2 W) and c 2^30, which is at most 2^30 units. Adding a record changes it by as much, and
//! replacing a record by at most twice as much, 2^31 units. The sums are multiples of 2^-20 units. Each coordinate and
//! the mass are rounded down to units. This moves the norm by less than sqrt(3), the mass by less than 1, and their
//! difference, together with the floor, by less than 4. So rounding changes the difference of two scores by less than 8
//! units, which is [`WEIGHTED_ROUNDING`]. ∎
//!
//! *Proof of |V| <= W.* The lattice keeps the reach plus the smoothing at most 2^52, so the differences of coordinates
//! are integers of magnitude at most 2^53 and are exact. Let S = 2^30 - 2 and let f be the computed S/max(t, h). V is
//! the difference times f, and W - 2 is t times f, each rounded to the nearest integer. The computed t, f and products
//! have a relative error below 2^-49, which is less than 2^-19 units. So |V| <= t f + sqrt(3)/2 + 2^-19 and W >= t f -
//! 1/2 + 2 - 2^-19. Because sqrt(3)/2 < 3/2 - 2^-18, |V| <= W. If t >= h, then t f differs from S by at most 2^-19, and
//! W is 2^30. ∎

use std::ops::Range;

use nalgebra::DMatrixView;

use super::blocks::{BLOCK, map};
use super::lattice::Lattice;
use crate::numeric::dispatch::{self, Kernel};
use crate::release::sensitivity::Sensitivity;
use crate::runtime::weighting::WEIGHT_BITS;

/// One record in the units of V and W, which is 2^30.
pub const ONE: f64 = (1u64 << 30) as f64;

/// The largest rounding error of V and W together, in units per record: 2 for S, sqrt(3)/2 for V and 1/2 for W, rounded
/// up.
pub const ROUNDING: f64 = 4.0;

/// The number of units that rounding adds to the sensitivity of the score of weighted records.
pub const WEIGHTED_ROUNDING: f64 = 8.0;

/// Adding and subtracting this number rounds a double below 2^51 to an integer.
const ROUNDER: f64 = 1.5 * (1u64 << 52) as f64;

/// The cap of scores, so that scores fit 63 bits. If there are at most 2^32 records, no score reaches the cap.
pub const LARGEST: u64 = 1 << 62;

/// The number of records that are processed together.
pub const LANES: usize = 8;

/// The records, rounded to the lattice. Each coordinate has its own slice, so that SIMD lanes hold different records.
pub struct Records<const D: usize> {
    coordinates: [Vec<f64>; D],
    /// Blocks of records with the same weight, in units of 2^-`bits`.
    blocks: Vec<(u32, Range<usize>)>,
    bits: u32,
    /// The smoothing length.
    pub smoothing: f64,
}

impl<const D: usize> Records<D> {
    /// Rounds the points to the lattice. For weighted points, `classes` are the groups of points with equal weights, in
    /// units of 2^-20.
    pub fn new(
        points: DMatrixView<'_, f64>,
        center: &[f64],
        lattice: &Lattice,
        classes: Option<&[(u32, Range<usize>)]>,
    ) -> Self {
        let coordinates = std::array::from_fn(|j| lattice.snap(points, center, j, 1));
        let (all, bits) = ([(1, 0..points.ncols())], if classes.is_some() { WEIGHT_BITS } else { 0 });
        let split = |(weight, class): &(u32, Range<usize>)| -> Vec<(u32, Range<usize>)> {
            class.clone().step_by(BLOCK).map(|first| (*weight, first..class.end.min(first + BLOCK))).collect()
        };
        let blocks = classes.unwrap_or(&all).iter().flat_map(split).collect();
        Self { coordinates, blocks, bits, smoothing: lattice.smoothing as f64 }
    }

    /// The number of records.
    pub fn count(&self) -> usize {
        self.coordinates[0].len()
    }

    /// The sum of the weights, in units of 2^-bits.
    fn total(&self) -> i128 {
        self.blocks.iter().map(|(weight, block)| i128::from(*weight) * block.len() as i128).sum()
    }

    /// The number of records, or the sum of their weights.
    pub fn mass(&self) -> f64 {
        self.total() as f64 * (-f64::from(self.bits)).exp2()
    }

    /// The number of blocks.
    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// The coordinates of one block.
    pub fn block(&self, block: usize) -> [&[f64]; D] {
        let records = &self.blocks[block].1;
        std::array::from_fn(|j| &self.coordinates[j][records.clone()])
    }

    /// The weight of the records of one block.
    pub fn weight(&self, block: usize) -> f64 {
        f64::from(self.blocks[block].0) * (-f64::from(self.bits)).exp2()
    }

    /// The score at a lattice point, in units of 2^-31. Sums are integers, so the result is the same for any order of
    /// the records.
    pub fn score(&self, z: &[i64; D]) -> u64 {
        let z = z.map(|x| x as f64);
        let kernel = |block| Block { records: self.block(block), z, smoothing: self.smoothing };
        let sums = |block| dispatch::vectorised(kernel(block));
        let (mut gradient, mut weight) = ([0i128; D], 0i128);
        let parts = map(self.blocks(), self.count().min(BLOCK), sums);
        for ((times, _), (vector, scalar)) in self.blocks.iter().zip(parts) {
            let times = i128::from(*times);
            gradient.iter_mut().zip(vector).for_each(|(total, x)| *total += times * i128::from(x));
            weight += times * i128::from(scalar);
        }
        let mass = (self.total() * ONE as i128 - weight) >> self.bits;
        let gradient = gradient.map(|x| x >> self.bits);
        // The sums are clamped to twice the cap, so that their squares fit 128 bits. Clamping is a contraction.
        let squares = |x: &i128| x.unsigned_abs().min(u128::from(LARGEST) * 2).pow(2);
        let norm = gradient.iter().map(squares).sum::<u128>().isqrt() as i128;
        (norm - mass).clamp(0, LARGEST.into()) as u64
    }

    /// The largest change of the score if a record changes, with or without weights.
    pub fn sensitivity(weighted: bool) -> Sensitivity {
        let rounding = if weighted { WEIGHTED_ROUNDING } else { 0.0 };
        Sensitivity::of_sum(ONE + rounding, 2.0 * ONE + rounding)
    }
}

/// Returns V and W of `L` records. Their sums over a block are exact in any order. Every step is a separate loop over
/// the lanes, because compilers turn such loops into vector instructions.
#[inline(always)]
fn rounded<const D: usize, const L: usize>(difference: [[f64; L]; D], smoothing: f64) -> ([[f64; L]; D], [f64; L]) {
    let lanes = |step: &dyn Fn(usize) -> f64| -> [f64; L] { std::array::from_fn(step) };
    let squares = lanes(&|i| difference.iter().map(|x| x[i] * x[i]).sum());
    let distance = lanes(&|i| squares[i].sqrt());
    let factor = lanes(&|i| (ONE - 2.0) / distance[i].max(smoothing));
    let vector = difference.map(|x| lanes(&|i| (x[i] * factor[i] + ROUNDER) - ROUNDER));
    (vector, lanes(&|i| (distance[i] * factor[i] + (ROUNDER + 2.0)) - ROUNDER))
}

/// The sums of V and of W over one block.
struct Block<'a, const D: usize> {
    records: [&'a [f64]; D],
    z: [f64; D],
    smoothing: f64,
}

impl<const D: usize> Kernel for Block<'_, D> {
    type Output = ([i64; D], i64);

    #[inline(always)]
    fn run(self) -> ([i64; D], i64) {
        let (mut gradient, mut weight) = ([[0.0; LANES]; D], [0.0; LANES]);
        let chunks = self.records.map(|x| x.as_chunks::<LANES>());
        for chunk in 0..chunks[0].0.len() {
            let difference = std::array::from_fn(|j| chunks[j].0[chunk].map(|x| self.z[j] - x));
            let (vector, scalar) = rounded::<D, LANES>(difference, self.smoothing);
            for j in 0..D {
                gradient[j].iter_mut().zip(vector[j]).for_each(|(sum, x)| *sum += x);
            }
            weight.iter_mut().zip(scalar).for_each(|(sum, x)| *sum += x);
        }
        for i in 0..chunks[0].1.len() {
            let difference = std::array::from_fn(|j| [self.z[j] - chunks[j].1[i]]);
            let (vector, [scalar]) = rounded::<D, 1>(difference, self.smoothing);
            for j in 0..D {
                gradient[j][0] += vector[j][0];
            }
            weight[0] += scalar;
        }
        (gradient.map(|lanes| lanes.iter().sum::<f64>() as i64), weight.iter().sum::<f64>() as i64)
    }
}

#[cfg(test)]
mod tests {
    use nalgebra::DMatrix;
    use proptest::prelude::*;

    use super::*;

    fn records<const D: usize>(coordinates: &[[i64; D]], smoothing: i64) -> Records<D> {
        let flat: Vec<f64> = coordinates.iter().flatten().map(|&x| x as f64).collect();
        let lattice = Lattice::new(1.0, 1 << 51, smoothing).unwrap();
        Records::new(DMatrix::from_column_slice(D, coordinates.len(), &flat).as_view(), &[0.0; D], &lattice, None)
    }

    /// Small and huge coordinates, with many repetitions.
    fn coordinate() -> impl Strategy<Value = i64> {
        prop_oneof![-3..4i64, -100..100i64, Just(1 << 50), -(1 << 51)..(1i64 << 51)]
    }

    proptest! {
        #[test]
        fn a_record_moves_the_score_by_at_most_its_sensitivity(
            kept in prop::collection::vec(prop::array::uniform3(coordinate()), 0..12),
            (x, y, z) in (prop::array::uniform3(coordinate()), prop::array::uniform3(coordinate()), prop::array::uniform3(coordinate())),
            smoothing in prop_oneof![Just(2i64), Just(64), Just(1 << 40)],
        ) {
            let score = |last: [i64; 3]| records(&[&kept[..], &[last]].concat(), smoothing).score(&z);
            prop_assert!(score(x).abs_diff(score(y)) <= 1 << 31);
            prop_assert!(score(x).abs_diff(records(&kept, smoothing).score(&z)) <= 1 << 30);
            let flat = |x: &[i64; 3]| [x[0], x[1]];
            let kept: Vec<[i64; 2]> = kept.iter().map(flat).collect();
            let score = |last: [i64; 2]| records(&[&kept[..], &[last]].concat(), smoothing).score(&flat(&z));
            prop_assert!(score(flat(&x)).abs_diff(score(flat(&y))) <= 1 << 31);
            let without = records(&kept, smoothing).score(&flat(&z));
            prop_assert!(score(flat(&x)).abs_diff(without) <= 1 << 30);
        }

        #[test]
        fn a_rounded_record_is_no_longer_than_its_weight(
            x in prop::array::uniform3(coordinate()),
            smoothing in prop_oneof![Just(2i64), Just(64), Just(1 << 40)],
        ) {
            let coordinates = x.map(|x| vec![x as f64; 11]);
            let block = || Block::<3> {
                records: std::array::from_fn(|j| &coordinates[j][..]),
                z: [1.0, 0.0, 0.0],
                smoothing: smoothing as f64,
            };
            let (v, w) = dispatch::vectorised(block());
            prop_assert_eq!((v, w), dispatch::portable(block()));
            prop_assert!(v.iter().map(|&v| i128::from(v).pow(2)).sum::<i128>() <= i128::from(w).pow(2));
            prop_assert!(w <= 11 << 30);
        }
    }

    #[test]
    fn known_scores() {
        let one = 1u64 << 31;
        // If all records are far away on one side, each adds half a record to the score. At the records, and up to a
        // distance of h/2, the score is zero.
        let data = vec![[0i64, 0]; 10];
        let score = |x: i64| records(&data, 64).score(&[x, 0]);
        assert_eq!((score(0), score(31)), (0, 0));
        assert!(score(1000).abs_diff(5 * one) < 100);
        // At the distance 3/4 h, the norm of the gradient is 10 * 3/4 and the mass is 10 * 1/4.
        assert!(score(48).abs_diff(5 * one / 2) < 100);
    }

    #[test]
    fn the_score_is_the_same_for_any_number_of_threads_and_any_order() {
        let data: Vec<[i64; 3]> =
            (0..10_000i64).map(|i| [i * 7919 % 1000, i * 104_729 % 1000, i * 15_485_863 % 999]).collect();
        let mut reversed = data.clone();
        reversed.reverse();
        let expected = records(&data, 64).score(&[5, 17, 400]);
        for threads in [1, 2, 3] {
            crate::runtime::pool::set_threads(Some(threads));
            assert_eq!(records(&reversed, 64).score(&[5, 17, 400]), expected);
        }
        crate::runtime::pool::set_threads(None);
    }
}
