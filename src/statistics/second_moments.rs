//! Second moments of the directions to a point: the sum of w u u^T over the records, on an integer lattice.
//!
//! u is the unit vector between a record and theta and r their distance. Without a radius w = 1: divided by the number of
//! records the sum is the covariance of the directions. With a radius w = radius/r beyond the radius and 0 within it:
//! together with [`super::curvature`] the sum is the Hessian of the sum of distances, smoothed at the radius. A record at
//! theta has no direction and contributes zero.
//!
//! **The vector.** Its norm is the Frobenius norm of the matrix: the upper triangle row by row, (0, 0), (0, 1), ...,
//! (0, d - 1), (1, 1), ..., with the entries off the diagonal times sqrt(2). This is the order of numpy's `triu_indices`.
//!
//! **Exactness.** sqrt(w) u 2^20 is rounded towards zero to a vector v of integers, so what a record contributes is the
//! matrix v v^T of integers, and nothing else is rounded before all records are summed. In a block of at most 2^12 records
//! all sums of products are integers of at most 2^52: doubles hold them exactly, in whatever order they are added. The totals
//! are multiplied by 2^30 on the diagonal and by floor(sqrt(2) 2^30) off it, and the tape rounds them to the lattice.
//!
//! **Neighbours and sensitivity** (L2, lattice units): sqrt(2) 2^bits + s where a record is replaced and 2^bits + s where
//! one is added or removed, with s = sqrt(d (d + 1)/2). *Proof.* By the error bounds of [`super::gradient`] the computed
//! difference over the computed distance has a norm of at most 1 + (d/2 + 3) 2^-53 up to higher orders; radius/r is at most
//! 1 where r > radius, because division rounds correctly, and so is its root; the factor 2^20 is exact, and the quotient and
//! the product add 2^-53 each. Rounding towards zero lengthens no coordinate, so |v| <= 2^20 (1 + (d + 6) 2^-53). |v|^2 is
//! an integer and less than 2^40 + 1 for d <= 4000: it is at most 2^40. So v v^T has a Frobenius norm of |v|^2 <= 2^40, and
//! ||v v^T - w w^T||^2 = |v|^4 + |w|^4 - 2 (v.w)^2 <= 2 * 2^80. Off the diagonal the factor is at most sqrt(2) times that on
//! it, so the vector of totals moves by at most 2^30 times as much as the matrix in the Frobenius norm, which is 2^bits or
//! sqrt(2) 2^bits in units of the lattice. Rounding to it moves the distance of two vectors by at most 1 in every
//! coordinate, s in all. ∎

use std::ops::RangeInclusive;

use super::spelled::Spelled;
use super::{BadParameter, Statistic, checked_bits, checked_radius};
use crate::numeric::block::{Block, Coordinate, Lying};
use crate::numeric::dispatch::Kernel;
use crate::numeric::distance::{
    FEW, Few, GROUP, Many, all_usual, by_dimension, distances, side_by_side, with_dimension,
};
use crate::numeric::float_scale::{finite, norm, rescale, scale};
use crate::release::exact::Exact;
use crate::release::sensitivity::Sensitivity;
use crate::runtime::identity::Identity;
use crate::runtime::parallel_fold::sum_lying;
use crate::runtime::points::Points;
use crate::runtime::pulse::{Interrupted, Pulse};

/// Coordinates of a record's vector are multiples of 2^-20, and its products of 2^-40.
const VECTOR_BITS: u32 = 20;

/// Finer lattices than that of the products would show nothing more.
pub const BITS_MAX: u32 = 2 * VECTOR_BITS;

/// The diagonal has a factor of 2^30, so that sqrt(2) times it is nearly an integer.
const FACTOR_BITS: u32 = 30;

/// The factor off the diagonal: the largest integer whose square is at most 2 * 2^60.
const OFF_DIAGONAL: i128 = 1_518_500_249;

/// In more dimensions the proof would need other constants.
pub const DIMENSION_MAX: usize = 4000;

/// Records of a block: two panels of their vectors fit a first-level cache.
const BLOCK: usize = 1 << 8;

