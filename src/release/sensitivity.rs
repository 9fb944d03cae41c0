//! Neighboring data sets, and how far an exact answer may move between them.

/// When two data sets are neighbors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Neighbours {
    /// They have the same number of records, which is public, and differ in one of them.
    Replace,
    /// One has one record more than the other; the number of records is private.
    AddRemove,
}

/// The largest distance between the exact answers of two neighbors, in lattice units of the answer, rounded up.
///
/// It is infinite if there is no bound; the tape then refuses the answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sensitivity {
    replace: f64,
    add_remove: f64,
}

impl Sensitivity {
    /// The sensitivity of an answer with a separate proof for each relation.
    pub(crate) const fn new(replace: f64, add_remove: f64) -> Self {
        Self { replace, add_remove }
    }

    /// The sensitivity of a sum over records. Adding or removing a record moves the sum by its contribution, of length
    /// at most `norm`; replacing a record moves it by the difference of two contributions, at most `diameter`.
    pub(crate) const fn of_sum(norm: f64, diameter: f64) -> Self {
        Self { replace: diameter, add_remove: norm }
    }

    /// The sensitivity under a relation.
    pub fn under(self, neighbours: Neighbours) -> f64 {
        match neighbours {
            Neighbours::Replace => self.replace,
            Neighbours::AddRemove => self.add_remove,
        }
    }

    /// The sensitivity in units that are 2^-bits as large. Powers of two are exact.
    pub(crate) fn scaled(self, bits: u32) -> Self {
        let unit = f64::from(bits).exp2();
        Self { replace: self.replace * unit, add_remove: self.add_remove * unit }
    }

    /// The sensitivity of the same answer about weighted records. The answer is rounded to the lattice afterwards,
    /// which adds `rounding`.
    ///
    /// *Proof for a sum.* A record contributes c phi, with a weight c in [0, 1] that is a part of the record. If it is
    /// added or removed, the sum moves by c |phi|, which is no more than without weights. If it is replaced, the sum
    /// moves by |c phi - c' phi'|, a convex function of (c, c'). Its maximum is at a corner, where it is 0, the norm of
    /// one contribution, or the distance of two contributions, so the larger of the two sensitivities bounds it. ∎ This
    /// includes the number of records, which a replacement cannot change, and the sum of the weights, which it can.
    /// *Proof for an answer about records that hidden coins have kept* (see [`crate::statistics::Statistic::coins`]): a
    /// coin belongs to its record. Let the other records have the same coins in both data sets. Then the replaced
    /// record is kept in both, in one or in neither, so the sets of kept records are equal, or neighbors of either
    /// relation. If one set has a record more, the rows of later records shift, and the same random numbers would lead
    /// to other choices for them. The bound for this case is therefore about distributions: the statistic must couple
    /// its own choices for a record that is added in any row, see [`crate::statistics::PairCounts`]. ∎
    pub fn weighted(self, rounding: f64) -> Self {
        let up = |x: f64| if rounding > 0.0 { (x + rounding).next_up() } else { x };
        Self { replace: up(self.replace.max(self.add_remove)), add_remove: up(self.add_remove) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_moves_by_a_contribution_or_by_the_difference_of_two() {
        let sensitivity = Sensitivity::of_sum(1.5, 3.0);
        assert_eq!((sensitivity.under(Neighbours::Replace), sensitivity.under(Neighbours::AddRemove)), (3.0, 1.5));
        assert_eq!(sensitivity.scaled(3), Sensitivity::new(24.0, 12.0));
    }

    #[test]
    fn with_weights_a_replacement_moves_at_least_what_an_addition_does() {
        assert_eq!(Sensitivity::of_sum(1.0, 0.0).weighted(0.0), Sensitivity::new(1.0, 1.0));
        assert_eq!(Sensitivity::of_sum(1.0, 2.0).weighted(0.0), Sensitivity::new(2.0, 1.0));
        let rounded = Sensitivity::of_sum(1.0, 2.0).weighted(1.0);
        assert!(rounded.replace > 3.0 && rounded.replace < 3.1 && rounded.add_remove > 2.0 && rounded.add_remove < 2.1);
    }
}
