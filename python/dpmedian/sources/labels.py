"""Conversion of ids and labels of rows to integers or bytes, which can be compared exactly.

Two labels are equal if they have the same characters as text. So the integer 7, the double 7.0 and the text "7" are the
same label. This is necessary because many readers turn a column of integers into doubles if a value is missing. Labels
are compared in full and not by a hash, because a collision of hashes would merge two units. A label is missing if its
cell is empty, or if the content of the cell is not text and not a whole number. Each cell is read separately, and the
content of a cell never raises an error.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from numbers import Complex, Integral
from typing import Any, TypeAlias
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from dpmedian import _core
from dpmedian.sources.frames import NamedColumns
from dpmedian.sources.records import Records

__all__ = ["Labels", "as_labels", "take_column"]

# Decimals and fractions below this bound are read as ids. The largest decimal integers of databases have 38 digits and
# are below this bound.
_WHOLE_EXACT = 2**127

Coded: TypeAlias = "NDArray[np.int64] | tuple[NDArray[np.uint8], NDArray[np.int64]]"


@dataclass(frozen=True, eq=False)
class Labels:
    """One label for each row. `values` holds integers, or a pair: the bytes of all texts, one text after the other, and
    the position at which each text ends.

    `name` is the name of the column.
    """

    values: Coded
    missing: NDArray[np.bool_]
    name: str | None = None

    def __len__(self) -> int:
        return len(self.missing)

    def __repr__(self) -> str:
        """Show the type of the labels and the name of the column only, because ids must not appear in a log."""
        return f"Labels({'integers' if isinstance(self.values, np.ndarray) else 'text'}, name={self.name!r})"

    @property
    def first_missing(self) -> int | None:
        """The first row without a label, or None if every row has a label."""
        found = np.flatnonzero(self.missing)
        return int(found[0]) if len(found) else None

    def listed(self) -> list[Any]:
        """Return the labels as a list of numbers or bytes. Entries of missing labels have no meaning."""
        if isinstance(self.values, np.ndarray):
            return list(self.values.tolist())
        whole, ends = self.values[0].tobytes(), self.values[1].tolist()
        return [whole[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)] if ends else []

    def as_text(self) -> Labels:
        """Return the same labels, as text."""
        return replace(self, values=_text_of(self.values))

    def chosen(self, rows: NDArray[np.bool_]) -> Labels:
        """Return the labels of some rows, in the order of the rows."""
        if isinstance(self.values, np.ndarray):
            return replace(self, values=self.values[rows], missing=self.missing[rows])
        texts = self.listed()
        return replace(self, values=_joined([texts[i] for i in np.flatnonzero(rows)]), missing=self.missing[rows])

    @classmethod
    def joined(cls, parts: Sequence[Labels]) -> Labels:
        """Return the labels of all parts, one part after the other. They are integers if the labels of all parts are
        integers.
        """
        missing = np.concatenate([part.missing for part in parts])
        integers = [part.values for part in parts if isinstance(part.values, np.ndarray)]
        if len(integers) == len(parts):
            return cls(np.concatenate(integers), missing, parts[0].name)
        return cls(_joined([text for part in parts for text in part.as_text().listed()]), missing, parts[0].name)

    def ranks(self) -> tuple[NDArray[np.int64], int]:
        """Return the rank of each label among the different labels (-1 for a missing label), and the number of
        different labels.
        """
        return _core.label_ranks(self.values, self.missing)

    def places(self, keys: Labels) -> NDArray[np.int64]:
        """Return the position of each label among the keys, or -1 if the label is not a key. The keys must differ."""
        if isinstance(self.values, np.ndarray) and isinstance(keys.values, np.ndarray):
            return _core.label_places(self.values, keys.values, self.missing)
        return _core.label_places(_text_of(self.values), _text_of(keys.values), self.missing)


def as_labels(column: Any, argument: str) -> Labels:
    """Convert a column to labels. The column is an array, a list, a series, an Arrow array or a frame of one column.

    `argument` is the name of the column in errors.
    """
    if isinstance(column, Labels):
        return column
    if isinstance(column, (str, bytes, Mapping, Set)) or column is None:
        raise TypeError(f"{argument} must be one label for each row, or the name of a column, got {column!r}")
    frame = NamedColumns.of(column)
    if frame is not None:
        if len(frame.names) != 1:
            raise ValueError(f"{argument} must be one column of labels, got a frame of {len(frame.names)} columns")
        return replace(as_labels(frame.column(0), argument), name=frame.names[0])
    for library, read in (("pandas", _from_pandas), ("polars", _from_polars), ("pyarrow", _from_arrow)):
        module = sys.modules.get(library)
        found = None if module is None else read(module, column, argument)
        if found is not None:
            return found
    if isinstance(column, Sequence) and not isinstance(column, memoryview):
        return _from_cells(list(column))
    return _from_array(np.asanyarray(column), argument)


def take_column(rows: Records, name: str, argument: str) -> Labels:
    """Return the labels in a column that is not a coordinate."""
    if name in rows.labels:
        return rows.labels[name]
    if name in (rows.columns or ()):
        raise ValueError(f"{argument}={name!r} is one of the coordinates: choose the coordinates with columns=[...]")
    if rows.columns is None and not rows.labels:
        raise TypeError(
            f"{argument}={name!r} names a column, but the points have no named columns; pass a frame, or the labels "
            f"themselves, {argument}=[...], one for each row"
        )
    there = ", ".join(map(repr, rows.labels)) or "none"
    raise ValueError(f"{argument}={name!r}: the columns that are not coordinates are {there}")


# Columns of the libraries. A type that cannot hold labels is refused. The type is public, like the name of the column.


def _from_pandas(pandas: Any, column: Any, argument: str) -> Labels | None:
    if isinstance(column, (pandas.Index, pandas.api.extensions.ExtensionArray)):
        column = pandas.Series(column)
    if not isinstance(column, pandas.Series):
        return None
    name = None if column.name is None else str(column.name)
    if isinstance(column.dtype, np.dtype):
        return replace(_from_array(column.to_numpy(), argument), name=name)
    kind = column.dtype.kind
    if kind in "iu":
        missing = column.isna().to_numpy(dtype=bool)
        values = column.to_numpy(dtype=np.uint64 if kind == "u" else np.int64, na_value=0)
        return _from_integers(values, missing, name)
    if kind in "mM" or (kind == "O" and not _holds_text(pandas, column.dtype)):
        raise TypeError(_refusal(argument, column.dtype))
    if kind == "f":
        missing = column.isna().to_numpy(dtype=bool)
        width = np.dtype(f"f{column.dtype.itemsize}")
        return replace(_from_floats(column.to_numpy(dtype=width, na_value=np.nan), missing), name=name)
    return replace(_from_cells(column.astype(object).tolist()), name=name)


def _holds_text(pandas: Any, dtype: Any) -> bool:
    if isinstance(dtype, pandas.CategoricalDtype):
        return dtype.categories.dtype.kind in "OUSiufb" or _holds_text(pandas, dtype.categories.dtype)
    return isinstance(dtype, pandas.StringDtype) or str(dtype) in ("string[pyarrow]", "large_string[pyarrow]")


def _from_polars(polars: Any, column: Any, argument: str) -> Labels | None:
    if not isinstance(column, polars.Series):
        return None
    dtype, missing = column.dtype, column.is_null().to_numpy()
    if dtype.is_integer() and dtype not in (getattr(polars, "Int128", None), getattr(polars, "UInt128", None)):
        wide = polars.UInt64 if dtype.is_unsigned_integer() else polars.Int64
        return _from_integers(column.fill_null(0).cast(wide).to_numpy(), missing, column.name or None)
    if dtype.is_float():
        return replace(_from_floats(column.fill_null(float("nan")).to_numpy(), missing), name=column.name or None)
    if dtype.is_numeric() or dtype in (polars.Boolean, polars.String, polars.Categorical, polars.Enum, polars.Binary):
        return replace(_from_cells(column.to_list()), name=column.name or None)
    if dtype in (polars.Object, polars.Null):
        return replace(_from_cells(column.to_list()), name=column.name or None)
    raise TypeError(_refusal(argument, dtype))


def _from_arrow(arrow: Any, column: Any, argument: str) -> Labels | None:
    if isinstance(column, arrow.Array):
        column = arrow.chunked_array([column])
    if not isinstance(column, arrow.ChunkedArray):
        return None
    kind, types = column.type, arrow.types
    if types.is_dictionary(kind):
        return _from_arrow(arrow, column.cast(kind.value_type), argument)
    if types.is_integer(kind):
        wide = arrow.uint64() if types.is_unsigned_integer(kind) else arrow.int64()
        return _from_integers(column.fill_null(0).cast(wide).to_numpy(), np.asarray(column.is_null(), dtype=bool))
    if str(kind) in ("string", "large_string", "string_view", "binary", "large_binary", "binary_view"):
        # The text is read as bytes, because it may not be valid UTF-8.
        return _from_cells(column.cast(arrow.large_binary()).to_pylist())
    if types.is_floating(kind):
        missing = np.asarray(column.is_null(), dtype=bool)
        return _from_floats(np.asarray(column.to_numpy(), dtype=kind.to_pandas_dtype()), missing)
    if types.is_boolean(kind) or types.is_null(kind) or types.is_decimal(kind):
        return _from_cells(column.to_pylist())
    raise TypeError(_refusal(argument, kind))


def _refusal(argument: str, kind: object) -> str:
    return (
        f"{argument} must be integers or text, got a column of type {kind}; convert it to text first, for "
        "example dates to months with .dt.strftime('%Y-%m')"
    )


def _from_integers(values: NDArray[Any], missing: NDArray[np.bool_], name: str | None = None) -> Labels:
    if values.dtype == np.uint64 and len(values) and values.max() >= 2**63:
        labels = _from_cells(values.tolist())
        return replace(labels, missing=missing, name=name)
    return Labels(np.ascontiguousarray(values, dtype=np.int64), np.array(missing), name)


def _from_floats(values: NDArray[Any], missing: NDArray[np.bool_]) -> Labels:
    """Convert floats to labels. A float is a label if it is a whole number below the bound of its type. Other floats
    count as missing labels.
    """
    with np.errstate(all="ignore"):
        there = ~missing & (np.abs(values) < _whole_bound(values.dtype.type)) & (values == np.trunc(values))
        return Labels(np.where(there, values, 0).astype(np.int64), ~there)


def _whole_bound(kind: type) -> int:
    """Return the bound below which this type of float represents every integer exactly. A larger float may stand for
    several ids.
    """
    digits = np.finfo(kind).nmant + 1 if issubclass(kind, np.floating) else 53
    return int(2 ** min(digits, 53))


def _from_array(column: NDArray[Any], argument: str) -> Labels:
    if column.ndim != 1:
        raise ValueError(f"{argument} must be one label for each row, got an array with {column.ndim} dimensions")
    kind = column.dtype.kind
    masked = np.ma.getmaskarray(column) if np.ma.isMaskedArray(column) else np.zeros(len(column), dtype=bool)
    plain = np.ma.getdata(column)
    if kind in "iu":
        return _from_integers(plain, masked)
    if kind == "c":
        # Some readers turn a column of integers into complex numbers because of a single unusual row.
        plain, kind = np.where(plain.imag == 0.0, plain.real, np.nan), "f"
    if kind == "f":
        return _from_floats(plain, masked)
    if kind not in "OUSTb":
        raise TypeError(_refusal(argument, column.dtype))
    cells = plain.tolist()
    for row in np.flatnonzero(masked):
        cells[row] = None
    return _from_cells(cells)


# Cells. Each cell is read separately.


def _from_cells(cells: Sequence[Any]) -> Labels:
    if set(map(type, cells)) == {int}:
        try:
            return Labels(np.array(cells, dtype=np.int64), np.zeros(len(cells), dtype=bool))
        except OverflowError:
            pass
    texts = [_text(cell) for cell in cells]
    missing = np.fromiter((text is None for text in texts), dtype=bool, count=len(texts))
    return Labels(_joined([text or b"" for text in texts]), missing)


def _joined(texts: Sequence[bytes]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    ends = np.cumsum(np.fromiter(map(len, texts), dtype=np.int64, count=len(texts)), dtype=np.int64)
    return np.frombuffer(b"".join(texts), dtype=np.uint8), ends


def _text(cell: Any) -> bytes | None:
    """Return the text of the label in a cell, or None if the cell has no label."""
    try:
        if isinstance(cell, str):
            return str.encode(cell, "utf-8", "surrogatepass") or None
        if isinstance(cell, bytes):
            return bytes(cell) or None
        if isinstance(cell, (bool, np.bool_, Integral)):
            return str(bool(cell) if isinstance(cell, (bool, np.bool_)) else int(cell)).encode()
        if isinstance(cell, (Complex, Decimal)):
            return _whole(cell.real) if cell.imag == 0 else None
        return str(cell).encode() if type(cell) is UUID else None
    except Exception:
        # Reading a cell may run code of the type of the cell, which may raise any error.
        return None


def _whole(value: Any) -> bytes | None:
    """Return the digits of a whole number, or None for other numbers.

    The number is compared with its integer part without conversion to a double, because as doubles 7 and
    7.00000000000000000001 would be equal.
    """
    most = _WHOLE_EXACT if isinstance(value, (Decimal, Fraction)) else _whole_bound(type(value))
    if not -most < value < most:
        return None
    digits = int(value)
    return str(digits).encode() if value == digits else None


def _text_of(values: Coded) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    return values if isinstance(values, tuple) else _joined([b"%d" % value for value in values.tolist()])
