//! Exact discrete distributions after Canonne, Kamath and Steinke (2020): integers only, no floating point, no libm.
//!
//! One distribution, one file: a constructor that checks, a `sample` that cannot fail, generic over the generator.

mod bernoulli;
mod cells;
mod choice;
mod gaussian;
mod geometric;
mod laplace;
mod power;
pub mod uniform;

pub use bernoulli::{Bernoulli, BernoulliExp};
pub use choice::Choice;
pub use gaussian::{DiscreteGaussian, SIGMA_MAX};
pub use geometric::Geometric;
pub use laplace::DiscreteLaplace;
pub use power::BernoulliPower;

#[cfg(test)]
pub(crate) mod tests;
