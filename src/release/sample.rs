//! Hidden random samples of the records.
//!
//! A sample depends on hidden randomness ([`Stream`]) and on the number of records, and not on the values of the
//! records. The sample must stay hidden, and so must its order and, under add/remove, the number of its records. There
//! are two reasons. If the sample were known, everybody would know which persons a release does not depend on. And if
//! units are ordered by an identifier, their positions shift when one unit changes.
//!
//! **Claim.** An answer about a sample has the sensitivity that it would have about all records. *Proof for
//! replacement.* A sample is a set of positions, and this set is the same for both data sets. If it contains the
//! position of the replaced record, the samples are neighbors that differ in this record; otherwise they are equal.
//! This holds for [`uniform`] and for [`by_coins`]. *Proof for add/remove.* Let the added record be the last record.
//! The coins of the other records are the same with and without the added record, so the samples are neighbors or
//! equal. The distribution of the coins does not depend on the order of the records, so the added record may be in any
//! row.
//!
//! In every case, the coupled samples are equal, or they are neighbors of the same relation. So every answer about a
//! sample moves by no more than its sensitivity. The bound of the whole run holds for each hidden choice, so it also
//! holds for the mixture over all choices. ∎
//!
//! A sample of a fixed size is refused under add/remove. An added record would push another record out of the sample.
//! The two samples would then differ by a *replaced* record, but the tape would take the sensitivity for an added
//! record.

use std::collections::HashSet;

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::error::Error;
use super::streams::{PARTS, Stream};
use crate::runtime::points::Points;
use crate::runtime::weighting::{WEIGHT_BITS, WHOLE_WEIGHT, Weighting, rounded};
use crate::sampler::uniform;

