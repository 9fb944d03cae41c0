//! The charge of a run as a limit on the releases of its tape.
//!
//! A run is charged before its first release. The runner tells the tape the charged cost. From then on the tape adds up
//! the cost of every release, computed from the sensitivity of the value that it opens and from the noise that it
//! draws. A release that would exceed the charge, because a mechanism makes too many queries or uses too little noise,
//! is refused.

use super::error::Error;
use super::noise::{Noise, Request};

/// The factor by which the sum of the tape may exceed the charge. Both are rounded up, by a relative error below 1e-9.
const ROOM: f64 = 1.0 + 1e-9;

/// A cost, with the same two parts as the charge.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Spent {
    /// The sum of (sensitivity/sigma)^2 over Gaussian releases.
    mu_squared: f64,
    /// The sum of the bounded ranges (eta) of choices and lattice draws.
    ranges: f64,
}

impl Spent {
    /// The cost of one release. Laplace and geometric noise is not counted, because it occurs only in mechanisms that
    /// compare noisy values, such as AboveThreshold. Such a mechanism is charged once for all of its values.
    fn on(request: &Request) -> Self {
        let ratio = request.sensitivity / request.noise.scale();
        match request.noise {
            Noise::Gaussian { .. } => Self { mu_squared: ratio * ratio, ranges: 0.0 },
            Noise::Choice { .. } => Self { mu_squared: 0.0, ranges: ratio },
            // The sensitivity is the sensitivity of a single score. The factor 2 is needed because two scores may move
            // in opposite directions.
            Noise::Lattice { .. } => Self { mu_squared: 0.0, ranges: 2.0 * ratio },
            Noise::Laplace { .. } | Noise::Geometric { .. } => Self::default(),
        }
    }

    fn plus(self, cost: Self) -> Self {
        Self { mu_squared: sum(self.mu_squared, cost.mu_squared), ranges: sum(self.ranges, cost.ranges) }
    }
}

/// The sum of two costs, rounded up. If the sum were rounded to nearest, a release of a tiny cost would not increase
/// it.
fn sum(spent: f64, cost: f64) -> f64 {
    if cost > 0.0 { (spent + cost).next_up() } else { spent }
}

/// The limit of a tape, if the tape has a limit, and the cost that was spent so far.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Allowance {
    limit: Option<Spent>,
    spent: Spent,
}

impl Allowance {
    /// Sets the limit. It can be set only once, because with a second limit the tape would no longer count earlier
    /// releases.
    pub(in crate::release) fn set(&mut self, mu_squared: f64, ranges: f64) -> Result<(), Error> {
        if !(mu_squared >= 0.0 && ranges >= 0.0) {
            return Err(Error::Refused(format!("an allowance must not be negative, got {mu_squared} and {ranges}")));
        }
        if self.limit.is_some() {
            return Err(Error::Refused("this tape already has an allowance".into()));
        }
        self.limit = Some(Spent { mu_squared, ranges });
        Ok(())
    }

    /// Counts a release, or refuses it if too little is left.
    pub(in crate::release) fn spend(&mut self, request: &Request) -> Result<(), Error> {
        let Some(limit) = self.limit else {
            return Ok(());
        };
        let cost = Spent::on(request);
        let spent = self.spent.plus(cost);
        if spent.mu_squared <= limit.mu_squared * ROOM && spent.ranges <= limit.ranges * ROOM {
            self.spent = spent;
            return Ok(());
        }
        Err(Error::Refused(format!(
            "{:?} would exceed the allowance: mu^2 {:.6e} of {:.6e}, bounded ranges {:.6e} of {:.6e}",
            request.name, spent.mu_squared, limit.mu_squared, spent.ranges, limit.ranges
        )))
    }
}
