//! For each of several centers: the number of records nearest to the center, their counts in shells of the distance,
//! and the gradient of the sum of their Huber distances. All these numbers form one vector on an integer lattice.
//!
//! **The contribution of a record x.** Let c be the center that is nearest to x (the first of several equally near
//! centers), j the index of c, and r the distance between x and c. If r exceeds the public `reach`, the record
//! contributes nothing. Otherwise the record contributes three things. It adds a weight a to the count of j. It adds a
//! weight b to the shell of j that contains r; [`super::shells`] defines the shells. It adds the vector g = (c -
//! x)/max(r, q) to the gradient of j, where q is the public Huber radius of j. If r >= q, then g is a unit vector; if r
//! < q, then g is shorter.
//!
//! **The vector.** It contains the k counts, followed by [`SHELLS`] entries for each center, followed by d coordinates
//! for each center.
//!
//! **Neighbors and sensitivity** (L2, lattice units of 2^-bits). Let 0 < a <= 1 and 0 < b <= 1. Let s be the square
//! root of the number of values in the vector, and e = sqrt(d) 2^-40 + (d + 6) 2^-52. Adding or removing a record moves
//! the vector by at most 2^bits (sqrt(1 + a^2 + b^2) + e) + s. Replacing a record moves the vector by at most 2^bits
//! (sqrt(4 + 2 b^2) + e) + s.
//!
//! *Proof.* The nearest center, the shell and g are functions of the record and of public parameters alone. The program
//! computes them by the same operations in the same order for any other records in the block. In exact arithmetic |g|
//! <= 1, and the three parts of a contribution are orthogonal. So the contribution of one record has a squared norm of
//! at most 1 + a^2 + b^2.
//!
//! Let a record be replaced. If both records have the same nearest center, the counts do not move, the shells move by
//! at most sqrt(2) b, and the gradients move by at most 2. The squared distance is then at most 4 + 2 b^2. If the two
//! records have different nearest centers, no entry of the vector gets contributions of both, and the squared distance
//! is at most 2 + 2 a^2 + 2 b^2, which is at most 4 + 2 b^2 because a <= 1. If one of the two records contributes
//! nothing, the squared distance is at most 1 + a^2 + b^2 <= 3.
//!
//! In the program, r and the coordinates of g have rounding errors. Suppose that r exceeds q, which is at least 2^-900.
//! Then r has a relative error of at most (d/2 + 3) 2^-53 by the proof of [`super::gradient`]. (If squares could
//! overflow or underflow, the difference is first scaled by a power of two.) If r does not exceed q, then the length of
//! g exceeds 1 by at most the same error. Dividing a coordinate by max(r, q) adds an error of 2^-53. So the computed g
//! has a norm of at most 1 + (d + 6) 2^-53. Rounding g to multiples of 2^-40 moves g by at most sqrt(d) 2^-41. The two
//! errors are at most e/2 for one record and e for two records. The weights a and b are rounded down to multiples of
//! 2^-30. Rounding the sums to the lattice changes the distance of two vectors by at most 1 in every coordinate, and by
//! at most s in all. ∎

use super::gradient::rounder;
use super::second_moments::{FACTOR_BITS, fixed};
use super::shells::{SHELLS, shell};
use super::prelude::*;
use crate::numeric::block::Block;
use crate::numeric::distance::distances;
use crate::runtime::parallel_fold::{records_per_block, sum_records};

/// The coordinates of a record's gradient are multiples of 2^-40, so a finer lattice would contain no more information.
pub const BITS_MAX: u32 = 40;

/// The largest weight of counts and of shells for which the proof holds.
pub const WEIGHT_MAX: f64 = 1.0;

/// The smallest Huber radius. It replaces smaller radii. Distances above 2^-900 have no rounding errors from subnormal
/// numbers.
const RADIUS_MIN: f64 = f64::from_bits((1023 - 900) << 52);

/// The largest number of centers.
pub const CENTERS_MAX: usize = 1 << 12;

/// The largest dimension for which there is a bound, so that the number of values is a number of the machine.
const COORDINATES_MAX: usize = 1 << 40;

/// Counts, shells and Huber gradients of the records nearest to each center, in units of 2^-bits.
#[derive(Debug, Clone, PartialEq)]
pub struct ClusterGradients {
    d: usize,
    centers: Vec<f64>,
    radii: Vec<f64>,
    scale: f64,
    reach: f64,
    weights: Weights,
    bits: u32,
}

