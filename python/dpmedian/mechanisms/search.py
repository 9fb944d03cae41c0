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
        weights = -2.0 * np.log(width + np.abs(np.arange(self.low, self.high + 1) - likely))
        gain = 2.0 * self.amplitude / self.count.noise**2
        for _ in range(self.count.releases):
            below = np.cumsum(np.exp(weights - weights.max()))
            half = 0.5 * below[-1]
            # The answer splits the indices into those up to `place` and those beyond: as evenly as possible.
            place = min(int(np.searchsorted(below, half)), max(size - 2, 0))
            if place > 0 and half - below[place - 1] < below[place] - half:
                place -= 1
            noisy = self.count.release(tape, np.array([count(self.low + place)], dtype=np.int64))[0]
            evidence = min(max(gain * (noisy - target), -_CAUTION), _CAUTION)
            weights[: place + 1] += evidence
        return self.low + int(np.argmax(weights))


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
        rows = np.arange(self.ranks.coordinates)
        edges = np.tile(np.array([-limit, limit]), (len(rows), 1))
        mass = np.ones((len(rows), 1))
        gain = 0.5 * self.n / self.ranks.noise**2
        for step in range(self.ranks.releases):
            place, share = _median_cell(mass)
            left, right = edges[rows, place], edges[rows, place + 1]
            middle = prior.divide(left, right, share)
            whole = (right - left <= resolution) | (middle <= left) | (middle >= right)
            nearer = np.where(((share < 0.5) & (place > 0)) | (place == step), left, right)
            asked = np.where(whole, nearer, middle)
            share = np.where(whole, np.where(asked == left, 0.0, 1.0), share)
            noisy = self.ranks.release(tape, ranks(center + asked))
            evidence = np.clip(gain * (0.5 * self.n - noisy), -_CAUTION, _CAUTION)
            edges, mass = _insert(edges, mass, place, asked, share)
            beyond = np.arange(step + 2) > place[:, None]
            mass = mass * np.exp(np.where(beyond, evidence[:, None], 0.0))
            mass /= mass.sum(axis=1, keepdims=True)
        place, share = _median_cell(mass)
        return center + prior.divide(edges[rows, place], edges[rows, place + 1], share)


def _median_cell(mass: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The cell of every row in which the cumulative mass passes one half, and where within the cell."""
    below = np.cumsum(mass, axis=1)
    target = 0.5 * below[:, -1:]
    place = np.minimum((below < target).sum(axis=1), mass.shape[1] - 1)
    rows = np.arange(len(mass))
    inside = mass[rows, place]
    return place, np.clip((target[:, 0] - (below[rows, place] - inside)) / inside, 0.0, 1.0)


def _insert(
    edges: NDArray[np.float64],
    mass: NDArray[np.float64],
    place: NDArray[np.intp],
    edge: NDArray[np.float64],
    share: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Divides one cell of every row: `share` of its mass goes to the left of the new edge."""
    rows = np.arange(len(mass))
    column = np.arange(edges.shape[1] + 1)
    edges = np.take_along_axis(edges, column - (column > place[:, None]), axis=1)
    edges[rows, place + 1] = edge
    column = column[:-1]
    mass = np.take_along_axis(mass, column - (column > place[:, None]), axis=1)
    mass[rows, place] *= share
    mass[rows, place + 1] *= 1.0 - share
    return edges, mass


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
