"""RadiusFinder: a private estimate of the radius that holds most of the records. Proof: radius_finder.md.

| paper | here | meaning |
|---|---|---|
| R, r | `radius`, `resolution` | largest and smallest scale of interest |
| Grid | `radii` | r, 2r, 4r, ..., the first that is at least 2R |
| gamma, m | `FRACTION`, `m` | 3/4, ceil(gamma n) |
| N(nu) | `top_count_sums` | the mean of the m largest ball counts, here m times it: an integer |
| - | `pair_counts` | pairs of random pairings within nu: linear in n |
| Fail | `ReleaseFailed` | nothing reached the threshold |
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from dpmedian.accounting import PrivacyCost
from dpmedian.mechanisms.above_threshold import AboveThreshold, epsilon_of_rho
from dpmedian.mechanisms.bisection import NoisyBisection
from dpmedian.methods import Stage
from dpmedian.problem import Problem
from dpmedian.release import ReleaseFailed
from dpmedian.source import ArraySource, Tape

__all__ = ["FRACTION", "RadiusFinder", "check", "grid", "name", "prepare"]

name = "radius_finder"

FRACTION = 3.0 / 4.0


def grid(radius: float, resolution: float) -> tuple[float, ...]:
    """r, 2r, 4r, ..., up to the first that is at least 2R: no two records of the ball are farther apart."""
    doublings = math.ceil(math.log2(radius) - math.log2(resolution) + 1.0)
    # The logarithms round: one more radius if the last falls short.
    doublings += math.ldexp(resolution, doublings) < 2.0 * radius
    return tuple(math.ldexp(resolution, i) for i in range(doublings + 1))


class Search(Protocol):
    """One of the two ways to search the grid."""

    @property
    def stage(self) -> Stage: ...

    @property
    def passes(self) -> float: ...

    @property
    def failure(self) -> float: ...

    @property
    def held(self) -> float:
        """The fraction of the records that, by the proof, some ball of the released radius holds."""
        ...

    @property
    def asked(self) -> float:
        """The fraction of the records that must lie together for their radius to be found, about."""
        ...

    @property
    def required(self) -> float:
        """The n from which the proof holds, its constants made explicit."""
        ...

    @property
    def sufficient(self) -> float:
        """The n from which the search finds its radius in practice."""
        ...

    def run(self, source: ArraySource, tape: Tape) -> int | None: ...


@dataclass(frozen=True)
class PairSearch:
    """Noisy bisection over the counts of random pairs within each radius."""

    radii: tuple[float, ...]
    n: int
    failure_probability: float
    held: float
    margin: float
    pairings: int
    bisection: NoisyBisection

    @classmethod
    def of(cls, problem: Problem, radii: tuple[float, ...], rho: float, failure_probability: float) -> PairSearch:
        n, profile = problem.n, problem.profile
        pairings = min(profile.pairings, max(1, math.ceil(profile.pairs / n)))
        # The index after the last radius means that none was found.
        bisection = NoisyBisection.of(
            "radius", 0, len(radii), sensitivity=pairings, rho=rho, largest=pairings * (n // 2)
        )
        return cls(radii, n, failure_probability, profile.pair_fraction, profile.pair_margin, pairings, bisection)

    @property
    def pairs(self) -> int:
        return self.n // 2

    @property
    def target(self) -> float:
        """Of the pairs."""
        return self.held + self.margin

    @property
    def asked(self) -> float:
        """If they are all that lie together, a random pair has both of its records among them."""
        return math.sqrt(self.target)

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise on the number of pairs, averaged over pairings."""
        return self.bisection.count.noise / self.pairings

    @property
    def stage(self) -> Stage:
        count = self.bisection.count
        noise = f"Gaussian, sigma {self.deviation:.4g} on {self.pairs} pairs"
        return Stage("radius", f"{count.releases} counts of pairs", noise, 1.0, self.bisection.cost)

    @property
    def passes(self) -> float:
        return self.pairings

    @property
    def failure(self) -> float:
        """All pairs lie within the last radius, so only noise can miss it."""
        return 0.5 * math.erfc((1.0 - self.target) * self.pairs / (self.deviation * math.sqrt(2.0)))

    @property
    def required(self) -> float:
        """So that the noise and the sampling of pairs each stay below half of the margin (radius_finder.md)."""
        beta, half = self.failure_probability, self.margin / 2.0
        noise = 2.0 * self.deviation * math.sqrt(2.0 * math.log(4.0 * self.bisection.count.releases / beta)) / half
        sampling = 4.0 * math.log(8.0 / beta) / (half**2 * self.pairings)
        return max(noise, sampling)

    @property
    def sufficient(self) -> float:
        """Three standard deviations of the noise are a third of the pairs."""
        return 18.0 * self.deviation

    def run(self, source: ArraySource, tape: Tape) -> int | None:
        counts = source.pair_counts(tape, self.radii, self.pairings)
        target = self.target * self.pairs * self.pairings
        index = self.bisection.release(tape, lambda j: int(counts[j]), target)
        return index if index < len(self.radii) else None


