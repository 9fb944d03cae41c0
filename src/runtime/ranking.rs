//! A copy of the records, coordinate by coordinate, that answers queries about ranks: in every coordinate, the number
//! of records at or below a threshold.
//!
//! A search makes many queries, most of which are near each other or repeated. So the answers are stored, and the copy
//! is partly sorted: a new threshold partitions the values between the two nearest earlier thresholds. Late in a
//! search, there are few such values. Singles stay singles.

use std::ops::Range;

use crate::numeric::block::Coordinate;
use crate::runtime::points::Points;
use crate::runtime::pool;
use crate::runtime::pulse::{COORDINATES_PER_BEAT, Interrupted, Pulse};

/// The number of records, and of their coordinates, that are transposed together.
const TILE: usize = 1 << 5;

/// The smallest number of records that are loaded together.
const BLOCK: usize = 1 << 10;

/// The fixed cost of one cut, as the number of values that could be partitioned in the same time.
const CUT: usize = 16;

/// Up to this many values are only counted and not partitioned, because counting them again later is faster.
const UNDIVIDED: usize = 1 << 7;

/// Up to this many values are processed by one thread, which is faster than waking other threads.
const SINGLE_THREAD_VALUES: usize = 1 << 15;

/// A coordinate that is compared with thresholds in its own precision.
trait Comparable: Coordinate + Default + PartialOrd + Send + Sync {
    /// The largest value of this type that is at or below the threshold, which must not be NaN. A value is at or below
    /// the result exactly if it is at or below the threshold.
    fn floor(threshold: f64) -> Self;
}

impl Comparable for f64 {
    fn floor(threshold: f64) -> Self {
        threshold
    }
}

impl Comparable for f32 {
    fn floor(threshold: f64) -> Self {
        let nearest = threshold as f32;
        if f64::from(nearest) > threshold { nearest.next_down() } else { nearest }
    }
}

/// The thresholds of earlier queries, in ascending order, each with the number of values at or below the threshold. In
/// the column, these values stand before all other values.
#[derive(Debug, Clone, Default)]
struct Cuts(Vec<(f64, usize)>);

impl Cuts {
    /// The position of a threshold among the cuts, and the range of values that it partitions. The range is empty if
    /// the threshold is one of the cuts.
    fn place(&self, threshold: f64, n: usize) -> (usize, Range<usize>) {
        let place = self.0.partition_point(|(t, _)| *t < threshold);
        let end = self.0.get(place).map_or(n, |cut| cut.1);
        let known = self.0.get(place).is_some_and(|(t, _)| *t == threshold);
        let start = if known { end } else { self.0[..place].last().map_or(0, |cut| cut.1) };
        (place, start..end)
    }

    /// Counts the values of a column at or below a threshold, and partitions the column at the threshold.
    fn rank<T: Comparable>(&mut self, values: &mut [T], threshold: f64) -> i64 {
        let (place, range) = self.place(threshold, values.len());
        let (start, floor) = (range.start, T::floor(threshold));
        let between = &mut values[range];
        let mut below = 0;
        if between.len() <= UNDIVIDED {
            return (start + between.iter().filter(|value| **value <= floor).count()) as i64;
        }
        // The loop has no branch that depends on the values, because the processor would mispredict half of such
        // branches.
        for i in 0..between.len() {
            let (value, first) = (between[i], between[below]);
            between[i] = first;
            between[below] = value;
            below += usize::from(value <= floor);
        }
        self.0.insert(place, (threshold, start + below));
        (start + below) as i64
    }
}

/// A copy of the records that answers queries of ranks.
pub enum Ranking {
    /// For records that are stored as singles.
    Singles(Columns<f32>),
    /// For all other records.
    Doubles(Columns<f64>),
}

impl Ranking {
    /// Copies the records, which are finite.
    pub fn new(points: &Points<'_>, pulse: &mut dyn Pulse) -> Result<Self, Interrupted> {
        if points.singles(0..0).is_none() {
            let add = |columns: &mut Columns<f64>, records: Range<usize>| {
                columns.add(records.start, points.block(records, &mut Vec::new()).coordinates());
            };
            return Columns::copied(points, pulse, add).map(Self::Doubles);
        }
        let add = |columns: &mut Columns<f32>, records: Range<usize>| {
            columns.add(records.start, points.singles(records).expect("they lie as singles").coordinates());
        };
        Columns::copied(points, pulse, add).map(Self::Singles)
    }

