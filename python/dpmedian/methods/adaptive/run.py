"""One run of the default method: center, core radius, collapse, descent, end. adaptive.md describes these stages.

A radius is given by its quarter octave: the quarter octave q stands for the radius 2^(q/4). The *core radius* around a
point is the radius of the smallest ball around the point that contains 40 % of the records.
"""

from __future__ import annotations

import math
import sys
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpmedian.inference import Moments, Noisy, error_radius
from dpmedian.mechanisms.distance import radius_of
from dpmedian.methods.adaptive.belief import Belief, HessianModel
from dpmedian.methods.adaptive.evidence import log_odds_of_a_cloud
from dpmedian.methods.adaptive.notes import COINCIDE, DOUBTED, EXACT, UNSETTLED, UNSURE
from dpmedian.methods.adaptive.queries import MANY_DIMENSIONS, SAMPLED_DIMENSIONS, Gradient, Queries, hessian_plan
from dpmedian.methods.adaptive.start import Ball, NotFound, first_ball, majority
from dpmedian.parameters import LARGEST
from dpmedian.postprocess import spikes, stands_out, without_noise
from dpmedian.release import MethodResult

__all__ = ["Run"]

Vector = NDArray[np.float64]

# The quarter octave of the smallest normal double. Smaller distances count as zero.
_SMALLEST = 4 * sys.float_info.min_exp


