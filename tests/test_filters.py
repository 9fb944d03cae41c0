"""Filters against analysts who choose costs after seeing results, with exact enumeration of what they can gain."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmedian.accounting import Budget, PrivacyCost, calibrate
from dpmedian.accounting.concentrated import concentrated_delta
from dpmedian.accounting.normal import gaussian_delta
from dpmedian.ledger import BudgetExceeded, Ledger
from dpmedian.ledger.filters import TOLERANCE, Filter, filter_of

BUDGET = Budget.of(1.0, 1e-6)
ADAPTIVE = ("gaussian", "concentrated", "pairs")
lawful = settings(max_examples=60, deadline=None, derandomize=True)


def named(composition: str | None, budget: Budget = BUDGET) -> Filter:
    return filter_of(budget, composition)[1]


def pure(epsilon: float, times: int = 1) -> tuple[PrivacyCost, ...]:
    return (PrivacyCost.pure_dp(epsilon),) * times


def true_delta(costs: Sequence[PrivacyCost], epsilon: float) -> float:
    """The largest delta of these releases with fixed costs: randomized responses (a few different ones) and
    Gaussians.
    """
    mu = math.sqrt(math.fsum(cost.mu_squared for cost in costs))
    epsilons = [e for cost in costs for e in cost.pure_epsilons]
    losses = {0.0: 1.0}
    for e, group in itertools.groupby(sorted(epsilons)):
        count, likely = len(list(group)), 1 / (1 + math.exp(-e))
        binomial = {
            (2 * k - count) * e: math.comb(count, k) * likely**k * (1 - likely) ** (count - k) for k in range(count + 1)
        }
        losses = {a + b: v * w for a, v in losses.items() for b, w in binomial.items()}
    return math.fsum(w * gaussian_delta(mu, epsilon - loss) for loss, w in losses.items())


def adaptive_delta(first: PrivacyCost, after_gain: Sequence[PrivacyCost], after_loss: Sequence[PrivacyCost]) -> float:
    """The delta of an analyst who runs a randomized response, and then uses one of two lists of costs, depending on its
    loss.
    """
    (e,) = first.pure_epsilons
    likely = 1 / (1 + math.exp(-e))
    epsilon = BUDGET.epsilon
    assert epsilon is not None
    return likely * true_delta(after_gain, epsilon - e) + (1 - likely) * true_delta(after_loss, epsilon + e)


# The example of a ledger that admitted what fits by one bound or by another bound.

FIRST, GAIN, LOSS = PrivacyCost.pure_dp(1e-6), pure(1.0000013675), pure(0.08354, 12)


def test_exact_composition_is_no_filter() -> None:
    """Both branches fit if they are fixed beforehand, but an analyst who chooses between them exceeds delta."""
    fixed = named("costs_fixed_beforehand")
    assert fixed.admits([FIRST, *GAIN])
    assert fixed.admits([FIRST, *LOSS])
    assert true_delta([FIRST, *GAIN], 1.0) <= 1e-6
    assert true_delta([FIRST, *LOSS], 1.0) <= 1e-6
    assert adaptive_delta(FIRST, GAIN, LOSS) == pytest.approx(1.359e-6, rel=1e-3)


@pytest.mark.parametrize("composition", ADAPTIVE)
def test_the_example_does_not_get_through_a_filter(composition: str) -> None:
    ledger = Ledger(epsilon=1.0, delta=1e-6, composition=composition)  # type: ignore[arg-type]
    ledger.charge("first", "above_threshold", FIRST)
    admitted: list[list[PrivacyCost]] = []
    for branch in (GAIN, LOSS):
        costs: list[PrivacyCost] = [FIRST]
        admitted.append([])
        for cost in branch:
            if not named(composition).admits([*costs, cost]):
                break
            costs.append(cost)
            admitted[-1].append(cost)
    assert adaptive_delta(FIRST, *admitted) <= 1e-6
    assert not all(len(got) == len(branch) for got, branch in zip(admitted, (GAIN, LOSS), strict=True))
    with pytest.raises(BudgetExceeded, match=rf"the filter '{composition}' counts .* as spent; "):
        ledger.charge("second", "above_threshold", *GAIN)


def greedy(rule: Filter, costs: Sequence[PrivacyCost], step: PrivacyCost, most: int = 400) -> list[PrivacyCost]:
    """As many repetitions of the release as the filter admits."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if rule.admits([*costs, *[step] * middle]) else (low, middle - 1)
    return [step] * low


