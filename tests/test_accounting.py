"""The accounting is compared with many-digit arithmetic and with dp_accounting, and checked for its own laws."""

from __future__ import annotations

import functools
import itertools
import math
import random
from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import common, privacy_loss_distribution
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmedian.accounting import Budget, PrivacyCost, calibrate
from dpmedian.accounting.concentrated import concentrated_delta
from dpmedian.accounting.losses import _range_losses, losses_of
from dpmedian.accounting.normal import gaussian_delta
from dpmedian.accounting.rounding import product_up, sum_up

PrivacyLossDistribution = privacy_loss_distribution.PrivacyLossDistribution

# The discretization of a release on the coarsest lattice of the package, sigma = 2^30, with a thousand coordinates.
SLACK = 1000 / (40 * 2.0**60)


def normal_tail(t: mpmath.mpf) -> mpmath.mpf:
    return mpmath.erfc(t / mpmath.sqrt(2)) / 2


def many_digit_delta(mu: float, epsilon: float) -> mpmath.mpf:
    """The textbook difference of two normal tails. 60 digits suffice for any cancellation here."""
    with mpmath.workdps(60):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        return normal_tail(e / m - m / 2) - mpmath.exp(e) * normal_tail(e / m + m / 2)


# Comparison with many-digit arithmetic.


def test_gaussian_delta_has_eleven_digits() -> None:
    generator = random.Random(20240611)
    compared = 0
    for _ in range(600):
        mu = 10 ** generator.uniform(-12, 2.2)
        # The whole plane, and the strip in which delta lies between 1e-290 and 1.
        anywhere = 10 ** generator.uniform(-12, 3) * generator.choice((-1, 1))
        epsilon = anywhere if generator.random() < 0.3 else mu * (generator.uniform(-1, 36) + mu / 2)
        exact = many_digit_delta(mu, epsilon)
        if exact < 1e-298:
            assert gaussian_delta(mu, epsilon) >= exact
            continue
        assert gaussian_delta(mu, epsilon) == pytest.approx(float(exact), rel=1e-11)
        if epsilon >= 0:
            # The reported value is never below the truth, not even in the last digit.
            assert PrivacyCost(mu_squared=mu * mu).delta_at(epsilon) >= exact
        compared += 1
    assert compared > 400


@pytest.mark.parametrize("mu", [1.0 - 1e-15, 1.0, 1.0 + 1e-15])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 0.5, 10.0, 10.5, 20.0])
def test_gaussian_delta_is_continuous_where_the_formula_changes(mu: float, epsilon: float) -> None:
    assert gaussian_delta(mu, epsilon) == pytest.approx(float(many_digit_delta(1.0, epsilon)), rel=1e-11)


@pytest.mark.parametrize("delta", [1e-100, 1e-15, 1e-6, 1e-3, 0.1, 0.9])
@pytest.mark.parametrize("epsilon", [1e-9, 1e-6, 1e-3, 1.0, 10.0, 100.0, 1000.0])
def test_gaussian_calibration_is_tight_and_private_at_the_extremes(epsilon: float, delta: float) -> None:
    rho = calibrate(lambda rho: PrivacyCost(mu_squared=2 * rho), Budget.of(epsilon, delta))
    assert many_digit_delta(math.sqrt(2 * rho), epsilon) <= delta
    # One part in a million more would exceed delta.
    assert many_digit_delta(math.sqrt(2 * rho * (1 + 1e-6)), epsilon) > delta
    cost = PrivacyCost(mu_squared=2 * rho)
    assert many_digit_delta(math.sqrt(2 * rho), cost.epsilon_at(delta)) <= delta


@pytest.mark.parametrize("rho", [1e-15, 1e-6, 1e-2, 1.0, 30.0])
@pytest.mark.parametrize("excess", [-0.9, 0.0, 1e-3, 1.0, 10.0, 1e3])
def test_concentrated_conversion_is_the_best_over_all_orders(rho: float, excess: float) -> None:
    epsilon = rho * (1 + excess) if excess <= 1 else rho + math.sqrt(rho) * excess / 50
    orders = 1 + np.logspace(-6, 12, 200_001)
    shifted = orders - 1
    exponents = shifted * (orders * rho - epsilon) - np.log(shifted) + orders * np.log1p(-1 / orders)
    best = math.exp(min(0.0, float(exponents.min())))
    assert concentrated_delta(rho, epsilon) == pytest.approx(best, rel=1e-6)


def proved_distance(sigma: float) -> mpmath.mpf:
    """The bound of accounting.md, section "Discrete noise", before it is rounded to a constant."""
    density = mpmath.npdf
    second = 4 * density(1)
    third = 2 * (2 * density(mpmath.sqrt(3)) + 2 * density(mpmath.sqrt(3)) + density(0))
    s = mpmath.mpf(sigma)
    excess = mpmath.nsum(lambda j: 2 * mpmath.exp(-2 * (mpmath.pi * s * j) ** 2), [1, 5])
    return (second / s**2 + third / s**3) / 48 + excess / 2


SIGMAS = (1.0, 1.1, 1.5, 2.0, 3.0, 5.0, 6.99, 7.0, 10.0, 30.0, 100.0, 1000.0)


@pytest.mark.parametrize("sigma", SIGMAS)
def test_discrete_gaussian_is_within_the_claim_of_a_rounded_one(sigma: float) -> None:
    integers = range(-math.ceil(12 * sigma) - 2, math.ceil(12 * sigma) + 3)
    weights = [math.exp(-(k * k) / (2 * sigma * sigma)) for k in integers]
    total = math.fsum(weights)
    tail = [math.erfc((k - 0.5) / (sigma * math.sqrt(2))) / 2 for k in (*integers, integers[-1] + 1)]
    distance = math.fsum(abs(weight / total - (tail[i] - tail[i + 1])) for i, weight in enumerate(weights)) / 2
    # The enumerated, the proved and the charged distance are ascending in this order, for every sigma.
    claim = PrivacyCost.gaussian(1, sigma, 1).discretization
    assert distance * (1 - 1e-6) <= proved_distance(sigma) <= claim
    assert PrivacyCost.gaussian(3, sigma, 7, releases=5).discretization == pytest.approx(35 * claim)
    assert claim == pytest.approx(1 / ((40 if sigma >= 7 else 19) * sigma**2))


