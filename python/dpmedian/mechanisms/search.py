"""Posterior search: noisy counts, each asked where the answers so far leave most doubt. Proof: search.md.

Bisection must get every answer right; here later answers outweigh a wrong one, so the counts may be far noisier.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
        prior = _Octaves.around(octave, limit)
        rows, steps = np.arange(self.ranks.coordinates), self.ranks.releases
        # The cells of a row are columns 1, 2, ...: column 0 is room to move cells to the right without a copy.
        edges = np.zeros((len(rows), steps + 4))
        mass = np.zeros((len(rows), steps + 3))
        edges[:, 1], edges[:, 2], mass[:, 1] = -limit, limit, 1.0
        gain = 0.5 * self.n / self.ranks.noise**2
        for step in range(steps):
            place, share, total = _median_cell(mass[:, 1 : step + 2])
            left, right = edges[rows, place + 1], edges[rows, place + 2]
            middle = prior.divide(left, right, share)
            whole = (right - left <= resolution) | (middle <= left) | (middle >= right)
            nearer = np.where(((share < 0.5) & (place > 0)) | (place == step), left, right)
            asked = np.where(whole, nearer, middle)
            share = np.where(whole, np.where(asked == left, 0.0, 1.0), share)
            noisy = self.ranks.release(tape, ranks(center + asked))
            evidence = np.clip(gain * (0.5 * self.n - noisy), -_CAUTION, _CAUTION)
            # Divide the cell: what lies beyond it moves one column to the right.
            beyond = np.arange(step + 3) > place[:, None]
            edges[:, 1 : step + 4] = np.where(beyond, edges[:, : step + 3], edges[:, 1 : step + 4])
            edges[rows, place + 2] = asked
            beyond = beyond[:, :-1]
            cells = np.where(beyond, mass[:, : step + 2], mass[:, 1 : step + 3])
            cells[rows, place] *= share
            cells[rows, place + 1] *= 1.0 - share
            smaller, larger = np.exp(np.minimum(-evidence, 0.0)) / total, np.exp(np.minimum(evidence, 0.0)) / total
            mass[:, 1 : step + 3] = cells * np.where(beyond, larger[:, None], smaller[:, None])
        place, share, _ = _median_cell(mass[:, 1 : steps + 2])
        return center + prior.divide(edges[rows, place + 1], edges[rows, place + 2], share)


def _median_cell(
    mass: NDArray[np.float64],
) -> tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.float64]]:
    """The cell of every row in which the cumulative mass passes one half, where within the cell, and the whole mass."""
    below = np.cumsum(mass, axis=1)
    total = below[:, -1]
    place = np.minimum((below < 0.5 * total[:, None]).sum(axis=1), mass.shape[1] - 1)
    rows = np.arange(len(mass))
    inside = mass[rows, place]
    return place, np.clip((0.5 * total - (below[rows, place] - inside)) / inside, 0.0, 1.0), total


@dataclass(frozen=True, eq=False)
class _Octaves:
    """A prior on the line that is uniform within signed octaves: any distance is found in a few questions.

    Values near the origin of the scale found so far are likely; so is an origin of size 1, in case that scale is wrong.
    """

    edges: NDArray[np.float64]
    below: NDArray[np.float64]

    @classmethod
    def around(cls, octave: int, limit: float) -> _Octaves:
        last = max(math.frexp(limit)[1], octave + 1)
        octaves = np.arange(octave, last + 1)
        tops = np.minimum(np.ldexp(1.0, np.minimum(octaves, 1001)), limit)
        # The first cell reaches from the origin to 2^octave.
        weights = (1.0 + octaves - octave) ** -2.0 + 0.25 * (8.0 + np.abs(octaves)) ** -2.0
        edges = np.concatenate([-tops[::-1], [0.0], tops])
        below = np.concatenate([[0.0], np.cumsum(np.concatenate([weights[::-1], weights]))])
        return cls(edges, below)

    def divide(
        self, left: NDArray[np.float64], right: NDArray[np.float64], share: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """The point with `share` of the prior mass of [left, right] on its left."""
        cell = np.searchsorted(self.edges, left, side="right")
        low, high = np.interp(left, self.edges, self.below), np.interp(right, self.edges, self.below)
        far = np.interp(low + share * (high - low), self.below, self.edges)
        near = left + share * (right - left)
        return np.clip(np.where(right <= self.edges[np.minimum(cell, len(self.edges) - 1)], near, far), left, right)
