//! Sums of integer vectors over records, or over pairs of records. Every aggregate of this crate is such a sum.
//!
//! Sums of integers do not depend on the order, so any free thread takes the next block. Blocks are processed in waves,
//! and the progress callback is called after each wave.

use std::ops::Range;

use rayon::prelude::*;

use crate::numeric::block::{AnyBlock, Block};
use crate::runtime::points::Points;
use crate::runtime::pool;
use crate::runtime::pulse::{COORDINATES_PER_BEAT, Interrupted, Pulse};
use crate::runtime::weighting::Weighting;

/// The largest number of items in a wave; a wave may exceed it by less than one block. The sum over a wave fits 64 bits
/// if an item contributes at most 2^41.
const ITEMS_PER_WAVE: usize = 1 << 20;

/// Up to this many coordinates of weighted records are summed by one thread, which is faster than waking other threads.
const SINGLE_THREAD_COORDINATES: usize = 1 << 13;

/// Sums vectors of `size` integers over items. `add` adds the contributions of a range of items; each contribution is
/// at most 2^41 in absolute value.
///
/// A block has at most `per_block` items, and an item has `coordinates` coordinates. If there is a single block, the
/// calling thread sums it. Sums over a block or a wave have 64 bits, and the sum over all waves has 128 bits, so no
/// number of items causes an overflow.
pub(crate) fn sum_blocks(
    items: usize,
    coordinates: usize,
    per_block: usize,
    size: usize,
    pulse: &mut dyn Pulse,
    add: impl Fn(&mut [i64], Range<usize>) + Sync,
) -> Result<Vec<i128>, Interrupted> {
    sum_with(items, coordinates, per_block, size, pulse, |total, (), items| add(total, items))
}

