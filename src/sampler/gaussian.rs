//! The discrete Gaussian: P(k) proportional to exp(-k^2 / (2 sigma^2)) on all integers.

use rand_chacha::rand_core::Rng;

use super::{BernoulliExp, DiscreteLaplace};

/// The largest standard deviation: the acceptance exponent then fits into 128 bits with room to spare.
pub const SIGMA_MAX: u64 = 1 << 50;

/// The discrete Gaussian with an integer standard deviation.
#[derive(Debug, Clone, Copy)]
pub struct DiscreteGaussian {
    sigma: u64,
    proposal: DiscreteLaplace,
}

impl DiscreteGaussian {
    /// `None` unless `1 <= sigma <= SIGMA_MAX`.
    pub fn new(sigma: u64) -> Option<Self> {
        let proposal = DiscreteLaplace::new(1, sigma)?;
        (sigma <= SIGMA_MAX).then_some(Self { sigma, proposal })
    }

    /// Rejection from a discrete Laplace of scale sigma: accept y with probability exp(-(|y| - sigma)^2 / (2 sigma^2)).
    pub fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> i64 {
        let sigma = u128::from(self.sigma);
        loop {
            let candidate = self.proposal.sample(rng);
            let distance = candidate.unsigned_abs().abs_diff(sigma);
            // A candidate above 2^62 is proposed with probability below exp(-4096), and accepted with one below
            // exp(-2^23): the conversion bounds the arithmetic and never decides in practice.
            if let Ok(value) = i64::try_from(candidate)
                && distance < 1 << 62
                && BernoulliExp::new(distance * distance, 2 * sigma * sigma).is_some_and(|coin| coin.sample(rng))
            {
                return value;
            }
        }
    }
}
