//! The discrete Gaussian: P(k) proportional to exp(-k^2 / (2 sigma^2)) on all integers.
//!
//! **The distribution.** Cell j contains the absolute values y with j sigma <= 16 y < (j + 1) sigma. For these, y^2/(2
//! sigma^2) = j^2/512 + f with 0 <= f < (2 j + 1)/512. A candidate consists of three independent draws: a cell below
//! 256, with probability proportional to exp(-j^2/512) ([`super::cells`]); one of ceil(sigma/16) positions, counted
//! from the smallest absolute value of the cell; and a sign. No cell contains more absolute values than there are
//! positions. The candidate is rejected if its position lies beyond the end of the cell, or if it is minus zero.
//! Otherwise it is accepted with probability exp(-f). So every integer with an absolute value y below 16 sigma is drawn
//! with probability proportional to exp(-j^2/512) exp(-f) = exp(-y^2/(2 sigma^2)), as in the discrete Gaussian.
//!
//! **The acceptance.** [`series`] makes a coin with probability exp(-f) from coins with probability f. A coin with
//! probability f falls heads if two coins fall heads: one with probability (2 j + 1)/512, which takes nine random bits,
//! and one with probability 512 f/(2 j + 1), which is a ratio of integers. In nineteen of twenty cases the nine bits of
//! the first coin f fall tails, and the candidate is accepted without further computation.
//!
//! **Cell 256 and later cells.** If [`super::cells`] gives cell 256, fair coins are tossed. A run of r heads before the
//! first tails gives cell 256 + r. The candidate is accepted with probability 2^r exp(128 - y^2/(2 sigma^2)). This
//! equals (2/e)^r exp(-f) with f = y^2/(2 sigma^2) - 128 - r, which is at least r^2/512 because 16 y >= (256 + r)
//! sigma. So the acceptance needs r coins with probability 2/e = exp(-(1 - ln 2)) and one coin with probability
//! exp(-f). A run of r heads has probability 2^-(r + 1), and all these cells together have the weight 2 exp(-128). So
//! an integer in these cells is drawn with probability proportional to 2 exp(-128) 2^-(r + 1) 2^r exp(128 - y^2/(2
//! sigma^2)) = exp(-y^2/(2 sigma^2)), with the same factor as the integers in the cells below 256.

use rand_chacha::rand_core::Rng;

use super::bernoulli::series;
use super::power::{fair, ln_two};
use super::{Bernoulli, BernoulliExp, cells, uniform};

/// The largest standard deviation, for which the integers of the acceptance test fit 64 and 128 bits.
pub const SIGMA_MAX: u64 = 1 << 50;

/// The largest length of a run of heads. It limits the size of the integers. A draw reaches cell 256 with a probability
/// below 2^-180. Then a run of this length has probability 2^-4096, and a candidate after such a run is accepted with
/// probability below exp(-2^15). So the limit, which lies at 272 sigma, has no effect in practice.
const RUN_MAX: u64 = 1 << 12;

/// The discrete Gaussian with an integer standard deviation.
#[derive(Debug, Clone, Copy)]
pub struct DiscreteGaussian {
    sigma: u64,
}

/// An absolute value in a cell, and a sign. Minus zero is not a candidate.
struct Candidate {
    magnitude: u64,
    negative: bool,
    /// Nine random bits.
    bits: u64,
}

impl Candidate {
    fn value(&self) -> i64 {
        let magnitude = self.magnitude.cast_signed();
        if self.negative { -magnitude } else { magnitude }
    }
}

impl DiscreteGaussian {
    /// `None` unless `1 <= sigma <= SIGMA_MAX`.
    pub fn new(sigma: u64) -> Option<Self> {
        (1..=SIGMA_MAX).contains(&sigma).then_some(Self { sigma })
    }

    /// Draws candidates until one is accepted. This takes 1.025 candidates on average for large sigma, and 16 for
    /// sigma = 1, because most cells are empty then.
    pub fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> i64 {
        loop {
            let cell = cells::sample(rng);
            let drawn = if cell < cells::BEYOND { self.within(cell, rng) } else { self.beyond(rng) };
            if let Some(value) = drawn {
                return value;
            }
        }
    }

    /// Draws a candidate in a cell, or `None` if it is rejected. Its position, its sign and nine random bits come from
    /// one uniform integer.
    fn candidate<R: Rng + ?Sized>(&self, cell: u64, rng: &mut R) -> Option<Candidate> {
        let drawn = uniform::below(rng, self.sigma.div_ceil(16) << 10);
        let magnitude = (cell * self.sigma).div_ceil(16) + (drawn >> 10);
        let negative = drawn >> 9 & 1 == 1;
        let inside = 16 * magnitude < (cell + 1) * self.sigma;
        // If minus zero were a candidate, zero would be drawn twice as often.
        let minus_zero = negative && magnitude == 0;
        (inside && !minus_zero).then_some(Candidate { magnitude, negative, bits: drawn % 512 })
    }

    fn within<R: Rng + ?Sized>(&self, cell: u64, rng: &mut R) -> Option<i64> {
        let candidate = self.candidate(cell, rng)?;
        let accepted = candidate.bits > 2 * cell || self.second_coin(cell, candidate.magnitude, rng);
        accepted.then(|| candidate.value())
    }

