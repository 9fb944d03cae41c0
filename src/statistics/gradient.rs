//! The gradient of the sum of distances, on an integer lattice.
//!
//! Each record's unit vector is rounded to multiples of 2^-bits, and the multiples are summed as integers. Such a sum
//! is exact, so it does not depend on the number of threads, the division into blocks or the instruction set.
//!
//! **Neighbors and sensitivity** (L2, lattice units): [`Gradient::bound`]. *Proof.* A record contributes a unit vector
//! that is rounded coordinate by coordinate. If the computed sum of squares s lies in [2^-960, 2^960], its relative
//! error is at most (d + 2) 2^-53, because there are d + 1 rounded additions of rounded squares. Squares that underflow
//! lose at most d 2^-1075, which is negligible relative to 2^-960. The square root halves the error and adds 2^-53. The
//! division and the product add 2^-53 each. So the computed vector has a norm of at most 1 + (d + 6) 2^-53. The
//! rounding of theta - x does not matter for this bound, because it only changes the direction of the vector. If s lies
//! outside of [2^-960, 2^960], the differences are first scaled by a power of two, so that the largest difference lies
//! in [1, 2), and the same bound holds. Rounding to the lattice adds at most sqrt(d)/2 units. So a record that is added
//! or removed moves the sum by at most 2^bits (1 + (d + 6) 2^-53) + sqrt(d)/2. Replacing a record removes one such
//! vector and adds another, so the sum moves by at most twice as much. The bound needs finite coordinates of theta and
//! of the records. They are made finite when a query or a dataset is created. ∎

use super::prelude::*;
use crate::numeric::block::{Block, Coordinate, AnyBlock};
use crate::numeric::dispatch::Kernel;
use crate::numeric::distance::{
    Few, GROUP, LARGE, Many, READ, Row, SMALL, all_usual, by_dimension, difference, side_by_side, squared_distance,
    sum_of_squares, with_dimension,
};
use crate::numeric::float_scale::rescale;
use crate::runtime::parallel_fold::sum_any_records;

/// The finest lattice. On a finer lattice, the sums of a block could be inexact. This would happen first for the sums
/// of [`super::mean_shift`], which are doubles, and later for sums of 64-bit integers.
pub const BITS_MAX: u32 = 40;

/// The largest number of records in a block. A block takes some tens of microseconds in few dimensions.
const BLOCK: usize = 1 << 12;

/// The number of records that are processed together in more dimensions.
const TOGETHER: usize = 4;

/// Inputs with at most this many coordinates are summed by one thread, which is faster than waking other threads. This
/// matters for a descent on few records, which makes thousands of queries.
const SINGLE_THREAD_COORDINATES: usize = 1 << 13;

/// The sum over records of (theta - x)/||theta - x||, in units of 2^-bits. A record at theta contributes zero.
#[derive(Debug, Clone, PartialEq)]
pub struct Gradient {
    theta: Vec<f64>,
    bits: u32,
}

impl Gradient {
    /// A query at `theta`, which must have the dimension of the records. Bits must be at most [`BITS_MAX`].
    pub fn new(theta: &[f64], bits: u32) -> Result<Self, BadParameter> {
        let bits = checked_bits(bits, BITS_MAX)?;
        Ok(Self { theta: theta.iter().copied().map(finite).collect(), bits })
    }

    /// The sensitivity in `d` dimensions, by the proof above. The formula adds room for its own rounding.
    pub fn bound(d: usize, bits: u32) -> Sensitivity {
        let (d, unit) = (d as f64, f64::from(bits).exp2());
        let replaced = (2.0 * unit + d.sqrt() + (d + 6.0) * unit * f64::EPSILON) * (1.0 + 4.0 * f64::EPSILON);
        Sensitivity::of_sum(replaced / 2.0, replaced)
    }

    /// The exact sum over admitted records.
    pub(crate) fn sum(&self, points: &Points<'_>, pulse: &mut dyn Pulse) -> Result<Vec<i128>, Interrupted> {
        let (d, n) = (points.d(), points.n());
        let (theta, bits) = (self.theta.as_slice(), self.bits);
        assert_eq!(theta.len(), d, "theta has another dimension than the points");
        sum_any_records(points, d, records_per_block(n, d), d, pulse, |total, block| {
            by_dimension(d, BlockGradient { block, theta, bits, total });
        })
    }
}