/// Records of a block in few dimensions, at most: as many as the sums of their products are exact for.
const BLOCK_FEW: usize = 1 << 12;

/// Four coordinates are multiplied by the eight of a panel at a time: the sums stay in registers.
const ROWS: usize = 4;
const COLUMNS: usize = 8;

/// In few dimensions two coordinates are multiplied by four others at a time, this many records side by side.
const TILE: (usize, usize) = (2, 4);
const LANES: usize = 4;

/// Tiles that cover the upper triangle of [`FEW`] coordinates.
const TILES: usize = 20;

/// Distances at which neither the factor nor its product with a difference over- or underflows.
const USUAL: RangeInclusive<f64> = f64::from_bits((1023 - 480) << 52)..=f64::from_bits((1023 + 480) << 52);

/// The sum over records of w u u^T, in units of 2^-bits.
#[derive(Debug, Clone, PartialEq)]
pub struct SecondMoments {
    identity: Identity,
    theta: Vec<f64>,
    radius: Option<f64>,
    bits: u32,
}

impl SecondMoments {
    /// The radius, if there is one, is positive and finite; bits are at most [`BITS_MAX`] and dimensions at most
    /// [`DIMENSION_MAX`].
    pub fn new(theta: &[f64], radius: Option<f64>, bits: u32) -> Result<Self, BadParameter> {
        let bits = checked_bits(bits, BITS_MAX)?;
        let radius = radius.map(checked_radius).transpose()?;
        if theta.len() > DIMENSION_MAX {
            return Err(BadParameter(format!("second moments have at most {DIMENSION_MAX} dimensions")));
        }
        Ok(Self { identity: Identity::fresh(), theta: theta.iter().copied().map(finite).collect(), radius, bits })
    }

    /// The sensitivity in `d` dimensions, by the proof above, with room for the rounding of this very formula.
    pub fn bound(d: usize, bits: u32) -> Sensitivity {
        let (unit, rounding) = (f64::from(bits).exp2(), (entries(d) as f64).sqrt());
        let up = |x: f64| x * (1.0 + 4.0 * f64::EPSILON);
        Sensitivity::of_sum(up(unit + rounding), up(std::f64::consts::SQRT_2 * unit + rounding))
    }
}

/// Small inputs are split further, so that every thread has work; multiples of a group leave no record alone.
fn records_per_block(n: usize, d: usize) -> usize {
    if d <= FEW { n.div_ceil(8).next_multiple_of(GROUP).clamp(BLOCK, BLOCK_FEW) } else { BLOCK }
}

/// Entries of the upper triangle.
fn entries(d: usize) -> usize {
    d * (d + 1) / 2
}

impl Statistic for SecondMoments {
    fn name(&self) -> &'static str {
        "second moments"
    }

    fn dimension(&self) -> Option<usize> {
        Some(self.theta.len())
    }

    fn adds_over_records(&self) -> bool {
        true
    }

    fn sensitivity(&self) -> Sensitivity {
        Self::bound(self.theta.len(), self.bits)
    }

    fn identity(&self) -> Identity {
        self.identity
    }

    fn spelled(&self) -> Option<Spelled> {
        Some(Spelled {
            floats: [&[self.radius.unwrap_or(f64::NAN)], self.theta.as_slice()].concat(),
            numbers: vec![self.bits.into()],
        })
    }

    fn exact(&self, points: &Points, pulse: &mut dyn Pulse) -> Result<Exact, Interrupted> {
        let (d, theta, radius) = (points.d(), self.theta.as_slice(), self.radius);
        assert_eq!(theta.len(), d, "theta has another dimension than the points");
        // A record is looked at once for every panel of coordinates, which the pulse should know.
        let coordinates = d * d.div_ceil(2 * COLUMNS).max(1);
        let mut total =
            sum_lying(points, coordinates, records_per_block(points.n(), d), entries(d), pulse, |total, block| {
                match block {
                    Lying::Doubles(block) => by_dimension(d, BlockMoments { block, theta, radius, total }),
                    Lying::Singles(block) => by_dimension(d, BlockMoments { block, theta, radius, total }),
                }
            })?;
        let mut rows = total.as_mut_slice();
        for row in 0..d {
            let (entries, below) = rows.split_at_mut(d - row);
            rows = below;
            entries[0] <<= FACTOR_BITS;
            entries[1..].iter_mut().for_each(|entry| *entry *= OFF_DIAGONAL);
        }
        Ok(Exact::rounded(total, BITS_MAX + FACTOR_BITS - self.bits, self.sensitivity()))
    }
}

