//! The records as the statistics see them: one validated, clamped and projected copy.
//!
//! Every step of admission is a map of a record on its own, so neighbouring data sets stay neighbours. What is admitted
//! is finite and at most 2^1000 in magnitude (up to the rounding of a projection), whatever the caller's array, ball
//! and replacement hold.

use std::fmt;
use std::sync::Mutex;

use nalgebra::{DMatrix, DMatrixView};

use crate::numeric::float_scale::{LARGEST, finite};
use crate::postprocess::projection::Ball;
use crate::runtime::identity::{Identity, distinct};
use crate::runtime::pool;
use crate::runtime::pulse::{Interrupted, Pulse};
use crate::runtime::ranking::Ranking;

/// Coordinates of a block that one thread admits.
const BLOCK: usize = 1 << 15;

/// The first coordinate, in reading order, that is NaN or infinite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NonFinite {
    /// Row of the caller's array.
    pub record: usize,
    /// Column of the caller's array.
    pub coordinate: usize,
}

/// Shards with a record in common: a record that counts twice moves a sum by twice what its sensitivity says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repeated;

impl fmt::Display for Repeated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("these are no shards of one data set: they have records in common")
    }
}

impl std::error::Error for Repeated {}

/// The admitted records.
pub struct Points {
    /// One record per column.
    matrix: DMatrix<f64>,
    /// Where the records come from: two sets may have a record in common only if they have an admission in common.
    admissions: Vec<Identity>,
    /// Made by the first question about ranks.
    ranking: Mutex<Option<Ranking>>,
}

impl Points {
    /// Copies the records: clamps every coordinate to [`LARGEST`] and projects every record onto `ball`, if there is
    /// one.
    ///
    /// A record with a non-finite coordinate becomes `replacement`, or stops the admission where there is none.
    ///
    /// # Panics
    ///
    /// If the ball or the replacement has another dimension than the points.
    pub fn admit(
        points: DMatrixView<'_, f64>,
        ball: Option<&Ball>,
        replacement: Option<&[f64]>,
    ) -> Result<Self, NonFinite> {
        copied(points, ball, replacement).map(|matrix| Self::new(matrix, vec![Identity::fresh()]))
    }

    /// The records of all shards, one after the other. Shards that may have a record in common are refused.
    ///
    /// # Panics
    ///
    /// If there are no shards, or if their dimensions differ.
    pub fn concatenate(shards: &[&Self]) -> Result<Self, Repeated> {
        let d = shards.first().expect("at least one shard is needed").d();
        assert!(shards.iter().all(|shard| shard.d() == d), "shards of one data set have one dimension");
        let admissions = distinct(shards.iter().flat_map(|shard| shard.admissions.iter().copied())).ok_or(Repeated)?;
        let coordinates = shards.iter().map(|shard| shard.matrix.as_slice()).collect::<Vec<_>>().concat();
        let n = shards.iter().map(|shard| shard.n()).sum();
        Ok(Self::new(DMatrix::from_vec(d, n, coordinates), admissions))
    }

    /// A copy of the records at some places, in the order of these.
    pub(crate) fn gathered(&self, places: &[usize]) -> Self {
        let d = self.d();
        let mut copy = DMatrix::zeros(d, places.len());
        if copy.is_empty() {
            return Self::new(copy, self.admissions.clone());
        }
        let per_block = (BLOCK / d).max(1);
        let blocks = copy.as_mut_slice().chunks_mut(per_block * d).zip(places.chunks(per_block));
        pool::for_each_in_parallel(blocks, |(target, places)| {
            for (target, &place) in target.chunks_exact_mut(d).zip(places) {
                target.copy_from_slice(self.matrix.column(place).as_slice());
            }
        });
        Self::new(copy, self.admissions.clone())
    }

    fn new(matrix: DMatrix<f64>, admissions: Vec<Identity>) -> Self {
        Self { matrix, admissions, ranking: Mutex::new(None) }
    }

    /// The dimension.
    pub fn d(&self) -> usize {
        self.matrix.nrows()
    }

    /// The number of records.
    pub fn n(&self) -> usize {
        self.matrix.ncols()
    }

    /// Where the records come from: one admission, or those of the shards. A sample has those of its whole.
    pub(crate) fn admissions(&self) -> &[Identity] {
        &self.admissions
    }

