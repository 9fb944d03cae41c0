"""Verification of a stage of an audit record. The sensitivity of the stage is computed again from its statistic, and
its cost from its noise.

This module does not use the mechanisms, so that an error in a mechanism is noticed. It uses the numbers in the record,
and the bounds that are proved beside the statistics.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from dpmedian._core import lattice_score_sensitivity
from dpmedian.accounting import Neighbours, PrivacyCost
from dpmedian.accounting.rounding import product_up
from dpmedian.accounting.threshold import threshold_of, threshold_rule
from dpmedian.mechanisms.stage import Stage
from dpmedian.parameters import PublicParameters
from dpmedian.statistics import SUMS, Sensitivity, bound

__all__ = ["LEAST_SIGMA", "MOST_SIGMA", "bound_of", "shared_discretization", "wrong_with"]

LEAST_SIGMA, MOST_SIGMA = 2.0**30, 2.0**50
"""The limits of sigma in lattice units for Gaussian noise."""

# The relative tolerance of a cost if the run chooses its noise. The stated cost is then a bound that includes the
# rounding of sigma to whole units.
_ROUNDING = 1e-8

# The scores of a lattice draw are integers in units of 2^-31 records. The weight of a score is 2^(-rate/2^40 score).
_SCORE_BITS, _RATE_BITS = 31, 40
_LN_TWO_BELOW = Fraction(693147180559945309417232121458, 10**30)

# The sensitivity of the difference of two sums of distances, in units of the diameter of the candidates.
_DIFFERENCES: Mapping[Neighbours, float] = {"replace": 2.0, "add_remove": 1.0}


def shared_discretization(numbers: int) -> float:
    """Return the discretization for this number of released values on the coarsest lattice that a run may choose."""
    return numbers / (40.0 * LEAST_SIGMA**2)


def wrong_with(stage: Stage, parameters: PublicParameters, cap: PrivacyCost | None) -> Iterator[str]:
    """Yield the errors of a stage, in words. There are none if the numbers of the stage are consistent."""
    n, d = parameters.n, parameters.d
    check = _KINDS.get(stage.noise.kind)
    if check is None:
        yield f"noise of the kind {stage.noise.kind!r} is unknown"
        return
    for name, value in (("n", n), ("d", d)):
        if stage.arguments.get(name, value) != value:
            yield f"it is computed for {name} = {stage.arguments[name]}, but the records have {name} = {value}"
            return
    weighted = parameters.weighted and (stage.statistic in SUMS or stage.noise.kind == "lattice draw")
    yield from _differs("whether records have weights", stage.arguments.get("weighted", False), weighted)
    if stage.capped and cap is None:
        yield "it is capped, but the record states no cap"
        return
    if stage.noise.remark != "at least":
        yield from _differs("the number of times", stage.times, 1)
    try:
        if parameters.lone_delta is not None and stage.statistic == "size":
            yield from _selection(stage, parameters.lone_delta)
            stage = replace(stage, cost=replace(stage.cost, delta0=0.0))
        length = _bound(stage.statistic, stage.arguments)[1] if stage.noise.kind == "Gaussian" else 1
        yield from _differs("the number of coordinates", stage.coordinates, length)
        yield from check(stage, parameters.neighbours, d, cap)
    except (KeyError, TypeError, ValueError, OverflowError, ZeroDivisionError) as error:
        yield f"it cannot be computed again: {type(error).__name__}: {error}"


def _selection(stage: Stage, lone_delta: float) -> Iterator[str]:
    """Yield the errors of the threshold. A group whose key was not listed is shown if its noisy size reaches the
    threshold.
    """
    bits = stage.arguments["bits"]
    threshold = threshold_of(int(math.ldexp(stage.noise.scale, bits)), bits, lone_delta)
    yield from _differs("the threshold", stage.rule, threshold_rule(threshold))
    yield from _differs("delta0", stage.cost.delta0, lone_delta)


def bound_of(statistic: str, arguments: Mapping[str, Any], neighbours: Neighbours) -> float:
    """Return the sensitivity of a statistic on its lattice. The arguments contain the bits of the lattice."""
    return _bound(statistic, arguments)[0].under(neighbours)


def _bound(statistic: str, arguments: Mapping[str, Any]) -> tuple[Sensitivity, int]:
    """Return the sensitivity of a statistic, and how many numbers one answer has."""
    return bound(statistic, **arguments)


def _differs(what: str, stated: Any, computed: Any) -> Iterator[str]:
    if stated != computed:
        yield f"{what} is stated as {stated!r}, but computed again it is {computed!r}"


def _gaussian(stage: Stage, neighbours: Neighbours, d: int, cap: PrivacyCost | None) -> Iterator[str]:
    bits, sigma = stage.arguments["bits"], stage.noise.scale
    lattice = bound_of(stage.statistic, stage.arguments, neighbours)
    yield from _differs("the sensitivity", stage.sensitivity, math.ldexp(lattice, -bits))
    units = math.ldexp(sigma, bits)
    if units != math.floor(units) or not LEAST_SIGMA <= units <= MOST_SIGMA:
        yield f"sigma = {sigma!r} is {units!r} units of 2^-{bits}: it must be a whole number between 2^30 and 2^50"
        return
    once, rest = divmod(stage.releases, stage.times)
    if rest:
        yield f"{stage.releases} releases are not {stage.times} times the same number"
        return
    least = PrivacyCost.gaussian(lattice, units, stage.coordinates, once)
    stated = stage.cost
    if stage.noise.remark == "at least":
        if cap is None:
            yield "the noise is chosen during the run, but no cap bounds its cost"
            return
        most = min(product_up(stage.times, least.mu_squared), cap.mu_squared)
        yield from _differs("mu_squared", stated.mu_squared, most)
        yield from _differs("the discretization", stated.discretization, cap.discretization)
    elif stage.noise.remark == "at most":
        # The run decides how many releases it makes. The stated cost is the cost of the largest possible number.
        if not least.mu_squared <= stated.mu_squared <= least.mu_squared * (1.0 + _ROUNDING):
            yield (
                f"mu_squared is stated as {stated.mu_squared!r}, but {stage.releases} releases with sigma = {sigma!r} "
                f"cost {least.mu_squared!r}"
            )
        numbers = stage.releases * stage.coordinates
        yield from _differs("the discretization", stated.discretization, shared_discretization(numbers))
    else:
        yield from _differs("mu_squared", stated.mu_squared, least.mu_squared)
        yield from _differs("the discretization", stated.discretization, least.discretization)
        yield from _differs("the remark on sigma", stage.noise.remark, "")
    yield from _nothing_else(stage, "mu_squared", "discretization")


def _above_threshold(stage: Stage, neighbours: Neighbours, d: int, cap: PrivacyCost | None) -> Iterator[str]:
    given, m = stage.noise.parameters, stage.arguments["m"]
    sensitivity, least = given["sensitivity"], bound_of(stage.statistic, stage.arguments, neighbours)
    if sensitivity < least:
        yield f"the sensitivity of a query is stated as {sensitivity!r}, but it is at least {least!r}"
    yield from _differs("the sensitivity", stage.sensitivity, sensitivity / m)
    threshold, query = Fraction(*given["threshold_rate"]), Fraction(*given["query_rate"])
    exact = sensitivity * (threshold + 2 * query)
    epsilon = float(exact)
    yield from _differs("scale", stage.noise.scale, given["query_rate"][1] / given["query_rate"][0] / m)
    rounded = epsilon if Fraction(epsilon) >= exact else math.nextafter(epsilon, math.inf)
    yield from _differs("the epsilon of its pure step", stage.cost.pure_epsilons, (rounded,))
    # All queries together are one release. Only the description of the stage states their number.
    yield from _differs("the rule", stage.rule, f"AboveThreshold, {stage.releases} radii")
    yield from _nothing_else(stage, "pure_epsilons")


def _choice(stage: Stage, neighbours: Neighbours, d: int, cap: PrivacyCost | None) -> Iterator[str]:
    eta = stage.noise.parameters["eta"]
    yield from _differs("the sensitivity in diameters", stage.sensitivity, _DIFFERENCES[neighbours])
    yield from _differs("scale", stage.noise.scale, stage.sensitivity / eta)
    yield from _differs("its bounded range", stage.cost.bounded_ranges, (eta,))
    yield from _differs("the number of releases", stage.releases, 1)
    yield from _nothing_else(stage, "bounded_ranges")


def _lattice_draw(stage: Stage, neighbours: Neighbours, d: int, cap: PrivacyCost | None) -> Iterator[str]:
    rate = stage.noise.parameters["rate"]
    weighted = stage.arguments.get("weighted", False)
    sensitivity = Fraction(lattice_score_sensitivity(d, weighted).under(neighbours)) / 2**_SCORE_BITS
    yield from _differs("the sensitivity", stage.sensitivity, float(sensitivity))
    least = 2 * _LN_TWO_BELOW * Fraction(rate, 2**_RATE_BITS) * sensitivity
    (epsilon,) = stage.cost.bounded_ranges
    if not least <= Fraction(epsilon) <= least * (1 + Fraction(_ROUNDING)) + Fraction(1, 2**36):
        yield f"its epsilon is stated as {epsilon!r}, but its weights 2^(-{rate}/2^40 score) cost {float(least)!r}"
    yield from _differs("the number of releases", stage.releases, 1)
    yield from _differs("scale", stage.noise.scale, 1.0 / (math.ldexp(rate, -_RATE_BITS) * math.log(2.0)))
    yield from _nothing_else(stage, "bounded_ranges")


def _nothing_else(stage: Stage, *parts: str) -> Iterator[str]:
    """Check that the cost has only the parts that belong to this kind of noise."""
    nothing = PrivacyCost(neighbours=stage.cost.neighbours, unit=stage.cost.unit)
    rest = replace(stage.cost, **{part: getattr(nothing, part) for part in parts})
    if rest != nothing:
        yield f"its cost has parts that noise of the kind {stage.noise.kind!r} does not have: {rest.to_dict()}"


_KINDS: dict[str, Callable[[Stage, Neighbours, int, PrivacyCost | None], Iterator[str]]] = {
    "Gaussian": _gaussian,
    "Laplace": _above_threshold,
    "exponential mechanism": _choice,
    "lattice draw": _lattice_draw,
}
