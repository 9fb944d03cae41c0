//! Distances in doubles, with the same bits on every instruction set. Sums over coordinates run in eight lanes, which
//! are added in a fixed order. Values whose squares would overflow or underflow are scaled first.

use crate::numeric::block::{AnyBlock, Block, Coordinate};
#[cfg(test)]
use crate::numeric::dispatch::portable;
use crate::numeric::dispatch::{Kernel, vectorised, vectorised_narrow};
use crate::numeric::float_scale::norm;
use crate::numeric::lanes::Lanes;

/// The largest number of dimensions that counts as few. In few dimensions, code is compiled for each dimension, and
/// SIMD lanes hold different records.
pub(crate) const FEW: usize = 16;

/// The number of records in a group in few dimensions. It is large enough that the processor works on other records
/// while it waits for a division.
pub(crate) const GROUP: usize = 32;

/// The number of records that are read together in few dimensions. It is a multiple of the size of a group, and the
/// records fit the first-level cache.
pub(crate) const READ: usize = 4 * GROUP;

/// One number for every record of a group. It is aligned to a cache line, so that wide registers load from one line.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Row<T>(pub(crate) [T; GROUP]);

/// Hides a loop length from the compiler, so that loops over a group of records become vector instructions. If the
/// length were known, the compiler might unroll the loop first and use gather and scatter instructions, which are much
/// slower. In other loops, such as the sum of unit vectors, a known length is faster.
#[inline(always)]
pub(crate) fn opaque(length: usize) -> usize {
    std::hint::black_box(length)
}

/// Calls `$few::<D>` with the dimension as a constant, from one to [`FEW`].
macro_rules! with_dimension {
    ($d:expr, $few:ident, $arguments:tt) => {
        match $d {
            1 => $few::<1> $arguments,
            2 => $few::<2> $arguments,
            3 => $few::<3> $arguments,
            4 => $few::<4> $arguments,
            5 => $few::<5> $arguments,
            6 => $few::<6> $arguments,
            7 => $few::<7> $arguments,
            8 => $few::<8> $arguments,
            9 => $few::<9> $arguments,
            10 => $few::<10> $arguments,
            11 => $few::<11> $arguments,
            12 => $few::<12> $arguments,
            13 => $few::<13> $arguments,
            14 => $few::<14> $arguments,
            15 => $few::<15> $arguments,
            16 => $few::<16> $arguments,
            d => unreachable!("{d} dimensions are not few"),
        }
    };
}
pub(crate) use with_dimension;

/// A kernel in few dimensions, whose SIMD lanes hold different records. It is compiled for every dimension, which takes
/// most of the build time. So it is compiled only for processors with fused multiply-add. On other processors (on x86
/// those without AVX2) `run` uses the code of [`Many`], which gives the same bits.
pub(crate) struct Few<K>(pub(crate) K);

/// A kernel in many dimensions, whose SIMD lanes hold different coordinates.
pub(crate) struct Many<K>(pub(crate) K);

/// Runs a kernel in the form that suits the dimension.
pub(crate) fn by_dimension<K, Output>(d: usize, kernel: K) -> Output
where
    Few<K>: Kernel<Output = Output>,
    Many<K>: Kernel<Output = Output>,
{
    if (1..=FEW).contains(&d) { vectorised_narrow(Few(kernel)) } else { vectorised(Many(kernel)) }
}

/// [`by_dimension`] with the baseline instruction set.
#[cfg(test)]
pub(crate) fn portable_by_dimension<K, Output>(d: usize, kernel: K) -> Output
where
    Few<K>: Kernel<Output = Output>,
    Many<K>: Kernel<Output = Output>,
{
    if (1..=FEW).contains(&d) { portable(Few(kernel)) } else { portable(Many(kernel)) }
}

/// [`by_dimension`] without registers of 512 bits.
#[cfg(test)]
pub(crate) fn narrow_by_dimension<K, Output>(d: usize, kernel: K) -> Output
where
    Few<K>: Kernel<Output = Output>,
    Many<K>: Kernel<Output = Output>,
{
    if (1..=FEW).contains(&d) { vectorised_narrow(Few(kernel)) } else { vectorised_narrow(Many(kernel)) }
}