/// Adds the products of a block's integer vectors to the total, the upper triangle row by row.
struct BlockMoments<'a, T> {
    block: Block<'a, T>,
    theta: &'a [f64],
    radius: Option<f64>,
    total: &'a mut [i64],
}

impl<T: Coordinate> Kernel for Few<BlockMoments<'_, T>> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let BlockMoments { block, theta, radius, total } = self.0;
        with_dimension!(theta.len(), few, (block, theta, radius, total));
    }
}

impl<T: Coordinate> Kernel for Many<BlockMoments<'_, T>> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let BlockMoments { block, theta, radius, total } = self.0;
        many(block, theta, radius, total);
    }
}

/// Lanes over the records: the vectors of a block lie coordinate by coordinate. Products are summed in tiles of two
/// coordinates by four, which fit the registers; the last tiles reach into coordinates that are zero.
#[inline(always)]
fn few<const D: usize>(block: Block<'_, impl Coordinate>, theta: &[f64], radius: Option<f64>, total: &mut [i64]) {
    let theta: &[f64; D] = theta.try_into().expect("the dimension was matched");
    let (mut differences, mut squares) = ([[0.0; GROUP]; D], [0.0; GROUP]);
    let mut vectors = [[[0.0; LANES]; GROUP / LANES]; FEW + TILE.1];
    let mut tiles = [[[[0.0; LANES]; TILE.1]; TILE.0]; TILES];
    let (groups, rest) = block.coordinates().as_chunks::<D>().0.as_chunks::<GROUP>();
    for group in groups {
        side_by_side(group, theta, &mut differences, &mut squares);
        if !all_usual(&squares) {
            singles(Block::new(group.as_flattened(), D, GROUP), theta, radius, total);
            continue;
        }
        let factors = squares.map(|square| factor(square.sqrt(), radius));
        for (vector, row) in vectors.iter_mut().zip(&differences) {
            for ((slot, x), factor) in vector.as_flattened_mut().iter_mut().zip(row).zip(&factors) {
                *slot = (x * factor).trunc();
            }
        }
        let mut tile = tiles.iter_mut();
        for i in (0..D).step_by(TILE.0) {
            for j in (i..D).step_by(TILE.1) {
                multiply_tile(&vectors[i..], &vectors[j..], tile.next().expect("a tile for each"));
            }
        }
    }
    let mut tile = tiles.iter();
    for i in (0..D).step_by(TILE.0) {
        for j in (i..D).step_by(TILE.1) {
            for (row, sums) in tile.next().expect("a tile for each").iter().enumerate() {
                for (column, sum) in sums.iter().enumerate() {
                    let (i, j) = (i + row, j + column);
                    if i <= j && j < D {
                        total[i * D - i * (i + 1) / 2 + j] += sum.iter().sum::<f64>() as i64;
                    }
                }
            }
        }
    }
    singles(Block::new(rest.as_flattened(), D, rest.len()), theta, radius, total);
}

/// Records beside no whole group, or in an unusual one: few, so they are not compiled anew for every dimension.
#[inline(never)]
fn singles(block: Block<'_, impl Coordinate>, theta: &[f64], radius: Option<f64>, total: &mut [i64]) {
    many(block, theta, radius, total);
}

/// Adds the products of two coordinates and four others over a group of records, record by record in their lanes.
#[inline(always)]
fn multiply_tile(
    these: &[[[f64; LANES]; GROUP / LANES]],
    those: &[[[f64; LANES]; GROUP / LANES]],
    sums: &mut [[[f64; LANES]; TILE.1]; TILE.0],
) {
    let (these, those): (&[_; TILE.0], &[_; TILE.1]) =
        (these.first_chunk().expect("zeros follow"), those.first_chunk().expect("zeros follow"));
    let mut tile = *sums;
    for r in 0..GROUP / LANES {
        for i in 0..TILE.0 {
            for j in 0..TILE.1 {
                for l in 0..LANES {
                    tile[i][j][l] += these[i][r][l] * those[j][r][l];
                }
            }
        }
    }
    *sums = tile;
}

