//! The rate of the exponential weights, in base two.
//!
//! Weights 2^(-rate * score) are exp(-(epsilon/2) score) with rate = epsilon / (2 ln 2), rounded down. Every power of
//! two is exact, and a coin [`BernoulliPower`] accounts for the fraction of the exponent.

use crate::sampler::BernoulliPower;

/// A score of one is 2^31 units, so that scores are integers.
pub const SCORE_BITS: u32 = 31;

/// Binary places of a rate.
pub const RATE_BITS: u32 = 40;

const BITS: u32 = SCORE_BITS + RATE_BITS;

/// Halvings of the weight per unit of score, as a multiple of 2^-[`RATE_BITS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate(u64);

impl Rate {
    /// `None` at 2^56 and above, because exponents would exceed 128 bits.
    pub fn new(multiple: u64) -> Option<Self> {
        (multiple < 1 << 56).then_some(Self(multiple))
    }

    /// The rate as a multiple of 2^-40.
    pub fn multiple(self) -> u64 {
        self.0
    }

    /// The whole halvings of a score.
    pub fn halvings(self, score: u64) -> u64 {
        (self.exponent(score) >> BITS) as u64
    }

    /// The whole halvings that a score certainly has, from a lower bound on it in doubles (in records, not units).
    pub fn halvings_of_bound(self, score: f64) -> u64 {
        // The relative error of three rounded operations is less than 2^-51.
        (self.estimate(score) * (1.0 - f64::EPSILON * 4.0)) as u64
    }

    /// The halvings of a score in doubles, negative scores counting as zero.
    pub fn estimate(self, score: f64) -> f64 {
        score.max(0.0) * (self.0 as f64 / f64::from(RATE_BITS).exp2())
    }

    /// A coin that turns a proposal of weight 2^-`halvings` into the weight of its score; a score below the bound would
    /// contradict the proof of the bound.
    pub fn keep(self, score: u64, halvings: u64) -> BernoulliPower {
        let bound = u128::from(halvings) << BITS;
        debug_assert!(self.exponent(score) >= bound, "a bound above the score");
        BernoulliPower::new(self.exponent(score).saturating_sub(bound), BITS).expect("2^71 fits 128 bits")
    }

    fn exponent(self, score: u64) -> u128 {
        u128::from(self.0) * u128::from(score)
    }
}
