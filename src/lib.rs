//! The differentially private geometric median: the compiled core of the Python package `dpmedian`.
//!
//! The privacy argument rests on one idea: the exact answer is a sum of integers, the noise is an integer, and only the
//! noisy sum is converted to a double. The folders are:
//!
//! | folder | contents |
//! |---|---|
//! | [`statistics`] | the queries about the records, with exact integer answers and the proofs of their sensitivity |
//! | [`release`] | the privacy boundary: exact integers with their sensitivity, and the tape, which alone opens them
//! and adds noise |
//! | [`sampler`] | exact samplers of discrete distributions, with integer arithmetic only |
//! | [`mechanism`] | mechanisms that make many queries or draw from huge sets: descent, inverse sensitivity |
//! | [`preprocess`] | from a caller's rows to records: ids as codes, one record per unit, groups, positions on the
//! globe |
//! | [`postprocess`] | computations on released values: posteriors, the volumetric center, projections |
//! | [`numeric`] | arithmetic of doubles that gives the same bits on every machine |
//! | [`runtime`] | the admitted records, threads, sums over blocks, interrupts and progress |
//! | [`nonprivate`] | exact answers without privacy, for comparison |
//!
//! Points are nalgebra views throughout. A d x n matrix with one record per column has the same memory layout as a
//! C-order array of shape (n, d), so arrays of numpy are not copied. This crate does not depend on Python. The crate in
//! `crates/python` builds the Python module on top of this crate.

pub mod mechanism;
pub mod nonprivate;
pub mod numeric;
pub mod postprocess;
pub mod preprocess;
pub mod release;
pub mod runtime;
pub mod sampler;
pub mod statistics;
