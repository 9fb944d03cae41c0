//! The thread pools of this crate. Each process creates its own pools at their first use.
//!
//! The global pool of rayon deadlocks in a forked child, because the child does not have the threads of its parent. So
//! a child creates new pools here. It never drops the inherited pools, because dropping would wait forever for threads
//! that do not exist.

use std::sync::{Mutex, OnceLock};

use rayon::{ThreadPool, ThreadPoolBuilder};

struct Owned {
    process: u32,
    pool: &'static ThreadPool,
}

static REQUESTED: Mutex<Option<usize>> = Mutex::new(None);
static POOLS: Mutex<Vec<Owned>> = Mutex::new(Vec::new());

/// The largest number of threads of a pool. More threads would not be faster, and the operating system may refuse to
/// start them.
pub const THREADS_MAX: usize = 1024;

/// Sets the number of threads for later kernels; `None` returns to `RAYON_NUM_THREADS` or the number of cores.
pub fn set_threads(threads: Option<usize>) {
    *REQUESTED.lock().unwrap_or_else(|e| e.into_inner()) = threads.map(|k| k.clamp(1, THREADS_MAX));
}

/// The number of threads that the next kernel will use.
pub fn threads() -> usize {
    // The number is stored because querying the operating system takes longer than a small kernel.
    static USUAL: OnceLock<usize> = OnceLock::new();
    let usual = || {
        let from_environment = std::env::var("RAYON_NUM_THREADS").ok().and_then(|text| text.parse().ok());
        let cores = || std::thread::available_parallelism().map_or(1, |k| k.get());
        from_environment.filter(|&k| k > 0).unwrap_or_else(cores).min(THREADS_MAX)
    };
    let requested = *REQUESTED.lock().unwrap_or_else(|e| e.into_inner());
    requested.unwrap_or_else(|| *USUAL.get_or_init(usual))
}

/// Runs `work` in the pool, while the calling thread waits. Parallel iterators in `work` use this pool.
pub fn install<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    pool(threads()).install(work)
}

/// Calls `work` for every item. Each thread has its own accumulator, which it passes to `work`. The accumulators are
/// returned in any order, so the caller must combine them in a way that does not depend on the order.
///
/// The calling thread works too, together with `threads() - 1` threads of the pool. If the pool had one more thread, an
/// idle thread, which does not sleep at once, would compete with the calling thread for the processor.
pub fn fold_in_parallel<I: Send, T: Send>(
    items: impl ExactSizeIterator<Item = I> + Send,
    start: impl Fn() -> T + Sync,
    work: impl Fn(&mut T, I) + Sync,
) -> Vec<T> {
    let count = items.len();
    let queue = Mutex::new(items);
    let take = || {
        let mut accumulator = start();
        loop {
            // The lock is released before the work begins.
            let item = queue.lock().unwrap_or_else(|e| e.into_inner()).next();
            match item {
                Some(item) => work(&mut accumulator, item),
                None => return accumulator,
            }
        }
    };
    let workers = if count <= 1 { 0 } else { threads() - 1 };
    if workers == 0 {
        return vec![take()];
    }
    let parts = Mutex::new(Vec::with_capacity(workers + 1));
    let push = |part| parts.lock().unwrap_or_else(|e| e.into_inner()).push(part);
    pool(workers).in_place_scope(|scope| {
        for _ in 0..workers.min(count - 1) {
            scope.spawn(|_| push(take()));
        }
        push(take());
    });
    parts.into_inner().unwrap_or_else(|e| e.into_inner())
}

/// Calls `work` for every item. The calling thread works too.
pub fn for_each_in_parallel<I: Send>(items: impl ExactSizeIterator<Item = I> + Send, work: impl Fn(I) + Sync) {
    fold_in_parallel(items, || (), |(), item| work(item));
}

/// The pool of this process with this number of workers.
fn pool(workers: usize) -> &'static ThreadPool {
    let process = std::process::id();
    let mut pools = POOLS.lock().unwrap_or_else(|e| e.into_inner());
    pools.retain(|owned| owned.process == process);
    if let Some(owned) = pools.iter().find(|owned| owned.pool.current_num_threads() == workers) {
        return owned.pool;
    }
    let pool = ThreadPoolBuilder::new()
        .num_threads(workers)
        .thread_name(|index| format!("dpmedian-{index}"))
        .build()
        .expect("the operating system refused to start threads");
    let pool: &'static ThreadPool = Box::leak(Box::new(pool));
    pools.push(Owned { process, pool });
    pool
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_pool_has_the_number_of_threads_asked_for() {
        for threads in [1, 3, 2] {
            super::set_threads(Some(threads));
            assert_eq!(super::install(rayon::current_num_threads), threads);
        }
        super::set_threads(None);
    }

    #[test]
    fn every_item_is_shared_out_once() {
        for count in [0, 1, 2, 1000] {
            let parts = super::fold_in_parallel(0..count, Vec::new, |part, index| part.push(index));
            let mut all = parts.concat();
            all.sort_unstable();
            assert!(all.into_iter().eq(0..count));
        }
    }
}
