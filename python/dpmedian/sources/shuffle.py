"""Rows in the workers of a Dask cluster, moved so that all rows of a unit are in one partition.

Each partition of the result has a range of the ids, and its rows keep their order. So what is made of the units there,
by the code for rows in memory, stands in the order of the ids as it does in memory: the same records, for any
partition of the rows. Ids and rows stay inside the trust boundary: a few ids come to this process to choose the ranges,
and rows go from worker to worker as Dask moves them.
"""

from __future__ import annotations

import operator
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpmedian.sources.dask import Collection, by_name, is_dask
from dpmedian.sources.key_columns import take_keys
from dpmedian.sources.labels import Labels, as_labels, take_column
from dpmedian.sources.records import Records
from dpmedian.sources.units import as_row_records

__all__ = ["Moved", "Rows", "moved_rows"]

# Ids of a partition that choose the ranges: enough for ranges of similar size.
_SAMPLED = 256

Made = TypeVar("Made")


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a partition, with the unit and the group of each if there are any."""

    records: Records
    ids: Labels | None
    groups: Labels | None

    def chosen(self, rows: NDArray[np.bool_]) -> Rows:
        """Some of the rows, in their order."""
        ids, groups = (None if labels is None else labels.chosen(rows) for labels in (self.ids, self.groups))
        return Rows(replace(self.records, array=self.records.array[rows]), ids, groups)


class Moved(NamedTuple):
    """What was made of the rows in each partition, as futures in order; and what is public about the rows."""

    client: Any
    made: list[Any]
    columns: tuple[str, ...] | None
    first_missing: int | None
    """The first row without an id, for the curator."""


class _Facts(NamedTuple):
    rows: int
    columns: tuple[str, ...] | None
    integers: bool
    first_missing: int | None
    sampled: list[Any]


def moved_rows(
    points: Any,
    finish: Callable[[Rows], Made],
    *,
    unit: Any = None,
    by: Any = None,
    nonfinite: str = "raise",
    d: int | None = None,
    geometry: str = "euclidean",
) -> Moved:
    """Applies `finish` to the rows of each partition, after those of each unit, if any, were moved into one.

    `unit` and `by` are names of columns (`by` also a tuple of them), collections of Dask with the partitions of the
    points, or labels in memory.
    """
    collection = Collection.of(points)
    client, count = collection.client, len(collection.partitions)
    sides = [_side(collection, side, name) for side, name in ((by, "by"), (unit, "unit"))]
    rows = [
        client.submit(_read, i, part, sides[0][i], sides[1][i], nonfinite, d, geometry, collection.columns, pure=False)
        for i, part in enumerate(collection.partitions)
    ]
    facts: list[_Facts] = client.gather(client.map(_facts, rows, pure=False))
    starts = np.cumsum([0, *(fact.rows for fact in facts)])
    missing = [int(starts[i]) + fact.first_missing for i, fact in enumerate(facts) if fact.first_missing is not None]
    columns = facts[0].columns
    if unit is None:
        return Moved(client, client.map(finish, rows, pure=False), columns, None)
    # As in memory, where a column is integers if all of its ids are.
    integers = all(fact.integers for fact in facts)
    sampled = sorted(
        label if integers or isinstance(label, bytes) else b"%d" % label for fact in facts for label in fact.sampled
    )
    ranges = max(1, min(count, 2 * sum(client.nthreads().values())))
    bounds = [sampled[len(sampled) * k // ranges] for k in range(1, ranges)] if sampled else []
    cut = [client.submit(_cut, part, bounds, integers, pure=False) for part in rows]
    made = [
        client.submit(_join, finish, [client.submit(operator.getitem, part, k, pure=False) for part in cut], pure=False)
        for k in range(len(bounds) + 1)
    ]
    return Moved(client, made, columns, min(missing, default=None))


def _side(collection: Collection, labels: Any, argument: str) -> Sequence[Any]:
    """A column for each partition: its name, or its labels there."""
    count = len(collection.partitions)
    if labels is None or isinstance(labels, str) or (isinstance(labels, tuple) and argument == "by"):
        return [labels] * count
    if is_dask(labels):
        parts = collection.beside(labels)
        if len(parts) != count:
            raise ValueError(f"{argument} must have the partitions of the points, {count}, and has {len(parts)}")
        return parts
    whole, ends = as_labels(labels, argument), np.cumsum(collection.sizes())
    if len(whole) != ends[-1]:
        raise ValueError(f"{argument} must have one label for each row of points, and has another length")
    place = np.searchsorted(ends, np.arange(len(whole)), side="right")
    return [whole.chosen(place == i) for i in range(count)]


# What the workers do.


def _read(
    number: int,
    part: Any,
    by: Any,
    unit: Any,
    nonfinite: str,
    d: int | None,
    geometry: str,
    columns: tuple[str, ...] | None,
) -> Rows:
    try:
        part = by_name(part, columns)
        found: list[Labels | None] = []
        for labels, argument in ((by, "by"), (unit, "unit")):
            if isinstance(labels, tuple):
                taken, _, part = take_keys(part, labels)
                found.append(taken)
            elif isinstance(labels, str):
                taken, part = take_column(part, labels, argument)
                found.append(taken)
            else:
                found.append(None if labels is None else as_labels(labels, argument))
        records = as_row_records(part, nonfinite, d, geometry)
        for taken_labels, argument in zip(found, ("by", "unit"), strict=True):
            if taken_labels is not None and len(taken_labels) != len(records.array):
                raise ValueError(f"{argument} must have one label for each row of points, and has another length")
        if nonfinite == "raise":
            records.require_finite()
        return Rows(records, found[1], found[0])
    except (ValueError, TypeError) as error:
        raise type(error)(f"partition {number + 1}: {error}") from None


def _facts(rows: Rows) -> _Facts:
    n, ids = len(rows.records.array), rows.ids
    if ids is None:
        return _Facts(n, rows.records.columns, True, None, [])
    there = np.flatnonzero(~ids.missing)
    some = np.zeros(n, dtype=bool)
    some[there[:: max(1, len(there) // _SAMPLED)]] = True
    integers = isinstance(ids.values, np.ndarray) or not len(there)
    return _Facts(n, rows.records.columns, integers, ids.first_missing, ids.chosen(some).listed())


def _cut(rows: Rows, bounds: list[Any], integers: bool) -> list[Rows]:
    """The rows in each range of ids; those without an id are in none."""
    assert rows.ids is not None
    ids = rows.ids if integers else rows.ids.as_text()
    place = np.fromiter((bisect_right(bounds, label) for label in ids.listed()), dtype=np.int64, count=len(ids))
    place[ids.missing] = -1
    rows = replace(rows, ids=ids)
    return [rows.chosen(place == k) for k in range(len(bounds) + 1)]


def _join(finish: Callable[[Rows], Made], pieces: list[Rows]) -> Made:
    first = pieces[0]
    array = np.concatenate([piece.records.array for piece in pieces])
    ids = Labels.joined([piece.ids for piece in pieces if piece.ids is not None])
    groups = None if first.groups is None else Labels.joined([p.groups for p in pieces if p.groups is not None])
    return finish(Rows(replace(first.records, array=array), ids, groups))
