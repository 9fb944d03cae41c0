"""The conversion of rows to one record per unit, which is made from the unit's own rows. Proof: units.md."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dpmedian import _core
from dpmedian.accounting.protection import RECORD, Relation
from dpmedian.sources.cells import Intake
from dpmedian.sources.labels import Labels
from dpmedian.sources.records import Records, converted
from dpmedian.sources.sphere import as_vectors
from dpmedian.sources.weights import largest_of

__all__ = [
    "REDUCERS",
    "UNNAMED",
    "as_row_records",
    "as_unit_records",
    "check_missing",
    "check_reducer",
    "label_of",
]

REDUCERS = ("median", "mean", "first")
"""The names of the functions that reduce the rows of a unit to one record."""

UNNAMED = "unit"
"""The name of the protected unit if the column of ids has no name."""


def as_unit_records(rows: Records, ids: Labels | None, reducer: str, nonfinite: str) -> Records:
    """Return one record for each row, or with ids one record for each unit, in the order of the ids.

    With `nonfinite="raise"` a row that is not finite raises an error. Otherwise such rows are left out, and the record
    of a unit without any finite row is NaN, so that the run replaces or drops it. A row without an id is left out; if
    the number of units is public, such a row is refused before the run (`check_missing`). The weight of a unit is the
    largest weight of its rows.
    """
    if ids is None:
        return rows
    label = label_of(ids)
    if nonfinite == "raise":
        rows.require_finite()
    codes, count = ids.ranks()
    own = None if rows.weights is None else largest_of(rows.weights, codes, count)
    array = _core.reduce_units(np.ascontiguousarray(rows.array, dtype=np.float64), codes, count, reducer)
    return replace(rows, array=array, unit=label, weights=own)


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


def as_row_records(points: Any, intake: Intake, geometry: str) -> Records:
    """Return one record for each row."""
    if geometry == "euclidean":
        return converted(points, intake)
    return as_vectors(converted(points, replace(intake, d=2 if intake.unattended else None)), intake)


def check_missing(row: int | None, label: str, nonfinite: str, relation: Relation) -> None:
    """Raise an error if `row` has no id although every row must have an id."""
    if row is None or not relation.size_is_public:
        return
    where = f"row {row + 1} has no {label!r} that can be read" if nonfinite == "raise" else "a row has no id"
    raise ValueError(
        "unit: every row must have an id (a whole number or text) under neighbours = 'replace', where the number of "
        f"units is public, and {where}; correct it, or use neighbours='add_remove' (--neighbours add_remove), which "
        "leaves such rows out"
    )
