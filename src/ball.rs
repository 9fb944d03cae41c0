//! Ball counts: how many records lie within a radius of each record, for all radii in one pass over the pairs.
//!
//! | paper | here |
//! |---|---|
//! | N_i(nu) | a row of [`counts`] |
//! | m N(nu) | [`top_sums`]: the sum of the m largest counts, kept an integer |
//!
//! **The predicate.** Records x and y lie within nu of each other iff
//!
//! ```text
//! ((0 + q_1) + q_2) + ... + q_d <= t      q_c = ((x_c - y_c) s)^2,   t = (nu s)^2,   s = s(nu) a power of two,
//! ```
//!
//! every operation rounded to the nearest double, coordinates in their order. It is a symmetric function of the two
//! records and the radius alone: it depends neither on the other radii, nor on the position of a record, nor on the
//! number of threads, nor on the instruction set. The scale s keeps nu s between 2^-126 and 2^126 (between 2^-75 and
//! 2^126 for the smallest radii), so a square that overflows belongs to a pair that is far outside, a square that
//! underflows is beneath notice, and any finite doubles are safe. Radii of the same *band* of 2^250 share a scale, so an
//! ordinary grid needs one pass; for a nu between 2^-125 and 2^125 the scale is 1.
//!
//! **Speed.** A pair is looked at once, for both of its records. Pairs are computed in tiles of 4 rows by 8 columns, with
//! lanes over columns, so that every instruction set adds the coordinates in the same order. The smallest and largest
//! sum of a tile bound its radii in question: below them no pair of the tile is inside, above them all are, and between
//! them (one or two radii, mostly) the tile is compared and counted without a branch. Many records in few dimensions are
//! counted by [`crate::tree`], with the same counts.

use std::ops::Range;
use std::sync::Mutex;

use nalgebra::{DMatrix, DMatrixView};
use rayon::prelude::*;

use crate::dispatch::{self, Kernel};
use crate::pool;
use crate::pulse::{Interrupted, Pulse};
use crate::tree;

/// Rows of a tile.
pub(crate) const ROWS: usize = 4;
/// Columns of a tile: one register of AVX-512, two of AVX2.
pub(crate) const COLUMNS: usize = 8;
/// Sums of squares of a tile of pairs.
pub(crate) type Tile = [[f64; COLUMNS]; ROWS];

/// Coordinates that are packed at a time: a block of columns then fits in a second-level cache.
const CHUNK: usize = 128;
/// Most records in a block.
const BLOCK: usize = 256;
/// Rows whose tiles are kept while the coordinates come in several chunks.
const GROUP: usize = 64;
/// Above this many radii in question the pairs of a tile are looked up one by one.
const WIDE: usize = 12;

/// Consecutive radii that share a scale, with what it takes to find the bucket of a pair.
pub(crate) struct Band {
    /// Index of the first of these radii among all.
    pub(crate) first: usize,
    /// The power of two s.
    pub(crate) scale: f64,
    /// The thresholds t, ascending.
    pub(crate) thresholds: Vec<f64>,
    /// `below[e]`: how many thresholds have a biased exponent less than e.
    below: Vec<u32>,
}

impl Band {
    /// Splits ascending radii into bands.
    pub(crate) fn split(radii: &[f64]) -> Vec<Band> {
        let mut bands: Vec<Band> = Vec::new();
        for (index, &radius) in radii.iter().enumerate() {
            let scale = scale(radius);
            if bands.last().is_none_or(|band| band.scale != scale) {
                bands.push(Band { first: index, scale, thresholds: Vec::new(), below: Vec::new() });
            }
            let threshold = (radius * scale) * (radius * scale);
            bands.last_mut().expect("a band was just pushed").thresholds.push(threshold);
        }
        for band in &mut bands {
            band.below =
                (0..=2048).map(|e| band.thresholds.partition_point(|t| t.to_bits() >> 52 < e) as u32).collect();
        }
        bands
    }

