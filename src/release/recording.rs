//! Tapes for the tests. [`Record`] records every release of a run. [`Replay`] returns the recorded outputs in a run on
//! another data set. It checks that the second run requests the same releases, and that the exact values differ from
//! the recorded values by at most the sensitivity.

use super::error::Error;
use super::noise::Request;
use super::sensitivity::Neighbours;
use super::streams::Streams;
use super::tape::kind::Kind;
use super::tape::{Selection, State, Tape};

/// One recorded release. It contains private data and is for tests only.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The request.
    pub request: Request,
    /// The values before the noise, or the exact score of the selected candidate.
    pub exact: Vec<i64>,
    /// The values after the noise, or the selected candidate.
    pub noisy: Vec<i64>,
}

/// A tape that draws fresh noise and records every release.
pub struct Record {
    state: State,
    entries: Vec<Entry>,
}

impl Record {
    /// An empty recording.
    pub fn new(streams: Streams, neighbours: Neighbours) -> Self {
        Self { state: State::new(streams, neighbours), entries: Vec::new() }
    }

    /// The releases that were recorded so far.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    fn keep(&mut self, request: &Request, exact: &[i64], noisy: &[i64]) {
        self.entries.push(Entry { request: request.clone(), exact: exact.to_vec(), noisy: noisy.to_vec() });
    }
}

impl Kind for Record {
    fn state(&self) -> &State {
        &self.state
    }

    fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }

    fn release(&mut self, request: &Request, exact: &[i64]) -> Result<Vec<i64>, Error> {
        let noisy = self.state.streams.answer(request, exact)?;
        self.keep(request, exact, &noisy);
        Ok(noisy)
    }

    fn select(&mut self, request: &Request, selection: &mut dyn Selection) -> Result<Vec<i64>, Error> {
        let candidate = selection.draw(&mut self.state.streams.single())?;
        self.keep(request, &[selection.score(&candidate)], &candidate);
        Ok(candidate)
    }
}

impl Tape for Record {}

/// A tape that returns the recorded outputs, and compares each recorded request with the present request.
pub struct Replay {
    state: State,
    entries: Vec<Entry>,
    position: usize,
}

impl Replay {
    /// Replays a recording. `streams` and `neighbours` must have the random key and the neighbor relation of the
    /// recording. The new tape counts its own cost.
    pub fn new(streams: Streams, neighbours: Neighbours, entries: Vec<Entry>) -> Self {
        Self { state: State::new(streams, neighbours), entries, position: 0 }
    }

    /// The entries that were replayed so far, with the exact values of this data set. A complete run has as many
    /// entries as the recording.
    pub fn entries(&self) -> &[Entry] {
        &self.entries[..self.position]
    }
}

impl Kind for Replay {
    fn state(&self) -> &State {
        &self.state
    }

    fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }

    fn release(&mut self, request: &Request, exact: &[i64]) -> Result<Vec<i64>, Error> {
        self.state.streams.advance();
        let position = self.position;
        let mismatch = |reason: String| Err(Error::Mismatch(reason));
        let Some(entry) = self.entries.get_mut(position) else {
            return mismatch(format!("release {position} ({}) is not in the recording", request.name));
        };
        if entry.request != *request || entry.exact.len() != exact.len() {
            return mismatch(format!(
                "release {position}: requested {request:?} of {} values, recorded {:?} of {}",
                exact.len(),
                entry.request,
                entry.exact.len()
            ));
        }
        let distance = request.distance(&entry.exact, exact);
        if distance > request.sensitivity {
            return mismatch(format!(
                "release {position} ({}): the values of neighbors differ by {distance}, but the stated sensitivity is {}",
                request.name, request.sensitivity
            ));
        }
        entry.exact = exact.to_vec();
        self.position += 1;
        Ok(entry.noisy.clone())
    }

    fn select(&mut self, request: &Request, selection: &mut dyn Selection) -> Result<Vec<i64>, Error> {
        let score = self.entries.get(self.position).map(|entry| selection.score(&entry.noisy));
        self.release(request, score.as_slice())
    }
}

