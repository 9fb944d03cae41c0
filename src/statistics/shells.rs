//! The numbers of records in shells around a point, and the second moments of the directions to all records, in one
//! vector, on an integer lattice.
//!
//! **The vector.** Its first part has one count for each shell. Shell i contains the distances from 2^((i +
//! FIRST_HALF_OCTAVE)/2) to 2^((i + 1 + FIRST_HALF_OCTAVE)/2), in units of a public `scale`. The first shell also
//! contains all smaller distances, and the last of the [`SHELLS`] shells contains all larger distances. The second part
//! is b times the upper triangle of the sum of u u^T, scaled as in [`super::second_moments`], where b is a weight and u
//! is the unit vector between a record and theta. With b = 0 the triangle is left out.
//!
//! **Neighbors and sensitivity** (L2, lattice units of 2^-bits), with s = sqrt([`SHELLS`] + d (d + 1)/2) and q = (1 +
//! t)^2, where [`super::second_moments`] defines the small number t. Adding or removing a record moves the vector by at
//! most 2^bits sqrt(1 + b^2 q^2) + s. Replacing a record moves the vector by at most 2^bits sqrt(2 (1 + b^2 q^2)) + s.
//!
//! *Proof.* A record lies in exactly one shell, which is a function of the record, theta and the scale alone. So a
//! record contributes a unit vector to the first part, and two such vectors differ by at most sqrt(2). A record
//! contributes b v v^T to the second part, where v is the rounded vector of the lemma in [`super::second_moments`]. The
//! vector v is either zero or at most t away from a unit vector, so |v|^2 <= q, and the Frobenius norm of v v^T is
//! |v|^2. The contributions v v^T and w w^T of two records satisfy ||v v^T - w w^T||^2 = |v|^4 + |w|^4 - 2 (v.w)^2 <= 2
//! q^2. The two parts are orthogonal, so their squared norms add up. The sum is at most 1 + b^2 q^2 for one
//! contribution, and at most twice as much for the difference of two contributions. Weights in the triangle are rounded
//! down. The bound has room for the rounding of b sqrt(2) to a double. Rounding the sums to the lattice changes the
//! distance of two vectors by at most 1 in every coordinate, and by at most s in all. ∎

use super::second_moments::{
    Companion, FACTOR_BITS, PRODUCT_BITS, add_block, checked_dimension, coordinates, entries, records_per_block,
    scale_triangle, vector_rounding,
};
use super::prelude::*;
use crate::numeric::block::AnyBlock;
use crate::numeric::distance::distances;
use crate::runtime::parallel_fold::sum_any_records;

/// The number of shells.
pub const SHELLS: usize = 48;

/// The first shell ends, and the second begins, at 2^((1 + FIRST_HALF_OCTAVE)/2) times the scale, which is about 2 % of
/// the scale. The last shell begins at 2^17.5 times the scale.
pub const FIRST_HALF_OCTAVE: i64 = -12;

/// The largest useful weight of the directions.
pub const WEIGHT_MAX: f64 = 2.0;

/// The bits of a double below its exponent.
const MANTISSA: u64 = (1 << 52) - 1;

/// The shell of a distance: floor(2 log2(distance/scale)), shifted and clamped. It is computed by comparing bits, so it
/// is the same on every machine.
#[inline(always)]
pub(super) fn shell(distance: f64, scale: f64) -> usize {
    let ratio = distance / scale;
    let bits = ratio.to_bits();
    // Zeros and subnormals have the exponent -1023 here, and infinity has the exponent 1024. Both are clamped below.
    let exponent = (bits >> 52) as i64 - 1023;
    let upper = i64::from(bits & MANTISSA >= std::f64::consts::SQRT_2.to_bits() & MANTISSA);
    (2 * exponent + upper - FIRST_HALF_OCTAVE).clamp(0, SHELLS as i64 - 1) as usize
}

/// The number of records in each shell, then b times the sum over records of u u^T, in units of 2^-bits. A record at
/// theta is in the first shell and adds nothing to the second part.
#[derive(Debug, Clone, PartialEq)]
pub struct ShellsAndDirections {
    theta: Vec<f64>,
    scale: f64,
    weight: f64,
    bits: u32,
}

