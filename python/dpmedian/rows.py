"""Releases as rows of a table of plain values, for data frames and CSV files."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

from dpmedian.recorded import as_csv
from dpmedian.release import Release, ReleaseFailed
from dpmedian.spherical import kilometers

__all__ = ["csv_text", "release_csv", "row_names", "row_of"]

_FACTS = ("error_radius", "scale", "size", "outcome", "reason", "notes")


def row_names(columns: Sequence[str], sphere: bool = False) -> list[str]:
    """The names of a row: the coordinates, the ends of their 95 % intervals, and the other values of a release.

    The coordinates keep their names. If a coordinate has the name of another value, the name of the other value gets
    the prefix `release_`, as often as needed.
    """
    names = list(columns)
    intervals = [f"{name}_{end}" for name in columns for end in ("low", "high")]
    for name in (*intervals, *(["error_km"] if sphere else []), *_FACTS):
        while name in names:
            name = f"release_{name}"
        names.append(name)
    return names


def row_of(value: Release | ReleaseFailed, columns: Sequence[str], sphere: bool = False) -> list[Any]:
    """The values of one release in the order of `row_names`. A value that does not exist is None.

    The outcome is "released" or "failed". The reason explains why there is no point, and the notes state the limits of
    a point. The size is the public number of records, or the noisy number if the number is private. On the sphere the
    error radius is also given in kilometers.
    """
    d = len(columns)
    distance: list[float | None] = [None] if sphere else []
    if isinstance(value, ReleaseFailed):
        return [*[None] * (3 * d), *distance, None, None, value.size, "failed", value.message, ""]
    region = value.shown_region
    intervals: list[Any] = [None] * (2 * d) if region is None else region.intervals.ravel().tolist()
    if sphere and value.error_radius is not None:
        distance = [kilometers(value.error_radius)]
    size = value.size if value.n is None else value.n
    notes = " ".join(dict.fromkeys(value.notes))
    return [*value.point.tolist(), *intervals, *distance, value.error_radius, value.scale, size, "released", "", notes]


def csv_text(rows: Iterable[Sequence[Any]], names: Sequence[str]) -> str:
    """Comma-separated values with a header. A value that does not exist is an empty cell."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([names, *rows])
    return text.getvalue().removesuffix("\n")


@as_csv.register
def release_csv(release: Release) -> str:
    """One row of comma-separated values below a header."""
    names = release.columns or tuple(f"x{place}" for place in range(release.point.size))
    sphere = release.plan.parameters.geometry == "sphere"
    return csv_text([row_of(release, names, sphere)], row_names(names, sphere))