    /// Turns a record's histogram over these radii into its counts.
    pub(crate) fn store(&self, histogram: &[u32], counts: &mut DMatrix<u32>, record: usize) {
        let mut sum = 0u32;
        let mut column = counts.column_mut(record);
        for (count, bucket) in column.as_mut_slice()[self.first..].iter_mut().zip(histogram) {
            sum = sum.wrapping_add(*bucket);
            *count = sum;
        }
    }

    /// The number of thresholds below a sum of squares: the first radius that has the pair inside.
    #[inline(always)]
    pub(crate) fn bucket(&self, sum: f64) -> usize {
        let exponent = (sum.to_bits() >> 52) as usize & 2047;
        let (from, to) = (self.below[exponent] as usize, self.below[exponent + 1] as usize);
        from + self.thresholds[from..to].partition_point(|&t| t < sum)
    }
}

/// The scale s(nu): the power of two 2^(-250 b) with b the nearest integer to (exponent of nu)/250.
fn scale(radius: f64) -> f64 {
    // Zero and the subnormals have the exponent -1023 here and fall into the lowest band, as they should.
    let exponent = (radius.to_bits() >> 52) as i64 - 1023;
    let band = (exponent + 125).div_euclid(250);
    f64::from_bits(((1023 - 250 * band) as u64) << 52)
}

/// Whether two records lie within a radius of each other: the predicate of this file, plainly.
pub fn within(x: &[f64], y: &[f64], radius: f64) -> bool {
    let scale = scale(radius);
    let sum = x.iter().zip(y).fold(0.0, |sum, (x, y)| {
        let step = (x - y) * scale;
        sum + step * step
    });
    sum <= (radius * scale) * (radius * scale)
}

/// Adds the squares of some coordinates to a tile, one coordinate after the other.
#[inline(always)]
pub(crate) fn accumulate(tile: &mut Tile, rows: &[[f64; ROWS]], columns: &[[f64; COLUMNS]], scale: f64) {
    let mut sums = *tile;
    for (row, column) in rows.iter().zip(columns) {
        for r in 0..ROWS {
            for c in 0..COLUMNS {
                let step = (column[c] - row[r]) * scale;
                sums[r][c] += step * step;
            }
        }
    }
    *tile = sums;
}

/// The same with scale 1, where the product is the identity.
#[inline(always)]
pub(crate) fn accumulate_unscaled(tile: &mut Tile, rows: &[[f64; ROWS]], columns: &[[f64; COLUMNS]]) {
    let mut sums = *tile;
    for (row, column) in rows.iter().zip(columns) {
        for r in 0..ROWS {
            for c in 0..COLUMNS {
                let step = column[c] - row[r];
                sums[r][c] += step * step;
            }
        }
    }
    *tile = sums;
}

/// The least and the largest sum of a tile.
#[inline(always)]
pub(crate) fn extremes(tile: &Tile) -> (f64, f64) {
    let (mut low, mut high) = (tile[0], tile[0]);
    for row in &tile[1..] {
        for c in 0..COLUMNS {
            low[c] = if row[c] < low[c] { row[c] } else { low[c] };
            high[c] = if row[c] > high[c] { row[c] } else { high[c] };
        }
    }
    let (mut least, mut largest) = (low[0], high[0]);
    for c in 1..COLUMNS {
        least = if low[c] < least { low[c] } else { least };
        largest = if high[c] > largest { high[c] } else { largest };
    }
    (least, largest)
}

/// Pairs inside, per radius, for the rows of a strip of tiles.
///
/// `inside[k]` counts, in four lanes per row, the pairs compared with radius k; `full[k]` the pairs per row of tiles that
/// are inside from radius k on, the same for all rows.
pub(crate) struct RowTally {
    pub(crate) inside: Vec<[[u64; 4]; ROWS]>,
    pub(crate) full: Vec<u32>,
}

