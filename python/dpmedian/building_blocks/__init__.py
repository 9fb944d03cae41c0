"""Building blocks: parts of the methods as separate functions. Each function plans, charges and releases, and returns
its cost.

Every function takes `ledger=` and `seed=` like `geometric_median`, charges its full cost before it reads the data, and
returns a frozen `PrivateValue`. Neighbors are data sets of the same size that differ in one replaced record. With
`neighbours="add_remove"` they are data sets of which one has one record more.
"""

from dpmedian.building_blocks.parts import dpgd, find_radius, localize, size
from dpmedian.building_blocks.stated import above_threshold, exponential_mechanism, noisy_bisection
from dpmedian.building_blocks.value import PrivateValue

__all__ = [
    "PrivateValue",
    "above_threshold",
    "dpgd",
    "exponential_mechanism",
    "find_radius",
    "localize",
    "noisy_bisection",
    "size",
]
