//! Euclidean projection onto the feasible sets of the algorithms of Haghifam et al.: a ball, and the intersection of
//! two balls.

use crate::numeric::float_scale::{finite, norm};

/// A closed ball: a finite center, and a finite radius that is not negative.
#[derive(Debug, Clone, PartialEq)]
pub struct Ball {
    center: Vec<f64>,
    radius: f64,
}

impl Ball {
    /// The ball of `radius` around `center`. Any doubles are accepted: the center is mapped by [`finite`], and a radius
    /// that is negative or NaN becomes 0.
    pub fn new(center: Vec<f64>, radius: f64) -> Self {
        let radius = if radius.is_nan() { 0.0 } else { radius.clamp(0.0, f64::MAX) };
        Self { center: center.into_iter().map(finite).collect(), radius }
    }

    /// The dimension.
    pub fn dimension(&self) -> usize {
        self.center.len()
    }

    /// The center.
    pub(crate) fn center(&self) -> &[f64] {
        &self.center
    }

    /// The radius.
    pub(crate) fn radius(&self) -> f64 {
        self.radius
    }

    /// Moves `x` to the nearest point of the ball, up to rounding. Any `x` becomes finite: a coordinate that is NaN
    /// becomes the coordinate of the center, and other coordinates are clamped like coordinates of records.
    pub fn project(&self, x: &mut [f64]) {
        self.make_finite(x);
        let offset: Vec<f64> = x.iter().zip(&self.center).map(|(x, c)| x - c).collect();
        let distance = norm(&offset);
        if distance > self.radius {
            let shrink = self.radius / distance;
            for ((x, c), offset) in x.iter_mut().zip(&self.center).zip(&offset) {
                *x = c + shrink * offset;
            }
        }
    }

    /// Makes any point finite, so that no difference or norm overflows. Clamping does not increase the distance from
    /// any admitted point, so it does not increase the distance from any feasible point either.
    fn make_finite(&self, x: &mut [f64]) {
        for (x, c) in x.iter_mut().zip(&self.center) {
            *x = if x.is_nan() { *c } else { finite(*x) };
        }
    }

    /// Whether `x` lies in the ball, up to rounding.
    fn contains(&self, x: &[f64]) -> bool {
        let offset: Vec<f64> = x.iter().zip(&self.center).map(|(x, c)| x - c).collect();
        norm(&offset) <= self.radius * (1.0 + 1e-12)
    }
}

/// The feasible set of an iterate: a ball, or the intersection of two balls.
#[derive(Debug, Clone, PartialEq)]
pub enum Feasible {
    /// One ball.
    Ball(Ball),
    /// The intersection of two balls. The balls must intersect.
    Lens(Ball, Ball),
}

impl Feasible {
    /// The dimension.
    pub fn dimension(&self) -> usize {
        match self {
            Self::Ball(ball) | Self::Lens(ball, _) => ball.dimension(),
        }
    }

    /// Moves `x` to the nearest point of the set, up to rounding. Any `x` becomes finite.
    ///
    /// If `x` lies in the intersection, it does not move. If the nearest point of one ball lies in the other ball, this
    /// point is the result. Otherwise the result lies on the rim, where the two spheres intersect. It is the point of
    /// the rim in the direction from the axis to `x`.
    pub fn project(&self, x: &mut [f64]) {
        let (first, second) = match self {
            Self::Ball(ball) => return ball.project(x),
            Self::Lens(first, second) => (first, second),
        };
        first.make_finite(x);
        if first.contains(x) && second.contains(x) {
            return;
        }
        for (ball, other) in [(first, second), (second, first)] {
            let mut nearest = x.to_vec();
            ball.project(&mut nearest);
            if other.contains(&nearest) {
                x.copy_from_slice(&nearest);
                return;
            }
        }
        rim(first, second, x);
    }
}