impl Statistic for Gradient {
    fn dimension(&self) -> Option<usize> {
        Some(self.theta.len())
    }

    fn sensitivity(&self) -> Sensitivity {
        Self::bound(self.theta.len(), self.bits)
    }

    fn parameters(&self) -> Parameters {
        Parameters::of([("theta", self.theta.as_slice().into()), ("bits", self.bits.into())])
    }

    fn exact(&self, points: &Points, pulse: &mut dyn Pulse) -> Result<Exact, Interrupted> {
        Ok(Exact::vector(self.sum(points, pulse)?, self.sensitivity()))
    }
}

impl Kind for Gradient {
    const NAME: &'static str = "gradient";

    fn read(given: &mut Arguments) -> Result<Self, BadParameter> {
        Self::new(&given.floats("theta")?, given.small("bits")?)
    }

    fn bound_of(given: &mut Arguments) -> Result<Bound, BadParameter> {
        let (d, bits) = (given.size("d")?, given.bits(BITS_MAX)?);
        Ok(Bound::vector(Self::bound(d, bits), d))
    }

    #[cfg(test)]
    fn examples(theta: &[f64], _scale: f64, _n: usize) -> Vec<Result<Self, BadParameter>> {
        vec![Self::new(theta, 32)]
    }
}

/// The number of records in a block. Small inputs are split into smaller blocks, so that every thread has work. A block
/// is a multiple of a SIMD group, so only the last block has a partial group.
fn records_per_block(n: usize, d: usize) -> usize {
    if n * d <= SINGLE_THREAD_COORDINATES {
        return n.max(1);
    }
    ((1 << 15) / d).clamp(16, BLOCK).min(n.div_ceil(8)).next_multiple_of(GROUP)
}

/// Adds a block to the total. The `rounder` is 1.5 * 2^(52 - bits), and doubles near the rounder are multiples of
/// 2^-bits. So adding the rounder to a coordinate rounds the coordinate to the lattice. The bits of this sum, read as
/// an integer, are the bits of the rounder plus the number of lattice units. The kernel sums these integers in any
/// order and subtracts the bits of the rounder at the end. If the integers wrap around, the subtraction cancels this.
struct BlockGradient<'a> {
    block: AnyBlock<'a>,
    theta: &'a [f64],
    bits: u32,
    total: &'a mut [i64],
}

/// The rounder: a coordinate is added to this number to round the coordinate to a multiple of 2^-bits.
pub(super) fn rounder(bits: u32) -> f64 {
    1.5 * f64::from(52 - bits).exp2()
}

impl Kernel for Few<BlockGradient<'_>> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        Many(self.0).run();
    }

    #[inline(always)]
    fn run_fused(self) {
        let BlockGradient { block, theta, bits, total } = self.0;
        with_dimension!(theta.len(), few, (block, theta, rounder(bits), total));
    }
}

impl Kernel for Many<BlockGradient<'_>> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let BlockGradient { block, theta, bits, total } = self.0;
        match block {
            AnyBlock::Doubles(block) => many(block, theta, rounder(bits), total),
            AnyBlock::Singles(block) => many(block, theta, rounder(bits), total),
        }
    }
}

/// Processes a group of records together. Each SIMD lane holds another record.
#[inline(always)]
fn few<const D: usize>(block: AnyBlock<'_>, theta: &[f64], rounder: f64, total: &mut [i64]) {
    let coordinates: &[f64; D] = theta.try_into().expect("the dimension was matched");
    let (mut differences, mut inverses) = ([Row([0.0; GROUP]); D], Row([0.0; GROUP]));
    let (mut sums, mut summed) = ([Row([0; GROUP]); D], 0);
    let mut buffer = [[0.0; D]; READ];
    for first in (0..block.n()).step_by(READ) {
        let (groups, rest) = block.records_from(first, &mut buffer).as_chunks::<GROUP>();
        for group in groups {
            side_by_side(group, coordinates, &mut differences, &mut inverses.0);
            if !all_usual(&inverses.0) {
                add_singles(Block::new(group.as_flattened(), D, GROUP), theta, rounder, total);
                continue;
            }
            inverses.0.iter_mut().for_each(|x| *x = 1.0 / x.sqrt());
            add_units(&mut sums, &differences, &inverses, rounder);
            summed += GROUP;
        }
        add_singles(Block::new(rest.as_flattened(), D, rest.len()), theta, rounder, total);
    }
    add_sums(total, &sums, summed, rounder);
}

