"""Counts of random pairs of records within a radius, and searches with such counts for the scale of the data.

Proof: pairs.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpmedian._core import Tape
from dpmedian.mechanisms.bisection import NoisyBisection
from dpmedian.mechanisms.gaussian import Gaussian
from dpmedian.parameters import PublicParameters
from dpmedian.sources.protocol import Source
from dpmedian.statistics import Exact

__all__ = ["PairBisection", "PairCount"]

# A share of the pairs is rounded to a fraction with this many binary places, or with fewer on a coarser lattice.
_SHARE_BITS, _COARSEST = 20, 8


@dataclass(frozen=True)
class PairCount(Gaussian):
    """The number of pairs within a radius, over `pairings` random pairings of the records, minus a share of all pairs.

    Neighbors and sensitivity: the statistic states them. A record is in at most one pair of each pairing. The pairings
    are hidden randomness of the tape. Cost: `releases` Gaussian counts. Failure: none.
    """

    pairings: int

    @classmethod
    def of(cls, name: str, rho: float, parameters: PublicParameters, *, pairings: int, releases: int) -> PairCount:
        return cls.of_statistic(
            name,
            "pair counts",
            rho,
            parameters,
            {"pairings": pairings},
            largest=None if parameters.records_most is None else pairings * (parameters.records_most // 2),
            releases=releases,
            coarsest=_COARSEST,
            pairings=pairings,
        )

    def table(self, source: Source, tape: Tape, radii: list[float], share: float) -> Exact:
        """The exact counts for ascending radii minus a share of all pairs.

        The pairings are drawn once for all radii.
        """
        places = min(self.bits, _SHARE_BITS)
        target = (round(math.ldexp(share, places)), places)
        counts = self.of_records(stream=tape.hidden(), radii=radii, pairings=self.pairings, target=target)
        return source.answer(counts, passes=self.pairings)


@dataclass(frozen=True)
class PairBisection:
    """Noisy bisection for the index of the first radius within which a share of the pairs lies.

    Neighbors, sensitivity and cost: `count` states them. Failure: None is returned if the search finds no radius.
    """

    radii: tuple[float, ...]
    count: PairCount

    @classmethod
    def of(
        cls, name: str, rho: float, parameters: PublicParameters, *, radii: tuple[float, ...], pairings: int
    ) -> PairBisection:
        # The search covers one more index. This index means that no radius was found.
        releases = NoisyBisection.queries(0, len(radii))
        return cls(radii, PairCount.of(name, rho, parameters, pairings=pairings, releases=releases))

    def release(self, source: Source, tape: Tape, share: float) -> int | None:
        table = self.count.table(source, tape, list(self.radii), share)
        index = NoisyBisection(0, len(self.radii), self.count).release(tape, table.pick, 0.0)
        return index if index < len(self.radii) else None
