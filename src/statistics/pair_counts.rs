//! Pair counts: for each radius, the number of random disjoint pairs of records whose distance is at most the radius.
//!
//! Q(nu) is the number of pairs with a distance of at most nu, summed over several independent random pairings of the
//! records. (If the number of records is odd, one record of each pairing stays alone.) A pair is counted for every
//! radius that is at least its computed distance. This distance is a symmetric function of the two records alone. A
//! pass takes time linear in the number of records, while [`super::ball_counts`] compares every pair.
//!
//! Pairings are hidden randomness, which [`Stream`] describes. The bound below holds if the pairings of the two data
//! sets are coupled. This is enough because no output reveals which pairing was used.
//!
//! With a target f, an entry is the count minus f times the number of pairs; [`super::target`] gives the reason.
//!
//! **Neighbors and sensitivity**, for every single entry, with k pairings: k under both relations. *Proof.* If a record
//! is replaced, both data sets have the same pairings, and the record is in at most one pair of each pairing. Now let a
//! record be added as the last of n + 1 records. A pairing is a [`matching`]. With the same randomness, the matching of
//! n + 1 records has one pair more if n is odd, and differs in at most one pair if n is even. In either case a count
//! moves by at most 1. With a target f, an additional pair moves an entry by at most max(f, 1 - f), but a changed pair
//! can still move the entry by 1. So a target does not reduce the sensitivity. Every pairing has its own randomness, so
//! the choices for the new record in one pairing do not change the other pairings. The distribution of a pairing does
//! not depend on the order of the records, so the new record may be in any row. ∎
//!
//! Weighted records are first kept or dropped by their own hidden coins, with the probability given by their weights,
//! and the kept records are paired. *Claim:* both bounds are k. *Proof.* Let the other records have the same coins in
//! both data sets. If the changed record is kept in both data sets or in neither, the data sets have equally many kept
//! records in the same rows, and the proof for a replaced record applies. Otherwise one data set contains the changed
//! record r, in any row, and the other does not. A pairing is a uniform matching of the kept records. So its
//! distribution does not change if the records are renumbered such that r is the last record. After the renumbering,
//! the proof for an added record applies, and the count moves by at most 1 for each of the k independent pairings. The
//! renumbering is necessary for the coupling: without it, a record that is added or removed in a middle row may change
//! many pairs of a matching with the same random numbers. The coins and pairings are never shown, and the release
//! depends on them only through the count. The bound holds for each pair of coupled choices, so it also holds for the
//! mixture over all choices. ∎ A test that runs twice with the same random numbers cannot check this claim, so
//! `tests/test_laws.py` tests the distribution.

use nalgebra::DMatrixView;

use super::target::Target;
use super::prelude::*;
use crate::numeric::dispatch::{self, Kernel};
use crate::numeric::distance::distance;
use crate::release::streams::{PARTS, Stream};
use crate::runtime::parallel_fold::{cumulative, sum_blocks};
use crate::sampler::uniform::matching;

/// The approximate number of coordinates per task. A task takes less than a millisecond even with cold caches, so a
/// single task runs without starting another thread.
const TASK: usize = 1 << 16;

/// The number of coordinates that are fetched together. The records of random pairs lie anywhere in memory, and many
/// simultaneous fetches take little longer than a single fetch.
const FETCH: usize = 1 << 10;

/// Counts each pair at the smallest radius that contains the pair.
struct Pairs<'a> {
    points: DMatrixView<'a, f64>,
    pairs: &'a [[usize; 2]],
    radii: &'a [f64],
    counts: &'a mut [i64],
}

impl Kernel for Pairs<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let d = self.points.nrows();
        let mut fetched = Vec::with_capacity(FETCH.max(2 * d));
        for group in self.pairs.chunks((FETCH / 2 / d.max(1)).max(1)) {
            fetched.clear();
            for &record in group.as_flattened() {
                fetched.extend_from_slice(self.points.column(record).as_slice());
            }
            for pair in 0..group.len() {
                let (x, y) = fetched[2 * pair * d..][..2 * d].split_at(d);
                let apart = distance(x, y);
                if let Some(count) = self.counts.get_mut(self.radii.partition_point(|&radius| radius < apart)) {
                    *count += 1;
                }
            }
        }
    }
}

/// For each radius, the number of pairs within the radius, summed over random pairings, minus the target's share of all
/// pairs, in units of 2^-bits.
pub struct PairCounts {
    radii: Vec<f64>,
    pairings: usize,
    stream: Stream,
    target: Target,
}

