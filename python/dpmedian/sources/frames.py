"""Records from pandas and polars frames and from Arrow, read column by column. Missing values become NaN."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmedian.sources.cells import Floats, Intake, from_cells, from_rows

__all__ = ["NamedColumns", "as_table", "from_frame"]

Numbers = NDArray[np.float64]
Dtype = type[np.float64] | type[np.float32]

# The number of rows that are reordered together. This many rows of a wide frame fit into the cache of the processor.
_BLOCK = 512


@dataclass(frozen=True)
class Column:
    """A column of a frame. Only the type of the column decides its `kind`. The type is public, like the name.

    `kind` is "numbers", "odd", "objects" (cells of any type), "lists" (of numbers), or "other" (such as dates). "odd"
    stands for text, booleans and complex numbers: a reader may give these types to a column of numbers if a single
    record is unusual.
    """

    name: str
    type: object
    kind: str
    numbers: Callable[[Dtype], Floats]
    cells: Callable[[], Sequence[Any]]
    # Only for columns of lists: the lengths of the lists (negative if a list is missing), and their numbers (NaN for
    # lists whose length is not d).
    lengths: Callable[[], NDArray[Any]] | None = None
    lists: Callable[[int], Numbers] | None = None
    # The length of all lists, if the type of the column determines it.
    width: int | None = None
    # Whether the numbers are float32. They stay float32 if all columns are float32.
    single: bool = False


@dataclass(frozen=True)
class Frame:
    """The columns of a frame, or the single column of a series. The column of a series must hold lists."""

    columns: Sequence[Column]
    n: int
    series: bool = False
    # A function that reads all columns at once. It is set if all columns are plain numbers and the library has such a
    # function.
    whole: Callable[[], Floats] | None = None


class NamedColumns:
    """The columns of a pandas or polars data frame or of an Arrow table, by name and by position."""

    def __init__(self, frame: Any, names: Sequence[Any]) -> None:
        self._frame = frame
        self.names = list(map(str, names))
        # In pandas, integers can be names of columns. If so, an integer means a name and not a column number.
        self.integer_names = any(isinstance(name, int) for name in names)

    @classmethod
    def of(cls, points: Any) -> NamedColumns | None:
        """Return the columns of a frame, or of an object with an Arrow stream of columns, and None for any other
        object.
        """
        points = as_table(points)
        for library, kinds in (
            ("pandas", ["DataFrame"]),
            ("polars", ["DataFrame"]),
            ("pyarrow", ["Table", "RecordBatch"]),
        ):
            module = sys.modules.get(library)
            if module is not None and any(isinstance(points, getattr(module, kind)) for kind in kinds):
                return cls(points, points.schema.names if library == "pyarrow" else list(points.columns))
        return None

    def place(self, name: str, argument: str) -> int:
        """Return the position of the column with this name. If there is not exactly one such column, raise an error
        that names `argument`.
        """
        if self.names.count(name) != 1:
            what = "occurs more than once" if name in self.names else "is not there"
            listed = ", ".join(map(repr, self.names))
            raise ValueError(f"{argument}={name!r}: this column {what}; the columns are {listed}")
        return self.names.index(name)

    def column(self, place: int) -> Any:
        """Return one column, in the type of the library."""
        if hasattr(self._frame, "iloc"):
            return self._frame.iloc[:, place]
        return self._frame.to_series(place) if hasattr(self._frame, "to_series") else self._frame.column(place)

    def select(self, places: Sequence[int]) -> Any:
        """Return a frame with some of the columns."""
        if list(places) == list(range(len(self.names))):
            return self._frame
        if hasattr(self._frame, "iloc"):
            return self._frame.iloc[:, list(places)]
        if hasattr(self._frame, "to_series"):
            return self._frame[:, list(places)]
        return self._frame.select(list(places))


def from_frame(points: Any, intake: Intake) -> tuple[Floats, tuple[str, ...]] | None:
    """Return the points and the column names of a frame of any loaded library, or None if `points` is not a frame."""
    points = as_table(points)
    for library, open_frame in (("pandas", _pandas), ("polars", _polars), ("pyarrow", _arrow)):
        module = sys.modules.get(library)
        frame = None if module is None else open_frame(module, points)
        if frame is not None:
            # A double that overflows becomes infinite without a warning, because a warning would reveal something about
            # a record.
            with np.errstate(all="ignore"):
                return _read(frame, intake)
    return None


def as_table(points: Any) -> Any:
    """Return an Arrow table if `points` has an Arrow stream and columns, such as a DuckDB relation.

    Other objects are returned unchanged.

    Some arrays have an Arrow stream, too, in which all numbers are in one column. Such arrays are returned unchanged.
    """
    if type(points).__module__.split(".")[0] in ("pandas", "polars") or not hasattr(points, "__arrow_c_stream__"):
        return points
    shape = getattr(points, "shape", None)
    stated = tuple(shape) if isinstance(shape, (tuple, list)) else ()
    if hasattr(points, "__array__") and stated and not (hasattr(points, "columns") or hasattr(points, "schema")):
        return points
    try:
        import pyarrow  # type: ignore[import-untyped, unused-ignore]
    except ImportError as error:
        raise ImportError("reading an Arrow stream needs pyarrow: pip install 'dpmedian[files]'") from error
    if isinstance(points, (pyarrow.Table, pyarrow.RecordBatch, pyarrow.ChunkedArray)):
        return points
    table = pyarrow.table(points)
    if len(stated) == 2 and stated != table.shape:
        raise ValueError(
            "points must have one row for each record, but the Arrow stream of points has another number of rows or "
            "columns than points.shape says; pass an array, numpy.asarray(points)"
        )
    return table


def _read(frame: Frame, intake: Intake) -> tuple[Floats, tuple[str, ...]]:
    if len(frame.columns) == 1 and _holds_lists(frame.columns[0], frame.series, intake):
        lists = _read_lists(frame.columns[0], intake)
        return lists, tuple(f"{frame.columns[0].name}[{i}]" for i in range(lists.shape[1]))
    if frame.series:
        kind = frame.columns[0].type
        raise ValueError(f"points must have shape (n, d), got a series of type {kind}; make it a frame of one column")
    names = tuple(column.name for column in frame.columns)
    if frame.whole is not None:
        return np.ascontiguousarray(frame.whole()), names
    numeric = [column.name for column in frame.columns if column.kind == "numbers"]
    intake = replace(intake, choose=intake.choose.replace("{names}", _some(numeric or ["x", "y"])))
    dtype: Dtype = np.float32 if frame.columns and all(column.single for column in frame.columns) else np.float64
    columns = [_read_numbers(column, i, intake, dtype) for i, column in enumerate(frame.columns)]
    points: Floats = np.empty((frame.n, len(columns)), dtype)
    for start in range(0, frame.n, _BLOCK):
        points[start : start + _BLOCK] = np.array([column[start : start + _BLOCK] for column in columns]).T
    return points, names


def _some(names: Sequence[str]) -> str:
    """Return a list of names for a message. If there are more than four names, only the first three are in the list."""
    return repr(list(names)) if len(names) <= 4 else f"[{', '.join(map(repr, names[:3]))}, ...]"


def _holds_lists(column: Column, series: bool, intake: Intake) -> bool:
    """Return whether the column holds lists, according to its type.

    The type of a column of objects does not show this. For such a column the first cell decides, or in an unattended
    run the caller's `d`.
    """
    if column.kind != "objects":
        return column.kind == "lists"
    if intake.unattended:
        return series or intake.d not in (None, 1)
    return isinstance(next((cell for cell in column.cells() if cell is not None), None), (list, tuple, np.ndarray))


def _read_lists(column: Column, intake: Intake) -> Numbers:
    what = f"the lists of column {column.name!r}"
    if column.lists is None or column.lengths is None:
        return from_rows(column.cells(), intake, what)
    d = column.width if column.width is not None else intake.dimension(what)
    if not intake.unattended:
        lengths = column.lengths()
        there = lengths >= 0
        d = int(lengths[there][0]) if d is None and there.any() else d
        wrong = np.flatnonzero(there & (lengths != d))
        if len(wrong):
            row = wrong[0]
            raise ValueError(
                f"points: {what} must have one length, but row {row + 1} has {lengths[row]} numbers instead of {d}; "
                "correct it, or let nonfinite='center' replace such records by the center"
            )
    if not d:
        raise ValueError(f"points: {what} are empty, so there is no dimension; choose a column with numbers")
    return column.lists(d)


def _read_numbers(column: Column, place: int, intake: Intake, dtype: Dtype) -> Floats:
    if column.kind == "numbers":
        return column.numbers(dtype)
    if column.kind == "objects" or (column.kind == "odd" and intake.unattended and not intake.typed):
        return from_cells(column.cells(), intake, place, column.name)
    if column.kind == "lists":
        raise TypeError(
            f"points: column {column.name!r} holds lists ({column.type}), and each list would be a point; choose this "
            "column alone, or only columns with numbers"
        )
    raise TypeError(
        f"points: column {column.name!r} has type {column.type}, which is not a number; choose the columns with "
        f"numbers, {intake.choose}"
    )


# Reading pandas.


def _pandas(pandas: Any, points: Any) -> Frame | None:
    if isinstance(points, pandas.Series):
        return Frame([_of_pandas(pandas, points)], len(points), series=True)
    if isinstance(points, pandas.DataFrame):
        plain = all(isinstance(dtype, np.dtype) and dtype.kind in "iuf" for dtype in points.dtypes)
        dtype = np.float32 if all(dtype == np.float32 for dtype in points.dtypes) else np.float64
        whole = (lambda: points.to_numpy(dtype=dtype)) if plain and points.shape[1] else None
        columns = [_of_pandas(pandas, points.iloc[:, i]) for i in range(points.shape[1])]
        return Frame(columns, len(points), whole=whole)
    return None


def _of_pandas(pandas: Any, series: Any) -> Column:
    dtype, name = series.dtype, "list" if series.name is None else str(series.name)
    if isinstance(dtype, getattr(pandas, "ArrowDtype", ())) or getattr(dtype, "storage", None) == "pyarrow":
        import pyarrow  # type: ignore[import-untyped, unused-ignore]

        values = pyarrow.array(series.array)
        return _of_arrow(pyarrow, name, pyarrow.chunked_array([values]) if hasattr(values, "buffers") else values)
    kind = "odd" if isinstance(dtype, pandas.StringDtype) else _KINDS.get(dtype.kind, "other")
    missing = {} if isinstance(dtype, np.dtype) else {"na_value": np.nan}
    return Column(
        name,
        dtype,
        kind,
        lambda dtype: series.to_numpy(dtype=dtype, **missing),
        lambda: series.astype(object).tolist(),
        single=str(dtype).lower() == "float32",
    )


# The kind of a column for each of numpy's letters for types. pandas uses the same letters.
_KINDS = {**dict.fromkeys("iuf", "numbers"), **dict.fromkeys("bcUS", "odd"), "O": "objects"}


# Reading polars.


def _polars(polars: Any, points: Any) -> Frame | None:
    if isinstance(points, polars.LazyFrame):
        raise TypeError("points must be in memory, got a polars LazyFrame: call .collect() on it first")
    if isinstance(points, polars.Series):
        return Frame([_of_polars(polars, points)], len(points), series=True)
    if isinstance(points, polars.DataFrame):
        return Frame([_of_polars(polars, series) for series in points.get_columns()], points.height)
    return None


def _of_polars(polars: Any, series: Any) -> Column:
    dtype, name = series.dtype, series.name or "list"
    width = dtype.size if dtype == polars.Array else None
    if dtype in (polars.Array, polars.List) and _polars_kind(polars, dtype.inner) == "numbers":
        rows = series if width is None else series.arr.to_list()

        def lists(d: int) -> Numbers:
            good = (rows.list.len() == d).fill_null(False)
            flat = rows.filter(good).explode().cast(polars.Float64, strict=False)
            return _spread(good.to_numpy(), flat.to_numpy(), d)

        def lengths() -> NDArray[Any]:
            return np.asarray(rows.list.len().cast(polars.Int64).fill_null(-1).to_numpy())

        return Column(name, dtype, "lists", _nothing, series.to_list, lengths, lists, width)
    kind = _polars_kind(polars, dtype)
    types = {np.float64: polars.Float64, np.float32: polars.Float32}
    return Column(
        name,
        dtype,
        kind,
        lambda dtype: series.cast(types[dtype], strict=False).to_numpy(),
        series.to_list,
        single=dtype == polars.Float32,
    )


def _polars_kind(polars: Any, dtype: Any) -> str:
    if dtype.is_numeric() or dtype == polars.Null:
        return "numbers"
    if dtype in (polars.Boolean, polars.String, polars.Categorical, polars.Enum):
        return "odd"
    return "objects" if dtype == polars.Object else "other"


# Reading Arrow.


def _arrow(arrow: Any, points: Any) -> Frame | None:
    if isinstance(points, (arrow.Array, arrow.ChunkedArray)):
        values = arrow.chunked_array([points]) if isinstance(points, arrow.Array) else points
        return Frame([_of_arrow(arrow, "list", values)], len(values), series=True)
    if isinstance(points, arrow.RecordBatch):
        points = arrow.Table.from_batches([points])
    if not isinstance(points, arrow.Table):
        return None
    columns = [_of_arrow(arrow, str(name), points.column(i)) for i, name in enumerate(points.schema.names)]
    return Frame(columns, points.num_rows)


def _of_arrow(arrow: Any, name: str, values: Any) -> Column:
    kind = values.type
    if arrow.types.is_dictionary(kind):
        return _of_arrow(arrow, name, values.cast(kind.value_type))
    fixed = arrow.types.is_fixed_size_list(kind)
    if fixed or arrow.types.is_list(kind) or arrow.types.is_large_list(kind):
        import pyarrow.compute as compute  # type: ignore[import-untyped, unused-ignore]

        def lengths() -> NDArray[Any]:
            found = compute.if_else(compute.is_valid(values), compute.list_value_length(values), -1)
            return np.asarray(compute.fill_null(found, -1))

        def lists(d: int) -> Numbers:
            good = lengths() == d
            flat = compute.list_flatten(values.filter(arrow.array(good)))
            return _spread(good, flat.cast(arrow.float64(), safe=False).to_numpy(), d)

        width = kind.list_size if fixed else None
        found = "lists" if _arrow_kind(arrow, kind.value_type) == "numbers" else "other"
        return Column(name, kind, found, _nothing, values.to_pylist, lengths, lists, width)

    def numbers(dtype: Dtype) -> Floats:
        return np.asarray(values.cast(arrow.from_numpy_dtype(dtype), safe=False).to_numpy(), dtype=dtype)

    def cells() -> Sequence[Any]:
        # Text is read as bytes, because it may not be valid UTF-8.
        raw = values.cast(arrow.large_binary()) if _is_text(arrow, kind) else values
        return raw.to_pylist()  # type: ignore[no-any-return]

    return Column(name, kind, _arrow_kind(arrow, kind), numbers, cells, single=arrow.types.is_float32(kind))


def _is_text(arrow: Any, kind: Any) -> bool:
    return arrow.types.is_string(kind) or arrow.types.is_large_string(kind) or str(kind) == "string_view"


def _arrow_kind(arrow: Any, kind: Any) -> str:
    types = arrow.types
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_null(kind):
        return "numbers"
    return "odd" if _is_text(arrow, kind) or types.is_boolean(kind) else "other"


def _spread(good: NDArray[Any], flat: NDArray[Any], d: int) -> Numbers:
    points = np.full((len(good), d), np.nan)
    points[good] = flat.reshape(-1, d)
    return points


def _nothing(dtype: Dtype) -> Floats:
    return np.empty(0, dtype)
