//! Uniform integers.

use rand_chacha::rand_core::Rng;

/// A uniform integer in `0..bound`, by Lemire's multiply-and-reject method. It is exact and almost always needs a
/// single random word.
pub fn below<R: Rng + ?Sized>(rng: &mut R, bound: u64) -> u64 {
    assert!(bound > 0, "an empty range has no uniform integer");
    loop {
        let product = u128::from(rng.next_u64()) * u128::from(bound);
        let low = product as u64;
        // The first `2^64 mod bound` residues occur once too often, so they are rejected.
        if low >= bound || low >= bound.wrapping_neg() % bound {
            return (product >> 64) as u64;
        }
    }
}

/// A uniform integer in `0..bound` for wide bounds. Draws numbers with as many random bits as the bound has, until a
/// number is below the bound.
pub fn below_wide<R: Rng + ?Sized>(rng: &mut R, bound: u128) -> u128 {
    assert!(bound > 0, "an empty range has no uniform integer");
    let surplus = (bound - 1).leading_zeros();
    loop {
        let word = u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64());
        let value = word.checked_shr(surplus).unwrap_or(0);
        if value < bound {
            return value;
        }
    }
}

/// A uniform matching of `0..n`: disjoint pairs, with one index left over if n is odd.
///
/// The matching is stable. With the same randomness, if n is odd, the matching of `0..n + 1` is the matching of `0..n`
/// with one more pair. If n is even, the two matchings differ in at most one pair. *Proof of stability and uniformity*,
/// by induction. If n is odd, the new index n is paired with the index that is left over, which is uniform by
/// induction. If n is even, the new index is left over with probability 1/(n + 1). Otherwise the new index replaces a
/// uniformly chosen other index in its pair, and this other index is left over. So each of the n + 1 indices is left
/// over with the same probability, the other indices are paired uniformly, and at most one pair has changed. ∎
pub fn matching<R: Rng + ?Sized>(rng: &mut R, n: usize) -> Vec<[usize; 2]> {
    matched(n, |bound| below(rng, bound as u64) as usize)
}

/// [`matching`] with any function that chooses an integer below a bound.
fn matched(n: usize, mut choose: impl FnMut(usize) -> usize) -> Vec<[usize; 2]> {
    let mut order = Vec::with_capacity(n);
    for newcomer in 0..n {
        order.push(newcomer);
        if newcomer % 2 == 0 {
            order.swap(newcomer, choose(newcomer + 1));
        }
    }
    order.as_chunks::<2>().0.to_vec()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, HashMap};

    use super::*;

    type Matching = BTreeSet<BTreeSet<usize>>;

    /// The matchings for all sequences of choices, each with its choices.
    fn every_matching(n: usize) -> Vec<(Vec<usize>, Matching)> {
        let bounds: Vec<usize> = (1..=n).step_by(2).collect();
        let sequences = bounds.iter().fold(vec![Vec::new()], |sequences: Vec<Vec<usize>>, bound| {
            sequences.iter().flat_map(|some| (0..*bound).map(|next| [&some[..], &[next]].concat())).collect()
        });
        sequences.into_iter().map(|choices| (choices.clone(), with_choices(n, &choices))).collect()
    }

    fn with_choices(n: usize, choices: &[usize]) -> Matching {
        let mut next = choices.iter();
        matched(n, |_| *next.next().unwrap()).into_iter().map(BTreeSet::from).collect()
    }

    #[test]
    fn every_matching_arises_from_one_sequence_of_choices() {
        for (n, number) in [(0, 1), (1, 1), (2, 1), (3, 3), (4, 3), (5, 15), (6, 15), (7, 105)] {
            let mut counts = HashMap::new();
            for (_, matching) in every_matching(n) {
                assert_eq!((matching.len(), matching.iter().flatten().count()), (n / 2, n / 2 * 2));
                *counts.entry(matching).or_insert(0) += 1;
            }
            assert!(counts.len() == number && counts.values().all(|count| *count == 1), "{n}: {counts:?}");
        }
    }

    #[test]
    fn a_newcomer_adds_a_pair_or_changes_at_most_one() {
        for n in 0..7 {
            for (choices, longer) in every_matching(n + 1) {
                let shorter = with_choices(n, &choices);
                let (gone, new) = (shorter.difference(&longer).count(), longer.difference(&shorter).count());
                let expected: &[_] = if n % 2 == 1 { &[(0, 1)] } else { &[(0, 0), (1, 1)] };
                assert!(expected.contains(&(gone, new)), "{n}: {shorter:?} {longer:?}");
            }
        }
    }
}
