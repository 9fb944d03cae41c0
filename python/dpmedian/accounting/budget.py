"""A privacy budget, in (epsilon, delta), in epsilon alone, or in rho."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpmedian.accounting.arguments import DELTA_LIMIT, positive, usable_delta
from dpmedian.accounting.concentrated import concentrated_epsilon
from dpmedian.accounting.cost import PrivacyCost
from dpmedian.documented import documented

__all__ = ["Budget"]

# The range in which the accounting is tested. A budget outside of this range is refused, because results might have too
# few correct digits.
_EPSILON_LIMITS = (1e-9, 1e3)
_RHO_LIMITS = (1e-20, 1e5)


@dataclass(frozen=True)
class Budget:
    """A privacy budget: (epsilon, delta), epsilon alone (pure), rho (zero-concentrated), or rho with delta."""

    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None

    def __post_init__(self) -> None:
        kinds = (
            "pass epsilon and delta, for example epsilon=1.0, delta=1e-6; or rho, or rho and delta; or epsilon alone "
            "for pure differential privacy"
        )
        if self.epsilon is not None and self.rho is not None:
            raise ValueError(f"got two budgets at once, epsilon = {self.epsilon!r} and rho = {self.rho!r}: {kinds}")
        if self.epsilon is None and self.rho is None:
            got = "" if self.delta is None else f", delta = {self.delta!r} alone is not a budget"
            raise ValueError(f"no privacy budget{got}: {kinds}")
        for name, value, (smallest, largest) in (
            ("epsilon", self.epsilon, _EPSILON_LIMITS),
            ("rho", self.rho, _RHO_LIMITS),
        ):
            if value is not None:
                number = positive(name, value, down=True)
                if not smallest <= number <= largest:
                    raise ValueError(f"{name} must lie between {smallest:g} and {largest:g}, got {value!r}")
                object.__setattr__(self, name, number)
        if self.delta is not None:
            object.__setattr__(self, "delta", usable_delta(self.delta))

    @classmethod
    def of(cls, epsilon: float | None = None, delta: float | None = None, rho: float | None = None) -> Budget:
        """The budget of these limits."""
        return cls(epsilon=epsilon, delta=delta, rho=rho)

    @property
    def pure(self) -> bool:
        """Whether the budget requires pure differential privacy."""
        return self.epsilon is not None and not self.delta

    @property
    def measure(self) -> str:
        """The unit of the budget: "epsilon" or "rho"."""
        return "epsilon" if self.rho is None else "rho"

    def fits(self, cost: PrivacyCost, *, rounding: float = 0.0) -> bool:
        """Whether the cost is within the budget. `rounding` is a relative tolerance for sums of decimal numbers."""
        return self.log_overspend(cost, rounding=rounding) <= 0.0

    def log_overspend(self, cost: PrivacyCost, *, rounding: float = 0.0) -> float:
        """The logarithm of a quotient: the delta (or rho) of the cost, divided by the delta (or rho) of the budget. The
        logarithm is at most 0 if and only if the cost fits.

        Parameters
        ----------
        cost : PrivacyCost
            The cost to compare with the budget.
        rounding : float
            A relative tolerance: the cost may be up to (1 + rounding) times the budget.

        Returns
        -------
        float
            Minus infinity if the cost is zero, and infinity if the budget does not allow any cost of this kind.
        """
        grown = 1.0 + rounding
        delta = (self.delta or 0.0) * grown
        if self.rho is not None:
            spent, allowed = (cost.rho, self.rho * grown) if cost.delta0 <= delta else (math.inf, 1.0)
        else:
            assert self.epsilon is not None
            spent, allowed = cost.delta_at(self.epsilon * grown), delta
        if allowed == 0.0:
            return -math.inf if spent == 0.0 else math.inf
        # The quotient is rounded to 1 only if the two doubles are equal, so the sign of the logarithm is exact.
        quotient = spent / allowed
        return math.log(quotient) if quotient > 0.0 else -math.inf

    @documented
    def epsilon_at(self, delta: float) -> float:
        """The epsilon that holds at this delta for any sequence of releases within the budget.

        This epsilon may be claimed even if an analyst saw results before choosing costs or deciding when to stop. In
        that case, the smaller epsilon of the costs that were spent may not be claimed, because these costs were not
        fixed before the first result.

        Parameters
        ----------
        delta
            As in `PrivacyCost.epsilon_at`.

        Returns
        -------
        float
            The epsilon that rho-zCDP implies, or the budget's own epsilon. It is infinite if delta is too small for the
            budget.
        """
        delta = usable_delta(delta)
        if self.rho is None:
            assert self.epsilon is not None
            return self.epsilon if delta >= (self.delta or 0.0) else math.inf
        own = self.delta or 0.0
        left = (delta - own) / (1.0 - own)
        if left < DELTA_LIMIT:
            return math.inf
        return concentrated_epsilon(self.rho, left)

    def describe(self) -> str:
        """The limits in words."""
        value = self.epsilon if self.rho is None else self.rho
        return f"{self.measure} = {value:.6g}" + (f", delta = {self.delta:.6g}" if self.delta else "")

    __str__ = describe

    def to_dict(self) -> dict[str, float]:
        """The limits that were given, as JSON."""
        limits = {"epsilon": self.epsilon, "delta": self.delta, "rho": self.rho}
        return {name: value for name, value in limits.items() if value is not None}
