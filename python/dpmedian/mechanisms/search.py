"""Posterior search: noisy counts, each asked where the answers so far leave most doubt. Proof: search.md.

Bisection must get every answer right; here later answers outweigh a wrong one, so the counts may be far noisier.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmedian._core import CoordinatePosterior, GridPosterior
from dpmedian.accounting import PrivacyCost
from dpmedian.mechanisms.gaussian import Gaussian
from dpmedian.source import Tape

__all__ = ["CoordinateSearch", "GridSearch"]


@dataclass(frozen=True)
class GridSearch:
    """The smallest index in low, ..., high whose count reaches a target.

    Neighbours: one record replaced. Sensitivity: every count moves by at most `sensitivity`. Cost: `count.releases`
    Gaussian counts. Failure: none; a search with too much noise returns a wrong index.
    """

    low: int
    high: int
    amplitude: float
    count: Gaussian

    @classmethod
    def of(
        cls,
        name: str,
        low: int,
        high: int,
        *,
        amplitude: float,
        sensitivity: float,
        rho: float,
        largest: int,
        releases: int,
    ) -> GridSearch:
        """A search that costs rho, for counts up to `largest` that usually miss the target by `amplitude` or more."""
        if low > high:
            raise ValueError(f"low must not exceed high, got {low} and {high}")
        count = Gaussian.of_counts(name, sensitivity, rho, n=largest, releases=releases)
        return cls(low, high, amplitude, count)

    @property
    def sensitivity(self) -> float:
        return self.count.sensitivity

    @property
    def cost(self) -> PrivacyCost:
        return self.count.cost

    def release(self, tape: Tape, count: Callable[[int], int], target: float, likely: float, width: float) -> int:
        """`count(index)` is an exact integer, monotone in the index; `likely` and `width` shape the prior."""
        posterior = GridPosterior(self.high - self.low + 1, likely - self.low, width)
        gain = 2.0 * self.amplitude / self.count.noise**2
        for _ in range(self.count.releases):
            exact = count(self.low + posterior.ask())
            noisy = self.count.release(tape, np.array([exact], dtype=np.int64))[0]
            posterior.learn(gain * (target - noisy))
        return self.low + posterior.mode()


@dataclass(frozen=True)
class CoordinateSearch:
    """The median of every coordinate, all searched at once.

    Neighbours: one record replaced. Sensitivity: every coordinate's rank moves by at most 1, so sqrt(d) in L2. Cost:
    `ranks.releases` Gaussian vectors. Failure: none; a search with too much noise returns a point far away.
    """

    n: int
    ranks: Gaussian

    @classmethod
    def of(cls, name: str, *, n: int, d: int, rho: float, releases: int) -> CoordinateSearch:
        # One record moves d ranks by at most 1 each; the root is rounded up.
        sensitivity = math.nextafter(math.sqrt(d), math.inf)
        return cls(n, Gaussian.of_counts(name, sensitivity, rho, n=n, coordinates=d, releases=releases))

    @property
    def sensitivity(self) -> float:
        return self.ranks.sensitivity

    @property
    def cost(self) -> PrivacyCost:
        return self.ranks.cost

    def release(
        self,
        tape: Tape,
        ranks: Callable[[NDArray[np.float64]], NDArray[np.int64]],
        *,
        center: NDArray[np.float64],
        octave: int,
        limit: float,
        resolution: float,
    ) -> NDArray[np.float64]:
        """`ranks(thresholds)` counts the records at or below a threshold in every coordinate.

        The prior is spread over signed octaves around `center`, from below 2^octave up to `limit`; cells narrower than
        `resolution` are not divided.
        """
        octaves = octave, max(math.frexp(limit)[1], octave + 1)
        posterior = CoordinatePosterior(self.ranks.coordinates, octaves, limit, resolution)
        gain = 0.5 * self.n / self.ranks.noise**2
        for _ in range(self.ranks.releases):
            noisy = self.ranks.release(tape, ranks(center + posterior.ask()))
            posterior.learn(gain * (0.5 * self.n - noisy))
        return center + posterior.median()