/// A uniform random sample of min(m, n) records without replacement, in the order of the records.
pub fn uniform(points: &Points<'_>, stream: Stream, m: usize) -> Result<Points<'static>, Error> {
    gathered(points, &uniform_places_of(stream, points.n(), m)?)
}

/// The positions of such a sample among n records.
pub(super) fn uniform_places_of(stream: Stream, n: usize, m: usize) -> Result<Vec<usize>, Error> {
    if !stream.neighbours().size_is_public() {
        return Err(Error::Refused(
            "a sample of a fixed size is possible only if neighbors replace a record; use a sample by coins instead"
                .into(),
        ));
    }
    Ok(uniform_places(&mut stream.generator(), n, m))
}

/// A sample that contains each record with probability numerator/2^halvings, independently, in the order of the
/// records.
pub fn by_coins(points: &Points<'_>, stream: Stream, probability: (u64, u32)) -> Result<Points<'static>, Error> {
    gathered(points, &coin_places_of(stream, points.n(), probability)?)
}

/// The positions of such a sample among n records.
pub(super) fn coin_places_of(stream: Stream, n: usize, (numerator, halvings): (u64, u32)) -> Result<Vec<usize>, Error> {
    if halvings > 63 || numerator > 1 << halvings {
        return Err(Error::Refused(format!(
            "{numerator}/2^{halvings} is not a probability, or has more than 63 halvings"
        )));
    }
    let mut rng = stream.generator();
    let mut heads = || rng.next_u64().checked_shr(64 - halvings).unwrap_or(0) < numerator;
    Ok((0..n).filter(|_| heads()).collect())
}

/// Hidden coins that round the weights of one data set. Each row has one coin, which does not depend on the process
/// that holds the row.
///
/// The coins have their own key. The key reveals neither the stream from which it was derived nor the noise of the
/// tape. So the key can be sent to the processes that hold parts of the records. Like all hidden randomness, the key
/// must not be shown.
pub struct Coins {
    key: [u8; 32],
}

impl Coins {
    /// Derives coins from a stream.
    pub fn of(stream: Stream) -> Self {
        let mut key = [0; 32];
        stream.generator().fill_bytes(&mut key);
        Self { key }
    }

    /// The coins with the key from another process of the run.
    pub fn from_key(key: [u8; 32]) -> Self {
        Self { key }
    }

    /// The key, to be sent to another process of the run.
    pub fn key(&self) -> &[u8; 32] {
        &self.key
    }

    /// The coins of the given row and of all later rows.
    fn words_from(&self, row: usize) -> impl Iterator<Item = u64> {
        let mut rng = ChaCha20Rng::from_seed(self.key);
        // A coin has 64 bits, which are two words of the generator.
        rng.set_word_pos(2 * row as u128);
        std::iter::repeat_with(move || rng.next_u64())
    }
}

/// A copy of the records, with one weight for each record. A weight is at most [`WHOLE_WEIGHT`] and is rounded to few
/// significant bits by hidden coins. The records are a whole data set, or the part of a data set that begins with the
/// row `first`.
///
/// A weight and its coin belong to their record. Let the unchanged records have the same coins in two neighboring data
/// sets. Then they also have the same rounded weights, both if a record and its weight are replaced and if a record is
/// added. (Coins are independent and identically distributed. So the distribution of the set of weighted records does
/// not depend on the order of the rows, and the added record may be assumed to be the last.) So the sets of weighted
/// records are neighbors of the same relation, and answers about them move by at most their sensitivities.
pub fn weighted(points: &Points<'_>, coins: &Coins, first: usize, weights: &[u32]) -> Result<Points<'static>, Error> {
    if weights.len() != points.n() || weights.iter().any(|&weight| weight > WHOLE_WEIGHT) {
        return Err(Error::Refused("every record must have one weight, of at most 2^20".into()));
    }
    let rounded = weights.iter().zip(coins.words_from(first)).map(|(&weight, coin)| rounded(weight, coin));
    let weighted = points.weighted(rounded.collect());
    points.check().map_err(Error::Unreadable)?;
    Ok(weighted)
}

/// Keeps every weighted record with the probability given by its weight, using one coin for each record. The result has
/// no weights and keeps the order of the rows. The coins come from the last part of the stream.
///
/// A coin belongs to its record. Let the unchanged records have the same coins in two neighboring data sets. An added
/// record is kept or not kept. A replaced record is kept in both data sets, in one of them or in neither. So the sets
/// of kept records are equal, or they are neighbors of one of the two relations. A record that is added in a middle row
/// shifts the rows after it. So the distribution of an answer about the kept records must not depend on the order of
/// the rows.
pub(crate) fn kept(points: &Points<'_>, stream: &Stream) -> Points<'static> {
    let mut rng = stream.part(PARTS - 1);
    let mut coin = || (rng.next_u64() >> (u64::BITS - WEIGHT_BITS)) as u32;
    let weights = points.weighting().map_or(&[][..], Weighting::weights);
    let rows: Vec<usize> = (0..weights.len()).filter(|&row| coin() < weights[row]).collect();
    points.unweighted(&rows)
}

/// A copy of the records at these positions, or an error if a record could not be read.
pub(super) fn gathered(points: &Points<'_>, places: &[usize]) -> Result<Points<'static>, Error> {
    let sample = points.gathered(places);
    points.check().map_err(Error::Unreadable)?;
    Ok(sample)
}

/// A uniform set of min(m, n) positions among n, in ascending order. Floyd's algorithm needs memory for the sample
/// only.
///
/// *Proof that the set is uniform.* Suppose that before the step for position j, the set is uniform among the sets of k
/// positions below j. A set of k + 1 positions that contains j arises from one such set, by drawing j or one of the k
/// positions of the set. A set of k + 1 positions without j arises from each of its k + 1 subsets of k positions, by
/// drawing the missing position. So each set arises in k + 1 ways, and all of these ways have the same probability. ∎
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
    use crate::release::sensitivity::Neighbours;
    use crate::release::streams::Streams;
    use crate::release::tape::{Draw, Tape};
    use crate::runtime::pulse::Silent;

    fn stream(neighbours: Neighbours) -> Stream {
        Draw::new(Streams::from_key([7; 32]), neighbours).hidden()
    }

    /// Records whose only coordinate is their own position.
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
        for neighbours in [Neighbours::AddRemove, Neighbours::Replace] {
            let of = |n: usize, weights: &[u32]| {
                let points = weighted(&numbered(n), &Coins::of(stream(neighbours)), 0, weights).unwrap();
                places(&kept(&points, &stream(neighbours)))
            };
            let found = of(n, &weights);
            let kind = |kind: usize| found.iter().filter(|&place| place % 3 == kind).count();
            assert_eq!((kind(0), kind(2)), (0, n / 3));
            // Of 13333 coins, 3333 +- 50 have this result. A difference of five standard deviations has a probability
            // below 1e-6, and the key is fixed.
            assert!(kind(1).abs_diff(n / 12) < 250, "{}", kind(1));
            // The coins of the first records depend neither on later records nor on the weights of other records.
            let before = |found: &[usize], end| found.iter().copied().filter(|&place| place < end).collect::<Vec<_>>();
            assert_eq!(of(n - 1, &weights[..n - 1]), before(&found, n - 1));
            let changed: Vec<u32> = (0..n).map(|i| if i == 7 { 0 } else { weights[i] }).collect();
            let others = |found: &[usize]| found.iter().copied().filter(|&place| place != 7).collect::<Vec<_>>();
            assert_eq!(others(&of(n, &changed)), others(&found));
            assert_ne!(of(n - 1, &weights[1..]), before(&found, n - 1));
        }
    }

    #[test]
    fn a_weight_does_not_change_how_others_are_rounded() {
        let of = |weights: &[u32]| {
            let points =
                weighted(&numbered(weights.len()), &Coins::of(stream(Neighbours::Replace)), 0, weights).unwrap();
            points.weighting().unwrap().weights().to_vec()
        };
        let weights: Vec<u32> = (0..1000).map(|i| 1000 + 997 * i).collect();
        let rounded = of(&weights);
        assert_eq!(of(&weights[..999]), rounded[..999]);
        assert!(rounded.iter().zip(&weights).any(|(rounded, weight)| rounded < weight));
        assert!(rounded.iter().zip(&weights).any(|(rounded, weight)| rounded > weight));
        for weight in [0, 1, 77_777, WHOLE_WEIGHT] {
            let mut changed = weights.clone();
            changed[500] = weight;
            let found = of(&changed);
            assert_eq!((&found[..500], &found[501..]), (&rounded[..500], &rounded[501..]));
        }
    }

    #[test]
    fn weights_are_one_for_each_record_and_at_most_whole() {
        let of = |n, weights: &[u32]| weighted(&numbered(n), &Coins::of(stream(Neighbours::AddRemove)), 0, weights);
        assert!(of(3, &[0; 2]).is_err() && of(1, &[WHOLE_WEIGHT + 1]).is_err());
        assert!(of(1, &[WHOLE_WEIGHT]).is_ok() && of(0, &[]).is_ok());
    }

    #[test]
    fn records_keep_their_weights_in_a_sample() {
        let weights: Vec<u32> = (0..500).map(|i| [64, 0, WHOLE_WEIGHT, 96][i % 4]).collect();
        let points = weighted(&numbered(500), &Coins::of(stream(Neighbours::Replace)), 0, &weights).unwrap();
        let sample = by_coins(&points, stream(Neighbours::Replace), (1, 1)).unwrap();
        let rows = coin_places_of(stream(Neighbours::Replace), 500, (1, 1)).unwrap();
        assert_eq!(places(&sample.unweighted(&(0..rows.len()).collect::<Vec<_>>())), rows);
        let expected: Vec<u32> = rows.iter().map(|&row| weights[row]).collect();
        assert_eq!(sample.weighting().unwrap().weights(), expected);
        assert_eq!(sample.mass(), expected.iter().map(|&weight| i128::from(weight)).sum::<i128>());
    }

    /// All 20 sets of 3 places among 6, in 40000 draws: a chi-square with 19 degrees of freedom exceeds 60 with
    /// probability below 1e-5, and the key is fixed.
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
            let sample = uniform(&numbered(n), stream(Neighbours::Replace), m).unwrap();
            let found = places(&sample);
            assert_eq!(found.len(), m.min(n));
            assert!(found.is_sorted_by(|a, b| a < b) && found.iter().all(|place| *place < n));
        }
        let again = |m| places(&uniform(&numbered(1000), stream(Neighbours::Replace), m).unwrap());
        assert!(again(400) == again(400) && again(400) != (0..400).collect::<Vec<_>>());
    }

    #[test]
    fn whole_records_are_gathered() {
        let points = DMatrix::from_fn(3, 20_000, |i, j| (10 * j + i) as f64);
        let points = Points::admit(&points, None, None, &mut Silent).unwrap();
        let sample = uniform(&points, stream(Neighbours::Replace), 15_000).unwrap();
        assert_eq!((sample.d(), sample.n()), (3, 15_000));
        assert!(
            sample.dense().view().column_iter().all(|x| x[1] == x[0] + 1.0 && x[2] == x[0] + 2.0 && x[0] % 10.0 == 0.0)
        );
    }

    #[test]
    fn a_sample_of_a_fixed_size_is_refused_where_records_are_added() {
        assert!(matches!(uniform(&numbered(5), stream(Neighbours::AddRemove), 2), Err(Error::Refused(_))));
    }

    #[test]
    fn a_record_more_is_in_the_sample_or_not() {
        for neighbours in [Neighbours::Replace, Neighbours::AddRemove] {
            for n in 0..200 {
                let of = |n| places(&by_coins(&numbered(n), stream(neighbours), (3, 2)).unwrap());
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
        let heads = |p, k| by_coins(&numbered(N), stream(Neighbours::AddRemove), (p, k)).unwrap().n();
        for (p, k) in [(1, 1), (1, 2), (3, 2), (5, 4), (1 << 62, 63)] {
            let share = p as f64 / f64::from(k).exp2();
            let deviation = (N as f64 * share * (1.0 - share)).sqrt();
            assert!((heads(p, k) as f64 - N as f64 * share).abs() < 6.0 * deviation, "{p}/2^{k}");
        }
        assert_eq!([heads(0, 0), heads(0, 9), heads(1, 0), heads(512, 9), heads(1 << 63, 63)], [0, 0, N, N, N]);
        for probability in [(2, 0), (513, 9), (1, 64)] {
            assert!(by_coins(&numbered(3), stream(Neighbours::Replace), probability).is_err());
        }
    }
}
