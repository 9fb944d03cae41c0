"""Pictures of groups (needs `dpmedian[plot]`): `releases.plot(points, by)` and `releases.plot_map()`."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmedian.dataset.memory import Memory
from dpmedian.dataset.reading import Reading
from dpmedian.documented import documented
from dpmedian.groups.releases import Releases
from dpmedian.plot import CLOUD, INK, WARNING, axes_of, draw_square
from dpmedian.postprocess import reach_of_map
from dpmedian.recorded import picture
from dpmedian.release import Release
from dpmedian.sources.key_columns import key_labels, key_text, named_columns, take_keys
from dpmedian.spherical import on_a_map, west_of

__all__ = ["draw", "plot_groups", "plot_map"]

# The largest number of small pictures that are readable.
_MOST = 48


@picture.register
def draw(releases: Releases, points: Any, by: Any, ax: Any = None) -> Any:
    """Draw the map, which shows nothing private. If points are given, draw one small picture for each group instead."""
    return plot_map(releases, ax) if points is None else plot_groups(releases, points, by, ax)


def plot_groups(releases: Releases, points: Any, by: Any, ax: Any = None) -> Any:
    """Plot a small picture for each group: its point over its records.

    The pictures show private data and a warning not to publish them. They are for the holder of the data.

    Parameters
    ----------
    releases : Releases
        The releases, in two dimensions, of at most 48 groups.
    points : array, data frame or Arrow table of shape (n, 2)
        The private rows.
    by : the name of a column or a list of names, or one label for each row
        The group of each row.
    ax : matplotlib figure, optional
        The figure to draw on; by default a new one.

    Returns
    -------
    matplotlib figure
        The pictures.
    """
    there = set() if isinstance(points, np.ndarray) else set(getattr(points, "columns", ()))
    columns_read = list(releases.columns) if set(releases.columns) <= there else None
    labels_read = named_columns(points, by) or ()
    table = Memory.of(points, Reading(columns=columns_read, labels=labels_read, nonfinite="center", d=2)).rows
    labels, array = take_keys(table, by)[0], table.array
    if len(releases) > _MOST:
        raise ValueError(f"at most {_MOST} groups can be drawn, got {len(releases)}; plot_map() draws all of them")
    places = labels.places(key_labels(list(releases)))
    columns = math.ceil(math.sqrt(len(releases)))
    rows = math.ceil(len(releases) / columns)
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.figure(figsize=(2.4 * columns, 2.5 * rows + 0.4), layout="constrained")
    axes = np.atleast_1d(ax.subplots(rows, columns, squeeze=False)).ravel()
    for index, (key, value) in enumerate(releases.items()):
        own = array[(places == index) & np.isfinite(array).all(axis=1)]
        small = axes[index]
        if isinstance(value, Release):
            draw_square(value, own, small)
        else:
            small.scatter(own[:, 0], own[:, 1], s=4, color=CLOUD, alpha=0.4, linewidths=0)
            small.text(0.5, 0.5, "no point", transform=small.transAxes, ha="center", color=WARNING)
        small.set_title(key_text(key), fontsize=9)
        small.tick_params(labelsize=7)
    for unused in axes[len(releases) :]:
        unused.set_axis_off()
    ax.supxlabel("contains private data: do not publish", fontsize=9, color=WARNING)
    return ax


@documented
def plot_map(releases: Releases, ax: Any = None) -> Any:
    """Plot all released points in one picture, each with the circle of its error and its name.

    The picture shows nothing private, and may be published like the releases. Names that would overlap are left out,
    and a circle that is much larger than the others extends beyond the picture.

    Parameters
    ----------
    releases : Releases
        The releases, in two dimensions.
    ax
        As in `plot_release`.

    Returns
    -------
    matplotlib axes
        The picture.
    """
    if len(releases.columns) != 2:
        raise ValueError(f"only two dimensions can be drawn, got d = {len(releases.columns)}")
    found = releases.released
    ax = axes_of(ax)
    from matplotlib.patches import Polygon

    if found:
        points = np.array([value.point for value in found.values()])
        stretch = np.array(releases.plan.parameters.scales or (1.0, 1.0))
        if releases.plan.parameters.geometry == "sphere":
            points[:, 0] = on_a_map(points[:, 0], west_of(points[:, 0]))
            stretch[0] = 1.0 / max(float(np.cos(np.radians(np.median(points[:, 1])))), 0.05)
        turn = np.linspace(0.0, 2.0 * np.pi, 100)
        for value, point in zip(found.values(), points, strict=True):
            if value.error_radius is not None:
                circle = point + value.error_radius * stretch * np.column_stack([np.cos(turn), np.sin(turn)])
                # Unlike `fill`, `add_artist` does not extend the limits of the axes.
                ax.add_artist(Polygon(circle, color=INK, alpha=min(0.25, 2.0 / len(found)), linewidth=0))
        ax.plot(points[:, 0], points[:, 1], "o", markersize=4, color=INK, linestyle="")
        ax.set_aspect(stretch[0] / stretch[1], adjustable="datalim")
        reach = stretch * reach_of_map(points / stretch, [value.error_radius or 0.0 for value in found.values()])
        ax.update_datalim([points.min(axis=0) - reach, points.max(axis=0) + reach])
        ax.margins(0.12)
        _write_names(ax, list(found), points)
    ax.set_xlabel(releases.columns[0])
    ax.set_ylabel(releases.columns[1])
    failed = len(releases.failed)
    missing = f", {failed} without a point" if failed else ""
    ax.set_title(f"{len(found)} private medians{missing}, {releases.plan.budget}; discs: predicted errors", fontsize=10)
    ax.grid(linewidth=0.4, alpha=0.6)
    return ax


def _write_names(ax: Any, keys: Sequence[Hashable], points: NDArray[np.float64]) -> None:
    """Write the names beside their points, except those that would overlap another name."""
    ax.figure.draw_without_rendering()
    boxes: list[Any] = []
    for key, point in zip(keys, points, strict=True):
        name = ax.annotate(key_text(key), point, xytext=(5, 5), textcoords="offset points", fontsize=8)
        box = name.get_window_extent()
        if any(box.overlaps(other) for other in boxes):
            name.remove()
        else:
            boxes.append(box)