/// Lanes over the coordinates: the vectors of a block lie in panels, whose products are summed four rows at a time.
#[inline(always)]
fn many<T: Coordinate>(block: Block<'_, T>, theta: &[f64], radius: Option<f64>, total: &mut [i64]) {
    let (d, n) = (theta.len(), block.n());
    if n == 0 {
        return;
    }
    let doubles = T::doubles(block.coordinates());
    let block = Block::new(&doubles, d, n);
    let panels = vectors(block, theta, radius);
    let per_row = panels.len() / n;
    let mut products = vec![[0.0; COLUMNS]; d.next_multiple_of(ROWS) * per_row];
    for first in (0..d).step_by(ROWS) {
        let these = &panels[first / COLUMNS * n..][..n];
        for (panel, those) in panels.chunks_exact(n).enumerate().skip(first / COLUMNS) {
            let sums = if first % COLUMNS == 0 { multiply::<0>(these, those) } else { multiply::<ROWS>(these, those) };
            for i in 0..ROWS {
                products[(first + i) * per_row + panel] = sums[i];
            }
        }
    }
    let mut rows = total;
    for i in 0..d {
        let (entries, below) = rows.split_at_mut(d - i);
        let sums = products[i * per_row..][..per_row].as_flattened();
        entries.iter_mut().zip(&sums[i..d]).for_each(|(entry, sum)| *entry += *sum as i64);
        rows = below;
    }
}

/// The sums over the records of the products of four coordinates of one panel, from `FIRST` on, and all of another.
#[inline(always)]
fn multiply<const FIRST: usize>(these: &[[f64; COLUMNS]], those: &[[f64; COLUMNS]]) -> [[f64; COLUMNS]; ROWS] {
    let mut sums = [[0.0; COLUMNS]; ROWS];
    for (a, b) in these.iter().zip(those) {
        for i in 0..ROWS {
            for j in 0..COLUMNS {
                sums[i][j] += a[FIRST + i] * b[j];
            }
        }
    }
    sums
}

/// The integer vectors of the records of a block, in panels of eight coordinates and zeros; a panel has all records, one
/// after the other, so that products run through memory in order.
#[inline(always)]
fn vectors(block: Block<'_>, theta: &[f64], radius: Option<f64>) -> Vec<[f64; COLUMNS]> {
    let (d, n) = (theta.len(), block.n());
    let mut panels = vec![[0.0; COLUMNS]; d.div_ceil(COLUMNS) * n];
    let distances = distances(block, theta);
    let factors: Vec<f64> = distances.iter().map(|distance| factor(*distance, radius)).collect();
    for (index, (record, &factor)) in block.records().zip(&factors).enumerate() {
        let vector = |(t, x): (&f64, &f64)| ((t - x) * factor).trunc();
        let (theta, theta_rest) = theta.as_chunks::<COLUMNS>();
        let (record, record_rest) = record.as_chunks::<COLUMNS>();
        for (panel, (theta, record)) in theta.iter().zip(record).enumerate() {
            panels[panel * n + index] = std::array::from_fn(|j| vector((&theta[j], &record[j])));
        }
        if !theta_rest.is_empty() {
            let coordinates = theta_rest.iter().zip(record_rest).map(vector);
            panels[theta.len() * n + index].iter_mut().zip(coordinates).for_each(|(slot, x)| *slot = x);
        }
    }
    for (index, _) in distances.iter().enumerate().filter(|(_, distance)| !USUAL.contains(distance)) {
        let record = &block.coordinates()[index * d..(index + 1) * d];
        let difference = theta.iter().zip(record).map(|(t, x)| t - x).collect();
        for (j, x) in unusual(difference, radius).into_iter().enumerate() {
            panels[j / COLUMNS * n + index][j % COLUMNS] = x;
        }
    }
    panels
}

