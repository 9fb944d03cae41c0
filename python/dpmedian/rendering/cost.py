"""A cost as JSON holds it, its total in rho included."""

from __future__ import annotations

from typing import Any

from dpmedian.accounting import PrivacyCost

__all__ = ["cost_dict"]


def cost_dict(cost: PrivacyCost) -> dict[str, Any]:
    """The parts that are not empty, and rho."""
    return {**cost.to_dict(), "rho": cost.rho}
