"""The conversion of a cost to the neighbors and the unit of a ledger, and messages that explain how to avoid it."""

from __future__ import annotations

import shlex

from dpmedian.accounting import RECORD, Budget, PrivacyCost
from dpmedian.accounting.protection import REPLACE, Neighbours
from dpmedian.warning import ConversionWarning, warn_caller

__all__ = ["converted", "explained", "factor_of", "warn_of_conversion", "whose"]


def whose(cost: PrivacyCost) -> str:
    """Return the unit and the relation of a cost, in a few words."""
    return f"one {cost.unit} that is " + cost.protection.relation.changed


def factor_of(requested: PrivacyCost, cost: PrivacyCost) -> float:
    """Return the factor by which a conversion multiplied rho, or 1 if rho is 0."""
    return cost.rho / requested.rho if requested.rho > 0.0 else 1.0


def converted(cost: PrivacyCost, budget: Budget, neighbours: Neighbours, unit: str) -> PrivacyCost:
    """Return the cost for the neighbors and the unit of a ledger, or raise an error that explains what to do."""
    if not isinstance(cost, PrivacyCost):
        raise TypeError(f"cost must be a PrivacyCost, got {cost!r} of type {type(cost).__name__}")
    if cost.delta0 > 0.0 and (cost.unit, cost.neighbours) != (unit, neighbours):
        several = "" if budget.rho is not None else " (a ledger in rho and delta takes several such releases)"
        raise ValueError(
            f"the release protects {whose(cost)}, and this ledger has other neighbors or another unit: for "
            "groups without "
            f"keys= no conversion is proved. Use a ledger of the same kind, `{_creation(budget, cost)}`{several}, or "
            "list the groups, keys=[...] (--keys)"
        )
    if cost.unit != unit:
        if unit != RECORD:
            way = f"k, unit={unit!r}) if each has at most k of the units {cost.unit!r}"
            if cost.protection.relation.size_is_public:
                way = way.replace(") if each has at most", ", exactly=True) if each has, in all data sets, exactly")
            raise ValueError(
                f"this ledger protects the unit {unit!r}, and the cost holds for one {cost.unit!r}: release "
                f"per {unit}, or convert it with cost.for_group({way}"
            )
        cost = cost.per_record()
    return cost.under(neighbours)


def explained(budget: Budget, requested: PrivacyCost, cost: PrivacyCost) -> str:
    """Return the reason why a refused cost is larger than the requested cost."""
    return (
        f"the release protects {whose(requested)}, so its rho counts {factor_of(requested, cost):.3g} times here, but "
        "only once in "
        f"a ledger of the same kind: {_creation(budget, requested)}"
    )


def warn_of_conversion(budget: Budget, requested: PrivacyCost, cost: PrivacyCost) -> None:
    """Warn that a cost becomes larger because the ledger has other neighbors or another unit, and explain how to avoid
    this.
    """
    warn_caller(
        f"the release protects {whose(requested)}, but this ledger counts {whose(cost)}, so its rho is charged "
        f"{factor_of(requested, cost):.3g} times. A ledger of the same kind as the release charges rho once: "
        f"{_creation(budget, requested)}",
        ConversionWarning,
    )


def _creation(budget: Budget, requested: PrivacyCost) -> str:
    """Return the command that creates a ledger with this budget for the neighbors and the unit of a release."""
    terms = [(name, getattr(budget, name)) for name in ("epsilon", "delta", "rho")]
    options = [f"--{name} {value:g}" for name, value in terms if value is not None]
    options += [f"--neighbours {requested.neighbours}"] if requested.protection.relation is not REPLACE else []
    options += [f"--unit {shlex.quote(requested.unit)}"] if requested.unit != RECORD else []
    return "dpmedian ledger create FILE " + " ".join(options)
