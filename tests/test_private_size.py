"""Neighbors that add or remove a record: the number of records is private, and is revealed only with noise."""

from __future__ import annotations

import json
import math
import pickle
import re

import numpy as np
import pytest

import dpmedian
from contract.registry import METHOD_CASES, RELATION_CASES
from dpmedian import building_blocks as blocks
from dpmedian.methods.private_size import PrivateSize
from dpmedian.methods.registry import METHODS
from dpmedian.parameters import PRIVATE_RECORDS_MAX, PublicParameters
from dpmedian.planning.choice import make_plan
from dpmedian.sources.array import ArraySource
from dpmedian.tape import Tape

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
HIDDEN = {"neighbours": "add_remove", **BUDGET}
LOCATED = {"radius": 30.0, "resolution": 0.5}
SIZED = [name for name, method in METHODS.items() if method.sized]


def cloud(n: int, d: int = 2, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d))


def planned(method: str, n: int | None, rho: float = 2.0) -> dpmedian.Plan:
    located = {name: LOCATED[name] for name in METHODS[method].needs}
    return make_plan(PublicParameters.of(n, 2, rho=rho, neighbours="add_remove", **located), method)


def test_a_release_has_a_noisy_size_and_no_n():
    release = dpmedian.geometric_median(cloud(2000), **HIDDEN, seed=1)
    assert release.n is None
    assert release.neighbours == release.cost.neighbours == "add_remove"
    assert release.size != 2000
    assert abs(release.size - 2000) < 6 * release.plan.calibrated.size.noise
    assert release.plan.n == release.size
    assert release.plan.cost == release.cost
    assert f"noisy size {release.size}" in str(release)
    assert str(release.plan).startswith(f"Plan: adaptive, add_remove, n private (noisy size {release.size})")


def test_a_release_under_replacement_has_no_size():
    release = dpmedian.geometric_median(cloud(2000), **BUDGET, seed=1)
    assert (release.n, release.size, release.neighbours) == (2000, None, "replace")


@pytest.mark.parametrize("method", SIZED)
def test_the_cost_is_the_same_for_every_size(method):
    """The cap that is charged bounds the cost of the method for every number of records that could be seen.

    The guess is far below the numbers of records at which a run makes the most releases.
    """
    plan = planned(method, 30)
    made = plan.calibrated
    assert isinstance(made, PrivateSize)
    rest = METHODS[method].cap(made.parameters, made.rest)
    for n in (0, 1, 2, 3, 10, 50, 499, 10_000, 41_000, 10**6, 2**27, PRIVATE_RECORDS_MAX):
        cost = made.at(n).cost
        assert cost.mu_squared <= rest.mu_squared
        assert cost.discretization <= rest.discretization
        assert cost.bounded_ranges == rest.bounded_ranges
        assert cost.delta_at(1.0) <= rest.delta_at(1.0)
    assert plan.cost.rho == pytest.approx(2.0, rel=1e-9)


@pytest.mark.parametrize("method", SIZED)
@pytest.mark.parametrize("n", [0, 1, 2])
def test_data_sets_of_no_and_one_record_run(method, n):
    """This holds with and without a guess, and a failure is an output."""
    for guess in (None, 500):
        plan = planned(method, guess)
        tape = Tape.draw(bytes([n + 1] * 32), "add_remove")
        try:
            result = plan.calibrated.run(ArraySource.of(cloud(n), plan.parameters), tape)
        except dpmedian.ReleaseFailed as failed:
            found = (failed.size, failed.cost.rho)
        else:
            found = (result.size, plan.cost.rho)
            assert np.isfinite(result.point).all()
        assert found[0] in range(50)
        assert found[1] == plan.cost.rho