/// What a difference is multiplied by at this distance: sqrt(w) 2^20/r.
#[inline(always)]
fn factor(distance: f64, radius: Option<f64>) -> f64 {
    const ONE: f64 = (1u64 << VECTOR_BITS) as f64;
    match radius {
        None => ONE / distance,
        Some(radius) => {
            let beyond = ONE * (radius / distance).sqrt() / distance;
            if distance > radius { beyond } else { 0.0 }
        }
    }
}

/// The integer vector of a record so near or so far that factors would over- or underflow.
#[cold]
#[inline(never)]
fn unusual(mut difference: Vec<f64>, radius: Option<f64>) -> Vec<f64> {
    let Some(power) = rescale(&mut difference) else { return difference };
    // A radius that becomes infinite or zero here is far beyond the distance, or far below it.
    let factor = factor(norm(&difference), radius.map(|radius| scale(radius, power)));
    difference.iter_mut().for_each(|x| *x = (*x * factor).trunc());
    difference
}

#[cfg(test)]
mod tests {
    use nalgebra::DMatrix;
    use proptest::prelude::*;

    use super::*;
    use crate::numeric::distance::portable_by_dimension;
    use crate::release::sensitivity::Neighbours;
    use crate::runtime::pool;
    use crate::statistics::tests::values;

    fn moments(points: &DMatrix<f64>, theta: &[f64], radius: Option<f64>, bits: u32) -> Vec<i64> {
        values(&SecondMoments::new(theta, radius, bits).unwrap(), points)
    }

