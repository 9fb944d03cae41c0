"""The differentially private geometric median.

>>> import dpmedian, numpy as np
>>> points = np.random.default_rng(0).normal(size=(2000, 3))
>>> release = dpmedian.geometric_median(points, epsilon=1.0, delta=1e-6)
>>> release.point.shape
(3,)
"""

from dpmedian._core import __version__, set_threads
from dpmedian.accounting import PrivacyCost
from dpmedian.building_blocks import (
    Block,
    above_threshold,
    dpgd,
    exponential_mechanism,
    localize,
    noisy_bisection,
    radius_finder,
)
from dpmedian.ledger import Ledger
from dpmedian.plan import InsecureSeedWarning, Plan, geometric_median, plan, required_n
from dpmedian.release import Release, ReleaseFailed

__all__ = [
    "Block",
    "InsecureSeedWarning",
    "Ledger",
    "Plan",
    "PrivacyCost",
    "Release",
    "ReleaseFailed",
    "__version__",
    "above_threshold",
    "dpgd",
    "exponential_mechanism",
    "geometric_median",
    "localize",
    "noisy_bisection",
    "plan",
    "radius_finder",
    "required_n",
    "set_threads",
]