@pytest.mark.parametrize(
    ("terms", "lowered"),
    [
        ({"rho": 0.1}, True),
        ({**BUDGET, "composition": "concentrated"}, True),
        (BUDGET, False),
        ({**BUDGET, "composition": "pairs"}, False),
        ({**BUDGET, "composition": "costs_fixed_beforehand"}, False),
    ],
)
def test_a_release_that_ends_after_its_size_costs_what_ran_where_that_is_proved(terms, lowered, tmp_path):
    """In a ledger in rho each release has its own cost, also if it was chosen adaptively. Other ledgers keep the whole
    charge. The file shows this.
    """
    asked = {"rho": 0.02} if "rho" in terms else BUDGET
    asked = asked if terms.get("composition") != "concentrated" else {"epsilon": 0.9, "delta": 1e-6}
    path = tmp_path / "ledger.json"
    ledger = dpmedian.Ledger(**terms, neighbours="add_remove", path=path)
    with pytest.raises(dpmedian.ReleaseFailed) as failed:
        dpmedian.geometric_median(cloud(3), neighbours="add_remove", **asked, ledger=ledger, seed=3)
    planned = dpmedian.plan(None, 2, neighbours="add_remove", **asked)
    (entry,) = dpmedian.Ledger.open(path).entries
    assert entry.state == "failed"
    assert failed.value.ran.rho == pytest.approx(0.02 * planned.cost.rho, rel=1e-6)
    expected = failed.value.ran.rho if lowered else planned.cost.rho
    assert entry.cost.rho == failed.value.cost.rho == expected
    assert entry.remaining == pytest.approx(ledger.remaining, rel=1e-12)


@pytest.mark.filterwarnings("ignore::dpmedian.ConversionWarning")
def test_what_did_not_run_can_be_spent_on_another_release():
    """A ledger under replacement charges four times the rho of what ran."""
    ledger = dpmedian.Ledger(rho=0.08)
    asked = {"neighbours": "add_remove", "rho": 0.02, "ledger": ledger}
    with pytest.raises(dpmedian.ReleaseFailed):
        dpmedian.geometric_median(cloud(3), **asked, seed=3)
    assert ledger.remaining == pytest.approx(0.08 - 4.0 * 0.02 * 0.02, rel=1e-6)
    dpmedian.geometric_median(cloud(2000), neighbours="add_remove", rho=0.019, ledger=ledger, seed=1)
    assert [entry.state for entry in ledger.entries] == ["failed", "released"]


def test_only_a_part_of_what_was_charged_can_have_run_and_only_once():
    """A release that was marked has ended after the whole run, and a later call returns nothing to the budget."""
    ledger = dpmedian.Ledger(rho=1.0, neighbours="add_remove")
    first, second = (dpmedian.PrivacyCost(mu_squared=mu, neighbours="add_remove") for mu in (0.01, 0.2))
    charge = ledger.charge("release", "adaptive", second)
    with pytest.raises(ValueError, match="exceeds the charged cost"):
        charge.fail_after(dpmedian.PrivacyCost(mu_squared=0.3, neighbours="add_remove"))
    charge.mark("failed")
    with pytest.raises(ValueError, match="already marked as failed, with its whole cost"):
        charge.fail_after(first)
    assert ledger.spent.rho == second.rho


@pytest.mark.filterwarnings("ignore::dpmedian.ConversionWarning")
@pytest.mark.parametrize(("unit", "times"), [("person", 1.0), ("record", 4.0)])
def test_what_ran_is_charged_for_the_unit_of_the_release(unit, times):
    """A row that moves to another person removes one person and adds another. So a ledger per record counts two units,
    and four times the rho.
    """
    planned = dpmedian.plan(None, 2, rho=0.5, neighbours="add_remove", unit="person")
    ledger = dpmedian.Ledger(rho=10.0, neighbours="add_remove", unit=unit)
    with pytest.raises(dpmedian.ReleaseFailed, match="records were seen") as failed:
        planned.run(np.zeros((3, 2)), unit=["a", "b", "c"], ledger=ledger, seed=0)
    (entry,) = ledger.entries
    assert (entry.state, entry.cost.unit, failed.value.ran.unit) == ("failed", unit, "person")
    assert entry.cost.rho == pytest.approx(times * planned.calibrated.size.cost.rho, rel=1e-9)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("n", [0, 1, 2])
