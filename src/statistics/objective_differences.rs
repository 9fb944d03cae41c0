//! Differences of the objective between candidates, on an integer lattice: the scores of a private selection.
//!
//! The objective F is the sum of distances. One record can change F by its distance, which may be arbitrarily large.
//! The selection needs only the differences F(theta_i) - F(theta_0), to which a record contributes a_i = |theta_i - x|
//! - |theta_0 - x|. For a far record, the difference of two computed distances would have no correct digits, and the
//!   bound below would not hold. So a_i is computed without cancellation as <theta_i - theta_0, p + q>/(|p| + |q|) with
//!   p = theta_i - x and q = theta_0 - x. Each a_i is then rounded to a multiple of the unit, and these multiples are
//!   summed as integers. The sums do not depend on the number of threads, the division into blocks or the instruction
//!   set.
//!
//! **Neighbors and range**: replacing a record moves the difference of any two scores by at most `range` units, and
//! adding or removing a record moves the difference by at most half as much. *Proof.* By the triangle inequality |a_i -
//! a_j| <= |theta_i - theta_j| <= D, where D is the diameter of the candidates.
//!
//! The error in floating point, with e = 2^-53 and to first order, has these parts. The coordinates of theta_i -
//! theta_0, p and q have a relative error of e. So p and q contribute e (|p| + |q|) to the error of p + q, and the
//! addition contributes as much again, so that the error is 2 e (|p| + |q|) in all. Sums over coordinates run through
//! eight lanes and a tree of additions, which is ceil(d/8) + 3 additions deep. So the products and sums of the inner
//! product add an error of (ceil(d/8) + 4) e |theta_i - theta_0| (|p| + |q|). The divisor |p| + |q| has a relative
//! error of (ceil(d/8)/2 + 5) e. The errors of a_i, in units of e D, are 1 for theta_i - theta_0, 2 for p + q,
//! ceil(d/8) + 4 for the inner product, ceil(d/8)/2 + 5 for the divisor and 1 for the division. Their sum is at most
//! d + 14. The bound (d + 16) e D includes the higher orders. Clamping a_i to an upper bound of |theta_i - theta_0|
//! only moves a_i towards its exact value. Scaling by a power of two is exact except for underflow, which changes |p| +
//! |q| by a relative error below 2^-100. Rounding to the unit adds half a unit.
//!
//! So the contributions of one record to two scores differ by at most D + unit + 2 (d + 16) e D, and adding or removing
//! the record moves the difference of the scores by at most this number. Replacing a record removes one such
//! contribution and adds another, so it moves the difference by at most 2 D + 2 units + 4 (d + 16) e D. The range is
//! this second bound, rounded up, and half of the range is not less than the first bound. ∎

use nalgebra::{DMatrixView, DVectorView};

use super::prelude::*;
use crate::numeric::dispatch::{self, Kernel};
use crate::numeric::distance::{LARGE, SMALL, sum_lanes, sum_of_squares};
use crate::numeric::float_scale::{exponent, norm, scale};
use crate::runtime::parallel_fold::{records_per_block, sum_records};

/// The unit is 2^-32 times the smallest power of two that is not less than the diameter.
const BITS: i32 = 32;

/// F(theta_i) - F(theta_0) for every candidate theta_i, in units of 2^exponent. The candidates must be public or
/// already released.
#[derive(Debug, Clone)]
pub struct ObjectiveDifferences {
    points: Vec<Vec<f64>>,
    /// The vector theta_i - theta_0 in units, and an upper bound of its norm.
    shifts: Vec<(Vec<f64>, f64)>,
    /// The largest distance between two candidates, rounded up.
    diameter: f64,
}

