//! The geometric distribution: P(k) proportional to exp(-k p/q) for k = 0, 1, 2, ...

use rand_chacha::rand_core::Rng;

use super::bernoulli::{BernoulliExp, exp_minus_one};
use super::uniform;

/// The one-sided discrete exponential, with rate `p/q`.
#[derive(Debug, Clone, Copy)]
pub struct Geometric {
    p: u64,
    q: u64,
}

impl Geometric {
    /// `None` unless both are positive.
    pub fn new(p: u64, q: u64) -> Option<Self> {
        (p > 0 && q > 0).then_some(Self { p, q })
    }

    /// First draws a number u + q v with rate 1/q: u is uniform below q and kept with probability exp(-u/q), and v is
    /// the number of heads in a run of coins with probability 1/e. Then divides by p and rounds down, which gives the
    /// rate p/q.
    pub fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> u128 {
        loop {
            let u = uniform::below(rng, self.q);
            // The constructor checked that q > 0.
            if BernoulliExp::new(u.into(), self.q.into()).is_some_and(|coin| coin.sample(rng)) {
                let mut v = 0u64;
                while exp_minus_one(rng) {
                    v += 1;
                }
                return (u128::from(u) + u128::from(self.q) * u128::from(v)) / u128::from(self.p);
            }
        }
    }
}
