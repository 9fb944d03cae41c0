"""The approach: gradients that become better as they settle, until the point is known to the noise of a cheap one.

With many records it asks the sample, and then all records twice.
"""

from __future__ import annotations

import math

import numpy as np

from dpmedian.methods.adaptive.location import Located
from dpmedian.methods.adaptive.state import State
from dpmedian.methods.adaptive.steps import heights

__all__ = ["approach", "approach_all"]


def approach(state: State) -> Located | None:
    """Moves the state near the median; where half of the records turn out to be one point, returns that point."""
    return _Approach(state).run()


class _Approach:
    """One approach: how expensive its gradients are by now, and how often it did not settle."""

    def __init__(self, state: State) -> None:
        ask = state.ask
        self.state, self.ask, self.c = state, ask, ask.c
        self.for_hessian = state.for_hessian
        self.cost = min(self._price(self.c.first_noise), self.c.first_most * ask.rho)
        # A gradient that must be settled before the second moments; the best of a sample has a noise of 1/sqrt(m).
        self.fine = min(self._price(self.c.before_hessian[0]), self.c.before_hessian[1] * ask.rho)
        self.most = min(max(self.cost, self._price(ask.m**-0.5)), self.c.sample_most * ask.rho)
        self.known, self.stuck, self.measures = False, 0, 0

    def _price(self, noise: float) -> float:
        """Of a gradient with this noise, in units of the records asked."""
        return 2.0 * self.ask.d / noise**2 / self.ask.m_worth**2

    def run(self) -> Located | None:
        state, ask, c = self.state, self.ask, self.c
        start, steps = ask.spent, 0
        while True:
            state.measure(ask.sample, state.theta, self.cost)
            steps += 1
            state.propose()
            self.stuck = 0 if state.settled else self.stuck + 1
            if heights(state.measured[-1:], ask.n)[0] > c.far and steps < c.far_steps and ask.left > 0.25:
                self._far_away()
            elif not self.known and (state.settled or self.stuck == c.patience):
                state.measure_again(state.theta, with_moments=False)
                self.known, self.stuck = True, 0
                state.propose()
            elif state.settled and self.cost >= self.fine and state.hessians == 0 and self.for_hessian:
                state.measure_again(state.theta, with_moments=True)
                state.propose()
            elif self.stuck >= c.patience:
                if self.measures >= c.measures or ask.left < c.measures_keep:
                    state.sharp = True
                    return None
                point = self._unsettled()
                if point is not None:
                    return point
            if state.settled:
                self.cost *= c.growth
            if steps >= c.approach_steps or ask.spent - start > c.approach_most:
                state.sharp = not state.settled
                return None
            if self._done():
                return None

    def _done(self) -> bool:
        state, ask, c = self.state, self.ask, self.c
        have_hessian = state.hessians > 0 or not self.for_hessian
        if not ask.sampled_all:
            return self.cost > self.most and have_hessian
        if self.cost * c.growth > c.approach_last * ask.left * ask.rho:
            return True
        return self.known and (state.hessians > 0 or (not self.for_hessian and self.cost > self.fine))

    def _far_away(self) -> None:
        """All records pull the same way: only the spread here tells how far."""
        state = self.state
        state.place(state.measure_spread(state.theta, self.c.far_window))
        state.measured.clear()
        state.settled, self.stuck = False, 0

    def _unsettled(self) -> Located | None:
        """The spread or the Hessian is not that of this place, or half of the records coincide nearby."""
        state, ask, c = self.state, self.ask, self.c
        found = state.majority(state.measured[-c.patience :])
        if found is not None:
            return self._recentered(found)
        self.measures, self.stuck = self.measures + 1, 0
        late = state.measured[-3:]
        height = float(np.mean(heights(late, ask.n)))
        mean = np.mean([measure.point for measure in late], axis=0)
        if height > c.height:
            around = state.measure_spread(mean, c.far_window)
            found = state.locator.recenter(Located(mean, around), 2.0, c.misses)
            if found.rounds:
                self.measures -= 1
                return self._recentered(found)
        if height > c.high and not state.atom and ask.left > 0.3:
            state.atom = state.locator.is_atom(mean, state.quarter)
        state.measure_again(mean, with_moments=0 < state.hessians < c.hessian_most)
        del state.measured[:-3]
        state.propose()
        return None

    def _recentered(self, found: Located) -> Located | None:
        self.known, self.stuck = False, 0
        return self.state.recentered(found)


def approach_all(state: State) -> bool:
    """Two cheap gradients of all records and their Hessian, after those of a sample; whether a kink was found."""
    ask, c = state.ask, state.ask.c
    state.measured.clear()
    for last, share in enumerate(c.all_costs):
        for _ in range(c.all_attempts):
            state.measure(ask.every, state.theta, share * ask.rho)
            state.propose(c.memory_all)
            left, enough = state.left_over(), 1.0
            if left > 1.0 or (last and not state.known_here):
                # At the better place; then the same gradients in the better metric.
                state.measure_hessian_of_all()
                state.propose(c.memory_all)
                left = state.left_over()
                # The Hessian of a round cloud is nearly the same around here, so the second gradient repairs the rest.
                most, round_up_to = c.all_left
                enough = most if not last and state.metric.condition < round_up_to else 1.0
            if left < enough or ask.left < c.all_keeps:
                break
    return _kink(state)


def _kink(state: State) -> bool:
    """Whether so many records coincide nearby that they would spoil the last gradient.

    In three and more dimensions a smooth density has no records that near. Where there seem to be some, a second count
    with a larger radius must have them too, and not many more: it tells an atom from a line.
    """
    ask, c = state.ask, state.ask.c
    wide, half, _ = c.kink
    most, per_dimension, first, both = c.kink_all
    cost = min(most, per_dimension / ask.d) * ask.rho

    def beyond(quarters: int) -> tuple[float, float]:
        """Records within a radius beyond those of a smooth density, and the noise, in records."""
        held, noise = ask.count(ask.every, state.theta, state.quarter - quarters, cost)
        return held - math.pow(2.0, -quarters / 4.0 * ask.d) * ask.n, noise

    near, noise = beyond(wide + half)
    if near <= first * noise:
        return False
    far, noise = beyond(wide)
    return near + far > both * noise and near > c.kink_stays * far - noise
