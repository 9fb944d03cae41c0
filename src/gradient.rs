//! The gradient of the sum of distances, on an integer lattice.
//!
//! Each record's unit vector is rounded to multiples of 2^-bits and the multiples are summed as integers: the sum is
//! exact and associative, so it is the same for any number of threads, any chunking and any instruction set.
//!
//! **Neighbours**: one record replaced. **Sensitivity** (L2, lattice units): [`sensitivity`]. *Proof.* A record
//! contributes a vector u rounded coordinate by coordinate. Where the computed sum of squares s lies in [2^-960, 2^960],
//! s has a relative error of at most (d + 2) 2^-53 (d + 1 rounded additions of rounded squares; squares that underflow
//! lose at most d 2^-1075, which vanishes beside 2^-960), the root halves it and adds 2^-53, the division and the product
//! add 2^-53 each: the computed vector has a norm of at most 1 + (d + 6) 2^-53 whatever the rounding of theta - x, which
//! only turns it. Outside that range the differences are first scaled by a power of two, so that the largest lies in
//! [1, 2), and the same bound holds. Rounding to the lattice adds at most sqrt(d)/2 units. A replaced record removes one
//! such vector and adds another: 2 (2^bits (1 + (d + 6) 2^-53) + sqrt(d)/2). ∎

use multiversion::multiversion;
use nalgebra::DMatrixView;
use rayon::prelude::*;

use crate::pool;
use crate::projection::{exponent, scale};
use crate::pulse::{Interrupted, Pulse};

/// Finer lattices would let a block's sum of doubles lose bits.
pub const BITS_MAX: u32 = 40;

/// Records whose rounded vectors are summed in doubles before they become integers: 2^12 vectors of 2^40 units fit 2^53.
const BLOCK: usize = 1 << 12;

/// Coordinates between two beats of the pulse: some tens of milliseconds.
const BEAT: usize = 1 << 24;

/// The L2 sensitivity of [`gradient`], in lattice units, rounded up.
pub fn sensitivity(d: usize, bits: u32) -> f64 {
    let (d, unit) = (d as f64, f64::from(bits).exp2());
    (2.0 * unit + d.sqrt() + (d + 6.0) * unit * f64::EPSILON) * (1.0 + 4.0 * f64::EPSILON)
}

/// The sum over records of (theta - x)/||theta - x||, in units of 2^-bits; a record at theta contributes zero.
///
/// Needs finite coordinates below 2^1001 in magnitude and at most 2^(62 - bits) records.
pub fn gradient(
    points: DMatrixView<'_, f64>,
    theta: &[f64],
    bits: u32,
    pulse: &mut dyn Pulse,
) -> Result<Vec<i64>, Interrupted> {
    let (d, n) = points.shape();
    assert!(bits <= BITS_MAX, "a lattice of 2^-{bits} is finer than 2^-{BITS_MAX}");
    assert!((n as u64) <= 1 << (62 - bits), "{n} records overflow a lattice of 2^-{bits}");
    assert_eq!(theta.len(), d, "theta has another dimension than the points");
    let mut total = vec![0i64; d];
    if d == 0 {
        return Ok(total);
    }
    let per_beat = (BEAT / d).max(1).next_multiple_of(BLOCK);
    let per_block = records_per_block(n, d);
    for start in (0..n).step_by(per_beat) {
        let end = n.min(start + per_beat);
        let part = pool::install(|| {
            (start..end)
                .into_par_iter()
                .step_by(per_block)
                .map(|first| block_gradient(points.columns(first, per_block.min(end - first)), theta, bits))
                .reduce(
                    || vec![0; d],
                    |mut a, b| {
                        a.iter_mut().zip(&b).for_each(|(a, b)| *a += b);
                        a
                    },
                )
        });
        total.iter_mut().zip(&part).for_each(|(total, part)| *total += part);
        pulse.beat(end as f64 / n as f64)?;
    }
    Ok(total)
}

/// Small inputs are split further, so that every thread has work.
fn records_per_block(n: usize, d: usize) -> usize {
    ((1 << 15) / d).clamp(16, BLOCK).min(n.div_ceil(8).max(1))
}

/// The sum over one block. Adding and subtracting 1.5 * 2^(52 - bits) rounds a double to the lattice, and sums of
/// multiples of 2^-bits below 2^(53 - bits) are exact in doubles.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq", "x86_64+avx+avx2"))]
fn block_gradient(block: DMatrixView<'_, f64>, theta: &[f64], bits: u32) -> Vec<i64> {
    portable_block_gradient(block, theta, bits)
}

