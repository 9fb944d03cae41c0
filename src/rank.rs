//! Ranks: in every coordinate, the number of records at or below a threshold.
//!
//! **Neighbours**: one record replaced. **Sensitivity**: every coordinate's count moves by at most 1, so the vector of d
//! counts has L2 sensitivity sqrt(d).

use nalgebra::DMatrixView;

use crate::dispatch::{self, Kernel};
use crate::objective::sweep;
use crate::pulse::{Interrupted, Pulse};

struct BlockRanks<'a>(DMatrixView<'a, f64>, &'a [f64]);

impl Kernel for BlockRanks<'_> {
    type Output = Vec<i64>;

    #[inline(always)]
    fn run(self) -> Vec<i64> {
        let mut counts = vec![0; self.1.len()];
        for record in self.0.column_iter() {
            for ((count, x), threshold) in counts.iter_mut().zip(record.as_slice()).zip(self.1) {
                *count += i64::from(x <= threshold);
            }
        }
        counts
    }
}

/// For every coordinate, the number of records x with x_j <= threshold_j.
pub fn ranks(points: DMatrixView<'_, f64>, thresholds: &[f64], pulse: &mut dyn Pulse) -> Result<Vec<i64>, Interrupted> {
    assert_eq!(thresholds.len(), points.nrows(), "the thresholds have another dimension than the points");
    let mut total = vec![0; thresholds.len()];
    if total.is_empty() {
        return Ok(total);
    }
    for part in sweep(points, pulse, |_, block| dispatch::vectorised(BlockRanks(block, thresholds)))? {
        total.iter_mut().zip(part).for_each(|(total, part)| *total += part);
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use nalgebra::DMatrix;
    use proptest::prelude::*;

    use super::*;
    use crate::pulse::Silent;

    proptest! {
        #[test]
        fn ranks_are_counted_coordinate_by_coordinate(n in 0..300usize, d in 1..80usize, shift in -4i32..4) {
            let points = DMatrix::from_fn(d, n, |i, j| ((i * 7 + j * 13) % 9) as f64 - 4.0);
            let thresholds: Vec<f64> = (0..d).map(|i| f64::from(shift) + (i % 3) as f64).collect();
            let expected: Vec<i64> =
                (0..d).map(|i| points.row(i).iter().filter(|&&x| x <= thresholds[i]).count() as i64).collect();
            prop_assert_eq!(&ranks(points.as_view(), &thresholds, &mut Silent).unwrap(), &expected);
            prop_assert_eq!(dispatch::portable(BlockRanks(points.as_view(), &thresholds)), expected);
        }
    }
}
