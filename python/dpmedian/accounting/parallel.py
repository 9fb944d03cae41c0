"""Parallel composition of releases about disjoint parts of the data, when a unit contributes to a few of the parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import zip_longest

from dpmedian.accounting.cost import PrivacyCost
from dpmedian.accounting.protection import Neighbours

__all__ = ["bound_of", "cost_of_groups"]


def cost_of_groups(costs: Iterable[PrivacyCost], most: int, neighbours: Neighbours) -> PrivacyCost:
    """The cost of all groups together if each group has one of these costs and a unit contributes to `most` of the
    groups.

    The costs hold under "add_remove". A replacement is a removal and an addition, which costs as much as a group of two
    units. The `delta0` of keys that were not listed is unchanged: mechanisms/key_selection.md has the proof.
    """
    total = PrivacyCost.total([bound_of(costs)] * most)
    return replace(replace(total, delta0=0.0).under(neighbours), delta0=total.delta0)


def bound_of(costs: Iterable[PrivacyCost]) -> PrivacyCost:
    """A cost that bounds each of these costs, component by component.

    Everything that is proved for a cost grows with each component, so a release with a smaller cost satisfies the
    larger one, too.
    """
    first, *others = {cost: None for cost in costs}
    for other in others:
        if (first.neighbours, first.unit) != (other.neighbours, other.unit):
            raise ValueError("costs of different neighbours or units have no common bound: convert them first")
        first = replace(
            first,
            mu_squared=max(first.mu_squared, other.mu_squared),
            discretization=max(first.discretization, other.discretization),
            pure_epsilons=_larger(first.pure_epsilons, other.pure_epsilons),
            bounded_ranges=_larger(first.bounded_ranges, other.bounded_ranges),
            delta0=max(first.delta0, other.delta0),
            epsilon=None,
            delta=None,
        )
    return first


def _larger(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, ...]:
    pairs = zip_longest(sorted(ours, reverse=True), sorted(theirs, reverse=True), fillvalue=0.0)
    return tuple(max(pair) for pair in pairs)