    /// Draws the coin with probability exp(-f), given that the nine bits of its first coin fell heads.
    fn second_coin<R: Rng + ?Sized>(&self, cell: u64, magnitude: u64, rng: &mut R) -> bool {
        let (sigma, start) = (u128::from(self.sigma), u128::from(cell * self.sigma));
        let place = u128::from(16 * magnitude);
        let ratio = Bernoulli::new((place - start) * (place + start), u128::from(2 * cell + 1) * sigma * sigma);
        let ratio = ratio.expect("a position of the cell");
        let mut first = true;
        series(rng, |rng| (std::mem::take(&mut first) || rng.next_u64() >> 55 <= 2 * cell) && ratio.sample(rng))
    }

    #[cold]
    fn beyond<R: Rng + ?Sized>(&self, rng: &mut R) -> Option<i64> {
        let mut run = 0;
        while fair(rng) {
            run += 1;
            if run == RUN_MAX {
                return None;
            }
        }
        let candidate = self.candidate(cells::BEYOND + run, rng)?;
        let (square, twice) = (u128::from(candidate.magnitude).pow(2), 2 * u128::from(self.sigma).pow(2));
        let rest = BernoulliExp::new(square - u128::from(128 + run) * twice, twice)?;
        let accepted = (0..run).all(|_| series(rng, |rng| !ln_two(rng))) && rest.sample(rng);
        accepted.then(|| candidate.value())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::tests::{DRAWS, assert_coin, assert_fits, generator};

    /// Compares the frequency of every value of some cells with its probability `mass(y)`. In all other draws, the
    /// candidate must be rejected.
    fn assert_masses(
        cells: std::ops::Range<u64>,
        sigma: u64,
        mass: impl Fn(f64) -> f64,
        mut draw: impl FnMut() -> Option<i64>,
    ) {
        let (low, high) = ((cells.start * sigma).div_ceil(16) as i64, (cells.end * sigma).div_ceil(16) as i64);
        let values: Vec<i64> = (1 - high..high).filter(|value| value.abs() >= low).collect();
        let mut counts = vec![0; values.len() + 1];
        for _ in 0..DRAWS {
            counts[draw().map_or(values.len(), |value| values.binary_search(&value).expect("a value of the cells"))] +=
                1;
        }
        let mut masses: Vec<f64> =
            values.iter().map(|value| mass((*value as f64 / sigma as f64).powi(2) / 2.0)).collect();
        masses.push(1.0 - masses.iter().sum::<f64>());
        if masses.len() > 1 {
            assert_fits(&counts, &masses);
        }
    }

    #[test]
    fn every_place_of_a_cell_has_its_mass() {
        let mut rng = generator(24);
        for sigma in [1, 2, 5, 30, 1000] {
            let gaussian = DiscreteGaussian::new(sigma).unwrap();
            let places = sigma.div_ceil(16) as f64;
            for cell in [0, 1, 16, 23, 101, 240, 255] {
                let mass = |x: f64| ((cell as f64).powi(2) / 512.0 - x).exp() / (2.0 * places);
                assert_masses(cell..cell + 1, sigma, mass, || gaussian.within(cell, &mut rng));
            }
        }
    }

    #[test]
    fn every_integer_beyond_the_cells_has_its_mass() {
        let mut rng = generator(25);
        for sigma in [1, 2, 5, 30, 1000] {
            let gaussian = DiscreteGaussian::new(sigma).unwrap();
            let places = sigma.div_ceil(16) as f64;
            // The cell has the weight 2 exp(-128). Each sign of an integer has half of the remaining probability
            // exp(128 - x).
            let mass = |x: f64| (128.0 - x).exp() / (4.0 * places);
            assert_masses(256..256 + RUN_MAX, sigma, mass, || gaussian.beyond(&mut rng));
        }
    }

    #[test]
    fn second_coins_have_their_probability() {
        let mut rng = generator(26);
        for sigma in [16, 1000, (1 << 40) + 12_345, SIGMA_MAX] {
            let gaussian = DiscreteGaussian::new(sigma).unwrap();
            for cell in [0, 1, 20, 127, 255] {
                let (first, next) = ((cell * sigma).div_ceil(16), ((cell + 1) * sigma).div_ceil(16));
                for magnitude in [first, first + (next - first) / 3, next - 1] {
                    let heads = (0..DRAWS).filter(|_| gaussian.second_coin(cell, magnitude, &mut rng)).count();
                    let coin = (2 * cell + 1) as f64 / 512.0;
                    let (place, start) = (16 * u128::from(magnitude), u128::from(cell * sigma));
                    let f = (place * place - start * start) as f64 / 512.0 / (sigma as f64).powi(2);
                    assert_coin(heads, ((-f).exp_m1() + coin) / coin);
                }
            }
        }
    }

    #[test]
    fn candidates_of_the_widest_lie_in_their_cells() {
        let mut rng = generator(27);
        for sigma in [SIGMA_MAX - 1, SIGMA_MAX] {
            let gaussian = DiscreteGaussian::new(sigma).unwrap();
            for cell in 0..cells::BEYOND + RUN_MAX {
                let Some(candidate) = gaussian.candidate(cell, &mut rng) else { continue };
                assert_eq!(16 * candidate.magnitude / sigma, cell);
                assert_eq!(candidate.value().unsigned_abs(), candidate.magnitude);
                assert_eq!(candidate.value() < 0, candidate.negative);
            }
        }
    }
}
