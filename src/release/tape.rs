//! The tape: the only place where noise is added to exact integers.
//!
//! Every release of every mechanism goes through [`Tape`]. The neighbor relation of a tape is fixed when it is created.
//! The tape takes the sensitivity from the value that it opens, and a caller cannot state another sensitivity. [`Draw`]
//! adds fresh noise. The tapes of [`super::recording`] record a run or replay it. A mechanism does not know which kind
//! of tape it has, so the tests replay the same code that runs in production. A tape with an [`Allowance`] refuses
//! releases beyond the charge.

use rand_chacha::ChaCha20Rng;

use super::allowance::Allowance;
use super::error::Error;
use super::exact::{Exact, Form};
use super::noise::{Noise, Request, finite};
use super::sensitivity::{Neighbours, Sensitivity};
use super::streams::{Stream, Streams};
use super::trace::{Trace, Traced};
use crate::runtime::pulse::Interrupted;

/// The largest number of binary places of eta in the rate of a choice. The rate is a ratio of integers with a
/// denominator below 2^63.
const ETA_BITS: u32 = 30;

/// The standard deviation in lattice units: `noise_multiplier` times the sensitivity, rounded up. The additional factor
/// covers the rounding errors of the products.
///
/// The result is 0 if the product is not a positive number. No sampler accepts 0.
pub fn gaussian_sigma(sensitivity: f64, noise_multiplier: f64) -> u64 {
    (sensitivity * noise_multiplier * (1.0 + 1e-15)).ceil() as u64
}

/// A ratio p/q such that range * p/q <= eta holds exactly. For this purpose, eta is rounded down to as many binary
/// places as fit.
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

/// An exact sampler over candidates that are too many to list, and their scores.
pub trait Selection {
    /// Draws a candidate with the randomness of `rng` alone.
    fn draw(&mut self, rng: &mut ChaCha20Rng) -> Result<Vec<i64>, Interrupted>;

    /// The exact score of a candidate.
    fn score(&self, candidate: &[i64]) -> i64;

    /// The largest change of the score of a candidate between neighbors.
    fn sensitivity(&self) -> Sensitivity;
}

/// The operations that differ between the kinds of tape. The trait is sealed, because a tape in another folder could
/// see exact values.
pub(in crate::release) mod kind {
    use super::*;

    /// A kind of tape.
    pub trait Kind {
        /// The state that every kind has.
        fn state(&self) -> &State;

        /// The state that every kind has, for changes.
        fn state_mut(&mut self) -> &mut State;

        /// The exact values plus independent noise on each coordinate.
        fn release(&mut self, request: &Request, exact: &[i64]) -> Result<Vec<i64>, Error>;

        /// A candidate drawn by its score.
        fn select(&mut self, request: &Request, selection: &mut dyn Selection) -> Result<Vec<i64>, Error>;
    }
}

/// The tape, which adds noise to exact integers.
///
/// A tape refuses an answer that has another form than the release needs, or no finite sensitivity under the relation
/// of the tape.
pub trait Tape: kind::Kind + Send + Sync {
    /// The neighbor relation of everything that this tape releases.
    fn neighbours(&self) -> Neighbours {
        self.state().neighbours
    }

    /// The releases so far.
    fn trace(&self) -> &[Traced] {
        self.state().trace.entries()
    }

    /// Sets two limits for all later releases: on the sum of (sensitivity/sigma)^2 over Gaussian releases, and on the
    /// sum of the bounded ranges of choices and draws. The limits can be set only once. A release that would exceed a
    /// limit by more than rounding errors fails without opening a value.
    ///
    /// Laplace and geometric noise is not counted. A tape for which this function was not called has no limit.
    fn allow(&mut self, mu_squared: f64, ranges: f64) -> Result<(), Error> {
        self.state_mut().allowance.set(mu_squared, ranges)
    }

    /// A vector plus discrete Gaussian noise with the standard deviation [`gaussian_sigma`].
    ///
    /// **Cost**: at most 1/(2 noise_multiplier^2) in zero-concentrated differential privacy.
    fn gaussian(&mut self, name: &str, exact: &Exact, noise_multiplier: f64) -> Result<Vec<i64>, Error> {
        let sigma = gaussian_sigma(exact.sensitivity().under(self.neighbours()), noise_multiplier);
        release_vector(self, name, exact, Noise::Gaussian { sigma })
    }

    /// A vector of length one plus two-sided geometric noise: P(k) proportional to exp(-|k| p/q).
    ///
    /// **Cost**: pure differential privacy with epsilon = sensitivity * p/q. A longer vector would need its L1
    /// sensitivity, which answers do not store. The caller chooses the rate, and must prove and charge the cost.
    fn laplace(&mut self, name: &str, exact: &Exact, (p, q): (u64, u64)) -> Result<Vec<i64>, Error> {
        release_single(self, name, exact, Noise::Laplace { p, q })
    }

