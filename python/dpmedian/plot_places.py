"""Pictures of k-medians (needs `dpmedian[plot]`): `places.plot(points)` and `places.plot()`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpmedian.documented import documented
from dpmedian.places import Places
from dpmedian.plot import CLOUD, INK, axes_of, draw_records, mark_private
from dpmedian.recorded import picture
from dpmedian.rendering.release import records_text
from dpmedian.sources.cells import Floats
from dpmedian.sources.records import as_records
from dpmedian.spherical import on_a_map, west_of

__all__ = ["plot_places"]

# The margin around the centers and their radii, as a share of the width of the picture.
_MARGIN = 0.15

# In more than two dimensions at most this many coordinates are drawn.
_COORDINATES = 40


@picture.register
@documented
def plot_places(places: Places, points: ArrayLike | None = None, ax: Any = None) -> Any:
    """Plot the centers, each with a circle of its radius and its noisy size.

    In two dimensions and on the sphere the records are dots, or with many records a density. In one dimension they are
    a histogram. In more dimensions the coordinates of every center are a line. With points the picture shows private
    data and a warning not to publish it. It is for the holder of the data.

    Parameters
    ----------
    places : Places
        The result of `dpmedian.k_medians`.
    points, ax
        As in `plot_release`.

    Returns
    -------
    matplotlib axes
        The picture.
    """
    array = None if points is None else as_records(points).array
    d = places.centers.shape[1]
    if array is not None and array.shape[1] != d:
        raise ValueError(f"the centers have d = {d}, but the points have shape {array.shape}")
    ax = axes_of(ax)
    {1: _line, 2: _plane}.get(d, _coordinates)(places, array, ax)
    k, budget = len(places.centers), places.plan.parameters.budget
    ax.set_title(f"{k} private medians, {records_text(places)}, {budget}", fontsize=10)
    ax.legend(loc="best", fontsize=9, framealpha=0.95)
    if array is not None:
        mark_private(ax)
    return ax


def _limits(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    margin = _MARGIN * np.maximum(high - low, 1e-9)
    return low - margin, high + margin


def _plane(places: Places, array: Floats | None, ax: Any) -> None:
    """Draw records, centers and circles. On the sphere a degree of longitude is shorter away from the equator."""
    centers = places.centers.copy()
    stretch = np.tile(places.plan.parameters.scales or (1.0, 1.0), (len(places.centers), 1))
    if places.plan.parameters.geometry == "sphere":
        stretch[:, 0] = 1.0 / np.maximum(np.cos(np.radians(centers[:, 1])), 0.05)
        west = west_of(centers[:, 0])
        centers[:, 0] = on_a_map(centers[:, 0], west)
        if array is not None:
            array = np.column_stack([on_a_map(array[:, 0], west), array[:, 1]])
    reach = 2.5 * places.radii[:, None] * stretch
    (left, low), (right, high) = _limits((centers - reach).min(axis=0), (centers + reach).max(axis=0))
    if array is not None:
        inside = np.all((array >= (left, low)) & (array <= (right, high)), axis=1)
        near, hidden = array[inside], int(np.sum(~inside))
        label = "records (private)" + (f", {hidden:,} more outside" if hidden else "")
        draw_records(ax, near, (left, right, low, high), label)
    turn = np.linspace(0.0, 2.0 * np.pi, 100)
    circle = np.column_stack([np.cos(turn), np.sin(turn)])
    for index, (center, radius, wide) in enumerate(zip(centers, places.radii, stretch, strict=True)):
        outline = center + radius * wide * circle
        ax.plot(*outline.T, color=INK, linewidth=1.3, label="about half of its records" if index == 0 else None)
        ax.annotate(
            f"{places.sizes[index]:.0f}", center, xytext=(5, 5), textcoords="offset points", fontsize=9, color=INK
        )
    ax.plot(*centers.T, "+", markersize=10, markeredgewidth=1.8, color=INK, label="private centers, noisy sizes")
    ax.set_xlim(left, right)
    ax.set_ylim(low, high)
    ax.set_aspect(float(np.median(stretch[:, 0] / stretch[:, 1])))
    ax.set_xlabel(places.names[0])
    ax.set_ylabel(places.names[1])


def _line(places: Places, array: Floats | None, ax: Any) -> None:
    """Draw a histogram of the records and a line for every center."""
    centers, radii = places.centers[:, 0], places.radii * (places.plan.parameters.scales or (1.0,))[0]
    low, high = _limits((centers - 2.5 * radii).min(), (centers + 2.5 * radii).max())
    if array is not None:
        ax.hist(array[:, 0], bins=np.linspace(low, high, 81), color=CLOUD, alpha=0.6, label="records (private)")
        ax.set_ylabel("records")
    else:
        ax.set_yticks([])
    for index, (center, radius) in enumerate(zip(centers, radii, strict=True)):
        first = index == 0
        label = "about half of its records" if first else None
        ax.axvspan(center - radius, center + radius, color=INK, alpha=0.15, linewidth=0, label=label)
        ax.axvline(center, color=INK, linewidth=1.6, label="private centers" if first else None)
    ax.set_xlim(low, high)
    ax.set_xlabel(places.names[0])


def _coordinates(places: Places, array: Floats | None, ax: Any) -> None:
    """Draw the coordinates of every center as a line, over the middle nine tenths of the records."""
    import matplotlib.pyplot as plt

    shown = min(places.centers.shape[1], _COORDINATES)
    at = np.arange(shown)
    if array is not None:
        low, high = np.quantile(array[:, :shown], [0.05, 0.95], axis=0)
        ax.vlines(at, low, high, color=CLOUD, alpha=0.4, linewidth=5, label="90 % of the records (private)")
    colors = plt.get_cmap("tab10" if len(places.centers) <= 10 else "tab20")
    for index, (center, size) in enumerate(zip(places.centers, places.sizes, strict=True)):
        ax.plot(
            at, center[:shown], "o-", markersize=3.5, linewidth=1.2, color=colors(index % colors.N), label=f"{size:.0f}"
        )
    ax.set_xticks(at, places.names[:shown], rotation=0 if shown <= 6 else 90, fontsize=9)
    more = "" if shown == places.centers.shape[1] else f" (the first {shown} of {places.centers.shape[1]:,})"
    ax.set_xlabel(f"coordinate{more}; one line for each center, with its noisy size")
