//! The volumetric center of a ball cut by half-spaces. The cutting-plane method of Haghifam et al. ("the paper" in this
//! file) makes its next query at this center.
//!
//! | paper | here |
//! |---|---|
//! | Theta_t | [`VolumetricCenter`]: the ball that localization found, cut by the half-spaces that are kept |
//! | Center(Theta_t) | [`VolumetricCenter::center`], the volumetric center |
//! | Theta_{t+1} | [`VolumetricCenter::cut`], exactly through the center |
//! | tau | the fraction of the volume that a cut removes |
//!
//! **Why the volumetric center.** The volumetric center minimizes V(x) = log det H(x) / 2, where H is the Hessian of
//! the logarithmic barrier. The ellipsoids {z: |z - x|_H <= 1} lie inside the set, and the volumetric center is the
//! center of the largest of them. It is similar to the center of the John ellipsoid, but needs only d x d linear
//! algebra instead of a semidefinite program. Every cut raises min V by at least an absolute constant, so the volume
//! falls at a rate that does not depend on the dimension (Vaidya 1996; for cuts through the center, Anstreicher 1998).
//! The analytic center has no such bound, because many cuts with nearly the same normal push it away. The center of
//! gravity has the best proven tau, 1/e, but it must be sampled, and then the rate is guaranteed only if the random
//! walk has mixed.
//!
//! **The ball stays a ball.** Its barrier -log(r^2 - |x|^2) is, up to a constant, the log-determinant barrier of the
//! matrix [[r, x'], [x, r I]]. So a ball cut by half-spaces is the set of solutions of a linear matrix inequality, for
//! which V stays convex (Anstreicher 2000). An approximation of the ball by tangent planes would need exponentially
//! many planes.
//!
//! All this is post-processing of released directions, so a poor center affects the accuracy but not the privacy. Sums
//! are added in a fixed order, and no operations are fused, so the bits do not depend on the machine.

use nalgebra::{Cholesky, DMatrix, DVector, DVectorView, Dyn};

/// The fraction of the volume that plans assume a cut to remove. The proofs give a much smaller constant.
/// `benches/cutting_plane.py tau` measures a larger fraction than 1/3 in every dimension, also against an adversary who
/// knows the set.
pub const TAU: f64 = 1.0 / 3.0;

/// A cut whose leverage falls below this number is dropped. Leverages sum to at most d, so at most 50 d cuts are kept.
/// Dropping a cut lowers V by at most -ln(1 - 0.02)/2 = 0.0101, which is a small part of the increase by a cut, and
/// never removes a point from the set.
const REDUNDANT: f64 = 0.02;

/// If a slack is below this fraction of the radius of the ball, it has too few correct bits for another cut, and the
/// set counts as collapsed.
const COLLAPSED: f64 = 1.0 / (1u64 << 40) as f64;

/// The center is accepted if the last move is shorter than this part of the inscribed ellipsoid.
const ACCURACY: f64 = 0.01;

/// The largest number of moves to the center after a cut. Each move reduces the error by a factor of about one half.
/// From the center before the cut, about ten moves are needed.
const MOVES: usize = 40;

/// The error that the set cannot be cut further in double precision. Earlier centers stay valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Collapsed;

/// A ball cut by half-spaces, with its volumetric center.
#[derive(Debug, Clone)]
pub struct VolumetricCenter {
    origin: DVector<f64>,
    radius: f64,
    /// Half-spaces {y: normal . y <= offset}, in units in which the ball is the unit ball around zero.
    normals: Vec<DVector<f64>>,
    offsets: Vec<f64>,
    local: Local,
}

/// The barrier at one point, in units in which the ball is the unit ball around zero.
#[derive(Debug, Clone)]
struct Local {
    point: DVector<f64>,
    leverages: Vec<f64>,
    hessian: Cholesky<f64, Dyn>,
    /// V(point).
    value: f64,
    gradient: DVector<f64>,
    /// Q with Q <= Hessian of V <= 3 Q for half-spaces.
    metric: DMatrix<f64>,
}

impl VolumetricCenter {
    /// The ball without cuts. Its center is `origin`.
    ///
    /// # Panics
    ///
    /// If the radius is not positive and finite, or the origin is empty or not finite.
    pub fn new(origin: DVectorView<'_, f64>, radius: f64) -> Self {
        assert!(radius > 0.0 && radius.is_finite(), "the radius of a region must be positive and finite, got {radius}");
        assert!(!origin.is_empty() && origin.iter().all(|x| x.is_finite()), "the origin of a region must be finite");
        let local = Local::at(DVector::zeros(origin.len()), &[], &[]).expect("the middle of a ball is inside");
        Self { origin: origin.into_owned(), radius, normals: Vec::new(), offsets: Vec::new(), local }
    }