def test_the_integrals_of_the_discretization_are_those_of_the_normal_density() -> None:
    second = mpmath.quad(lambda z: abs(z * z - 1) * mpmath.npdf(z), [-40, -1, 1, 40])
    third = mpmath.quad(lambda z: abs(z**3 - 3 * z) * mpmath.npdf(z), [-40, -mpmath.sqrt(3), 0, mpmath.sqrt(3), 40])
    assert mpmath.almosteq(proved_distance(1e3) * 48 * 1e6, second + third / 1e3, rel_eps=1e-12)


@pytest.mark.parametrize("sigma", [7, 8, 2**10, 2**30, 2**50])
def test_the_claim_has_room_for_the_cut_of_the_sampler(sigma: int) -> None:
    """Magnitudes from 272 sigma on are drawn again, which moves the distribution by at most their mass."""
    room = 1 / (40 * mpmath.mpf(sigma) ** 2) - proved_distance(sigma)
    assert 0 < mpmath.exp(-36992) < room


@pytest.mark.parametrize("sigma", [1, 2, 7, 100])
def test_the_mass_beyond_the_cut_of_the_sampler_is_below_the_bound(sigma: int) -> None:

    def weights(low: int, high: int) -> mpmath.mpf:
        return mpmath.fsum(mpmath.exp(-mpmath.mpf(k * k) / (2 * sigma**2)) for k in range(low, high))

    whole = 1 + 2 * weights(1, 40 * sigma)
    beyond = 2 * weights(272 * sigma, 280 * sigma)
    assert whole >= mpmath.sqrt(2 * mpmath.pi) * sigma * (1 - mpmath.mpf(2) ** -40)
    assert 0 < beyond / whole < mpmath.exp(-36992)


# Comparison with dp_accounting, which is exact up to its discretization: its optimistic Gaussians lie below the truth,
# its
# pessimistic ones above, and its pure releases are rounded up by at most one interval each.

RESOLUTION = 2e-4


@functools.cache
def gaussian_oracle(mu: float, pessimistic: bool = True) -> PrivacyLossDistribution:
    return privacy_loss_distribution.from_gaussian_mechanism(
        1 / mu,
        value_discretization_interval=mu * RESOLUTION,
        pessimistic_estimate=pessimistic,
        use_connect_dots=pessimistic,
    )


def mixed_oracle(mu: float, pure: tuple[float, ...]) -> PrivacyLossDistribution:
    oracle = gaussian_oracle(mu)
    for epsilon in pure:
        parameters = common.DifferentialPrivacyParameters(epsilon, 0.0)
        oracle = oracle.compose(privacy_loss_distribution.from_privacy_parameters(parameters, mu * RESOLUTION))
    return oracle


@pytest.mark.parametrize("delta", [1e-6, *(pytest.param(x, marks=pytest.mark.slow) for x in (1e-15, 1e-10, 1e-3, 0.1))])
@pytest.mark.parametrize("mu", [1e-6, 1e-3, 0.05, 0.3, 1.0, 3.0, 10.0])
def test_gaussian_epsilon_agrees_with_dp_accounting(mu: float, delta: float) -> None:
    epsilon = PrivacyCost(mu_squared=mu * mu).epsilon_at(delta)
    low, high = (gaussian_oracle(mu, pessimistic).get_epsilon_for_delta(delta) for pessimistic in (False, True))
    assert low <= epsilon <= high * (1 + 1e-3)
    assert low >= epsilon - 2 * mu * RESOLUTION


@pytest.mark.parametrize("delta", [1e-6, *(pytest.param(x, marks=pytest.mark.slow) for x in (1e-12, 1e-2))])
@pytest.mark.parametrize("pure", [0.01, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("mu", [0.1, 0.5, 2.0])
def test_gaussian_with_a_pure_step_agrees_with_dp_accounting(mu: float, pure: float, delta: float) -> None:
    epsilon = PrivacyCost(mu_squared=mu * mu, pure_epsilons=(pure,)).epsilon_at(delta)
    oracle = mixed_oracle(mu, (pure,)).get_epsilon_for_delta(delta)
    assert oracle - 2 * mu * RESOLUTION <= epsilon <= oracle * (1 + 1e-3)


@pytest.mark.parametrize("pure", [(0.5, 0.5), (0.1,) * 6, (0.2, 1.0, 0.01), (0.05,) * 25, (0.05,) * 60])
@pytest.mark.parametrize("delta", [1e-9, 1e-4])
def test_several_pure_steps_agree_with_dp_accounting(pure: tuple[float, ...], delta: float) -> None:
    mu = 0.5
    epsilon = PrivacyCost(mu_squared=mu * mu, pure_epsilons=pure).epsilon_at(delta)
    oracle = mixed_oracle(mu, pure).get_epsilon_for_delta(delta)
    assert epsilon >= oracle - (len(pure) + 1) * mu * RESOLUTION
    # A few releases are exact; many are moved onto a grid or joined, and then zero-concentration decides.
    assert epsilon <= oracle * (1.001 if len(pure) <= 6 else 1.2)


@pytest.mark.parametrize("sigma", [1, 2, 5, 10, 100])
@pytest.mark.parametrize("releases", [1, 4])
def test_discrete_noise_is_never_below_dp_accounting(sigma: int, releases: int) -> None:
    oracle = privacy_loss_distribution.from_discrete_gaussian_mechanism(
        sigma, value_discretization_interval=RESOLUTION / sigma, pessimistic_estimate=False
    ).self_compose(releases)
    cost = PrivacyCost.gaussian(1, sigma, 1, releases)
    mu = math.sqrt(cost.mu_squared)
    # The oracle drops a mass of 1e-15 when it composes.
    truth = {epsilon: oracle.get_delta_for_epsilon(epsilon) - 2e-15 for epsilon in np.linspace(0.1, 4.5, 45) * mu}
    assert all(cost.delta_at(epsilon) >= delta for epsilon, delta in truth.items())
    # For discrete noise the delta of continuous noise is too small, by a quarter at sigma = 2. So this test fails if
    # the discretization is left out.
    if releases == 1:
        assert any(gaussian_delta(mu, epsilon) < delta for epsilon, delta in truth.items())


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3])
def test_discretization_on_the_coarsest_lattice_is_negligible(epsilon: float, delta: float) -> None:
    budget = Budget.of(epsilon, delta)
    without = calibrate(lambda rho: PrivacyCost(mu_squared=2 * rho), budget)
    assert calibrate(lambda rho: PrivacyCost(mu_squared=2 * rho, discretization=SLACK), budget) >= without * (1 - 1e-3)


