"""Geometry on values that are private already: whatever is done here costs nothing.

`VolumetricCenter(origin, radius)` is a ball cut by half-spaces: `.center` is its volumetric center, `.cut(direction)`
keeps the half on which the direction does not ascend, or returns False when the region has collapsed in double
precision, and `VolumetricCenter.TAU` is the fraction of the volume that plans expect a cut to remove.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpmedian._core import VolumetricCenter
from dpmedian.parameters import LARGEST

__all__ = ["VolumetricCenter", "onto_ball"]

Vector = NDArray[np.float64]


def onto_ball(point: Vector, center: Vector, radius: float | None) -> Vector:
    """The nearest point of the ball; without a radius, the point with its coordinates kept below 2^1000.

    A coordinate that is no number counts as the center's, so that no iterate is ever lost, as in the core's projection.
    """
    point = np.clip(np.where(np.isnan(point), center, point), -LARGEST, LARGEST)
    if radius is None:
        return point
    offset = point - center
    # The largest coordinate is divided out first, so that no square overflows.
    largest = float(np.max(np.abs(offset)))
    length = 0.0 if largest == 0.0 else largest * float(np.linalg.norm(offset / largest))
    return point if length <= radius else np.asarray(center + offset * (radius / length))
