"""Rows in memory: arrays, frames, tables, streams, and iterators of batches of these."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpmedian.dataset.protocol import OfRecords
from dpmedian.dataset.reading import Reading
from dpmedian.parameters import PublicParameters
from dpmedian.progress import Progress
from dpmedian.sources.array import ArraySource
from dpmedian.sources.columns import coordinates, labels, numbered, select
from dpmedian.sources.frames import NamedColumns
from dpmedian.sources.groups import Grouped, as_group_records
from dpmedian.sources.labels import Labels, as_labels, take_column
from dpmedian.sources.records import Records
from dpmedian.sources.scales import scaled, scales_by_column
from dpmedian.sources.units import as_row_records, as_unit_records
from dpmedian.sources.weights import as_weights

__all__ = ["Memory"]


@dataclass(frozen=True, eq=False)
class Memory(OfRecords):
    """Rows as one array, with the ids of their units and, by name, the columns that are not coordinates."""

    rows: Records
    ids: Labels | None
    reading: Reading
    scales: tuple[float, ...] | None = None

    @classmethod
    def of(cls, points: Any, reading: Reading) -> Memory:
        """Convert the points. All later steps of a release use this conversion."""
        points = loaded(points)
        # A reader of Arrow batches is an iterator, too, but it is read as a stream.
        if isinstance(points, Iterator) and not hasattr(points, "__arrow_c_stream__"):
            for option, value in (("unit", reading.unit), ("sample_weight", reading.sample_weight)):
                if not (value is None or isinstance(value, str)):
                    raise TypeError(f"points are an iterator of batches: {option}= must be the name of their column")
            return _joined([_batch(batch, number, reading) for number, batch in enumerate(points, 1)], reading)
        return _read(points, reading)

    @functools.cached_property
    def records(self) -> Records:
        """One record for each row, or one for each unit."""
        return as_unit_records(self.rows, self.ids, self.reading.unit_reduce, self.reading.nonfinite)

    @property
    def first_missing(self) -> int | None:
        return None if self.ids is None else self.ids.first_missing

    def source(self, parameters: PublicParameters, progress: Progress | None) -> ArraySource:
        return ArraySource.of(self.records, parameters, progress, self.reading.nonfinite, self.reading.copy)

    def grouped(self, by: Any, keys: tuple[Hashable, ...] | None, most: int) -> Grouped:
        reading = self.reading
        return as_group_records(self.rows, by, keys, self.ids, most, reading.unit_reduce, reading.nonfinite)


class OtherColumns(Mapping[str, Labels]):
    """The labels in those columns of a frame that are not coordinates. A column is read when it is accessed."""

    def __init__(self, frame: NamedColumns, coordinates: Sequence[int]) -> None:
        self._frame = frame
        self._places = {name: i for i, name in enumerate(frame.names) if i not in coordinates}

    def __getitem__(self, name: str) -> Labels:
        return replace(as_labels(self._frame.column(self._places[name]), "by"), name=name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def loaded(points: Any) -> Any:
    """Load a lazy input, such as a LazyFrame or an Arrow dataset, into a table. Other inputs are returned unchanged."""
    module = type(points).__module__.split(".")[0]
    if module == "polars" and hasattr(points, "collect"):
        return points.collect()
    if module == "pyarrow" and hasattr(points, "to_table"):  # This is a dataset or a scanner.
        return points.to_table()
    if module == "pyarrow" and hasattr(points, "read_row_groups"):  # This is a ParquetFile.
        return points.read()
    if module == "torch" and hasattr(points, "detach"):  # numpy supports neither gradients nor bfloat16.
        points = points.detach()
        return points.float() if str(points.dtype) == "torch.bfloat16" else points
    if hasattr(points, "data_vars"):  # This is a Dataset of xarray, which has several arrays of any shapes.
        raise TypeError("points must have rows and columns, got an xarray Dataset: pass points.to_dataframe()")
    if hasattr(points, "fetchall") and not isinstance(points, Iterator) and not hasattr(points, "__arrow_c_stream__"):
        raise TypeError(
            f"points must have rows and columns, got a {type(points).__name__}: pass a frame, such as "
            "pandas.read_sql(...), or in DuckDB the relation, connection.sql(...)"
        )
    if hasattr(points, "readline"):
        raise TypeError(
            f"points must have rows and columns, got an open file ({type(points).__name__}): pass its path, or read it "
            "into a frame, such as pandas.read_csv(...)"
        )
    if hasattr(points, "__dlpack__") and not hasattr(points, "__array__"):
        return np.from_dlpack(points)
    return points


def _batch(points: Any, number: int, reading: Reading) -> Memory:
    try:
        return _read(loaded(points), reading)
    except (ValueError, TypeError) as error:
        batches = (
            "an iterator must yield batches (arrays or frames); for an iterator of rows, pass numpy.array(list(points))"
        )
        raise type(error)(f"batch {number}: {error}; {batches}") from None


def _read(points: Any, reading: Reading) -> Memory:
    if isinstance(points, Records):
        return _of_records(points, reading)
    frame = NamedColumns.of(points)
    if frame is None:
        return _of_array(points, reading)
    places, others = _divided(frame, reading)
    ids, own = reading.unit, reading.sample_weight
    if isinstance(ids, str):
        ids = replace(as_labels(frame.column(others["unit"]), "unit"), name=ids)
    if isinstance(own, str):
        own = frame.column(others["sample_weight"])
    rows = as_row_records(frame.select(places), reading.intake, reading.geometry)
    return _made(replace(rows, labels=OtherColumns(frame, places)), ids, own, reading)


def _divided(frame: NamedColumns, reading: Reading) -> tuple[list[int], dict[str, int]]:
    """Return the positions of the coordinates, and the positions of the columns of ids and weights.

    If no columns are chosen, the coordinates are all columns except the ids, the weights and the groups.
    """
    named = {"unit": reading.unit, "sample_weight": reading.sample_weight}
    others = {argument: frame.place(name, argument) for argument, name in named.items() if isinstance(name, str)}
    groups = [frame.place(name, "by") for name in reading.labels]
    if reading.columns is None:
        return coordinates(frame.names, (*others.values(), *groups)), others
    wanted = [str(name) if frame.integer_names else name for name in reading.columns]
    places = select(frame.names, wanted)
    for argument, place in (*others.items(), *(("by", place) for place in groups)):
        if place in places:
            raise ValueError(f"column {frame.names[place]!r} was requested twice, in columns= and as {argument}=")
    return places, others


def _of_array(points: Any, reading: Reading) -> Memory:
    """Read an array, or rows, whose columns have no names."""
    for argument, name in (("unit", reading.unit), ("sample_weight", reading.sample_weight)):
        if isinstance(name, str):
            raise TypeError(
                f"{argument}={name!r} names a column, but the columns of points ({type(points).__name__}) have no "
                f"names; pass a frame, or the column itself, {argument}=[...], one value for each row"
            )
    names: tuple[str, ...] | None = None
    if reading.columns is not None:
        if isinstance(points, Sequence):
            raise TypeError(
                "columns= needs an array or a frame, but points are a list of rows; pass numpy.array(points) or a frame"
            )
        points = np.asanyarray(points)
        width = points.shape[1] if points.ndim == 2 else 0
        places = select(numbered(width), reading.columns)
        points, names = points[:, places], labels(numbered(width), places)
    rows = as_row_records(points, reading.intake, reading.geometry)
    return _made(replace(rows, columns=rows.columns or names), reading.unit, reading.sample_weight, reading)


def _of_records(rows: Records, reading: Reading) -> Memory:
    """Take records that were already read, with the names of their columns and their labels."""
    ids, own = reading.unit, reading.sample_weight
    if isinstance(ids, str):
        ids = take_column(rows, ids, "unit")
    names = list(rows.columns or numbered(rows.shape[1]))
    places = list(range(len(names)))
    if isinstance(own, str):
        if names.count(own) != 1:
            raise ValueError(f"sample_weight={own!r} is not the name of exactly one column of numbers")
        place = names.index(own)
        places.remove(place)
        if not places:
            raise ValueError(f"sample_weight={own!r} is the only column of numbers: points need at least one more")
        own = rows.array[:, place]
    if reading.columns is not None:
        places = select(names, reading.columns)
    if places != list(range(len(names))):
        chosen = np.ascontiguousarray(rows.array[:, places])
        rows = replace(rows, array=chosen, columns=labels(names, places))
    rows = as_row_records(rows, reading.intake, reading.geometry)
    return _made(rows, ids, own, reading)


def _made(rows: Records, ids: Any, own: Any, reading: Reading) -> Memory:
    scales = scales_by_column(reading.scales, rows.columns, rows.shape[1])
    rows = scaled(rows, scales)
    found = ids if ids is None or isinstance(ids, Labels) else as_labels(ids, "unit")
    if found is not None and len(found) != len(rows.array):
        raise ValueError("unit must have one id for each row of points, but has another length")
    if own is not None and reading.weight_max is not None:
        unattended = reading.intake.unattended
        weights = as_weights(own, reading.weight_max, len(rows.array), unattended=unattended)
        rows = replace(rows, weights=weights)
    return Memory(rows, found, reading, scales)


def _joined(parts: Sequence[Memory], reading: Reading) -> Memory:
    """Return the rows of all batches, one batch after the other."""
    if not parts:
        raise ValueError("the iterator yields no batch, so the dimension of the points is not known; pass an array")
    names = parts[0].rows.columns
    for number, part in enumerate(parts):
        if part.rows.columns != names or part.rows.shape[1] != parts[0].rows.shape[1]:
            raise ValueError(
                f"the columns of batch {number + 1} are not the columns of batch 1; choose the same columns in the "
                "same order, columns=[...]"
            )
    weights = [part.rows.weights for part in parts if part.rows.weights is not None]
    others = set.intersection(*(set(part.rows.labels) for part in parts))
    rows = replace(
        parts[0].rows,
        array=np.concatenate([part.rows.array for part in parts]),
        weights=np.concatenate(weights) if weights else None,
        labels=_JoinedLabels([part.rows.labels for part in parts], others),
    )
    ids = [part.ids for part in parts if part.ids is not None]
    return Memory(rows, Labels.joined(ids) if ids else None, reading, parts[0].scales)


class _JoinedLabels(Mapping[str, Labels]):
    """The labels of several batches, joined when they are accessed."""

    def __init__(self, parts: Sequence[Mapping[str, Labels]], names: set[str]) -> None:
        self._parts, self._names = parts, sorted(names)

    def __getitem__(self, name: str) -> Labels:
        if name not in self._names:
            raise KeyError(name)
        return Labels.joined([part[name] for part in self._parts])

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
