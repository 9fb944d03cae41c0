"""The wanted columns of a file, by name or by number from 1."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["as_number", "divide", "labels", "numbered", "select"]


def select(names: Sequence[str], wanted: Sequence[str | int] | None) -> list[int]:
    """The positions of the wanted columns, by default of all.

    A text is first looked up among the names; if it is not a name, it is read as a number. An integer is always a
    number. A name that occurs twice must be given by number.
    """
    chosen = list(names) if wanted is None else list(wanted)
    if not chosen:
        raise ValueError(f"no columns were chosen; the columns are {_list(names)}")
    places = [_place(names, name) for name in chosen]
    for i, place in enumerate(places):
        if place in places[:i]:
            raise ValueError(f"column {chosen[i]!r} was requested twice; the columns are {_list(names)}")
    return places


def divide(
    names: Sequence[str], wanted: Sequence[str | int] | None, beside: Sequence[str | int]
) -> tuple[list[int], list[int]]:
    """The positions of the point columns (by default all that are not label columns), and the positions of the label
    columns.
    """
    others = select(names, beside) if beside else []
    chosen = [i + 1 for i in range(len(names)) if i not in others] if wanted is None and beside else wanted
    places = select(names, chosen)
    for place in others:
        if place in places:
            raise ValueError(f"column {names[place]!r} was requested twice, as a label and as a coordinate")
    return places, others


def labels(names: Sequence[str], places: Sequence[int]) -> tuple[str, ...]:
    """The names of the chosen columns.

    An empty or repeated name is replaced by its number, so that all names differ.
    """
    return tuple(
        (f"{names[i]} [{i + 1}]" if names[i] else str(i + 1)) if not names[i] or names.count(names[i]) > 1 else names[i]
        for i in places
    )


def numbered(count: int) -> list[str]:
    """Names for columns that have none."""
    return [str(i + 1) for i in range(count)]


def as_number(name: str | int) -> int | None:
    """The position for a column number, or None for a name."""
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
        raise ValueError(f"column {name!r} is there {len(found)} times, as columns {numbers}: choose by number")
    place = as_number(name)
    if place is None or not 0 <= place < len(names):
        raise ValueError(f"column {name!r} is not there; the columns are {_list(names)}")
    return place


def _list(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))