@pytest.mark.parametrize("eta", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("mu", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.2, 1.0, 2.5])
def test_bounded_range_step_covers_every_exponential_mechanism(eta: float, mu: float, epsilon: float) -> None:
    """A release of range eta is dominated by a two-point pair with losses t and t - eta for some t in [0, eta]."""
    cost = PrivacyCost(mu_squared=mu * mu, bounded_ranges=(eta,))
    worst = 0.0
    for t in np.linspace(0, eta, 101):
        likely = (math.exp(eta) - math.exp(t)) / math.expm1(eta)
        worst = max(
            worst,
            likely * gaussian_delta(mu, epsilon - t) + (1 - likely) * gaussian_delta(mu, epsilon - t + eta),
        )
    assert cost.delta_at(epsilon) >= worst
    assert cost.rho == pytest.approx(mu * mu / 2 + eta * eta / 8)


def range_profile(eta: float, epsilon: float) -> float:
    """The largest delta of a single eta-bounded-range release: the worst two-point pair in closed form."""
    if abs(epsilon) >= eta:
        return max(0.0, -math.expm1(epsilon))
    return (math.exp(eta / 2) - math.exp(epsilon / 2)) ** 2 / math.expm1(eta)


@pytest.mark.parametrize("eta", [1e-6, 0.1, 1.0, 5.0])
def test_closed_form_of_a_bounded_range_step_is_the_worst_pair(eta: float) -> None:
    for epsilon in np.linspace(-1.1 * eta, 1.1 * eta, 23):
        ts = np.linspace(0, eta, 4001)
        likely = (math.exp(eta) - np.exp(ts)) / math.expm1(eta)
        pairs = likely * np.maximum(0, -np.expm1(epsilon - ts)) + (1 - likely) * np.maximum(
            0, -np.expm1(epsilon - ts + eta)
        )
        assert range_profile(eta, epsilon) == pytest.approx(float(pairs.max()), rel=1e-5, abs=1e-9 * eta)
        # The charged delta is at least this, and exceeds it by at most the error of sixteen chords.
        charged = math.fsum(weight * max(0.0, -math.expm1(epsilon - loss)) for loss, weight in _range_losses(eta))
        assert range_profile(eta, epsilon) * (1 - 1e-9) <= charged <= range_profile(eta, epsilon) + 3e-3 * eta


@pytest.mark.parametrize("etas", [(0.5, 0.5), (2.0, 0.3)])
@pytest.mark.parametrize("mu", [0.0, 0.4])
def test_selections_chosen_adaptively_are_covered(etas: tuple[float, float], mu: float) -> None:
    """The second of two exponential mechanisms may be the worst one for the result of the first."""
    first, second = etas
    cost = PrivacyCost(mu_squared=mu * mu, bounded_ranges=etas)
    grid = np.linspace(-second, second, 401)
    density = np.exp(grid / 2) / (4 * math.sinh(second / 2)) * (grid[1] - grid[0])
    density[[0, -1]] /= 2

    def after(epsilon: float) -> float:
        if mu == 0.0:
            return range_profile(second, epsilon)
        return float(sum(w * gaussian_delta(mu, epsilon - loss) for loss, w in zip(grid, density, strict=True)))

    for epsilon in (0.1, 0.6, 1.5):
        worst = 0.0
        for t in np.linspace(0, first, 11):
            likely = (math.exp(first) - math.exp(t)) / math.expm1(first)
            worst = max(worst, likely * after(epsilon - t) + (1 - likely) * after(epsilon - t + first))
        assert cost.delta_at(epsilon) >= worst * (1 - 1e-6)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    st.lists(st.floats(1e-6, 5.0), max_size=50).map(tuple),
    st.lists(st.floats(1e-6, 5.0), max_size=6).map(tuple),
)
def test_losses_are_those_of_two_distributions(pure: tuple[float, ...], ranges: tuple[float, ...]) -> None:
    losses = losses_of(pure, ranges)
    largest = math.fsum((*pure, *ranges))
    assert len(losses) <= 65
    assert all(weight >= 0 and abs(loss) <= largest * (1 + 1e-12) for loss, weight in losses)
    assert math.fsum(weight for _, weight in losses) == pytest.approx(1, rel=1e-12)
    assert math.fsum(weight * math.exp(-loss) for loss, weight in losses) == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-6), (1.0, 1e-6), (2.0, 1 / 3000)])
def test_selection_costs_little_beside_gaussians(epsilon: float, delta: float) -> None:
    """If a tenth of rho goes to a selection, less than two hundredths of rho are lost. With zero-concentration an
    eighth would be lost.
    """
    budget = Budget.of(epsilon, delta)
    gaussian = calibrate(lambda rho: PrivacyCost(mu_squared=2 * rho), budget)
    mixed = calibrate(lambda rho: PrivacyCost(mu_squared=1.8 * rho, bounded_ranges=(math.sqrt(0.8 * rho),)), budget)
    assert mixed >= 0.98 * gaussian


lawful = settings(max_examples=150, deadline=None, derandomize=True)

# The reported value is never below the truth.


def many_digit_composed(mu: float, pure: tuple[float, ...], epsilon: float) -> mpmath.mpf:
    """delta of Gaussians with randomized responses, summed over all outcomes with 60 digits."""
    with mpmath.workdps(60):
        total = mpmath.mpf(0)
        for signs in itertools.product((1, -1), repeat=len(pure)):
            loss = mpmath.fsum(sign * mpmath.mpf(e) for sign, e in zip(signs, pure, strict=True))
            weight = mpmath.fprod(
                1 / (1 + mpmath.exp(-sign * mpmath.mpf(e))) for sign, e in zip(signs, pure, strict=True)
            )
            if mu > 0:
                total += weight * many_digit_delta(mu, mpmath.mpf(epsilon) - loss)
            else:
                total += weight * max(mpmath.mpf(0), 1 - mpmath.exp(mpmath.mpf(epsilon) - loss))
        return total


def test_losses_that_are_rounded_do_not_lower_delta() -> None:
    """With a tiny mu, delta falls steeply at every loss, so that an error in the last digit of a loss is visible."""
    mu, pure = 1.385e-10, (0.1, 0.1, 0.7, 3.3, 0.2)
    cost = PrivacyCost(mu_squared=mu * mu, pure_epsilons=pure)
    total = math.fsum(pure)
    for epsilon in (total + k * mu for k in (-3, -1, 0, 1, 3, 10, 30)):
        assert cost.delta_at(epsilon) >= many_digit_composed(math.sqrt(cost.mu_squared), pure, epsilon)


