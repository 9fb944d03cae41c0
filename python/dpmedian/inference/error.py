"""The distribution of the error of a released point as an estimate of the population's median (inference.md)."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmedian.inference.moments import Moments, Noisy
from dpmedian.postprocess import spikes, without_noise

__all__ = ["FEWEST", "KNOWN", "Error", "error_of", "tangent"]

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

# The number of draws of the error, the largest number of values in all draws, and the smallest number of draws. In many
# dimensions fewer draws suffice, because lengths vary less.
_DRAWS, _NUMBERS, FEWEST = 8000, 4_000_000, 1000
# With more dimensions than this, the lengths of errors without sampling are drawn from groups of eigenvalues.
_MANY = 128
# The lower limit of each eigenvalue of the Hessian, relative to the curvature.
_SOFTEST = 0.05
# Eigenvalues of the Hessian are drawn from their distribution, but not below this part of the estimated eigenvalue.
_LOWEST = 0.2
# The covariance of the error is computed if the noise of an eigenvalue of the directions is less than this part of the
# mean eigenvalue.
KNOWN = 0.25
# For data along a line: the square of the thickness in smoothing radii, divided by the share of the trace of T that is
# not along the line. The quotient is about twice the logarithm of the length of the line in smoothing radii.
_THICKNESS = 3.0
# A released value below zero is treated as at most this many standard deviations of its noise below zero.
_BELOW = 5.0
# Squared lengths of errors are multiplied by 1 + _SPANNED d/n.
_SPANNED = 0.5
# The largest factor by which `_hidden` multiplies the squared error.
_HIDDEN = 1.5


@dataclass(frozen=True, eq=False)
class Error:
    """Simulated errors in units of `unit`, one draw in each row, and their covariance if the directions are known.

    `growth` is the factor by which the noise of the directions increases the squared axes of an ellipsoid.
    """

    unit: float
    draws: Matrix
    covariance: Matrix | None = None
    growth: float = 1.0

    def seen(self, frame: Matrix) -> Error:
        """The error in other coordinates. Each row of `frame` has the coefficients of one new coordinate."""
        covariance = None if self.covariance is None else frame @ self.covariance @ frame.T
        return Error(self.unit, self.draws @ frame.T, covariance, self.growth)


def error_of(moments: Moments, sampling: bool = True, draws: int = _DRAWS) -> Error:
    """The error, given the released values. The error of a position is in degrees to the east and to the north.

    If `sampling` is False, the error is the difference from the median of the records, so only the noise of the release
    counts. The error has this number of draws, or fewer in many dimensions. The same moments always give the same
    draws.
    """
    error = _in_space(moments, sampling, draws)
    return error if moments.position is None else error.seen(tangent(moments.position))


def tangent(position: tuple[float, float, float]) -> Matrix:
    """The matrix that converts a small step in space to degrees east and north."""
    x, y, z = position
    level, length = math.hypot(x, y), math.hypot(x, y, z)
    east = np.array([-y, x, 0.0]) / level if level > 0.0 else np.array([0.0, 1.0, 0.0])
    north = np.cross(position, east) / length
    return np.array([east, north]) * math.degrees(1.0 / length)


def _in_space(moments: Moments, sampling: bool, draws: int) -> Error:
    """The error H^-1 g. The vector g is the noise of the gradient, plus the sampling error of the gradient if
    `sampling` is True. H is drawn from the distribution of its noise.

    Without sampling only lengths are needed, so the draws are in the basis of the Hessian, and there is no covariance.
    If the error has the same distribution in all directions, the draws are lengths.
    """
    d, n = moments.d, moments.size
    if moments.curvature is None:
        return Error(0.0, np.zeros((1, d)))
    mean = max(moments.curvature, moments.curvature_noise)
    if not sampling and d > _MANY and moments.hessian is not None:
        return Error(moments.radius, _lengths(moments, moments.hessian, mean)[:, None])
    values, vectors, doubt = _softness(moments)
    found = mean - values
    if vectors is not None:
        found[values < values.max()] += _across(moments, mean, float(values.max()), vectors[:, np.argmax(values)])
    found = _lowered(found, moments, mean)
    # From here on vectors are in the basis of the Hessian. The curvature adds the same amount in all directions.
    rng, count = np.random.default_rng(0), min(draws, max(_NUMBERS // d, FEWEST)) if sampling else FEWEST
    noise, even = moments.gradient_variance / n**2, not sampling or (moments.directions is None and d > 1)
    lengths_only = even and vectors is None and moments.position is None
    if lengths_only:
        # In many dimensions draws of all coordinates would take longer than the release.
        found = found[:1]
    drawn = found + moments.curvature_noise * rng.normal(size=(count, 1))
    pulled = np.sqrt(rng.chisquare(d, size=(count, 1))) if lengths_only else rng.normal(size=(count, d))
    if even:
        # The error of the gradient has the same variance in all directions, so the draws are only scaled. Products of
        # large matrices would take minutes.
        pulled *= math.sqrt(noise + (1.0 / (d * n) if sampling else 0.0))
    else:
        directions, relative = _directions(moments)
        within = np.eye(d) * noise + _turned(directions / n, vectors)
        pulled = pulled @ np.linalg.cholesky(within).T
    if doubt.any():
        drawn = drawn + doubt * rng.normal(size=(count, d))
        # Off the diagonal, the noise of H turns an error in one direction into an error in all other directions.
        squares = (pulled / found) ** 2
        turned = np.maximum(squares.sum(axis=1, keepdims=True) - squares, 0.0)
        pulled = pulled + math.sqrt(0.5) * doubt.max() * np.sqrt(turned) * rng.normal(size=(count, d))
    # The sampling error has an additional part of relative order d/n.
    length = moments.records * math.sqrt(1.0 + (_SPANNED * d / n if sampling else 0.0))
    errors = length * pulled / np.maximum(drawn, _LOWEST * found)
    if not sampling:
        return Error(moments.radius, errors)
    if vectors is not None:
        errors = errors @ vectors.T
    if even:
        return Error(moments.radius, errors)
    if relative >= KNOWN:
        square = float(np.trace(directions)) / n + d * noise
        return Error(moments.radius, _hidden(moments, mean, directions, values, vectors, square) * errors)
    covariance = within / np.outer(found, found)
    if doubt.any():
        others = np.trace(covariance) - np.diag(covariance)
        covariance = covariance + np.diag(0.5 * doubt.max() ** 2 * others / found**2)
    covariance = moments.records**2 * _turned(covariance, None if vectors is None else vectors.T)
    return Error(moments.radius, errors, covariance, 1.0 + relative**2)


def _turned(matrix: Matrix, vectors: Matrix | None) -> Matrix:
    """A matrix in the basis of these vectors, which are columns. Without vectors the matrix is unchanged."""
    return matrix if vectors is None else np.asarray(vectors.T @ matrix @ vectors)


def _softness(moments: Moments) -> tuple[Vector, Matrix | None, Vector]:
    """Eigenvalues and eigenvectors of T without its noise, and the standard deviation of the error of each eigenvalue.

    The noise is removed by shrinking each eigenvalue. If an eigenvalue is multiplied by a factor, the variance of its
    noise is multiplied by the same factor, as for the posterior mean of a normal distribution. If T was not released,
    the eigenvalues are zero.
    """
    d, noisy = moments.d, moments.hessian
    if noisy is None:
        return np.zeros(d), None, np.zeros(d)
    values, vectors, _ = without_noise(noisy.matrix, noisy.noise)
    released = np.einsum("ij,ij->j", vectors, noisy.matrix @ vectors)
    released = released - released.mean()
    kept = np.clip(values / np.where(released == 0.0, 1.0, released), 0.0, 1.0)
    return values, vectors, noisy.noise * np.sqrt(kept)


def _lowered(found: Vector, moments: Moments, mean: float) -> Vector:
    """Eigenvalues of the Hessian at the released point. The Hessian was measured at another point, and the smallest
    eigenvalue may be smaller here.
    """
    found[np.argmin(found)] -= moments.away * (mean - found.min())
    return np.maximum(found, _SOFTEST * mean)


def _lengths(moments: Moments, noisy: Noisy, mean: float) -> Vector:
    """Lengths of errors without sampling, as in `_in_space`, for many dimensions.

    There, computing all eigenvectors would take longer than most other stages of a release. Eigenvalues of T within the
    semicircle of the noise are known only by their mean and their sum of squares. So half of them count as one standard
    deviation below their mean, and half as one above. All coordinates with the same eigenvalue are drawn together.
    """
    d, matrix = moments.d, noisy.matrix
    beyond, vectors, edge = spikes(matrix, noisy.noise)
    beyond, rest = beyond[: vectors.shape[1]], float(beyond[-1])
    # The released eigenvalues, from which `spikes` has taken off the contribution of the noise.
    released = beyond + edge**2 / (4.0 * beyond)
    within = d - len(beyond)
    squares = float((matrix**2).sum() - np.trace(matrix) ** 2 / d - (released**2).sum())
    kept = max(0.0, 1.0 - within * edge**2 / 4.0 / max(squares, sys.float_info.min))
    apart = kept * math.sqrt(max(squares, 0.0) / within)
    # The last coordinate has a group of its own, because its eigenvalue may be lowered.
    sizes = np.concatenate([np.ones(len(beyond)), [within // 2, within - within // 2 - 1, 1]])
    values = np.concatenate([beyond, rest + apart * np.array([-1.0, 1.0, 1.0])])
    doubt = noisy.noise * np.sqrt(np.concatenate([beyond / released, np.full(3, kept)]))
    found = mean - values
    if len(beyond) and beyond.max() > 0.0:
        found[values < beyond.max()] += _across(moments, mean, float(beyond.max()), vectors[:, np.argmax(beyond)])
    found = _lowered(found, moments, mean)
    rng, shape = np.random.default_rng(0), (_DRAWS // 2, len(found))
    drawn = found + moments.curvature_noise * rng.normal(size=(shape[0], 1)) + doubt * rng.normal(size=shape)
    squares_of = rng.chisquare(sizes, size=shape) * moments.gradient_variance / moments.size**2
    # Off the diagonal, the noise of H turns an error in one direction into an error in all other directions.
    errors = squares_of / found**2
    turned = np.maximum(errors.sum(axis=1, keepdims=True) - errors / sizes, 0.0)
    squares_of += 0.5 * doubt.max() ** 2 * turned * rng.chisquare(sizes, size=shape)
    return np.asarray(moments.records * np.sqrt((squares_of / np.maximum(drawn, _LOWEST * found) ** 2).sum(axis=1)))


def _across(moments: Moments, mean: float, largest: float, line: Vector) -> float:
    """A correction of the eigenvalues across a line, if most records lie along one line. `line` is the eigenvector of
    the largest eigenvalue of T.

    In the released Hessian each record within the smoothing radius adds 1/radius in every direction. But if the records
    lie along a line of thickness t, a record at the distance r > t adds 1/r across the line, so the sum over all
    records is larger by about log(radius/t). There are two estimates of t. The first is the part of T across the line,
    which comes from records beyond the radius. The second is the part of the second moments S of the directions across
    the line, to which records of a round cloud within the radius contribute, too. The larger of the two estimates is
    used.
    """
    even = 1.0 - 1.0 / moments.d
    if moments.hessian is None or moments.directions is None or moments.d == 1:
        return 0.0
    trace = float(np.trace(moments.hessian.matrix))
    within = mean - even * trace
    if min(within, trace) <= 0.0:
        return 0.0
    beyond = max(even * trace - largest, moments.hessian.noise)
    beside = max(moments.size - float(line @ moments.directions.matrix @ line), moments.directions.noise)
    thickness = max(math.sqrt(_THICKNESS * beyond / trace), beside / (even * within))
    return -within * math.log(thickness) if 0.0 < thickness < 1.0 else 0.0


def _hidden(
    moments: Moments, mean: float, directions: Matrix, values: Vector, vectors: Matrix | None, square: float
) -> float:
    """The factor by which errors are longer because the directions S are correlated with the second moments T, although
    the noise hides this correlation.

    To first order, the mean squared error is the mean square of the gradient, `square`, plus 2 tr(S T)/(n mean). The
    trace of the product of the released matrices is an unbiased estimate of tr(S T), because the noise of S and the
    noise of T are independent.
    """
    if vectors is None or moments.hessian is None or moments.directions is None:
        return 1.0
    hessian = (vectors * values) @ vectors.T
    released = moments.hessian.matrix - np.eye(moments.d) * np.trace(moments.hessian.matrix) / moments.d
    seen, found = (
        square + 2.0 * float(np.sum(s * t)) / (moments.size * mean)
        for s, t in ((directions, hessian), (moments.directions.matrix / moments.size, released))
    )
    return math.sqrt(min(max(found / seen, 1.0), _HIDDEN))


def _directions(moments: Moments) -> tuple[Matrix, float]:
    """The covariance of the directions, with trace 1, and the noise of an eigenvalue divided by the mean eigenvalue."""
    d, noisy, n = moments.d, moments.directions, moments.size
    if noisy is None:
        return np.eye(d) / d, 0.0 if d == 1 else math.inf
    relative = noisy.noise * math.sqrt((d + 1.0) / 2.0) * d / n
    known = relative < KNOWN
    values, vectors, _ = without_noise(noisy.matrix / n, noisy.noise / n, 1.0 if known else 0.5)
    if known:
        values = _positive(values + 1.0 / d, noisy.noise / n)
        return (vectors * (values / values.sum())) @ vectors.T, relative
    # Even if single eigenvalues are not known, the sum of their squared differences from the mean is estimated without
    # bias. This sum determines how much lengths vary.
    traceless = noisy.matrix / n - np.eye(d) * np.trace(noisy.matrix) / (n * d)
    squares = float((traceless**2).sum()) - (d * (d + 1) / 2.0 - 1.0) * (noisy.noise / n) ** 2
    return (vectors * _uneven(values, squares)) @ vectors.T, relative


def _positive(values: Vector, noise: float) -> Vector:
    """The posterior means of positive values that were observed with this noise.

    Each is the mean of a normal distribution that is truncated at zero.
    """
    seen = np.maximum(values / noise, -_BELOW)
    density = np.exp(-0.5 * seen**2) / math.sqrt(2.0 * math.pi)
    above = np.array([0.5 * math.erfc(-value / math.sqrt(2.0)) for value in seen])
    return np.asarray(noise * (seen + density / above))


def _uneven(values: Vector, squares: float) -> Vector:
    """Positive values with sum 1, in the order of `values`, whose squared differences from their mean sum to `squares`.

    The results are proportional to the exponentials of a multiple of `values`, so no result is zero, and every sum of
    squares is possible.
    """
    d, span = len(values), float(np.ptp(values))
    if squares <= 0.0 or span == 0.0:
        return np.full(d, 1.0 / d)
    shape = (values - values.max()) / span

    def scaled(part: float) -> Vector:
        powers = np.exp(part / (1.0 - part) * shape)
        return np.asarray(powers / powers.sum())

    low, high = 0.0, 1.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        reached = float(((scaled(middle) - 1.0 / d) ** 2).sum()) >= squares
        low, high = (low, middle) if reached else (middle, high)
    return scaled(low)
