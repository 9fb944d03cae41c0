"""Every method, with every relation it is proved for and on every source."""

from __future__ import annotations

import importlib
import math
import pkgutil

import numpy as np
import pytest

import dpmedian
from audit import GAMES
from conftest import neighbours
from contract.registry import METHOD_CASES, RELATION_CASES, SOURCES, STATISTIC_CASES, cloud
from dpmedian import methods
from dpmedian.methods.registry import METHODS
from dpmedian.parameters import PublicParameters
from dpmedian.planning.choice import make_plan
from dpmedian.running import refuse_if_elsewhere
from dpmedian.statistics import BOUNDS
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
    """What a run gives, a failure included, as something that can be compared."""
    try:
        result = plan.calibrated.run(source, tape)
    except dpmedian.ReleaseFailed as failed:
        return failed.message
    return result.point.tobytes(), result.scale, result.error_radius, result.notes, result.size


def test_every_method_and_relation_is_registered():
    modules = [
        importlib.import_module(found.name) for found in pkgutil.iter_modules(methods.__path__, "dpmedian.methods.")
    ]
    # A part of a method, such as `localize`, says nothing about arguments.
    assert {module.name for module in modules if hasattr(module, "uses")} == set(METHODS)
    assert {case.method for case in METHOD_CASES.values()} == set(METHODS)
    assert {relation for method in METHODS.values() for relation in method.relations} <= {"replace", "add_remove"}


@CASES
def test_every_method_has_a_row_in_the_audit(name):
    assert METHOD_CASES[name].audit in GAMES


@RELATIONS
def test_it_replays_on_neighbours(replay, name, relation):
    """The same releases, and exact values within the sensitivity that the values themselves carry."""
    plan, points = planned(name, relation)
    others = neighbours(points, 30 if len(points) < 10_000 else 6, np.random.default_rng(1), relation=relation)
    assert replay(plan, points, others) >= 1


@RELATIONS
def test_the_recorded_cost_is_the_charged_cost(name, relation):
    """The sum over what went through the tape, from the sensitivities of the values, is the plan's cost.

    A run that decides as it goes stays below its cap, and uses all of it here, where nothing is found exactly.
    """
    plan, points = planned(name, relation)
    tape = Tape.record(KEY, relation)
    assert isinstance(outcome(plan, SOURCES["array"](points, plan.parameters), tape), tuple), "the run must not fail"
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
    assert squared == pytest.approx(cost.mu_squared, rel=1e-6 if METHOD_CASES[name].capped else 1e-9)
    assert squared <= cost.mu_squared or not METHOD_CASES[name].capped
    assert math.fsum(ranges) == pytest.approx(math.fsum(cost.bounded_ranges), rel=1e-6)
    # The paper prints a larger sensitivity for its ball counts than the one that holds.
    assert query <= math.fsum(cost.pure_epsilons) * (1.0 + 1e-9)
    assert (query > 0.0) == bool(cost.pure_epsilons)


@CASES
def test_the_same_bits_on_any_threads(name):
    plan, points = planned(name)
    found = set()
    for threads in (1, 2, 4):
        dpmedian.set_threads(threads)
        found.add(outcome(plan, SOURCES["array"](points, plan.parameters), Tape.draw(KEY)))
    dpmedian.set_threads(None)
    assert len(found) == 1


@CASES
@pytest.mark.parametrize("source", [name for name in SOURCES if name != "array"])
def test_the_same_bits_on_any_partition(name, source):
    """Or a refusal, before anything is spent, where the records must be in this process."""
    plan, points = planned(name)
    parts = SOURCES[source](points, plan.parameters)
    if plan.calibrated.needs_local_records and parts.local is None:
        with pytest.raises(ValueError, match="all records in this process"):
            refuse_if_elsewhere(plan.calibrated, parts)
        return
    refuse_if_elsewhere(plan.calibrated, parts)
    expected = outcome(plan, SOURCES["array"](points, plan.parameters), Tape.draw(KEY))
    assert outcome(plan, parts, Tape.draw(KEY)) == expected


@CASES
def test_the_cost_of_a_plan_is_that_of_its_stages(name):
    """Nothing that a reviewer sees in the table is left out of what the ledger is charged.

    Stages under a cap say so; the plan costs the cap, and each of them at most that.
    """
    plan, _ = planned(name)
    assert {stage.capped for stage in plan.stages} == {METHOD_CASES[name].capped}
    if METHOD_CASES[name].capped:
        assert max(stage.cost.rho for stage in plan.stages) == pytest.approx(plan.cost.rho, rel=1e-9)
        assert max(stage.cost.discretization for stage in plan.stages) <= plan.cost.discretization
        return
    stages = dpmedian.PrivacyCost.total(stage.cost for stage in plan.stages)
    assert plan.cost.rho == pytest.approx(stages.rho, rel=1e-9)
    assert plan.cost.delta_at(1.0) == pytest.approx(stages.delta_at(1.0), rel=1e-6)


@CASES
def test_every_stage_names_a_statistic_that_may_be_asked(name):
    plan, _ = planned(name)
    known = {case.ask(np.zeros(2), 2).name for case in STATISTIC_CASES.values()} | {"records to change"}
    assert {stage.statistic for stage in plan.stages} <= known


@RELATIONS
def test_the_sensitivity_of_a_gaussian_stage_can_be_computed_again(name, relation):
    plan, _ = planned(name, relation)
    for stage in plan.stages:
        if stage.sigma is not None:
            bound = BOUNDS[stage.statistic](**stage.arguments).under(relation)
            assert stage.sensitivity == math.ldexp(bound, -stage.arguments["bits"])


@CASES
def test_an_argument_that_is_not_used_is_refused(name):
    case = METHOD_CASES[name]
    unused = {"radius": 5.0, "resolution": 0.01, "center": [0.5] * case.d, "profile": "paper"}
    for argument, value in unused.items():
        if argument not in METHODS[case.method].uses:
            with pytest.raises(ValueError, match=f"does not use {argument}=; the methods that do: '"):
                dpmedian.plan(case.n, case.d, method=case.method, **{**case.arguments, argument: value})
