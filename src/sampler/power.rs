//! Coins with probability 2^-x, which make weights that are powers of two exact without a logarithm.

use rand_chacha::rand_core::Rng;

use super::bernoulli::{Bernoulli, series};
use super::uniform;

/// Heads with probability 2^(-p / 2^bits), for any exponent p >= 0.
#[derive(Debug, Clone, Copy)]
pub struct BernoulliPower {
    whole: u128,
    fraction: Bernoulli,
}

impl BernoulliPower {
    /// `None` if 2^bits does not fit 128 bits.
    pub fn new(p: u128, bits: u32) -> Option<Self> {
        let one = 1u128.checked_shl(bits)?;
        Some(Self { whole: p >> bits, fraction: Bernoulli::new(p & (one - 1), one)? })
    }

    /// The whole part of the exponent is a sequence of fair coins. For the fraction f, 2^-f = exp(-f ln 2). A coin with
    /// probability f ln 2 falls heads if a coin with probability f and a coin with probability ln 2 both fall heads.
    pub fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> bool {
        (0..self.whole).all(|_| fair(rng)) && series(rng, |rng| self.fraction.sample(rng) && ln_two(rng))
    }
}

pub(super) fn fair<R: Rng + ?Sized>(rng: &mut R) -> bool {
    rng.next_u64() >> 63 == 1
}

/// Returns true with probability ln 2 = sum over k >= 1 of 2^-k / k. Fair coins give k with probability 2^-k, and a
/// coin with probability 1/k decides.
pub(super) fn ln_two<R: Rng + ?Sized>(rng: &mut R) -> bool {
    let mut k = 1;
    while fair(rng) {
        k += 1;
    }
    uniform::below(rng, k) == 0
}