/// Adds the rounded unit vectors of a group of records to the sums. Each record also adds the bits of the rounder,
/// which [`add_sums`] subtracts.
#[inline(always)]
pub(super) fn add_units<const D: usize>(
    sums: &mut [Row<u64>; D],
    differences: &[Row<f64>; D],
    inverses: &Row<f64>,
    rounder: f64,
) {
    for (sum, row) in sums.iter_mut().zip(differences) {
        for r in 0..GROUP {
            sum.0[r] = sum.0[r].wrapping_add((row.0[r] * inverses.0[r] + rounder).to_bits());
        }
    }
}

/// Adds the sums of `summed` unit vectors to a total, and subtracts the bits of the rounder for each of these vectors.
#[inline(always)]
pub(super) fn add_sums<const D: usize>(total: &mut [i64], sums: &[Row<u64>; D], summed: usize, rounder: f64) {
    let surplus = rounder.to_bits().wrapping_mul(summed as u64);
    for (total, sum) in total.iter_mut().zip(sums) {
        let sum = sum.0.iter().fold(0u64, |sum, x| sum.wrapping_add(*x));
        *total = total.wrapping_add(sum.wrapping_sub(surplus).cast_signed());
    }
}

/// Processes four records together. Each SIMD lane holds another coordinate. The loops are written out, because the
/// compiler might not inline a closure of `map` on an array, and would then compile the closure for the baseline
/// instruction set.
#[inline(always)]
pub(super) fn many<T: Coordinate>(block: Block<'_, T>, theta: &[f64], rounder: f64, total: &mut [i64]) {
    let (d, coordinates) = (theta.len(), block.coordinates());
    let mut sums = vec![0u64; d];
    let whole = block.n() / TOGETHER * TOGETHER;
    for first in (0..whole).step_by(TOGETHER) {
        let record = |r: usize| &coordinates[(first + r) * d..][..d];
        let records: [&[T]; TOGETHER] = [record(0), record(1), record(2), record(3)];
        let (mut squares, mut inverses) = ([0.0; TOGETHER], [0.0; TOGETHER]);
        for (slot, record) in squares.iter_mut().zip(records) {
            *slot = squared_distance(theta, record);
        }
        for (slot, squares) in inverses.iter_mut().zip(&squares) {
            *slot = 1.0 / squares.sqrt();
        }
        for r in 0..TOGETHER {
            if !(SMALL..=LARGE).contains(&squares[r]) {
                // This record is processed by `add_single`, so here it adds zero.
                inverses[r] = 0.0;
                add_single(difference(theta, records[r]), rounder, total);
            }
        }
        let ([r0, r1, r2, r3], [i0, i1, i2, i3]) = (records, inverses);
        for (j, (sum, theta)) in sums.iter_mut().zip(theta).enumerate() {
            let unit = |x: T, inverse: f64| ((theta - x.into()) * inverse + rounder).to_bits();
            let a = unit(r0[j], i0).wrapping_add(unit(r1[j], i1));
            let b = unit(r2[j], i2).wrapping_add(unit(r3[j], i3));
            *sum = sum.wrapping_add(a.wrapping_add(b));
        }
    }
    let surplus = rounder.to_bits().wrapping_mul(whole as u64);
    for (total, sum) in total.iter_mut().zip(sums) {
        *total = total.wrapping_add(sum.wrapping_sub(surplus).cast_signed());
    }
    for record in block.records().skip(whole) {
        add_single(difference(theta, record), rounder, total);
    }
}

