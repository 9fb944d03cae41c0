"""Every method on weighted records: a record changes with its weight, a weight changes, or a record is added or
removed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dpmedian
from conftest import EXTREMES
from contract.registry import METHOD_CASES, RELATION_CASES, cloud
from dpmedian._core import Coins
from dpmedian.methods.adaptive.notes import EXACT
from dpmedian.methods.registry import METHODS
from dpmedian.parameters import PublicParameters
from dpmedian.planning.choice import make_plan
from dpmedian.sources.array import ArraySource
from dpmedian.sources.records import Records
from dpmedian.sources.weights import WHOLE_WEIGHT
from dpmedian.statistics import SUMS
from dpmedian.tape import Tape

# The paper's profile is proved neither for weights nor for a private number of records.
CASES = [(name, relation) for name, relation in RELATION_CASES if "paper" not in name]
RELATIONS = pytest.mark.parametrize(("name", "relation"), CASES)
WEIGHTS = (0, 1, WHOLE_WEIGHT // 3, WHOLE_WEIGHT)


def planned(name: str, relation: str) -> tuple[dpmedian.Plan, Records]:
    """A plan with weights, and records with all kinds of weights: zero, tiny, any, most at the cap."""
    case, rng = METHOD_CASES[name], np.random.default_rng(len(name))
    parameters = PublicParameters.of(case.n, case.d, neighbours=relation, weight_max=2.0, **case.arguments)
    points = cloud(2 * case.n if case.n < 10_000 else case.n + case.n // 8, case.d, seed=len(name))
    weights = np.full(len(points), WHOLE_WEIGHT, dtype=np.uint32)
    odd = rng.random(len(points)) < 0.2
    weights[odd] = rng.integers(0, WHOLE_WEIGHT + 1, size=odd.sum())
    weights[:2] = 0, 1
    return make_plan(parameters, case.method), Records(points, weights=weights)


def changed(records: Records, place: int, record: np.ndarray | None, weight: int | None) -> Records:
    """The records with another record, or another weight, at a position."""
    assert records.weights is not None
    array, weights = records.array.copy(), records.weights.copy()
    if record is not None:
        array[place] = record
    if weight is not None:
        weights[place] = weight
    return replace(records, array=array, weights=weights)


def first(records: Records, count: int) -> Records:
    assert records.weights is not None
    return replace(records, array=records.array[:count], weights=records.weights[:count])


@RELATIONS
def test_it_replays_on_neighbours(replay, name, relation):
    """The releases are the same, and exact values differ by at most the sensitivity that the values state.

    Sums do not depend on the row of a record. Pairs are formed among the records that coins keep. So if a changed
    weight adds or removes a record, this record is the last one, because hidden choices are coupled for the last row.
    They have the same distribution for every row.
    """
    plan, records = planned(name, relation)
    rng, n, d = np.random.default_rng(2), len(records.array), plan.d
    paired = any(stage.statistic == "pair counts" for stage in plan.stages)
    makers = (lambda: 3.0 + rng.normal(size=d), lambda: 1e6 * rng.normal(size=d), lambda: rng.choice(EXTREMES, size=d))
    others = []
    for trial in range(16 if n < 10_000 else 4):
        record, weight = makers[trial % 3](), WEIGHTS[trial % 4]
        if relation == "add_remove":
            more = Records(np.vstack([records.array, record]), weights=np.append(records.weights, np.uint32(weight)))
            others.append(first(records, n - 1) if trial == 5 else more)
        elif trial % 2 or not paired:
            place = n - 1 if paired else int(rng.integers(n))
            others.append(changed(records, place, None if trial % 3 == 0 else record, weight))
        else:
            others.append(changed(records, int(rng.integers(n)), record, None))
    assert replay(plan, records, others) >= 1


@pytest.mark.parametrize("name", [name for name, relation in CASES if relation == "replace"])
def test_it_replays_where_there_is_hardly_any_weight(replay, name):
    """All records except one have weight zero, and that record has any weight. Or there is one record, or no record."""
    plan, records = planned(name, "replace")
    for count in (1, 2, 9):
        none = replace(first(records, count), weights=np.zeros(count, dtype=np.uint32))
        others = [
            changed(none, count - 1, record, weight) for weight in WEIGHTS for record in (None, -records.array[0])
        ]
        assert replay(plan, none, others) >= 1


@RELATIONS
def test_the_recorded_cost_is_the_charged_cost(name, relation):
    """The sensitivities of the values, weights and their rounding included, are those of the plan.

    Most of the budget is used, unless the run has found records that coincide within the resolution.
    """
    plan, records = planned(name, relation)
    tape = Tape.record((7).to_bytes(32, "little"), relation)
    source = ArraySource.of(records, plan.parameters).weighted(Coins.of(tape.hidden()))
    result = plan.calibrated.run(source, tape)
    assert result.size is None or result.size > 0
    squared = ranges = 0.0
    for stage, sensitivity, scale, exact, noisy in tape.entries():
        if stage == "inverse sensitivity":
            ranges += 2.0 * sensitivity / scale
        elif len(noisy) < len(exact):
            ranges += sensitivity / scale
        else:
            squared += (sensitivity / scale) ** 2
    cost = plan.cost
    assert squared <= cost.mu_squared * (1.0 + 1e-9)
    assert EXACT in result.notes or squared >= 0.8 * cost.mu_squared
    assert ranges == pytest.approx(sum(cost.bounded_ranges), rel=1e-6)


@RELATIONS
def test_the_sum_of_the_weights_is_released_first(name, relation):
    """The sum is private even if the number of records is public, so calibration uses it only with noise."""
    plan, records = planned(name, relation)
    sized = METHODS[METHOD_CASES[name].method].sized
    assert (plan.stages[0].name == "size") == sized
    tape = Tape.record((7).to_bytes(32, "little"), relation)
    plan.calibrated.run(ArraySource.of(records, plan.parameters).weighted(Coins.of(tape.hidden())), tape)
    stage, sensitivity, _, exact, _ = tape.entries()[0]
    if sized:
        bits = plan.stages[0].arguments["bits"]
        # A weight is rounded to a 128th of itself at most, up or down.
        assert exact[0] * 2.0**-bits == pytest.approx(records.weights.sum() / WHOLE_WEIGHT, rel=1.0 / 128.0)
        assert (stage, round(sensitivity * 2.0**-bits, 6)) == ("size", 1.0)


@RELATIONS
def test_its_stages_know_that_records_have_weights(name, relation):
    plan, _ = planned(name, relation)
    for stage in plan.stages:
        told = stage.statistic in SUMS or stage.statistic == "records to change"
        assert stage.arguments.get("weighted", False) is told
    assert dpmedian.verify(plan.to_json()).holds


@RELATIONS
def test_the_same_bits_on_any_threads(name, relation):
    plan, records = planned(name, relation)
    found = set()
    for threads in (1, 2, 4):
        dpmedian.set_threads(threads)
        tape = Tape.draw((7).to_bytes(32, "little"), relation)
        source = ArraySource.of(records, plan.parameters).weighted(Coins.of(tape.hidden()))
        found.add(plan.calibrated.run(source, tape).point.tobytes())
    dpmedian.set_threads(None)
    assert len(found) == 1
