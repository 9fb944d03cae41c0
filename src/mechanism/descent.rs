//! The inner loop of DPGD: noisy projected gradient descent.
//!
//! **Neighbors**: the relation of the tape. **Sensitivity**: the sensitivity of the lattice gradient, which
//! [`crate::statistics::gradient`] proves. **Cost**: `steps` Gaussian releases, each with a standard deviation of
//! `noise_multiplier` times the sensitivity. The tape draws the noise, and the other computations are post-processing.
//! **Failure**: none. The iterates stay finite for any noise and any step size.

use crate::numeric::float_scale::finite;
use crate::postprocess::projection::Feasible;
use crate::release::error::Error;
use crate::release::tape::Tape;
use crate::runtime::points::Points;
use crate::runtime::pulse::{Interrupted, Pulse};
use crate::statistics::Issued;
use crate::statistics::gradient::Gradient;

/// The public parameters of one descent.
#[derive(Debug, Clone)]
pub struct Descent {
    /// The name of the stage, for the tape.
    pub name: String,
    /// The first iterate.
    pub start: Vec<f64>,
    /// The set in which the iterates must be.
    pub feasible: Feasible,
    /// The step size for the gradient of the *sum* of distances.
    pub step: f64,
    /// The number of noisy gradients.
    pub steps: usize,
    /// The lattice of the gradient: its coordinates are multiples of 2^-bits.
    pub bits: u32,
    /// The standard deviation of the noise divided by the sensitivity of the gradient.
    pub noise_multiplier: f64,
}

/// The result of a descent.
#[derive(Debug, Clone, PartialEq)]
pub struct Iterates {
    /// The mean of theta_1, ..., theta_T. It includes the start theta_1, and excludes the last iterate theta_(T+1).
    pub average: Vec<f64>,
    /// The last iterate, theta_(T+1).
    pub last: Vec<f64>,
}

impl Descent {
    /// Runs the descent: theta_(t+1) is the projection of theta_t - step * (gradient + noise) to the feasible set.
    ///
    /// # Panics
    ///
    /// If the points, the start and the feasible set have different dimensions.
    pub fn run(&self, points: &Points, tape: &mut dyn Tape, pulse: &mut dyn Pulse) -> Result<Iterates, Error> {
        assert_eq!(self.feasible.dimension(), points.d(), "the feasible set has another dimension than the points");
        let unit = (-f64::from(self.bits)).exp2();
        let mut theta: Vec<f64> = self.start.iter().copied().map(finite).collect();
        let mut average = vec![0.0; theta.len()];
        for step in 0..self.steps {
            for (average, theta) in average.iter_mut().zip(&theta) {
                // The running mean cannot overflow, while a sum of the iterates could.
                *average += (theta - *average) / (step + 1) as f64;
            }
            let mut part = StepPulse { pulse, done: step as f64, steps: self.steps as f64 };
            let gradient = Gradient::new(&theta, self.bits).map_err(|bad| Error::Refused(bad.0))?;
            let exact = Issued::new(gradient).answer(points, &mut part)?;
            let noisy = tape.gaussian(&self.name, &exact, self.noise_multiplier)?;
            for (theta, noisy) in theta.iter_mut().zip(&noisy) {
                *theta -= self.step * (*noisy as f64 * unit);
            }
            self.feasible.project(&mut theta);
        }
        Ok(Iterates { average, last: theta })
    }
}

/// The progress callback for one step, as a part of the whole loop.
struct StepPulse<'a> {
    pulse: &'a mut dyn Pulse,
    done: f64,
    steps: f64,
}

impl Pulse for StepPulse<'_> {
    fn beat(&mut self, done: f64) -> Result<(), Interrupted> {
        self.pulse.beat((self.done + done) / self.steps)
    }
}

#[cfg(test)]
mod tests {
    use nalgebra::DMatrix;
    use proptest::prelude::*;