    /// A vector of length one plus one-sided geometric noise: P(k) proportional to exp(-k p/q), k >= 0.
    ///
    /// **Cost**: not bounded for a single value, because one-sided noise reveals a lower bound of the value. A
    /// mechanism that compares several such values, as AboveThreshold does, must prove their common cost.
    fn geometric(&mut self, name: &str, exact: &Exact, (p, q): (u64, u64)) -> Result<Vec<i64>, Error> {
        release_single(self, name, exact, Noise::Geometric { p, q })
    }

    /// The exponential mechanism: an index i with probability proportional to exp(-score_i * rate). The rate is eta
    /// divided by the larger of `at_least` and the range of the scores.
    ///
    /// **Cost**: bounded range eta, because the log-odds of two indices move by at most eta between neighbors.
    ///
    /// Scores with range 0 are refused, because they do not depend on the data and no tape is needed.
    fn choose(&mut self, name: &str, exact: &Exact, eta: f64, at_least: u64) -> Result<usize, Error> {
        check_form(name, exact, Form::Scores)?;
        if exact.is_empty() {
            return Err(Error::Refused("there are no candidates to choose from".into()));
        }
        let own = finite(name, exact.sensitivity().under(self.neighbours()))?;
        // A range beyond 2^63 saturates and is then refused.
        let range = (own.ceil() as u64).max(at_least);
        let (p, q) = choice_rate(range, eta)?;
        let request = Request::new(name, Noise::Choice { p, q }, range as f64)?;
        self.state_mut().allowance.spend(&request)?;
        let chosen = self.release(&request, &exact.open())?;
        self.state_mut().trace.keep(&request, exact.query(), &chosen);
        Ok(chosen[0] as usize)
    }

    /// Adds the release of a mechanism that compared noisy values to the trace. `found` is the released index, or
    /// `None` if no value was found. The mechanism was charged `epsilon` for this release.
    fn outcome(&mut self, name: &str, sensitivity: f64, epsilon: f64, found: Option<i64>) {
        self.state_mut().trace.outcome(name, sensitivity, epsilon, found);
    }

    /// Draws a candidate with probability proportional to 2^(-score * rate / 2^71). Only the candidate is released. A
    /// recording also stores the score of the candidate. A replay checks that the score of the same candidate on a
    /// neighbor differs by at most the sensitivity.
    ///
    /// **Cost**: 2 ln 2 * rate/2^71 * sensitivity, as pure differential privacy and as bounded range.
    fn draw(&mut self, name: &str, rate: u64, selection: &mut dyn Selection) -> Result<Vec<i64>, Error> {
        let sensitivity = selection.sensitivity().under(self.neighbours());
        let request = Request::new(name, Noise::Lattice { rate }, sensitivity)?;
        self.state_mut().allowance.spend(&request)?;
        let point = self.select(&request, selection)?;
        self.state_mut().trace.keep(&request, None, &point);
        Ok(point)
    }

    /// Hidden randomness. It uses up the position of one release.
    fn hidden(&mut self) -> Stream {
        let neighbours = self.neighbours();
        self.state_mut().streams.hidden(neighbours)
    }
}

/// Releases a vector with noise on every coordinate.
fn release_vector<T>(tape: &mut T, name: &str, exact: &Exact, noise: Noise) -> Result<Vec<i64>, Error>
where
    T: kind::Kind + ?Sized,
{
    check_form(name, exact, Form::Vector)?;
    let request = Request::new(name, noise, exact.sensitivity().under(tape.state().neighbours))?;
    tape.state_mut().allowance.spend(&request)?;
    let noisy = tape.release(&request, &exact.opened())?;
    tape.state_mut().trace.keep(&request, exact.query(), &noisy);
    Ok(noisy)
}

/// Releases a vector of length one. It is used for noise whose privacy depends on the L1 distance, because the L2
/// sensitivity bounds the L1 distance only in one dimension.
fn release_single<T>(tape: &mut T, name: &str, exact: &Exact, noise: Noise) -> Result<Vec<i64>, Error>
where
    T: kind::Kind + ?Sized,
{
    if exact.len() != 1 {
        let reason = "this noise needs a vector of length one, because sensitivities are L2 distances";
        return Err(Error::Refused(format!("{name:?}: {reason}; got {exact:?}, pick an entry")));
    }
    release_vector(tape, name, exact, noise)
}

/// Refuses an answer of another form.
fn check_form(name: &str, exact: &Exact, form: Form) -> Result<(), Error> {
    if exact.form() == form {
        return Ok(());
    }
    let hint = if exact.form() == Form::Table { "; pick an entry" } else { "" };
    Err(Error::Refused(format!("{name:?} needs the form {form:?}, not {exact:?}{hint}")))
}