@settings(max_examples=120, deadline=None, derandomize=True)
@given(
    st.one_of(st.just(0.0), st.floats(-11, 0).map(lambda x: 10**x)),
    st.lists(st.sampled_from([0.1, 0.2, 0.3, 0.7, 3.3, 1 / 3, 1e-9]), max_size=5).map(tuple),
    st.floats(-5, 30),
    st.integers(0, 31),
)
def test_reported_delta_is_never_below_the_truth(mu: float, pure: tuple[float, ...], steps: float, loss: int) -> None:
    """Epsilons within a few mu of the losses, for which the rounding of a loss matters most."""
    mu_squared = mu * mu
    signed = math.fsum(e if loss >> place & 1 else -e for place, e in enumerate(pure))
    epsilon = max(signed + steps * mu, 0.0)
    cost = PrivacyCost(mu_squared=mu_squared, pure_epsilons=pure)
    with mpmath.workdps(60):
        truth = many_digit_composed(mpmath.sqrt(mpmath.mpf(mu_squared)), pure, epsilon)
    assert cost.delta_at(epsilon) >= truth


@pytest.mark.parametrize("mu", [1e-3, 0.0, 1e-10, 0.3])
def test_losses_spread_on_a_grid_do_not_lower_delta(mu: float) -> None:
    pure = (0.1, 0.2, 0.3, 0.7, 3.3, 1 / 3, 0.05)  # 128 losses, on 65 points.
    cost = PrivacyCost(mu_squared=mu * mu, pure_epsilons=pure)
    for epsilon in np.linspace(0.0, math.fsum(pure) * 1.01, 23):
        assert cost.delta_at(epsilon) >= many_digit_composed(math.sqrt(cost.mu_squared), pure, epsilon)


numbers = st.one_of(st.floats(0, 1e3), st.floats(1e-12, 1e-3), st.sampled_from([0.1, 0.2, 0.3, 0.7]))


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(numbers, max_size=8), st.integers(1, 1000))
def test_sums_and_products_are_the_next_double_above(values: list[float], k: int) -> None:
    total = sum_up(values)
    assert Fraction(math.nextafter(total, -math.inf)) < sum(map(Fraction, values)) <= Fraction(total)
    for value in values:
        product = product_up(k, value)
        assert Fraction(math.nextafter(product, -math.inf)) < k * Fraction(value) <= Fraction(product)


@lawful
@given(st.lists(st.floats(1e-9, 20), max_size=4).map(tuple), st.lists(st.floats(1e-9, 20), max_size=4).map(tuple))
def test_pure_epsilon_and_rho_are_never_below_the_truth(pure: tuple[float, ...], ranges: tuple[float, ...]) -> None:
    cost = PrivacyCost(pure_epsilons=pure, bounded_ranges=ranges)
    assert Fraction(cost.epsilon_at(0.0)) >= sum(map(Fraction, (*pure, *ranges)))
    with mpmath.workdps(40):
        truth = mpmath.fsum(mpmath.mpf(e) * mpmath.tanh(mpmath.mpf(e) / 2) for e in pure)
        truth += mpmath.fsum(mpmath.mpf(eta) ** 2 / 8 for eta in ranges)
        assert truth <= cost.rho <= truth * (1 + 1e-14)


TINY = [5e-324, 1e-320, 1e-310, 1e-300, 1e-200, 1e-170, 1e-155, 1e-100]


@pytest.mark.parametrize("size", TINY)
@pytest.mark.parametrize("field", ["mu_squared", "pure_epsilons", "bounded_ranges"])
def test_a_tiny_cost_is_not_zero(field: str, size: float) -> None:
    cost = PrivacyCost(**{field: size if field == "mu_squared" else (size,)})
    with mpmath.workdps(60):
        x = mpmath.mpf(size)
        delta, rho, mu_squared = {
            "mu_squared": (mpmath.erf(mpmath.sqrt(x / 8)), x / 2, x),
            "pure_epsilons": (mpmath.tanh(x / 2), x * mpmath.tanh(x / 2), mpmath.pi / 2 * x * x),
            "bounded_ranges": (mpmath.tanh(x / 4), x * x / 8, mpmath.pi / 8 * x * x),
        }[field]
        assert cost.delta_at(0.0) >= delta > 0
        assert cost.rho >= rho > 0
        assert cost.dominating_mu_squared >= mu_squared * (1 - mpmath.mpf(size)) > 0
    # Equal up to a factor, unless the value is below what any budget can use.
    assert cost.delta_at(0.0) <= max(1.2 * float(delta), 1e-298)
    assert cost.rho <= max(1.01 * float(rho), 1e-300)
    for epsilon in (1e-300, 1e-9, 1.0, 1e3, 1e300, 1.7e308):
        assert 0.0 <= cost.delta_at(epsilon) <= cost.delta_at(0.0)
        assert concentrated_delta(cost.rho, epsilon) > 0.0
    assert cost.epsilon_at(1e-6) == 0.0
    assert not Budget.of(epsilon=1e-9).fits(cost) or field != "mu_squared"


@pytest.mark.parametrize("size", TINY)
@pytest.mark.parametrize("field", ["pure_epsilons", "bounded_ranges"])
def test_a_tiny_step_does_not_hide_a_large_one(field: str, size: float) -> None:
    large = PrivacyCost(mu_squared=1.0)
    for epsilon in (0.0, 1.0, 3.0):
        both = (large + PrivacyCost(**{field: (size,) * 3})).delta_at(epsilon)
        assert both == pytest.approx(large.delta_at(epsilon), rel=1e-6)
        assert both >= many_digit_delta(1.0, epsilon)


@pytest.mark.parametrize("k", [2**53 + 1, 2**60 + 1, 2**64 - 1, 10**30 + 1, np.int64(2**53 + 1), Fraction(2**53 + 1)])
def test_a_large_group_is_counted_exactly(k: int) -> None:
    exact = int(k)
    cost = PrivacyCost(1e-40, 0.0, (3e-20,), (7e-20,)).for_group(k)
    assert Fraction(cost.mu_squared) >= exact**2 * Fraction(1e-40)
    assert Fraction(cost.pure_epsilons[0]) >= exact * Fraction(3e-20)
    assert Fraction(cost.bounded_ranges[0]) >= exact * Fraction(7e-20)
    assert Fraction(PrivacyCost.pure_dp(1.0).for_group(k).pure_epsilons[0]) >= exact
    released = PrivacyCost.gaussian(1, 2**40, k, k)
    assert Fraction(released.mu_squared) >= exact * Fraction(1, 2**80)
    assert Fraction(released.discretization) >= Fraction(exact**2, 40 * 2**80)


