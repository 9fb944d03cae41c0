//! The tape: the one place where exact integers become noisy ones.
//!
//! Every release of every mechanism goes through [`Tape`]. It has a neighbour relation from its construction on, takes
//! the sensitivity from the value that it opens, and nobody can state another one. [`Draw`] adds fresh noise; the tapes
//! of [`super::recording`] keep what happened, or give it back. A mechanism cannot tell them apart, so what the tests
//! replay is what runs.

use rand_chacha::ChaCha20Rng;

use super::error::Error;
use super::exact::{Exact, Form};
use super::noise::{Noise, Request, finite};
use super::sensitivity::{Neighbours, Sensitivity};
use super::streams::{Stream, Streams};
use crate::runtime::pulse::Interrupted;

/// The rate of a choice is a ratio whose denominator stays below 2^63, with at most this many binary places of eta.
const ETA_BITS: u32 = 30;

/// The standard deviation, in lattice units, that is `noise_multiplier` times the sensitivity, rounded up. The factor covers
/// the rounding of both products.
///
/// It is 0 where there is no such number; no sampler accepts that.
pub fn gaussian_sigma(sensitivity: f64, noise_multiplier: f64) -> u64 {
    (sensitivity * noise_multiplier * (1.0 + 1e-15)).ceil() as u64
}

/// p/q with range * p/q <= eta, exactly: eta is rounded down to as many binary places as fit.
fn choice_rate(range: u64, eta: f64) -> Result<(u64, u64), Error> {
    let refused = |reason: String| Err(Error::Refused(reason));
    if !(1..1 << 63).contains(&range) {
        return refused(format!("a choice needs scores whose range lies between 1 and 2^63, got {range}"));
    }
    let bits = ETA_BITS.min(63 - (u64::BITS - range.leading_zeros()));
    let p = (eta * f64::from(bits).exp2()).floor();
    if !(0.0..2f64.powi(63)).contains(&p) {
        return refused(format!("eta must lie between 0 and 2^33, got {eta}"));
    }
    Ok((p as u64, range << bits))
}

/// Candidates that are too many to list: an exact sampler over them, and the score that it draws by.
pub trait Selection {
    /// A candidate, by the randomness of `rng` alone.
    fn draw(&mut self, rng: &mut ChaCha20Rng) -> Result<Vec<i64>, Interrupted>;

    /// The exact score of a candidate.
    fn score(&self, candidate: &[i64]) -> i64;

    /// By how much a candidate's score may move between neighbours.
    fn sensitivity(&self) -> Sensitivity;
}

/// What the kinds of tape do differently. It is sealed: a tape of another folder would see exact values.
pub(in crate::release) mod kind {
    use super::*;

    /// A kind of tape.
    pub trait Kind {
        /// When data sets are neighbours.
        fn relation(&self) -> Neighbours;

        /// The streams under this tape.
        fn streams(&mut self) -> &mut Streams;

        /// The exact values with noise, each coordinate independently.
        fn release(&mut self, request: &Request, exact: &[i64]) -> Result<Vec<i64>, Error>;

        /// A candidate drawn by its score.
        fn select(&mut self, request: &Request, selection: &mut dyn Selection) -> Result<Vec<i64>, Error>;
    }
}

/// Where exact integers become noisy ones.
///
/// An answer of another form, or without a finite sensitivity under the tape's relation, is refused.
pub trait Tape: kind::Kind + Send + Sync {
    /// When data sets are neighbours, for everything that this tape releases.
    fn neighbours(&self) -> Neighbours {
        self.relation()
    }

    /// A vector with discrete Gaussian noise of standard deviation [`gaussian_sigma`].
    ///
    /// **Cost**: 1/(2 noise_multiplier^2) of zero-concentrated differential privacy, at most.
    fn gaussian(&mut self, name: &str, exact: &Exact, noise_multiplier: f64) -> Result<Vec<i64>, Error> {
        let sigma = gaussian_sigma(exact.sensitivity().under(self.relation()), noise_multiplier);
        release_vector(self, name, exact, Noise::Gaussian { sigma })
    }