    use super::*;
    use crate::postprocess::projection::Ball;
    use crate::release::noise::Noise;
    use crate::release::recording::{Record, Replay};
    use crate::release::sensitivity::Neighbours;
    use crate::release::streams::Streams;
    use crate::release::tape::{Draw, gaussian_sigma};
    use crate::runtime::pulse::Silent;

    fn descent(steps: usize) -> Descent {
        Descent {
            name: "descent".into(),
            start: vec![0.0, 0.0],
            feasible: Feasible::Ball(Ball::new(vec![0.0, 0.0], 10.0)),
            step: 0.01,
            steps,
            bits: 32,
            noise_multiplier: 0.5,
        }
    }

    fn admitted(points: &DMatrix<f64>) -> Points<'_> {
        Points::admit(points, None, None, &mut Silent).unwrap()
    }

    fn streams() -> Streams {
        Streams::from_key([3; 32])
    }

    fn drawn(descent: &Descent, points: &DMatrix<f64>) -> Iterates {
        let mut tape = Draw::new(streams(), Neighbours::Replace);
        descent.run(&admitted(points), &mut tape, &mut Silent).unwrap()
    }

    fn cross() -> DMatrix<f64> {
        DMatrix::from_column_slice(2, 4, &[4.0, 3.0, 2.0, 3.0, 3.0, 4.0, 3.0, 2.0])
    }

    #[test]
    fn it_finds_the_middle_of_a_cross() {
        let data = DMatrix::from_fn(2, 4000, |i, j| cross()[(i, j % 4)]);
        let descent = Descent { step: 1e-4, ..descent(400) };
        let iterates = drawn(&descent, &data);
        for x in &iterates.last {
            assert!((x - 3.0).abs() < 0.01, "{:?}", iterates.last);
        }
    }

    #[test]
    fn the_start_is_in_the_average_and_the_last_iterate_is_not() {
        let iterates = drawn(&descent(1), &cross());
        assert_eq!(iterates.average, vec![0.0, 0.0]);
        assert_ne!(iterates.last, iterates.average);
    }

    #[test]
    fn every_step_is_one_release_with_the_noise_asked_for() {
        for neighbours in [Neighbours::Replace, Neighbours::AddRemove] {
            let mut record = Record::new(streams(), neighbours);
            descent(7).run(&admitted(&cross()), &mut record, &mut Silent).unwrap();
            let sensitivity = Gradient::bound(2, 32).under(neighbours);
            let sigma = gaussian_sigma(sensitivity, 0.5);
            assert_eq!(record.entries().len(), 7);
            assert!(record.entries().iter().all(|entry| {
                let request = &entry.request;
                (request.name.as_str(), request.noise, request.sensitivity)
                    == ("descent", Noise::Gaussian { sigma }, sensitivity)
            }));
        }
    }

    #[test]
    fn iterates_stay_in_the_feasible_set() {
        let descent = Descent { step: 1e3, ..descent(5) };
        let iterates = drawn(&descent, &cross());
        for point in [iterates.average, iterates.last] {
            assert!(point[0].hypot(point[1]) <= 10.0 * (1.0 + 1e-12), "{point:?}");
        }
    }

    fn recorded(descent: &Descent, points: &DMatrix<f64>, neighbours: Neighbours) -> (Record, Iterates) {
        let mut record = Record::new(streams(), neighbours);
        let iterates = descent.run(&admitted(points), &mut record, &mut Silent).unwrap();
        (record, iterates)
    }

    fn replayed(descent: &Descent, points: &DMatrix<f64>, record: &Record) -> Result<Iterates, Error> {
        let mut tape = Replay::new(streams(), record.neighbours(), record.entries().to_vec());
        descent.run(&admitted(points), &mut tape, &mut Silent)
    }

    #[test]
    fn it_replays_on_a_neighbour_and_not_on_a_stranger() {
        let (record, iterates) = recorded(&descent(20), &cross(), Neighbours::Replace);
        let mut neighbour = cross();
        neighbour[(0, 1)] = -1e200;
        assert_eq!(replayed(&descent(20), &neighbour, &record), Ok(iterates));
        neighbour[(1, 2)] = 1e100;
        neighbour[(0, 0)] = -7.0;
        assert!(matches!(replayed(&descent(20), &neighbour, &record), Err(Error::Mismatch(_))));
    }

    #[test]
    fn it_replays_with_a_record_more_and_with_one_less() {
        let (record, iterates) = recorded(&descent(20), &cross(), Neighbours::AddRemove);
        for place in 0..4 {
            let fewer = cross().remove_column(place);
            assert_eq!(replayed(&descent(20), &fewer, &record), Ok(iterates.clone()));
            let more = cross().insert_column(place, -1e250);
            assert_eq!(replayed(&descent(20), &more, &record), Ok(iterates.clone()));
        }
        let mut replaced = cross();
        replaced[(0, 1)] = -1e200;
        assert!(replayed(&descent(20), &replaced, &record).is_err(), "a replacement is two edits");
    }

    #[test]
    fn no_records_and_one_record_have_a_descent() {
        for n in [0, 1] {
            let (record, iterates) = recorded(&descent(5), &DMatrix::from_element(2, n, 1.0), Neighbours::AddRemove);
            let neighbour = DMatrix::from_element(2, 1 - n, 1.0);
            assert_eq!(replayed(&descent(5), &neighbour, &record), Ok(iterates));
        }
    }

    /// With a tiny budget in a huge ball, steps overflow. If a coordinate became NaN, every later gradient would exceed
    /// its sensitivity.
    #[test]
    fn steps_that_overflow_leave_finite_iterates_and_keep_the_sensitivity() {
        let radius = 2f64.powi(1000);
        for (step, noise_multiplier) in [(1e305, 2236.1), (f64::MAX, 2236.1), (f64::INFINITY, 1.0), (f64::NAN, 1.0)] {
            let feasible = Feasible::Ball(Ball::new(vec![0.0, 0.0], radius));
            let descent = Descent { feasible, step, noise_multiplier, bits: 23, ..descent(40) };
            let points = DMatrix::from_column_slice(2, 3, &[0.0, radius, -radius, 0.0, 1.0, 2.0]);
            let (record, iterates) = recorded(&descent, &points, Neighbours::Replace);
            assert!(iterates.average.iter().chain(&iterates.last).all(|x| x.is_finite()), "{iterates:?}");
            let mut neighbour = points;
            neighbour.column_mut(1).fill(radius);
            assert_eq!(replayed(&descent, &neighbour, &record), Ok(iterates), "step {step}");
        }
    }

    fn any_bits() -> impl Strategy<Value = f64> {
        let special = prop_oneof![Just(f64::NAN), Just(f64::INFINITY), Just(f64::MAX), Just(5e-324), Just(0.0)];
        prop_oneof![any::<u64>().prop_map(f64::from_bits), special, -3.0..3.0f64]
    }

    proptest! {
        #[test]
        fn any_bits_have_finite_iterates_that_replay_on_a_neighbour(
            start in prop::collection::vec(any_bits(), 2),
            centers in prop::collection::vec(any_bits(), 4),
            radii in prop::array::uniform2(any_bits()),
            step in any_bits(),
            lens: bool,
            coordinates in prop::collection::vec(any_bits(), 8),
        ) {
            let ball = |i: usize| Ball::new(centers[2 * i..2 * i + 2].to_vec(), radii[i]);
            let feasible = if lens { Feasible::Lens(ball(0), ball(1)) } else { Feasible::Ball(ball(0)) };
            let descent = Descent { start, feasible, step, ..descent(6) };
            let records = |last: &[f64]| {
                let finite: Vec<f64> = [&coordinates[..4], last].concat().into_iter().map(finite).collect();
                DMatrix::from_column_slice(2, 3, &finite)
            };
            let (record, iterates) = recorded(&descent, &records(&coordinates[4..6]), Neighbours::Replace);
            prop_assert!(iterates.average.iter().chain(&iterates.last).all(|x| x.is_finite()), "{:?}", iterates);
            prop_assert_eq!(replayed(&descent, &records(&coordinates[6..]), &record), Ok(iterates));
        }
    }
}
