"""Every method on units. All rows of a unit change, or a unit is added or removed, and no release reveals more than it
claims.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from conftest import EXTREMES
from contract.registry import METHOD_CASES, RELATION_CASES, cloud
from contract.test_methods import planned
from dpmedian import plan_groups
from dpmedian.sources.groups import Grouped
from dpmedian.sources.key_columns import group_keys
from dpmedian.sources.units import REDUCERS
from rows import group_records, unit_records

Rows = tuple[np.ndarray, np.ndarray]

# Every case with every relation for which its method is proved; cases with 41,000 units would be too slow.
RELATIONS = [(name, relation) for name, relation in RELATION_CASES if METHOD_CASES[name].n < 10_000]


def table(points: np.ndarray, rng: np.random.Generator) -> Rows:
    """One to four rows of each of n units, near the unit's point and shuffled."""
    ids = rng.permutation(np.repeat(np.arange(len(points)), rng.integers(1, 5, size=len(points))))
    return points[ids] + 0.1 * rng.normal(size=(len(ids), points.shape[1])), ids


def another(rows: Rows, unit: int, count: int, rng: np.random.Generator) -> Rows:
    """The table with `count` new rows of a unit instead of its rows: near, far and extreme, at any positions."""
    points, ids = rows
    points, ids = points[ids != unit], ids[ids != unit]
    d = points.shape[1]
    makers = (lambda: 3.0 + rng.normal(size=d), lambda: 1e6 * rng.normal(size=d), lambda: rng.choice(EXTREMES, size=d))
    for _ in range(count):
        place = int(rng.integers(len(ids) + 1))
        points, ids = np.insert(points, place, makers[rng.integers(3)](), axis=0), np.insert(ids, place, unit)
    return points, ids


def touched(before: Grouped, after: Grouped, groups: int) -> list[int]:
    arrays = ([found.records_of(group).array.tobytes() for group in range(groups)] for found in (before, after))
    return [group for group, (old, new) in enumerate(zip(*arrays, strict=True)) if old != new]


@pytest.mark.parametrize("name", [name for name, relation in RELATIONS if relation == "add_remove"])
def test_it_replays_where_a_unit_comes_or_moves_between_groups(replay, name):
    """A unit that is added changes at most `most` groups, each of which replays. A unit that moves changes at most
    twice as many groups.
    """
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
                group_records(new[0][:end], by[:end], keys, new[1][:end], most=most)
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
                assert replay(plan, grouped.records_of(group).array, [more.records_of(group).array]) >= 1


@pytest.mark.parametrize("most", [1, 2, 3, 12])
def test_it_replays_where_a_unit_comes_and_nobody_has_listed_the_groups(replay, most):
    """The groups of all other units stay the same. The unit changes at most `most` groups, and a new group has one
    record.
    """
    plan = plan_groups(None, 2, rho=2.0, delta=1e-3, unit="unit", max_groups_per_unit=most).plans[0]
    rng = np.random.default_rng(most)
    rows, ids = table(cloud(150, 2, seed=most), rng)
    labels = rng.choice(["10", "9", "north", "no\0rth"], size=len(rows)).tolist()
    for trial in range(6):
        count = int(rng.integers(1, 25))
        own = [f"fresh {i % 13}" if rng.random() < 0.5 else str(rng.choice(["9", "north"])) for i in range(count)]
        odd = [None, 7.5, 9, b"\xff"][: trial % 5]
        by = [*labels, *own, *odd]
        more = np.vstack([rows, rng.normal(size=(count + len(odd), 2))])
        everyone = np.append(ids, np.full(count + len(odd), 150))
        before = group_records(rows, labels, None, ids, most=most)
        after = group_records(more, by, None, everyone, most=most)
        changed = 0
        for place, label in enumerate(after.labels):
            now = after.records_of(place).array
            if label not in before.labels:
                assert len(now) <= 1
                changed += len(now)
                continue
            then = before.records_of(before.labels.index(label)).array
            if then.tobytes() != now.tobytes():
                changed += 1
                if trial < 2:
                    assert replay(plan, then, [now]) >= 1
        assert set(before.labels) <= set(after.labels)
        assert changed <= most


@pytest.mark.parametrize(("name", "relation"), RELATIONS)
def test_it_replays_where_all_rows_of_a_unit_change(replay, name, relation):
    """The unit keeps its position among the ids, or is the last one, because hidden choices are coupled for these
    cases.
    """
    plan, points = planned(name, relation)
    plan = replace(plan, parameters=replace(plan.parameters, unit="unit"))
    rng = np.random.default_rng(len(name))
    rows = table(points, rng)
    n = len(points)
    for reducer in REDUCERS:
        records = unit_records(*rows, reducer=reducer, neighbours=relation)
        assert records.array.shape == points.shape
        others = []
        for trial in range(6):
            if relation == "replace":
                changed = another(rows, int(rng.integers(n)), int(rng.integers(1, 7)), rng)
            else:
                changed = another(rows, n - 1 + trial % 2, (trial % 2) * int(rng.integers(1, 7)), rng)
            others.append(unit_records(*changed, reducer=reducer, neighbours=relation).array)
        assert replay(plan, records.array, others) >= 1