    /// For every coordinate, the number of records x with x_j <= threshold_j; no threshold is NaN.
    pub fn ranks(&mut self, thresholds: &[f64], pulse: &mut dyn Pulse) -> Result<Vec<i64>, Interrupted> {
        match self {
            Self::Singles(columns) => columns.ranks(thresholds, pulse),
            Self::Doubles(columns) => columns.ranks(thresholds, pulse),
        }
    }
}

/// The coordinates of all records, column by column.
pub struct Columns<T> {
    n: usize,
    values: Vec<T>,
    cuts: Vec<Cuts>,
}

#[expect(private_bounds, reason = "only this module makes columns")]
impl<T: Comparable> Columns<T> {
    fn copied(
        points: &Points<'_>,
        pulse: &mut dyn Pulse,
        add: impl Fn(&mut Self, Range<usize>),
    ) -> Result<Self, Interrupted> {
        let (d, n) = (points.d(), points.n());
        let mut columns = Self { n, values: vec![T::default(); n * d], cuts: vec![Cuts::default(); d] };
        let per_block = (COORDINATES_PER_BEAT / 8 / d.max(1)).max(BLOCK);
        for start in (0..n).step_by(per_block) {
            add(&mut columns, start..n.min(start + per_block));
            pulse.beat(0.0)?;
        }
        Ok(columns)
    }

    /// Copies records to the positions from `first` on. It copies tiles of records and coordinates, which fit the
    /// first-level cache.
    fn add(&mut self, first: usize, coordinates: &[T]) {
        let (d, n) = (self.cuts.len(), self.n);
        if coordinates.is_empty() {
            return;
        }
        let copy = |(group, columns): (usize, &mut [T])| {
            let mut tile = [[T::default(); TILE]; TILE];
            let width = columns.len() / n;
            for (index, records) in coordinates.chunks(TILE * d).enumerate() {
                let count = records.len() / d;
                for (row, record) in tile.iter_mut().zip(records.chunks_exact(d)) {
                    row[..width].copy_from_slice(&record[group * TILE..][..width]);
                }
                for (c, column) in columns.chunks_exact_mut(n).enumerate() {
                    for (value, row) in column[first + index * TILE..][..count].iter_mut().zip(&tile) {
                        *value = row[c];
                    }
                }
            }
        };
        let groups = self.values.chunks_mut(TILE * n).enumerate();
        if coordinates.len() <= SINGLE_THREAD_VALUES {
            groups.for_each(copy)
        } else {
            pool::for_each_in_parallel(groups, copy)
        }
    }

    fn ranks(&mut self, thresholds: &[f64], pulse: &mut dyn Pulse) -> Result<Vec<i64>, Interrupted> {
        let (d, n) = (self.cuts.len(), self.n);
        assert_eq!(thresholds.len(), d, "the thresholds have another dimension than the points");
        let mut ranks = vec![0; d];
        if n == 0 {
            return Ok(ranks);
        }
        // A sample of the columns gives an estimate of how many values must be partitioned in total.
        let divided = |(cuts, t): (&Cuts, &f64)| CUT + cuts.place(*t, n).1.len();
        let seen: usize = self.cuts.iter().zip(thresholds).take(TILE).map(divided).sum();
        let per_column = seen / d.clamp(1, TILE);
        // An interrupted query leaves each column either unchanged or finished. Some columns then have one more cut
        // than others, which does no harm.
        let per_wave = (COORDINATES_PER_BEAT / per_column.max(1)).max(TILE);
        for wave in (0..d).step_by(per_wave) {
            let end = d.min(wave + per_wave);
            let rank = |values: &mut [T], cuts: &mut [Cuts], thresholds: &[f64], ranks: &mut [i64]| {
                let columns = values.chunks_exact_mut(n).zip(cuts);
                for (((values, cuts), threshold), rank) in columns.zip(thresholds).zip(ranks) {
                    *rank = cuts.rank(values, *threshold);
                }
            };
            let (values, cuts) = (&mut self.values[wave * n..end * n], &mut self.cuts[wave..end]);
            let (thresholds, ranks) = (&thresholds[wave..end], &mut ranks[wave..end]);
            if per_column * d <= SINGLE_THREAD_VALUES {
                rank(values, cuts, thresholds, ranks);
            } else {
                let groups = values.chunks_mut(TILE * n).zip(cuts.chunks_mut(TILE));
                let groups = groups.zip(thresholds.chunks(TILE)).zip(ranks.chunks_mut(TILE));
                pool::for_each_in_parallel(groups, |(((values, cuts), thresholds), ranks)| {
                    rank(values, cuts, thresholds, ranks);
                });
            }
            pulse.beat(end as f64 / d as f64)?;
        }
        Ok(ranks)
    }
}

