"""The conversion of rows to one record per unit, which is made from the unit's own rows. Proof: units.md."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dpmedian import _core
from dpmedian.accounting.protection import RECORD, Neighbours, relation_of
from dpmedian.sources.labels import Labels, as_labels, take_column
from dpmedian.sources.records import Records, as_records
from dpmedian.sources.sphere import as_vectors
from dpmedian.sources.weights import as_weights, largest_of, take_weights

__all__ = [
    "REDUCERS",
    "UNNAMED",
    "as_row_records",
    "as_unit_records",
    "check_missing",
    "check_reducer",
    "check_weights",
    "label_of",
    "weighted",
]

REDUCERS = ("median", "mean", "first")
"""The names of the functions that reduce the rows of a unit to one record."""

UNNAMED = "unit"
"""The name of the protected unit if the column of ids has no name."""


def as_unit_records(
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
) -> Records:
    """Convert points to records: one record for each row, or with `unit` one record for each unit, in the order of the
    ids.

    `unit` is a column of ids, or the name of such a column in a frame. With `nonfinite="raise"` a row that is not
    finite raises an error. Otherwise such rows are left out, and the record of a unit without any finite row is NaN, so
    that the run replaces or drops it. Under "replace" a row without an id is refused, because the number of units is
    public. Under "add_remove" such a row is left out. With the `geometry` "sphere" the points are longitudes and
    latitudes in degrees, which become unit vectors before they are reduced. `weights` need the public cap `weight_max`.
    """
    check_reducer(reducer, unit)
    check_weights(points, weights, weight_max)
    weights, points = take_weights(points, weights)
    if unit is None:
        records = as_row_records(points, nonfinite, d, geometry)
        return weighted(records, weights, weight_max, nonfinite)
    if isinstance(points, Records) and points.unit != RECORD:
        raise ValueError(f"these points were already reduced to one record for each {points.unit!r}: leave out unit=")
    ids, points = take_column(points, unit, "unit") if isinstance(unit, str) else (as_labels(unit, "unit"), points)
    label = label_of(ids)
    records = as_row_records(points, nonfinite, d, geometry)
    if len(ids) != len(records.array):
        raise ValueError("unit must have one id for each row of points, but has another length")
    check_missing(ids.first_missing, label, nonfinite, neighbours)
    if nonfinite == "raise":
        records.require_finite()
    records = weighted(records, weights, weight_max, nonfinite)
    codes, count = ids.ranks()
    own = None if records.weights is None else largest_of(records.weights, codes, count)
    array = _core.reduce_units(np.ascontiguousarray(records.array, dtype=np.float64), codes, count, reducer)
    return replace(records, array=array, unit=label, weights=own)


def check_weights(points: Any, weights: Any, weight_max: float | None) -> None:
    """Raise an error unless weights and their public cap are given together."""
    if weights is not None and weight_max is None:
        raise ValueError("sample_weight needs weight_max=, a public cap: never take the largest weight of the data")
    prepared = isinstance(points, Records) and points.weights is not None
    if weight_max is not None and weights is None and not prepared:
        raise ValueError("this plan has weight_max=: pass the weights, sample_weight=...")


def weighted(records: Records, weights: Any, weight_max: float | None, nonfinite: str) -> Records:
    """Return the records with their weights. Without weights, the records are returned unchanged."""
    if weights is None or weight_max is None:
        return records
    return replace(records, weights=as_weights(weights, weight_max, len(records.array), nonfinite))


def check_reducer(reducer: str, unit: Any) -> None:
    """Raise an error if the reducer is not one of `REDUCERS`, or if a reducer was chosen without a unit."""
    if reducer not in REDUCERS:
        raise ValueError(f"unit_reduce must be one of {', '.join(map(repr, REDUCERS))}, got {reducer!r}")
    if unit is None and reducer != "median":
        raise ValueError(
            f"unit_reduce = {reducer!r} would have no effect without a unit: pass unit=..., or leave unit_reduce out"
        )


def label_of(ids: Labels) -> str:
    """Return the name of the unit, which is the name of the column of ids."""
    label = ids.name or UNNAMED
    if label == RECORD:
        raise ValueError(f"unit: a column of ids must not be called {RECORD!r}, which means a single row; rename it")
    return label


def as_row_records(points: Any, nonfinite: str, d: int | None, geometry: str) -> Records:
    """Return one record for each row. `d` is the dimension of the records."""
    if geometry == "euclidean":
        return as_records(points, nonfinite=nonfinite, d=d)
    if isinstance(points, Records) and points.geometry == geometry:
        return points
    width = None if nonfinite == "raise" else 2
    return as_vectors(as_records(points, nonfinite=nonfinite, d=width), nonfinite)


def check_missing(row: int | None, label: str, nonfinite: str, neighbours: Neighbours) -> None:
    """Raise an error if `row` has no id although every row must have an id."""
    if row is None or not relation_of(neighbours).size_is_public:
        return
    where = f"row {row + 1} has no {label!r} that can be read" if nonfinite == "raise" else "a row has no id"
    raise ValueError(
        "unit: every row must have an id (a whole number or text) under neighbours = 'replace', where the number of "
        f"units is public, and {where}; correct it, or use neighbours='add_remove' (--neighbours add_remove), which "
        "leaves such rows out"
    )
