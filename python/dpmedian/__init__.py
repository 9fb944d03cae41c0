"""The differentially private geometric median.

>>> import dpmedian, numpy as np
>>> points = np.random.default_rng(0).normal(size=(2000, 3))
>>> release = dpmedian.geometric_median(points, epsilon=1.0, delta=1e-6)
>>> release.point.shape
(3,)
"""

import importlib
from typing import Any

from dpmedian import building_blocks, presentation
from dpmedian._core import __version__, set_threads
from dpmedian.accounting import PrivacyCost
from dpmedian.api import geometric_median, plan, required_n
from dpmedian.clustering import k_medians, plan_k_medians
from dpmedian.dataset import Dataset
from dpmedian.documented import complete_docstrings
from dpmedian.grouped import geometric_medians, plan_groups
from dpmedian.groups.plan import GroupsPlan
from dpmedian.groups.releases import Releases
from dpmedian.inference import Region
from dpmedian.ledger import BudgetExceeded, Ledger
from dpmedian.places import Places
from dpmedian.planning.plan import Plan
from dpmedian.release import Release, ReleaseFailed
from dpmedian.sessions import NoisyValue, QuerySession, SessionExceeded, session
from dpmedian.step import Step
from dpmedian.stepping import robust_step
from dpmedian.trace import Query, Trace
from dpmedian.verification import Verification, verify
from dpmedian.warning import (
    ConversionWarning,
    InsecureSeedWarning,
    LikelyFailureWarning,
    LongRunWarning,
    PlainConnectionWarning,
    WeakPrivacyWarning,
)

__all__ = [
    "BudgetExceeded",
    "ConversionWarning",
    "Dataset",
    "GroupsPlan",
    "InsecureSeedWarning",
    "Ledger",
    "LikelyFailureWarning",
    "LongRunWarning",
    "NoisyValue",
    "Places",
    "PlainConnectionWarning",
    "Plan",
    "PrivacyCost",
    "Query",
    "QuerySession",
    "Region",
    "Release",
    "ReleaseFailed",
    "Releases",
    "SessionExceeded",
    "Step",
    "Trace",
    "Verification",
    "WeakPrivacyWarning",
    "__version__",
    "building_blocks",
    "geometric_median",
    "geometric_medians",
    "k_medians",
    "plan",
    "plan_groups",
    "plan_k_medians",
    "required_n",
    "robust_step",
    "session",
    "set_threads",
    "verify",
]

# Names of version 0.1.0 that are now in another module.
_MOVED = {
    "Block": "dpmedian.building_blocks.PrivateValue",
    "above_threshold": "dpmedian.building_blocks.above_threshold",
    "dpgd": "dpmedian.building_blocks.dpgd",
    "exponential_mechanism": "dpmedian.building_blocks.exponential_mechanism",
    "localize": "dpmedian.building_blocks.localize",
    "noisy_bisection": "dpmedian.building_blocks.noisy_bisection",
    "radius_finder": "dpmedian.building_blocks.find_radius",
}


# Public modules that are imported when they are first used.
_SUBMODULES = ("data", "files", "nonprivate")

# Modules that need optional packages. These modules are imported when they are used, and are not listed by `dir`,
# because a tool that reads all names should work without the optional packages.
_EXTRAS = ("flower", "opendp", "sklearn")

# Now all modules are imported, so docstrings that refer to the parameters of other functions can be completed.
complete_docstrings()
del presentation, complete_docstrings

# The submodule `release` is removed from this namespace, so that a call of `dpmedian.release(...)` raises the error of
# `__getattr__` below.
globals().pop("release")


def __dir__() -> list[str]:
    """The public names, without modules that are only parts of the implementation."""
    return sorted([*__all__, *_SUBMODULES])


def __getattr__(name: str) -> Any:
    if name == "release":
        raise AttributeError(
            "dpmedian.release is not a function: call dpmedian.geometric_median(points, epsilon=..., delta=...), or on "
            "the command line: dpmedian release FILE"
        )
    if name in (*_SUBMODULES, *_EXTRAS):
        return importlib.import_module(f"dpmedian.{name}")
    if name in _MOVED:
        raise AttributeError(f"dpmedian.{name} has moved: it is {_MOVED[name]} since version 0.2.0")
    raise AttributeError(f"module 'dpmedian' has no attribute {name!r}")
