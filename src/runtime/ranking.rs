//! A copy of the records that answers questions about ranks: in every coordinate, the number of records at or below a
//! threshold.
//!
//! A search asks many questions, most of them near each other or asked before. So the answers are kept, and a copy of
//! the records is sorted as far as the questions need: a new threshold divides the values between its two neighbours
//! among the thresholds asked so far, which are few once the search has closed in.

use nalgebra::DMatrixView;

use crate::runtime::pool;
use crate::runtime::pulse::{COORDINATES_PER_BEAT, Interrupted, Pulse};

/// Records of a block, at most: few, so that there is work for every thread, but a cut has a cost for every block.
const BLOCK: usize = 1 << 12;

/// Records, and coordinates of them, that are transposed together.
const TILE: usize = 1 << 5;

/// The fixed cost of one cut, in values that are partitioned in the same time.
const CUT: usize = 16;

/// Up to this many values one thread is done before others are awake.
const SINGLE_THREAD_VALUES: i64 = 1 << 15;

/// One coordinate of a block of records: `cuts[k]` values are at or below the k-th threshold, and they come first.
struct Column {
    values: Vec<f64>,
    cuts: Vec<u32>,
}

impl Column {
    /// Makes a threshold the k-th, and counts the values at or below it.
    fn cut(&mut self, k: usize, threshold: f64) -> i64 {
        let start = if k == 0 { 0 } else { self.cuts[k - 1] as usize };
        let end = self.cuts.get(k).map_or(self.values.len(), |&cut| cut as usize);
        let between = &mut self.values[start..end];
        let mut below = 0;
        // Without a branch that depends on the values: it would be mispredicted half of the time.
        for i in 0..between.len() {
            let inside = between[i] <= threshold;
            between.swap(i, below);
            below += usize::from(inside);
        }
        self.cuts.insert(k, (start + below) as u32);
        (start + below) as i64
    }
}

/// A copy of the records that answers questions about ranks.
pub struct Ranking {
    /// The thresholds asked in every coordinate, ascending, and their ranks.
    asked: Vec<Vec<(f64, i64)>>,
    records: i64,
    /// A column for every coordinate, for every block.
    blocks: Vec<Vec<Column>>,
}

impl Ranking {
    /// Copies the records, which are finite.
    pub fn new(points: DMatrixView<'_, f64>, pulse: &mut dyn Pulse) -> Result<Self, Interrupted> {
        let (d, n) = points.shape();
        let starts: Vec<usize> = (0..n).step_by(BLOCK).collect();
        let mut blocks = Vec::with_capacity(starts.len());
        for wave in starts.chunks(blocks_per_beat(d)) {
            let copy = |made: &mut Vec<_>, &start: &usize| {
                made.push(transpose(points.columns(start, BLOCK.min(n - start))));
            };
            // In any order: counts are sums over the blocks.
            blocks.extend(pool::fold_in_parallel(wave.iter(), Vec::new, copy).into_iter().flatten());
            pulse.beat(0.0)?;
        }
        Ok(Self { asked: vec![Vec::new(); d], records: n as i64, blocks })
    }

    /// For every coordinate, the number of records x with x_j <= threshold_j; no threshold is NaN.
    pub fn ranks(&mut self, thresholds: &[f64], pulse: &mut dyn Pulse) -> Result<Vec<i64>, Interrupted> {
        let d = self.asked.len();
        assert_eq!(thresholds.len(), d, "the thresholds have another dimension than the points");
        let place = |(asked, &threshold): (&Vec<(f64, i64)>, &f64)| asked.partition_point(|(t, _)| *t < threshold);
        let places: Vec<usize> = self.asked.iter().zip(thresholds).map(place).collect();
        let is_new = |&j: &usize| self.asked[j].get(places[j]).is_none_or(|(t, _)| *t != thresholds[j]);
        let new: Vec<usize> = (0..d).filter(is_new).collect();
        let mut counts = vec![0; new.len()];
        let count = if new.is_empty() { 0 } else { self.blocks.len() };
        let per_beat = blocks_per_beat(new.len());
        // Values between the neighbours of every new threshold, and what a cut costs in any case.
        let between = |&j: &usize| {
            let (asked, k) = (&self.asked[j], places[j]);
            let low = if k == 0 { 0 } else { asked[k - 1].1 };
            asked.get(k).map_or(self.records, |&(_, rank)| rank) - low
        };
        let alone = new.iter().map(between).sum::<i64>() + (CUT * new.len() * count) as i64 <= SINGLE_THREAD_VALUES;
        for start in (0..count).step_by(per_beat) {
            let end = count.min(start + per_beat);
            let cut = |sums: &mut Vec<i64>, block: &mut Vec<Column>| {
                for (sum, &j) in sums.iter_mut().zip(&new) {
                    *sum += block[j].cut(places[j], thresholds[j]);
                }
            };
            let wave = &mut self.blocks[start..end];
            if alone {
                wave.iter_mut().for_each(|block| cut(&mut counts, block));
            } else {
                for part in pool::fold_in_parallel(wave.iter_mut(), || vec![0; new.len()], cut) {
                    counts.iter_mut().zip(part).for_each(|(count, part)| *count += part);
                }
            }
            if pulse.beat(end as f64 / count as f64).is_err() {
                // Every block must have the same cuts.
                for block in &mut self.blocks[..end] {
                    for &j in &new {
                        block[j].cuts.remove(places[j]);
                    }
                }
                return Err(Interrupted);
            }
        }
        for (&j, count) in new.iter().zip(counts) {
            self.asked[j].insert(places[j], (thresholds[j], count));
        }
        pulse.beat(1.0)?;
        Ok(self.asked.iter().zip(places).map(|(asked, place)| asked[place].1).collect())
    }
}

