//! Admission maps each record separately by a public function, so neighboring data sets stay neighbors.
//!
//! One pass over the records finds out whether the map changes any record. If it does, every block is mapped whenever
//! it is loaded, so the mapped records are never stored.

use std::fmt;
use std::ops::Range;

use crate::numeric::block::Block;
use crate::numeric::distance::distances;
use crate::numeric::float_scale::{LARGEST, finite};
use crate::postprocess::projection::Ball;
use crate::runtime::memory::Table;
use crate::runtime::pool;
use crate::runtime::pulse::{COORDINATES_PER_BEAT, Interrupted, Pulse};

/// The number of coordinates in a block that one thread checks.
const BLOCK: usize = 1 << 15;

/// The first coordinate, in reading order, that is NaN or infinite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct NonFinite {
    /// The row in the caller's array.
    pub record: usize,
    /// The column in the caller's array.
    pub coordinate: usize,
}

impl fmt::Display for NonFinite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "points[{}, {}] is not finite", self.record, self.coordinate)
    }
}

impl std::error::Error for NonFinite {}

/// The reason why records are not admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// A coordinate is not finite, and there is no replacement.
    NonFinite(NonFinite),
    /// The records cannot be read.
    Unreadable(String),
    /// The progress callback requested an interrupt.
    Interrupted,
}

impl From<NonFinite> for Refused {
    fn from(place: NonFinite) -> Self {
        Self::NonFinite(place)
    }
}

impl From<Interrupted> for Refused {
    fn from(_: Interrupted) -> Self {
        Self::Interrupted
    }
}

/// The map: it replaces records with a coordinate that is not finite, clamps every coordinate to [`LARGEST`], and
/// projects records onto a ball if there is a ball.
#[derive(Debug, Clone)]
pub(crate) struct Admission {
    ball: Option<Ball>,
    replacement: Option<Vec<f64>>,
}

impl Admission {
    /// # Panics
    ///
    /// If the ball or the replacement has another dimension than `d`.
    pub(crate) fn new(ball: Option<&Ball>, replacement: Option<&[f64]>, d: usize) -> Self {
        assert!(ball.is_none_or(|ball| ball.dimension() == d), "the ball has another dimension than the points");
        assert!(
            replacement.is_none_or(|record| record.len() == d),
            "the replacement has another dimension than the points"
        );
        Self { ball: ball.cloned(), replacement: replacement.map(<[f64]>::to_vec) }
    }

    /// Reads all records, and returns whether the map changes any record. If there is no replacement, a coordinate that
    /// is not finite stops the pass.
    pub(crate) fn changes(&self, table: &Table<'_>, pulse: &mut dyn Pulse) -> Result<bool, Refused> {
        let (d, n) = (table.d(), table.n());
        let per_block = (BLOCK / d.max(1)).max(1);
        let per_beat = (COORDINATES_PER_BEAT / d.max(1)).max(1).next_multiple_of(per_block);
        let mut changes = false;
        for start in (0..if d == 0 { 0 } else { n }).step_by(per_beat) {
            changes |= self.changes_some(table, start..n.min(start + per_beat), per_block)?;
            table.check().map_err(Refused::Unreadable)?;
            pulse.beat(0.0)?;
        }
        Ok(changes)
    }

    fn changes_some(&self, table: &Table<'_>, some: Range<usize>, per_block: usize) -> Result<bool, NonFinite> {
        let d = table.d();
        let start = || (false, None::<NonFinite>, Vec::new());
        let looked =
            pool::fold_in_parallel(some.clone().step_by(per_block), start, |(changed, failed, scratch), first| {
                let records = first..some.end.min(first + per_block);
                if table.is_admissible(records.clone()) && (self.ball.is_none() || *changed) {
                    return;
                }
                scratch.resize(records.len() * d, 0.0);
                table.load(records, scratch);
                if self.replacement.is_none()
                    && let Some(place) = scratch.iter().position(|x| !x.is_finite())
                {
                    let place = NonFinite { record: first + place / d, coordinate: place % d };
                    *failed = Some(failed.map_or(place, |earlier| earlier.min(place)));
                }
                *changed |= self.apply(scratch, d);
            });
        let failed = looked.iter().filter_map(|(_, failed, _)| *failed).min();
        failed.map_or_else(|| Ok(looked.iter().any(|(changed, _, _)| *changed)), Err)
    }

    /// Maps the records of a block in place, and returns whether any record changed. All coordinates become finite. If
    /// there is no replacement, [`finite`] maps each coordinate that is not finite.
    pub(crate) fn apply(&self, block: &mut [f64], d: usize) -> bool {
        let mut changed = false;
        for record in block.chunks_exact_mut(d) {
            // The fold has no branch for each coordinate. A comparison with NaN is false.
            if record.iter().fold(true, |all, x| all & (x.abs() <= LARGEST)) {
                continue;
            }
            changed = true;
            match self.replacement.as_ref().filter(|_| record.iter().any(|x| !x.is_finite())) {
                Some(replacement) => record.iter_mut().zip(replacement).for_each(|(x, y)| *x = finite(*y)),
                None => record.iter_mut().for_each(|x| *x = finite(*x)),
            }
        }
        self.ball.as_ref().is_some_and(|ball| project(ball, block, d)) | changed
    }
}

