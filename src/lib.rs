//! The differentially private geometric median: the exact core under the Python package `dpmedian`.
//!
//! One idea carries the privacy argument: *sum integers, add integer noise, convert last*. A map of the files:
//!
//! | file | noun |
//! |---|---|
//! | [`pool`], [`pulse`] | our own threads; interrupts and progress between blocks |
//!
//! Points are nalgebra views throughout: a C-order array of shape (n, d) has the memory of a d x n matrix, one record
//! per column. Only `python.rs` names the interpreter.

pub mod pool;
pub mod pulse;
pub mod sampler;
