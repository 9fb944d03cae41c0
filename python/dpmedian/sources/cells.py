"""Conversion of arrays, rows and cells to doubles (64-bit floats). Singles (32-bit floats) stay singles.

With `nonfinite="raise"` the curator, who holds the data, sees errors: a value that is not a finite number raises an
error that names its position. The other modes are for unattended runs. In an unattended run, an error or a message
about a record would reveal something about the record without being charged. So every cell is converted separately, and
a cell that is not a number becomes NaN. The run then replaces or drops the record of this cell. Errors depend on public
properties only: the kind of container, its shape, the names and types of its columns, and the arguments. The dimension
is public, so no record may decide the dimension. For this reason the caller must state `d` for rows and for lists
without a fixed length.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["HINT", "NONFINITE", "Floats", "Intake", "from_array", "from_cells", "from_rows", "kind_of", "read_number"]

Floats = NDArray[np.floating[Any]]
"""The type of numbers: float32 if the caller's numbers are float32, and otherwise float64."""

NONFINITE = ("raise", "center", "drop")
"""The possible treatments of records that are not finite. All values except the first are for unattended runs."""

HINT = "correct it, or let nonfinite='center' replace such records by the center"


@dataclass(frozen=True)
class Intake:
    """The options for reading points: whether the run is unattended, the dimension if it was given, and texts for
    errors.

    `typed` means that a schema, which is stored with the data and is public, declares the types of the columns. Then a
    column of text is refused. Without a schema, a reader may have chosen the types by looking at the cells, so a single
    record may have decided a type. Therefore the cells of a column of text are converted. `choose` is a text for errors
    that explains how to choose columns.
    """

    unattended: bool
    d: int | None = None
    typed: bool = False
    choose: str = "columns={names}, or points[{names}] where a function has no columns="

    @classmethod
    def of(cls, nonfinite: str, d: int | None) -> Intake:
        """Check the arguments of a call."""
        if nonfinite not in NONFINITE:
            raise ValueError(f"nonfinite must be one of {', '.join(map(repr, NONFINITE))}, got {nonfinite!r}")
        if d is not None and (not isinstance(d, int) or isinstance(d, bool) or d < 1):
            raise ValueError(f"d must be None or an integer of at least 1, got {d!r}")
        return cls(nonfinite != "raise", d)

    def dimension(self, what: str) -> int | None:
        """Return the dimension that the caller stated, or None. In an unattended run a dimension that is not stated is
        an error, because the first record would decide it.
        """
        if self.d is None and self.unattended:
            raise ValueError(
                f"points: {what} have no public dimension, and in an unattended run no record may decide the "
                "dimension; pass an array or a frame with one column per coordinate, or state the dimension: plan(n, "
                "d, ...).run(points), or d=... for a file (--dimension)"
            )
        return self.d


