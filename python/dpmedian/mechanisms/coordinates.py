"""The median of every coordinate, all in one search. Proof: coordinates.md."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmedian._core import CoordinatePosterior, Tape
from dpmedian.mechanisms.gaussian import Gaussian
from dpmedian.mechanisms.search import Found
from dpmedian.parameters import PublicParameters
from dpmedian.sources.protocol import Source

__all__ = ["OPEN", "Center", "CoordinateSearch"]

# After every eighth query the search tests whether it may stop. A test takes as long as a query.
_EVERY = 8
# The search stops if the median length of the intervals of the posteriors is more than this factor times the median
# length at the test before.
_SHRINKS = 0.7
# The progress of a search is measured by intervals that contain all but this mass of the posterior of a coordinate.
OPEN = 0.2
# The search makes at least this many queries. The first queries find the octave of the data; the intervals shrink only
# later.
_LEAST = 40


@dataclass(frozen=True, eq=False)
class Center:
    """The medians of the posteriors, and a measure of their width: the diagonal of a cube whose side is the median
    length of the 80 % intervals.
    """

    point: NDArray[np.float64]
    doubt: float


@dataclass(frozen=True)
class CoordinateSearch:
    """A posterior search (search.md) for d coordinate medians, by noisy ranks.

    Neighbors and sensitivity: centered ranks (ranks minus half of the number of records) state them. The sensitivity
    is sqrt(d) in L2 under replacement, and half of that under add/remove. Cost: the Gaussian vectors that were
    released, at most `ranks.releases`. Failure: none. A search with too much noise may return a point far away from the
    data.
    """

    n: int
    ranks: Gaussian

    @classmethod
    def of(cls, name: str, rho: float, parameters: PublicParameters, *, releases: int) -> CoordinateSearch:
        d = parameters.d
        ranks = Gaussian.of_statistic(
            name, "ranks", rho, parameters, {"d": d, "centered": True}, releases=releases, coarsest=1
        )
        return cls(parameters.size, ranks)

    def release(
        self,
        source: Source,
        tape: Tape,
        *,
        center: NDArray[np.float64],
        octave: int,
        limit: float,
        resolution: float,
        stop_below: float = 0.0,
        width: float = 0.0,
        likely: tuple[float, float] | None = None,
    ) -> Found[Center]:
        """Search until the posteriors are narrow enough.

        The prior covers all distances to `center` up to `limit`, in both directions. Distances near 2^octave are the
        most likely. If `likely` gives an octave and a width in octaves, distances within this width of that octave are
        the most likely. Cells narrower than `resolution` are not divided.

        The intervals that contain all but `stop_below` of each posterior are the sides of a box. The search stops when
        the diagonal of this box is below `width`. If `width` is 0, the search stops when the box no longer shrinks,
        because the noise then allows no smaller box.
        """
        octaves = octave, max(math.frexp(limit)[1], octave + 1)
        posterior = CoordinatePosterior(self.ranks.coordinates, octaves, limit, resolution, likely)
        gain = 0.5 * self.n / self.ranks.noise**2
        queries, before = 0, math.inf
        while queries < self.ranks.releases:
            thresholds = center + posterior.ask()
            noisy = self.ranks.query(source, tape, thresholds=thresholds, centered=True)
            posterior.learn(-gain * noisy)
            queries += 1
            if stop_below > 0.0 and queries % _EVERY == 0:
                sides = posterior.quantile(1.0 - 0.5 * stop_below) - posterior.quantile(0.5 * stop_below)
                # The first condition avoids an overflow. Wide sides would fail the test anyway, so they are not
                # squared.
                if width > 0.0 and float(np.max(sides)) < width and float(np.linalg.norm(sides / width)) < 1.0:
                    break
                typical = float(np.median(sides))
                if width == 0.0 and queries > _LEAST and typical > _SHRINKS * before:
                    break
                before = typical
        side = float(np.median(posterior.quantile(1.0 - 0.5 * OPEN) - posterior.quantile(0.5 * OPEN)))
        return Found(Center(center + posterior.median(), side * math.sqrt(self.ranks.coordinates)), queries)