    /// A vector with two-sided geometric noise: P(k) proportional to exp(-|k| p/q) on every coordinate.
    ///
    /// **Cost**: a vector of one is pure, sensitivity p/q. The rate is the caller's: it is charged by what the caller proves.
    fn laplace(&mut self, name: &str, exact: &Exact, (p, q): (u64, u64)) -> Result<Vec<i64>, Error> {
        release_vector(self, name, exact, Noise::Laplace { p, q })
    }

    /// A vector with one-sided geometric noise: P(k) proportional to exp(-k p/q), k >= 0, on every coordinate.
    ///
    /// **Cost**: none of its own, for one-sided noise shows where it starts; a mechanism that compares such values, as
    /// AboveThreshold does, proves what they cost together.
    fn geometric(&mut self, name: &str, exact: &Exact, (p, q): (u64, u64)) -> Result<Vec<i64>, Error> {
        release_vector(self, name, exact, Noise::Geometric { p, q })
    }

    /// The exponential mechanism: an index, by weights exp(-score * rate). The rate is eta over the scores' range, or over
    /// `at_least` where that is larger.
    ///
    /// **Cost**: bounded range eta, for the log-odds of two indices move by at most that between neighbours.
    ///
    /// Scores without a range cannot be chosen from: where nothing moves there is nothing to hide, and no tape is needed.
    fn choose(&mut self, name: &str, exact: &Exact, eta: f64, at_least: u64) -> Result<usize, Error> {
        let scores = opened(name, exact, Form::Scores)?;
        if scores.is_empty() {
            return Err(Error::Refused("there is nothing to choose from".into()));
        }
        let own = finite(name, exact.sensitivity().under(self.relation()))?;
        // A range beyond 2^63 saturates, and is refused.
        let range = (own.ceil() as u64).max(at_least);
        let (p, q) = choice_rate(range, eta)?;
        let request = Request::new(name, Noise::Choice { p, q }, range as f64)?;
        Ok(self.release(&request, &scores)?[0] as usize)
    }

    /// A candidate drawn by its score, with weights 2^(-score * rate / 2^71). Only the candidate is a release: a recording
    /// keeps its score, and a replay checks that a neighbour's score at the same candidate is within the sensitivity.
    ///
    /// **Cost**: pure, 2 ln 2 * rate/2^71 * sensitivity, and of that bounded range.
    fn draw(&mut self, name: &str, rate: u64, selection: &mut dyn Selection) -> Result<Vec<i64>, Error> {
        let sensitivity = selection.sensitivity().under(self.relation());
        let request = Request::new(name, Noise::Lattice { rate }, sensitivity)?;
        self.select(&request, selection)
    }

    /// Hidden randomness. It uses up the stream number of one release.
    fn hidden(&mut self) -> Stream {
        let neighbours = self.relation();
        self.streams().hidden(neighbours)
    }
}

/// A vector with noise on every coordinate.
fn release_vector<T>(tape: &mut T, name: &str, exact: &Exact, noise: Noise) -> Result<Vec<i64>, Error>
where
    T: kind::Kind + ?Sized,
{
    let values = opened(name, exact, Form::Vector)?;
    let request = Request::new(name, noise, exact.sensitivity().under(tape.relation()))?;
    tape.release(&request, &values)
}

/// The values of an answer of the right form.
fn opened(name: &str, exact: &Exact, form: Form) -> Result<Vec<i64>, Error> {
    if exact.form() == form {
        return Ok(exact.open());
    }
    let hint = if exact.form() == Form::Table { "; pick an entry" } else { "" };
    Err(Error::Refused(format!("{name:?} needs the form {form:?}, not {exact:?}{hint}")))
}

/// Fresh noise: what every run outside the tests uses.
pub struct Draw {
    streams: Streams,
    neighbours: Neighbours,
}

impl Draw {
    /// A tape for one run.
    pub fn new(streams: Streams, neighbours: Neighbours) -> Self {
        Self { streams, neighbours }
    }
}

impl kind::Kind for Draw {
    fn relation(&self) -> Neighbours {
        self.neighbours
    }

    fn streams(&mut self) -> &mut Streams {
        &mut self.streams
    }

    fn release(&mut self, request: &Request, exact: &[i64]) -> Result<Vec<i64>, Error> {
        Ok(self.streams.add_noise(request, exact))
    }

