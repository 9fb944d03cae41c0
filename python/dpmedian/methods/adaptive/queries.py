"""The noisy queries of the default method: their kinds, the cost of each in rho, and one function for each kind."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpmedian.inference import Noisy
from dpmedian.inference.error import KNOWN
from dpmedian.mechanisms.coordinates import OPEN, CoordinateSearch
from dpmedian.mechanisms.directions import FREE_WEIGHT, LEAST_WEIGHT, GradientAndDirections
from dpmedian.mechanisms.distance import Counted, DistanceCount, DistanceSearch
from dpmedian.mechanisms.gaussian import Gaussian
from dpmedian.mechanisms.gradient import NoisyGradient
from dpmedian.mechanisms.hessian import MOMENTS_DIMENSION, Curvature, Hessian
from dpmedian.mechanisms.sample import HiddenSample
from dpmedian.mechanisms.spender import Allowance, Offer, Spender
from dpmedian.methods.adaptive.constants import CONSTANTS, Constants
from dpmedian.methods.contract import sensitivity_gain
from dpmedian.parameters import LARGEST, PublicParameters
from dpmedian.postprocess import onto_ball, semicircle
from dpmedian.sources.protocol import Source
from dpmedian.statistics import FIRST_QUARTER_OCTAVE, LAST_QUARTER_OCTAVE
from dpmedian.tape import Tape

__all__ = ["Gradient", "HessianPlan", "Offers", "Queries", "hessian_plan"]

Vector = NDArray[np.float64]
Made = TypeVar("Made", bound=Gaussian)

# With more dimensions than this, second moments take most of the time, so only one gradient has directions.
MANY_DIMENSIONS = CONSTANTS.many_dimensions
# With more dimensions than this, directions are computed from the sample, if there is a sample.
SAMPLED_DIMENSIONS = 2 * MANY_DIMENSIONS
# The smallest exponent of doubles, and the number of half octaves of distances.
_FIRST_OCTAVE = sys.float_info.min_exp - 1
_FIRST_HALF, _LAST_HALF = FIRST_QUARTER_OCTAVE // 2, LAST_QUARTER_OCTAVE // 2


class Gradient(NamedTuple):
    """A noisy gradient, scaled to all n records, and the variance of each coordinate of its noise."""

    point: Vector
    gradient: Vector
    variance: float


class HessianPlan(NamedTuple):
    """A Hessian query before it is made: its cost, whether it has second moments, and its smoothing in core radii."""

    cost: float
    moments: bool
    smoothing: float


def price(c: Constants, rho: float, m: float, needs: float, least: float, most: float) -> float:
    """The cost of a query that needs `needs`/m^2. The cost is at least `least` of rho, and at most `most` of rho."""
    needed = needs / m**2
    return min(max(needed, min(least * rho, c.generous * needed)), most * rho)


def hessian_plan(p: PublicParameters, c: Constants, rho: float, m: float, isotropic: bool = False) -> HessianPlan:
    """Plan a Hessian of m records: the curvature alone, if `isotropic` or if noise would hide the second moments.

    The smoothing balances the noise, which is proportional to 1/smoothing, and the bias, which increases with it.
    """
    d, worthy = p.d, sensitivity_gain(p) * m
    if 1 < d <= MOMENTS_DIMENSION and not isotropic:
        # A more precise Hessian saves gradients later, so its cost is limited only by a share of rho.
        cost = rho * min(max(c.generous * c.needs * d / (rho * worthy**2), c.single_share), c.query_most)
        edge = semicircle(Hessian.noise_of(cost, p)[0], d) / m
        if edge < c.bias * c.most_smoothing:
            return HessianPlan(cost, True, min(math.sqrt(edge / c.bias), c.most_smoothing))
    cost = price(c, rho, worthy, c.needs, c.single_share, c.query_most)
    noise = 1.0 / math.sqrt(2.0 * cost)
    return HessianPlan(cost, False, min(math.sqrt(noise / m / c.bias), c.most_smoothing))


@dataclass(frozen=True)
class Region:
    """The queries for a confidence region: directions with this weight, or 0 if noise would hide them.

    If `cost` is positive, the directions are released once, about the sample, at this cost. Otherwise they are released
    with `every` one of the last gradients, or with only one of these. If `ellipsoid` is False, the region is a ball.
    """

    weight: float
    every: bool
    ellipsoid: bool
    cost: float = 0.0

    @classmethod
    def of(cls, p: PublicParameters, rho: float, c: Constants, gradients: int, sample: int) -> Region:
        """The queries of a region for n (or about n) records, with this number of gradients at the end of a run."""
        n, d = max(p.size, 1), p.d
        if not hessian_plan(p, c, rho, n if d <= SAMPLED_DIMENSIONS else sample).moments:
            return cls(0.0, False, d == 1)

        def cost_of(records: int) -> float:
            """The cost of directions alone, with half of the largest noise with which they count as known."""
            return price(c, rho, records, 2.0 * d**2 * (d + 1) / KNOWN**2, c.single_share, c.query_most)

        def weight_of(carriers: float) -> float:
            """The weight of the directions in gradients that together have this cost."""
            if p.protection.relation.size_is_public:
                return FREE_WEIGHT
            # Under add/remove, directions with the weight b take b^2/(1 + b^2) of the cost of a gradient.
            return min(max(math.sqrt(cost_of(n) / carriers), LEAST_WEIGHT), FREE_WEIGHT)

        def known(carriers: float, weight: float, records: int) -> bool:
            """Whether the noise is small relative to the mean eigenvalue, which is 1/d of the records."""
            noise = GradientAndDirections.noise_of(carriers, p, weight)
            # The noise matrix has eigenvalues of about sqrt((d + 1)/2) times the standard deviation of an entry.
            return noise * math.sqrt((d + 1.0) / 2.0) < KNOWN * records / d

        # The budget that is left for the last gradients if the searches before them were expensive.
        together = (1.0 - c.reserve) * rho
        one = together / gradients
        every = known(together, weight_of(together), n) and d <= MANY_DIMENSIONS
        in_sample = known(cost_of(sample), FREE_WEIGHT, sample)
        shown = known(one, weight_of(one), n)
        if sample < n and (in_sample or (d > SAMPLED_DIMENSIONS and not shown)):
            # Second moments of all records would take more time, and tell nothing new.
            return cls(FREE_WEIGHT, False, in_sample, cost_of(sample))
        return cls(weight_of(together if every else one), every, every or shown)


@dataclass(frozen=True, eq=False)
class Offers:
    """The kinds of queries, calibrated from public parameters. `sample` is the number of records in the sample."""

    parameters: PublicParameters
    sample: int
    center: Offer[Gaussian]
    search: Offer[DistanceCount]
    count: Offer[DistanceCount]
    shift: Offer[NoisyGradient]
    curvature: Offer[Curvature]
    hessian: Offer[Hessian] | None
    gradient: Offer[NoisyGradient]
    directions: Offer[GradientAndDirections] | None
    region: Region | None
    """The queries for a confidence region, or None if the caller does not want a region."""
    constants: Constants

    @classmethod
    def of(cls, p: PublicParameters, rho: float, c: Constants) -> Offers:
        m = max(c.sample_records, math.ceil(c.sample_signal / sensitivity_gain(p) * math.sqrt(p.d / rho)))
        # In very many dimensions a sample saves more time.
        m = p.size if p.size <= (2.0 if p.d <= SAMPLED_DIMENSIONS else 1.5) * m else m
        region = Region.of(p, rho, c, last_gradients(p, rho, c, m), m) if p.inference else None
        # A run restarts at most `patience` times, and measures a Hessian at the start, at the end and after surprises.
        hessians = (c.patience + 1) * (c.patience + 2)
        uses, most, queries, percent = c.uses, c.query_most, c.search_queries, 100.0 * c.elsewhere

        def kind(of: Callable[..., Made], name: str, times: int, largest: float, rule: str, **more: Any) -> Offer[Made]:
            return Offer(lambda rho: of(name, rho, p, **more), times, largest, rule)

        rule = f"at most {c.center_queries}; stops when the posterior no longer narrows"
        center = Offer(
            lambda rho: CoordinateSearch.of("center", rho, p, releases=c.center_queries).ranks, 1, c.half_budget, rule
        )
        rule = f"at most {queries} each; stops when less than {percent:g} % of the posterior mass lies elsewhere"
        search = kind(DistanceCount.of, "core radius", uses, c.search_most, rule, releases=queries)
        count = kind(DistanceCount.of, "counts", uses, most, "one or two; more if records coincide", releases=1)
        shift = kind(NoisyGradient.of, "mean shift", uses, most, "one; more if records coincide", releases=1)
        curvature = kind(Curvature.of, "curvature", hessians, most, "instead of a noisy Hessian")
        gradient = kind(NoisyGradient.of, "gradient", uses, 1.0, "the rest of the budget", releases=1)
        hessian, directions = None, None
        if 1 < p.d <= MOMENTS_DIMENSION:
            hessian = kind(Hessian.of, "hessian", hessians, most, "two; more if gradients disagree")
            if region is not None:
                # The kinds must not depend on a noisy size, so this kind exists even if the run will not use it.
                weight = region.weight or FREE_WEIGHT
                # If only one gradient has directions, a second one may be needed after a restart.
                times = uses if p.d <= MANY_DIMENSIONS else 2
                rule = f"{'of the sample' if region.cost else 'with the last gradients'}, for a confidence region"
                rule += f", weighed for {p.size} records" if p.private_size else ""
                directions = kind(GradientAndDirections.of, "directions", times, 1.0, rule, weight=weight)
        return cls(p, m, center, search, count, shift, curvature, hessian, gradient, directions, region, c)

    @property
    def _kinds(self) -> tuple[Offer[Gaussian], ...]:
        """All kinds except the center search. Each use reads the records once, also a search for a radius."""
        kinds = (self.search, self.count, self.shift, self.curvature, self.hessian, self.gradient, self.directions)
        return tuple(kind for kind in kinds if kind is not None)

    @property
    def most_reads(self) -> int:
        return self.constants.center_queries + sum(kind.times for kind in self._kinds)

    def allowance(self, rho: float) -> Allowance:
        """The cap on all kinds together."""
        return Allowance(rho, (self.center, *self._kinds))


def last_gradients(p: PublicParameters, rho: float, c: Constants, sample: int, left: float = 1.0) -> int:
    """The number of last gradients, among which the rest of rho is divided equally. With a sample there are few."""
    most = c.last_gradients if p.d <= MANY_DIMENSIONS else c.last_gradients // 2
    if sample < p.size:
        # In many dimensions one more pass over all records takes far less time than a Hessian.
        return 1 if p.d <= MANY_DIMENSIONS else c.last_gradients // 4
    # A part pays for a gradient with the largest useful noise.
    least = 2.0 * p.d / (c.most_noise * sensitivity_gain(p) * p.size) ** 2
    return min(most, max(1, round(left * rho / least)))


class Queries:
    """The queries of one run, about the m records of the sample, and after `use_all` about all n records."""

    def __init__(self, offers: Offers, allowance: Allowance, constants: Constants, source: Source, tape: Tape) -> None:
        self.offers, self.c, self.p, self.rho = offers, constants, offers.parameters, allowance.rho
        self.n, self.d, self.m, self.gain = self.p.size, self.p.d, offers.sample, sensitivity_gain(self.p)
        self.spender, self.source = Spender(allowance, tape), source
        self.records = self.sample = self.spender.sample(HiddenSample(self.n, self.m, self.p.private_size), source)
        self.sampled = self.m < self.n
        self.counted: list[Counted] = []
        """The results and answers of the searches for a radius."""
        self.carriers = 0

    def use_all(self) -> None:
        """Use all records from now on."""
        self.m, self.records = self.n, self.source

    @property
    def of_hessian(self) -> tuple[int, Source]:
        """The records of a Hessian and their number. In many dimensions they are always the sample, to save time."""
        return (self.m, self.records) if self.d <= SAMPLED_DIMENSIONS else (self.offers.sample, self.sample)

    @property
    def left(self) -> float:
        """The part of rho that is left, as a fraction."""
        return self.spender.left / self.rho

    @property
    def few(self) -> bool:
        """Whether there are so few records that gradients alone do not show whether the point is far from the data."""
        signal = self.gain * self.m * math.sqrt(self.rho / max(self.d, 2))
        return signal < self.c.few / math.sqrt(math.sqrt(self.d))

    @property
    def parts(self) -> int:
        """The number of equal parts into which the rest of the budget is divided for the last gradients."""
        return last_gradients(self.p, self.rho, self.c, self.offers.sample, self.left)

    def price(self, needs: float, least: float, most: float, part: float = 1.0) -> float:
        """The cost of a query about this part of the records. With fewer records, the cost is higher."""
        return price(self.c, self.rho, self.gain * self.m * part, needs, least, most)

    def inside(self, theta: Vector) -> Vector:
        """The nearest point of the public ball. Without a ball, the point itself with finite coordinates."""
        return onto_ball(theta, self.p.origin, self.p.radius)

    def useful(self, square: float) -> float:
        """The cost of a gradient whose noise, scaled to all records, has this mean squared length."""
        return 2.0 * self.d * (self.n / self.m / self.gain) ** 2 / square

    def center(self, distance: float | None = None) -> tuple[Vector, float]:
        """The median of every coordinate, and the diagonal of the box that contains most of the posterior mass.

        If the distance of the records from the public center is known, the prior prefers coordinates of this size.
        """
        c, radius = self.c, self.p.radius
        likely = (c.likely_octaves, c.likely_octaves)
        if distance is not None:
            likely = (math.log2(max(distance / math.sqrt(self.d), sys.float_info.min)), 1.0)
        elif radius is not None:
            likely = (math.log2(radius) - 0.5 * c.likely_octaves, 0.5 * c.likely_octaves)
        needed = c.needs * self.d / (self.gain * self.m) ** 2
        found = self.spender.search(
            self.offers.center,
            min(max(needed, c.center_share * self.rho), c.half_budget * self.rho),
            lambda ranks, tape: CoordinateSearch(self.m, ranks).release(
                self.records,
                tape,
                center=self.p.origin,
                limit=LARGEST if radius is None else radius,
                octave=_FIRST_OCTAVE,
                resolution=self.p.resolution or 0.0,
                likely=likely,
                stop_below=0.0 if self.few else OPEN,
            ),
        )
        return self.inside(found.point), found.doubt

    def search(self, theta: Vector, share: float, around: int, window: bool = False) -> int:
        """The quarter octave of the smallest radius around theta that contains a share. The prior is near `around`.

        With `window` the search covers only radii near `around`. It is finer and costs half.
        """
        c, m, last = self.c, self.m, _LAST_HALF
        if self.p.radius is not None:
            # No two points of the ball are farther apart than its diameter.
            last = min(last, 2 * (math.frexp(self.p.radius)[1] + 1))
        cost = max(self.price(c.needs, 0.0, c.search_most, min(share / c.half, 1.0)), c.single_share * self.rho)
        low, high, stride, origin, likely = _FIRST_HALF, last, 2, 0, 0.5 * around
        if window:
            low, high, stride, origin, likely, cost = -4 * c.near, c.near, 1, around, 0.0, 0.5 * cost
        # Counts are assumed to differ from the target by at least half of it. Between clusters they may differ less.
        amplitude = 0.5 * share * m
        found = self.spender.search(
            self.offers.search,
            cost,
            lambda count, tape: DistanceSearch(low, high, stride, amplitude, c.likely_octaves, count).release(
                self.records, tape, theta, origin=origin, share=share, size=m, likely=likely, stop_below=c.elsewhere
            ),
        )
        self.counted.append(found)
        return found.quarter

    def count(self, theta: Vector, quarter: int, cost: float) -> tuple[float, float]:
        """The noisy number of records within a radius, and its standard deviation, including the noise of a noisy n."""
        count, noise = self.spender.release(
            self.offers.count, cost, lambda made, tape: made.within(self.records, tape, theta, quarter, self.m)
        )
        return count, math.hypot(noise, 0.5 * self.p.size_noise * self.m / self.n)

    def shift(self, theta: Vector, radius: float, cost: float) -> Vector:
        """The sum of (theta - x)/radius over the records x within the radius."""
        return self.spender.release(
            self.offers.shift, cost, lambda made, tape: made.shift(self.records, tape, theta, radius)
        )[0]

    def gradient(self, theta: Vector, cost: float) -> Gradient:
        """The gradient, scaled to all records."""
        gradient, noise = self.spender.release(
            self.offers.gradient, cost, lambda made, tape: made.at(self.records, tape, theta)
        )
        return Gradient(theta, self.n / self.m * gradient, (self.n / self.m * noise) ** 2)

    def due_region(self, of_sample: bool, seen: Noisy | None) -> Region | None:
        """The queries of the region, if directions (of the sample or of all records) must be queried now, else None."""
        offer, region = self.offers.directions, self.offers.region
        if offer is None or region is None or not region.weight or (region.cost > 0.0) != of_sample:
            return None
        enough = self.carriers >= (offer.times if region.every else 2) or (seen is not None and not region.every)
        return None if enough or not (of_sample or self.m == self.n) else region

    def gradient_and_directions(self, theta: Vector, cost: float, of_sample: bool = False) -> tuple[Gradient, Noisy]:
        """The gradient, and the second moments of the directions to the records, both scaled to all records."""
        if self.offers.directions is None:
            raise TypeError("directions are queried only for a confidence region")
        self.carriers += 1
        records, whole = (self.sample, self.n / self.offers.sample) if of_sample else (self.records, 1.0)
        (gradient, moments, weight), noise = self.spender.release(
            self.offers.directions, cost, lambda made, tape: (*made.at(records, tape, theta), made.weight)
        )
        seen = Noisy(whole * moments, whole * noise / weight)
        return Gradient(theta, whole * gradient, (whole * noise) ** 2), seen

    def curvature(self, theta: Vector, radius: float, cost: float) -> tuple[float, float]:
        """The mean curvature smoothed at a radius, times the radius, and the standard deviation of its noise."""
        return self.spender.release(
            self.offers.curvature, cost, lambda made, tape: made.at(self.of_hessian[1], tape, theta, radius)
        )

    def hessian(self, theta: Vector, radius: float, cost: float) -> tuple[float, float, Noisy]:
        """The curvature, the sigma of its noise, and the second moments of directions beyond the radius."""
        if self.offers.hessian is None:
            raise TypeError("the Hessian is queried neither in one dimension nor in very many dimensions")
        (curvature, moments, weight), noise = self.spender.release(
            self.offers.hessian,
            cost,
            lambda made, tape: (*made.at(self.of_hessian[1], tape, theta, radius), made.weight),
        )
        return curvature, noise / weight, Noisy(moments, noise)