/// The state of every kind of tape: the source of its noise, its relation, its limit, and the trace of its releases.
pub struct State {
    pub(in crate::release) streams: Streams,
    pub(in crate::release) neighbours: Neighbours,
    pub(in crate::release) allowance: Allowance,
    pub(in crate::release) trace: Trace,
}

impl State {
    /// The state of a tape that has released nothing.
    pub(in crate::release) fn new(streams: Streams, neighbours: Neighbours) -> Self {
        Self { streams, neighbours, allowance: Allowance::default(), trace: Trace::default() }
    }
}

/// A tape that draws fresh noise. Every run outside of the tests uses this kind.
pub struct Draw(State);

impl Draw {
    /// A tape for one run.
    pub fn new(streams: Streams, neighbours: Neighbours) -> Self {
        Self(State::new(streams, neighbours))
    }
}

impl kind::Kind for Draw {
    fn state(&self) -> &State {
        &self.0
    }

    fn state_mut(&mut self) -> &mut State {
        &mut self.0
    }

    fn release(&mut self, request: &Request, exact: &[i64]) -> Result<Vec<i64>, Error> {
        self.0.streams.answer(request, exact)
    }

    fn select(&mut self, _request: &Request, selection: &mut dyn Selection) -> Result<Vec<i64>, Error> {
        Ok(selection.draw(&mut self.0.streams.single())?)
    }
}

