//! Sums of integer vectors over records, or over pairs of them: what every aggregate of the core is.
//!
//! Integers add up to the same sum in any order, so a block goes to whichever thread is free.

use std::ops::Range;

use crate::pool;
use crate::pulse::{BEAT, Interrupted, Pulse};

/// The sum, of `size` integers, to which `add` adds what the items of a range contribute.
///
/// A block has at most `per_block` items of so many `coordinates`. A single block is done by the calling thread.
pub(crate) fn tally(
    items: usize,
    coordinates: usize,
    per_block: usize,
    size: usize,
    pulse: &mut dyn Pulse,
    add: impl Fn(&mut [i64], Range<usize>) + Sync,
) -> Result<Vec<i64>, Interrupted> {
    let mut total = vec![0; size];
    let per_beat = (BEAT / coordinates.max(1)).max(1).next_multiple_of(per_block);
    for start in (0..items).step_by(per_beat) {
        let end = items.min(start + per_beat);
        if end - start <= per_block {
            add(&mut total, start..end);
        } else {
            let blocks = (start..end).step_by(per_block);
            let zeros = || vec![0; size];
            let parts = pool::share(blocks, zeros, |part, first| add(part, first..end.min(first + per_block)));
            for part in parts {
                total.iter_mut().zip(part).for_each(|(total, part)| *total += part);
            }
        }
        pulse.beat(end as f64 / items as f64)?;
    }
    Ok(total)
}

/// Counts by bucket become counts of all buckets up to each.
pub(crate) fn cumulative(mut counts: Vec<i64>) -> Vec<i64> {
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
    use crate::pulse::Silent;

    #[test]
    fn every_item_counts_once() {
        let add = |total: &mut [i64], items: Range<usize>| items.for_each(|item| total[item % 3] += item as i64);
        for items in [0, 1, 7, 1000] {
            let mut expected = vec![0; 3];
            add(&mut expected, 0..items);
            for per_block in [1, 8, 2000] {
                let checked = |total: &mut [i64], block: Range<usize>| {
                    assert!(block.len() <= per_block);
                    add(total, block);
                };
                assert_eq!(tally(items, 5, per_block, 3, &mut Silent, checked), Ok(expected.clone()));
            }
        }
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
        let counted = tally(8, BEAT / 2, 1, 1, &mut beats, |total, items| total[0] += items.len() as i64);
        assert_eq!((counted, beats.0), (Err(Interrupted), vec![0.25, 0.5, 0.75]));
    }
}