/// Sums of squares between this number and [`LARGE`] are not affected by over- or underflow.
pub(crate) const SMALL: f64 = f64::from_bits((1023 - 960) << 52);
pub(crate) const LARGE: f64 = f64::from_bits((1023 + 960) << 52);

/// The differences of theta and the records of a group, coordinate by coordinate, and the sums of their squares, added
/// in the order of [`sum_of_squares`].
#[inline(always)]
pub(crate) fn side_by_side<const D: usize>(
    group: &[[f64; D]; GROUP],
    theta: &[f64; D],
    differences: &mut [Row<f64>; D],
    squares: &mut [f64; GROUP],
) {
    for r in 0..GROUP {
        let mut lanes = [0.0; 8];
        for j in 0..D {
            let difference = theta[j] - group[r][j];
            differences[j].0[r] = difference;
            lanes[j % 8] += difference * difference;
        }
        squares[r] = sum_lanes(lanes);
    }
}

/// Whether all of these sums are at least [`SMALL`] and at most [`LARGE`].
#[inline(always)]
pub(crate) fn all_usual(squares: &[f64; GROUP]) -> bool {
    squares.iter().fold(true, |all, x| all & (SMALL <= *x) & (*x <= LARGE))
}

/// The sum of squares, summed in eight lanes in a fixed order, so that the result has the same bits on every
/// instruction set.
#[inline(always)]
pub(crate) fn sum_of_squares(vector: &[f64]) -> f64 {
    let mut lanes = [0.0; 8];
    let chunks = vector.chunks_exact(8);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *lane += x * x;
        }
    }
    for (lane, x) in lanes.iter_mut().zip(rest) {
        *lane += x * x;
    }
    sum_lanes(lanes)
}

/// The squared distance, summed in the order of [`sum_of_squares`], without storing the difference.
#[inline(always)]
pub(crate) fn squared_distance<T: Coordinate>(theta: &[f64], record: &[T]) -> f64 {
    let (theta, theta_rest) = theta.as_chunks::<8>();
    let (record, record_rest) = record.as_chunks::<8>();
    let mut lanes = Lanes::ZERO;
    for (theta, record) in theta.iter().zip(record) {
        let difference = Lanes(*theta) - Lanes::of(record);
        lanes = lanes + difference * difference;
    }
    for (lane, (t, x)) in lanes.0.iter_mut().zip(theta_rest.iter().zip(record_rest)) {
        let x: f64 = (*x).into();
        let difference = t - x;
        *lane += difference * difference;
    }
    sum_lanes(lanes.0)
}

/// Adds eight lanes in a fixed order.
#[inline(always)]
pub(crate) fn sum_lanes([a, b, c, d, e, f, g, h]: [f64; 8]) -> f64 {
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}

/// The distances of a block from theta.
pub(crate) fn distances<'a>(block: impl Into<AnyBlock<'a>>, theta: &'a [f64]) -> Vec<f64> {
    by_dimension(theta.len(), Distances(block.into(), theta))
}

struct Distances<'a>(AnyBlock<'a>, &'a [f64]);

impl Kernel for Few<Distances<'_>> {
    type Output = Vec<f64>;

    #[inline(always)]
    fn run(self) -> Vec<f64> {
        Many(self.0).run()
    }

    #[inline(always)]
    fn run_fused(self) -> Vec<f64> {
        let Distances(block, theta) = self.0;
        let mut distances = vec![0.0; block.n()];
        with_dimension!(theta.len(), few_distances, (block, theta, &mut distances));
        distances
    }
}

impl Kernel for Many<Distances<'_>> {
    type Output = Vec<f64>;

    #[inline(always)]
    fn run(self) -> Vec<f64> {
        let Distances(block, theta) = self.0;
        let mut distances = vec![0.0; block.n()];
        match block {
            AnyBlock::Doubles(block) => many_distances(block, theta, &mut distances),
            AnyBlock::Singles(block) => many_distances(block, theta, &mut distances),
        }
        distances
    }
}

