//! Ball counts: for each record and each radius, how many records lie within the radius of the record. One pass over
//! the pairs counts for all radii.
//!
//! | paper | here |
//! |---|---|
//! | N_i(nu) | a row of [`counts`] |
//! | m N(nu) | [`top_sums`]: the sum of the m largest counts, kept an integer |
//!
//! **Neighbors and sensitivity** of the sum of the m largest counts, for every single radius: m + n - 2 if a record is
//! replaced. There is no bound if a record is added or removed, because a bound would depend on n, which is private
//! under this relation. *Proof.* The sum is the maximum over all sets of m records, so it moves by no more than the sum
//! over one set. The count of the replaced record lies between 1 and n and moves by at most n - 1. Every other count
//! moves by at most 1. So the sum over a set that contains the replaced record moves by at most n - 1 + m - 1, and the
//! sum over any other set by at most m. For n >= 2 the second bound is not larger than the first. For n = 1 the only
//! count is always 1. ∎

pub mod bands;
mod box_tree;
mod tiles;

use nalgebra::{DMatrix, DMatrixView};
use rayon::prelude::*;

use self::bands::Band;
use super::prelude::*;
use crate::runtime::pool;

/// The largest number of records, because counts have 32 bits. Counting for more records would take months.
pub const RECORDS_MAX: usize = (1 << 32) - 1;

/// For each radius the sum of the m largest ball counts of n records.
#[derive(Debug, Clone, PartialEq)]
pub struct LargestBallCounts {
    radii: Vec<f64>,
    m: usize,
    n: usize,
}

impl LargestBallCounts {
    /// Radii must be finite, not negative and ascending. n is the public number of records, at most [`RECORDS_MAX`].
    pub fn new(radii: Vec<f64>, m: usize, n: usize) -> Result<Self, BadParameter> {
        if n > RECORDS_MAX {
            return Err(BadParameter(format!("the balls of at most {RECORDS_MAX} records can be counted, got {n}")));
        }
        Ok(Self { radii: checked_radii(radii)?, m, n })
    }

    /// The sensitivity of an entry.
    pub fn bound(m: usize, n: usize) -> Sensitivity {
        Sensitivity::new((m as f64 + n as f64 - 2.0).max(0.0), f64::INFINITY)
    }
}

impl Statistic for LargestBallCounts {
    fn dimension(&self) -> Option<usize> {
        None
    }

    fn adds_over_records(&self) -> bool {
        false
    }

    fn sensitivity(&self) -> Sensitivity {
        Self::bound(self.m, self.n)
    }

    fn parameters(&self) -> Parameters {
        Parameters::of([("radii", self.radii.as_slice().into()), ("m", self.m.into()), ("n", self.n.into())])
    }

    fn exact(&self, points: &Points, pulse: &mut dyn Pulse) -> Result<Exact, Interrupted> {
        if points.n() > self.n {
            // The bound holds for n records only. An answer without a bound is never released.
            return Ok(Exact::table(vec![0; self.radii.len()], self.sensitivity()).unbounded());
        }
        let sums = top_sums(&counts(points.dense().view(), &self.radii, pulse)?, self.m);
        Ok(Exact::table(sums.into_iter().map(i128::from).collect(), self.sensitivity()))
    }
}

impl Kind for LargestBallCounts {
    const NAME: &'static str = "largest ball counts";
    const SUM: bool = false;

    fn read(given: &mut Arguments) -> Result<Self, BadParameter> {
        Self::new(given.floats("radii")?, given.size("m")?, given.size("n")?)
    }

    fn bound_of(given: &mut Arguments) -> Result<Bound, BadParameter> {
        Ok(Bound::table(Self::bound(given.size("m")?, given.size("n")?)))
    }

    #[cfg(test)]
    fn examples(_theta: &[f64], scale: f64, n: usize) -> Vec<Result<Self, BadParameter>> {
        vec![Self::new(super::tests::radii(scale), n / 2 + 1, n)]
    }
}

/// For each record (a column) and each radius (a row), the number of records within the radius of the record, including
/// the record itself.
///
/// Radii must be finite, not negative and ascending. Records must be finite, and there may be at most [`RECORDS_MAX`]
/// records.
pub fn counts(points: DMatrixView<'_, f64>, radii: &[f64], pulse: &mut dyn Pulse) -> Result<DMatrix<u32>, Interrupted> {
    let kernel = if box_tree::serves(points) { box_tree::counts } else { tiles::counts };
    counts_by(kernel, points, radii, pulse, false)
}

/// The same result as [`counts`], computed by comparing every pair even if a tree is faster. Tests and benchmarks use
/// this function.
pub fn pairwise_counts(
    points: DMatrixView<'_, f64>,
    radii: &[f64],
    pulse: &mut dyn Pulse,
) -> Result<DMatrix<u32>, Interrupted> {
    counts_by(tiles::counts, points, radii, pulse, false)
}