/// The weights of the counts and of the shells, relative to the weight 1 of the gradient.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weights {
    /// The weight of the counts.
    pub counts: f64,
    /// The weight of the shells.
    pub shells: f64,
}

impl Weights {
    fn read(given: &mut Arguments) -> Result<Self, BadParameter> {
        let [counts, shells] = given.floats("weights")?[..] else {
            return Err(BadParameter("weights must be two numbers: the weight of the counts and the weight of the shells".into()));
        };
        Ok(Self { counts, shells })
    }

    fn checked(self) -> Result<Self, BadParameter> {
        Ok(Self { counts: checked_weight(self.counts, WEIGHT_MAX)?, shells: checked_weight(self.shells, WEIGHT_MAX)? })
    }
}

impl ClusterGradients {
    /// `centers` has `d` coordinates for each center, and `radii` has one number for each center. `reach` must be
    /// positive. If it is infinite, all records are included.
    pub fn new(
        d: usize,
        centers: &[f64],
        radii: &[f64],
        scale: f64,
        reach: f64,
        weights: Weights,
        bits: u32,
    ) -> Result<Self, BadParameter> {
        if radii.is_empty() || radii.len() > CENTERS_MAX || centers.len() != d * radii.len() {
            let (centers, radii) = (centers.len(), radii.len());
            return Err(BadParameter(format!(
                "{centers} numbers and {radii} radii do not describe centers in {d} dimensions"
            )));
        }
        if reach.is_nan() || reach <= 0.0 {
            return Err(BadParameter(format!("the reach must be positive, got {reach}")));
        }
        Ok(Self {
            d,
            centers: centers.iter().copied().map(finite).collect(),
            radii: radii.iter().map(|radius| finite(*radius).max(RADIUS_MIN)).collect(),
            scale: checked_radius(scale)?,
            reach,
            weights: weights.checked()?,
            bits: checked_bits(bits, BITS_MAX)?,
        })
    }

    /// The number of values in the vector of k centers.
    pub fn values(k: usize, d: usize) -> usize {
        k * (1 + SHELLS + d)
    }

    /// The sensitivity with k centers in d dimensions, by the proof above. The formula adds room for its own rounding.
    pub fn bound(k: usize, d: usize, weights: Weights, bits: u32) -> Result<Sensitivity, BadParameter> {
        if !(1..=CENTERS_MAX).contains(&k) || d > COORDINATES_MAX {
            return Err(BadParameter(format!("there is no bound for {k} centers in {d} dimensions")));
        }
        let (Weights { counts: a, shells: b }, bits) = (weights.checked()?, checked_bits(bits, BITS_MAX)?);
        let (unit, values, d) = (f64::from(bits).exp2(), Self::values(k, d) as f64, d as f64);
        let computed = d.sqrt() * 2f64.powi(-40) + (d + 6.0) * f64::EPSILON;
        let up = |x: f64| (unit * (x + computed) + values.sqrt()) * (1.0 + 8.0 * f64::EPSILON);
        Ok(Sensitivity::of_sum(up((1.0 + a * a + b * b).sqrt()), up((4.0 + 2.0 * b * b).sqrt())))
    }
}

impl Statistic for ClusterGradients {
    fn dimension(&self) -> Option<usize> {
        Some(self.d)
    }

    fn sensitivity(&self) -> Sensitivity {
        Self::bound(self.radii.len(), self.d, self.weights, self.bits).expect("the parameters were checked")
    }

    fn parameters(&self) -> Parameters {
        Parameters::of([
            ("scale", self.scale.into()),
            ("reach", self.reach.into()),
            ("weights", [self.weights.counts, self.weights.shells].as_slice().into()),
            ("radii", self.radii.as_slice().into()),
            ("centers", self.centers.as_slice().into()),
            ("bits", self.bits.into()),
        ])
    }