/// Moves `x` to the nearest point of the rim, or of the first ball if the spheres do not intersect.
fn rim(first: &Ball, second: &Ball, x: &mut [f64]) {
    let axis: Vec<f64> = second.center.iter().zip(&first.center).map(|(b, a)| b - a).collect();
    let separation = norm(&axis);
    let axis: Vec<f64> = axis.iter().map(|a| a / separation).collect();
    // Lengths are in units of the first radius, so that squares do not overflow.
    let (apart, other) = (separation / first.radius, second.radius / first.radius);
    let along = ((apart * apart + 1.0 - other * other) / (2.0 * apart)).clamp(-1.0, 1.0);
    if along.is_nan() {
        // The centers are equal, or the ratio of the radii is too extreme for doubles.
        return first.project(x);
    }
    let across = (1.0 - along * along).max(0.0).sqrt() * first.radius;
    let along = along * first.radius;
    let offset: Vec<f64> = x.iter().zip(&first.center).map(|(x, c)| x - c).collect();
    let height: f64 = offset.iter().zip(&axis).map(|(o, a)| o * a).sum();
    let radial: Vec<f64> = offset.iter().zip(&axis).map(|(o, a)| o - height * a).collect();
    let length = norm(&radial);
    let shrink = if length > 0.0 { across / length } else { 0.0 };
    for (j, x) in x.iter_mut().enumerate() {
        *x = first.center[j] + along * axis[j] + shrink * radial[j];
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Any bits of a double.
    fn odd() -> impl Strategy<Value = f64> {
        let special = prop_oneof![Just(f64::NAN), Just(f64::INFINITY), Just(f64::MAX), Just(5e-324), Just(0.0)];
        prop_oneof![any::<u64>().prop_map(f64::from_bits), special, -3.0..3.0f64]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn any_point_goes_to_a_finite_one(
            values in prop::collection::vec(odd(), 9), radii in prop::array::uniform2(odd()),
        ) {
            let first = Ball::new(values[..3].to_vec(), radii[0]);
            let second = Ball::new(values[3..6].to_vec(), radii[1]);
            for feasible in [Feasible::Ball(first.clone()), Feasible::Lens(first, second)] {
                let mut x = values[6..].to_vec();
                feasible.project(&mut x);
                prop_assert!(x.iter().all(|x| x.is_finite()), "{feasible:?} {x:?}");
            }
        }
    }

    #[test]
    fn what_is_no_number_counts_as_the_center() {
        let mut x = [f64::NAN, 50.0];
        Ball::new(vec![3.0, 0.0], 2.0).project(&mut x);
        assert_eq!(x, [3.0, 2.0]);
        let mut x = [f64::INFINITY, 0.0];
        Ball::new(vec![3.0, 0.0], 2.0).project(&mut x);
        assert_eq!(x, [5.0, 0.0]);
    }

    proptest! {
        /// Tests the variational inequality: p is the projection of x if and only if <x - p, q - p> <= 0 for every q of
        /// the set.
        #[test]
        fn projections_satisfy_the_variational_inequality(
            x in prop::collection::vec(-5.0..5.0f64, 3),
            c in prop::collection::vec(-1.0..1.0f64, 3),
            radius in 0.5..3.0f64,
            others in prop::collection::vec(prop::collection::vec(-3.0..3.0f64, 3), 30),
        ) {
            let first = Ball::new(vec![0.0; 3], 2.0);
            let apart = norm(&c);
            prop_assume!(apart < 2.0 + radius - 1e-3);
            let lens = Feasible::Lens(first.clone(), Ball::new(c, radius));
            let mut p = x.clone();
            lens.project(&mut p);
            let Feasible::Lens(a, b) = &lens else { unreachable!() };
            for ball in [a, b] {
                let offset: Vec<f64> = p.iter().zip(&ball.center).map(|(x, c)| x - c).collect();
                prop_assert!(norm(&offset) <= ball.radius * (1.0 + 1e-9));
            }
            for mut q in others {
                // Alternating projections converge to a point of the intersection.
                for _ in 0..200 { a.project(&mut q); b.project(&mut q); }
                if !(a.contains(&q) && b.contains(&q)) { continue; }
                let product: f64 = (0..3).map(|j| (x[j] - p[j]) * (q[j] - p[j])).sum();
                prop_assert!(product <= 1e-6, "product {product}");
            }
        }
    }
}
