"""Relations, units and groups: conversions of a cost for one kind of neighbors into a cost for another kind."""

from __future__ import annotations

import functools
import itertools
import json
import math
from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmedian.accounting import PrivacyCost
from dpmedian.accounting.normal import gaussian_delta, pure_mu_squared

lawful = settings(max_examples=100, deadline=None, derandomize=True)

costs = st.builds(
    PrivacyCost,
    mu_squared=st.one_of(st.just(0.0), st.floats(1e-12, 100.0)),
    discretization=st.one_of(st.just(0.0), st.floats(1e-25, 1e-6)),
    pure_epsilons=st.lists(st.floats(1e-6, 5.0), max_size=3).map(tuple),
    bounded_ranges=st.lists(st.floats(1e-6, 5.0), max_size=3).map(tuple),
    neighbours=st.sampled_from(["replace", "add_remove"]),
    unit=st.sampled_from(["record", "user"]),
)


# Storage.


def test_defaults_are_not_stored_and_the_others_are() -> None:
    assert PrivacyCost(mu_squared=0.5).to_dict() == {"mu_squared": 0.5}
    cost = PrivacyCost(mu_squared=0.5, neighbours="add_remove", unit="user").requested(1.0, 0.0)
    stored = json.loads(json.dumps(cost.to_dict()))
    assert stored == {"mu_squared": 0.5, "epsilon": 1.0, "delta": 0.0, "neighbours": "add_remove", "unit": "user"}
    assert PrivacyCost.from_dict(stored) == cost


def test_a_cost_that_version_0_1_0_stored_is_read() -> None:
    text = """{"mu_squared": 0.0560289, "slack": 2.1684043449710089e-17, "pure": [0.1, 0.25], "ranges": [0.5],
               "delta0": 1e-09, "epsilon": 1.0, "delta": 1e-06}"""
    assert PrivacyCost.from_dict(json.loads(text)) == PrivacyCost(
        mu_squared=0.0560289,
        discretization=2.1684043449710089e-17,
        pure_epsilons=(0.1, 0.25),
        bounded_ranges=(0.5,),
        delta0=1e-9,
        epsilon=1.0,
        delta=1e-6,
    )
    with pytest.raises(ValueError, match="both 'pure_epsilons' and its former name 'pure'"):
        PrivacyCost.from_dict({"pure": [0.1], "pure_epsilons": [0.1]})


# Sums.


@pytest.mark.parametrize("add", [lambda a, b: a + b, lambda a, b: PrivacyCost.total((a, b))])
def test_costs_of_different_relations_or_units_do_not_add_up(add: Callable[..., PrivacyCost]) -> None:
    replaced, added = PrivacyCost(mu_squared=1.0), PrivacyCost(mu_squared=1.0, neighbours="add_remove")
    with pytest.raises(
        ValueError, match=r"'replace' and 'add_remove' cannot be added: convert .* cost.under\('replace'\)"
    ):
        add(replaced, added)
    with pytest.raises(ValueError, match=r"units 'record' and 'user' cannot be added.*for_group\(.*per_record\(\)"):
        add(replaced, PrivacyCost(unit="user"))
    both = add(added, added)
    assert (both.mu_squared, both.neighbours, both.unit) == (2.0, "add_remove", "record")
    assert add(replaced, added.under("replace")).mu_squared == 5.0


@lawful
@given(costs)
def test_relation_and_unit_survive(cost: PrivacyCost) -> None:
    for derived in (cost + cost, cost.requested(1.0, 1e-6), cost.for_group(3), PrivacyCost.from_dict(cost.to_dict())):
        assert (derived.neighbours, derived.unit) == (cost.neighbours, cost.unit)


def test_a_cost_says_for_whom_it_holds() -> None:
    assert str(PrivacyCost(mu_squared=0.02)) == "rho = 0.01"
    assert str(PrivacyCost(mu_squared=0.02, unit="user")) == "rho = 0.01 under replace of one user"
    assert str(PrivacyCost(mu_squared=0.02, neighbours="add_remove")) == "rho = 0.01 under add_remove of one record"


# Groups.


