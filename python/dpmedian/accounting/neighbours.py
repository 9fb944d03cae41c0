"""Which data sets are neighbours, and whose contribution one of them lacks or has changed."""

from __future__ import annotations

from typing import Literal, get_args

__all__ = ["RECORD", "Neighbours", "neighbours_of", "unit_of"]

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