    fn exact(&self, points: &Points, pulse: &mut dyn Pulse) -> Result<Exact, Interrupted> {
        let (d, k) = (self.d, self.radii.len());
        assert_eq!(points.d(), d, "the centers have another dimension than the points");
        let (cost, size) = (d.max(1) * (k + 1), Self::values(k, d));
        let mut total = sum_records(points, cost, records_per_block(d), size, pulse, |total, block| {
            self.add_block(block, total);
        })?;
        let (counted, gradients) = total.split_at_mut(k * (1 + SHELLS));
        let (counts, shells) = counted.split_at_mut(k);
        for (part, weight) in [(counts, self.weights.counts), (shells, self.weights.shells)] {
            part.iter_mut().for_each(|count| *count *= fixed(weight) << BITS_MAX);
        }
        gradients.iter_mut().for_each(|entry| *entry <<= FACTOR_BITS);
        Ok(Exact::rounded(total, BITS_MAX + FACTOR_BITS - self.bits, self.sensitivity()))
    }
}

impl Kind for ClusterGradients {
    const NAME: &'static str = "cluster gradients";

    fn read(given: &mut Arguments) -> Result<Self, BadParameter> {
        let (centers, radii) = (given.floats("centers")?, given.floats("radii")?);
        let (scale, reach) = (given.float("scale")?, given.float("reach")?);
        let d = centers.len() / radii.len().max(1);
        Self::new(d, &centers, &radii, scale, reach, Weights::read(given)?, given.small("bits")?)
    }

    fn bound_of(given: &mut Arguments) -> Result<Bound, BadParameter> {
        let (k, d, bits) = (given.size("k")?, given.size("d")?, given.small("bits")?);
        Ok(Bound::vector(Self::bound(k, d, Weights::read(given)?, bits)?, Self::values(k, d)))
    }

    #[cfg(test)]
    fn examples(theta: &[f64], scale: f64, _n: usize) -> Vec<Result<Self, BadParameter>> {
        use super::tests::radius;
        let centers = [theta, &vec![scale; theta.len()], &vec![-0.5; theta.len()]].concat();
        let weights = Weights { counts: 1.0, shells: 0.7 };
        vec![Self::new(theta.len(), &centers, &[radius(scale), 0.0, scale], radius(scale), 1e300, weights, 36)]
    }
}

