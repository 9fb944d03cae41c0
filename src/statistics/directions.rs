//! The gradient of the sum of distances and the second moments of the directions to all records, in one vector, on an
//! integer lattice.
//!
//! Let u be the unit vector from a record to theta. The sum of u is the gradient of [`super::gradient`]. The sum of u
//! u^T, divided by the number of records, is the second moment of the directions. Both sums are released together
//! because this costs little more than the gradient alone. The reason is that replacing a record changes the gradient
//! most if u becomes -u, and then u u^T does not change.
//!
//! **The vector.** It contains the gradient, followed by b times the upper triangle of the sum of u u^T, where b is a
//! weight. [`super::second_moments`] describes how the triangle is scaled.
//!
//! **Neighbors and sensitivity** (L2, lattice units of 2^-bits), for b <= 1/sqrt(2). Let s = sqrt(d + d (d + 1)/2), e =
//! sqrt(d) 2^-40 + (d + 6) 2^-52 and p = t (2 + t), where [`super::second_moments`] defines t. Replacing a record moves
//! the vector by at most 2^bits (2 + min(b^2 p^2/(1 - 2 b^2), 2 b p) + e) + s. Adding or removing a record moves the
//! vector by at most 2^bits (sqrt(1 + b^2 (1 + p)^2) + e) + s. The gradient alone moves by 2^bits (2 + e) + s under
//! replacement. So under replacement the directions add almost nothing to the cost of the gradient, if b is a little
//! below 1/sqrt(2).
//!
//! *Proof.* Let u and u' be the exact unit vectors of two records, where each may be zero. For u u^T the program
//! computes M = v v^T 2^-2k, where v is an integer vector and k its number of binary places. Let M' be the same matrix
//! for u'. Both parts of the vector are computed from the same difference theta - x. In the gradient, u is rounded to
//! multiples of 2^-40. This rounding and earlier rounding errors move u by at most sqrt(d) 2^-41 + (d + 6) 2^-53 = e/2,
//! by the proof of [`super::gradient`]. In the second part, v 2^-k is at most t away from u. So M is at most t (|u| +
//! |u| + t) <= p away from u u^T. The first parts of two records are therefore at most |u - u'| + e apart.
//!
//! Let u and u' be unit vectors, c = u.u' and y = ||u u^T - u' u'^T|| = sqrt(2 - 2 c^2). Then c >= -sqrt(1 - y^2/2) >=
//! -1 + y^2/4, so |u - u'|^2 = 2 - 2 c <= 4 - y^2/2. The squared distance of (u, b M) and (u', b M') is at most f = 4 -
//! y^2/2 + b^2 (y + 2 p)^2. If 2 b^2 < 1, f is largest at y = 4 b^2 p/(1 - 2 b^2), and its value there is 4 + 4 b^2
//! p^2/(1 - 2 b^2). So the distance is at most 2 + b^2 p^2/(1 - 2 b^2). For b <= 1/sqrt(2) the distance is also at most
//! 2 + 2 b p, by the triangle inequality, because f <= 4 for p = 0.
//!
//! If u or u' is zero, or if a record is added or removed, the distance is at most the length of the contribution of
//! one record, sqrt(1 + b^2 (1 + p)^2) before the error e. This is less than 2, because p < 1/16. Weights in the vector
//! are rounded down. Rounding to the lattice changes the distance of two vectors by at most 1 in every coordinate, and
//! by at most s in all. ∎

use super::second_moments::{
    Companion, FACTOR_BITS, PRODUCT_BITS, add_block, checked_dimension, coordinates, entries, records_per_block,
    scale_triangle, vector_rounding,
};
use super::prelude::*;
use crate::runtime::parallel_fold::sum_any_records;

/// The largest weight b for which the proof holds. Under replacement, directions with a weight below this bound add
/// almost no cost.
pub const WEIGHT_MAX: f64 = std::f64::consts::FRAC_1_SQRT_2;

