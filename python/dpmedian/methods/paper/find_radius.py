"""RadiusFinder: a private estimate of the radius of a ball that contains most of the records. Proof: find_radius.md.

| paper | here | meaning |
|---|---|---|
| R, r | `radius`, `resolution` | largest and smallest scale of interest |
| Grid | `radii` | r, 2r, 4r, ..., the first that is at least 2R |
| gamma, m | `FRACTION`, `m` | 3/4, ceil(gamma n) |
| N(nu) | `largest ball counts` | the mean of the m largest ball counts; the code uses their sum, an integer |
| - | `pair counts` | the number of random pairs within nu, which takes time linear in n |
| Fail | `ReleaseFailed` | no radius reached the threshold |
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from dpmedian.accounting import PrivacyCost
from dpmedian.mechanisms.balls import BallThreshold
from dpmedian.mechanisms.bisection import NoisyBisection
from dpmedian.mechanisms.gaussian import Gaussian
from dpmedian.mechanisms.pairs import PairBisection
from dpmedian.mechanisms.stage import Stage
from dpmedian.methods.contract import Calibrated
from dpmedian.parameters import PublicParameters
from dpmedian.release import ReleaseFailed
from dpmedian.sources.protocol import Source
from dpmedian.tape import Tape

__all__ = ["FRACTION", "FindRadius", "calibrate", "cap", "grid", "name", "scales"]

name = "find_radius"

FRACTION = 3.0 / 4.0


def grid(radius: float, resolution: float) -> tuple[float, ...]:
    """The radii r, 2r, 4r, ..., up to the first radius that is at least 2R.

    Two records in the ball of radius R are at most 2R apart.
    """
    doublings = math.ceil(math.log2(radius) - math.log2(resolution) + 1.0)
    # The logarithms are rounded, so one more radius is added if the last radius is too small.
    doublings += math.ldexp(resolution, doublings) < 2.0 * radius
    return tuple(math.ldexp(resolution, i) for i in range(doublings + 1))


class Search(Protocol):
    """The interface of the two searches over the grid."""

    @property
    def stage(self) -> Stage: ...

    @property
    def passes(self) -> float: ...

    @property
    def failure(self) -> float: ...

    @property
    def guaranteed(self) -> float:
        """The fraction of the records that a ball of the released radius contains according to the proof."""
        ...

    @property
    def requested(self) -> float:
        """The approximate fraction of the records that must lie within a radius so that the search finds this
        radius.
        """
        ...

    @property
    def required(self) -> float:
        """The smallest n for which the proof holds, with its constants made explicit."""
        ...

    @property
    def sufficient(self) -> float:
        """The smallest n for which the search finds its radius in practice."""
        ...

    def run(self, source: Source, tape: Tape) -> int | None: ...


@dataclass(frozen=True)
class SearchByPairs:
    """Noisy bisection over the counts of random pairs within each radius."""

    n: int
    failure_probability: float
    guaranteed: float
    margin: float
    bisection: PairBisection

    @classmethod
    def of(
        cls, parameters: PublicParameters, radii: tuple[float, ...], rho: float, failure_probability: float
    ) -> SearchByPairs:
        n, profile = parameters.size, parameters.profile
        pairings = min(profile.pairings, max(1, math.ceil(profile.pairs / n)))
        bisection = PairBisection.of("radius", rho, parameters, radii=radii, pairings=pairings)
        return cls(n, failure_probability, profile.pair_fraction, profile.pair_margin, bisection)

    @property
    def pairings(self) -> int:
        return self.bisection.count.pairings

    @property
    def pairs(self) -> int:
        """The number of pairs in one pairing."""
        return self.n // 2

    @property
    def target(self) -> float:
        """The fraction of the pairs that the radius must cover."""
        return self.guaranteed + self.margin

    @property
    def requested(self) -> float:
        """The square root of the target.

        If a fraction f of the records lies within a ball, a random pair lies in the ball with probability f^2.
        """
        return math.sqrt(self.target)

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise on the number of pairs, averaged over the pairings."""
        return self.bisection.count.noise / self.pairings

    @property
    def stage(self) -> Stage:
        return self.bisection.count.stage

    @property
    def passes(self) -> float:
        return self.pairings

    @property
    def failure(self) -> float:
        """The probability that the search finds no radius because of the noise. The last radius contains all pairs."""
        return 0.5 * math.erfc((1.0 - self.target) * self.pairs / (self.deviation * math.sqrt(2.0)))

    @property
    def required(self) -> float:
        """The n at which the error from noise and the error from the sampling of pairs are each below half of the
        margin (find_radius.md).
        """
        beta, half = self.failure_probability, self.margin / 2.0
        noise = 2.0 * self.deviation * math.sqrt(2.0 * math.log(4.0 * self.bisection.count.releases / beta)) / half
        sampling = 4.0 * math.log(8.0 / beta) / (half**2 * self.pairings)
        return max(noise, sampling)

    @property
    def sufficient(self) -> float:
        """The n at which three standard deviations of the noise are a third of the pairs."""
        return 18.0 * self.deviation

    def run(self, source: Source, tape: Tape) -> int | None:
        return self.bisection.release(source, tape, self.target)