impl RowTally {
    pub(crate) fn new(radii: usize) -> Self {
        Self { inside: vec![[[0; 4]; ROWS]; radii + 1], full: vec![0; radii + 1] }
    }

    /// Moves the tally of one row into its histogram.
    #[inline(always)]
    pub(crate) fn drain(&mut self, row: usize, histogram: &mut [u32]) {
        let mut before = 0u32;
        for (k, bucket) in histogram.iter_mut().enumerate() {
            let lanes = self.inside[k][row];
            let inside = (lanes[0] + lanes[1] + lanes[2] + lanes[3]) as u32;
            *bucket = bucket.wrapping_add(inside).wrapping_sub(before).wrapping_add(self.full[k]);
            before = inside;
        }
    }

    pub(crate) fn clear(&mut self) {
        self.inside.fill([[0; 4]; ROWS]);
        self.full.fill(0);
    }
}

/// Counts a tile whose pairs have buckets from `low` to `high`, for its rows and, if asked, for its columns.
#[inline(always)]
pub(crate) fn tally(
    tile: &Tile,
    thresholds: &[f64],
    (low, high): (usize, usize),
    rows: &mut RowTally,
    columns: Option<(&mut [[u64; COLUMNS]], &mut [u32])>,
) {
    rows.full[high] += COLUMNS as u32;
    if let Some((inside, full)) = columns {
        full[high] += ROWS as u32;
        let strips = thresholds[low..high].iter().zip(&mut rows.inside[low..high]).zip(&mut inside[low..high]);
        for ((&threshold, row_tally), column_tally) in strips {
            let mut sums = [0u64; COLUMNS];
            for r in 0..ROWS {
                let mut hits = [0u64; COLUMNS];
                for c in 0..COLUMNS {
                    hits[c] = u64::from(tile[r][c] <= threshold);
                    sums[c] += hits[c];
                }
                for c in 0..4 {
                    row_tally[r][c] += hits[c] + hits[c + 4];
                }
            }
            for c in 0..COLUMNS {
                column_tally[c] += sums[c];
            }
        }
    } else {
        for (&threshold, row_tally) in thresholds[low..high].iter().zip(&mut rows.inside[low..high]) {
            for r in 0..ROWS {
                for c in 0..4 {
                    row_tally[r][c] += u64::from(tile[r][c] <= threshold) + u64::from(tile[r][c + 4] <= threshold);
                }
            }
        }
    }
}

/// Buffers of a thread.
#[derive(Default)]
struct Scratch {
    rows: Vec<[f64; ROWS]>,
    columns: Vec<[f64; COLUMNS]>,
    tiles: Vec<Tile>,
    column_inside: Vec<[u64; COLUMNS]>,
    column_full: Vec<u32>,
    row_histogram: Vec<u32>,
    column_histogram: Vec<u32>,
}

/// Packs some coordinates of records side by side, `WIDTH` records at a time; what is missing lies at `padding`, which is
/// infinite, so that it is inside no ball.
#[inline(always)]
pub(crate) fn pack<const WIDTH: usize>(
    points: DMatrixView<'_, f64>,
    records: Range<usize>,
    coordinates: Range<usize>,
    padding: f64,
    packed: &mut Vec<[f64; WIDTH]>,
) {
    packed.clear();
    packed.resize(records.len().div_ceil(WIDTH) * coordinates.len(), [padding; WIDTH]);
    for (index, record) in records.enumerate() {
        let column = points.column(record);
        let strip = &mut packed[index / WIDTH * coordinates.len()..][..coordinates.len()];
        for (slot, &value) in strip.iter_mut().zip(&column.as_slice()[coordinates.clone()]) {
            slot[index % WIDTH] = value;
        }
    }
}

/// All pairs between two blocks of records, or within one.
struct BlockPair<'a> {
    points: DMatrixView<'a, f64>,
    band: &'a Band,
    rows: Range<usize>,
    columns: Range<usize>,
    scratch: &'a mut Scratch,
}