def test_group_of_k_units() -> None:
    cost = PrivacyCost(1.0, 1e-9, (0.5,), (0.25,), neighbours="add_remove").requested(1.0, 1e-6)
    group = cost.for_group(3, unit="user")
    assert group == PrivacyCost(9.0, 1e-9, (1.5,), (0.75,), neighbours="add_remove", unit="user")
    assert cost.for_group(1) == cost
    with pytest.raises(ValueError, match=r"no group bound is proved for a cost with delta0 = 1e-09"):
        PrivacyCost(delta0=1e-9).for_group(2)
    with pytest.raises(ValueError, match="k must be a positive whole number, got 0"):
        cost.for_group(0)


@lawful
@given(costs, st.integers(1, 50), st.integers(1, 50))
def test_groups_of_groups(cost: PrivacyCost, j: int, k: int) -> None:
    twice, once = cost.for_group(j).for_group(k), cost.for_group(j * k)
    assert twice.mu_squared == pytest.approx(once.mu_squared, rel=1e-15)
    assert twice.pure_epsilons == pytest.approx(once.pure_epsilons, rel=1e-15)
    assert twice.bounded_ranges == pytest.approx(once.bounded_ranges, rel=1e-15)
    assert twice.discretization == once.discretization == cost.discretization
    assert Fraction(once.mu_squared) >= (j * k) ** 2 * Fraction(cost.mu_squared)


@pytest.mark.parametrize("sigma", [1, 2, 5])
@pytest.mark.parametrize("k", [2, 3])
def test_a_group_is_covered_by_enumeration(sigma: int, k: int) -> None:
    """Discrete Gaussian noise on counts at distance k, and a randomized response repeated over the chain of k."""
    cost = PrivacyCost.gaussian(1, sigma, 1).for_group(k)
    integers = np.arange(-40 * sigma, 40 * sigma + k + 1)
    here, there = (np.exp(-((integers - shift) ** 2) / (2 * sigma**2)) for shift in (0, k))
    here, there = here / here.sum(), there / there.sum()
    for epsilon in np.linspace(0, 6, 25):
        truth = np.maximum(here - math.exp(epsilon) * there, 0).sum()
        assert cost.delta_at(float(epsilon)) >= truth * (1 - 1e-9)
    # Using k instead of k^2 would be noticed.
    wrong = PrivacyCost(mu_squared=cost.mu_squared / k, discretization=cost.discretization)
    assert wrong.delta_at(0.0) < np.maximum(here - there, 0).sum() or sigma == 1


@pytest.mark.parametrize("k", [1, 2, 3])
def test_log_odds_of_an_exponential_mechanism_move_k_times_as_far_over_a_chain_of_k(k: int) -> None:
    eta = 0.5
    moves = [m for m in itertools.product((0.0, eta), repeat=3)]

    def law(scores: tuple[float, ...]) -> np.ndarray:
        weights = np.exp(scores)
        return weights / weights.sum()

    start = law((0.3, 0.0, -0.2))
    worst = 0.0
    for chain in itertools.product(moves, repeat=k):
        end = law(tuple(np.array((0.3, 0.0, -0.2)) + np.sum(chain, axis=0)))
        losses = np.log(end / start)
        worst = max(worst, float(losses.max() - losses.min()))
    (charged,) = PrivacyCost.bounded_range(eta).for_group(k).bounded_ranges
    assert charged == pytest.approx(worst)


# Relations.


def test_a_replacement_is_a_removal_and_an_addition() -> None:
    cost = PrivacyCost(1.0, 1e-9, (0.5,), (0.25,), neighbours="add_remove", unit="user")
    assert cost.under("replace") == PrivacyCost(4.0, 1e-9, (1.0,), (0.5,), unit="user")
    assert cost.under("add_remove") is cost
    with pytest.raises(
        ValueError, match=r"cannot be converted to 'add_remove': the release treats the number of records as public"
    ):
        PrivacyCost().under("add_remove")
    with pytest.raises(ValueError, match="neighbours must be one of"):
        cost.under("swap")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no group bound is proved"):
        PrivacyCost(delta0=1e-9, neighbours="add_remove").under("replace")


def test_a_record_of_a_unit() -> None:
    assert PrivacyCost(1.0, unit="user", neighbours="add_remove").per_record() == PrivacyCost(
        4.0, neighbours="add_remove"
    )
    assert PrivacyCost(1.0).per_record() == PrivacyCost(1.0)
    with pytest.raises(ValueError, match=r"per 'user' under .* 'replace' gives no bound for one 'record'.*unit='user'"):
        PrivacyCost(1.0, unit="user").per_record()


