"""Where to go next, from the noisy gradients so far. Everything here is post-processing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmedian.methods.adaptive.constants import Constants
from dpmedian.methods.adaptive.metric import Metric

__all__ = [
    "Measured",
    "Proposal",
    "accelerated",
    "averaged",
    "combination",
    "consistent",
    "damping",
    "ends",
    "heights",
    "length",
    "pull",
    "steps_of",
]

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


class Measured(NamedTuple):
    """A noisy gradient at a point, with the variance of its coordinates, as if of all n records."""

    point: Vector
    gradient: Vector
    variance: float


class Proposal(NamedTuple):
    """A step from the last point, whether the last gradient is explained by noise, and the precision of its end."""

    step: Vector
    settled: bool
    precision: float


def length(vector: Vector) -> float:
    """The norm; the largest coordinate is divided out first, so that no square overflows."""
    largest = float(np.max(np.abs(vector)))
    return largest * float(np.linalg.norm(vector / largest)) if 0.0 < largest < math.inf else 0.0


def damping(n: int, d: int, variance: float, c: Constants) -> float:
    """Steps whose noise is a good part of the largest gradient are shortened."""
    longest, per_noise, least, most = c.damping
    return min(max(longest - per_noise * math.sqrt(d * variance) / n, least), most)


def heights(measured: Sequence[Measured], n: int) -> list[float]:
    """Squared gradients over n^2, without their noise."""
    return [(float(g @ g) - len(g) * variance) / n**2 for _, g, variance in measured]


def pull(measured: Sequence[Measured], n: int, least: float, deviations: float) -> float:
    """The length of the mean gradient over n if it is above `least` and this many deviations of its noise, else 0."""
    mean = np.mean([measure.gradient for measure in measured], axis=0)
    noise = len(mean) * float(np.mean([measure.variance for measure in measured])) / len(measured)
    square = float(mean @ mean)
    stands_out = square - noise > max((least * n) ** 2, deviations**2 * noise)
    return math.sqrt(square) / n if stands_out else 0.0


def ends(measured: Sequence[Measured], metric: Metric) -> Matrix:
    """The ends of all Newton steps, relative to the last point."""
    points, gradients, _ = zip(*measured, strict=True)
    return np.asarray(np.array(points) - points[-1] - metric.newton(np.array(gradients)))


def explained(d: int, c: Constants) -> float:
    """The decrement, relative to its mean, up to which noise alone explains it."""
    return 1.0 + c.stall * math.sqrt(2.0 / d)


def averaged(measured: Sequence[Measured], metric: Metric, memory: float, c: Constants) -> Proposal:
    """The precision-weighted mean of the ends of all Newton steps that the linear model explains.

    Settled: the last decrement is explained by the noise of its gradient and by that of the place where it was asked.
    """
    base, last, variance = measured[-1]
    reached = ends(measured, metric)
    precisions = np.array([1.0 / measure.variance for measure in measured])
    limit, trace, guess = explained(len(base), c), metric.trace, reached[-1]
    weights = precisions
    for _ in range(3):
        # The residual of a gradient is H (guess - end).
        keep = metric.squared(guess - reached) <= limit * (1.0 / precisions + variance) * trace
        keep &= precisions >= memory * precisions[-1]
        keep[-1] = True
        weights = np.where(keep, precisions, 0.0)
        guess = np.asarray(weights / weights.sum() @ reached)
    others = float(weights[:-1].sum())
    root = metric.root(last)
    settled = float(root @ root) <= limit * (variance + (1.0 / others if others > 0.0 else 0.0)) * trace
    return Proposal(guess, settled, float(weights.sum()))


def combination(measured: Sequence[Measured], metric: Metric, trust: float, anchored: bool) -> Vector:
    """Weights with sum 1 of the least combined gradient, and the least noise or change (by `trust`).

    They minimise |sum w_i z_i|^2 + trust sum s_i (w_i - a_i)^2, with z_i the roots of the decrements and s_i their
    noise; a is 0, or 1 at the last one where the combination is anchored: Anderson's acceleration, damped.
    """
    roots = metric.root(np.array([measure.gradient for measure in measured]))
    noise = trust * metric.trace * np.array([measure.variance for measure in measured])
    matrix = roots @ roots.T + np.diag(noise)
    scale = float(np.trace(matrix))
    matrix = matrix / scale + 1e-12 * np.eye(len(noise))
    target = np.zeros(len(noise))
    if anchored:
        target[-1] = noise[-1] / scale
    free, multiplier = np.linalg.solve(matrix, np.array([target, np.ones(len(noise))]).T).T
    return np.asarray(free + multiplier * (1.0 - free.sum()) / multiplier.sum())


def accelerated(measured: Sequence[Measured], metric: Metric, trust: float, anchored: bool) -> Vector:
    """The step from the last point to the combination of the ends of all Newton steps."""
    return np.asarray(combination(measured, metric, trust, anchored) @ ends(measured, metric))


def consistent(measured: Sequence[Measured], metric: Metric, c: Constants) -> list[Measured]:
    """The later half, and of the others those that the linear model around its mean explains."""
    reached, late = ends(measured, metric), np.arange(len(measured)) >= len(measured) // 2
    variances, keep = np.array([measure.variance for measure in measured]), late
    for _ in range(2):
        weights = np.where(keep, 1.0 / variances, 0.0)
        guess = np.asarray(weights / weights.sum() @ reached)
        fits = metric.squared(guess - reached) / (variances * metric.trace)
        keep = (fits <= explained(reached.shape[1], c)) | late
    return [measure for measure, kept in zip(measured, keep, strict=True) if kept]


def steps_of(n: int, d: int, rho: float, c: Constants) -> int:
    """How many steps a descent has where nothing is known to coincide."""
    per, few, many = c.tail
    return min(max(round(n * math.sqrt(rho / max(d, 2)) / per), few), many)