impl Tape for Replay {}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha20Rng;

    use super::*;
    use crate::release::exact::Exact;
    use crate::release::sensitivity::Sensitivity;
    use crate::runtime::pulse::Interrupted;

    const NEIGHBOURS: Neighbours = Neighbours::Replace;
    /// A noise multiplier that gives a sigma of at least 2^30 for the sensitivities below.
    const MULTIPLIER: f64 = (1u64 << 30) as f64;

    fn vector(values: &[i64], sensitivity: f64) -> Exact {
        Exact::stated(values, sensitivity, false)
    }

    fn recording() -> Record {
        Record::new(Streams::from_key([7; 32]), NEIGHBOURS)
    }

    fn replaying(entries: &[Entry]) -> Replay {
        Replay::new(Streams::from_key([7; 32]), NEIGHBOURS, entries.to_vec())
    }

    fn recorded(exact: &[i64]) -> Vec<Entry> {
        let mut tape = recording();
        tape.gaussian("test", &vector(exact, 2.0), MULTIPLIER).unwrap();
        tape.entries().to_vec()
    }

    #[test]
    fn a_replay_returns_the_recording_within_the_sensitivity() {
        let entries = recorded(&[3, 4]);
        let mut replay = replaying(&entries);
        assert_eq!(replay.gaussian("test", &vector(&[5, 4], 2.0), MULTIPLIER).unwrap(), entries[0].noisy);
        assert_eq!(replay.entries(), [Entry { exact: vec![5, 4], ..entries[0].clone() }]);
    }

    #[test]
    fn a_replay_refuses_what_does_not_match() {
        let replay = |exact: &Exact| replaying(&recorded(&[3, 4])).gaussian("test", exact, MULTIPLIER);
        assert!(replay(&vector(&[6, 4], 2.0)).is_err(), "farther than the sensitivity");
        assert!(replay(&vector(&[3, 4], 3.0)).is_err(), "another sensitivity");
        assert!(replay(&vector(&[3], 2.0)).is_err(), "another length");
        assert!(replaying(&[]).gaussian("test", &vector(&[3, 4], 2.0), MULTIPLIER).is_err(), "a release too many");
        let other = replaying(&recorded(&[3])).laplace("test", &vector(&[3], 2.0), (1, 5));
        assert!(matches!(other, Err(Error::Mismatch(_))), "other noise");
    }

    #[test]
    fn the_relation_decides_which_sensitivity_is_recorded() {
        let exact = Exact::vector(vec![3], Sensitivity::new(2.0, 1.0));
        for (neighbours, sensitivity) in [(Neighbours::Replace, 2.0), (Neighbours::AddRemove, 1.0)] {
            let mut tape = Record::new(Streams::from_key([7; 32]), neighbours);
            tape.laplace("test", &exact, (1, 5)).unwrap();
            assert_eq!((tape.entries()[0].request.sensitivity, tape.neighbours()), (sensitivity, neighbours));
        }
    }

    #[test]
    fn a_choice_is_an_index_and_its_replay_bounds_the_range() {
        let scores = |values: &[i64]| Exact::stated(values, 4.0, true);
        let mut tape = recording();
        let chosen = tape.choose("choice", &scores(&[5, 1000, 100_000]), 0.04, 0).unwrap();
        assert!(chosen < 2);
        let replay = |values: &[i64]| replaying(tape.entries()).choose("choice", &scores(values), 0.04, 0);
        // All scores may move together, because only their differences matter.
        assert_eq!(replay(&[1005, 2000, 101_000]).unwrap(), chosen);
        assert_eq!(replay(&[3, 1002, 100_000]).unwrap(), chosen);
        assert!(replay(&[3, 1003, 100_000]).is_err());
        let wider = replaying(tape.entries()).choose("choice", &scores(&[5, 1000, 100_000]), 0.04, 5);
        assert!(wider.is_err(), "another range");
    }

    /// A selection that always draws the same candidate, with a given score.
    struct Single(i64);

    impl Selection for Single {
        fn draw(&mut self, _rng: &mut ChaCha20Rng) -> Result<Vec<i64>, Interrupted> {
            Ok(vec![4, 2])
        }

        fn score(&self, candidate: &[i64]) -> i64 {
            assert_eq!(candidate, [4, 2]);
            self.0
        }

        fn sensitivity(&self) -> Sensitivity {
            Sensitivity::new(10.0, 5.0)
        }
    }

    #[test]
    fn a_replayed_draw_compares_the_scores_of_the_recorded_candidate() {
        let mut tape = recording();
        assert_eq!(tape.draw("draw", 5, &mut Single(100)), Ok(vec![4, 2]));
        assert_eq!(tape.entries()[0].exact, [100]);
        let replay = |rate, score| replaying(tape.entries()).draw("draw", rate, &mut Single(score));
        assert_eq!(replay(5, 110), Ok(vec![4, 2]));
        assert!(replay(5, 111).is_err(), "farther than the sensitivity");
        assert!(replay(6, 100).is_err(), "another rate");
        assert!(replaying(&[]).draw("draw", 5, &mut Single(100)).is_err(), "a draw too many");
    }
}
