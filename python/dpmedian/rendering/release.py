"""A release as text and HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpmedian.rendering.table import html_table, text_pairs

if TYPE_CHECKING:
    from dpmedian.release import Release

__all__ = ["records_text", "release_html", "release_text"]


def _point(release: Release) -> str:
    if release.columns is not None and release.point.size <= 8:
        pairs = zip(release.columns, release.point.tolist(), strict=True)
        return ", ".join(f"{column} = {value:.9g}" for column, value in pairs)
    return np.array2string(release.point, precision=6, threshold=8, edgeitems=3, max_line_width=100)


def records_text(release: Release) -> str:
    """How many records there are, as far as that is public or was released."""
    if release.n is not None:
        return f"n = {release.n}"
    return "n private" if release.size is None else f"n private, noisy size {release.size}"


def _rows(release: Release) -> list[tuple[str, str]]:
    rows = [("point", _point(release))]
    if release.name is not None:
        rows.insert(0, ("name", release.name))
    if release.scale is not None:
        rows.append(("scale", f"{release.scale:.4g}"))
    if release.error_radius is not None:
        rows.append(("error radius", f"{release.error_radius:.4g}"))
    rows += [
        ("method", f"{release.method}, {records_text(release)}, d = {release.point.size}"),
        ("cost", str(release.cost)),
    ]
    if release.seeded:
        rows.append(("seeded", "yes: the noise is predictable, so this release protects nobody"))
    return rows + [("note", note) for note in release.notes]


def release_text(release: Release) -> str:
    """One row for each thing that was released."""
    return "Release\n" + text_pairs(_rows(release))


def release_html(release: Release) -> str:
    """The same for a notebook."""
    return html_table(None, _rows(release), caption=["Private geometric median"], row_names=True)
