"""Parallel composition: the cost of releases about disjoint groups of records, if a unit contributes to a few
groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import zip_longest

from dpmedian.accounting.cost import PrivacyCost
from dpmedian.accounting.protection import Neighbours

__all__ = ["bound_of", "cost_of_groups"]


def cost_of_groups(costs: Iterable[PrivacyCost], most: int, neighbours: Neighbours) -> PrivacyCost:
    """The cost of the releases of all groups together. A unit contributes to at most `most` of the groups.

    Each group has one of `costs`, which hold under "add_remove". Under "replace", the result is the cost for a group of
    two units, because a replacement is a removal and an addition. A `delta0`, which comes from keys that were not
    listed, does not change. mechanisms/key_selection.md has the proof.
    """
    total = PrivacyCost.total([bound_of(costs)] * most)
    return replace(replace(total, delta0=0.0).under(neighbours), delta0=total.delta0)


def bound_of(costs: Iterable[PrivacyCost]) -> PrivacyCost:
    """A cost that bounds each of these costs, component by component.

    Delta and epsilon increase with each component, so a release with a smaller cost also satisfies the larger cost.
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
