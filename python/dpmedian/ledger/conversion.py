"""What a conversion of a cost to a ledger's neighbors and unit means, in words, and how it is avoided."""

from __future__ import annotations

import shlex

from dpmedian.accounting import RECORD, Budget, PrivacyCost
from dpmedian.accounting.protection import REPLACE
from dpmedian.warning import ConversionWarning, warn_caller

__all__ = ["explained", "factor_of", "warn_of_conversion", "whose"]


def whose(cost: PrivacyCost) -> str:
    """Return for whom a cost holds, in a few words."""
    return f"one {cost.unit} that is " + cost.protection.relation.changed


def factor_of(asked: PrivacyCost, cost: PrivacyCost) -> float:
    """Return by how much a conversion multiplied rho; 1 if nothing is spent."""
    return cost.rho / asked.rho if asked.rho > 0.0 else 1.0


def explained(budget: Budget, asked: PrivacyCost, cost: PrivacyCost) -> str:
    """Say why a cost that a ledger refused is larger than the one that was asked for."""
    return (
        f"the release protects {whose(asked)}, so its rho counts {factor_of(asked, cost):.3g} times here, and once in "
        f"a ledger of its own kind: {_creation(budget, asked)}"
    )


def warn_of_conversion(budget: Budget, asked: PrivacyCost, cost: PrivacyCost) -> None:
    """Warn that a cost becomes larger because the ledger counts something else, and say how to avoid that."""
    warn_caller(
        f"the release protects {whose(asked)}, and this ledger counts {whose(cost)}: its rho is charged "
        f"{factor_of(asked, cost):.3g} times. A ledger that counts what the release protects charges it once: "
        f"{_creation(budget, asked)}",
        ConversionWarning,
    )


def _creation(budget: Budget, asked: PrivacyCost) -> str:
    """Return the command that creates a ledger with this budget that counts what a release protects."""
    terms = [(name, getattr(budget, name)) for name in ("epsilon", "delta", "rho")]
    options = [f"--{name} {value:g}" for name, value in terms if value is not None]
    options += [f"--neighbours {asked.neighbours}"] if asked.protection.relation is not REPLACE else []
    options += [f"--unit {shlex.quote(asked.unit)}"] if asked.unit != RECORD else []
    return "dpmedian ledger create FILE " + " ".join(options)
