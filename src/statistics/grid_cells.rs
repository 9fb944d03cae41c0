//! The numbers of records in the cells of a grid around a public point. The grid has a few public axes, and cells far
//! away from the point are longer than cells near it.
//!
//! **The cell of a record x.** Let z be the vector of the inner products of x - theta with p public axes, in units of a
//! public `scale`. The vector z is shortened to the length c(|z|), where c(r) = r for r <= 1 and c(m 2^e) = e + m for 1
//! <= m < 2 and e >= 0. Beyond 1, the function c is a continuous, increasing and piecewise linear approximation of a
//! logarithm, which can be computed without a mathematical library. The cube around zero with sides of the length 2
//! `side` is divided into 2^level parts along each axis. The indices of these parts, one for each axis, determine a
//! cell. The *code* of the cell is the number whose digits in base 2^level are these indices, beginning with the first
//! axis. A record farther away from theta than `reach`, or outside of the cube, has no cell.
//!
//! **The vector.** It contains one count for each code of a public, ascending list of codes. A record whose code is not
//! listed is not counted.
//!
//! **Neighbors and sensitivity** (L2, lattice units of 2^-bits): 2^bits if a record is added or removed, and 2^bits
//! sqrt(2), rounded up, if a record is replaced. *Proof.* The code of a record is a function of the record and of
//! public parameters alone, because other records in the block change neither the operations nor their order. So a
//! record contributes a unit vector or the zero vector, and two such contributions differ by at most sqrt(2). A record
//! for which an intermediate result is not finite has no cell. The sums are integers, and nothing is rounded. ∎

use super::prelude::*;
use crate::numeric::block::Block;
use crate::numeric::dispatch::{Kernel, vectorised};
use crate::numeric::distance::{distance, sum_lanes, sum_of_squares};
use crate::numeric::float_scale::{exponent, scale as power_of_two};
use crate::runtime::parallel_fold::{records_per_block, sum_records};

/// The largest number of bits of a code. A code has as many bits as the number of axes times the level.
pub const CODE_BITS: u32 = 62;

/// The largest number of cells in one query.
pub const CELLS_MAX: usize = 1 << 16;

/// The position and the cells of a grid. All fields are public numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    /// The center.
    pub theta: Vec<f64>,
    /// The coordinates of the axes, one axis after the other. The axes are usually orthonormal, but the proof does not
    /// need this.
    pub axes: Vec<f64>,
    /// The unit of length.
    pub scale: f64,
    /// The largest distance of a record that has a cell.
    pub reach: f64,
    /// Half the side of the cube, in units of `scale` after compression.
    pub side: f64,
    /// The number of times that the cube is halved along each axis.
    pub level: u32,
}

/// The number of records in each listed cell, in units of 2^-bits.
#[derive(Debug, Clone, PartialEq)]
pub struct GridCells {
    grid: Grid,
    codes: Vec<u64>,
    bits: u32,
}

impl GridCells {
    /// There must be at least one axis, and every axis must have as many coordinates as theta. Scale, reach and side
    /// must be positive and finite. The codes must ascend, and there may be at most [`CELLS_MAX`] codes.
    pub fn new(grid: Grid, codes: Vec<u64>, bits: u32) -> Result<Self, BadParameter> {
        let d = grid.theta.len().max(1);
        let axes = grid.axes.len() / d;
        if axes == 0 || !grid.axes.len().is_multiple_of(d) {
            return Err(BadParameter(format!("{} numbers do not describe axes in {d} dimensions", grid.axes.len())));
        }
        if grid.level > CODE_BITS || axes as u64 * u64::from(grid.level) > u64::from(CODE_BITS) {
            return Err(BadParameter(format!("{axes} axes at level {} exceed {CODE_BITS} bits", grid.level)));
        }
        if codes.len() > CELLS_MAX || !codes.is_sorted_by(|a, b| a < b) {
            return Err(BadParameter(format!(
                "codes must ascend without repetition, and there may be at most {CELLS_MAX} codes"
            )));
        }
        let (scale, reach, side) =
            (checked_radius(grid.scale)?, checked_radius(grid.reach)?, checked_radius(grid.side)?);
        let public = |vector: Vec<f64>| vector.into_iter().map(finite).collect();
        let grid = Grid { theta: public(grid.theta), axes: public(grid.axes), scale, reach, side, level: grid.level };
        Ok(Self { grid, codes, bits: checked_bits(bits, COUNT_BITS_MAX)? })
    }

    /// The sensitivity.
    pub fn bound(bits: u32) -> Result<Sensitivity, BadParameter> {
        let unit = f64::from(checked_bits(bits, COUNT_BITS_MAX)?).exp2();
        Ok(Sensitivity::of_sum(unit, (unit * std::f64::consts::SQRT_2).next_up()))
    }
}

impl Statistic for GridCells {
    fn dimension(&self) -> Option<usize> {
        Some(self.grid.theta.len())
    }

    fn sensitivity(&self) -> Sensitivity {
        Self::bound(self.bits).expect("the bits were checked")
    }