impl PairCounts {
    /// Radii must be finite, not negative and ascending, and there must be fewer than 2^24 pairings. The target (p, k)
    /// is the share p/2^k. With the target (0, 0), the entries are plain counts.
    pub fn new(
        radii: Vec<f64>,
        pairings: usize,
        stream: Stream,
        bits: u32,
        target: (u64, u32),
    ) -> Result<Self, BadParameter> {
        // The last part of the stream is for the coins of weighted records.
        if pairings >= PARTS {
            return Err(BadParameter(format!("the number of pairings must be below {PARTS}, got {pairings}")));
        }
        Ok(Self {
            radii: checked_radii(radii)?,
            pairings,
            stream,
            target: Target::new(target, bits)?,
        })
    }

    /// The sensitivity of an entry, for any target.
    pub fn bound(pairings: usize, bits: u32) -> Sensitivity {
        let pairings = pairings as f64;
        Sensitivity::new(pairings, pairings).scaled(bits)
    }
}

impl Statistic for PairCounts {
    fn dimension(&self) -> Option<usize> {
        None
    }

    fn adds_over_records(&self) -> bool {
        false
    }

    fn sensitivity(&self) -> Sensitivity {
        Self::bound(self.pairings, self.target.bits())
    }

    /// The public parameters do not contain the pairings, because the pairings are hidden.
    fn parameters(&self) -> Parameters {
        Parameters::of([
            ("radii", self.radii.as_slice().into()),
            ("pairings", self.pairings.into()),
            ("target", self.target.fraction().as_slice().into()),
            ("bits", self.target.bits().into()),
        ])
    }

    fn coins(&self) -> Option<&Stream> {
        Some(&self.stream)
    }

    fn exact(&self, points: &Points, pulse: &mut dyn Pulse) -> Result<Exact, Interrupted> {
        let pairs: Vec<_> = (0..self.pairings).flat_map(|k| matching(&mut self.stream.part(k), points.n())).collect();
        let counts = counts(points.dense().view(), &pairs, &self.radii, pulse)?;
        Ok(Exact::table(self.target.signed(counts, pairs.len() as i128), self.sensitivity()))
    }
}

impl Kind for PairCounts {
    const NAME: &'static str = "pair counts";
    const SUM: bool = false;

    fn read(given: &mut Arguments) -> Result<Self, BadParameter> {
        let (pairings, bits) = (given.size("pairings")?, given.bits(COUNT_BITS_MAX)?);
        Self::new(given.floats("radii")?, pairings, given.stream()?, bits, given.fraction("target")?)
    }

    fn bound_of(given: &mut Arguments) -> Result<Bound, BadParameter> {
        let (pairings, bits) = (given.size("pairings")?, given.bits(COUNT_BITS_MAX)?);
        Ok(Bound::table(Self::bound(pairings, bits)))
    }

    #[cfg(test)]
    fn examples(_theta: &[f64], scale: f64, _n: usize) -> Vec<Result<Self, BadParameter>> {
        use crate::release::streams::Streams;
        use crate::release::tape::{Draw, Tape};
        let stream = || Draw::new(Streams::from_key([3; 32]), crate::release::sensitivity::Neighbours::Replace).hidden();
        vec![Self::new(super::tests::radii(scale), 3, stream(), 2, (0, 0)), Self::new(super::tests::radii(scale), 1, stream(), 9, (317, 9))]
    }
}

/// For each radius, the number of the pairs that lie within the radius.
fn counts(
    points: DMatrixView<'_, f64>,
    pairs: &[[usize; 2]],
    radii: &[f64],
    pulse: &mut dyn Pulse,
) -> Result<Vec<i128>, Interrupted> {
    let d = points.nrows();
    let task = (TASK / d.max(1)).max(1);
    let counts = sum_blocks(pairs.len(), 2 * d, task, radii.len(), pulse, |counts, some| {
        dispatch::vectorised(Pairs { points, pairs: &pairs[some], radii, counts });
    })?;
    Ok(cumulative(counts))
}

#[cfg(test)]
mod tests {
    use nalgebra::DMatrix;
    use proptest::prelude::*;

    use super::*;
    use crate::release::sensitivity::Neighbours;
    use crate::release::streams::Streams;
    use crate::release::tape::{Draw, Tape};
    use crate::statistics::ball_counts::bands::within;
    use crate::statistics::tests::values;

    fn hidden() -> Stream {
        Draw::new(Streams::from_key([3; 32]), Neighbours::Replace).hidden()
    }

    fn pair_counts(points: &DMatrix<f64>, radii: &[f64], pairings: usize) -> Vec<i64> {
        values(&PairCounts::new(radii.to_vec(), pairings, hidden(), 0, (0, 0)).unwrap(), points)
    }

