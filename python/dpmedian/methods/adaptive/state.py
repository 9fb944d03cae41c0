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
from dpmedian.postprocess import semicircle, stands_out, without_noise

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
        # Hessians with second moments released so far.
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
    def for_hessian(self) -> float:
        """What a Hessian of the sample costs, or 0 where noise would hide its second moments."""
        ask, c = self.ask, self.ask.c
        if ask.offers.hessian is None:
            return 0.0
        needed, most = c.hessian_share if ask.sampled_all else c.hessian_sample
        cost = min(needed * ask.d / (ask.m * ask.m_worth), most * ask.rho)
        edge, _ = ask.hessian_noise(cost)
        useless = edge / ask.m > c.useless[ask.d * (ask.d + 1) // 2 > ask.m] * c.smoothing[1]
        return 0.0 if useless else cost

    def measure(self, records: Records, theta: Vector, cost: float, with_directions: bool = False) -> None:
        """One more gradient; with the directions, if a confidence region needs them: then of all records."""
        if with_directions and self.ask.region is not None and self.ask.region.directions:
            assert records is self.ask.every
            measured, directions = self.ask.gradient_and_directions(theta, cost)
            self.directions = directions if self.directions is None else self.directions.combined(directions)
        else:
            measured = self.ask.gradient(records, theta, cost)
        self.measured.append(measured)

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
        self.directions = None
        return None

    def measure_spread(self, theta: Vector, low: int | None = None) -> int:
        window = self.ask.c.spread_window if low is None else (low, self.ask.c.spread_window[1])
        return self.ask.spread(theta, self.quarter, window, self.ask.c.core)

    def measure_again(self, theta: Vector, with_moments: bool) -> None:
        """The spread and the Hessian here, without its second moments where their noise would hide them."""
        ask, c, for_hessian = self.ask, self.ask.c, self.for_hessian
        least = c.smoothing[0] if ask.sampled_all else c.smoothing_sample
        self.place(self.measure_spread(theta))
        if with_moments and for_hessian:
            self.measure_hessian(ask.sample, theta, for_hessian, c.edge, least)
        else:
            self.measure_curvature(ask.sample, theta, c.curvature_share.of(ask.rho, ask.m), least)

    def measure_curvature(
        self, records: Records, theta: Vector, cost: float, least: float, deviations: float = 10.0
    ) -> None:
        """The mean of the Hessian over all directions alone, smoothed at a radius as small as its noise allows."""
        smoothing = self._smoothing(deviations / math.sqrt(2.0 * cost), records, least)
        unit, radius = smoothing * records.size, smoothing * self.spread
        mean, noise = self.ask.curvature(records, theta, radius, cost)
        self.hessian = Hessian(radius, records.size, mean, noise, None)
        self.metric = Metric.round(_positive(mean, noise, unit) / unit, self.ask.d, self.unit, noise / unit)

    def measure_hessian(
        self, records: Records, theta: Vector, cost: float, edge: float, least: float, deviations: float = 10.0
    ) -> None:
        """Curvature and second moments, smoothed at a radius as small as their noise allows.

        The Hessian of the sum of distances is (K - T)/radius, with K the curvature and T the second moments. A cloud's
        curvature is `deviations` of its noise, or more.
        """
        ask, c = self.ask, self.ask.c
        largest, of_curvature = ask.hessian_noise(cost)
        smoothing = self._smoothing(max(deviations * of_curvature, largest / edge), records, least)
        unit, radius = smoothing * records.size, smoothing * self.spread
        mean, noise, moments = ask.hessian(records, theta, radius, cost)
        self.hessian = Hessian(radius, records.size, mean, noise, moments)
        self.hessians += 1
        curvature = _positive(mean, noise, unit)
        # The trace of the moments is known from the curvature.
        directed, vectors, hidden = np.zeros(ask.d), None, semicircle(moments.noise, ask.d)
        if ask.d <= c.many_dimensions or stands_out(moments.matrix, moments.noise):
            directed, vectors, hidden = without_noise(moments.matrix, moments.noise)
        found = np.maximum(curvature - directed, max(0.01 * curvature, 0.1 * hidden))
        deviation = math.hypot(moments.noise, noise)
        values = found + c.careful * deviation**2 / found
        # Off the diagonal the second moments have half the variance.
        doubt = (0.5 * moments.noise**2 + noise**2 / ask.d) / unit**2
        self.metric = Metric(values / unit, vectors, self.unit, doubt, smoothing, found / unit, deviation / unit)

    def _smoothing(self, noise: float, records: Records, least: float) -> float:
        """The smoothing radius in spreads at which a cloud stands out of this noise, and not less than the least."""
        return min(max(noise / records.size, least), self.ask.c.smoothing[1])

    def measure_hessian_of_all(self) -> None:
        """With all records, at the present point: on the line, and in very many dimensions, the curvature alone."""
        ask, c = self.ask, self.ask.c
        needed, most = c.hessian_all
        cost = min(needed * ask.d / (ask.n * ask.n_worth), most * ask.rho)
        if ask.offers.hessian is None:
            self.measure_curvature(ask.every, self.theta, cost, c.smoothing_all)
        else:
            self.measure_hessian(ask.every, self.theta, cost, c.edge_all, c.smoothing_all)
        self.hessian_at = self.theta

    @property
    def known_here(self) -> bool:
        """Whether the Hessian of all records was measured here, within the radius at which it is smoothed."""
        if self.hessian_at is None:
            return False
        return length(self.theta - self.hessian_at) <= self.metric.smoothing * self.spread

    def measure_for_region(self, theta: Vector) -> None:
        """The Hessian as well as a confidence region needs it, for the steps too."""
        ask, c, region = self.ask, self.ask.c, self.ask.region
        assert region is not None
        deviations, least = 1.0 / c.region_noise, c.smoothing[0]
        if region.hessian:
            cost, edge = max(region.hessian, self.for_hessian), c.region_edge[0 if region.ellipsoid else 1]
            self.measure_hessian(ask.every, theta, cost, edge, least, deviations)
        else:
            self.measure_curvature(ask.every, theta, region.curvature, least, deviations)

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


def _positive(curvature: float, noise: float, unit: float) -> float:
    """A curvature that steps may be divided by: no less than three deviations of its noise, or a tenth of a cloud's."""
    return max(curvature, 3.0 * noise, 0.1 * unit)
