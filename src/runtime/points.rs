//! Admission: the one validated, clamped and projected copy of the records.
//!
//! Every step is a map of a record on its own, so neighbouring data sets stay neighbours.

use std::sync::Mutex;

use nalgebra::{DMatrix, DMatrixView};

use crate::postprocess::projection::Ball;
use crate::runtime::pool;

/// Coordinates are clamped to this magnitude, so that no difference of two of them overflows.
pub const LARGEST: f64 = f64::from_bits((1000 + 1023) << 52);

/// Coordinates of a block that one thread admits.
const BLOCK: usize = 1 << 15;

/// The first coordinate, in reading order, that is NaN or infinite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NonFinite {
    /// Row of the caller's array.
    pub record: usize,
    /// Column of the caller's array.
    pub coordinate: usize,
}

/// Copies the points: clamps every coordinate to [`LARGEST`] and projects every record onto `ball`, if there is one.
///
/// A record with a non-finite coordinate becomes `replacement`, or stops the admission where there is none.
pub fn admit(
    points: DMatrixView<'_, f64>,
    ball: Option<&Ball>,
    replacement: Option<&[f64]>,
) -> Result<DMatrix<f64>, NonFinite> {
    let (d, n) = points.shape();
    let mut copy = DMatrix::zeros(d, n);
    if d == 0 || n == 0 {
        return Ok(copy);
    }
    // Blocks of records: most have nothing to replace and are copied by one plain loop.
    let length = (BLOCK / d).max(1) * d;
    let admit = |(block, target): (usize, &mut [f64])| -> Option<NonFinite> {
        let first = block * length / d;
        let source = points.columns(first, target.len() / d);
        let mut finite = true;
        for (record, target) in source.column_iter().zip(target.chunks_exact_mut(d)) {
            for (x, target) in record.iter().zip(target) {
                finite &= x.is_finite();
                *target = x.clamp(-LARGEST, LARGEST);
            }
        }
        if !finite {
            for (index, (record, target)) in source.column_iter().zip(target.chunks_exact_mut(d)).enumerate() {
                match (record.iter().position(|x| !x.is_finite()), replacement) {
                    (None, _) => {}
                    (Some(_), Some(replacement)) => {
                        target.iter_mut().zip(replacement).for_each(|(x, y)| *x = y.clamp(-LARGEST, LARGEST));
                    }
                    (Some(coordinate), None) => return Some(NonFinite { record: first + index, coordinate }),
                }
            }
        }
        if let Some(ball) = ball {
            for record in target.chunks_exact_mut(d) {
                ball.project(record);
            }
        }
        None
    };
    let failed = Mutex::new(Vec::new());
    pool::for_each_in_parallel(copy.as_mut_slice().chunks_mut(length).enumerate(), |block| {
        if let Some(place) = admit(block) {
            failed.lock().unwrap_or_else(|e| e.into_inner()).push(place);
        }
    });
    let failed = failed.into_inner().unwrap_or_else(|e| e.into_inner());
    failed.into_iter().min_by_key(|place| place.record).map_or(Ok(copy), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_non_finite_coordinate_is_named() {
        let mut points = DMatrix::<f64>::zeros(3, 100_000);
        points[(2, 99_999)] = f64::NAN;
        points[(1, 70_000)] = f64::INFINITY;
        let refused = admit(points.as_view(), None, None);
        assert_eq!(refused, Err(NonFinite { record: 70_000, coordinate: 1 }));
        let admitted = admit(points.as_view(), None, Some(&[1.0, 2.0, 3.0])).unwrap();
        assert_eq!(admitted.column(70_000).as_slice(), &[1.0, 2.0, 3.0]);
        assert_eq!(admitted.column(69_999).as_slice(), &[0.0; 3]);
    }

    #[test]
    fn records_are_clamped_and_projected() {
        let points = DMatrix::from_column_slice(2, 3, &[3.0, 4.0, -f64::MAX, 0.0, 0.1, 0.2]);
        let admitted = admit(points.as_view(), None, None).unwrap();
        assert_eq!(admitted.column(1).as_slice(), &[-LARGEST, 0.0]);
        let ball = Ball::new(vec![0.0, 0.0], 1.0);
        let admitted = admit(points.as_view(), Some(&ball), None).unwrap();
        assert!((admitted[(0, 0)] - 0.6).abs() < 1e-15 && (admitted[(1, 0)] - 0.8).abs() < 1e-15);
        assert_eq!(admitted.column(1).as_slice(), &[-1.0, 0.0]);
        assert_eq!(admitted.column(2).as_slice(), &[0.1, 0.2]);
    }
}
