//! Ball counts in any dimension. All pairs are compared, in tiles of 4 rows by 8 columns. Each row and each column
//! stands for a record.
//!
//! Apart from tiles on the diagonal, each pair is compared once and counted for both of its records. The SIMD lanes of
//! a tile hold different columns, never different coordinates of one record. So the order of the additions does not
//! depend on the instruction set. Each pair of a tile has a sum of squares, which is its squared distance. A radius
//! below the smallest distance of a tile contains no pair of the tile, and a radius above the largest distance contains
//! all of its pairs. Only the radii between the two (usually one or two) are compared with every pair, without a
//! branch.

use std::ops::Range;
use std::sync::Mutex;

use nalgebra::{DMatrix, DMatrixView};
use rayon::prelude::*;

use super::bands::{Band, merge, triangle};
use crate::numeric::dispatch::{self, Kernel};
use crate::runtime::pool;
use crate::runtime::pulse::{Interrupted, Pulse};

/// The number of rows of a tile.
pub(crate) const ROWS: usize = 4;
/// The number of columns of a tile. They fill one register of AVX-512, or two registers of AVX2.
pub(crate) const COLUMNS: usize = 8;
/// The squared distance of each pair of a tile.
pub(crate) type Tile = [[f64; COLUMNS]; ROWS];

/// The number of coordinates that are packed together, so that a block of columns fits a second-level cache.
const CHUNK: usize = 128;
/// The largest number of records in a block.
const BLOCK: usize = 256;
/// The number of rows whose tiles are kept while the coordinates are processed in several chunks.
const GROUP: usize = 64;
/// If more radii than this must be compared with a tile, the bucket of each pair is computed separately.
const WIDE: usize = 12;

/// Adds the squared differences of some coordinates to a tile, one coordinate after the other. Each difference is
/// multiplied by `scale`.
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

/// The same as [`accumulate`] for the scale 1, without the multiplication.
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

/// The smallest and the largest squared distance of a tile.
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

/// The number of pairs within each radius, for the four rows of a strip of tiles.
///
/// `inside[k][row]` counts the pairs that were compared with radius k and lie within it, in four partial sums.
/// `full[k]` counts pairs of tiles that lie wholly within radius k but not within the radius before it. It counts the
/// pairs of one row, because all rows of such a tile have equally many pairs.
pub(crate) struct RowCounts {
    pub(crate) inside: Vec<[[u64; 4]; ROWS]>,
    pub(crate) full: Vec<u32>,
}

impl RowCounts {
    pub(crate) fn new(radii: usize) -> Self {
        Self { inside: vec![[[0; 4]; ROWS]; radii + 1], full: vec![0; radii + 1] }
    }

    /// Moves the counts of one row into its histogram.
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

/// Counts the pairs of a tile for its rows and, if `columns` is given, for its columns. The buckets of the pairs lie
/// between `low` and `high`.
#[inline(always)]
fn count_tile(
    tile: &Tile,
    thresholds: &[f64],
    (low, high): (usize, usize),
    rows: &mut RowCounts,
    columns: Option<(&mut [[u64; COLUMNS]], &mut [u32])>,
) {
    rows.full[high] += COLUMNS as u32;
    if let Some((inside, full)) = columns {
        full[high] += ROWS as u32;
        let strips = thresholds[low..high].iter().zip(&mut rows.inside[low..high]).zip(&mut inside[low..high]);
        for ((&threshold, row_counts), column_counts) in strips {
            let mut sums = [0u64; COLUMNS];
            for r in 0..ROWS {
                let mut hits = [0u64; COLUMNS];
                for c in 0..COLUMNS {
                    hits[c] = u64::from(tile[r][c] <= threshold);
                    sums[c] += hits[c];
                }
                for c in 0..4 {
                    row_counts[r][c] += hits[c] + hits[c + 4];
                }
            }
            for c in 0..COLUMNS {
                column_counts[c] += sums[c];
            }
        }
    } else {
        for (&threshold, row_counts) in thresholds[low..high].iter().zip(&mut rows.inside[low..high]) {
            for r in 0..ROWS {
                for c in 0..4 {
                    row_counts[r][c] += u64::from(tile[r][c] <= threshold) + u64::from(tile[r][c + 4] <= threshold);
                }
            }
        }
    }
}

/// The buffers of one thread.
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

/// Packs some coordinates of records in groups of `WIDTH` records, so that a coordinate of all records of a group is
/// contiguous. Unused slots of the last group are filled with `padding`, which is infinite, so that their pairs lie in
/// no ball.
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

/// Counts all pairs between two blocks of records, or within one block.
struct BlockPair<'a> {
    points: DMatrixView<'a, f64>,
    band: &'a Band,
    rows: Range<usize>,
    columns: Range<usize>,
    scratch: &'a mut Scratch,
}

impl Kernel for BlockPair<'_> {
    type Output = ();

    /// Stores the histograms of the rows and of the columns in `scratch`. Within one block, the histogram of a record
    /// is the sum of its row histogram and its column histogram.
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
        let mut row_counts = RowCounts::new(radii);

        let chunk = dimension.min(CHUNK);
        let single = dimension <= CHUNK;
        let group = if single { ROWS } else { GROUP };
        if single {
            pack(points, columns.clone(), 0..dimension, f64::INFINITY, &mut scratch.columns);
        }
        for start in (0..rows.len()).step_by(group) {
            let group_rows = rows.start + start..(rows.start + start + group).min(rows.end);
            let quads = group_rows.len().div_ceil(ROWS);
            // Within one block, the panels to the left of the panel of a row are skipped. Their pairs were already
            // counted, as columns of earlier rows.
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
                row_counts.clear();
                for (panel, tile) in scratch.tiles[quad * panels..(quad + 1) * panels].iter().enumerate().skip(first) {
                    let (least, largest) = extremes(tile);
                    let (low, high) = (band.bucket(least), band.bucket(largest));
                    let own = diagonal && panel == first;
                    if high - low <= WIDE {
                        let sides = (!own).then_some((
                            &mut scratch.column_inside[panel * radii..][..radii],
                            &mut scratch.column_full[panel * (radii + 1)..][..radii + 1],
                        ));
                        count_tile(tile, &band.thresholds, (low, high), &mut row_counts, sides);
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
                    row_counts.drain(r, histogram);
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

/// Counts by comparing all pairs.
pub(super) fn counts(
    points: DMatrixView<'_, f64>,
    band: &Band,
    counts: &mut DMatrix<u32>,
    pulse: &mut dyn Pulse,
    portable: bool,
) -> Result<(), Interrupted> {
    let (dimension, n, radii) = (points.nrows(), points.ncols(), band.thresholds.len());
    // If there are few radii and coordinates, a pair takes little time, so blocks are larger. Small data are split into
    // more blocks, so that every thread has work.
    let block = (n / 16).min((1 << 17) / radii.max(1)).min((1 << 21) / dimension.max(1));
    let block = (block / COLUMNS * COLUMNS).clamp(COLUMNS, BLOCK);
    let blocks = n.div_ceil(block);
    let range = |index: usize| index * block..((index + 1) * block).min(n);
    let totals: Vec<_> = (0..blocks).map(|index| Mutex::new(vec![0u32; range(index).len() * radii])).collect();

    let tasks = blocks * (blocks + 1) / 2;
    // A wave keeps each thread busy for about 20 ms.
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
