"""Exact, **not private** quantities, for the evaluation of releases. Never publish the results of these functions.

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
from dpmedian.dataset.memory import Memory
from dpmedian.dataset.reading import Reading
from dpmedian.documented import complete_docstrings, documented
from dpmedian.groups.releases import Releases
from dpmedian.release import MethodResult, Release
from dpmedian.sources.cells import Floats
from dpmedian.sources.key_columns import group_keys, named_columns
from dpmedian.sources.records import Records, as_records
from dpmedian.sources.sphere import as_position
from dpmedian.sources.units import check_missing
from dpmedian.sources.weights import WHOLE_WEIGHT

__all__ = [
    "ball_counts",
    "excess",
    "geometric_median",
    "geometric_medians",
    "gradient",
    "objective",
    "quantile_radius",
    "top_count_sums",
]


def geometric_median(
    points: Any,
    *,
    weights: ArrayLike | None = None,
    unit: Any = None,
    unit_reduce: str = "median",
    geometry: str = "euclidean",
) -> NDArray[np.float64]:
    """A point that minimizes the sum of distances to the points, with a relative gap of the objective below 1e-10.

    Parameters
    ----------
    points : array, data frame or Arrow table of shape (n, d)
        The records, one per row; arrays of float64 or float32 in C order are read in place.
    weights : n numbers, optional
        Weights of the rows, not negative. The weight of a unit is the largest weight of its rows.
    unit, unit_reduce, geometry
        As in `dpmedian.geometric_median`, which estimates this median.

    Returns
    -------
    ndarray of shape (d,)
        The median, not private.
    """
    reading = {"unit": unit, "unit_reduce": unit_reduce, "geometry": geometry}
    if weights is None:
        records = Memory.of(points, Reading.of(**reading)).records
        return _position(_core.nonprivate_median(_not_empty(records.array)), geometry)
    own = _weights(weights)
    # Weights are scaled to [0, 1], and the weight of a unit is the largest weight of its rows, as in a release.
    records = Memory.of(points, Reading.of(**reading, **_weighted(own))).records
    assert records.weights is not None
    shares = own / (own.max(initial=0.0) or 1.0) if unit is None else records.weights / float(WHOLE_WEIGHT)
    kept = shares > 1e-30
    median = _core.nonprivate_median(_not_empty(records.array[kept]), np.ascontiguousarray(shares[kept]))
    return _position(median, geometry)


def geometric_medians(
    points: Any,
    by: Any,
    *,
    keys: Any,
    unit: Any = None,
    unit_reduce: str = "median",
    max_groups_per_unit: int = 1,
    geometry: str = "euclidean",
    weights: ArrayLike | None = None,
) -> dict[Any, NDArray[np.float64] | None]:
    """The medians of groups, which `dpmedian.geometric_medians` estimates.

    Parameters
    ----------
    points : array, data frame or Arrow table
        The rows.
    by, keys, unit, unit_reduce, max_groups_per_unit, geometry
        As in `dpmedian.geometric_medians`.
    weights : n numbers, optional
        Weights of the rows, not negative. The weight of a unit in a group is the largest weight of its rows in the
        group.

    Returns
    -------
    dict
        For every key the median of its group, not private, or None if the group is empty.
    """
    found = group_keys(keys)
    own = {} if weights is None else _weighted(_weights(weights))
    labels = named_columns(points, by) or ()
    reading = Reading.of(unit=unit, unit_reduce=unit_reduce, geometry=geometry, labels=labels, **own)
    grouped = Memory.of(points, reading).grouped(by, found, max_groups_per_unit)
    counted = (_counted(grouped.records_of(i)) for i in range(len(found)))
    medians = [_core.nonprivate_median(array, shares) if len(array) else None for array, shares in counted]
    return {
        key: None if median is None else _position(median, geometry) for key, median in zip(found, medians, strict=True)
    }


def excess(
    releases: Release | Releases,
    points: Any,
    by: Any = None,
    *,
    unit: Any = None,
    unit_reduce: str = "median",
    sample_weight: Any = None,
) -> Any:
    """The excess of a released point: F(point)/F(median) - 1, where F is the sum of distances.

    Parameters
    ----------
    releases : Release or Releases
        The release, or the releases of groups.
    points, by, unit, unit_reduce, sample_weight
        The arguments of the release. Weights count up to the public cap of the release.

    Returns
    -------
    float, or for groups a dict from each key to a float
        The excess, not private. For groups, a dict with the groups that have a point. On the sphere, F is the sum of
        straight distances, and the median is projected onto the sphere.
    """
    parameters = releases.plan.parameters
    reading = Reading.of(
        unit=unit,
        unit_reduce=unit_reduce,
        sample_weight=sample_weight,
        weight_max=parameters.weight_max,
        geometry=parameters.geometry,
        scales=parameters.scales,
        labels=named_columns(points, by) or (),
    )
    rows, scales = Memory.of(points, reading), np.array(parameters.scales or 1.0)
    if isinstance(releases, Release):
        check_missing(rows.first_missing, rows.unit, "raise", releases.plan.parameters.protection.relation)
        return _excess(rows.records, releases.point / scales)
    grouped = rows.grouped(by, group_keys(list(releases)), releases.plan.max_groups_per_unit)
    return {
        key: _excess(grouped.records_of(i), value.point / scales)
        for i, (key, value) in enumerate(releases.items())
        if isinstance(value, Release)
    }


def _excess(records: Records, point: NDArray[np.float64]) -> float:
    array, shares = _counted(records)
    median = _core.nonprivate_median(_not_empty(array), shares)
    if records.geometry == "sphere":
        point = _core.sphere_vectors(np.array([point], dtype=np.float64))[0]
        median = median / np.linalg.norm(median)
    least, reached = (objective(array, theta, weights=shares) for theta in (median, point))
    return 0.0 if reached == least else reached / least - 1.0 if least > 0.0 else math.inf


def _counted(records: Records) -> tuple[Floats, NDArray[np.float64] | None]:
    """The records that count, and their weights in units of the cap, if there are weights."""
    if records.weights is None:
        return records.array, None
    kept = records.weights > 0
    return np.ascontiguousarray(records.array[kept]), records.weights[kept] / float(WHOLE_WEIGHT)


def _position(median: NDArray[np.float64], geometry: str) -> NDArray[np.float64]:
    return as_position(MethodResult(point=median)).point if geometry == "sphere" else median


@documented
def objective(points: Any, theta: ArrayLike, *, weights: ArrayLike | None = None) -> float:
    """The sum of the distances from `theta` to the points, each multiplied by its weight if there are weights.

    Parameters
    ----------
    points : array, data frame or Arrow table of shape (n, d)
        The records, one per row; arrays of float64 or float32 in C order are read in place.
    theta : d numbers
        The point from which distances are taken.
    weights : n numbers, optional
        Weights of the points, not negative.

    Returns
    -------
    float
        The sum of distances, not private.
    """
    array = _array(points)
    if weights is not None:
        own, place = _weights(weights), _location(theta, "theta", array)
        if len(own) != len(array):
            raise ValueError(f"weights must have one number for each of the {len(array)} points, got {len(own)}")
        return float(own @ np.linalg.norm(array.astype(np.float64) - place, axis=1))
    return _core.nonprivate_objective(array, _location(theta, "theta", array))


@documented
def gradient(points: Any, theta: ArrayLike) -> NDArray[np.float64]:
    """The gradient of `objective`: the sum of the unit vectors from the points to `theta`. A point at `theta` adds 0.

    Parameters
    ----------
    points
        As in `objective`.
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


