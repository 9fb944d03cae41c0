//! Blocks of records, which one thread sums at a time.

use rayon::prelude::*;

use crate::runtime::pool;

/// The number of records summed in doubles before the sums become integers: 2^12 values of 2^30 units are exact.
pub(super) const BLOCK: usize = 1 << 12;

/// The number of tasks times records for which it pays to wake threads.
const PARALLEL_RECORDS: usize = 1 << 14;

/// Runs all tasks in order, in the pool if there is enough work: waking threads takes longer than a small task.
pub(super) fn map<T: Send>(tasks: usize, records: usize, task: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
    if tasks.saturating_mul(records) < PARALLEL_RECORDS {
        (0..tasks).map(task).collect()
    } else {
        pool::install(|| (0..tasks).into_par_iter().map(task).collect())
    }
}
