//! The score in one dimension for weighted records: half of the weight that must be added to make a point a median.
//!
//! Let L(y) be the weight of the records below y - r, A(y) the weight of the records above y + r, and M the total
//! weight, where r is the smoothing length. The score is max(0, 2 L - M, 2 A - M)/2. If all weights are 1, this is the
//! score of [`super::line`] under add/remove.
//!
//! **Neighbors and sensitivity**: as in [`super::line`], 1/2 if a record with a weight of at most 1 is added or
//! removed, and 1 if a record is replaced together with its weight. *Proof.* A record of weight c adds c or -c to 2 L -
//! M, and c or -c to 2 A - M. Replacing a record removes one such number and adds another, so both differences move by
//! at most 2. The maximum with zero and the cap of the score are contractions. ∎ All computations use integers: weights
//! are multiples of 2^-20, and scores are multiples of 2^-31.

use std::ops::Range;

use super::lattice::Lattice;
use super::line::Staircase;
use super::rate::SCORE_BITS;
use crate::runtime::weighting::WEIGHT_BITS;

/// Twice the score in units of 2^-20, shifted by this number of binary places, is the score in units of 2^-31.
const SHIFT: u32 = SCORE_BITS - WEIGHT_BITS - 1;

/// The positions of the records, the cumulative weights, and the steps of the score.
pub struct WeightedLine {
    smoothing: i64,
    /// The positions at which there are records, in ascending order.
    places: Vec<i64>,
    /// The weight of all records before each position, and at the end the total weight.
    before: Vec<i128>,
    /// For each step: its first even coordinate, the even coordinate after its end, and its score.
    steps: Vec<(i64, i64, u64)>,
}

impl WeightedLine {
    /// The records must lie on even coordinates within the reach of the lattice, and are grouped in classes of equal
    /// weights. There may be no records.
    pub fn new(records: Vec<f64>, classes: &[(u32, Range<usize>)], lattice: Lattice) -> Self {
        let mut sorted: Vec<(i64, u32)> = classes
            .iter()
            .flat_map(|(weight, class)| records[class.clone()].iter().map(|&x| (x as i64, *weight)))
            .collect();
        sorted.sort_unstable();
        let (mut places, mut before, mut total) = (Vec::<i64>::new(), Vec::new(), 0i128);
        for (place, weight) in sorted {
            if places.last() != Some(&place) {
                places.push(place);
                before.push(total);
            }
            total += i128::from(weight);
        }
        before.push(total);
        let mut line = Self { smoothing: lattice.smoothing, places, before, steps: Vec::new() };
        line.steps = line.made(lattice.extent());
        line
    }

    /// The steps in this order: the step with score zero, the steps to its left, and the steps to its right. On each
    /// side, steps near the step with score zero come first.
    fn made(&self, extent: i64) -> Vec<(i64, i64, u64)> {
        let (r, total, count) = (self.smoothing, self.before[self.places.len()], self.places.len());
        let left_of = |k: usize| if k == 0 { -extent } else { self.places[k - 1] - r };
        let right_of = |k: usize| if k == count { extent } else { self.places[k] + r };
        // To the left of (position k) - r, the records at position k and later positions are above. To the right of
        // (position k) + r, the records up to position k are below.
        let left = (0..count).map(|k| (left_of(k), self.places[k] - r, score(total - 2 * self.before[k])));
        let right = (1..=count).map(|k| (self.places[k - 1] + r, right_of(k), score(2 * self.before[k] - total)));
        let (left, right): (Vec<_>, Vec<_>) =
            (left.filter(|step| step.2 > 0).collect(), right.filter(|step| step.2 > 0).collect());
        let middle = (left.last().map_or(-extent, |step| step.1), right.first().map_or(extent, |step| step.0), 0);
        [middle].into_iter().chain(left.into_iter().rev()).chain(right).collect()
    }
}

/// The score, computed from twice the score in units of 2^-20. The score is capped at 2^62. The cap is a contraction.
fn score(doubled: i128) -> u64 {
    (doubled.clamp(0, 2 << (SCORE_BITS + WEIGHT_BITS)) as u64) << SHIFT
}

impl Staircase for WeightedLine {
    fn steps(&self) -> usize {
        self.steps.len()
    }

    fn score_of(&self, step: usize) -> u64 {
        self.steps[step].2
    }

    fn score_at(&self, center: i64) -> u64 {
        let total = self.before[self.places.len()];
        let below = self.before[self.places.partition_point(|&x| x < center - self.smoothing)];
        let above = total - self.before[self.places.partition_point(|&x| x <= center + self.smoothing)];
        score(2 * below.max(above) - total)
    }

    fn cells(&self, step: usize) -> [(i64, i64); 2] {
        let (start, end, _) = self.steps[step];
        [(start, end), (0, 0)]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::line::Line;
    use super::*;
    use crate::release::sensitivity::Neighbours;

    const WHOLE: u32 = 1 << WEIGHT_BITS;

    fn lattice() -> Lattice {
        Lattice::new(1.0, 40, 4).unwrap()
    }

    fn line(records: &[(i64, u32)]) -> WeightedLine {
        let classes: Vec<_> = records.iter().enumerate().map(|(i, (_, weight))| (*weight, i..i + 1)).collect();
        WeightedLine::new(records.iter().map(|(x, _)| *x as f64).collect(), &classes, lattice())
    }

    proptest! {
        #[test]
        fn steps_tile_the_domain_and_have_the_scores_of_their_cells(
            records in prop::collection::vec(((-20i64..=20).prop_map(|x| 2 * x), prop_oneof![Just(WHOLE), 1..=WHOLE]), 0..12)
        ) {
            let line = line(&records);
            let mut seen = Vec::new();
            for step in 0..line.steps() {
                let (start, end, score) = line.steps[step];
                prop_assert!(start <= end && start % 2 == 0 && end % 2 == 0);
                for center in (start + 1..end).step_by(2) {
                    prop_assert_eq!(line.score_at(center), score);
                    seen.push(center);
                }
            }
            seen.sort_unstable();
            prop_assert_eq!(seen, (-43..44).step_by(2).collect::<Vec<i64>>());
        }

        #[test]
        fn whole_weights_score_as_records_that_are_added(
            places in prop::collection::vec((-20i64..=20).prop_map(|x| 2 * x), 0..12)
        ) {
            let weighted = line(&places.iter().map(|&x| (x, WHOLE)).collect::<Vec<_>>());
            let plain = Line::new(places.iter().map(|&x| x as f64).collect(), lattice(), Neighbours::AddRemove);
            for center in (-43..44).step_by(2) {
                prop_assert_eq!(weighted.score_at(center), plain.score_at(center));
            }
        }
    }
}
