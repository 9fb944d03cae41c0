"""Confidence regions and axes of the data, computed from what a run released. Everything here is post-processing.

| file | holds |
|---|---|
| `moments.py` | what was released: curvature, second moments, directions, and the noise of each |
| `error.py` | the law of the error that follows from it |
| `region.py` | a ball and, if it is afforded, an ellipsoid, at any level |
| `axes.py` | the axes and the shape of the data |

Why the regions cover, and when they do not: inference.md.
"""

from dpmedian.inference.axes import Axes, Shape, axes_of, shape_of
from dpmedian.inference.moments import Moments, Noisy
from dpmedian.inference.region import Region, confidence_region, error_radius

__all__ = ["Axes", "Moments", "Noisy", "Region", "Shape", "axes_of", "confidence_region", "error_radius", "shape_of"]
