//! Bernoulli draws, called *coins* here: with a rational probability, and with probability exp(-p/q). A coin that falls
//! heads is the result `true`.

use rand_chacha::rand_core::Rng;

use super::uniform;

/// Heads with probability `p/q <= 1`.
#[derive(Debug, Clone, Copy)]
pub struct Bernoulli {
    // Both numbers are shifted so that `q` has its top bit set. Then one random word decides almost every draw.
    p: u128,
    q: u128,
}

impl Bernoulli {
    /// `None` unless `p <= q` and `q > 0`.
    pub fn new(p: u128, q: u128) -> Option<Self> {
        if q == 0 || p > q {
            return None;
        }
        let shift = q.leading_zeros();
        Some(Self { p: p << shift, q: q << shift })
    }

    /// Compares a uniform integer below `q` with `p`. The low word of the integer is drawn only if the high word does
    /// not decide.
    pub fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> bool {
        let (p_high, q_high) = ((self.p >> 64) as u64, (self.q >> 64) as u64);
        loop {
            let high = rng.next_u64();
            if high < p_high {
                return true;
            }
            if high > q_high {
                continue;
            }
            if high > p_high && high < q_high {
                return false;
            }
            let value = u128::from(high) << 64 | u128::from(rng.next_u64());
            if value < self.q {
                return value < self.p;
            }
        }
    }
}

/// Heads with probability exp(-p/q), for any ratio of integers.
#[derive(Debug, Clone, Copy)]
pub struct BernoulliExp {
    whole: u128,
    fraction: Bernoulli,
}

impl BernoulliExp {
    /// `None` if `q` is zero.
    pub fn new(p: u128, q: u128) -> Option<Self> {
        let whole = p.checked_div(q)?;
        Some(Self { whole, fraction: Bernoulli::new(p % q, q)? })
    }

    /// Uses exp(-w - f) = exp(-1)^w exp(-f), where w is an integer and f < 1.
    pub fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> bool {
        for _ in 0..self.whole {
            if !exp_minus_one(rng) {
                return false;
            }
        }
        series(rng, |rng| self.fraction.sample(rng))
    }
}

/// Heads with probability 1/e.
pub(super) fn exp_minus_one<R: Rng + ?Sized>(rng: &mut R) -> bool {
    series(rng, |_| true)
}

/// Turns a coin with probability f into a coin with probability exp(-f). Toss coins with the probabilities f/1, f/2,
/// f/3, ... until the first tails. This happens at an odd toss with probability 1 - f + f^2/2! - ... = exp(-f). A coin
/// with probability f/k falls heads if a coin with probability f and a coin with probability 1/k both fall heads.
pub(super) fn series<R: Rng + ?Sized>(rng: &mut R, mut coin: impl FnMut(&mut R) -> bool) -> bool {
    let mut k = 1;
    while coin(rng) && (k == 1 || uniform::below(rng, k) == 0) {
        k += 1;
    }
    k % 2 == 1
}