    fn select(&mut self, _request: &Request, selection: &mut dyn Selection) -> Result<Vec<i64>, Error> {
        Ok(selection.draw(&mut self.streams.single())?)
    }
}

impl Tape for Draw {}

#[cfg(test)]
mod tests {
    use super::*;

    fn tape(neighbours: Neighbours) -> Draw {
        Draw::new(Streams::from_key([1; 32]), neighbours)
    }

    fn sensitivity() -> Sensitivity {
        Sensitivity::new((1u64 << 31) as f64, f64::INFINITY)
    }

    #[test]
    fn an_answer_of_another_form_is_refused() {
        let [vector, table, scores] =
            [Exact::vector, Exact::table, Exact::scores].map(|f| f(vec![1, 2], sensitivity()));
        let mut tape = tape(Neighbours::Replace);
        for exact in [&table, &scores] {
            assert!(tape.gaussian("test", exact, 1.0).is_err());
            assert!(tape.laplace("test", exact, (1, 5)).is_err());
            assert!(tape.geometric("test", exact, (1, 5)).is_err());
        }
        for exact in [&vector, &table] {
            assert!(tape.choose("test", exact, 1.0, 0).is_err());
        }
        assert!(
            tape.gaussian("test", &vector, 1.0).is_ok() && tape.gaussian("test", &table.pick(1).unwrap(), 1.0).is_ok()
        );
        assert!(tape.choose("test", &scores, 1.0, 0).is_ok());
    }

    #[test]
    fn an_answer_without_a_finite_sensitivity_is_refused() {
        let mut tape = tape(Neighbours::AddRemove);
        for bad in [f64::INFINITY, f64::NAN, -1.0] {
            let exact = Exact::vector(vec![1], Sensitivity::new(1.0, bad));
            assert!(matches!(tape.gaussian("test", &exact, 1e9), Err(Error::Refused(_))));
            assert!(matches!(tape.laplace("test", &exact, (1, 5)), Err(Error::Refused(_))));
            assert!(matches!(tape.geometric("test", &exact, (1, 5)), Err(Error::Refused(_))));
            let exact = Exact::scores(vec![1], Sensitivity::new(1.0, bad));
            for at_least in [0, 5] {
                assert!(matches!(tape.choose("test", &exact, 1.0, at_least), Err(Error::Refused(_))), "{bad}");
            }
        }
    }

    #[test]
    fn a_multiplier_without_a_sampler_is_refused() {
        let exact = Exact::stated(&[1], 1.0, false);
        for multiplier in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300] {
            assert!(tape(Neighbours::Replace).gaussian("test", &exact, multiplier).is_err(), "{multiplier}");
        }
        assert!(tape(Neighbours::Replace).gaussian("test", &Exact::public(&[1]), 1.0).is_err());
        assert!(tape(Neighbours::Replace).geometric("test", &Exact::public(&[1]), (1, 5)).is_ok());
    }

    #[test]
    fn sigma_is_rounded_up() {
        assert_eq!(gaussian_sigma(2.0, 2f64.powi(31)), (1 << 32) + 1);
        assert_eq!((gaussian_sigma(1.0, 0.1), gaussian_sigma(0.0, 1.0), gaussian_sigma(f64::NAN, 1.0)), (1, 0, 0));
    }

    #[test]
    fn the_rate_of_a_choice_spends_at_most_eta() {
        for range in [1, 2, 3, (1 << 34) + 1, (1 << 62) - 1, 1 << 62, (1 << 63) - 1] {
            for eta in [1e-12, 0.1, 1.0, 7.3, 1e6] {
                let (p, q) = choice_rate(range, eta).unwrap();
                // range p/q is p 2^-bits, a double.
                let spent = p as f64 / (q / range) as f64;
                assert!(q % range == 0 && spent <= eta && eta - spent < 1.0, "{range} {eta}");
            }
        }
        for (range, eta) in [(0, 1.0), (1 << 63, 1.0), (5, -1.0), (5, f64::NAN), (5, f64::INFINITY)] {
            assert!(choice_rate(range, eta).is_err(), "{range} {eta}");
        }
    }
}