class Run:
    """The state of a run, which changes with every query. `run` returns the result."""

    def __init__(self, ask: Queries) -> None:
        self.ask, self.c = ask, ask.c
        self.belief = Belief(ask.n, ask.d, ask.c, ask.inside)
        self.attempts = ask.c.patience
        self.nonsmooth = False
        self.clumped = False
        """Whether a Hessian or a search has shown that many records are very close together."""
        self.atom: tuple[Ball, float] | None = None
        """A ball that a search took for the core, and the number of its records."""
        self.measured: Moments | None = None
        self.directions: Noisy | None = None

    def run(self) -> MethodResult:
        ask, c = self.ask, self.c
        start = first_ball(ask)
        while True:
            left = ask.left
            ball = self.collapse(start, c.half)
            if self.is_point(ball, start.quarter, left - ask.left):
                return self.exactly(ball)
            self.place(ball.quarter)
            found = self.descend(ball.center) or self.end()
            if isinstance(found, MethodResult):
                return found
            start, self.attempts = found, self.attempts - 1

    @property
    def may_restart(self) -> bool:
        return self.attempts > 0 and self.ask.left > self.c.reserve

    def place(self, quarter: int) -> None:
        """Set a new core radius, and use a guess of the Hessian until it is measured."""
        self.quarter = quarter
        self.measured_after = -1
        self.belief.place(radius_of(quarter), HessianModel.guess(self.ask.d))

    def core_around(self, theta: Vector) -> int:
        """The quarter octave of the core radius around a point. The search begins near the last core radius."""
        found = self.ask.search(theta, self.c.core, self.quarter, window=True)
        at_the_edge = found >= self.quarter + self.c.near - self.c.shrink
        if at_the_edge:
            found = self.ask.search(theta, self.c.core, found)
        # The search may end at an atom that has fewer records than the core, so the records in the ball are counted.
        if self.ask.price(self.c.needs, 0.0, 1.0) > self.c.query_most * self.ask.rho:
            return found
        cost = self.ask.price(self.c.generous * self.c.needs, 0.0, self.c.query_most)
        for _ in range(self.c.patience):
            held, noise = self.ask.count(theta, found + self.c.shrink, cost)
            if held + self.c.surprising * noise > self.c.core * self.ask.m:
                return found
            self.clumped, self.atom = True, self.atom or (Ball(theta, found + self.c.shrink), held)
            found = self.ask.search(theta, self.c.core, self.ask.search(theta, self.c.majority, found))
        return found

    def measure_hessian(self, theta: Vector, isotropic: bool = False) -> None:
        """Measure the Hessian at theta, or its mean over all directions, with as little smoothing as possible."""
        ask, c, d, m = self.ask, self.c, self.ask.d, self.ask.of_hessian[0]
        plan = hessian_plan(ask.p, c, ask.rho, m, isotropic)
        radius = max(plan.smoothing * self.belief.core_radius, 1.0 / LARGEST)
        unit, moments = radius / self.belief.core_radius * m, None
        if plan.moments:
            curvature, noise, moments = ask.hessian(theta, radius, plan.cost)
            variance = (0.5 * moments.noise**2 + noise**2 / d) / unit**2
            # A record within the radius has the curvature 1. Another record has (1 - 1/d) times its part of the trace.
            within = curvature - (1.0 - 1.0 / d) * float(np.trace(moments.matrix))
            deviation = math.hypot(noise, (1.0 - 1.0 / d) * moments.noise * math.sqrt(d))
            smooth = c.core * plan.smoothing**d * m
            self.clumped |= within > c.clump * curvature + smooth + deviation
        else:
            curvature, noise = ask.curvature(theta, radius, plan.cost)
            # The differences of the eigenvalues, which the mean over all directions does not show.
            anisotropy = c.bias * float(self.belief.hessian.values.mean()) if d > 1 else 0.0
            variance = (anisotropy**2 + (noise / unit) ** 2) / d
        # The variance of the gradients is set at the end.
        self.measured = Moments(d, float(ask.n), math.inf, 0.0, radius, float(m), curvature, noise, hessian=moments)
        deviation = noise if moments is None else math.hypot(moments.noise, noise)
        # Steps are divided by eigenvalues, so an eigenvalue is at least as large as its noise.
        curvature = max(curvature, noise)
        found, vectors = np.full(d, curvature), None
        if moments is not None and (d <= MANY_DIMENSIONS or stands_out(moments.matrix, moments.noise)):
            eigenvalues = without_noise if d <= MANY_DIMENSIONS else spikes
            directed, vectors, _ = eigenvalues(moments.matrix, moments.noise)
            found = np.maximum(curvature - directed, deviation)
        # A step overshoots if an eigenvalue is too small, so the noise is added to the eigenvalues.
        values = np.hypot(found, deviation) / unit
        self.measured_after = len(self.belief.gradients)
        self.belief.use(HessianModel(values, vectors, found / unit, deviation / unit, variance, plan.smoothing, theta))

    # Collapse: one loop that finds atoms, larger clusters and nonsmooth points.

    def floor(self, theta: Vector) -> int:
        """The quarter octave below which distances count as zero, from the precision of doubles or the resolution."""
        exponent = math.frexp(float(np.max(np.abs(theta))))[1] if np.any(theta) else sys.float_info.min_exp
        # Rounding of differences from theta costs one octave, and the margin of a search is another octave.
        digits = 4 * (exponent - sys.float_info.mant_dig + 2)
        resolution = self.ask.p.resolution
        return max(_SMALLEST, digits, _SMALLEST if resolution is None else math.floor(4.0 * math.log2(resolution)))

    def collapse(self, ball: Ball, share: float) -> Ball:
        """Move by mean shifts into ever smaller balls that contain this share of the records."""
        ask, c = self.ask, self.c
        last, part = ball.quarter - c.depth, min(share / c.half, 1.0)
        before, rounds, missed, counts = ask.left, 0, 0, []
        cost = ask.price(c.needs * ask.d, 0.0, c.query_most, part)
        for_count = ask.price(c.needs, 0.0, c.query_most, part)
        if math.sqrt(2.0 * ask.d / cost) / ask.gain > c.most_noise * share * ask.m:
            return ball
        while ball.quarter > max(self.floor(ball.center), last):
            if before - ask.left > c.half_budget or ask.left < c.reserve:
                break
            # The radius is enlarged, because the radius that was found may be slightly too small.
            wide = ball.quarter + c.shrink
            counts.append(ask.count(ball.center, wide, for_count)[0])
            held = min(max(counts[-1], share * ask.m), ask.m)
            shift = ask.shift(ball.center, radius_of(wide), cost)
            moved = ask.inside(ball.center - radius_of(wide) / held * shift)
            found = ask.search(moved, share, ball.quarter, window=True)
            if found <= ball.quarter - c.shrink:
                ball, rounds, missed = Ball(moved, found), rounds + 1, 0
            else:
                missed += 1
                if missed >= (c.patience if rounds else 1):
                    break
            if len(counts) > c.patience and share == c.half and np.mean(counts) < 0.5 * (c.half + 0.5) * ask.m:
                break  # This is the smaller of two clusters. The descent will find the larger one.
        return ball

    def is_point(self, ball: Ball, before: int, spent: float) -> bool:
        """Whether half of the records lie at this point, up to the precision that the budget of a collapse can show."""
        ask, c = self.ask, self.c
        ended = spent > c.half_budget or ask.left < c.reserve
        least = before - (4 * c.near if ended else c.depth)
        if ball.quarter > max(self.floor(ball.center), least):
            return False
        return ask.count(ball.center, ball.quarter + c.shrink, c.query_most * ask.rho)[0] > 0.5 * ask.m

    def exactly(self, ball: Ball) -> MethodResult:
        """Return the point as the median, because many records lie exactly there. The rest of the budget is kept."""
        ask, quarter = self.ask, max(ball.quarter, self.floor(ball.center))
        error = radius_of(quarter + self.c.shrink)
        point = np.where(np.abs(ball.center) <= error, 0.0, ball.center)
        moments = None if ask.offers.region is None else Moments(ask.d, float(ask.n), 0.0, least=error)
        return MethodResult(point, radius_of(ball.quarter), error, (EXACT,), moments)

    # Descent.

    def descend(self, theta: Vector) -> MethodResult | Ball | None:
        """Query gradients of growing cost while they agree with the belief. Return None, or a ball to restart from."""
        ask, c, belief = self.ask, self.c, self.belief
        self.nonsmooth, self.directions, self.theta = False, None, theta
        self.in_a_row = self.surprises = 0
        cost = ask.price(c.needs * ask.d, c.single_share, c.search_most)
        belief.begin(theta, ask.n**2 / ask.d)
        while True:
            # Gradients of the sample do not count at the end, so each costs at most a quarter of a part.
            last = cost * max(ask.parts * (4 if ask.sampled else 1), c.generous) >= ask.left * ask.rho
            if ask.m < ask.n and (last or cost > ask.useful(ask.n**2 / ask.m)):
                if (point := self.look_around()) is not None:
                    return point
                self.use_all()
                cost, last = c.single_share * ask.rho, False
                cost *= self.growth(cost)
            if last:
                break
            if (found := self.step(cost)) is not None:
                return found
            if self.in_a_row:
                continue
            if belief.hessian.at is None:
                self.place(self.core_around(belief.point))
                if self.atom is not None and (point := self.exact_point(*self.atom)) is not None:
                    return point
                # In very many dimensions second moments take most of the time, so they wait for a better point.
                self.measure_hessian(belief.point, isotropic=ask.sampled and ask.d > SAMPLED_DIMENSIONS)
            cost *= self.growth(cost)
        if not ask.sampled and (point := self.look_around()) is not None:
            return point
        return self.last_steps(cost)

    def last_steps(self, cost: float) -> MethodResult | Ball | None:
        """Measure the Hessian again and query the last gradients; the gradient before them had this cost."""
        ask, c, belief = self.ask, self.c, self.belief
        many = c.last_gradients // 2 if ask.sampled else c.last_gradients
        rounds = many if self.nonsmooth else ask.parts
        if len(belief.gradients) > self.measured_after:
            self.measure_hessian(belief.point)
        if (region := ask.due_region(of_sample=True, seen=self.directions)) is not None:
            self.directions = ask.gradient_and_directions(belief.point, region.cost, of_sample=True)[1]
        # The new Hessian moves the point. From the new point, the last gradient depends less on the Hessian.
        affordable = ask.sampled and c.growth * cost < ask.left * ask.rho
        if affordable and (found := self.step(cost)) is not None:
            return found
        # A nonsmooth point needs many steps. After a sample, every step reads all records.
        for left in range(rounds, 0, -1):
            if left == rounds // 2 and belief.hessian_is_far and not ask.sampled:
                self.measure_hessian(belief.point)
            if (found := self.step(ask.left * ask.rho / left, carry=True)) is not None:
                return found
        return None

    def growth(self, cost: float) -> float:
        """The factor of the cost from this gradient to the next."""
        ask, c = self.ask, self.c
        if not ask.sampled:
            return c.growth
        return min(max(ask.useful(self.belief.model_variance() * ask.d) / cost, c.growth), c.generous)

    def step(self, cost: float, carry: bool = False) -> MethodResult | Ball | None:
        """Query a gradient at the believed median, or one core radius on the way to it, and choose the next action."""
        ask, c, belief = self.ask, self.c, self.belief
        step = belief.point - self.theta
        length = float(np.linalg.norm(step / belief.core_radius))
        self.theta = ask.inside(self.theta + step / max(length, 1.0))
        belief.learn(self.gradient(self.theta, cost, carry))
        if belief.squares(1) > c.far and self.may_restart:
            if self.attempts < c.patience:
                # The core may be a minority of equal records. A step as long as its radius would not leave them.
                ball = majority(ask, self.theta, belief.gradients[-1].gradient, self.quarter)
                if ball.quarter >= self.quarter + c.near:
                    return ball
            return Ball(belief.point, self.core_around(belief.point))
        self.in_a_row = 0 if belief.consistent and length <= 1.0 else self.in_a_row + 1
        if self.in_a_row < c.patience:
            return None
        self.in_a_row, self.surprises = 0, self.surprises + 1
        if self.surprises > c.patience or ask.left < c.reserve or self.nonsmooth:
            return None
        return self.surprise()

    def use_all(self) -> None:
        """Query all records from now on. The belief from the sample becomes a prior with the sampling variance."""
        ask, belief = self.ask, self.belief
        belief.begin(belief.point, ask.n**2 / (ask.m * ask.d) + 1.0 / belief.precision)
        ask.use_all()
        self.measured_after = -1

    def gradient(self, theta: Vector, cost: float, carry: bool) -> Gradient:
        """Query a gradient. At the end of the run, directions are queried with it if a confidence region needs them."""
        if not carry or self.ask.due_region(of_sample=False, seen=self.directions) is None:
            return self.ask.gradient(theta, cost)
        gradient, found = self.ask.gradient_and_directions(theta, cost)
        self.directions = found if self.directions is None else self.directions.combined(found)
        return gradient

    def surprise(self) -> MethodResult | Ball | None:
        """Handle gradients that the model does not explain: a nonsmooth point, a wrong ball, or a new core radius."""
        if (found := self.look_around()) is None:
            there = np.mean([gradient.point for gradient in self.belief.gradients[-self.c.patience :]], axis=0)
            quarter = self.core_around(there)
            if self.may_restart and not self.nonsmooth and self.belief.pull(self.c.patience):
                return Ball(there, quarter)
            self.place(quarter)
            self.measure_hessian(there)
        return found

    def look_around(self) -> MethodResult | None:
        """Check whether many records lie very near, at a nonsmooth point. Return a result if the point is exact."""
        ask, c, theta = self.ask, self.c, self.belief.point
        # In many dimensions few records are so near to any point, so the check gets less budget.
        cost = min(1.0, c.generous / ask.d) * c.query_most * ask.rho
        if ask.price(c.needs, 0.0, 1.0) > cost:
            return None
        near, noise = ask.count(theta, self.quarter - 2 * c.near, cost)
        # A smooth cloud has as many records in the small ball as the volume predicts.
        near -= 2.0 ** (-0.5 * c.near * ask.d) * ask.m
        if near < c.surprising * noise:
            return None
        wider, noise = ask.count(theta, self.quarter - c.near, cost)
        self.nonsmooth = near + wider > 2.0 * c.surprising * noise and near > c.majority * wider
        return self.exact_point(Ball(theta, self.quarter - c.near), near) if self.nonsmooth else None

    def exact_point(self, ball: Ball, held: float) -> MethodResult | None:
        """Handle an atom of `held` records. It is the median if the gradient of the other records is below `held`."""
        ask, c = self.ask, self.c
        ball = self.collapse(ball, c.majority * held / ask.m)
        if ball.quarter > max(self.floor(ball.center), self.quarter - c.near - c.depth):
            return None
        # The gradient is queried next to the atom. There the records of the atom contribute a vector of known direction
        # and length. The rest of the gradient comes from the other records.
        aside, held = np.zeros(ask.d), held * ask.n / ask.m
        aside[0] = math.sqrt(radius_of(ball.quarter)) * math.sqrt(self.belief.core_radius)
        others = ask.gradient(ball.center + aside, c.search_most * ask.rho)
        others.gradient[0] -= held
        pull = float(np.linalg.norm(others.gradient)) + c.surprising * math.sqrt(others.variance)
        return self.exactly(ball) if pull < held else None

    # End.

    def log_odds(self) -> float:
        """The log odds that the data surround the point, or infinity with many records, because gradients suffice then.

        If the number of records is private, the result is the smallest log odds over all numbers within the noise.
        """
        ask, belief = self.ask, self.belief
        if not ask.few:
            return math.inf
        least = max(ask.n - self.c.surprising * ask.p.size_noise, 1.0)
        return min(
            log_odds_of_a_cloud(belief.gradients, ask.counted, belief.point, self.quarter, n, self.c)
            for n in (least, 0.5 * (least + ask.n), ask.n)
        )

    def end(self) -> MethodResult:
        """Return the point with its error radius and notes, or raise the reason why the run failed."""
        ask, c, belief = self.ask, self.c, self.belief
        half = max(2, (len(belief.gradients) + 1) // 2)
        # If steps jump back and forth over a cluster, the mean of the gradients is short, but each gradient is long.
        squares, odds = belief.squares(half), self.log_odds()
        if squares > c.far and odds < (0.0 if ask.few else math.inf):
            raise NotFound(f"the squared gradient is still {squares:.2f} n^2, so the records are far from the point")
        # After a sample, the first gradient of all records contains the sampling error of the sample.
        pull = belief.pull(half, ask.n**2 / ask.offers.sample if ask.sampled else 0.0)
        if pull and not self.nonsmooth:
            near = MethodResult(belief.point, belief.core_radius)
            raise NotFound(f"the mean gradient is still {pull:.2f} n, so this is no median", near)
        notes: tuple[str, ...] = ()
        if odds < c.odds_doubted or (ask.few and squares > c.far):
            notes = (DOUBTED,)
        moments, hessian = self.moments(), belief.hessian
        error = error_radius(moments)
        unsure = self.clumped or hessian.deviation >= float(hessian.found.min())
        if self.nonsmooth:
            notes, moments = (*notes, COINCIDE), replace(moments, least=error)
        elif not belief.consistent:
            notes = (*notes, UNSETTLED)
        elif unsure or (ask.d > 1 and moments.hessian is None):
            notes = (*notes, UNSURE)
        wanted = None if ask.offers.region is None else moments
        return MethodResult(belief.point, belief.core_radius, error, notes, wanted)

    def moments(self) -> Moments:
        """The released values from which the error radius and confidence regions are computed."""
        if self.measured is None:
            raise NotFound("the budget was used up before the curvature was measured")
        variance, away = 1.0 / self.belief.precision, min(self.belief.away, 1.0)
        return replace(self.measured, gradient_variance=variance, directions=self.directions, away=away)
