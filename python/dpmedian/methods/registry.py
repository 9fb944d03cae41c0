"""All methods by name. What is listed here is offered by `plan`, by the command line and by `auto`, and is tested."""

from __future__ import annotations

from dpmedian.methods import adaptive, dpgd, inverse_sensitivity, loc_cutting_plane, loc_dpgd
from dpmedian.methods.contract import Method

__all__ = ["METHODS"]

METHODS: dict[str, Method] = {
    method.name: method for method in (adaptive, dpgd, loc_dpgd, loc_cutting_plane, inverse_sensitivity)
}