#[inline(always)]
fn portable_block_gradient(block: DMatrixView<'_, f64>, theta: &[f64], bits: u32) -> Vec<i64> {
    let d = theta.len();
    let rounder = 1.5 * f64::from(52 - bits).exp2();
    let mut sum = vec![0.0; d];
    let mut difference = vec![0.0; d];
    for record in block.column_iter() {
        let record = record.as_slice();
        for j in 0..d {
            difference[j] = theta[j] - record[j];
        }
        let squares = sum_of_squares(&difference);
        let inverse = if (f64::from_bits((1023 - 960) << 52)..=f64::from_bits((1023 + 960) << 52)).contains(&squares) {
            1.0 / squares.sqrt()
        } else if rescale(&mut difference) {
            1.0 / sum_of_squares(&difference).sqrt()
        } else {
            continue;
        };
        for j in 0..d {
            sum[j] += (difference[j] * inverse + rounder) - rounder;
        }
    }
    let unit = f64::from(bits).exp2();
    sum.iter().map(|&x| (x * unit) as i64).collect()
}

/// Eight lanes over the coordinates and a fixed tree: the same bits for any vector width.
#[inline(always)]
pub(crate) fn sum_of_squares(vector: &[f64]) -> f64 {
    let mut lanes = [0.0; 8];
    let chunks = vector.chunks_exact(8);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *lane += x * x;
        }
    }
    for (lane, x) in lanes.iter_mut().zip(rest) {
        *lane += x * x;
    }
    let [a, b, c, d, e, f, g, h] = lanes;
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}

/// Scales by a power of two so that the largest coordinate lies in [1, 2); false for the zero vector.
#[cold]
fn rescale(vector: &mut [f64]) -> bool {
    let largest = vector.iter().fold(0.0f64, |m, x| m.max(x.abs()));
    if largest == 0.0 {
        return false;
    }
    let power = -exponent(largest);
    vector.iter_mut().for_each(|x| *x = scale(*x, power));
    true
}

#[cfg(test)]
mod tests {
    use nalgebra::DMatrix;
    use proptest::prelude::*;

    use super::*;
    use crate::projection::norm;
    use crate::pulse::Silent;

    fn of(points: &DMatrix<f64>, theta: &[f64], bits: u32) -> Vec<i64> {
        gradient(points.as_view(), theta, bits, &mut Silent).unwrap()
    }

    /// Any finite coordinate below 2^1000, with many extremes and repetitions.
    fn coordinate() -> impl Strategy<Value = f64> {
        prop_oneof![
            Just(0.0),
            Just(1.0),
            Just(-1.0),
            Just(1e-162),
            Just(5e-324),
            Just(1e300),
            Just(-1e300),
            Just(1e16),
            -10.0..10.0f64,
            -1e-300..1e-300f64,
        ]
    }

    proptest! {
        #[test]
        fn a_replaced_record_moves_the_gradient_by_at_most_the_sensitivity(
            d in 1usize..12,
            seedlings in prop::collection::vec(coordinate(), 12 * 6),
        ) {
            let record = |i: usize| &seedlings[i * 12..i * 12 + d];
            let theta = record(0);
            let data = |last: &[f64]| {
                DMatrix::from_column_slice(d, 4, &[record(1), record(2), record(3), last].concat())
            };
            for bits in [20, 32, 40] {
                let (a, b) = (of(&data(record(4)), theta, bits), of(&data(record(5)), theta, bits));
                let moved: Vec<f64> = a.iter().zip(&b).map(|(a, b)| (a - b) as f64).collect();
                prop_assert!(norm(&moved) <= sensitivity(d, bits));
            }
        }

        #[test]
        fn one_record_gives_its_unit_vector(d in 1usize..20, values in prop::collection::vec(coordinate(), 40)) {
            let (theta, x) = (&values[..d], &values[20..20 + d]);
            let difference: Vec<f64> = theta.iter().zip(x).map(|(t, x)| t - x).collect();
            // A subnormal length would be inexact: enlarge small vectors first.
            let power = if norm(&difference) < 1e-200 { 500 } else { 0 };
            let difference: Vec<f64> = difference.iter().map(|&x| scale(x, power)).collect();
            let length = norm(&difference);
            let lattice = of(&DMatrix::from_column_slice(d, 1, x), theta, 32);
            for (j, &value) in lattice.iter().enumerate() {
                let expected = if length == 0.0 { 0.0 } else { difference[j] / length };
                prop_assert!((value as f64 - expected * 2f64.powi(32)).abs() <= 1.0, "{value} {expected}");
            }
        }
    }

    #[test]
    fn the_sum_is_the_same_for_any_threads_and_any_chunking() {
        let points = DMatrix::from_fn(7, 10_000, |i, j| ((i * 7919 + j * 104_729) % 1000) as f64 / 37.0);
        let theta = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];
        let whole = of(&points, &theta, 32);
        for threads in [1, 2, 4] {
            pool::set_threads(Some(threads));
            assert_eq!(of(&points, &theta, 32), whole);
        }
        pool::set_threads(None);
        let halves = [points.columns(0, 3333).into_owned(), points.columns(3333, 6667).into_owned()];
        let sum: Vec<i64> =
            of(&halves[0], &theta, 32).iter().zip(of(&halves[1], &theta, 32)).map(|(a, b)| a + b).collect();
        assert_eq!(sum, whole);
        assert_eq!(
            portable_block_gradient(points.columns(0, 4096), &theta, 32),
            of(&points.columns(0, 4096).into_owned(), &theta, 32)
        );
    }
}