impl ShellsAndDirections {
    /// The scale must be positive and finite, the weight of the directions between 0 and [`WEIGHT_MAX`], and bits at
    /// most [`PRODUCT_BITS`].
    pub fn new(theta: &[f64], scale: f64, weight: f64, bits: u32) -> Result<Self, BadParameter> {
        checked_dimension(theta.len())?;
        Ok(Self {
            theta: theta.iter().copied().map(finite).collect(),
            scale: checked_radius(scale)?,
            weight: checked(weight)?,
            bits: checked_bits(bits, PRODUCT_BITS)?,
        })
    }

    /// The number of values in the vector.
    pub fn values(d: usize, weight: f64) -> usize {
        SHELLS + if weight > 0.0 { entries(d) } else { 0 }
    }

    /// The sensitivity in `d` dimensions, by the proof above. The formula adds room for its own rounding.
    pub fn bound(d: usize, weight: f64, bits: u32) -> Result<Sensitivity, BadParameter> {
        checked_dimension(d)?;
        let (weight, bits) = (checked(weight)?, checked_bits(bits, PRODUCT_BITS)?);
        let (unit, values) = (f64::from(bits).exp2(), Self::values(d, weight) as f64);
        let square = 1.0 + (weight * (1.0 + vector_rounding(d)).powi(2)).powi(2);
        let up = |x: f64| (unit * x + values.sqrt()) * (1.0 + 8.0 * f64::EPSILON);
        Ok(Sensitivity::of_sum(up(square.sqrt()), up((2.0 * square).sqrt())))
    }
}

/// Checks a weight of directions, which may be zero.
fn checked(weight: f64) -> Result<f64, BadParameter> {
    if (0.0..=WEIGHT_MAX).contains(&weight) {
        return Ok(weight);
    }
    Err(BadParameter(format!("the weight of the directions must be between 0 and {WEIGHT_MAX}, got {weight}")))
}

impl Statistic for ShellsAndDirections {
    fn dimension(&self) -> Option<usize> {
        Some(self.theta.len())
    }

    fn sensitivity(&self) -> Sensitivity {
        Self::bound(self.theta.len(), self.weight, self.bits).expect("the parameters were checked")
    }

    fn parameters(&self) -> Parameters {
        Parameters::of([
            ("scale", self.scale.into()),
            ("weight", self.weight.into()),
            ("theta", self.theta.as_slice().into()),
            ("bits", self.bits.into()),
        ])
    }

    fn exact(&self, points: &Points, pulse: &mut dyn Pulse) -> Result<Exact, Interrupted> {
        let (d, theta) = (points.d(), self.theta.as_slice());
        assert_eq!(theta.len(), d, "theta has another dimension than the points");
        let (directed, size) = (self.weight > 0.0, Self::values(d, self.weight));
        let cost = if directed { coordinates(d) } else { d };
        let per_block = records_per_block(points.n(), d);
        let mut total = sum_any_records(points, cost, per_block, size, pulse, |total, block| {
            let (counts, triangle) = total.split_at_mut(SHELLS);
            count(block, theta, self.scale, counts);
            if directed {
                // The kernel also sums the unit vectors, which are not released here.
                let mut unused = vec![0; d];
                add_block(block, theta, Companion::Gradient(&mut unused), triangle);
            }
        })?;
        total[..SHELLS].iter_mut().for_each(|count| *count <<= PRODUCT_BITS + FACTOR_BITS);
        if directed {
            scale_triangle(&mut total[SHELLS..], d, self.weight);
        }
        Ok(Exact::rounded(total, PRODUCT_BITS + FACTOR_BITS - self.bits, self.sensitivity()))
    }
}

impl Kind for ShellsAndDirections {
    const NAME: &'static str = "shells and directions";

    fn read(given: &mut Arguments) -> Result<Self, BadParameter> {
        Self::new(&given.floats("theta")?, given.float("scale")?, given.float("weight")?, given.small("bits")?)
    }

    fn bound_of(given: &mut Arguments) -> Result<Bound, BadParameter> {
        let (d, weight) = (given.size("d")?, given.float("weight")?);
        Ok(Bound::vector(Self::bound(d, weight, given.small("bits")?)?, Self::values(d, weight)))
    }

    #[cfg(test)]
    fn examples(theta: &[f64], scale: f64, _n: usize) -> Vec<Result<Self, BadParameter>> {
        use super::tests::radius;
        vec![Self::new(theta, radius(scale), 2.0, 40), Self::new(theta, radius(scale), 0.0, 30)]
    }
}

/// Counts the records of a block in their shells.
fn count(block: AnyBlock<'_>, theta: &[f64], scale: f64, counts: &mut [i64]) {
    for distance in distances(block, theta) {
        counts[shell(distance, scale)] += 1;
    }
}