def kind_of(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")


# Arrays.


def from_array(points: NDArray[Any], intake: Intake) -> Floats:
    """Read an array of any layout and type. If the type is not a real number, the array is refused or converted cell by
    cell.
    """
    if points.dtype.name == "bfloat16":  # JAX has this type, which numpy does not know. float32 holds all its values.
        points = points.astype(np.float32)
    kind = points.dtype.kind
    if kind == "O" and points.ndim == 1:
        return from_rows(_unmasked(points).tolist(), intake)
    if kind not in ("iufbcOUST" if intake.unattended else "iufO"):
        text = "; text has to be converted first, for example by points.astype(float)" if kind in "UST" else ""
        if points.dtype.names:
            text = "; a structured array has named columns: pass pandas.DataFrame(points)"
        raise TypeError(f"points must be numbers (integers or floats), got dtype {points.dtype}{text}")
    if points.ndim != 2:
        remedy = "; one column is points.reshape(-1, 1)" if points.ndim == 1 else ""
        # The number of records may be private, so the message does not contain it.
        shape = ", ".join(["n", *map(str, points.shape[1:])][: points.ndim]) + ("," if points.ndim == 1 else "")
        raise ValueError(f"points must have shape (n, d), got shape ({shape}){remedy}")
    if kind in "OUST":
        return from_rows(list(_unmasked(points)), replace(intake, d=points.shape[1]))
    # A double that overflows becomes infinite without a warning, because a warning would reveal something about a
    # record.
    with np.errstate(all="ignore"):
        if kind == "c":
            real = np.where(points.imag == 0.0, points.real, np.nan)
            points = np.ma.array(real, mask=np.ma.getmaskarray(points)) if np.ma.isMaskedArray(points) else real
        if np.ma.isMaskedArray(points):
            return np.ascontiguousarray(np.ma.filled(points.astype(np.float64), np.nan))
        return np.require(points, np.float32 if points.dtype == np.float32 else np.float64, ("C", "ALIGNED"))


def _unmasked(cells: NDArray[Any]) -> NDArray[Any]:
    """Return an array of objects, with None for masked cells."""
    plain = np.array(np.ma.getdata(cells), dtype=object)
    plain[np.ma.getmaskarray(cells)] = None
    return plain


# Rows and cells. Every cell is converted separately, so the result for a record does not depend on other records.


class _Refused(Exception):
    """An error about a row or a cell. It is shown to the curator only."""

    def __init__(self, error: type[Exception], what: str, column: int | None = None) -> None:
        super().__init__(what)
        self.error, self.column = error, column


def from_rows(rows: Sequence[Any], intake: Intake, what: str = "rows") -> NDArray[np.float64]:
    """Convert rows to records, one record for each row.

    A row that is not a record raises an error that names the row, or becomes NaN in an unattended run.
    """
    d = intake.dimension(what)
    if d is None:
        first, row = next(((i, row) for i, row in enumerate(rows) if row is not None), (0, None))
        if row is None:
            raise ValueError(
                f"points must have shape (n, d), but there are no {what} from which the dimension d could be read; "
                "pass d=..."
            )
        if not hasattr(row, "__len__"):
            raise TypeError(f"points must be rows of numbers, with shape (n, d), but points[{first}] is {kind_of(row)}")
        d = len(row)
    points = np.full((len(rows), d), np.nan)
    with np.errstate(all="ignore"):
        for i, row in enumerate(rows):
            try:
                points[i] = _row(row, d, intake.unattended)
            except _Refused as refused:
                if not intake.unattended:
                    place = f"points[{i}]" if refused.column is None else f"points[{i}, {refused.column}]"
                    named = isinstance(row, Mapping)
                    remedy = "pass pandas.DataFrame(points), with a column for each name" if named else HINT
                    message = f"points must be a rectangular (n, d) array of numbers, but {place} {refused}; {remedy}"
                    raise refused.error(message) from None
            except Exception:
                if not intake.unattended:
                    raise
    return points


def _row(row: Any, d: int, unattended: bool) -> Sequence[float] | NDArray[Any]:
    if row is None:
        return [math.nan] * d
    if isinstance(row, (str, bytes, Mapping, Set)) or not hasattr(row, "__len__"):
        raise _Refused(TypeError, f"is {kind_of(row)}")
    if len(row) != d:
        raise _Refused(ValueError, f"has {len(row)} cells instead of {d}")
    if hasattr(row, "__array__") and not np.ma.isMaskedArray(row):
        numeric: NDArray[Any] = np.asarray(row)
        if numeric.ndim != 1:
            raise _Refused(ValueError, f"has shape {numeric.shape} instead of ({d},)")
        if numeric.dtype.kind in "iuf":
            return numeric
    cells = list(row)
    if set(map(type, cells)) == {float}:
        return cells
    return [number(cell, unattended, column) for column, cell in enumerate(cells)]


def from_cells(cells: Sequence[Any], intake: Intake, column: int, name: str) -> NDArray[np.float64]:
    """Convert the cells of one column.

    A cell that is not a number raises an error that names the cell, or becomes NaN in an unattended run.
    """
    values = np.empty(len(cells))
    for i, cell in enumerate(cells):
        try:
            values[i] = number(cell, intake.unattended)
        except _Refused as refused:
            # The hint is given only if some cells are numbers, because otherwise all records would be replaced.
            some = any(isinstance(cell, numbers.Real) for cell in cells)
            raise refused.error(
                f"points must be numbers, but points[{i}, {column}] (row {i + 1}, column {name!r}) {refused}; choose "
                f"the columns with numbers, {intake.choose}{f', or {HINT}' if some else ''}"
            ) from None
    return values


def number(cell: Any, unattended: bool, column: int | None = None) -> float:
    """Convert a cell to a double: NaN if the cell is missing, and infinity if its number is too large.

    A cell that is not a number is refused. In an unattended run such a cell becomes NaN, except text that can be read
    as a number, which is converted.
    """
    try:
        if isinstance(cell, (numbers.Real, Decimal, np.bool_)):
            return float(cell)
        if cell is None or cell is np.ma.masked or type(cell).__name__ in ("NAType", "NaTType"):
            return math.nan
        if unattended and isinstance(cell, numbers.Complex):
            return float(cell.real) if cell.imag == 0.0 else math.nan
        if unattended and isinstance(cell, (str, bytes)):
            return read_number(cell if isinstance(cell, str) else cell.decode())
    except OverflowError:
        return math.inf
    except Exception:
        return math.nan
    if unattended:
        return math.nan
    raise _Refused(TypeError, f"is {kind_of(cell)}", column)


def read_number(text: str) -> float:
    """Return the double that a text of digits stands for.

    A text with underscores is not a number here, although Python allows underscores between digits.
    """
    if "_" in text:
        raise ValueError("a number must not contain an underscore")
    return float(text)
