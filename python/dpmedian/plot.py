"""Pictures of releases and plans: `release.plot(points)`, `release.plot()` and `plan.plot()`. They need
`dpmedian[plot]`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpmedian.documented import documented
from dpmedian.inference import Region
from dpmedian.planning.plan import Plan
from dpmedian.planning.prediction_curves import PredictionCurves
from dpmedian.recorded import picture
from dpmedian.release import Release
from dpmedian.rendering.release import records_text
from dpmedian.sources.cells import Floats
from dpmedian.sources.records import as_records

__all__ = ["plot_plan", "plot_release"]

INK, CLOUD, WARNING = "#b2182b", "#7f8c9b", "#8c2d04"
_LINES = ("#9ecae1", "#2171b5", "#08306b")

# The share of the records that the picture of a release shows. If far outliers were shown, the other records would
# shrink to a dot.
_SHOWN = 0.9

# More records than this are drawn as a density, because their dots would form a solid block.
DENSE = 5000
DENSITY = "Greys"

# The largest number of coordinates that are drawn.
_COORDINATES = 40

# An error circle that covers a smaller share of the picture than this is also drawn enlarged.
_SMALL = 0.06


def axes_of(ax: Any) -> Any:
    """The given axes, or new ones."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plotting needs matplotlib: pip install 'dpmedian[plot]'") from error
    return plt.subplots(figsize=(6.4, 5.6), layout="constrained")[1]


@picture.register
@documented
def plot_release(release: Release, points: ArrayLike | None = None, ax: Any = None) -> Any:
    """Plot the released point with its predicted error, over the records if they are given. Returns the axes.

    In one dimension the records are a histogram. In two dimensions they are dots, or with many records a density. In
    more dimensions each coordinate has an interval of the error radius around the point, over the ranges that contain
    50 % and 90 % of the records. Broken lines are the 95 % confidence region for the median of the population, if the
    release has one.

    With points the picture shows private data and a warning not to publish it. It is for the holder of the data.
    Without points the picture shows only released values, and may be published like the release.

    Parameters
    ----------
    release : Release
        The release, in any dimension. If there are more than 40 coordinates, the first 40 are drawn.
    points : array, data frame or Arrow table of shape (n, d), optional
        The private records.
    ax : matplotlib axes, optional
        The axes to draw on. The default is new axes.

    Returns
    -------
    matplotlib axes
        The picture.
    """
    array, names = None, release.columns
    if points is not None:
        records = as_records(points)
        array, names = records.array, records.columns or names
        if array.shape[1] != release.point.size:
            raise ValueError(f"the release has d = {release.point.size}, but the points have shape {array.shape}")
    ax = axes_of(ax)
    d = release.point.size
    names = names or tuple(("first coordinate", "second coordinate")[:d] if d <= 2 else map(str, range(d)))
    array = None if array is None else _around(release, array)
    draw = {1: _line, 2: _plane}.get(d, _coordinates)
    draw(release, array, ax, names)
    ax.set_title(f"{release.method}, {records_text(release)}, {release.plan.parameters.budget}", fontsize=10)
    ax.legend(loc="upper left", fontsize=9, framealpha=0.95)
    if array is not None:
        mark_private(ax)
    return ax


def mark_private(ax: Any) -> None:
    """Write into the picture that it shows private data."""
    ax.text(
        0.99,
        0.01,
        "contains private data: do not publish",
        transform=ax.transAxes,
        ha="right",
        va="bottom",
        fontsize=9,
        color=WARNING,
        bbox={"boxstyle": "round", "facecolor": "white", "edgecolor": WARNING, "alpha": 0.9},
    )


def draw_square(release: Release, array: Floats, ax: Any) -> None:
    """Draw the records and the released point in two dimensions, without text."""
    array = _around(release, array)
    _square(release, array, ax, _shown(release, array if len(array) else None)[0], "")


def _around(release: Release, array: Floats) -> Floats:
    """The records as they are drawn. Positions are relative to the point, so the date line is no problem."""
    if release.plan.parameters.geometry != "sphere":
        return array
    east = np.remainder(array[:, 0] - release.point[0] + 180.0, 360.0) - 180.0
    return np.column_stack([release.point[0] + east, array[:, 1]])


