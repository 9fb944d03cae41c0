//! Second moments of the directions to a point: sums over records of v v^T, with v an integer vector along the
//! direction. They are the kernel of two statistics, [`super::hessian`] and [`super::directions`].
//!
//! u is the unit vector between a record and theta and r their distance; v is sqrt(w) u 2^20, rounded towards zero.
//! Without a radius w = 1. With a radius w = radius/r beyond the radius and 0 within it, and the curvature of the
//! records is summed beside the products, as [`super::curvature`] has it, up to the rounding of distances below 1e-290
//! and beyond 1e290. A record at theta has no direction: its v is zero.
//!
//! **Exactness.** In a block of at most 2^12 records all sums of products are integers of at most 2^52: doubles hold
//! them exactly, in whatever order they are added.
//!
//! **Lemma.** With w as it is computed, from the computed distance, |v|^2 <= 2^40 w (1 + (d + 20) 2^-53), and |v|^2 <=
//! 2^40; without a radius v 2^-20 is at most sqrt(d) 2^-20 (1 + 2^-20) away from u. *Proof.* By the error bounds of
//! [`super::gradient`] the computed difference over the computed distance has a norm of 1 up to (d/2 + 3) 2^-53 and higher
//! orders. With a radius the difference is multiplied by sqrt(q) times q 2^20/radius, where q is the computed radius/r,
//! which is at most 1 where r > radius, because division rounds correctly: q, which occurs to the power 3/2, its root, the
//! quotient, and three products add at most 13/2 2^-53, together at most (d/2 + 10) 2^-53, of which the square has twice
//! as much. Where q is subnormal or zero, and where the radius is so small that the quotient takes another one, q is below
//! 2^-42 and v is zero. Rounding towards zero lengthens no coordinate, which is the first bound, and moves each by less
//! than 2^-20, which is the last. |v|^2 is an integer and less than 2^40 + 1 for d <= 4000: it is at most 2^40. ∎

use std::ops::RangeInclusive;

use super::BadParameter;
use super::curvature::contribution;
use super::gradient::{self, add_sums, add_units, rounder};
use crate::numeric::block::{Block, Coordinate, Lying};
use crate::numeric::dispatch::Kernel;
use crate::numeric::distance::{
    FEW, Few, GROUP, Many, Row, all_usual, by_dimension, distances, opaque, side_by_side, with_dimension,
};
use crate::numeric::float_scale::{norm, rescale, scale};

/// Coordinates of a record's vector are multiples of 2^-20, and its products of 2^-40.
const VECTOR_BITS: u32 = 20;

/// One, in units of 2^-20.
const ONE: f64 = (1u64 << VECTOR_BITS) as f64;

/// The products are multiples of 2^-40: finer lattices would show nothing more.
pub const PRODUCT_BITS: u32 = 2 * VECTOR_BITS;

/// Products are multiplied by integers in units of 2^-30, so that factors like sqrt(2) are nearly exact.
pub(super) const FACTOR_BITS: u32 = 30;

/// In more dimensions the lemma would need other constants.
pub const DIMENSION_MAX: usize = 4000;

/// Records of a block: two panels of their vectors fit a first-level cache.
const BLOCK: usize = 1 << 8;

/// Records of a block in few dimensions, at most: as many as the sums of their products are exact for.
const BLOCK_FEW: usize = 1 << 12;

/// Coordinates of a panel.
const COLUMNS: usize = 8;

/// So many coordinates are multiplied by the eight of a panel at a time: the sums stay in sixteen registers of four or two
/// doubles, or in the many registers of eight.
const ROWS: usize = 4;
const ROWS_WIDE: usize = 8;

/// In few dimensions two coordinates are multiplied by two others at a time, this many records side by side: the sums fit
/// the registers, and few products are of coordinates that a triangle does not have.
const TILE: usize = 2;
const LANES: usize = 8;

/// Tiles that cover the upper triangle of [`FEW`] coordinates.
const TILES: usize = FEW / TILE * (FEW / TILE + 1) / 2;

/// Distances at which neither the factor nor its product with a difference over- or underflows.
const USUAL: RangeInclusive<f64> = f64::from_bits((1023 - 480) << 52)..=f64::from_bits((1023 + 480) << 52);