    /// The records, one per column: for the kernels.
    pub(crate) fn view(&self) -> DMatrixView<'_, f64> {
        self.matrix.as_view()
    }

    /// For every coordinate, the number of records at or below its threshold, from a copy that is sorted as far as the
    /// questions so far needed.
    pub(crate) fn ranks(&self, thresholds: &[f64], pulse: &mut dyn Pulse) -> Result<Vec<i64>, Interrupted> {
        let mut cached = self.ranking.lock().unwrap_or_else(|e| e.into_inner());
        let mut ranking = match cached.take() {
            Some(ranking) => ranking,
            None => Ranking::new(self.matrix.as_view(), pulse)?,
        };
        let ranks = ranking.ranks(thresholds, pulse);
        *cached = Some(ranking);
        ranks
    }
}

/// Records of a caller that are no secret: the caller's own array where all of it is admissible, else an admitted copy.
pub enum Plain<'a> {
    /// Nothing had to be clamped.
    Borrowed(DMatrixView<'a, f64>),
    /// The clamped copy.
    Copied(DMatrix<f64>),
}

impl<'a> Plain<'a> {
    /// Looks at every coordinate of `n` records of `d` coordinates once.
    ///
    /// # Panics
    ///
    /// If there are not n d coordinates.
    pub fn new(coordinates: &'a [f64], d: usize, n: usize) -> Result<Self, NonFinite> {
        let points = DMatrixView::from_slice(coordinates, d, n);
        let look = |admissible: &mut bool, block: &[f64]| {
            // Without a branch on every coordinate; comparisons with what is no number are false.
            *admissible &= block.iter().fold(true, |all, x| all & (x.abs() <= LARGEST));
        };
        let looked = pool::fold_in_parallel(coordinates.chunks(BLOCK), || true, look);
        if looked.into_iter().all(|admissible| admissible) {
            return Ok(Self::Borrowed(points));
        }
        copied(points, None, None).map(Self::Copied)
    }

    /// The records, one per column.
    pub fn view(&self) -> DMatrixView<'_, f64> {
        match self {
            Self::Borrowed(view) => *view,
            Self::Copied(copy) => copy.as_view(),
        }
    }
}