def _shown(release: Release, array: Floats | None) -> tuple[float, int]:
    """The half width of a picture around the point, and the number of records outside of the picture."""
    if array is None:
        region = release.shown_region
        error = max(release.error_radius or 0.0, 0.0 if region is None else region.radius)
        return (1.6 if region else 3.0) * (error or release.scale or 1.0), 0
    distance = np.max(np.abs(array - release.point) / _degrees(release), axis=1)
    half = 1.08 * float(np.quantile(distance, _SHOWN)) or 1.0
    return half, int(np.sum(distance > half))


def _region_label(region: Region) -> str:
    return f"{region.level:.0%} region for the population, radius {region.radius:.2g}"


def _degrees(release: Release) -> Any:
    """The length of one unit of every coordinate. Away from the equator a degree of longitude is shorter."""
    if release.plan.parameters.geometry != "sphere":
        return np.array(release.plan.parameters.scales or np.ones(release.point.size))
    return np.array([1.0 / max(float(np.cos(np.radians(release.point[1]))), 0.05), 1.0])


def _records_label(hidden: int) -> str:
    return "records (private)" + (f", {hidden:,} more outside" if hidden else "")


def _line(release: Release, array: Floats | None, ax: Any, names: tuple[str, ...]) -> None:
    """Draw a histogram of the records, the point and its interval."""
    half, hidden = _shown(release, array)
    center = float(release.point[0])
    if array is not None:
        bins = np.linspace(center - half, center + half, 61)
        ax.hist(array[:, 0], bins=bins, color=CLOUD, alpha=0.6, label=_records_label(hidden))
        ax.set_ylabel("records")
        ax.margins(y=0.35)  # Room for the legend.
    else:
        ax.set_yticks([])
    if release.error_radius is not None:
        low, high = center - release.error_radius, center + release.error_radius
        ax.axvspan(low, high, color=INK, alpha=0.2, linewidth=0, label=_error_label(release))
    region = release.shown_region
    if region is not None:
        for place, label in zip(region.intervals[0], (_region_label(region), None), strict=True):
            ax.axvline(float(place), color=INK, linewidth=1.2, linestyle="--", label=label)
    ax.axvline(center, color=INK, linewidth=1.8, label=f"private median: {center:.6g}")
    ax.set_xlim(center - half, center + half)
    ax.set_xlabel(names[0])


def _plane(release: Release, array: Floats | None, ax: Any, names: tuple[str, ...]) -> None:
    """Draw the records or their density, the point and the circle of its error.

    A small circle is drawn a second time, enlarged.
    """
    half, hidden = _shown(release, array)
    _square(release, array, ax, half, _records_label(hidden))
    region = release.shown_region
    error = max(release.error_radius or 0.0, 0.0 if region is None else region.radius)
    if 0.0 < error < _SMALL * half:
        zoom = ax.inset_axes((0.72, 0.72, 0.27, 0.27))
        _square(release, array, zoom, 1.6 * error, "")
        zoom.set_xticks([])
        zoom.set_yticks([])
        ax.indicate_inset_zoom(zoom, edgecolor=INK)
    ax.set_xlabel(names[0])
    ax.set_ylabel(names[1])


def draw_records(ax: Any, near: Floats, extent: tuple[float, float, float, float], label: str) -> None:
    """Draw records one by one, or their density if there are many."""
    if len(near) > DENSE:
        ax.hexbin(near[:, 0], near[:, 1], gridsize=56, extent=extent, mincnt=1, cmap=DENSITY, linewidths=0.1)
        # A density has no legend entry of its own, so an empty series provides one.
        ax.scatter([], [], marker="h", s=60, color=CLOUD, label=label)
    else:
        ax.scatter(near[:, 0], near[:, 1], s=7, color=CLOUD, alpha=0.5, linewidths=0, label=label)


