//! Exact discrete distributions: integers only, no floating point, no libm.
//!
//! The coins (Bernoulli draws), the geometric and the Laplace distribution follow Canonne, Kamath and Steinke (2020).
//! The discrete Gaussian uses the same coins, but proposes candidates that are almost always accepted.
//!
//! Each file has one distribution: a constructor that checks the parameters, and a `sample` that cannot fail, generic
//! over the generator.

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
