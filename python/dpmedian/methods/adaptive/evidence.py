"""The likelihood ratio of two explanations, for few records: the data surround the point, or the search missed them.

A search with too much noise may end at a point far away from the data. It then takes the distance of the data as the
core radius. This core radius has two explanations: a cloud around the point, or data far away, which seen from the
point look like an atom. In a cloud, the counts of records within a radius grow smoothly with the radius, and gradients
near the center are short. For data far away, the counts jump from none to all, and all gradients have the norm n. So
the likelihoods follow from the answers of all searches for a radius and from the gradients since the last restart.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpmedian.mechanisms.distance import Counted
from dpmedian.methods.adaptive.constants import Constants
from dpmedian.methods.adaptive.queries import Gradient
from dpmedian.methods.contract import cloud_curvature

__all__ = ["log_odds_of_a_cloud"]

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

# Larger distances (in core radii) are treated like this one, whose square is still a double. Vectors that are shorter
# than its reciprocal are treated as having no direction.
_BEYOND = math.sqrt(math.sqrt(sys.float_info.max))


def log_odds_of_a_cloud(
    measured: Sequence[Gradient], counted: Sequence[Counted], point: Vector, quarter: int, n: float, c: Constants
) -> float:
    """The log odds of a cloud around the point against data far away, each with its most likely parameters.

    `quarter` is the quarter octave of the core radius that was found. Lengths are in units of this core radius, and
    gradients and counts in units of n.
    """
    answers = _Answers(measured, counted, point, quarter, n, c.core)
    centers = answers.centers((1.0, c.place), c.rounds)
    # The center of a cloud lies within about a core radius of the point, because the gradient vanishes at the center.
    near = 0.5 * (centers**2).sum(axis=1)
    clouds = answers.misfits(centers, 1.0, 1.0) + near
    place = answers.misfits(centers, c.place, c.place_steepness)
    return float(np.min(place) - np.min(clouds))


class _Answers:
    """The released gradients and counts, relative to the point that was found."""

    def __init__(
        self,
        measured: Sequence[Gradient],
        counted: Sequence[Counted],
        point: Vector,
        quarter: int,
        n: float,
        core: float,
    ) -> None:
        def relative(points: Sequence[Vector]) -> Matrix:
            # The division has two steps, because the reciprocal of a tiny core radius would overflow.
            whole, rest = divmod(quarter, 4)
            with np.errstate(over="ignore"):
                scaled = np.ldexp(np.array(points) - point, -whole) / 2.0 ** (rest / 4.0)
            return np.asarray(np.clip(scaled, -_BEYOND, _BEYOND))

        self.points = relative([measure.point for measure in measured])
        self.gradients = np.array([measure.gradient for measure in measured]) / n
        self.variances = np.array([measure.variance for measure in measured]) / n**2
        self.thetas = relative([count.theta for count in counted])
        self.of = np.repeat(np.arange(len(counted)), [len(count.quarters) for count in counted])
        quarters = np.concatenate([count.quarters for count in counted])
        self.logarithms = (quarters - quarter) * (math.log(2.0) / 2.0)
        self.shares = np.concatenate([count.counts for count in counted]) / n
        self.noise = np.array([count.noise for count in counted])[self.of] / n
        self._rotate()
        d = len(point)
        self.curvature = cloud_curvature(d)
        # The counts of a cloud grow as a logistic function of the logarithm of the squared distance, with the variance
        # that a normal distribution has. The share `core` of the records lies within the core radius of its center.
        self.core = math.log(core / (1.0 - core))
        self.steepness = math.pi / math.sqrt(3.0 * (2.0 / d + 2.0 / d**2))

    def _rotate(self) -> None:
        """In many dimensions, rotate into the span of all points and gradients, which keeps distances."""
        vectors = np.vstack([self.points, self.gradients, self.thetas])
        count, d = vectors.shape
        if d > count:
            sizes = np.linalg.norm(vectors, axis=1, keepdims=True)
            basis = np.linalg.qr((vectors / np.maximum(sizes, 1.0 / _BEYOND)).T)[0]
            self.points, self.gradients, self.thetas = self.points @ basis, self.gradients @ basis, self.thetas @ basis

    def lengths(self, offsets: Matrix, wide: float) -> Matrix:
        """The divisors of offsets from a center: far away their lengths, and at the center the inverse curvature."""
        return np.asarray(np.sqrt((offsets**2).sum(axis=-1) + (wide / self.curvature) ** 2))

    def centers(self, widths: Sequence[float], rounds: int) -> Matrix:
        """Possible centers of clouds with these core radii, from all steps of a fit to the gradients.

        With the divisors of the step before, gradients are linear in the center, so it is a weighted mean.
        """
        directions = self.gradients / np.maximum(np.linalg.norm(self.gradients, axis=1, keepdims=True), 1.0 / _BEYOND)
        starts = np.vstack([np.zeros_like(self.points[:1]), self.points - directions])
        found = [starts]
        for wide in widths:
            centers = starts
            for _ in range(rounds):
                lengths = self.lengths(self.points - centers[:, None], wide)
                weights = 1.0 / (self.variances * lengths**2)
                ends = self.points - lengths[..., None] * self.gradients
                centers = (weights[..., None] * ends).sum(axis=1) / weights.sum(axis=1)[:, None]
                found.append(centers)
        return np.vstack(found)

    def misfits(self, centers: Matrix, wide: float, steep: float) -> Vector:
        """For each center of a cloud of this width, half of the sum of squared residuals, divided by the variances."""
        offsets = self.points - centers[:, None]
        residuals = self.gradients - offsets / self.lengths(offsets, wide)[..., None]
        squares = ((self.thetas - centers[:, None]) ** 2).sum(axis=-1)[:, self.of] + wide**2
        logits = steep * self.steepness * (self.logarithms - np.log(squares)) + self.core
        shares = 1.0 / (1.0 + np.exp(-np.clip(logits, -50.0, 50.0))) - 0.5
        of_gradients = ((residuals**2).sum(axis=-1) / self.variances).sum(axis=1)
        return np.asarray(0.5 * (of_gradients + (((self.shares - shares) / self.noise) ** 2).sum(axis=1)))
