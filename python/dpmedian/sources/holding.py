"""What a caller may hand over as points, and who answers for it: arrays and frames, files, and collections of Dask."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from dpmedian.accounting.neighbours import Neighbours
from dpmedian.parameters import PublicParameters
from dpmedian.progress import Progress
from dpmedian.sources.array import ArraySource
from dpmedian.sources.dask import DaskRecords, is_dask
from dpmedian.sources.file import FileRecords
from dpmedian.sources.protocol import Source
from dpmedian.sources.records import Records
from dpmedian.sources.units import as_unit_records, check_reducer

__all__ = ["Held", "hold", "source_of"]

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

    Rows that must become other records first, one for each unit or unit vectors on the sphere, are loaded for it.
    `columns` chooses columns of a file, and of nothing else: a frame has ways of its own to do that.
    """
    check_reducer(reducer, unit)
    as_they_are = unit is None and geometry == "euclidean" and weight_max is None
    if is_dask(points):
        points = DaskRecords.of(points, d)
    if isinstance(points, (str, os.PathLike)):
        from dpmedian.files import open_points, read_points

        if as_they_are:
            return open_points(points, columns=columns, nonfinite=nonfinite, d=d)
        labels = [unit] if isinstance(unit, str) else []
        points, columns = read_points(points, columns=columns, nonfinite=nonfinite, labels=labels), None
    if columns is not None:
        raise ValueError("columns= is for files: choose the columns of a frame yourself, points[['x', 'y']]")
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
    if not as_they_are:
        raise ValueError(
            "units, weights and the sphere take the path of a file, or rows in memory: neither open files nor Dask"
        )
    if d is not None and points.shape[1] != d:
        raise ValueError(f"points must have d = {d} columns, got {points.shape[1]}")
    return points
