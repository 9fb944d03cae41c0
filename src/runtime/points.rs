//! The records as statistics see them. One pass validates the records. Afterwards they are read in place, or if
//! [`Admission`] changes any record, mapped whenever they are read.
//!
//! For any array, ball and replacement of the caller, a kernel sees only values that are finite and at most 2^1000 in
//! magnitude (up to the rounding of a projection). This is true only if the memory does not change after the pass. A
//! caller who cannot promise this must pass a copy.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use nalgebra::{DMatrix, DMatrixView};

use crate::numeric::block::Block;
use crate::numeric::dispatch::{self, Kernel};
use crate::postprocess::projection::Ball;
use crate::runtime::admission::{Admission, Refused};
use crate::runtime::identity::{Identity, distinct};
use crate::runtime::memory::Table;
use crate::runtime::parallel_fold::{records_per_block, sum_records};
use crate::runtime::pool;
use crate::runtime::pulse::{Interrupted, Pulse};
use crate::runtime::ranking::Ranking;
use crate::runtime::weighting::Weighting;

/// The number of coordinates in a block that one thread copies.
const BLOCK: usize = 1 << 15;

/// The largest number of coordinates for which ranks are counted on a partly sorted copy ([`Ranking`]). The copy takes
/// at most 1 GiB (half of this for singles). It saves time because a search makes dozens of queries. With more
/// coordinates, every query is a pass over the records. [`RANKED_FILE`] is the limit for records in a file, because
/// users of files probably have little memory.
const RANKED: usize = 1 << 27;
const RANKED_FILE: usize = 1 << 21;

/// The error that shards have a record in common. A record that counts twice would change a sum by twice its
/// sensitivity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repeated;

impl fmt::Display for Repeated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("these parts do not form one data set: they have records in common")
    }
}

impl std::error::Error for Repeated {}

/// The result of an admission. It can be stored while the memory of the records is not borrowed.
pub struct Admitted {
    d: usize,
    n: usize,
    /// The admission, if it changes any record.
    admission: Option<Admission>,
    /// The admissions from which the records come. Two sets can have a record in common only if they have an admission
    /// in common.
    admissions: Vec<Identity>,
    /// The weights, if records have weights; the records are then sorted by weight.
    weighting: Option<Weighting>,
    /// The first query about ranks creates this copy.
    ranking: Mutex<Option<Ranking>>,
}

impl Admitted {
    /// The dimension.
    pub fn d(&self) -> usize {
        self.d
    }

    /// The number of records.
    pub fn n(&self) -> usize {
        self.n
    }
}

/// The admitted records.
pub struct Points<'a> {
    table: Table<'a>,
    admitted: Arc<Admitted>,
}

impl<'a> Points<'a> {
    /// Reads every record once. Kernels see each record with its coordinates clamped to 2^1000, and projected onto
    /// `ball` if there is a ball.
    ///
    /// A record with a coordinate that is not finite becomes `replacement`; without a replacement it stops the
    /// admission.
    ///
    /// # Panics
    ///
    /// If the ball or the replacement has another dimension than the points.
    pub fn admit(
        table: impl Into<Table<'a>>,
        ball: Option<&Ball>,
        replacement: Option<&[f64]>,
        pulse: &mut dyn Pulse,
    ) -> Result<Self, Refused> {
        let table = table.into();
        let admission = Admission::new(ball, replacement, table.d());
        let changes = admission.changes(&table, pulse)? || !table.stays();
        Ok(Self::new(table, changes.then_some(admission), vec![Identity::fresh()]))
    }

    /// Returns an error if a record could not be read. If so, results that were computed from the records must not be
    /// used.
    pub fn check(&self) -> Result<(), String> {
        self.table.check()
    }

    /// The points of an earlier admission with the same memory, which is not validated again. `None` if the memory has
    /// another shape.
    pub fn again(table: impl Into<Table<'a>>, admitted: &Arc<Admitted>) -> Option<Self> {
        let table = table.into();
        let same = (table.d(), table.n()) == (admitted.d, admitted.n);
        same.then(|| Self { table, admitted: Arc::clone(admitted) })
    }