fn copied(
    points: DMatrixView<'_, f64>,
    ball: Option<&Ball>,
    replacement: Option<&[f64]>,
) -> Result<DMatrix<f64>, NonFinite> {
    let d = points.nrows();
    assert!(ball.is_none_or(|ball| ball.dimension() == d), "the ball has another dimension than the points");
    assert!(
        replacement.is_none_or(|record| record.len() == d),
        "the replacement has another dimension than the points"
    );
    let (d, n) = points.shape();
    let mut copy = DMatrix::zeros(d, n);
    if d == 0 || n == 0 {
        return Ok(copy);
    }
    // Blocks of records: most have nothing to replace and are copied by one plain loop.
    let length = (BLOCK / d).max(1) * d;
    let admit = |(block, target): (usize, &mut [f64])| -> Option<NonFinite> {
        let first = block * length / d;
        let source = points.columns(first, target.len() / d);
        let mut all_finite = true;
        for (record, target) in source.column_iter().zip(target.chunks_exact_mut(d)) {
            for (x, target) in record.iter().zip(target) {
                all_finite &= x.is_finite();
                *target = x.clamp(-LARGEST, LARGEST);
            }
        }
        if !all_finite {
            for (index, (record, target)) in source.column_iter().zip(target.chunks_exact_mut(d)).enumerate() {
                match (record.iter().position(|x| !x.is_finite()), replacement) {
                    (None, _) => {}
                    (Some(_), Some(replacement)) => {
                        target.iter_mut().zip(replacement).for_each(|(x, y)| *x = finite(*y));
                    }
                    (Some(coordinate), None) => return Some(NonFinite { record: first + index, coordinate }),
                }
            }
        }
        if let Some(ball) = ball {
            for record in target.chunks_exact_mut(d) {
                ball.project(record);
            }
        }
        None
    };
    let failed = Mutex::new(Vec::new());
    pool::for_each_in_parallel(copy.as_mut_slice().chunks_mut(length).enumerate(), |block| {
        if let Some(place) = admit(block) {
            failed.lock().unwrap_or_else(|e| e.into_inner()).push(place);
        }
    });
    let failed = failed.into_inner().unwrap_or_else(|e| e.into_inner());
    failed.into_iter().min_by_key(|place| place.record).map_or(Ok(copy), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_non_finite_coordinate_is_named() {
        let mut points = DMatrix::<f64>::zeros(3, 100_000);
        points[(2, 99_999)] = f64::NAN;
        points[(1, 70_000)] = f64::INFINITY;
        let refused = copied(points.as_view(), None, None);
        assert_eq!(refused, Err(NonFinite { record: 70_000, coordinate: 1 }));
        let admitted = copied(points.as_view(), None, Some(&[1.0, 2.0, 3.0])).unwrap();
        assert_eq!(admitted.column(70_000).as_slice(), &[1.0, 2.0, 3.0]);
        assert_eq!(admitted.column(69_999).as_slice(), &[0.0; 3]);
    }

    #[test]
    fn records_are_clamped_and_projected() {
        let points = DMatrix::from_column_slice(2, 3, &[3.0, 4.0, -f64::MAX, 0.0, 0.1, 0.2]);
        let admitted = copied(points.as_view(), None, None).unwrap();
        assert_eq!(admitted.column(1).as_slice(), &[-LARGEST, 0.0]);
        let ball = Ball::new(vec![0.0, 0.0], 1.0);
        let admitted = copied(points.as_view(), Some(&ball), None).unwrap();
        assert!((admitted[(0, 0)] - 0.6).abs() < 1e-15 && (admitted[(1, 0)] - 0.8).abs() < 1e-15);
        assert_eq!(admitted.column(1).as_slice(), &[-1.0, 0.0]);
        assert_eq!(admitted.column(2).as_slice(), &[0.1, 0.2]);
    }

    #[test]
    fn whatever_is_given_the_admitted_records_are_finite() {
        let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, -f64::MAX, 5e-324, -0.0, 1.0];
        let points = DMatrix::from_fn(2, 64, |i, j| odd[(j >> (3 * i)) % 8]);
        for &x in &odd {
            for &radius in &odd {
                let ball = Ball::new(vec![x, 1.0], radius);
                let admitted = copied(points.as_view(), Some(&ball), Some(&[radius, x])).unwrap();
                assert!(admitted.iter().all(|x| x.abs() <= 2.0 * LARGEST), "{ball:?}");
            }
        }
    }

    #[test]
    fn an_array_is_read_where_it_lies_unless_it_must_be_clamped() {
        fn plain(points: &DMatrix<f64>) -> Result<Plain<'_>, NonFinite> {
            Plain::new(points.as_slice(), 3, 40_000)
        }
        let mut points = DMatrix::from_element(3, 40_000, 2.5);
        assert!(matches!(plain(&points), Ok(Plain::Borrowed(view)) if view == points));
        points[(1, 39_000)] = f64::MAX;
        assert!(
            matches!(plain(&points), Ok(Plain::Copied(copy)) if copy[(1, 39_000)] == LARGEST && copy[(0, 5)] == 2.5)
        );
        points[(2, 7)] = f64::NAN;
        assert_eq!(plain(&points).err(), Some(NonFinite { record: 7, coordinate: 2 }));
    }

    #[test]
    fn shards_make_one_data_set() {
        let points = DMatrix::from_fn(2, 10, |i, j| (3 * i + j) as f64);
        let shard = |from, count| Points::admit(points.columns(from, count), None, None).unwrap();
        let whole = Points::concatenate(&[&shard(0, 4), &shard(4, 0), &shard(4, 6)]).unwrap();
        assert_eq!((whole.view(), whole.n(), whole.d()), (points.as_view(), 10, 2));
    }

    #[test]
    fn shards_with_a_record_in_common_make_no_data_set() {
        let shard = || Points::admit(DMatrix::from_element(2, 3, 1.0).as_view(), None, None).unwrap();
        let [a, b] = [shard(), shard()];
        let both = Points::concatenate(&[&a, &b]).unwrap();
        for shards in [&[&a, &a][..], &[&a, &b, &a], &[&both, &a], &[&a.gathered(&[1]), &a], &[&a.gathered(&[]), &both]]
        {
            assert_eq!(Points::concatenate(shards).err(), Some(Repeated));
        }
        assert!(
            Points::concatenate(&[&both, &shard()]).is_ok() && Points::concatenate(&[&a.gathered(&[1]), &b]).is_ok()
        );
    }
}
