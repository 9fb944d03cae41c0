"""Notes about a released point, computed from released values and public parameters only."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpmedian.inference import half_widths
from dpmedian.parameters import PublicParameters
from dpmedian.release import ClusterResult, MethodResult, StepResult

__all__ = ["notes_of"]

# The largest dimension in which intervals are compared. In more dimensions the region would take longer than the
# release.
_NOTED_DIMENSIONS = 50

# The relative half width of an interval is its half width divided by the value. It is large if it exceeds _LARGE and is
# at least _LARGER times the relative half width of another column.
_LARGE, _LARGER = 0.25, 2.0

# Points that are closer than this count as the same point.
_NEARLY_ZERO = 2.0**-500

# Two coordinates probably have different units or meanings if one is at least _DIFFERENT times as large as the other,
# and the core radius at least _DWARFED times as large as the smaller one. The second condition excludes a coordinate
# that is near zero by chance.
_DIFFERENT, _DWARFED = 8.0, 4.0


def notes_of(
    parameters: PublicParameters,
    result: MethodResult,
    columns: tuple[str, ...] | None,
    nonfinite: str,
    absolute_error: float,
) -> tuple[str, ...]:
    """Notes for a reader of this result. `absolute_error` is the predicted error in the units of the records."""
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
        "The point lies at the border of the public ball. If records lie outside of the ball, the point is the "
        "median of "
        "their projections onto the ball; check radius= and center=.",
    )


def _center_notes(
    parameters: PublicParameters, result: MethodResult, nonfinite: str, absolute_error: float
) -> tuple[str, ...]:
    """A note if the released point is the center, to which records with cells that are not numbers are moved.

    In an unattended run, the cells of a column of text are private data. If the column were refused before the charge
    because of its cells, the refusal would reveal something about a record without any cost. For example, two columns
    that differ in one cell ("12" or "unknown") are neighbors, but a reader gives them different types. This note
    reveals nothing new, because it is a function of the released point and of public parameters.
    """
    if nonfinite != "center" or parameters.geometry == "sphere" or isinstance(result, StepResult):
        return ()
    # If a column contains text, all records coincide at the center. The default method then releases the center
    # exactly, k-medians up to numbers that are almost zero, and the other methods up to their error.
    reach = max(absolute_error, parameters.resolution or 0.0, _NEARLY_ZERO)
    points = result.centers if isinstance(result, ClusterResult) else [result.point]
    if not any(_from_center(parameters, point) <= reach for point in points):
        return ()
    return (
        "The point lies at the center, to which nonfinite='center' moves every record with a cell that is not "
        "a number: "
        "if a column holds text, these are all records; check that every column holds numbers, or choose columns, "
        "columns=[...].",
    )


def _size_notes(parameters: PublicParameters, result: MethodResult, columns: tuple[str, ...] | None) -> tuple[str, ...]:
    """A note if columns with very different values were treated as if they had the same unit."""
    plain = parameters.geometry == "euclidean" and parameters.scales is None
    if result.moments is None or result.scale is None or not plain or not 2 <= parameters.d <= _NOTED_DIMENSIONS:
        return ()
    sizes = np.abs(result.point)
    with np.errstate(all="ignore"):
        different = np.ptp(np.log2(sizes)) > math.log2(_DIFFERENT)
    if not different or result.scale <= _DWARFED * sizes.min():
        return ()
    with np.errstate(all="ignore"):
        relative = half_widths(result.moments) / sizes
    widest, narrowest = int(np.argmax(relative)), int(np.argmin(relative))
    large = relative[widest] > max(_LARGE, _LARGER * relative[narrowest])
    if not (large and result.scale > _DWARFED * sizes[widest]):
        return ()
    wide, narrow = (columns[i] if columns else f"coordinate {i + 1}" for i in (widest, narrowest))
    return (
        f"The 95 % interval of {wide} is wide relative to its value, and the interval of {narrow} is not. A "
        "difference of 1 counts "
        "the same in every column, so if the columns have different units, give public scales, scales={...}.",
    )


def _weight_notes(parameters: PublicParameters) -> tuple[str, ...]:
    if parameters.weight_max is None:
        return ()
    return (
        f"The records have weights: each counted with its weight divided by the public cap {parameters.weight_max:g}, "
        "and the size is about the sum of these numbers.",
    )
