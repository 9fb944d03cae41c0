//! Neighbor relations, and the largest distance between exact answers about two neighbors.

/// When two data sets are neighbors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Neighbours {
    /// Neighbors have the same number of records, which is public, and differ in one record.
    Replace,
    /// One neighbor has one record more than the other. The number of records is private.
    AddRemove,
}

impl Neighbours {
    const NAMES: [(&'static str, Self); 2] = [("replace", Self::Replace), ("add_remove", Self::AddRemove)];

    /// The relation with this name.
    pub fn named(name: &str) -> Result<Self, String> {
        let found = Self::NAMES.into_iter().find(|(known, _)| *known == name);
        found.map(|(_, relation)| relation).ok_or_else(|| {
            let known = Self::NAMES.map(|(known, _)| format!("{known:?}")).join(" or ");
            format!("neighbours must be {known}, got {name:?}")
        })
    }

    /// Whether neighbors have the same number of records, which is then public.
    pub fn size_is_public(self) -> bool {
        self == Self::Replace
    }

    /// The name of the relation.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize].0
    }
}

/// The largest distance between the exact answers of two neighbors, in lattice units of the answer, rounded up.
///
/// The sensitivity is infinite if there is no bound. The tape refuses such an answer.
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

    /// The sensitivity of a sum over records. Adding or removing a record moves the sum by the contribution of the
    /// record, whose length is at most `norm`. Replacing a record moves the sum by the difference of two contributions,
    /// whose length is at most `diameter`.
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

    /// The sensitivity in units that are smaller by the factor 2^-bits. Multiplying by a power of two is exact.
    pub(crate) fn scaled(self, bits: u32) -> Self {
        let unit = f64::from(bits).exp2();
        Self { replace: self.replace * unit, add_remove: self.add_remove * unit }
    }

    /// The sensitivity of this answer for weighted records. The weighted answer is rounded to the lattice, which adds
    /// `rounding`.
    ///
    /// *Proof for a sum.* A record contributes c phi, where the weight c in [0, 1] is a part of the record. If the
    /// record is added or removed, the sum moves by c |phi|, which is at most the change without weights. If the record
    /// is replaced, the sum moves by |c phi - c' phi'|, which is a convex function of (c, c'). So the maximum is at a
    /// corner, where the value is 0, the norm of one contribution, or the distance of two contributions. The larger of
    /// the two sensitivities bounds all of these. ∎ This bound also covers the sum of the weights, which a replacement
    /// can change although it does not change the number of records.
    ///
    /// *Proof for an answer about records that hidden coins have kept* (see [`crate::statistics::Statistic::coins`]). A
    /// coin belongs to its record. Let the unchanged records have the same coins in both data sets. Then the replaced
    /// record is kept in both data sets, in one of them or in neither. So the sets of kept records are equal, or they
    /// are neighbors of one of the two relations. If one set has a record more, the rows of later records shift, and
    /// the same random numbers would lead to other choices for these records. So the statistic must couple its own
    /// choices for a record that is added in any row, as [`crate::statistics::PairCounts`] does. ∎
    pub fn weighted(self, rounding: f64) -> Self {
        let up = |x: f64| if rounding > 0.0 { (x + rounding).next_up() } else { x };
        Self { replace: up(self.replace.max(self.add_remove)), add_remove: up(self.add_remove) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relation_has_the_name_by_which_it_is_found() {
        for (name, relation) in Neighbours::NAMES {
            assert_eq!((Neighbours::named(name), relation.name()), (Ok(relation), name));
        }
        assert!(Neighbours::named("nobody").is_err());
    }

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
