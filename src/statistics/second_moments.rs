//! Second moments of the directions to a point: sums over records of v v^T, where v is an integer vector along the
//! direction. Several statistics use this kernel, such as [`super::hessian`] and [`super::directions`].
//!
//! Let r be the distance between a record and theta, and u the unit vector between them. Then v is sqrt(w) u 2^b,
//! rounded to the nearest integers, with b = [`vector_bits`]. The weight w depends on the query. If the query has no
//! radius, w = 1. If the query has a radius, as in [`super::hessian`], w = radius/r for r > radius, and w = 0
//! otherwise. A record at theta has no direction, so its v is zero. With a radius, the same loop also adds up the
//! contribution of each record to [`super::curvature`]. The total equals the sum of [`super::curvature`], apart from
//! the rounding of distances below 1e-290 and above 1e290.
//!
//! **Exactness.** Consider the sum, over any records of a block, of the products of two coordinates. By the
//! Cauchy-Schwarz inequality, this sum is at most the square root of the product of the two sums of squares over the
//! block. If this bound is at most 2^24, all partial sums are integers that singles hold exactly, in any order of the
//! additions. If the bound is larger, doubles are used. They hold all partial sums exactly, because in a block of at
//! most 2^12 records these sums are at most 2^53. Singles are faster, because their instructions take half of the time.
//! They are used for a pair of panels (groups of coordinates) if the bound is at most 2^24 for every pair of
//! coordinates in the panels. So singles and doubles give the same integers.
//!
//! **Lemma.** Let t = sqrt(d) 2^-(b + 1), which is at most 2^-6, and let w be computed from the computed distance. Then
//! |v| 2^-b <= sqrt(w) (1 + (d + 20) 2^-54) + t. Without a radius, v 2^-b is at most t (1 + 2^-20) away from u.
//! *Proof.* By the error bounds of [`super::gradient`], the computed difference divided by the computed distance has a
//! norm of 1, up to (d/2 + 3) 2^-53 and higher orders.
//!
//! With a radius, let q be the computed quotient radius/r. If r > radius, q is at most 1, because division rounds
//! correctly. The difference is multiplied by sqrt(q) and by q 2^b/radius. The product sqrt(q) q 2^b/radius times the
//! difference has these errors, in units of 2^-53: at most 3/2 for q, which occurs to the power 3/2; 1 for the square
//! root; 1 for the quotient 2^b/radius; and 3 for three multiplications. Their sum is 13/2. Together with the error of
//! the difference, the total is at most (d/2 + 10) 2^-53. If the radius is below [`TINY`], the quotient 2^b/[`TINY`] is
//! used instead of 2^b/radius. In this case, and also if q is subnormal or zero, q is below 2^-42 and v is zero.
//!
//! Rounding to the nearest integer moves each coordinate by at most 1/2, and the vector by at most sqrt(d)/2 = t 2^b.
//! This gives the first bound. Without a radius, the error before rounding is (d/2 + 4) 2^-53, which is less than t
//! 2^-20 for d <= 4000. This gives the second bound. ∎

use std::ops::RangeInclusive;

use super::BadParameter;
use super::curvature::contribution;
use super::gradient::{self, add_sums, add_units, rounder};
use crate::numeric::block::{AnyBlock, Block, Coordinate};
use crate::numeric::dispatch::Kernel;
use crate::numeric::distance::{
    FEW, Few, GROUP, Many, READ, Row, all_usual, by_dimension, difference, distances, opaque, side_by_side,
    with_dimension,
};
use crate::numeric::float_scale::{norm, rescale, scale};

/// In few dimensions the coordinates of a record's vector are multiples of 2^-20, and products are computed in doubles.
const VECTOR_BITS_FEW: u32 = 20;

/// In more dimensions the coordinates are multiples of 2^-11, so that singles hold most sums of products. A typical
/// coordinate is 2^11/sqrt(d) units of 2^-11, and rounding moves a unit vector by at most 1.6 % for d <= 4000.
const VECTOR_BITS_MANY: u32 = 11;

/// The finest lattice of products. A finer lattice would contain no more information.
pub const PRODUCT_BITS: u32 = 2 * VECTOR_BITS_FEW;

/// Adding this constant to x rounds x to the nearest integer. The low bits of the sum hold this integer.
const ROUNDER: f64 = 1.5 * (1u64 << 52) as f64;