impl Kernel for BlockPair<'_> {
    type Output = ();

    /// Leaves the histograms of the rows and of the columns in the scratch; within one block the rows have it all.
    #[inline(always)]
    fn run(self) {
        let Self { points, band, rows, columns, scratch } = self;
        let (dimension, radii) = (points.nrows(), band.thresholds.len());
        let diagonal = rows == columns;
        let panels = columns.len().div_ceil(COLUMNS);
        scratch.row_histogram.clear();
        scratch.row_histogram.resize(rows.len() * radii, 0);
        scratch.column_histogram.clear();
        scratch.column_histogram.resize(columns.len() * radii, 0);
        scratch.column_inside.clear();
        scratch.column_inside.resize(panels * radii, [0; COLUMNS]);
        scratch.column_full.clear();
        scratch.column_full.resize(panels * (radii + 1), 0);
        let mut row_tally = RowTally::new(radii);

        let chunk = dimension.min(CHUNK);
        let single = dimension <= CHUNK;
        let group = if single { ROWS } else { GROUP };
        if single {
            pack(points, columns.clone(), 0..dimension, f64::INFINITY, &mut scratch.columns);
        }
        for start in (0..rows.len()).step_by(group) {
            let group_rows = rows.start + start..(rows.start + start + group).min(rows.end);
            let quads = group_rows.len().div_ceil(ROWS);
            // Within one block the panels left of a row's own were counted from the other side.
            let skip = |quad: usize| if diagonal { (start + quad * ROWS) / COLUMNS } else { 0 };
            scratch.tiles.clear();
            scratch.tiles.resize(quads * panels, [[0.0; COLUMNS]; ROWS]);
            for from in (0..dimension).step_by(chunk.max(1)) {
                let coordinates = from..(from + chunk).min(dimension);
                let depth = coordinates.len();
                pack(points, group_rows.clone(), coordinates.clone(), f64::NEG_INFINITY, &mut scratch.rows);
                if !single {
                    pack(points, columns.clone(), coordinates, f64::INFINITY, &mut scratch.columns);
                }
                for quad in 0..quads {
                    let packed = &scratch.rows[quad * depth..][..depth];
                    let first = skip(quad);
                    let strips = scratch.columns[first * depth..].chunks_exact(depth);
                    for (tile, strip) in
                        scratch.tiles[quad * panels + first..(quad + 1) * panels].iter_mut().zip(strips)
                    {
                        if band.scale == 1.0 {
                            accumulate_unscaled(tile, packed, strip);
                        } else {
                            accumulate(tile, packed, strip, band.scale);
                        }
                    }
                }
            }
            for quad in 0..quads {
                let first_row = start + quad * ROWS;
                let first = skip(quad);
                row_tally.clear();
                for (panel, tile) in scratch.tiles[quad * panels..(quad + 1) * panels].iter().enumerate().skip(first) {
                    let (least, largest) = extremes(tile);
                    let (low, high) = (band.bucket(least), band.bucket(largest));
                    let own = diagonal && panel == first;
                    if high - low <= WIDE {
                        let sides = (!own).then_some((
                            &mut scratch.column_inside[panel * radii..][..radii],
                            &mut scratch.column_full[panel * (radii + 1)..][..radii + 1],
                        ));
                        tally(tile, &band.thresholds, (low, high), &mut row_tally, sides);
                    } else {
                        for (r, sums) in tile.iter().enumerate() {
                            for (c, &sum) in sums.iter().enumerate() {
                                let bucket = band.bucket(sum);
                                if bucket < radii {
                                    scratch.row_histogram[(first_row + r) * radii + bucket] += 1;
                                    if !own {
                                        scratch.column_histogram[(panel * COLUMNS + c) * radii + bucket] += 1;
                                    }
                                }
                            }
                        }
                    }
                }
                let last = (first_row + ROWS).min(rows.len());
                for (r, histogram) in
                    scratch.row_histogram[first_row * radii..last * radii].chunks_exact_mut(radii).enumerate()
                {
                    row_tally.drain(r, histogram);
                }
            }
        }
        for (column, histogram) in scratch.column_histogram.chunks_exact_mut(radii).enumerate() {
            let (panel, lane) = (column / COLUMNS, column % COLUMNS);
            let mut before = 0u32;
            for (k, bucket) in histogram.iter_mut().enumerate() {
                let inside = scratch.column_inside[panel * radii + k][lane] as u32;
                let full = scratch.column_full[panel * (radii + 1) + k];
                *bucket = bucket.wrapping_add(inside).wrapping_sub(before).wrapping_add(full);
                before = inside;
            }
        }
    }
}

