//! Distances in doubles, with the same bits on every instruction set: sums over coordinates run through eight lanes, which
//! are added in one order, and what would over- or underflow is scaled first.

use nalgebra::DMatrixView;

use crate::numeric::dispatch::{self, Kernel};
use crate::numeric::float_scale::norm;
use crate::numeric::lanes::Lanes;

/// Up to this dimension the compiler knows it, and the lanes are over records.
pub(crate) const FEW: usize = 16;

/// Records that are taken together in few dimensions: enough to hide a division behind the work on others.
pub(crate) const GROUP: usize = 32;

/// Calls `$few::<D>` with the dimension as a constant where it is at most [`FEW`], and `$many` elsewhere.
macro_rules! by_dimension {
    ($d:expr, $few:ident, $many:ident, $arguments:tt) => {
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
            _ => $many $arguments,
        }
    };
}
pub(crate) use by_dimension;

/// Sums of squares between these have lost nothing to over- or underflow.
pub(crate) const SMALL: f64 = f64::from_bits((1023 - 960) << 52);
pub(crate) const LARGE: f64 = f64::from_bits((1023 + 960) << 52);

/// The differences of a group of records from theta, coordinate by coordinate, and their sums of squares, in the order of
/// [`sum_of_squares`].
#[inline(always)]
pub(crate) fn side_by_side<const D: usize>(
    group: DMatrixView<'_, f64>,
    theta: &[f64; D],
    differences: &mut [[f64; GROUP]; D],
    squares: &mut [f64; GROUP],
) {
    for (r, square) in squares.iter_mut().enumerate() {
        let column = group.column(r);
        let record: &[f64; D] = column.as_slice().first_chunk().expect("the dimension was matched");
        let mut lanes = [0.0; 8];
        for j in 0..D {
            let difference = theta[j] - record[j];
            differences[j][r] = difference;
            lanes[j % 8] += difference * difference;
        }
        *square = sum_lanes(lanes);
    }
}

/// Whether all of these are [`SMALL`] or larger and [`LARGE`] or smaller.
#[inline(always)]
pub(crate) fn all_usual(squares: &[f64; GROUP]) -> bool {
    squares.iter().fold(true, |all, x| all & (SMALL <= *x) & (*x <= LARGE))
}

/// Eight lanes over the coordinates and one order of adding them: the same bits for any vector width.
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

/// The sum of squares of a difference that is not kept, in the same order.
#[inline(always)]
pub(crate) fn squared_distance(theta: &[f64], record: &[f64]) -> f64 {
    let (theta, theta_rest) = theta.as_chunks::<8>();
    let (record, record_rest) = record.as_chunks::<8>();
    let mut lanes = Lanes::ZERO;
    for (theta, record) in theta.iter().zip(record) {
        let difference = Lanes(*theta) - Lanes(*record);
        lanes = lanes + difference * difference;
    }
    for (lane, (t, x)) in lanes.0.iter_mut().zip(theta_rest.iter().zip(record_rest)) {
        let difference = t - x;
        *lane += difference * difference;
    }
    sum_lanes(lanes.0)
}

/// The order in which eight lanes are added.
#[inline(always)]
pub(crate) fn sum_lanes([a, b, c, d, e, f, g, h]: [f64; 8]) -> f64 {
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}

/// The distances of a block from theta, on the instruction set that is best for its dimension.
pub(crate) fn distances(block: DMatrixView<'_, f64>, theta: &[f64]) -> Vec<f64> {
    let kernel = Distances(block, theta);
    if theta.len() <= FEW { dispatch::strided(kernel) } else { dispatch::vectorised(kernel) }
}

/// The distances of a block from theta.
struct Distances<'a>(DMatrixView<'a, f64>, &'a [f64]);

impl Kernel for Distances<'_> {
    type Output = Vec<f64>;

    #[inline(always)]
    fn run(self) -> Vec<f64> {
        let Self(block, theta) = self;
        let mut distances = vec![0.0; block.ncols()];
        by_dimension!(theta.len(), few_distances, many_distances, (block, theta, &mut distances));
        distances
    }
}

#[inline(always)]
fn few_distances<const D: usize>(block: DMatrixView<'_, f64>, theta: &[f64], distances: &mut [f64]) {
    let theta: &[f64; D] = theta.try_into().expect("the dimension was matched");
    let mut differences = [[0.0; GROUP]; D];
    let (groups, rest) = distances.as_chunks_mut::<GROUP>();
    let whole = groups.len() * GROUP;
    for (index, group) in groups.iter_mut().enumerate() {
        let records = block.columns(index * GROUP, GROUP);
        side_by_side(records, theta, &mut differences, group);
        if all_usual(group) {
            group.iter_mut().for_each(|x| *x = x.sqrt());
        } else {
            many_distances(records, theta, group);
        }
    }
    many_distances(block.columns(whole, block.ncols() - whole), theta, rest);
}

#[inline(always)]
fn many_distances(block: DMatrixView<'_, f64>, theta: &[f64], distances: &mut [f64]) {
    for (slot, record) in distances.iter_mut().zip(block.column_iter()) {
        *slot = distance(theta, record.as_slice());
    }
}

/// One distance, whatever its magnitude.
#[inline(always)]
pub(crate) fn distance(theta: &[f64], record: &[f64]) -> f64 {
    let squares = squared_distance(theta, record);
    if (SMALL..=LARGE).contains(&squares) {
        squares.sqrt()
    } else {
        norm(&theta.iter().zip(record).map(|(t, x)| t - x).collect::<Vec<_>>())
    }
}

/// Calls `see` with every record's index in the block, its difference from theta and its distance, in order.
#[inline(always)]
pub(crate) fn for_each_distance(block: DMatrixView<'_, f64>, theta: &[f64], mut see: impl FnMut(usize, &[f64], f64)) {
    let mut difference = vec![0.0; theta.len()];
    let distances = distances(block, theta);
    for (index, (record, distance)) in block.column_iter().zip(distances).enumerate() {
        for ((difference, t), x) in difference.iter_mut().zip(theta).zip(record.as_slice()) {
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
        for d in 1..=40 {
            // Some records are at theta, and some are very far away.
            let points = DMatrix::from_fn(d, 200, |i, j| match j % 67 {
                3 => 0.1,
                5 => 1e300,
                _ => ((i * 7919 + j * 104_729) % 1009) as f64 / 37.0,
            });
            let (block, theta) = (points.columns(0, 200), vec![0.1; d]);
            let alone: Vec<f64> = block.column_iter().map(|record| distance(&theta, record.as_slice())).collect();
            assert_eq!(distances(block, &theta), alone, "{d}");
            assert_eq!(dispatch::portable(Distances(block, &theta)), alone, "{d}");
        }
    }
}
