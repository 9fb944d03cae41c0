"""From rows to the records of groups, which are named beforehand. The proof lies beside this file."""

from __future__ import annotations

import functools
import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmedian import _core
from dpmedian.accounting.neighbours import RECORD
from dpmedian.sources.dask import is_dask
from dpmedian.sources.labels import Labels, as_labels, take_column
from dpmedian.sources.records import Floats, Records
from dpmedian.sources.units import as_row_records, check_reducer, check_weights, label_of, weighted
from dpmedian.sources.weights import largest_of, take_weights, with_weight

if TYPE_CHECKING:
    from dpmedian.sources.shuffle import Rows

__all__ = ["Grouped", "as_group_records", "group_keys"]


@dataclass(frozen=True, eq=False)
class Grouped:
    """The records of all groups, one group after the other, and where each begins."""

    records: Records
    starts: NDArray[np.int64]

    def of(self, group: int) -> Floats:
        """The array of the records of a group, in place."""
        return self.records_of(group).array

    def records_of(self, group: int) -> Records:
        """The records of a group, with their weights, if they have any."""
        rows = slice(self.starts[group], self.starts[group + 1])
        weights = None if self.records.weights is None else self.records.weights[rows]
        return replace(self.records, array=self.records.array[rows], weights=weights)


def group_keys(keys: Any) -> tuple[Hashable, ...]:
    """The public names of the groups, checked: they are told, never taken from the data."""
    if keys is None or isinstance(keys, (str, bytes, Mapping)) or not isinstance(keys, Iterable):
        raise TypeError(
            f"keys must be a list of the groups' names, got {keys!r}; they are public, so tell them: which groups "
            "occur in the data is private"
        )
    found = tuple(key.item() if isinstance(key, np.generic) else key for key in keys)
    if not found:
        raise ValueError("keys must name at least one group")
    labels = as_labels(list(found), "keys")
    if labels.first_missing is not None:
        raise ValueError(f"keys must be integers or text, got {found[labels.first_missing]!r}")
    places, count = labels.ranks()
    if count < len(found):
        first = next(i for i in range(len(found)) if places[i] in places[:i])
        raise ValueError(f"keys must differ: {found[first]!r} is there twice")
    # The results are a mapping from keys, in which 1 and True would be one key, although they are different labels.
    if len(set(found)) < len(found):
        again = next(found[i] for i in range(len(found)) if found[i] in found[:i])
        equal = found[found.index(again)]
        raise ValueError(f"keys must differ: {again!r} is equal to {equal!r} in Python, so use text for both")
    return found


def as_group_records(
    points: Any,
    by: Any,
    keys: tuple[Hashable, ...],
    unit: Any = None,
    *,
    most: int = 1,
    reducer: str = "median",
    nonfinite: str = "raise",
    d: int | None = None,
    geometry: str = "euclidean",
    columns: Sequence[str | int] | None = None,
    weights: Any = None,
    weight_max: float | None = None,
) -> Grouped:
    """One record for each row of a group, or with `unit` one for each unit and group, of at most `most` groups each.

    `by` holds the label of each row, or is the name of a column. Rows whose label is no key, or is missing, are left
    out, and so are rows without an id. A unit contributes to the groups in which it has the most rows. Points may be
    the path of a file, of which `columns` chooses the coordinates, or a collection of Dask: its workers make the
    records of the groups, which are gathered here. `weights` need the public cap `weight_max`; the weight of a unit in
    a group is the largest of its rows there.
    """
    check_reducer(reducer, unit)
    check_weights(points, weights, weight_max)
    if isinstance(points, (str, os.PathLike)):
        from dpmedian.files import read_points

        beside = [name for name in (by, unit) if isinstance(name, str)]
        chosen = with_weight(columns, weights)
        width = d if d is None or not isinstance(weights, str) else d + 1
        points, columns = read_points(points, columns=chosen, nonfinite=nonfinite, labels=beside, d=width), None
    if columns is not None:
        raise ValueError("columns= is for files: choose the columns of a frame yourself, points[['x', 'y']]")
    if is_dask(points):
        if weights is not None:
            raise ValueError("weights take rows in memory or the path of a file, and points are a Dask collection")
        return _gathered(points, by, keys, unit, most, reducer, nonfinite, d, geometry)
    labels, points = take_column(points, by, "by") if isinstance(by, str) else (as_labels(by, "by"), points)
    ids: Labels | None = None
    if unit is not None:
        ids, points = take_column(points, unit, "unit") if isinstance(unit, str) else (as_labels(unit, "unit"), points)
    weights, points = take_weights(points, weights)
    records = weighted(as_row_records(points, nonfinite, d, geometry), weights, weight_max, nonfinite)
    rows = len(records.array)
    if len(labels) != rows:
        raise ValueError("by must have one label for each row of points, and has another length")
    if ids is not None and len(ids) != rows:
        raise ValueError("unit must have one id for each row of points, and has another length")
    if nonfinite == "raise":
        records.require_finite()
    groups = labels.places(as_labels(list(keys), "keys"))
    if nonfinite == "drop":
        groups[~np.isfinite(records.array).all(axis=1)] = -1
    units, count = (np.arange(rows, dtype=np.int64), rows) if ids is None else ids.ranks()
    codes, starts = _core.group_contributions(units, count, groups, len(keys), most)
    array = np.ascontiguousarray(records.array, dtype=np.float64)
    reduced = _core.reduce_units(array, codes, int(starts[-1]), "first" if ids is None else reducer)
    label = RECORD if ids is None else label_of(ids)
    own = None if records.weights is None else largest_of(records.weights, codes, int(starts[-1]))
    return Grouped(replace(records, array=reduced, unit=label, weights=own), starts)


def _gathered(
    points: Any,
    by: Any,
    keys: tuple[Hashable, ...],
    unit: Any,
    most: int,
    reducer: str,
    nonfinite: str,
    d: int | None,
    geometry: str,
) -> Grouped:
    """The records that the workers made, group by group; within a group in the order of the partitions."""
    from dpmedian.sources.shuffle import moved_rows

    options: dict[str, Any] = {"most": most, "reducer": reducer, "nonfinite": nonfinite, "geometry": geometry}
    finish = functools.partial(_of_partition, keys=keys, **options)
    moved = moved_rows(points, finish, unit=unit, by=by, nonfinite=nonfinite, d=d, geometry=geometry)
    parts: list[Grouped] = moved.client.gather(moved.made)
    array = np.concatenate([part.of(group) for group in range(len(keys)) for part in parts])
    starts = np.sum([part.starts for part in parts], axis=0)
    return Grouped(replace(parts[0].records, array=array), starts)


def _of_partition(rows: Rows, **options: Any) -> Grouped:
    return as_group_records(rows.records, rows.groups, unit=rows.ids, **options)
