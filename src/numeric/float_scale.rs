//! A public map from any double to an allowed coordinate, and norms and scalings without overflow or underflow.

/// The largest absolute value of a coordinate. With this limit, the difference of two coordinates does not overflow.
pub const LARGEST: f64 = f64::from_bits((1000 + 1023) << 52);

/// Maps any double to a coordinate: NaN becomes 0, and other values are clamped to [`LARGEST`] in magnitude.
pub fn finite(x: f64) -> f64 {
    if x.is_nan() { 0.0 } else { x.clamp(-LARGEST, LARGEST) }
}

/// The Euclidean norm of any finite vector. The vector is scaled by a power of two, so that no square over- or
/// underflows.
pub fn norm(vector: &[f64]) -> f64 {
    let largest = vector.iter().fold(0.0f64, |m, x| m.max(x.abs()));
    if largest == 0.0 {
        return 0.0;
    }
    let exponent = exponent(largest);
    scale(vector.iter().map(|&x| scale(x, -exponent)).map(|x| x * x).sum::<f64>().sqrt(), exponent)
}

/// The binary exponent of a positive finite number.
pub(crate) fn exponent(x: f64) -> i32 {
    let biased = (x.to_bits() >> 52 & 0x7ff) as i32;
    if biased > 0 { biased - 1023 } else { -1011 - x.to_bits().leading_zeros() as i32 }
}

/// `x * 2^power` in two steps, because 2^power itself may not be a finite double.
pub(crate) fn scale(x: f64, power: i32) -> f64 {
    let two_to = |k: i32| f64::from_bits(((k + 1023) as u64) << 52);
    x * two_to(power / 2) * two_to(power - power / 2)
}

/// Multiplies a finite vector by a power of two so that its largest coordinate lies in [1, 2), and returns the exponent
/// of the power; `None` for the zero vector.
#[cold]
pub(crate) fn rescale(vector: &mut [f64]) -> Option<i32> {
    let largest = vector.iter().fold(0.0f64, |m, x| m.max(x.abs()));
    if largest == 0.0 {
        return None;
    }
    let power = -exponent(largest);
    vector.iter_mut().for_each(|x| *x = scale(*x, power));
    Some(power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_double_becomes_a_coordinate() {
        let cases = [(f64::NAN, 0.0), (f64::INFINITY, LARGEST), (-f64::MAX, -LARGEST), (5e-324, 5e-324), (-3.0, -3.0)];
        for (x, expected) in cases {
            assert_eq!(finite(x), expected);
        }
    }

    #[test]
    fn norms_are_safe() {
        assert_eq!(norm(&[3e-200, 4e-200]), 5e-200);
        assert_eq!(norm(&[3e300, 4e300]), 5e300);
        assert_eq!(norm(&[0.0, 5e-324]), 5e-324);
        assert_eq!(norm(&[]), 0.0);
    }
}