/// The quotient of one and a radius far below this is infinite, and times a weight of zero it would be no number. At usual
/// distances all weights are below 2^-520 then, and vectors are zero with this radius as with a smaller one.
const TINY: f64 = f64::from_bits((1023 - 1000) << 52);

/// Small inputs are split further, so that every thread has work; multiples of a group leave no record alone.
pub(super) fn records_per_block(n: usize, d: usize) -> usize {
    if d <= FEW { n.div_ceil(8).next_multiple_of(GROUP).clamp(BLOCK, BLOCK_FEW) } else { BLOCK }
}

/// Coordinates that a record seems to have, for the pulse: it is looked at once for every panel of coordinates.
pub(super) fn coordinates(d: usize) -> usize {
    d * d.div_ceil(2 * COLUMNS).max(1)
}

/// Entries of the upper triangle.
pub(super) fn entries(d: usize) -> usize {
    d * (d + 1) / 2
}

/// Refuses dimensions for which nothing is proved.
pub(super) fn checked_dimension(d: usize) -> Result<(), BadParameter> {
    if d <= DIMENSION_MAX {
        return Ok(());
    }
    Err(BadParameter(format!("second moments have at most {DIMENSION_MAX} dimensions, got {d}")))
}

/// Multiplies the upper triangle, row by row, by `weight` on the diagonal and by sqrt(2) times that off it, both rounded
/// down to multiples of 2^-30, which become the unit. The norm of the vector is then at most `weight` times the Frobenius
/// norm of the matrix, up to the rounding of `weight * sqrt(2)` to a double. This is the order of numpy's `triu_indices`.
pub(super) fn scale_triangle(triangle: &mut [i128], d: usize, weight: f64) {
    let (on, off) = (fixed(weight), fixed(weight * std::f64::consts::SQRT_2));
    let mut rows = triangle;
    for row in 0..d {
        let (entries, below) = rows.split_at_mut(d - row);
        rows = below;
        entries[0] *= on;
        entries[1..].iter_mut().for_each(|entry| *entry *= off);
    }
}

/// A factor in units of 2^-30, rounded down.
pub(super) fn fixed(factor: f64) -> i128 {
    (factor * f64::from(FACTOR_BITS).exp2()) as i128
}

/// What is summed beside the products.
pub(super) enum Beside<'a> {
    /// The unit vectors are added to this, as [`super::gradient`] does, in units of 2^-40.
    Gradient(&'a mut [i64]),
    /// The products have weights by this radius.
    Curvature { radius: f64 },
}

impl Beside<'_> {
    fn radius(&self) -> Option<f64> {
        match self {
            Self::Gradient(_) => None,
            Self::Curvature { radius } => Some(*radius),
        }
    }
}

/// Adds the products of a block's integer vectors to the upper triangle, row by row; returns the sum of what the records
/// contribute to the curvature, in units of 2^-20, or 0 without a radius.
pub(super) fn add_block(block: Lying<'_>, theta: &[f64], beside: Beside<'_>, total: &mut [i64]) -> i64 {
    match block {
        Lying::Doubles(block) => by_dimension(theta.len(), BlockMoments { block, theta, beside, total }),
        Lying::Singles(block) => by_dimension(theta.len(), BlockMoments { block, theta, beside, total }),
    }
}

/// What [`add_block`] does.
struct BlockMoments<'a, T> {
    block: Block<'a, T>,
    theta: &'a [f64],
    beside: Beside<'a>,
    total: &'a mut [i64],
}

impl<T: Coordinate> Kernel for Few<BlockMoments<'_, T>> {
    type Output = i64;

    #[inline(always)]
    fn run(self) -> i64 {
        let BlockMoments { block, theta, beside, total } = self.0;
        with_dimension!(theta.len(), few, (block, theta, beside, total, rounded))
    }

    #[inline(always)]
    fn run_fused(self) -> i64 {
        let BlockMoments { block, theta, beside, total } = self.0;
        with_dimension!(theta.len(), few, (block, theta, beside, total, f64::mul_add))
    }
}

impl<T: Coordinate> Kernel for Many<BlockMoments<'_, T>> {
    type Output = i64;

    #[inline(always)]
    fn run(self) -> i64 {
        let BlockMoments { block, theta, mut beside, total } = self.0;
        many::<ROWS, _>(block, theta, &mut beside, total, rounded)
    }

    #[inline(always)]
    fn run_fused(self) -> i64 {
        let BlockMoments { block, theta, mut beside, total } = self.0;
        many::<ROWS, _>(block, theta, &mut beside, total, f64::mul_add)
    }

    #[inline(always)]
    fn run_wide(self) -> i64 {
        let BlockMoments { block, theta, mut beside, total } = self.0;
        many::<ROWS_WIDE, _>(block, theta, &mut beside, total, f64::mul_add)
    }
}