/// Blocks of this many coordinates between two beats; several in any case, so that threads share them.
fn blocks_per_beat(d: usize) -> usize {
    (COORDINATES_PER_BEAT / BLOCK / d.max(1)).max(4)
}

/// In tiles of records and of coordinates: what is read and what is written stays in the first cache.
fn transpose(block: DMatrixView<'_, f64>) -> Vec<Column> {
    let (d, n) = block.shape();
    let mut columns: Vec<_> = (0..d).map(|_| Column { values: Vec::with_capacity(n), cuts: Vec::new() }).collect();
    for start in (0..n).step_by(TILE) {
        let tile = start..n.min(start + TILE);
        for (first, columns) in (0..d).step_by(TILE).zip(columns.chunks_mut(TILE)) {
            for (c, column) in columns.iter_mut().enumerate() {
                column.values.extend(tile.clone().map(|record| block[(first + c, record)]));
            }
        }
    }
    columns
}

#[cfg(test)]
mod tests {
    use nalgebra::DMatrix;
    use proptest::prelude::*;

    use super::*;
    use crate::runtime::pulse::Silent;

    fn plainly(points: &DMatrix<f64>, thresholds: &[f64]) -> Vec<i64> {
        let rank = |(row, t): (usize, &f64)| points.row(row).iter().filter(|x| *x <= t).count() as i64;
        thresholds.iter().enumerate().map(rank).collect()
    }

    proptest! {
        #[test]
        fn ranks_are_counted_coordinate_by_coordinate(
            n in prop_oneof![0..70usize, Just(BLOCK - 1), Just(BLOCK), Just(BLOCK + 1), Just(2 * BLOCK + 1)],
            d in prop_oneof![4 => 1..20usize, 1 => Just(TILE), 1 => Just(TILE + 1), 1 => Just(2 * TILE + 1)],
            questions in prop::collection::vec(prop_oneof![(-6..6i32).prop_map(f64::from), -6.0..6.0f64], 12),
        ) {
            let points = DMatrix::from_fn(d, n, |i, j| ((i * i + i * 7 + j * 13) % 9) as f64 - 4.0);
            let mut ranking = Ranking::new(points.as_view(), &mut Silent).unwrap();
            for question in questions {
                let thresholds: Vec<f64> = (0..d).map(|i| question + (i % 3) as f64).collect();
                prop_assert_eq!(ranking.ranks(&thresholds, &mut Silent).unwrap(), plainly(&points, &thresholds));
            }
        }
    }

    #[test]
    fn signed_zeros_and_infinite_thresholds_have_their_ranks() {
        let points = DMatrix::from_row_slice(1, 4, &[0.0, -0.0, 1.0, -1.0]);
        let mut ranking = Ranking::new(points.as_view(), &mut Silent).unwrap();
        for (threshold, rank) in [(-0.0, 3), (0.0, 3), (f64::NEG_INFINITY, 0), (f64::INFINITY, 4), (-0.5, 1)] {
            assert_eq!(ranking.ranks(&[threshold], &mut Silent), Ok(vec![rank]));
        }
    }

    #[test]
    fn an_interrupted_question_can_be_asked_again() {
        /// Stops at a beat.
        struct Stop(usize);
        impl Pulse for Stop {
            fn beat(&mut self, _done: f64) -> Result<(), Interrupted> {
                self.0 = self.0.checked_sub(1).ok_or(Interrupted)?;
                Ok(())
            }
        }
        let points = DMatrix::from_fn(2, 2 * BLOCK + 7, |i, j| ((i * 7 + j * 13) % 101) as f64);
        let mut ranking = Ranking::new(points.as_view(), &mut Silent).unwrap();
        for (beat, thresholds) in [(0, [50.0, 60.0]), (1, [20.0, 60.0]), (0, [30.0, 70.0])] {
            assert_eq!(ranking.ranks(&thresholds.map(|t| t + 5.0), &mut Stop(beat)), Err(Interrupted));
            assert_eq!(ranking.ranks(&thresholds, &mut Silent).unwrap(), plainly(&points, &thresholds));
        }
    }
}