@documented
def quantile_radius(points: Any, center: ArrayLike, fraction: float) -> float:
    """The radius of the smallest ball around `center` that holds at least `fraction` of the points.

    Parameters
    ----------
    points
        As in `objective`.
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


@documented
def ball_counts(points: Any, radii: ArrayLike) -> NDArray[np.int64]:
    """For each point and each radius, the number of points within the radius of this point, itself included.

    Parameters
    ----------
    points
        As in `objective`.
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


@documented
def top_count_sums(points: Any, radii: ArrayLike, m: int) -> NDArray[np.int64]:
    """For each radius, the sum of the m largest ball counts.

    Parameters
    ----------
    points
        As in `objective`.
    radii
        As in `ball_counts`.
    m : int
        The number of the largest counts that are summed, from 1 to n.

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
    """The points as an array, which the kernels read in place."""
    return _not_empty(as_records(points).array)


def _not_empty(array: Floats) -> Floats:
    if 0 in array.shape:
        raise ValueError(f"points must have at least one row and one column, got shape {array.shape}")
    return array


def _weights(value: ArrayLike) -> NDArray[np.float64]:
    weights = np.array(value, dtype=np.float64)
    if weights.ndim != 1 or not (np.isfinite(weights) & (weights >= 0.0)).all():
        raise ValueError("weights must be finite numbers that are not negative, one for each row")
    return weights


def _weighted(weights: NDArray[np.float64]) -> dict[str, Any]:
    """The options of a dataset with these weights, of which the largest is the cap."""
    return {"sample_weight": weights, "weight_max": float(weights.max(initial=0.0)) or 1.0}


def _location(value: ArrayLike, name: str, points: Floats) -> NDArray[np.float64]:
    location = np.array(value, dtype=np.float64, order="C")
    if location.shape != (points.shape[1],):
        raise ValueError(f"{name} must have shape ({points.shape[1]},), got shape {location.shape}")
    if not np.isfinite(location).all():
        raise ValueError(f"{name} must be finite, got {location}")
    # The location is clamped like the points, so that no difference of two coordinates overflows.
    return np.clip(location, -(2.0**1000), 2.0**1000)


def _radii(value: ArrayLike) -> tuple[list[float], NDArray[np.intp] | None]:
    """The radii in ascending order, and their original positions unless they were in order."""
    radii = np.array(value, dtype=np.float64, order="C")
    if radii.ndim != 1:
        raise ValueError(f"radii must have shape (k,), got shape {radii.shape}")
    if not (np.isfinite(radii) & (radii >= 0.0)).all():
        raise ValueError(f"radii must be finite and at least 0, got {radii}")
    if (np.diff(radii) >= 0.0).all():
        return radii.tolist(), None
    order = np.argsort(radii, kind="stable")
    return radii[order].tolist(), np.argsort(order)


complete_docstrings()