    /// The center of the set.
    pub fn center(&self) -> DVector<f64> {
        &self.origin + &self.local.point * self.radius
    }

    /// The number of half-spaces that are kept.
    pub fn cuts(&self) -> usize {
        self.offsets.len()
    }

    /// Keeps the half {z: direction . (z - center) <= 0}, and moves to the volumetric center of this half.
    ///
    /// A direction without a positive finite length is ignored. After an error the region is unchanged.
    pub fn cut(&mut self, direction: DVectorView<'_, f64>) -> Result<(), Collapsed> {
        assert_eq!(direction.len(), self.dimension(), "a direction must have the dimension of the region");
        let largest = direction.amax();
        if !(largest > 0.0 && largest.is_finite()) {
            return Ok(());
        }
        let mut normal = direction / largest;
        normal.normalize_mut();

        // A move of length below one in the norm of H stays inside all old constraints, and ends strictly inside the
        // new constraint.
        let mut inward = self.local.hessian.solve(&normal);
        let width = normal.dot(&inward).sqrt();
        inward *= -0.7 / width;
        let offset = normal.dot(&self.local.point);
        self.normals.push(normal);
        self.offsets.push(offset);
        match self.settle(&self.local.point + inward) {
            Some(local) => {
                self.local = local;
                self.drop_redundant();
                Ok(())
            }
            None => {
                self.normals.pop();
                self.offsets.pop();
                Err(Collapsed)
            }
        }
    }

    fn dimension(&self) -> usize {
        self.origin.len()
    }

    /// Descends V from a strictly inner point. Returns `None` if the arithmetic loses its precision.
    fn settle(&self, start: DVector<f64>) -> Option<Local> {
        let mut local = Local::at(start, &self.normals, &self.offsets)?;
        for _ in 0..MOVES {
            // Because Q <= Hessian <= 3 Q, half of the Newton step with Q at least halves the error in every direction.
            let mut step = Cholesky::new(local.metric.clone())?.solve(&local.gradient);
            step *= -0.5;
            let length = local.length(&step);
            if !length.is_finite() {
                return None;
            }
            // Inside the ellipsoid every constraint holds, so a step of length at most 0.6 never leaves the set.
            if length > 0.6 {
                step *= 0.6 / length;
            }
            let next = Local::at(&local.point + &step, &self.normals, &self.offsets)?;
            let settled = length < ACCURACY;
            if next.value > local.value + 1e-9 {
                // Far from the center the quadratic model may be poor along the step. A shorter step still descends.
                let short = Local::at(&local.point + &step * 0.25, &self.normals, &self.offsets)?;
                if short.value > local.value {
                    return Some(local);
                }
                local = short;
            } else {
                local = next;
            }
            if settled {
                break;
            }
        }
        Some(local)
    }

    /// Drops cuts that hardly change the inscribed ellipsoid. The center does not move until the next cut.
    fn drop_redundant(&mut self) {
        let before = self.offsets.len();
        // Larger indices are removed first, so that smaller indices stay valid.
        for index in (0..before).rev() {
            if self.local.leverages[index] < REDUNDANT {
                self.normals.swap_remove(index);
                self.offsets.swap_remove(index);
                self.local.leverages.swap_remove(index);
            }
        }
        if self.offsets.len() < before
            && let Some(local) = Local::at(self.local.point.clone(), &self.normals, &self.offsets)
        {
            self.local = local;
        }
    }
}

impl Local {
    /// Returns `None` if the point lies outside of the set, or so close to its boundary that slacks lose their
    /// precision.
    fn at(point: DVector<f64>, normals: &[DVector<f64>], offsets: &[f64]) -> Option<Self> {
        let dimension = point.len();
        let slacks: Vec<f64> =
            normals.iter().zip(offsets).map(|(normal, offset)| offset - normal.dot(&point)).collect();
        let ball = 1.0 - point.norm_squared();
        if ball.is_nan() || ball < COLLAPSED || slacks.iter().any(|slack| slack.is_nan() || *slack < COLLAPSED) {
            return None;
        }

        // The Hessian of -log(1 - |y|^2) - sum log(slack).
        let mut hessian = DMatrix::from_diagonal_element(dimension, dimension, 2.0 / ball);
        hessian.syger(4.0 / (ball * ball), &point, &point, 1.0);
        for (normal, slack) in normals.iter().zip(&slacks) {
            hessian.syger(1.0 / (slack * slack), normal, normal, 1.0);
        }
        let hessian = Cholesky::new(hessian)?;
        let value = hessian.l_dirty().diagonal().iter().map(|x| x.ln()).sum::<f64>();
        let inverse = hessian.inverse();
        let trace = inverse.trace();
        let pulled = &inverse * &point;
        let quadratic = point.dot(&pulled);

        // The contribution of the ball to the gradient and to the metric. The metric equals the Hessian at the center
        // of the ball.
        let outward = 2.0 * trace / (ball * ball) + 8.0 * quadratic / (ball * ball * ball);
        let mut gradient = &point * outward + &pulled * (4.0 / (ball * ball));
        let mut metric = inverse * (4.0 / (ball * ball));
        for index in 0..dimension {
            metric[(index, index)] += outward;
        }
        metric.syger(4.0 * outward / ball, &point, &point, 1.0);

        let mut leverages = Vec::with_capacity(slacks.len());
        for (normal, slack) in normals.iter().zip(&slacks) {
            let mut whitened = normal / *slack;
            hessian.l_dirty().solve_lower_triangular_mut(&mut whitened);
            let leverage = whitened.norm_squared();
            gradient.axpy(leverage / slack, normal, 1.0);
            metric.syger(leverage / (slack * slack), normal, normal, 1.0);
            leverages.push(leverage);
        }
        value.is_finite().then_some(Self { point, leverages, hessian, value, gradient, metric })
    }

