"""Where the data are: scale, center and spread, and points where half of the records coincide."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmedian.mechanisms.distance import radius_of
from dpmedian.methods.adaptive.questions import Questions
from dpmedian.methods.adaptive.steps import length

__all__ = ["Located", "Locator"]

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Located:
    """A center, the quarter octave of the spread around it, and by how many rounds of recentring it was reached."""

    center: Vector
    spread: int
    rounds: int = 0


class Locator:
    """The searches of one run. `octave` is the scale of the pairs, which later stages compare with."""

    def __init__(self, ask: Questions) -> None:
        self.ask = ask
        self.theta, self.octave = ask.center(None if ask.scale_unseen else ask.scale())

    def locate(self) -> Located:
        return self.recenter(Located(self.theta, self.ask.initial_spread(self.theta, self.octave)), 1.0, 0)

    def floor(self, theta: Vector) -> int:
        """Quarter octaves below this are those of the grid's end, or of the doubles at theta."""
        c = self.ask.c
        return max(2 * c.halves[0] + 8, 4 * (math.frexp(length(theta) or 1e-320)[1] - c.resolvable))

    def recenter(self, start: Located, factor: float, misses: int) -> Located:
        """Mean shifts towards a cluster far smaller than the spread found so far, as long as they shrink it."""
        ask, c = self.ask, self.ask.c
        for_step = factor * c.recentring_step.of(ask.rho, ask.m_worth, ask.d)
        for_check = c.recentring_check.of(ask.rho, ask.m_worth)
        theta, quarter, before, rounds, missed = start.center, start.spread, ask.spent, 0, 0
        if ask.gradient_noise(for_step) / ask.m > c.recentring_noise:
            return Located(theta, quarter)
        while quarter > self.floor(theta):
            most = c.recentring_most[0 if rounds < 4 else 1]
            if ask.left < c.recentring_keeps or ask.spent - before > most:
                break
            inside, _ = ask.count(ask.sample, theta, quarter, for_check)
            if inside < c.lost_share * ask.m and missed:
                quarter, missed = quarter + c.widen, missed + 1
                if missed > misses:
                    break
                continue
            radius = radius_of(quarter)
            shift = ask.shift(ask.sample, theta, radius, for_step)
            moved = ask.inside(theta - radius / min(max(inside, c.least_share * ask.m), ask.m) * shift)
            found = ask.spread(moved, quarter, c.recentring_window, c.half)
            if found <= quarter - c.shrink:
                theta, quarter, rounds, missed = moved, found, rounds + 1, 0
            else:
                missed += 1
                if missed > misses:
                    break
        return Located(theta, quarter, rounds)

    def is_atom(self, theta: Vector, quarter: int) -> bool:
        """Whether half of the records coincide there, as far as the sum of distances can tell.

        They are near, and the radius is that of the pairs or of doubles, or far records dominate the sum. Without the
        scale of the pairs, a cluster that is not yet reached would look the same.
        """
        ask, c = self.ask, self.ask.c
        cost = c.atom_share.of(ask.rho, ask.m_worth)
        near, _ = ask.count(ask.sample, theta, quarter + 4, cost)
        if near < 0.5 * ask.m:
            return False
        small = self.floor(theta) if ask.scale_unseen else max(4 * self.octave, self.floor(theta))
        if quarter <= small + c.atom_radius or self.octave < c.smallest[0]:
            return True
        for beyond, share in c.atom_far:
            held, noise = ask.count(ask.sample, theta, quarter + beyond, cost)
            if ask.m - held > share * ask.m + 2.5 * noise:
                return True
        return False

    def is_point(self, located: Located) -> bool:
        """Whether the spread is that of a single point of doubles."""
        return located.spread <= self.floor(located.center)

    def exactly(self, located: Located) -> tuple[Vector, float, float]:
        """The point where records coincide to the last digit, the scale, and the error; 0 among denormals."""
        c, center = self.ask.c, located.center
        point = np.where(np.abs(center) <= math.ldexp(1.0, c.smallest[2]), 0.0, center)
        error = radius_of(max(located.spread, self.floor(point)) + 4)
        return point, radius_of(located.spread), error

    def usable(self, quarter: int) -> int:
        """A spread whose curvature is a double."""
        return max(quarter, self.ask.c.smallest[1])