/// A way to count the balls of one band.
type Counting = fn(DMatrixView<'_, f64>, &Band, &mut DMatrix<u32>, &mut dyn Pulse, bool) -> Result<(), Interrupted>;

fn counts_by(
    kernel: Counting,
    points: DMatrixView<'_, f64>,
    radii: &[f64],
    pulse: &mut dyn Pulse,
    portable: bool,
) -> Result<DMatrix<u32>, Interrupted> {
    let mut counts = DMatrix::zeros(radii.len(), points.ncols());
    for band in Band::split(radii) {
        kernel(points, &band, &mut counts, pulse, portable)?;
    }
    Ok(counts)
}

/// For each radius (a row of `counts`) the sum of the m largest counts.
pub fn top_sums(counts: &DMatrix<u32>, m: usize) -> Vec<u64> {
    let m = m.min(counts.ncols());
    pool::install(|| {
        (0..counts.nrows())
            .into_par_iter()
            .map(|radius| {
                let mut row: Vec<u32> = counts.row(radius).iter().copied().collect();
                if 0 < m && m < row.len() {
                    row.select_nth_unstable_by(m - 1, |a, b| b.cmp(a));
                }
                row[..m].iter().map(|&count| u64::from(count)).sum()
            })
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::bands::within;
    use super::*;
    use crate::runtime::pulse::Silent;

    /// The predicate, pair by pair.
    fn oracle(points: &DMatrix<f64>, radii: &[f64]) -> DMatrix<u32> {
        DMatrix::from_fn(radii.len(), points.ncols(), |k, i| {
            let x = points.column(i);
            points.column_iter().filter(|y| within(x.as_slice(), y.as_slice(), radii[k])).count() as u32
        })
    }

    /// Values with many ties and duplicates. Some values are subnormal, huge or of any magnitude.
    fn value() -> impl Strategy<Value = f64> {
        prop_oneof![
            6 => (-3i32..4).prop_map(f64::from),
            2 => -2.0..2.0f64,
            1 => (-1074i32..1000, any::<bool>()).prop_map(|(e, sign)| 2f64.powi(e / 2) * 2f64.powi(e - e / 2) * if sign { 1.0 } else { -1.0 }),
            1 => Just(1e-310),
        ]
    }

    fn records(most: usize, dimensions: std::ops::Range<usize>) -> impl Strategy<Value = DMatrix<f64>> {
        (1..most, dimensions).prop_flat_map(|(n, d)| {
            proptest::collection::vec(value(), n * d).prop_map(move |values| DMatrix::from_vec(d, n, values))
        })
    }

    fn radii() -> impl Strategy<Value = Vec<f64>> {
        let doubling = (-4i32..4, 1..20usize).prop_map(|(e, k)| (0..k as i32).map(|i| 2f64.powi(e + i)).collect());
        let integers = (1..30usize).prop_map(|k| (0..k).map(|i| i as f64).collect());
        let any = proptest::collection::vec(prop_oneof![value(), Just(0.0)], 0..40).prop_map(|mut radii: Vec<f64>| {
            radii.iter_mut().for_each(|r| *r = r.abs());
            radii.sort_by(f64::total_cmp);
            radii
        });
        prop_oneof![doubling, integers, any]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn counts_are_those_of_the_predicate_on_every_path((points, radii) in (records(120, 1..12), radii())) {
            let expected = oracle(&points, &radii);
            prop_assert_eq!(&counts(points.as_view(), &radii, &mut Silent).unwrap(), &expected);
            prop_assert_eq!(&counts_by(tiles::counts, points.as_view(), &radii, &mut Silent, true).unwrap(), &expected);
        }

        #[test]
        fn coordinates_in_several_chunks_count_the_same((points, radii) in (records(20, 120..400), radii())) {
            prop_assert_eq!(counts(points.as_view(), &radii, &mut Silent).unwrap(), oracle(&points, &radii));
        }

        #[test]
        fn the_predicate_is_right_where_distances_are_exact(
            x in -1000i32..1000, y in -1000i32..1000, e in -1074i32..980, k in 0i32..1500
        ) {
            // In one dimension, after scaling by a power of two, both the distance and the radius are exact.
            let unit = 2f64.powi(e / 2) * 2f64.powi(e - e / 2);
            let inside = (x - y).abs() <= k;
            prop_assert_eq!(within(&[f64::from(x) * unit], &[f64::from(y) * unit], f64::from(k) * unit), inside);
        }

        #[test]
        fn top_sums_are_those_of_a_sort((points, radii, m) in (records(60, 1..4), radii(), 0..70usize)) {
            let counts = counts(points.as_view(), &radii, &mut Silent).unwrap();
            let sorted: Vec<u64> = counts.row_iter().map(|row| {
                let mut row: Vec<u64> = row.iter().map(|&count| u64::from(count)).collect();
                row.sort_unstable();
                row.iter().rev().take(m).sum()
            }).collect();
            prop_assert_eq!(top_sums(&counts, m), sorted);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn a_tree_counts_the_same((points, radii, portable) in (records(300, 1..4), radii(), any::<bool>())) {
            let counts = counts_by(box_tree::counts, points.as_view(), &radii, &mut Silent, portable).unwrap();
            prop_assert_eq!(counts, oracle(&points, &radii));
        }
    }

    #[test]
    fn a_large_tree_counts_the_same_for_any_threads() {
        // Clusters of all sizes, with duplicates.
        let mut state = 1u64;
        let points = DMatrix::from_fn(2, 5000, |_, i| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            ((state >> 44) as f64 / 1048576.0 - 0.5) * 2f64.powi(i as i32 % 12) + f64::from(i as i32 % 3)
        });
        let radii: Vec<f64> = (-12..12).map(|e| 2f64.powi(e)).collect();
        assert!(box_tree::serves(points.as_view()));
        let expected = pairwise_counts(points.as_view(), &radii, &mut Silent).unwrap();
        for threads in [1, 2, 4] {
            pool::set_threads(Some(threads));
            assert_eq!(counts(points.as_view(), &radii, &mut Silent).unwrap(), expected);
        }
        pool::set_threads(None);
    }

    #[test]
    fn an_interrupt_stops_the_counting() {
        struct Stop;
        impl Pulse for Stop {
            fn beat(&mut self, _done: f64) -> Result<(), Interrupted> {
                Err(Interrupted)
            }
        }
        let points = DMatrix::from_element(2, 100, 1.0);
        assert_eq!(counts(points.as_view(), &[1.0], &mut Stop), Err(Interrupted));
    }
}
