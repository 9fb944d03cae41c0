//! Lower bounds on the score in a cell, from an expansion of the gradient around a point.
//!
//! Let B(z) = ||sum of v|| - sum of (1 - w), with v, w and h as in [`super::score`]. The score is max(0, B(z)/2). Take
//! a point z0, and let z = z0 + e with |e| <= delta. For a record x, let t = |z0 - x| and u = (z0 - x)/t. There are
//! three cases.
//!
//! * *Far*, t - delta >= h and t >= 2 delta: w = 1, v is the unit vector, v(z) = u + (I - u u^T) e / t + rest. The second
//!   derivative of the unit vector along a line is at most 2/sqrt(3) / distance^2, so
//!   |rest| <= (delta / (t - delta))^2 / sqrt(3).
//! * *Near*, t + delta <= h: v(z) = (t u + e)/h exactly, and w(z) >= (t + <u, e>)/h, because the norm is convex.
//! * *All other records*: there are three bounds on the change of v. It is at most 2, because |v| <= 1. It is at most
//!   delta/h, because v is 1/h times the projection of z - x onto the ball of radius h around 0, and projections are
//!   contractions. If t > delta, it is at most 2 delta/(2 t - delta), for the following reason. Let a = z0 - x and b =
//!   z - x, so that |a| + |b| >= 2 t - delta. We show that the change is at most 2|a - b|/(|a| + |b|). If both a and b
//!   are at least as long as h, this is a known inequality for the unit vectors a/|a| and b/|b|. If both are shorter
//!   than h, the change is |a - b|/h. If |b| <= h <= |a| (or with a and b exchanged), the change is |a/|a| - b r| with
//!   r = 1/h. This is a convex function of r, and the bound holds at both ends, r = 1/|a| and r = 1/|b|. The weight w
//!   decreases by at most w - min(1, max(0, t - delta)/h). The part of B that depends on one record lies between -1 and
//!   2 w - 1 <= 1, because |v| = w. So the changes of v and w together lower B by at most 2.
//!
//! So B(z) >= ||G + J e|| + m + <s, e> - c, with these sums over the records. G is the sum of v(z0). J is the sum of
//! (I - u u^T)/t over far records and of I/h over near records. m is the sum of w - 1 at z0, and s is the sum of u/h
//! over near records. c is a sum of errors: for a far record, the bound on |rest|; for a record of the third case, the
//! bound on the change of v plus the bound on the decrease of w, but at most 2. Consider a cube of half side a around
//! z0 + e0, and let p be the unit vector along G + J e0. On the cube, the norm is at least <p, G + J e>, which is a
//! linear function of e. So B >= <p, G + J e0> + m + <s, e0> - a ||J p + s||_1 - c.
//!
//! *Rounding.* Every summand (in J and s, multiplied by |e|) is at most 2 and has an absolute error of at most 2^-48.
//! Sums run over 2^9 records in a lane, 8 lanes in a block and at most 2^20 blocks, so over at most 2^32 records. The
//! error of these sums is at most 2^-32 per record. Rounding changes the score itself by at most [`ROUNDING`] units of
//! 2^-30 per record, and the floor adds one unit. Weights are at most 1 and exact, and products with weights add an
//! error of 2^-53. The score of weighted records is rounded by at most 4 units in total. `slack` exceeds the sum of all
//! these errors.

use super::blocks::{BLOCK, map};
use super::score::{LANES, LARGEST, ONE, ROUNDING, Records};
use crate::numeric::dispatch::{self, Kernel};
use crate::runtime::pulse::{Interrupted, Pulse};

/// The work, in records times cells, between two calls of the progress callback. It takes some tens of milliseconds.
const TERMS_PER_BEAT: usize = 1 << 22;

/// A cube of 2^(level * D) finest cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell<const D: usize> {
    /// The center. Its coordinates are odd at level zero, and multiples of 2^level at higher levels.
    pub center: [i64; D],
    /// The binary logarithm of the side of the cube, measured in finest cells.
    pub level: u32,
}

impl<const D: usize> Cell<D> {
    /// Half the side in lattice units. In every coordinate, the center of each finest cell in the cube is closer than
    /// this to the center of the cube.
    pub fn half(&self) -> i64 {
        1 << self.level
    }

