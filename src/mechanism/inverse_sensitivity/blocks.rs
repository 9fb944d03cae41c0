//! Blocks of records. One thread sums a whole block.

use rayon::prelude::*;

use crate::runtime::pool;

/// The number of records in a block. A block is summed in doubles, and the sums of blocks are integers. Doubles hold
/// sums of 2^12 values up to 2^30 units exactly.
pub(super) const BLOCK: usize = 1 << 12;

/// Several threads are used if the number of tasks times the number of records is at least this number.
const PARALLEL_RECORDS: usize = 1 << 14;

/// Runs all tasks, and returns their results in order. The calling thread does a small amount of work alone, because
/// waking other threads takes longer.
pub(super) fn map<T: Send>(tasks: usize, records: usize, task: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
    if tasks.saturating_mul(records) < PARALLEL_RECORDS {
        (0..tasks).map(task).collect()
    } else {
        pool::install(|| (0..tasks).into_par_iter().map(task).collect())
    }
}
