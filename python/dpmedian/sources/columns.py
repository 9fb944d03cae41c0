"""The choice of columns of a file, by name or by number from 1."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["as_number", "coordinates", "divide", "labels", "numbered", "select"]

# The names that pandas gives to the index of a frame in Parquet and Arrow files.
_INDEX = re.compile(r"__index_level_\d+__")

# The names of a first column that usually contains row numbers. pandas and R write such a column without a name, and
# pandas names it "Unnamed: 0" when it reads the file again.
_UNNAMED = ("", "Unnamed: 0")


def coordinates(names: Sequence[str], others: Sequence[int] = ()) -> list[int]:
    """Return the positions of the coordinates if the caller chose no columns: all columns except `others` and the index
    of pandas.

    A first column without a name is refused, because it usually contains row numbers and not a coordinate.
    """
    if len(names) > 1 and names[0] in _UNNAMED and any(names[1:]) and 0 not in others:
        raise ValueError(
            "the first column has no name, so it probably contains row numbers; choose the columns, "
            f"columns={list(names[1:3])} (--columns), or write the file without row numbers, to_csv(..., index=False)"
        )
    found = [i for i, name in enumerate(names) if i not in others and not _INDEX.fullmatch(name)]
    if names and not found:
        raise ValueError(
            "every column is the unit, the weight or a group, so no column is left for the points; add a column of "
            "coordinates"
        )
    return found


def select(names: Sequence[str], wanted: Sequence[str | int] | None) -> list[int]:
    """Return the positions of the chosen columns. If none are chosen, these are all columns that may be coordinates.

    A text in `wanted` is a column name, or a column number if no column has this name. An integer is always a column
    number, counted from 1. A column whose name occurs twice must be chosen by number.
    """
    chosen = [names[i] for i in coordinates(names)] if wanted is None else list(wanted)
    if not chosen:
        raise ValueError(f"no columns were chosen; the columns are {_list(names)}")
    places = [_place(names, name) for name in chosen]
    for i, place in enumerate(places):
        if place in places[:i]:
            raise ValueError(f"column {chosen[i]!r} was requested twice; the columns are {_list(names)}")
    return places


def divide(
    names: Sequence[str], wanted: Sequence[str | int] | None, label_columns: Sequence[str | int]
) -> tuple[list[int], list[int]]:
    """Return the positions of the point columns and of the label columns.

    If no point columns are chosen, these are all columns that are not label columns.
    """
    others = select(names, label_columns) if label_columns else []
    places = coordinates(names, others) if wanted is None and label_columns else select(names, wanted)
    for place in others:
        if place in places:
            raise ValueError(f"column {names[place]!r} was requested twice, as a label and as a coordinate")
    return places, others


def labels(names: Sequence[str], places: Sequence[int]) -> tuple[str, ...]:
    """Return the names of the chosen columns.

    The column number replaces an empty name and is added to a repeated name, so that all names differ.
    """
    return tuple(
        (f"{names[i]} [{i + 1}]" if names[i] else str(i + 1)) if not names[i] or names.count(names[i]) > 1 else names[i]
        for i in places
    )


def numbered(count: int) -> list[str]:
    """Return names ("1", "2", ...) for columns that have no names."""
    return [str(i + 1) for i in range(count)]


def as_number(name: str | int) -> int | None:
    """Return the position if `name` is a column number, and None if it is a name."""
    if not isinstance(name, (str, int)):
        raise TypeError(f"a column is a name or a number from 1, got {name!r} of type {type(name).__name__}")
    if isinstance(name, bool) or not (isinstance(name, int) or (name.isascii() and name.isdigit())):
        return None
    return int(name) - 1


def _place(names: Sequence[str], name: str | int) -> int:
    found = [] if isinstance(name, int) else [i for i, other in enumerate(names) if other == name]
    if len(found) == 1:
        return found[0]
    if found:
        numbers = " and ".join(str(i + 1) for i in found)
        raise ValueError(f"column {name!r} occurs {len(found)} times, as columns {numbers}: choose by number")
    place = as_number(name)
    if place is None or not 0 <= place < len(names):
        raise ValueError(f"column {name!r} is not there; the columns are {_list(names)}")
    return place


def _list(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))