/// Singles hold all integers up to this number.
const SINGLE_MAX: f64 = (1u64 << 24) as f64;

/// Products are multiplied by integers in units of 2^-30, so that factors such as sqrt(2) are nearly exact.
pub(super) const FACTOR_BITS: u32 = 30;

/// The largest dimension for which the lemma holds with these constants.
pub const DIMENSION_MAX: usize = 4000;

/// The number of records in a block in many dimensions. So many vectors of 768 coordinates fit a second-level cache.
const BLOCK: usize = 1 << 8;

/// Below this dimension, blocks have half as many records. The coordinates of a unit vector are larger in few
/// dimensions, so sums over a whole block would exceed 2^24 more often.
const FEWER: usize = 1 << 7;

/// The largest number of records in a block in few dimensions. The sums of their products are exact.
const BLOCK_FEW: usize = 1 << 12;

/// The number of coordinates in a panel. Sixteen singles fill a cache line, and a wide register.
const COLUMNS: usize = 16;

/// The number of records that are multiplied at a time in many dimensions: two groups then fit a first-level cache.
const PIECE: usize = 1 << 6;

/// In few dimensions, a tile is a square of 2 x 2 pairs of coordinates, for [`LANES`] records side by side. The sums of
/// a tile fit the registers, and few of its products lie outside of the upper triangle.
const TILE: usize = 2;
const LANES: usize = 8;

/// Tiles that cover the upper triangle of [`FEW`] coordinates.
const TILES: usize = FEW / TILE * (FEW / TILE + 1) / 2;

/// At these distances, without a radius, the result of [`factor`] and its product with a difference neither overflow
/// nor underflow. With a radius they may underflow, and then v is zero, as the lemma states.
const USUAL: RangeInclusive<f64> = f64::from_bits((1023 - 480) << 52)..=f64::from_bits((1023 + 480) << 52);

/// This radius replaces smaller radii in the quotient 2^b/radius. Otherwise the quotient could be infinite, and
/// infinity times a weight of zero is NaN. The replacement does not change the result, because with such a radius all
/// weights at usual distances are below 2^-520, and all vectors are zero.
const TINY: f64 = f64::from_bits((1023 - 1000) << 52);

/// The number of binary places of the coordinates of a record's vector.
pub(super) fn vector_bits(d: usize) -> u32 {
    if d <= FEW { VECTOR_BITS_FEW } else { VECTOR_BITS_MANY }
}

/// The largest distance by which rounding moves a unit vector: t of the lemma, with room for all errors before the
/// rounding.
pub(super) fn vector_rounding(d: usize) -> f64 {
    (d as f64).sqrt() * (-f64::from(vector_bits(d) + 1)).exp2() * (1.0 + 2f64.powi(-19))
}

/// The number of records in a block. Small inputs are split into smaller blocks, so that every thread has work. A block
/// is a multiple of [`GROUP`], so only the last block has a partial group.
pub(super) fn records_per_block(n: usize, d: usize) -> usize {
    match d {
        0..=FEW => n.div_ceil(8).next_multiple_of(GROUP).clamp(BLOCK, BLOCK_FEW),
        _ if d < FEWER => BLOCK / 2,
        _ => BLOCK,
    }
}

/// The work for one record, for the progress callback ([`Pulse`](crate::runtime::pulse::Pulse)). The unit is the time
/// in which other statistics process one coordinate. About 64 products are added in this time.
pub(super) fn coordinates(d: usize) -> usize {
    d * d.div_ceil(128).max(1)
}

/// The number of entries of the upper triangle.
pub(super) fn entries(d: usize) -> usize {
    d * (d + 1) / 2
}

/// Refuses dimensions for which there is no proof.
pub(super) fn checked_dimension(d: usize) -> Result<(), BadParameter> {
    if d <= DIMENSION_MAX {
        return Ok(());
    }
    Err(BadParameter(format!("second moments have at most {DIMENSION_MAX} dimensions, got {d}")))
}