/// a b + c. All three are integers that doubles hold, and so is the result: it does not matter whether the product is
/// rounded before it is added.
#[inline(always)]
fn rounded(a: f64, b: f64, c: f64) -> f64 {
    a * b + c
}

/// Lanes over the records: the vectors of a block lie coordinate by coordinate. The last tiles may reach into a coordinate
/// that is zero.
#[inline(always)]
fn few<const D: usize>(
    block: Block<'_, impl Coordinate>,
    theta: &[f64],
    mut beside: Beside<'_>,
    total: &mut [i64],
    add_product: impl Fn(f64, f64, f64) -> f64 + Copy,
) -> i64 {
    let coordinates: &[f64; D] = theta.try_into().expect("the dimension was matched");
    let (mut differences, mut squares) = ([Row([0.0; GROUP]); D], Row([0.0; GROUP]));
    let mut vectors = [Row([0.0; GROUP]); FEW];
    let mut factors = Row([0.0; GROUP]);
    let mut tiles = [Tile([[[0.0; LANES]; TILE]; TILE]); TILES];
    let (groups, rest) = block.coordinates().as_chunks::<D>().0.as_chunks::<GROUP>();
    let (mut units, mut summed, rounder) = ([Row([0; GROUP]); D], 0, rounder(PRODUCT_BITS));
    let rest = Block::new(rest.as_flattened(), D, rest.len());
    let radius = beside.radius();
    let mut curvature = singles(rest, theta, &mut beside, total);
    for group in groups {
        side_by_side(group, coordinates, &mut differences, &mut squares.0);
        if !all_usual(&squares.0) {
            let group = Block::new(group.as_flattened(), D, GROUP);
            curvature += singles(group, theta, &mut beside, total);
            continue;
        }
        let group = opaque(GROUP);
        for (slot, squares) in factors.0[..group].iter_mut().zip(&squares.0) {
            let distance = squares.sqrt();
            *slot = factor(distance, radius);
            curvature += curvature_at(distance, radius, D);
        }
        if radius.is_none() {
            // The inverse distances, to the bit: a division by a power of two rounds nothing.
            let inverses = Row(factors.0.map(|factor| factor / ONE));
            add_units(&mut units, &differences, &inverses, rounder);
            summed += GROUP;
        }
        for (vector, row) in vectors.iter_mut().zip(&differences) {
            for ((slot, x), factor) in vector.0[..group].iter_mut().zip(&row.0).zip(&factors.0) {
                *slot = (x * factor).trunc();
            }
        }
        let mut tile = tiles.iter_mut();
        for i in (0..D).step_by(TILE) {
            for j in (i..D).step_by(TILE) {
                multiply_tile(&vectors[i..], &vectors[j..], tile.next().expect("a tile for each"), add_product);
            }
        }
    }
    let mut tile = tiles.iter();
    for i in (0..D).step_by(TILE) {
        for j in (i..D).step_by(TILE) {
            for (row, sums) in tile.next().expect("a tile for each").0.iter().enumerate() {
                for (column, sum) in sums.iter().enumerate() {
                    let (i, j) = (i + row, j + column);
                    if i <= j && j < D {
                        total[i * D - i * (i + 1) / 2 + j] += sum.iter().sum::<f64>() as i64;
                    }
                }
            }
        }
    }
    if let Beside::Gradient(gradient) = beside {
        add_sums(gradient, &units, summed, rounder);
    }
    curvature
}

/// Records beside no whole group, or in an unusual one: few, so they are not compiled anew for every dimension.
#[inline(never)]
fn singles(block: Block<'_, impl Coordinate>, theta: &[f64], beside: &mut Beside<'_>, total: &mut [i64]) -> i64 {
    many::<ROWS, _>(block, theta, beside, total, rounded)
}

/// Sums of products, several of each pair of coordinates; aligned like a row.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Tile([[[f64; LANES]; TILE]; TILE]);

