//! Distances in doubles, with the same bits on every instruction set: sums over coordinates run through eight lanes, which
//! are added in one order, and what would over- or underflow is scaled first.

use std::ops::Add;

use nalgebra::DMatrixView;

use crate::numeric::dispatch::Kernel;
use crate::numeric::float_scale::norm;
use crate::numeric::lanes::Lanes;

/// Up to this dimension the lanes are over records.
pub(crate) const NARROW: usize = 32;

/// Sums of squares between these have lost nothing to over- or underflow.
pub(crate) const SMALL: f64 = f64::from_bits((1023 - 960) << 52);
pub(crate) const LARGE: f64 = f64::from_bits((1023 + 960) << 52);

/// The differences of eight records from theta, coordinate by coordinate, and their sums of squares, in the order of
/// [`sum_of_squares`].
#[inline(always)]
pub(crate) fn side_by_side(eight: DMatrixView<'_, f64>, theta: &[f64], differences: &mut [Lanes]) -> Lanes {
    let columns: [_; 8] = std::array::from_fn(|l| eight.column(l));
    let records = columns.each_ref().map(|column| column.as_slice());
    let d = theta.len();
    let mut lanes = [Lanes::ZERO; 8];
    for from in (0..d / 4 * 4).step_by(4) {
        transpose::<4>(&records, theta, from, differences, &mut lanes);
    }
    if d % 4 >= 2 {
        transpose::<2>(&records, theta, d / 4 * 4, differences, &mut lanes);
    }
    if d % 2 == 1 {
        transpose::<1>(&records, theta, d - 1, differences, &mut lanes);
    }
    sum_lanes(lanes)
}

/// A few coordinates of [`side_by_side`]; their number is fixed, so that they go through registers.
#[inline(always)]
fn transpose<const C: usize>(
    records: &[&[f64]; 8],
    theta: &[f64],
    from: usize,
    differences: &mut [Lanes],
    lanes: &mut [Lanes; 8],
) {
    let chunk = |vector: &[f64]| -> [f64; C] { *vector[from..].first_chunk().expect("from + C <= d") };
    let theta = chunk(theta);
    let [r0, r1, r2, r3, r4, r5, r6, r7] = *records;
    let (r0, r1, r2, r3) = (chunk(r0), chunk(r1), chunk(r2), chunk(r3));
    let (r4, r5, r6, r7) = (chunk(r4), chunk(r5), chunk(r6), chunk(r7));
    let differences = &mut differences[from..from + C];
    for c in 0..C {
        let record = Lanes([r0[c], r1[c], r2[c], r3[c], r4[c], r5[c], r6[c], r7[c]]);
        let difference = Lanes::splat(theta[c]) - record;
        differences[c] = difference;
        lanes[(from + c) % 8] = lanes[(from + c) % 8] + difference * difference;
    }
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
pub(crate) fn sum_lanes<T: Add<Output = T>>([a, b, c, d, e, f, g, h]: [T; 8]) -> T {
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}

/// The distances of a block from theta.
pub(crate) struct Distances<'a>(pub(crate) DMatrixView<'a, f64>, pub(crate) &'a [f64]);

impl Kernel for Distances<'_> {
    type Output = Vec<f64>;

    #[inline(always)]
    fn run(self) -> Vec<f64> {
        let Self(block, theta) = self;
        let n = block.ncols();
        let whole = if theta.len() <= NARROW { n / 8 * 8 } else { 0 };
        let mut distances = vec![0.0; n];
        let mut differences = vec![Lanes::ZERO; theta.len()];
        for first in (0..whole).step_by(8) {
            let squares = side_by_side(block.columns(first, 8), theta, &mut differences);
            if squares.all_within(SMALL, LARGE) {
                distances[first..first + 8].copy_from_slice(&squares.sqrt().0);
            } else {
                for l in 0..8 {
                    distances[first + l] = distance(theta, block.column(first + l).as_slice());
                }
            }
        }
        for (j, slot) in distances.iter_mut().enumerate().skip(whole) {
            *slot = distance(theta, block.column(j).as_slice());
        }
        distances
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
    let distances = Distances(block, theta).run();
    for (index, (record, distance)) in block.column_iter().zip(distances).enumerate() {
        for ((difference, t), x) in difference.iter_mut().zip(theta).zip(record.as_slice()) {
            *difference = t - x;
        }
        see(index, &difference, distance);
    }
}
