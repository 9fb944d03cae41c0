"""Files and folders.

If every row is a record as it is stored, the rows stay in their files. Otherwise the files are loaded.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

from dpmedian.dataset.memory import Memory
from dpmedian.dataset.protocol import OfRecords
from dpmedian.dataset.reading import Reading
from dpmedian.files import open_points, read_points
from dpmedian.parameters import PublicParameters
from dpmedian.progress import Progress
from dpmedian.sources.array import ArraySource
from dpmedian.sources.file import FileRecords
from dpmedian.sources.groups import Grouped
from dpmedian.sources.key_columns import named_columns
from dpmedian.sources.weights import with_weight

__all__ = ["Stored"]


@dataclass(frozen=True, eq=False)
class Stored(OfRecords):
    """The records of a file, a folder or a list of files, or of a file that was opened by `open_points`."""

    given: Any
    reading: Reading
    records: FileRecords | Memory

    @classmethod
    def of(cls, points: Any, reading: Reading) -> Stored:
        """Open the files in place if every row is a record as it is stored. Otherwise load the files."""
        if isinstance(points, FileRecords):
            return cls(points, reading, _as_opened(points, reading))
        if not reading.as_they_are:
            return cls(points, reading, _loaded(points, reading))
        opened = open_points(points, columns=reading.columns, nonfinite=reading.nonfinite, d=reading.d)
        records = opened if isinstance(opened, FileRecords) else Memory.of(opened, replace(reading, columns=None))
        return cls(points, reading, records)

    @property
    def scales(self) -> tuple[float, ...] | None:
        return self.records.scales if isinstance(self.records, Memory) else None

    @property
    def first_missing(self) -> int | None:
        return self.records.first_missing if isinstance(self.records, Memory) else None

    def source(self, parameters: PublicParameters, progress: Progress | None) -> ArraySource:
        reading = self.reading
        if isinstance(self.records, Memory):
            return self.records.source(parameters, progress)
        return ArraySource.of(self.records, parameters, progress, reading.nonfinite, reading.copy)

    def grouped(self, by: Any, keys: tuple[Hashable, ...] | None, most: int) -> Grouped:
        """Return the records of groups. If the columns of groups were not read with the points, points and groups are
        read again together.
        """
        names = named_columns(self.given, by) or ()
        there = isinstance(self.records, Memory) and set(names) <= set(self.records.rows.labels)
        if isinstance(self.given, FileRecords):
            raise ValueError("groups need the path of a file, not a file that is already open: pass the path as points")
        rows = self.records if there else _loaded(self.given, replace(self.reading, labels=names))
        if not isinstance(rows, Memory):  # The points are still in their file and are loaded now.
            rows = _loaded(self.given, self.reading)
        return rows.grouped(by, keys, most)


def _as_opened(records: FileRecords, reading: Reading) -> FileRecords:
    if not reading.as_they_are:
        raise ValueError(
            "units, weights, groups, scales and geometry='sphere' need the path of a file, or rows in memory, and not "
            "a file that is already open: pass the path"
        )
    if reading.columns is not None:
        raise ValueError("choose the columns when the file is opened, open_points(path, columns=[...])")
    if reading.d is not None and records.shape[1] != reading.d:
        raise ValueError(f"points must have d = {reading.d} columns, got {records.shape[1]}")
    return records


def _loaded(paths: Any, reading: Reading) -> Memory:
    labels = [*reading.labels, *([reading.unit] if isinstance(reading.unit, str) else [])]
    rows = read_points(
        paths,
        columns=with_weight(reading.columns, reading.sample_weight),
        nonfinite=reading.nonfinite,
        labels=list(dict.fromkeys(labels)),
        d=None if reading.nonfinite == "raise" else reading.row_width,
    )
    return Memory.of(rows, replace(reading, columns=None, labels=()))
