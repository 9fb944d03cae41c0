"""Every method on units: all rows of a unit change, or a unit comes or goes; no release shows more than it claims."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from conftest import EXTREMES
from contract.registry import METHOD_CASES
from contract.test_methods import planned
from dpmedian.methods.registry import METHODS
from dpmedian.sources.units import REDUCERS, as_unit_records

Rows = tuple[np.ndarray, np.ndarray]

# Every case with every relation that its method is proved for; tables of 41,000 units are a matter of their size.
RELATIONS = [
    (name, relation)
    for name, case in METHOD_CASES.items()
    if case.n < 10_000
    for relation in sorted(METHODS[case.method].relations)
]


def table(points: np.ndarray, rng: np.random.Generator) -> Rows:
    """One to four rows of each of n units, near its point and shuffled."""
    ids = rng.permutation(np.repeat(np.arange(len(points)), rng.integers(1, 5, size=len(points))))
    return points[ids] + 0.1 * rng.normal(size=(len(ids), points.shape[1])), ids


def another(rows: Rows, unit: int, count: int, rng: np.random.Generator) -> Rows:
    """The table with `count` rows of a unit in place of those that it had: near, far and extreme, at any places."""
    points, ids = rows
    points, ids = points[ids != unit], ids[ids != unit]
    d = points.shape[1]
    makers = (lambda: 3.0 + rng.normal(size=d), lambda: 1e6 * rng.normal(size=d), lambda: rng.choice(EXTREMES, size=d))
    for _ in range(count):
        place = int(rng.integers(len(ids) + 1))
        points, ids = np.insert(points, place, makers[rng.integers(3)](), axis=0), np.insert(ids, place, unit)
    return points, ids


@pytest.mark.parametrize(("name", "relation"), RELATIONS)
def test_it_replays_where_all_rows_of_a_unit_change(replay, name, relation):
    """The unit keeps its place among the ids, or is the last: hidden choices are coupled for these."""
    plan, points = planned(name, relation)
    plan = replace(plan, parameters=replace(plan.parameters, unit="unit"))
    rng = np.random.default_rng(len(name))
    rows = table(points, rng)
    n = len(points)
    for reducer in REDUCERS:
        records = as_unit_records(*rows, reducer=reducer, neighbours=relation)
        assert records.array.shape == points.shape
        others = []
        for trial in range(6):
            if relation == "replace":
                changed = another(rows, int(rng.integers(n)), int(rng.integers(1, 7)), rng)
            else:
                changed = another(rows, n - 1 + trial % 2, (trial % 2) * int(rng.integers(1, 7)), rng)
            others.append(as_unit_records(*changed, reducer=reducer, neighbours=relation).array)
        assert replay(plan, records.array, others) >= 1