#[inline(always)]
fn few_distances<const D: usize>(block: AnyBlock<'_>, theta: &[f64], distances: &mut [f64]) {
    let theta: &[f64; D] = theta.try_into().expect("the dimension was matched");
    let (mut buffer, mut differences) = ([[0.0; D]; READ], [Row([0.0; GROUP]); D]);
    for (index, slots) in distances.chunks_mut(READ).enumerate() {
        let (groups, rest) = block.records_from(index * READ, &mut buffer).as_chunks::<GROUP>();
        let (slots, rest_slots) = slots.as_chunks_mut::<GROUP>();
        for (group, slots) in groups.iter().zip(slots) {
            side_by_side(group, theta, &mut differences, slots);
            if all_usual(slots) {
                slots.iter_mut().for_each(|x| *x = x.sqrt());
            } else {
                single_distances(Block::new(group.as_flattened(), D, GROUP), theta, slots);
            }
        }
        single_distances(Block::new(rest.as_flattened(), D, rest.len()), theta, rest_slots);
    }
}

/// Computes the distances of records that are not part of a whole group, and of groups with unusually large or small
/// distances. Such records are rare, so this function is not compiled for every dimension.
#[inline(never)]
fn single_distances(block: Block<'_>, theta: &[f64], distances: &mut [f64]) {
    many_distances(block, theta, distances);
}

#[inline(always)]
fn many_distances(block: Block<'_, impl Coordinate>, theta: &[f64], distances: &mut [f64]) {
    for (slot, record) in distances.iter_mut().zip(block.records()) {
        *slot = distance(theta, record);
    }
}

/// One distance, of any magnitude.
#[inline(always)]
pub(crate) fn distance<T: Coordinate>(theta: &[f64], record: &[T]) -> f64 {
    let squares = squared_distance(theta, record);
    if (SMALL..=LARGE).contains(&squares) { squares.sqrt() } else { norm(&difference(theta, record)) }
}

/// Theta minus a record.
pub(crate) fn difference<T: Coordinate>(theta: &[f64], record: &[T]) -> Vec<f64> {
    theta.iter().zip(record).map(|(t, &x)| t - x.into()).collect()
}

/// Calls `see` with the index of every record in the block, its difference from theta and its distance, in order.
#[inline(always)]
pub(crate) fn for_each_distance(block: Block<'_>, theta: &[f64], mut see: impl FnMut(usize, &[f64], f64)) {
    let mut difference = vec![0.0; theta.len()];
    let distances = distances(block, theta);
    for (index, (record, distance)) in block.records().zip(distances).enumerate() {
        for ((difference, t), x) in difference.iter_mut().zip(theta).zip(record) {
            *difference = t - x;
        }
        see(index, &difference, distance);
    }
}

#[cfg(test)]
mod tests {
    use nalgebra::DMatrix;

    use super::*;

    #[test]
    fn distances_side_by_side_are_those_of_records_alone_on_every_instruction_set() {
        for (d, far) in (1..=40).flat_map(|d| [(d, true), (d, false)]) {
            // Some records are at theta, and some are very far away.
            let points = DMatrix::from_fn(d, 200, |i, j| match j % 67 {
                3 => 0.1,
                5 if far => 1e300,
                _ => ((i * 7919 + j * 104_729) % 1009) as f64 / 37.0,
            });
            let (block, theta) = (Block::new(points.as_slice(), d, 200), vec![0.1; d]);
            let alone: Vec<f64> = block.records().map(|record| distance(&theta, record)).collect();
            assert_eq!(distances(block, &theta), alone, "{d}");
            assert_eq!(portable_by_dimension(d, Distances(block.into(), &theta)), alone, "{d}");
            assert_eq!(narrow_by_dimension(d, Distances(block.into(), &theta)), alone, "{d}");
            let singles = points.map(|x| x as f32);
            let widened = singles.map(f64::from);
            let finite = |x: &f64| x.is_finite();
            if widened.iter().all(finite) {
                let narrow = distances(Block::new(singles.as_slice(), d, 200), &theta);
                assert_eq!(narrow, distances(Block::new(widened.as_slice(), d, 200), &theta), "{d}");
            }
        }
    }
}
