"""Likelihood ratio of "the data surround the point" against "the search missed the data", for few records.

A search whose noise is too large ends somewhere, and takes the distance to the records for their core radius. A cloud
around the point and a place far away both explain such a radius, but not the other answers: around a cloud the counts
of records within a radius grow smoothly, and near its middle gradients are short; around a single place the counts jump
from none to all, and all gradients have the norm n. So the answers of all searches for a radius, and the gradients
since the last start, are compared with both. This is post-processing.
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

# Core radii beyond which it does not matter how far away a point is: its square is a double. The reciprocal is a length
# below which vectors have no direction.
_BEYOND = math.sqrt(math.sqrt(sys.float_info.max))


def log_odds_of_a_cloud(
    measured: Sequence[Gradient], counted: Sequence[Counted], point: Vector, quarter: int, n: float, c: Constants
) -> float:
    """The logarithm of the odds of a cloud around the point against a single place, each where it explains most.

    `quarter` is the quarter octave of the core radius that was found, the unit of lengths; n is that of gradients and
    counts.
    """
    answers = _Answers(measured, counted, point, quarter, n, c.core)
    centers = answers.centers((1.0, c.place), c.rounds)
    # A cloud's center is within a core radius of the point or so, because its gradients vanish there.
    near = 0.5 * (centers**2).sum(axis=1)
    clouds = answers.misfits(centers, 1.0, 1.0) + near
    place = answers.misfits(centers, c.place, c.place_steepness)
    return float(np.min(place) - np.min(clouds))


class _Answers:
    """Gradients and counts, relative to the point that was found."""

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
            # In two divisions, because the core radius of tiny data has no double above its reciprocal.
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
        # Counts grow as a logistic function of the logarithm of the squared distance, with the variance that a normal
        # cloud has; around its center the core of the records is within the core radius.
        self.core = math.log(core / (1.0 - core))
        self.steepness = math.pi / math.sqrt(3.0 * (2.0 / d + 2.0 / d**2))

    def _rotate(self) -> None:
        """In many dimensions, into coordinates of what all points and gradients span: distances stay the same."""
        vectors = np.vstack([self.points, self.gradients, self.thetas])
        count, d = vectors.shape
        if d > count:
            sizes = np.linalg.norm(vectors, axis=1, keepdims=True)
            basis = np.linalg.qr((vectors / np.maximum(sizes, 1.0 / _BEYOND)).T)[0]
            self.points, self.gradients, self.thetas = (
                np.asarray(part @ basis) for part in (self.points, self.gradients, self.thetas)
            )

    def lengths(self, offsets: NDArray[np.float64], wide: float) -> NDArray[np.float64]:
        """What a gradient's offset from the center is divided by: its length, or near the center the curvature's."""
        return np.asarray(np.sqrt((offsets**2).sum(axis=-1) + (wide / self.curvature) ** 2))

    def centers(self, widths: Sequence[float], rounds: int) -> Matrix:
        """Centers that may explain the gradients, of clouds of these core radii: all steps of the fits.

        With the lengths of the last step a gradient is linear in the center, so that the next one is a weighted mean.
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
        """Half of the squared differences in deviations of the noise, for each center of a cloud so wide."""
        offsets = self.points - centers[:, None]
        residuals = self.gradients - offsets / self.lengths(offsets, wide)[..., None]
        squares = ((self.thetas - centers[:, None]) ** 2).sum(axis=-1)[:, self.of] + wide**2
        logits = steep * self.steepness * (self.logarithms - np.log(squares)) + self.core
        shares = 1.0 / (1.0 + np.exp(-np.clip(logits, -50.0, 50.0))) - 0.5
        of_gradients = ((residuals**2).sum(axis=-1) / self.variances).sum(axis=1)
        return np.asarray(0.5 * (of_gradients + (((self.shares - shares) / self.noise) ** 2).sum(axis=1)))
