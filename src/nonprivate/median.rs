//! The geometric median without privacy, with which private methods are compared.
//!
//! The program uses Newton's method on F(theta) = sum ||theta - x_i||, with extensions for the nonsmooth points at the
//! records:
//!
//! - A record may itself be the median. If a step would be as long as the distance to the nearest record, this record
//!   is tried. A record x with multiplicity m is the median if and only if the sum of the unit vectors of the other
//!   records has a norm of at most m. If x is not the median, the step of Vardi and Zhang leads away from x and
//!   decreases F.
//! - If the quadratic model is poor, for example because the records lie in a line and F has no curvature, an exact
//!   search along the step finds the step length. The search needs one pass over the records and then O(n) per
//!   evaluation.
//! - With many records, the search starts from the median of every sixteenth record, so that few passes read all
//!   records.
//!
//! The search ends with a certificate. Let F* = F(theta*) be the minimum. By convexity F - F* <= ||g|| ||theta -
//! theta*|| for every subgradient g, and n ||theta - theta*|| <= F + F* <= 2 F. So the relative gap (F - F*)/F is at
//! most 2 ||g||/n. This bound may stay above 1e-10 although the gap is much smaller. This happens if records lie nearly
//! in a line, or so close to the median that the rounding of theta changes the directions of their unit vectors. For
//! such data the tests use a sharper bound, by duality. Sums are taken in a fixed order, so the bits are the same for
//! any number of threads.

use nalgebra::{Cholesky, DMatrix, DVector};

use crate::numeric::block::Block;
use crate::numeric::dispatch::{self, Kernel};
use crate::numeric::distance::for_each_distance;
use crate::numeric::float_scale::{exponent, finite, scale};
use crate::runtime::parallel_fold::map_blocks;
use crate::runtime::points::Points;
use crate::runtime::pulse::{Interrupted, Pulse, Silent};

/// The relative gap at which the search ends. It is a hundredth of the promised gap of 1e-10.
const GAP: f64 = 1e-12;
/// The largest number of steps. Usually about ten Newton steps are enough. Only data without curvature need more steps.
const STEPS: usize = 200;
/// The largest dimension in which the Hessian matrix is computed. In higher dimensions, conjugate gradients solve for
/// the step without the matrix.
const DENSE: usize = 24;
/// If there are more records than this, the search starts from the median of a part of the records.
const PART: usize = 4096;
/// A record that is nearer than this counts as lying at the point, if the records have an extent of about one. The
/// cubes of smaller distances are not normal doubles, and such records change the objective by less than its precision.
const AT: f64 = f64::from_bits((1023 - 300) << 52);

/// The mass of each record: one, or its weight, which is positive.
#[derive(Clone, Copy)]
struct Masses<'a>(Option<&'a [f64]>);

impl Masses<'_> {
    #[inline(always)]
    fn of(self, record: usize) -> f64 {
        self.0.map_or(1.0, |masses| masses[record])
    }

    fn total(self, n: usize) -> f64 {
        self.0.map_or(n as f64, |masses| masses.iter().sum())
    }
}

/// F and its derivatives at a point.
#[derive(Clone)]
struct Slope {
    objective: f64,
    /// The sum of unit vectors (theta - x)/||theta - x|| over the records that are not at theta.
    gradient: DVector<f64>,
    /// The sum of 1/||theta - x||.
    weight: f64,
    /// The number, or the total weight, of the records at theta.
    coincident: f64,
    /// Distance and index of the nearest record that is not at theta.
    nearest: (f64, usize),
}

impl Slope {
    /// The norm of the smallest subgradient.
    fn steepness(&self) -> f64 {
        (self.gradient.norm() - self.coincident).max(0.0)
    }

    /// Whether this point is better than another. It is better if F is lower, or if F is equal up to rounding and the
    /// gradient is smaller.
    fn improves(&self, other: &Slope) -> bool {
        let rounding = 1e-13 * other.objective;
        self.objective < other.objective - rounding
            || (self.objective <= other.objective + rounding && self.steepness() < other.steepness())
    }
}