impl Tape for Draw {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::release::recording::{Record, Replay};

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
        }
        for exact in [Exact::table, Exact::scores].map(|f| f(vec![1], sensitivity())) {
            assert!(tape.laplace("test", &exact, (1, 5)).is_err());
            assert!(tape.geometric("test", &exact, (1, 5)).is_err());
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
                // The product range * p/q equals p 2^-bits, which a double holds exactly.
                let spent = p as f64 / (q / range) as f64;
                assert!(q % range == 0 && spent <= eta && eta - spent < 1.0, "{range} {eta}");
            }
        }
        for (range, eta) in [(0, 1.0), (1 << 63, 1.0), (5, -1.0), (5, f64::NAN), (5, f64::INFINITY)] {
            assert!(choice_rate(range, eta).is_err(), "{range} {eta}");
        }
    }

    #[test]
    fn noise_for_one_value_is_refused_for_a_vector() {
        for values in [&[][..], &[1, 2], &[0; 100]] {
            let exact = Exact::stated(values, 1.0, false);
            for mut tape in [tape(Neighbours::Replace), tape(Neighbours::AddRemove)] {
                assert!(matches!(tape.laplace("test", &exact, (1, 5)), Err(Error::Refused(_))));
                assert!(matches!(tape.geometric("test", &exact, (1, 5)), Err(Error::Refused(_))));
                assert!(tape.gaussian("test", &exact, 5.0).is_ok());
            }
        }
        let entry = Exact::stated(&[1, 2], 1.0, false).pick(1).unwrap();
        let mut tape = tape(Neighbours::Replace);
        assert!(tape.laplace("test", &entry, (1, 5)).is_ok() && tape.geometric("test", &entry, (1, 5)).is_ok());
    }

    /// Every kind of tape. The replaying tape has a recording of enough releases.
    fn tapes(ask: impl Fn(&mut dyn Tape)) -> Vec<Box<dyn Tape>> {
        let streams = || Streams::from_key([1; 32]);
        let mut record = Record::new(streams(), Neighbours::Replace);
        ask(&mut record);
        let replay = Replay::new(streams(), Neighbours::Replace, record.entries().to_vec());
        let empty = Record::new(streams(), Neighbours::Replace);
        vec![Box::new(tape(Neighbours::Replace)), Box::new(empty), Box::new(replay)]
    }

    #[test]
    fn gaussian_releases_end_with_the_allowance() {
        let exact = Exact::stated(&[1, 2, 3], 1000.0, false);
        let ask = |tape: &mut dyn Tape, multiplier| tape.gaussian("test", &exact, multiplier).map(drop);
        let all = |tape: &mut dyn Tape| (0..12).for_each(|_| ask(tape, 2.0).unwrap());
        for mut tape in tapes(all) {
            // Each release costs (1000/2001)^2, because sigma is rounded up.
            tape.allow(10.0 * (1000.0f64 / 2001.0).powi(2), 0.0).unwrap();
            assert!((0..10).all(|_| ask(tape.as_mut(), 2.0).is_ok()));
            assert!(matches!(ask(tape.as_mut(), 2.0), Err(Error::Refused(_))));
        }
    }

    #[test]
    fn what_is_refused_is_not_opened_and_not_spent() {
        let (exact, scores) = (Exact::stated(&[1], 1000.0, false), Exact::stated(&[1, 2], 4.0, true));
        let mut tape = Record::new(Streams::from_key([1; 32]), Neighbours::Replace);
        tape.allow(1.0, 0.5).unwrap();
        for _ in 0..5 {
            assert!(tape.gaussian("test", &exact, 0.5).is_err(), "too little noise");
            assert!(tape.choose("test", &scores, 0.6, 0).is_err(), "too large an eta");
            assert!(tape.draw("test", u64::MAX, &mut Never).is_err(), "too large a rate");
        }
        assert_eq!(tape.entries(), []);
        // The refused releases used neither the allowance nor random numbers.
        let noisy = tape.gaussian("test", &exact, 1.0).unwrap();
        assert_eq!(noisy, self::tape(Neighbours::Replace).gaussian("test", &exact, 1.0).unwrap());
        assert!(tape.choose("test", &scores, 0.5, 0).is_ok() && tape.entries().len() == 2);
        assert!(tape.gaussian("test", &exact, 10.0).is_err() && tape.choose("test", &scores, 1e-6, 0).is_err());
    }

    #[test]
    fn choices_and_draws_share_the_ranges_of_the_allowance() {
        let scores = Exact::stated(&[1, 2], 4.0, true);
        // The bounded range is 2 ln 2 sensitivity rate/2^71, and the sensitivity is 2^31.
        let rate = (0.25 / (2.0 * std::f64::consts::LN_2) * 2f64.powi(40)) as u64;
        let all = |tape: &mut dyn Tape| {
            tape.choose("test", &scores, 0.5, 0).unwrap();
            tape.draw("test", rate, &mut Single).unwrap();
            tape.choose("test", &scores, 0.25, 100).unwrap();
            tape.choose("test", &scores, 1e-3, 0).unwrap();
        };
        for mut tape in tapes(all) {
            tape.allow(0.0, 1.0).unwrap();
            assert!(tape.choose("test", &scores, 0.5, 0).is_ok());
            assert!(tape.draw("test", rate, &mut Single).is_ok());
            assert!(tape.choose("test", &scores, 0.3, 100).is_err_and(exceeded));
            assert!(tape.draw("test", rate + rate / 100, &mut Single).is_err_and(exceeded));
            assert!(tape.choose("test", &scores, 0.25, 100).is_ok());
            assert!(tape.choose("test", &scores, 1e-3, 0).is_err_and(exceeded));
            assert!(tape.gaussian("test", &Exact::stated(&[1], 1000.0, false), 1e6).is_err_and(exceeded));
        }
    }

    #[test]
    fn laplace_and_geometric_noise_is_not_counted() {
        let exact = Exact::stated(&[1], 1.0, false);
        let mut tape = tape(Neighbours::Replace);
        tape.allow(0.0, 0.0).unwrap();
        assert!((0..10).all(|_| tape.laplace("test", &exact, (1, 5)).is_ok()));
        assert!((0..10).all(|_| tape.geometric("test", &exact, (1, 5)).is_ok()));
    }

    #[test]
    fn an_allowance_is_set_once_and_is_a_number() {
        for (mu_squared, ranges) in [(-1.0, 0.0), (0.0, -1.0), (f64::NAN, 0.0), (0.0, f64::NAN)] {
            assert!(tape(Neighbours::Replace).allow(mu_squared, ranges).is_err(), "{mu_squared} {ranges}");
        }
        let mut tape = tape(Neighbours::Replace);
        assert!(tape.allow(1.0, 1.0).is_ok() && tape.allow(1.0, 1.0).is_err());
    }

    fn exceeded(error: Error) -> bool {
        matches!(error, Error::Refused(reason) if reason.contains("allowance"))
    }

    /// One candidate with a score of sensitivity one, in units of 2^-31.
    struct Single;

    impl Selection for Single {
        fn draw(&mut self, _rng: &mut ChaCha20Rng) -> Result<Vec<i64>, Interrupted> {
            Ok(vec![7])
        }

        fn score(&self, _candidate: &[i64]) -> i64 {
            5
        }

        fn sensitivity(&self) -> Sensitivity {
            Sensitivity::new((1u64 << 31) as f64, (1u64 << 31) as f64)
        }
    }

    /// A selection that must not be drawn from.
    struct Never;

    impl Selection for Never {
        fn draw(&mut self, _rng: &mut ChaCha20Rng) -> Result<Vec<i64>, Interrupted> {
            panic!("nothing may be drawn")
        }

        fn score(&self, _candidate: &[i64]) -> i64 {
            panic!("nothing may be opened")
        }

        fn sensitivity(&self) -> Sensitivity {
            Single.sensitivity()
        }
    }
}
