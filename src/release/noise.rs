//! The noise of a release, and the request for a release as the tape handles it.

use rand_chacha::ChaCha20Rng;

use super::error::Error;
use crate::sampler::{Choice, DiscreteGaussian, DiscreteLaplace, Geometric};

/// The distribution of the noise on every coordinate, in lattice units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noise {
    /// The discrete Gaussian with an integer standard deviation.
    Gaussian {
        /// The standard deviation.
        sigma: u64,
    },
    /// Two-sided geometric noise: P(k) proportional to exp(-|k| p/q).
    Laplace {
        /// Numerator of the rate.
        p: u64,
        /// Denominator of the rate.
        q: u64,
    },
    /// One-sided geometric noise: P(k) proportional to exp(-k p/q), k >= 0.
    Geometric {
        /// Numerator of the rate.
        p: u64,
        /// Denominator of the rate.
        q: u64,
    },
    /// No noise is added: the answer is an index with P(i) proportional to exp(-value_i p/q), the exponential
    /// mechanism.
    Choice {
        /// Numerator of the rate.
        p: u64,
        /// Denominator of the rate.
        q: u64,
    },
    /// No noise is added: the answer is a point of a lattice with P(z) proportional to 2^(-score(z) rate / 2^71), drawn
    /// by [`super::tape::Tape::draw`]. The sensitivity is the sensitivity of the score.
    Lattice {
        /// The number of halvings of the weight per 2^71 units of the score.
        rate: u64,
    },
}

impl Noise {
    /// The scale of the noise in lattice units. For a Gaussian this is the standard deviation. For other noise it is
    /// the change of the value that divides the probability by e.
    pub fn scale(&self) -> f64 {
        match *self {
            Self::Gaussian { sigma } => sigma as f64,
            Self::Laplace { p, q } | Self::Geometric { p, q } | Self::Choice { p, q } => q as f64 / p as f64,
            Self::Lattice { rate } => 71f64.exp2() / (rate as f64 * std::f64::consts::LN_2),
        }
    }
}

/// A sampler whose parameters were checked once, so that drawing from it cannot fail.
#[derive(Debug, Clone, Copy)]
pub(in crate::release) enum Sampler {
    /// Noise on every coordinate.
    Additive(Additive),
    /// The sampler of an index. No noise is added to the values.
    Choice(Choice),
    /// A [`super::tape::Selection`] draws the point, and there are no values.
    Lattice,
}

/// The sampler of noise that is added to a value. Choices and lattice draws are not variants of this type, because they
/// add no noise.
#[derive(Debug, Clone, Copy)]
pub(in crate::release) enum Additive {
    Gaussian(DiscreteGaussian),
    Laplace(DiscreteLaplace),
    Geometric(Geometric),
}

impl Additive {
    pub(in crate::release) fn sample(&self, rng: &mut ChaCha20Rng) -> i128 {
        match self {
            Self::Gaussian(gaussian) => gaussian.sample(rng).into(),
            Self::Laplace(laplace) => laplace.sample(rng),
            Self::Geometric(geometric) => geometric.sample(rng).try_into().unwrap_or(i128::MAX),
        }
    }
}

/// One release: its name, the noise, and the sensitivity in lattice units under the tape's relation.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The name of the release, made of the stage and the quantity, for instance `fine gradient`.
    pub name: String,
    /// The noise on every coordinate.
    pub noise: Noise,
    /// The largest distance between the exact values of two neighbors. It is an L2 distance, or for a choice the range,
    /// which is the largest change of the difference of two values.
    pub sensitivity: f64,
    sampler: Sampler,
}

impl PartialEq for Sampler {
    /// Samplers are always equal here, because the noise determines the sampler and requests compare the noise.
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Request {
    /// Checks the noise and the sensitivity. Only the tape creates requests, and it takes the sensitivity from the
    /// value.
    pub(in crate::release) fn new(name: &str, noise: Noise, sensitivity: f64) -> Result<Self, Error> {
        let sensitivity = finite(name, sensitivity)?;
        let sampler = match noise {
            Noise::Gaussian { sigma } => DiscreteGaussian::new(sigma).map(Additive::Gaussian).map(Sampler::Additive),
            Noise::Laplace { p, q } => DiscreteLaplace::new(p, q).map(Additive::Laplace).map(Sampler::Additive),
            Noise::Geometric { p, q } => Geometric::new(p, q).map(Additive::Geometric).map(Sampler::Additive),
            Noise::Choice { p, q } => Choice::new(p, q).map(Sampler::Choice),
            Noise::Lattice { .. } => Some(Sampler::Lattice),
        };
        let sampler = sampler.ok_or_else(|| Error::Refused(format!("no sampler accepts {noise:?}")))?;
        Ok(Self { name: name.into(), noise, sensitivity, sampler })
    }

    /// The sampler, whose parameters were checked.
    pub(in crate::release) fn sampler(&self) -> Sampler {
        self.sampler
    }

    /// The distance between the values of two neighbors that `sensitivity` bounds.
    pub(in crate::release) fn distance(&self, a: &[i64], b: &[i64]) -> f64 {
        if let Sampler::Choice(_) = self.sampler {
            let moved = || a.iter().zip(b).map(|(a, b)| i128::from(*a) - i128::from(*b));
            return (moved().max().unwrap_or(0) - moved().min().unwrap_or(0)) as f64;
        }
        a.iter().zip(b).map(|(a, b)| a.abs_diff(*b) as f64).map(|x| x * x).sum::<f64>().sqrt()
    }
}

/// Refuses a sensitivity that is not finite, because no noise can cover it.
pub(in crate::release) fn finite(name: &str, sensitivity: f64) -> Result<f64, Error> {
    if sensitivity.is_finite() && sensitivity >= 0.0 {
        return Ok(sensitivity);
    }
    Err(Error::Refused(format!(
        "{name:?} has no finite sensitivity under this neighbor relation, so it cannot be released with any noise"
    )))
}