def test_a_group_that_no_double_counts_is_refused() -> None:
    with pytest.raises(ValueError, match="pure_epsilons must be a finite number that is at least 0, got inf"):
        PrivacyCost.pure_dp(1.0).for_group(10**400)
    with pytest.raises(ValueError, match="epsilon must be a finite number greater than 0, got 1000"):
        PrivacyCost.pure_dp(10**400)


INEXACT = [Fraction(1, 3), Fraction(2, 3), Fraction(1, 10), Fraction(3, 10), np.longdouble(1) / 3, np.longdouble(2) / 3]


@pytest.mark.parametrize("number", INEXACT)
def test_arguments_that_no_double_equals_err_to_the_private_side(number: Fraction) -> None:
    # Costs are rounded up.
    for value in (
        PrivacyCost(mu_squared=number).mu_squared,
        PrivacyCost(discretization=number).discretization,
        PrivacyCost(delta0=number).delta0,
        PrivacyCost(pure_epsilons=(number,)).pure_epsilons[0],
        PrivacyCost.pure_dp(number).pure_epsilons[0],
        PrivacyCost.bounded_range(number).bounded_ranges[0],
        PrivacyCost().requested(number, number).epsilon,
    ):
        assert type(value) is float
        assert math.nextafter(value, 0.0) < number <= value
    # Numbers that allow or protect something are rounded down.
    for value in (Budget.of(number, number).epsilon, Budget.of(number, number).delta, Budget.of(rho=number).rho):
        assert type(value) is float
        assert value <= number < math.nextafter(value, 1.0)


@pytest.mark.parametrize("number", [Fraction(1, 3), Fraction(2, 3), Fraction(1, 10), Fraction(3, 10)])
def test_a_sigma_and_the_epsilon_or_delta_of_a_conversion_are_rounded_to_the_private_side(number: Fraction) -> None:
    noise = number + 7
    assert Fraction(PrivacyCost.gaussian(1, noise, 1).mu_squared) >= 1 / noise**2
    assert Fraction(PrivacyCost.gaussian(number, 7, 1).mu_squared) >= (number / 7) ** 2
    below = float(number) if Fraction(float(number)) < number else math.nextafter(float(number), 0.0)
    cost = PrivacyCost(mu_squared=1e-30, pure_epsilons=(0.5,))
    assert cost.delta_at(number) == cost.delta_at(below)
    assert cost.epsilon_at(number) == cost.epsilon_at(below)
    assert Budget.of(rho=1.0).epsilon_at(number) == Budget.of(rho=1.0).epsilon_at(below)


def test_decimal_epsilons_are_not_reported_too_low() -> None:
    pure = (0.1, 0.2, 0.3)
    assert Fraction(PrivacyCost(pure_epsilons=pure).epsilon_at(0.0)) >= sum(map(Fraction, pure))


# Laws of the accounting.

costs = st.builds(
    PrivacyCost,
    mu_squared=st.one_of(st.just(0.0), st.floats(1e-12, 100.0)),
    discretization=st.one_of(st.just(0.0), st.floats(1e-25, 1e-3)),
    pure_epsilons=st.lists(st.floats(1e-6, 5.0), max_size=4).map(tuple),
    bounded_ranges=st.lists(st.floats(1e-6, 5.0), max_size=4).map(tuple),
    delta0=st.one_of(st.just(0.0), st.floats(1e-15, 1e-2)),
)
deltas = st.floats(-15, -1).map(lambda exponent: 10**exponent)


@lawful
@given(costs, st.floats(0, 100), st.floats(0, 100))
def test_delta_never_rises_with_epsilon(cost: PrivacyCost, one: float, other: float) -> None:
    small, large = sorted((one, other))
    # The promised digits, and a little more: the branch of the discretization is found by bisection.
    assert cost.delta_at(large) <= cost.delta_at(small) * (1 + 1e-9)
    assert cost.delta0 <= cost.delta_at(large) <= 1.0


@lawful
@given(costs, deltas, deltas)
def test_epsilon_never_rises_with_delta(cost: PrivacyCost, one: float, other: float) -> None:
    small, large = sorted((one, other))
    assert cost.epsilon_at(large) <= cost.epsilon_at(small) * (1 + 1e-8) + 1e-12


@lawful
@given(costs, deltas)
def test_epsilon_and_delta_are_inverse_on_the_private_side(cost: PrivacyCost, delta: float) -> None:
    epsilon = cost.epsilon_at(delta)
    if math.isinf(epsilon):
        assert delta < cost.delta0 * (1 + 1e-9)
        return
    assert cost.delta_at(epsilon) <= delta
    if epsilon > 1e-9:
        assert cost.delta_at(epsilon * (1 - 1e-6)) >= delta * (1 - 1e-9)


@lawful
@given(costs, costs, st.floats(0, 20))
def test_more_is_never_cheaper(one: PrivacyCost, other: PrivacyCost, epsilon: float) -> None:
    both = one + other
    assert both.delta_at(epsilon) >= max(one.delta_at(epsilon), other.delta_at(epsilon)) * (1 - 1e-9)
    assert both.rho >= max(one.rho, other.rho)


@lawful
@given(costs, costs, costs)
def test_sum_is_associative_and_total_agrees(a: PrivacyCost, b: PrivacyCost, c: PrivacyCost) -> None:
    left, right, total = (a + b) + c, a + (b + c), PrivacyCost.total((a, b, c))
    for one, other in ((left, right), (left, total)):
        assert one.mu_squared == pytest.approx(other.mu_squared, rel=1e-15)
        assert one.discretization == pytest.approx(other.discretization, rel=1e-15)
        assert one.delta0 == pytest.approx(other.delta0, rel=1e-15)
        assert (one.pure_epsilons, one.bounded_ranges) == (other.pure_epsilons, other.bounded_ranges)
    assert a + PrivacyCost() == PrivacyCost() + a == PrivacyCost.total([a])