    fn of(points: &DMatrix<f64>) -> Block<'_> {
        Block::new(points.as_slice(), points.nrows(), points.ncols())
    }

    /// The totals of one block, upper triangle.
    fn block_total(points: &DMatrix<f64>, theta: &[f64], radius: Option<f64>) -> Vec<i64> {
        let mut total = vec![0; entries(theta.len())];
        portable_by_dimension(theta.len(), BlockMoments { block: of(points), theta, radius, total: &mut total });
        total
    }

    /// Where the diagonal lies in the upper triangle.
    fn diagonal(d: usize) -> impl Iterator<Item = usize> {
        (0..d).map(move |i| i * d - i * (i + 1) / 2 + i)
    }

    /// The magnitudes at which something over- or underflows, and ordinary ones.
    fn value() -> impl Strategy<Value = f64> {
        let power = (-1074i32..1000).prop_map(|e| -scale(1.0, e));
        prop_oneof![4 => -2.0..2.0f64, 2 => power, 1 => Just(0.0), 1 => Just(5e-324), 1 => Just(1e300)]
    }

    #[test]
    fn the_factor_off_the_diagonal_is_the_largest_below_the_root_of_two() {
        assert!(OFF_DIAGONAL.pow(2) <= 2 << (2 * FACTOR_BITS));
        assert!((OFF_DIAGONAL + 1).pow(2) > 2 << (2 * FACTOR_BITS));
    }

    #[test]
    fn one_record_gives_the_products_of_its_direction() {
        let points = DMatrix::from_column_slice(3, 1, &[-3.0, 0.0, -4.0]);
        let near = |value: i64, expected: f64| (value as f64 / 2f64.powi(40) - expected).abs() < 1e-5;
        let root = std::f64::consts::SQRT_2;
        let unit = [0.36, 0.0, 0.48 * root, 0.0, 0.0, 0.64];
        let whole = moments(&points, &[0.0; 3], None, 40);
        assert!(whole.iter().zip(unit).all(|(value, expected)| near(*value, expected)), "{whole:?}");
        let tenth = moments(&points, &[0.0; 3], Some(0.5), 40);
        assert!(tenth.iter().zip(unit).all(|(value, expected)| near(*value, 0.1 * expected)), "{tenth:?}");
        for radius in [5.0, 6.0, f64::MAX] {
            assert_eq!(moments(&points, &[0.0; 3], Some(radius), 40), [0; 6], "within the radius");
        }
        assert_eq!(moments(&points, &[-3.0, 0.0, -4.0], None, 40), [0; 6], "at theta");
    }

    #[test]
    fn far_and_near_records_have_directions() {
        for power in (-1074..=999).step_by(7) {
            let points = DMatrix::from_element(1, 1, scale(1.0, power));
            assert_eq!(moments(&points, &[0.0], None, 40), [1 << 40], "2^{power}");
            // A quarter of the distance, where that is a number.
            let radius = scale(1.0, power - 2);
            if radius > 0.0 {
                assert_eq!(moments(&points, &[0.0], Some(radius), 40), [1 << 38], "2^{power}");
            }
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
            let total = block_total(&points, &vec![0.0; d], radius.map(|e| scale(1.0, e)));
            let trace: i64 = diagonal(d).map(|entry| total[entry]).sum();
            prop_assert!((0..=1 << 40).contains(&trace), "{}", trace);
        }

        #[test]
        fn a_replaced_record_moves_it_by_at_most_the_sensitivity(
            d in prop_oneof![1usize..12, Just(37usize)],
            coordinates in prop::collection::vec(value(), 37 * 5),
            octave in prop::option::of(-1020i32..1000),
            bits in 0u32..=40,
        ) {
            let record = |k: usize| &coordinates[k * 37..k * 37 + d];
            let radius = octave.map(|e| scale(1.0, e));
            let at = |records: &[&[f64]]| {
                let points = DMatrix::from_column_slice(d, records.len(), &records.concat());
                moments(&points, record(4), radius, bits)
            };
            let moved = |a: &[i64], b: &[i64]| a.iter().zip(b).map(|(a, b)| ((a - b) as f64).powi(2)).sum::<f64>().sqrt();
            let (here, there) = (at(&[record(0), record(1), record(2)]), at(&[record(0), record(1), record(3)]));
            let fewer = at(&[record(0), record(1)]);
            let bound = SecondMoments::bound(d, bits);
            prop_assert!(moved(&here, &there) <= bound.under(Neighbours::Replace));
            prop_assert!(moved(&here, &fewer) <= bound.under(Neighbours::AddRemove));
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
            let mut expected = vec![0i64; entries(d)];
            for record in 0..n {
                let one = block_total(&points.columns(record, 1).into_owned(), &theta, radius);
                expected.iter_mut().zip(one).for_each(|(sum, one)| *sum += one);
            }
            prop_assert_eq!(&block_total(&points, &theta, radius), &expected);
            let mut total = vec![0; entries(d)];
            by_dimension(theta.len(), BlockMoments { block: of(&points), theta: &theta, radius, total: &mut total });
            prop_assert_eq!(total, expected);
        }
    }

    /// Two records in opposite corners of the Frobenius ball: the bound has nothing to spare but its rounding.
    #[test]
    fn the_sensitivities_are_attained() {
        let at =
            |records: &[f64]| moments(&DMatrix::from_column_slice(2, records.len() / 2, records), &[0.0; 2], None, 30);
        let moved = |a: &[i64], b: &[i64]| a.iter().zip(b).map(|(a, b)| ((a - b) as f64).powi(2)).sum::<f64>().sqrt();
        let bound = SecondMoments::bound(2, 30);
        assert!(moved(&at(&[1.0, 0.0]), &at(&[0.0, 1.0])) >= bound.under(Neighbours::Replace) - 3.0);
        assert!(moved(&at(&[1.0, 0.0]), &at(&[])) >= bound.under(Neighbours::AddRemove) - 3.0);
    }

    #[test]
    fn the_sum_is_that_of_plain_doubles_for_any_number_of_threads() {
        let (d, n, radius) = (11, 5000, 0.9);
        let points = DMatrix::from_fn(d, n, |i, j| ((i * 7919 + j * 104_729) % 1000) as f64 / 997.0);
        let theta = vec![0.4; d];
        let with = |threads| {
            pool::set_threads(Some(threads));
            let found = moments(&points, &theta, Some(radius), 30);
            pool::set_threads(None);
            found
        };
        let found = with(1);
        assert_eq!(found, with(4));
        let mut entry = found.iter();
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
                // Every coordinate is off by at most 2^-20, and a record has a norm of at most 1.
                assert!((value - expected).abs() < 2.0 * n as f64 * 2f64.powi(-20), "{i} {j}: {value} {expected}");
            }
        }
    }
}
