//! The reduction of a unit's rows to one record per unit.
//!
//! Rows are sorted by a counting sort, which is stable, so the rows of a unit keep their order. Every unit is then
//! reduced separately, with a stopping rule that depends on this unit only. So the record of a unit has the same bits
//! for any other units and any number of threads.

use std::cmp::Ordering;

use nalgebra::{DMatrix, DMatrixView};

use super::labels::NONE;
use crate::nonprivate::median::geometric_median;
use crate::numeric::float_scale::LARGEST;
use crate::runtime::points::Points;
use crate::runtime::pool;
use crate::runtime::pulse::{Interrupted, Pulse, Silent};

/// How the rows of a unit become one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reducer {
    /// The geometric median of the rows. For two rows this is their midpoint.
    Median,
    /// The mean of the rows.
    Mean,
    /// The first row, in the order of the table.
    First,
}

/// The number of coordinates that are reduced between two calls of the progress callback. A median reads its rows about
/// ten times.
const COORDINATES_PER_WAVE: usize = 1 << 19;

/// A unit with more rows than this is reduced by all threads together.
const ROWS_ALONE: usize = 1 << 14;

/// The rows of every code, in the order of the table.
pub(super) struct Grouped {
    /// The rows, ordered by code.
    pub(super) rows: Vec<usize>,
    /// The position at which the rows of each code begin, and at the end the number of rows.
    pub(super) starts: Vec<usize>,
}

impl Grouped {
    /// Rows with the code [`NONE`] are left out.
    ///
    /// # Panics
    ///
    /// If a code is not below `count`.
    pub(super) fn new(codes: &[i64], count: usize) -> Self {
        let mut starts = vec![0; count + 1];
        for &code in codes.iter().filter(|&&code| code != NONE) {
            starts[code as usize + 1] += 1;
        }
        for code in 0..count {
            starts[code + 1] += starts[code];
        }
        let mut next = starts.clone();
        let mut rows = vec![0; starts[count]];
        for (row, &code) in codes.iter().enumerate().filter(|&(_, &code)| code != NONE) {
            rows[next[code as usize]] = row;
            next[code as usize] += 1;
        }
        Self { rows, starts }
    }

    /// The rows of a code.
    pub(super) fn of(&self, code: usize) -> &[usize] {
        &self.rows[self.starts[code]..self.starts[code + 1]]
    }
}

/// Returns one record for each of `units` codes, computed from the finite rows with this code. The coordinates of rows
/// are clamped to [`LARGEST`]. The record of a unit without finite rows is NaN in every coordinate.
///
/// # Panics
///
/// If there is not one code for each row, or if a code is not below `units`.
pub fn reduce(
    table: DMatrixView<'_, f64>,
    codes: &[i64],
    units: usize,
    reducer: Reducer,
    pulse: &mut dyn Pulse,
) -> Result<DMatrix<f64>, Interrupted> {
    let (d, n) = table.shape();
    assert_eq!(codes.len(), n, "there is one code for each row");
    let mut records = DMatrix::from_element(d, units, f64::NAN);
    if records.is_empty() {
        return Ok(records);
    }
    let grouped = Grouped::new(codes, units);
    let mut first = 0;
    while first < units {
        let mut end = first;
        let mut coordinates = 0;
        while end < units && coordinates < COORDINATES_PER_WAVE && grouped.of(end).len() <= ROWS_ALONE {
            coordinates += grouped.of(end).len() * d + 16;
            end += 1;
        }
        if end == first {
            end += 1;
            let mut alone = Alone { pulse, done: first as f64 / units as f64 };
            let rows = gathered(table, grouped.of(first));
            reduced(rows, d, reducer, records.column_mut(first).as_mut_slice(), &mut alone)?;
        } else {
            let wave = &mut records.as_mut_slice()[first * d..end * d];
            let blocks = wave.chunks_mut(64 * d).enumerate();
            pool::for_each_in_parallel(blocks, |(block, target)| {
                for (offset, record) in target.chunks_exact_mut(d).enumerate() {
                    let rows = gathered(table, grouped.of(first + 64 * block + offset));
                    reduced(rows, d, reducer, record, &mut Silent).expect("a silent pulse does not interrupt");
                }
            });
        }
        first = end;
        pulse.beat(first as f64 / units as f64)?;
    }
    Ok(records)
}

