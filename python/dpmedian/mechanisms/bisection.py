"""Noisy bisection: where a monotone count reaches a target, for logarithmically many Gaussian counts.

Proof: bisection.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpmedian.accounting import PrivacyCost
from dpmedian.mechanisms.gaussian import Gaussian
from dpmedian.source import Tape

__all__ = ["NoisyBisection"]


@dataclass(frozen=True)
class NoisyBisection:
    """The smallest index in low, ..., high whose count reaches a target, `high` if none below it does.

    Neighbours: one record replaced. Sensitivity: every count moves by at most `sensitivity`. Cost: `count.releases`
    Gaussian counts, ceil(log2(high - low + 1)) of them. Failure: none; whether `high` itself reaches the target is not
    asked.
    """

    low: int
    high: int
    count: Gaussian

    @classmethod
    def of(cls, name: str, low: int, high: int, *, sensitivity: float, rho: float, largest: int) -> NoisyBisection:
        """A search that costs rho, for integer counts of magnitude at most `largest`."""
        if low > high:
            raise ValueError(f"low must not exceed high, got {low} and {high}")
        # Even a search with nothing to find asks once, so that its cost is that of the plan.
        releases = max((high - low).bit_length(), 1)
        return cls(low, high, Gaussian.of_counts(name, sensitivity, rho, n=largest, releases=releases))

    @property
    def sensitivity(self) -> float:
        return self.count.sensitivity

    @property
    def cost(self) -> PrivacyCost:
        return self.count.cost

    def release(self, tape: Tape, count: Callable[[int], int], target: float) -> int:
        """`count(index)` is an exact integer, at best monotone in the index; the target is public."""
        low, high = self.low, self.high
        last = max(self.high - 1, self.low)
        for _ in range(self.count.releases):
            # A search that ends early goes on asking, so that its cost is that of the plan, and ignores the answers.
            middle = min((low + high) // 2, last)
            reached = self.count.release(tape, np.array([count(middle)], dtype=np.int64))[0] >= target
            if low < high:
                low, high = (low, middle) if reached else (middle + 1, high)
        return high
