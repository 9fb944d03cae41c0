//! The score in one dimension. Under replacement the score is len_r of the inverse-sensitivity mechanism. Under
//! add/remove it is half of the number of records that must be added.
//!
//! Let len_r(y) = max(0, #{x < y - r} - floor(n/2), #{x > y + r} - floor(n/2)), where r is the smoothing length. It is
//! the number of records that must be replaced so that some point within r of y becomes a median. len_r is a step
//! function with at most 2n jumps. Records lie on even coordinates and r is even, so the jumps lie between cells, and
//! all volumes are integers.
//!
//! Under replacement the score is len_r. Under add/remove the score is max(0, 2 #{x < y - r} - n, 2 #{x > y + r} -
//! n)/2, without the floor. Twice this score is the number of records that must be added, at a point within r of y, to
//! make this point a median. The score is constant on every interval on which len_r is constant. It is 0 if len_r is 0.
//! Otherwise it is len_r if n is even, and len_r - 1/2 if n is odd.
//!
//! **Neighbors and sensitivity** of the score: 1 if a record is replaced, and 1/2 if a record is added or removed.
//! *Proof.* A replaced record moves each count by at most 1 and does not change n. An added record changes 2 #{...} by
//! 0 or 2 and n by 1, so each difference changes by +1 or -1, and half of the difference by 1/2. The maximum with zero
//! and the cap of the score are contractions. ∎ (With the floor, the sensitivity under add/remove would be 1.)

use rand_chacha::rand_core::Rng;
use rayon::prelude::*;

use super::envelope::{Envelope, Group};
use super::lattice::Lattice;
use super::rate::{Rate, SCORE_BITS};
use crate::release::sensitivity::{Neighbours, Sensitivity};
use crate::runtime::pool;
use crate::runtime::pulse::{Interrupted, Pulse};

/// The number of scores between two calls of the progress callback. So many scores take some milliseconds.
const SCORES_PER_BEAT: usize = 1 << 18;

/// The largest change of the score if a record changes, with or without weights. The two relations have different
/// scores.
pub fn sensitivity() -> Sensitivity {
    let one = f64::from(SCORE_BITS).exp2();
    Sensitivity::new(one, one / 2.0)
}

/// A score in one dimension that is constant on each of several steps. Cells can be drawn exactly from such a score.
pub trait Staircase {
    /// The number of steps.
    fn steps(&self) -> usize;

    /// The score on a step, in units of 2^-31, at most 2^62.
    fn score_of(&self, step: usize) -> u64;

    /// The cells of a step: two intervals, each given by its first even coordinate and the even coordinate after its
    /// end.
    fn cells(&self, step: usize) -> [(i64, i64); 2];

    /// The score of the cell with this odd center.
    fn score_at(&self, center: i64) -> u64;

    /// The number of cells of a step.
    fn volume(&self, step: usize) -> u64 {
        self.cells(step).iter().map(|(start, end)| (end - start) as u64 / 2).sum()
    }

    /// Draws the center of a cell with probability proportional to 2^(-rate * score).
    ///
    /// The cells are grouped by the integer part of rate * score. A drawn cell is kept with probability 2^-(fractional
    /// part), which is at least 1/2.
    fn sample<R: Rng + ?Sized>(&self, rate: Rate, rng: &mut R, pulse: &mut dyn Pulse) -> Result<i64, Interrupted> {
        // The first step of each group, and the group.
        let mut groups: Vec<(usize, Group)> = Vec::new();
        for step in 0..self.steps() {
            if step % SCORES_PER_BEAT == 0 {
                pulse.beat(0.0)?;
            }
            let (power, count) = (-(rate.halvings(self.score_of(step)) as i64), self.volume(step));
            match groups.last_mut() {
                Some((_, group)) if group.power == power => group.count += count,
                _ => groups.push((step, Group { power, count })),
            }
        }
        let envelope = Envelope::new(groups.iter().map(|&(_, group)| group).collect());
        loop {
            let (index, mut place) = envelope.draw(rng);
            let (mut step, group) = groups[index];
            while place >= self.volume(step) {
                place -= self.volume(step);
                step += 1;
            }
            if rate.keep(self.score_of(step), group.power.unsigned_abs()).sample(rng) {
                let [left, right] = self.cells(step);
                let center = left.0 + 1 + 2 * place as i64;
                return Ok(if center < left.1 { center } else { right.0 + (center - left.1) });
            }
        }
    }
}

/// The sorted records, their lattice, and the neighbors for which they are scored.
pub struct Line {
    sorted: Vec<i64>,
    lattice: Lattice,
    neighbours: Neighbours,
}

impl Line {
    /// The records must lie on even coordinates within the reach of the lattice. There may be no records.
    pub fn new(records: Vec<f64>, lattice: Lattice, neighbours: Neighbours) -> Self {
        let mut sorted: Vec<i64> = records.into_iter().map(|x| x as i64).collect();
        if sorted.len() < 1 << 14 {
            sorted.sort_unstable();
        } else {
            pool::install(|| sorted.par_sort_unstable());
        }
        Self { sorted, lattice, neighbours }
    }

    /// The value of len_r at the cell with this odd center.
    pub fn len(&self, center: i64) -> u64 {
        let half = self.sorted.len() / 2;
        let below = self.sorted.partition_point(|&x| x < center - self.lattice.smoothing);
        let above = self.sorted.len() - self.sorted.partition_point(|&x| x <= center + self.lattice.smoothing);
        below.max(above).saturating_sub(half) as u64
    }

    /// The score for a value of len_r, in units of 2^-31. The score is capped at 2^62. The cap is a contraction.
    pub fn score(&self, len: u64) -> u64 {
        let left_over = if self.neighbours.size_is_public() { 0 } else { self.sorted.len() as u64 % 2 };
        let halves = (2 * len).saturating_sub(left_over);
        halves.min(2 << SCORE_BITS) << (SCORE_BITS - 1)
    }

    /// The largest len_r that a cell can have.
    fn farthest(&self) -> usize {
        self.sorted.len().div_ceil(2)
    }
}

/// The steps are the values of len_r.
impl Staircase for Line {
    fn steps(&self) -> usize {
        self.farthest() + 1
    }

    fn score_of(&self, len: usize) -> u64 {
        self.score(len as u64)
    }

    fn score_at(&self, center: i64) -> u64 {
        self.score(self.len(center))
    }

    /// The cells with len_r = `len`: one interval on the left and one on the right. For `len` = 0 there is one interval
    /// only, and the second interval is empty.
    fn cells(&self, len: usize) -> [(i64, i64); 2] {
        let (r, extent) = (self.lattice.smoothing, self.lattice.extent());
        let (left, right) = (self.farthest(), self.sorted.len() / 2);
        // len_r >= k to the left of `left_end` and to the right of `right_end`.
        let left_end = |k: usize| if k > left { -extent } else { self.sorted[left - k] - r };
        let right_end = |k: usize| if k > left { extent } else { self.sorted[right + k - 1] + r };
        if len == 0 {
            return [(left_end(1), right_end(1)), (0, 0)];
        }
        [(left_end(len + 1), left_end(len)), (right_end(len), right_end(len + 1))]
    }
}
