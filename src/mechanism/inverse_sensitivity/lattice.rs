//! The public lattice of an inverse-sensitivity release. Records are rounded to points of the lattice, and the released
//! point lies on the lattice.

use nalgebra::DMatrixView;

use super::blocks::{BLOCK, map};
use crate::numeric::float_scale::finite;

/// The largest lattice coordinate. Doubles represent the difference of two such coordinates exactly.
pub const REACH_MAX: i64 = 1 << 52;

/// Public parameters, chosen before the data are read. All lengths except `step` are integers in units of `step`.
///
/// Cells are cubes of side 2 whose centers have odd coordinates. The released point is the center of a cell. The domain
/// consists of the cells whose centers lie within `reach + smoothing` of the origin of the lattice.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lattice {
    /// The length of one unit.
    pub step: f64,
    /// The largest coordinate of a record. Larger coordinates are clamped. The number is even.
    pub reach: i64,
    /// The smoothing length, which is the resolution of the score. The number is even.
    pub smoothing: i64,
}

impl Lattice {
    /// The lattice, or the reason why the parameters are refused.
    pub fn new(step: f64, reach: i64, smoothing: i64) -> Result<Self, String> {
        if !(step > 0.0 && step.is_finite()) {
            return Err(format!("step must be positive and finite, got {step}"));
        }
        if smoothing < 2 || smoothing % 2 != 0 {
            return Err(format!("smoothing must be even and at least 2, got {smoothing}"));
        }
        // Smoothing is positive here, so if the sum overflows, it is too large.
        let fits = reach.checked_add(smoothing).is_some_and(|extent| extent <= REACH_MAX);
        if reach < smoothing || reach % 2 != 0 || !fits {
            return Err(format!(
                "reach must be even and at least smoothing ({smoothing}), and reach + smoothing at most 2^52, got {reach}"
            ));
        }
        Ok(Self { step, reach, smoothing })
    }

    /// The radius of the domain.
    pub fn extent(&self) -> i64 {
        self.reach + self.smoothing
    }

    /// One coordinate of all records in units, rounded to multiples of `spacing`. Each record is mapped separately, so
    /// neighbors stay neighbors. Any center and any finite coordinates are accepted.
    pub fn snap(&self, points: DMatrixView<'_, f64>, center: &[f64], coordinate: usize, spacing: i64) -> Vec<f64> {
        let (spacing, reach) = (spacing as f64, self.reach as f64);
        let center = finite(center[coordinate]);
        // The quotient may overflow and is then clamped. It is never 0/0, because the step is positive.
        let snap = |x: f64| ((x - center) / (self.step * spacing)).round() * spacing;
        let n = points.ncols();
        let block = |block: usize| -> Vec<f64> {
            let records = block * BLOCK..n.min((block + 1) * BLOCK);
            records.map(|record| snap(points[(coordinate, record)]).clamp(-reach, reach)).collect()
        };
        map(n.div_ceil(BLOCK), n.min(BLOCK), block).concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_large_is_refused_and_does_not_wrap() {
        assert!(Lattice::new(1.0, REACH_MAX - 2, 2).is_ok());
        for (reach, smoothing) in [(REACH_MAX, 2), (i64::MAX - 1, 2), (i64::MAX - 1, i64::MAX - 1), (i64::MIN, 2)] {
            assert!(Lattice::new(1.0, reach, smoothing).is_err(), "{reach} {smoothing}");
        }
    }
}
