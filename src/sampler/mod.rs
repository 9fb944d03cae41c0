//! Exact samplers of discrete distributions, which use integers only and no floating-point numbers.
//!
//! The coins (Bernoulli draws), the geometric and the Laplace distribution follow Canonne, Kamath and Steinke (2020).
//! The discrete Gaussian uses the same coins, but proposes candidates that are almost always accepted.
//!
//! Each file has one distribution, with a constructor that checks the parameters and a function `sample` that cannot
//! fail and that accepts any generator.

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