    /// The cells of the next lower level that form this cell.
    pub fn children(&self) -> impl Iterator<Item = Self> {
        let quarter = self.half() / 2;
        (0..1usize << D).map(move |corner| {
            let side = |j: usize| if corner >> j & 1 == 0 { -quarter } else { quarter };
            Self { center: std::array::from_fn(|j| self.center[j] + side(j)), level: self.level - 1 }
        })
    }

    /// Whether it is certain that no center of a finest cell in this cube lies within `radius` of the origin. At level
    /// zero the answer is exact.
    pub fn outside(&self, radius: i64) -> bool {
        let inner = self.half().unsigned_abs() - 1;
        let nearest = self.center.map(|x| x.unsigned_abs().saturating_sub(inner));
        nearest.iter().map(|&x| u128::from(x).pow(2)).sum::<u128>() > u128::from(radius.unsigned_abs()).pow(2)
    }
}

/// The expansion around the center of a cell. It is valid for this cell and for all cells in it.
#[derive(Debug, Clone, Copy)]
pub struct Expansion<const D: usize> {
    center: [i64; D],
    gradient: [f64; D],
    jacobian: [[f64; D]; D],
    slope: [f64; D],
    /// The sum of w - 1: m in the expansion.
    offset: f64,
    /// A bound on the remainder: c in the expansion.
    pub charge: f64,
}

/// A lower bound on B, which is twice the score, in a cell, and an estimate of B.
#[derive(Debug, Clone, Copy)]
pub struct Bound {
    /// A lower bound for every finest cell in the cell.
    pub lower: f64,
    /// An estimate at the center of the cell. Only the speed depends on this number.
    pub center: f64,
}

/// The allowance for rounding that is subtracted from a bound, for `n` records.
fn slack(n: usize) -> f64 {
    (n as f64 + 1.0) * (ROUNDING + 4.0) / ONE
}

impl<const D: usize> Expansion<D> {
    /// The expansions around the centers of all cells. The sums over blocks have a fixed order, which does not depend
    /// on the number of threads.
    pub fn of(records: &Records<D>, cells: &[Cell<D>], pulse: &mut dyn Pulse) -> Result<Vec<Self>, Interrupted> {
        let blocks = records.blocks();
        let mut expansions = Vec::with_capacity(cells.len());
        for some in cells.chunks((TERMS_PER_BEAT / records.count().max(1)).max(1)) {
            let task = |task: usize| {
                let (cell, block) = (&some[task / blocks], records.block(task % blocks));
                let (z, half) = (cell.center.map(|x| x as f64), cell.half() as f64);
                dispatch::vectorised(Block { records: block, z, half, smoothing: records.smoothing })
            };
            let parts = map(some.len() * blocks, records.count().min(BLOCK), task);
            for (index, cell) in some.iter().enumerate() {
                // Without records there are no blocks, and nothing to sum.
                expansions.push(Self::from_sums(cell, records, &parts[index * blocks..][..blocks]));
            }
            pulse.beat(0.0)?;
        }
        Ok(expansions)
    }

    fn from_sums(cell: &Cell<D>, records: &Records<D>, parts: &[Terms]) -> Self {
        let total =
            |term: usize| parts.iter().enumerate().map(|(block, part)| records.weight(block) * part[term]).sum::<f64>();
        let curvature = |j: usize, k: usize| total(CURVATURE + j.max(k) * (j.max(k) + 1) / 2 + j.min(k));
        let entry = |j: usize, k: usize| if j == k { total(STIFFNESS) } else { 0.0 } - curvature(j, k);
        Self {
            center: cell.center,
            gradient: std::array::from_fn(|j| total(GRADIENT + j)),
            jacobian: std::array::from_fn(|j| std::array::from_fn(|k| entry(j, k))),
            slope: std::array::from_fn(|j| total(SLOPE + j)),
            offset: total(WEIGHT) - records.mass(),
            charge: total(CHARGE),
        }
    }

