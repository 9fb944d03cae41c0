//! The inverse-sensitivity mechanism (SInvS of Haghifam et al.): pure differential privacy in one, two and three
//! dimensions.
//!
//! | file | contents |
//! |---|---|
//! | `blocks` | blocks of records, summed in the pool if there is enough work |
//! | [`lattice`] | the public lattice: records snapped to it, cells of the released point |
//! | [`rate`] | weights 2^(-rate * score) |
//! | [`mod@line`] | the score in one dimension |
//! | [`weighted_line`] | the score in one dimension for weighted records |
//! | [`score`] | the score in two and three dimensions |
//! | [`bound`] | lower bounds of the score in two and three dimensions on a cell |
//! | [`partition`] | the exact draw from a partition that is refined where most of the weight is |
//! | [`envelope`] | an exact draw from weights that are powers of two |

mod blocks;
pub mod bound;
pub mod envelope;
pub mod lattice;
pub mod line;
pub mod partition;
pub mod rate;
pub mod score;
pub mod weighted_line;

use std::ops::Range;

use nalgebra::DMatrixView;
use rand_chacha::ChaCha20Rng;

use self::lattice::Lattice;
use self::line::{Line, Staircase};
use self::partition::Partition;
use self::rate::Rate;
use self::score::Records;
use self::weighted_line::WeightedLine;
use crate::release::error::Error;
use crate::release::sensitivity::{Neighbours, Sensitivity};
use crate::release::tape::{Selection, Tape};
use crate::runtime::points::Points;
use crate::runtime::pulse::{Interrupted, Pulse};
use crate::runtime::weighting::Weighting;

/// The largest dimension. The number of cells grows exponentially with the dimension.
pub const DIMENSION_MAX: usize = 3;

/// The largest change of the score in units of 2^-31, if a record changes, with or without weights. `None` unless there
/// are one to three dimensions.
pub fn sensitivity(d: usize, weighted: bool) -> Option<Sensitivity> {
    match d {
        1 => Some(line::sensitivity()),
        2 => Some(Records::<2>::sensitivity(weighted)),
        3 => Some(Records::<3>::sensitivity(weighted)),
        _ => None,
    }
}

/// Draws a cell, and returns its center in lattice units relative to `center`.
///
/// **Neighbors**: the relation of the tape. **Cost**: let s be [`sensitivity`] times 2^-31, which is the largest change
/// of the score in records. The cost is 2 ln 2 * rate * s, as pure differential privacy and as bounded range.
/// **Failure**: none. Only an interrupt ends the draw early. The number of records may be any number, including zero.
///
/// # Panics
///
/// Unless there are one to three dimensions, and the center has the same dimension.
pub fn release(
    points: &Points,
    center: &[f64],
    lattice: &Lattice,
    rate: Rate,
    tape: &mut dyn Tape,
    pulse: &mut dyn Pulse,
) -> Result<Vec<i64>, Error> {
    let dense = points.dense();
    points.check().map_err(Error::Unreadable)?;
    let classes = points.weighting().map(Weighting::classes);
    let points = dense.view();
    check(points, center);
    match (points.nrows(), classes) {
        (1, None) => {
            draw(&mut OnLine { line: line(points, center, lattice, tape.neighbours()), rate, pulse }, rate, tape)
        }
        (1, Some(classes)) => {
            let line = weighted_line(points, center, lattice, classes);
            draw(&mut OnLine { line, rate, pulse }, rate, tape)
        }
        (2, _) => {
            let records = Records::<2>::new(points, center, lattice, classes);
            draw(&mut InSpace { records, lattice, rate, pulse, weighted: classes.is_some() }, rate, tape)
        }
        _ => {
            let records = Records::<3>::new(points, center, lattice, classes);
            draw(&mut InSpace { records, lattice, rate, pulse, weighted: classes.is_some() }, rate, tape)
        }
    }
}

fn draw(selection: &mut dyn Selection, rate: Rate, tape: &mut dyn Tape) -> Result<Vec<i64>, Error> {
    tape.draw("inverse sensitivity", rate.multiple(), selection)
}

struct OnLine<'a, L> {
    line: L,
    rate: Rate,
    pulse: &'a mut dyn Pulse,
}

impl<L: Staircase> Selection for OnLine<'_, L> {
    fn draw(&mut self, rng: &mut ChaCha20Rng) -> Result<Vec<i64>, Interrupted> {
        Ok(vec![self.line.sample(self.rate, rng, self.pulse)?])
    }

    fn score(&self, candidate: &[i64]) -> i64 {
        self.line.score_at(candidate[0]) as i64
    }

    fn sensitivity(&self) -> Sensitivity {
        line::sensitivity()
    }
}

struct InSpace<'a, const D: usize> {
    records: Records<D>,
    lattice: &'a Lattice,
    rate: Rate,
    pulse: &'a mut dyn Pulse,
    weighted: bool,
}

impl<const D: usize> Selection for InSpace<'_, D> {
    fn draw(&mut self, rng: &mut ChaCha20Rng) -> Result<Vec<i64>, Interrupted> {
        let partition = Partition::new(&self.records, self.lattice, self.rate, self.pulse)?;
        Ok(partition.sample(rng, self.pulse)?.to_vec())
    }

    fn score(&self, candidate: &[i64]) -> i64 {
        self.records.score(&std::array::from_fn(|j| candidate[j])) as i64
    }

    fn sensitivity(&self) -> Sensitivity {
        Records::<D>::sensitivity(self.weighted)
    }
}

/// The exact scores at lattice points, in units of 2^-31. They are not private and are for tests and benchmarks.
/// `classes` are the groups of records with equal weights, in units of 2^-20.
pub fn scores(
    points: DMatrixView<'_, f64>,
    classes: Option<&[(u32, Range<usize>)]>,
    center: &[f64],
    lattice: &Lattice,
    places: &[i64],
    neighbours: Neighbours,
) -> Vec<u64> {
    check(points, center);
    match (points.nrows(), classes) {
        (1, None) => {
            let line = line(points, center, lattice, neighbours);
            places.iter().map(|&place| line.score_at(place)).collect()
        }
        (1, Some(classes)) => {
            let line = weighted_line(points, center, lattice, classes);
            places.iter().map(|&place| line.score_at(place)).collect()
        }
        (2, _) => score_all(&Records::<2>::new(points, center, lattice, classes), places),
        _ => score_all(&Records::<3>::new(points, center, lattice, classes), places),
    }
}

fn check(points: DMatrixView<'_, f64>, center: &[f64]) {
    let d = points.nrows();
    assert!((1..=DIMENSION_MAX).contains(&d), "{d} dimensions; one to {DIMENSION_MAX} are possible");
    assert_eq!(center.len(), d, "the center has another dimension than the points");
}

fn line(points: DMatrixView<'_, f64>, center: &[f64], lattice: &Lattice, neighbours: Neighbours) -> Line {
    Line::new(lattice.snap(points, center, 0, 2), *lattice, neighbours)
}

fn weighted_line(
    points: DMatrixView<'_, f64>,
    center: &[f64],
    lattice: &Lattice,
    classes: &[(u32, Range<usize>)],
) -> WeightedLine {
    WeightedLine::new(lattice.snap(points, center, 0, 2), classes, *lattice)
}

fn score_all<const D: usize>(records: &Records<D>, places: &[i64]) -> Vec<u64> {
    let (places, _) = places.as_chunks::<D>();
    places.iter().map(|place| records.score(place)).collect()
}

#[cfg(test)]
mod tests;