/// [`sum_blocks`] over records: `add` adds the contributions of a block of at most `per_block` records. If records have
/// weights, all records of a block have the same weight, and their contributions are multiplied by this weight.
pub(crate) fn sum_records(
    points: &Points<'_>,
    coordinates: usize,
    per_block: usize,
    size: usize,
    pulse: &mut dyn Pulse,
    add: impl Fn(&mut [i64], Block<'_>) + Sync,
) -> Result<Vec<i128>, Interrupted> {
    if let Some(weighting) = points.weighting() {
        return sum_classes(points, weighting, coordinates, per_block, size, pulse, add);
    }
    sum_with(points.n(), coordinates, per_block, size, pulse, |total, scratch, records| {
        add(total, points.block(records, scratch));
    })
}

/// The weighted sum of the contributions. The records of a block have the same weight. A block is summed in 64 bits,
/// and its sum is multiplied by the weight in 128 bits.
fn sum_classes(
    points: &Points<'_>,
    weighting: &Weighting,
    coordinates: usize,
    per_block: usize,
    size: usize,
    pulse: &mut dyn Pulse,
    add: impl Fn(&mut [i64], Block<'_>) + Sync,
) -> Result<Vec<i128>, Interrupted> {
    let blocks: Vec<(i128, Range<usize>)> = weighting
        .classes()
        .iter()
        .flat_map(|(weight, class)| {
            let block = move |first: usize| (i128::from(*weight), first..class.end.min(first + per_block));
            class.clone().step_by(per_block).map(block)
        })
        .collect();
    let mut total = vec![0i128; size];
    let mut rest = blocks.as_slice();
    while !rest.is_empty() {
        let mut records = 0;
        let wave = rest.iter().take_while(|(_, block)| {
            records += block.len();
            records * coordinates <= COORDINATES_PER_BEAT
        });
        let (wave, behind) = rest.split_at(wave.count().max(1));
        let zeros = || (vec![0i128; size], vec![0i64; size], Vec::new());
        let work = |(part, sum, scratch): &mut (Vec<i128>, Vec<i64>, Vec<f64>),
                    (weight, block): &(i128, Range<usize>)| {
            sum.fill(0);
            add(sum, points.block(block.clone(), scratch));
            for (part, sum) in part.iter_mut().zip(sum).filter(|(_, sum)| **sum != 0) {
                *part += weight * i128::from(*sum);
            }
        };
        let parts = if records * coordinates <= SINGLE_THREAD_COORDINATES {
            let mut only = zeros();
            wave.iter().for_each(|block| work(&mut only, block));
            vec![only]
        } else {
            pool::fold_in_parallel(wave.iter(), zeros, work)
        };
        for (part, ..) in parts {
            total.iter_mut().zip(part).for_each(|(total, part)| *total += part);
        }
        rest = behind;
        pulse.beat(1.0 - rest.len() as f64 / blocks.len() as f64)?;
    }
    Ok(total)
}

/// [`sum_records`] for kernels that widen singles themselves, so that no block is loaded for them.
pub(crate) fn sum_any_records(
    points: &Points<'_>,
    coordinates: usize,
    per_block: usize,
    size: usize,
    pulse: &mut dyn Pulse,
    add: impl Fn(&mut [i64], AnyBlock<'_>) + Sync,
) -> Result<Vec<i128>, Interrupted> {
    if points.weighting().is_some() || points.singles(0..0).is_none() {
        return sum_records(points, coordinates, per_block, size, pulse, |total, block| {
            add(total, AnyBlock::Doubles(block));
        });
    }
    sum_blocks(points.n(), coordinates, per_block, size, pulse, |total, records| {
        add(total, AnyBlock::Singles(points.singles(records).expect("they lie as singles")));
    })
}

/// [`sum_records`] with a scratch buffer for every thread.
fn sum_with<S: Default + Send>(
    items: usize,
    coordinates: usize,
    per_block: usize,
    size: usize,
    pulse: &mut dyn Pulse,
    add: impl Fn(&mut [i64], &mut S, Range<usize>) + Sync,
) -> Result<Vec<i128>, Interrupted> {
    let mut total = vec![0i128; size];
    let per_wave = (COORDINATES_PER_BEAT / coordinates.max(1)).clamp(1, ITEMS_PER_WAVE).next_multiple_of(per_block);
    for start in (0..items).step_by(per_wave) {
        let end = items.min(start + per_wave);
        let zeros = || (vec![0i64; size], S::default());
        let parts = if end - start <= per_block {
            let mut only = zeros();
            add(&mut only.0, &mut only.1, start..end);
            vec![only]
        } else {
            let blocks = (start..end).step_by(per_block);
            pool::fold_in_parallel(blocks, zeros, |(part, scratch), first| {
                add(part, scratch, first..end.min(first + per_block));
            })
        };
        for (part, _) in parts {
            total.iter_mut().zip(part).for_each(|(total, part)| *total += i128::from(part));
        }
        pulse.beat(end as f64 / items as f64)?;
    }
    Ok(total)
}

/// The number of records in a block: about a hundred kilobytes, and a multiple of eight records.
pub(crate) fn records_per_block(d: usize) -> usize {
    ((1 << 14) / d.max(1)).clamp(16, 4096)
}

/// Visits the records in blocks of a fixed size and returns the results of the blocks, in order.
///
/// `visit` gets the index of the first record and the block.
pub(crate) fn map_blocks<T: Send>(
    points: &Points<'_>,
    pulse: &mut dyn Pulse,
    visit: impl Fn(usize, Block<'_>) -> T + Sync,
) -> Result<Vec<T>, Interrupted> {
    let (d, n) = (points.d(), points.n());
    let per_block = records_per_block(d);
    let visit = |first: usize, end: usize| visit(first, points.block(first..end, &mut Vec::new()));
    if (1..=per_block).contains(&n) {
        // The calling thread visits a single block, which is faster than waking another thread. Searches on few records
        // make hundreds of queries.
        let part = visit(0, n);
        pulse.beat(1.0)?;
        return Ok(vec![part]);
    }
    let per_beat = (COORDINATES_PER_BEAT / d.max(1)).max(1).next_multiple_of(per_block);
    let mut parts = Vec::with_capacity(n.div_ceil(per_block));
    for start in (0..n).step_by(per_beat) {
        let end = n.min(start + per_beat);
        pool::install(|| {
            parts.par_extend(
                (start..end).into_par_iter().step_by(per_block).map(|first| visit(first, end.min(first + per_block))),
            );
        });
        pulse.beat(end as f64 / n as f64)?;
    }
    Ok(parts)
}

/// Turns counts in buckets into counts of all buckets up to each one.
pub(crate) fn cumulative(mut counts: Vec<i128>) -> Vec<i128> {
    let mut within = 0;
    for count in &mut counts {
        within += *count;
        *count = within;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::pulse::Silent;

    #[test]
    fn every_item_counts_once() {
        let add = |total: &mut [i64], items: Range<usize>| items.for_each(|item| total[item % 3] += item as i64);
        for items in [0, 1, 7, 1000] {
            let mut expected = vec![0; 3];
            add(&mut expected, 0..items);
            let expected: Vec<i128> = expected.into_iter().map(i128::from).collect();
            for per_block in [1, 8, 2000] {
                let checked = |total: &mut [i64], block: Range<usize>| {
                    assert!(block.len() <= per_block);
                    add(total, block);
                };
                assert_eq!(sum_blocks(items, 5, per_block, 3, &mut Silent, checked), Ok(expected.clone()));
            }
        }
    }

    #[test]
    fn sums_beyond_64_bits_are_exact() {
        let add = |total: &mut [i64], items: Range<usize>| total[0] += (items.len() as i64) << 41;
        let items = (1 << 24) + 5;
        assert_eq!(sum_blocks(items, 1, 1 << 12, 1, &mut Silent, add), Ok(vec![(items as i128) << 41]));
    }

    #[test]
    fn the_pulse_beats_between_waves_and_stops_the_sum() {
        struct Beats(Vec<f64>);
        impl Pulse for Beats {
            fn beat(&mut self, done: f64) -> Result<(), Interrupted> {
                self.0.push(done);
                if self.0.len() < 3 { Ok(()) } else { Err(Interrupted) }
            }
        }
        let mut beats = Beats(Vec::new());
        let counted =
            sum_blocks(8, COORDINATES_PER_BEAT / 2, 1, 1, &mut beats, |total, items| total[0] += items.len() as i64);
        assert_eq!((counted, beats.0), (Err(Interrupted), vec![0.25, 0.5, 0.75]));
    }
}