    /// The length of a step in the norm of the Hessian.
    fn length(&self, step: &DVector<f64>) -> f64 {
        self.hessian.l().tr_mul(step).norm()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::{Rng, SeedableRng};

    use crate::numeric::float_scale::{LARGEST, norm};

    /// Any bits of a double, and many ordinary numbers.
    fn any_bits() -> impl Strategy<Value = f64> {
        prop_oneof![1 => any::<u64>().prop_map(f64::from_bits), 1 => Just(f64::NAN), 3 => -3.0..3.0f64]
    }

    fn symmetric(rng: &mut impl Rng) -> f64 {
        (rng.next_u64() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    fn vector(dimension: usize, rng: &mut impl Rng) -> DVector<f64> {
        DVector::from_fn(dimension, |_, _| symmetric(rng))
    }

    fn unit_ball(dimension: usize) -> VolumetricCenter {
        VolumetricCenter::new(DVector::zeros(dimension).as_view(), 1.0)
    }

    /// The gradient of a quadratic around `target` with axes from 1 to 100.
    fn towards(region: &VolumetricCenter, target: &DVector<f64>) -> DVector<f64> {
        let dimension = target.len() as f64;
        (region.center() - target).map_with_location(|i, _, x| x * 100f64.powf(i as f64 / dimension))
    }

    #[test]
    fn the_gradient_is_that_of_the_volumetric_barrier() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for dimension in [1, 2, 5, 9] {
            let normals: Vec<_> = (0..2 * dimension).map(|_| vector(dimension, &mut rng).normalize()).collect();
            let offsets: Vec<_> = normals.iter().map(|_| 0.3 + 0.2 * symmetric(&mut rng)).collect();
            let point = vector(dimension, &mut rng) * (0.1 / dimension as f64);
            let local = Local::at(point.clone(), &normals, &offsets).unwrap();
            for axis in 0..dimension {
                let value = |shift: f64| {
                    let mut moved = point.clone();
                    moved[axis] += shift;
                    Local::at(moved, &normals, &offsets).unwrap().value
                };
                let difference = (value(1e-5) - value(-1e-5)) / 2e-5;
                assert!((difference - local.gradient[axis]).abs() < 1e-6 * (1.0 + difference.abs()));
            }
        }
    }

    #[test]
    fn the_center_of_half_a_ball_lies_where_its_mass_is() {
        for dimension in [1usize, 2, 10, 100] {
            let mut region = unit_ball(dimension);
            let mut axis = DVector::zeros(dimension);
            axis[0] = -1.0;
            region.cut(axis.as_view()).unwrap();
            let center = region.center();
            // On the axis V depends on the depth z alone.
            let value = |z: f64| {
                let ball = 1.0 - z * z;
                let along = 2.0 / ball + 4.0 * z * z / (ball * ball) + 1.0 / (z * z);
                0.5 * (along.ln() + (dimension - 1) as f64 * (2.0 / ball).ln())
            };
            let best = (1..10_000).map(|i| i as f64 / 10_000.0).min_by(|a, b| value(*a).total_cmp(&value(*b))).unwrap();
            assert!((center[0] - best).abs() < 0.02 * best, "{dimension}: {} against {best}", center[0]);
            assert!(center.iter().skip(1).all(|x| x.abs() < 1e-12));
            // The center of mass of half a ball lies at a depth of about 0.8/sqrt(d), and the analytic center at 0.577
            // in any dimension.
            assert!(best < 1.2 / (dimension as f64).sqrt());
        }
    }

    #[test]
    fn the_inscribed_ellipsoid_falls_by_more_than_tau_in_every_dimension() {
        for dimension in [1, 2, 5, 10, 20, 50] {
            let mut rng = ChaCha8Rng::seed_from_u64(dimension as u64);
            let target = vector(dimension, &mut rng) * (0.5 / (dimension as f64).sqrt());
            for aimed in [false, true] {
                let mut region = unit_ball(dimension);
                let cuts = if dimension == 1 { 25 } else { 10 * dimension };
                for _ in 0..cuts {
                    let direction = if aimed { towards(&region, &target) } else { vector(dimension, &mut rng) };
                    region.cut(direction.as_view()).unwrap();
                }
                // The volume of the inscribed ellipsoid falls like the volume of the set, up to a factor that is a
                // power of d.
                let log_volume = 0.5 * dimension as f64 * std::f64::consts::LN_2 - region.local.value;
                let removed = 1.0 - (log_volume / cuts as f64).exp();
                assert!(removed > TAU, "d = {dimension}, aimed = {aimed}: {removed}");
                assert!(region.cuts() <= 8 * dimension, "d = {dimension}: {} cuts kept", region.cuts());
            }
        }
    }

    #[test]
    fn true_directions_close_in_on_the_target() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        for dimension in [1, 3, 10] {
            let origin = DVector::from_element(dimension, 1e6);
            let target = &origin + vector(dimension, &mut rng) * (50.0 / (dimension as f64).sqrt());
            let mut region = VolumetricCenter::new(origin.as_view(), 100.0);
            for _ in 0..35 * dimension {
                if region.cut(towards(&region, &target).as_view()).is_err() {
                    break;
                }
            }
            let error = (region.center() - &target).norm();
            assert!(error < 1e-5, "d = {dimension}: {error}");
        }
    }

    #[test]
    fn a_collapsed_region_refuses_the_cut_and_stays_as_it_was() {
        for dimension in [1, 2, 7] {
            let mut region = unit_ball(dimension);
            let direction = DVector::from_element(dimension, 1.0);
            let mut cuts = 0;
            while region.cut(direction.as_view()).is_ok() {
                cuts += 1;
                assert!(cuts < 400, "d = {dimension}: the set should be empty long since");
            }
            assert!(cuts >= 10);
            let (center, kept) = (region.center(), region.cuts());
            assert!(region.cut(direction.as_view()).is_err());
            assert_eq!((region.center(), region.cuts()), (center.clone(), kept));
            assert!(center.norm() <= 1.0);
        }
    }

    #[test]
    fn a_direction_that_says_nothing_changes_nothing() {
        let mut region = unit_ball(3);
        for entry in [0.0, f64::NAN, f64::INFINITY] {
            region.cut(DVector::from_element(3, entry).as_view()).unwrap();
            assert_eq!((region.cuts(), region.center()), (0, DVector::zeros(3)));
        }
    }

    proptest! {
        #[test]
        fn any_directions_leave_a_finite_center_in_the_ball(
            seed: u64, dimension in 1usize..8, cuts in 1usize..60, exponent in -1074i32..1020, stubborn: bool,
        ) {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let mut region = unit_ball(dimension);
            let fixed = vector(dimension, &mut rng);
            for _ in 0..cuts {
                let sign = if rng.next_u64() % 2 == 0 { 1.0 } else { -1.0 };
                let shape = if stubborn { &fixed * sign } else { vector(dimension, &mut rng) };
                let direction = shape * 2f64.powi(exponent.max(-1022)) * 2f64.powi(exponent.min(-1022) + 1022);
                if region.cut(direction.as_view()).is_err() {
                    break;
                }
                let center = region.center();
                prop_assert!(center.iter().all(|x| x.is_finite()) && center.norm() < 1.0);
            }
        }

        #[test]
        fn any_bits_leave_a_finite_center_near_the_ball(
            dimension in 1usize..5,
            origin in prop_oneof![Just(0.0), Just(LARGEST), Just(-5e-324)],
            exponent in -1000i32..1000,
            directions in prop::collection::vec(any_bits(), 5 * 30),
        ) {
            let (origin, radius) = (DVector::from_element(dimension, origin), f64::from(exponent).exp2());
            let mut region = VolumetricCenter::new(origin.as_view(), radius);
            for direction in directions.chunks_exact(5) {
                if region.cut(DVectorView::from_slice(&direction[..dimension], dimension)).is_err() {
                    break;
                }
                let offset = region.center() - &origin;
                prop_assert!(region.center().iter().all(|x| x.is_finite()), "{}", region.center());
                // If the radius is lost in the rounding of the coordinates of the origin, it is at most one of their
                // last digits.
                prop_assert!(norm(offset.as_slice()) <= radius * (1.0 + 1e-9) + norm(origin.as_slice()) * 1e-15);
            }
        }
    }
}
