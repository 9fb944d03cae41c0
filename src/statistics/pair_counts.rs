//! Pair counts: how many of some random disjoint pairs of records lie within each radius.
//!
//! Q(nu) is the number of pairs within nu of each other, summed over several independent random pairings of the records
//! (the last record of an odd number stays alone). A record is in at most one pair of each pairing, so one replaced
//! record moves every Q(nu) by at most the number of pairings. A pass costs time linear in the number of records, where
//! ball counts look at every pair.
//!
//! Pairings are public randomness: independent of the data, the same for neighbours. A pair counts from the first radius
//! that is no less than its computed distance: a symmetric function of the two records alone.

use nalgebra::DMatrixView;
use rand_chacha::ChaCha20Rng;

use crate::numeric::dispatch::{self, Kernel};
use crate::numeric::distance::distance;
use crate::runtime::parallel_fold::{cumulative, sum_blocks};
use crate::runtime::pulse::{Interrupted, Pulse};
use crate::sampler::uniform::permutation;

/// Coordinates that one task looks at, about: below a millisecond with cold caches, so one task is not worth a thread.
const TASK: usize = 1 << 16;

/// Coordinates that are fetched together: records of random pairs lie anywhere, and many fetches at once take little
/// longer than one.
const FETCH: usize = 1 << 10;

/// Counts pairs at the first radius that has them inside.
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

/// For each radius, the number of pairs within it, summed over `pairings` random pairings.
///
/// Radii are finite, not negative and ascending; records are finite.
pub fn counts(
    points: DMatrixView<'_, f64>,
    radii: &[f64],
    pairings: usize,
    mut rng: ChaCha20Rng,
    pulse: &mut dyn Pulse,
) -> Result<Vec<i64>, Interrupted> {
    assert!(radii.is_sorted() && radii.iter().all(|r| r.is_finite() && *r >= 0.0), "radii: finite, ascending, >= 0");
    let (d, n) = points.shape();
    let mut pairs = Vec::with_capacity(n / 2 * pairings);
    for _ in 0..pairings {
        pairs.extend_from_slice(permutation(&mut rng, n).as_chunks::<2>().0);
    }
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
    use crate::release::tape::Streams;
    use crate::runtime::pulse::Silent;
    use crate::statistics::ball_counts::bands::within;

    fn rng() -> ChaCha20Rng {
        Streams::from_key([3; 32]).public()
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
            let order = permutation(&mut rng(), points.ncols());
            // Up to rounding of the distance.
            let [fewest, most] = [1.0 - 1e-12, 1.0 + 1e-12].map(|factor| {
                let count = |&radius: &f64| order.as_chunks::<2>().0.iter().filter(|[x, y]| {
                    within(points.column(*x).as_slice(), points.column(*y).as_slice(), factor * radius)
                }).count() as i64;
                radii.iter().map(count).collect::<Vec<_>>()
            });
            let counts = counts(points.as_view(), &radii, 1, rng(), &mut Silent).unwrap();
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
            let [here, there] = [points, neighbour].map(|p| counts(p.as_view(), &radii, 5, rng(), &mut Silent).unwrap());
            prop_assert!(here.iter().zip(&there).all(|(a, b)| a.abs_diff(*b) <= 5), "{here:?} {there:?}");
        }
    }

    #[test]
    fn pairings_differ_and_every_pair_counts_once() {
        let points = DMatrix::from_fn(1, 1001, |_, i| i as f64);
        let counts = counts(points.as_view(), &[10.0, 1e9], 6, rng(), &mut Silent).unwrap();
        assert_eq!(counts[1], 6 * 500);
        // Under one repeated pairing the first count would be a multiple of 6.
        assert!(counts[0] > 0 && counts[0] % 6 != 0, "{counts:?}");
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
        assert_eq!(counts(points.as_view(), &[1.0], 1, rng(), &mut Stop), Err(Interrupted));
    }
}