    /// The same records with a shorter lifetime.
    pub fn borrowed(&self) -> Points<'_> {
        Points { table: self.table.borrowed(), admitted: Arc::clone(&self.admitted) }
    }

    /// The result of the admission, which [`Self::again`] needs in addition to the memory.
    pub fn admitted(&self) -> &Arc<Admitted> {
        &self.admitted
    }

    /// A copy of the records of all shards, one shard after the other. Shards that may have a record in common are
    /// refused.
    ///
    /// # Panics
    ///
    /// If there are no shards, if their dimensions differ, or if their records have weights.
    pub fn concatenate(shards: &[&Self]) -> Result<Points<'static>, Repeated> {
        let d = shards.first().expect("at least one shard is needed").d();
        assert!(shards.iter().all(|shard| shard.d() == d), "shards of one data set have one dimension");
        assert!(
            shards.iter().all(|shard| shard.weighting().is_none()),
            "records get weights only after shards are joined"
        );
        let admissions =
            distinct(shards.iter().flat_map(|shard| shard.admissions().iter().copied())).ok_or(Repeated)?;
        let n = shards.iter().map(|shard| shard.n()).sum();
        let mut whole = DMatrix::zeros(d, n);
        let mut rest = whole.as_mut_slice();
        for shard in shards {
            let (target, behind) = rest.split_at_mut(shard.n() * d);
            fill(target, d, |records, target| shard.load(records, target));
            rest = behind;
        }
        Ok(Points::new(whole.into(), None, admissions))
    }

    /// A copy of the records in some rows, in this order and with their weights, if they have any.
    pub(crate) fn gathered(&self, rows: &[usize]) -> Points<'static> {
        match self.weighting() {
            None => self.copied(rows),
            Some(weighting) => self.arranged(rows, rows.iter().map(|&row| weighting.weights()[row]).collect()),
        }
    }

    /// A copy of all records with new weights, one for each row.
    pub(crate) fn weighted(&self, weights: Vec<u32>) -> Points<'static> {
        self.arranged(&(0..self.n()).collect::<Vec<_>>(), weights)
    }

    /// A copy of the records in some rows, in this order, without their weights.
    pub(crate) fn unweighted(&self, rows: &[usize]) -> Points<'static> {
        self.copied(&rows.iter().map(|&row| self.place(row)).collect::<Vec<_>>())
    }

    fn arranged(&self, rows: &[usize], weights: Vec<u32>) -> Points<'static> {
        let order = Weighting::order(&weights);
        let copy = self.copied(&order.iter().map(|&index| self.place(rows[index])).collect::<Vec<_>>());
        Points::with_weighting(copy.table, None, self.admissions().to_vec(), Some(Weighting::new(weights)))
    }

    /// The position at which the record of a row is stored.
    fn place(&self, row: usize) -> usize {
        self.weighting().map_or(row, |weighting| weighting.place(row))
    }

    /// A copy; singles stay singles.
    fn copied(&self, places: &[usize]) -> Points<'static> {
        let d = self.d();
        if self.singles(0..0).is_some() {
            let mut copy = DMatrix::<f32>::zeros(d, places.len());
            fill(copy.as_mut_slice(), d, |records, target| {
                for (target, &place) in target.chunks_exact_mut(d).zip(&places[records]) {
                    let record = self.singles(place..place + 1).expect("they lie as singles");
                    target.copy_from_slice(record.coordinates());
                }
            });
            return Points::new(copy.into(), None, self.admissions().to_vec());
        }
        let mut copy = DMatrix::zeros(d, places.len());
        fill(copy.as_mut_slice(), d, |records, target| {
            for (target, &place) in target.chunks_exact_mut(d).zip(&places[records]) {
                self.load(place..place + 1, target);
            }
        });
        Points::new(copy.into(), None, self.admissions().to_vec())
    }

    /// Records that another process has admitted, with their admissions. `None` if the coordinates do not form records
    /// of this dimension.
    pub(crate) fn of_admissions(coordinates: Vec<f64>, d: usize, admissions: Vec<Identity>) -> Option<Points<'static>> {
        let whole = d > 0 && coordinates.len().is_multiple_of(d) && coordinates.iter().all(|x| x.is_finite());
        let n = coordinates.len() / d.max(1);
        whole.then(|| Points::new(DMatrix::from_vec(d, n, coordinates).into(), None, admissions))
    }

    fn new(table: Table<'a>, admission: Option<Admission>, admissions: Vec<Identity>) -> Self {
        Self::with_weighting(table, admission, admissions, None)
    }

    fn with_weighting(
        table: Table<'a>,
        admission: Option<Admission>,
        admissions: Vec<Identity>,
        weighting: Option<Weighting>,
    ) -> Self {
        let (d, n) = (table.d(), table.n());
        let ranking = Mutex::new(None);
        Self { table, admitted: Arc::new(Admitted { d, n, admission, admissions, weighting, ranking }) }
    }

    /// The dimension.
    pub fn d(&self) -> usize {
        self.admitted.d
    }

    /// The number of records.
    pub fn n(&self) -> usize {
        self.admitted.n
    }

    /// Whether the records have weights.
    pub fn is_weighted(&self) -> bool {
        self.weighting().is_some()
    }

    /// The weights of the records, or `None` if they have no weights.
    pub(crate) fn weighting(&self) -> Option<&Weighting> {
        self.admitted.weighting.as_ref()
    }

    /// The number of records, or the sum of their weights.
    pub(crate) fn mass(&self) -> i128 {
        self.weighting().map_or(self.n() as i128, Weighting::mass)
    }

    /// The admissions from which the records come: one admission, or the admissions of all shards. A sample has the
    /// admissions of the whole data set.
    pub(crate) fn admissions(&self) -> &[Identity] {
        &self.admitted.admissions
    }

    /// Some records for a kernel: in place, or loaded into `scratch`.
    pub(crate) fn block<'s>(&'s self, records: Range<usize>, scratch: &'s mut Vec<f64>) -> Block<'s> {
        let (d, n) = (self.d(), records.len());
        if let Some(block) = self.in_place(records.clone()) {
            return Block::new(block, d, n);
        }
        scratch.resize(n * d, 0.0);
        self.load(records, scratch);
        Block::new(scratch, d, n)
    }

    /// Some records in place, or `None` if they are not stored as singles.
    pub(crate) fn singles(&self, records: Range<usize>) -> Option<Block<'_, f32>> {
        let (d, n) = (self.d(), records.len());
        let block = if self.admitted.admission.is_some() { None } else { self.table.singles(records) };
        block.map(|block| Block::new(block, d, n))
    }

    /// All records one after the other in memory, in place or as a copy, for kernels that need all records at once.
    pub fn dense(&self) -> Dense<'_> {
        let (d, n) = (self.d(), self.n());
        let coordinates = self.in_place(0..n).map_or_else(
            || {
                let mut copy = vec![0.0; n * d];
                fill(&mut copy, d, |records, target| self.load(records, target));
                Cow::Owned(copy)
            },
            Cow::Borrowed,
        );
        Dense { coordinates, d, n }
    }

    /// One record.
    pub(crate) fn record(&self, place: usize) -> Vec<f64> {
        let mut record = vec![0.0; self.d()];
        self.load(place..place + 1, &mut record);
        record
    }

    fn in_place(&self, records: Range<usize>) -> Option<&[f64]> {
        if self.admitted.admission.is_some() { None } else { self.table.in_place(records) }
    }

    /// Copies some records into a target of exactly their size.
    fn load(&self, records: Range<usize>, target: &mut [f64]) {
        self.table.load(records, target);
        if let Some(admission) = self.admitted.admission.as_ref().filter(|_| self.d() > 0) {
            admission.apply(target, self.d());
        }
    }

    /// For every coordinate the number of records at or below its threshold, or the sum of their weights.
    pub(crate) fn ranks(&self, thresholds: &[f64], pulse: &mut dyn Pulse) -> Result<Vec<i128>, Interrupted> {
        let d = self.d();
        assert_eq!(thresholds.len(), d, "the thresholds have another dimension than the points");
        let most = if self.table.stays() { RANKED } else { RANKED_FILE };
        if self.n() * d > most || self.weighting().is_some() {
            return self.ranks_by_a_pass(thresholds, pulse);
        }
        let mut cached = self.admitted.ranking.lock().unwrap_or_else(|e| e.into_inner());
        let mut ranking = match cached.take() {
            Some(ranking) => ranking,
            None => Ranking::new(self, pulse)?,
        };
        let ranks = ranking.ranks(thresholds, pulse);
        *cached = Some(ranking);
        Ok(ranks?.into_iter().map(i128::from).collect())
    }

    fn ranks_by_a_pass(&self, thresholds: &[f64], pulse: &mut dyn Pulse) -> Result<Vec<i128>, Interrupted> {
        let d = self.d();
        sum_records(self, d, records_per_block(d), d, pulse, |counts, block| {
            dispatch::vectorised(BlockRanks { block: block.view(), thresholds, counts });
        })
    }
}

