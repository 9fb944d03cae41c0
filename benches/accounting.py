"""Compares the accounting with dp_accounting and with looser conversions: `python benches/accounting.py`.

First table: Gaussian noise calibrated to (epsilon, delta). "oracle" is the epsilon that dp_accounting (optimistic and
pessimistic) finds for this noise: the two values must enclose the requested epsilon. The last two columns are our noise
divided by the noise that two looser conversions need: the conversion in the authors' code, epsilon = rho + sqrt(4 rho
log(sqrt(pi rho)/delta)), and the closed form in the paper, epsilon = rho + 2 sqrt(rho log(1/delta)).

Second table: Gaussians together with a pure release (for example AboveThreshold). Third table: a tenth of rho is spent
on a selection, and the table shows the noise divided by the noise if all of rho were spent on Gaussians. The three
columns compose the selection in three ways: with its own privacy loss, as a pure release, and by zero-concentration.
Fourth table: the time of each call.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from dp_accounting.pld import common, privacy_loss_distribution

from dpmedian.accounting import Budget, PrivacyCost, calibrate

RESOLUTION = 1e-3


def gaussian_oracle(mu: float, pessimistic: bool) -> privacy_loss_distribution.PrivacyLossDistribution:
    return privacy_loss_distribution.from_gaussian_mechanism(
        1 / mu,
        value_discretization_interval=mu * RESOLUTION,
        pessimistic_estimate=pessimistic,
        use_connect_dots=pessimistic,
    )


def largest(fits: Callable[[float], bool]) -> float:
    """Return the largest rho that satisfies the condition, by bisection on the logarithm. The condition must hold for
    all smaller rho.
    """
    low, high = -30.0, 15.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(math.exp(middle)) else (low, middle)
    return math.exp(low)


def authors_rho(epsilon: float, delta: float) -> float:
    def fits(rho: float) -> bool:
        ratio = math.sqrt(math.pi * rho) / delta
        # If the logarithm is negative the conversion does not apply, and rho is far too small anyway.
        return ratio <= 1 or rho + math.sqrt(4 * rho * math.log(ratio)) <= epsilon

    return largest(fits)


def closed_rho(epsilon: float, delta: float) -> float:
    return largest(lambda rho: rho + 2 * math.sqrt(rho * math.log(1 / delta)) <= epsilon)


def print_gaussian() -> None:
    print("Gaussian noise calibrated to (epsilon, delta)\n")
    print(f"{'epsilon':>8} {'delta':>7} {'sigma/sens.':>12} {'oracle':>25} {'/ authors':>10} {'/ closed form':>14}")
    for epsilon in (1e-3, 0.1, 0.5, 1.0, 2.0, 3.0, 10.0, 100.0):
        for delta in (1e-12, 1e-6, 1e-3):
            rho = calibrate(lambda rho: PrivacyCost(mu_squared=2 * rho), Budget.of(epsilon, delta))
            mu = math.sqrt(2 * rho)
            low, high = (gaussian_oracle(mu, side).get_epsilon_for_delta(delta) for side in (False, True))
            authors = math.sqrt(authors_rho(epsilon, delta) / rho)
            closed = math.sqrt(closed_rho(epsilon, delta) / rho)
            oracle = f"[{low:.6g}, {high:.6g}]"
            print(f"{epsilon:8g} {delta:7.0e} {1 / mu:12.5g} {oracle:>25} {authors:10.3f} {closed:14.3f}")


def print_mixed() -> None:
    print("\nGaussians with a pure step: epsilon at delta\n")
    print(f"{'mu':>6} {'pure':>6} {'delta':>7} {'ours':>10} {'oracle':>10} {'sum of the two':>15}")
    for mu in (0.1, 0.5, 2.0):
        for pure in (0.1, 1.0):
            for delta in (1e-9, 1e-5):
                gaussian, step = PrivacyCost(mu_squared=mu * mu), PrivacyCost.pure_dp(pure)
                parameters = common.DifferentialPrivacyParameters(pure, 0.0)
                rounded = privacy_loss_distribution.from_privacy_parameters(parameters, mu * RESOLUTION)
                oracle = gaussian_oracle(mu, True).compose(rounded).get_epsilon_for_delta(delta)
                ours = (gaussian + step).epsilon_at(delta)
                summed = gaussian.epsilon_at(delta) + pure
                print(f"{mu:6g} {pure:6g} {delta:7.0e} {ours:10.5f} {oracle:10.5f} {summed:15.5f}")


def print_selection() -> None:
    print("\nA tenth of rho in a selection: the noise divided by the noise of Gaussians alone\n")
    print(f"{'epsilon':>8} {'delta':>7} {'own loss':>9} {'pure':>9} {'concentrated':>13}")
    for epsilon in (0.5, 1.0, 2.0, 4.0):
        for delta in (1e-9, 1e-6, 1e-3):
            budget = Budget.of(epsilon, delta)
            alone = calibrate(lambda rho: PrivacyCost(mu_squared=2 * rho), budget)
            own = calibrate(
                lambda rho: PrivacyCost(mu_squared=1.8 * rho, bounded_ranges=(math.sqrt(0.8 * rho),)), budget
            )
            pure = calibrate(
                lambda rho: PrivacyCost(mu_squared=1.8 * rho, pure_epsilons=(math.sqrt(0.8 * rho),)), budget
            )
            # For many releases that are not Gaussian, only the concentrated bound can be computed.
            concentrated = calibrate(
                lambda rho: PrivacyCost(bounded_ranges=(math.sqrt(8 * rho / 1000),) * 1000), budget
            )
            ratios = [math.sqrt(alone / rho) for rho in (own, pure, concentrated)]
            print(f"{epsilon:8g} {delta:7.0e} {ratios[0]:9.3f} {ratios[1]:9.3f} {ratios[2]:13.3f}")


def print_time() -> None:
    print("\nTime per call\n")
    gaussian = PrivacyCost(mu_squared=0.05, discretization=1e-18)
    mixed = gaussian + PrivacyCost.pure_dp(0.1) + PrivacyCost.bounded_range(0.1)
    budget = Budget.of(1.0, 1e-6)
    for name, call in (
        ("delta_at, Gaussian", lambda: gaussian.delta_at(1.0)),
        ("delta_at, mixture", lambda: mixed.delta_at(1.0)),
        ("epsilon_at, Gaussian", lambda: gaussian.epsilon_at(1e-6)),
        (
            "calibrate, Gaussian",
            lambda: calibrate(lambda rho: PrivacyCost(mu_squared=2 * rho, discretization=1e-18), budget),
        ),
    ):
        best = math.inf
        for _ in range(20):
            start = time.perf_counter()
            for _ in range(20):
                call()
            best = min(best, (time.perf_counter() - start) / 20)
        print(f"{name:22} {best * 1e6:8.0f} us")


if __name__ == "__main__":
    print_gaussian()
    print_mixed()
    print_selection()
    print_time()