#[cfg(test)]
mod tests {
    use nalgebra::DMatrix;

    use super::*;
    use crate::release::sensitivity::Neighbours;
    use crate::statistics::tests::{moved, values};

    fn both(points: &DMatrix<f64>, theta: &[f64], scale: f64, weight: f64, bits: u32) -> Vec<i64> {
        values(&ShellsAndDirections::new(theta, scale, weight, bits).unwrap(), points)
    }

    #[test]
    fn shells_are_half_octaves_of_the_scale_and_open_at_both_ends() {
        let first = -FIRST_HALF_OCTAVE as usize;
        for (distance, expected) in [
            (0.0, 0),
            (5e-324, 0),
            (2.0 * 2f64.powi(-6) * 1.4, 0),
            (2.0, first),
            (2.0 * 1.42, first + 1),
            (3.999, first + 1),
            (4.0, first + 2),
            (f64::MAX, SHELLS - 1),
        ] {
            assert_eq!(shell(distance, 2.0), expected, "{distance}");
        }
        assert_eq!((shell(1e300, 1e-300), shell(1e-300, 1e300)), (SHELLS - 1, 0));
    }

    #[test]
    fn every_record_is_in_one_shell_and_the_products_follow() {
        let points = DMatrix::from_column_slice(2, 3, &[3.0, 4.0, 5.0, 0.0, 0.0, 0.0]);
        let found = both(&points, &[0.0; 2], 5.0, 1.0, 40);
        let unit = 1 << 40;
        assert_eq!(found[..SHELLS].iter().sum::<i64>(), 3 * unit);
        assert_eq!((found[0], found[-FIRST_HALF_OCTAVE as usize]), (unit, 2 * unit));
        let expected = [1.36, 0.48 * std::f64::consts::SQRT_2, 0.64];
        for (value, expected) in found[SHELLS..].iter().zip(expected) {
            assert!((*value as f64 / 2f64.powi(40) - expected).abs() < 1e-5, "{value} {expected}");
        }
        assert_eq!(both(&points, &[0.0; 2], 5.0, 0.0, 40), found[..SHELLS]);
    }

    /// In many dimensions the vectors are rounded so coarsely that the sensitivity must include the rounding.
    #[test]
    fn rounded_directions_are_covered_in_many_dimensions() {
        let d = 1000;
        // Every coordinate of the unit vector, 64.76 units of 2^-11, is rounded up.
        let record = DMatrix::from_element(d, 1, 1.0);
        let found = both(&record, &vec![0.0; d], 1.0, 2.0, 30);
        let bound = ShellsAndDirections::bound(d, 2.0, 30).unwrap().under(Neighbours::AddRemove);
        let length = moved(&found, &vec![0; found.len()]);
        assert!(length > 2f64.powi(30) * 5f64.sqrt() * 1.001 && length <= bound, "{length} {bound}");
    }

    /// Adds a record, and replaces a record by one in an orthogonal direction and in another shell.
    #[test]
    fn the_sensitivities_are_attained() {
        for weight in [0.0, 0.5, 2.0] {
            let at = |records: &[f64]| {
                let points = DMatrix::from_column_slice(2, records.len() / 2, records);
                both(&points, &[0.0; 2], 1.0, weight, 30)
            };
            let bound = ShellsAndDirections::bound(2, weight, 30).unwrap();
            let room = |bound: f64| bound - 2f64.powi(30) * 1e-5 - 10.0;
            let (here, there) = (at(&[1.0, 0.0]), at(&[0.0, 8.0]));
            assert!(moved(&here, &there) >= room(bound.under(Neighbours::Replace)));
            assert!(moved(&here, &there) <= bound.under(Neighbours::Replace));
            assert!(moved(&here, &at(&[])) >= room(bound.under(Neighbours::AddRemove)));
            assert!(moved(&here, &at(&[])) <= bound.under(Neighbours::AddRemove));
        }
    }

    #[test]
    fn parameters_without_a_proof_are_refused() {
        for weight in [-0.1, 2.1, f64::NAN] {
            assert!(ShellsAndDirections::new(&[0.0], 1.0, weight, 32).is_err());
            assert!(ShellsAndDirections::bound(1, weight, 32).is_err());
        }
        for scale in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(ShellsAndDirections::new(&[0.0], scale, 1.0, 32).is_err());
        }
        assert!(ShellsAndDirections::new(&[0.0], 1.0, 1.0, 41).is_err());
    }
}
