//! Ball counts in few dimensions, with a tree of boxes. If all pairs of records of two boxes have the same bucket,
//! these pairs are counted together.
//!
//! The counts agree exactly with the predicate in [`super::bands`]. *Proof.* Rounded subtraction, multiplication and
//! addition are monotone in each operand. The bounds for a pair of boxes are computed by the same operations as the
//! predicate, in the same order, from the smallest and largest |x_c - y_c| that the boxes allow. So, for any pair of
//! records of the two boxes, the sum that the predicate computes lies between the two bounds, including rounding. The
//! bucket of the pair therefore lies between the buckets of the bounds. If the bounds have different buckets, the boxes
//! are split. Leaves, which are not split, are compared record by record. ∎
//!
//! In two dimensions about n^1.5 pairs are compared one by one.

use std::sync::Mutex;

use nalgebra::{DMatrix, DMatrixView};
use rayon::prelude::*;

use super::bands::{Band, merge, triangle};
use crate::numeric::dispatch::{self, Kernel};
use crate::runtime::pool;
use crate::runtime::pulse::{Interrupted, Pulse};

/// The number of records that are compared side by side.
const LANES: usize = 8;
/// The largest number of records in a leaf, a multiple of the lanes.
const LEAF: usize = 16;

/// A box of consecutive records in the order of the tree.
struct Node<const D: usize> {
    low: [f64; D],
    high: [f64; D],
    start: usize,
    end: usize,
    /// The number of nodes from this node to its right child, or zero for a leaf. The left child is the next node.
    right: usize,
}

impl<const D: usize> Node<D> {
    fn len(&self) -> usize {
        self.end - self.start
    }

    /// A lower and an upper bound on the predicate's sum for all pairs of records of two boxes.
    #[inline(always)]
    fn bounds(&self, other: &Self, scale: f64) -> (f64, f64) {
        let (mut least, mut most) = (0.0, 0.0);
        for c in 0..D {
            let (left, right) = (self.low[c] - other.high[c], other.low[c] - self.high[c]);
            // If the boxes are exchanged, the extents are -left and -right, because rounding is symmetric.
            let gap = if left > right { left } else { right };
            let reach = if left < right { -left } else { -right };
            let gap = if gap > 0.0 { gap * scale } else { 0.0 };
            least += gap * gap;
            most += (reach * scale) * (reach * scale);
        }
        (least, most)
    }
}

/// The tree, its nodes in preorder.
struct BoxTree<const D: usize> {
    nodes: Vec<Node<D>>,
    /// The index of each record, in the tree's order.
    order: Vec<usize>,
    /// The records side by side, in the tree's order.
    panels: Vec<[[f64; LANES]; D]>,
}

impl<const D: usize> BoxTree<D> {
    fn new(points: DMatrixView<'_, f64>) -> Self {
        let mut records: Vec<([f64; D], usize)> =
            points.column_iter().enumerate().map(|(i, record)| (std::array::from_fn(|c| record[c]), i)).collect();
        let nodes = pool::install(|| Self::split(&mut records, 0));
        let mut panels = vec![[[0.0; LANES]; D]; records.len().div_ceil(LANES)];
        for (place, (record, _)) in records.iter().enumerate() {
            for c in 0..D {
                panels[place / LANES][c][place % LANES] = record[c];
            }
        }
        Self { nodes, order: records.into_iter().map(|(_, index)| index).collect(), panels }
    }

    /// Sorts the records and returns the nodes over them. `start` is the position of the first record, a multiple of
    /// [`LANES`].
    fn split(records: &mut [([f64; D], usize)], start: usize) -> Vec<Node<D>> {
        let (mut low, mut high) = ([f64::INFINITY; D], [f64::NEG_INFINITY; D]);
        for (record, _) in records.iter() {
            for c in 0..D {
                low[c] = low[c].min(record[c]);
                high[c] = high[c].max(record[c]);
            }
        }
        let mut node = Node { low, high, start, end: start + records.len(), right: 0 };
        if records.len() <= LEAF {
            return vec![node];
        }
        let axis = (0..D).max_by(|&a, &b| (high[a] - low[a]).total_cmp(&(high[b] - low[b]))).expect("D > 0");
        let half = (records.len() / 2).next_multiple_of(LEAF);
        records.select_nth_unstable_by(half - 1, |a, b| a.0[axis].total_cmp(&b.0[axis]));
        let (below, above) = records.split_at_mut(half);
        let (below, above) = if half > 1 << 12 {
            rayon::join(|| Self::split(below, start), || Self::split(above, start + half))
        } else {
            (Self::split(below, start), Self::split(above, start + half))
        };
        node.right = 1 + below.len();
        let mut nodes = vec![node];
        nodes.extend(below);
        nodes.extend(above);
        nodes
    }

