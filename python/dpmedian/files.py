"""Points from files: CSV, Parquet, NPY and NPZ.

Whatever is not a finite number is named with its row and column while nothing has been spent yet. Rows are counted from
1, without the header. These errors are for the holder of the data: they say that such a record exists.
"""

from __future__ import annotations

import csv
import os
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Table", "read_points"]

# What spreadsheets and data frames write for a missing value.
_MISSING = {"", "na", "n/a", "nan", "null", "none"}


@dataclass(frozen=True, eq=False)
class Table:
    """Points with the names of their columns; it passes for a data frame wherever points are expected."""

    points: NDArray[np.float64]
    columns: tuple[str, ...]

    def to_numpy(self) -> NDArray[np.float64]:
        return self.points

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[np.float64]:
        return np.array(self.points, dtype=dtype, copy=bool(copy) or None)


def read_points(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    header: bool | None = None,
    name: str | None = None,
    nonfinite: str = "raise",
) -> Table:
    """Reads points, one per row, from a .csv, .tsv, .parquet, .npy or .npz file.

    `columns` selects by name or, where there are no names, by number from 1. `header` says whether a CSV file has a
    header; by default its first row decides. `name` picks an array of an NPZ file. With `nonfinite="center"` missing
    values become NaN, for a run that replaces their records; text is an error in any case.
    """
    file = Path(path)
    kind = file.suffix.lower()
    if kind not in _READERS:
        raise ValueError(f"cannot tell the format of {file.name!r}: the name must end in {', '.join(_READERS)}")
    if not file.exists():
        raise FileNotFoundError(f"there is no file {str(file)!r}")
    table = _READERS[kind](file, columns, header, name)
    if nonfinite == "raise":
        _require_finite(table)
    return table


def _require_finite(table: Table) -> None:
    finite = np.isfinite(table.points)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        what = "missing" if np.isnan(table.points[row, column]) else "infinite"
        raise ValueError(
            f"row {row + 1}, column {table.columns[column]!r}: the value is {what}; drop such rows, or replace their "
            "records by the center with nonfinite='center' (--nonfinite center)"
        )


def _select(names: Sequence[str], wanted: Sequence[str] | None) -> list[int]:
    """The positions of the wanted columns, by default of all; every name must be there exactly once."""
    chosen = list(names if wanted is None else wanted)
    for name in chosen:
        found = list(names).count(name)
        if found != 1 or chosen.count(name) != 1:
            problem = "is not there" if found == 0 else "is there twice" if found > 1 else "was asked for twice"
            raise ValueError(f"column {name!r} {problem}; the columns are {', '.join(map(repr, names))}")
    return [list(names).index(name) for name in chosen]


def _numbered(count: int) -> list[str]:
    return [str(i + 1) for i in range(count)]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _has_header(first: Sequence[str]) -> bool:
    """A first row of text is a header, one of numbers only is data, and any other is for the user to say."""
    numbers = sum(_is_number(cell) for cell in first)
    if 0 < numbers < len(first) or any(cell.strip().lower() in _MISSING for cell in first):
        raise ValueError(
            "the first row is neither all names nor all numbers: say whether it is a header, header=True or False "
            "(--header or --no-header)"
        )
    return numbers == 0


def _read_csv(file: Path, columns: Sequence[str] | None, header: bool | None, name: str | None) -> Table:
    values = array("d")
    with open(file, newline="", encoding="utf-8-sig") as stream:
        rows = csv.reader(stream, delimiter="\t" if file.suffix.lower() == ".tsv" else ",")
        # Without a header the first line is a record, also where it is blank: a missing value of a single column.
        first = next(rows, None) if header is False else next((row for row in rows if row), None)
        if first is None:
            raise ValueError(f"{file.name!r} is empty")
        first = first or [""]
        named = _has_header(first) if header is None else header
        names = [cell.strip() for cell in first] if named else _numbered(len(first))
        chosen = _select(names, columns)
        row, count = (next(rows, None), 0) if named else (first, 0)
        while row is not None:
            # A blank line is not a record, but in a file of one column it is a missing value.
            if row or len(names) == 1:
                row = row or [""]
                count += 1
                if len(row) != len(names):
                    raise ValueError(f"row {count} (line {rows.line_num}) has {len(row)} cells instead of {len(names)}")
                values.extend(_cell(row[i], count, rows.line_num, names[i]) for i in chosen)
            row = next(rows, None)
    points = np.frombuffer(values, dtype=np.float64) if values else np.empty(0)
    return Table(points.reshape(count, len(chosen)), tuple(names[i] for i in chosen))


def _cell(cell: str, row: int, line: int, name: str) -> float:
    try:
        return float(cell)
    except ValueError:
        if cell.strip().lower() in _MISSING:
            return np.nan
        raise ValueError(
            f"row {row} (line {line}), column {name!r}: {cell!r} is not a number; choose the columns with numbers, "
            "columns=[...] (--columns)"
        ) from None


def _read_parquet(file: Path, columns: Sequence[str] | None, header: bool | None, name: str | None) -> Table:
    try:
        import pyarrow as arrow  # type: ignore[import-untyped, unused-ignore]
        import pyarrow.parquet as parquet  # type: ignore[import-untyped, unused-ignore]
    except ImportError as error:
        raise ImportError("reading Parquet needs pyarrow: pip install 'dpmedian[files]'") from error
    schema = parquet.read_schema(file)
    chosen = [schema.names[i] for i in _select(schema.names, columns)]
    for column in chosen:
        kind = schema.field(column).type
        if not (arrow.types.is_integer(kind) or arrow.types.is_floating(kind)):
            raise ValueError(
                f"row 1, column {column!r}: values of type {kind} are not numbers; choose the columns with numbers, "
                "columns=[...] (--columns)"
            )
    table = parquet.read_table(file, columns=chosen)
    points = np.empty((table.num_rows, len(chosen)))
    for i, column in enumerate(chosen):
        points[:, i] = table.column(column).to_numpy()  # Nulls become NaN.
    return Table(points, tuple(chosen))


def _read_numpy(file: Path, columns: Sequence[str] | None, header: bool | None, name: str | None) -> Table:
    loaded: Any = np.load(file, allow_pickle=False)
    if file.suffix.lower() == ".npz":
        with loaded as arrays:
            if name is None and len(arrays.files) != 1:
                raise ValueError(f"{file.name!r} holds the arrays {arrays.files}: choose one, name=... (--array)")
            if name is not None and name not in arrays.files:
                raise ValueError(f"{file.name!r} holds no array {name!r}, only {arrays.files}")
            loaded = arrays[name or arrays.files[0]]
    if loaded.dtype.kind not in "iuf":
        raise ValueError(f"{file.name!r} holds values of type {loaded.dtype}, which are not numbers")
    if loaded.ndim != 2:
        raise ValueError(f"{file.name!r} holds an array of shape {loaded.shape}: the points must have shape (n, d)")
    names = _numbered(loaded.shape[1])
    chosen = _select(names, columns)
    return Table(np.ascontiguousarray(loaded[:, chosen], dtype=np.float64), tuple(names[i] for i in chosen))


_READERS = {
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".parquet": _read_parquet,
    ".npy": _read_numpy,
    ".npz": _read_numpy,
}
