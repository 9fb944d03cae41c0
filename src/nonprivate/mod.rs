//! Exact answers without privacy, with which private methods are compared.

pub mod median;
pub mod objective;
