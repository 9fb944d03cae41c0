//! Neighbouring data sets, and how far an exact answer may move between them.

/// When two data sets are neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Neighbours {
    /// They have the same number of records, which is public, and differ in one of them.
    Replace,
    /// One has a record that the other has not; the number of records is private.
    AddRemove,
}

/// The largest distance between the exact answers of two neighbours, in units of the answer's lattice, rounded up.
///
/// It is infinite where there is no bound; the tape refuses such an answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sensitivity {
    replace: f64,
    add_remove: f64,
}

impl Sensitivity {
    /// Of an answer that has a proof of its own for each relation.
    pub(crate) const fn new(replace: f64, add_remove: f64) -> Self {
        Self { replace, add_remove }
    }

    /// Of a sum over records: adding or removing one moves the sum by its contribution, of at most `norm`, and replacing
    /// one by the difference of two contributions, of at most `diameter`.
    pub(crate) const fn of_sum(norm: f64, diameter: f64) -> Self {
        Self { replace: diameter, add_remove: norm }
    }

    /// The bound that holds under a relation.
    pub fn under(self, neighbours: Neighbours) -> f64 {
        match neighbours {
            Neighbours::Replace => self.replace,
            Neighbours::AddRemove => self.add_remove,
        }
    }

    /// The same answer in units that are 2^-bits as large. Powers of two are exact.
    pub(crate) fn scaled(self, bits: u32) -> Self {
        let unit = f64::from(bits).exp2();
        Self { replace: self.replace * unit, add_remove: self.add_remove * unit }
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
}