struct BlockSlope<'a> {
    block: Block<'a>,
    theta: &'a [f64],
    first: usize,
    masses: Masses<'a>,
}

impl Kernel for BlockSlope<'_> {
    type Output = Slope;

    #[inline(always)]
    fn run(self) -> Slope {
        let (mut objective, mut weight, mut coincident) = (0.0, 0.0, 0.0);
        let mut nearest = (f64::INFINITY, 0);
        let mut gradient = DVector::zeros(self.theta.len());
        for_each_distance(self.block, self.theta, |index, difference, distance| {
            let mass = self.masses.of(self.first + index);
            if distance <= AT {
                coincident += mass;
                return;
            }
            let inverse = mass / distance;
            objective += mass * distance;
            weight += inverse;
            if distance < nearest.0 {
                nearest = (distance, self.first + index);
            }
            for (sum, x) in gradient.as_mut_slice().iter_mut().zip(difference) {
                *sum += x * inverse;
            }
        });
        Slope { objective, gradient, weight, coincident, nearest }
    }
}

fn slope(points: &Points<'_>, masses: Masses<'_>, theta: &[f64], pulse: &mut dyn Pulse) -> Result<Slope, Interrupted> {
    let parts =
        map_blocks(points, pulse, |first, block| dispatch::vectorised(BlockSlope { block, theta, first, masses }))?;
    let mut parts = parts.into_iter();
    let mut total = parts.next().expect("there are records");
    for part in parts {
        total.objective += part.objective;
        total.gradient += part.gradient;
        total.weight += part.weight;
        total.coincident += part.coincident;
        if part.nearest.0 < total.nearest.0 {
            total.nearest = part.nearest;
        }
    }
    Ok(total)
}

/// The lower triangle of the sum of u u^T/r over a block. The Hessian is the weight times the identity minus this sum.
struct BlockOuter<'a>(Block<'a>, &'a [f64], usize, Masses<'a>);

impl Kernel for BlockOuter<'_> {
    type Output = DMatrix<f64>;

    #[inline(always)]
    fn run(self) -> DMatrix<f64> {
        let d = self.1.len();
        let mut outer = DMatrix::zeros(d, d);
        for_each_distance(self.0, self.1, |index, difference, distance| {
            if distance <= AT {
                return;
            }
            let cube = self.3.of(self.2 + index) / (distance * distance * distance);
            for (column, &y) in outer.as_mut_slice().chunks_exact_mut(d).zip(difference) {
                let factor = y * cube;
                for (sum, &x) in column.iter_mut().zip(difference) {
                    *sum += x * factor;
                }
            }
        });
        outer
    }
}

/// The sum of u u^T/r over a block, multiplied by a vector.
struct BlockProduct<'a>(Block<'a>, &'a [f64], &'a [f64], usize, Masses<'a>);

impl Kernel for BlockProduct<'_> {
    type Output = DVector<f64>;

    #[inline(always)]
    fn run(self) -> DVector<f64> {
        let vector = self.2;
        let mut sum = DVector::zeros(vector.len());
        for_each_distance(self.0, self.1, |index, difference, distance| {
            if distance <= AT {
                return;
            }
            let mass = self.4.of(self.3 + index);
            let factor = mass * dot(difference, vector) / (distance * distance * distance);
            for (sum, &x) in sum.as_mut_slice().iter_mut().zip(difference) {
                *sum += x * factor;
            }
        });
        sum
    }
}

/// The inner product, summed in eight lanes in a fixed order.
#[inline(always)]
fn dot(x: &[f64], y: &[f64]) -> f64 {
    let mut lanes = [0.0; 8];
    for (x, y) in x.chunks(8).zip(y.chunks(8)) {
        for ((lane, x), y) in lanes.iter_mut().zip(x).zip(y) {
            *lane += x * y;
        }
    }
    lanes.iter().sum()
}

