//! The charge of a run as a limit on the releases of its tape.
//!
//! A run is charged before its first release. The runner tells the tape what was charged. From then on the tape adds up
//! the cost of every release, computed from the sensitivity of the value that it opens and from the noise that it
//! draws. A release that would exceed the charge, because a mechanism makes too many queries or uses too little noise,
//! is refused.

use super::error::Error;
use super::noise::{Noise, Request};

/// The charge rounds every cost up, and the sum here does not; neither has a relative error as large as this.
const ROOM: f64 = 1.0 + 1e-9;

/// A cost in the same terms as the charge.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Spent {
    /// The sum of (sensitivity/sigma)^2 over Gaussian releases.
    mu_squared: f64,
    /// The sum of the bounded ranges of choices and lattice draws.
    ranges: f64,
}

impl Spent {
    /// The cost of one release. Laplace and geometric noise is not counted: a mechanism that compares noisy values,
    /// such as AboveThreshold, is charged once for all of them.
    fn on(request: &Request) -> Self {
        let ratio = request.sensitivity / request.noise.scale();
        match request.noise {
            Noise::Gaussian { .. } => Self { mu_squared: ratio * ratio, ranges: 0.0 },
            Noise::Choice { .. } => Self { mu_squared: 0.0, ranges: ratio },
            // The sensitivity is that of a single score, and two scores may move in opposite directions.
            Noise::Lattice { .. } => Self { mu_squared: 0.0, ranges: 2.0 * ratio },
            Noise::Laplace { .. } | Noise::Geometric { .. } => Self::default(),
        }
    }
}

/// The limit of a tape, if it has one, and what was spent so far.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Allowance {
    limit: Option<Spent>,
    spent: Spent,
}

impl Allowance {
    /// Sets the limit. It can be set only once, because a second limit would forget what was already counted.
    pub(in crate::release) fn set(&mut self, mu_squared: f64, ranges: f64) -> Result<(), Error> {
        if !(mu_squared >= 0.0 && ranges >= 0.0) {
            return Err(Error::Refused(format!("an allowance is not negative, got {mu_squared} and {ranges}")));
        }
        if self.limit.is_some() {
            return Err(Error::Refused("this tape has an allowance already".into()));
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
        let spent =
            Spent { mu_squared: self.spent.mu_squared + cost.mu_squared, ranges: self.spent.ranges + cost.ranges };
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