/// Adds the products of two coordinates and two others over a group of records, record by record in their lanes.
#[inline(always)]
fn multiply_tile(these: &[Row<f64>], those: &[Row<f64>], sums: &mut Tile, add_product: impl Fn(f64, f64, f64) -> f64) {
    let (these, those): (&[_; TILE], &[_; TILE]) =
        (these.first_chunk().expect("zeros follow"), those.first_chunk().expect("zeros follow"));
    let mut tile = sums.0;
    for first in (0..GROUP).step_by(LANES) {
        for i in 0..TILE {
            for j in 0..TILE {
                for (l, sum) in tile[i][j].iter_mut().enumerate() {
                    *sum = add_product(these[i].0[first + l], those[j].0[first + l], *sum);
                }
            }
        }
    }
    sums.0 = tile;
}

/// Lanes over the coordinates: the vectors of a block lie in panels, whose products are summed some rows at a time.
#[inline(always)]
fn many<const ROWS: usize, T: Coordinate>(
    block: Block<'_, T>,
    theta: &[f64],
    beside: &mut Beside<'_>,
    total: &mut [i64],
    add_product: impl Fn(f64, f64, f64) -> f64 + Copy,
) -> i64 {
    let (d, n) = (theta.len(), block.n());
    if n == 0 {
        return 0;
    }
    if let Beside::Gradient(gradient) = beside {
        gradient::many(block, theta, rounder(PRODUCT_BITS), gradient);
    }
    let doubles = T::doubles(block.coordinates());
    let block = Block::new(&doubles, d, n);
    let (panels, curvature) = vectors(block, theta, beside.radius());
    for first in (0..d).step_by(ROWS) {
        let these = &panels[first / COLUMNS * n..][..n];
        for (panel, those) in panels.chunks_exact(n).enumerate().skip(first / COLUMNS) {
            let sums = multiply::<ROWS>(these, first % COLUMNS / ROWS, those, add_product);
            add_tile(&sums, (first, panel * COLUMNS), d, total);
        }
    }
    curvature
}

/// The sums over the records of the products of some coordinates of one panel, its `part`-th, and all of another.
#[inline(always)]
fn multiply<const ROWS: usize>(
    these: &[Piece],
    part: usize,
    those: &[Piece],
    add_product: impl Fn(f64, f64, f64) -> f64,
) -> [[f64; COLUMNS]; ROWS] {
    let mut sums = [[0.0; COLUMNS]; ROWS];
    for (a, b) in these.iter().zip(those) {
        let a = &a.0.as_chunks::<ROWS>().0[part];
        for (sums, a) in sums.iter_mut().zip(a) {
            for (sum, b) in sums.iter_mut().zip(&b.0) {
                *sum = add_product(*a, *b, *sum);
            }
        }
    }
    sums
}

/// Adds the sums of a tile, whose first entry stands in this row and column, to the part of the upper triangle below it.
#[inline(always)]
fn add_tile(sums: &[[f64; COLUMNS]], (row, column): (usize, usize), d: usize, total: &mut [i64]) {
    for (row, sums) in (row..d).zip(sums) {
        let (from, end) = (row.max(column), d.min(column + COLUMNS));
        if from < end {
            let before = row * d - row * (row + 1) / 2;
            let entries = &mut total[before + from..before + end];
            entries.iter_mut().zip(&sums[from - column..]).for_each(|(entry, sum)| *entry += *sum as i64);
        }
    }
}

/// A record's coordinates in a panel. They are a cache line: wide registers load from one line then, not from two.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Piece([f64; COLUMNS]);