impl ObjectiveDifferences {
    /// One candidate per column.
    pub fn new(candidates: DMatrixView<'_, f64>) -> Result<Self, BadParameter> {
        if candidates.ncols() == 0 {
            return Err(BadParameter("there are no candidates to choose from".into()));
        }
        let point = |column: DVectorView<'_, f64>| column.iter().copied().map(finite).collect();
        let points: Vec<Vec<f64>> = candidates.column_iter().map(point).collect();
        // The relative error of norms is at most (d + 8) 2^-53, and they are rounded up.
        let up = 1.0 + (candidates.nrows() + 8) as f64 * f64::EPSILON;
        let minus = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<f64>>();
        let mut diameter = 0.0f64;
        for (index, a) in points.iter().enumerate() {
            for b in &points[..index] {
                let distance = norm(&minus(a, b));
                if distance > 0.0 {
                    // Multiplying a subnormal number by `up` may not round it up, so the diameter is at least the
                    // smallest normal number.
                    diameter = diameter.max((distance * up).max(f64::MIN_POSITIVE));
                }
            }
        }
        let mut made = Self { points, shifts: Vec::new(), diameter };
        let power = -made.exponent();
        made.shifts = made
            .points
            .iter()
            .map(|point| {
                let shift: Vec<f64> = minus(point, &made.points[0]).iter().map(|&x| scale(x, power)).collect();
                let bound = norm(&shift) * up;
                (shift, bound)
            })
            .collect();
        Ok(made)
    }

    /// The sensitivity with these candidates.
    pub fn bound(candidates: DMatrixView<'_, f64>) -> Result<Sensitivity, BadParameter> {
        Ok(Self::new(candidates)?.sensitivity())
    }

    /// The largest change of the difference of two scores when a record is replaced, in units. The range is 0 if all
    /// candidates are equal.
    fn range(&self) -> u64 {
        if self.diameter == 0.0 {
            return 0;
        }
        let dimension = self.points[0].len() as f64;
        let units = scale(self.diameter, -self.exponent());
        (2.0 * units * (1.0 + (dimension + 16.0) * f64::EPSILON) + 2.0).ceil() as u64
    }
}

impl Statistic for ObjectiveDifferences {
    fn dimension(&self) -> Option<usize> {
        Some(self.points[0].len())
    }

    fn sensitivity(&self) -> Sensitivity {
        Sensitivity::new(self.range() as f64, self.range().div_ceil(2) as f64)
    }

    /// The exponent is 0 if all candidates are the same point.
    fn exponent(&self) -> i32 {
        if self.diameter == 0.0 {
            return 0;
        }
        // The smallest power of two that is at least the diameter.
        let floor = exponent(self.diameter);
        let ceiling = if scale(1.0, floor) == self.diameter { floor } else { floor + 1 };
        ceiling - BITS
    }

    fn parameters(&self) -> Parameters {
        Parameters::of([("candidates", self.points.concat().as_slice().into()), ("d", self.points[0].len().into())])
    }

    fn exact(&self, points: &Points, pulse: &mut dyn Pulse) -> Result<Exact, Interrupted> {
        let d = points.d();
        assert_eq!(self.points[0].len(), d, "the candidates have another dimension than the points");
        let sums = sum_records(points, d, records_per_block(d), self.points.len(), pulse, |sums, block| {
            dispatch::vectorised(Block { candidates: self, block: block.view(), sums });
        })?;
        Ok(Exact::scores(sums, self.sensitivity()))
    }
}

impl Kind for ObjectiveDifferences {
    const NAME: &'static str = "objective differences";
    const SUM: bool = false;

    fn read(given: &mut Arguments) -> Result<Self, BadParameter> {
        let (candidates, d) = (given.floats("candidates")?, given.size("d")?.max(1));
        if !candidates.len().is_multiple_of(d) {
            return Err(BadParameter(format!("{} numbers do not describe candidates in {d} dimensions", candidates.len())));
        }
        Self::new(DMatrixView::from_slice(&candidates, d, candidates.len() / d))
    }

    fn bound_of(given: &mut Arguments) -> Result<Bound, BadParameter> {
        Ok(Bound::scores(Self::read(given)?.sensitivity()))
    }

    #[cfg(test)]
    fn examples(theta: &[f64], scale: f64, _n: usize) -> Vec<Result<Self, BadParameter>> {
        let others = [1.0, -0.5, scale].map(|by| theta.iter().map(|t| t * by + by).collect());
        let candidates = [vec![theta.to_vec()], others.to_vec()].concat().concat();
        vec![Self::new(DMatrixView::from_slice(&candidates, theta.len(), 4))]
    }
}

/// The sums over one block of records.
struct Block<'a> {
    candidates: &'a ObjectiveDifferences,
    block: DMatrixView<'a, f64>,
    sums: &'a mut [i64],
}

