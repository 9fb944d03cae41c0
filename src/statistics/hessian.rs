//! The Hessian of the sum of distances at a point, smoothed at a radius. It is released as one vector on an integer
//! lattice, with two parts: the curvature K of [`super::curvature`], and the second moments T of
//! [`super::second_moments`] of the records beyond the radius.
//!
//! The Hessian is (K - T')/radius, where T' is the traceless part of T. K and T are released together because the
//! sensitivity of the vector is hardly larger than the sensitivity of T alone. The reason is that replacing a record
//! cannot change K and T both by much: a record within the radius contributes nothing to T, and two records that
//! contribute much to T contribute almost the same to K.
//!
//! **The vector.** It contains K times a weight a, followed by the upper triangle of T as [`super::second_moments`]
//! scales it.
//!
//! **Neighbors and sensitivity** (L2, lattice units of 2^-bits), in two and more dimensions. Let q = 1 - 1/d, s =
//! sqrt(d (d + 1)/2 + 1) and p = t (2 + t), where t is the rounding error of a vector in [`super::second_moments`].
//! Replacing a record moves the vector by at most 2^bits (sqrt(max(2, a^2, 1 + a^2 q^2)) + a 2^-20 + sqrt(2) p) (1 +
//! 2^-19) + s. Adding or removing a record moves the vector by at most 2^bits (sqrt(max(a^2, 1 + a^2 q^2)) + a 2^-21 +
//! p) (1 + 2^-19) + s. So under replacement, if a <= min(sqrt(2), 1/q), releasing K in addition to T costs almost
//! nothing. In one dimension, the same formulas hold with q = 0 for a record that is added or removed, and with q = 1
//! for a record that is replaced. [`Hessian::bound`] computes these formulas.
//!
//! *Proof.* A record within the radius contributes (a, 0). A record beyond the radius contributes (a k, M) with the
//! matrix M = v v^T 2^-2b of rank one, where b is the number of binary places of v. Let w be the computed quotient
//! radius/distance, which is at most 1. Let e = (d + 20) 2^-53. By the lemma of [`super::second_moments`], the
//! Frobenius norm m of M is at most (sqrt(w) + t)^2 (1 + e) <= (w + p) (1 + e). The number k differs from q w by at
//! most 2^-21 (1 + 2^-20). The Frobenius product of two such matrices is not negative, so ||M - M'||^2 <= m^2 + m'^2.
//!
//! Consider two records beyond the radius. The distance of their contributions is at most the length of the vector (a
//! (k - k'), m, m'). Let L be the length of the vector (a q (w - w'), w, w'). Then the distance is at most (L + 2 a
//! 2^-21 + sqrt(2) p) (1 + e), up to the factor 1 + 2^-20 above. The square L^2 = a^2 q^2 (w - w')^2 + w^2 + w'^2 is a
//! convex function of (w, w'). So L^2 is largest in a corner of the unit square, where it is at most max(2, 1 + a^2
//! q^2).
//!
//! Consider a record within the radius and a record beyond the radius. The squared distance of their contributions is
//! a^2 (1 - q w)^2 + w^2, apart from the same rounding errors. This is a convex function of w, so it is at most the
//! larger of its values a^2 at w = 0 and 1 + a^2/d^2 at w = 1. If d >= 2, then 1/d <= q, so 1 + a^2/d^2 <= 1 + a^2 q^2.
//! For d = 1 the formula uses 1/d = 1 in place of q.
//!
//! Consider a record that is added or removed. The squared length of its contribution is a^2 if the record is within
//! the radius, and otherwise a^2 q^2 w^2 + w^2, with the rounding errors of one k and one m. Weights in the vector are
//! rounded down. Rounding to the lattice changes the distance of two vectors by at most 1 in every coordinate, and by
//! at most s in all. ∎

use super::curvature::CONTRIBUTION_BITS;
use super::second_moments::{
    Companion, FACTOR_BITS, PRODUCT_BITS, add_block, checked_dimension, coordinates, entries, fixed, records_per_block,
    scale_triangle, vector_rounding,
};
use super::prelude::*;
use crate::runtime::parallel_fold::sum_any_records;

/// The largest weight a of the curvature. With a larger weight the curvature would cost more than the second moments.
const WEIGHT_MAX: f64 = 2.0;

/// The weighted curvature and the second moments, both multiplied by the radius, in units of 2^-bits.
#[derive(Debug, Clone, PartialEq)]
pub struct Hessian {
    theta: Vec<f64>,
    radius: f64,
    weight: f64,
    bits: u32,
}

impl Hessian {
    /// The radius must be positive and finite. The weight of the curvature must be positive and at most 2, and bits at
    /// most [`PRODUCT_BITS`].
    pub fn new(theta: &[f64], radius: f64, weight: f64, bits: u32) -> Result<Self, BadParameter> {
        checked_dimension(theta.len())?;
        Ok(Self {
            theta: theta.iter().copied().map(finite).collect(),
            radius: checked_radius(radius)?,
            weight: checked_weight(weight, WEIGHT_MAX)?,
            bits: checked_bits(bits, PRODUCT_BITS)?,
        })
    }

