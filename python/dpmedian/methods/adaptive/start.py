"""The start of a run of the default method: a point among the records, and the core radius around it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmedian.mechanisms.distance import radius_of
from dpmedian.methods.adaptive.queries import SAMPLED_DIMENSIONS, Queries
from dpmedian.release import MethodResult

__all__ = ["Ball", "NotFound", "first_ball", "majority"]

Vector = NDArray[np.float64]


class NotFound(Exception):
    """No median was found, for the reason in the message. `near` is a point among the records, if one is known."""

    def __init__(self, message: str, near: MethodResult | None = None) -> None:
        super().__init__(message)
        self.near = near


class Ball(NamedTuple):
    """A center and the quarter octave of a radius."""

    center: Vector
    quarter: int


def first_ball(ask: Queries) -> Ball:
    """The first ball. In very many dimensions gradients lead to its center, and otherwise ranks."""
    return _approach(ask) if ask.d > SAMPLED_DIMENSIONS else _by_ranks(ask)


def _by_ranks(ask: Queries, distance: float | None = None) -> Ball:
    """The coordinate-wise median, and the core radius around it. The `distance` of the data may be known."""
    center, box = ask.center(distance)
    if box > 2.0 * (distance or 2.0 * (ask.p.radius or math.inf)):
        raise NotFound("the search for the center did not narrow: there are too few records")
    return Ball(center, ask.search(center, ask.c.core, 4 * math.frexp(box)[1]))


def _approach(ask: Queries) -> Ball:
    """Begin at the public center, and take steps along gradients if the center does not lie among the records.

    Far away from the data, the core radius is about the distance to the data, and the gradient points away from them.
    Steps need gradients with little noise. If the budget is too small for such gradients, ranks find the data, and the
    core radius gives the octave of their distance.
    """
    c = ask.c
    theta, quarter, nearer = ask.p.origin, 4 * math.frexp(ask.p.radius or 1.0)[1], math.inf
    cheap = ask.price(c.needs * ask.d, 0.0, 1.0) <= c.single_share * ask.rho
    # The length of d coordinates has less noise than each of them.
    cost = c.single_share * ask.rho if cheap else ask.price(c.needs * math.sqrt(ask.d), 0.0, c.search_most)
    while ask.left > c.half_budget:
        gradient = ask.gradient(theta, cost)
        noise = gradient.variance / ask.n**2
        square = float(gradient.gradient @ gradient.gradient) / ask.n**2 - ask.d * noise
        quarter = ask.search(theta, c.core, quarter)
        if square + noise * math.sqrt(2.0 * ask.d) < c.far:
            return Ball(theta, quarter)
        if not cheap:
            return _by_ranks(ask, radius_of(quarter))
        if quarter > nearer:
            break
        nearer = quarter - c.shrink
        theta = ask.inside(theta - radius_of(quarter) / ask.n * gradient.gradient)
    return _by_ranks(ask)


def majority(ask: Queries, there: Vector, gradient: Vector, around: int) -> Ball:
    """The ball around the point that holds a majority of the records, moved to where the gradient leads."""
    quarter = ask.search(there, ask.c.majority, around)
    return Ball(ask.inside(there - radius_of(quarter) / float(np.linalg.norm(gradient)) * gradient), quarter)
