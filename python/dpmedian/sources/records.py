"""Conversion of the points of a user, in any form, to one C-order array of doubles. Singles stay singles.

`cells.py` converts cells to numbers and decides which cells are errors.
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmedian._core import Points
from dpmedian.accounting.protection import RECORD
from dpmedian.sources.cells import HINT, Floats, Intake, from_array, from_rows, kind_of
from dpmedian.sources.frames import from_frame

if TYPE_CHECKING:
    from dpmedian.sources.labels import Labels

__all__ = ["Records", "as_records", "converted", "first_nonfinite"]

# The number of cells that are checked together (8 MB of doubles), so that no second array of the full size is needed.
_BLOCK = 1 << 20


@dataclass(frozen=True, eq=False)
class Records:
    """Points as a C-order (n, d) array of floats, with the names of their columns if there are any.

    `Records` are accepted wherever points are expected. An array of doubles or singles in C order is read in place,
    without a copy. `labels` holds the columns of a file that are not coordinates, and `unit` is the name of the
    protected unit. With the `geometry` "sphere" the records are unit vectors computed from longitudes and latitudes.
    `weights` are multiples of 2^-20 of a cap.
    """

    array: Floats
    columns: tuple[str, ...] | None = None
    labels: Mapping[str, Labels] = field(default_factory=dict)
    unit: str = RECORD
    geometry: str = "euclidean"
    weights: NDArray[np.uint32] | None = None

    def __repr__(self) -> str:
        """Show the shape and the names only, because records must not appear in a log."""
        n, d = self.array.shape
        return f"Records(n={n}, d={d}, columns={self.columns})"

    @property
    def shape(self) -> tuple[int, int]:
        """The number of records and their dimension."""
        n, d = self.array.shape
        return n, d

    def admitted(
        self, ball: tuple[Sequence[float], float] | None, replacement: Sequence[float] | None, copy: bool = False
    ) -> Points:
        """Return the records for the kernels, in place or as a copy, after a pass that validates them.

        A memory map is always copied, because writing to its file would change records that have been validated.
        """
        try:
            copied = self.array.copy() if copy or _is_mapped(self.array) else self.array
            return Points(copied, ball=ball, replacement=replacement)
        except ValueError:
            self.require_finite()  # This raises an error that also names the column.
            raise

    def to_numpy(self) -> Floats:
        """Return the array itself, not a copy."""
        return self.array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.array, dtype=dtype, copy=bool(copy) or None)

    def finite(self) -> Records:
        """Return the records that have no missing or infinite value.

        Whether a record is kept depends on its own values only.
        """
        kept = np.isfinite(self.array).all(axis=1)
        weights = None if self.weights is None else self.weights[kept]
        return replace(self, array=self.array[kept], weights=weights)

    def require_finite(self) -> None:
        """Raise an error if a value is missing or infinite. The error names the position of the value, so only the
        curator may see the error.
        """
        place = first_nonfinite(self.array)
        if place is not None:
            row, column = place
            what = "missing" if np.isnan(self.array[place]) else "infinite"
            name = column + 1 if self.columns is None else repr(self.columns[column])
            raise ValueError(
                f"points[{row}, {column}] is not finite: the value in row {row + 1}, column {name} is {what}; {HINT}"
            )


def as_records(points: Any, *, nonfinite: str = "raise", d: int | None = None) -> Records:
    """Convert points to records. `Records` are returned unchanged.

    These forms are accepted: arrays of real numbers in any layout, memory maps and masked arrays (masked cells become
    NaN); sequences of rows; pandas and polars frames, Arrow tables and record batches (missing values become NaN); and
    frames with a single column of lists of equal length (each position in the lists becomes a column).

    With `nonfinite="raise"`, a cell that is not a number raises a `ValueError` or a `TypeError` that names its
    position; missing and infinite values are refused later, when a source admits the records. With "center" and "drop",
    a cell that is not a number becomes NaN, infinite values stay infinite, and the content of a record never raises an
    error. Text that can be read as a number is converted, because many readers turn a whole column into text if a
    single record is unusual.

    `d` is the public dimension. With "center" and "drop" it is required for a sequence of rows and for a column of
    lists without a fixed length, and a row of another length becomes NaN. In such a run a single pandas column of dtype
    object is read as lists if `d` was given and is not 1, and otherwise as numbers, because the cells must not decide
    how the column is read.
    """
    return converted(points, Intake.of(nonfinite, d))


def converted(points: Any, intake: Intake) -> Records:
    """Convert points to records with options that were checked."""
    records = points if isinstance(points, Records) else _convert(points, intake)
    if intake.d is not None and records.array.shape[1] != intake.d:
        raise ValueError(f"points must have d = {intake.d} columns, got {records.array.shape[1]}")
    return records


def _is_mapped(array: Any) -> bool:
    """Return whether the memory of an array belongs to a file. Other processes can write to such a file."""
    while array is not None:
        if isinstance(array, (np.memmap, mmap.mmap)):
            return True
        array = array.obj if isinstance(array, memoryview) else getattr(array, "base", None)
    return False


def first_nonfinite(points: Floats) -> tuple[int, int] | None:
    """Return the position of the first cell, row by row, that is NaN or infinite, or None."""
    step = max(1, _BLOCK // max(1, points.shape[1]))
    for start in range(0, points.shape[0], step):
        finite = np.isfinite(points[start : start + step])
        if not finite.all():
            row, column = np.argwhere(~finite)[0]
            return start + int(row), int(column)
    return None


def _convert(points: Any, intake: Intake) -> Records:
    framed = from_frame(points, intake)
    if framed is not None:
        return Records(*framed)
    if isinstance(points, (str, bytes, Mapping, Set)) or points is None:
        remedy = "; pass pandas.DataFrame(points), with a column for each entry" if isinstance(points, Mapping) else ""
        raise TypeError(f"points must be rows of numbers, got {kind_of(points)}{remedy}")
    if hasattr(points, "collect"):
        raise TypeError(f"points must be in memory, got {kind_of(points)}: call .collect() on it first")
    # Every array of xarray has a method compute. If such an array has no chunks, it is in memory.
    if hasattr(points, "compute") and getattr(points, "chunks", ()) is not None:
        raise TypeError(f"points must be in memory, got {kind_of(points)}: call .compute() on it first")
    if hasattr(points, "toarray"):
        raise TypeError(f"points must be dense, got {kind_of(points)}: call .toarray() on it first")
    if hasattr(points, "columns") and hasattr(points, "to_numpy"):
        return Records(from_array(np.asanyarray(points.to_numpy()), intake), tuple(map(str, points.columns)))
    if hasattr(points, "__array__") or isinstance(points, memoryview):
        return Records(from_array(np.asanyarray(points), intake))
    if isinstance(points, Sequence):
        return Records(from_rows(points, intake))
    grouped = "GroupBy" in type(points).__name__
    remedy = "; pass the frame as points, and by=... to geometric_medians" if grouped else ""
    raise TypeError(f"points must be an array, a frame or rows of numbers, got {kind_of(points)}{remedy}")