    /// The sensitivity in `d` dimensions, by the proof above. The formula adds room for its own rounding.
    pub fn bound(d: usize, weight: f64, bits: u32) -> Result<Sensitivity, BadParameter> {
        checked_dimension(d)?;
        let (weight, bits) = (checked_weight(weight, WEIGHT_MAX)?, checked_bits(bits, PRODUCT_BITS)?);
        let (unit, values) = (f64::from(bits).exp2(), (entries(d) + 1) as f64);
        let others = (1.0 / d as f64).min(1.0);
        let sum = |q: f64| 1.0 + (weight * q).powi(2);
        let norm = sum(1.0 - others).max(weight.powi(2)).sqrt();
        let diameter = sum((1.0 - others).max(others)).max(weight.powi(2)).max(2.0).sqrt();
        let rounding = weight * 2f64.powi(-20) * (1.0 + 2f64.powi(-20));
        let lengthened = vector_rounding(d) * (2.0 + vector_rounding(d));
        let computed = 1.0 + (d as f64 + 16.0) * f64::EPSILON;
        let up = |x: f64| (unit * x * computed + values.sqrt()) * (1.0 + 4.0 * f64::EPSILON);
        let both = std::f64::consts::SQRT_2 * lengthened;
        Ok(Sensitivity::of_sum(up(norm + rounding / 2.0 + lengthened), up(diameter + rounding + both)))
    }
}

impl Statistic for Hessian {
    fn dimension(&self) -> Option<usize> {
        Some(self.theta.len())
    }

    fn sensitivity(&self) -> Sensitivity {
        Self::bound(self.theta.len(), self.weight, self.bits).expect("the weight was checked")
    }

    fn parameters(&self) -> Parameters {
        Parameters::of([
            ("radius", self.radius.into()),
            ("weight", self.weight.into()),
            ("theta", self.theta.as_slice().into()),
            ("bits", self.bits.into()),
        ])
    }

    fn exact(&self, points: &Points, pulse: &mut dyn Pulse) -> Result<Exact, Interrupted> {
        let (d, theta, radius) = (points.d(), self.theta.as_slice(), self.radius);
        assert_eq!(theta.len(), d, "theta has another dimension than the points");
        let (per_block, size) = (records_per_block(points.n(), d), 1 + entries(d));
        let mut total = sum_any_records(points, coordinates(d), per_block, size, pulse, |total, block| {
            total[0] += add_block(block, theta, Companion::Curvature { radius }, &mut total[1..]);
        })?;
        total[0] *= fixed(self.weight) << (PRODUCT_BITS - CONTRIBUTION_BITS);
        scale_triangle(&mut total[1..], d, 1.0);
        Ok(Exact::rounded(total, PRODUCT_BITS + FACTOR_BITS - self.bits, self.sensitivity()))
    }
}

impl Kind for Hessian {
    const NAME: &'static str = "hessian";

    fn read(given: &mut Arguments) -> Result<Self, BadParameter> {
        Self::new(&given.floats("theta")?, given.float("radius")?, given.float("weight")?, given.small("bits")?)
    }

    fn bound_of(given: &mut Arguments) -> Result<Bound, BadParameter> {
        let d = given.size("d")?;
        let bound = Self::bound(d, given.float("weight")?, given.small("bits")?)?;
        Ok(Bound::vector(bound, 1 + entries(d)))
    }

    #[cfg(test)]
    fn examples(theta: &[f64], scale: f64, _n: usize) -> Vec<Result<Self, BadParameter>> {
        use super::tests::radius;
        vec![Self::new(theta, radius(scale), 0.4, 40), Self::new(theta, radius(scale), std::f64::consts::SQRT_2, 32)]
    }
}

#[cfg(test)]
mod tests {
    use nalgebra::DMatrix;
    use proptest::prelude::*;

    use super::*;
    use crate::numeric::float_scale::{norm, scale};
    use crate::release::sensitivity::Neighbours;
    use crate::runtime::pool;
    use crate::statistics::second_moments::tests::value;
    use crate::statistics::tests::{moved, values};

    fn hessian(points: &DMatrix<f64>, theta: &[f64], radius: f64, weight: f64, bits: u32) -> Vec<i64> {
        values(&Hessian::new(theta, radius, weight, bits).unwrap(), points)
    }

    #[test]
    fn one_record_gives_its_curvature_and_the_products_of_its_direction() {
        let points = DMatrix::from_column_slice(3, 1, &[-3.0, 0.0, -4.0]);
        let near = |value: i64, expected: f64| (value as f64 / 2f64.powi(40) - expected).abs() < 1e-5;
        let root = std::f64::consts::SQRT_2;
        let tenth = [0.5 * 0.2 / 3.0, 0.036, 0.0, 0.048 * root, 0.0, 0.0, 0.064];
        let found = hessian(&points, &[0.0; 3], 0.5, 0.5, 40);
        assert!(found.iter().zip(tenth).all(|(value, expected)| near(*value, expected)), "{found:?}");
        for (theta, radius) in [([0.0; 3], 5.0), ([0.0; 3], f64::MAX), ([-3.0, 0.0, -4.0], 1e-300)] {
            assert_eq!(hessian(&points, &theta, radius, 0.5, 40), [1 << 39, 0, 0, 0, 0, 0, 0], "within the radius");
        }
    }

