//! The objective, which is the sum of distances from a point to the records, and other functions of the distances.
//!
//! Sums of doubles depend on their order, so the order is fixed. Records are summed one after the other in blocks, and
//! then the sums of the blocks are added in order. The size of a block depends on the dimension alone. So the result
//! has the same bits for any number of threads.

use crate::numeric::distance::distances;
use crate::runtime::parallel_fold::map_blocks;
use crate::runtime::points::Points;
use crate::runtime::pulse::{Interrupted, Pulse};
use crate::statistics::gradient::Gradient;

/// The sum of distances from theta to the records, for any finite doubles below 2^1000.
pub fn objective(points: &Points<'_>, theta: &[f64], pulse: &mut dyn Pulse) -> Result<f64, Interrupted> {
    let parts = map_blocks(points, pulse, |_, block| distances(block, theta).iter().sum::<f64>())?;
    Ok(parts.iter().sum())
}

/// The exact gradient of the sum of distances, in units of 2^-bits. This function is not private; for private records,
/// only a tape may open the gradient.
pub fn gradient(points: &Points<'_>, query: &Gradient, pulse: &mut dyn Pulse) -> Result<Vec<i128>, Interrupted> {
    query.sum(points, pulse)
}

/// The radius of the smallest ball around a center that contains at least `count` of the n records. `count` must be
/// between 1 and n.
pub fn quantile_radius(
    points: &Points<'_>,
    center: &[f64],
    count: usize,
    pulse: &mut dyn Pulse,
) -> Result<f64, Interrupted> {
    let parts = map_blocks(points, pulse, |_, block| distances(block, center))?;
    let mut distances = parts.concat();
    Ok(*distances.select_nth_unstable_by(count - 1, f64::total_cmp).1)
}

#[cfg(test)]
mod tests {
    use nalgebra::DMatrix;

    use super::*;
    use crate::runtime::pool;
    use crate::runtime::pulse::Silent;

    fn admitted(points: &DMatrix<f64>) -> Points<'_> {
        Points::admit(points, None, None, &mut Silent).unwrap()
    }

    #[test]
    fn any_finite_doubles_have_their_sum_of_distances() {
        for power in [-1070, -600, 0, 600, 995] {
            let unit = crate::numeric::float_scale::scale(1.0, power);
            let points = DMatrix::from_column_slice(2, 3, &[0.0, 0.0, 6.0 * unit, 8.0 * unit, -3.0 * unit, 4.0 * unit]);
            assert_eq!(objective(&admitted(&points), &[0.0, 0.0], &mut Silent), Ok(15.0 * unit));
            assert_eq!(quantile_radius(&admitted(&points), &[0.0, 0.0], 2, &mut Silent), Ok(5.0 * unit));
        }
    }

    #[test]
    fn the_sum_has_the_same_bits_for_any_threads() {
        let points = DMatrix::from_fn(11, 20_000, |i, j| ((i * 7919 + j * 104_729) % 1009) as f64 / 37.0);
        let theta = [0.1; 11];
        let sums = [1, 2, 4].map(|threads| {
            pool::set_threads(Some(threads));
            objective(&admitted(&points), &theta, &mut Silent).unwrap()
        });
        pool::set_threads(None);
        assert!(sums.iter().all(|sum| *sum == sums[0]));
    }
}
