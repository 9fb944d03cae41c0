"""The noisy queries of the default method: their kinds, what each costs, and one method for each kind.

A cost is in rho. Every answer is noisy and private already; its noise follows from its cost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmedian.inference import Noisy
from dpmedian.inference.error import KNOWN
from dpmedian.mechanisms.coordinates import CoordinateSearch
from dpmedian.mechanisms.directions import FREE_WEIGHT, GradientAndDirections
from dpmedian.mechanisms.distance import Counted, DistanceCount, DistanceSearch
from dpmedian.mechanisms.gaussian import Gaussian
from dpmedian.mechanisms.gradient import NoisyGradient
from dpmedian.mechanisms.hessian import MOMENTS_DIMENSION, Curvature, Hessian
from dpmedian.mechanisms.sample import HiddenSample
from dpmedian.mechanisms.spender import Allowance, Offer, Spender
from dpmedian.methods.adaptive.constants import Constants
from dpmedian.methods.contract import sensitivity_gain
from dpmedian.parameters import LARGEST, PublicParameters
from dpmedian.postprocess import onto_ball, semicircle
from dpmedian.sources.protocol import Source
from dpmedian.tape import Tape

__all__ = ["Gradient", "HessianPlan", "Offers", "Queries", "hessian_plan"]

Vector = NDArray[np.float64]

# How often each kind may be queried at most. No run on record comes near; the numbers bound what discretization costs.
_SEARCHES, _COUNTS, _SHIFTS, _CURVATURES, _HESSIANS, _GRADIENTS, _CARRIERS = 512, 1024, 512, 64, 32, 256, 64
# The noisy ranks of a center search, and the noisy counts of a search for a radius, at most.
CENTER_QUERIES, SEARCH_QUERIES = 80, 32
# All octaves of doubles, and the half octaves that distances between points can have.
_FIRST_OCTAVE, _HALF_OCTAVES = -1022, 2036
# The core rounds the weights of directions down to multiples of 2^-30: a weight below this one would lose digits.
_LEAST_WEIGHT = 2.0**-20
# From so many dimensions on second moments take most of the time, so that a single gradient carries the directions.
MANY_DIMENSIONS = 128
# From so many on they are those of the sample, if there is one.
SAMPLED_DIMENSIONS = 256
# What a search for a radius expects: counts miss their target by a quarter of the records or more, and the radius lies
# within some octaves of the likely one. It stops when less than 1 % of the posterior mass lies elsewhere.
_AMPLITUDE, _PRIOR_OCTAVES, _ELSEWHERE = 0.25, 8.0, 0.01
# Where the center search begins: octaves and their width without a radius, and octaves below a radius.
_LIKELY_OCTAVE, _LIKELY_WIDTH = 4.0, 8.0
# The center search stops when the box of all but this posterior mass no longer shrinks; with a signal below the other
# number it uses all queries.
_CENTER_OUTSIDE, _CENTER_SIGNAL = 0.2, 17.0
# Part of rho that the gradients which carry the directions have together.
_CARRIED = 0.7


class Gradient(NamedTuple):
    """A noisy gradient, as if of all n records, and the variance of each coordinate of its noise."""

    point: Vector
    gradient: Vector
    variance: float


class HessianPlan(NamedTuple):
    """A Hessian query before it is made: cost, whether it has second moments, smoothing in core radii."""

    cost: float
    moments: bool
    smoothing: float
    of_moments: float
    """Standard deviation of the second moments on their diagonal; 0 if there are none."""
    of_curvature: float


def price(
    c: Constants, rho: float, m: float, needs: float, least: float, most: float, generous: float | None = None
) -> float:
    """The cost of a query that needs `needs`/m^2."""
    needed = needs / m**2
    few = (c.generous if generous is None else generous) * needed
    return min(max(needed, min(least * rho, few)), most * rho)


def hessian_plan(p: PublicParameters, c: Constants, rho: float, m: float, isotropic: bool = False) -> HessianPlan:
    """The Hessian of m records, or the curvature alone, if that is wanted or noise would hide its second moments.

    The smoothing balances noise, which falls as 1/smoothing, and bias, which grows with it.
    """
    d, gain = p.d, sensitivity_gain(p)
    if 1 < d <= MOMENTS_DIMENSION and not isotropic:
        cost = price(c, rho, gain * m, c.hessian_needs * d, c.single_share, c.query_most, math.inf)
        of_moments, of_curvature = Hessian.noise_of(cost, p)
        edge = semicircle(of_moments, d) / m
        if edge < 0.5 * c.most_smoothing:
            smoothing = min(max(math.sqrt(2.0 * edge), c.least_smoothing), c.most_smoothing)
            return HessianPlan(cost, True, smoothing, of_moments, of_curvature)
    cost = price(c, rho, gain * m, c.curvature_needs, c.single_share, c.query_most)
    noise = 1.0 / math.sqrt(2.0 * cost)
    # A smoothing at which a cloud's curvature is ten times the noise.
    return HessianPlan(cost, False, min(max(10.0 * noise / m, 0.25), c.most_smoothing), 0.0, noise)


@dataclass(frozen=True)
class Region:
    """What a confidence region needs: the weight of the directions, how many gradients carry them, and its kind.

    `weight` is 0 if noise would hide the directions. `cost` is that of a release about the sample: in many dimensions,
    if directions are not known one by one, their sum of squares is enough, which the sample shows.
    """

    weight: float
    every: bool
    ellipsoid: bool
    cost: float = 0.0

    @classmethod
    def of(cls, p: PublicParameters, rho: float, c: Constants, gradients: int, sample: int) -> Region:
        """For n records, or a noisy number of them, and this many gradients at the end of a run."""
        n, d = max(p.size, 1), p.d
        if not hessian_plan(p, c, rho, n if d <= SAMPLED_DIMENSIONS else sample).moments:
            return cls(0.0, False, d == 1)

        def cost_of(records: int) -> float:
            """The cost of the directions on their own."""
            return price(c, rho, records, c.directions_need * d**2 * (d + 1), c.single_share, c.query_most)

        def weight_of(carriers: float) -> float:
            """The weight of the directions in gradients that cost this together."""
            if p.protection.relation.size_is_public:
                return FREE_WEIGHT
            # They are not free: a weight of b costs b^2/(1 + b^2) of the gradients.
            return min(max(math.sqrt(cost_of(n) / carriers), _LEAST_WEIGHT), FREE_WEIGHT)

        def known(carriers: float) -> bool:
            """Whether their noise is small beside the directions, whose eigenvalues are n/d in the mean."""
            noise = GradientAndDirections.noise_of(carriers, p, weight_of(carriers))
            # As a matrix the noise has eigenvalues of about sqrt((d + 1)/2) times its standard deviation.
            return noise * math.sqrt((d + 1.0) / 2.0) < KNOWN * n / d

        together, one = _CARRIED * rho, _CARRIED * rho / gradients
        every = known(together) and d <= MANY_DIMENSIONS
        if d > SAMPLED_DIMENSIONS and sample < n and not known(one):
            return cls(FREE_WEIGHT, False, False, cost_of(sample))
        return cls(weight_of(together if every else one), every, every or known(one))


@dataclass(frozen=True, eq=False)
class Offers:
    """The kinds of queries, calibrated from public parameters. `sample` records show where the data are."""

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
    """What a confidence region needs, if one is wanted."""

    @classmethod
    def of(cls, p: PublicParameters, rho: float, c: Constants) -> Offers:
        m = max(c.sample_records, math.ceil(c.sample_signal / sensitivity_gain(p) * math.sqrt(p.d / rho)))
        m = p.size if p.size <= 2 * m else m
        region = Region.of(p, rho, c, last_gradients(p, rho, c, m), m) if p.inference else None
        hessian, directions, until = None, None, "stops when less than 1 % of the posterior mass lies elsewhere"
        if 1 < p.d <= MOMENTS_DIMENSION:
            hessian = Offer(
                lambda rho: Hessian.of("hessian", rho, p), _HESSIANS, c.query_most, "two; more if surprised"
            )
            if region is not None:
                # The kinds must not depend on a noisy size, so this kind is there even if it will not be queried.
                weight = region.weight or FREE_WEIGHT
                directions = Offer(
                    lambda rho: GradientAndDirections.of("directions", rho, p, weight),
                    # If a single gradient carries them, another one does so after a new start.
                    _CARRIERS if p.d <= MANY_DIMENSIONS else 2,
                    1.0,
                    ("of the sample" if region.cost else "with the last gradients")
                    + ", for a confidence region"
                    + (f", weighed for {p.size} records" if p.private_size else ""),
                )
        return cls(
            parameters=p,
            sample=m,
            center=Offer(
                lambda rho: CoordinateSearch.of("center", rho, p, releases=CENTER_QUERIES).ranks,
                1,
                c.half_budget,
                f"at most {CENTER_QUERIES}; stops when the posterior no longer narrows",
            ),
            search=Offer(
                lambda rho: DistanceCount.of("core radius", rho, p, releases=SEARCH_QUERIES),
                _SEARCHES,
                c.search_most,
                f"at most {SEARCH_QUERIES} each; {until}",
            ),
            count=Offer(
                lambda rho: DistanceCount.of("counts", rho, p, releases=1),
                _COUNTS,
                max(c.query_most, c.decision_share),
                "one or two; more if records coincide",
            ),
            shift=Offer(
                lambda rho: NoisyGradient.of("mean shift", rho, p, releases=1),
                _SHIFTS,
                c.query_most,
                "one; more if records coincide",
            ),
            curvature=Offer(
                lambda rho: Curvature.of("curvature", rho, p),
                _CURVATURES,
                c.query_most,
                "instead of a Hessian that would be mostly noise",
            ),
            hessian=hessian,
            gradient=Offer(
                lambda rho: NoisyGradient.of("gradient", rho, p, releases=1),
                _GRADIENTS,
                1.0,
                "some, then all that is left",
            ),
            directions=directions,
            region=region,
        )

    @property
    def _kinds(self) -> tuple[Offer[Gaussian], ...]:
        """All kinds but the center search. Each use reads the records once: a search counts all radii at once."""
        hessian, gradients = (self.curvature, self.hessian), (self.gradient, self.directions)
        kinds = (self.search, self.count, self.shift, *hessian, *gradients)
        return tuple(kind for kind in kinds if kind is not None)

    @property
    def most_reads(self) -> int:
        return CENTER_QUERIES + sum(kind.times for kind in self._kinds)

    def allowance(self, rho: float) -> Allowance:
        """The cap on all kinds together."""
        return Allowance(rho, (self.center, *self._kinds))


def last_gradients(p: PublicParameters, rho: float, c: Constants, sample: int, left: float = 1.0) -> int:
    """The number of equal parts of what is left of rho for the last gradients: few after a sample."""
    if sample < p.size:
        return 1 if p.d <= MANY_DIMENSIONS else c.last_many
    affordable = left * rho / gradient_price(p, c.last_noise, p.size)
    return min(c.last_gradients, max(1, round(affordable)))


def gradient_price(p: PublicParameters, noise: float, m: float) -> float:
    """The cost of a gradient of m records whose noise has this length, in m."""
    return 2.0 * p.d / (noise * sensitivity_gain(p) * m) ** 2


class Queries:
    """The queries of one run. `records` are `m` records: the sample, until `use_all` makes them all n."""

    def __init__(self, offers: Offers, allowance: Allowance, constants: Constants, source: Source, tape: Tape) -> None:
        self.offers, self.c, self.p, self.rho = offers, constants, offers.parameters, allowance.rho
        self.n, self.d, self.m, self.gain = self.p.size, self.p.d, offers.sample, sensitivity_gain(self.p)
        self.spender, self.source = Spender(allowance, tape), source
        self.records = self.spender.sample(HiddenSample(self.n, self.m, self.p.private_size), source)
        self.moments_m, self.moments_records = self.m, self.records
        self.sampled = self.m < self.n
        self.counted: list[Counted] = []
        """What the searches for a radius were answered."""
        self.carriers = 0

    def use_all(self) -> None:
        """From now on. In many dimensions second moments stay with the sample, because they take far longer."""
        self.m, self.records = self.n, self.source
        if self.d <= SAMPLED_DIMENSIONS:
            self.moments_m, self.moments_records = self.m, self.records

    @property
    def left(self) -> float:
        """Of rho, as a fraction."""
        return self.spender.left / self.rho

    @property
    def signal(self) -> float:
        """m sqrt(rho/d): how far the records stand out of the noise."""
        return self.gain * self.m * math.sqrt(self.rho / max(self.d, 2))

    def price(self, needs: float, least: float, most: float, part: float = 1.0) -> float:
        """The cost of a query about this part of the records: fewer cost more."""
        return price(self.c, self.rho, self.gain * self.m * part, needs, least, most)

    def inside(self, theta: Vector) -> Vector:
        """The nearest point of the public ball, if there is one; otherwise only kept finite."""
        return onto_ball(theta, self.p.origin, self.p.radius)

    def center(self) -> tuple[Vector, int]:
        """The median of every coordinate, and a quarter octave of what the posteriors leave open."""
        c, radius = self.c, self.p.radius
        likely = (_LIKELY_OCTAVE, _LIKELY_WIDTH)
        if radius is not None:
            likely = (math.log2(radius) - _LIKELY_OCTAVE, _LIKELY_OCTAVE)
        cost = price(
            c, self.rho, self.gain * self.m, c.vector_needs * self.d, c.center_share, c.half_budget, math.inf
        )  # fmt: skip
        found = self.spender.search(
            self.offers.center,
            cost,
            lambda ranks, tape: CoordinateSearch(self.m, ranks).release(
                self.records,
                tape,
                center=self.p.origin,
                limit=LARGEST if radius is None else radius,
                octave=_FIRST_OCTAVE,
                resolution=self.p.resolution or 0.0,
                likely=likely,
                sure=_CENTER_OUTSIDE if self.signal > _CENTER_SIGNAL else 0.0,
            ),
        )
        # The diagonal of a box that holds 80 % of each posterior is several times the core radius.
        return self.inside(found.point), 4 * (math.frexp(found.doubt)[1] - 3)

    def search(self, theta: Vector, share: float, around: int, window: tuple[int, int] | None = None) -> int:
        """The quarter octave of the radius around theta that holds a share of the records.

        Anywhere, likely `around`, or in a window of quarter octaves around it.
        """
        c, high = self.c, _HALF_OCTAVES
        if self.p.radius is not None:
            high = min(high, 2 * math.frexp(self.p.radius)[1] + 3)
        low, high, stride, origin, likely = (-_HALF_OCTAVES, high, 2, 0, around / 2.0)
        if window is not None:
            (low, high), stride, origin, likely = window, 1, around, 0.0
        amplitude = min(_AMPLITUDE, 0.5 * share) * self.m
        cost = self.price(c.search_needs, c.single_share, c.search_most, min(share / c.half, 1.0))
        self.counted.append(
            self.spender.search(
                self.offers.search,
                cost if window is None else 0.5 * cost,
                lambda count, tape: DistanceSearch(low, high, stride, amplitude, _PRIOR_OCTAVES, count).release(
                    self.records,
                    tape,
                    theta,
                    origin=origin,
                    share=share,
                    size=self.m,
                    likely=likely,
                    sure=_ELSEWHERE,
                ),
            )
        )
        return self.counted[-1].quarter

    def count(self, theta: Vector, quarter: int, cost: float) -> tuple[float, float]:
        """The number of records within a radius, and its standard deviation, that of a noisy n included."""
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
        """The gradient, as if of all records."""
        gradient, noise = self.spender.release(
            self.offers.gradient, cost, lambda made, tape: made.at(self.records, tape, theta)
        )
        return Gradient(theta, self.n / self.m * gradient, (self.n / self.m * noise) ** 2)

    def may_see_directions(self, of_sample: bool) -> bool:
        """Whether directions are queried for a confidence region: of all records with a gradient, or of the sample."""
        offer, region = self.offers.directions, self.offers.region
        if offer is None or region is None or not region.weight or (region.cost > 0.0) != of_sample:
            return False
        return (of_sample or self.m == self.n) and self.carriers < (offer.times if region.every else 2)

    def gradient_and_directions(self, theta: Vector, cost: float, of_sample: bool = False) -> tuple[Gradient, Noisy]:
        """The gradient, and the second moments of the directions to the records, both as if of all records."""
        if self.offers.directions is None:
            raise TypeError("directions are queried only for a confidence region")
        self.carriers += 1
        records, whole = (self.moments_records, self.n / self.moments_m) if of_sample else (self.records, 1.0)
        (gradient, moments, weight), noise = self.spender.release(
            self.offers.directions, cost, lambda made, tape: (*made.at(records, tape, theta), made.weight)
        )
        seen = Noisy(whole * moments, whole * noise / weight)
        return Gradient(theta, whole * gradient, (whole * noise) ** 2), seen

    def curvature(self, theta: Vector, radius: float, cost: float) -> tuple[float, float]:
        """The mean curvature smoothed at a radius, times the radius, and its standard deviation."""
        return self.spender.release(
            self.offers.curvature, cost, lambda made, tape: made.at(self.moments_records, tape, theta, radius)
        )

    def hessian(self, theta: Vector, radius: float, cost: float) -> tuple[float, float, Noisy]:
        """The curvature and its standard deviation, and the second moments of directions beyond the radius."""
        if self.offers.hessian is None:
            raise TypeError("the Hessian is not queried on the line, nor in very many dimensions")
        (curvature, moments, weight), noise = self.spender.release(
            self.offers.hessian,
            cost,
            lambda made, tape: (*made.at(self.moments_records, tape, theta, radius), made.weight),
        )
        return curvature, noise / weight, Noisy(moments, noise)
