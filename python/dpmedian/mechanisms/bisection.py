"""Noisy bisection finds where a monotone count reaches a target with logarithmically many Gaussian counts.

Proof: bisection.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dpmedian._core import Tape
from dpmedian.accounting import PrivacyCost
from dpmedian.mechanisms.gaussian import Gaussian
from dpmedian.statistics import Exact

__all__ = ["NoisyBisection"]


@dataclass(frozen=True)
class NoisyBisection:
    """The smallest index in low, ..., high whose count reaches a target, or `high` if no smaller index does.

    Neighbors and sensitivity: the counts state them. Cost: `count.releases` Gaussian counts; the search needs
    `queries(low, high)` of them. Failure: none. The search never uses the count at `high`, so this count may be below
    the target.
    """

    low: int
    high: int
    count: Gaussian

    @staticmethod
    def queries(low: int, high: int) -> int:
        """The number of counts that a search needs: ceil(log2(high - low + 1)), but at least 1."""
        if low > high:
            raise ValueError(f"low must not exceed high, got {low} and {high}")
        return max((high - low).bit_length(), 1)

    @property
    def cost(self) -> PrivacyCost:
        return self.count.cost

    def release(self, tape: Tape, count: Callable[[int], Exact], target: float) -> int:
        """Return the index. `count(index)` is an exact count, which should be monotone in the index. The target is
        public.
        """
        low, high = self.low, self.high
        last = max(self.high - 1, self.low)
        for _ in range(self.count.releases):
            # A search that has found its index makes the remaining queries and ignores their answers, so that its cost
            # is always the cost in the plan.
            middle = min((low + high) // 2, last)
            reached = self.count.release(tape, count(middle))[0] >= target
            if low < high:
                low, high = (low, middle) if reached else (middle + 1, high)
        return high
