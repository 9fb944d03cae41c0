//! How work is done: the admitted records, our own threads, sums over blocks, interrupts and progress.

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
