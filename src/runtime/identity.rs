//! Who is who: every question and every set of admitted records has a number that no other one has.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number that was given once in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity(u64);

impl Identity {
    /// One that nobody has.
    pub fn fresh() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// All of them, or `None` if one comes twice.
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
