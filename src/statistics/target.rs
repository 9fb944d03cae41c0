//! Signed counts: a count minus a share of the number of items that could be counted.
//!
//! A search for the radius that contains a share f of the records needs the sign of (count within a radius) - f n,
//! where n is the number of records. If this difference is queried, no separate query for n is needed, which may be
//! private. Under add/remove the sensitivity of the difference is at most the sensitivity of the count.

use super::{BadParameter, COUNT_BITS_MAX, checked_bits};

/// The share p/2^k of all items that is subtracted from a count, in units of 2^-bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    bits: u32,
    /// The number that is subtracted for every item, in units of 2^-bits: at most 2^bits.
    share: i128,
}

impl Target {
    /// The share p/2^k must be at most 1 and a multiple of 2^-bits, so k must be at most bits.
    pub fn new((p, k): (u64, u32), bits: u32) -> Result<Self, BadParameter> {
        let bits = checked_bits(bits, COUNT_BITS_MAX)?;
        if k > bits {
            return Err(BadParameter(format!("a target of {p}/2^{k} needs a lattice of 2^-{k} or finer, got {bits}")));
        }
        if p > 1 << k {
            return Err(BadParameter(format!("a target is a share of at most 1, got {p}/2^{k}")));
        }
        Ok(Self { bits, share: i128::from(p) << (bits - k) })
    }

    /// Signed counts among `items` items, in units of 2^-bits.
    pub(super) fn signed(self, counts: Vec<i128>, items: i128) -> Vec<i128> {
        // With 62 bits, the product fits 128 bits for up to 2^64 items, or with weights for up to 2^44 items.
        let off = self.share * items;
        counts.into_iter().map(|count| (count << self.bits) - off).collect()
    }

    /// The largest absolute value that one item adds to a signed count: max(f, 1 - f), rounded up. An item adds 1 - f
    /// if it is counted, and -f otherwise.
    pub(super) fn largest(self) -> f64 {
        let exact = self.share.max((1 << self.bits) - self.share);
        let nearest = exact as f64;
        if (nearest as i128) < exact { nearest.next_up() } else { nearest }
    }

    /// The share as a pair of p and k, which stand for p/2^k.
    pub(super) fn fraction(self) -> [u64; 2] {
        [self.share as u64, self.bits.into()]
    }

    /// The number of bits of the lattice.
    pub(super) fn bits(self) -> u32 {
        self.bits
    }

    /// The number 1 in units of 2^-bits. A signed count moves by this number if an item starts or stops being counted.
    pub(super) fn one(self) -> f64 {
        f64::from(self.bits).exp2()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_taken_off_every_count() {
        let target = Target::new((2, 2), 3).unwrap();
        assert_eq!(target.signed(vec![0, 3, 5], 5), [-20, 4, 20]);
        assert_eq!((target.largest(), target.one()), (4.0, 8.0));
        assert_eq!(Target::new((0, 0), 3).unwrap().signed(vec![0, 3], 5), [0, 24]);
    }

    #[test]
    fn the_largest_contribution_is_rounded_up() {
        for (target, bits, largest) in [((0, 0), 4, 16.0), ((1, 0), 4, 16.0), ((3, 3), 4, 10.0), ((5, 3), 4, 10.0)] {
            assert_eq!(Target::new(target, bits).unwrap().largest(), largest, "{target:?}");
        }
        // The number 2^61 + 1 is not a double.
        let fine = Target::new(((1 << 61) + 1, 62), 62).unwrap();
        assert_eq!(fine.largest(), 2f64.powi(61).next_up());
    }

    #[test]
    fn a_target_off_the_lattice_or_beyond_one_is_refused() {
        for (target, bits) in [((1, 3), 2), ((2, 0), 5), ((9, 3), 5), ((0, 0), 63)] {
            assert!(Target::new(target, bits).is_err(), "{target:?} {bits}");
        }
    }
}
