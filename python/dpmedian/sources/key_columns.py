"""The keys of groups. A key is a label of one column, or a tuple of the labels of several columns.

The labels of a row in several columns are joined to one label. In each text, a byte 1 is inserted after every zero
byte, and two zero bytes are added at the end; then the texts are concatenated. Different tuples of texts have different
joined labels, and the joined labels have the same order as the tuples.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmedian.accounting.arguments import require_encodable
from dpmedian.sources.file import is_path
from dpmedian.sources.frames import NamedColumns
from dpmedian.sources.labels import Labels, as_labels, take_column
from dpmedian.sources.records import Records

__all__ = [
    "canonical",
    "group_keys",
    "key_labels",
    "key_names",
    "key_of",
    "key_parts",
    "key_text",
    "named_columns",
    "take_keys",
    "width_of",
]

# The largest number of key columns. With more columns hardly any group would have records. A list of more texts is read
# as one label for each row.
_MOST_COLUMNS = 8

# A label with more digits is sorted as text, because such a number does not fit a column of integers.
_MOST_DIGITS = 19

_END, _ZERO, _ESCAPED = b"\0\0", b"\0", b"\0\1"


def group_keys(keys: Any) -> tuple[Hashable, ...]:
    """Check the public names of the groups: labels, or tuples with a label for each of several key columns."""
    if keys is None or isinstance(keys, (str, bytes, Mapping)) or not isinstance(keys, Iterable):
        raise TypeError(
            f"keys must be a list of the names of the groups, got {keys!r}. The names must be public, so do not take "
            "them from the data"
        )
    found = tuple(_plain_key(key) for key in keys)
    if not found:
        raise ValueError("keys must name at least one group")
    for key in found:
        require_encodable("a key", key_text(key))
    labels = key_labels(found)
    if labels.first_missing is not None:
        raise ValueError(f"a key must be an integer or text that is not empty, got {found[labels.first_missing]!r}")
    places, count = labels.ranks()
    if count < len(found):
        first = next(i for i in range(len(found)) if places[i] in places[:i])
        raise ValueError(f"keys must differ: {found[first]!r} occurs twice")
    # The results are a dict by key. In a dict 1 and True are the same key, although their labels differ.
    if len(set(found)) < len(found):
        again = next(found[i] for i in range(len(found)) if found[i] in found[:i])
        equal = found[found.index(again)]
        raise ValueError(f"keys must differ: {again!r} is equal to {equal!r} in Python, so use text for both")
    return found


def _plain_key(key: Any) -> Hashable:
    if isinstance(key, (tuple, list)):
        return tuple(part.item() if isinstance(part, np.generic) else part for part in key)
    plain: Hashable = key.item() if isinstance(key, np.generic) else key
    return plain


def width_of(keys: Sequence[Hashable]) -> int:
    """Return the number of key columns: 1 if the keys are labels, and otherwise the length of the tuples."""
    widths = {len(key) if isinstance(key, tuple) else 1 for key in keys}
    tuples = {isinstance(key, tuple) for key in keys}
    if len(widths) > 1 or len(tuples) > 1 or (tuples == {True} and widths == {1}):
        raise ValueError(
            "keys must be labels, or tuples with one label for each of two or more key columns; these keys have "
            f"{' and '.join(map(str, sorted(widths)))} parts"
        )
    (width,) = widths
    return width


def key_labels(keys: Sequence[Hashable]) -> Labels:
    """Return the keys as labels, for comparison with the labels of rows."""
    if width_of(keys) == 1:
        return as_labels(list(keys), "keys")
    columns = zip(*(key for key in keys if isinstance(key, tuple)), strict=True)
    return _joined([as_labels(list(column), "keys") for column in columns])


def key_parts(key: Hashable) -> tuple[Hashable, ...]:
    """Return the labels of a key: one label for each key column."""
    return key if isinstance(key, tuple) else (key,)


def key_text(key: Hashable) -> str:
    """Return a key as text: "north", or "north, 2026-01"."""
    return ", ".join(map(str, key_parts(key)))


def key_of(label: bytes, width: int) -> Hashable:
    """Return the key for a label from the data: a text, or a tuple of texts. The label must be valid UTF-8."""
    if width == 1:
        return label.decode()
    return tuple(part.replace(_ESCAPED, _ZERO).decode() for part in label.split(_END)[:width])


def canonical(key: Hashable) -> tuple[tuple[int, int, str], ...]:
    """Return the sort key of a group's key. Whole numbers come first and are sorted by value; texts follow and are
    sorted by their characters.

    The sort key is a function of the group's key alone, so the order of the released groups reveals nothing more than
    the keys.
    """
    return tuple(_sorted_by(str(part)) for part in key_parts(key))


def _sorted_by(text: str) -> tuple[int, int, str]:
    number = text.removeprefix("-")
    whole = number.isascii() and number.isdigit() and len(number) <= _MOST_DIGITS
    return (0, int(text), text) if whole else (1, 0, text)


def key_names(by: Sequence[str | None]) -> tuple[str, ...]:
    """Return the names of the key columns for tables.

    A column without a name is called "key", or if there are several columns "key_1", "key_2", ...
    """
    if len(by) == 1:
        return (by[0] or "key",)
    return tuple(name or f"key_{place + 1}" for place, name in enumerate(by))


def named_columns(points: Any, by: Any) -> tuple[str, ...] | None:
    """Return the names of the key columns if `by` names columns of the points, and None if `by` holds the labels.

    A list of at most eight texts is a list of column names if the points have named columns, or if they are files or
    batches.
    """
    if isinstance(by, str):
        return (by,)
    if not isinstance(by, (list, tuple)) or not 1 <= len(by) <= _MOST_COLUMNS:
        return None
    if not all(isinstance(name, str) for name in by):
        return None
    framed = (
        is_path(points)
        or isinstance(points, Iterator)
        or any(getattr(points, attribute, None) is not None for attribute in ("columns", "schema", "column_names"))
    )
    if framed and len(set(by)) < len(by):
        raise ValueError(f"by={list(by)!r} names a column twice")
    return tuple(by) if framed else None


def take_keys(rows: Records, by: Any) -> tuple[Labels, tuple[str, ...]]:
    """Return the label of each row, and the names of the key columns.

    `by` is the name of a column, a list of names, or the labels themselves: one column of labels, or several columns in
    a frame, a list or a tuple.
    """
    named = named_columns(rows, by)
    if named is not None:
        return _joined([take_column(rows, name, "by") for name in named]), named
    columns = [
        column if name is None else replace(column, name=name)
        for name, column in ((name, as_labels(column, "by")) for name, column in _columns_of(by))
    ]
    if len({len(column) for column in columns}) > 1:
        raise ValueError("by must have one label for each row of points in every key column, but the lengths differ")
    return _joined(columns), key_names([column.name for column in columns])


def _columns_of(by: Any) -> list[tuple[str | None, Any]]:
    """Return the key columns: the columns of a frame, the columns in a list or tuple, or the single column `by`."""
    frame = NamedColumns.of(by)
    if frame is not None:
        return [(name, frame.column(place)) for place, name in enumerate(frame.names)]
    if isinstance(by, (list, tuple)) and 1 <= len(by) <= _MOST_COLUMNS:
        plain = (str, bytes, Mapping)
        if all(not isinstance(part, plain) and hasattr(part, "__len__") for part in by):
            return [(None, part) for part in by]
    return [(None, by)]


def _joined(columns: Sequence[Labels]) -> Labels:
    """Join the labels of each row in several columns to one label. The joined label is missing if one of the labels is
    missing.
    """
    if len(columns) == 1:
        return columns[0]
    missing: NDArray[np.bool_] = np.logical_or.reduce([column.missing for column in columns])
    codes = np.zeros(len(missing), dtype=np.int64)
    for column in columns:
        own, count = column.ranks()
        # The code of a missing label is -1. Codes are renumbered after every column, so that the products of codes fit
        # 64 bits.
        _, codes = np.unique(codes * (count + 1) + own + 1, return_inverse=True)
    _, first, codes = np.unique(codes, return_index=True, return_inverse=True)
    texts = _texts_at(columns, first)
    return Labels(_end_to_end([texts[code] for code in codes.tolist()]), missing)


def _texts_at(columns: Sequence[Labels], rows: NDArray[np.intp]) -> list[bytes]:
    """Return the joined labels of these rows."""
    parts = []
    for column in columns:
        chosen = np.zeros(len(column), dtype=bool)
        chosen[rows] = True
        found = column.chosen(chosen).as_text().listed()
        place = np.cumsum(chosen) - 1
        parts.append([found[place[row]] for row in rows.tolist()])
    return [b"".join(text.replace(_ZERO, _ESCAPED) + _END for text in row) for row in zip(*parts, strict=True)]


def _end_to_end(texts: Sequence[bytes]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    ends = np.cumsum(np.fromiter(map(len, texts), dtype=np.int64, count=len(texts)), dtype=np.int64)
    return np.frombuffer(b"".join(texts), dtype=np.uint8), ends