    /// The subtrees with at most `most` records, as ranges of nodes.
    fn blocks(&self, most: usize) -> Vec<std::ops::Range<usize>> {
        let mut blocks = Vec::new();
        let mut stack = vec![(0, self.nodes.len())];
        while let Some((node, end)) = stack.pop() {
            let right = node + self.nodes[node].right;
            if right == node || self.nodes[node].len() <= most {
                blocks.push(node..end);
            } else {
                stack.extend([(right, end), (node + 1, right)]);
            }
        }
        blocks
    }
}

/// Histograms over radii of a block's records (eight side by side) and of its nodes.
#[derive(Default)]
struct Histograms {
    records: Vec<[u64; LANES]>,
    nodes: Vec<u32>,
    /// The record histograms as 32-bit numbers, in the form in which they are merged.
    flat: Vec<u32>,
}

impl Histograms {
    fn reset(&mut self, panels: usize, nodes: usize, radii: usize) {
        self.records.clear();
        self.records.resize(panels * radii, [0; LANES]);
        self.nodes.clear();
        self.nodes.resize(nodes * radii, 0);
    }

    fn merge_into(&mut self, total: &(Mutex<Vec<u32>>, Mutex<Vec<u32>>)) {
        self.flat.clear();
        self.flat.extend(self.records.as_flattened().iter().map(|&count| count as u32));
        merge(&total.0, &self.flat);
        merge(&total.1, &self.nodes);
    }
}

/// Counts all pairs between two blocks, or within one block.
struct Walk<'a, const D: usize> {
    tree: &'a BoxTree<D>,
    band: &'a Band,
    rows: std::ops::Range<usize>,
    columns: std::ops::Range<usize>,
    row_histograms: &'a mut Histograms,
    column_histograms: &'a mut Histograms,
}

impl<const D: usize> Kernel for Walk<'_, D> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { tree, band, rows, columns, row_histograms, column_histograms } = self;
        let thresholds = band.thresholds.as_slice();
        let radii = thresholds.len();
        let (row_start, column_start) = (tree.nodes[rows.start].start, tree.nodes[columns.start].start);
        let diagonal = rows == columns;
        let mut stack = vec![(rows.start, columns.start, 0, radii)];
        while let Some((a, b, mut low, mut high)) = stack.pop() {
            let (first, second) = (&tree.nodes[a], &tree.nodes[b]);
            let (least, most) = first.bounds(second, band.scale);
            while low < high && thresholds[low] < least {
                low += 1;
            }
            while low < high && most <= thresholds[high - 1] {
                high -= 1;
            }
            if low == high {
                if low < radii {
                    row_histograms.nodes[(a - rows.start) * radii + low] += second.len() as u32;
                    if a != b {
                        let other = if diagonal { &mut *row_histograms } else { &mut *column_histograms };
                        other.nodes[(b - columns.start) * radii + low] += first.len() as u32;
                    }
                }
            } else if first.right == 0 && second.right == 0 {
                let thresholds = &thresholds[low..high];
                for row in (first.start..first.end).step_by(LANES) {
                    for column in (second.start..second.end).step_by(LANES) {
                        let (x, y) = (&tree.panels[row / LANES], &tree.panels[column / LANES]);
                        let (rows, columns) = (LANES.min(first.end - row), LANES.min(second.end - column));
                        let place = ((row - row_start) / LANES) * radii;
                        let histograms = &mut row_histograms.records[place..place + radii];
                        count(y, columns, x, band.scale, thresholds, &mut histograms[low..], high - low);
                        if a != b {
                            let other = if diagonal { &mut *row_histograms } else { &mut *column_histograms };
                            let place = ((column - column_start) / LANES) * radii;
                            let histograms = &mut other.records[place..place + radii];
                            count(x, rows, y, band.scale, thresholds, &mut histograms[low..], high - low);
                        }
                    }
                }
            } else if a == b {
                let right = a + first.right;
                stack.extend([(a + 1, a + 1, low, high), (a + 1, right, low, high), (right, right, low, high)]);
            } else if second.right == 0 || (first.right != 0 && first.len() >= second.len()) {
                stack.extend([(a + 1, b, low, high), (a + first.right, b, low, high)]);
            } else {
                stack.extend([(a, b + 1, low, high), (a, b + second.right, low, high)]);
            }
        }
    }
}

