//! The objective: the sum of distances from a point to the records, and what else is read off the distances.
//!
//! Sums of doubles depend on their order, so the order is fixed: records are summed one after the other in blocks whose
//! size depends on the dimension alone, and the blocks in their order. The result has the same bits for any number of
//! threads.

use nalgebra::DMatrixView;
use rayon::prelude::*;

use crate::dispatch::{self, Kernel};
use crate::gradient::{LARGE, NARROW, SMALL, side_by_side, squared_distance};
use crate::lanes::Lanes;
use crate::pool;
use crate::projection::norm;
use crate::pulse::{BEAT, Interrupted, Pulse};

/// Records of a block: a hundred kilobytes, and a multiple of eight.
pub(crate) fn records_per_block(d: usize) -> usize {
    ((1 << 14) / d.max(1)).clamp(16, 4096)
}

/// Visits the records in blocks of a fixed size and returns what each block gave, in order.
///
/// `visit` gets the index of the first record and the block.
pub(crate) fn sweep<T: Send>(
    points: DMatrixView<'_, f64>,
    pulse: &mut dyn Pulse,
    visit: impl Fn(usize, DMatrixView<'_, f64>) -> T + Sync,
) -> Result<Vec<T>, Interrupted> {
    let (d, n) = points.shape();
    let per_block = records_per_block(d);
    if (1..=per_block).contains(&n) {
        // One block is done before another thread is awake, and searches on few records ask hundreds of times.
        let part = visit(0, points);
        pulse.beat(1.0)?;
        return Ok(vec![part]);
    }
    let per_beat = (BEAT / d.max(1)).max(1).next_multiple_of(per_block);
    let mut parts = Vec::with_capacity(n.div_ceil(per_block));
    for start in (0..n).step_by(per_beat) {
        let end = n.min(start + per_beat);
        pool::install(|| {
            parts.par_extend(
                (start..end)
                    .into_par_iter()
                    .step_by(per_block)
                    .map(|first| visit(first, points.columns(first, per_block.min(end - first)))),
            );
        });
        pulse.beat(end as f64 / n as f64)?;
    }
    Ok(parts)
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

/// The sum of distances from theta to the records, for any finite doubles below 2^1000.
pub fn objective(points: DMatrixView<'_, f64>, theta: &[f64], pulse: &mut dyn Pulse) -> Result<f64, Interrupted> {
    let parts = sweep(points, pulse, |_, block| dispatch::vectorised(Distances(block, theta)).iter().sum::<f64>())?;
    Ok(parts.iter().sum())
}

/// The radius of the smallest ball around a centre that has at least `count` records, 1 <= count <= n.
pub fn quantile_radius(
    points: DMatrixView<'_, f64>,
    center: &[f64],
    count: usize,
    pulse: &mut dyn Pulse,
) -> Result<f64, Interrupted> {
    let parts = sweep(points, pulse, |_, block| dispatch::vectorised(Distances(block, center)))?;
    let mut distances = parts.concat();
    Ok(*distances.select_nth_unstable_by(count - 1, f64::total_cmp).1)
}

#[cfg(test)]
mod tests {
    use nalgebra::DMatrix;

    use super::*;
    use crate::pulse::Silent;

    #[test]
    fn any_finite_doubles_have_their_sum_of_distances() {
        for power in [-1070, -600, 0, 600, 995] {
            let unit = crate::projection::scale(1.0, power);
            let points = DMatrix::from_column_slice(2, 3, &[0.0, 0.0, 6.0 * unit, 8.0 * unit, -3.0 * unit, 4.0 * unit]);
            assert_eq!(objective(points.as_view(), &[0.0, 0.0], &mut Silent), Ok(15.0 * unit));
            assert_eq!(quantile_radius(points.as_view(), &[0.0, 0.0], 2, &mut Silent), Ok(5.0 * unit));
        }
    }

    #[test]
    fn the_sum_has_the_same_bits_for_any_threads_and_instruction_set() {
        let points = DMatrix::from_fn(11, 20_000, |i, j| ((i * 7919 + j * 104_729) % 1009) as f64 / 37.0);
        let theta = [0.1; 11];
        let sums = [1, 2, 4].map(|threads| {
            pool::set_threads(Some(threads));
            objective(points.as_view(), &theta, &mut Silent).unwrap()
        });
        pool::set_threads(None);
        assert!(sums.iter().all(|sum| *sum == sums[0]));
        let block = points.columns(0, 1000);
        assert_eq!(dispatch::portable(Distances(block, &theta)), dispatch::vectorised(Distances(block, &theta)));
    }
}
