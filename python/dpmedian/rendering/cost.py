"""A cost as JSON, including its total in rho, and in words."""

from __future__ import annotations

from typing import Any

from dpmedian.accounting import RECORD, PrivacyCost
from dpmedian.accounting.protection import Protection

__all__ = ["cost_dict", "explained", "protected"]


def cost_dict(cost: PrivacyCost) -> dict[str, Any]:
    """Return the components that are not empty, and rho."""
    return {**cost.to_dict(), "rho": cost.rho}


def protected(protection: Protection) -> str:
    """Return the neighbors of a cost, as the end of a sentence."""
    unit = protection.unit
    rows = "" if unit == RECORD else ", with all of its records"
    if protection.relation.size_is_public:
        return f"data sets in which one {unit} was replaced{rows}; how many there are is public"
    return f"data sets to which one {unit} was added, or from which it was removed{rows}"


def explained(cost: PrivacyCost, cap: PrivacyCost | None) -> list[str]:
    """Return a sentence about every component of a cost, and about the total."""
    parts = []
    if cost.mu_squared:
        shared = "" if cap is None else f"; of it {cap.mu_squared:.6g} is a cap, beyond which no release is made"
        parts.append(
            f"mu_squared = {cost.mu_squared:.6g}: the sum of (sensitivity/sigma)^2 over all Gaussian releases{shared}. "
            f"It costs rho = {cost.mu_squared / 2.0:.6g}."
        )
    if cost.discretization:
        parts.append(
            f"discretization = {cost.discretization:.3g}: the total variation between the discrete noise that is drawn "
            "and a rounded Gaussian, summed over all released numbers; delta grows by (1 + e^epsilon) times this."
        )
    if cost.pure_epsilons:
        steps = ", ".join(f"{epsilon:.6g}" for epsilon in cost.pure_epsilons)
        parts.append(f"pure_epsilons = {steps}: steps of pure differential privacy.")
    if cost.bounded_ranges:
        steps = ", ".join(f"{eta:.6g}" for eta in cost.bounded_ranges)
        parts.append(f"bounded_ranges = {steps}: private choices; their log-odds move by at most this.")
    if cost.delta0:
        parts.append(f"delta0 = {cost.delta0:.3g}: the probability of events on which nothing is promised.")
    parts.append(f"Together rho = {cost.rho:.6g} (zero-concentrated differential privacy).")
    if cost.epsilon is not None:
        pair = f"epsilon = {cost.epsilon:.6g}" + (f", delta = {cost.delta:.6g}" if cost.delta else "")
        parts.append(f"That is within the budget that was requested, {pair}.")
    parts.append(f"It holds for {protected(cost.protection)}.")
    return parts