    /// The bound for a cell inside the cell that was expanded.
    pub fn bound(&self, cell: &Cell<D>, n: usize) -> Bound {
        let shift: [f64; D] = std::array::from_fn(|j| (cell.center[j] - self.center[j]) as f64);
        let dot = |a: &[f64; D], b: &[f64; D]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let gradient: [f64; D] = std::array::from_fn(|j| self.gradient[j] + dot(&self.jacobian[j], &shift));
        let norm = dot(&gradient, &gradient).sqrt();
        let direction = if norm > 0.0 { gradient.map(|x| x / norm) } else { [0.0; D] };
        let along: f64 = (0..D).map(|j| (dot(&self.jacobian[j], &direction) + self.slope[j]).abs()).sum();
        let center = norm + self.offset + dot(&self.slope, &shift);
        // Twice the largest score, in records. The score is capped, so its bound must be capped, too.
        let cap = LARGEST as f64 / ONE;
        Bound { lower: (center - cell.half() as f64 * along - self.charge - slack(n)).min(cap), center }
    }
}

/// The contribution of a record to an expansion. The layout is the same for two and three dimensions, so that
/// contributions are added as arrays.
type Terms = [f64; 15];

const GRADIENT: usize = 0;
const SLOPE: usize = 3;
const WEIGHT: usize = 6;
const CHARGE: usize = 7;
/// The index of the number that multiplies the identity in J.
const STIFFNESS: usize = 8;
/// The first index of the matrix u u^T / t, which is subtracted in J. Its lower triangle is stored row by row.
const CURVATURE: usize = 9;

/// The terms of `L` records. Every step is a separate loop over the lanes, because compilers turn such loops into
/// vector instructions.
#[inline(always)]
fn terms<const D: usize, const L: usize>(difference: [[f64; L]; D], delta: f64, h: f64) -> [[f64; L]; 15] {
    let lanes = |step: &dyn Fn(usize) -> f64| -> [f64; L] { std::array::from_fn(step) };
    let squares = lanes(&|i| difference.iter().map(|x| x[i] * x[i]).sum());
    let t = lanes(&|i| squares[i].sqrt());
    let inverse = lanes(&|i| 1.0 / t[i].max(h));
    let weight = lanes(&|i| t[i] * inverse[i]);
    let far: [bool; L] = std::array::from_fn(|i| (t[i] - delta >= h) & (t[i] >= 2.0 * delta));
    let near: [bool; L] = std::array::from_fn(|i| t[i] + delta <= h);
    let turn = lanes(&|i| 2.0 * delta / (2.0 * t[i] - delta));
    let turn = lanes(&|i| if t[i] > delta { turn[i] } else { 2.0 });
    // If t and delta are much larger than h, the rounding error of t - delta may exceed h. So t is rounded down first.
    let least = lanes(&|i| (t[i] * (1.0 - 4.0 * f64::EPSILON) - delta).max(0.0));
    let lost = lanes(&|i| weight[i] - (least[i] / h).min(1.0));
    let charge = lanes(&|i| (turn[i].min(delta / h) + lost[i]).min(2.0));
    let bend = lanes(&|i| delta / (t[i] - delta));
    let mut terms = [[0.0; L]; 15];
    terms[WEIGHT] = weight;
    // 1/sqrt(3), rounded up.
    let charge = lanes(&|i| if far[i] { bend[i] * bend[i] * 0.578 } else { charge[i] });
    terms[CHARGE] = lanes(&|i| if near[i] { 0.0 } else { charge[i] });
    terms[STIFFNESS] = lanes(&|i| if far[i] | near[i] { inverse[i] } else { 0.0 });
    let curvature = lanes(&|i| if far[i] { inverse[i] * inverse[i] * inverse[i] } else { 0.0 });
    let slope = lanes(&|i| inverse[i] / t[i]);
    let slope = lanes(&|i| if near[i] & (t[i] > 0.0) { slope[i] } else { 0.0 });
    for j in 0..D {
        terms[GRADIENT + j] = lanes(&|i| difference[j][i] * inverse[i]);
        terms[SLOPE + j] = lanes(&|i| difference[j][i] * slope[i]);
        for k in 0..=j {
            let entry = lanes(&|i| difference[j][i] * difference[k][i] * curvature[i]);
            terms[CURVATURE + j * (j + 1) / 2 + k] = entry;
        }
    }
    terms
}

/// The sums over one block, for a cube of half side `half` around `z`.
struct Block<'a, const D: usize> {
    records: [&'a [f64]; D],
    z: [f64; D],
    half: f64,
    smoothing: f64,
}