@dataclass(frozen=True)
class BallSearch:
    """AboveThreshold over the mean of the m largest ball counts, as printed; counts are multiplied by m."""

    radii: tuple[float, ...]
    n: int
    failure_probability: float
    rho: float
    m: int
    threshold: int
    mechanism: AboveThreshold

    @classmethod
    def of(cls, problem: Problem, radii: tuple[float, ...], rho: float, failure_probability: float) -> BallSearch:
        n, profile = problem.n, problem.profile
        m = math.ceil(FRACTION * n)
        mechanism = AboveThreshold.of("radius", math.ceil(profile.ball_sensitivity * m), epsilon_of_rho(rho))
        logarithm = math.log(2.0 / failure_probability * max(len(radii) - 1, 1))
        offset = profile.ball_offset / math.sqrt(2.0 * rho) * logarithm
        return cls(radii, n, failure_probability, rho, m, math.ceil(m * (m + offset)), mechanism)

    @property
    def held(self) -> float:
        return FRACTION

    @property
    def asked(self) -> float:
        return self.threshold / (self.m * self.n)

    @property
    def scales(self) -> tuple[float, float]:
        """The widths of the noise on the threshold and on a count, in records."""
        threshold, query = self.mechanism.scales
        return threshold / self.m, query / self.m

    @property
    def stage(self) -> Stage:
        threshold, query = self.scales
        noise = f"Laplace, scale {threshold:.4g} on {self.threshold / self.m:.5g} records, {query:.4g} on counts"
        sensitivity = self.mechanism.sensitivity / self.m
        return Stage("radius", f"AboveThreshold, {len(self.radii)} radii", noise, sensitivity, self.mechanism.cost)

    @property
    def passes(self) -> float:
        return self.n

    @property
    def failure(self) -> float:
        """The last radius holds all n records; P(threshold noise - count noise > n - threshold)."""
        gap = self.n - self.threshold / self.m
        narrow, wide = self.scales
        tail = (wide**2 * math.exp(-abs(gap) / wide) - narrow**2 * math.exp(-abs(gap) / narrow)) / 2.0
        tail /= wide**2 - narrow**2
        return tail if gap >= 0.0 else 1.0 - tail

    @property
    def required(self) -> float:
        """n > 18 log(4/beta)/((1 - gamma) sqrt(2 rho)), and 36 log(2(k + 1)/beta)/sqrt(2 rho) <= (4/5 - gamma) n."""
        beta, root = self.failure_probability, math.sqrt(2.0 * self.rho)
        found = 18.0 * math.log(4.0 / beta) / ((1.0 - FRACTION) * root)
        tight = 36.0 * math.log(2.0 * len(self.radii) / beta) / (root * (0.8 - FRACTION))
        return max(found, tight)

    @property
    def sufficient(self) -> float:
        """The threshold must lie below n, or only the noise can cross it."""
        return self.threshold / self.m + 3.0 * sum(self.scales)

    def run(self, source: ArraySource, tape: Tape) -> int | None:
        sums = source.top_count_sums(self.radii, self.m)
        return self.mechanism.release(tape, (int(count) for count in sums), self.threshold)


SEARCHES: dict[str, Callable[[Problem, tuple[float, ...], float, float], Search]] = {
    "pair counts": PairSearch.of,
    "ball counts": BallSearch.of,
}


@dataclass(frozen=True, eq=False)
class RadiusFinder:
    """A calibrated search for the radius."""

    radii: tuple[float, ...]
    search: Search

    @property
    def stages(self) -> tuple[Stage, ...]:
        return (self.search.stage,)

    @property
    def cost(self) -> PrivacyCost:
        return self.search.stage.cost

    @property
    def passes(self) -> float:
        return self.search.passes

    @property
    def failure(self) -> float:
        """The probability of `ReleaseFailed`, about."""
        return self.search.failure

    def run(self, source: ArraySource, tape: Tape) -> float:
        index = self.search.run(source, tape)
        if index is None:
            raise ReleaseFailed(
                f"no radius up to {self.radii[-1]:.6g} was seen to hold most of the records, though all lie within it: "
                "the noise is too large for this n",
                self.cost,
            )
        return self.radii[index]


def check(problem: Problem) -> None:
    problem.require(name, "radius", "resolution")


def prepare(problem: Problem, rho: float, failure_probability: float | None = None) -> RadiusFinder:
    """Costs rho, with the search that the profile names."""
    assert problem.radius is not None
    assert problem.resolution is not None
    beta = problem.failure_probability if failure_probability is None else failure_probability
    radii = grid(problem.radius, problem.resolution)
    return RadiusFinder(radii, SEARCHES[problem.profile.radius_search](problem, radii, rho, beta))
