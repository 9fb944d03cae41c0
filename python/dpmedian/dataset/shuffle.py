"""Rows in the workers of a Dask cluster. The workers read the rows, and then all rows of a unit are moved into one
partition.

Each new partition contains a range of the ids, and its rows keep their order. In each partition, the code for rows in
memory makes the records of the units, in the order of the ids. So the records do not depend on how the rows were
partitioned. Ids and rows stay inside the trust boundary: this process gets a sample of the ids, from which it chooses
the ranges, and Dask moves the rows between workers.
"""

from __future__ import annotations

import operator
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpmedian.dataset.memory import Memory
from dpmedian.dataset.reading import Reading
from dpmedian.sources.dask import Collection, by_name, is_dask, joined
from dpmedian.sources.key_columns import take_keys
from dpmedian.sources.labels import Labels, as_labels
from dpmedian.sources.records import Records

__all__ = ["Rows", "moved_rows"]

# At least this many ids of each partition (or all of its ids) are in the sample from which the ranges are chosen. With
# so many ids, the ranges have similar sizes.
_SAMPLED = 256

Made = TypeVar("Made")


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a partition, with the id and the group of each row (None if there are no ids or no groups)."""

    records: Records
    ids: Labels | None
    groups: Labels | None

    def chosen(self, rows: NDArray[np.bool_]) -> Rows:
        """Return some of the rows, in their order."""
        ids, groups = (None if labels is None else labels.chosen(rows) for labels in (self.ids, self.groups))
        weights = None if self.records.weights is None else self.records.weights[rows]
        return Rows(replace(self.records, array=self.records.array[rows], weights=weights), ids, groups)


class _Facts(NamedTuple):
    rows: int
    integers: bool
    first_missing: int | None
    sampled: list[Any]


def moved_rows(
    collection: Collection, finish: Callable[[Rows], Made], reading: Reading, by: Any = None
) -> tuple[list[Any], int | None]:
    """Move the rows of each unit into one partition, and apply `finish` to the rows of each partition.

    Return the results as futures, in order, and the number of the first row without an id, which only the curator may
    see. The unit, the weights and `by` are names of columns, columns in memory, or Dask collections with the same
    partitions as the points. `by` may also be a tuple of names.
    """
    client, count = collection.client, len(collection.partitions)
    columns_of_parts = zip(
        *(
            _side(collection, side, name)
            for side, name in ((by, "by"), (reading.unit, "unit"), (reading.sample_weight, "sample_weight"))
        ),
        strict=True,
    )
    plain = replace(reading, unit=None, unit_reduce="median", sample_weight=None, weight_max=None)
    rows = [
        client.submit(_read, i, part, *sides, plain, reading.weight_max, collection.columns, pure=False)
        for i, (part, sides) in enumerate(zip(collection.partitions, columns_of_parts, strict=True))
    ]
    facts: list[_Facts] = client.gather(client.map(_facts, rows, pure=False))
    starts = np.cumsum([0, *(fact.rows for fact in facts)])
    missing = [int(starts[i]) + fact.first_missing for i, fact in enumerate(facts) if fact.first_missing is not None]
    if reading.unit is None:
        return client.map(finish, rows, pure=False), None
    # As for rows in memory, the ids are compared as integers if all of them are integers, and otherwise as text.
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
    return made, min(missing, default=None)


def _side(collection: Collection, column: Any, argument: str) -> Sequence[Any]:
    """Return for each partition the name of the column, or the values of the column in this partition."""
    count = len(collection.partitions)
    if column is None or isinstance(column, str) or (isinstance(column, tuple) and argument == "by"):
        return [column] * count
    if is_dask(column):
        parts = collection.labels_of_parts(column)
        if len(parts) != count:
            raise ValueError(f"{argument} must have as many partitions as the points, {count}, but has {len(parts)}")
        return parts
    whole: Any = np.asanyarray(column) if argument == "sample_weight" else as_labels(column, argument)
    ends = np.cumsum(collection.sizes())
    if len(whole) != ends[-1]:
        raise ValueError(f"{argument} must have one entry for each row of points, but has another length")
    if isinstance(whole, np.ndarray):
        return np.split(whole, ends[:-1])
    place = np.searchsorted(ends, np.arange(len(whole)), side="right")
    return [whole.chosen(place == i) for i in range(count)]


# Functions that the workers call.


def _read(
    number: int,
    part: Any,
    by: Any,
    unit: Any,
    weights: Any,
    reading: Reading,
    weight_max: float | None,
    columns: tuple[str, ...] | None,
) -> Rows:
    """Read the rows of a partition in the same way as rows in memory."""
    try:
        reading = replace(reading, unit=unit, sample_weight=weights, weight_max=weight_max)
        memory = Memory.of(by_name(part, columns), reading)
        groups = None if by is None else take_keys(memory.rows, by)[0]
        if groups is not None and len(groups) != len(memory.rows.array):
            raise ValueError("by must have one label for each row of points, but has another length")
        if reading.nonfinite == "raise":
            memory.rows.require_finite()
        return Rows(replace(memory.rows, labels={}), memory.ids, groups)
    except (ValueError, TypeError) as error:
        raise type(error)(f"partition {number + 1}: {error}") from None


def _facts(rows: Rows) -> _Facts:
    n, ids = len(rows.records.array), rows.ids
    if ids is None:
        return _Facts(n, True, None, [])
    there = np.flatnonzero(~ids.missing)
    some = np.zeros(n, dtype=bool)
    some[there[:: max(1, len(there) // _SAMPLED)]] = True
    integers = isinstance(ids.values, np.ndarray) or not len(there)
    return _Facts(n, integers, ids.first_missing, ids.chosen(some).listed())


def _cut(rows: Rows, bounds: list[Any], integers: bool) -> list[Rows]:
    """Divide the rows of a partition by the ranges of their ids. Rows without an id are left out."""
    assert rows.ids is not None
    ids = rows.ids if integers else rows.ids.as_text()
    place = np.fromiter((bisect_right(bounds, label) for label in ids.listed()), dtype=np.int64, count=len(ids))
    place[ids.missing] = -1
    rows = replace(rows, ids=ids)
    return [rows.chosen(place == k) for k in range(len(bounds) + 1)]


def _join(finish: Callable[[Rows], Made], pieces: list[Rows]) -> Made:
    ids = Labels.joined([piece.ids for piece in pieces if piece.ids is not None])
    groups = [piece.groups for piece in pieces if piece.groups is not None]
    return finish(Rows(joined([piece.records for piece in pieces]), ids, Labels.joined(groups) if groups else None))
