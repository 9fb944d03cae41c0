//! Euclidean projection onto the paper's feasible sets: a ball, and the intersection of two.

use crate::numeric::float_scale::norm;

/// A closed ball.
#[derive(Debug, Clone, PartialEq)]
pub struct Ball {
    /// Its center.
    pub center: Vec<f64>,
    /// Its radius.
    pub radius: f64,
}

impl Ball {
    /// The ball of `radius` around `center`.
    pub fn new(center: Vec<f64>, radius: f64) -> Self {
        Self { center, radius }
    }

    /// Moves `x` to the nearest point of the ball.
    pub fn project(&self, x: &mut [f64]) {
        let offset: Vec<f64> = x.iter().zip(&self.center).map(|(x, c)| x - c).collect();
        let distance = norm(&offset);
        if distance > self.radius {
            let shrink = self.radius / distance;
            for ((x, c), offset) in x.iter_mut().zip(&self.center).zip(&offset) {
                *x = c + shrink * offset;
            }
        }
    }

    /// Whether `x` lies in the ball, up to rounding.
    fn contains(&self, x: &[f64]) -> bool {
        let offset: Vec<f64> = x.iter().zip(&self.center).map(|(x, c)| x - c).collect();
        norm(&offset) <= self.radius * (1.0 + 1e-12)
    }
}

/// Where an iterate may be: in a ball, or in the intersection of two.
#[derive(Debug, Clone, PartialEq)]
pub enum Feasible {
    /// One ball.
    Ball(Ball),
    /// The intersection of two balls that meet.
    Lens(Ball, Ball),
}

impl Feasible {
    /// Moves `x` to the nearest point of the set.
    ///
    /// The nearest point of a lens is `x` itself, or the nearest point of one ball where that lies in the other, or else
    /// on the rim where the two spheres meet: there it is the rim's point in the direction of `x` from the axis.
    pub fn project(&self, x: &mut [f64]) {
        let (first, second) = match self {
            Self::Ball(ball) => return ball.project(x),
            Self::Lens(first, second) => (first, second),
        };
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

/// The point nearest to `x` where the two spheres meet.
fn rim(first: &Ball, second: &Ball, x: &mut [f64]) {
    let axis: Vec<f64> = second.center.iter().zip(&first.center).map(|(b, a)| b - a).collect();
    let separation = norm(&axis);
    let axis: Vec<f64> = axis.iter().map(|a| a / separation).collect();
    // Lengths in units of the first radius, so that squares are safe.
    let (apart, other) = (separation / first.radius, second.radius / first.radius);
    let along = ((apart * apart + 1.0 - other * other) / (2.0 * apart)).clamp(-1.0, 1.0);
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

    proptest! {
        /// The variational inequality: p is the projection of x iff <x - p, q - p> <= 0 for every q of the set.
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
                // Alternating projections end in the lens.
                for _ in 0..200 { a.project(&mut q); b.project(&mut q); }
                if !(a.contains(&q) && b.contains(&q)) { continue; }
                let product: f64 = (0..3).map(|j| (x[j] - p[j]) * (q[j] - p[j])).sum();
                prop_assert!(product <= 1e-6, "product {product}");
            }
        }
    }
}
