"""The cost of an event of Google's library dp_accounting. Such an event describes a release by another program.

The library is not imported, because an event is recognized by the name of its class. The proofs are in accounting.md,
"Costs of other libraries".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from dpmedian.accounting.arguments import positive, probability, require_encodable, whole
from dpmedian.accounting.cost import PrivacyCost
from dpmedian.accounting.protection import RECORD, Neighbours, neighbours_of, unit_of
from dpmedian.accounting.rounding import product_up

__all__ = ["approximate", "cost_of_event", "repeated"]

_MOST_DEPTH, _MOST_TIMES = 100, 10**6


def cost_of_event(event: Any, neighbours: Neighbours = "replace", unit: str = RECORD) -> PrivacyCost:
    """Return the cost of a dp_accounting event.

    Parameters
    ----------
    event : DpEvent
        Gaussian, Laplace, DiscreteLaplace, NoOp, Composed and SelfComposed events. Other events, such as sampling, are
        refused. Compute their epsilon and delta with dp_accounting, and enter these numbers.
    neighbours : {"replace", "add_remove"}
        The relation for which the event holds. The event itself does not state its relation.
    unit : str
        Whose contribution is protected.

    Raises
    ------
    ValueError, TypeError
        If there is no bound for the event. The error names the event.
    """
    found = _cost(event, 0)
    return replace(found, neighbours=neighbours_of(neighbours), unit=unit_of(unit))


def approximate(epsilon: float, delta: float) -> PrivacyCost:
    """Return the cost of a release about which only (epsilon, delta)-differential privacy is known."""
    epsilon, delta = positive("epsilon", epsilon), probability("delta", delta)
    return PrivacyCost(pure_epsilons=(epsilon,), delta0=delta).requested(epsilon, delta or None)


def _gaussian(event: Any, depth: int) -> PrivacyCost:
    ratio = Fraction(1) / Fraction(positive("noise_multiplier", event.noise_multiplier, down=True))
    return PrivacyCost(mu_squared=_rounded_up(ratio * ratio))


def _laplace(event: Any, depth: int) -> PrivacyCost:
    multiplier = Fraction(positive("noise_multiplier", event.noise_multiplier, down=True))
    return PrivacyCost.pure_dp(_rounded_up(1 / multiplier))


def _discrete_laplace(event: Any, depth: int) -> PrivacyCost:
    rate = Fraction(positive("noise_parameter", event.noise_parameter))
    return PrivacyCost.pure_dp(_rounded_up(rate * Fraction(positive("sensitivity", event.sensitivity))))


def _composed(event: Any, depth: int) -> PrivacyCost:
    return PrivacyCost.total([_cost(part, depth + 1) for part in event.events])


def _self_composed(event: Any, depth: int) -> PrivacyCost:
    return repeated(_cost(event.event, depth + 1), event.count)


def repeated(cost: PrivacyCost, times: int) -> PrivacyCost:
    """Return the cost of `times` releases that have this cost each."""
    if whole("count", times) > _MOST_TIMES:
        raise ValueError(f"count must be at most {_MOST_TIMES}, got {times}")
    if times == 1:
        return cost
    return PrivacyCost(
        mu_squared=product_up(times, cost.mu_squared),
        discretization=product_up(times, cost.discretization),
        pure_epsilons=cost.pure_epsilons * times,
        bounded_ranges=cost.bounded_ranges * times,
        delta0=product_up(times, cost.delta0),
        neighbours=cost.neighbours,
        unit=cost.unit,
    )


_KINDS: Mapping[str, Callable[[Any, int], PrivacyCost]] = {
    "NoOpDpEvent": lambda event, depth: PrivacyCost(),
    "GaussianDpEvent": _gaussian,
    "LaplaceDpEvent": _laplace,
    "DiscreteLaplaceDpEvent": _discrete_laplace,
    "ComposedDpEvent": _composed,
    "SelfComposedDpEvent": _self_composed,
}


def _cost(event: Any, depth: int) -> PrivacyCost:
    kind = type(event).__name__
    if depth > _MOST_DEPTH:
        raise ValueError(f"the event nests deeper than {_MOST_DEPTH} levels")
    if kind not in _KINDS:
        require_encodable("event", kind)
        if kind == "ZCDpEvent":
            raise ValueError("a cost in rho alone can only be entered in a ledger in rho: ledger.enter(name, rho=...)")
        known = ", ".join(_KINDS)
        raise ValueError(
            f"there is no exact cost for a {kind}; the known events are {known}. Compute its epsilon and delta with "
            "dp_accounting, and enter these"
        )
    return _KINDS[kind](event, depth)


def _rounded_up(value: Fraction) -> float:
    """The smallest double that is at least this fraction."""
    number = float(value)
    return number if Fraction(number) >= value else math.nextafter(number, math.inf)
