"""Degrees of arc and chords of the unit sphere."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["as_arc", "as_chord", "kilometers", "on_a_map", "on_unit_ball", "west_of"]

# The mean radius of the Earth, in kilometers.
_EARTH = 6371.0088

# Arguments that a caller cannot pass for a sphere, and the reasons.
_KNOWN = {
    "radius": "records lie on the unit sphere, whose radius is known",
    "center": "the search begins at the center of the unit ball",
}


def on_unit_ball(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Turn the arguments of a plan for longitude and latitude into arguments for records of the unit ball.

    Degrees of arc become chords.
    """
    for name, why in _KNOWN.items():
        if arguments.get(name) is not None:
            raise ValueError(f"geometry='sphere' does not accept {name}=: {why}")
    if arguments["d"] != 2:
        raise ValueError(
            f"geometry='sphere' needs two columns, longitude and latitude in degrees, got d = {arguments['d']}"
        )
    resolution = arguments.get("resolution")
    if resolution is not None:
        if not 0.0 < float(resolution) < 60.0:
            raise ValueError(f"resolution must be between 0 and 60 degrees of arc on the sphere, got {resolution!r}")
        resolution = as_chord(float(resolution))
    return {**arguments, "d": 3, "radius": 1.0, "resolution": resolution}


def as_chord(degrees: float) -> float:
    """The straight distance between two points of the unit sphere that are this many degrees of arc apart."""
    return 2.0 * math.sin(math.radians(degrees) / 2.0)


def as_arc(chord: float) -> float:
    """The degrees of arc between two points of the unit sphere at this straight distance, at most 180."""
    return math.degrees(2.0 * math.asin(min(chord / 2.0, 1.0)))


def kilometers(degrees: float) -> float:
    """The length of an arc of this many degrees on the Earth."""
    return _EARTH * math.radians(degrees)


def west_of(longitudes: NDArray[np.float64]) -> float:
    """The longitude at which a map of some points begins: the middle of the widest gap between their longitudes.

    The result is between -360 and 0 degrees, so that the middle of the map has its usual longitude.
    """
    around = np.sort(np.remainder(longitudes, 360.0))
    gaps = np.diff(around, append=around[0] + 360.0)
    widest = int(np.argmax(gaps))
    return float(np.remainder(around[widest] + 0.5 * gaps[widest], 360.0) - 360.0)


def on_a_map(longitudes: NDArray[np.floating[Any]], west: float) -> NDArray[np.float64]:
    """The longitudes on a map that begins at `west`, so that points on both sides of the date line can be near each
    other.
    """
    moved: NDArray[np.float64] = west + np.remainder(longitudes - west, 360.0)
    return moved
