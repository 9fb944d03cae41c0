//! The number of records, or the sum of their weights.
//!
//! **Neighbors and sensitivity**: 1 if a record is added or removed, and 0 if a record is replaced. *Proof.* Every
//! record adds 1, so replacing a record changes nothing. ∎ With weights a record adds its weight, which lies between 0
//! and 1, and a replaced record may have another weight. So the sensitivity is 1 under both relations.
//!
//! Under replacement without weights, the number of records is public and needs no release. [`Points::n`] returns this
//! number. A tape refuses to release this number with Gaussian noise, because its sensitivity is zero.

use super::prelude::*;

/// The number of records, in units of 2^-bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Size {
    bits: u32,
}

impl Size {
    /// A query about records of any dimension.
    pub fn new(bits: u32) -> Result<Self, BadParameter> {
        Ok(Self { bits: checked_bits(bits, COUNT_BITS_MAX)? })
    }

    /// The sensitivity.
    pub fn bound(bits: u32) -> Sensitivity {
        Sensitivity::of_sum(1.0, 0.0).scaled(bits)
    }
}

impl Statistic for Size {
    fn dimension(&self) -> Option<usize> {
        None
    }

    fn sensitivity(&self) -> Sensitivity {
        Self::bound(self.bits)
    }

    fn parameters(&self) -> Parameters {
        Parameters::of([("bits", self.bits.into())])
    }

    fn exact(&self, points: &Points, _pulse: &mut dyn Pulse) -> Result<Exact, Interrupted> {
        Ok(Exact::vector(on_lattice(vec![points.mass()], self.bits), self.sensitivity()))
    }
}

impl Kind for Size {
    const NAME: &'static str = "size";

    fn read(given: &mut Arguments) -> Result<Self, BadParameter> {
        Self::new(given.small("bits")?)
    }

    fn bound_of(given: &mut Arguments) -> Result<Bound, BadParameter> {
        Ok(Bound::vector(Self::bound(given.bits(COUNT_BITS_MAX)?), 1))
    }

    #[cfg(test)]
    fn examples(_theta: &[f64], _scale: f64, _n: usize) -> Vec<Result<Self, BadParameter>> {
        vec![Self::new(5)]
    }
}

#[cfg(test)]
mod tests {
    use nalgebra::DMatrix;

    use super::*;
    use crate::release::sensitivity::Neighbours;
    use crate::release::streams::Streams;
    use crate::release::tape::{Draw, Tape};
    use crate::runtime::pulse::Silent;
    use crate::statistics::Issued;
    use crate::statistics::tests::values;

    #[test]
    fn records_are_counted_and_noise_is_for_a_private_number_only() {
        let points = DMatrix::zeros(2, 7);
        let size = Size::new(30).unwrap();
        assert_eq!(values(&size, &points), [7 << 30]);
        let admitted = Points::admit(&points, None, None, &mut Silent).unwrap();
        let exact = Issued::new(size).answer(&admitted, &mut Silent).unwrap();
        let released = |neighbours| Draw::new(Streams::from_key([1; 32]), neighbours).gaussian("size", &exact, 1.0);
        assert!(released(Neighbours::AddRemove).is_ok() && released(Neighbours::Replace).is_err());
    }
}
