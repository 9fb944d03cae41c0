//! Identities of queries and of sets of records ([`super::points::Points`]). Two processes create the same identity
//! with a probability of about 2^-64.

use std::hash::{BuildHasher, RandomState};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// A random number of the process, and a counter within the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    process: u64,
    number: u64,
}

impl Identity {
    /// A new identity.
    pub fn fresh() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self { process: process(), number: NEXT.fetch_add(1, Ordering::Relaxed) }
    }

    /// The identity as numbers, for another process.
    pub(crate) fn numbers(self) -> [u64; 2] {
        [self.process, self.number]
    }

    /// The identity from another process.
    pub(crate) fn from_numbers([process, number]: [u64; 2]) -> Self {
        Self { process, number }
    }
}

/// The random number of this process. A forked child draws a new number.
fn process() -> u64 {
    static DRAWN: Mutex<Option<(u32, u64)>> = Mutex::new(None);
    let mut drawn = DRAWN.lock().unwrap_or_else(|e| e.into_inner());
    let owner = std::process::id();
    match *drawn {
        Some((process, number)) if process == owner => number,
        _ => {
            // The keys of a hasher come from random numbers of the operating system. A forked child inherits these
            // numbers, so the process id, which differs, is hashed.
            let number = RandomState::new().hash_one(owner);
            *drawn = Some((owner, number));
            number
        }
    }
}

/// The given identities in a list, or `None` if an identity occurs twice.
pub(crate) fn distinct(identities: impl IntoIterator<Item = Identity>) -> Option<Vec<Identity>> {
    let mut all: Vec<Identity> = identities.into_iter().collect();
    all.sort_unstable();
    all.is_sorted_by(|a, b| a < b).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repetition_is_seen_wherever_it_is() {
        let [a, b, c] = [(); 3].map(|()| Identity::fresh());
        assert_eq!(distinct([c, a, b]).map(|all| all.len()), Some(3));
        assert!(distinct([a, b, c, a]).is_none() && distinct([a, a]).is_none() && distinct([]).is_some());
    }
}