def test_pure_releases_need_no_size(n, d):
    """With and without a guess, the whole cost is that of the draw."""
    for guess in (None, 50):
        asked = {"epsilon": 1.0, **LOCATED, "neighbours": "add_remove", "n": guess}
        release = dpmedian.geometric_median(np.full((n, d), 3.0), **asked, seed=1)
        assert (release.n, release.size, release.method) == (None, None, "inverse_sensitivity")
        assert release.cost.epsilon_at(0.0) <= 1.0
        assert "n private" in str(release)


def test_a_guess_for_a_pure_release_is_no_size():
    plan = dpmedian.plan(50, 2, epsilon=1.0, **LOCATED, neighbours="add_remove")
    assert str(plan).startswith("Plan: inverse_sensitivity, add_remove, n private (guess 50), d = 2")
    assert plan.to_dict()["guess"] == 50


def test_pure_releases_have_half_the_error_where_a_record_is_added_or_removed():
    asked = {"epsilon": 1.0, **LOCATED, "method": "inverse_sensitivity"}
    replaced, added = (dpmedian.plan(1000, 2, **asked, neighbours=kind) for kind in ("replace", "add_remove"))
    ratio = added.prediction.relative_error / replaced.prediction.relative_error
    assert ratio == pytest.approx(0.5, rel=1e-3)


def test_what_comes_before_the_charge_does_not_depend_on_the_number_of_records():
    """The plan, its text, its picture and its refusals are those for the guess, for any points."""
    asked = {"neighbours": "add_remove", "rho": 1e-9, "n": 20}
    for n in (0, 1, 20, 100_000):
        ledger = dpmedian.Ledger(rho=1.0, neighbours="add_remove")
        with pytest.raises(ValueError, match="refused before spending") as refused:
            dpmedian.geometric_median(cloud(n), ledger=ledger, **asked)
        assert "n=20" in str(refused.value)
        assert str(n) not in str(refused.value).replace("n=20", "") or n in (0, 1)
        assert len(ledger.entries) == 0


def test_the_shape_of_the_points_is_checked_by_the_dimension_only():
    plan = dpmedian.plan(1000, 2, **HIDDEN)
    assert plan.run(cloud(1500), seed=1).size != 1500
    for points in (cloud(1234, 3), cloud(1234, 2)[:, 0], cloud(1234, 2)[:, None]):
        with pytest.raises(ValueError, match=r"d = 2 columns|shape \(n, d\)") as refused:
            plan.run(points)
        assert "1234" not in str(refused.value)


def test_too_few_records_are_a_charged_failure_that_names_the_noisy_size():
    ledger = dpmedian.Ledger(epsilon=1.0, delta=1e-6, neighbours="add_remove")
    with pytest.raises(dpmedian.ReleaseFailed, match="a noisy number") as failed:
        dpmedian.geometric_median(cloud(3), **HIDDEN, ledger=ledger, seed=3)
    assert f"about {failed.value.size} records" in failed.value.message
    assert failed.value.size != 3
    assert ledger.remaining == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(("d", "rho"), [(3, 8.0), (1, 1e-12), (2, 1e5), (5000, 0.1), (4000, 0.1)])
def test_the_noise_at_every_size_that_can_be_seen_fits_a_lattice(d, rho):
    """This is tested at the smallest and the largest size, for every kind of release at the smallest and at the largest
    cost, and at sizes in between.
    """
    plan = dpmedian.plan(None, d, rho=rho, method="adaptive", neighbours="add_remove")
    for n in (0, PRIVATE_RECORDS_MAX):
        allowance = plan.calibrated.at(n).allowance
        for kind in allowance.offers:
            for exponent in np.linspace(math.log(1e-6), math.log(kind.largest), 5):
                assert 2**30 <= kind.make(math.exp(exponent) * allowance.rho).sigma <= 2**50
    assert plan.cost.discretization < 1e-11


