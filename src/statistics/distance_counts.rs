//! Counts of distances: how many records lie within each radius of a grid around a point.
//!
//! The grid is the quarter octaves 2^(k/4), from below the smallest positive double to beyond the largest distance of
//! admitted records, so one pass answers every question about distances from one point.
//!
//! **Neighbours**: one record replaced. **Sensitivity**: a record is in one bucket, a function of the record and the public
//! point alone, so every cumulative count moves by at most 1, and a sum over records of a function of the bucket with
//! values in [0, 1] does too.

use nalgebra::DMatrixView;

use crate::numeric::dispatch::{self, Kernel};
use crate::numeric::distance::Distances;
use crate::numeric::float_scale::scale;
use crate::runtime::parallel_fold::records_per_block;
use crate::runtime::parallel_fold::{cumulative, sum_blocks};
use crate::runtime::pulse::{Interrupted, Pulse};

/// The first quarter octave: 2^(FIRST/4) is the smallest positive double.
pub const FIRST: i32 = -4 * 1074;

/// The last quarter octave: differences lie below 2^1001 and dimensions below 2^40.
pub const LAST: i32 = 4 * 1021;

/// The bits of a double below its exponent.
const MANTISSA: u64 = (1 << 52) - 1;

/// The smallest k with distance <= 2^(k/4), at least [`FIRST`].
#[inline(always)]
fn quarter(distance: f64) -> i32 {
    const ROOTS: [f64; 4] = [1.0, 1.189_207_115_002_721, std::f64::consts::SQRT_2, 1.681_792_830_507_429];
    if distance < f64::MIN_POSITIVE {
        return if distance == 0.0 { FIRST } else { quarter(scale(distance, 64)) - 4 * 64 };
    }
    let bits = distance.to_bits();
    let beyond = ROOTS.map(|root| i32::from(bits & MANTISSA > root.to_bits() & MANTISSA));
    4 * ((bits >> 52) as i32 - 1023) + beyond.iter().sum::<i32>()
}

/// Counts the records of a block in their quarter octaves.
struct Quarters<'a> {
    block: DMatrixView<'a, f64>,
    theta: &'a [f64],
    counts: &'a mut [i64],
}

impl Kernel for Quarters<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for distance in Distances(self.block, self.theta).run() {
            self.counts[(quarter(distance) - FIRST) as usize] += 1;
        }
    }
}

/// For each k from [`FIRST`] to [`LAST`], the number of records within 2^(k/4) of theta.
pub fn counts(points: DMatrixView<'_, f64>, theta: &[f64], pulse: &mut dyn Pulse) -> Result<Vec<i64>, Interrupted> {
    assert_eq!(theta.len(), points.nrows(), "theta has another dimension than the points");
    let (d, n) = points.shape();
    let counts = sum_blocks(n, d, records_per_block(d), (LAST - FIRST + 1) as usize, pulse, |counts, records| {
        let block = points.columns(records.start, records.len());
        dispatch::vectorised(Quarters { block, theta, counts });
    })?;
    Ok(cumulative(counts))
}

#[cfg(test)]
mod tests {
    use nalgebra::DMatrix;
    use proptest::prelude::*;

    use super::*;
    use crate::runtime::points::LARGEST;
    use crate::runtime::pulse::Silent;

    fn at(counts: &[i64], quarter: i32) -> i64 {
        counts[(quarter - FIRST) as usize]
    }

    #[test]
    fn equality_is_inside_and_every_record_is_counted() {
        let points = DMatrix::from_column_slice(2, 5, &[0.0, 0.0, 3.0, 4.0, 0.0, 8.0, 1e-300, 0.0, LARGEST, -LARGEST]);
        let counts = counts(points.as_view(), &[0.0, 0.0], &mut Silent).unwrap();
        assert_eq!((at(&counts, 11), at(&counts, 12), at(&counts, 9)), (3, 4, 2));
        assert_eq!((at(&counts, 10), at(&counts, FIRST), at(&counts, LAST)), (3, 1, 5));
        assert_eq!(at(&counts, 4 * -996), 2);
    }

    proptest! {
        #[test]
        fn a_quarter_octave_is_the_smallest_that_covers(mantissa in 1.0..2.0f64, octave in -1022i32..1000) {
            let distance = scale(mantissa, octave);
            let k = quarter(distance);
            // Beyond rounding of the quarter roots themselves.
            let power = |k: i32| f64::from(k) / 4.0;
            prop_assert!(distance.log2() <= power(k) + 1e-12 && distance.log2() >= power(k - 1) - 1e-12);
        }
    }

    #[test]
    fn the_same_counts_on_every_instruction_set() {
        let points = DMatrix::from_fn(11, 100, |i, j| ((i * 31 + j * 17) % 101) as f64 * 0.37);
        let theta = [3.3; 11];
        let block = points.as_view();
        let mut counts = [vec![0; (LAST - FIRST + 1) as usize], vec![0; (LAST - FIRST + 1) as usize]];
        let [here, there] = &mut counts;
        dispatch::portable(Quarters { block, theta: &theta, counts: here });
        dispatch::vectorised(Quarters { block, theta: &theta, counts: there });
        assert!(counts[0] == counts[1] && counts[0].iter().sum::<i64>() == 100);
    }
}
