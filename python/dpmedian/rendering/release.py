"""A release as text and HTML."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

from dpmedian.rendering.plan import plan_tables
from dpmedian.rendering.table import html_block, html_table, text_pairs

if TYPE_CHECKING:
    from dpmedian.inference import Region
    from dpmedian.release import Release

__all__ = ["SEEDED", "records_text", "region_of", "release_html", "release_text"]

SEEDED = "yes: the noise is predictable, so this release protects nobody"


# A longer point is shown by so many of its first and of its last coordinates.
_FIRST, _LAST = 5, 2
# A region takes matrices of all dimensions, and seconds in more than these: it is made when it is requested.
_REGION_DIMENSION = 200


def _coordinates(release: Release) -> list[tuple[str, str]]:
    """Names and values, with an ellipsis if there are too many; without names they are numbered from 0."""
    names = release.columns or tuple(map(str, range(release.point.size)))
    return _shown([(name, f"{value:.9g}") for name, value in zip(names, release.point.tolist(), strict=True)])


def _shown(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return pairs if len(pairs) <= _FIRST + _LAST else [*pairs[:_FIRST], ("...", "..."), *pairs[-_LAST:]]


def region_of(release: Release) -> Region | None:
    """The 95 % region, unless the release has none or making it takes long."""
    large = release.point.size > _REGION_DIMENSION
    return None if release.moments is None or large else release.confidence_region()


def _intervals(release: Release, region: Region) -> list[tuple[str, str]]:
    """Names and intervals, as many as there are coordinates shown."""
    names = release.columns or tuple(map(str, range(release.point.size)))
    limits = region.intervals.tolist()
    return _shown([(name, f"{low:.6g} to {high:.6g}") for name, (low, high) in zip(names, limits, strict=True)])


def _point(release: Release) -> str:
    if release.columns is None:
        return np.array2string(release.point, precision=6, threshold=8, edgeitems=3, max_line_width=100)
    return ", ".join(name if name == "..." else f"{name} = {value}" for name, value in _coordinates(release))


def records_text(release: Release) -> str:
    """How many records there are, as far as that is public or was released."""
    if release.n is not None:
        return f"n = {release.n}"
    return "n private" if release.size is None else f"n private, noisy size {release.size}"


def _facts(release: Release, region: Region | None) -> list[tuple[str, str]]:
    """What goes with the point."""
    rows = []
    if release.scale is not None:
        rows.append(("scale", f"{release.scale:.4g}"))
    if release.error_radius is not None:
        rows.append(("error radius", f"{release.error_radius:.4g}"))
    if region is not None:
        rows.append(("95 % region", f"radius {region.radius:.4g}, for the median of the population"))
    elif release.moments is not None:
        rows.append(("95 % region", "confidence_region() makes it; in so many dimensions that takes seconds"))
    rows += [
        ("method", f"{release.method}, {records_text(release)}, d = {release.point.size}"),
        ("cost", str(release.cost)),
    ]
    return rows


def release_text(release: Release) -> str:
    """One row for each thing that was released."""
    region = region_of(release)
    rows = [("point", _point(release))]
    if region is not None:
        parts = (name if name == "..." else f"{name}: {limits}" for name, limits in _intervals(release, region))
        rows.append(("95 % intervals", ", ".join(parts)))
    rows += _facts(release, region)
    if release.name is not None:
        rows.insert(0, ("name", release.name))
    if release.seeded:
        rows.append(("seeded", SEEDED))
    return "Release\n" + text_pairs([*rows, *(("note", note) for note in _notes(release, region))])


def _notes(release: Release, region: Region | None) -> list[str]:
    return [*release.notes, *(() if region is None else region.notes)]


def release_html(release: Release) -> str:
    """For a notebook: the point as a table with the names of its columns, what goes with it, and the plan to unfold."""
    region = region_of(release)
    names, values = zip(*_coordinates(release), strict=True)
    rows = [values] if region is None else [values, [limits for _, limits in _intervals(release, region)]]
    title = [release.name or "Private geometric median"]
    alarm = f'<div class="alarm">seeded: {escape(SEEDED)}</div>' if release.seeded else ""
    return html_block(
        alarm,
        html_table(names, rows, caption=title, right=range(len(names))),
        html_table(None, _facts(release, region), row_names=True, notes=_notes(release, region)),
        f"<details><summary>Queries to the data</summary>{plan_tables(release.plan)}</details>",
    )