    proptest! {
        #[test]
        fn a_replaced_record_moves_it_by_at_most_the_sensitivity(
            d in prop_oneof![1usize..12, Just(37usize)],
            coordinates in prop::collection::vec(value(), 37 * 5),
            octave in -1020i32..1000,
            weight in prop_oneof![0.1..2.0f64, Just(std::f64::consts::SQRT_2)],
            bits in 0u32..=40,
        ) {
            let record = |k: usize| &coordinates[k * 37..k * 37 + d];
            let at = |records: &[&[f64]]| {
                let points = DMatrix::from_column_slice(d, records.len(), &records.concat());
                hessian(&points, record(4), scale(1.0, octave), weight, bits)
            };
            let (here, there) = (at(&[record(0), record(1), record(2)]), at(&[record(0), record(1), record(3)]));
            let fewer = at(&[record(0), record(1)]);
            let bound = Hessian::bound(d, weight, bits).unwrap();
            prop_assert!(moved(&here, &there) <= bound.under(Neighbours::Replace));
            prop_assert!(moved(&here, &fewer) <= bound.under(Neighbours::AddRemove));
        }
    }

    /// Takes records from each corner that the proof considers: the bound is tight up to rounding.
    #[test]
    fn the_sensitivities_are_attained() {
        let along =
            |axis: usize, length: f64| move |d: usize| (0..d).map(|j| if j == axis { length } else { 0.0 }).collect();
        let records: [Box<dyn Fn(usize) -> Vec<f64>>; 4] = [
            Box::new(along(0, 1.0 + 1e-12)),
            Box::new(along(1, 1.0 + 1e-12)),
            Box::new(along(0, 0.5)),
            Box::new(along(0, 1e300)),
        ];
        let [beyond, across, within, far] = &records;
        let at = |d: usize, records: &[f64], weight| {
            hessian(&DMatrix::from_column_slice(d, records.len() / d, records), &vec![0.0; d], 1.0, weight, 30)
        };
        let room = |bound: f64| bound - 2f64.powi(30) * 1e-5 - 8.0;
        for (d, weight, one, other) in [(2, 1.0, beyond, across), (2, 2.0, within, far), (10, 2.0, beyond, far)] {
            let bound = Hessian::bound(d, weight, 30).unwrap().under(Neighbours::Replace);
            let moved = moved(&at(d, &one(d), weight), &at(d, &other(d), weight));
            assert!(moved >= room(bound), "{d} {weight}: {moved} {bound}");
        }
        for (weight, only) in [(2.0, within), (1.0, beyond)] {
            let bound = Hessian::bound(2, weight, 30).unwrap().under(Neighbours::AddRemove);
            assert!(moved(&at(2, &only(2), weight), &at(2, &[], weight)) >= room(bound), "{weight}");
        }
    }

    #[test]
    fn the_sum_is_that_of_plain_doubles_for_any_number_of_threads() {
        let (d, n, radius) = (11, 5000, 0.9);
        let points = DMatrix::from_fn(d, n, |i, j| ((i * 7919 + j * 104_729) % 1000) as f64 / 997.0);
        let theta = vec![0.4; d];
        let with = |threads| {
            pool::set_threads(Some(threads));
            let found = hessian(&points, &theta, radius, 1.0, 30);
            pool::set_threads(None);
            found
        };
        let found = with(1);
        assert_eq!(found, with(4));
        let distance_to = |record: nalgebra::DVectorView<'_, f64>| {
            norm(&theta.iter().zip(record.as_slice()).map(|(t, x)| t - x).collect::<Vec<_>>())
        };
        let bend = |distance: f64| if distance > radius { (1.0 - 1.0 / d as f64) * radius / distance } else { 1.0 };
        let curvature: f64 = points.column_iter().map(|record| bend(distance_to(record))).sum();
        assert!((found[0] as f64 / 2f64.powi(30) - curvature).abs() < n as f64 * 2f64.powi(-20));
        let mut entry = found[1..].iter();
        for i in 0..d {
            for j in i..d {
                let product = |record: nalgebra::DVectorView<'_, f64>| {
                    let difference: Vec<f64> = theta.iter().zip(record.as_slice()).map(|(t, x)| t - x).collect();
                    let distance = norm(&difference);
                    if distance > radius { difference[i] * difference[j] / distance.powi(3) * radius } else { 0.0 }
                };
                let sum: f64 = points.column_iter().map(product).sum();
                let expected = sum * if i == j { 1.0 } else { std::f64::consts::SQRT_2 };
                let value = *entry.next().unwrap() as f64 / 2f64.powi(30);
                // Every coordinate has an error of at most 2^-20, and a record has a norm of at most 1.
                assert!((value - expected).abs() < 2.0 * n as f64 * 2f64.powi(-20), "{i} {j}: {value} {expected}");
            }
        }
    }
}