/// Adds records that are not part of a whole group, and groups with an unusually large or small distance. Such records
/// are rare, so this function is not compiled for every dimension.
#[inline(never)]
fn add_singles(block: Block<'_>, theta: &[f64], rounder: f64, total: &mut [i64]) {
    for record in block.records() {
        add_single(difference(theta, record), rounder, total);
    }
}

/// Adds the rounded unit vector of one record, for any magnitude of its difference from theta.
#[inline(never)]
fn add_single(mut difference: Vec<f64>, rounder: f64, total: &mut [i64]) {
    let squares = sum_of_squares(&difference);
    let inverse = if (SMALL..=LARGE).contains(&squares) {
        1.0 / squares.sqrt()
    } else if rescale(&mut difference).is_some() {
        1.0 / sum_of_squares(&difference).sqrt()
    } else {
        return;
    };
    for (total, x) in total.iter_mut().zip(difference) {
        *total += (x * inverse + rounder).to_bits().wrapping_sub(rounder.to_bits()).cast_signed();
    }
}

#[cfg(test)]
mod tests {
    use nalgebra::DMatrix;
    use proptest::prelude::*;

    use super::*;
    use crate::numeric::distance::portable_by_dimension;
    use crate::numeric::float_scale::{norm, scale};
    use crate::release::sensitivity::Neighbours;
    use crate::runtime::pool;
    use crate::runtime::pulse::Silent;

    fn sensitivity(d: usize, bits: u32) -> f64 {
        Gradient::bound(d, bits).under(Neighbours::Replace)
    }

    fn of(points: &DMatrix<f64>, theta: &[f64], bits: u32) -> Vec<i64> {
        let sum = Gradient::new(theta, bits)
            .unwrap()
            .sum(&Points::admit(points, None, None, &mut Silent).unwrap(), &mut Silent)
            .unwrap();
        sum.into_iter().map(|x| i64::try_from(x).unwrap()).collect()
    }

    /// Any finite coordinate below 2^1000, with many extremes and repetitions.
    fn coordinate() -> impl Strategy<Value = f64> {
        prop_oneof![
            Just(0.0),
            Just(1.0),
            Just(-1.0),
            Just(1e-162),
            Just(5e-324),
            Just(1e300),
            Just(-1e300),
            Just(1e16),
            -10.0..10.0f64,
            -1e-300..1e-300f64,
        ]
    }

