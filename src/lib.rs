//! The differentially private geometric median: the exact core under the Python package `dpmedian`.
//!
//! One idea carries the privacy argument: *sum integers, add integer noise, convert last*. A map of the folders:
//!
//! | folder | what belongs there |
//! |---|---|
//! | [`statistics`] | what may be asked of the records: exact integers, each with the proof of its sensitivity |
//! | [`release`] | the wall: exact integers with their sensitivity, and the tape, which alone opens them, with noise |
//! | [`sampler`] | exact discrete distributions, integer arithmetic only |
//! | [`mechanism`] | private mechanisms that ask many times or draw from huge sets: descent, inverse sensitivity |
//! | [`preprocess`] | from a caller's rows to records: ids as codes, one record per unit, groups, the globe |
//! | [`postprocess`] | what is done with released values: posteriors, the volumetric center, projections |
//! | [`numeric`] | arithmetic of doubles with the same bits on every machine |
//! | [`runtime`] | the admitted records, threads, sums over blocks, interrupts and progress |
//! | [`nonprivate`] | answers without privacy: the yardsticks |
//!
//! Points are nalgebra views throughout: a C-order array of shape (n, d) has the memory of a d x n matrix, one record
//! per column. This crate knows no interpreter: the Python module is made of it by the crate in `crates/python`.

pub mod mechanism;
pub mod nonprivate;
pub mod numeric;
pub mod postprocess;
pub mod preprocess;
pub mod release;
pub mod runtime;
pub mod sampler;
pub mod statistics;
