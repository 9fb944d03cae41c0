"""For the Flower strategy: a function that refuses a median that would be mostly noise, and says what would work
instead.
"""

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
        # Only plans with a known n are refused. `or 0` is for the type checker.
        n, d, rho = made.n or 0, made.d, made.cost.rho
        try:
            least = required_n(d, excess=_USEFUL_EXCESS, **arguments)
            ratio = least * math.sqrt(rho / d)
            needed = (
                "ask more clients, or spend a larger budget. With this model and budget, "
                f"{least:,} clients per round would be enough (n sqrt(rho/d) = {ratio:.2g}; "
                f"dpmedian.required_n, excess {_USEFUL_EXCESS:g})."
            )
        except ValueError:
            needed = "or spend a larger budget. With this model and budget, no number of clients would be enough."
        raise ValueError(
            f"{n:,} clients per round are too few for the median of {d:,} parameters at rho = {rho:.3g} per round: n "
            f"sqrt(rho/d) = {n * math.sqrt(rho / d):.2g}. "
            "Use aggregate='step' or 'auto': steps train models of any size. Or give radius=, a public bound on the "
            f"length of an update. Or train fewer parameters, {needed}"
        ) from refused
