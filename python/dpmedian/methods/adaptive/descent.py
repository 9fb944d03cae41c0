"""The end of a run: all that is left goes to gradients of all records, and their combination is the point."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpmedian.inference import Moments
from dpmedian.mechanisms.distance import radius_of
from dpmedian.methods.adaptive.evidence import for_a_cloud
from dpmedian.methods.adaptive.location import Located
from dpmedian.methods.adaptive.metric import error_quantile
from dpmedian.methods.adaptive.questions import Questions
from dpmedian.methods.adaptive.state import State
from dpmedian.methods.adaptive.steps import (
    Measured,
    accelerated,
    averaged,
    combination,
    consistent,
    ends,
    heights,
    length,
    pull,
    steps_of,
)
from dpmedian.release import MethodResult

__all__ = ["COINCIDE", "NotFound", "descend", "exactly", "finish"]

Vector = NDArray[np.float64]

COINCIDE = "many records coincide near the point: error_radius is a guess"
EXACT = "many records coincide: the point is theirs"
UNSURE = "the curvature is not known well: error_radius may be too small"
UNSETTLED = "the last step did not settle: error_radius may be too small"
DOUBTED = "so few records may also lie together far away from the point: error_radius may be too small"


class NotFound(Exception):
    """The gradients at the end are those of a point far from the median, or may well be. Says which."""


def exactly(ask: Questions, point: Vector, scale: float, error: float) -> MethodResult:
    """Many records are this point, and it is the median: a confidence region is a ball with the error's radius."""
    moments = None if ask.region is None else Moments(ask.d, float(ask.n), gradient_variance=0.0, least=error)
    return MethodResult(point, scale, error, (EXACT,), moments)


def finish(state: State) -> MethodResult:
    """One gradient of all records with all that is left: near the median it is the whole descent."""
    ask, c = state.ask, state.ask.c
    state.measure(ask.every, state.theta, ask.left * ask.rho, with_directions=True)
    step, settled, precision = averaged(state.measured, state.metric, c.memory_all, c)
    slope = heights(state.measured[-1:], ask.n)[0]
    if slope > c.lost and not state.atom:
        raise NotFound(f"the squared gradient is still {slope:.2f} n^2")
    point = ask.inside(state.measured[-1].point + step)
    error = error_quantile(state.metric, 1.0 / precision, c)
    notes = () if settled else (UNSETTLED,)
    return MethodResult(point, state.spread, error, notes, state.moments(1.0 / precision))


def descend(state: State, found: bool) -> MethodResult | Located:
    """Steps with nearly equal shares, the Hessian again on the way, and the combination of all of them.

    `found` says that a kink was seen already. Where the gradients say that most records are elsewhere, returns where.
    """
    return _Descent(state, found).run()


