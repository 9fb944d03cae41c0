//! Answers without privacy: the yardsticks of the private methods.

pub mod median;
pub mod objective;
