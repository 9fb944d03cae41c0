"""Every method, with every relation for which it is proved, and on every source."""

from __future__ import annotations

import importlib
import math
import pkgutil
from typing import get_args

import numpy as np
import pytest

import dpmedian
from audit import GAMES
from conftest import EXTREMES, neighbours
from contract.registry import METHOD_CASES, RELATION_CASES, SOURCES, STATISTIC_CASES, cloud
from dpmedian import methods
from dpmedian.accounting.protection import Neighbours
from dpmedian.methods.adaptive.notes import EXACT
from dpmedian.methods.registry import METHODS
from dpmedian.parameters import PublicParameters
from dpmedian.planning.choice import make_plan
from dpmedian.running import refuse_if_elsewhere
from dpmedian.statistics import bound
from dpmedian.tape import Tape

CASES = pytest.mark.parametrize("name", METHOD_CASES)
RELATIONS = pytest.mark.parametrize(("name", "relation"), RELATION_CASES)
KEY = (7).to_bytes(32, "little")


def planned(name: str, relation: str = "replace") -> tuple[dpmedian.Plan, np.ndarray]:
    case = METHOD_CASES[name]
    parameters = PublicParameters.of(case.n, case.d, neighbours=relation, **case.arguments)
    plan = make_plan(parameters, case.method)
    return plan, cloud(case.n, case.d, seed=len(name))


def outcome(plan: dpmedian.Plan, source: object, tape: Tape) -> object:
    """The result of a run, including a failure, as something that can be compared."""
    try:
        result = plan.calibrated.run(source, tape)
    except dpmedian.ReleaseFailed as failed:
        return failed.message
    return result.point.tobytes(), result.scale, result.error_radius, result.notes, result.size


def test_every_method_and_relation_is_registered():
    modules = [
        importlib.import_module(found.name) for found in pkgutil.walk_packages(methods.__path__, "dpmedian.methods.")
    ]
    # A part of a method, such as `localize`, has no arguments of its own.
    assert {module.name for module in modules if hasattr(module, "uses")} == set(METHODS)
    assert {case.method for case in METHOD_CASES.values()} == set(METHODS)
    assert {relation for method in METHODS.values() for relation in method.relations} <= set(get_args(Neighbours))


@RELATIONS
def test_every_method_has_a_row_in_the_audit(name, relation):
    row = METHOD_CASES[name].audit
    assert (row if relation == "replace" else f"{row}, {relation}") in GAMES


@RELATIONS
def test_it_replays_on_neighbours(replay, name, relation):
    """The releases are the same, and exact values differ by at most the sensitivity that the values state."""
    plan, points = planned(name, relation)
    others = neighbours(points, 30 if len(points) < 10_000 else 6, np.random.default_rng(1), relation=relation)
    assert replay(plan, points, others) >= 1


ADDED = pytest.mark.parametrize("name", [name for name, relation in RELATION_CASES if relation == "add_remove"])