class _Descent:
    def __init__(self, state: State, found: bool) -> None:
        ask = state.ask
        self.state, self.ask, self.c = state, ask, ask.c
        self.for_hessian = state.for_hessian
        steps = steps_of(ask.n_worth, ask.d, ask.rho, self.c)
        part, ramp = self.c.again
        self.again = round(part * steps)
        self.weights = [ramp if step < self.again else 1.0 for step in range(steps)]
        self.heat: list[float] = []
        # Whether the decrements were once above their noise, and whether the Hessian was measured again for that.
        self.hot, self.measured_hot, self.sharp = False, False, found
        # Whether gradients carry the directions for a confidence region: from its Hessian on.
        self.with_directions = False

    def run(self) -> MethodResult | Located:
        state, ask, c = self.state, self.ask, self.c
        step = 0
        while step < len(self.weights):
            if self.sharp:
                self.weights += [1.0] * (c.tail_sharp[0 if ask.sampled_all else 1] - len(self.weights))
            if step == max(self.again, 2) and not state.atom and state.measured and ask.left > 0.2:
                self._look_for_atom()
            if step >= self.again and state.measured and not (self.sharp or state.atom) and ask.left > c.majority_keeps:
                found = state.majority(self._late)
                if found is not None:
                    return found
            if step == self.again:
                self._measure_again()
            share = ask.left * ask.rho * self.weights[step] / math.fsum(self.weights[step:])
            state.measure(ask.every, state.theta, share, self.with_directions)
            self.with_directions &= ask.region is not None and ask.region.every
            root = state.metric.root(state.measured[-1].gradient)
            self.heat.append(float(root @ root) / (state.measured[-1].variance * state.metric.trace))
            if len(self.heat) >= c.heat_of and self._heated and step < len(self.weights) - c.heat_of:
                if not self.hot:
                    exact = self._look_for_kink()
                    if exact is not None:
                        return exact
                elif step > self.again and self._may_measure:
                    self.measured_hot = True
                    self._measure_again()
            state.theta = state.moved(accelerated(state.measured, state.metric, c.mean, anchored=not self.sharp))
            step += 1
        return self._result()

    @property
    def _may_measure(self) -> bool:
        """Whether the Hessian may be measured a second time: where steps stay above their noise it may be wrong."""
        wanted = bool(self.for_hessian) and not (self.sharp or self.measured_hot)
        return wanted and self.ask.left > self.c.heat_keeps

    @property
    def _late(self) -> list[Measured]:
        """The later half of the gradients so far, three at least."""
        return self.state.measured[-max(3, len(self.state.measured) // 2) :]

    def _measure_again(self) -> None:
        """The Hessian, here as well as a confidence region needs it."""
        state, ask, c = self.state, self.ask, self.c
        theta = self._combined() if state.measured else state.theta
        if self.for_hessian and state.measured and not state.pulled(self._late):
            # Beside many that coincide the spread would be theirs.
            state.place(state.measure_spread(theta))
        if ask.region is not None:
            state.measure_for_region(theta)
            self.with_directions |= not self.measured_hot
        elif self.for_hessian:
            state.measure_hessian(ask.every, theta, self.for_hessian, c.edge, c.smoothing[0])
        else:
            return
        self.heat.clear()

    def _combined(self) -> Vector:
        """The best point so far."""
        return self.state.moved(accelerated(self.state.measured, self.state.metric, self.c.mean, anchored=False))

    def _look_for_atom(self) -> None:
        """Gradients that do not vanish: half of the records may coincide."""
        state = self.state
        late = state.measured[-max(2, len(state.measured) // 2) :]
        if float(np.mean(heights(late, self.ask.n))) > self.c.late_height:
            state.atom = state.locator.is_atom(self._combined(), state.quarter)

    @property
    def _heated(self) -> bool:
        """Whether the decrements since the last Hessian are above what noise explains."""
        mean, deviations = self.c.heat
        return float(np.mean(self.heat)) > mean + deviations * math.sqrt(8.0 / self.ask.d / len(self.heat))

    def _look_for_kink(self) -> MethodResult | None:
        """Whether records stay in a ball that shrinks four times, beyond what a smooth density has there.

        If they are many beside the noise, they are looked for exactly.
        """
        self.hot = True
        ask, c, state = self.ask, self.c, self.state
        (wide, half, share), center = c.kink, self._combined()
        far, noise = ask.count(ask.every, center, state.quarter - wide, share * ask.rho)
        near, _ = ask.count(ask.every, center, state.quarter - wide - half, share * ask.rho)
        extra = far - math.pow(2.0, -wide / 4.0 * ask.d) * ask.n
        stays = near > c.kink_stays * far
        self.sharp = stays and extra > c.kink_seen * noise + 0.5 * ask.gradient_noise(ask.rho)
        point = self._polished(center, near) if stays and extra > c.kink_seen * noise else None
        if point is None:
            return None
        return exactly(ask, point, state.spread, math.ldexp(state.spread, -30))

    def _polished(self, theta: Vector, held: float) -> Vector | None:
        """Mean shifts in shrinking balls around a point that holds less than half of the records.

        It is returned only if a noisy gradient there is shorter than the number of its records: then it is the median.
        """
        ask, c, spread = self.ask, self.c, self.state.spread
        quarter = self.state.quarter - c.kink[0]
        share, most_noise, proof = c.polish
        cost = share * ask.rho
        noise = ask.gradient_noise(cost) / max(held, 1.0)  # Of a mean, relative to the radius.
        if noise > most_noise:
            return None
        shrink = min(max(math.floor(-4.0 * math.log2(4.0 * noise)), 4), 24)
        for _ in range(c.polish_rounds):
            radius = radius_of(quarter)
            moved = ask.inside(theta - radius / held * ask.shift(ask.every, theta, radius, cost))
            if radius < math.ldexp(spread, -40) or radius < math.ldexp(float(np.max(np.abs(theta))), -48):
                theta = moved
                break
            count, deviation = ask.count(ask.every, moved, quarter - shrink, 0.2 * cost)
            if count < 0.8 * held - 2.0 * deviation:
                break
            theta, quarter = moved, quarter - shrink
            if ask.left < c.polish_keeps:
                break
        # A little aside these records pull with their whole number in a known direction: the rest is that of others.
        aside = np.zeros(ask.d)
        aside[0] = math.sqrt(radius_of(quarter)) * math.sqrt(spread)
        gradient = ask.gradient(ask.every, theta + aside, proof * ask.rho).gradient
        gradient[0] -= held
        return theta if float(np.linalg.norm(gradient)) < 0.8 * held else None

    def _slope(self, used: list[Measured]) -> float:
        """The squared mean gradient of the later half, over n^2, without its noise; or that of single ones."""
        late = used[-max(2, (len(used) + 1) // 2) :]
        weights = np.array([1.0 / measure.variance for measure in late])
        weights /= weights.sum()
        mean = np.asarray(weights @ np.array([measure.gradient for measure in late]))
        variance = float(weights**2 @ np.array([measure.variance for measure in late]))
        # The deviation of the square where all records pull one way. Where it is that large, nothing can be seen.
        relative = variance / self.ask.n**2
        if math.sqrt(4.0 * relative + 2.0 * self.ask.d * relative**2) > self.c.blind and not self.state.atom:
            raise NotFound("the noise hides whether the gradient vanishes")
        single = float(weights @ np.array(heights(late, self.ask.n)))
        # Where iterates jump over a cluster, the gradients cancel, but each is long.
        return max(heights([Measured(mean, mean, variance)], self.ask.n)[0], single - self.c.jump)

    def _fail_if_pulled(self) -> None:
        """A mean gradient far above its noise says that the median is elsewhere: perhaps in the larger of two clusters.

        At a corner of the sum of distances single gradients do not vanish, but iterates on all sides of it cancel.
        """
        late = self.state.measured[-max(2, len(self.state.measured) // 2) :]
        pulled = pull(late, self.ask.n, *self.c.pulled)
        if pulled:
            raise NotFound(f"the mean gradient is still {pulled:.2f} n: the median is in another cluster")

    def _odds(self, point: Vector) -> float:
        """Of a cloud around the point against a single place, as a logarithm; infinite with many records.

        Where their number is private and noisy, for the number within its noise that leaves most doubt: runs with too
        few records go on where it is too large.
        """
        state, ask = self.state, self.ask
        if not ask.few_records:
            return math.inf
        sizes = {max(ask.n - part * ask.parameters.size_noise, 1.0) for part in self.c.size_doubts}
        return min(for_a_cloud(state.measured, ask.counted, point, state.quarter, n, self.c) for n in sizes)

    def _lost(self, slope: float, odds: float) -> bool:
        """Whether the gradients are those of a point far from the median: with few records they alone do not tell."""
        c = self.c
        return slope > c.lost_few and odds < c.odds_lost if self.ask.few_records else slope > c.lost

    def _result(self) -> MethodResult:
        state, ask, c = self.state, self.ask, self.c
        slope = self._slope(state.measured)
        if not (self.sharp or state.atom):
            self._fail_if_pulled()
        used = state.measured if self.sharp else consistent(state.measured, state.metric, c)
        weights = combination(used, state.metric, c.mean, anchored=False)
        # The last gradient is always used, so the ends are relative to its point.
        step = weights @ ends(used, state.metric)
        point = state.moved(np.asarray(step), damped=False)
        odds = self._odds(point)
        if self._lost(slope, odds) and not state.atom:
            raise NotFound(f"the squared mean gradient is still {slope:.2f} n^2")
        variance = float(weights**2 @ np.array([measure.variance for measure in used]))
        far = np.array([length(measure.point - point) for measure in used]) / state.spread
        error = error_quantile(state.metric, variance, c, c.bend * float(np.abs(weights) @ far**2) * ask.n)
        # Gradients that vanish are those of a cluster, not of records that coincide; on the line that is hard to tell.
        atom = state.atom and (ask.d == 1 or self._heated or slope > c.late_height)
        notes: tuple[str, ...] = (DOUBTED,) if odds < c.odds_doubted else ()
        if self.sharp or atom:
            error = max(c.sharp_factor * error, state.spread if atom else 0.0)
            return MethodResult(point, state.spread, error, (*notes, COINCIDE), state.moments(variance, error))
        unsure = state.metric.deviation > c.unsure * float(state.metric.found.min())
        if slope > c.lost:
            notes += (UNSETTLED,)
        elif self._heated or unsure or (ask.d > 1 and state.hessians == 0):
            notes += (UNSURE,)
        error *= c.unsure_factor if notes else 1.0
        return MethodResult(point, state.spread, error, notes, state.moments(variance))