/// Adds one array of histograms to another; single buckets may wrap, their sums do not.
pub(crate) fn merge(total: &Mutex<Vec<u32>>, part: &[u32]) {
    let mut total = total.lock().unwrap_or_else(|e| e.into_inner());
    for (total, part) in total.iter_mut().zip(part) {
        *total = total.wrapping_add(*part);
    }
}

/// Counts by comparing every pair once.
fn plain(
    points: DMatrixView<'_, f64>,
    band: &Band,
    counts: &mut DMatrix<u32>,
    pulse: &mut dyn Pulse,
    portable: bool,
) -> Result<(), Interrupted> {
    let (dimension, n, radii) = (points.nrows(), points.ncols(), band.thresholds.len());
    // Few radii and coordinates make cheap pairs: larger blocks. Small data need blocks for every thread.
    let block = (n / 16).min((1 << 17) / radii.max(1)).min((1 << 21) / dimension.max(1));
    let block = (block / COLUMNS * COLUMNS).clamp(COLUMNS, BLOCK);
    let blocks = n.div_ceil(block);
    let range = |index: usize| index * block..((index + 1) * block).min(n);
    let totals: Vec<_> = (0..blocks).map(|index| Mutex::new(vec![0u32; range(index).len() * radii])).collect();

    let tasks = blocks * (blocks + 1) / 2;
    // About 20 ms of one thread per wave and thread.
    let cost = block * block * (dimension + 12);
    let wave = ((1 << 27) / cost).max(1) * pool::threads();
    for start in (0..tasks).step_by(wave) {
        let end = (start + wave).min(tasks);
        pool::install(|| {
            (start..end).into_par_iter().for_each_init(Scratch::default, |scratch, task| {
                let (row, column) = triangle(task);
                let pair = BlockPair { points, band, rows: range(row), columns: range(column), scratch };
                if portable {
                    dispatch::portable(pair)
                } else {
                    dispatch::vectorised(pair)
                }
                merge(&totals[row], &scratch.row_histogram);
                merge(&totals[column], &scratch.column_histogram);
            })
        });
        pulse.beat(end as f64 / tasks as f64)?;
    }
    for (index, total) in totals.into_iter().enumerate() {
        let total = total.into_inner().unwrap_or_else(|e| e.into_inner());
        for (record, histogram) in range(index).zip(total.chunks_exact(radii)) {
            band.store(histogram, counts, record);
        }
    }
    Ok(())
}

/// The pair (row, column), row <= column, at a place in the order (0, 0), (0, 1), (1, 1), (0, 2), ...
pub(crate) fn triangle(place: usize) -> (usize, usize) {
    let mut column = ((8.0 * place as f64 + 1.0).sqrt() as usize).saturating_sub(1) / 2;
    while (column + 1) * (column + 2) / 2 <= place {
        column += 1;
    }
    while column * (column + 1) / 2 > place {
        column -= 1;
    }
    (place - column * (column + 1) / 2, column)
}

