"""Posterior search: noisy counts, each asked where the answers so far leave most doubt. Proof: search.md.

Bisection must get every answer right; here later answers outweigh a wrong one, so the counts may be far noisier.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dpmedian._core import GridPosterior, Tape
from dpmedian.mechanisms.gaussian import Gaussian
from dpmedian.statistics import Exact

__all__ = ["GridSearch"]


@dataclass(frozen=True)
class GridSearch:
    """The smallest index in low, ..., high whose count reaches a target.

    Neighbours and sensitivity: those of the counts. Cost: `count.releases` Gaussian counts. Failure: none; a search
    with too much noise returns a wrong index.
    """

    low: int
    high: int
    amplitude: float
    """Counts usually miss the target by this much or more."""
    count: Gaussian

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError(f"low must not exceed high, got {self.low} and {self.high}")

    def release(self, tape: Tape, count: Callable[[int], Exact], target: float, likely: float, width: float) -> int:
        """`count(index)` is an exact count, monotone in the index; `likely` and `width` shape the prior."""
        posterior = GridPosterior(self.high - self.low + 1, likely - self.low, width)
        gain = 2.0 * self.amplitude / self.count.noise**2
        for _ in range(self.count.releases):
            noisy = self.count.release(tape, count(self.low + posterior.ask()))[0]
            posterior.learn(gain * (target - noisy))
        return self.low + posterior.mode()
