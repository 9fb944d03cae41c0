"""A release as text and HTML."""

from __future__ import annotations

from html import escape

import numpy as np

from dpmedian.inference import Region
from dpmedian.recorded import View, as_view
from dpmedian.release import Release
from dpmedian.rendering.plan import plan_table
from dpmedian.rendering.table import html_block, html_table, text_pairs
from dpmedian.spherical import kilometers

__all__ = ["SEEDED", "notebook_block", "records_text", "release_view"]

SEEDED = "yes: the noise is predictable, so this release protects nobody"


# Of a longer point, only this many of the first coordinates and of the last coordinates are shown.
_FIRST, _LAST = 5, 2


def _names(release: Release) -> tuple[str, ...]:
    """Return the names of the coordinates. The coordinates of positions are longitude and latitude, and other
    coordinates without a name are numbered from 0.
    """
    known = ("longitude", "latitude") if release.plan.parameters.geometry == "sphere" else None
    return release.columns or known or tuple(map(str, range(release.point.size)))


def _distance(value: float, release: Release) -> str:
    """Return a distance, with its unit if this is not the unit of the columns."""
    parameters = release.plan.parameters
    if parameters.geometry == "sphere":
        return f"{kilometers(value):.4g} km ({value:.4g} degrees)"
    return f"{value:.4g}" + ("" if parameters.scales is None else " in units of the scales")


def _coordinates(release: Release) -> list[tuple[str, str]]:
    """Return names and values, with an ellipsis if there are too many."""
    names = _names(release)
    return _shown([(name, f"{value:.9g}") for name, value in zip(names, release.point.tolist(), strict=True)])


def _shown(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return pairs if len(pairs) <= _FIRST + _LAST else [*pairs[:_FIRST], ("...", "..."), *pairs[-_LAST:]]


def _intervals(release: Release, region: Region) -> list[tuple[str, str]]:
    """Return names and intervals of the coordinates that are shown."""
    names = _names(release)
    limits = region.intervals.tolist()
    return _shown([(name, f"{low:.6g} to {high:.6g}") for name, (low, high) in zip(names, limits, strict=True)])


def _point(release: Release) -> str:
    if release.columns is None:
        return np.array2string(release.point, precision=6, threshold=8, edgeitems=3, max_line_width=100)
    return ", ".join(name if name == "..." else f"{name} = {value}" for name, value in _coordinates(release))


def records_text(release: Release) -> str:
    """Return the number of records in words if it is public, and otherwise the noisy size if it was released."""
    if release.n is not None:
        return f"n = {release.n}"
    return "n private" if release.size is None else f"n private, noisy size {release.size}"


def _facts(release: Release, region: Region | None) -> list[tuple[str, str]]:
    """Return the values that are shown with the point."""
    rows = []
    if release.scale is not None:
        rows.append(("scale", _distance(release.scale, release)))
    if release.error_radius is not None:
        rows.append(("error radius", _distance(release.error_radius, release)))
    if region is not None:
        rows.append(("95 % region", f"radius {_distance(region.radius, release)}, for the median of the population"))
    elif release.moments is not None:
        rows.append(
            ("95 % region", "call confidence_region(), which takes several seconds for this number of coordinates")
        )
    rows += [
        ("method", f"{release.method}, {records_text(release)}, d = {release.point.size}"),
        ("cost", str(release.cost)),
    ]
    return rows


def _notes(release: Release, region: Region | None) -> list[str]:
    return [*release.notes, *(() if region is None else region.notes)]


def notebook_block(release: Release, *tables: str) -> str:
    """Return the notebook view of a release: a warning if the release is seeded, tables, and the plan, which can be
    unfolded.
    """
    alarm = f'<div class="alarm">seeded: {escape(SEEDED)}</div>' if release.seeded else ""
    plan = f"<details><summary>Queries to the data</summary>{plan_table(release.plan).html}</details>"
    return html_block(alarm, *tables, plan)


@as_view.register
def release_view(release: Release) -> View:
    """Show one row for each released value. In a notebook the point is a table with the names of its columns."""
    region = release.shown_region
    rows, facts, notes = [("point", _point(release))], _facts(release, region), _notes(release, region)
    names, values = zip(*_coordinates(release), strict=True)
    cells = [values]
    if region is not None:
        intervals = _intervals(release, region)
        parts = (name if name == "..." else f"{name}: {limits}" for name, limits in intervals)
        rows.append(("95 % intervals", ", ".join(parts)))
        cells.append(tuple(limits for _, limits in intervals))
    named = [] if release.name is None else [("name", release.name)]
    seeded = [("seeded", SEEDED)] if release.seeded else []
    return View(
        "Release\n" + text_pairs([*named, *rows, *facts, *seeded, *(("note", note) for note in notes)]),
        notebook_block(
            release,
            html_table(names, cells, caption=[release.name or "Private geometric median"], right=range(len(names))),
            html_table(None, facts, row_names=True, notes=notes),
        ),
    )