@dataclass(frozen=True)
class SearchByBalls:
    """AboveThreshold over the mean of the m largest ball counts, as in the paper. The code uses the sum, which is m
    times the mean.
    """

    n: int
    failure_probability: float
    rho: float
    threshold: BallThreshold

    @classmethod
    def of(
        cls, parameters: PublicParameters, radii: tuple[float, ...], rho: float, failure_probability: float
    ) -> SearchByBalls:
        n, profile = parameters.size, parameters.profile
        m = math.ceil(FRACTION * n)
        logarithm = math.log(2.0 / failure_probability * max(len(radii) - 1, 1))
        offset = profile.ball_offset / math.sqrt(2.0 * rho) * logarithm
        threshold = BallThreshold.of("radius", rho, parameters, radii=radii, m=m, threshold=math.ceil(m * (m + offset)))
        return cls(n, failure_probability, rho, threshold)

    @property
    def guaranteed(self) -> float:
        return FRACTION

    @property
    def least(self) -> float:
        """The threshold as a number of records."""
        return self.threshold.threshold / self.threshold.m

    @property
    def requested(self) -> float:
        return self.threshold.threshold / (self.threshold.m * self.n)

    @property
    def stage(self) -> Stage:
        return self.threshold.stage

    @property
    def passes(self) -> float:
        return self.n

    @property
    def failure(self) -> float:
        """P(threshold noise - count noise > n - threshold). The ball of the last radius contains all n records."""
        gap = self.n - self.least
        narrow, wide = self.threshold.scales
        tail = (wide**2 * math.exp(-abs(gap) / wide) - narrow**2 * math.exp(-abs(gap) / narrow)) / 2.0
        tail /= wide**2 - narrow**2
        return tail if gap >= 0.0 else 1.0 - tail

    @property
    def required(self) -> float:
        """The n with n > 18 log(4/beta)/((1 - gamma) sqrt(2 rho)) and 36 log(2(k + 1)/beta)/sqrt(2 rho) <= (4/5 -
        gamma) n.
        """
        beta, root = self.failure_probability, math.sqrt(2.0 * self.rho)
        found = 18.0 * math.log(4.0 / beta) / ((1.0 - FRACTION) * root)
        tight = 36.0 * math.log(2.0 * len(self.threshold.radii) / beta) / (root * (0.8 - FRACTION))
        return max(found, tight)

    @property
    def sufficient(self) -> float:
        """The n that exceeds the threshold by three times the scales of the noise. With fewer records the counts reach
        the threshold only by noise.
        """
        return self.least + 3.0 * sum(self.threshold.scales)

    def run(self, source: Source, tape: Tape) -> int | None:
        return self.threshold.release(source, tape)


SEARCHES: dict[str, Callable[[PublicParameters, tuple[float, ...], float, float], Search]] = {
    "pair counts": SearchByPairs.of,
    "ball counts": SearchByBalls.of,
}


@dataclass(frozen=True, eq=False)
class FindRadius(Calibrated):
    """A calibrated search for the radius."""

    radii: tuple[float, ...]
    search: Search

    @property
    def stages(self) -> tuple[Stage, ...]:
        return (self.search.stage,)

    @property
    def passes(self) -> float:
        return self.search.passes

    @property
    def failure(self) -> float:
        """The approximate probability of `ReleaseFailed`."""
        return self.search.failure

    def run(self, source: Source, tape: Tape) -> float:
        index = self.search.run(source, tape)
        if index is None:
            raise ReleaseFailed(
                f"no radius up to {self.radii[-1]:.6g} was found within which most of the records lie, although all of "
                "them lie within this radius: the noise is too large for this n; use more records or a larger budget",
                self.cost,
            )
        return self.radii[index]


def scales(parameters: PublicParameters) -> tuple[float, float]:
    """The largest and the smallest scale of interest."""
    parameters.require(name, "radius", "resolution")
    assert parameters.radius is not None
    assert parameters.resolution is not None
    return parameters.radius, parameters.resolution


def cap(parameters: PublicParameters, rho: float) -> PrivacyCost:
    """An upper bound on the cost, which holds for every number of records, because the queries do not depend on this
    number.
    """
    return Gaussian.cap(rho, NoisyBisection.queries(0, len(grid(*scales(parameters)))))


def calibrate(parameters: PublicParameters, rho: float, failure_probability: float | None = None) -> FindRadius:
    """Calibrate to rho the search that the profile names."""
    beta = parameters.failure_probability if failure_probability is None else failure_probability
    radii = grid(*scales(parameters))
    return FindRadius(radii, SEARCHES[parameters.profile.radius_search](parameters, radii, rho, beta))
