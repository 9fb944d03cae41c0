//! The discrete Laplace distribution: P(k) proportional to exp(-|k| p/q) on all integers.

use rand_chacha::rand_core::Rng;

use super::Geometric;

/// Two-sided geometric noise with rate `p/q`, that is scale `q/p`.
#[derive(Debug, Clone, Copy)]
pub struct DiscreteLaplace(Geometric);

impl DiscreteLaplace {
    /// `None` unless both are positive.
    pub fn new(p: u64, q: u64) -> Option<Self> {
        Geometric::new(p, q).map(Self)
    }

    /// Draws a magnitude and a sign. If the result is minus zero, it draws again, because otherwise zero would be twice
    /// as likely.
    pub fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> i128 {
        loop {
            let negative = rng.next_u32() & 1 == 1;
            // Less than exp(-2^62) of the mass lies beyond 2^127.
            let magnitude = i128::try_from(self.0.sample(rng)).unwrap_or(i128::MAX);
            if !(negative && magnitude == 0) {
                return if negative { -magnitude } else { magnitude };
            }
        }
    }
}