/// Multiplies diagonal entries of the upper triangle by `weight` and other entries by `weight * sqrt(2)`. Both factors
/// are rounded down to multiples of 2^-30, and the result is in units of 2^-70. The norm of the vector is then at most
/// `weight` times the Frobenius norm of the matrix, up to the rounding of `weight * sqrt(2)` to a double. The entries
/// are stored row by row, in the order of numpy's `triu_indices`.
pub(super) fn scale_triangle(triangle: &mut [i128], d: usize, weight: f64) {
    let shift = PRODUCT_BITS - 2 * vector_bits(d);
    let (on, off) = (fixed(weight) << shift, fixed(weight * std::f64::consts::SQRT_2) << shift);
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

/// The quantity that is summed in addition to the products.
pub(super) enum Companion<'a> {
    /// The sum of unit vectors, in units of 2^-40, as in [`super::gradient`]. It is added to this vector.
    Gradient(&'a mut [i64]),
    /// The curvature. The products then have weights that depend on this radius.
    Curvature { radius: f64 },
}

impl Companion<'_> {
    fn radius(&self) -> Option<f64> {
        match self {
            Self::Gradient(_) => None,
            Self::Curvature { radius } => Some(*radius),
        }
    }
}

/// Adds the products of a block's integer vectors to the upper triangle, row by row. Returns the contribution of the
/// records to the curvature, in units of 2^-20, or 0 without a radius.
pub(super) fn add_block(block: AnyBlock<'_>, theta: &[f64], companion: Companion<'_>, total: &mut [i64]) -> i64 {
    by_dimension(theta.len(), BlockMoments { block, theta, companion, total })
}

/// The work of [`add_block`].
struct BlockMoments<'a> {
    block: AnyBlock<'a>,
    theta: &'a [f64],
    companion: Companion<'a>,
    total: &'a mut [i64],
}

impl Kernel for Few<BlockMoments<'_>> {
    type Output = i64;

    #[inline(always)]
    fn run(self) -> i64 {
        Many(self.0).run()
    }

    #[inline(always)]
    fn run_fused(self) -> i64 {
        let BlockMoments { block, theta, companion, total } = self.0;
        with_dimension!(theta.len(), few, (block, theta, companion, total))
    }
}

/// In many dimensions, a tile is a block of ROWS rows and PANELS panels. Its sums fill eight registers, of singles or of
/// doubles.
impl Kernel for Many<BlockMoments<'_>> {
    type Output = i64;

    #[inline(always)]
    fn run(self) -> i64 {
        let BlockMoments { block, theta, mut companion, total } = self.0;
        many::<false, 4, 1, 2>(block, theta, &mut companion, total)
    }

    #[inline(always)]
    fn run_fused(self) -> i64 {
        let BlockMoments { block, theta, mut companion, total } = self.0;
        many::<true, 4, 1, 2>(block, theta, &mut companion, total)
    }

    #[inline(always)]
    fn run_wide(self) -> i64 {
        let BlockMoments { block, theta, mut companion, total } = self.0;
        many::<true, 4, 2, 2>(block, theta, &mut companion, total)
    }
}

/// Singles or doubles that hold integers.
trait Whole: Copy + Default + Into<f64> {
    /// Returns `self` b + c. The operands and the result are integers that the type holds exactly, so it does not
    /// matter whether the product is rounded before the addition.
    fn add_product(self, b: Self, c: Self) -> Self;

    /// Returns `self` b + c with one instruction. This is very slow on processors without this instruction.
    fn fused(self, b: Self, c: Self) -> Self;
}

macro_rules! whole {
    ($($number:ty),*) => {$(
        impl Whole for $number {
            #[inline(always)]
            fn add_product(self, b: Self, c: Self) -> Self {
                self * b + c
            }

            #[inline(always)]
            fn fused(self, b: Self, c: Self) -> Self {
                self.mul_add(b, c)
            }
        }
    )*};
}
whole!(f32, f64);

/// The integer nearest to x, which is far smaller than 2^51.
#[inline(always)]
fn nearest(x: f64) -> f64 {
    (x + ROUNDER) - ROUNDER
}