/// The integer vectors of the records of a block, in panels of eight coordinates and zeros; a panel has all records, one
/// after the other, so that products run through memory in order. Beside them the sum of what they contribute to the
/// curvature.
#[inline(always)]
fn vectors(block: Block<'_>, theta: &[f64], radius: Option<f64>) -> (Vec<Piece>, i64) {
    let (d, n) = (theta.len(), block.n());
    let mut panels = vec![Piece([0.0; COLUMNS]); d.div_ceil(COLUMNS) * n];
    let distances = distances(block, theta);
    let factors: Vec<f64> = distances.iter().map(|distance| factor(*distance, radius)).collect();
    for (index, (record, &factor)) in block.records().zip(&factors).enumerate() {
        let vector = |(t, x): (&f64, &f64)| ((t - x) * factor).trunc();
        let (theta, theta_rest) = theta.as_chunks::<COLUMNS>();
        let (record, record_rest) = record.as_chunks::<COLUMNS>();
        for (panel, (theta, record)) in theta.iter().zip(record).enumerate() {
            panels[panel * n + index] = Piece(std::array::from_fn(|j| vector((&theta[j], &record[j]))));
        }
        if !theta_rest.is_empty() {
            let coordinates = theta_rest.iter().zip(record_rest).map(vector);
            panels[theta.len() * n + index].0.iter_mut().zip(coordinates).for_each(|(slot, x)| *slot = x);
        }
    }
    let mut curvature: i64 = distances.iter().map(|distance| curvature_at(*distance, radius, d)).sum();
    for (index, distance) in distances.iter().enumerate().filter(|(_, distance)| !USUAL.contains(distance)) {
        let record = &block.coordinates()[index * d..(index + 1) * d];
        let difference = theta.iter().zip(record).map(|(t, x)| t - x).collect();
        let (vector, contribution) = unusual(difference, radius);
        curvature += contribution - curvature_at(*distance, radius, d);
        for (j, x) in vector.into_iter().enumerate() {
            panels[j / COLUMNS * n + index].0[j % COLUMNS] = x;
        }
    }
    (panels, curvature)
}

/// What a difference is multiplied by at this distance: sqrt(w) 2^20/r.
#[inline(always)]
fn factor(distance: f64, radius: Option<f64>) -> f64 {
    match radius {
        None => ONE / distance,
        Some(radius) => {
            let weight = radius / distance;
            let beyond = weight.sqrt() * (weight * (ONE / radius.max(TINY)));
            if distance > radius { beyond } else { 0.0 }
        }
    }
}

/// What a record at this distance contributes to the curvature, in units of 2^-20: within the radius wherever [`factor`]
/// says so.
#[inline(always)]
fn curvature_at(distance: f64, radius: Option<f64>, d: usize) -> i64 {
    radius.map_or(0, |radius| contribution(distance, radius, d))
}

/// The integer vector of a record so near or so far that factors would over- or underflow, and its curvature.
#[cold]
#[inline(never)]
fn unusual(mut difference: Vec<f64>, radius: Option<f64>) -> (Vec<f64>, i64) {
    let d = difference.len();
    let Some(power) = rescale(&mut difference) else { return (difference, curvature_at(0.0, radius, d)) };
    // A radius that becomes infinite or zero here is far beyond the distance, or far below it.
    let (distance, radius) = (norm(&difference), radius.map(|radius| scale(radius, power)));
    let factor = factor(distance, radius);
    difference.iter_mut().for_each(|x| *x = (*x * factor).trunc());
    (difference, curvature_at(distance, radius, d))
}

#[cfg(test)]
pub(crate) mod tests {
    use nalgebra::DMatrix;
    use proptest::prelude::*;

    use super::*;
    use crate::numeric::distance::portable_by_dimension;
    use crate::statistics::gradient::Gradient;
    use crate::statistics::tests::values;

