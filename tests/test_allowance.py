"""The tape limits a run to its charge, and the charge suffices for every method."""

from __future__ import annotations

import contextlib
import math
from dataclasses import replace

import numpy as np
import pytest

import dpmedian
from contract.registry import METHOD_CASES, RELATION_CASES, SOURCES, cloud
from dpmedian.accounting import PrivacyCost
from dpmedian.mechanisms.exponential import Exponential
from dpmedian.mechanisms.gaussian import Gaussian
from dpmedian.parameters import PublicParameters
from dpmedian.planning.choice import make_plan
from dpmedian.release import ReleaseFailed
from dpmedian.running import Session
from dpmedian.statistics import Exact
from dpmedian.tape import Tape


def allowed(cost: PrivacyCost) -> Tape:
    tape = Tape.draw(bytes(32), cost.neighbours)
    tape.allow(cost.mu_squared, math.fsum(cost.bounded_ranges))
    return tape


def test_gaussian_releases_have_what_they_cost_and_no_more():
    made = Gaussian.of_stated("test", 1.0, 0.1, largest=1000, releases=50)
    tape = allowed(made.cost)
    for _ in range(50):
        made.release(tape, made.stated(7))
    with pytest.raises(ValueError, match="allowance"):
        made.release(tape, made.stated(7))


def test_choices_have_what_they_cost_and_no_more():
    made, scores = Exponential.of("test", 0.7), Exact.stated(np.arange(5), 3.0, scores=True)
    tape = allowed(PrivacyCost.total([made.cost] * 9))
    for at_least in range(9):
        made.release(tape, scores, at_least)
    with pytest.raises(ValueError, match="allowance"):
        made.release(tape, scores)


def test_noise_that_is_charged_once_for_many_comparisons_is_not_counted():
    tape = allowed(PrivacyCost())
    for _ in range(5):
        tape.laplace("test", Exact.stated(np.array([1]), 1.0), (1, 5))
        tape.geometric("test", Exact.stated(np.array([1]), 1.0), (1, 5))


def test_an_allowance_is_set_once():
    tape = allowed(PrivacyCost(mu_squared=1.0))
    with pytest.raises(ValueError, match="already"):
        tape.allow(1.0, 0.0)
    for bad in (-1.0, math.nan):
        with pytest.raises(ValueError, match="negative"):
            Tape.draw(bytes(32)).allow(bad, 0.0)


@pytest.mark.parametrize(("name", "relation"), RELATION_CASES)
@pytest.mark.parametrize("source", ["array", "three parts"])
def test_every_method_runs_on_what_it_is_charged(name, relation, source):
    """The method spends its charge, so with a hundredth of the charge a release is refused."""
    case = METHOD_CASES[name]
    plan = make_plan(PublicParameters.of(case.n, case.d, neighbours=relation, **case.arguments), case.method)
    points = cloud(case.n, case.d, seed=len(name))
    if source != "array" and plan.calibrated.needs_local_records:
        pytest.skip("its records are in this process")
    with contextlib.suppress(ReleaseFailed):
        plan.calibrated.run(SOURCES[source](points, plan.parameters), allowed(plan.cost))
    small = replace(
        plan.cost,
        mu_squared=plan.cost.mu_squared / 100.0,
        bounded_ranges=tuple(eta / 100.0 for eta in plan.cost.bounded_ranges),
    )
    with pytest.raises(ValueError, match="allowance"):
        plan.calibrated.run(SOURCES[source](points, plan.parameters), allowed(small))


def test_the_runner_holds_the_tape_to_the_charge():
    points = cloud(200, 2, seed=1)
    plan = dpmedian.plan(200, 2, rho=0.5, method="dpgd", radius=100.0)
    less = replace(plan.cost, mu_squared=plan.cost.mu_squared * 0.99)
    data = dpmedian.Dataset.of(points)
    with pytest.raises(RuntimeError, match="allowance"):
        Session(less, method="dpgd").run(plan.calibrated, data, plan.parameters, finish=lambda found: found)
    found = Session(plan.cost, method="dpgd").run(plan.calibrated, data, plan.parameters, finish=lambda found: found)
    assert found.point.shape == (2,)


def test_a_session_answers_within_its_block_and_is_charged_once():
    ledger = dpmedian.Ledger(rho=1.0)
    session = Session(PrivacyCost(mu_squared=1.0), method="test", ledger=ledger)
    with pytest.raises(RuntimeError, match="before its block begins"):
        session.tape()
    with session:
        assert session.tape() is session.tape()
        assert session.part(PrivacyCost(mu_squared=0.5), b"a") is not session.tape()
        with pytest.raises(RuntimeError, match="must have a different label"):
            session.part(PrivacyCost(mu_squared=0.5), b"a")
    for query in (session.tape, lambda: session.part(session.cost, b"b")):
        with pytest.raises(RuntimeError, match="after its block has ended"):
            query()
    with pytest.raises(RuntimeError, match="charged once"), session:
        pass
    assert [entry.state for entry in ledger.entries] == ["released"]
