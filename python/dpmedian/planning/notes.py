"""Notes about a released point: post-processing of what was released and of public parameters."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpmedian.inference.region import confidence_region
from dpmedian.parameters import PublicParameters
from dpmedian.release import ClusterResult, MethodResult, StepResult

__all__ = ["notes_of"]

# Intervals are compared in at most this many dimensions: in more dimensions the region takes longer than the release.
_NOTED_DIMENSIONS = 50

# The half width of an interval is large if it exceeds this share of its value, and if it is at least so many times as
# large, compared with its value, as that of another column.
_LARGE, _LARGER = 0.25, 2.0

# Two places that are closer than this are the same for every purpose.
_NEARLY_ZERO = 2.0**-500

# If a value is this many times as large as another one, and the core radius this many times as large as the smaller
# value, the two probably have different units or meanings. One of two coordinates may be near zero without that, but
# then the core radius is not much larger.
_DIFFERENT, _DWARFED = 8.0, 4.0


def notes_of(
    parameters: PublicParameters,
    result: MethodResult,
    columns: tuple[str, ...] | None,
    nonfinite: str,
    absolute_error: float,
) -> tuple[str, ...]:
    """Notes for a reader of this result; `absolute_error` is the predicted error in the units of the records."""
    return (
        *_border_notes(parameters, result.point),
        *_center_notes(parameters, result, nonfinite, absolute_error),
        *_weight_notes(parameters),
        *_size_notes(parameters, result, columns),
    )


def _from_center(parameters: PublicParameters, point: NDArray[np.float64]) -> float:
    """The distance of a released point from the public center, in units of the scales."""
    return math.dist(point / np.array(parameters.scales or 1.0), parameters.origin)


def _border_notes(parameters: PublicParameters, point: NDArray[np.float64]) -> tuple[str, ...]:
    """A note if the released point lies near the border of the public ball."""
    radius = parameters.radius
    if radius is None or parameters.geometry == "sphere" or _from_center(parameters, point) < 0.9 * radius:
        return ()
    return (
        "The point lies at the border of the public ball: if records lie outside of it, this is the median of "
        "their projections; check radius= and center=.",
    )


def _center_notes(
    parameters: PublicParameters, result: MethodResult, nonfinite: str, absolute_error: float
) -> tuple[str, ...]:
    """A note if the point was released at the center, to which records with cells that are not numbers are moved.

    In an unattended run the cells of a column of text are data. Refusing the column because of its cells before the
    charge would reveal something about a record at no cost to everyone who sees the refusal: two columns that differ in
    one cell, "12" or "unknown", are neighbors, and a reader gives them different types. This note reveals nothing new,
    because it is a function of the released point and of public parameters.
    """
    if nonfinite != "center" or parameters.geometry == "sphere" or isinstance(result, StepResult):
        return ()
    # A column of text makes all records coincide at the center. The default method releases this point exactly
    # (k-medians up to numbers that are almost zero), and the other methods as exactly as they can.
    reach = max(absolute_error, parameters.resolution or 0.0, _NEARLY_ZERO)
    points = result.centers if isinstance(result, ClusterResult) else [result.point]
    if not any(_from_center(parameters, point) <= reach for point in points):
        return ()
    return (
        "The point lies at the center, to which nonfinite='center' sends every record with a cell that is no number: "
        "if a column holds text, that is all of them; check that every column holds numbers, or choose those that do, "
        "columns=[...].",
    )


def _size_notes(parameters: PublicParameters, result: MethodResult, columns: tuple[str, ...] | None) -> tuple[str, ...]:
    """A note if columns of very different size were treated as if they had one unit."""
    plain = parameters.geometry == "euclidean" and parameters.scales is None
    if result.moments is None or result.scale is None or not plain or not 2 <= parameters.d <= _NOTED_DIMENSIONS:
        return ()
    intervals = confidence_region(result.point, result.moments, 0.95, result.scale).intervals
    with np.errstate(all="ignore"):
        sizes = np.abs(result.point)
        relative = 0.5 * (intervals[:, 1] - intervals[:, 0]) / sizes
        different = np.ptp(np.log2(sizes)) > math.log2(_DIFFERENT)
    widest, narrowest = int(np.argmax(relative)), int(np.argmin(relative))
    large = relative[widest] > max(_LARGE, _LARGER * relative[narrowest])
    if not (different and large and result.scale > _DWARFED * sizes[widest]):
        return ()
    wide, narrow = (columns[i] if columns else f"coordinate {i + 1}" for i in (widest, narrowest))
    return (
        f"The 95 % interval of {wide} is wide for its value, and that of {narrow} is not. A difference of 1 counts "
        "the same in every column, so if the columns have different units, give public scales, scales={...}.",
    )


def _weight_notes(parameters: PublicParameters) -> tuple[str, ...]:
    if parameters.weight_max is None:
        return ()
    return (
        f"Weighted: a record counted with its weight over the public cap {parameters.weight_max:g}, and the "
        "size is about the sum of these.",
    )
