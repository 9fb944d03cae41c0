//! The trace of a tape: a list of everything that a run released.
//!
//! An entry has the name of a release, its query with the public parameters, its noise and the noisy answer. All this
//! is public or was released, so a trace adds no privacy cost. A trace contains nothing else:
//!
//! * A choice appears with its index, and a lattice draw with its point.
//! * Noisy values that are only compared (Laplace or geometric noise) do not appear. AboveThreshold releases only an
//!   index, and its proof does not cover the noisy values. The mechanism adds its index with [`Trace::outcome`].
//! * Hidden randomness does not appear.

use super::exact::Query;
use super::noise::{Noise, Request};

/// The largest number of numbers in a trace (32 MB). Answers and parameters beyond this limit are left out, so that
/// they are `None` in their entries.
pub const NUMBERS_MAX: usize = 1 << 22;

/// The largest number of values in an answer of the trace. A longer answer, such as a model, is left out to save
/// memory. The run still returns it.
pub const ANSWER_MAX: usize = 1 << 17;

/// One release.
#[derive(Debug, Clone, PartialEq)]
pub struct Traced {
    /// The name of the release, for instance `fine gradient`.
    pub name: String,
    /// The noise: "Gaussian", "choice", "draw" or "above threshold".
    pub noise: &'static str,
    /// The sensitivity, in lattice units.
    pub sensitivity: f64,
    /// The scale of the noise in lattice units, as [`Noise::scale`](super::noise::Noise::scale) defines it.
    pub scale: f64,
    /// The query that was answered. `None` if the values were a caller's own integers, or if the query was left out.
    pub query: Option<Query>,
    /// The released value: a noisy answer in lattice units, an index or a point. `None` if it was left out.
    pub answer: Option<Vec<i64>>,
}

/// All releases of a tape, in order.
#[derive(Debug, Default)]
pub struct Trace {
    entries: Vec<Traced>,
    numbers: usize,
}

impl Trace {
    /// The releases so far.
    pub fn entries(&self) -> &[Traced] {
        &self.entries
    }

    /// Adds a release. A noisy answer that is only compared, and not released, is not added.
    pub(in crate::release) fn keep(&mut self, request: &Request, query: Option<&Query>, answer: &[i64]) {
        let noise = match request.noise {
            Noise::Gaussian { .. } => "Gaussian",
            Noise::Choice { .. } => "choice",
            Noise::Lattice { .. } => "draw",
            Noise::Laplace { .. } | Noise::Geometric { .. } => return,
        };
        let parameters = query.map_or(0, |query| query.parameters.size());
        let fits = answer.len() <= ANSWER_MAX && self.numbers + answer.len() + parameters <= NUMBERS_MAX;
        if fits {
            self.numbers += answer.len() + parameters;
        }
        self.entries.push(Traced {
            name: request.name.clone(),
            noise,
            sensitivity: request.sensitivity,
            scale: request.noise.scale(),
            query: query.filter(|_| fits).cloned(),
            answer: fits.then(|| answer.to_vec()),
        });
    }

    /// Adds the release of a mechanism that compares noisy values.
    pub(in crate::release) fn outcome(&mut self, name: &str, sensitivity: f64, epsilon: f64, found: Option<i64>) {
        self.entries.push(Traced {
            name: name.into(),
            noise: "above threshold",
            sensitivity,
            scale: sensitivity / epsilon,
            query: None,
            answer: Some(found.into_iter().collect()),
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::release::exact::Exact;
    use crate::release::sensitivity::Neighbours;
    use crate::release::streams::Streams;
    use crate::release::tape::{Draw, Tape};

    #[test]
    fn a_trace_has_what_was_released_and_nothing_else() {
        let mut tape = Draw::new(Streams::from_key([1; 32]), Neighbours::Replace);
        let vector = Exact::stated(&[5, 7], 1.0, false);
        let noisy = tape.gaussian("gaussian", &vector, (1u64 << 30) as f64).unwrap();
        tape.laplace("threshold", &vector.pick(0).unwrap(), (1, 9)).unwrap();
        tape.geometric("query", &vector.pick(1).unwrap(), (1, 9)).unwrap();
        let _hidden = tape.hidden();
        tape.outcome("above threshold", 1.0, 0.5, Some(3));
        let chosen = tape.choose("choice", &Exact::stated(&[3, 4], 1.0, true), 1.0, 0).unwrap();
        let answers: Vec<_> = tape.trace().iter().map(|entry| entry.answer.clone().unwrap()).collect();
        assert_eq!(answers, [noisy, vec![3], vec![chosen as i64]]);
        assert_eq!(tape.trace()[1].sensitivity / tape.trace()[1].scale, 0.5);
    }

    #[test]
    fn a_refused_release_leaves_no_trace() {
        let mut tape = Draw::new(Streams::from_key([1; 32]), Neighbours::Replace);
        tape.allow(1e-30, 0.0).unwrap();
        assert!(tape.gaussian("too much", &Exact::stated(&[5], 1.0, false), 2.0).is_err());
        assert!(tape.trace().is_empty());
    }
}