impl Kernel for Block<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let ObjectiveDifferences { points, shifts, .. } = self.candidates;
        let (mut p, mut q) = (vec![0.0; self.block.nrows()], vec![0.0; self.block.nrows()]);
        for record in self.block.column_iter() {
            let record = record.as_slice();
            subtract(&points[0], record, &mut q);
            let q_squares = sum_of_squares(&q);
            for ((point, (shift, bound)), sum) in points.iter().zip(shifts).zip(&mut *self.sums).skip(1) {
                subtract(point, record, &mut p);
                let p_squares = sum_of_squares(&p);
                let safe = SMALL..=LARGE;
                let difference = if safe.contains(&p_squares) && safe.contains(&q_squares) {
                    inner(shift, &p, &q) / (p_squares.sqrt() + q_squares.sqrt())
                } else {
                    rescaled(shift, &p, &q)
                };
                *sum += difference.clamp(-bound, *bound).round_ties_even() as i64;
            }
        }
    }
}

#[inline(always)]
fn subtract(point: &[f64], record: &[f64], difference: &mut [f64]) {
    for ((difference, t), x) in difference.iter_mut().zip(point).zip(record) {
        *difference = t - x;
    }
}

/// The inner product <shift, p + q>, summed in eight lanes in a fixed order, so that the result has the same bits on
/// every instruction set.
#[inline(always)]
fn inner(shift: &[f64], p: &[f64], q: &[f64]) -> f64 {
    let mut lanes = [0.0; 8];
    let (shifts, ps, qs) = (shift.chunks_exact(8), p.chunks_exact(8), q.chunks_exact(8));
    let rest = shifts.remainder().iter().zip(ps.remainder()).zip(qs.remainder());
    for ((shift, p), q) in shifts.zip(ps).zip(qs) {
        for lane in 0..8 {
            lanes[lane] += shift[lane] * (p[lane] + q[lane]);
        }
    }
    for (lane, ((shift, p), q)) in lanes.iter_mut().zip(rest) {
        *lane += shift * (p + q);
    }
    sum_lanes(lanes)
}

/// The quotient <shift, p + q>/(|p| + |q|). Both p and q are first scaled by a power of two, so that the largest of
/// their coordinates lies in [1, 2).
#[cold]
fn rescaled(shift: &[f64], p: &[f64], q: &[f64]) -> f64 {
    let largest = p.iter().chain(q).fold(0.0f64, |largest, x| largest.max(x.abs()));
    if largest == 0.0 {
        return 0.0;
    }
    let power = -exponent(largest);
    let scaled = |vector: &[f64]| vector.iter().map(|&x| scale(x, power)).collect::<Vec<f64>>();
    let (p, q) = (scaled(p), scaled(q));
    inner(shift, &p, &q) / (sum_of_squares(&p).sqrt() + sum_of_squares(&q).sqrt())
}

#[cfg(test)]
mod tests {
    use nalgebra::DMatrix;
    use proptest::prelude::*;

    use super::*;
    use crate::runtime::pool;
    use crate::statistics::tests::values;

    /// Any finite coordinate below 2^1000, with many extremes and repetitions.
    fn coordinate() -> impl Strategy<Value = f64> {
        prop_oneof![
            Just(0.0),
            Just(1.0),
            Just(1e-162),
            Just(5e-324),
            Just(1e300),
            Just(-1e300),
            Just(1e16),
            -10.0..10.0f64,
            -1e-300..1e-300f64,
        ]
    }

    fn made(candidates: &DMatrix<f64>) -> ObjectiveDifferences {
        ObjectiveDifferences::new(candidates.as_view()).unwrap()
    }

    /// The scores minus the score of the first candidate. The tape stores scores relative to the smallest score.
    fn scores(candidates: &DMatrix<f64>, points: &DMatrix<f64>) -> Vec<i64> {
        let opened = values(&made(candidates), points);
        opened.iter().map(|score| score - opened[0]).collect()
    }

    fn spread(a: &[i64], b: &[i64]) -> u64 {
        let moved = || a.iter().zip(b).map(|(a, b)| a - b);
        moved().max().unwrap().abs_diff(moved().min().unwrap())
    }