/// Sums the products of a block in few dimensions. Each SIMD lane holds a different record, so vectors are stored
/// coordinate by coordinate. If D is odd, the last coordinate of the last tiles is padding and equals zero. Returns the
/// curvature.
#[inline(always)]
fn few<const D: usize>(block: AnyBlock<'_>, theta: &[f64], mut companion: Companion<'_>, total: &mut [i64]) -> i64 {
    let coordinates: &[f64; D] = theta.try_into().expect("the dimension was matched");
    let (mut differences, mut squares) = ([Row([0.0; GROUP]); D], Row([0.0; GROUP]));
    let mut vectors = [Row([0.0; GROUP]); FEW];
    let (mut factors, mut inverses) = (Row([0.0; GROUP]), Row([0.0; GROUP]));
    let mut tiles = [Tile([[[0.0; LANES]; TILE]; TILE]); TILES];
    let (one, unit) = (f64::from(vector_bits(D)).exp2(), (-f64::from(vector_bits(D))).exp2());
    let (mut units, mut summed, rounder) = ([Row([0; GROUP]); D], 0, rounder(PRODUCT_BITS));
    let (radius, mut curvature, mut buffer) = (companion.radius(), 0, [[0.0; D]; READ]);
    for first in (0..block.n()).step_by(READ) {
        let (groups, rest) = block.records_from(first, &mut buffer).as_chunks::<GROUP>();
        for group in groups {
            side_by_side(group, coordinates, &mut differences, &mut squares.0);
            if !all_usual(&squares.0) {
                let group = Block::new(group.as_flattened(), D, GROUP);
                curvature += singles(group, theta, &mut companion, total);
                continue;
            }
            let group = opaque(GROUP);
            for (slot, squares) in factors.0[..group].iter_mut().zip(&squares.0) {
                let distance = squares.sqrt();
                *slot = factor(distance, radius, one);
                curvature += curvature_at(distance, radius, D);
            }
            if radius.is_none() {
                // The inverse distances of `factor`, without further rounding, because `unit` is a power of two.
                for (slot, factor) in inverses.0.iter_mut().zip(&factors.0) {
                    *slot = factor * unit;
                }
                add_units(&mut units, &differences, &inverses, rounder);
                summed += GROUP;
            }
            for (vector, row) in vectors.iter_mut().zip(&differences) {
                for ((slot, x), factor) in vector.0[..group].iter_mut().zip(&row.0).zip(&factors.0) {
                    *slot = nearest(x * factor);
                }
            }
            let mut tile = tiles.iter_mut();
            for i in (0..D).step_by(TILE) {
                for j in (i..D).step_by(TILE) {
                    multiply_tile(&vectors[i..], &vectors[j..], tile.next().expect("a tile for each"));
                }
            }
        }
        if !rest.is_empty() {
            curvature += singles(Block::new(rest.as_flattened(), D, rest.len()), theta, &mut companion, total);
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
    if let Companion::Gradient(gradient) = companion {
        add_sums(gradient, &units, summed, rounder);
    }
    curvature
}

/// Sums the products of records that are not part of a whole group, and of groups with a distance outside of [`USUAL`].
/// Such records are rare, so this function is not compiled for every dimension.
#[inline(never)]
fn singles(block: Block<'_>, theta: &[f64], companion: &mut Companion<'_>, total: &mut [i64]) -> i64 {
    many::<false, 4, 1, 2>(block.into(), theta, companion, total)
}

/// Sums of products: [`LANES`] partial sums for each pair of coordinates, aligned like a row.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Tile([[[f64; LANES]; TILE]; TILE]);

/// Adds the products of two coordinates with two other coordinates, over a group of records. Each lane sums different
/// records.
#[inline(always)]
fn multiply_tile(these: &[Row<f64>], those: &[Row<f64>], sums: &mut Tile) {
    let (these, those): (&[_; TILE], &[_; TILE]) =
        (these.first_chunk().expect("zeros follow"), those.first_chunk().expect("zeros follow"));
    let mut tile = sums.0;
    for first in (0..GROUP).step_by(LANES) {
        for i in 0..TILE {
            for j in 0..TILE {
                for (l, sum) in tile[i][j].iter_mut().enumerate() {
                    *sum = these[i].0[first + l].mul_add(those[j].0[first + l], *sum);
                }
            }
        }
    }
    sums.0 = tile;
}

/// Sums the products of a block in many dimensions, and returns the curvature. Each SIMD lane holds a different
/// coordinate. The vectors of a block are stored in groups of PANELS panels of sixteen coordinates. At a time, ROWS
/// coordinates of one panel are multiplied by all coordinates of a group.
#[inline(always)]
fn many<const FUSED: bool, const ROWS: usize, const PANELS: usize, const ROWS_DOUBLE: usize>(
    block: AnyBlock<'_>,
    theta: &[f64],
    companion: &mut Companion<'_>,
    total: &mut [i64],
) -> i64 {
    let (d, n, radius) = (theta.len(), block.n(), companion.radius());
    let (singles, curvature) = match block {
        AnyBlock::Doubles(block) => vectors::<PANELS, _>(block, theta, radius),
        AnyBlock::Singles(block) => vectors::<PANELS, _>(block, theta, radius),
    };
    if n == 0 || d == 0 {
        return curvature;
    }
    if let Companion::Gradient(gradient) = companion {
        match block {
            AnyBlock::Doubles(block) => gradient::many(block, theta, rounder(PRODUCT_BITS), gradient),
            AnyBlock::Singles(block) => gradient::many(block, theta, rounder(PRODUCT_BITS), gradient),
        }
    }
    let groups: Vec<&[[Piece<f32>; PANELS]]> = singles.chunks_exact(n).collect();
    let squares: Vec<f64> = groups.iter().map(|group| largest_sum_of_squares(group)).collect();
    // The groups as doubles, converted only if a tile needs doubles.
    let mut doubles: Vec<Vec<[Piece<f64>; PANELS]>> = vec![Vec::new(); groups.len()];
    for these in 0..groups.len() {
        for those in these..groups.len() {
            let corner = (these * PANELS * COLUMNS, those * PANELS * COLUMNS);
            if squares[these] * squares[those] <= SINGLE_MAX * SINGLE_MAX {
                add_tiles::<FUSED, ROWS, PANELS, _>(groups[these], groups[those], corner, d, total);
                continue;
            }
            for index in [these, those] {
                if doubles[index].is_empty() {
                    doubles[index] = groups[index].iter().map(widened).collect();
                }
            }
            add_tiles::<FUSED, ROWS_DOUBLE, PANELS, _>(&doubles[these], &doubles[those], corner, d, total);
        }
    }
    curvature
}

/// The largest sum of squares of a coordinate in a group, over all records of the block. Doubles hold these sums
/// exactly.
#[inline(always)]
fn largest_sum_of_squares<const PANELS: usize>(group: &[[Piece<f32>; PANELS]]) -> f64 {
    let mut sums = [[0.0f64; COLUMNS]; PANELS];
    for pieces in group {
        for (sums, piece) in sums.iter_mut().zip(pieces) {
            for (sum, x) in sums.iter_mut().zip(&piece.0) {
                *sum += f64::from(*x) * f64::from(*x);
            }
        }
    }
    sums.as_flattened().iter().fold(0.0, |largest, sum| sum.max(largest))
}

/// Adds the products of all coordinates of one group with all coordinates of another group to the total. `corner` is
/// the position of the first entry.
#[inline(always)]
fn add_tiles<const FUSED: bool, const ROWS: usize, const PANELS: usize, T: Whole>(
    these: &[[Piece<T>; PANELS]],
    those: &[[Piece<T>; PANELS]],
    (row, column): (usize, usize),
    d: usize,
    total: &mut [i64],
) {
    let mut sums = [[[[T::default(); COLUMNS]; PANELS]; COLUMNS]; PANELS];
    for (these, those) in these.chunks(PIECE).zip(those.chunks(PIECE)) {
        for (panel, sums) in sums.iter_mut().enumerate() {
            for (part, sums) in sums.as_chunks_mut::<ROWS>().0.iter_mut().enumerate() {
                *sums = multiply::<FUSED, ROWS, PANELS, T>(these, panel, part, those, *sums);
            }
        }
    }
    for (panel, sums) in sums.iter().enumerate() {
        add_tile(sums, (row + panel * COLUMNS, column), d, total);
    }
}

/// For ROWS coordinates i of one panel and all coordinates j of a group: the sum of v_i v_j over the records. `part`
/// selects the ROWS coordinates. The types show the compiler that no index is out of range. If the loop could panic,
/// the compiler would have to store the sums in every round, which would take most of the time.
#[inline(always)]
fn multiply<const FUSED: bool, const ROWS: usize, const PANELS: usize, T: Whole>(
    these: &[[Piece<T>; PANELS]],
    panel: usize,
    part: usize,
    those: &[[Piece<T>; PANELS]],
    mut sums: [[[T; COLUMNS]; PANELS]; ROWS],
) -> [[[T; COLUMNS]; PANELS]; ROWS] {
    for (these, those) in these.iter().zip(those) {
        let rows = &these[panel].0.as_chunks::<ROWS>().0[part];
        // The loop uses indices and not iterators, because then the sums stay in registers.
        for k in 0..PANELS {
            for i in 0..ROWS {
                sums[i][k] = add_products::<FUSED, T>(rows[i], &those[k].0, sums[i][k]);
            }
        }
    }
    sums
}

/// Adds the products of x and sixteen numbers to sixteen sums. The loop is written out because the compiler may
/// otherwise keep the sums in memory.
#[inline(always)]
fn add_products<const FUSED: bool, T: Whole>(x: T, ys: &[T; COLUMNS], sums: [T; COLUMNS]) -> [T; COLUMNS] {
    macro_rules! each {
        ($($k:literal)*) => {
            [$(if FUSED { x.fused(ys[$k], sums[$k]) } else { x.add_product(ys[$k], sums[$k]) }),*]
        };
    }
    each!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
}

/// Adds the sums of a tile to the entries of the upper triangle that the tile covers. `row` and `column` are the
/// position of the first entry of the tile.
#[inline(always)]
fn add_tile<const PANELS: usize>(
    sums: &[[[impl Whole; COLUMNS]; PANELS]],
    (row, column): (usize, usize),
    d: usize,
    total: &mut [i64],
) {
    for (row, sums) in (row..d).zip(sums) {
        let (sums, from, end) = (sums.as_flattened(), row.max(column), d.min(column + PANELS * COLUMNS));
        if from < end {
            let before = row * d - row * (row + 1) / 2;
            for (entry, sum) in total[before + from..before + end].iter_mut().zip(&sums[from - column..]) {
                // The sum is an integer of at most 2^52. Adding ROUNDER would convert only sums up to 2^51 exactly.
                let sum: f64 = (*sum).into();
                *entry += sum as i64;
            }
        }
    }
}

/// The coordinates of one record in one panel, aligned to a cache line, so that a wide register loads from a single
/// line.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Piece<T>([T; COLUMNS]);

#[inline(always)]
fn widened<const PANELS: usize>(pieces: &[Piece<f32>; PANELS]) -> [Piece<f64>; PANELS] {
    let mut wide = [Piece([0.0; COLUMNS]); PANELS];
    for (wide, piece) in wide.iter_mut().zip(pieces) {
        wide.0.iter_mut().zip(&piece.0).for_each(|(slot, x)| *slot = f64::from(*x));
    }
    wide
}

/// The integer vectors of the records of a block, in groups of PANELS panels of sixteen coordinates, padded with zeros.
/// A group contains all records, one after the other, so that products read memory in order. The second value is the
/// sum of the contributions to the curvature. Singles hold the integers exactly, because the integers are at most 2^20.
#[inline(always)]
fn vectors<'a, const PANELS: usize, T: Coordinate>(
    block: Block<'a, T>,
    theta: &'a [f64],
    radius: Option<f64>,
) -> (Vec<[Piece<f32>; PANELS]>, i64)
where
    AnyBlock<'a>: From<Block<'a, T>>,
{
    let (d, n) = (theta.len(), block.n());
    let one = f64::from(vector_bits(d)).exp2();
    let mut panels = vec![[Piece([0.0; COLUMNS]); PANELS]; d.div_ceil(COLUMNS * PANELS) * n];
    let distances = distances(block, theta);
    let factors: Vec<f64> = distances.iter().map(|distance| factor(*distance, radius, one)).collect();
    for (index, (record, &factor)) in block.records().zip(&factors).enumerate() {
        let vector = |(t, x): (&f64, &T)| nearest((t - (*x).into()) * factor) as f32;
        let (theta, theta_rest) = theta.as_chunks::<COLUMNS>();
        let (record, record_rest) = record.as_chunks::<COLUMNS>();
        for (panel, (theta, record)) in theta.iter().zip(record).enumerate() {
            let piece = &mut panels[panel / PANELS * n + index][panel % PANELS].0;
            for j in 0..COLUMNS {
                piece[j] = vector((&theta[j], &record[j]));
            }
        }
        if !theta_rest.is_empty() {
            let coordinates = theta_rest.iter().zip(record_rest).map(vector);
            let piece = &mut panels[theta.len() / PANELS * n + index][theta.len() % PANELS].0;
            piece.iter_mut().zip(coordinates).for_each(|(slot, x)| *slot = x);
        }
    }
    let mut curvature: i64 = distances.iter().map(|distance| curvature_at(*distance, radius, d)).sum();
    for (index, distance) in distances.iter().enumerate().filter(|(_, distance)| !USUAL.contains(distance)) {
        let record = &block.coordinates()[index * d..(index + 1) * d];
        let (vector, contribution) = unusual(difference(theta, record), radius);
        curvature += contribution - curvature_at(*distance, radius, d);
        for (j, x) in vector.into_iter().enumerate() {
            panels[j / (COLUMNS * PANELS) * n + index][j / COLUMNS % PANELS].0[j % COLUMNS] = x as f32;
        }
    }
    (panels, curvature)
}

/// The factor by which the difference of a record at this distance is multiplied: `one` times sqrt(w)/r.
#[inline(always)]
fn factor(distance: f64, radius: Option<f64>, one: f64) -> f64 {
    match radius {
        None => one / distance,
        Some(radius) => {
            let weight = radius / distance;
            let beyond = weight.sqrt() * (weight * (one / radius.max(TINY)));
            if distance > radius { beyond } else { 0.0 }
        }
    }
}

/// The contribution of a record at this distance to the curvature, in units of 2^-20. The function and [`factor`] treat
/// the same records as within the radius.
#[inline(always)]
fn curvature_at(distance: f64, radius: Option<f64>, d: usize) -> i64 {
    radius.map_or(0, |radius| contribution(distance, radius, d))
}

/// The integer vector and the curvature of a record whose distance lies outside of [`USUAL`].
#[cold]
#[inline(never)]
fn unusual(mut difference: Vec<f64>, radius: Option<f64>) -> (Vec<f64>, i64) {
    let d = difference.len();
    let Some(power) = rescale(&mut difference) else { return (difference, curvature_at(0.0, radius, d)) };
    // If the scaled radius is infinite, the radius is much larger than the distance. If the scaled radius is zero, the
    // radius is much smaller.
    let (distance, radius) = (norm(&difference), radius.map(|radius| scale(radius, power)));
    let factor = factor(distance, radius, f64::from(vector_bits(d)).exp2());
    difference.iter_mut().for_each(|x| *x = nearest(*x * factor));
    (difference, curvature_at(distance, radius, d))
}

#[cfg(test)]
pub(crate) mod tests {
    use nalgebra::DMatrix;
    use proptest::prelude::*;

    use super::*;
    use crate::numeric::distance::{narrow_by_dimension, portable_by_dimension};
    use crate::statistics::gradient::Gradient;
    use crate::statistics::tests::values;

    fn of(points: &DMatrix<f64>) -> Block<'_> {
        Block::new(points.as_slice(), points.nrows(), points.ncols())
    }

    /// The totals of one block: upper triangle, and curvature.
    fn block_total(points: &DMatrix<f64>, theta: &[f64], radius: Option<f64>) -> (Vec<i64>, i64) {
        block_total_by(|d, kernel| portable_by_dimension(d, kernel), points, theta, radius)
    }

    /// The totals of one block, from a kernel that is compiled for another instruction set.
    fn block_total_by(
        run: impl for<'a> Fn(usize, BlockMoments<'a>) -> i64,
        points: &DMatrix<f64>,
        theta: &[f64],
        radius: Option<f64>,
    ) -> (Vec<i64>, i64) {
        let (mut total, mut gradient) = (vec![0; entries(theta.len())], vec![0; theta.len()]);
        let companion = radius.map_or(Companion::Gradient(&mut gradient), |radius| Companion::Curvature { radius });
        let kernel = BlockMoments { block: of(points).into(), theta, companion, total: &mut total };
        let curvature = run(theta.len(), kernel);
        (total, curvature)
    }

    /// The positions of the diagonal in the upper triangle.
    fn diagonal(d: usize) -> impl Iterator<Item = usize> {
        (0..d).map(move |i| i * d - i * (i + 1) / 2 + i)
    }

    /// The magnitudes at which an overflow or underflow can occur, and ordinary magnitudes.
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
            // The radius is about a quarter of the distance, unless it underflows. In one dimension a record beyond the
            // radius has no curvature.
            let radius = scale(1.0, power - 2);
            if radius > 0.0 {
                assert_eq!(block_total(&points, &[0.0], Some(radius)), (vec![1 << 38], 0), "2^{power}");
            }
            assert_eq!(block_total(&points, &[0.0], Some(scale(1.0, power))), (vec![0], 1 << 20), "2^{power}");
        }
    }

    #[test]
    fn a_full_block_of_equal_directions_is_summed_exactly_on_every_instruction_set() {
        for d in [1, 2, FEW, FEW + 1] {
            let n = records_per_block(usize::MAX >> 8, d);
            let mut points = DMatrix::zeros(d, n);
            points.row_mut(0).fill(3.0);
            let theta = vec![0.0; d];
            let one = block_total(&points.columns(0, 1).into_owned(), &theta, None).0;
            let expected: Vec<i64> = one.iter().map(|entry| entry * n as i64).collect();
            assert!(one[0] > 0, "{d}");
            assert_eq!(block_total(&points, &theta, None).0, expected, "portable, {d}");
            let narrow = block_total_by(|d, kernel| narrow_by_dimension(d, kernel), &points, &theta, None);
            assert_eq!(narrow.0, expected, "narrow, {d}");
            let (mut total, mut sum) = (vec![0; entries(d)], vec![0; d]);
            add_block(AnyBlock::Doubles(of(&points)), &theta, Companion::Gradient(&mut sum), &mut total);
            assert_eq!(total, expected, "{d}");
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
            let unit = f64::from(2 * vector_bits(d)).exp2();
            let trace = diagonal(d).map(|entry| total[entry]).sum::<i64>() as f64 / unit;
            let rounding = vector_rounding(d);
            prop_assert!((0.0..=(1.0 + rounding).powi(2)).contains(&trace), "{}", trace);
            // Within the radius there is no direction, and beyond it the curvature is (1 - 1/d) times the weight.
            prop_assert!((0..=1 << 20).contains(&curvature));
            if curvature == 1 << 20 && radius.is_some() {
                prop_assert_eq!(trace, 0.0);
            } else if radius.is_some() && d > 1 {
                let weight = curvature as f64 / (1.0 - 1.0 / d as f64) / 2f64.powi(20);
                let most = rounding * (2.0 + rounding) + 2f64.powi(-19);
                prop_assert!((trace - weight).abs() <= most, "{} {}", trace, curvature);
            }
        }

        #[test]
        fn singles_and_doubles_give_the_same_sums(
            d in prop_oneof![17usize..70, Just(160usize)],
            n in 1usize..200,
            heavy in prop::collection::vec(0usize..160, 0..4),
            radius in prop::option::of(0.1..3.0f64),
        ) {
            // In heavy coordinates all records lie far away on the same side of theta, so the sums of products are as
            // large as possible.
            let points = DMatrix::from_fn(d, n, |i, j| match heavy.contains(&i) {
                true => 40.0,
                false => ((7919 * i + 104_729 * j) % 1009) as f64 / 500.0 - 1.0,
            });
            let theta = vec![0.0; d];
            let (panels, _) = vectors::<1, _>(of(&points), &theta, radius);
            let coordinate = |i: usize, r: usize| i64::from(panels[i / COLUMNS * n + r][0].0[i % COLUMNS] as i32);
            let pairs = (0..d).flat_map(|i| (i..d).map(move |j| (i, j)));
            let plain: Vec<i64> = pairs.map(|(i, j)| (0..n).map(|r| coordinate(i, r) * coordinate(j, r)).sum()).collect();
            prop_assert_eq!(&block_total(&points, &theta, radius).0, &plain);
            prop_assert_eq!(&block_total_by(|d, kernel| narrow_by_dimension(d, kernel), &points, &theta, radius).0, &plain);
            let (mut total, mut sum) = (vec![0; entries(d)], vec![0; d]);
            let companion = radius.map_or(Companion::Gradient(&mut sum), |radius| Companion::Curvature { radius });
            add_block(AnyBlock::Doubles(of(&points)), &theta, companion, &mut total);
            prop_assert_eq!(total, plain);
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
            // One record may have any coordinates. The others are ordinary numbers, so most groups are ordinary.
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
            prop_assert_eq!(&block_total_by(|d, kernel| narrow_by_dimension(d, kernel), &points, &theta, radius), &expected);
            let mut total = vec![0; entries(d)];
            let mut sum = vec![0; d];
            let companion = radius.map_or(Companion::Gradient(&mut sum), |radius| Companion::Curvature { radius });
            let curvature = add_block(AnyBlock::Doubles(of(&points)), &theta, companion, &mut total);
            prop_assert_eq!((total, curvature), expected);
            let gradient = values(&Gradient::new(&theta, PRODUCT_BITS).unwrap(), &points);
            prop_assert_eq!(sum, if radius.is_none() { gradient } else { vec![0; d] });
        }
    }
}
