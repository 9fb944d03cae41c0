"""Longitude and latitude in degrees as records of the unit ball, and a released point of the ball as a position again.

The proof lies beside this file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dpmedian import _core
from dpmedian.accounting import PrivacyCost
from dpmedian.release import MethodResult, ReleaseFailed
from dpmedian.sources.records import Records

__all__ = ["as_arc", "as_chord", "as_position", "as_vectors", "on_unit_ball"]

# What a caller may not say about a sphere, since it is known.
_KNOWN = {
    "radius": "records lie on the unit sphere, whose radius is known",
    "center": "the search begins at the center of the unit ball",
}


def on_unit_ball(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a plan for longitude and latitude as those of one for records of the unit ball.

    Degrees of arc become chords.
    """
    for name, why in _KNOWN.items():
        if arguments.get(name) is not None:
            raise ValueError(f"geometry='sphere' takes no {name}=: {why}")
    if arguments["d"] != 2:
        raise ValueError(f"geometry='sphere' needs two columns, longitude and latitude in degrees, got d = {arguments['d']}")
    resolution = arguments.get("resolution")
    if resolution is not None:
        if not 0.0 < float(resolution) < 60.0:
            raise ValueError(f"resolution must be between 0 and 60 degrees of arc on the sphere, got {resolution!r}")
        resolution = as_chord(float(resolution))
    return {**arguments, "d": 3, "radius": 1.0, "resolution": resolution}


def as_vectors(records: Records, nonfinite: str) -> Records:
    """Every position as a unit vector, NaN where there is none: a latitude beyond a pole counts as not finite."""
    positions = records.array
    if positions.shape[1] != 2:
        raise ValueError(
            f"geometry='sphere' needs two columns, longitude and latitude in degrees, got {positions.shape[1]}"
        )
    if nonfinite == "raise":
        records.require_finite()
        beyond = np.flatnonzero(np.abs(positions[:, 1]) > 90.0)
        if len(beyond):
            raise ValueError(
                f"points[{beyond[0]}, 1]: the latitude in row {beyond[0] + 1} is beyond a pole; the columns must be "
                "longitude, then latitude, in degrees; correct it, or let nonfinite='center' replace such records"
            )
    vectors = _core.sphere_vectors(np.ascontiguousarray(positions, dtype=np.float64))
    return replace(records, array=vectors, geometry="sphere")


def as_position(result: MethodResult) -> MethodResult:
    """The released point of the ball as longitude and latitude, with distances in degrees of arc.

    A point of the ball whose error reaches its center has no direction, which is a failure.
    """
    x, y, z = result.point.tolist()
    length, error = math.hypot(x, y, z), result.error_radius or 0.0
    if length <= error or length == 0.0:
        raise ReleaseFailed(
            f"no direction: the median of the unit vectors lies {length:.3g} from the center of the globe, within its "
            f"predicted error of {error:.3g}; the positions have no common direction",
            PrivacyCost(),
            result.size,
        )
    return replace(
        result,
        point=np.array([math.degrees(math.atan2(y, x)), math.degrees(math.atan2(z, math.hypot(x, y)))]),
        scale=None if result.scale is None else as_arc(result.scale),
        # The largest angle under which a ball of that radius around the point is seen from the center.
        error_radius=None if result.error_radius is None else math.degrees(math.asin(min(error / length, 1.0))),
    )


def as_chord(degrees: float) -> float:
    """The straight distance between two points of the unit sphere that are so many degrees of arc apart."""
    return 2.0 * math.sin(math.radians(degrees) / 2.0)


def as_arc(chord: float) -> float:
    """The degrees of arc between two points of the unit sphere at this straight distance; at most 180."""
    return math.degrees(2.0 * math.asin(min(chord / 2.0, 1.0)))