impl<const D: usize> Kernel for Block<'_, D> {
    type Output = Terms;

    #[inline(always)]
    fn run(self) -> Terms {
        // delta is rounded up, so that the cube lies in the ball of radius delta.
        let delta = self.half * (D as f64).sqrt() * (1.0 + 4.0 * f64::EPSILON);
        let mut sums = [[0.0; LANES]; 15];
        let chunks = self.records.map(|x| x.as_chunks::<LANES>());
        for chunk in 0..chunks[0].0.len() {
            let difference = std::array::from_fn(|j| chunks[j].0[chunk].map(|x| self.z[j] - x));
            for (sum, term) in sums.iter_mut().zip(terms::<D, LANES>(difference, delta, self.smoothing)) {
                sum.iter_mut().zip(term).for_each(|(sum, term)| *sum += term);
            }
        }
        for i in 0..chunks[0].1.len() {
            let difference = std::array::from_fn(|j| [self.z[j] - chunks[j].1[i]]);
            for (sum, [term]) in sums.iter_mut().zip(terms::<D, 1>(difference, delta, self.smoothing)) {
                sum[0] += term;
            }
        }
        sums.map(|lanes| lanes.iter().sum())
    }
}

#[cfg(test)]
mod tests {
    use nalgebra::DMatrix;
    use proptest::prelude::*;

    use super::*;
    use crate::mechanism::inverse_sensitivity::lattice::Lattice;
    use crate::runtime::pulse::Silent;

    /// Checks that twice the score of one finest cell is at least the bound from the expansion of every cell around it.
    fn check<const D: usize>(
        data: &[[i64; D]],
        weights: Option<&[u32]>,
        smoothing: i64,
        path: &[usize],
    ) -> Result<(), TestCaseError> {
        let classes = weights.map(|weights| (0..data.len()).map(|i| (weights[i], i..i + 1)).collect::<Vec<_>>());
        let flat: Vec<f64> = data.iter().flatten().map(|&x| x as f64).collect();
        let lattice = Lattice::new(1.0, 1 << 20, smoothing).unwrap();
        let points = DMatrix::from_column_slice(D, data.len(), &flat);
        let records = Records::<D>::new(points.as_view(), &[0.0; D], &lattice, classes.as_deref());
        let mut cells = vec![Cell { center: [0; D], level: path.len() as u32 }];
        for &corner in path {
            let next = cells[cells.len() - 1].children().nth(corner % (1 << D)).unwrap();
            cells.push(next);
        }
        let score = records.score(&cells[path.len()].center) as f64 / ONE;
        let expansions = Expansion::of(&records, &cells, &mut Silent).unwrap();
        for (i, expansion) in expansions.iter().enumerate() {
            for cell in &cells[i..] {
                let bound = expansion.bound(cell, data.len());
                prop_assert!(bound.lower <= score, "{bound:?} {cell:?} {score}");
            }
        }
        // At the finest level the bound is close to the score.
        let last = expansions[path.len()].bound(&cells[path.len()], data.len());
        let spread = 3.0 * data.len() as f64 * (D as f64).sqrt() / smoothing as f64;
        prop_assert!(last.lower >= score - 2.0 * spread - 1e-6 || score == 0.0, "{last:?} {score} {spread}");
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]
        #[test]
        fn bounds_are_below_every_score_inside(
            data in prop::collection::vec(prop::array::uniform3(prop_oneof![-300..300i64, -6..6i64, Just(4i64)]), 1..40),
            smoothing in prop_oneof![Just(2i64), Just(16), Just(64), Just(256)],
            path in prop::collection::vec(0usize..8, 1..11),
            weights in prop::collection::vec(prop_oneof![1..=1u32 << 20, Just(1u32 << 20)], 40),
        ) {
            for weights in [None, Some(&weights[..])] {
                check(&data, weights, smoothing, &path)?;
                check(&data.iter().map(|x| [x[0], x[1]]).collect::<Vec<_>>(), weights, smoothing, &path)?;
            }
        }
    }

    #[test]
    fn children_tile_their_parent() {
        let parent = Cell { center: [8i64, -8], level: 2 };
        let children: Vec<_> = parent.children().collect();
        assert_eq!(children.iter().map(|c| c.center).collect::<Vec<_>>(), [[6, -10], [10, -10], [6, -6], [10, -6]]);
        assert!(children.iter().all(|child| child.level == 1));
        assert!(parent.outside(7) && !parent.outside(8));
        assert_eq!(
            parent.children().filter(|child| !child.outside(8)).map(|c| c.center).collect::<Vec<_>>(),
            [[6, -6]]
        );
    }
}