/// The number of records within each radius of each record, itself included: a column per record, a row per radius.
///
/// Radii are finite, not negative and ascending; records are finite; there are fewer than 2^32 of them.
pub fn counts(points: DMatrixView<'_, f64>, radii: &[f64], pulse: &mut dyn Pulse) -> Result<DMatrix<u32>, Interrupted> {
    let kernel = if tree::serves(points) { tree::counts } else { plain };
    counts_by(kernel, points, radii, pulse, false)
}

/// The same counts in the same form, by comparing every pair also where a tree is faster: its yardstick.
pub fn pairwise_counts(
    points: DMatrixView<'_, f64>,
    radii: &[f64],
    pulse: &mut dyn Pulse,
) -> Result<DMatrix<u32>, Interrupted> {
    counts_by(plain, points, radii, pulse, false)
}

/// A way to count the balls of one band.
type Counting = fn(DMatrixView<'_, f64>, &Band, &mut DMatrix<u32>, &mut dyn Pulse, bool) -> Result<(), Interrupted>;

fn counts_by(
    kernel: Counting,
    points: DMatrixView<'_, f64>,
    radii: &[f64],
    pulse: &mut dyn Pulse,
    portable: bool,
) -> Result<DMatrix<u32>, Interrupted> {
    assert!(radii.is_sorted() && radii.iter().all(|r| r.is_finite() && *r >= 0.0), "radii: finite, ascending, >= 0");
    assert!(points.ncols() < 1 << 32, "fewer than 2^32 records");
    let mut counts = DMatrix::zeros(radii.len(), points.ncols());
    for band in Band::split(radii) {
        kernel(points, &band, &mut counts, pulse, portable)?;
    }
    Ok(counts)
}

/// For each radius (a row of `counts`) the sum of the m largest counts.
pub fn top_sums(counts: &DMatrix<u32>, m: usize) -> Vec<u64> {
    let m = m.min(counts.ncols());
    pool::install(|| {
        (0..counts.nrows())
            .into_par_iter()
            .map(|radius| {
                let mut row: Vec<u32> = counts.row(radius).iter().copied().collect();
                if 0 < m && m < row.len() {
                    row.select_nth_unstable_by(m - 1, |a, b| b.cmp(a));
                }
                row[..m].iter().map(|&count| u64::from(count)).sum()
            })
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::pulse::Silent;

    /// The predicate, pair by pair.
    fn oracle(points: &DMatrix<f64>, radii: &[f64]) -> DMatrix<u32> {
        DMatrix::from_fn(radii.len(), points.ncols(), |k, i| {
            let x = points.column(i);
            points.column_iter().filter(|y| within(x.as_slice(), y.as_slice(), radii[k])).count() as u32
        })
    }

    /// Values with many ties and duplicates, now and then subnormal, huge or of any magnitude.
    fn value() -> impl Strategy<Value = f64> {
        prop_oneof![
            6 => (-3i32..4).prop_map(f64::from),
            2 => -2.0..2.0f64,
            1 => (-1074i32..1000, any::<bool>()).prop_map(|(e, sign)| 2f64.powi(e / 2) * 2f64.powi(e - e / 2) * if sign { 1.0 } else { -1.0 }),
            1 => Just(1e-310),
        ]
    }

    fn records(most: usize, dimensions: std::ops::Range<usize>) -> impl Strategy<Value = DMatrix<f64>> {
        (1..most, dimensions).prop_flat_map(|(n, d)| {
            proptest::collection::vec(value(), n * d).prop_map(move |values| DMatrix::from_vec(d, n, values))
        })
    }

    fn radii() -> impl Strategy<Value = Vec<f64>> {
        let doubling = (-4i32..4, 1..20usize).prop_map(|(e, k)| (0..k as i32).map(|i| 2f64.powi(e + i)).collect());
        let integers = (1..30usize).prop_map(|k| (0..k).map(|i| i as f64).collect());
        let any = proptest::collection::vec(prop_oneof![value(), Just(0.0)], 0..40).prop_map(|mut radii: Vec<f64>| {
            radii.iter_mut().for_each(|r| *r = r.abs());
            radii.sort_by(f64::total_cmp);
            radii
        });
        prop_oneof![doubling, integers, any]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn counts_are_those_of_the_predicate_on_every_path((points, radii) in (records(120, 1..12), radii())) {
            let expected = oracle(&points, &radii);
            prop_assert_eq!(&counts(points.as_view(), &radii, &mut Silent).unwrap(), &expected);
            prop_assert_eq!(&counts_by(plain, points.as_view(), &radii, &mut Silent, true).unwrap(), &expected);
        }

        #[test]
        fn coordinates_in_several_chunks_count_the_same((points, radii) in (records(20, 120..400), radii())) {
            prop_assert_eq!(counts(points.as_view(), &radii, &mut Silent).unwrap(), oracle(&points, &radii));
        }

        #[test]
        fn the_predicate_is_right_where_distances_are_exact(
            x in -1000i32..1000, y in -1000i32..1000, e in -1074i32..980, k in 0i32..1500
        ) {
            // On a line, scaled by any power of two, both the distance and the radius are exact.
            let unit = 2f64.powi(e / 2) * 2f64.powi(e - e / 2);
            let inside = (x - y).abs() <= k;
            prop_assert_eq!(within(&[f64::from(x) * unit], &[f64::from(y) * unit], f64::from(k) * unit), inside);
        }

        #[test]
        fn top_sums_are_those_of_a_sort((points, radii, m) in (records(60, 1..4), radii(), 0..70usize)) {
            let counts = counts(points.as_view(), &radii, &mut Silent).unwrap();
            let sorted: Vec<u64> = counts.row_iter().map(|row| {
                let mut row: Vec<u64> = row.iter().map(|&count| u64::from(count)).collect();
                row.sort_unstable();
                row.iter().rev().take(m).sum()
            }).collect();
            prop_assert_eq!(top_sums(&counts, m), sorted);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn a_tree_counts_the_same((points, radii, portable) in (records(300, 1..4), radii(), any::<bool>())) {
            let counts = counts_by(tree::counts, points.as_view(), &radii, &mut Silent, portable).unwrap();
            prop_assert_eq!(counts, oracle(&points, &radii));
        }
    }

    #[test]
    fn a_large_tree_counts_the_same_for_any_threads() {
        // Clusters of all sizes, with duplicates.
        let mut state = 1u64;
        let points = DMatrix::from_fn(2, 5000, |_, i| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            ((state >> 44) as f64 / 1048576.0 - 0.5) * 2f64.powi(i as i32 % 12) + f64::from(i as i32 % 3)
        });
        let radii: Vec<f64> = (-12..12).map(|e| 2f64.powi(e)).collect();
        assert!(tree::serves(points.as_view()));
        let expected = pairwise_counts(points.as_view(), &radii, &mut Silent).unwrap();
        for threads in [1, 2, 4] {
            pool::set_threads(Some(threads));
            assert_eq!(counts(points.as_view(), &radii, &mut Silent).unwrap(), expected);
        }
        pool::set_threads(None);
    }

    #[test]
    fn places_of_the_triangle_are_in_order() {
        let mut place = 0;
        for column in 0..200 {
            for row in 0..=column {
                assert_eq!(triangle(place), (row, column));
                place += 1;
            }
        }
    }

    #[test]
    fn an_interrupt_stops_the_counting() {
        struct Stop;
        impl Pulse for Stop {
            fn beat(&mut self, _done: f64) -> Result<(), Interrupted> {
                Err(Interrupted)
            }
        }
        let points = DMatrix::from_element(2, 100, 1.0);
        assert_eq!(counts(points.as_view(), &[1.0], &mut Stop), Err(Interrupted));
    }
}