    fn of(points: &DMatrix<f64>) -> Block<'_> {
        Block::new(points.as_slice(), points.nrows(), points.ncols())
    }

    /// The totals of one block: upper triangle, and curvature.
    fn block_total(points: &DMatrix<f64>, theta: &[f64], radius: Option<f64>) -> (Vec<i64>, i64) {
        let (mut total, mut gradient) = (vec![0; entries(theta.len())], vec![0; theta.len()]);
        let beside = radius.map_or(Beside::Gradient(&mut gradient), |radius| Beside::Curvature { radius });
        let kernel = BlockMoments { block: of(points), theta, beside, total: &mut total };
        let curvature = portable_by_dimension(theta.len(), kernel);
        (total, curvature)
    }

    /// Where the diagonal lies in the upper triangle.
    fn diagonal(d: usize) -> impl Iterator<Item = usize> {
        (0..d).map(move |i| i * d - i * (i + 1) / 2 + i)
    }

    /// The magnitudes at which something over- or underflows, and ordinary ones.
    pub(crate) fn value() -> impl Strategy<Value = f64> {
        let power = (-1074i32..1000).prop_map(|e| -scale(1.0, e));
        prop_oneof![4 => -2.0..2.0f64, 2 => power, 1 => Just(0.0), 1 => Just(5e-324), 1 => Just(1e300)]
    }

    #[test]
    fn factors_are_rounded_down() {
        let root = fixed(std::f64::consts::SQRT_2);
        assert!(root.pow(2) <= 2 << (2 * FACTOR_BITS) && (root + 1).pow(2) > 2 << (2 * FACTOR_BITS));
        let mut triangle = [3, 5, 7];
        scale_triangle(&mut triangle, 2, 1.0);
        assert_eq!(triangle, [3 << FACTOR_BITS, 5 * root, 7 << FACTOR_BITS]);
    }

    #[test]
    fn far_and_near_records_have_directions() {
        for power in (-1074..=999).step_by(7) {
            let points = DMatrix::from_element(1, 1, scale(1.0, power));
            assert_eq!(block_total(&points, &[0.0], None), (vec![1 << 40], 0), "2^{power}");
            // A quarter of the distance, where that is a number. On the line there is no curvature beyond it.
            let radius = scale(1.0, power - 2);
            if radius > 0.0 {
                assert_eq!(block_total(&points, &[0.0], Some(radius)), (vec![1 << 38], 0), "2^{power}");
            }
            assert_eq!(block_total(&points, &[0.0], Some(scale(1.0, power))), (vec![0], 1 << 20), "2^{power}");
        }
    }

    proptest! {
        #[test]
        fn no_record_has_more_than_a_unit(
            d in prop_oneof![1usize..20, Just(100usize)],
            coordinates in prop::collection::vec(value(), 100),
            radius in prop::option::of(-1000i32..1000),
        ) {
            let points = DMatrix::from_column_slice(d, 1, &coordinates[..d]);
            let (total, curvature) = block_total(&points, &vec![0.0; d], radius.map(|e| scale(1.0, e)));
            let trace: i64 = diagonal(d).map(|entry| total[entry]).sum();
            prop_assert!((0..=1 << 40).contains(&trace), "{}", trace);
            // Within the radius there is no direction, and beyond it the curvature is (1 - 1/d) times the weight.
            prop_assert!((0..=1 << 20).contains(&curvature));
            if curvature == 1 << 20 && radius.is_some() {
                prop_assert_eq!(trace, 0);
            } else if radius.is_some() && d > 1 {
                // Truncation takes at most 2^-20 off each coordinate of a vector of norm 1.
                let weight = curvature as f64 / (1.0 - 1.0 / d as f64) / 2f64.powi(20);
                let beyond = trace as f64 / 2f64.powi(40) - weight;
                let least = -2f64.powi(-19) * (1.0 + (d as f64).sqrt());
                prop_assert!((least..=2f64.powi(-19)).contains(&beyond), "{} {}", trace, curvature);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn records_of_a_block_are_summed_as_if_alone_on_every_instruction_set(
            d in prop_oneof![0usize..20, Just(33usize), Just(100)],
            n in 0usize..80,
            odd in 0usize..80,
            coordinates in prop::collection::vec(value(), 100),
            radius in prop::option::of(0.1..3.0f64),
        ) {
            // One record may be anything; the others are ordinary, so that most groups are, too.
            let ordinary = |i: usize, j: usize| ((7919 * i + 104_729 * j) % 1009) as f64 / 500.0;
            let points = DMatrix::from_fn(d, n, |i, j| if j == odd { coordinates[i] } else { ordinary(i, j) });
            let theta = vec![0.25; d];
            let mut expected = (vec![0i64; entries(d)], 0);
            for record in 0..n {
                let (one, curvature) = block_total(&points.columns(record, 1).into_owned(), &theta, radius);
                expected.0.iter_mut().zip(one).for_each(|(sum, one)| *sum += one);
                expected.1 += curvature;
            }
            prop_assert_eq!(&block_total(&points, &theta, radius), &expected);
            let mut total = vec![0; entries(d)];
            let mut sum = vec![0; d];
            let beside = radius.map_or(Beside::Gradient(&mut sum), |radius| Beside::Curvature { radius });
            let curvature = add_block(Lying::Doubles(of(&points)), &theta, beside, &mut total);
            prop_assert_eq!((total, curvature), expected);
            let gradient = values(&Gradient::new(&theta, PRODUCT_BITS).unwrap(), &points);
            prop_assert_eq!(sum, if radius.is_none() { gradient } else { vec![0; d] });
        }
    }
}