#[cfg(test)]
mod tests {
    use nalgebra::DMatrix;
    use proptest::prelude::*;

    use super::*;
    use crate::runtime::memory::Table;
    use crate::runtime::pulse::Silent;

    fn plainly(points: &DMatrix<f64>, thresholds: &[f64]) -> Vec<i64> {
        let rank = |(row, t): (usize, &f64)| points.row(row).iter().filter(|x| *x <= t).count() as i64;
        thresholds.iter().enumerate().map(rank).collect()
    }

    fn ranking<'a>(points: impl Into<Table<'a>>) -> Ranking {
        Ranking::new(&Points::admit(points, None, None, &mut Silent).unwrap(), &mut Silent).unwrap()
    }

    proptest! {
        #[test]
        fn ranks_are_counted_coordinate_by_coordinate(
            n in prop_oneof![0..70usize, Just(2 * BLOCK + 1)],
            d in prop_oneof![4 => 1..20usize, 1 => Just(TILE), 1 => Just(TILE + 1), 1 => Just(2 * TILE + 1)],
            queries in prop::collection::vec(prop_oneof![(-6..6i32).prop_map(f64::from), -6.0..6.0f64], 12),
        ) {
            let points = DMatrix::from_fn(d, n, |i, j| ((i * i + i * 7 + j * 13) % 9) as f64 - 4.0);
            let singles = points.map(|x| x as f32);
            let (mut ranking, mut of_singles) = (ranking(&points), ranking(&singles));
            for query in queries {
                let thresholds: Vec<f64> = (0..d).map(|i| query + (i % 3) as f64).collect();
                prop_assert_eq!(ranking.ranks(&thresholds, &mut Silent).unwrap(), plainly(&points, &thresholds));
                prop_assert_eq!(of_singles.ranks(&thresholds, &mut Silent).unwrap(), plainly(&points, &thresholds));
            }
        }

        #[test]
        fn a_single_is_at_or_below_a_threshold_if_it_is_so_for_its_floor(x in any::<f32>(), t in any::<f64>(), near in any::<bool>()) {
            let t = if near { f64::from(x) * (1.0 + t.clamp(-1.0, 1.0) * 1e-7) } else { t };
            prop_assume!(!t.is_nan() && x.is_finite());
            prop_assert_eq!(x <= <f32 as Comparable>::floor(t), f64::from(x) <= t);
        }
    }

    #[test]
    fn signed_zeros_and_infinite_thresholds_have_their_ranks() {
        let points = DMatrix::from_row_slice(1, 4, &[0.0, -0.0, 1.0, -1.0]);
        let singles = points.map(|x| x as f32);
        for mut ranking in [ranking(&points), ranking(&singles)] {
            for (threshold, rank) in [(-0.0, 3), (0.0, 3), (f64::NEG_INFINITY, 0), (f64::INFINITY, 4), (-0.5, 1)] {
                assert_eq!(ranking.ranks(&[threshold], &mut Silent), Ok(vec![rank]));
            }
        }
    }

    #[test]
    fn an_interrupted_query_can_be_made_again() {
        /// A pulse that stops the kernel at its first call.
        struct Stop;
        impl Pulse for Stop {
            fn beat(&mut self, _done: f64) -> Result<(), Interrupted> {
                Err(Interrupted)
            }
        }
        let points = DMatrix::from_fn(2, 2 * BLOCK + 7, |i, j| ((i * 7 + j * 13) % 101) as f64);
        let mut ranking = ranking(&points);
        for thresholds in [[50.0, 60.0], [20.0, 60.0], [30.0, 70.0]] {
            assert_eq!(ranking.ranks(&thresholds.map(|t| t + 5.0), &mut Stop), Err(Interrupted));
            for again in [thresholds.map(|t| t + 5.0), thresholds] {
                assert_eq!(ranking.ranks(&again, &mut Silent).unwrap(), plainly(&points, &again));
            }
        }
    }
}