MENU = [
    *(PrivacyCost.pure_dp(e) for e in (1.0000013, 1.0, 0.5, 0.2, 0.08354, 0.03, 0.01)),
    *(PrivacyCost(mu_squared=m) for m in (0.05, 0.02, 1e-3)),
]


@pytest.mark.parametrize("composition", ["gaussian", "concentrated"])
@pytest.mark.parametrize("e", [1e-6, 1e-3, 0.03, 0.1])
def test_no_two_branches_gain_by_adaptivity(composition: str, e: float) -> None:
    """For any costs with which the analyst fills the ledger in either branch, the true delta stays within the
    budget's.
    """
    rule, first = named(composition), PrivacyCost.pure_dp(e)
    options = [greedy(rule, [first], step) for step in MENU]
    used = [option for option in options if option]
    assert len(used) >= 4, "the menu must leave something to choose"
    worst = max(adaptive_delta(first, gain, loss) for gain in options for loss in options)
    assert worst <= 1e-6
    # Choosing gains something over the best fixed list of the exact accounting, so the test is not vacuous.
    fixed = named("costs_fixed_beforehand")
    exact = [greedy(fixed, [first], step) for step in MENU]
    if e == 1e-6:
        assert max(adaptive_delta(first, gain, loss) for gain in exact for loss in exact) > 1e-6


def asked(epsilon: float, delta: float) -> PrivacyCost:
    rho = calibrate(lambda rho: PrivacyCost(mu_squared=2 * rho), Budget.of(epsilon, delta))
    return PrivacyCost(mu_squared=2 * rho).requested(epsilon, delta)


def test_pairs_may_be_chosen_adaptively() -> None:
    first = PrivacyCost.pure_dp(0.1)
    rule = named("pairs")
    branches = [[asked(0.9, 1e-6)], [asked(0.45, 5e-7)] * 2, list(pure(0.9)), list(pure(0.3, 3))]
    assert all(rule.admits([first, *branch]) for branch in branches)
    assert max(adaptive_delta(first, gain, loss) for gain in branches for loss in branches) <= 1e-6
    assert not rule.admits([first, asked(0.9001, 1e-6)])
    assert not rule.admits([first, asked(0.4, 6e-7), asked(0.4, 5e-7)])


# The Gaussian filter.


def test_the_first_release_may_use_the_budget_up_exactly() -> None:
    """The cost of the first release was chosen before any result, so this cost is counted exactly, for any kinds of
    releases.
    """

    def cost_of(rho: float) -> PrivacyCost:
        selection = PrivacyCost.bounded_range(math.sqrt(8 * 0.1 * rho))
        return PrivacyCost(mu_squared=1.7 * rho, discretization=1e-15) + PrivacyCost.pure_dp(0.3 * rho) + selection

    cost = cost_of(calibrate(cost_of, BUDGET))
    ledger = Ledger(epsilon=1.0, delta=1e-6)
    ledger.charge("all", "adaptive", cost)
    assert ledger.remaining == pytest.approx(0.0, abs=1e-8)
    ledger.charge("nothing", "adaptive", PrivacyCost())
    with pytest.raises(BudgetExceeded):
        ledger.charge("more", "adaptive", PrivacyCost(mu_squared=1e-6))
    # As a second release the same cost would count more, because its other releases count as Gaussians.
    assert cost.dominating_mu_squared > 2 * cost.rho