@lawful
@given(costs)
def test_stored_cost_is_restored_bit_for_bit(cost: PrivacyCost) -> None:
    asked = cost.requested(1.0, 0.0)
    assert PrivacyCost.from_dict(asked.to_dict()) == asked
    assert PrivacyCost.from_dict(cost.to_dict()) == cost


def split(rho: float) -> PrivacyCost:
    """A mixture like those of the methods: most of rho in Gaussians, some in a pure release, some in a selection."""
    pure, eta = math.sqrt(2 * 0.05 * rho), math.sqrt(8 * 0.05 * rho)
    return PrivacyCost(mu_squared=1.8 * rho, discretization=SLACK) + PrivacyCost(
        pure_epsilons=(pure,), bounded_ranges=(eta,)
    )


@lawful
@given(
    st.one_of(
        st.builds(Budget.of, epsilon=st.floats(-6, 2).map(lambda x: 10**x), delta=deltas),
        st.builds(Budget.of, rho=st.floats(-12, 2).map(lambda x: 10**x)),
    )
)
def test_calibrated_cost_fits_and_slightly_more_does_not(budget: Budget) -> None:
    calls = 0

    def cost_of(rho: float) -> PrivacyCost:
        nonlocal calls
        calls += 1
        return split(rho)

    # A budget whose delta is below the discretization is refused elsewhere.
    if budget.epsilon is not None and budget.delta is not None and budget.delta < 1e-12:
        return
    rho = calibrate(cost_of, budget)
    assert calls < 60
    assert budget.fits(split(rho))
    assert not budget.fits(split(rho * (1 + 1e-8)))


def test_a_cost_too_small_to_be_compared_fits() -> None:
    assert Budget.of(rho=10.0).fits(PrivacyCost(mu_squared=1e-323))
    assert Budget.of(rho=10.0).fits(PrivacyCost())


def test_calibration_finds_a_narrow_reach() -> None:
    """A method whose lattice fits only rho from 0.0095 on."""

    def cost_of(rho: float) -> PrivacyCost:
        if rho < 0.0095:
            raise ValueError("too little")
        return PrivacyCost(mu_squared=2.2 * rho)

    assert calibrate(cost_of, Budget.of(1.0, 1e-6)) == pytest.approx(0.0254677, rel=1e-5)


@pytest.mark.parametrize("missing", [1e-3, 1e-6, 1e-9])
def test_a_small_epsilon_has_its_digits(missing: float) -> None:
    cost = PrivacyCost(mu_squared=1e-10)
    delta = cost.delta_at(0.0) * (1.0 - missing)
    epsilon = cost.epsilon_at(delta)
    assert cost.delta_at(epsilon) <= delta < cost.delta_at(epsilon * (1.0 - 1e-3))


@pytest.mark.parametrize("jump", [1e-6, 0.02, 0.3, 5.0])
def test_calibration_finds_a_jump_of_the_cost(jump: float) -> None:
    """If, for example, the number of releases depends on rho, the cost jumps, and no smooth rule finds the border."""
    budget, asked = Budget.of(1.0, 1e-6), []

    def cost_of(rho: float) -> PrivacyCost:
        asked.append(rho)
        return PrivacyCost(mu_squared=1e-9 * rho) if rho < jump else PrivacyCost(mu_squared=1e3)

    assert calibrate(cost_of, budget) == pytest.approx(jump, rel=1e-8)
    assert len(asked) < 160


def test_epsilon_one_allows_the_noise_that_theory_allows() -> None:
    """At epsilon = 1 and delta = 1e-6 the noise is 0.83 times that of the authors' conversion, and 0.79 times that of
    the closed form.
    """
    delta = 1e-6
    exact = calibrate(lambda rho: PrivacyCost(mu_squared=2 * rho), Budget.of(1.0, delta))
    closed = (math.sqrt(math.log(1 / delta) + 1) - math.sqrt(math.log(1 / delta))) ** 2
    low, high = 1e-6, 1.0
    for _ in range(100):
        rho = (low + high) / 2
        fits = rho + math.sqrt(4 * rho * math.log(math.sqrt(math.pi * rho) / delta)) <= 1.0
        low, high = (rho, high) if fits else (low, rho)
    assert math.sqrt(low / exact) == pytest.approx(0.831, abs=1e-3)
    assert math.sqrt(closed / exact) == pytest.approx(0.790, abs=1e-3)


# Values of the accounting.


def test_gaussian_cost_rounds_to_the_private_side() -> None:
    generator = random.Random(5)
    for _ in range(5000):
        sensitivity, sigma = generator.randint(1, 2**40), generator.randint(2**30, 2**50)
        releases, coordinates = generator.choice((1, 1, 3, 777)), generator.randint(1, 10_000)
        cost = PrivacyCost.gaussian(sensitivity, sigma, coordinates, releases)
        exact = Fraction(sensitivity, sigma) ** 2 * releases
        assert exact <= Fraction(cost.mu_squared) <= exact * (1 + Fraction(1, 2**48))
        slack = Fraction(releases * coordinates, 40 * sigma**2)
        assert slack <= Fraction(cost.discretization) <= slack * (1 + Fraction(1, 2**48))


def test_rho_of_the_parts() -> None:
    cost = PrivacyCost.gaussian(2, 10, 1) + PrivacyCost.pure_dp(0.5) + PrivacyCost.bounded_range(2.0)
    assert cost.rho == pytest.approx(0.02 + 0.5 * math.tanh(0.25) + 0.5)
    assert cost.epsilon is None
    assert cost.delta is None


def test_pure_steps_need_no_delta() -> None:
    cost = PrivacyCost.pure_dp(0.25) + PrivacyCost.bounded_range(0.5)
    assert cost.delta_at(0.75) == 0.0
    assert cost.epsilon_at(0.0) == 0.75
    assert cost.delta_at(0.7) > 0.0
    # Randomized response at epsilon 1 has delta(0) = (e - 1)/(e + 1); only the margin is added to the exact value.
    assert PrivacyCost.pure_dp(1.0).delta_at(0.0) == pytest.approx(math.tanh(0.5), rel=1e-9)


def test_gaussian_steps_have_no_pure_epsilon() -> None:
    assert PrivacyCost(mu_squared=1e-9).epsilon_at(0.0) == math.inf
    assert PrivacyCost(delta0=1e-6).epsilon_at(1e-7) == math.inf
    assert (PrivacyCost(delta0=1e-6) + PrivacyCost(mu_squared=1.0)).epsilon_at(1e-6) == math.inf


