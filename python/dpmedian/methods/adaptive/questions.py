"""What a run may ask, and what it pays for it: the kinds of releases, and one method for each.

A cost is in rho. Every answer is noisy and private already; its noise follows from its cost.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmedian.inference import Noisy
from dpmedian.mechanisms.coordinates import CoordinateSearch
from dpmedian.mechanisms.directions import FREE_WEIGHT, GradientAndDirections
from dpmedian.mechanisms.distance import Counted, DistanceCount, DistanceSearch
from dpmedian.mechanisms.gaussian import Gaussian
from dpmedian.mechanisms.gradient import NoisyGradient
from dpmedian.mechanisms.hessian import MOMENTS_DIMENSION, Curvature, Hessian
from dpmedian.mechanisms.pairs import PairCount, PairSearch
from dpmedian.mechanisms.sample import HiddenSample
from dpmedian.mechanisms.search import Found
from dpmedian.mechanisms.spender import Allowance, Offer, Spender
from dpmedian.methods.adaptive.constants import Constants
from dpmedian.methods.adaptive.region import Shares
from dpmedian.methods.adaptive.steps import Measured
from dpmedian.methods.contract import worth
from dpmedian.parameters import LARGEST, PublicParameters
from dpmedian.postprocess import onto_ball, semicircle
from dpmedian.sources.protocol import Source
from dpmedian.tape import Tape

__all__ = ["Offers", "Questions", "Records"]

Vector = NDArray[np.float64]


# How often a run may ask at most. Nothing on record comes near; the numbers bound what the discretization costs.
_SPREADS, _COUNTS, _SHIFTS, _CURVATURES, _HESSIANS, _GRADIENTS, _CARRIERS = 512, 1024, 512, 64, 16, 256, 64


@dataclass(frozen=True, eq=False)
class Offers:
    """The kinds of releases, calibrated from public parameters. `sample` records show where the data are."""

    parameters: PublicParameters
    sample: int
    pairings: int
    center_questions: int
    scale: Offer[PairCount]
    center: Offer[Gaussian]
    initial: Offer[DistanceCount]
    spread: Offer[DistanceCount]
    count: Offer[DistanceCount]
    shift: Offer[NoisyGradient]
    curvature: Offer[Curvature]
    hessian: Offer[Hessian] | None
    gradient: Offer[NoisyGradient]
    directions: Offer[GradientAndDirections] | None
    region: Shares | None
    """What a confidence region may cost, if one is wanted."""

    @classmethod
    def of(cls, p: PublicParameters, rho: float, c: Constants) -> Offers:
        m = max(c.sample, math.ceil(c.sample_signal / worth(p) * math.sqrt(p.d / rho)))
        m = p.size if p.size <= 2 * m else m
        pairings = min(max(math.ceil(c.pair_sample / m), 1), c.pairings_most)
        scale, center, initial, spread = (
            share.questions for share in (c.scale_share, c.center_share, c.initial_share, c.spread_share)
        )
        region = Shares.of(p, rho, c, m == p.size) if p.inference else None
        hessian, directions = None, None
        if 1 < p.d <= MOMENTS_DIMENSION:
            most = max(c.hessian_share[1], c.hessian_all[1], c.region_hessian.most if p.inference else 0.0)
            hessian = Offer(
                lambda rho: Hessian.of("hessian", rho, p), _HESSIANS, most, "one or two; more where records coincide"
            )
            if region is not None:
                # The kinds must not depend on a noisy size, so this one is there also where it will not be asked for.
                weight = region.directions or FREE_WEIGHT
                directions = Offer(
                    lambda rho: GradientAndDirections.of("directions", rho, p, weight),
                    # Where one gradient carries them, another does so if a run begins anew.
                    _CARRIERS if p.d <= c.many_dimensions else 2,
                    1.0,
                    "with gradients, for a confidence region"
                    + (f", weighed for {p.size} records" if p.private_size else ""),
                )
        return cls(
            parameters=p,
            sample=m,
            pairings=pairings,
            center_questions=center,
            scale=Offer(
                lambda rho: PairCount.of("pair scale", rho, p, pairings=pairings, releases=scale),
                1,
                c.scale_share.most,
                f"at most {scale}, until it is sure",
            ),
            center=Offer(
                lambda rho: CoordinateSearch.of("center", rho, p, releases=center).ranks,
                1,
                c.center_share.most,
                f"at most {center}, until it is sure",
            ),
            initial=Offer(
                lambda rho: DistanceCount.of("initial spread", rho, p, releases=initial),
                2,
                c.initial_share.most,
                f"at most {initial} each time, until it is sure",
            ),
            spread=Offer(
                lambda rho: DistanceCount.of("spread", rho, p, releases=spread),
                _SPREADS,
                c.spread_share.most,
                f"at most {spread} each time, until it is sure",
            ),
            count=Offer(
                lambda rho: DistanceCount.of("counts", rho, p, releases=1),
                _COUNTS,
                max(c.recentring_check.most, c.atom_share.most, c.kink[2], c.kink_all[0]),
                "one or two; more where records coincide",
            ),
            shift=Offer(
                lambda rho: NoisyGradient.of("recentring", rho, p, releases=1),
                _SHIFTS,
                max(2.0 * c.recentring_step.most, c.polish[0]),
                "one; more where records coincide",
            ),
            curvature=Offer(
                lambda rho: Curvature.of("curvature", rho, p),
                _CURVATURES,
                max(c.curvature_share.most, c.region_curvature.most),
                "one; more where steps do not settle",
            ),
            hessian=hessian,
            gradient=Offer(
                lambda rho: NoisyGradient.of("gradient", rho, p, releases=1),
                _GRADIENTS,
                1.0,
                "a few, then all that is left",
            ),
            directions=directions,
            region=region,
        )

    @property
    def _around_points(self) -> tuple[Offer[Gaussian], ...]:
        """The kinds that read the records once each time: a search around a point counts all radii at once."""
        hessian, gradients = (self.curvature, self.hessian), (self.gradient, self.directions)
        kinds = (self.initial, self.shift, self.count, self.spread, *hessian, *gradients)
        return tuple(kind for kind in kinds if kind is not None)

    @property
    def most_reads(self) -> int:
        """Each pairing and each question about the center reads the records once, too."""
        return self.pairings + self.center_questions + sum(kind.times for kind in self._around_points)

    def allowance(self, rho: float) -> Allowance:
        """The cap on all of them together."""
        return Allowance(rho, (self.scale, self.center, *self._around_points))


@dataclass(frozen=True, eq=False)
class Records:
    """All records, or a hidden sample of them."""

    source: Source
    size: int


class Questions:
    """One run's questions. `every` are all records, `sample` those that show where the data are: often the same."""

    def __init__(self, offers: Offers, allowance: Allowance, constants: Constants, source: Source, tape: Tape) -> None:
        self.offers, self.c, self.parameters = offers, constants, offers.parameters
        self.n, self.d, self.m, self.rho = self.parameters.size, self.parameters.d, offers.sample, allowance.rho
        # Of the sample, and of all records, in records of neighbours that replace one: what budgets are chosen by.
        self.m_worth, self.n_worth = worth(self.parameters) * self.m, worth(self.parameters) * self.n
        self.spender = Spender(allowance, tape)
        self.region = offers.region
        # What the searches around points were answered.
        self.counted: list[Counted] = []
        self.every = Records(source, self.n)
        drawn = self.spender.sample(HiddenSample(self.n, self.m, self.parameters.private_size), source)
        self.sample = self.every if self.sampled_all else Records(drawn, self.m)

    @property
    def sampled_all(self) -> bool:
        return self.m == self.n

    @property
    def left(self) -> float:
        """Of rho, as a fraction."""
        return self.spender.left / self.rho

    @property
    def spent(self) -> float:
        """Of rho, as a fraction."""
        return self.spender.spent / self.rho

    def inside(self, theta: Vector) -> Vector:
        """The nearest point of the public ball, if there is one; otherwise only kept finite."""
        return onto_ball(theta, self.parameters.origin, self.parameters.radius)

    def exponents(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """The powers of two, and the half octaves, that distances can have."""
        (low, high), (halves_low, halves_high) = self.c.exponents, self.c.halves
        if self.parameters.radius is not None:
            high = min(high, math.frexp(self.parameters.radius)[1] + 1)
            halves_high = max(2 * high + 1, halves_low)
        if self.parameters.resolution is not None:
            low = max(low, math.frexp(self.parameters.resolution)[1] - 1)
        return (min(low, high), high), (halves_low, halves_high)

    def scale(self) -> int:
        """The power of two that covers `pair_target` of the pairs."""
        c, (low, high) = self.c, self.exponents()[0]
        amplitude = c.scale_amplitude * (self.m // 2 * self.offers.pairings)
        return self.spender.search(
            self.offers.scale,
            c.scale_share.of(self.rho, self.m),
            lambda count, tape: PairSearch(low, high, c.pair_target, amplitude, c.scale_prior, count).release(
                self.sample.source, tape, c.sure
            ),
        )

    @property
    def signal(self) -> float:
        """m sqrt(rho/d): how much can be seen."""
        return self.m_worth * math.sqrt(self.rho / max(self.d, 2))

    @property
    def scale_unseen(self) -> bool:
        """Whether the records are too few for the scale of the pairs: half as many count there."""
        return self.signal < self.c.scale_signal[0]

    @property
    def few_records(self) -> bool:
        """Whether gradients alone do not tell a point near the data from one far away; a sample is never so small."""
        return self.signal < self.c.few / math.sqrt(math.sqrt(self.d))

    def center(self, octave: int | None) -> tuple[Vector, int]:
        """The median of every coordinate, to a fraction of 2^octave, and that octave, or what is left in doubt."""
        c, radius = self.c, self.parameters.radius
        limit = LARGEST if radius is None else radius
        if octave is None:
            middle, wide, below = c.center_likely
            likely = (middle, wide) if radius is None else (math.log2(radius) - below, below)
            sure = c.center_sure if self.signal > c.scale_signal[1] else 0.0
            asks: dict[str, Any] = dict(octave=c.exponents[0], resolution=0.0, likely=likely, sure=sure)
        else:
            narrow = min(c.center_width[0], c.center_width[1] * math.sqrt(self.d / self.rho) / self.m_worth)
            resolution = math.ldexp(c.center_resolution / math.sqrt(self.d), octave)
            asks = dict(octave=octave, resolution=resolution, sure=c.sure, width=math.ldexp(narrow, octave))
        share = c.center_share if self.sampled_all else c.center_share._replace(least=c.center_of_sample)
        found = self.spender.search(
            self.offers.center,
            share.of(self.rho, self.m_worth, self.d),
            lambda ranks, tape: CoordinateSearch(self.m, ranks).release(
                self.sample.source, tape, center=self.parameters.origin, limit=limit, **asks
            ),
        )
        if octave is None:
            octave = math.frexp(found.doubt)[1] - c.center_doubt
        return self.inside(found.point), octave

    def initial_spread(self, theta: Vector, octave: int) -> int:
        """The quarter octave around a point that covers the core; anywhere, likely 2^octave."""
        c = self.c
        return self._anywhere(theta, c.core, c.initial_share.of(self.rho, self.m_worth), 2.0 * octave, c.search_prior)

    def majority(self, theta: Vector) -> int:
        """The quarter octave around a point that covers more than half of the records; anywhere."""
        share, cost = self.c.majority[0], self.c.majority_cost * self.rho
        return self._anywhere(theta, share, cost, 0.0, float(self.c.halves[1]))

    def _anywhere(self, theta: Vector, share: float, cost: float, likely: float, prior_width: float) -> int:
        c, (low, high) = self.c, self.exponents()[1]
        return self._searched(
            self.offers.initial,
            cost,
            lambda count, tape: DistanceSearch(
                low, high, stride=2, amplitude=c.initial_amplitude * self.m, prior_width=prior_width, count=count
            ).release(
                self.sample.source,
                tape,
                theta,
                origin=0,
                share=share,
                size=self.m,
                likely=likely,
                sure=c.sure,
            ),
        )

    def _searched(
        self, offer: Offer[DistanceCount], cost: float, ask: Callable[[DistanceCount, Tape], Found[Counted]]
    ) -> int:
        """The quarter octave that a search finds; its answers are kept."""
        self.counted.append(self.spender.search(offer, cost, ask))
        return self.counted[-1].quarter

    def spread(self, theta: Vector, quarter: int, window: tuple[int, int], share: float) -> int:
        """The quarter octave around a point that covers a share of the records, in a window around another one."""
        c = self.c
        return self._searched(
            self.offers.spread,
            c.spread_share.of(self.rho, self.m_worth),
            lambda count, tape: DistanceSearch(
                *window, stride=1, amplitude=c.spread_amplitude * self.m, prior_width=c.search_prior, count=count
            ).release(
                self.sample.source, tape, theta, origin=quarter, share=share, size=self.m, likely=0.0, sure=c.sure
            ),
        )

    def count(self, records: Records, theta: Vector, quarter: int, cost: float) -> tuple[float, float]:
        """The number of records within a radius of a point, and its noise, that of half of all records included."""
        count, noise = self.spender.release(
            self.offers.count, cost, lambda made, tape: made.within(records.source, tape, theta, quarter, records.size)
        )
        return count, math.hypot(noise, 0.5 * self.parameters.size_noise * records.size / self.n)

    def gradient_noise(self, cost: float) -> float:
        """The length of the noise of a gradient or a shift of this cost: its sensitivity is 2, or 1."""
        return math.sqrt(2.0 * self.d / cost) / worth(self.parameters)

    def hessian_noise(self, cost: float) -> tuple[float, float]:
        """The largest eigenvalue of the noise of second moments, and the noise of the curvature, in a Hessian."""
        of_moments, of_curvature = Hessian.noise_of(cost, self.parameters)
        return semicircle(of_moments, self.d), of_curvature

    def shift(self, records: Records, theta: Vector, radius: float, cost: float) -> Vector:
        """The sum of (theta - x)/radius over the records within the radius."""
        return self.spender.release(
            self.offers.shift, cost, lambda made, tape: made.shift(records.source, tape, theta, radius)
        )[0]

    def gradient(self, records: Records, theta: Vector, cost: float) -> Measured:
        """The gradient as if of all records."""
        gradient, noise = self.spender.release(
            self.offers.gradient, cost, lambda made, tape: made.at(records.source, tape, theta)
        )
        factor = self.n / records.size
        return Measured(theta, factor * gradient, (factor * noise) ** 2)

    def gradient_and_directions(self, theta: Vector, cost: float) -> tuple[Measured, Noisy]:
        """The gradient of all records, and the second moments of the directions to them."""
        assert self.offers.directions is not None
        (gradient, moments, weight), noise = self.spender.release(
            self.offers.directions,
            cost,
            lambda made, tape: (*made.at(self.every.source, tape, theta), made.weight),
        )
        return Measured(theta, gradient, noise**2), Noisy(moments, noise / weight)

    def curvature(self, records: Records, theta: Vector, radius: float, cost: float) -> tuple[float, float]:
        """The mean curvature smoothed at a radius, times the radius, and its noise."""
        return self.spender.release(
            self.offers.curvature, cost, lambda made, tape: made.at(records.source, tape, theta, radius)
        )

    def hessian(self, records: Records, theta: Vector, radius: float, cost: float) -> tuple[float, float, Noisy]:
        """The curvature and its noise, and the second moments of directions beyond a radius with theirs."""
        assert self.offers.hessian is not None
        (curvature, moments, weight), noise = self.spender.release(
            self.offers.hessian,
            cost,
            lambda made, tape: (*made.at(records.source, tape, theta, radius), made.weight),
        )
        return curvature, noise / weight, Noisy(moments, noise)
