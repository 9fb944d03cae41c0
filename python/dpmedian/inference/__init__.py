"""Confidence regions and axes of the data, computed from released values. Everything here is post-processing.

| file | holds |
|---|---|
| `moments.py` | the released values: curvature, second moments, directions, and the noise of each |
| `error.py` | the distribution of the error, which follows from these values |
| `region.py` | a confidence region at any level: a ball, and an ellipsoid if the directions are known |
| `axes.py` | the axes and the shape of the data |

inference.md explains why the regions contain the median with the stated probability, and when they do not.
"""

from dpmedian.inference.axes import Axes, Shape, axes_of, shape_of
from dpmedian.inference.moments import Moments, Noisy
from dpmedian.inference.region import Region, confidence_region, error_radius, half_widths

__all__ = [
    "Axes",
    "Moments",
    "Noisy",
    "Region",
    "Shape",
    "axes_of",
    "confidence_region",
    "error_radius",
    "half_widths",
    "shape_of",
]