@ADDED
@pytest.mark.parametrize("n", [0, 1, 2])
def test_it_replays_where_there_are_hardly_any_records(replay, name, n):
    """A record is added to a data set of no, one or two records, which are near, coincident or extreme. The guess is a
    large number.
    """
    plan, points = planned(name, "add_remove")
    few, rng = points[:n], np.random.default_rng(n)
    records = [points[0], points[-1], -points[0], np.zeros(plan.d), *rng.choice(EXTREMES, size=(6, plan.d))]
    for seed in range(3):
        assert replay(plan, few, [np.vstack([few, record]) for record in records], seed=seed) >= 1


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_hundreds_of_neighbours_of_another_size_replay(replay, method):
    """Forty data sets of up to 201 records, some of them equal, with and without a guess, and ten neighbors of each."""
    rng, releases = np.random.default_rng(3), 0
    for trial in range(40):
        d, n = int(rng.integers(1, 4)), int(rng.choice([0, 1, 2, 3, 50, 51, 200, 201]))
        points = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-2, 2)
        points[: n // 4] = points[:1]
        guess = None if trial % 2 else int(rng.choice([2, 100, 1000]))
        budget = {"epsilon": 1.0} if method == "inverse_sensitivity" else {"rho": float(rng.choice([0.05, 2.0]))}
        located = {"radius": 30.0, "resolution": 0.5}
        asked = {name: located[name] for name in METHODS[method].needs}
        parameters = PublicParameters.of(guess, d, neighbours="add_remove", **budget, **asked)
        records = [*rng.choice(EXTREMES, size=(5, d)), *rng.normal(size=(4, d))]
        others = [np.vstack([points, record]) for record in records] + ([points[:-1]] if n else [])
        releases += replay(make_plan(parameters, method), points, others, seed=trial)
    # Many of the runs go on after the size.
    assert releases >= (400 if METHODS[method].sized else 40)


@pytest.mark.slow
@ADDED
def test_it_replays_where_a_record_of_any_row_is_removed(replay, name):
    """Sums do not depend on the row. Pairings and samples are coupled for the last row only, and have the same
    distribution for every row. So methods that pair records or use coins are replayed with the last row only, and all
    others with each row.
    """
    plan, points = planned(name, "add_remove")
    sampled = len(points) >= 10_000
    points = points if sampled else points[:60]
    paired = any(stage.statistic == "pair counts" for stage in plan.stages)
    rows = [len(points) - 1] if paired or sampled else range(len(points))
    assert replay(plan, points, [np.delete(points, row, axis=0) for row in rows]) >= 1


@RELATIONS
def test_the_recorded_cost_is_the_charged_cost(name, relation):
    """The costs of all releases of the tape, computed from the sensitivities of the values, add up to the plan's cost.

    A run that decides while it runs stays below its cap. Such a run spends the whole cap unless it has found records
    that coincide within the resolution.
    """
    plan, points = planned(name, relation)
    tape = Tape.record(KEY, relation)
    found = outcome(plan, SOURCES["array"](points, plan.parameters), tape)
    assert isinstance(found, tuple), "the run must not fail"
    early = METHOD_CASES[name].capped and EXACT in found[3]
    squared, ranges, threshold, query = 0.0, [], 0.0, 0.0
    for stage, sensitivity, scale, exact, noisy in tape.entries():
        if stage == "inverse sensitivity":
            ranges.append(2.0 * sensitivity / scale)
        elif len(noisy) < len(exact):
            ranges.append(sensitivity / scale)
        elif stage.endswith(": threshold"):
            threshold = scale
        elif stage.endswith(": query"):
            query = max(query, sensitivity / threshold + 2.0 * sensitivity / scale)
        else:
            squared += (sensitivity / scale) ** 2
    cost = plan.cost
    assert early or squared == pytest.approx(cost.mu_squared, rel=1e-6 if METHOD_CASES[name].capped else 1e-9)
    assert squared <= cost.mu_squared or not METHOD_CASES[name].capped
    assert math.fsum(ranges) == pytest.approx(math.fsum(cost.bounded_ranges), rel=1e-6)
    # The paper prints a larger sensitivity for its ball counts than the one that holds.
    assert query <= math.fsum(cost.pure_epsilons) * (1.0 + 1e-9)
    assert (query > 0.0) == bool(cost.pure_epsilons)


@RELATIONS
def test_the_same_bits_on_any_threads(name, relation):
    plan, points = planned(name, relation)
    found = set()
    for threads in (1, 2, 4):
        dpmedian.set_threads(threads)
        found.add(outcome(plan, SOURCES["array"](points, plan.parameters), Tape.draw(KEY, relation)))
    dpmedian.set_threads(None)
    assert len(found) == 1


@RELATIONS
@pytest.mark.parametrize("source", [name for name in SOURCES if name != "array"])
def test_the_same_bits_on_any_partition(name, relation, source):
    """A method that needs all records in this process is refused before anything is spent."""
    plan, points = planned(name, relation)
    parts = SOURCES[source](points, plan.parameters)
    if plan.calibrated.needs_local_records and parts.local is None:
        with pytest.raises(ValueError, match="all records in this process"):
            refuse_if_elsewhere(plan.calibrated, parts)
        return
    refuse_if_elsewhere(plan.calibrated, parts)
    expected = outcome(plan, SOURCES["array"](points, plan.parameters), Tape.draw(KEY, relation))
    assert outcome(plan, parts, Tape.draw(KEY, relation)) == expected


@RELATIONS
def test_the_cost_of_a_plan_is_that_of_its_stages(name, relation):
    """Every stage in the table is part of the cost that a ledger is charged. The plan costs the cap plus its stages
    that are not capped, and each capped stage costs at most the cap.
    """
    plan, _ = planned(name, relation)
    fixed = dpmedian.PrivacyCost.total(stage.cost for stage in plan.stages if not stage.capped)
    capped = [stage.cost for stage in plan.stages if stage.capped]
    if METHOD_CASES[name].capped:
        assert {stage.name for stage in plan.stages if not stage.capped} <= {"size"}
        assert max(cost.rho for cost in capped) + fixed.rho == pytest.approx(plan.cost.rho, rel=1e-9)
        assert max(cost.discretization for cost in capped) + fixed.discretization <= plan.cost.discretization
        return
    # For a noisy size the stages are those for the guess, each with its fixed share of the cap.
    assert bool(capped) == (relation == "add_remove" and METHODS[METHOD_CASES[name].method].sized)
    stages = dpmedian.PrivacyCost.total((fixed, *capped))
    assert plan.cost.rho == pytest.approx(stages.rho, rel=1e-9)
    assert plan.cost.delta_at(1.0) == pytest.approx(stages.delta_at(1.0), rel=1e-6)


@RELATIONS
def test_every_stage_names_a_statistic_that_can_be_queried(name, relation):
    plan, _ = planned(name, relation)
    known = {*STATISTIC_CASES, "records to change"}
    assert {stage.statistic for stage in plan.stages} <= known


@RELATIONS
def test_the_sensitivity_of_a_gaussian_stage_can_be_computed_again(name, relation):
    plan, _ = planned(name, relation)
    for stage in plan.stages:
        if stage.sigma is not None:
            stated = bound(stage.statistic, **stage.arguments)[0].under(relation)
            assert stage.sensitivity == math.ldexp(stated, -stage.arguments["bits"])


@CASES
def test_an_argument_that_is_not_used_is_refused(name):
    case = METHOD_CASES[name]
    unused = {"radius": 5.0, "resolution": 0.01, "center": [0.5] * case.d, "profile": "paper"}
    for argument, value in unused.items():
        if argument not in METHODS[case.method].uses:
            with pytest.raises(ValueError, match=f"does not use {argument}=; these methods use it: '"):
                dpmedian.plan(case.n, case.d, method=case.method, **{**case.arguments, argument: value})
