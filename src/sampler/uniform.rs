//! Uniform integers.

use rand_chacha::rand_core::Rng;

/// A uniform integer in `0..bound`, by Lemire's multiply-and-reject: exact, one word almost always.
pub fn below<R: Rng + ?Sized>(rng: &mut R, bound: u64) -> u64 {
    assert!(bound > 0, "an empty range has no uniform integer");
    loop {
        let product = u128::from(rng.next_u64()) * u128::from(bound);
        let low = product as u64;
        // The first `2^64 mod bound` residues are one too many: reject them.
        if low >= bound || low >= bound.wrapping_neg() % bound {
            return (product >> 64) as u64;
        }
    }
}

/// A uniform integer in `0..bound` for wide bounds: as many random bits as the bound has, drawn again until they fit.
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

/// A uniform permutation of `0..n` (Fisher-Yates).
pub fn permutation<R: Rng + ?Sized>(rng: &mut R, n: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    for i in (1..n).rev() {
        order.swap(i, below(rng, i as u64 + 1) as usize);
    }
    order
}