/// The Newton step at a point that is not a record: minus the inverse Hessian times the gradient. In high dimensions
/// the step is an approximation.
fn newton(
    points: &Points<'_>,
    masses: Masses<'_>,
    theta: &[f64],
    slope: &Slope,
    pulse: &mut dyn Pulse,
) -> Result<DVector<f64>, Interrupted> {
    let d = theta.len();
    if d <= DENSE {
        let parts =
            map_blocks(points, pulse, |first, block| dispatch::vectorised(BlockOuter(block, theta, first, masses)))?;
        let outer = parts.into_iter().reduce(|a, b| a + b).expect("there are records");
        // A ridge of the size of some rounding errors keeps the Cholesky factor finite if there is no curvature.
        let ridge = slope.weight * (1.0 + 1e-14 * d as f64);
        let hessian = DMatrix::from_diagonal_element(d, d, ridge) - outer;
        if let Some(factor) = Cholesky::new(hessian) {
            return Ok(-factor.solve(&slope.gradient));
        }
        return Ok(&slope.gradient * (-1.0 / slope.weight));
    }
    // Conjugate gradients. The first iterate is a multiple of the Weiszfeld step, so stopping early is safe.
    let accuracy = (slope.gradient.norm() / masses.total(points.n())).sqrt().clamp(1e-6, 0.1) * slope.gradient.norm();
    let mut step = DVector::zeros(d);
    let mut residual = -&slope.gradient;
    let mut direction = residual.clone();
    let mut square = residual.norm_squared();
    for _ in 0..2 * d {
        let parts = map_blocks(points, pulse, |first, block| {
            dispatch::vectorised(BlockProduct(block, theta, direction.as_slice(), first, masses))
        })?;
        let outer = parts.into_iter().reduce(|a, b| a + b).expect("there are records");
        let product = &direction * slope.weight - outer;
        let curvature = direction.dot(&product);
        if curvature <= 1e-14 * slope.weight * direction.norm_squared() {
            if step.norm_squared() == 0.0 {
                step = &slope.gradient * (-1.0 / slope.weight);
            }
            break;
        }
        let length = square / curvature;
        step += &direction * length;
        residual -= product * length;
        let next = residual.norm_squared();
        if next.sqrt() <= accuracy {
            break;
        }
        direction = &residual + direction * (next / square);
        square = next;
    }
    Ok(step)
}

/// The records of a block relative to a line. For each record: the position of its nearest point on the line, and its
/// squared distance from the line.
struct BlockFeet<'a>(Block<'a>, &'a [f64], &'a [f64], usize, Masses<'a>);

impl Kernel for BlockFeet<'_> {
    type Output = Vec<(f64, f64, f64)>;

    #[inline(always)]
    fn run(self) -> Vec<(f64, f64, f64)> {
        let direction = self.2;
        let mut feet = Vec::with_capacity(self.0.n());
        for_each_distance(self.0, self.1, |index, difference, _| {
            let foot = -dot(difference, direction);
            let square = difference.iter().zip(direction).map(|(x, p)| x + foot * p).map(|x| x * x).sum();
            feet.push((foot, square, self.4.of(self.3 + index)));
        });
        feet
    }
}

/// The length that minimizes F(theta + length * direction), for a unit direction of descent.
fn exact_length(
    points: &Points<'_>,
    masses: Masses<'_>,
    theta: &[f64],
    direction: &DVector<f64>,
    guess: f64,
    pulse: &mut dyn Pulse,
) -> Result<f64, Interrupted> {
    let feet = map_blocks(points, pulse, |first, block| {
        dispatch::vectorised(BlockFeet(block, theta, direction.as_slice(), first, masses))
    })?;
    let derivative = |length: f64| -> f64 {
        let term = |&(foot, square, mass): &(f64, f64, f64)| {
            let along = length - foot;
            let distance = (along * along + square).sqrt();
            if distance == 0.0 { 0.0 } else { mass * (along / distance).clamp(-1.0, 1.0) }
        };
        feet.iter().map(|block| block.iter().map(term).sum::<f64>()).sum()
    };
    let (mut low, mut high) = (0.0, guess);
    while derivative(high) < 0.0 && high.is_finite() {
        pulse.beat(0.0)?;
        (low, high) = (high, 4.0 * high);
    }
    // The search is a bisection, because other methods are not faster for a derivative that jumps at the records.
    loop {
        pulse.beat(0.0)?;
        let middle = low + (high - low) / 2.0;
        // This condition also holds if one of the numbers is NaN.
        if !(low < middle && middle < high) || high - low <= 1e-17 * guess {
            return Ok(high);
        }
        if derivative(middle) < 0.0 { low = middle } else { high = middle }
    }
}

