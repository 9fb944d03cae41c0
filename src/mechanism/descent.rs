//! The inner loop of DPGD: noisy projected gradient descent.
//!
//! **Neighbours**: one record replaced. **Sensitivity**: that of the lattice gradient, see [`crate::statistics::gradient`].
//! **Cost**: `steps` Gaussian releases of that sensitivity at `sigma`; the tape draws the noise, and the rest is
//! post-processing. **Failure**: none.

use nalgebra::DMatrixView;

use crate::postprocess::projection::Feasible;
use crate::release::tape::{BadNoise, Mismatch, Noise, Request, Tape};
use crate::runtime::pulse::{Interrupted, Pulse};
use crate::statistics::gradient::{gradient, sensitivity};

/// The public parameters of one descent.
#[derive(Debug, Clone)]
pub struct Descent {
    /// Name of the stage, for the tape.
    pub name: String,
    /// The first iterate.
    pub start: Vec<f64>,
    /// Where the iterates may be.
    pub feasible: Feasible,
    /// Step size on the gradient of the *sum* of distances.
    pub step: f64,
    /// Number of noisy gradients.
    pub steps: usize,
    /// The gradient's lattice: multiples of 2^-bits.
    pub bits: u32,
    /// Standard deviation of the noise in lattice units.
    pub sigma: u64,
}

/// What a descent returns.
#[derive(Debug, Clone, PartialEq)]
pub struct Iterates {
    /// The mean of theta_1, ..., theta_T: the start is in it, the last iterate is not.
    pub average: Vec<f64>,
    /// theta_(T+1).
    pub last: Vec<f64>,
}

/// Why a descent stopped before its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stopped {
    /// The pulse asked for it.
    Interrupted(Interrupted),
    /// The replay did not match.
    Mismatch(Mismatch),
    /// The noise has no sampler.
    BadNoise(BadNoise),
}

impl Descent {
    /// theta_(t+1) = projection of theta_t - step * (gradient + noise).
    pub fn run(
        &self,
        points: DMatrixView<'_, f64>,
        tape: &mut dyn Tape,
        pulse: &mut dyn Pulse,
    ) -> Result<Iterates, Stopped> {
        let noise = Noise::Gaussian { sigma: self.sigma };
        let request =
            Request::new(&self.name, noise, sensitivity(points.nrows(), self.bits)).map_err(Stopped::BadNoise)?;
        let unit = (-f64::from(self.bits)).exp2();
        let mut theta = self.start.clone();
        let mut average = vec![0.0; theta.len()];
        for step in 0..self.steps {
            for (average, theta) in average.iter_mut().zip(&theta) {
                // The running mean cannot overflow, unlike the sum.
                *average += (theta - *average) / (step + 1) as f64;
            }
            let mut part = Part { pulse, done: step as f64, steps: self.steps as f64 };
            let exact = gradient(points, &theta, self.bits, &mut part).map_err(Stopped::Interrupted)?;
            let noisy = tape.release(&request, &exact).map_err(Stopped::Mismatch)?;
            for (theta, noisy) in theta.iter_mut().zip(&noisy) {
                *theta -= self.step * (*noisy as f64 * unit);
            }
            self.feasible.project(&mut theta);
        }
        Ok(Iterates { average, last: theta })
    }
}

/// The pulse of one step within the whole loop.
struct Part<'a> {
    pulse: &'a mut dyn Pulse,
    done: f64,
    steps: f64,
}

impl Pulse for Part<'_> {
    fn beat(&mut self, done: f64) -> Result<(), Interrupted> {
        self.pulse.beat((self.done + done) / self.steps)
    }
}

#[cfg(test)]
mod tests {
    use nalgebra::DMatrix;

    use super::*;
    use crate::postprocess::projection::Ball;
    use crate::release::tape::{Draw, Record, Replay, Streams};
    use crate::runtime::pulse::Silent;

    fn descent(steps: usize) -> Descent {
        Descent {
            name: "descent".into(),
            start: vec![0.0, 0.0],
            feasible: Feasible::Ball(Ball::new(vec![0.0, 0.0], 10.0)),
            step: 0.01,
            steps,
            bits: 32,
            sigma: 1 << 32,
        }
    }

    fn cross() -> DMatrix<f64> {
        DMatrix::from_column_slice(2, 4, &[4.0, 3.0, 2.0, 3.0, 3.0, 4.0, 3.0, 2.0])
    }

    #[test]
    fn it_finds_the_middle_of_a_cross() {
        let data = DMatrix::from_fn(2, 4000, |i, j| cross()[(i, j % 4)]);
        let descent = Descent { step: 1e-4, ..descent(400) };
        let iterates = descent.run(data.as_view(), &mut Draw(Streams::from_key([3; 32])), &mut Silent).unwrap();
        for x in &iterates.last {
            assert!((x - 3.0).abs() < 0.01, "{:?}", iterates.last);
        }
    }

    #[test]
    fn the_start_is_in_the_average_and_the_last_iterate_is_not() {
        let mut tape = Draw(Streams::from_key([3; 32]));
        let iterates = descent(1).run(cross().as_view(), &mut tape, &mut Silent).unwrap();
        assert_eq!(iterates.average, vec![0.0, 0.0]);
        assert_ne!(iterates.last, iterates.average);
    }

    #[test]
    fn every_step_is_one_release_with_the_noise_asked_for() {
        let mut record = Record::new(Streams::from_key([3; 32]));
        descent(7).run(cross().as_view(), &mut record, &mut Silent).unwrap();
        let expected = Request::new("descent", Noise::Gaussian { sigma: 1 << 32 }, sensitivity(2, 32)).unwrap();
        assert_eq!(record.entries().len(), 7);
        assert!(record.entries().iter().all(|entry| entry.request == expected));
    }

    #[test]
    fn iterates_stay_in_the_feasible_set() {
        let descent = Descent { step: 1e3, ..descent(5) };
        let iterates = descent.run(cross().as_view(), &mut Draw(Streams::from_key([3; 32])), &mut Silent).unwrap();
        for point in [iterates.average, iterates.last] {
            assert!(point[0].hypot(point[1]) <= 10.0 * (1.0 + 1e-12), "{point:?}");
        }
    }

    #[test]
    fn it_replays_on_a_neighbour_and_not_on_a_stranger() {
        let mut record = Record::new(Streams::from_key([3; 32]));
        let iterates = descent(20).run(cross().as_view(), &mut record, &mut Silent).unwrap();
        let replay = |points: &DMatrix<f64>| {
            let mut tape = Replay::new(Streams::from_key([3; 32]), record.entries().to_vec());
            descent(20).run(points.as_view(), &mut tape, &mut Silent)
        };
        let mut neighbour = cross();
        neighbour[(0, 1)] = -1e200;
        assert_eq!(replay(&neighbour), Ok(iterates));
        neighbour[(1, 2)] = 1e100;
        neighbour[(0, 0)] = -7.0;
        assert!(matches!(replay(&neighbour), Err(Stopped::Mismatch(_))));
    }
}