@lawful
@given(
    st.lists(st.floats(1e-6, 0.03), min_size=1, max_size=5),
    st.lists(st.floats(1e-6, 0.1), max_size=3),
    st.lists(st.floats(1e-6, 0.1), max_size=3),
)
def test_the_gaussian_filter_is_never_more_generous_than_the_exact_composition(
    squares: list[float], epsilons: list[float], etas: list[float]
) -> None:
    costs = [
        *(PrivacyCost(mu_squared=m, discretization=1e-17) for m in squares),
        *(PrivacyCost.pure_dp(e) for e in epsilons),
        *(PrivacyCost.bounded_range(eta) for eta in etas),
    ]
    rule = named("gaussian")
    if rule.admits(costs):
        assert BUDGET.fits(PrivacyCost.total(costs), rounding=2 * TOLERANCE)
        total = math.fsum(cost.dominating_mu_squared for cost in costs)
        assert gaussian_delta(math.sqrt(total), 1.0) <= 1e-6 or epsilons or etas
    # Costs that are admitted stay admitted without the last one.
    assert not rule.admits(costs) or rule.admits(costs[:-1])


def test_gaussian_releases_lose_almost_nothing_to_the_filter() -> None:
    step = PrivacyCost(mu_squared=1e-4, discretization=1e-17)
    exact = len(greedy(named("costs_fixed_beforehand"), [], step, 1000))
    assert 0.995 * exact <= len(greedy(named("gaussian"), [], step, 1000)) <= exact


def test_discretization_has_its_own_share_of_delta() -> None:
    rule = named("gaussian")
    share = 0.01 * 1e-6 / (1 + math.e)
    first = PrivacyCost(mu_squared=0.01, discretization=1e-9)
    assert rule.admits([first, PrivacyCost(mu_squared=0.01, discretization=0.9 * share)])
    coarse = PrivacyCost(mu_squared=0.01, discretization=1.1 * share)
    assert not rule.admits([first, coarse])
    ledger = Ledger(epsilon=1.0, delta=1e-6)
    ledger.charge("first", "adaptive", first)
    with pytest.raises(
        BudgetExceeded, match=r"the discretization of its noise, .* a ledger in rho needs no such reserve"
    ):
        ledger.charge("coarse", "adaptive", coarse)


def test_events_on_which_nothing_is_promised() -> None:
    event = PrivacyCost(mu_squared=0.001, delta0=1e-8)
    rule = named("gaussian")
    assert rule.admits([event, PrivacyCost(mu_squared=0.001)])
    assert not rule.admits([event, event])
    assert not named("concentrated").admits([event])
    assert named(None, Budget.of(rho=1.0, delta=2e-8)).admits([event, event])
    assert not named(None, Budget.of(rho=1.0, delta=2e-8)).admits([event, event, event])
    ledger = Ledger(epsilon=1.0, delta=1e-6)
    ledger.charge("a", "adaptive", event)
    with pytest.raises(BudgetExceeded, match=r"delta0.*: use a ledger in rho and delta"):
        ledger.charge("b", "adaptive", event)


# The other filters.


def test_zero_concentration_under_epsilon_and_delta() -> None:
    rule = named("concentrated")
    rho = rule.split([], 1)
    assert concentrated_delta(rho, 1.0) <= 1e-6 < concentrated_delta(rho * (1 + 1e-8), 1.0)
    assert rule.admits([PrivacyCost(mu_squared=2 * rho)])
    # Small pure releases count less than in the Gaussian filter, and Gaussians count more.
    assert len(greedy(rule, [], PrivacyCost.pure_dp(0.01))) > len(
        greedy(named("gaussian"), [], PrivacyCost.pure_dp(0.01))
    )
    assert rule.split([], 1) < named("gaussian").split([], 1)


def test_a_ledger_in_rho_promises_its_budget_up_to_the_stated_tolerance() -> None:
    rule = named(None, Budget.of(rho=1.0))
    assert rule.admits([PrivacyCost(mu_squared=2.0 * (1 + TOLERANCE / 2))])
    assert not rule.admits([PrivacyCost(mu_squared=2.0 * (1 + 2 * TOLERANCE))])
    assert TOLERANCE == 2.0**-48


