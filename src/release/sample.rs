//! Hidden random samples of the records.
//!
//! A sample is chosen by hidden randomness, see [`Stream`], from the number of records alone, never from what they hold. It
//! must stay hidden, and with it the order and under add/remove the number of its records: a release about a sample that is
//! known is no release about a person who is known not to be in it, and units that are ordered by an identifier shift their
//! places when one of them changes.
//!
//! **Sensitivities carry over.** *Replaced:* the choice is a set of places, the same for both data sets. The replaced
//! record's place is in it or not, so the samples are neighbours that replace a record, at the same place, or equal. This
//! holds for [`uniform`] and for [`by_coins`]. *Added or removed:* the coins of the records before the last are the same
//! with and without it, so the samples with a record appended are neighbours or equal; the law of the coins does not depend
//! on the rows in which records stand, so the record may be in any row. In every case the coupled samples are at most
//! neighbours of the same relation, every answer on them moves by no more than its sensitivity, and the mixture over the
//! hidden choice keeps the bound of the whole run. ∎
//!
//! A sample of a fixed size is refused where neighbours add or remove a record: a record more would push another one out,
//! and the samples would be neighbours that *replace* a record, which is another sensitivity than the one that the tape
//! takes from the answer.

use std::collections::HashSet;

use rand_chacha::rand_core::Rng;

use super::error::Error;
use super::sensitivity::Neighbours;
use super::streams::Stream;
use crate::runtime::points::Points;
use crate::sampler::uniform;