/// The progress callback for a large unit. It reports interrupts but no progress, because the progress of one unit is
/// not the progress of all units.
struct Alone<'a> {
    pulse: &'a mut dyn Pulse,
    done: f64,
}

impl Pulse for Alone<'_> {
    fn beat(&mut self, _done: f64) -> Result<(), Interrupted> {
        self.pulse.beat(self.done)
    }
}

/// The finite rows among `rows`, clamped, in order.
fn gathered(table: DMatrixView<'_, f64>, rows: &[usize]) -> Vec<f64> {
    let mut kept = Vec::with_capacity(rows.len() * table.nrows());
    for &row in rows {
        let row = table.column(row);
        if row.iter().all(|x| x.is_finite()) {
            kept.extend(row.iter().map(|x| x.clamp(-LARGEST, LARGEST)));
        }
    }
    kept
}

fn reduced(
    rows: Vec<f64>,
    d: usize,
    reducer: Reducer,
    record: &mut [f64],
    pulse: &mut dyn Pulse,
) -> Result<(), Interrupted> {
    let count = rows.len() / d;
    if count == 0 {
        return Ok(());
    }
    if count == 1 || reducer == Reducer::First {
        record.copy_from_slice(&rows[..d]);
        return Ok(());
    }
    // The rows are sorted by value, so that the last bit of the sum does not depend on the order of the table.
    let mut ordered: Vec<&[f64]> = rows.chunks_exact(d).collect();
    ordered.sort_unstable_by(|a, b| {
        a.iter().zip(*b).map(|(x, y)| x.total_cmp(y)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    });
    match reducer {
        Reducer::First => unreachable!("done above"),
        Reducer::Mean => {
            for (i, mean) in record.iter_mut().enumerate() {
                let sum: f64 = ordered.iter().map(|row| row[i]).sum();
                let whole = if sum.is_finite() {
                    sum / count as f64
                } else {
                    // The sum of many large rows may overflow.
                    ordered.iter().map(|row| row[i] / count as f64).sum()
                };
                *mean = whole.clamp(-LARGEST, LARGEST);
            }
        }
        Reducer::Median => {
            let ordered = DMatrix::from_vec(d, count, ordered.concat());
            let ordered =
                Points::admit(ordered, None, None, &mut Silent).expect("rows that are not finite were left out");
            let median = geometric_median(&ordered, pulse)?;
            record.copy_from_slice(&median);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn one(reducer: Reducer, d: usize, rows: &[f64]) -> Vec<f64> {
        let table = DMatrix::from_column_slice(d, rows.len() / d, rows);
        let codes = vec![0; table.ncols()];
        reduce(table.as_view(), &codes, 1, reducer, &mut Silent).unwrap().as_slice().to_vec()
    }

    #[test]
    fn a_unit_is_reduced_from_its_own_finite_rows() {
        let (nan, inf) = (f64::NAN, f64::INFINITY);
        let rows = [nan, 0.0, 1.0, 2.0, 3.0, 6.0, 5.0, inf];
        assert_eq!(one(Reducer::First, 2, &rows), [1.0, 2.0]);
        assert_eq!(one(Reducer::Mean, 2, &rows), [2.0, 4.0]);
        assert_eq!(one(Reducer::Median, 2, &rows), [2.0, 4.0]);
        assert!(one(Reducer::Median, 2, &[nan, 1.0]).iter().all(|x| x.is_nan()));
        assert_eq!(one(Reducer::Median, 1, &[9.0, 1.0, 4.0]), [4.0]);
    }

    #[test]
    fn a_mean_of_the_largest_numbers_is_finite() {
        for reducer in [Reducer::Mean, Reducer::Median, Reducer::First] {
            assert_eq!(one(reducer, 1, &[f64::MAX; 3]), [LARGEST]);
        }
        let table = DMatrix::from_element(1, (1 << 24) + 1, f64::MAX);
        let codes = vec![0; table.ncols()];
        let mean = reduce(table.as_view(), &codes, 1, Reducer::Mean, &mut Silent).unwrap();
        assert!((mean[0] / LARGEST - 1.0).abs() < 1e-9);
    }

    #[test]
    fn rows_without_a_code_are_left_out_and_codes_without_rows_are_nan() {
        let table = DMatrix::from_column_slice(1, 4, &[1.0, 2.0, 3.0, 4.0]);
        let records = reduce(table.as_view(), &[2, NONE, 2, 0], 3, Reducer::First, &mut Silent).unwrap();
        assert_eq!((records[0], records[2]), (4.0, 1.0));
        assert!(records[1].is_nan());
        assert_eq!(reduce(table.as_view(), &[NONE; 4], 0, Reducer::Mean, &mut Silent).unwrap().ncols(), 0);
    }

    #[test]
    fn a_large_unit_is_reduced_like_a_small_one() {
        let n = 3 * ROWS_ALONE;
        let table = DMatrix::from_fn(2, n, |i, j| ((j * 7919 + i * 31) % 1009) as f64);
        let codes: Vec<i64> = (0..n as i64).map(|row| i64::from(row % 5 == 0)).collect();
        for reducer in [Reducer::Median, Reducer::Mean, Reducer::First] {
            let both = reduce(table.as_view(), &codes, 2, reducer, &mut Silent).unwrap();
            for unit in 0..2 {
                let own: Vec<usize> = (0..n).filter(|&row| codes[row] == unit).collect();
                let alone = table.select_columns(&own);
                let alone = reduce(alone.as_view(), &vec![0; own.len()], 1, reducer, &mut Silent).unwrap();
                assert_eq!(both.column(unit as usize), alone.column(0), "{reducer:?}");
            }
        }
    }

    proptest! {
        /// A record has the same bits for any other units, any positions of its rows, and any number of threads.
        #[test]
        fn a_record_depends_on_its_own_rows_only(
            own in prop::collection::vec((-9i32..9, -9i32..9), 1..12),
            others in prop::collection::vec((0i64..6, -9i32..9, -9i32..9), 0..80),
            gaps in prop::collection::vec(0usize..80, 12),
            threads in 1usize..4,
        ) {
            for reducer in [Reducer::Median, Reducer::Mean, Reducer::First] {
                let coordinates: Vec<f64> = own.iter().flat_map(|&(x, y)| [x.into(), f64::from(y) / 3.0]).collect();
                let alone = one(reducer, 2, &coordinates);
                // The unit's own rows, in their order, at chosen positions among the others.
                let mut rows: Vec<(i64, [f64; 2])> =
                    others.iter().map(|&(unit, x, y)| (if unit < 3 { unit } else { unit + 1 }, [x.into(), y.into()])).collect();
                let mut places: Vec<usize> = own.iter().zip(&gaps).map(|(_, gap)| gap % (others.len() + 1)).collect();
                places.sort_unstable();
                for (i, place) in places.into_iter().enumerate() {
                    rows.insert(place + i, (3, [coordinates[2 * i], coordinates[2 * i + 1]]));
                }
                let codes: Vec<i64> = rows.iter().map(|row| row.0).collect();
                let table = DMatrix::from_iterator(2, rows.len(), rows.iter().flat_map(|row| row.1));
                pool::set_threads(Some(threads));
                let records = reduce(table.as_view(), &codes, 7, reducer, &mut Silent).unwrap();
                pool::set_threads(None);
                prop_assert_eq!(&records.as_slice()[6..8], &alone[..]);
            }
        }
    }
}