@pytest.mark.parametrize(
    ("budget", "composition"),
    [
        ({"rho": 1.0}, "gaussian"),
        ({"rho": 1.0}, "costs_fixed_beforehand"),
        ({"epsilon": 1.0}, "pairs"),
        ({"epsilon": 1.0, "delta": 1e-6}, "pure"),
    ],
)
def test_a_filter_must_suit_the_budget(budget: dict[str, float], composition: str) -> None:
    with pytest.raises(ValueError, match=rf"composition '{composition}' does not suit the budget .*: choose one of"):
        Ledger(**budget, composition=composition)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"composition must be one of .* or None, got 'exact'"):
        Ledger(**budget, composition="exact")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("budget", "default"),
    [({"rho": 1.0}, "concentrated"), ({"epsilon": 1.0}, "pure"), ({"epsilon": 1.0, "delta": 1e-6}, "gaussian")],
)
def test_defaults_are_filters(budget: dict[str, float], default: str) -> None:
    assert Ledger(**budget).composition == default  # type: ignore[arg-type]


# Messages of a refusal.


@pytest.mark.parametrize(
    ("options", "cost", "says"),
    [
        ({"rho": 1.0}, PrivacyCost(mu_squared=3.0), r"the filter 'concentrated' counts .* as spent; rho = 1 would fit"),
        (
            {"epsilon": 1.0},
            PrivacyCost.pure_dp(2.0),
            r"the filter 'pure' counts .* as spent; a pure release of epsilon = 1 would fit",
        ),
        (
            {"epsilon": 1.0, "delta": 1e-6},
            PrivacyCost(mu_squared=1.0),
            r"the filter 'gaussian' counts .* as spent; "
            r"a Gaussian release of rho = 0\.0280118 would fit \(epsilon = 0\.9999 at",
        ),
        (
            {"epsilon": 1.0, "delta": 1e-6, "composition": "pairs"},
            PrivacyCost(mu_squared=1e-3),
            r"the filter 'pairs' counts .* as spent; "
            r"this ledger adds up the requested pairs: request epsilon and delta",
        ),
        (
            {"epsilon": 1.0, "delta": 1e-6, "composition": "pairs"},
            PrivacyCost.pure_dp(2.0),
            r"a release requested with epsilon = 1, delta = 1e-06 would fit",
        ),
        (
            {"epsilon": 1.0, "delta": 1e-6, "composition": "costs_fixed_beforehand"},
            PrivacyCost(mu_squared=1.0),
            r"a Gaussian release of rho = 0\.0279\d+ would fit",
        ),
    ],
)
def test_a_refusal_names_the_filter_and_what_would_fit(
    options: dict[str, object], cost: PrivacyCost, says: str
) -> None:
    with pytest.raises(BudgetExceeded, match=says):
        Ledger(**options).check(cost)  # type: ignore[arg-type]


def test_a_refusal_explains_steps_that_count_more() -> None:
    ledger = Ledger(epsilon=1.0, delta=1e-6)
    ledger.charge("a", "adaptive", PrivacyCost(mu_squared=0.01))
    with pytest.raises(
        BudgetExceeded, match=r"would fit .*its pure releases and selections .* counts as rho = 0\.19\d+"
    ):
        ledger.check(PrivacyCost.pure_dp(0.5))


# Splitting.


@pytest.mark.parametrize("k", [1, 2, 13, 100])
@pytest.mark.parametrize(
    "options",
    [
        {"rho": 0.7},
        {"epsilon": 1.0, "delta": 1e-6},
        {"epsilon": 1.0, "delta": 1e-6, "composition": "concentrated"},
        {"epsilon": 1.0, "delta": 1e-6, "composition": "costs_fixed_beforehand"},
        {"epsilon": 8.0, "delta": 1e-9},
    ],
)
@pytest.mark.parametrize("before", [(), (1e-3, 2e-3)])
def test_k_releases_of_a_split_fit_and_a_little_more_does_not(
    options: dict[str, object], k: int, before: tuple[float, ...]
) -> None:
    ledger = Ledger(**options)  # type: ignore[arg-type]
    for rho in before:
        ledger.charge("before", "adaptive", PrivacyCost(mu_squared=2 * rho, discretization=1e-17))
    rho = ledger.split(k)
    step = PrivacyCost(mu_squared=2 * rho, discretization=1e-17)
    for _ in range(k):
        ledger.charge("part", "adaptive", step)
    # Only the share of delta for the discretization is lost; in rho nothing is lost.
    assert ledger.split(1) <= rho * k * (1e-10 if ledger.budget.rho or ledger.composition == "concentrated" else 3e-3)
    with pytest.raises(BudgetExceeded):
        ledger.check(PrivacyCost(mu_squared=2 * rho * k * 4e-3))