def _square(release: Release, array: Floats | None, ax: Any, half: float, label: str) -> None:
    """Draw records, point and error circle in a square of this half width around the point."""
    center, degrees = release.point, _degrees(release)
    (left, low), (right, high) = center - half * degrees, center + half * degrees
    if array is not None:
        near = array[np.max(np.abs(array - center) / degrees, axis=1) <= half]
        draw_records(ax, near, (left, right, low, high), label)
    if release.error_radius is not None:
        turn = np.linspace(0.0, 2.0 * np.pi, 200)
        circle = center[:, None] + release.error_radius * degrees[:, None] * np.array([np.cos(turn), np.sin(turn)])
        ax.plot(*circle, color=INK, linewidth=1.6, label=_error_label(release))
    region = release.shown_region
    if region is not None:
        ax.plot(*region.outline(), color=INK, linewidth=1.3, linestyle="--", label=_region_label(region))
    ax.plot(*center, marker="+", markersize=11, markeredgewidth=1.8, color=INK, linestyle="", label="private median")
    ax.set_xlim(left, right)
    ax.set_ylim(low, high)
    ax.set_aspect(float(degrees[0]))


def _coordinates(release: Release, array: Floats | None, ax: Any, names: tuple[str, ...]) -> None:
    """Draw every coordinate with its interval, over the middle halves and nine tenths of the records."""
    shown = min(release.point.size, _COORDINATES)
    places, center = np.arange(shown), release.point[:shown]
    if array is not None:
        quantiles = np.quantile(array[:, :shown], [0.05, 0.25, 0.75, 0.95], axis=0)
        outer, inner = quantiles[[0, 3]], quantiles[[1, 2]]
        ax.vlines(places, *outer, color=CLOUD, alpha=0.35, linewidth=4, label="90 % of the records (private)")
        ax.vlines(places, *inner, color=CLOUD, alpha=0.8, linewidth=4, label="50 % of the records (private)")
    if release.error_radius is not None:
        error = release.error_radius
        ax.errorbar(places, center, yerr=error, fmt="none", ecolor=INK, capsize=3, label=_error_label(release))
    region = release.shown_region
    if region is not None:
        low, high = region.intervals[:shown].T
        limits = {"marker": "_", "markersize": 12, "color": INK, "linestyle": ""}
        ax.plot(places, low, **limits, label=f"{region.level:.0%} interval for the population")
        ax.plot(places, high, **limits)
    ax.plot(places, center, "o", markersize=4.5, color=INK, label="private median")
    ax.set_xticks(places, names[:shown], rotation=0 if shown <= 6 else 90, fontsize=9)
    ax.set_xlim(-0.7, shown - 0.3)
    ax.margins(y=0.25)
    more = release.point.size - shown
    ax.set_xlabel("coordinate" + (f" (the first {shown} of {release.point.size:,})" if more else ""))


def _error_label(release: Release) -> str:
    return f"predicted error, radius {release.error_radius:.2g}"


@picture.register
@documented
def plot_plan(plan: Plan, ax: Any = None) -> Any:
    """Plot the predicted error against the budget, for n/4, n and 4n records, and mark the plan.

    The picture does not depend on data. If n is private and there is no guess, the picture shows the example sizes of
    the plan.

    Parameters
    ----------
    plan : Plan
        A plan whose method predicts an error.
    ax
        As in `plot_release`.

    Returns
    -------
    matplotlib axes
        The picture.
    """
    curves = PredictionCurves.of(plan)
    if curves is None:
        raise ValueError(f"method {plan.method!r} predicts no error without data, so there is nothing to draw")
    ax = axes_of(ax)
    budget, amount = plan.parameters.budget, curves.amount
    values = amount * np.geomspace(1 / 8, 8, 13)
    for n, color in zip(curves.sizes, _LINES, strict=True):
        # The value is None if no plan is possible or if its release would probably fail. The line then has a gap.
        errors = np.array([curves.predicted(n, value) for value in values], dtype=np.float64)
        ax.plot(values, errors, color=color, linewidth=2, label=f"n = {n:,}")
    if plan.n is not None:
        label = f"this plan: {curves.here:.2g}"
        ax.plot([amount], [curves.here], "o", markersize=9, color=INK, label=label, zorder=3)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ticks = amount * 2.0 ** np.arange(-3, 4)
    ax.set_xticks(ticks, [f"{tick:.3g}" for tick in ticks])
    ax.minorticks_off()
    ax.set_xlabel(f"{budget.measure}" + (f" (delta = {budget.delta:.3g})" if budget.delta else ""))
    ax.set_ylabel(curves.label)
    ax.set_title(f"{plan.method}, d = {plan.d}", fontsize=10)
    ax.grid(linewidth=0.4, alpha=0.6)
    ax.legend(fontsize=9)
    return ax
