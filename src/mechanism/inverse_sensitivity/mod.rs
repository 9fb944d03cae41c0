//! The inverse-sensitivity mechanism (SInvS): pure differential privacy in one, two and three dimensions.
//!
//! | file | noun |
//! |---|---|
//! | [`lattice`] | the public lattice: records snapped to it, cells of the released point |
//! | [`rate`] | weights 2^(-rate * score) |
//! | [`line`] | one dimension: the paper's len_r |
//! | [`score`] | two and three dimensions: a score of sensitivity one |
//! | [`bound`] | lower bounds of that score on a cell |
//! | [`tree`] | the exact draw from a partition refined where the mass lies |
//! | [`envelope`] | an exact draw from weights that are powers of two |

pub mod bound;
pub mod envelope;
pub mod lattice;
pub mod line;
pub mod rate;
pub mod score;
pub mod tree;

use nalgebra::DMatrixView;
use rand_chacha::ChaCha20Rng;
use rayon::prelude::*;

use crate::mechanism::descent::Stopped;
use crate::release::tape::{Noise, Request, Selection, Tape};
use crate::runtime::pool;
use crate::runtime::pulse::{Interrupted, Pulse};
use lattice::Lattice;
use line::Line;
use rate::{Rate, SCORE_BITS};
use score::Records;
use tree::Tree;

/// The largest dimension: the number of cells grows exponentially with it.
pub const DIMENSION_MAX: usize = 3;

/// The center of the released cell, in lattice units from `center`.
///
/// **Neighbours**: one record replaced. **Cost**: 2 ln 2 * rate, pure, and of that bounded range. **Failure**: none; only
/// an interrupt ends it early. Needs one to three dimensions, finite coordinates and between 1 and 2^28 records.
pub fn release(
    points: DMatrixView<'_, f64>,
    center: &[f64],
    lattice: &Lattice,
    rate: Rate,
    tape: &mut dyn Tape,
    pulse: &mut dyn Pulse,
) -> Result<Vec<i64>, Stopped> {
    check(points, center);
    let noise = Noise::Lattice { rate: rate.multiple() };
    let request =
        Request::new("inverse sensitivity", noise, f64::from(SCORE_BITS).exp2()).map_err(Stopped::BadNoise)?;
    match points.nrows() {
        1 => tape.draw(&request, &mut OnLine { line: line(points, center, lattice), rate, pulse }),
        2 => tape
            .draw(&request, &mut InSpace { records: Records::<2>::new(points, center, lattice), lattice, rate, pulse }),
        _ => tape
            .draw(&request, &mut InSpace { records: Records::<3>::new(points, center, lattice), lattice, rate, pulse }),
    }
}

struct OnLine<'a> {
    line: Line,
    rate: Rate,
    pulse: &'a mut dyn Pulse,
}

impl Selection for OnLine<'_> {
    fn draw(&mut self, rng: &mut ChaCha20Rng) -> Result<Vec<i64>, Interrupted> {
        Ok(vec![self.line.sample(self.rate, rng, self.pulse)?])
    }

    fn score(&self, candidate: &[i64]) -> i64 {
        (self.line.len(candidate[0]) << SCORE_BITS) as i64
    }
}

struct InSpace<'a, const D: usize> {
    records: Records<D>,
    lattice: &'a Lattice,
    rate: Rate,
    pulse: &'a mut dyn Pulse,
}

impl<const D: usize> Selection for InSpace<'_, D> {
    fn draw(&mut self, rng: &mut ChaCha20Rng) -> Result<Vec<i64>, Interrupted> {
        let tree = Tree::new(&self.records, self.lattice, self.rate, self.pulse)?;
        Ok(tree.sample(rng, self.pulse)?.to_vec())
    }

    fn score(&self, candidate: &[i64]) -> i64 {
        self.records.score(&std::array::from_fn(|j| candidate[j])) as i64
    }
}

/// The exact scores at lattice points, one after another, in units of 2^-31: what a neighbour moves by at most 2^31.
pub fn scores(points: DMatrixView<'_, f64>, center: &[f64], lattice: &Lattice, places: &[i64]) -> Vec<u64> {
    check(points, center);
    match points.nrows() {
        1 => {
            let line = line(points, center, lattice);
            places.iter().map(|&place| line.len(place) << SCORE_BITS).collect()
        }
        2 => score_all::<2>(points, center, lattice, places),
        _ => score_all::<3>(points, center, lattice, places),
    }
}

fn check(points: DMatrixView<'_, f64>, center: &[f64]) {
    let (d, n) = points.shape();
    assert!((1..=DIMENSION_MAX).contains(&d), "{d} dimensions; one to {DIMENSION_MAX} are possible");
    assert_eq!(center.len(), d, "the center has another dimension than the points");
    assert!((1..=1 << 28).contains(&n), "{n} records; at least one and at most 2^28 are possible");
}

/// All tasks in order, in the pool where there is enough work: to wake threads costs more than a small task.
fn map<T: Send>(tasks: usize, records: usize, task: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
    if tasks * records < 1 << 14 {
        (0..tasks).map(task).collect()
    } else {
        pool::install(|| (0..tasks).into_par_iter().map(task).collect())
    }
}

fn line(points: DMatrixView<'_, f64>, center: &[f64], lattice: &Lattice) -> Line {
    Line::new(lattice.snap(points, center, 0, 2), *lattice)
}

fn score_all<const D: usize>(
    points: DMatrixView<'_, f64>,
    center: &[f64],
    lattice: &Lattice,
    places: &[i64],
) -> Vec<u64> {
    let records = Records::<D>::new(points, center, lattice);
    let (places, _) = places.as_chunks::<D>();
    places.iter().map(|place| records.score(place)).collect()
}

#[cfg(test)]
mod tests;
