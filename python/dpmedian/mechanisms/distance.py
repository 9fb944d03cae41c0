"""Releases about the distances of the records from a public point. Proof: distance.md.

A radius is given by its quarter octave: the quarter octave k stands for the radius 2^(k/4).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmedian._core import Tape
from dpmedian.mechanisms.gaussian import Gaussian
from dpmedian.mechanisms.search import Found, GridSearch
from dpmedian.parameters import PublicParameters
from dpmedian.sources.protocol import Source
from dpmedian.statistics import FIRST_QUARTER_OCTAVE, LAST_QUARTER_OCTAVE, Exact

__all__ = ["Counted", "DistanceCount", "DistanceSearch", "radius_of"]

# Half of all records are subtracted from every count. Then a separate query for a private number of records is not
# needed, and an added record moves the difference by one half only.
_HALF = (1, 1)


def radius_of(quarter_octave: int) -> float:
    """The radius 2^(quarter_octave/4)."""
    return math.ldexp(2.0 ** (quarter_octave % 4 / 4.0), quarter_octave // 4)


def _entry(table: Exact, quarter_octave: int) -> Exact:
    """The count within a radius. A radius outside of the table is replaced by the nearest radius in the table, which
    covers all distances that can occur.
    """
    return table.pick(min(max(quarter_octave, FIRST_QUARTER_OCTAVE), LAST_QUARTER_OCTAVE) - FIRST_QUARTER_OCTAVE)


@dataclass(frozen=True)
class DistanceCount(Gaussian):
    """The number of records within a radius of a point, minus half of all records.

    Neighbors and sensitivity: the statistic states them. Half of all records are subtracted, so the sensitivity is
    1 under replacement and 1/2 under add/remove. Cost: `releases` Gaussian counts. Failure: none.
    """

    @classmethod
    def of(cls, name: str, rho: float, parameters: PublicParameters, *, releases: int) -> DistanceCount:
        return cls.of_statistic(
            name, "distance counts", rho, parameters, {"target": _HALF}, releases=releases, coarsest=_HALF[1]
        )

    def table(self, source: Source, theta: NDArray[np.float64]) -> Exact:
        """The exact counts for all radii, minus half of all records."""
        return source.answer(self.of_records(theta=theta, target=_HALF))

    def within(self, source: Source, tape: Tape, theta: NDArray[np.float64], quarter_octave: int, size: int) -> float:
        """The noisy number of records within a radius of theta. `size` is the number of records, exact or noisy."""
        return 0.5 * size + float(self.release(tape, _entry(self.table(source, theta), quarter_octave))[0])


class Counted(NamedTuple):
    """The result of a search around a point, with the noisy answers.

    An answer is a noisy count minus half of all records, and `noise` is the standard deviation of its noise.
    """

    quarter: int
    theta: NDArray[np.float64]
    quarters: NDArray[np.int64]
    counts: NDArray[np.float64]
    noise: float


@dataclass(frozen=True)
class DistanceSearch:
    """A posterior search (search.md) for the smallest ball around a point that contains a share of the records.

    Neighbors, sensitivity and cost: `count` states them. Failure: none. A search with too much noise may return a
    wrong radius.
    """

    low: int
    high: int
    stride: int
    """The number of quarter octaves between two radii of the search."""
    amplitude: float
    """The assumed difference between a count and the target. The true difference is usually larger."""
    prior_width: float
    count: DistanceCount

    def release(
        self,
        source: Source,
        tape: Tape,
        theta: NDArray[np.float64],
        *,
        origin: int,
        share: float,
        size: int,
        likely: float,
        stop_below: float = 0.0,
    ) -> Found[Counted]:
        """Return the quarter octave of the radius (`origin` plus a multiple of the stride), and the noisy answers.

        `size` is the number of records, exact or noisy. The search compares counts with the share times
        `size`. Half of all records are subtracted on both sides, so an error of `size` has little effect if the share
        is near one half. The search stops when less than `stop_below` of the posterior mass lies outside of the most
        likely radius and its two neighbors.
        """
        table, stride, target = self.count.table(source, theta), self.stride, (share - 0.5) * size
        search = GridSearch(self.low, self.high, self.amplitude, self.count)
        found = search.release(
            tape, lambda k: _entry(table, origin + stride * k), target, likely, self.prior_width, stop_below
        )
        indices, counts = zip(*found.answers, strict=True)
        quarters = origin + stride * np.array(indices)
        counted = Counted(origin + stride * found.value, theta, quarters, np.array(counts), self.count.noise)
        return Found(counted, found.queries)