Table = tuple[str, ...]
"""A small data set: the user of every row."""

TABLES = [table for size in range(5) for table in itertools.combinations_with_replacement("abc", size)]


def edits(table: Table, neighbours: str) -> set[Table]:
    """The tables that differ by one row."""
    fewer = {tuple(sorted(table[:i] + table[i + 1 :])) for i in range(len(table))}
    if neighbours == "replace":
        return {tuple(sorted((*rest, user))) for rest in fewer for user in "abc"}
    return fewer | {tuple(sorted((*table, user))) for user in "abc"}


def contributions(table: Table) -> dict[str, int]:
    return {user: table.count(user) for user in table}


def distance(one: Table, other: Table, neighbours: str) -> float:
    """The number of users to add, remove or replace to get from one table to the other, or infinity if this is
    impossible. A user is identified with the contributed rows. Under "replace" any user may be replaced by any other.
    """
    here, there = contributions(one), contributions(other)
    changed = [user for user in {*here, *there} if here.get(user) != there.get(user)]
    if neighbours == "replace":
        return len(changed) if len(here) == len(there) else math.inf
    return sum((user in here) + (user in there) for user in changed)


def row_distance(one: Table, other: Table, neighbours: str) -> float:
    removed = sum(max(one.count(user) - other.count(user), 0) for user in "abc")
    added = sum(max(other.count(user) - one.count(user), 0) for user in "abc")
    if neighbours == "replace":
        return removed if removed == added else math.inf
    return removed + added


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_how_many_units_one_row_can_change_by_enumeration(neighbours: str) -> None:
    """`per_record` charges for the longest distance between tables that differ in one row. If this distance is
    infinite, it raises an error.
    """
    longest = max(distance(one, other, neighbours) for one in TABLES for other in edits(one, neighbours))
    cost = PrivacyCost(pure_epsilons=(1.0,), neighbours=neighbours, unit="user")  # type: ignore[arg-type]
    if math.isinf(longest):
        with pytest.raises(ValueError, match="gives no bound for one 'record'"):
            cost.per_record()
    else:
        assert cost.per_record().pure_epsilons == (longest,)


@pytest.mark.parametrize("exactly", [False, True])
@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize("k", [1, 2])
def test_how_many_rows_one_unit_can_change_by_enumeration(k: int, neighbours: str, exactly: bool) -> None:
    """The same for `for_group`: tables that differ in one user, who has at most, or exactly, k rows."""
    sizes = {k} if exactly else set(range(1, k + 1))
    tables = [table for table in TABLES if set(contributions(table).values()) <= sizes]
    longest = max(
        row_distance(one, other, neighbours)
        for one, other in itertools.product(tables, repeat=2)
        if _differ_in_one_user(one, other, neighbours)
    )
    cost = PrivacyCost(pure_epsilons=(1.0,), neighbours=neighbours)  # type: ignore[arg-type]
    if not math.isinf(longest) and (exactly or neighbours == "add_remove"):
        assert cost.for_group(k, unit="user", exactly=exactly).pure_epsilons == (longest,)
    # With k = 1 "at most" means "exactly", but only the holder of the data knows that there are no more rows.
    if neighbours == "replace" and not exactly:
        assert math.isinf(longest) == (k > 1)
        with pytest.raises(ValueError, match=rf"a 'user' of at most {k} units 'record' has no bound.*exactly=True"):
            cost.for_group(k, unit="user")
    else:
        assert not math.isinf(longest)


def _differ_in_one_user(one: Table, other: Table, neighbours: str) -> bool:
    here, there = contributions(one), contributions(other)
    left, come = (set(a.items()) - set(b.items()) for a, b in ((here, there), (there, here)))
    return (len(left), len(come)) in ({(1, 1)} if neighbours == "replace" else {(0, 1), (1, 0)})


def test_a_new_unit_is_refused_where_its_records_are_not_counted() -> None:
    cost = PrivacyCost(1.0)
    assert cost.for_group(3, unit="user", exactly=True) == PrivacyCost(9.0, unit="user")
    assert cost.for_group(3) == cost.for_group(3, unit="record") == PrivacyCost(9.0)
    for waiver in (False, None, 3, "yes"):
        with pytest.raises(ValueError, match="exactly=True"):
            cost.for_group(1, unit="user", exactly=waiver)  # type: ignore[arg-type]
    # At most k records, and then a replaced user: the conversion goes through "add_remove".
    added = PrivacyCost(1.0, neighbours="add_remove")
    assert added.for_group(3, unit="user").under("replace") == PrivacyCost(36.0, unit="user")
    with pytest.raises(ValueError, match=r"a 'record' is not a group of units 'user': use cost.per_record\(\)"):
        PrivacyCost(1.0, unit="user", neighbours="add_remove").for_group(1, unit="record")