/// The sums over records of u and of b u u^T, in units of 2^-bits. A record at theta contributes zero.
#[derive(Debug, Clone, PartialEq)]
pub struct GradientAndDirections {
    theta: Vec<f64>,
    weight: f64,
    bits: u32,
}

impl GradientAndDirections {
    /// The weight of the directions must be positive and at most [`WEIGHT_MAX`], and bits at most [`PRODUCT_BITS`].
    pub fn new(theta: &[f64], weight: f64, bits: u32) -> Result<Self, BadParameter> {
        checked_dimension(theta.len())?;
        Ok(Self {
            theta: theta.iter().copied().map(finite).collect(),
            weight: checked_weight(weight, WEIGHT_MAX)?,
            bits: checked_bits(bits, PRODUCT_BITS)?,
        })
    }

    /// The sensitivity in `d` dimensions, by the proof above. The formula adds room for its own rounding.
    pub fn bound(d: usize, weight: f64, bits: u32) -> Result<Sensitivity, BadParameter> {
        checked_dimension(d)?;
        let (weight, bits) = (checked_weight(weight, WEIGHT_MAX)?, checked_bits(bits, PRODUCT_BITS)?);
        let (rounding, unit, values) = (vector_rounding(d), f64::from(bits).exp2(), (d + entries(d)) as f64);
        let d = d as f64;
        let computed = d.sqrt() * 2f64.powi(-40) + (d + 6.0) * f64::EPSILON;
        let products = rounding * (2.0 + rounding);
        let curved = (weight * products).powi(2) / (1.0 - 2.0 * weight * weight).max(f64::MIN_POSITIVE);
        let replaced = 2.0 + curved.min(2.0 * weight * products);
        let one = (weight * (1.0 + products)).hypot(1.0);
        let up = |x: f64| (unit * (x + computed) + values.sqrt()) * (1.0 + 8.0 * f64::EPSILON);
        Ok(Sensitivity::of_sum(up(one), up(replaced)))
    }
}

impl Statistic for GradientAndDirections {
    fn dimension(&self) -> Option<usize> {
        Some(self.theta.len())
    }

    fn sensitivity(&self) -> Sensitivity {
        Self::bound(self.theta.len(), self.weight, self.bits).expect("the weight was checked")
    }

    fn parameters(&self) -> Parameters {
        Parameters::of([("weight", self.weight.into()), ("theta", self.theta.as_slice().into()), ("bits", self.bits.into())])
    }

    fn exact(&self, points: &Points, pulse: &mut dyn Pulse) -> Result<Exact, Interrupted> {
        let (d, theta) = (points.d(), self.theta.as_slice());
        assert_eq!(theta.len(), d, "theta has another dimension than the points");
        let (per_block, size) = (records_per_block(points.n(), d), d + entries(d));
        let mut total = sum_any_records(points, coordinates(d), per_block, size, pulse, |total, block| {
            let (sum, triangle) = total.split_at_mut(d);
            add_block(block, theta, Companion::Gradient(sum), triangle);
        })?;
        total[..d].iter_mut().for_each(|entry| *entry <<= FACTOR_BITS);
        scale_triangle(&mut total[d..], d, self.weight);
        Ok(Exact::rounded(total, PRODUCT_BITS + FACTOR_BITS - self.bits, self.sensitivity()))
    }
}

impl Kind for GradientAndDirections {
    const NAME: &'static str = "gradient and directions";

    fn read(given: &mut Arguments) -> Result<Self, BadParameter> {
        Self::new(&given.floats("theta")?, given.float("weight")?, given.small("bits")?)
    }

    fn bound_of(given: &mut Arguments) -> Result<Bound, BadParameter> {
        let d = given.size("d")?;
        let bound = Self::bound(d, given.float("weight")?, given.small("bits")?)?;
        Ok(Bound::vector(bound, d + entries(d)))
    }

    #[cfg(test)]
    fn examples(theta: &[f64], _scale: f64, _n: usize) -> Vec<Result<Self, BadParameter>> {
        vec![Self::new(theta, 0.125, 40), Self::new(theta, WEIGHT_MAX, 32)]
    }
}