impl ClusterGradients {
    /// Adds the contributions of the records of a block: counts and shells as numbers of records, gradients in units of
    /// 2^-40.
    fn add_block(&self, block: Block<'_>, total: &mut [i64]) {
        let (d, k) = (self.d, self.radii.len());
        let mut nearest: Vec<(usize, f64)> = vec![(0, f64::INFINITY); block.n()];
        for index in 0..k {
            let center = &self.centers[index * d..][..d];
            for (slot, distance) in nearest.iter_mut().zip(distances(block, center)) {
                if distance < slot.1 {
                    *slot = (index, distance);
                }
            }
        }
        let (counted, gradients) = total.split_at_mut(k * (1 + SHELLS));
        let (counts, shells) = counted.split_at_mut(k);
        let rounder = rounder(BITS_MAX);
        for (record, (index, distance)) in block.records().zip(nearest) {
            if distance > self.reach {
                continue;
            }
            counts[index] += 1;
            shells[index * SHELLS + shell(distance, self.scale)] += 1;
            let divisor = distance.max(self.radii[index]);
            let (center, gradient) = (&self.centers[index * d..][..d], &mut gradients[index * d..][..d]);
            for ((entry, c), x) in gradient.iter_mut().zip(center).zip(record) {
                *entry += ((c - x) / divisor + rounder).to_bits().wrapping_sub(rounder.to_bits()).cast_signed();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use nalgebra::DMatrix;
    use proptest::prelude::*;

    use super::*;
    use crate::release::sensitivity::Neighbours;
    use crate::statistics::second_moments::tests::value;
    use crate::statistics::tests::{moved, values};

    const HALVES: Weights = Weights { counts: 0.5, shells: 0.25 };

    fn at(points: &DMatrix<f64>, centers: &[f64], radii: &[f64], reach: f64, weights: Weights, bits: u32) -> Vec<i64> {
        let d = centers.len() / radii.len();
        values(&ClusterGradients::new(d, centers, radii, 1.0, reach, weights, bits).unwrap(), points)
    }

    #[test]
    fn every_record_counts_for_its_nearest_center_and_ties_for_the_first() {
        // Two centers on the line at -1 and 1, with Huber radii 1/2 and 4.
        let points = DMatrix::from_row_slice(1, 4, &[-3.0, 0.0, 2.0, 900.0]);
        let found = at(&points, &[-1.0, 1.0], &[0.5, 4.0], 100.0, HALVES, 40);
        let unit = 1i64 << 40;
        assert_eq!(found[..2], [unit, unit / 2]);
        let first = (-super::super::shells::FIRST_HALF_OCTAVE) as usize;
        assert_eq!((found[2 + first], found[2 + first + 2], found[2 + SHELLS + first]), (unit / 4, unit / 4, unit / 4));
        // The unit vectors from -3 and 0 cancel; the record at 2 adds a quarter, because it is within the Huber radius.
        assert_eq!(found[2 + 2 * SHELLS..], [0, -unit / 4]);
        let all = at(&points, &[-1.0, 1.0], &[0.5, 4.0], f64::INFINITY, HALVES, 40);
        assert_eq!((all[1], all[3 + 2 * SHELLS]), (unit, -unit / 4 - unit));
    }

    proptest! {
        #[test]
        fn a_record_moves_it_by_at_most_the_sensitivity(
            d in prop_oneof![1usize..12, Just(37usize)],
            k in 1usize..4,
            coordinates in prop::collection::vec(value(), 37 * 6),
            radii in prop::collection::vec(prop_oneof![value().prop_map(f64::abs), 0.1..3.0f64], 3),
            opposite in any::<bool>(),
            counts in prop_oneof![0.01..1.0f64, Just(1.0)],
            shells in prop_oneof![0.01..1.0f64, Just(1.0)],
            bits in 0u32..=40,
        ) {
            let record = |i: usize| coordinates[i * 37..i * 37 + d].to_vec();
            let (kept, one) = (record(0), record(1));
            let centers: Vec<f64> = (0..k).flat_map(|i| record(3 + i)).collect();
            let mirrored = centers.iter().zip(&one).map(|(c, x)| (2.0 * c - x).clamp(-1e300, 1e300));
            let other = if opposite { mirrored.take(d).collect() } else { record(2) };
            let weights = Weights { counts, shells };
            let of = |records: &[&[f64]]| {
                let points = DMatrix::from_column_slice(d, records.len(), &records.concat());
                at(&points, &centers, &radii[..k], f64::INFINITY, weights, bits)
            };
            let (here, there) = (of(&[&kept, &one]), of(&[&kept, &other]));
            let bound = ClusterGradients::bound(k, d, weights, bits).unwrap();
            prop_assert!(moved(&here, &there) <= bound.under(Neighbours::Replace));
            prop_assert!(moved(&here, &of(&[&kept])) <= bound.under(Neighbours::AddRemove));
        }
    }

    /// Replaces a record by one on the other side of its center and in another shell, and adds a record.
    #[test]
    fn the_sensitivities_are_attained() {
        let weights = Weights { counts: 1.0, shells: 0.5 };
        let of = |records: &[f64]| {
            let points = DMatrix::from_column_slice(2, records.len() / 2, records);
            at(&points, &[0.0, 0.0, 100.0, 0.0], &[0.5, 0.5], f64::INFINITY, weights, 30)
        };
        let bound = ClusterGradients::bound(2, 2, weights, 30).unwrap();
        let room = |bound: f64| bound - 2f64.powi(30) * 1e-5 - 12.0;
        assert!(moved(&of(&[1.0, 0.0]), &of(&[-8.0, 0.0])) >= room(bound.under(Neighbours::Replace)));
        assert!(moved(&of(&[1.0, 0.0]), &of(&[])) >= room(bound.under(Neighbours::AddRemove)));
    }

    #[test]
    fn parameters_without_a_proof_are_refused() {
        let made = |radii: &[f64], reach: f64, counts: f64, shells: f64, bits: u32| {
            ClusterGradients::new(1, &[0.0, 1.0], radii, 1.0, reach, Weights { counts, shells }, bits)
        };
        assert!(made(&[1.0, 1.0], 1.0, 1.0, 1.0, 40).is_ok());
        assert!(made(&[1.0], 1.0, 1.0, 1.0, 40).is_err() && made(&[], 1.0, 1.0, 1.0, 40).is_err());
        for reach in [0.0, -1.0, f64::NAN] {
            assert!(made(&[1.0, 1.0], reach, 1.0, 1.0, 40).is_err());
        }
        for weight in [0.0, 1.1, f64::NAN] {
            assert!(
                made(&[1.0, 1.0], 1.0, weight, 1.0, 40).is_err() && made(&[1.0, 1.0], 1.0, 1.0, weight, 40).is_err()
            );
        }
        assert!(made(&[1.0, 1.0], 1.0, 1.0, 1.0, 41).is_err());
    }
}
