"""The refusal of medians that would be mostly noise, for the Flower strategy, with advice about what would work."""

from __future__ import annotations

import math
from typing import Any

from dpmedian.api import required_n
from dpmedian.planning.plan import Plan

__all__ = ["refuse_if_hopeless"]

# The error message says how many clients are needed for this excess.
_USEFUL_EXCESS = 0.01


def refuse_if_hopeless(made: Plan, **arguments: Any) -> None:
    """Raise an error if the median of a round would be mostly noise. `arguments` are the arguments of `required_n`."""
    try:
        made.refuse_if_hopeless()
    except ValueError as refused:
        n, d, rho = made.n or 0, made.d, made.cost.rho  # The number of clients of a refused plan is known.
        try:
            least = required_n(d, excess=_USEFUL_EXCESS, **arguments)
            needed = f"{least:,} clients per round would be enough (dpmedian.required_n, excess {_USEFUL_EXCESS:g})"
        except ValueError:
            needed = "no number of clients would be enough for a median"
        raise ValueError(
            f"{n:,} clients per round are too few for the median of {d:,} parameters at rho = {rho:.3g} per round: n "
            f"sqrt(rho/d) = {n * math.sqrt(rho / d):.2g}. Take steps instead of medians, aggregate='step' or 'auto', "
            "which train models of any size; or give radius=, a public bound on the length of an update; or train "
            f"fewer parameters, ask more clients, or spend a larger budget: {needed}."
        ) from refused
