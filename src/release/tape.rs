//! The tape: the one place where exact integers become noisy ones.
//!
//! Every release of every mechanism goes through [`Tape`]. [`Draw`] adds fresh noise; [`Record`] does too, and keeps what
//! happened; [`Replay`] gives the recorded outputs back on another data set, and checks on the way that the same releases
//! were asked for and that the exact values moved by no more than the declared sensitivity. A mechanism cannot tell the
//! three apart, so what the tests replay is what runs.

use std::fmt;

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::mechanism::descent::Stopped;
use crate::runtime::pool;
use crate::runtime::pulse::Interrupted;
use crate::sampler::{Choice, DiscreteGaussian, DiscreteLaplace, Geometric};

/// Coordinates that share a stream; longer vectors draw their blocks in parallel.
const BLOCK: usize = 1024;

/// Streams are numbered release * 2^24 + block, so the noise depends on the key and the place, never on a thread.
const BLOCKS_PER_RELEASE: u32 = 24;

/// The distribution of the noise on every coordinate, in lattice units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noise {
    /// The discrete Gaussian of an integer standard deviation.
    Gaussian {
        /// Standard deviation.
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
    /// Nothing is added: the answer is one index, P(i) proportional to exp(-value_i p/q), the exponential mechanism.
    Choice {
        /// Numerator of the rate.
        p: u64,
        /// Denominator of the rate.
        q: u64,
    },
    /// Nothing is added: the answer is a point of a lattice, P(z) proportional to 2^(-score(z) rate / 2^71), drawn by
    /// [`Tape::draw`]; the sensitivity is that of the score.
    Lattice {
        /// Halvings of the weight per unit of 2^71.
        rate: u64,
    },
}

impl Noise {
    /// The width of the noise in lattice units: a standard deviation, or the change that costs a factor e.
    pub fn scale(&self) -> f64 {
        match *self {
            Self::Gaussian { sigma } => sigma as f64,
            Self::Laplace { p, q } | Self::Geometric { p, q } | Self::Choice { p, q } => q as f64 / p as f64,
            Self::Lattice { rate } => 71f64.exp2() / (rate as f64 * std::f64::consts::LN_2),
        }
    }
}

/// Noise whose parameters no sampler accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadNoise(pub Noise);

/// A sampler that was checked once; drawing from it cannot fail.
#[derive(Debug, Clone, Copy)]
enum Sampler {
    Gaussian(DiscreteGaussian),
    Laplace(DiscreteLaplace),
    Geometric(Geometric),
    Choice(Choice),
    Lattice,
}

impl Sampler {
    fn sample(&self, rng: &mut ChaCha20Rng) -> i128 {
        match self {
            Self::Gaussian(gaussian) => gaussian.sample(rng).into(),
            Self::Laplace(laplace) => laplace.sample(rng),
            Self::Geometric(geometric) => geometric.sample(rng).try_into().unwrap_or(i128::MAX),
            Self::Choice(_) => 0,
            Self::Lattice => panic!("a draw from a lattice adds no noise to values"),
        }
    }
}

/// A release as a mechanism asks for it: a name for the reader, the noise, and the sensitivity in lattice units.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The stage and the quantity, for instance `fine gradient`.
    pub name: String,
    /// The noise on every coordinate.
    pub noise: Noise,
    /// The largest distance between the exact values of two neighbours: L2, or for a choice the range, by how much the
    /// difference of two values may move.
    pub sensitivity: f64,
    sampler: Sampler,
}

impl PartialEq for Sampler {
    /// A sampler is determined by the noise it was made from, which requests compare.
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Request {
    /// Checks the noise once.
    pub fn new(name: impl Into<String>, noise: Noise, sensitivity: f64) -> Result<Self, BadNoise> {
        let sampler = match noise {
            Noise::Gaussian { sigma } => DiscreteGaussian::new(sigma).map(Sampler::Gaussian),
            Noise::Laplace { p, q } => DiscreteLaplace::new(p, q).map(Sampler::Laplace),
            Noise::Geometric { p, q } => Geometric::new(p, q).map(Sampler::Geometric),
            Noise::Choice { p, q } => Choice::new(p, q).map(Sampler::Choice),
            Noise::Lattice { .. } => Some(Sampler::Lattice),
        };
        let sampler = sampler.ok_or(BadNoise(noise))?;
        Ok(Self { name: name.into(), noise, sensitivity, sampler })
    }

    /// What `sensitivity` bounds for neighbours.
    fn distance(&self, a: &[i64], b: &[i64]) -> f64 {
        if let Sampler::Choice(_) = self.sampler {
            let moved = || a.iter().zip(b).map(|(a, b)| i128::from(*a) - i128::from(*b));
            return (moved().max().unwrap_or(0) - moved().min().unwrap_or(0)) as f64;
        }
        a.iter().zip(b).map(|(a, b)| a.abs_diff(*b) as f64).map(|x| x * x).sum::<f64>().sqrt()
    }
}

/// What a recording tape kept of one release. It contains private data: for tests only.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// What was asked for.
    pub request: Request,
    /// The values before the noise.
    pub exact: Vec<i64>,
    /// The values after it.
    pub noisy: Vec<i64>,
}

