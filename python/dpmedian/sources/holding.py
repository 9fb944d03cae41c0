"""What a caller may hand over as points, and who answers for it: arrays and frames, files, and collections of Dask."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dpmedian.accounting.neighbours import Neighbours
from dpmedian.parameters import PublicParameters
from dpmedian.progress import Progress
from dpmedian.sources.array import ArraySource
from dpmedian.sources.dask import DaskRecords, is_dask
from dpmedian.sources.file import FileRecords
from dpmedian.sources.protocol import Source
from dpmedian.sources.records import Records
from dpmedian.sources.units import as_unit_records, check_missing, check_reducer, check_weights
from dpmedian.sources.weights import with_weight

if TYPE_CHECKING:
    from dpmedian.sources.shuffle import Rows

__all__ = ["Held", "hold", "source_of"]

_NO_COLUMNS = "columns= is for files: choose the columns of a frame yourself, points[['x', 'y']]"

Held = Records | FileRecords | DaskRecords


def source_of(held: Held, parameters: PublicParameters, progress: Progress, nonfinite: str, copy: bool) -> Source:
    """The records for a run."""
    if isinstance(held, DaskRecords):
        return held.source(parameters, progress, nonfinite, copy)
    return ArraySource.of(held, parameters, progress, nonfinite, copy)


def hold(
    points: Any,
    unit: Any = None,
    *,
    reducer: str = "median",
    nonfinite: str = "raise",
    neighbours: Neighbours = "replace",
    d: int | None = None,
    geometry: str = "euclidean",
    weights: Any = None,
    weight_max: float | None = None,
    columns: Sequence[str | int] | None = None,
) -> Held:
    """Whatever was handed over as points, as records: those of a file or of a cluster stay there.

    Rows that must become other records first, one for each unit or unit vectors on the sphere, are loaded for it; in a
    cluster that is done by the workers.
    `columns` chooses columns of a file, and of nothing else: a frame has ways of its own to do that.
    """
    check_reducer(reducer, unit)
    check_weights(points, weights, weight_max)
    as_they_are = unit is None and geometry == "euclidean" and weight_max is None
    if is_dask(points):
        if weight_max is not None or weights is not None:
            raise ValueError("weights take rows in memory or the path of a file, and points are a Dask collection")
        if columns is not None:
            raise ValueError(_NO_COLUMNS)
        if not as_they_are:
            return _dask_units(points, unit, reducer, nonfinite, neighbours, d, geometry)
        points = DaskRecords.of(points, d)
    if isinstance(points, (str, os.PathLike)):
        from dpmedian.files import open_points, read_points

        if as_they_are:
            return open_points(points, columns=columns, nonfinite=nonfinite, d=d)
        labels = [unit] if isinstance(unit, str) else []
        chosen = with_weight(columns, weights)
        points, columns = read_points(points, columns=chosen, nonfinite=nonfinite, labels=labels), None
    if columns is not None:
        raise ValueError(_NO_COLUMNS)
    if not isinstance(points, (FileRecords, DaskRecords)):
        return as_unit_records(
            points,
            unit,
            reducer=reducer,
            nonfinite=nonfinite,
            neighbours=neighbours,
            d=d,
            geometry=geometry,
            weights=weights,
            weight_max=weight_max,
        )
    held: FileRecords | DaskRecords = points
    made = isinstance(held, DaskRecords) and unit is None and weight_max is None and held.geometry == geometry
    if not (as_they_are or made):
        raise ValueError(
            "units, weights and the sphere take the path of a file, rows in memory, or a Dask collection as it is "
            "(without weights): not records that were opened before"
        )
    if d is not None and held.shape[1] != d:
        raise ValueError(f"points must have d = {d} columns, got {held.shape[1]}")
    return held


def _dask_units(
    points: Any, unit: Any, reducer: str, nonfinite: str, neighbours: Neighbours, d: int | None, geometry: str
) -> DaskRecords:
    """The records of units, made by the workers that have all rows of each; or those of single rows on the sphere."""
    from dpmedian.sources.shuffle import moved_rows

    finish = functools.partial(_unit_records, reducer=reducer, nonfinite=nonfinite)
    moved = moved_rows(points, finish, unit=unit, nonfinite=nonfinite, d=d, geometry=geometry)
    found = moved.client.gather(moved.client.map(_described, moved.made, pure=False))
    label = found[0][1]
    if unit is not None:
        check_missing(moved.first_missing, label, nonfinite, neighbours)
    arrays = moved.client.map(Records.to_numpy, moved.made, pure=False)
    shape = (sum(rows for (rows, _), _ in found), int(found[0][0][1]))
    return DaskRecords(moved.client, tuple(arrays), shape, moved.columns, label, geometry)


def _unit_records(rows: Rows, reducer: str, nonfinite: str) -> Records:
    if rows.ids is None:
        return rows.records
    records, geometry = rows.records, rows.records.geometry
    options: dict[str, Any] = {"reducer": reducer, "nonfinite": nonfinite, "geometry": geometry}
    return as_unit_records(records, rows.ids, **options, neighbours="add_remove")


def _described(records: Records) -> tuple[tuple[int, int], str]:
    return records.shape, records.unit
