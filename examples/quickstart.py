"""
A first release
===============

`make demo` runs this script. It releases the median of the bundled positions, and prints the plan and the true error.
"""

# sphinx_gallery_thumbnail_path = 'pictures/front-light.png'

import numpy as np

import dpmedian
from dpmedian import nonprivate
from dpmedian.data import load_positions

points = load_positions()
release = dpmedian.geometric_median(points, epsilon=1.0, delta=1e-6)
print(release)
print()
print(release.plan)
print()

# The data are invented, so we may print the exact median, which is not private.
exact = nonprivate.geometric_median(points)
excess = nonprivate.objective(points, release.point) / nonprivate.objective(points, exact) - 1.0
print(f"not private, for comparison: exact median {np.round(exact, 3)}, mean {np.round(points.mean(axis=0), 3)}")
print(f"distance of the release to the exact median: {np.linalg.norm(release.point - exact):.3f} km")
print(f"excess of its sum of distances: {excess:.1e}")
