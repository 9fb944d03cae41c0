//! Our own thread pools, built on first use and keyed by the process.
//!
//! Rayon's global pool deadlocks in a forked child: its threads did not survive the fork. Here a child builds pools of its
//! own, and the inherited ones are leaked, never dropped, because joining threads that do not exist would hang.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::{ThreadPool, ThreadPoolBuilder};

struct Owned {
    process: u32,
    pool: &'static ThreadPool,
}

static REQUESTED: Mutex<Option<usize>> = Mutex::new(None);
static POOLS: Mutex<Vec<Owned>> = Mutex::new(Vec::new());

/// Sets the number of threads of every later kernel; `None` goes back to `RAYON_NUM_THREADS` or the number of cores.
pub fn set_threads(threads: Option<usize>) {
    *REQUESTED.lock().unwrap_or_else(|e| e.into_inner()) = threads;
}

/// The number of threads that the next kernel will use.
pub fn threads() -> usize {
    let requested = *REQUESTED.lock().unwrap_or_else(|e| e.into_inner());
    let from_environment = || std::env::var("RAYON_NUM_THREADS").ok()?.parse().ok().filter(|&k| k > 0);
    requested.or_else(from_environment).unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |k| k.get()))
}

/// Runs `work`, with rayon's parallel iterators, inside a pool while the calling thread sleeps.
pub fn install<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    pool(threads()).install(work)
}

/// Calls `work` with every index below `count` and an accumulator of the thread that does it; returns the accumulators, in
/// no particular order, so they must be such that their order does not matter.
///
/// The calling thread takes part, and has one helper fewer than threads: idle threads of a pool do not sleep at once, and
/// would take the calling thread's place on the processor.
pub fn share<T: Send>(count: usize, start: impl Fn() -> T + Sync, work: impl Fn(&mut T, usize) + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let take = || {
        let mut accumulator = start();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                return accumulator;
            }
            work(&mut accumulator, index);
        }
    };
    let helpers = (threads() - 1).min(count.saturating_sub(1));
    if helpers == 0 {
        return vec![take()];
    }
    let parts = Mutex::new(Vec::with_capacity(helpers + 1));
    let push = |part| parts.lock().unwrap_or_else(|e| e.into_inner()).push(part);
    pool(threads() - 1).in_place_scope(|scope| {
        for _ in 0..helpers {
            scope.spawn(|_| push(take()));
        }
        push(take());
    });
    parts.into_inner().unwrap_or_else(|e| e.into_inner())
}

/// Calls `work` with every item; the calling thread takes part.
pub fn each<T: Send>(items: impl ExactSizeIterator<Item = T> + Send, work: impl Fn(T) + Sync) {
    let count = items.len();
    let queue = Mutex::new(items);
    let next = || queue.lock().unwrap_or_else(|e| e.into_inner()).next();
    share(count, || (), |(), _| next().into_iter().for_each(&work));
}

/// The pool of this process with so many workers.
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
    fn every_index_is_shared_out_once() {
        for count in [0, 1, 2, 1000] {
            let parts = super::share(count, Vec::new, |part, index| part.push(index));
            assert!(parts.len() <= super::threads().max(1));
            let mut all = parts.concat();
            all.sort_unstable();
            assert!(all.into_iter().eq(0..count));
        }
    }
}