def test_a_budget_that_fits_no_lattice_is_refused_at_planning():
    with pytest.raises(ValueError, match="fits no lattice"):
        dpmedian.plan(None, 2, rho=1e-16, method="adaptive", neighbours="add_remove")


def test_the_size_is_the_first_release_and_all_that_a_run_knows_of_the_number():
    plan = planned("adaptive", None)
    tape = Tape.record(bytes(32), "add_remove")
    result = plan.calibrated.run(ArraySource.of(cloud(400), plan.parameters), tape)
    name, sensitivity, sigma, exact, noisy = tape.entries()[0]
    bits = plan.calibrated.size.bits
    assert (name, sensitivity, exact.tolist()) == ("size", 2.0**bits, [400 << bits])
    assert sigma == plan.calibrated.size.sigma
    assert result.size == round(noisy[0] / 2.0**bits)


def test_json_has_the_noisy_size():
    release = dpmedian.geometric_median(cloud(1234), **HIDDEN, seed=1)
    told = [release.to_dict(), release.plan.to_dict()]
    assert not re.search(r"(?<![\d.])1234(?!\d)", json.dumps(told))
    assert [record["n"] for record in told] == [None, None]
    assert told[0]["size"] == release.size != 1234


def test_records_that_are_not_finite_can_be_dropped():
    points = cloud(2000)
    broken = np.vstack([points[:7], [[np.nan, 0.0]], points[7:], [[np.inf, 1.0]]])
    expected = dpmedian.geometric_median(points, **HIDDEN, seed=1)
    found = dpmedian.geometric_median(broken, **HIDDEN, seed=1, nonfinite="drop")
    assert np.array_equal(found.point, expected.point)
    assert found.size == expected.size


def test_records_are_not_dropped_where_their_number_is_public():
    with pytest.raises(ValueError, match="neighbours='add_remove'"):
        dpmedian.geometric_median(cloud(2000), **BUDGET, nonfinite="drop")


def test_a_number_of_records_that_is_not_that_of_the_points_is_refused_under_replacement_only():
    with pytest.raises(ValueError, match="n = 10, but there are 2000 points"):
        dpmedian.geometric_median(cloud(2000), **BUDGET, n=10)
    assert dpmedian.geometric_median(cloud(2000), **BUDGET, n=2000, seed=1).n == 2000
    assert dpmedian.geometric_median(cloud(2000), **HIDDEN, n=1000, seed=1).n is None


def test_the_profile_of_the_paper_is_refused():
    with pytest.raises(ValueError, match="profile 'paper' is not proved for neighbours = 'add_remove'"):
        dpmedian.plan(500, 2, rho=1.0, method="dpgd", radius=1.0, profile="paper", neighbours="add_remove")


def test_a_plan_without_a_guess_shows_three_sizes_and_one_with_a_guess_predicts():
    without, with_guess = dpmedian.plan(None, 2, **HIDDEN), dpmedian.plan(3000, 2, **HIDDEN)
    assert str(without).startswith("Plan: adaptive, add_remove, n private (no guess), d = 2, ")
    assert [n for n, _ in without.calibrated.examples] == [1000, 10_000, 100_000]
    assert all(f"predicted with n = {n}:" in str(without) for n in (1000, 10_000, 100_000))
    assert str(with_guess).startswith("Plan: adaptive, add_remove, n private (guess 3000), d = 2, ")
    assert with_guess.prediction.excess is not None
    for plan in (without, with_guess):
        under = plan.cost.under("replace").epsilon_at(1e-6)
        assert f"the same noise, if a record is replaced, costs epsilon = {under:.4g}, delta = 1e-06" in str(plan)
        assert pickle.loads(pickle.dumps(plan)).cost == plan.cost


def test_fewer_records_are_required_where_one_is_added_or_removed():
    asked = {"excess": 1e-4, **BUDGET}
    replaced, added = (dpmedian.required_n(2, **asked, neighbours=relation) for relation in ("replace", "add_remove"))
    assert 0.4 < added / replaced < 0.65


