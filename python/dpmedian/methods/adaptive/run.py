"""One run of the default method: center, core radius, collapse, descent, end. adaptive.md has it on one page.

Radii are quarter octaves: the radius of q is 2^(q/4). The *core radius* around a point holds 40 % of the records.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmedian.inference import Moments, Noisy
from dpmedian.mechanisms.distance import radius_of
from dpmedian.methods.adaptive.belief import Belief, HessianModel, Released
from dpmedian.methods.adaptive.evidence import log_odds_of_a_cloud
from dpmedian.methods.adaptive.notes import COINCIDE, DOUBTED, EXACT, UNSETTLED, UNSURE
from dpmedian.methods.adaptive.queries import (
    MANY_DIMENSIONS,
    SAMPLED_DIMENSIONS,
    Gradient,
    Queries,
    gradient_price,
    hessian_plan,
    last_gradients,
)
from dpmedian.postprocess import spikes, stands_out, without_noise
from dpmedian.release import MethodResult

__all__ = ["Ball", "NotFound", "Run"]

Vector = NDArray[np.float64]

# Quarter octaves near the end of the doubles: all is one point below the first; curvatures overflow below the second.
_SMALLEST, _CURVED = -4064, -3940
# Octaves below a point in which doubles beside it have no neighbors.
_DIGITS = 50
# Windows of quarter octaves for searches: after a mean shift, and around the core radius so far.
_AFTER_SHIFT, _NEAR_CORE = (-40, 4), (-24, 8)
# A nonsmooth point is one if its records stay together over this many quarter octaves; a ball of 55 % that is larger by
# the other number is a larger cluster elsewhere.
_TOGETHER, _ELSEWHERE = 32, 12
# Of the curvature that records within the smoothing radius have in a smooth cloud, at most.
_SMOOTH_WITHIN = 0.25
# Anisotropy of the Hessian that the curvature alone does not show.
_ROUND = 0.3
# The 95 % quantile of a standard normal variable, and factors of the error radius with a note.
_NORMAL_95, _UNSURE_FACTOR, _NONSMOOTH_FACTOR = 1.645, 1.3, 2.0
# Standard deviations below a noisy number of records for which the evidence is computed.
_FEWER_RECORDS = (0.0, 0.5, 1.0, 1.7, 2.5)


class NotFound(Exception):
    """The gradients at the end are not those of a median. Says why."""


class Ball(NamedTuple):
    """A center and the quarter octave of a radius."""

    center: Vector
    quarter: int


class Run:
    """Changes with every query. `run` returns the result."""

    def __init__(self, ask: Queries) -> None:
        self.ask, self.c = ask, ask.c
        self.belief = Belief(ask.n, ask.d, ask.c, ask.inside)
        self.attempts = ask.c.attempts
        self.searched_majority = False
        self.nonsmooth = False
        self.clumped = False
        """Whether most of the curvature was once that of records within the smoothing radius: many lie very close."""
        self.released: Released | None = None
        self.directions: Noisy | None = None

    def run(self) -> MethodResult:
        center, likely = self.ask.center()
        start = Ball(center, self.ask.search(center, self.c.core, likely))
        while True:
            ball, _ = self.collapse(start, self.c.half)
            if self.is_point(ball, start.quarter):
                return self.exactly(ball)
            self.place(ball.quarter)
            found = self.descend(ball.center)
            if found is None:
                return self.end()
            if isinstance(found, MethodResult):
                return found
            start, self.attempts = found, self.attempts - 1

    @property
    def may_restart(self) -> bool:
        return self.attempts > 0 and self.ask.left > self.c.reserve

    def place(self, quarter: int) -> None:
        """A new core radius, and the guess of the Hessian until it is measured."""
        self.quarter = max(quarter, _CURVED)
        self.measured_after = -1
        self.belief.place(radius_of(self.quarter), HessianModel.guess(self.ask.d))

    def core_around(self, theta: Vector) -> int:
        """The quarter octave of the core radius around a point: near the one so far, or anywhere if it is larger."""
        found = self.ask.search(theta, self.c.core, self.quarter, _NEAR_CORE)
        at_the_edge = found >= self.quarter + _NEAR_CORE[1] - self.c.shrink
        return self.ask.search(theta, self.c.core, found) if at_the_edge else found

    def measure_hessian(self, theta: Vector, isotropic: bool = False) -> None:
        """The Hessian here, smoothed at a radius as small as its noise allows, or its mean over all directions."""
        ask, c, d, m = self.ask, self.c, self.ask.d, self.ask.moments_m
        plan = hessian_plan(ask.p, c, ask.rho, m, isotropic)
        unit, radius = plan.smoothing * m, plan.smoothing * self.belief.core_radius
        moments = None
        if plan.moments:
            curvature, noise, moments = ask.hessian(theta, radius, plan.cost)
            variance = (0.5 * moments.noise**2 + noise**2 / d) / unit**2
            # A record within the radius has the curvature 1, any other (1 - 1/d) times its part of the trace.
            within = curvature - (1.0 - 1.0 / d) * float(np.trace(moments.matrix))
            deviation = math.hypot(noise, (1.0 - 1.0 / d) * moments.noise * math.sqrt(d))
            self.clumped |= within > _SMOOTH_WITHIN * curvature + deviation
        else:
            curvature, noise = ask.curvature(theta, radius, plan.cost)
            anisotropy = _ROUND * float(self.belief.hessian.values.mean()) if d > 1 else 0.0
            variance = (anisotropy**2 + (noise / unit) ** 2) / d
        self.released = Released(radius, m, curvature, noise, moments)
        # A curvature that steps may be divided by: no less than its noise.
        curvature = max(curvature, noise, 0.03 * unit)
        found, vectors, deviation = np.full(d, curvature), None, noise
        if moments is not None:
            deviation = math.hypot(moments.noise, noise)
            if d <= MANY_DIMENSIONS or stands_out(moments.matrix, moments.noise):
                eigenvalues = without_noise if d <= MANY_DIMENSIONS else spikes
                directed, vectors, edge = eigenvalues(moments.matrix, moments.noise)
                found = np.maximum(curvature - directed, max(0.01 * curvature, 0.1 * edge))
        values = np.sqrt(found**2 + c.stiffer * deviation**2) / unit
        self.measured_after = len(self.belief.gradients)
        self.hessian_moments = moments is not None
        self.belief.use(HessianModel(values, vectors, found / unit, deviation / unit, variance, plan.smoothing, theta))

    # Collapse: one loop for atoms, larger clusters and nonsmooth points.

    def floor(self, theta: Vector) -> int:
        """The quarter octave below which all is one point: by the doubles at theta, or by a public resolution."""
        digits = 4 * (math.frexp(float(np.max(np.abs(theta))) or 1e-320)[1] - _DIGITS)
        resolution = self.ask.p.resolution
        return max(_SMALLEST, digits, _SMALLEST if resolution is None else math.floor(4.0 * math.log2(resolution)))

    def collapse(self, ball: Ball, share: float, depth: int | None = None) -> tuple[Ball, int]:
        """Mean shifts into ever smaller balls that hold this share of the records; and in how many rounds."""
        ask, c = self.ask, self.c
        last = ball.quarter - (c.depth if depth is None else depth)
        part, before, rounds, missed, counts = min(share / c.half, 1.0), ask.left, 0, 0, []
        cost = ask.price(c.vector_needs * ask.d, c.loop_share, c.query_most, part)
        for_count = ask.price(c.count_needs, c.loop_share, c.query_most, part)
        if math.sqrt(2.0 * ask.d / cost) / ask.gain > c.shift_noise * share * ask.m:
            return ball, 0
        while ball.quarter > max(self.floor(ball.center), last):
            if before - ask.left > c.half_budget or ask.left < c.reserve:
                break
            # A margin, because the radius that was found may just miss the records.
            wide = ball.quarter + c.shrink
            counts.append(ask.count(ball.center, wide, for_count)[0])
            held = min(max(counts[-1], share * ask.m), ask.m)
            shift = ask.shift(ball.center, radius_of(wide), cost)
            moved = ask.inside(ball.center - radius_of(wide) / held * shift)
            found = ask.search(moved, share, ball.quarter, _AFTER_SHIFT)
            if found <= ball.quarter - c.shrink:
                ball, rounds, missed = Ball(moved, found), rounds + 1, 0
            else:
                missed += 1
                if missed > (c.misses if rounds else 0):
                    break
            if len(counts) > c.patience and share == c.half and np.mean(counts) < 0.5 * (c.half + 0.5) * ask.m:
                break  # This is the smaller of two clusters: the descent will see the other one.
        return ball, rounds

    def is_point(self, ball: Ball, before: int) -> bool:
        """Whether half of the records are there: to the last digit, or as far as the budget of a collapse goes."""
        ask, c = self.ask, self.c
        if ball.quarter > max(self.floor(ball.center), before - c.depth):
            exhausted = ask.left < 1.05 - c.half_budget
            if not exhausted or ball.quarter > before - c.depth // 3:
                return False
        return ask.count(ball.center, ball.quarter + 4, c.decision_share * ask.rho)[0] > 0.5 * ask.m

    def exactly(self, ball: Ball) -> MethodResult:
        """Many records are this point, and it is the median: nothing is left to do, and the rest is not spent."""
        ask, error = self.ask, radius_of(max(ball.quarter, self.floor(ball.center)) + 4)
        point = np.where(np.abs(ball.center) <= error, 0.0, ball.center)
        moments = None if ask.offers.region is None else Moments(ask.d, float(ask.n), 0.0, least=error)
        return MethodResult(point, radius_of(ball.quarter), error, (EXACT,), moments)

    # Descent.

    def descend(self, theta: Vector) -> MethodResult | Ball | None:
        """Gradients that cost more and more while they are consistent. None at the end, or where to begin again."""
        ask, c, belief, region = self.ask, self.c, self.belief, self.ask.offers.region
        self.nonsmooth, self.directions = False, None
        cost = min(gradient_price(ask.p, c.first_noise, ask.m), c.first_share * ask.rho)
        belief.begin(theta, ask.n**2 / ask.d)
        in_a_row, surprises, last = 0, 0, 0
        found: MethodResult | Ball | None
        while ask.left > 1e-5:
            enough = min(gradient_price(ask.p, ask.m**-0.5, ask.m), c.single_share * ask.rho)
            if ask.m < ask.n and belief.hessian.at is not None and cost > enough:
                self.use_all()
                cost = c.single_share * ask.rho
            parts = last_gradients(ask.p, ask.rho, c, ask.offers.sample, ask.left)
            if not last and cost * max(parts, c.growth_all) >= ask.left * ask.rho:
                if ask.m < ask.n:
                    self.use_all()
                found = self.look_around()
                if found is not None:
                    return found
                last = c.last_nonsmooth if self.nonsmooth else parts
                if len(belief.gradients) > self.measured_after:
                    self.measure_hessian(belief.point)
                if region is not None and self.directions is None and ask.may_see_directions(of_sample=True):
                    self.directions = ask.gradient_and_directions(belief.point, region.cost, of_sample=True)[1]
            ending = last > 0
            if ending:
                cost = ask.left * ask.rho / last
                last = max(last - 1, 1)
            step = belief.point - theta
            length = float(np.linalg.norm(step / belief.core_radius))
            theta = ask.inside(theta + step * min(1.0, 1.0 / max(length, 1e-300)))
            belief.learn(self.gradient(theta, cost, carry=ending))
            if belief.squares(1) > c.far and self.may_restart:
                return Ball(belief.point, self.core_around(belief.point))
            if belief.consistent and length <= 1.0:
                in_a_row = 0
                if not ending:
                    if belief.hessian.at is None:
                        self.place(self.core_around(belief.point))
                        # In many dimensions its second moments wait for a better point: they take most of the time.
                        self.measure_hessian(belief.point, isotropic=ask.sampled and ask.d > SAMPLED_DIMENSIONS)
                    # As good as the model is at the new point: a better gradient would be wasted.
                    useful = 2.0 * (ask.n / ask.m / ask.gain) ** 2 / belief.model_variance() / cost
                    cost *= min(max(useful, c.growth), c.growth_all if ask.sampled else c.growth)
            else:
                in_a_row += 1
                if in_a_row >= c.patience:
                    in_a_row, surprises, cost = 0, surprises + 1, c.growth * cost
                    if surprises <= c.attempts and ask.left > c.reserve and not self.nonsmooth:
                        found = self.surprise()
                        if found is not None:
                            return found
        return None

    def use_all(self) -> None:
        """Queries all records from now on. What the sample told is a prior, with the sample's own error."""
        ask, belief = self.ask, self.belief
        belief.begin(belief.point, ask.n**2 / (ask.m * ask.d) + 1.0 / belief.precision)
        ask.use_all()
        self.measured_after = -1

    def gradient(self, theta: Vector, cost: float, carry: bool) -> Gradient:
        """A gradient; at the end of the run it carries the directions, if a confidence region needs them."""
        ask, region = self.ask, self.ask.offers.region
        if not (
            carry
            and ask.may_see_directions(of_sample=False)
            and region is not None
            and (region.every or self.directions is None)
        ):
            return ask.gradient(theta, cost)
        gradient, found = ask.gradient_and_directions(theta, cost)
        self.directions = found if self.directions is None else self.directions.combined(found)
        return gradient

    def surprise(self) -> MethodResult | Ball | None:
        """What the model does not explain: a larger cluster elsewhere, a nonsmooth point, or another core radius."""
        ask, c, belief = self.ask, self.c, self.belief
        there = np.mean([gradient.point for gradient in belief.gradients[-c.patience :]], axis=0)
        mean, variance, square = belief.mean(c.patience)
        pulled = square > max((0.5 * c.pull * ask.n) ** 2, 9.0 * ask.d * variance)
        if pulled and self.may_restart and not self.searched_majority:
            self.searched_majority = True
            around = ask.search(there, c.majority, self.quarter)
            if around >= self.quarter + _ELSEWHERE:
                return Ball(ask.inside(there - radius_of(around) / float(np.linalg.norm(mean)) * mean), around)
            ball, rounds = self.collapse(Ball(there, around), c.half)
            if rounds:
                return ball
        found = self.look_around()
        if found is None:
            self.place(self.core_around(there))
            self.measure_hessian(there)
        return found

    def look_around(self) -> MethodResult | None:
        """Whether records stay in a ball that shrinks four times: a nonsmooth point. A result if it is exact."""
        ask, c, theta = self.ask, self.c, self.belief.point
        cost = min(c.decision_share, 0.1 / ask.d) * ask.rho
        if 1.0 / math.sqrt(2.0 * cost) / ask.gain > 0.1 * ask.m:
            return None
        near, noise = ask.count(theta, self.quarter - c.near - c.nearer, cost)
        near -= 2.0 ** (-(c.near + c.nearer) / 4.0 * ask.d) * ask.m
        if near < 2.0 * noise:
            return None
        wider, noise = ask.count(theta, self.quarter - c.near, cost)
        self.nonsmooth = near + wider > 4.0 * noise and near > c.stays * wider
        return self.exact_point(theta, near) if self.nonsmooth else None

    def exact_point(self, theta: Vector, held: float) -> MethodResult | None:
        """Fewer than half of the records, to the last digit. They are the median if the others pull with less."""
        ask, c = self.ask, self.c
        share, start = 0.8 * held / ask.m, self.quarter - c.near
        ball, _ = self.collapse(Ball(theta, start), share, _TOGETHER + c.nearer)
        if ball.quarter > start - _TOGETHER:
            return None
        # A little aside these records pull with their whole number in a known direction: the rest is that of others.
        aside, held = np.zeros(ask.d), held * ask.n / ask.m
        aside[0] = math.sqrt(radius_of(ball.quarter)) * math.sqrt(self.belief.core_radius)
        others = ask.gradient(ball.center + aside, c.proof_share * ask.rho).gradient
        others[0] -= held
        if float(np.linalg.norm(others)) > 0.8 * held:
            return None
        return self.exactly(self.collapse(ball, share)[0])

    # End.

    def log_odds(self) -> float:
        """Log odds that the data surround the point; infinite with many records, whose gradients tell alone.

        If the number of records is private and noisy, for the number within its noise that leaves most doubt.
        """
        ask, belief = self.ask, self.belief
        if not self.few:
            return math.inf
        sizes = {max(ask.n - part * ask.p.size_noise, 1.0) for part in _FEWER_RECORDS}
        return min(
            log_odds_of_a_cloud(belief.gradients, ask.counted, belief.point, self.quarter, n, self.c.core)
            for n in sizes
        )

    @property
    def few(self) -> bool:
        return self.ask.signal < self.c.few / math.sqrt(math.sqrt(self.ask.d))

    def end(self) -> MethodResult:
        """The point, its error radius and notes, or the reason why the run failed."""
        ask, c, belief = self.ask, self.c, self.belief
        half = max(2, (len(belief.gradients) + 1) // 2)
        _, variance, square = belief.mean(half)
        # If steps jump over a cluster, the gradients cancel, but each is long.
        squares, odds = max(square / ask.n**2, belief.squares(half) - 0.2), self.log_odds()
        if squares > (0.7 * c.far if self.few else c.far) and odds < (c.odds_lost if self.few else math.inf):
            raise NotFound(f"the squared mean gradient is still {squares:.2f} n^2")
        # After a sample the first gradient of all records shows the sample's own error.
        expected = ask.d * variance + (ask.n**2 / ask.offers.sample if ask.sampled else 0.0)
        if not self.nonsmooth and square > max((c.pull * ask.n) ** 2, 16.0 * expected):
            raise NotFound(f"the mean gradient is still {math.sqrt(square) / ask.n:.2f} n")
        notes: tuple[str, ...] = ()
        if odds < c.odds_doubted or (self.few and squares > c.far):
            notes = (DOUBTED,)
        error, least = self.error_radius(), 0.0
        hessian = belief.hessian
        if self.nonsmooth:
            error *= _NONSMOOTH_FACTOR
            notes, least = (*notes, COINCIDE), error
        elif not belief.consistent:
            notes, error = (*notes, UNSETTLED), _UNSURE_FACTOR * error
        elif self.clumped or hessian.deviation > float(hessian.found.min()) or (ask.d > 1 and not self.hessian_moments):
            notes, error = (*notes, UNSURE), _UNSURE_FACTOR * error
        return MethodResult(belief.point, belief.core_radius, error, notes, self.moments(1.0 / belief.precision, least))

    def error_radius(self) -> float:
        """The 95 % quantile of |H^-1 gradient error| (Satterthwaite, Wilson and Hilferty), H with its own noise.

        To second order the mean of 1/h^2 is 1 + 3 (deviation/h)^2 times what it is without noise. A hidden soft
        direction looks like any other one, so eigenvalues are lowered by half of their standard deviation first, and
        the smallest one by the bias of its smoothing. The model error counts as if it were in the softest direction.
        """
        belief, hessian = self.belief, self.belief.hessian
        low = np.maximum(hessian.found - 0.5 * hessian.deviation, hessian.deviation)
        low[np.argmin(low)] *= 1.0 - self.c.bias * hessian.smoothing
        parts = (1.0 / belief.precision) / low**2 * (1.0 + 3.0 * (hessian.deviation / low) ** 2)
        parts[np.argmin(low)] += (belief.model_error / float(low.min())) ** 2
        total = float(parts.sum())
        spread = 2.0 / 9.0 * float(((parts / total) ** 2).sum())
        quantile = total * (1.0 - spread + _NORMAL_95 * math.sqrt(spread)) ** 3
        return belief.core_radius / self.ask.n * math.sqrt(quantile)

    def moments(self, variance: float, least: float) -> Moments | None:
        """What a confidence region is made of. No region is smaller than `least`."""
        ask, found = self.ask, self.released
        if ask.offers.region is None or found is None:
            return None
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
