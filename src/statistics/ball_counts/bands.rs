//! The exact meaning of "two records lie within a radius of each other", and bands of radii with a common scale.
//!
//! **The predicate.** Records x and y lie within nu of each other if and only if
//!
//! ```text
//! ((0 + q_1) + q_2) + ... + q_d <= t      q_c = ((x_c - y_c) s)^2,   t = (nu s)^2,   s = s(nu) a power of two,
//! ```
//!
//! Every operation is rounded to the nearest double, and coordinates are added in order. The predicate is a symmetric
//! function of the two records and the radius alone. It does not depend on other radii, on the indices of the records,
//! on the number of threads or on the instruction set. The scale s keeps nu s between 2^-126 and 2^126 for all nu > 0.
//! Therefore a square overflows only if the distance of the pair is far beyond the radius, and a square that underflows
//! is negligible. So, for any finite doubles, the predicate says whether |x - y| <= nu, up to rounding. Radii with the
//! same scale form a *band*, and the ratio of two radii of a band is below 2^250. For nu between 2^-125 and 2^125 the
//! scale is 1, so an ordinary grid of radii needs one pass.

use std::sync::Mutex;

use nalgebra::DMatrix;

/// Consecutive radii that share a scale, with the tables that find the bucket of a pair.
pub(crate) struct Band {
    /// The index of the first radius of this band among all radii.
    pub(crate) first: usize,
    /// The power of two s.
    pub(crate) scale: f64,
    /// The thresholds t, ascending.
    pub(crate) thresholds: Vec<f64>,
    /// For each e, the number of thresholds with a biased exponent less than e.
    below: Vec<u32>,
}

impl Band {
    /// Splits ascending radii into bands.
    pub(crate) fn split(radii: &[f64]) -> Vec<Band> {
        let mut bands: Vec<Band> = Vec::new();
        for (index, &radius) in radii.iter().enumerate() {
            let scale = scale(radius);
            if bands.last().is_none_or(|band| band.scale != scale) {
                bands.push(Band { first: index, scale, thresholds: Vec::new(), below: Vec::new() });
            }
            let threshold = (radius * scale) * (radius * scale);
            bands.last_mut().expect("a band was just pushed").thresholds.push(threshold);
        }
        for band in &mut bands {
            band.below =
                (0..=2048).map(|e| band.thresholds.partition_point(|t| t.to_bits() >> 52 < e) as u32).collect();
        }
        bands
    }

    /// Converts the histogram of a record over the radii of this band into counts.
    pub(crate) fn store(&self, histogram: &[u32], counts: &mut DMatrix<u32>, record: usize) {
        let mut sum = 0u32;
        let mut column = counts.column_mut(record);
        for (count, bucket) in column.as_mut_slice()[self.first..].iter_mut().zip(histogram) {
            sum = sum.wrapping_add(*bucket);
            *count = sum;
        }
    }

    /// The number of thresholds below a sum of squares. This is the index of the smallest radius that contains the
    /// pair.
    #[inline(always)]
    pub(crate) fn bucket(&self, sum: f64) -> usize {
        let exponent = (sum.to_bits() >> 52) as usize & 2047;
        let (from, to) = (self.below[exponent] as usize, self.below[exponent + 1] as usize);
        from + self.thresholds[from..to].partition_point(|&t| t < sum)
    }
}

/// The scale s(nu): the power of two 2^(-250 b) with b the nearest integer to (exponent of nu)/250.
fn scale(radius: f64) -> f64 {
    // Zero and subnormals have the exponent -1023 here, so they belong to the lowest band.
    let exponent = (radius.to_bits() >> 52) as i64 - 1023;
    let band = (exponent + 125).div_euclid(250);
    f64::from_bits(((1023 - 250 * band) as u64) << 52)
}

/// Whether two records lie within a radius of each other: a plain implementation of the predicate of this file.
pub fn within(x: &[f64], y: &[f64], radius: f64) -> bool {
    let scale = scale(radius);
    let sum = x.iter().zip(y).fold(0.0, |sum, (x, y)| {
        let step = (x - y) * scale;
        sum + step * step
    });
    sum <= (radius * scale) * (radius * scale)
}

/// Adds one array of histograms to another array. Partial sums of a bucket may wrap around, but the final sums are
/// correct.
pub(crate) fn merge(total: &Mutex<Vec<u32>>, part: &[u32]) {
    let mut total = total.lock().unwrap_or_else(|e| e.into_inner());
    for (total, part) in total.iter_mut().zip(part) {
        *total = total.wrapping_add(*part);
    }
}

/// The pair (row, column) at a position in the list of pairs with row <= column: (0, 0), (0, 1), (1, 1), (0, 2), ...
pub(crate) fn triangle(place: usize) -> (usize, usize) {
    let mut column = ((8.0 * place as f64 + 1.0).sqrt() as usize).saturating_sub(1) / 2;
    while (column + 1) * (column + 2) / 2 <= place {
        column += 1;
    }
    while column * (column + 1) / 2 > place {
        column -= 1;
    }
    (place - column * (column + 1) / 2, column)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_the_triangle_are_in_order() {
        let mut place = 0;
        for column in 0..200 {
            for row in 0..=column {
                assert_eq!(triangle(place), (row, column));
                place += 1;
            }
        }
    }
}
