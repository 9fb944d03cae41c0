"""Pictures of releases and plans (needs `dpmedian[plot]`): `release.plot(points)` and `plan.plot()`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dpmedian.rendering.release import records_text
from dpmedian.sources.records import Floats, as_records

if TYPE_CHECKING:
    from dpmedian.planning.plan import Plan
    from dpmedian.release import Release

__all__ = ["plot_plan", "plot_release"]

_INK, _CLOUD, _WARNING = "#b2182b", "#7f8c9b", "#8c2d04"
_LINES = ("#9ecae1", "#2171b5", "#08306b")

# The share of the records that the picture of a release shows; far outliers would shrink the rest to a dot.
_SHOWN = 0.9

# An error circle that takes a smaller share of the picture than this is shown again, enlarged.
_SMALL = 0.06


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plotting needs matplotlib: pip install 'dpmedian[plot]'") from error
    return plt.subplots(figsize=(6.4, 5.6), layout="constrained")[1]


def _draw(release: Release, array: Floats, ax: Any, half: float, label: str) -> None:
    """Cloud, point and error circle in a square of the given half width around the point."""
    center, degree = release.point, _degree(release)
    ax.scatter(array[:, 0], array[:, 1], s=7, color=_CLOUD, alpha=0.5, linewidths=0, label=label)
    if release.error_radius is not None:
        turn = np.linspace(0.0, 2.0 * np.pi, 200)
        circle = center[:, None] + release.error_radius * np.array([degree * np.cos(turn), np.sin(turn)])
        ax.plot(*circle, color=_INK, linewidth=1.6, label=f"predicted error, radius {release.error_radius:.2g}")
    ax.plot(*center, marker="+", markersize=11, markeredgewidth=1.8, color=_INK, linestyle="", label="private median")
    ax.set_xlim(center[0] - degree * half, center[0] + degree * half)
    ax.set_ylim(center[1] - half, center[1] + half)
    ax.set_aspect(degree)


def _degree(release: Release) -> float:
    """How many degrees of longitude are as wide as one of latitude, at the point; 1 where points are no positions."""
    sphere = release.plan.parameters.geometry == "sphere"
    return 1.0 / max(float(np.cos(np.radians(release.point[1]))), 0.05) if sphere else 1.0


def plot_release(release: Release, points: ArrayLike, ax: Any = None) -> Any:
    """The released point over the cloud of records, with the circle of its predicted error. Returns the axes.

    The cloud is the private data itself: the picture is for the holder of the data, and says so.

    Parameters
    ----------
    release : Release
        In two dimensions.
    points : array, data frame or Arrow table of shape (n, 2)
        The private records.
    ax : matplotlib axes, optional
        Where to draw; new axes by default.

    Returns
    -------
    matplotlib axes
        The picture.
    """
    records = as_records(points)
    array, columns = records.array, records.columns
    if release.point.size != 2 or array.shape[1] != 2:
        raise ValueError(f"only two dimensions can be drawn, got d = {release.point.size} and points {array.shape}")
    ax = _axes(ax)
    if release.plan.parameters.geometry == "sphere":
        # Around the point, also across the date line.
        east = np.remainder(array[:, 0] - release.point[0] + 180.0, 360.0) - 180.0
        array = np.column_stack([release.point[0] + east, array[:, 1]])
    distance = np.max(np.abs(array - release.point) / [_degree(release), 1.0], axis=1)
    half = 1.08 * float(np.quantile(distance, _SHOWN)) or 1.0
    hidden = int(np.sum(distance > half))
    _draw(release, array, ax, half, "records (private)" + (f", {hidden} more outside" if hidden else ""))
    error = release.error_radius
    if error is not None and 0.0 < error < _SMALL * half:
        zoom = ax.inset_axes((0.72, 0.72, 0.27, 0.27))
        _draw(release, array, zoom, 1.6 * error, "")
        zoom.set_xticks([])
        zoom.set_yticks([])
        ax.indicate_inset_zoom(zoom, edgecolor=_INK)
    names = columns or release.columns or ("first coordinate", "second coordinate")
    ax.set_xlabel(names[0])
    ax.set_ylabel(names[1])
    ax.set_title(f"{release.method}, {records_text(release)}, {release.plan.parameters.budget}", fontsize=10)
    ax.legend(loc="upper left", fontsize=9, framealpha=0.95)
    ax.text(
        0.99,
        0.01,
        "contains private data: do not publish",
        transform=ax.transAxes,
        ha="right",
        va="bottom",
        fontsize=9,
        color=_WARNING,
        bbox={"boxstyle": "round", "facecolor": "white", "edgecolor": _WARNING, "alpha": 0.9},
    )
    return ax


def plot_plan(plan: Plan, ax: Any = None) -> Any:
    """The predicted error against the budget, for n/4, n and 4n records; the plan itself is marked. Returns the axes.

    Nothing here depends on data. A plan without a guess of its private n is drawn for the sizes that it shows.

    Parameters
    ----------
    plan : Plan
        Of a method that predicts an error.
    ax : matplotlib axes, optional
        Where to draw; new axes by default.

    Returns
    -------
    matplotlib axes
        The picture.
    """
    from dpmedian.planning.outlook import Outlook

    outlook = Outlook.of(plan)
    if outlook is None:
        raise ValueError(f"method {plan.method!r} predicts no error without data, so there is nothing to draw")
    ax = _axes(ax)
    budget, asked = plan.parameters.budget, outlook.asked
    values = asked * np.geomspace(1 / 8, 8, 13)
    for n, color in zip(outlook.sizes, _LINES, strict=True):
        # None, where no plan is possible or its release would probably fail, is a gap in the line.
        errors = np.array([outlook.predicted(n, value) for value in values], dtype=np.float64)
        ax.plot(values, errors, color=color, linewidth=2, label=f"n = {n:,}")
    if plan.n is not None:
        label = f"this plan: {outlook.here:.2g}"
        ax.plot([asked], [outlook.here], "o", markersize=9, color=_INK, label=label, zorder=3)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ticks = asked * 2.0 ** np.arange(-3, 4)
    ax.set_xticks(ticks, [f"{tick:.3g}" for tick in ticks])
    ax.minorticks_off()
    ax.set_xlabel(f"{budget.measure}" + (f" (delta = {budget.delta:.3g})" if budget.delta else ""))
    ax.set_ylabel(outlook.label)
    ax.set_title(f"{plan.method}, d = {plan.d}", fontsize=10)
    ax.grid(linewidth=0.4, alpha=0.6)
    ax.legend(fontsize=9)
    return ax