/// Projects the records of a block, which must be finite, and returns whether any record moved.
fn project(ball: &Ball, block: &mut [f64], d: usize) -> bool {
    // All distances are computed together, and only records near or beyond the sphere are projected. "Near" allows for
    // rounding errors of the distances.
    let distances = distances(Block::new(block, d, block.len() / d), ball.center());
    let inside = ball.radius() * (1.0 - 1e-9);
    let mut moved = false;
    for (record, _) in block.chunks_exact_mut(d).zip(distances).filter(|(_, distance)| *distance > inside) {
        let before = record.to_vec();
        ball.project(record);
        moved |= before != record;
    }
    moved
}

#[cfg(test)]
mod tests {
    use nalgebra::DMatrix;

    use super::*;
    use crate::runtime::pulse::Silent;

    /// All records after admission.
    fn admitted(
        points: &DMatrix<f64>,
        ball: Option<&Ball>,
        replacement: Option<&[f64]>,
    ) -> Result<DMatrix<f64>, Refused> {
        let admission = Admission::new(ball, replacement, points.nrows());
        let changes = admission.changes(&points.into(), &mut Silent)?;
        let mut copy = points.clone();
        assert_eq!(admission.apply(copy.as_mut_slice(), points.nrows()), changes);
        Ok(copy)
    }

    #[test]
    fn the_first_non_finite_coordinate_is_named() {
        let mut points = DMatrix::<f64>::zeros(3, 100_000);
        points[(2, 99_999)] = f64::NAN;
        points[(1, 70_000)] = f64::INFINITY;
        let refused = Err(Refused::NonFinite(NonFinite { record: 70_000, coordinate: 1 }));
        assert_eq!(admitted(&points, None, None), refused);
        let admitted = admitted(&points, None, Some(&[1.0, 2.0, 3.0])).unwrap();
        assert_eq!(admitted.column(70_000).as_slice(), &[1.0, 2.0, 3.0]);
        assert_eq!(admitted.column(69_999).as_slice(), &[0.0; 3]);
        let singles = DMatrix::from_fn(3, 100_000, |i, j| points[(i, j)] as f32);
        let found = Admission::new(None, None, 3).changes(&(&singles).into(), &mut Silent);
        assert_eq!(found, refused.map(|_: DMatrix<f64>| true));
    }

    #[test]
    fn records_are_clamped_and_projected() {
        let points = DMatrix::from_column_slice(2, 3, &[3.0, 4.0, -f64::MAX, 0.0, 0.1, 0.2]);
        assert_eq!(admitted(&points, None, None).unwrap().column(1).as_slice(), &[-LARGEST, 0.0]);
        let ball = Ball::new(vec![0.0, 0.0], 1.0);
        let admitted = admitted(&points, Some(&ball), None).unwrap();
        assert!((admitted[(0, 0)] - 0.6).abs() < 1e-15 && (admitted[(1, 0)] - 0.8).abs() < 1e-15);
        assert_eq!(admitted.column(1).as_slice(), &[-1.0, 0.0]);
        assert_eq!(admitted.column(2).as_slice(), &[0.1, 0.2]);
    }

    #[test]
    fn a_ball_that_holds_all_records_changes_none_and_one_that_does_not_projects_as_if_alone() {
        let points = DMatrix::from_fn(3, 5000, |i, j| ((i * 7919 + j * 104_729) % 1009) as f64 / 1009.0 - 0.5);
        for radius in [0.0, 1e-300, 0.5, 0.75f64.sqrt(), 1.0, f64::MAX] {
            let ball = Ball::new(vec![0.0, 0.1, 0.0], radius);
            let mut alone = points.clone();
            alone.column_iter_mut().for_each(|mut record| ball.project(record.as_mut_slice()));
            assert_eq!(admitted(&points, Some(&ball), None).unwrap(), alone, "{radius}");
            let changes = Admission::new(Some(&ball), None, 3).changes(&(&points).into(), &mut Silent);
            assert_eq!(changes, Ok(alone != points), "{radius}");
        }
    }

    #[test]
    fn whatever_is_given_the_admitted_records_are_finite() {
        let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, -f64::MAX, 5e-324, -0.0, 1.0];
        let points = DMatrix::from_fn(2, 64, |i, j| odd[(j >> (3 * i)) % 8]);
        for &x in &odd {
            for &radius in &odd {
                let ball = Ball::new(vec![x, 1.0], radius);
                let admitted = admitted(&points, Some(&ball), Some(&[radius, x])).unwrap();
                assert!(admitted.iter().all(|x| x.abs() <= 2.0 * LARGEST), "{ball:?}");
            }
        }
    }
}