    proptest! {
        #[test]
        fn a_replaced_record_moves_the_gradient_by_at_most_the_sensitivity(
            d in 1usize..12,
            seedlings in prop::collection::vec(coordinate(), 12 * 6),
        ) {
            let record = |i: usize| &seedlings[i * 12..i * 12 + d];
            let theta = record(0);
            let data = |last: &[f64]| {
                DMatrix::from_column_slice(d, 4, &[record(1), record(2), record(3), last].concat())
            };
            for bits in [20, 32, 40] {
                let (a, b) = (of(&data(record(4)), theta, bits), of(&data(record(5)), theta, bits));
                let moved: Vec<f64> = a.iter().zip(&b).map(|(a, b)| (a - b) as f64).collect();
                prop_assert!(norm(&moved) <= sensitivity(d, bits));
            }
        }

        #[test]
        fn one_record_gives_its_unit_vector(d in 1usize..20, values in prop::collection::vec(coordinate(), 40)) {
            let (theta, x) = (&values[..d], &values[20..20 + d]);
            let difference: Vec<f64> = theta.iter().zip(x).map(|(t, x)| t - x).collect();
            // A subnormal norm would be inexact, so small vectors are scaled up first.
            let power = if norm(&difference) < 1e-200 { 500 } else { 0 };
            let difference: Vec<f64> = difference.iter().map(|&x| scale(x, power)).collect();
            let length = norm(&difference);
            let lattice = of(&DMatrix::from_column_slice(d, 1, x), theta, 32);
            for (j, &value) in lattice.iter().enumerate() {
                let expected = if length == 0.0 { 0.0 } else { difference[j] / length };
                prop_assert!((value as f64 - expected * 2f64.powi(32)).abs() <= 1.0, "{value} {expected}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn records_side_by_side_are_summed_as_if_alone(
            d in prop_oneof![1usize..40, Just(100)],
            n in 1usize..100,
            odd in 0usize..100,
            values in prop::collection::vec(coordinate(), 200),
            spread in -3i32..3,
        ) {
            let theta: Vec<f64> = values[..d].iter().map(|x| x.clamp(-10.0, 10.0)).collect();
            let points = DMatrix::from_fn(d, n, |i, j| {
                // One record may have any coordinates. The others are ordinary numbers, so most groups are ordinary.
                let ordinary = ((7919 * i + 104_729 * j) % 1009) as f64 * 10f64.powi(spread);
                if j == odd { values[100 + i] } else { theta[i] + ordinary }
            });
            let points = points.map(|x| x.clamp(-1e300, 1e300));
            let expected = points.column_iter().fold(vec![0i64; d], |mut sum, record| {
                let one = of(&record.into_owned().reshape_generic(nalgebra::Dyn(d), nalgebra::Dyn(1)), &theta, 32);
                sum.iter_mut().zip(one).for_each(|(sum, one)| *sum += one);
                sum
            });
            prop_assert_eq!(of(&points, &theta, 32), expected.clone());
            let block = Block::new(points.as_slice(), d, n);
            let mut total = vec![0; theta.len()];
            portable_by_dimension(theta.len(), BlockGradient { block: block.into(), theta: &theta, bits: 32, total: &mut total });
            prop_assert_eq!(total, expected);
        }
    }

    #[test]
    fn a_record_contributes_a_unit_vector_at_every_magnitude() {
        for power in -1070..=999 {
            let x = [3.0, -5.0, 1.0].map(|x| scale(x, power));
            let units = of(&DMatrix::from_column_slice(3, 1, &x), &[0.0; 3], 32);
            let length = norm(&units.iter().map(|&x| x as f64).collect::<Vec<f64>>());
            assert!((length - 32f64.exp2()).abs() < 1.0, "2^{power}: {length}");
        }
    }

    #[test]
    fn a_record_that_turns_around_needs_the_rounding_in_the_sensitivity() {
        for bits in [20, 32, 40] {
            let moved = (0..200).map(|k| {
                let x: Vec<f64> = (1..=5).map(|j| f64::from(k * j).sin()).collect();
                let opposite: Vec<f64> = x.iter().map(|x| -x).collect();
                let [a, b] = [x, opposite].map(|x| of(&DMatrix::from_column_slice(5, 1, &x), &[0.0; 5], bits));
                norm(&a.iter().zip(&b).map(|(a, b)| (a - b) as f64).collect::<Vec<f64>>())
            });
            let widest = moved.fold(0.0, f64::max);
            assert!(2.0 * f64::from(bits).exp2() < widest && widest <= sensitivity(5, bits), "{bits}: {widest}");
        }
    }

    #[test]
    fn the_sum_is_the_same_for_any_threads_and_any_chunking() {
        let points = DMatrix::from_fn(7, 10_000, |i, j| ((i * 7919 + j * 104_729) % 1000) as f64 / 37.0);
        let theta = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];
        let whole = of(&points, &theta, 32);
        for threads in [1, 2, 4] {
            pool::set_threads(Some(threads));
            assert_eq!(of(&points, &theta, 32), whole);
        }
        pool::set_threads(None);
        let halves = [points.columns(0, 3333).into_owned(), points.columns(3333, 6667).into_owned()];
        let sum: Vec<i64> =
            of(&halves[0], &theta, 32).iter().zip(of(&halves[1], &theta, 32)).map(|(a, b)| a + b).collect();
        assert_eq!(sum, whole);
        let block = Block::new(&points.as_slice()[..7 * 4096], 7, 4096);
        let mut total = [0; 7];
        portable_by_dimension(
            theta.len(),
            BlockGradient { block: block.into(), theta: &theta, bits: 32, total: &mut total },
        );
        assert_eq!(total.as_slice(), of(&points.columns(0, 4096).into_owned(), &theta, 32));
    }
}
