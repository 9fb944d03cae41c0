//! The rate of the exponential weights, in base two.
//!
//! The weights 2^(-rate * score) equal exp(-(epsilon/2) score) if rate = epsilon / (2 ln 2). The rate is rounded down.
//! The integer part of the exponent gives an exact power of two. For the fractional part, a draw of [`BernoulliPower`]
//! decides.

use crate::sampler::BernoulliPower;

/// A score of one is 2^31 units, so that scores are integers.
pub const SCORE_BITS: u32 = 31;

/// The number of binary places of a rate.
pub const RATE_BITS: u32 = 40;

const BITS: u32 = SCORE_BITS + RATE_BITS;

/// The rate: a score of one multiplies the weight by 2^-rate. It is stored as a multiple of 2^-[`RATE_BITS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate(u64);

impl Rate {
    /// The rate `multiple` * 2^-[`RATE_BITS`]. `None` if `multiple` is 2^56 or larger, because exponents would exceed
    /// 128 bits.
    pub fn new(multiple: u64) -> Option<Self> {
        (multiple < 1 << 56).then_some(Self(multiple))
    }

    /// The rate as a multiple of 2^-40.
    pub fn multiple(self) -> u64 {
        self.0
    }

    /// The integer part of rate * score.
    pub fn halvings(self, score: u64) -> u64 {
        (self.exponent(score) >> BITS) as u64
    }

    /// An integer that is a lower bound of rate * score, computed from a lower bound of the score. The score is a
    /// double, in records.
    pub fn halvings_of_bound(self, score: f64) -> u64 {
        // The relative error of three rounded operations is less than 2^-51.
        (self.estimate(score) * (1.0 - f64::EPSILON * 4.0)) as u64
    }

    /// An approximation of rate * score, in doubles. Negative scores count as zero.
    pub fn estimate(self, score: f64) -> f64 {
        score.max(0.0) * (self.0 as f64 / f64::from(RATE_BITS).exp2())
    }

    /// The probability with which a proposal of weight 2^-`halvings` must be kept, so that it gets the weight of its
    /// score. rate * score cannot be below `halvings`, because `halvings` is a proved lower bound.
    pub fn keep(self, score: u64, halvings: u64) -> BernoulliPower {
        let bound = u128::from(halvings) << BITS;
        debug_assert!(self.exponent(score) >= bound, "the bound exceeds the score");
        BernoulliPower::new(self.exponent(score).saturating_sub(bound), BITS).expect("2^71 fits 128 bits")
    }

    fn exponent(self, score: u64) -> u128 {
        u128::from(self.0) * u128::from(score)
    }
}
