"""Posterior search: noisy counts, each asked where the answers so far leave most doubt. Proof: search.md.

Bisection must get every answer right; here later answers outweigh a wrong one, so the counts may be far noisier.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmedian._core import Posterior
from dpmedian.accounting import PrivacyCost
from dpmedian.mechanisms.gaussian import Gaussian
from dpmedian.source import Tape

__all__ = ["CoordinateSearch", "GridSearch"]

# One answer may change the odds by at most this factor (as a logarithm), so that no answer is final.
_CAUTION = 30.0


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
        size = self.high - self.low + 1
        mass = (width + np.abs(np.arange(self.low, self.high + 1) - likely)) ** -2.0
        gain = 2.0 * self.amplitude / self.count.noise**2
        for _ in range(self.count.releases):
            below = np.cumsum(mass)
            half = 0.5 * below[-1]
            # The answer splits the indices into those up to `place` and those beyond: as evenly as possible.
            place = min(int(np.searchsorted(below, half)), max(size - 2, 0))
            if place > 0 and half - below[place - 1] < below[place] - half:
                place -= 1
            noisy = self.count.release(tape, np.array([count(self.low + place)], dtype=np.int64))[0]
            evidence = min(max(gain * (noisy - target), -_CAUTION), _CAUTION)
            mass[: place + 1] *= math.exp(min(evidence, 0.0)) / below[-1]
            mass[place + 1 :] *= math.exp(min(-evidence, 0.0)) / below[-1]
        return self.low + int(np.argmax(mass))


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
        posterior = Posterior(self.ranks.coordinates, octaves, limit, resolution)
        gain = 0.5 * self.n / self.ranks.noise**2
        for _ in range(self.ranks.releases):
            noisy = self.ranks.release(tape, ranks(center + posterior.ask()))
            posterior.learn(np.clip(gain * (0.5 * self.n - noisy), -_CAUTION, _CAUTION))
        return center + posterior.median()
