//! Blocks of records: what one thread sums at a time.

use rayon::prelude::*;

use crate::runtime::pool;

/// Records summed in doubles before they become integers: 2^12 values of 2^30 units are exact, and a thread's share.
pub(super) const BLOCK: usize = 1 << 12;

/// Tasks times records that are worth waking threads for.
const PARALLEL_RECORDS: usize = 1 << 14;

/// All tasks in order, in the pool where there is enough work: to wake threads costs more than a small task.
pub(super) fn map<T: Send>(tasks: usize, records: usize, task: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
    if tasks.saturating_mul(records) < PARALLEL_RECORDS {
        (0..tasks).map(task).collect()
    } else {
        pool::install(|| (0..tasks).into_par_iter().map(task).collect())
    }
}
