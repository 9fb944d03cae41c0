"""The exact sum of the costs of queries, which never exceeds a cap."""

from __future__ import annotations

import math
from fractions import Fraction

__all__ = ["CappedSum"]


class CappedSum:
    """A sum of doubles without rounding. A rounded sum would ignore costs that are tiny relative to the sum."""

    def __init__(self, cap: float) -> None:
        self.cap = cap
        self._sum = Fraction(0)

    def fits(self, cost: float) -> bool:
        """Whether the sum with this cost is at most the cap."""
        return self._sum + Fraction(cost) <= self.cap

    def add(self, cost: float) -> None:
        """Add a cost that fits."""
        if not self.fits(cost):
            raise ValueError(f"the cost {cost} exceeds what is left, {self.left}")
        self._sum += Fraction(cost)

    @property
    def left(self) -> float:
        """The cap minus the sum, rounded down, so that a cost of this size fits."""
        exact = Fraction(self.cap) - self._sum
        left = float(exact)
        return left if left <= exact else math.nextafter(left, 0.0)
