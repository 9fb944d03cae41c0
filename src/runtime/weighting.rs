//! Weights of records. A weight is an integer multiple of 2^-20 of a public cap, and there are few different weights.
//!
//! Sums over weighted records are sums over classes of equal weights, each multiplied by its weight. So kernels do not
//! need to know weights, and each record is read once, as without weights. This requires few classes. A weight has at
//! most seven significant bits, so there are 64 weights in an octave and fewer than a thousand in total. A hidden coin
//! rounds the remaining bits of a weight up or down, so that the mean is kept; see
//! [`crate::release::sample::weighted`]. The variance of this rounding is at most (w/64)^2/4 = w^2/16384. This is small
//! compared with the sampling variance of a weighted contribution, which is about w^2.

use std::ops::Range;

/// The number of binary places of a weight: weights are multiples of 2^-20 of the cap.
pub const WEIGHT_BITS: u32 = 20;

/// The weight of a record at the cap.
pub const WHOLE_WEIGHT: u32 = 1 << WEIGHT_BITS;

/// The number of significant bits of a weight in a sum.
const SIGNIFICANT: u32 = 7;

/// The weight, rounded to at most [`SIGNIFICANT`] bits. The uniform `coin` rounds it up with the probability that keeps
/// the mean.
pub(crate) fn rounded(weight: u32, coin: u64) -> u32 {
    let surplus = (u32::BITS - weight.leading_zeros()).saturating_sub(SIGNIFICANT);
    let rest = weight & ((1 << surplus) - 1);
    // If there are no surplus bits, the rest is 0, and the weight is not rounded up.
    let up = coin.checked_shr(u64::BITS - surplus).unwrap_or(0) < u64::from(rest);
    weight - rest + (u32::from(up) << surplus)
}

/// The weights of records whose table is sorted by weight.
pub(crate) struct Weighting {
    /// The weight of each row.
    weights: Vec<u32>,
    /// The position at which the record of each row is stored.
    places: Vec<usize>,
    /// The weights that are not zero, and for each weight the positions of its records.
    classes: Vec<(u32, Range<usize>)>,
}

impl Weighting {
    /// The weights of the rows, in order.
    pub(crate) fn new(weights: Vec<u32>) -> Self {
        let order = Self::order(&weights);
        let mut places = vec![0; weights.len()];
        let mut classes: Vec<(u32, Range<usize>)> = Vec::new();
        for (place, &row) in order.iter().enumerate() {
            places[row] = place;
            match classes.last_mut() {
                Some((weight, range)) if *weight == weights[row] => range.end = place + 1,
                _ => classes.push((weights[row], place..place + 1)),
            }
        }
        classes.retain(|(weight, _)| *weight > 0);
        Self { weights, places, classes }
    }

    /// The rows in the order in which their records are stored.
    pub(crate) fn order(weights: &[u32]) -> Vec<usize> {
        let mut order: Vec<usize> = (0..weights.len()).collect();
        order.sort_by_key(|&row| weights[row]);
        order
    }

    /// The weight of each row.
    pub(crate) fn weights(&self) -> &[u32] {
        &self.weights
    }

    /// The position at which the record of a row is stored.
    pub(crate) fn place(&self, row: usize) -> usize {
        self.places[row]
    }

    /// The weights that are not zero, in ascending order, and for each weight the positions of its records.
    pub(crate) fn classes(&self) -> &[(u32, Range<usize>)] {
        &self.classes
    }

    /// The sum of the weights.
    pub(crate) fn mass(&self) -> i128 {
        self.classes.iter().map(|(weight, range)| i128::from(*weight) * range.len() as i128).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_keeps_seven_bits_and_the_mean() {
        for weight in (0..1 << 12).chain([104_858, WHOLE_WEIGHT - 1, WHOLE_WEIGHT]) {
            let [low, high] = [u64::MAX, 0].map(|coin| rounded(weight, coin));
            assert!(low <= weight && weight <= high && high <= WHOLE_WEIGHT, "{weight}");
            for value in [low, high] {
                assert!(value == 0 || u32::BITS - value.leading_zeros() - value.trailing_zeros() <= SIGNIFICANT);
            }
            // The two rounded values differ by at most 1/64 of the weight, and the coins give the mean exactly.
            assert!(u64::from(high - low) * 64 <= u64::from(weight), "{weight}: {low} {high}");
            let step = u64::from((high - low).max(1));
            let total: u64 = (0..step).map(|k| u64::from(rounded(weight, u64::MAX / step * k + k))).sum();
            assert_eq!(total, step * u64::from(weight), "{weight}");
        }
    }

    #[test]
    fn records_stand_in_the_order_of_their_weights() {
        let weighting = Weighting::new(vec![5, 0, 7, 5, 0]);
        assert_eq!(Weighting::order(weighting.weights()), [1, 4, 0, 3, 2]);
        assert_eq!((0..5).map(|row| weighting.place(row)).collect::<Vec<_>>(), [2, 0, 4, 3, 1]);
        assert_eq!((weighting.classes(), weighting.mass()), (&[(5, 2..4), (7, 4..5)][..], 17));
        let nothing = Weighting::new(vec![0, 0]);
        assert_eq!((nothing.classes().len(), nothing.mass(), Weighting::new(Vec::new()).mass()), (0, 0, 0));
    }
}