# The Gaussian that dominates a pure or a bounded-range release.


@pytest.mark.parametrize("epsilon", [1e-12, 1e-6, 1e-3, 0.1, 0.999, 1.0, 1.001, 3.0, 20.0, 100.0, 690.0])
def test_the_dominating_mu_has_its_digits_and_is_rounded_up(epsilon: float) -> None:
    with mpmath.workdps(400):
        target = 1 / (1 + mpmath.exp(mpmath.mpf(epsilon)))
        mu = mpmath.sqrt(mpmath.mpf(pure_mu_squared(epsilon)))
        # Phi(-mu/2) is at most the target, and it would not be for a slightly smaller mu.
        assert mpmath.ncdf(-mu / 2) <= target < mpmath.ncdf(-mu * (1 - mpmath.mpf("1e-11")) / 2)


def test_the_dominating_mu_where_there_is_no_closed_form() -> None:
    assert pure_mu_squared(0.0) == 0.0
    assert pure_mu_squared(1000.0) == pytest.approx(8000.0)
    assert pure_mu_squared(700.0) < pure_mu_squared(700.1) * (1 + 1e-6)


profiles: dict[str, Callable[[float, float], float]] = {
    "pure": lambda size, at: max(0.0, (math.exp(size) - math.exp(at)) / (1 + math.exp(size))),
    "range": lambda size, at: (math.exp(size / 2) - math.exp(at / 2)) ** 2 / math.expm1(size) if at < size else 0.0,
}


@functools.cache
def dominating(kind: str, size: float) -> PrivacyCost:
    cost = PrivacyCost.pure_dp(size) if kind == "pure" else PrivacyCost.bounded_range(size)
    return PrivacyCost(mu_squared=cost.dominating_mu_squared)


@pytest.mark.parametrize("kind", ["pure", "range"])
@pytest.mark.parametrize("size", [1e-4, 0.1, 1.0, 3.0, 10.0])
def test_a_gaussian_dominates_the_step(kind: str, size: float) -> None:
    mu = math.sqrt(dominating(kind, size).mu_squared)
    for at in np.linspace(0.0, 1.1 * size, 111):
        truth = profiles[kind](size, float(at))
        assert gaussian_delta(mu, float(at)) >= truth * (1 - 1e-11)
    # The smallest one is tight: with a slightly smaller mu the curve is below the truth somewhere.
    least = mu * (1 - 1e-6)
    points = np.linspace(0.0, size, 2001)
    assert any(gaussian_delta(least, float(at)) < profiles[kind](size, float(at)) for at in points)


def test_a_bounded_range_step_is_as_good_as_half_of_it_in_pure_steps() -> None:
    cost = PrivacyCost(mu_squared=0.25, pure_epsilons=(0.5,), bounded_ranges=(1.0,))
    assert cost.dominating_mu_squared == pytest.approx(0.25 + 2 * pure_mu_squared(0.5), rel=1e-15)
    # Small releases cost pi/2 times as much as in zero-concentration; a selection is not (eta/2)-Gaussian.
    assert PrivacyCost.bounded_range(1e-6).dominating_mu_squared == pytest.approx(math.pi / 2 * 0.25e-12, rel=1e-6)


@lawful
@given(costs, st.floats(0, 10))
def test_the_dominating_gaussian_is_never_cheaper(cost: PrivacyCost, epsilon: float) -> None:
    exact = PrivacyCost(cost.mu_squared, 0.0, cost.pure_epsilons, cost.bounded_ranges)
    gaussian = PrivacyCost(mu_squared=cost.dominating_mu_squared)
    # Because sixteen chords replace the curve of a selection, the exact accounting is slightly above the truth.
    slack = 3e-3 * math.fsum(cost.bounded_ranges) + 1e-9
    assert gaussian._composed_delta(epsilon) >= exact._composed_delta(epsilon) * (1 - 1e-9) - slack