    fn value() -> impl Strategy<Value = f64> {
        prop_oneof![
            6 => (-3i32..4).prop_map(f64::from),
            2 => -2.0..2.0f64,
            1 => (-1000i32..1000).prop_map(|e| 2f64.powi(e)),
        ]
    }

    fn records() -> impl Strategy<Value = DMatrix<f64>> {
        (1..60usize, 1..5usize).prop_flat_map(|(n, d)| {
            proptest::collection::vec(value(), n * d).prop_map(move |values| DMatrix::from_vec(d, n, values))
        })
    }

    fn radii() -> impl Strategy<Value = Vec<f64>> {
        prop_oneof![
            (-6i32..6, 1..20i32).prop_map(|(e, k)| (e..e + k).map(|e| 2f64.powi(e)).collect()),
            Just((-1022..1000).map(|e| 2f64.powi(e)).collect()),
            Just(vec![0.0, 1.0]),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn a_pair_counts_where_its_distance_is_within_the_radius((points, radii) in (records(), radii())) {
            let pairs = matching(&mut hidden().part(0), points.ncols());
            // The margin covers the rounding of the distance.
            let [fewest, most] = [1.0 - 1e-12, 1.0 + 1e-12].map(|factor| {
                let count = |&radius: &f64| pairs.iter().filter(|[x, y]| {
                    within(points.column(*x).as_slice(), points.column(*y).as_slice(), factor * radius)
                }).count() as i64;
                radii.iter().map(count).collect::<Vec<_>>()
            });
            let counts = pair_counts(&points, &radii, 1);
            for (k, count) in counts.into_iter().enumerate() {
                prop_assert!((fewest[k]..=most[k]).contains(&count), "{count} within {}", radii[k]);
            }
        }

        #[test]
        fn a_replaced_record_moves_a_count_by_at_most_the_pairings(
            (points, radii, seed) in (records(), radii(), 0..1000usize)
        ) {
            let mut neighbour = points.clone();
            neighbour.column_mut(seed % points.ncols()).fill(if seed % 3 == 0 { 1e300 } else { 0.0 });
            let [here, there] = [points, neighbour].map(|p| pair_counts(&p, &radii, 5));
            prop_assert!(here.iter().zip(&there).all(|(a, b)| a.abs_diff(*b) <= 5), "{here:?} {there:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn a_record_more_moves_a_count_by_at_most_the_pairings(
            (points, radii, pairings) in (records(), radii(), 1..6usize)
        ) {
            let n = points.ncols();
            let fewer = pair_counts(&points.columns(0, n - 1).into_owned(), &radii, pairings);
            let more = pair_counts(&points, &radii, pairings);
            prop_assert!(fewer.iter().zip(&more).all(|(a, b)| a.abs_diff(*b) <= pairings as u64), "{fewer:?} {more:?}");
        }
    }

    /// Takes up to eight records at 0 or 1. The bound for one pairing holds and is attained, both if there is an
    /// additional pair and if a pair changes.
    #[test]
    fn the_bound_of_an_added_record_is_tight() {
        let mut widest = [0, 0];
        for (n, places) in (0..8usize).flat_map(|n| (0..1usize << (n + 1)).map(move |places| (n, places))) {
            let points = DMatrix::from_fn(1, n + 1, |_, i| (places >> i & 1) as f64);
            let shorter = pair_counts(&points.columns(0, n).into_owned(), &[0.5], 1);
            let moved = pair_counts(&points, &[0.5], 1)[0].abs_diff(shorter[0]);
            widest[n % 2] = widest[n % 2].max(moved);
        }
        assert_eq!(widest, [1, 1]);
    }

    #[test]
    fn a_target_is_taken_off_for_every_pair() {
        let points = DMatrix::from_fn(1, 9, |_, i| i as f64);
        let counts = |target| values(&PairCounts::new(vec![2.0, 9.0], 3, hidden(), 4, target).unwrap(), &points);
        let (plain, signed) = (counts((0, 0)), counts((5, 3)));
        // Three pairings of four pairs.
        assert!(plain.iter().zip(&signed).all(|(plain, signed)| plain - 12 * 10 == *signed));
        assert_eq!(plain[1], 12 << 4);
    }

    #[test]
    fn pairings_differ_and_every_pair_counts_once() {
        let points = DMatrix::from_fn(1, 1001, |_, i| i as f64);
        let counts = pair_counts(&points, &[10.0, 20.0, 40.0, 80.0, 1e9], 6);
        assert_eq!(counts[4], 6 * 500);
        // If one pairing were repeated, every count would be a multiple of 6.
        assert!(counts[0] > 0 && counts.iter().any(|count| count % 6 != 0), "{counts:?}");
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
        assert_eq!(counts(points.as_view(), &[[0, 1]], &[1.0], &mut Stop), Err(Interrupted));
    }
}
