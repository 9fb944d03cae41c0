//! Longitude and latitude in degrees as points of the unit sphere.

use nalgebra::{DMatrix, DMatrixView};

use crate::runtime::pool;

/// The number of positions that one thread maps together.
const BLOCK: usize = 1 << 12;

/// Converts every position to a unit vector. The vector is NaN if a coordinate is not finite or if the latitude is not
/// between -90 and 90 degrees. Longitudes that differ by 360 degrees are the same.
///
/// Each position is mapped separately, by scalar functions. With vectorized functions, the rounding could depend on the
/// neighboring values in memory.
///
/// # Panics
///
/// Unless there are two coordinates.
pub fn unit_vectors(positions: DMatrixView<'_, f64>) -> DMatrix<f64> {
    assert_eq!(positions.nrows(), 2, "a position has a longitude and a latitude");
    let mut vectors = DMatrix::zeros(3, positions.ncols());
    let blocks = vectors.as_mut_slice().chunks_mut(3 * BLOCK).enumerate();
    pool::for_each_in_parallel(blocks, |(block, target)| {
        for (offset, vector) in target.chunks_exact_mut(3).enumerate() {
            let position = positions.column(block * BLOCK + offset);
            vector.copy_from_slice(&unit_vector(position[0], position[1]));
        }
    });
    vectors
}

fn unit_vector(longitude: f64, latitude: f64) -> [f64; 3] {
    if !(longitude.is_finite() && latitude.abs() <= 90.0) {
        return [f64::NAN; 3];
    }
    // The remainder is exact, and converting a small angle to radians loses less precision.
    let (east, along) = (longitude % 360.0).to_radians().sin_cos();
    let (up, outward) = latitude.to_radians().sin_cos();
    [along * outward, east * outward, up]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distance(a: [f64; 3], b: [f64; 3]) -> f64 {
        a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum::<f64>().sqrt()
    }

    #[test]
    fn the_date_line_and_the_poles_are_places_like_any_other() {
        assert!(distance(unit_vector(180.0, 10.0), unit_vector(-180.0, 10.0)) < 1e-15);
        assert!(distance(unit_vector(179.9, 0.0), unit_vector(-179.9, 0.0)) < 0.0035);
        assert!(distance(unit_vector(12.0, 90.0), unit_vector(-100.0, 90.0)) < 1e-15);
        assert_eq!(unit_vector(0.0, 0.0), [1.0, 0.0, 0.0]);
        assert!(distance(unit_vector(90.0, 0.0), [0.0, 1.0, 0.0]) < 1e-15);
        assert!(distance(unit_vector(33.0, -90.0), [0.0, 0.0, -1.0]) < 1e-15);
    }

    #[test]
    fn longitudes_wrap_and_latitudes_end() {
        for turns in [-3.0, 1.0, 1e6] {
            assert!(distance(unit_vector(10.0 + 360.0 * turns, 47.0), unit_vector(10.0, 47.0)) < 1e-9);
        }
        for (longitude, latitude) in
            [(0.0, 90.0001), (0.0, -91.0), (f64::NAN, 0.0), (f64::INFINITY, 0.0), (0.0, f64::NAN)]
        {
            assert!(unit_vector(longitude, latitude).iter().all(|x| x.is_nan()));
        }
        for longitude in [f64::MAX, -f64::MAX, 1e300] {
            assert!((distance(unit_vector(longitude, 45.0), [0.0; 3]) - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn a_position_is_mapped_alone() {
        let positions = DMatrix::from_fn(2, 20_000, |i, j| ((j * 37 + i * 11) % 1777) as f64 / 10.0 - 80.0);
        let vectors = unit_vectors(positions.as_view());
        for j in [0, 1, 4095, 4096, 19_999] {
            let alone = unit_vectors(positions.columns(j, 1));
            assert!(vectors.column(j).iter().zip(alone.iter()).all(|(x, y)| x.to_bits() == y.to_bits()));
        }
    }
}
