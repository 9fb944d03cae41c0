//! Compares each sampler with its exact probabilities. Seeds are fixed, so a test passes always or never. Every
//! threshold is the quantile of the statistic under the null hypothesis at the stated alpha.

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

use super::*;

pub(super) const DRAWS: usize = 400_000;

pub(super) fn generator(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

/// Compares counts with probabilities by a chi-square test. Cells with fewer than five expected draws are combined with
/// the last cell. The threshold at alpha = 1e-6 is the Wilson-Hilferty quantile, z = 4.7534.
pub(crate) fn assert_fits(counts: &[usize], probabilities: &[f64]) {
    let total: usize = counts.iter().sum();
    let (mut statistic, mut cells, mut rest) = (0.0, 0usize, (0.0, 0.0));
    for (&count, &probability) in counts.iter().zip(probabilities) {
        let expected = probability * total as f64;
        if expected < 5.0 {
            rest = (rest.0 + count as f64, rest.1 + expected);
        } else {
            statistic += (count as f64 - expected).powi(2) / expected;
            cells += 1;
        }
    }
    let outside = 1.0 - probabilities.iter().sum::<f64>();
    rest.1 += outside.max(0.0) * total as f64;
    if rest.1 >= 5.0 {
        statistic += (rest.0 - rest.1).powi(2) / rest.1;
        cells += 1;
    }
    let freedom = (cells - 1) as f64;
    let spread = 2.0 / (9.0 * freedom);
    let threshold = freedom * (1.0 - spread + 4.7534 * spread.sqrt()).powi(3);
    assert!(statistic <= threshold, "chi-square {statistic:.1} above {threshold:.1} with {freedom} degrees of freedom");
}

pub(super) fn histogram(low: i64, high: i64, mut draw: impl FnMut() -> i64) -> Vec<usize> {
    let mut counts = vec![0; (high - low + 1) as usize];
    for _ in 0..DRAWS {
        counts[(draw().clamp(low, high) - low) as usize] += 1;
    }
    counts
}

pub(super) fn normalised(weights: Vec<f64>) -> Vec<f64> {
    let total: f64 = weights.iter().sum();
    weights.into_iter().map(|w| w / total).collect()
}

#[test]
fn uniform_integers_are_uniform() {
    let mut rng = generator(1);
    let counts = histogram(0, 6, || uniform::below(&mut rng, 7) as i64);
    assert_fits(&counts, &[1.0 / 7.0; 7]);
    // A bound of 3 * 2^62 rejects every fourth word. The top third of the integers must be as likely as the other
    // thirds.
    let bound = 3u64 << 62;
    let counts = histogram(0, 2, || (uniform::below(&mut rng, bound) >> 62) as i64);
    assert_fits(&counts, &[1.0 / 3.0; 3]);
}

#[test]
fn a_matching_leaves_everyone_over_and_pairs_everyone_equally_often() {
    let mut rng = generator(2);
    let counts = histogram(0, 2, || 3 - uniform::matching(&mut rng, 3)[0].iter().sum::<usize>() as i64);
    assert_fits(&counts, &[1.0 / 3.0; 3]);
    // The index that is paired with 0.
    let mut partner = || {
        let pairs = uniform::matching(&mut rng, 6);
        pairs.iter().find(|pair| pair.contains(&0)).map_or(0, |pair| pair.iter().sum::<usize>() as i64)
    };
    assert_fits(&histogram(1, 5, &mut partner), &[0.2; 5]);
}

#[test]
fn wide_uniform_integers_are_uniform() {
    let mut rng = generator(11);
    let counts = histogram(0, 4, || uniform::below_wide(&mut rng, 5) as i64);
    assert_fits(&counts, &[0.2; 5]);
    let counts = histogram(0, 2, || (uniform::below_wide(&mut rng, 3 << 126) >> 126) as i64);
    assert_fits(&counts, &[1.0 / 3.0; 3]);
    assert_eq!(uniform::below_wide(&mut rng, 1), 0);
}

#[test]
fn power_coins_have_their_probability() {
    let mut rng = generator(12);
    for (p, bits) in [(0, 0), (3, 0), (1, 1), (7, 3), (11, 3), (1 << 70, 71), ((1 << 71) - 1, 71), (5, 1)] {
        let coin = BernoulliPower::new(p, bits).unwrap();
        let heads = (0..DRAWS).filter(|_| coin.sample(&mut rng)).count();
        assert_coin(heads, (-(p as f64) / (bits as f64).exp2()).exp2());
    }
    assert!(BernoulliPower::new(1, 128).is_none());
}

#[test]
fn coins_have_their_probability() {
    let mut rng = generator(3);
    for (p, q) in [(0, 1), (1, 1), (1, 3), (5, 7), (1u128 << 100, 3u128 << 99), ((1 << 66) + 1, 1 << 67)] {
        let coin = Bernoulli::new(p, q).unwrap();
        let heads = (0..DRAWS).filter(|_| coin.sample(&mut rng)).count();
        assert_coin(heads, p as f64 / q as f64);
    }
    for (p, q) in [(0, 1), (1, 1000), (1, 2), (1, 1), (7, 3), (5, 1), (3u128 << 100, 1u128 << 101)] {
        let coin = BernoulliExp::new(p, q).unwrap();
        let heads = (0..DRAWS).filter(|_| coin.sample(&mut rng)).count();
        assert_coin(heads, (-(p as f64) / q as f64).exp());
    }
    assert!(Bernoulli::new(2, 1).is_none() && Bernoulli::new(0, 0).is_none() && BernoulliExp::new(1, 0).is_none());
}

/// Compares a number of heads with its probability by a two-sided normal test at alpha = 1e-6, with z = 4.8916. For the
/// probabilities 0 and 1, every draw must have the certain result.
pub(super) fn assert_coin(heads: usize, probability: f64) {
    let deviation = (probability * (1.0 - probability) * DRAWS as f64).sqrt();
    let expected = probability * DRAWS as f64;
    assert!((heads as f64 - expected).abs() <= 4.8916 * deviation, "{heads} heads, expected {expected}");
}

#[test]
fn geometric_and_laplace_have_their_masses() {
    let mut rng = generator(4);
    for (p, q) in [(1, 1), (2, 3), (7, 2), (1, 10)] {
        let rate = p as f64 / q as f64;
        let geometric = Geometric::new(p, q).unwrap();
        let counts = histogram(0, 200, || geometric.sample(&mut rng) as i64);
        let exact: Vec<f64> = (0..=200).map(|k| (1.0 - (-rate).exp()) * (-rate * k as f64).exp()).collect();
        assert_fits(&counts, &exact);

        let laplace = DiscreteLaplace::new(p, q).unwrap();
        let counts = histogram(-200, 200, || laplace.sample(&mut rng) as i64);
        assert_fits(&counts, &normalised((-200i64..=200).map(|k| (-rate * k.abs() as f64).exp()).collect()));
    }
    assert!(Geometric::new(0, 1).is_none() && DiscreteLaplace::new(1, 0).is_none());
}

#[test]
fn the_discrete_gaussian_has_its_masses_symmetry_and_zero() {
    let mut rng = generator(5);
    for sigma in [1u64, 2, 5, 30] {
        let gaussian = DiscreteGaussian::new(sigma).unwrap();
        let reach = 12 * sigma as i64;
        let counts = histogram(-reach, reach, || gaussian.sample(&mut rng));
        let exact = normalised((-reach..=reach).map(|k| (-(k as f64 / sigma as f64).powi(2) / 2.0).exp()).collect());
        assert_fits(&counts, &exact);
        let middle = reach as usize;
        assert_coin(counts[middle], exact[middle]);
        let (below, above) = (counts[..middle].iter().sum::<usize>(), counts[middle + 1..].iter().sum::<usize>());
        // Given the number of non-zero draws, the sign is a fair coin: z = 4.8916 at alpha = 1e-6.
        assert!((below as f64 - above as f64).abs() <= 4.8916 * ((below + above) as f64).sqrt());
    }
    assert!(DiscreteGaussian::new(0).is_none() && DiscreteGaussian::new(SIGMA_MAX + 1).is_none());
}

/// Uses ranges that do not end at the edges of the sampler's cells, which have the width 62.5.
#[test]
fn a_discrete_gaussian_of_a_thousand_has_its_masses() {
    let mut rng = generator(13);
    let gaussian = DiscreteGaussian::new(1000).unwrap();
    let counts = histogram(-150, 150, || gaussian.sample(&mut rng).div_euclid(40));
    let mass = |k: i64| (-(k as f64 / 1000.0).powi(2) / 2.0).exp();
    assert_fits(&counts, &normalised((-150..=150).map(|cell| (40 * cell..40 * cell + 40).map(mass).sum()).collect()));
}

#[test]
fn a_wide_discrete_gaussian_has_its_moments_and_its_tail() {
    let mut rng = generator(6);
    for sigma in [1u64 << 30, (1 << 40) + 12_345, SIGMA_MAX] {
        let gaussian = DiscreteGaussian::new(sigma).unwrap();
        let draws: Vec<f64> = (0..DRAWS).map(|_| gaussian.sample(&mut rng) as f64 / sigma as f64).collect();
        let moment = |k: i32| draws.iter().map(|x| x.powi(k)).sum::<f64>() / DRAWS as f64;
        let root = (DRAWS as f64).sqrt();
        // Moments of a normal variable: 0, 1, 0, 3 with variances 1, 2, 15, 96; z = 4.8916 at alpha = 1e-6.
        for (k, (mean, variance)) in [(0.0, 1.0), (1.0, 2.0), (0.0, 15.0), (3.0, 96.0f64)].into_iter().enumerate() {
            assert!((moment(k as i32 + 1) - mean).abs() <= 4.8916 * variance.sqrt() / root, "moment {}", k + 1);
        }
        // P(|X| > 3 sigma) = 0.0026998 for a normal variable.
        assert_coin(draws.iter().filter(|x| x.abs() > 3.0).count(), 0.0026998);
        // The lowest bit is fair, so the noise takes all values of the lattice.
        let even = (0..DRAWS).filter(|_| gaussian.sample(&mut rng) % 2 == 0).count();
        assert_coin(even, 0.5);
    }
}

#[test]
fn choices_have_their_weights() {
    let mut rng = generator(8);
    for (p, q, scores) in [(2, 3, [4, 1, 0, 1, 9]), (1, 7, [-30, 5, -28, 0, -30])] {
        let choice = Choice::new(p, q).unwrap();
        let counts = histogram(0, 4, || choice.sample(&scores, &mut rng) as i64);
        let weight = |score: &i64| (-(*score as f64) * p as f64 / q as f64).exp();
        assert_fits(&counts, &normalised(scores.iter().map(weight).collect()));
    }
}
