"""The law of the error of a released point as an estimate of the population's median: inference.md derives it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmedian.inference.moments import Moments
from dpmedian.postprocess import without_noise

__all__ = ["KNOWN", "Error", "error_of", "tangent"]

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

# Draws of the error, fewer in many dimensions, where lengths concentrate: so many numbers, but at least 1000 draws.
_DRAWS, _NUMBERS, _FEWEST = 8000, 4_000_000, 1000
# The curvature is at least this part of the records, and so is every eigenvalue of the Hessian of the curvature.
_FLATTEST, _SOFTEST = 0.02, 0.05
# The curvature is drawn from its noise, but not below this part of what was released.
_LOWEST = 0.2
# The noise of the directions, as an eigenvalue relative to their mean, up to which they give the error a shape.
KNOWN = 0.25
# Eigenvalues of the directions are at least this part of their mean, where they are known and where they are not.
_LEAST_KNOWN, _LEAST_UNKNOWN = 0.001, 0.25
# The most that what is hidden in the noise adds to the square of the error, relative to it.
_HIDDEN = 1.5


@dataclass(frozen=True, eq=False)
class Error:
    """The error in units of `unit`: draws of it, one a row, and its covariance where the directions are known.

    `growth` is what the noise of the directions adds to the square of an ellipsoid's axes.
    """

    unit: float
    draws: Matrix
    covariance: Matrix | None = None
    growth: float = 1.0

    def seen(self, frame: Matrix) -> Error:
        """The error in other coordinates, linear in these."""
        covariance = None if self.covariance is None else frame @ self.covariance @ frame.T
        return Error(self.unit, self.draws @ frame.T, covariance, self.growth)


def error_of(moments: Moments) -> Error:
    """The error given what was released; of a position, in degrees to the east and to the north.

    The same moments give the same draws.
    """
    error = _in_space(moments)
    return error if moments.position is None else error.seen(tangent(moments.position))


def tangent(position: tuple[float, float, float]) -> Matrix:
    """What a small step in space is as degrees to the east and to the north, seen from the center of the globe."""
    x, y, z = position
    level, length = math.hypot(x, y), math.hypot(x, y, z)
    east = np.array([-y, x, 0.0]) / level if level > 0.0 else np.array([0.0, 1.0, 0.0])
    north = np.cross(position, east) / length
    return np.array([east, north]) * math.degrees(1.0 / length)


def _in_space(moments: Moments) -> Error:
    """H^-1 g, g being the gradient's sampling error and its noise."""
    d, n = moments.d, moments.size
    if moments.curvature is None:
        return Error(0.0, np.zeros((1, d)))
    directions, relative = _directions(moments)
    gradient = directions / n + np.eye(d) * (moments.gradient_variance / n**2)
    mean = max(moments.curvature, moments.curvature_noise, _FLATTEST * moments.records)
    values, vectors = np.zeros(d), np.eye(d)
    if moments.hessian is not None:
        values, vectors, _ = without_noise(moments.hessian.matrix, moments.hessian.noise)
    rng, count = np.random.default_rng(0), min(_DRAWS, max(_NUMBERS // d, _FEWEST))
    drawn = np.maximum(mean + moments.curvature_noise * rng.normal(size=count), _LOWEST * mean)
    root = np.linalg.cholesky(vectors.T @ gradient @ vectors)
    # In the basis of the Hessian, to which the curvature adds the same in all directions.
    errors = rng.normal(size=(count, d)) @ root.T / np.maximum(drawn[:, None] - values, _SOFTEST * mean)
    # Of d directions that n records span, the sampling error has some of its own.
    draws = math.sqrt(1.0 + d / n) * moments.records * errors @ vectors.T
    if relative >= KNOWN:
        hidden = _hidden(moments, mean, directions, (vectors * values) @ vectors.T, float(np.trace(gradient)))
        return Error(moments.radius, hidden * draws)
    inverse = (vectors * (moments.records / np.maximum(mean - values, _SOFTEST * mean))) @ vectors.T
    return Error(moments.radius, draws, inverse @ gradient @ inverse, 1.0 + relative**2)


def _hidden(moments: Moments, mean: float, directions: Matrix, hessian: Matrix, square: float) -> float:
    """By how much errors are longer because directions and Hessian agree, in what is hidden in their noise.

    The mean square of the error is that of the gradient, `square`, plus 2 tr(S T)/(n mean), to first order. The noise
    of S and that of T are independent, so their product as released is right in the mean, however small its parts.
    """
    if moments.hessian is None or moments.directions is None:
        return 1.0
    released = moments.hessian.matrix - np.eye(moments.d) * np.trace(moments.hessian.matrix) / moments.d
    seen, found = (
        square + 2.0 * float(np.sum(s * t)) / (moments.size * mean)
        for s, t in ((directions, hessian), (moments.directions.matrix / moments.size, released))
    )
    return math.sqrt(min(max(found / seen, 1.0), _HIDDEN))


def _directions(moments: Moments) -> tuple[Matrix, float]:
    """The covariance of the directions, whose trace is 1, and the noise of an eigenvalue relative to their mean."""
    d, noisy, n = moments.d, moments.directions, moments.size
    if noisy is None:
        return np.eye(d) / d, 0.0 if d == 1 else math.inf
    relative = noisy.noise * math.sqrt((d + 1.0) / 2.0) * d / n
    known = relative < KNOWN
    # Where they are not known, at least their sum of squares is right: on it depends how much lengths vary.
    values, vectors, _ = without_noise(noisy.matrix / n, noisy.noise / n, 1.0 if known else 0.5)
    values = np.maximum(values + 1.0 / d, (_LEAST_KNOWN if known else _LEAST_UNKNOWN) / d)
    return (vectors * (values / values.sum())) @ vectors.T, relative