/// The geometric median of one or more records with any finite coordinates below 2^1000. The relative gap of the
/// objective is below 1e-10.
pub fn geometric_median(points: &Points<'_>, pulse: &mut dyn Pulse) -> Result<Vec<f64>, Interrupted> {
    median_of(points, Masses(None), pulse)
}

/// The geometric median of records with positive weights, which minimizes the sum of w ||theta - x||.
///
/// # Panics
///
/// If there is not one weight for each record.
pub fn weighted_median(points: &Points<'_>, weights: &[f64], pulse: &mut dyn Pulse) -> Result<Vec<f64>, Interrupted> {
    assert_eq!(weights.len(), points.n(), "there is one weight for each record");
    median_of(points, Masses(Some(weights)), pulse)
}

fn median_of(points: &Points<'_>, masses: Masses<'_>, pulse: &mut dyn Pulse) -> Result<Vec<f64>, Interrupted> {
    let (d, n) = (points.d(), points.n());
    let origin = points.record(0);
    let extents = map_blocks(points, pulse, |_, block| {
        let far = |record: nalgebra::DVectorView<'_, f64>| {
            record.iter().zip(&origin).fold(0.0f64, |far, (x, o)| far.max((x - o).abs()))
        };
        block.view().column_iter().map(far).fold(0.0, f64::max)
    })?;
    let extent = extents.into_iter().fold(0.0, f64::max);
    if extent == 0.0 {
        return Ok(origin);
    }
    if d == 1 {
        let values: Vec<f64> = points.dense().view().iter().copied().collect();
        return Ok(vec![masses.0.map_or_else(|| middle(values.clone()), |masses| weighted_middle(&values, masses))]);
    }
    if n == 2 && masses.of(0) == masses.of(1) {
        return Ok(points.dense().view().row_iter().map(|row| row[0] / 2.0 + row[1] / 2.0).collect());
    }
    // The records are scaled so that cubes of distances neither overflow nor underflow.
    let power = -exponent(extent);
    if (-100..=100).contains(&power) {
        return descend(points, masses, pulse);
    }
    let records = points.dense();
    let moved = DMatrix::from_fn(d, n, |i, j| scale(records.view()[(i, j)] - origin[i], power));
    let moved = Points::admit(moved, None, None, &mut Silent).expect("differences of finite numbers");
    let theta = descend(&moved, masses, pulse)?;
    Ok(theta.iter().zip(&origin).map(|(t, o)| finite(o + scale(*t, -power))).collect())
}

/// The median of a list of numbers. If the list has an even length, the median is the mean of the two middle numbers.
fn middle(mut values: Vec<f64>) -> f64 {
    let half = values.len() / 2;
    let odd = values.len() % 2 == 1;
    let (below, &mut upper, _) = values.select_nth_unstable_by(half, f64::total_cmp);
    if odd { upper } else { below.iter().copied().fold(f64::NEG_INFINITY, f64::max) / 2.0 + upper / 2.0 }
}

/// The median of weighted numbers. If half of the weight lies on each side of a gap, the median is the middle of the
/// gap.
fn weighted_middle(values: &[f64], masses: &[f64]) -> f64 {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|&a, &b| values[a].total_cmp(&values[b]));
    let half = masses.iter().sum::<f64>() / 2.0;
    let mut below = 0.0;
    for (place, &record) in order.iter().enumerate() {
        below += masses[record];
        if below > half || place + 1 == order.len() {
            return values[record];
        }
        if below == half {
            return values[record] / 2.0 + values[order[place + 1]] / 2.0;
        }
    }
    unreachable!("there are records")
}

