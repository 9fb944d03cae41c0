//! Ranks: in every coordinate, the number of records at or below a threshold.
//!
//! Centered ranks are the ranks minus half the number of records, so that a median has a centered rank of about 0.
//!
//! **Neighbors and sensitivity** (L2): sqrt(d) under both relations, and sqrt(d)/2 for centered ranks if a record is
//! added or removed. *Proof.* A record adds 0 or 1 to the count of every coordinate, so its contribution has a norm of
//! at most sqrt(d). It adds -1/2 or 1/2 to every centered count, so its contribution to centered ranks has a norm of at
//! most sqrt(d)/2. The difference of two contributions is at most 1 in every coordinate and has a norm of at most
//! sqrt(d). ∎

use super::target::Target;
use super::prelude::*;

/// For every coordinate j, the number of records x with x_j <= threshold_j, in units of 2^-bits. Half of the number of
/// records is subtracted if the ranks are centered.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranks {
    thresholds: Vec<f64>,
    bits: u32,
    centered: bool,
    target: Target,
}

impl Ranks {
    /// Takes one threshold for every coordinate. Centered ranks need at least one bit, because they are multiples of
    /// 1/2.
    pub fn new(thresholds: &[f64], bits: u32, centered: bool) -> Result<Self, BadParameter> {
        let target = Target::new(if centered { (1, 1) } else { (0, 0) }, bits)?;
        Ok(Self {
            thresholds: thresholds.iter().copied().map(finite).collect(),
            bits,
            centered,
            target,
        })
    }

    /// The sensitivity in `d` dimensions.
    pub fn bound(d: usize, bits: u32, centered: bool) -> Sensitivity {
        let root = (d as f64).sqrt().next_up();
        Sensitivity::of_sum(if centered { root / 2.0 } else { root }, root).scaled(bits)
    }
}

impl Statistic for Ranks {
    fn dimension(&self) -> Option<usize> {
        Some(self.thresholds.len())
    }

    fn sensitivity(&self) -> Sensitivity {
        Self::bound(self.thresholds.len(), self.bits, self.centered)
    }

    fn parameters(&self) -> Parameters {
        Parameters::of([
            ("thresholds", self.thresholds.as_slice().into()),
            ("centered", u32::from(self.centered).into()),
            ("bits", self.bits.into()),
        ])
    }

    fn exact(&self, points: &Points, pulse: &mut dyn Pulse) -> Result<Exact, Interrupted> {
        let ranks = points.ranks(&self.thresholds, pulse)?;
        Ok(Exact::vector(self.target.signed(ranks, points.mass()), self.sensitivity()))
    }
}

impl Kind for Ranks {
    const NAME: &'static str = "ranks";

    fn read(given: &mut Arguments) -> Result<Self, BadParameter> {
        Self::new(&given.floats("thresholds")?, given.small("bits")?, given.flag("centered")?)
    }

    fn bound_of(given: &mut Arguments) -> Result<Bound, BadParameter> {
        let d = given.size("d")?;
        Ok(Bound::vector(Self::bound(d, given.bits(COUNT_BITS_MAX)?, given.flag("centered")?), d))
    }

    #[cfg(test)]
    fn examples(theta: &[f64], _scale: f64, _n: usize) -> Vec<Result<Self, BadParameter>> {
        vec![Self::new(theta, 7, false), Self::new(theta, 7, true)]
    }
}

#[cfg(test)]
mod tests {
    use nalgebra::DMatrix;

    use super::*;
    use crate::statistics::tests::values;

    #[test]
    fn centered_ranks_are_zero_at_a_median() {
        let points = DMatrix::from_row_slice(2, 4, &[1.0, 2.0, 3.0, 4.0, 0.0, 0.0, 0.0, 5.0]);
        let ranks = |centered| values(&Ranks::new(&[2.5, 0.0], 3, centered).unwrap(), &points);
        assert_eq!((ranks(false), ranks(true)), (vec![16, 24], vec![0, 8]));
        assert!(Ranks::new(&[0.0], 0, true).is_err() && Ranks::new(&[0.0], 1, true).is_ok());
    }
}
