"""Privacy filters decide which costs may still be spent if an analyst chooses each cost after seeing earlier results.

A ledger commits to one filter when it is created. It would be wrong to admit a cost if any of several bounds admits the
cost, because an analyst who sees results could choose costs such that the most lenient bound decides each time.
Theorems and proofs: ledger.md.

* `concentrated`, for budgets in rho and (epsilon, delta): rho adds up. Costs may be chosen adaptively.
* `pure`, for budgets in epsilon alone: all epsilons and etas add up. Costs may be chosen adaptively.
* `gaussian`, the default for (epsilon, delta): mu^2 adds up. All costs except the first may be chosen adaptively.
* `pairs`, for (epsilon, delta): the requested pairs add up. Costs may be chosen adaptively.
* `costs_fixed_beforehand`, for (epsilon, delta): exact composition. The costs must not depend on results.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, get_args

from dpmedian.accounting import Budget, PrivacyCost
from dpmedian.accounting.concentrated import concentrated_delta, concentrated_epsilon
from dpmedian.accounting.normal import DELTA_MARGIN
from dpmedian.accounting.rounding import product_up, sum_up
from dpmedian.accounting.search import border

__all__ = ["ENDS_EARLY", "TOLERANCE", "Composition", "Filter", "filter_of", "pair_of"]

Composition = Literal["concentrated", "pure", "gaussian", "pairs", "costs_fixed_beforehand"]

ENDS_EARLY: tuple[Composition, ...] = ("concentrated",)
"""The filters that can reduce a charge. If a release ends after its first part, only this part is charged; see
ledger.md.
"""

TOLERANCE = 2.0**-48
"""The relative tolerance of a ledger, which guarantees its budget times 1 + this number. With the tolerance, ten
releases at epsilon = 0.1 fit epsilon = 1, although ten doubles near 0.1 add up to slightly more than 1.
"""

# The share of delta that is reserved for the discretization of the noise. The reserve increases the noise by less than
# 0.1 %. At sigma = 2^30 and delta = 1e-6 it is enough for 1e11 released coordinates at epsilon = 1, and for 2e7 at
# epsilon = 10.
_RESERVE = 0.01


def pair_of(cost: PrivacyCost) -> tuple[float, float] | None:
    """The requested pair if the cost satisfies it, the pair of a pure cost, or None."""
    if cost.epsilon is not None and cost.delta_at(cost.epsilon) <= (cost.delta or 0.0):
        return cost.epsilon, cost.delta or 0.0
    return (cost.epsilon_at(0.0), 0.0) if cost.is_pure else None


def _reserve(budget: Budget) -> float:
    """The largest total discretization that the reserved share of delta allows."""
    assert budget.epsilon is not None
    assert budget.delta
    return _RESERVE * budget.delta / (1.0 + math.exp(min(budget.epsilon, 700.0)))


@dataclass(frozen=True)
class Filter(ABC):
    """A rule that admits or refuses a sequence of costs. A filter sees costs only, never results."""

    budget: Budget

    @abstractmethod
    def admits(self, costs: Sequence[PrivacyCost]) -> bool:
        """Whether these costs, in the order in which they were charged, are within the budget."""

    @abstractmethod
    def spent(self, costs: Sequence[PrivacyCost]) -> float:
        """The part of the budget that the costs use, in the unit of the budget, or infinity if no budget would be
        enough.
        """

    @abstractmethod
    def advice(self, costs: Sequence[PrivacyCost], requested: PrivacyCost) -> str:
        """A text for an error: why the requested cost does not fit, and which cost would fit."""

    def remaining(self, costs: Sequence[PrivacyCost]) -> float:
        """The part of the budget that is left, in the unit of the budget."""
        limit = self.budget.epsilon if self.budget.rho is None else self.budget.rho
        assert limit is not None
        return max(limit - self.spent(costs), 0.0)

    additive: ClassVar[str] = "rho"
    """The quantity that is additive over costs: rho, or epsilon."""

    def weight(self, cost: PrivacyCost) -> float:
        """The amount of the additive quantity that a cost uses."""
        return cost.dominating_mu_squared / 2.0

    def room(self, costs: Sequence[PrivacyCost]) -> float:
        """The amount of the additive quantity that is left after these costs."""
        return self.split(costs, 1)

    def shares(self, costs: Sequence[PrivacyCost]) -> tuple[list[float], float]:
        """The share of every cost in the additive quantity, and the share that is left.

        The sum of these shares is 1, up to rounding.

        For a budget in (epsilon, delta), the total amount depends slightly on the costs, so the shares change slightly
        with every new cost.
        """
        weights, room = [self.weight(cost) for cost in costs], self.room(costs)
        whole = math.fsum(weights) + room
        if not 0.0 < whole < math.inf:
            return [0.0] * len(weights), 1.0 if not costs else 0.0
        return [weight / whole for weight in weights], room / whole

    def per_release(self, costs: Sequence[PrivacyCost], k: int) -> dict[str, float]:
        """The arguments with which each of k more releases fits: rho, or epsilon and perhaps delta."""
        return {"rho": self.split(costs, k)}

    def split(self, costs: Sequence[PrivacyCost], k: int) -> float:
        """The largest rho, to eleven digits, for which k more Gaussian releases are admitted, or 0 if there is no such
        rho.
        """
        start = PrivacyCost(neighbours=costs[0].neighbours, unit=costs[0].unit) if costs else PrivacyCost()
        start = replace(start, discretization=self._room(costs))

        def excess(octave: float) -> float:
            """Positive if and only if k releases of 2^octave do not fit."""
            mu_squared = 2.0 * math.pow(2.0, octave)
            others = PrivacyCost(product_up(k - 1, mu_squared), neighbours=start.neighbours, unit=start.unit)
            return -1.0 if self.admits([*costs, replace(start, mu_squared=mu_squared), others]) else 1.0

        if excess(_LEAST) > 0.0:
            return 0.0
        return math.pow(2.0, border(excess, good=_LEAST, bad=_MOST, absolute=1e-11))

    def _room(self, costs: Sequence[PrivacyCost]) -> float:
        """The discretization for which `split` leaves room, in addition to the reserve of the filter."""
        return 0.0


# Binary logarithms of the smallest and the largest rho of a split. No budget allows more than rho = 2^17.
_LEAST, _MOST = -200.0, 18.0


class _Concentrated(Filter):
    """The filter of zero-concentration: rho adds up, also if costs are chosen adaptively."""

    def weight(self, cost: PrivacyCost) -> float:
        return cost.rho

    def admits(self, costs: Sequence[PrivacyCost]) -> bool:
        grown = 1.0 + TOLERANCE
        total = PrivacyCost.total(costs)
        if self.budget.rho is not None:
            return self.budget.fits(total, rounding=TOLERANCE)
        assert self.budget.epsilon is not None
        assert self.budget.delta
        delta = concentrated_delta(total.rho, self.budget.epsilon * grown) * DELTA_MARGIN
        return total.delta0 == 0.0 and delta <= self.budget.delta * grown

    def spent(self, costs: Sequence[PrivacyCost]) -> float:
        total = PrivacyCost.total(costs)
        if self.budget.rho is not None:
            return total.rho if total.delta0 <= (self.budget.delta or 0.0) * (1.0 + TOLERANCE) else math.inf
        assert self.budget.delta
        return concentrated_epsilon(total.rho, self.budget.delta) if total.delta0 == 0.0 else math.inf

    def advice(self, costs: Sequence[PrivacyCost], requested: PrivacyCost) -> str:
        if requested.delta0 > 0.0 and not (self.budget.rho is not None and self.budget.delta):
            return (
                "a budget in rho without delta does not admit a cost with a delta0" if self.budget.rho else _NO_EVENTS
            )
        return f"rho = {self.split(costs, 1):.6g} would fit"

    def split(self, costs: Sequence[PrivacyCost], k: int) -> float:
        return super().split(costs, k) if self.budget.rho is None else self.remaining(costs) / k


class _Pure(Filter):
    """Basic composition of pure releases: epsilons add up, also if costs are chosen adaptively."""

    additive = "epsilon"

    def weight(self, cost: PrivacyCost) -> float:
        return cost.epsilon_at(0.0)

    def room(self, costs: Sequence[PrivacyCost]) -> float:
        return self.remaining(costs)

    def per_release(self, costs: Sequence[PrivacyCost], k: int) -> dict[str, float]:
        return {"epsilon": self.remaining(costs) / k}

    def admits(self, costs: Sequence[PrivacyCost]) -> bool:
        return self.budget.fits(PrivacyCost.total(costs), rounding=TOLERANCE)

    def spent(self, costs: Sequence[PrivacyCost]) -> float:
        return PrivacyCost.total(costs).epsilon_at(0.0)

    def advice(self, costs: Sequence[PrivacyCost], requested: PrivacyCost) -> str:
        if not requested.is_pure:
            return "a budget without delta admits only pure releases"
        return f"a pure release of epsilon = {self.remaining(costs):.6g} would fit"

    def split(self, costs: Sequence[PrivacyCost], k: int) -> float:
        raise ValueError(
            "a ledger in epsilon alone has no rho to split, because Gaussian noise is not pure: "
            f"{k} releases of epsilon = {self.remaining(costs) / k:.6g} each fit what is left"
        )


class _Pairs(Filter):
    """Basic composition: the requested pairs add up, also if costs are chosen adaptively."""

    additive = "epsilon"

    def weight(self, cost: PrivacyCost) -> float:
        pair = pair_of(cost)
        return math.inf if pair is None else pair[0]

    def room(self, costs: Sequence[PrivacyCost]) -> float:
        return self.remaining(costs)

    def per_release(self, costs: Sequence[PrivacyCost], k: int) -> dict[str, float]:
        epsilon, delta = self._left(costs)
        return {"epsilon": epsilon / k, "delta": delta / k}

    def _sums(self, costs: Sequence[PrivacyCost]) -> tuple[float, float]:
        pairs = [pair_of(cost) or (math.inf, 1.0) for cost in costs]
        return sum_up(epsilon for epsilon, _ in pairs), sum_up(delta for _, delta in pairs)

    def admits(self, costs: Sequence[PrivacyCost]) -> bool:
        epsilon, delta = self._sums(costs)
        assert self.budget.epsilon is not None
        grown = 1.0 + TOLERANCE
        return epsilon <= self.budget.epsilon * grown and delta <= (self.budget.delta or 0.0) * grown

    def spent(self, costs: Sequence[PrivacyCost]) -> float:
        return self._sums(costs)[0]

    def _left(self, costs: Sequence[PrivacyCost]) -> tuple[float, float]:
        return self.remaining(costs), max((self.budget.delta or 0.0) - self._sums(costs)[1], 0.0)

    def advice(self, costs: Sequence[PrivacyCost], requested: PrivacyCost) -> str:
        if pair_of(requested) is None:
            return (
                "this ledger adds up the requested pairs: request epsilon and delta, and a release that satisfies them"
            )
        epsilon, delta = self._left(costs)
        return f"a release requested with epsilon = {epsilon:.6g}, delta = {delta:.6g} would fit"

    def split(self, costs: Sequence[PrivacyCost], k: int) -> float:
        epsilon, delta = self._left(costs)
        raise ValueError(
            f"a ledger that adds up pairs has no rho to split: {k} releases of epsilon = {epsilon / k:.6g}, delta = "
            f"{delta / k:.6g} each fit what is left"
        )


class _Gaussian(Filter):
    """The filter of Gaussian differential privacy: mu^2 adds up, also if costs are chosen adaptively.

    The first cost was chosen before any result, so it is counted exactly. Every later pure or bounded-range release
    counts as the Gaussian that dominates it. The discretization of later releases has a fixed share of delta.
    """

    def _dominating(self, costs: Sequence[PrivacyCost]) -> PrivacyCost | None:
        """A cost that bounds these costs even if they were chosen adaptively. None if the filter cannot admit the
        costs.
        """
        first, later = costs[0], [cost for cost in costs[1:] if cost.dominating_mu_squared or cost.delta0]
        if not later:
            return first
        if any(cost.delta0 for cost in later) or sum_up(c.discretization for c in later) > _reserve(self.budget):
            return None
        return replace(
            first,
            mu_squared=sum_up((first.mu_squared, *(cost.dominating_mu_squared for cost in later))),
            discretization=sum_up((first.discretization, _reserve(self.budget))),
        )

    def admits(self, costs: Sequence[PrivacyCost]) -> bool:
        if not costs:
            return True
        dominating = self._dominating(costs)
        return dominating is not None and self.budget.fits(dominating, rounding=TOLERANCE)

    def spent(self, costs: Sequence[PrivacyCost]) -> float:
        if not costs:
            return 0.0
        dominating = self._dominating(costs)
        return math.inf if dominating is None else dominating.epsilon_at(self.budget.delta or 0.0)

    def advice(self, costs: Sequence[PrivacyCost], requested: PrivacyCost) -> str:
        if requested.delta0 > 0.0:
            return _NO_EVENTS
        rho = self.split(costs, 1)
        if requested.dominating_mu_squared <= 2.0 * rho and requested.discretization > 0.0:
            return (
                f"the discretization of its noise, {requested.discretization:.3g}, exceeds the reserve of this filter, "
                f"{_reserve(self.budget):.3g}: a ledger in rho needs no such reserve"
            )
        epsilon = PrivacyCost(mu_squared=2.0 * rho).epsilon_at(self.budget.delta or 0.0)
        advice = f"a Gaussian release of rho = {rho:.6g} would fit (epsilon = {epsilon:.4g} at the budget's delta)"
        if costs and (requested.pure_epsilons or requested.bounded_ranges):
            advice += (
                "; here its pure releases and selections count as the Gaussians that dominate them, so the release "
                f"counts as rho = {requested.dominating_mu_squared / 2.0:.6g}. It counts less in a ledger in rho, or "
                "with composition='pairs'"
            )
        return advice

    def _room(self, costs: Sequence[PrivacyCost]) -> float:
        # The reserve of the filter is not for the first release.
        return 0.0 if costs else 0.1 * _reserve(self.budget)


class _CostsFixedBeforehand(_Pairs):
    """Exact composition, for costs that were all chosen before the first result was seen."""

    additive = "rho"

    def weight(self, cost: PrivacyCost) -> float:
        return Filter.weight(self, cost)

    def room(self, costs: Sequence[PrivacyCost]) -> float:
        return Filter.room(self, costs)

    def per_release(self, costs: Sequence[PrivacyCost], k: int) -> dict[str, float]:
        return Filter.per_release(self, costs, k)

    def admits(self, costs: Sequence[PrivacyCost]) -> bool:
        return self.budget.fits(PrivacyCost.total(costs), rounding=TOLERANCE) or super().admits(costs)

    def spent(self, costs: Sequence[PrivacyCost]) -> float:
        return min(PrivacyCost.total(costs).epsilon_at(self.budget.delta or 0.0), self._spent_in_pairs(costs))

    def _spent_in_pairs(self, costs: Sequence[PrivacyCost]) -> float:
        epsilon, delta = self._sums(costs)
        return epsilon if delta <= (self.budget.delta or 0.0) else math.inf

    def advice(self, costs: Sequence[PrivacyCost], requested: PrivacyCost) -> str:
        return f"a Gaussian release of rho = {self.split(costs, 1):.6g} would fit"

    def split(self, costs: Sequence[PrivacyCost], k: int) -> float:
        return Filter.split(self, costs, k)

    def _room(self, costs: Sequence[PrivacyCost]) -> float:
        return _reserve(self.budget)


_NO_EVENTS = (
    "a release with a delta0, such as a release of groups without keys=, can only be the first entry of a "
    "ledger in epsilon and delta: use a ledger in rho and delta, or list the keys"
)

_FILTERS: dict[str, type[Filter]] = {
    "concentrated": _Concentrated,
    "pure": _Pure,
    "gaussian": _Gaussian,
    "pairs": _Pairs,
    "costs_fixed_beforehand": _CostsFixedBeforehand,
}


def filter_of(budget: Budget, composition: str | None = None) -> tuple[Composition, Filter]:
    """Return the filter of this name, or the default filter of the budget if the name is None. All default filters
    admit costs that are chosen adaptively.
    """
    suitable: tuple[Composition, ...]
    if budget.rho is not None:
        suitable = ("concentrated",)
    elif budget.pure:
        suitable = ("pure",)
    else:
        suitable = ("gaussian", "concentrated", "pairs", "costs_fixed_beforehand")
    if composition is None:
        composition = suitable[0]
    if composition not in get_args(Composition):
        raise ValueError(f"composition must be one of {get_args(Composition)} or None, got {composition!r}")
    for name in suitable:
        if name == composition:
            return name, _FILTERS[name](budget)
    raise ValueError(f"composition {composition!r} does not suit the budget {budget}: choose one of {suitable}")