fn start(points: &Points<'_>, masses: Masses<'_>, pulse: &mut dyn Pulse) -> Result<Vec<f64>, Interrupted> {
    let n = points.n();
    if n <= PART {
        return Ok(points.dense().view().row_iter().map(|row| middle(row.iter().copied().collect())).collect());
    }
    let places: Vec<usize> = (0..n).step_by(16).collect();
    let part: Option<Vec<f64>> = masses.0.map(|masses| places.iter().map(|&place| masses[place]).collect());
    descend(&points.gathered(&places), Masses(part.as_deref()), pulse)
}

fn descend(points: &Points<'_>, masses: Masses<'_>, pulse: &mut dyn Pulse) -> Result<Vec<f64>, Interrupted> {
    let total = masses.total(points.n());
    let mut theta = start(points, masses, pulse)?;
    let mut here = slope(points, masses, &theta, pulse)?;
    let mut tried = usize::MAX;
    for _ in 0..STEPS {
        if 2.0 * here.steepness() <= GAP * total {
            break;
        }
        let step = if here.coincident > 0.0 {
            // The step of Vardi and Zhang leads away from the record, along the sum of the unit vectors of the other
            // records. This sum is shortened by the multiplicity of the record.
            &here.gradient * (-(here.steepness() / here.gradient.norm()) / here.weight)
        } else {
            newton(points, masses, &theta, &here, pulse)?
        };
        let length = step.norm();
        if here.nearest.0 <= 2.0 * length && here.nearest.1 != tried {
            tried = here.nearest.1;
            let record = points.record(tried);
            let there = slope(points, masses, &record, pulse)?;
            if there.improves(&here) {
                (theta, here) = (record, there);
                continue;
            }
        }
        let pull = here.gradient.dot(&step) + here.coincident * length;
        let landing: Vec<f64> = theta.iter().zip(step.iter()).map(|(t, s)| t + s).collect();
        if landing == theta {
            break;
        }
        let there = slope(points, masses, &landing, pulse)?;
        let left = there.gradient.dot(&step);
        if there.improves(&here) && left.abs() <= 0.9 * pull.abs() {
            (theta, here) = (landing, there);
            continue;
        }
        let direction = &step / length;
        let best = exact_length(points, masses, &theta, &direction, length, pulse)?;
        let landing: Vec<f64> = theta.iter().zip(direction.iter()).map(|(t, p)| t + best * p).collect();
        let there = slope(points, masses, &landing, pulse)?;
        if !there.improves(&here) {
            break;
        }
        (theta, here) = (landing, there);
    }
    Ok(theta)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::float_scale::LARGEST;

    fn admitted(points: &DMatrix<f64>) -> Points<'_> {
        Points::admit(points, None, None, &mut Silent).unwrap()
    }

    /// Standard normal numbers, for test data only.
    struct Normal(u64);

    impl Normal {
        fn uniform(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            ((self.0 >> 11) as f64 + 0.5) / (1u64 << 53) as f64
        }

        fn next(&mut self) -> f64 {
            let (radius, angle) = (self.uniform(), self.uniform());
            (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
        }
    }

    /// An upper bound on the relative gap, by duality. If vectors y_i of norm at most 1 sum to zero, then F(z) is at
    /// least sum <y_i, z - x_i> = sum <y_i, theta - x_i> for every z. If the y_i were the unit vectors u_i, the bound
    /// would be F(theta), but the u_i sum to g and not to zero. The m records at theta may use y_i = -g/||g||, which
    /// reduces the norm of g by up to m. The rest of g is subtracted in equal parts v = g/k from the vectors of the k
    /// nearest records with 2 <u_i, v> >= ||v||^2, whose vectors do not become longer. Each of these parts lowers the
    /// bound by ||theta - x_i|| <u_i, v>.
    fn gap(points: &DMatrix<f64>, theta: &[f64]) -> f64 {
        let theta = DVector::from_column_slice(theta);
        let (mut objective, mut here, mut units) = (0.0, 0.0, Vec::new());
        for x in points.column_iter() {
            let difference = &theta - x;
            match difference.norm() {
                0.0 => here += 1.0,
                distance => units.push((distance, difference / distance)),
            }
            objective += (&theta - x).norm();
        }
        let gradient = units.iter().fold(DVector::zeros(theta.len()), |sum, (_, unit)| sum + unit);
        if gradient.norm() <= here {
            return 0.0;
        }
        let gradient = &gradient * (1.0 - here / gradient.norm());
        units.sort_by(|a, b| a.0.total_cmp(&b.0));
        let taken = |k: usize| {
            let part = &gradient / k as f64;
            let costs = units.iter().map(|(distance, unit)| (distance, unit.dot(&part)));
            let mut costs = costs.filter(|(_, along)| 2.0 * along >= part.norm_squared()).map(|(r, along)| r * along);
            let all = (0..k).map(|_| costs.next()).collect::<Option<Vec<f64>>>()?;
            Some(all.iter().sum::<f64>() / objective)
        };
        let plain = 2.0 * gradient.norm() / points.ncols() as f64;
        [1, 2, 4, 16, 64].into_iter().filter_map(taken).fold(plain, f64::min)
    }

    fn gauntlet(name: &str, n: usize, d: usize) -> DMatrix<f64> {
        let mut normal = Normal(1 + d as u64);
        DMatrix::from_fn(d, n, |i, j| {
            let z = normal.next();
            match name {
                "gauss" => 1000.0 + z,
                "t2" => 3.0 * z / (-normal.uniform().ln()).sqrt() - 50.0,
                "cauchy" => z / normal.next(),
                "two clusters" => z + if j % 5 < 2 { 1e4 } else { 0.0 },
                "aniso" => z * 10f64.powf(-3.0 + 6.0 * i as f64 / (d - 1) as f64),
                "lattice" => (0.7 * z).round(),
                "atom" => {
                    if j % 5 < 3 {
                        3.0
                    } else {
                        z
                    }
                }
                "lognormal" => (2.0 * z).exp(),
                "collinear" => (j * j % n) as f64 * (i + 1) as f64,
                "nearly collinear" => (j * j % n) as f64 * (i + 1) as f64 + 1e-3 * z,
                "line" => (0.3 * j as f64).sin() * (i + 1) as f64 + 1e-6 * z,
                "duplicates" => ((j / 2 * 7919 + i * 31) % 11) as f64,
                _ => unreachable!("{name}"),
            }
        })
    }

    #[test]
    fn the_gap_is_below_its_promise_on_all_data() {
        let names = [
            "gauss",
            "t2",
            "cauchy",
            "two clusters",
            "aniso",
            "lattice",
            "atom",
            "lognormal",
            "collinear",
            "nearly collinear",
            "line",
            "duplicates",
        ];
        for name in names {
            for (n, d) in [(3, 2), (50, 3), (1000, 2), (1001, 2), (1000, 3), (1000, 10), (5000, 5), (5000, 50)] {
                let points = gauntlet(name, n, d);
                let theta = geometric_median(&admitted(&points), &mut Silent).unwrap();
                let gap = gap(&points, &theta);
                assert!(gap < 1e-10, "{name} ({n}, {d}): {gap:e}");
            }
        }
    }
    #[test]
    fn small_and_degenerate_data_have_their_median() {
        let median = |d, values: &[f64]| {
            geometric_median(&admitted(&DMatrix::from_column_slice(d, values.len() / d, values)), &mut Silent).unwrap()
        };
        assert_eq!(median(3, &[1.0, 2.0, 3.0]), [1.0, 2.0, 3.0]);
        assert_eq!(median(2, &[1.0, 2.0, 3.0, 6.0]), [2.0, 4.0]);
        assert_eq!(median(1, &[5.0, 1.0, 9.0]), [5.0]);
        assert_eq!(median(1, &[5.0, 1.0, 9.0, 6.0]), [5.5]);
        assert_eq!(median(2, &[0.1; 14]), [0.1, 0.1]);
        // If two of three records are equal, they are the median, because the third has only a unit vector against the
        // two.
        assert_eq!(median(2, &[7.0, 1.0, 0.0, 0.0, 7.0, 1.0]), [7.0, 1.0]);
        // If a triangle has an angle of at least 120 degrees, this corner is the median of the three corners.
        assert_eq!(median(2, &[-10.0, 1.0, 0.0, 0.0, 10.0, 1.0]), [0.0, 0.0]);
    }

    #[test]
    fn any_magnitude_has_the_same_median_up_to_scale() {
        let points = gauntlet("t2", 300, 3);
        let median = geometric_median(&admitted(&points), &mut Silent).unwrap();
        for power in [-1000, -500, 500, 980] {
            let scaled = points.map(|x| scale(x, power));
            let theta = geometric_median(&admitted(&scaled), &mut Silent).unwrap();
            for (t, m) in theta.iter().zip(&median) {
                assert!((scale(*t, -power) - m).abs() < 1e-7, "2^{power}");
            }
        }
        // The records differ by much less than the square root of the smallest double, and one coordinate is large.
        let tiny = points.map_with_location(|i, _, x| if i == 0 { 1e300 } else { x * 1e-250 });
        let theta = geometric_median(&admitted(&tiny), &mut Silent).unwrap();
        let flat = points.rows(1, 2).into_owned();
        assert_eq!(theta[0], 1e300);
        assert!(gap(&flat, &[theta[1] * 1e250, theta[2] * 1e250]) < 1e-10);
    }

    #[test]
    fn whole_weights_are_copies() {
        let mut normal = Normal(5);
        for (n, d) in [(2, 2), (7, 1), (8, 1), (30, 2), (400, 3), (6000, 2), (300, 30)] {
            let points = gauntlet("t2", n, d.max(2)).rows(0, d).into_owned();
            let weights: Vec<f64> = (0..n).map(|_| 1.0 + (3.0 * normal.uniform()).floor()).collect();
            let places: Vec<usize> = (0..n).flat_map(|i| vec![i; weights[i] as usize]).collect();
            let copies = points.select_columns(&places);
            let expected = geometric_median(&admitted(&copies), &mut Silent).unwrap();
            let found = weighted_median(&admitted(&points), &weights, &mut Silent).unwrap();
            let reached = |theta: &[f64]| -> f64 {
                copies.column_iter().map(|x| (x - DVector::from_column_slice(theta)).norm()).sum()
            };
            assert!((reached(&found) / reached(&expected) - 1.0).abs() < 1e-9, "{n} {d} {found:?} {expected:?}");
        }
    }

    #[test]
    fn records_of_any_magnitudes_beside_each_other_have_a_median() {
        let extremes = [0.0, 1.0, -1.0, 5e-324, 1e-200, -1e-162, 1e16, 1e150, -1e300, LARGEST, -LARGEST, 0.54];
        let mut state = 1u64;
        let mut next = |below: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % below
        };
        for trial in 0..20_000 {
            let (d, n) = (1 + trial % 4, 2 + next(7));
            let points = DMatrix::from_fn(d, n, |_, _| extremes[next(extremes.len())]);
            let theta = geometric_median(&admitted(&points), &mut Silent).unwrap();
            assert!(theta.iter().all(|t| t.abs() <= LARGEST), "{points} {theta:?}");
        }
    }

    #[test]
    fn the_median_has_the_same_bits_for_any_threads() {
        let points = gauntlet("cauchy", 20_000, 7);
        let medians = [1, 2, 4].map(|threads| {
            crate::runtime::pool::set_threads(Some(threads));
            geometric_median(&admitted(&points), &mut Silent).unwrap()
        });
        crate::runtime::pool::set_threads(None);
        assert!(medians.iter().all(|median| *median == medians[0]));
    }
}
