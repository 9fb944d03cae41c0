//! The differentially private geometric median: the exact core under the Python package `dpmedian`.
//!
//! The privacy argument rests on one idea: *sum integers, add integer noise, convert last*. The folders are:
//!
//! | folder | contents |
//! |---|---|
//! | [`statistics`] | what can be queried about the records: exact integers, each with the proof of its sensitivity |
//! | [`release`] | the privacy boundary: exact integers with their sensitivity, and the tape, which alone opens them
//! and adds noise |
//! | [`sampler`] | exact discrete distributions, integer arithmetic only |
//! | [`mechanism`] | mechanisms that make many queries or draw from huge sets: descent, inverse sensitivity |
//! | [`preprocess`] | from a caller's rows to records: ids as codes, one record per unit, groups, positions on the
//! globe |
//! | [`postprocess`] | computations on released values: posteriors, the volumetric center, projections |
//! | [`numeric`] | arithmetic of doubles that gives the same bits on every machine |
//! | [`runtime`] | the admitted records, threads, sums over blocks, interrupts and progress |
//! | [`nonprivate`] | exact answers without privacy, for comparison |
//!
//! Points are nalgebra views throughout: a C-order array of shape (n, d) has the same memory as a d x n matrix with one
//! record per column. This crate does not know Python: the crate in `crates/python` makes the Python module from it.

pub mod mechanism;
pub mod nonprivate;
pub mod numeric;
pub mod postprocess;
pub mod preprocess;
pub mod release;
pub mod runtime;
pub mod sampler;
pub mod statistics;
