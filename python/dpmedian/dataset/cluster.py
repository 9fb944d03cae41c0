"""Dask collections, whose partitions stay in the workers."""

from __future__ import annotations

import functools
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpmedian.dataset.memory import Memory
from dpmedian.dataset.reading import Reading
from dpmedian.dataset.shuffle import Rows, moved_rows
from dpmedian.parameters import PublicParameters
from dpmedian.progress import Progress
from dpmedian.sources.dask import Collection, DaskGroups, DaskSource, Holders
from dpmedian.sources.groups import Grouped, formed, with_all_labels
from dpmedian.sources.key_columns import key_names, named_columns
from dpmedian.sources.labels import take_column
from dpmedian.sources.units import as_unit_records

__all__ = ["Cluster"]


@dataclass(frozen=True, eq=False)
class Cluster:
    """The rows of a Dask array or data frame.

    `head` is the same input without its rows, read with the same options. It has the names of the columns, the
    dimension and the scales.
    """

    points: Any
    reading: Reading
    head: Memory

    @classmethod
    def of(cls, points: Any, reading: Reading) -> Cluster:
        """Check the options against the names of the columns. No row is computed yet."""
        empty = _without_rows(points)
        # `empty` has no rows, so columns that are not part of the collection must be empty, too.
        named = replace(reading, unit=_named(reading.unit), sample_weight=_named(reading.sample_weight))
        return cls(points, reading, Memory.of(empty, named))

    @functools.cached_property
    def collection(self) -> Collection:
        return Collection.of(self.points)

    @functools.cached_property
    def _parts(self) -> tuple[tuple[Any, ...], list[tuple[int, str]], int | None]:
        """The parts of the records as futures, the number of records and the unit of each part, and the first row
        without an id.
        """
        reading = self.reading
        finish = functools.partial(_records, reducer=reading.unit_reduce, nonfinite=reading.nonfinite)
        made, missing = moved_rows(self.collection, finish, reading)
        client = self.collection.client
        return tuple(made), client.gather(client.map(_described, made, pure=False)), missing

    @property
    def shape(self) -> tuple[int, int]:
        return sum(rows for rows, _ in self._parts[1]), int(self.head.rows.shape[1])

    @property
    def columns(self) -> tuple[str, ...] | None:
        return self.head.rows.columns

    @property
    def unit(self) -> str:
        return self._parts[1][0][1]

    @property
    def scales(self) -> tuple[float, ...] | None:
        return self.head.scales

    @property
    def first_missing(self) -> int | None:
        return self._parts[2]

    def source(self, parameters: PublicParameters, progress: Progress | None) -> DaskSource:
        if self.reading.copy:
            raise ValueError(
                "copy=True is for arrays only, because the partitions of a Dask collection do not change: leave it out"
            )
        parts, described, _ = self._parts
        holders = Holders.of(self.collection.client, parts, parameters, self.reading.nonfinite)
        return DaskSource(holders, [rows for rows, _ in described], self.shape[1], progress)

    def grouped(self, by: Any, keys: tuple[Hashable, ...] | None, most: int) -> DaskGroups:
        """Let the workers make the records of the groups, which stay in the workers."""
        reading, names = self.reading, named_columns(self.points, by)
        for name in names or ():
            take_column(self.head.rows, name, "by")  # An error here is the same as for rows in memory.
        finish = functools.partial(
            _groups,
            names=names or key_names([None]),
            keys=keys,
            most=most,
            reducer=reading.unit_reduce,
            nonfinite=reading.nonfinite,
        )
        made, _ = moved_rows(self.collection, finish, reading, names or by)
        client, labels = self.collection.client, None
        if keys is None:
            found = client.gather(client.map(_labels, made, pure=False))
            labels = sorted(set().union(*found))
            made = client.map(with_all_labels, made, labels=labels, pure=False)
        sizes = client.gather(client.map(_sizes, made, pure=False))
        unit = client.submit(_unit, made[0], pure=False).result()
        d, columns = self.head.rows.shape[1], self.head.rows.columns
        return DaskGroups(client, tuple(made), np.array(sizes), d, unit, columns, names or key_names([None]), labels)


def _named(side: Any) -> Any:
    """Return `side` if it is None or the name of a column. For a column that is not part of the collection, return an
    empty column.
    """
    return side if side is None or isinstance(side, str) else []


def _without_rows(points: Any) -> Any:
    """Return an array or a frame that has the columns of a collection and no rows."""
    if hasattr(points, "chunks"):
        if points.ndim != 2:
            raise ValueError(f"points must have shape (n, d), got {points.ndim} dimensions")
        return np.empty((0, int(points.shape[1])), dtype=points.dtype)
    if hasattr(points, "columns"):
        return points._meta
    raise TypeError(f"a Dask collection of points must be an array or a data frame, got {type(points).__name__}")


# Functions that the workers call.


def _records(rows: Rows, reducer: str, nonfinite: str) -> Grouped:
    """Make the records of all rows, as a single group."""
    records = as_unit_records(rows.records, rows.ids, reducer, nonfinite)
    if nonfinite == "drop":
        records = records.finite()
    return Grouped(records, np.array([0, len(records.array)], dtype=np.int64))


def _groups(rows: Rows, **options: Any) -> Grouped:
    if rows.groups is None:
        raise ValueError("rows of groups need labels")
    return formed(rows.records, rows.groups, rows.ids, **options)


def _described(part: Grouped) -> tuple[int, str]:
    return len(part.records.array), part.records.unit


def _labels(part: Grouped) -> list[bytes]:
    return part.labels or []


def _sizes(part: Grouped) -> Any:
    return np.diff(part.starts)


def _unit(part: Grouped) -> str:
    return part.records.unit