def test_n_is_needed_where_it_is_public():
    with pytest.raises(TypeError, match="n must be an integer"):
        dpmedian.plan(None, 2, **BUDGET)


def test_hidden_samples_are_taken_by_coins():
    """With many records the searches query a sample. A contract tests that all partitions give the same bits."""
    assert ("adaptive, sample", "add_remove") in RELATION_CASES
    case = METHOD_CASES["adaptive, sample"]
    plan = make_plan(PublicParameters.of(case.n, case.d, neighbours="add_remove", **case.arguments), case.method)
    assert plan.calibrated.typical.offers.sample < case.n
    release = plan.run(cloud(case.n), seed=1)
    assert math.hypot(*release.point) < 0.05


# Building blocks.


def test_the_size_as_a_building_block():
    """The noise is that of one Gaussian count. In 1,000 releases mean and standard deviation are within six standard
    errors.

    A sigma that is a fifth too small or too large is noticed with a probability of 0.99.
    """
    found = [blocks.size(np.zeros((1000, 2)), rho=0.005, seed=seed).value for seed in range(1000)]
    assert abs(np.mean(found) - 1000) < 6 * 10.0 / math.sqrt(1000)
    assert abs(np.std(found) - 10.0) < 6 * 10.0 / math.sqrt(2 * 1000)
    ledger = dpmedian.Ledger(rho=0.01, neighbours="add_remove")
    noisy = blocks.size(np.full((3, 2), np.nan), rho=0.005, nonfinite="drop", ledger=ledger, seed=1)
    assert noisy.value == blocks.size(np.zeros((0, 2)), rho=0.005, seed=1).value >= 0
    assert (noisy.cost.neighbours, noisy.cost.rho) == ("add_remove", pytest.approx(0.005, rel=1e-9))
    assert ledger.remaining == pytest.approx(0.005, rel=1e-6)
    with pytest.raises(ValueError, match="no pure differential privacy"):
        blocks.size(cloud(10), epsilon=1.0)


@pytest.mark.parametrize("block", [blocks.find_radius, blocks.localize, blocks.dpgd])
def test_parts_run_on_a_noisy_size(block):
    """For any number of records and any guess, the cost is the same, and so is the charge of the ledger."""
    options = {"rho": 2.0, "neighbours": "add_remove", "radius": 30.0}
    options |= {} if block is blocks.dpgd else {"resolution": 0.5}
    ledger = dpmedian.Ledger(rho=100.0, neighbours="add_remove")
    for n in (0, 1, 2, 400):
        for guess in (None, 100):
            try:
                found = block(cloud(n), **options, n=guess, ledger=ledger, seed=n)
            except dpmedian.ReleaseFailed:
                continue
            assert found.size in range(n - 40, n + 40)
            assert found.cost.neighbours == "add_remove"
            assert found.cost.rho == pytest.approx(2.0, rel=1e-9)
    assert found.size != 400
    assert ledger.remaining == pytest.approx(100.0 - 8 * 2.0, rel=1e-9)
    with pytest.raises(ValueError, match="profile 'paper' is not proved"):
        block(cloud(400), **options, profile="paper")


def test_what_a_caller_proves_for_a_relation_costs_under_it():
    chosen = blocks.exponential_mechanism([3, 1], sensitivity=1, epsilon=1.0, neighbours="add_remove", seed=1)
    crossed = blocks.above_threshold([0, 90], 50, sensitivity=1, epsilon=1.0, neighbours="add_remove", seed=1)
    found = blocks.noisy_bisection(lambda i: i, 0, 7, 3, sensitivity=1, rho=10.0, neighbours="add_remove", seed=1)
    assert {made.cost.neighbours for made in (chosen, crossed, found)} == {"add_remove"}
    with pytest.raises(ValueError, match="cannot be converted to 'add_remove'"):
        blocks.exponential_mechanism(
            [3, 1], sensitivity=1, epsilon=1.0, ledger=dpmedian.Ledger(epsilon=2.0, neighbours="add_remove")
        )