def test_approximate_part_is_added_once() -> None:
    cost = PrivacyCost(mu_squared=0.25)
    rest = cost.delta_at(1.0)
    assert (cost + PrivacyCost(delta0=1e-3)).delta_at(1.0) == pytest.approx(1e-3 + (1 - 1e-3) * rest, rel=1e-12)
    assert PrivacyCost(delta0=1e-6).delta_at(3.0) == 1e-6
    assert PrivacyCost.total([PrivacyCost(delta0=1e-6)] * 3).delta_at(3.0) == pytest.approx(3e-6, rel=1e-12)
    assert PrivacyCost(delta0=1.5, mu_squared=1.0).delta_at(1.0) == 1.0


def test_discretization_counts_on_both_sides() -> None:
    mu, slack, epsilon = 0.5, 1e-9, 2.0
    both = gaussian_delta(mu, epsilon) + (1 + math.exp(epsilon)) * slack
    assert PrivacyCost(mu_squared=mu * mu, discretization=slack).delta_at(epsilon) == pytest.approx(both, rel=1e-9)


def test_discretization_does_not_make_delta_rise_with_epsilon() -> None:
    # The term e^epsilon * discretization exceeds the fall of the Gaussian near epsilon = 10, before concentration is
    # better.
    cost = PrivacyCost(mu_squared=9.0, discretization=1e-6)
    reported = [cost.delta_at(epsilon) for epsilon in np.linspace(8.0, 13.0, 101)]
    assert all(later <= earlier * (1 + 1e-9) for earlier, later in itertools.pairwise(reported))


def test_large_discretization_never_counts_more_than_concentration_allows() -> None:
    cost = PrivacyCost.gaussian(1, 2, 1_000_000)
    assert cost.delta_at(1.0) == pytest.approx(concentrated_delta(cost.rho, 1.0), rel=1e-9)
    assert cost.delta_at(5000.0) < 1e-200


def test_nothing_costs_nothing() -> None:
    nothing = PrivacyCost()
    assert nothing.rho == nothing.delta_at(0.0) == nothing.epsilon_at(0.0) == 0.0
    assert nothing == PrivacyCost.total([])
    assert PrivacyCost.gaussian(0, 2**30, 5).delta_at(0.0) == pytest.approx(0.0, abs=1e-17)


def test_cost_reads_as_it_was_asked() -> None:
    cost = PrivacyCost(mu_squared=0.02)
    assert str(cost) == "rho = 0.01"
    assert cost.asked(1.0, 1e-6) == cost.requested(1.0, 1e-6)  # The name in 0.2.0 goes on working.
    assert str(cost.requested(1.0, 1e-6)) == "epsilon = 1, delta = 1e-06 (rho = 0.01)"
    assert str(cost + PrivacyCost(delta0=1e-7)) == "rho = 0.01, delta = 1e-07"
    assert str(PrivacyCost.pure_dp(2.0)) == "epsilon = 2"


def test_cost_is_frozen_and_adds_only_to_a_cost() -> None:
    with pytest.raises(AttributeError):
        PrivacyCost().mu_squared = 1.0  # type: ignore[misc]
    with pytest.raises(TypeError):
        PrivacyCost() + 1.0  # type: ignore[operator]


# Budgets.


@pytest.mark.parametrize(
    ("budget", "inside", "outside"),
    [
        (Budget.of(rho=0.5), PrivacyCost(mu_squared=1.0), PrivacyCost(mu_squared=1.0, delta0=1e-9)),
        (Budget.of(rho=0.5), PrivacyCost(mu_squared=1.0), PrivacyCost(mu_squared=1.0 + 1e-15)),
        (Budget.of(rho=0.5, delta=1e-9), PrivacyCost(mu_squared=1.0, delta0=1e-9), PrivacyCost(delta0=1.1e-9)),
        (
            Budget.of(epsilon=1.0),
            PrivacyCost(pure_epsilons=(0.5, 0.25), bounded_ranges=(0.25,)),
            PrivacyCost(mu_squared=1e-20),
        ),
        (Budget.of(epsilon=1.0, delta=0.0), PrivacyCost.pure_dp(1.0), PrivacyCost.pure_dp(1.0 + 1e-15)),
        (
            Budget.of(1.0, 1e-6),
            PrivacyCost(pure_epsilons=(1.0,), delta0=1e-6),
            PrivacyCost(pure_epsilons=(1.0,), delta0=1.0001e-6),
        ),
    ],
)
def test_budget_fits_up_to_its_border(budget: Budget, inside: PrivacyCost, outside: PrivacyCost) -> None:
    assert budget.fits(inside)
    assert not budget.fits(outside)


def test_decimal_sums_fit_with_the_allowance_for_rounding() -> None:
    budget, thrice = Budget.of(epsilon=0.3), PrivacyCost.total([PrivacyCost.pure_dp(0.1)] * 3)
    assert not budget.fits(thrice)
    assert budget.fits(thrice, rounding=2.0**-48)
    assert not budget.fits(thrice + PrivacyCost.pure_dp(1e-12), rounding=2.0**-48)


def test_budget_describes_itself() -> None:
    assert Budget.of(1.0, 1e-6).describe() == str(Budget.of(1, 1e-6)) == "epsilon = 1, delta = 1e-06"
    assert Budget.of(epsilon=2.0).describe() == "epsilon = 2"
    assert Budget.of(rho=0.1, delta=1e-6).describe() == "rho = 0.1, delta = 1e-06"


