"""Calibration finds the largest rho whose cost fits a budget."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from dpmedian.accounting.budget import Budget
from dpmedian.accounting.cost import PrivacyCost
from dpmedian.accounting.search import border

__all__ = ["calibrate"]


def calibrate(cost_of: Callable[[float], PrivacyCost], budget: Budget) -> float:
    """The largest rho whose cost fits the budget, to nine digits. The cost of the returned rho fits.

    `cost_of` maps a rho to the cost of a release with this rho. The cost must increase with rho. `cost_of` may raise a
    ValueError for a rho that is out of its range. If `cost_of` raises an error for every rho that could fit, the error
    of `calibrate` contains the reason.
    """
    guess = _likely_rho(budget)
    too_much = ""
    refusal: ValueError | None = None

    @functools.cache
    def excess(octave: float) -> float:
        """The logarithm of the overspending at guess * 2^octave."""
        nonlocal too_much, refusal
        rho = guess * 2.0**octave
        try:
            cost, refusal = cost_of(rho), None
        except ValueError as error:
            refusal = error
            return math.inf
        found = budget.log_overspend(cost)
        if found > 0.0:
            too_much = f"at rho = {rho:.3g} the cost is {cost}"
        return found

    # The search starts at the guess, which is nearly exact for Gaussian costs. The search takes growing steps until it
    # has crossed the border between costs that fit and costs that do not fit.
    upwards = excess(0.0) <= 0.0
    near = 0.0
    for stride in (2.0**-20, 2.0**-6, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0):
        far = stride if upwards else -stride
        if (excess(far) <= 0.0) != upwards:
            break
        near = far
    else:
        if upwards:
            largest = guess * 2.0**near
            raise ValueError(
                f"at rho = {largest:.3g} the cost is still within {budget}: the cost does not grow with rho"
            )
        if budget.pure and too_much:
            raise ValueError(f"nothing fits the budget {budget}: {too_much}, and without delta only pure releases fit")
        raise ValueError(f"nothing fits the budget {budget}: {refusal or too_much}") from refusal
    good, bad = (near, far) if upwards else (far, near)
    octaves = border(excess, good=good, bad=bad, absolute=1e-9)
    return guess * math.pow(2.0, octaves)


@functools.lru_cache(maxsize=128)
def _likely_rho(budget: Budget) -> float:
    """The start of the search, which is near the result if the cost is mostly Gaussian.

    The result is cached, because `auto` calibrates every method to the same budget.
    """
    if budget.rho is not None:
        return budget.rho
    assert budget.epsilon is not None
    if not budget.delta:
        return budget.epsilon * math.tanh(budget.epsilon / 2.0)
    # The solution rho of epsilon = rho + 2 sqrt(rho log(1/delta)) is at most the result for one Gaussian release.
    log = math.log(1.0 / budget.delta)
    safe = (budget.epsilon / (math.sqrt(log + budget.epsilon) + math.sqrt(log))) ** 2

    def excess(octave: float) -> float:
        return budget.log_overspend(PrivacyCost(mu_squared=2.0 * safe * math.pow(2.0, octave)))

    return safe * math.pow(2.0, border(excess, good=0.0, bad=8.0, absolute=1e-9)) if excess(8.0) > 0.0 else safe
