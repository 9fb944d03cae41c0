"""Records in a file. Every query reads the file in blocks, so the records are never all in memory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from dpmedian._core import Points, RecordFile
from dpmedian.accounting.protection import RECORD
from dpmedian.sources.cells import HINT

__all__ = ["Column", "FileRecords", "is_path"]

Column = tuple[int, int, bool]
"""The position of a column in a file: the offset of its first number, the stride from one number to the next, and
whether a number has 8 bytes (otherwise it has 4).
"""


def is_path(points: Any) -> bool:
    """Whether `points` is the path of a file or folder, or a list of such paths."""
    if isinstance(points, (list, tuple)):
        return bool(points) and all(isinstance(point, (str, os.PathLike)) for point in points)
    return isinstance(points, (str, os.PathLike))


@dataclass(frozen=True, eq=False)
class FileRecords:
    """An open file of n records, each with d numbers of type float32 or float64, and the names of the columns.

    The kernels read the file with ordinary read calls. If the file is truncated or written to during a run, an error is
    raised.
    """

    file: RecordFile
    shape: tuple[int, int]
    columns: tuple[str, ...] | None = None
    # Whether records with a value that is not finite were left out when the file was written.
    only_finite: bool = False

    weights: ClassVar[None] = None
    """Records of a file have equal weights."""

    unit: ClassVar[str] = RECORD
    """Each row of a file is one record."""

    @classmethod
    def of(
        cls,
        file: RecordFile,
        pieces: Sequence[tuple[int, Sequence[Column]]],
        columns: tuple[str, ...],
        only_finite: bool = False,
    ) -> FileRecords:
        """Return the records of all pieces, in order. A piece is a number of records and the positions of their
        columns.
        """
        file.lay_out([(n, list(places)) for n, places in pieces])
        return cls(file, (sum(n for n, _ in pieces), len(columns)), columns, only_finite)

    def finite(self) -> FileRecords:
        """Return the records that have no missing or infinite value."""
        if not self.only_finite:
            raise ValueError(
                "this file was not opened with nonfinite='drop': open it with this option, or replace records that "
                "are not finite"
            )
        return self

    def admitted(
        self, ball: tuple[Sequence[float], float] | None, replacement: Sequence[float] | None, copy: bool = False
    ) -> Points:
        """Return the records for the kernels, after a pass that validates them.

        `copy=True` is refused, because a copy of the file might not fit into memory.
        """
        if copy:
            raise ValueError("copy=True would load the whole file: read it first with dpmedian.files.read_points(...)")
        try:
            return Points.read(self.file, ball=ball, replacement=replacement)
        except ValueError as error:
            raise ValueError(f"{error}; {HINT}") from None
