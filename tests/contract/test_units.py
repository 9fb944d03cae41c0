"""Every method on units: all rows of a unit change, or a unit comes or goes; no release shows more than it claims."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from conftest import EXTREMES
from contract.registry import METHOD_CASES, RELATION_CASES
from contract.test_methods import planned
from dpmedian.sources.groups import Grouped, as_group_records, group_keys
from dpmedian.sources.units import REDUCERS, as_unit_records

Rows = tuple[np.ndarray, np.ndarray]

# Every case with every relation that its method is proved for; tables of 41,000 units are a matter of their size.
RELATIONS = [(name, relation) for name, relation in RELATION_CASES if METHOD_CASES[name].n < 10_000]


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


def touched(before: Grouped, after: Grouped, groups: int) -> list[int]:
    return [group for group in range(groups) if before.of(group).tobytes() != after.of(group).tobytes()]


@pytest.mark.parametrize("name", [name for name, relation in RELATIONS if relation == "add_remove"])
def test_it_replays_where_a_unit_comes_or_moves_between_groups(replay, name):
    """A unit that comes touches at most `most` groups, each of which replays; one that moves touches twice as many."""
    plan, points = planned(name, "add_remove")
    rng = np.random.default_rng(len(name))
    rows, ids = table(points, rng)
    keys, n = group_keys(list("abc")), len(points)
    labels = rng.choice(list("abcd"), size=len(rows))
    for most in (1, 2):
        for trial in range(6):
            count = int(rng.integers(1, 7))
            new = (np.vstack([rows, rng.normal(size=(count, points.shape[1]))]), np.append(ids, np.full(count, n)))
            grouped, more, moved = (
                as_group_records(new[0][:end], by[:end], keys, new[1][:end], most=most)
                for end, by in (
                    (len(rows), np.append(labels, ["a"] * count)),
                    (len(rows) + count, np.append(labels, rng.choice(list("abcd"), size=count))),
                    (len(rows) + count, np.append(labels, rng.choice(list("abcd"), size=count))),
                )
            )
            changed = touched(grouped, more, 3)
            assert len(changed) <= most
            assert len(touched(more, moved, 3)) <= 2 * most
            for group in changed if trial < 2 else ():
                assert replay(plan, grouped.of(group), [more.of(group)]) >= 1


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
