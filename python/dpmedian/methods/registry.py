"""All methods by name.

`plan`, the command line and `auto` offer the methods of this list, and the tests cover them.
"""

from __future__ import annotations

from dpmedian import clusters, steps
from dpmedian.methods import adaptive
from dpmedian.methods.contract import Method
from dpmedian.methods.paper import dpgd, inverse_sensitivity, loc_cutting_plane, loc_dpgd

__all__ = ["CLUSTERING", "METHODS", "STEPS", "method_named"]

METHODS: dict[str, Method] = {
    method.name: method for method in (adaptive, dpgd, loc_dpgd, loc_cutting_plane, inverse_sensitivity)
}

CLUSTERING: dict[str, Method] = {clusters.name: clusters}
"""Methods that release several points. Separate functions offer these methods."""

STEPS: dict[str, Method] = {steps.name: steps}
"""Methods that release a direction from a public point instead of a point."""


def method_named(name: str) -> Method:
    """The method of this name, of any kind."""
    return {**METHODS, **CLUSTERING, **STEPS}[name]
