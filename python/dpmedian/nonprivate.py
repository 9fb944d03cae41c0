"""Exact, **not private** quantities, to evaluate releases against. Never publish what these functions return.

>>> import numpy as np
>>> from dpmedian import nonprivate
>>> points = np.array([[0.0, 0.0], [4.0, 0.0], [2.0, 1.0], [2.0, -3.0]])
>>> nonprivate.geometric_median(points)
array([2., 0.])
>>> nonprivate.objective(points, [2.0, 0.0])
8.0
>>> nonprivate.ball_counts(points, [1.0, 4.0, 8.0])
array([[1, 4, 4],
       [1, 4, 4],
       [1, 4, 4],
       [1, 4, 4]])
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpmedian import _core
from dpmedian.sources.records import Floats, as_records

__all__ = ["ball_counts", "geometric_median", "gradient", "objective", "quantile_radius", "top_count_sums"]


def geometric_median(points: Any) -> NDArray[np.float64]:
    """A point that minimises the sum of distances to the points, with a relative gap of the objective below 1e-10.

    Parameters
    ----------
    points : array, data frame or Arrow table of shape (n, d)
        The records, one per row; arrays of float64 or float32 in C order are read where they lie.

    Returns
    -------
    ndarray of shape (d,)
        The median, not private.
    """
    return _core.nonprivate_median(_array(points))


def objective(points: Any, theta: ArrayLike) -> float:
    """The sum of the distances from `theta` to the points.

    Parameters
    ----------
    points : array, data frame or Arrow table of shape (n, d)
        The records, one per row; arrays of float64 or float32 in C order are read where they lie.
    theta : d numbers
        The point from which distances are taken.

    Returns
    -------
    float
        The sum of distances, not private.
    """
    array = _array(points)
    return _core.nonprivate_objective(array, _location(theta, "theta", array))


def gradient(points: Any, theta: ArrayLike) -> NDArray[np.float64]:
    """The gradient of `objective`: the sum of unit vectors from the points to `theta`; a point at `theta` adds 0.

    Parameters
    ----------
    points : array, data frame or Arrow table of shape (n, d)
        The records, one per row; arrays of float64 or float32 in C order are read where they lie.
    theta : d numbers
        The point at which the gradient is taken.

    Returns
    -------
    ndarray of shape (d,)
        The gradient, not private.
    """
    array = _array(points)
    # The finest lattice on which the sum of n unit vectors fits 64 bits.
    bits = min(40, 62 - (array.shape[0] - 1).bit_length())
    sums = _core.nonprivate_gradient(array, _location(theta, "theta", array), bits)
    return np.asarray(np.ldexp(sums.astype(np.float64), -bits))


def quantile_radius(points: Any, center: ArrayLike, fraction: float) -> float:
    """The radius of the smallest ball around `center` that holds at least `fraction` of the points.

    Parameters
    ----------
    points : array, data frame or Arrow table of shape (n, d)
        The records, one per row; arrays of float64 or float32 in C order are read where they lie.
    center : d numbers
        The center of the ball.
    fraction : float
        In (0, 1].

    Returns
    -------
    float
        The radius, not private.
    """
    if not 0.0 < fraction <= 1.0:
        raise ValueError(f"fraction must lie in (0, 1], got {fraction!r}")
    array = _array(points)
    count = max(1, math.ceil(fraction * array.shape[0]))
    return _core.nonprivate_quantile_radius(array, _location(center, "center", array), count)


def ball_counts(points: Any, radii: ArrayLike) -> NDArray[np.int64]:
    """For each point and each radius, the number of points within the radius, itself included: shape (n, radii).

    Parameters
    ----------
    points : array, data frame or Arrow table of shape (n, d)
        The records, one per row; arrays of float64 or float32 in C order are read where they lie.
    radii : k numbers
        Finite and not negative, in any order.

    Returns
    -------
    ndarray of int64 of shape (n, k)
        The counts, not private.
    """
    sorted_radii, order = _radii(radii)
    counts = _core.nonprivate_ball_counts(_array(points), sorted_radii)
    return counts if order is None else counts[:, order]


def top_count_sums(points: Any, radii: ArrayLike, m: int) -> NDArray[np.int64]:
    """For each radius, the sum of the m largest ball counts.

    Parameters
    ----------
    points : array, data frame or Arrow table of shape (n, d)
        The records, one per row; arrays of float64 or float32 in C order are read where they lie.
    radii : k numbers
        Finite and not negative, in any order.
    m : int
        How many of the largest counts are summed, from 1 to n.

    Returns
    -------
    ndarray of int64 of shape (k,)
        The sums, not private.
    """
    sorted_radii, order = _radii(radii)
    array = _array(points)
    if isinstance(m, bool) or not isinstance(m, (int, np.integer)):
        raise TypeError(f"m must be an integer, got {m!r}")
    if not 1 <= m <= array.shape[0]:
        raise ValueError(f"m must lie between 1 and n = {array.shape[0]}, got {m}")
    sums = _core.nonprivate_top_count_sums(array, sorted_radii, int(m))
    return sums if order is None else sums[order]


def _array(points: Any) -> Floats:
    """The points as an array, which the kernels read where it lies."""
    array = as_records(points).array
    if 0 in array.shape:
        raise ValueError(f"points must have at least one row and one column, got shape {array.shape}")
    return array


def _location(value: ArrayLike, name: str, points: Floats) -> NDArray[np.float64]:
    location = np.array(value, dtype=np.float64, order="C")
    if location.shape != (points.shape[1],):
        raise ValueError(f"{name} must have shape ({points.shape[1]},), got shape {location.shape}")
    if not np.isfinite(location).all():
        raise ValueError(f"{name} must be finite, got {location}")
    # The same clamp as for the points: no difference of two coordinates overflows.
    return np.clip(location, -(2.0**1000), 2.0**1000)


def _radii(value: ArrayLike) -> tuple[list[float], NDArray[np.intp] | None]:
    """The radii in ascending order, and where the caller had them unless they were in order."""
    radii = np.array(value, dtype=np.float64, order="C")
    if radii.ndim != 1:
        raise ValueError(f"radii must have shape (k,), got shape {radii.shape}")
    if not (np.isfinite(radii) & (radii >= 0.0)).all():
        raise ValueError(f"radii must be finite and at least 0, got {radii}")
    if (np.diff(radii) >= 0.0).all():
        return radii.tolist(), None
    order = np.argsort(radii, kind="stable")
    return radii[order].tolist(), np.argsort(order)