/// Fills a matrix with `d` rows in parallel. `fill` gets a range of columns, and the memory of these columns.
fn fill<T: Send>(target: &mut [T], d: usize, fill: impl Fn(Range<usize>, &mut [T]) + Sync) {
    if target.is_empty() {
        return;
    }
    let per_block = (BLOCK / d).max(1);
    pool::for_each_in_parallel(target.chunks_mut(per_block * d).enumerate(), |(block, target)| {
        let first = block * per_block;
        fill(first..first + target.len() / d, target);
    });
}

/// All records, one after the other in memory.
pub struct Dense<'a> {
    coordinates: Cow<'a, [f64]>,
    d: usize,
    n: usize,
}

impl Dense<'_> {
    /// The records, one per column.
    pub fn view(&self) -> DMatrixView<'_, f64> {
        DMatrixView::from_slice(&self.coordinates, self.d, self.n)
    }
}

/// Counts, in every coordinate, the records of a block at or below the threshold.
struct BlockRanks<'a> {
    block: DMatrixView<'a, f64>,
    thresholds: &'a [f64],
    counts: &'a mut [i64],
}

impl Kernel for BlockRanks<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for record in self.block.column_iter() {
            for ((count, threshold), x) in self.counts.iter_mut().zip(self.thresholds).zip(record.as_slice()) {
                *count += i64::from(x <= threshold);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::float_scale::LARGEST;
    use crate::runtime::admission::NonFinite;
    use crate::runtime::pulse::Silent;

    #[test]
    fn doubles_are_read_where_they_lie_unless_one_of_them_must_be_changed() {
        let mut points = DMatrix::from_element(3, 40_000, 2.5);
        let admitted = Points::admit(&points, None, None, &mut Silent).unwrap();
        assert!(matches!(admitted.dense().coordinates, Cow::Borrowed(block) if std::ptr::eq(block, points.as_slice())));
        let mut scratch = Vec::new();
        assert!(std::ptr::eq(&admitted.block(7..9, &mut scratch).coordinates()[0], &points[(0, 7)]));
        assert!(scratch.is_empty());
        points[(1, 39_000)] = f64::MAX;
        let admitted = Points::admit(&points, None, None, &mut Silent).unwrap();
        let seen = admitted.block(38_999..39_001, &mut scratch).view();
        assert_eq!(seen, DMatrix::from_column_slice(3, 2, &[2.5, 2.5, 2.5, 2.5, LARGEST, 2.5]));
        assert_eq!((admitted.record(39_000), admitted.dense().view()[(1, 39_000)]), (vec![2.5, LARGEST, 2.5], LARGEST));
        points[(2, 7)] = f64::NAN;
        let refused = Points::admit(&points, None, None, &mut Silent).err();
        assert_eq!(refused, Some(Refused::NonFinite(NonFinite { record: 7, coordinate: 2 })));
    }

    #[test]
    fn singles_are_seen_as_the_doubles_that_they_are() {
        let singles = DMatrix::from_fn(3, 10_000, |i, j| ((i * 7919 + j * 104_729) % 1009) as f32 / 37.0);
        let doubles = singles.map(f64::from);
        for ball in [None, Some(Ball::new(vec![1.0, 2.0, 3.0], 12.5))] {
            let narrow = Points::admit(&singles, ball.as_ref(), None, &mut Silent).unwrap();
            let wide = Points::admit(&doubles, ball.as_ref(), None, &mut Silent).unwrap();
            assert_eq!(narrow.dense().view(), wide.dense().view());
            assert_eq!(narrow.gathered(&[5, 7, 9_999]).dense().view(), wide.gathered(&[5, 7, 9_999]).dense().view());
        }
    }

    #[test]
    fn ranks_by_a_pass_are_those_of_the_sorted_copy() {
        let matrix = DMatrix::from_fn(2, 5000, |i, j| ((i * 7 + j * 13) % 101) as f64);
        let points = Points::admit(&matrix, None, None, &mut Silent).unwrap();
        for thresholds in [[50.0, 60.5], [-1.0, 100.0], [f64::INFINITY, f64::NEG_INFINITY]] {
            let by_a_pass = points.ranks_by_a_pass(&thresholds, &mut Silent);
            assert_eq!(points.ranks(&thresholds, &mut Silent), by_a_pass);
        }
    }

    #[test]
    fn records_are_admitted_once_and_looked_at_again() {
        let points = DMatrix::from_element(2, 3, 1.0);
        let first = Points::admit(&points, None, None, &mut Silent).unwrap();
        let again = Points::again(&points, first.admitted()).unwrap();
        assert_eq!(again.admissions(), first.admissions());
        assert!(Points::again(points.columns(0, 2).into_owned(), first.admitted()).is_none());
    }

    #[test]
    fn shards_make_one_data_set() {
        let points = DMatrix::from_fn(2, 10, |i, j| (3 * i + j) as f64);
        let shard =
            |from, count| Points::admit(points.columns(from, count).into_owned(), None, None, &mut Silent).unwrap();
        let whole = Points::concatenate(&[&shard(0, 4), &shard(4, 0), &shard(4, 6)]).unwrap();
        assert_eq!((whole.dense().view(), whole.n(), whole.d()), (points.as_view(), 10, 2));
    }

    #[test]
    fn shards_with_a_record_in_common_make_no_data_set() {
        let shard = || Points::admit(DMatrix::from_element(2, 3, 1.0), None, None, &mut Silent).unwrap();
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
