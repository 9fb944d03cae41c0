"""Posterior search: each query is a noisy count at the index that divides the posterior mass in half. Proof: search.md.

Bisection fails if one answer is wrong. In a posterior search, later answers correct a wrong answer, so the counts may
have much more noise than in a bisection.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from dpmedian._core import GridPosterior, Tape
from dpmedian.mechanisms.gaussian import Gaussian
from dpmedian.statistics import Exact

__all__ = ["Found", "GridSearch"]

Value = TypeVar("Value")


@dataclass(frozen=True)
class Found(Generic[Value]):
    """The result of a search, and the number of queries that it made."""

    value: Value
    queries: int
    answers: tuple[tuple[int, float], ...] = ()
    """Each queried index with its noisy answer, if later steps use the answers."""


@dataclass(frozen=True)
class GridSearch:
    """A posterior search for the smallest index in low, ..., high whose count reaches a target.

    Neighbors and sensitivity: the counts state them. Cost: the Gaussian counts that were released, at most
    `count.releases`. Failure: none. A search with too much noise may return a wrong index.
    """

    low: int
    high: int
    amplitude: float
    """The assumed difference between a count and the target. The true difference is usually larger."""
    count: Gaussian

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError(f"low must not exceed high, got {self.low} and {self.high}")

    def release(
        self,
        tape: Tape,
        count: Callable[[int], Exact],
        target: float,
        likely: float,
        width: float,
        stop_below: float = 0.0,
    ) -> Found[int]:
        """Return the index.

        `count(index)` is an exact count, which must be monotone in the index. `likely` and `width` are the center and
        the width of the prior.

        The search stops when the posterior mass outside of the most likely index and its two neighbors is below
        `stop_below`.
        """
        posterior = GridPosterior(self.high - self.low + 1, likely - self.low, width)
        gain = 2.0 * self.amplitude / self.count.noise**2
        answers: list[tuple[int, float]] = []
        while len(answers) < self.count.releases:
            index = self.low + posterior.ask()
            noisy = float(self.count.release(tape, count(index))[0])
            posterior.learn(gain * (target - noisy))
            answers.append((index, noisy))
            if posterior.doubt(1) < stop_below:
                break
        return Found(self.low + posterior.mode(), len(answers), tuple(answers))