def test_numbers_of_any_kind_are_accepted() -> None:
    assert Budget.of(np.float32(0.5), Fraction(1, 4)) == Budget.of(0.5, 0.25)
    assert Budget.of(epsilon=np.int64(2)) == Budget.of(epsilon=2.0)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, ValueError, "no privacy budget: pass epsilon and delta"),
        ({"delta": 1e-6}, ValueError, "no privacy budget, delta = 1e-06 alone"),
        ({"epsilon": 1.0, "rho": 0.5}, ValueError, "two budgets at once, epsilon = 1.0 and rho = 0.5"),
        ({"epsilon": 0.0}, ValueError, "epsilon must be a finite number greater than 0, got 0.0"),
        ({"epsilon": -1}, ValueError, "epsilon must be a finite number greater than 0, got -1"),
        ({"epsilon": math.nan}, ValueError, "epsilon must be a finite number greater than 0, got nan"),
        ({"epsilon": math.inf}, ValueError, "epsilon must be a finite number greater than 0, got inf"),
        ({"epsilon": 1e-10}, ValueError, "epsilon must lie between 1e-09 and 1000, got 1e-10"),
        ({"epsilon": 1e4}, ValueError, "epsilon must lie between 1e-09 and 1000, got 10000.0"),
        ({"epsilon": "1"}, TypeError, "epsilon must be a finite number greater than 0, got '1' of type str"),
        ({"epsilon": True}, TypeError, "epsilon .* got True of type bool"),
        ({"epsilon": 1j}, TypeError, "epsilon .* of type complex"),
        ({"epsilon": np.ones(2)}, TypeError, "epsilon .* of type ndarray"),
        ({"rho": 0}, ValueError, "rho must be a finite number greater than 0, got 0"),
        ({"rho": 1e9}, ValueError, "rho must lie between 1e-20 and 100000, got 1000000000.0"),
        ({"rho": [1]}, TypeError, r"rho .* got \[1\] of type list"),
        ({"epsilon": 1.0, "delta": 1.0}, ValueError, r"delta must be a number in \[0, 1\), got 1.0"),
        ({"epsilon": 1.0, "delta": -1e-9}, ValueError, r"delta must be a number in \[0, 1\), got -1e-09"),
        ({"epsilon": 1.0, "delta": math.nan}, ValueError, r"delta must be a number in \[0, 1\), got nan"),
        ({"epsilon": 1.0, "delta": 1e-200}, ValueError, "delta must be 0 or at least 1e-100, got 1e-200"),
        ({"rho": 1.0, "delta": "x"}, TypeError, "delta .* got 'x' of type str"),
    ],
)
def test_bad_budget_is_refused_by_name(arguments: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Budget.of(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: PrivacyCost.gaussian(1, 0.5, 1), ValueError, "sigma must be .* at least 1 .* got 0.5"),
        (lambda: PrivacyCost.gaussian(-1, 2, 1), ValueError, "sensitivity must be .* at least 0, got -1"),
        (lambda: PrivacyCost.gaussian(1, 2, 0), ValueError, "coordinates must be a positive whole number, got 0"),
        (lambda: PrivacyCost.gaussian(1, 2, 1, 1.5), ValueError, "releases must be a positive whole number, got 1.5"),
        (lambda: PrivacyCost.pure_dp(0), ValueError, "epsilon must be a finite number greater than 0, got 0"),
        (lambda: PrivacyCost.bounded_range(-2), ValueError, "eta must be a finite number greater than 0, got -2"),
        (lambda: PrivacyCost(delta0=-1), ValueError, "delta0 must be .* at least 0, got -1"),
        (lambda: PrivacyCost(neighbours="swap"), ValueError, "neighbours must be one of .*'add_remove'.* got 'swap'"),
        (lambda: PrivacyCost(unit=""), ValueError, "unit must not be empty"),
        (lambda: PrivacyCost(unit=3), TypeError, r"unit must be a label .* got 3 \(int\)"),
        (lambda: PrivacyCost(mu_squared=-1.0), ValueError, "mu_squared must be .* got -1.0"),
        (lambda: PrivacyCost(mu_squared=math.nan), ValueError, "mu_squared must be .* got nan"),
        (lambda: PrivacyCost(pure_epsilons=(1.0, math.inf)), ValueError, "pure_epsilons must be .* got inf"),
        (lambda: PrivacyCost().requested(-1.0, None), ValueError, "epsilon must be .* got -1.0"),
        (lambda: PrivacyCost().delta_at(-1.0), ValueError, "epsilon must be .* at least 0, got -1.0"),
        (lambda: PrivacyCost().epsilon_at(1.0), ValueError, r"delta must be a number in \[0, 1\), got 1.0"),
        (lambda: PrivacyCost().epsilon_at(1e-150), ValueError, "delta must be 0 or at least 1e-100, got 1e-150"),
        (lambda: PrivacyCost.from_dict({"mu": 1.0}), ValueError, r"unknown fields \['mu'\]"),
    ],
)
def test_bad_cost_is_refused_by_name(call: Callable[[], object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_calibration_that_cannot_succeed_says_why() -> None:
    with pytest.raises(
        ValueError, match=r"nothing fits the budget epsilon = 1: .* without delta only pure releases fit"
    ):
        calibrate(lambda rho: PrivacyCost(mu_squared=2 * rho), Budget.of(epsilon=1.0))
    with pytest.raises(ValueError, match=r"nothing fits the budget epsilon = 1, delta = 0.0001: .* delta = 0.001"):
        calibrate(lambda rho: PrivacyCost(mu_squared=2 * rho, delta0=1e-3), Budget.of(1.0, 1e-4))
    with pytest.raises(ValueError, match="does not grow with rho"):
        calibrate(lambda rho: PrivacyCost.pure_dp(0.1), Budget.of(1.0, 1e-4))


def test_calibration_stays_within_the_reach_of_the_recipe() -> None:
    def cost_of(rho: float) -> PrivacyCost:
        if not 1e-3 <= rho <= 1e-2:
            raise ValueError(f"no lattice holds the noise of rho = {rho}")
        return PrivacyCost(mu_squared=2 * rho)

    # The budget allows more than the mixture can use, something within its range, and less.
    assert calibrate(cost_of, Budget.of(rho=0.1)) == pytest.approx(1e-2, rel=1e-8)
    assert calibrate(cost_of, Budget.of(rho=5e-3)) == pytest.approx(5e-3, rel=1e-8)
    assert calibrate(cost_of, Budget.of(rho=9e-3)) == pytest.approx(9e-3, rel=1e-8)
    with pytest.raises(ValueError, match=r"nothing fits the budget rho = 0.0001: no lattice holds the noise of rho"):
        calibrate(cost_of, Budget.of(rho=1e-4))
    # A mixture with Gaussians cannot be pure; that some of its costs have no lattice does not matter here.
    with pytest.raises(
        ValueError, match=r"nothing fits the budget epsilon = 0.1: .* without delta only pure releases fit"
    ):
        calibrate(cost_of, Budget.of(epsilon=0.1))


def test_pure_budget_calibrates_pure_steps() -> None:
    rho = calibrate(lambda rho: PrivacyCost.pure_dp(math.sqrt(2 * rho)), Budget.of(epsilon=3.0))
    assert math.sqrt(2 * rho) == pytest.approx(3.0, rel=1e-8)
    assert math.sqrt(2 * rho) <= 3.0
