"""Likelihood ratio of "the data surround the point" against "the search missed the data", for few records.

A search whose noise is too large ends somewhere, and takes the distance to the records for their core radius. A cloud
around the point and a place far away both explain such a radius, but not the other answers: around a cloud the counts
of records within a radius grow smoothly, and near its middle gradients are short; around a single place the counts jump
from none to all, and all gradients have the norm n. So the answers of all searches for a radius, and the gradients
since the last start, are compared with both. This is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpmedian.mechanisms.distance import Counted
from dpmedian.methods.adaptive.queries import Gradient
from dpmedian.methods.contract import cloud_curvature

__all__ = ["log_odds_of_a_cloud"]

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

# The cloud: its core radii over the one that was found, and the distance of its center from the point in core radii.
# The single place: its core radius, how much faster its counts grow than those of a cloud, and its largest distance.
_CLOUDS, _CLOUD_OFFSET, _PLACE, _PLACE_STEEPNESS, _PLACE_REACH = (1.0, 1.4), 0.35, 0.06, 12.0, 3.0
# Core radii of the clouds whose centers are tried.
_FITS = (1.4, 0.3, 0.06)
# How often each fit of a center to the gradients is improved, and the lengths in core radii of the first steps.
_ROUNDS, _STARTS = 4, (0.4, 1.0)
# Spreads beyond which it does not matter how far away a point is: its square is a double. Below the other one, vectors
# have no direction.
_BEYOND, _LEAST = 1e60, 1e-60


def log_odds_of_a_cloud(
    measured: Sequence[Gradient], counted: Sequence[Counted], point: Vector, quarter: int, n: float, core: float
) -> float:
    """The logarithm of the odds of a cloud around the point against a single place, each where it explains most.

    `quarter` is the quarter octave of the core radius that was found, the unit of lengths; n is that of gradients and
    counts. A place may be anywhere within some core radii of the point.
    """
    answers = _Answers(measured, counted, point, quarter, n, core)
    centers = answers.centers(_FITS)
    away = (centers**2).sum(axis=1)
    # A cloud's center is near the point, for that is where its gradients vanish.
    clouds = [answers.misfits(centers, wide, 1.0) + 0.5 * away / _CLOUD_OFFSET**2 for wide in _CLOUDS]
    place = answers.misfits(centers[away < _PLACE_REACH**2], _PLACE, _PLACE_STEEPNESS)
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
            basis = np.linalg.qr((vectors / np.maximum(sizes, _LEAST)).T)[0]
            self.points, self.gradients, self.thetas = (
                np.asarray(part @ basis) for part in (self.points, self.gradients, self.thetas)
            )

    def lengths(self, offsets: NDArray[np.float64], wide: float) -> NDArray[np.float64]:
        """What a gradient's offset from the center is divided by: its length, or near the center the curvature's."""
        return np.asarray(np.sqrt((offsets**2).sum(axis=-1) + (wide / self.curvature) ** 2))

    def centers(self, widths: Sequence[float]) -> Matrix:
        """Centers that may explain the gradients, of clouds of these core radii: all steps of the fits.

        With the lengths of the last step a gradient is linear in the center, so that the next one is a weighted mean.
        """
        directions = self.gradients / np.maximum(np.linalg.norm(self.gradients, axis=1, keepdims=True), _LEAST)
        starts = np.vstack([np.zeros_like(self.points[:1]), *(self.points - step * directions for step in _STARTS)])
        found = [starts]
        for wide in widths:
            centers = starts
            for _ in range(_ROUNDS):
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