/// A replay that does not match its recording: the privacy argument is broken, or the data sets are no neighbours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch(pub String);

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Mismatch {}

/// A key and the number of the next stream.
#[derive(Clone)]
pub struct Streams {
    key: [u8; 32],
    next: u64,
}

impl Streams {
    /// A key from the operating system.
    pub fn from_system() -> Result<Self, getrandom::Error> {
        let mut key = [0; 32];
        getrandom::fill(&mut key)?;
        Ok(Self::from_key(key))
    }

    /// A chosen key: for tests and simulations only.
    pub fn from_key(key: [u8; 32]) -> Self {
        Self { key, next: 0 }
    }

    /// A generator of public randomness (offsets, pairings): independent of the data, and the same in a replay.
    pub fn public(&mut self) -> ChaCha20Rng {
        let release = self.advance();
        self.stream(release, 0)
    }

    fn advance(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    fn stream(&self, release: u64, block: u64) -> ChaCha20Rng {
        let mut rng = ChaCha20Rng::from_seed(self.key);
        rng.set_stream(release << BLOCKS_PER_RELEASE | block);
        rng
    }

    fn add_noise(&mut self, request: &Request, exact: &[i64]) -> Vec<i64> {
        let release = self.advance();
        if let Sampler::Choice(choice) = request.sampler {
            return vec![choice.sample(exact, &mut self.stream(release, 0)) as i64];
        }
        let mut noisy = exact.to_vec();
        let add = |(block, values): (usize, &mut [i64])| {
            let mut rng = self.stream(release, block as u64);
            for value in values {
                let noisy = i128::from(*value).saturating_add(request.sampler.sample(&mut rng));
                // Clamping the sum, not the noise, is post-processing of the noisy integer.
                *value = noisy.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
            }
        };
        pool::for_each_in_parallel(noisy.chunks_mut(BLOCK).enumerate(), add);
        noisy
    }
}

/// Candidates that are too many to list: an exact sampler over them, and the score that it draws by.
pub trait Selection {
    /// A candidate, by the randomness of `rng` alone.
    fn draw(&mut self, rng: &mut ChaCha20Rng) -> Result<Vec<i64>, Interrupted>;

    /// The exact score of a candidate.
    fn score(&self, candidate: &[i64]) -> i64;
}

/// Where exact integers become noisy ones.
pub trait Tape: Send + Sync {
    /// A candidate drawn by its score. Only the candidate is a release: a recording keeps its score, and a replay checks
    /// that a neighbour's score at the same candidate is within the sensitivity.
    fn draw(&mut self, request: &Request, selection: &mut dyn Selection) -> Result<Vec<i64>, Stopped> {
        let release = self.streams().advance();
        let mut rng = self.streams().stream(release, 0);
        let candidate = selection.draw(&mut rng).map_err(Stopped::Interrupted)?;
        self.keep(request, &[selection.score(&candidate)], &candidate);
        Ok(candidate)
    }

    /// Keeps what happened, if this tape records.
    fn keep(&mut self, _request: &Request, _exact: &[i64], _noisy: &[i64]) {}

    /// The exact values with noise, each coordinate independently.
    fn release(&mut self, request: &Request, exact: &[i64]) -> Result<Vec<i64>, Mismatch>;

    /// The streams under this tape, for public randomness.
    fn streams(&mut self) -> &mut Streams;

    /// What was recorded or replayed so far, if this tape does either.
    fn entries(&self) -> &[Entry] {
        &[]
    }
}

/// Fresh noise: what every run outside the tests uses.
pub struct Draw(pub Streams);

impl Tape for Draw {
    fn release(&mut self, request: &Request, exact: &[i64]) -> Result<Vec<i64>, Mismatch> {
        Ok(self.0.add_noise(request, exact))
    }

