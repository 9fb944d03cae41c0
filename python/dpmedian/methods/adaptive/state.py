"""What a run believes: a point, the spread around it, the Hessian, and the noisy gradients so far."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmedian.inference import Moments, Noisy
from dpmedian.mechanisms.distance import radius_of
from dpmedian.methods.adaptive.location import Located, Locator
from dpmedian.methods.adaptive.metric import Metric
from dpmedian.methods.adaptive.questions import Questions, Records
from dpmedian.methods.adaptive.steps import Measured, accelerated, averaged, damping, length, pull
from dpmedian.postprocess import without_noise

__all__ = ["Hessian", "State"]

Vector = NDArray[np.float64]


class Hessian(NamedTuple):
    """As it was released: smoothed at a radius, over so many records."""

    radius: float
    records: int
    curvature: float
    noise: float
    moments: Noisy | None


class State:
    """Changes with every release; the last one makes the point."""

    def __init__(self, ask: Questions, locator: Locator, located: Located, atom: bool) -> None:
        self.ask, self.locator, self.atom = ask, locator, atom
        self.theta = located.center
        self.measured: list[Measured] = []
        self.settled = False
        # Whether it was asked if this is a cluster with fewer than half of the records.
        self.doubted = False
        # Whether many records coincide near the point, or no smooth model explains the gradients.
        self.sharp = False
        # Second moments released so far.
        self.hessians = 0
        # Where the Hessian of all records was measured, if it was.
        self.hessian_at: Vector | None = None
        # What the confidence region is made of: the last Hessian, and the directions to all records.
        self.hessian: Hessian | None = None
        self.directions: Noisy | None = None
        self.place(located.spread)

    def place(self, quarter: int) -> None:
        """A new spread, and the metric of a cloud until the curvature is measured."""
        self.quarter = self.locator.usable(quarter)
        self.spread = radius_of(self.quarter)
        d = self.ask.d
        self.metric = Metric.round(self.ask.c.cloud * (1.0 - 1.0 / d if d > 1 else 0.5), d, self.unit)

    @property
    def unit(self) -> float:
        """Of the metric: a gradient of n is as long as one spread."""
        return self.spread / self.ask.n

    @property
    def for_moments(self) -> float:
        """What the second moments of the sample cost, or 0 where their noise would hide them."""
        ask, c = self.ask, self.ask.c
        needed, most = c.moments_share if ask.sampled_all else c.moments_sample
        cost = min(needed * ask.d / (ask.m * ask.m_worth), most * ask.rho)
        useless = ask.moments_edge(cost) / ask.m > c.useless[ask.d * (ask.d + 1) // 2 > ask.m] * c.smoothing[1]
        return 0.0 if useless or ask.offers.moments is None else cost

    def measure(self, records: Records, theta: Vector, cost: float) -> None:
        """One more gradient."""
        self.measured.append(self.ask.gradient(records, theta, cost))

    def moved(self, step: Vector, damped: bool = True) -> Vector:
        """The end of a step from the last point, which is not longer than a spread."""
        ask, (base, _, variance) = self.ask, self.measured[-1]
        step = step * (damping(ask.n, ask.d, variance, ask.c) if damped else 1.0)
        return ask.inside(base + step * min(1.0, ask.c.longest * self.spread / max(length(step), 1e-320)))

    def propose(self, memory: float | None = None) -> None:
        """Moves to the mean of what the gradients say, or where they do not settle, to where they would vanish."""
        c = self.ask.c
        step, self.settled, _ = averaged(self.measured, self.metric, c.memory if memory is None else memory, c)
        if not self.settled:
            step = accelerated(self.measured, self.metric, c.trust, anchored=True)
        self.theta = self.moved(step)

    def left_over(self) -> float:
        """What the error of the metric leaves of the last gradient after its step, over the gradient's own noise."""
        _, gradient, variance = self.measured[-1]
        return self.metric.left_over(gradient, self.ask.n, self.ask.c.bias) / variance

    def pulled(self, late: Sequence[Measured]) -> bool:
        """Whether these gradients do not vanish in the mean: three deviations of their noise."""
        return pull(late, self.ask.n, self.ask.c.majority[1], deviations=3.0) > 0.0

    def majority(self, late: Sequence[Measured]) -> Located | None:
        """Where more than half of the records are, if these gradients say that this is not the place; asked once.

        In a cluster with fewer than half of the records the gradient does not vanish, and no step is long enough. The
        majority is in the direction of the pull, as far as the ball reaches that has more than half of the records.
        Where that ball is not larger, the records may coincide somewhere in it, and steps jump over them.
        """
        ask, wider = self.ask, self.ask.c.majority[2]
        if self.doubted or not self.pulled(late):
            return None
        self.doubted = True
        there = np.mean([measure.point for measure in late], axis=0)
        around = ask.majority(there)
        elsewhere = around >= self.quarter + wider
        if elsewhere:
            mean = np.mean([measure.gradient for measure in late], axis=0)
            there = ask.inside(there - radius_of(around) / length(mean) * mean)
        found = self.locator.recenter(Located(there, around), 2.0, ask.c.misses)
        return found if elsewhere or found.rounds else None

    def recentered(self, found: Located) -> Located | None:
        """Begins anew at a better center; where half of the records are one point there, returns it."""
        self.atom = self.locator.is_atom(found.center, found.spread)
        if self.atom and self.locator.is_point(found):
            return found
        self.theta, self.settled = found.center, False
        self.place(found.spread)
        self.measured.clear()
        return None

    def measure_spread(self, theta: Vector, low: int | None = None) -> int:
        window = self.ask.c.spread_window if low is None else (low, self.ask.c.spread_window[1])
        return self.ask.spread(theta, self.quarter, window, self.ask.c.core)

    def measure_again(self, theta: Vector, with_moments: bool) -> None:
        """The spread and the Hessian here."""
        ask, c, for_moments = self.ask, self.ask.c, self.for_moments
        least = c.smoothing[0] if ask.sampled_all else c.smoothing_sample
        self.place(self.measure_spread(theta))
        if with_moments:
            for_curvature = max(c.curvature_share.needed / ask.m**2, ask.beside(for_moments))
            self.measure_hessian(ask.sample, theta, for_curvature, for_moments, c.edge, least)
        else:
            self.measure_hessian(ask.sample, theta, c.curvature_share.of(ask.rho, ask.m), 0.0, c.edge, least)

    def measure_hessian(
        self,
        records: Records,
        theta: Vector,
        for_curvature: float,
        for_moments: float,
        edge: float,
        least: float,
        deviations: float = 10.0,
    ) -> None:
        """Curvature and second moments, smoothed at a radius as small as their noise allows.

        The Hessian of the sum of distances is (K - T)/radius, with K the curvature and T the second moments. A cloud's
        curvature is `deviations` of its noise, or more.
        """
        ask, c, size = self.ask, self.ask.c, records.size
        noise = deviations / math.sqrt(2.0 * for_curvature)
        if for_moments:
            noise = max(noise, ask.moments_edge(for_moments) / edge)
        smoothing = min(max(noise / size, least), c.smoothing[1])
        radius = smoothing * self.spread
        mean, noise = ask.curvature(records, theta, radius, for_curvature)
        curvature = max(mean, 3.0 * noise, 0.1 * smoothing * size)
        self.hessian = Hessian(radius, size, mean, noise, None)
        if not for_moments or ask.offers.moments is None:
            self.metric = Metric.round(curvature / (smoothing * size), ask.d, self.unit, noise / (smoothing * size))
            return
        moments, noise_of_moments = ask.moments(records, theta, radius, for_moments)
        self.hessian = self.hessian._replace(moments=Noisy(moments, noise_of_moments))
        # The trace of the moments is known from the curvature.
        directed, vectors, semicircle = without_noise(moments, noise_of_moments)
        found = np.maximum(curvature - directed, max(0.01 * curvature, 0.1 * semicircle))
        deviation = math.hypot(noise_of_moments, noise)
        values = found + c.careful * deviation**2 / found
        self.hessians += 1
        # Off the diagonal the second moments have half the variance.
        doubt = (0.5 * noise_of_moments**2 + noise**2 / ask.d) / (smoothing * size) ** 2
        unit = smoothing * size
        self.metric = Metric(values / unit, vectors, self.unit, doubt, smoothing, found / unit, deviation / unit)

    def measure_hessian_of_all(self) -> None:
        """With all records, at the present point."""
        ask, c = self.ask, self.ask.c
        needed, most = c.moments_all
        cost = min(needed * ask.d / (ask.n * ask.n_worth), most * ask.rho)
        self.measure_hessian(ask.every, self.theta, ask.beside(cost), cost, c.edge_all, c.smoothing_all)
        self.hessian_at = self.theta

    @property
    def known_here(self) -> bool:
        """Whether the Hessian of all records was measured here, within the radius at which it is smoothed."""
        if self.hessian_at is None:
            return False
        return length(self.theta - self.hessian_at) <= self.metric.smoothing * self.spread

    def measure_for_region(self, theta: Vector, with_directions: bool = True) -> None:
        """The Hessian as well as a confidence region needs it, for the steps too; and the directions."""
        ask, c, region = self.ask, self.ask.c, self.ask.region
        assert region is not None
        for_moments = max(region.hessian, self.for_moments) if region.hessian else 0.0
        edge, deviations = c.region_edge[0 if region.ellipsoid else 1], 1.0 / c.region_noise
        self.measure_hessian(ask.every, theta, region.curvature, for_moments, edge, c.smoothing[0], deviations)
        if with_directions:
            self.measure_directions(theta)

    def measure_directions(self, theta: Vector) -> None:
        """If a confidence region needs them."""
        region = self.ask.region
        if region is not None and region.directions:
            self.directions = self.ask.directions(theta, region.directions)

    def moments(self, variance: float, least: float = 0.0) -> Moments | None:
        """What a confidence region is made of, at the end of a run whose gradients together have this variance.

        No region is smaller than `least`.
        """
        ask, found = self.ask, self.hessian
        if ask.region is None:
            return None
        assert found is not None, "it is measured for the region before a run ends"
        return Moments(
            d=ask.d,
            size=float(ask.n),
            gradient_variance=variance,
            least=least,
            radius=found.radius,
            records=float(found.records),
            curvature=found.curvature,
            curvature_noise=found.noise,
            hessian=found.moments,
            directions=self.directions,
        )