/// A uniform random sample of min(m, n) records without replacement, in the order of the records.
pub fn uniform(points: &Points<'_>, stream: &Stream, m: usize) -> Result<Points<'static>, Error> {
    gathered(points, &uniform_places_of(stream, points.n(), m)?)
}

/// The places of such a sample among n records.
pub(super) fn uniform_places_of(stream: &Stream, n: usize, m: usize) -> Result<Vec<usize>, Error> {
    if stream.neighbours() == Neighbours::AddRemove {
        return Err(Error::Refused(
            "a sample of a fixed size is for neighbours that replace a record; flip coins instead".into(),
        ));
    }
    Ok(uniform_places(&mut stream.generator(), n, m))
}

/// Every record with probability numerator/2^halvings, independently, in the order of the records.
pub fn by_coins(points: &Points<'_>, stream: &Stream, probability: (u64, u32)) -> Result<Points<'static>, Error> {
    gathered(points, &coin_places_of(stream, points.n(), probability)?)
}

/// The places of such a sample among n records.
pub(super) fn coin_places_of(
    stream: &Stream,
    n: usize,
    (numerator, halvings): (u64, u32),
) -> Result<Vec<usize>, Error> {
    if halvings > 63 || numerator > 1 << halvings {
        return Err(Error::Refused(format!("{numerator}/2^{halvings} is no probability with at most 63 halvings")));
    }
    let mut rng = stream.generator();
    let mut heads = || rng.next_u64().checked_shr(64 - halvings).unwrap_or(0) < numerator;
    Ok((0..n).filter(|_| heads()).collect())
}

/// The denominator of weights: one that is as large as this keeps its record surely.
pub const WHOLE_WEIGHT: u32 = 1 << 20;

/// Every record with probability weight/[`WHOLE_WEIGHT`], each by a coin of its own, in the order of the records.
///
/// A weight is a part of its record. With a record appended the coins of the others are the same, so the samples are
/// neighbours that add a record, or equal. A replaced record may come or go with its weight, which changes the number of
/// records in the sample: that is no neighbour that replaces a record, and is refused.
pub fn by_weights(points: &Points<'_>, stream: &Stream, weights: &[u32]) -> Result<Points<'static>, Error> {
    if stream.neighbours() == Neighbours::Replace {
        return Err(Error::Refused("weights are for neighbours that add or remove a record".into()));
    }
    if weights.len() != points.n() || weights.iter().any(|&weight| weight > WHOLE_WEIGHT) {
        return Err(Error::Refused(format!("there must be {} weights of at most 2^20", points.n())));
    }
    let mut rng = stream.generator();
    let mut coin = || (rng.next_u64() >> 44) as u32;
    let places: Vec<usize> = (0..points.n()).filter(|&place| coin() < weights[place]).collect();
    gathered(points, &places)
}

/// A copy of the records at these places, if all of them could be read.
pub(super) fn gathered(points: &Points<'_>, places: &[usize]) -> Result<Points<'static>, Error> {
    let sample = points.gathered(places);
    points.check().map_err(Error::Unreadable)?;
    Ok(sample)
}

/// A uniform set of min(m, n) places among n, ascending, by Floyd's algorithm: memory for the sample only.
///
/// *Why it is uniform.* Suppose that before the step with place j the set is uniform among the sets of k places below j. A
/// set of k + 1 places with j arises from one of these, by drawing j or one of the k again; a set without j arises from
/// each of its k + 1 subsets, by drawing the place that is missing. Both have k + 1 ways of equal probability.
fn uniform_places<R: Rng>(rng: &mut R, n: usize, m: usize) -> Vec<usize> {
    let m = m.min(n);
    let mut chosen = HashSet::with_capacity(m);
    for j in n - m..n {
        let place = uniform::below(rng, j as u64 + 1) as usize;
        if !chosen.insert(place) {
            chosen.insert(j);
        }
    }
    let mut places: Vec<usize> = chosen.into_iter().collect();
    places.sort_unstable();
    places
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use nalgebra::DMatrix;
    use rand_chacha::ChaCha20Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;
    use crate::release::streams::Streams;
    use crate::release::tape::{Draw, Tape};
    use crate::runtime::pulse::Silent;

    fn stream(neighbours: Neighbours) -> Stream {
        Draw::new(Streams::from_key([7; 32]), neighbours).hidden()
    }

    /// Records whose only coordinate is their place.
    fn numbered(n: usize) -> Points<'static> {
        Points::admit(DMatrix::from_fn(1, n, |_, i| i as f64), None, None, &mut Silent).unwrap()
    }

    fn places(points: &Points) -> Vec<usize> {
        points.dense().view().iter().map(|x| *x as usize).collect()
    }

    #[test]
    fn a_record_is_kept_as_often_as_its_weight_says() {
        let n = 40_000;
        let weights: Vec<u32> = (0..n).map(|i| [0, WHOLE_WEIGHT / 4, WHOLE_WEIGHT][i % 3]).collect();
        let kept = places(&by_weights(&numbered(n), &stream(Neighbours::AddRemove), &weights).unwrap());
        let of = |kind: usize| kept.iter().filter(|&place| place % 3 == kind).count();
        assert_eq!((of(0), of(2)), (0, n / 3));
        // Of 13333 coins 3333 +- 50 fall so; five deviations have probability below 1e-6, and the key is fixed.
        assert!(of(1).abs_diff(n / 12) < 250, "{}", of(1));
        // The coins of the first records do not depend on those behind.
        let fewer = places(&by_weights(&numbered(n - 1), &stream(Neighbours::AddRemove), &weights[1..]).unwrap());
        let same = places(&by_weights(&numbered(n - 1), &stream(Neighbours::AddRemove), &weights[..n - 1]).unwrap());
        assert_eq!(same, kept.iter().copied().filter(|&place| place < n - 1).collect::<Vec<_>>());
        assert_ne!(fewer, same);
        assert!(by_weights(&numbered(3), &stream(Neighbours::Replace), &[0; 3]).is_err());
        assert!(by_weights(&numbered(3), &stream(Neighbours::AddRemove), &[0; 2]).is_err());
        assert!(by_weights(&numbered(1), &stream(Neighbours::AddRemove), &[WHOLE_WEIGHT + 1]).is_err());
    }

    /// All 20 sets of 3 places among 6, 40000 draws: a chi-squared of 19 degrees beyond 60 has probability below 1e-5, and
    /// the key is fixed.
    #[test]
    fn every_set_of_places_is_equally_likely() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let mut counts = HashMap::new();
        for _ in 0..40_000 {
            *counts.entry(uniform_places(&mut rng, 6, 3)).or_insert(0) += 1;
        }
        let squares: f64 = counts.values().map(|&count| (f64::from(count) - 2000.0).powi(2) / 2000.0).sum();
        assert!(counts.len() == 20 && squares < 60.0, "{squares}");
    }

    #[test]
    fn a_sample_has_distinct_records_in_their_order() {
        for (n, m) in [(0, 0), (0, 5), (1, 0), (1, 1), (7, 100), (1000, 1), (1000, 400), (1000, 999), (1000, 1000)] {
            let sample = uniform(&numbered(n), &stream(Neighbours::Replace), m).unwrap();
            let found = places(&sample);
            assert_eq!(found.len(), m.min(n));
            assert!(found.is_sorted_by(|a, b| a < b) && found.iter().all(|place| *place < n));
        }
        let again = |m| places(&uniform(&numbered(1000), &stream(Neighbours::Replace), m).unwrap());
        assert!(again(400) == again(400) && again(400) != (0..400).collect::<Vec<_>>());
    }

    #[test]
    fn whole_records_are_gathered() {
        let points = DMatrix::from_fn(3, 20_000, |i, j| (10 * j + i) as f64);
        let points = Points::admit(&points, None, None, &mut Silent).unwrap();
        let sample = uniform(&points, &stream(Neighbours::Replace), 15_000).unwrap();
        assert_eq!((sample.d(), sample.n()), (3, 15_000));
        assert!(
            sample.dense().view().column_iter().all(|x| x[1] == x[0] + 1.0 && x[2] == x[0] + 2.0 && x[0] % 10.0 == 0.0)
        );
    }

    #[test]
    fn a_sample_of_a_fixed_size_is_refused_where_records_are_added() {
        assert!(matches!(uniform(&numbered(5), &stream(Neighbours::AddRemove), 2), Err(Error::Refused(_))));
    }

    #[test]
    fn a_record_more_is_in_the_sample_or_not() {
        for neighbours in [Neighbours::Replace, Neighbours::AddRemove] {
            for n in 0..200 {
                let of = |n| places(&by_coins(&numbered(n), &stream(neighbours), (3, 2)).unwrap());
                let (shorter, longer) = (of(n), of(n + 1));
                assert_eq!(longer[..shorter.len()], shorter);
                assert!(longer[shorter.len()..].iter().all(|place| *place == n));
            }
        }
    }

    /// Six standard deviations fail with probability below 1e-8, and the key is fixed.
    #[test]
    fn coins_have_their_probability() {
        const N: usize = 100_000;
        let heads = |p, k| by_coins(&numbered(N), &stream(Neighbours::AddRemove), (p, k)).unwrap().n();
        for (p, k) in [(1, 1), (1, 2), (3, 2), (5, 4), (1 << 62, 63)] {
            let share = p as f64 / f64::from(k).exp2();
            let deviation = (N as f64 * share * (1.0 - share)).sqrt();
            assert!((heads(p, k) as f64 - N as f64 * share).abs() < 6.0 * deviation, "{p}/2^{k}");
        }
        assert_eq!([heads(0, 0), heads(0, 9), heads(1, 0), heads(512, 9), heads(1 << 63, 63)], [0, 0, N, N, N]);
        for probability in [(2, 0), (513, 9), (1, 64)] {
            assert!(by_coins(&numbered(3), &stream(Neighbours::Replace), probability).is_err());
        }
    }
}