    fn streams(&mut self) -> &mut Streams {
        &mut self.0
    }
}

/// Fresh noise, and a record of every release.
pub struct Record {
    streams: Streams,
    entries: Vec<Entry>,
}

impl Record {
    /// An empty recording.
    pub fn new(streams: Streams) -> Self {
        Self { streams, entries: Vec::new() }
    }
}

impl Tape for Record {
    fn release(&mut self, request: &Request, exact: &[i64]) -> Result<Vec<i64>, Mismatch> {
        let noisy = self.streams.add_noise(request, exact);
        self.keep(request, exact, &noisy);
        Ok(noisy)
    }

    fn keep(&mut self, request: &Request, exact: &[i64], noisy: &[i64]) {
        self.entries.push(Entry { request: request.clone(), exact: exact.to_vec(), noisy: noisy.to_vec() });
    }

    fn streams(&mut self) -> &mut Streams {
        &mut self.streams
    }

    fn entries(&self) -> &[Entry] {
        &self.entries
    }
}

/// The recorded outputs again, each checked against what is asked for now.
pub struct Replay {
    streams: Streams,
    entries: Vec<Entry>,
    position: usize,
}

impl Replay {
    /// Replays a recording made with the same key.
    pub fn new(streams: Streams, entries: Vec<Entry>) -> Self {
        Self { streams, entries, position: 0 }
    }
}

impl Tape for Replay {
    fn release(&mut self, request: &Request, exact: &[i64]) -> Result<Vec<i64>, Mismatch> {
        self.streams.advance();
        let entry = self
            .entries
            .get_mut(self.position)
            .ok_or_else(|| Mismatch(format!("release {} ({}) is not in the recording", self.position, request.name)))?;
        if entry.request != *request || entry.exact.len() != exact.len() {
            return Err(Mismatch(format!(
                "release {}: asked for {request:?} of {} values, recorded {:?} of {}",
                self.position,
                exact.len(),
                entry.request,
                entry.exact.len()
            )));
        }
        let distance = request.distance(&entry.exact, exact);
        if distance > request.sensitivity {
            return Err(Mismatch(format!(
                "release {} ({}): neighbours differ by {distance}, the declared sensitivity is {}",
                self.position, request.name, request.sensitivity
            )));
        }
        entry.exact = exact.to_vec();
        self.position += 1;
        Ok(entry.noisy.clone())
    }

    fn streams(&mut self) -> &mut Streams {
        &mut self.streams
    }

    fn draw(&mut self, request: &Request, selection: &mut dyn Selection) -> Result<Vec<i64>, Stopped> {
        let score = self.entries.get(self.position).map(|entry| selection.score(&entry.noisy));
        self.release(request, score.as_slice()).map_err(Stopped::Mismatch)
    }

