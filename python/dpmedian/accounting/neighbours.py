"""Which data sets are neighbours, and whose contribution one of them lacks or has changed."""

from __future__ import annotations

from typing import Literal, get_args

__all__ = ["RECORD", "Neighbours", "neighbours_of", "require_group", "require_records", "unit_of"]

Neighbours = Literal["replace", "add_remove"]
"""Neighbours differ by one replaced unit, the size being public, or by one unit that was added or removed."""

RECORD = "record"
"""The label of the smallest unit, a single row."""


def neighbours_of(value: object) -> Neighbours:
    """One of the two relations, or an error that names them."""
    if value == "replace":
        return "replace"
    if value == "add_remove":
        return "add_remove"
    raise ValueError(f"neighbours must be one of {get_args(Neighbours)}, got {value!r}")


def unit_of(value: object) -> str:
    """The label of a unit of privacy: a string that is not empty."""
    if not isinstance(value, str):
        raise TypeError(f"unit must be a label such as 'record' or 'user', got {value!r} ({type(value).__name__})")
    if not value:
        raise ValueError("unit must not be empty: name whose contribution is protected, such as 'record' or 'user'")
    return value


def require_group(neighbours: Neighbours, unit: str, group: str, k: int, exactly: object) -> None:
    """Raises unless k units make a group that a chain of k neighbours adds, removes or replaces."""
    if group == RECORD:
        raise ValueError(f"a {RECORD!r} is no group of units {unit!r}: use cost.per_record()")
    if neighbours == "replace" and exactly is not True:
        raise ValueError(
            f"under neighbours = 'replace' a {group!r} of at most {k} units {unit!r} has no bound: one with fewer may "
            f"take the place of one with more, which changes the number of units {unit!r}, and a release may show it; "
            f"release under 'add_remove', or say exactly=True if every {group!r} has exactly {k}, in all data sets"
        )


def require_records(neighbours: Neighbours, unit: str) -> None:
    """Raises unless a changed record of a unit is a chain of neighbours."""
    if neighbours == "replace":
        raise ValueError(
            f"a cost per {unit!r} under neighbours = 'replace' bounds nothing for one {RECORD!r}: one that changes its "
            f"{unit!r} may change the number of units {unit!r}, and the release may show it; release under "
            f"'add_remove', or keep a dpmedian.Ledger with unit={unit!r}"
        )