def test_splits_in_rho_are_exact() -> None:
    ledger = Ledger(rho=1.0)
    assert ledger.split(4) == 0.25
    ledger.charge("a", "adaptive", PrivacyCost(mu_squared=0.5))
    assert ledger.split(3) == 0.25
    ledger.charge("b", "adaptive", PrivacyCost(mu_squared=1.5))
    assert ledger.split(2) == 0.0


def test_thirteen_parts_of_epsilon_leave_most_of_it_and_a_split_leaves_nothing() -> None:
    thirteenth = asked(1 / 13, 1e-6 / 13)
    ledger = Ledger(epsilon=1.0, delta=1e-6)
    for _ in range(13):
        ledger.charge("week", "adaptive", thirteenth)
    assert ledger.remaining > 0.7
    assert Ledger(epsilon=1.0, delta=1e-6).split(13) > 10 * thirteenth.rho


def test_ledgers_without_rho_say_what_to_ask_for_instead() -> None:
    ledger = Ledger(epsilon=1.0)
    ledger.charge("a", "inverse_sensitivity", PrivacyCost.pure_dp(0.25))
    with pytest.raises(ValueError, match=r"has no rho to split, .*: 3 releases of epsilon = 0.25 each fit"):
        ledger.split(3)
    pairs = Ledger(epsilon=1.0, delta=1e-6, composition="pairs")
    pairs.charge("a", "adaptive", asked(0.5, 5e-7))
    with pytest.raises(ValueError, match=r"has no rho to split: 5 releases of epsilon = 0.1, delta = 1e-07 each fit"):
        pairs.split(5)
    with pytest.raises(ValueError, match="k must be a positive whole number, got 0"):
        ledger.split(0)


# Claims after adaptive choices.


@pytest.mark.parametrize("rho", [1e-3, 0.12, 3.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-2])
def test_the_claim_of_a_budget_in_rho_is_that_of_zero_concentration(rho: float, delta: float) -> None:
    epsilon = Budget.of(rho=rho).epsilon_at(delta)
    orders = 1 + np.logspace(-6, 8, 200_001)
    exponents = (orders - 1) * (orders * rho - epsilon) - np.log(orders - 1) + orders * np.log1p(-1 / orders)
    assert math.exp(min(0.0, float(exponents.min()))) <= delta * (1 + 1e-6)
    assert concentrated_delta(rho, epsilon * (1 - 1e-6)) > delta * (1 - 1e-9)
    # This is more than Gaussians of this rho would give: the analyst may have spent it on any releases.
    assert epsilon >= PrivacyCost(mu_squared=2 * rho).epsilon_at(delta)


def test_the_claim_of_other_budgets_is_the_budget() -> None:
    assert Budget.of(1.0, 1e-6).epsilon_at(1e-6) == Budget.of(1.0, 1e-6).epsilon_at(1e-5) == 1.0
    assert Budget.of(1.0, 1e-6).epsilon_at(1e-7) == math.inf
    assert Budget.of(epsilon=2.0).epsilon_at(0.0) == 2.0
    assert Budget.of(rho=1.0, delta=1e-6).epsilon_at(1e-6) == Budget.of(rho=1.0).epsilon_at(0.0) == math.inf
    with pytest.raises(ValueError, match="delta must be 0 or at least 1e-100"):
        Budget.of(rho=1.0).epsilon_at(1e-150)