    /// What was replayed so far, with the exact values of this data set: as long as the recording when the run asked for
    /// everything.
    fn entries(&self) -> &[Entry] {
        &self.entries[..self.position]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gaussian(sensitivity: f64) -> Request {
        Request::new("test", Noise::Gaussian { sigma: 1 << 30 }, sensitivity).unwrap()
    }

    fn recorded(exact: &[i64]) -> Vec<Entry> {
        let mut tape = Record::new(Streams::from_key([7; 32]));
        tape.release(&gaussian(2.0), exact).unwrap();
        tape.entries().to_vec()
    }

    #[test]
    fn noise_depends_on_the_key_and_the_place_only() {
        let exact = vec![0; 5000];
        let run = |threads| {
            pool::set_threads(Some(threads));
            let mut tape = Draw(Streams::from_key([1; 32]));
            let first = tape.release(&gaussian(1.0), &exact).unwrap();
            (first, tape.release(&gaussian(1.0), &exact).unwrap())
        };
        let (one, two) = (run(1), run(4));
        pool::set_threads(None);
        assert_eq!(one, two);
        assert_ne!(one.0, one.1, "two releases must not share their noise");
        assert_ne!(one.0[..BLOCK], one.0[BLOCK..2 * BLOCK], "two blocks must not share their noise");
    }

    /// The mean square of N draws, against that of the continuous noise, which differs by less than 1e-8 at this width. Its
    /// relative deviation is sqrt(2/N) for the Gaussian and sqrt(5/N) for both others: six of them fail with probability
    /// below 1e-6, and the key is fixed.
    #[test]
    fn noise_has_the_scale_that_was_asked_for() {
        const N: usize = 40_000;
        let (p, q) = (3, 1 << 30);
        for (noise, square, relative) in [
            (Noise::Gaussian { sigma: 1 << 30 }, 1.0, 2.0f64),
            (Noise::Laplace { p, q }, 2.0, 5.0),
            (Noise::Geometric { p, q }, 2.0, 5.0),
        ] {
            let mut tape = Draw(Streams::from_key([2; 32]));
            let drawn = tape.release(&Request::new("test", noise, 1.0).unwrap(), &vec![0; N]).unwrap();
            let mean = drawn.iter().map(|&x| (x as f64 / noise.scale()).powi(2)).sum::<f64>() / N as f64;
            assert!((mean / square - 1.0).abs() < 6.0 * (relative / N as f64).sqrt(), "{noise:?}: {mean}");
        }
    }

    #[test]
    fn no_two_keys_of_the_system_are_alike() {
        let key = || Streams::from_system().unwrap().key;
        assert_ne!(key(), key());
    }

    #[test]
    fn a_replay_returns_the_recording_within_the_sensitivity() {
        let entries = recorded(&[3, 4]);
        let mut replay = Replay::new(Streams::from_key([7; 32]), entries.clone());
        assert_eq!(replay.release(&gaussian(2.0), &[5, 4]).unwrap(), entries[0].noisy);
        assert_eq!(replay.entries(), [Entry { exact: vec![5, 4], ..entries[0].clone() }]);
    }

    #[test]
    fn a_replay_refuses_what_does_not_match() {
        let replay = |request: Request, exact: &[i64]| {
            Replay::new(Streams::from_key([7; 32]), recorded(&[3, 4])).release(&request, exact)
        };
        assert!(replay(gaussian(2.0), &[6, 4]).is_err(), "farther than the sensitivity");
        assert!(replay(gaussian(3.0), &[3, 4]).is_err(), "another sensitivity");
        assert!(replay(gaussian(2.0), &[3]).is_err(), "another length");
        let laplace = Request::new("test", Noise::Laplace { p: 1, q: 5 }, 2.0).unwrap();
        assert!(replay(laplace, &[3, 4]).is_err(), "other noise");
        let mut replay = Replay::new(Streams::from_key([7; 32]), vec![]);
        assert!(replay.release(&gaussian(2.0), &[1]).is_err(), "a release too many");
    }

    #[test]
    fn a_choice_is_an_index_and_its_replay_bounds_the_range() {
        let request = |range| Request::new("choice", Noise::Choice { p: 1, q: 100 }, range).unwrap();
        let mut tape = Record::new(Streams::from_key([7; 32]));
        let chosen = tape.release(&request(4.0), &[5, 1000, 100_000]).unwrap();
        assert!(chosen == [0] || chosen == [1]);
        let replay = |scores: &[i64]| {
            Replay::new(Streams::from_key([7; 32]), tape.entries().to_vec()).release(&request(4.0), scores)
        };
        // All scores may move together: only their differences matter.
        assert_eq!(replay(&[1005, 2000, 101_000]).unwrap(), chosen);
        assert_eq!(replay(&[3, 1002, 100_000]).unwrap(), chosen);
        assert!(replay(&[3, 1003, 100_000]).is_err());
        assert_eq!(
            Request::new("choice", Noise::Choice { p: 1, q: 0 }, 1.0),
            Err(BadNoise(Noise::Choice { p: 1, q: 0 }))
        );
    }

    /// Always the same candidate, with a given score.
    struct Single(i64);

    impl Selection for Single {
        fn draw(&mut self, _rng: &mut ChaCha20Rng) -> Result<Vec<i64>, Interrupted> {
            Ok(vec![4, 2])
        }

        fn score(&self, candidate: &[i64]) -> i64 {
            assert_eq!(candidate, [4, 2]);
            self.0
        }
    }

    #[test]
    fn a_replayed_draw_compares_the_scores_of_the_recorded_candidate() {
        let request = |rate| Request::new("draw", Noise::Lattice { rate }, 10.0).unwrap();
        let mut tape = Record::new(Streams::from_key([7; 32]));
        assert_eq!(tape.draw(&request(5), &mut Single(100)), Ok(vec![4, 2]));
        assert_eq!(tape.entries()[0].exact, [100]);
        let replay = |request, score| {
            Replay::new(Streams::from_key([7; 32]), tape.entries().to_vec()).draw(&request, &mut Single(score))
        };
        assert_eq!(replay(request(5), 110), Ok(vec![4, 2]));
        assert!(replay(request(5), 111).is_err(), "farther than the sensitivity");
        assert!(replay(request(6), 100).is_err(), "another rate");
        let mut empty = Replay::new(Streams::from_key([7; 32]), vec![]);
        assert!(empty.draw(&request(5), &mut Single(100)).is_err(), "a draw too many");
    }
}