    fn parameters(&self) -> Parameters {
        Parameters::of([
            ("scale", self.grid.scale.into()),
            ("reach", self.grid.reach.into()),
            ("side", self.grid.side.into()),
            ("theta", self.grid.theta.as_slice().into()),
            ("axes", self.grid.axes.as_slice().into()),
            ("level", self.grid.level.into()),
            ("cells", self.codes.as_slice().into()),
            ("bits", self.bits.into()),
        ])
    }

    fn exact(&self, points: &Points, pulse: &mut dyn Pulse) -> Result<Exact, Interrupted> {
        let (d, grid, codes) = (points.d(), &self.grid, self.codes.as_slice());
        assert_eq!(grid.theta.len(), d, "theta has another dimension than the points");
        let cost = d + grid.axes.len();
        let counts = sum_records(points, cost, records_per_block(cost), codes.len(), pulse, |total, block| {
            vectorised(Count { block, grid, codes, total });
        })?;
        Ok(Exact::vector(on_lattice(counts, self.bits), self.sensitivity()))
    }
}

impl Kind for GridCells {
    const NAME: &'static str = "grid cells";

    fn read(given: &mut Arguments) -> Result<Self, BadParameter> {
        let grid = Grid {
            theta: given.floats("theta")?,
            axes: given.floats("axes")?,
            scale: given.float("scale")?,
            reach: given.float("reach")?,
            side: given.float("side")?,
            level: given.small("level")?,
        };
        Self::new(grid, given.numbers("cells")?, given.small("bits")?)
    }

    fn bound_of(given: &mut Arguments) -> Result<Bound, BadParameter> {
        let (cells, bits) = (given.size("cells")?, given.small("bits")?);
        Ok(Bound::vector(Self::bound(bits)?, cells))
    }

    #[cfg(test)]
    fn examples(theta: &[f64], scale: f64, _n: usize) -> Vec<Result<Self, BadParameter>> {
        use super::tests::radius;
        // Four cells along one axis or two.
        let d = theta.len().max(1);
        let axes = (0..d.min(2) * d).map(|i| if i % d == i / d { 1.0 } else { 0.1 }).collect();
        let grid = Grid { theta: theta.to_vec(), axes, scale: radius(scale), reach: 1e300, side: 5.0, level: 2 };
        vec![Self::new(grid, (0..16).collect(), 20)]
    }
}

/// The length after compression of a vector with this finite length.
#[inline(always)]
fn compressed(length: f64) -> f64 {
    if length <= 1.0 {
        return length;
    }
    let power = exponent(length);
    f64::from(power) + power_of_two(length, -power)
}

/// Counts the records of a block in their cells.
struct Count<'a> {
    block: Block<'a>,
    grid: &'a Grid,
    codes: &'a [u64],
    total: &'a mut [i64],
}

impl Kernel for Count<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let d = self.grid.theta.len();
        let (mut difference, mut place) = (vec![0.0; d], vec![0.0; self.grid.axes.len() / d.max(1)]);
        for record in self.block.records() {
            if let Some(code) = code(record, self.grid, &mut difference, &mut place)
                && let Ok(index) = self.codes.binary_search(&code)
            {
                self.total[index] += 1;
            }
        }
    }
}

/// The code of the cell of a record, or `None` if the record has no cell.
#[inline(always)]
fn code(record: &[f64], grid: &Grid, difference: &mut [f64], place: &mut [f64]) -> Option<u64> {
    for ((slot, x), t) in difference.iter_mut().zip(record).zip(&grid.theta) {
        *slot = x - t;
    }
    if distance(&grid.theta, record) > grid.reach {
        return None;
    }
    for (slot, axis) in place.iter_mut().zip(grid.axes.chunks_exact(grid.theta.len().max(1))) {
        *slot = inner_product(axis, difference) / grid.scale;
    }
    let length = sum_of_squares(place).sqrt();
    // This also excludes NaN.
    if !length.is_finite() {
        return None;
    }
    let shorter = if length > 1.0 { compressed(length) / length } else { 1.0 };
    let parts = f64::from(grid.level).exp2();
    let mut code = 0;
    for x in place.iter() {
        let part = ((x * shorter / grid.side + 1.0) / 2.0 * parts).floor();
        if !(0.0..parts).contains(&part) {
            return None;
        }
        code = code << grid.level | part as u64;
    }
    Some(code)
}

/// The inner product, summed in eight lanes in a fixed order, so that the result has the same bits on every instruction
/// set.
#[inline(always)]
fn inner_product(a: &[f64], b: &[f64]) -> f64 {
    let mut lanes = [0.0; 8];
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    for (a, b) in a.iter().zip(b) {
        for l in 0..8 {
            lanes[l] += a[l] * b[l];
        }
    }
    for (lane, (a, b)) in lanes.iter_mut().zip(a_rest.iter().zip(b_rest)) {
        *lane += a * b;
    }
    sum_lanes(lanes)
}

#[cfg(test)]
mod tests {
    use nalgebra::DMatrix;

    use super::*;
    use crate::numeric::dispatch::portable;
    use crate::release::sensitivity::Neighbours;
    use crate::statistics::tests::{moved, values};

