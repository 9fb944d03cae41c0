"""Collections of Dask: the records stay in the workers."""

from __future__ import annotations

import functools
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

from dpmedian.dataset.reading import Reading
from dpmedian.parameters import PublicParameters
from dpmedian.progress import Progress
from dpmedian.sources.columns import numbered, select
from dpmedian.sources.dask import DaskRecords, DaskSource
from dpmedian.sources.groups import Grouped, as_group_records
from dpmedian.sources.records import Records
from dpmedian.sources.shuffle import Rows, moved_rows
from dpmedian.sources.units import as_unit_records

__all__ = ["Cluster"]


@dataclass(frozen=True, eq=False)
class Cluster:
    """The rows of an array or a data frame of Dask."""

    points: Any
    reading: Reading

    @classmethod
    def of(cls, points: Any, reading: Reading) -> Cluster:
        """Choose the columns; nothing is computed yet."""
        if reading.scales is not None:
            raise ValueError(
                "scales take rows in memory or files, and points are a Dask collection; divide its columns by the "
                "scales, and multiply the released point by them"
            )
        if reading.weight_max is not None:
            raise ValueError(
                "weights take rows in memory or files, and points are a Dask collection; load the columns, "
                "points.compute(), or pass the files"
            )
        if reading.columns is None:
            return cls(points, reading)
        beside = [*reading.labels, *([reading.unit] if isinstance(reading.unit, str) else [])]
        if hasattr(points, "columns"):
            names = list(map(str, points.columns))
            integers = any(isinstance(name, int) for name in points.columns)
            wanted = [str(name) if integers else name for name in reading.columns]
            places = [*select(names, wanted), *(select(names, list(dict.fromkeys(beside))) if beside else [])]
            if len(set(places)) < len(places):
                raise ValueError("a column was asked for twice, in columns= and as unit= or by=")
            chosen = points[[points.columns[i] for i in places]]
        else:
            chosen = points[:, select(numbered(points.shape[1]), reading.columns)]
        return cls(chosen, replace(reading, columns=None))

    @functools.cached_property
    def records(self) -> DaskRecords:
        """The partitions as they are, or the records of units, made by the workers that have all rows of each."""
        reading = self.reading
        if reading.as_they_are:
            return DaskRecords.of(self.points, reading.d)
        return self._moved[0]

    @functools.cached_property
    def _moved(self) -> tuple[DaskRecords, int | None]:
        reading = self.reading
        finish = functools.partial(_unit_records, reducer=reading.unit_reduce, nonfinite=reading.nonfinite)
        moved = moved_rows(
            self.points,
            finish,
            unit=reading.unit,
            nonfinite=reading.nonfinite,
            d=reading.d,
            geometry=reading.geometry,
        )
        found = moved.client.gather(moved.client.map(_described, moved.made, pure=False))
        arrays = moved.client.map(Records.to_numpy, moved.made, pure=False)
        shape = (sum(rows for (rows, _), _ in found), int(found[0][0][1]))
        records = DaskRecords(moved.client, tuple(arrays), shape, moved.columns, found[0][1], reading.geometry)
        return records, moved.first_missing

    @property
    def shape(self) -> tuple[int, int]:
        return self.records.shape

    @property
    def columns(self) -> tuple[str, ...] | None:
        return self.records.columns

    @property
    def unit(self) -> str:
        return self.records.unit

    @property
    def scales(self) -> None:
        return None

    @property
    def first_missing(self) -> int | None:
        return None if self.reading.as_they_are else self._moved[1]

    def source(self, parameters: PublicParameters, progress: Progress | None) -> DaskSource:
        return self.records.source(parameters, progress, self.reading.nonfinite, self.reading.copy)

    def grouped(self, by: Any, keys: tuple[Hashable, ...] | None, most: int) -> Grouped:
        """The workers make the records of the groups, which are gathered in this process."""
        reading = self.reading
        return as_group_records(
            self.points,
            by,
            keys,
            reading.unit,
            most=most,
            reducer=reading.unit_reduce,
            nonfinite=reading.nonfinite,
            d=reading.d,
            geometry=reading.geometry,
        )


def _unit_records(rows: Rows, reducer: str, nonfinite: str) -> Records:
    if rows.ids is None:
        return rows.records
    records, geometry = rows.records, rows.records.geometry
    options: dict[str, Any] = {"reducer": reducer, "nonfinite": nonfinite, "geometry": geometry}
    return as_unit_records(records, rows.ids, **options, neighbours="add_remove")


def _described(records: Records) -> tuple[tuple[int, int], str]:
    return records.shape, records.unit
