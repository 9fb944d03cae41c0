"""Conversion of longitudes and latitudes in degrees to unit vectors, and of a released point to a position.

Proof: sphere.md.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np

from dpmedian import _core
from dpmedian.accounting import PrivacyCost
from dpmedian.release import ClusterResult, MethodResult, ReleaseFailed
from dpmedian.sources.cells import Intake
from dpmedian.sources.records import Records
from dpmedian.spherical import as_arc

__all__ = ["as_position", "as_vectors"]

# Words in the name of a column that show whether it is a latitude or a longitude. A column named "x" is a longitude,
# and "y" a latitude. In a longer name, x and y may mean something else, for example the name of a table.
_LATITUDE = {"lat", "latitude"}
_LONGITUDE = {"lon", "lng", "long", "longitude"}
_SWAPPED = ({"y"}, {"x"})

# A word in a name such as "pickup_lat", "pickupLat" or "PICKUP LAT".
_WORD = re.compile("[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def as_vectors(records: Records, intake: Intake) -> Records:
    """Convert every position to a unit vector. The vector is NaN if a number is missing, or if the latitude is not
    between -90 and 90.
    """
    positions = records.array
    if positions.shape[1] != 2:
        raise ValueError(
            f"geometry='sphere' needs two columns, longitude and latitude in degrees, got {positions.shape[1]}"
        )
    _refuse_if_swapped(records.columns)
    if not intake.unattended:
        records.require_finite()
        beyond = np.flatnonzero(np.abs(positions[:, 1]) > 90.0)
        if len(beyond):
            raise ValueError(
                f"points[{beyond[0]}, 1]: the latitude in row {beyond[0] + 1} is not between -90 and 90; the "
                "columns must be "
                "longitude, then latitude, in degrees; correct it, or let nonfinite='center' replace such records"
            )
    vectors = _core.sphere_vectors(np.ascontiguousarray(positions, dtype=np.float64))
    return replace(records, array=vectors, geometry="sphere")


def _refuse_if_swapped(columns: tuple[str, ...] | None) -> None:
    """Raise an error if, by their names, the columns are latitude and then longitude. The names are public."""
    if columns is None:
        return
    first, second = ({word.lower() for word in _WORD.findall(name)} for name in columns)
    if first & _LATITUDE or second & _LONGITUDE or (first, second) == _SWAPPED:
        raise ValueError(
            f"geometry='sphere' needs longitude, then latitude, but the columns are {columns[0]!r}, then "
            f"{columns[1]!r}; give them in the other order, or rename them"
        )


def as_position(result: MethodResult) -> MethodResult:
    """Convert the released point of the ball to longitude and latitude, and distances to degrees of arc.

    If the error radius reaches the center of the ball, the point has no direction, and the release fails.
    """
    if isinstance(result, ClusterResult):
        return _positions(result)
    x, y, z = result.point.tolist()
    length, error = math.hypot(x, y, z), result.error_radius or 0.0
    if length <= error or length == 0.0:
        raise ReleaseFailed(
            f"no position: the median of the unit vectors has a length of {length:.3g} and a predicted error of "
            f"{error:.3g}, so its direction is not known; either the records lie on all sides of the globe, or most of "
            "them are not positions (longitude, then latitude, in degrees)",
            PrivacyCost(),
            result.size,
        )
    return replace(
        result,
        point=np.array([math.degrees(math.atan2(y, x)), math.degrees(math.atan2(z, math.hypot(x, y)))]),
        scale=None if result.scale is None else as_arc(result.scale),
        # The error radius becomes the largest angle between the point and any point of the error ball, seen from the
        # center of the globe (sphere.md).
        moments=None if result.moments is None else replace(result.moments, position=(x, y, z)),
        error_radius=None if result.error_radius is None else math.degrees(math.asin(min(error / length, 1.0))),
    )


def _positions(result: ClusterResult) -> ClusterResult:
    """Convert the centers of clusters to positions.

    If the center of a cluster is the center of the globe, it has no direction, and the release fails.
    """
    lengths = np.linalg.norm(result.centers, axis=1)
    if not np.all(lengths > 0.0):
        raise ReleaseFailed(
            "no position: the center of a cluster is the center of the globe, which has no direction",
            PrivacyCost(),
            result.size,
        )
    x, y, z = (result.centers / lengths[:, None]).T
    centers = np.degrees(np.column_stack([np.arctan2(y, x), np.arctan2(z, np.hypot(x, y))]))
    return replace(
        result,
        point=centers[0].copy(),
        centers=centers,
        radii=np.array([as_arc(radius) for radius in result.radii.tolist()]),
        scale=None if result.scale is None else as_arc(result.scale),
    )
