//! Ranks: in every coordinate, the number of records at or below a threshold.
//!
//! **Neighbours**: one record replaced. **Sensitivity**: every coordinate's count moves by at most 1, so the vector of d
//! counts has L2 sensitivity sqrt(d).

use nalgebra::DMatrixView;

use crate::dispatch::{self, Kernel};
use crate::lanes::Lanes;
use crate::objective::sweep;
use crate::pulse::{Interrupted, Pulse};

struct BlockRanks<'a>(DMatrixView<'a, f64>, &'a [f64]);

impl Kernel for BlockRanks<'_> {
    type Output = Vec<i64>;

    #[inline(always)]
    fn run(self) -> Vec<i64> {
        let Self(block, thresholds) = self;
        let (d, n) = block.shape();
        // Counts of a block fit doubles exactly. Few coordinates leave registers empty, so eight records stand side by
        // side there; otherwise eight coordinates do.
        let mut counts = vec![0.0; d];
        let together = if d < 8 { n / 8 * 8 } else { 0 };
        for first in (0..together).step_by(8) {
            let records: [&[f64]; 8] = std::array::from_fn(|l| &block.column(first + l).data.into_slice()[..d]);
            for j in 0..d {
                let [a, b, c, e, f, g, h, i] = records;
                let lanes = Lanes([a[j], b[j], c[j], e[j], f[j], g[j], h[j], i[j]]);
                let below = lanes.at_most(Lanes::splat(thresholds[j])).0;
                counts[j] +=
                    ((below[0] + below[1]) + (below[2] + below[3])) + ((below[4] + below[5]) + (below[6] + below[7]));
            }
        }
        let wide = d / 8 * 8;
        for record in block.column_iter().skip(together) {
            let record = record.data.into_slice();
            for j in (0..wide).step_by(8) {
                let sum = Lanes::of(&counts, j) + Lanes::of(record, j).at_most(Lanes::of(thresholds, j));
                counts[j..j + 8].copy_from_slice(&sum.0);
            }
            for j in wide..d {
                counts[j] += if record[j] <= thresholds[j] { 1.0 } else { 0.0 };
            }
        }
        counts.iter().map(|&count| count as i64).collect()
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
