"""Releases as rows of a table of plain values, for data frames and CSV files."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dpmedian.release import Release, ReleaseFailed
from dpmedian.rendering.release import region_of
from dpmedian.spherical import kilometers

__all__ = ["csv_text", "row_names", "row_of"]

_FACTS = ("error_radius", "scale", "size", "outcome", "reason")


def _interval_names(columns: Sequence[str]) -> list[str]:
    return [f"{name}_{end}" for name in columns for end in ("low", "high")]


def row_names(columns: Sequence[str], sphere: bool = False) -> list[str]:
    """The names of a row: coordinates, the ends of their 95 % intervals, and what else is known of a release."""
    return [*columns, *_interval_names(columns), *(["error_km"] if sphere else []), *_FACTS]


def row_of(value: Release | ReleaseFailed, columns: Sequence[str], sphere: bool = False) -> dict[str, Any]:
    """One release as a row; a value that does not exist is None.

    `outcome` is "released" or "failed", and `reason` says why there is no point. The size is the public number of
    records, or the noisy one if the number is private. On the sphere `error_km` is the error radius in kilometers.
    """
    row: dict[str, Any] = dict.fromkeys(row_names(columns, sphere))
    if isinstance(value, ReleaseFailed):
        return row | {"size": value.size, "outcome": "failed", "reason": value.message}
    region = region_of(value)
    if region is not None:
        row |= dict(zip(_interval_names(columns), region.intervals.ravel().tolist(), strict=True))
    row |= dict(zip(columns, value.point.tolist(), strict=True))
    if sphere and value.error_radius is not None:
        row["error_km"] = kilometers(value.error_radius)
    size = value.size if value.n is None else value.n
    facts = (value.error_radius, value.scale, size, "released", "")
    return row | dict(zip(_FACTS, facts, strict=True))


def csv_text(rows: Iterable[Mapping[str, Any]], names: Sequence[str]) -> str:
    """Comma-separated values with a header; a value that does not exist is an empty cell."""
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().removesuffix("\n")