    fn plane(level: u32) -> Grid {
        Grid { theta: vec![1.0, 2.0], axes: vec![1.0, 0.0, 0.0, 1.0], scale: 2.0, reach: 64.0, side: 6.0, level }
    }

    fn counted(points: &DMatrix<f64>, grid: Grid, codes: &[u64]) -> Vec<i64> {
        values(&GridCells::new(grid, codes.to_vec(), 0).unwrap(), points)
    }

    #[test]
    fn compression_is_a_continuous_piecewise_linear_logarithm() {
        for (length, expected) in [(0.0, 0.0), (0.7, 0.7), (1.0, 1.0), (1.5, 1.5), (2.0, 2.0), (3.0, 2.5), (4.0, 3.0)] {
            assert_eq!(compressed(length), expected, "{length}");
        }
        assert_eq!(compressed(2f64.powi(1000)), 1001.0);
        assert!((2.999_999..=3.0).contains(&compressed(4.0f64.next_down())));
    }

    #[test]
    fn records_are_in_the_cells_of_their_compressed_places() {
        // In units of 2 around (1, 2), the records are (0, 0), (3, 0), (0, -1) and one beyond the reach. Compression
        // moves (3, 0) to (2.5, 0).
        let points = DMatrix::from_column_slice(2, 4, &[1.0, 2.0, 7.0, 2.0, 1.0, 0.0, 100.0, 2.0]);
        let all: Vec<u64> = (0..16).collect();
        let mut expected = vec![0; 16];
        // Four parts of length 3 along each axis of the cube from -6 to 6.
        for cell in [2 * 4 + 2, 2 * 4 + 2, 2 * 4 + 1] {
            expected[cell] += 1;
        }
        assert_eq!(counted(&points, plane(2), &all), expected);
        assert_eq!(counted(&points, plane(2), &[3, 9, 10]), [0, 1, 2], "listed cells only");
    }

    #[test]
    fn a_record_has_the_same_cell_on_every_instruction_set_and_beside_any_others() {
        for d in [1, 2, 7, 8, 19, 40] {
            let points = DMatrix::from_fn(d, 300, |i, j| ((i * 7919 + j * 104_729) % 1009) as f64 / 37.0 - 13.0);
            let axes: Vec<f64> = (0..3 * d).map(|i| ((i * 31 % 17) as f64 - 8.0) / (8.0 * (d as f64).sqrt())).collect();
            let grid = Grid { theta: vec![0.1; d], axes, scale: 0.7, reach: 1e9, side: 9.0, level: 3 };
            let codes: Vec<u64> = (0..512).collect();
            let on = |block: Block<'_>, wide: bool| {
                let mut total = vec![0; 512];
                let count = Count { block, grid: &grid, codes: &codes, total: &mut total };
                if wide {
                    vectorised(count)
                } else {
                    portable(count)
                }
                total
            };
            let whole = on(Block::new(points.as_slice(), d, 300), true);
            assert_eq!(on(Block::new(points.as_slice(), d, 300), false), whole);
            let mut alone = vec![0; 512];
            for record in points.column_iter() {
                let record: Vec<f64> = record.iter().copied().collect();
                alone.iter_mut().zip(on(Block::new(&record, d, 1), true)).for_each(|(sum, x)| *sum += x);
            }
            assert_eq!(alone, whole, "{d}");
            assert!(whole.iter().filter(|x| **x > 0).count() > 3, "{whole:?}");
        }
    }

    #[test]
    fn the_sensitivities_are_attained() {
        let at = |records: &[f64]| {
            let points = DMatrix::from_column_slice(2, records.len() / 2, records);
            values(&GridCells::new(plane(2), (0..16).collect(), 30).unwrap(), &points)
        };
        let bound = GridCells::bound(30).unwrap();
        let (here, there) = (at(&[1.0, 2.0]), at(&[1.0, 0.0]));
        assert!((moved(&here, &there) - bound.under(Neighbours::Replace)).abs() < 1e-6);
        assert!(moved(&here, &there) <= bound.under(Neighbours::Replace));
        assert_eq!(moved(&here, &at(&[])), bound.under(Neighbours::AddRemove));
    }

    #[test]
    fn parameters_that_make_no_grid_are_refused() {
        let refused = |change: fn(&mut Grid), codes: &[u64], bits: u32| {
            let mut grid = plane(2);
            change(&mut grid);
            GridCells::new(grid, codes.to_vec(), bits).is_err()
        };
        assert!(!refused(|_| (), &[0, 1], 62));
        assert!(refused(|_| (), &[1, 0], 0) && refused(|_| (), &[1, 1], 0) && refused(|_| (), &[], 63));
        assert!(refused(|grid| grid.level = 32, &[], 0) && refused(|grid| grid.level = u32::MAX, &[], 0));
        assert!(refused(|grid| grid.axes.truncate(3), &[], 0) && refused(|grid| grid.axes.clear(), &[], 0));
        assert!(refused(|grid| grid.scale = 0.0, &[], 0) && refused(|grid| grid.reach = f64::INFINITY, &[], 0));
        assert!(refused(|grid| grid.side = f64::NAN, &[], 0));
    }
}
