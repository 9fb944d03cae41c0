"""Geometry on released values. This is post-processing and costs nothing.

`VolumetricCenter(origin, radius)` is a ball that is cut by half-spaces. `.center` is its volumetric center.
`.cut(direction)` keeps the half of the points z with direction . (z - center) <= 0, or returns False if the set has
collapsed in double precision. `VolumetricCenter.TAU` is the fraction of the volume that plans expect a cut to remove.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpmedian._core import VolumetricCenter
from dpmedian.parameters import LARGEST

__all__ = ["VolumetricCenter", "onto_ball", "reach_of_map", "semicircle", "spikes", "stands_out", "without_noise"]

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

# The number of standard deviations of a chi-square variable that noise rarely exceeds. An eigenvalue that exceeds the
# edge by 12 % before the noise is added, and by a third afterwards, raises the mean of the variable by this number of
# standard deviations. So half of such eigenvalues are noticed.
_DEVIATIONS = 2.5
# An eigenvalue that exceeds the edge of the semicircle by this factor is not noise.
_BEYOND_EDGE = 1.05
# The number of Lanczos steps. A few eigenvalues that are well beyond the edge need about half as many.
_LANCZOS = 48


def onto_ball(point: Vector, center: Vector, radius: float | None) -> Vector:
    """The nearest point of the ball, or without a radius the point with its coordinates clamped to 2^1000.

    A coordinate that is not a number becomes the coordinate of the center, as in the Rust core, so that every iterate
    stays finite.
    """
    point = np.clip(np.where(np.isnan(point), center, point), -LARGEST, LARGEST)
    if radius is None:
        return point
    offset = point - center
    # The largest coordinate is divided out first, so that squares do not overflow.
    largest = float(np.max(np.abs(offset)))
    length = 0.0 if largest == 0.0 else largest * float(np.linalg.norm(offset / largest))
    return point if length <= radius else np.asarray(center + offset * (radius / length))


def reach_of_map(points: Matrix, errors: Sequence[float]) -> float:
    """The distance by which a map of released points extends beyond the points. It is the largest error, or less if
    this error is much larger than the other errors and the distances between the points. In that case the map cuts off
    the circle of the largest error.
    """
    apart = 0.5 * float(np.ptp(points, axis=0).max())
    return min(max(errors, default=0.0), max(apart, 2.0 * float(np.median(errors or [0.0]))))


def semicircle(noise: float, d: int) -> float:
    """The approximate largest eigenvalue of a symmetric matrix of noise.

    The noise has this sigma on the diagonal and sigma/sqrt(2) elsewhere. In many dimensions the distribution of the
    eigenvalues is a semicircle, and the result is the edge of the semicircle.
    """
    return noise * math.sqrt(2.0 * d)


def stands_out(matrix: Matrix, noise: float) -> bool:
    """Whether a released symmetric matrix differs from a multiple of the identity by more than noise explains.

    No eigenvalues are computed. The noise has the distribution described in `semicircle`, so its sum of squares is a
    chi-square variable. An eigenvalue beyond the edge of the semicircle raises this sum by some standard deviations,
    but an eigenvalue near the edge may not be noticed.
    """
    d = len(matrix)
    freedom = d * (d + 1) / 2.0 - 1.0
    squares = float((matrix**2).sum() - np.trace(matrix) ** 2 / d)
    return squares > noise**2 * (freedom + _DEVIATIONS * math.sqrt(2.0 * freedom))


def without_noise(matrix: Matrix, noise: float, power: float = 1.0) -> tuple[Vector, Matrix, float]:
    """Eigenvalues and eigenvectors of the traceless part of a released symmetric matrix, and the edge of the semicircle
    of the noise.

    The noise has the distribution described in `semicircle`. The contribution of the noise is subtracted from
    eigenvalues beyond the edge (Benaych-Georges and Nadakuditi 2011). The other eigenvalues are multiplied by a common
    factor, which depends on their sum of squares. With power 1 the result is the best approximation in mean square, and
    with power 1/2 it has the correct sum of squares.
    """
    d = len(matrix)
    found, vectors = np.linalg.eigh(matrix - np.eye(d) * np.trace(matrix) / d)
    edge = semicircle(noise, d)
    spike = np.abs(found) > _BEYOND_EDGE * edge
    shrunk = np.where(spike, _taken_off(found, edge), found)
    if not spike.all():
        energy, expected = float((found[~spike] ** 2).sum()), int((~spike).sum()) * edge**2 / 4.0
        shrunk[~spike] *= max(0.0, 1.0 - expected / max(energy, 1e-300)) ** power
    return shrunk, vectors, edge


def spikes(matrix: Matrix, noise: float) -> tuple[Vector, Matrix, float]:
    """`without_noise` for many dimensions. Only the eigenvectors of eigenvalues beyond the edge are returned, and these
    eigenvalues come first.

    The other eigenvalues are set equal, so that the trace is zero. The Lanczos method finds the eigenvalues beyond the
    edge with a few products of the matrix and a vector. The method may not have converged for an eigenvalue very near
    the edge. Such an eigenvalue represents the eigenvalues near it, or counts among the other eigenvalues.
    """
    d, edge = len(matrix), semicircle(noise, len(matrix))
    mean, basis = float(np.trace(matrix)) / d, np.empty((min(_LANCZOS, d), d))
    diagonal, off_diagonal = np.zeros(len(basis)), np.zeros(len(basis))
    vector = np.random.default_rng(0).normal(size=d)
    for j in range(len(basis)):
        basis[j] = vector / np.linalg.norm(vector)
        vector = matrix @ basis[j] - mean * basis[j]
        diagonal[j] = vector @ basis[j]
        for _ in range(2):
            vector = vector - (basis[: j + 1] @ vector) @ basis[: j + 1]
        off_diagonal[j] = np.linalg.norm(vector)
        if off_diagonal[j] <= 1e-10 * edge:
            basis, diagonal, off_diagonal = basis[: j + 1], diagonal[: j + 1], off_diagonal[: j + 1]
            break
    found, turned = np.linalg.eigh(np.diag(diagonal) + np.diag(off_diagonal[:-1], 1) + np.diag(off_diagonal[:-1], -1))
    spike = np.abs(found) > _BEYOND_EDGE * edge
    beyond = _taken_off(found[spike], edge)
    others = np.full(d - len(beyond), -beyond.sum() / max(d - len(beyond), 1))
    return np.concatenate([beyond, others]), np.ascontiguousarray((basis.T @ turned)[:, spike]), edge


def _taken_off(found: Vector, edge: float) -> Vector:
    """Eigenvalues beyond the edge minus the contribution of the noise."""
    return np.asarray(0.5 * (found + np.sign(found) * np.sqrt(np.maximum(found**2 - edge**2, 0.0))))
