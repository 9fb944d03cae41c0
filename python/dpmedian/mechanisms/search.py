"""Posterior search: noisy counts, each asked where the answers so far leave most doubt. Proof: search.md.

Bisection must get every answer right; here later answers outweigh a wrong one, so the counts may be far noisier.
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
    """What a search found, and the number of queries that it asked."""

    value: Value
    asked: int
    answers: tuple[tuple[int, float], ...] = ()
    """What was asked about, and the noisy answer, where somebody may look at them again."""


@dataclass(frozen=True)
class GridSearch:
    """The smallest index in low, ..., high whose count reaches a target.

    Neighbors and sensitivity: those of the counts. Cost: at most `count.releases` Gaussian counts, those that were
    asked. Failure: none; a search with too much noise returns a wrong index.
    """

    low: int
    high: int
    amplitude: float
    """Counts usually miss the target by this much or more."""
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
        sure: float = 0.0,
    ) -> Found[int]:
        """`count(index)` is an exact count, monotone in the index; `likely` and `width` shape the prior.

        It stops when the posterior leaves less than `sure` to indices that are not the likeliest or beside it.
        """
        posterior = GridPosterior(self.high - self.low + 1, likely - self.low, width)
        gain = 2.0 * self.amplitude / self.count.noise**2
        answers: list[tuple[int, float]] = []
        while len(answers) < self.count.releases:
            index = self.low + posterior.ask()
            noisy = float(self.count.release(tape, count(index))[0])
            posterior.learn(gain * (target - noisy))
            answers.append((index, noisy))
            if posterior.doubt(1) < sure:
                break
        return Found(self.low + posterior.mode(), len(answers), tuple(answers))
