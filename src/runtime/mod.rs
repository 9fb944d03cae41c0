//! The admitted records, thread pools, sums over blocks, interrupts and progress.

pub mod admission;
pub mod identity;
pub mod memory;
pub(crate) mod parallel_fold;
pub mod points;
pub mod pool;
pub mod pulse;
mod ranking;
pub mod record_file;
pub mod weighting;