#[cfg(test)]
mod tests {
    use nalgebra::DMatrix;
    use proptest::prelude::*;

    use super::*;
    use crate::release::sensitivity::Neighbours;
    use crate::statistics::gradient::Gradient;
    use crate::statistics::second_moments::tests::value;
    use crate::statistics::tests::{moved, values};

    fn both(points: &DMatrix<f64>, theta: &[f64], weight: f64, bits: u32) -> Vec<i64> {
        values(&GradientAndDirections::new(theta, weight, bits).unwrap(), points)
    }

    #[test]
    fn the_first_part_is_the_gradient_and_the_second_the_products() {
        let points = DMatrix::from_column_slice(2, 2, &[-3.0, -4.0, 5.0, 0.0]);
        let found = both(&points, &[0.0; 2], 0.5, 40);
        assert_eq!(found[..2], values(&Gradient::new(&[0.0; 2], 40).unwrap(), &points));
        let expected = [0.68, 0.24 * std::f64::consts::SQRT_2, 0.32];
        for (value, expected) in found[2..].iter().zip(expected) {
            assert!((*value as f64 / 2f64.powi(40) - expected).abs() < 1e-5, "{value} {expected}");
        }
        assert_eq!(both(&points.columns(0, 1).into_owned(), &[-3.0, -4.0], 0.5, 40), [0; 5], "at theta");
    }

    proptest! {
        #[test]
        fn a_replaced_record_moves_it_by_at_most_the_sensitivity(
            d in prop_oneof![1usize..12, Just(37usize)],
            coordinates in prop::collection::vec(value(), 37 * 5),
            opposite in any::<bool>(),
            weight in prop_oneof![0.01..0.7f64, Just(WEIGHT_MAX)],
            bits in 0u32..=40,
        ) {
            let record = |k: usize| coordinates[k * 37..k * 37 + d].to_vec();
            let (theta, kept, one) = (record(4), record(0), record(2));
            // The bound is almost reached if the new record lies on the other side of theta.
            let mirrored = theta.iter().zip(&one).map(|(t, x)| 2.0 * t - x);
            let other = if opposite { mirrored.map(|x| x.clamp(-1e300, 1e300)).collect() } else { record(3) };
            let at = |records: &[&[f64]]| {
                both(&DMatrix::from_column_slice(d, records.len(), &records.concat()), &theta, weight, bits)
            };
            let (here, there) = (at(&[&kept, &one]), at(&[&kept, &other]));
            let bound = GradientAndDirections::bound(d, weight, bits).unwrap();
            prop_assert!(moved(&here, &there) <= bound.under(Neighbours::Replace));
            prop_assert!(moved(&here, &at(&[&kept])) <= bound.under(Neighbours::AddRemove));
        }
    }

    /// Moves a record to the other side of theta, and adds a record: the bound is tight up to rounding.
    #[test]
    fn the_sensitivities_are_attained() {
        let at = |records: &[f64]| {
            both(&DMatrix::from_column_slice(2, records.len() / 2, records), &[0.0; 2], WEIGHT_MAX, 30)
        };
        let bound = GradientAndDirections::bound(2, WEIGHT_MAX, 30).unwrap();
        let room = |bound: f64| bound - 2f64.powi(30) * 1e-5 - 3.0;
        assert!(moved(&at(&[1.0, 0.0]), &at(&[-1.0, 0.0])) >= room(bound.under(Neighbours::Replace)));
        assert!(moved(&at(&[1.0, 0.0]), &at(&[])) >= room(bound.under(Neighbours::AddRemove)));
    }

    #[test]
    fn a_larger_weight_has_no_proof() {
        for weight in [0.0, -1.0, f64::NAN, 0.7072, f64::INFINITY] {
            assert!(GradientAndDirections::new(&[0.0], weight, 32).is_err(), "{weight}");
            assert!(GradientAndDirections::bound(1, weight, 32).is_err(), "{weight}");
        }
    }
}