/// Compares the first records of one panel with the records of another panel, and counts the pairs in the histograms of
/// the other panel. A pair beyond all thresholds is counted in the bucket after the last threshold.
#[inline(always)]
fn count<const D: usize>(
    from: &[[f64; LANES]; D],
    records: usize,
    to: &[[f64; LANES]; D],
    scale: f64,
    thresholds: &[f64],
    histograms: &mut [[u64; LANES]],
    last: usize,
) {
    let mut sums = [[0.0; LANES]; LANES];
    for r in 0..LANES {
        for c in 0..D {
            for l in 0..LANES {
                let step = (to[c][l] - from[c][r]) * scale;
                sums[r][l] += step * step;
            }
        }
    }
    let mut before = [0u64; LANES];
    for (&threshold, histogram) in thresholds.iter().zip(histograms.iter_mut()) {
        let mut inside = [0u64; LANES];
        for row in &sums[..records] {
            for l in 0..LANES {
                inside[l] += u64::from(row[l] <= threshold);
            }
        }
        for l in 0..LANES {
            histogram[l] = histogram[l].wrapping_add(inside[l]).wrapping_sub(before[l]);
        }
        before = inside;
    }
    if let Some(histogram) = histograms.get_mut(last) {
        for l in 0..LANES {
            histogram[l] = histogram[l].wrapping_add(records as u64).wrapping_sub(before[l]);
        }
    }
}

/// Whether counting with the tree is faster than comparing all pairs.
pub(crate) fn serves(points: DMatrixView<'_, f64>) -> bool {
    (1..=3).contains(&points.nrows()) && points.ncols() >= 1 << 11
}

/// Counts as [`super::counts`] does, for the radii of one band and at most three dimensions.
pub(crate) fn counts(
    points: DMatrixView<'_, f64>,
    band: &Band,
    counts: &mut DMatrix<u32>,
    pulse: &mut dyn Pulse,
    portable: bool,
) -> Result<(), Interrupted> {
    match points.nrows() {
        1 => counts_in::<1>(points, band, counts, pulse, portable),
        2 => counts_in::<2>(points, band, counts, pulse, portable),
        3 => counts_in::<3>(points, band, counts, pulse, portable),
        d => unreachable!("a tree in {d} dimensions"),
    }
}

fn counts_in<const D: usize>(
    points: DMatrixView<'_, f64>,
    band: &Band,
    counts: &mut DMatrix<u32>,
    pulse: &mut dyn Pulse,
    portable: bool,
) -> Result<(), Interrupted> {
    let radii = band.thresholds.len();
    let tree = BoxTree::<D>::new(points);
    let blocks = tree.blocks((points.ncols() / 64).clamp(LEAF, 1024).min((1 << 15) / radii.max(1)));
    let panels = |block: &std::ops::Range<usize>| tree.nodes[block.start].len().div_ceil(LANES);
    let totals: Vec<_> = blocks
        .iter()
        .map(|block| (Mutex::new(vec![0; panels(block) * LANES * radii]), Mutex::new(vec![0; block.len() * radii])))
        .collect();

    let tasks = blocks.len() * (blocks.len() + 1) / 2;
    // A wave has about 2^25 pairs per thread. Most of these pairs are counted together.
    let wave = (1 << 25) / tree.nodes[blocks[0].start].len().pow(2).max(1);
    let wave = wave.max(1) * pool::threads();
    for start in (0..tasks).step_by(wave) {
        let end = (start + wave).min(tasks);
        pool::install(|| {
            (start..end).into_par_iter().for_each_init(
                <(Histograms, Histograms)>::default,
                |(row_histograms, column_histograms), task| {
                    let (row, column) = triangle(task);
                    let (rows, columns) = (blocks[row].clone(), blocks[column].clone());
                    row_histograms.reset(panels(&rows), rows.len(), radii);
                    column_histograms.reset(panels(&columns), columns.len(), radii);
                    let walk = Walk { tree: &tree, band, rows, columns, row_histograms, column_histograms };
                    if portable {
                        dispatch::portable(walk)
                    } else {
                        dispatch::vectorised(walk)
                    }
                    row_histograms.merge_into(&totals[row]);
                    if row != column {
                        column_histograms.merge_into(&totals[column]);
                    }
                },
            )
        });
        pulse.beat(end as f64 / tasks as f64)?;
    }

    let mut histogram = vec![0; radii];
    for (block, (records, nodes)) in blocks.iter().zip(totals) {
        let records = records.into_inner().unwrap_or_else(|e| e.into_inner());
        let mut nodes = nodes.into_inner().unwrap_or_else(|e| e.into_inner());
        let first = tree.nodes[block.start].start;
        for index in block.clone() {
            let node = &tree.nodes[index];
            let own = index - block.start;
            if node.right > 0 {
                // The pairs of a node belong to both of its children.
                let (parent, children) = nodes[own * radii..].split_at_mut(radii);
                for child in [0, node.right - 1] {
                    for (to, from) in children[child * radii..][..radii].iter_mut().zip(&*parent) {
                        *to = to.wrapping_add(*from);
                    }
                }
                continue;
            }
            for place in node.start..node.end {
                let (panel, lane) = ((place - first) / LANES, place % LANES);
                for (k, bucket) in histogram.iter_mut().enumerate() {
                    *bucket = records[(panel * radii + k) * LANES + lane].wrapping_add(nodes[own * radii + k]);
                }
                band.store(&histogram, counts, tree.order[place]);
            }
        }
    }
    Ok(())
}