    proptest! {
        #[test]
        fn a_replaced_record_moves_differences_by_at_most_the_range(
            d in 1usize..12,
            wide: bool,
            values in prop::collection::vec(coordinate(), 12 * 8),
            near in prop::collection::vec(-1.0..1.0f64, 12 * 4),
        ) {
            // Candidates anywhere, or close together near a record.
            let candidates = DMatrix::from_fn(d, 4, |i, j| {
                if wide { values[(j + 4) * 12 + i] } else { values[i] + 1e-9 * near[j * 12 + i] }
            });
            let made = made(&candidates);
            prop_assume!(made.diameter < 2f64.powi(1000));
            let one = |j: usize| DMatrix::from_fn(d, 1, |i, _| values[j * 12 + i]);
            for (x, y) in [(0, 1), (1, 2), (2, 3), (3, 0), (0, 4)] {
                let (a, b) = (scores(&candidates, &one(x)), scores(&candidates, &one(y)));
                prop_assert!(spread(&a, &b) <= made.range(), "{a:?} {b:?} {}", made.range());
            }
        }
    }

    #[test]
    fn the_range_holds_for_candidates_a_subnormal_distance_apart() {
        let candidates = DMatrix::from_column_slice(2, 2, &[0.0, 0.0, 5e-324, 5e-324]);
        let one = |x: f64| scores(&candidates, &DMatrix::from_element(2, 1, x));
        assert!(spread(&one(-1.0), &one(1.0)) <= made(&candidates).range());
    }

    #[test]
    fn the_range_is_reached_on_a_line() {
        let candidates = DMatrix::from_row_slice(1, 2, &[0.0, 1.0]);
        let (left, right) = (DMatrix::from_element(1, 1, -5.0), DMatrix::from_element(1, 1, 1e300));
        let made = made(&candidates);
        assert_eq!(made.exponent(), 1 - BITS, "the diameter is rounded up, above one");
        let (a, b) = (scores(&candidates, &left), scores(&candidates, &right));
        assert_eq!((a[1], b[1]), (1 << 31, -(1 << 31)));
        assert!(made.range() - spread(&a, &b) <= 4);
    }

    #[test]
    fn far_records_keep_their_digits() {
        // The distances are about 5e16, where doubles are multiples of 8, and so are differences of computed distances.
        let candidates = DMatrix::from_column_slice(2, 3, &[0.0, 0.0, 0.25, 0.0, 0.0, -0.5]);
        let sums = scores(&candidates, &DMatrix::from_column_slice(2, 1, &[3e16, 4e16]));
        let unit = scale(1.0, made(&candidates).exponent());
        assert!((sums[1] as f64 * unit + 0.25 * 0.6).abs() < 1e-9);
        assert!((sums[2] as f64 * unit - 0.5 * 0.8).abs() < 1e-9);
    }

    #[test]
    fn equal_candidates_have_no_range_and_equal_scores() {
        let candidates = DMatrix::from_element(3, 4, 2.0);
        let made = made(&candidates);
        assert_eq!((made.range(), made.exponent()), (0, 0));
        assert_eq!(scores(&candidates, &DMatrix::from_fn(3, 50, |i, j| (i * j) as f64)), vec![0; 4]);
    }

    #[test]
    fn sums_are_the_same_for_any_threads_any_chunking_and_any_instructions() {
        let points = DMatrix::from_fn(11, 20_000, |i, j| ((i * 7919 + j * 104_729) % 1000) as f64 / 37.0);
        let candidates = DMatrix::from_fn(11, 5, |i, j| ((i * 31 + j * 17) % 13) as f64);
        let whole = scores(&candidates, &points);
        for threads in [1, 2, 4] {
            pool::set_threads(Some(threads));
            assert_eq!(scores(&candidates, &points), whole);
        }
        pool::set_threads(None);
        let made = made(&candidates);
        let mut sums = vec![0; 5];
        for (first, count) in [(0, 777), (777, 19_223)] {
            let block = points.columns(first, count);
            dispatch::portable(Block { candidates: &made, block, sums: &mut sums });
        }
        assert_eq!(sums, whole);
        let unit = scale(1.0, made.exponent());
        let distance = |j: usize| points.column_iter().map(|x| (candidates.column(j) - x).norm()).sum::<f64>();
        for (j, &sum) in whole.iter().enumerate() {
            let expected = distance(j) - distance(0);
            assert!((sum as f64 * unit - expected).abs() < 1e-6 * (1.0 + expected.abs()), "{j}");
        }
    }
}
