//! The exponential mechanism: the draw of one index, where small scores are more likely.

use rand_chacha::rand_core::Rng;

use super::{BernoulliExp, uniform};

/// Index i with probability proportional to exp(-score_i p/q).
#[derive(Debug, Clone, Copy)]
pub struct Choice {
    p: u64,
    q: u64,
}

impl Choice {
    /// `None` if `q` is zero.
    pub fn new(p: u64, q: u64) -> Option<Self> {
        (q > 0).then_some(Self { p, q })
    }

    /// Draws by rejection, which is exact. A uniform index is accepted with probability exp(-(score - smallest) p/q).
    /// The index of the smallest score is always accepted, so the expected number of trials is at most the number of
    /// scores.
    pub fn sample<R: Rng + ?Sized>(&self, scores: &[i64], rng: &mut R) -> usize {
        let smallest = *scores.iter().min().expect("a choice needs scores");
        loop {
            let index = uniform::below(rng, scores.len() as u64) as usize;
            let above = u128::from(scores[index].abs_diff(smallest));
            let coin = BernoulliExp::new(above * u128::from(self.p), self.q.into()).expect("checked on construction");
            if coin.sample(rng) {
                return index;
            }
        }
    }
}
