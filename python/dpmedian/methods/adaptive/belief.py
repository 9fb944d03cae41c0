"""The belief of a run: an estimate of the median from all noisy gradients so far and a Hessian with an unknown error.

Near the median, a noisy gradient at the point p is modeled as b + (H + E)(p - reference) + noise + model error. H is
the released Hessian, and E is its error. E is the same for all gradients and has a Gaussian prior. The variance of the
prior depends on the noise of H, on the smoothing of H, and on the distance from the point at which H was measured. A
ridge regression estimates b, E and the median. If H is accurate, the estimate is the weighted mean of all Newton steps.
Otherwise differences of gradients correct H, as in a quasi-Newton method. Everything here is post-processing.

In many dimensions only a few eigenvalues of the Hessian are larger than its noise, and the others are taken to be
equal. So the regression works in the span of the eigenvectors of these few eigenvalues and of all points and gradients.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmedian.methods.adaptive.constants import Constants
from dpmedian.methods.adaptive.queries import MANY_DIMENSIONS, Gradient
from dpmedian.methods.contract import cloud_curvature

__all__ = ["Belief", "HessianModel"]

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

# A vector counts as lying in a span if its part outside of the span, relative to the length of the vector, is below the
# square root of the machine precision.
_IN_SPAN = math.sqrt(sys.float_info.epsilon)


@dataclass(frozen=True, eq=False)
class HessianModel:
    """The Hessian in units of n/core radius: its eigenvalues and eigenvectors.

    Without eigenvectors (None), the axes of the coordinates are the eigenvectors. If there are fewer eigenvectors than
    eigenvalues, they belong to the first eigenvalues, and the other eigenvalues are equal.
    """

    values: Vector
    vectors: Matrix | None
    found: Vector
    """The eigenvalues as released. `values` are slightly larger, so that steps are slightly shorter."""
    deviation: float
    """The standard deviation of the noise of each eigenvalue."""
    noise: float
    """The variance that the noise of the release causes in each coordinate of E x, for |x| = 1."""
    smoothing: float
    at: Vector | None
    """The point at which the Hessian was measured. None for a guess."""

    @classmethod
    def guess(cls, d: int) -> HessianModel:
        """An isotropic guess, whose relative error is taken to be 100 %."""
        values = np.full(d, cloud_curvature(d))
        return cls(values, None, values, float(values[0]), float(values[0]) ** 2 / d, 0.0, None)

    def away(self, point: Vector, core_radius: float) -> float:
        """The distance of a point from the point at which the Hessian was measured, in core radii."""
        return 0.0 if self.at is None else float(np.linalg.norm((point - self.at) / core_radius))

    def doubt(self, point: Vector, core_radius: float, bias: float) -> float:
        """The variance of each coordinate of E x for |x| = 1, at a point."""
        far = math.hypot(self.smoothing, self.away(point, core_radius))
        return self.noise + (bias * float(self.values.mean()) * far) ** 2 / len(self.values)


class _Span:
    """The coordinates of the regression, for points in core radii relative to an origin, and gradients divided by n.

    In few dimensions the basis consists of all eigenvectors. In many dimensions it is an orthonormal basis of the span
    of the known eigenvectors and of all points and gradients so far. The estimate never leaves this span.
    """

    def __init__(self, hessian: HessianModel, origin: Vector, core_radius: float, n: int) -> None:
        d = len(origin)
        own = np.eye(d if d <= MANY_DIMENSIONS else 0, d) if hessian.vectors is None else hessian.vectors.T
        self._hessian, self._own, self._size = hessian, len(own), len(own)
        self._origin, self._core_radius, self._n = origin, core_radius, n
        self._basis = np.ascontiguousarray(own)
        self._points: list[Vector] = []
        self._gradients: list[Vector] = []
        self.noise: list[float] = []
        """The variances of the noise of the gradients relative to n^2."""

    @property
    def values(self) -> Vector:
        """The eigenvalues of the Hessian, which is diagonal in these coordinates."""
        values = self._hessian.values
        return np.concatenate([values[: self._own], np.full(self._size - self._own, values[-1])])

    def points(self, start: int = 0) -> Matrix:
        return self._rows(self._points[start:])

    def gradients(self, start: int = 0) -> Matrix:
        return self._rows(self._gradients[start:])

    def _rows(self, found: Sequence[Vector]) -> Matrix:
        """A matrix with these rows. Rows from before the span grew are zero in the new directions."""
        rows = np.zeros((len(found), self._size))
        for row, coordinates in zip(rows, found, strict=True):
            row[: len(coordinates)] = coordinates
        return rows

    def add(self, gradient: Gradient) -> None:
        self._points.append(self.at(gradient.point))
        self._gradients.append(self._coordinates(gradient.gradient / self._n))
        self.noise.append(gradient.variance / self._n**2)

    def at(self, point: Vector) -> Vector:
        return self._coordinates((point - self._origin) / self._core_radius)

    def back(self, step: Vector) -> Vector:
        """A step in the units of the data."""
        return np.asarray(self._core_radius * (step @ self._basis[: self._size]))

    def _coordinates(self, x: Vector) -> Vector:
        """The coordinates of x. The span grows if x does not lie in the span."""
        basis = self._basis[: self._size]
        found = basis @ x
        if self._size == len(x):
            return np.asarray(found)
        rest = x - found @ basis
        left, length = float(np.linalg.norm(rest)), float(np.linalg.norm(x))
        if not left > _IN_SPAN * length:
            return np.asarray(found)
        again = basis @ rest
        found, rest = found + again, rest - again @ basis
        left = float(np.linalg.norm(rest))
        if self._size == len(self._basis):
            self._basis = np.vstack([self._basis, np.empty((max(16, self._size), len(x)))])
        self._basis[self._size] = rest / left
        self._size += 1
        return np.append(found, left)


class Belief:
    """The belief: H (median - point) is normally distributed, with the variance 1/precision in every coordinate."""

    def __init__(self, n: int, d: int, c: Constants, inside: Callable[[Vector], Vector]) -> None:
        self.n, self.d, self.c, self.inside = n, d, c, inside
        self.gradients: list[Gradient] = []
        self._span: _Span | None = None
        self.innovation = 0.0
        """The squared norm of the newest gradient minus its prediction, in the metric of H^-1, over its expectation."""

    def begin(self, point: Vector, variance: float) -> None:
        """Begin at a point whose gradient is zero up to this variance. Earlier gradients are deleted."""
        self.gradients, self._span = [], None
        self.prior = Gradient(point, np.zeros(self.d), variance)
        self.point, self.precision = point, 1.0 / variance

    def place(self, core_radius: float, hessian: HessianModel) -> None:
        self.core_radius, self.hessian, self._span = core_radius, hessian, None

    def use(self, hessian: HessianModel) -> None:
        """Use a new Hessian, and repeat the regression."""
        self.hessian, self._span = hessian, None
        self._update()

    @property
    def away(self) -> float:
        """The distance of the believed median from the point at which the Hessian was measured, in core radii."""
        return self.hessian.away(self.point, self.core_radius)

    @property
    def hessian_is_far(self) -> bool:
        """Whether the distance from that point causes a larger error of the Hessian than its noise."""
        hessian = self.hessian
        return self.c.bias * self.away * float(hessian.values.mean()) > hessian.deviation

    @property
    def consistent(self) -> bool:
        """Whether the newest gradient is consistent with the belief before it (chi-square test)."""
        return self.innovation < 1.0 + self.c.surprising * math.sqrt(2.0 / self.d)

    def learn(self, gradient: Gradient) -> None:
        """Add a gradient, queried at the believed median or on the way to it."""
        span, values = self.span, self.hessian.values
        expected = gradient.variance + 1.0 / self.precision + self.model_variance()
        self.gradients.append(gradient)
        span.add(gradient)
        at = span.at(self.point)
        root = (span.gradients(-1)[0] + (at - span.points(-1)[0]) * span.values) / np.sqrt(span.values)
        self.innovation = self.n**2 * float(root @ root) / float((1.0 / values).sum()) / expected
        self._update()

    @property
    def span(self) -> _Span:
        """The coordinates in which the regression works, with all gradients so far."""
        if self._span is None:
            self._span = _Span(self.hessian, self.prior.point, self.core_radius, self.n)
            for gradient in (self.prior, *self.gradients):
                self._span.add(gradient)
        return self._span

    def model_variance(self) -> float:
        """The variance of each coordinate of the model error of a gradient at the believed median."""
        hessian, n = self.hessian, self.n
        square = min(float((1.0 / hessian.values**2).sum()) / self.precision / n**2, 1.0)
        of_hessian = hessian.doubt(self.point, self.core_radius, self.c.bias) * square
        return n**2 * (of_hessian + (self.c.bend * square) ** 2 / self.d)

    def _update(self) -> None:
        """Repeat the regression, linearized at the point that was believed before."""
        span = self.span
        at, noise, values = span.at(self.point), np.array(span.noise), span.values
        prior = self.hessian.doubt(self.point, self.core_radius, self.c.bias)
        away = span.points() - at
        products = away @ away.T
        # The error of the Hessian and the model error are the same for all gradients at one place.
        covariance = np.diag(noise) + prior * products + (self.c.bend * products) ** 2 / self.d
        unit = float(np.diag(covariance).min())
        inverse = np.linalg.inv(covariance / unit)
        weights = inverse.sum(axis=0)
        residuals = span.gradients() - away * values
        mean = weights @ residuals / weights.sum()
        # The posterior mean of E has low rank, so H + E is inverted by Woodbury's formula.
        left = prior / unit * (inverse @ (residuals - mean)).T / values[:, None]
        plain = -mean / values
        step = plain - left @ np.linalg.lstsq(np.eye(len(away)) + away @ left, away @ plain, rcond=None)[0]
        if not step @ mean < 0.0:
            # This E is impossible, because F is convex. Gradients probably jump across a nonsmooth point.
            step = plain
        # A repeated regression could give all the weight to a single gradient near the new point, and step back.
        step /= max(float(np.linalg.norm(step)), 1.0)
        self.point = self.inside(self.point + span.back(step))
        self.precision = float(weights.sum()) / unit / self.n**2

    def pull(self, count: int, sampling: float = 0.0) -> float:
        """The length of the mean of the last gradients over n; 0 if noise and this sampling variance explain it."""
        late, c = self.gradients[-count:], self.c
        weights = np.array([1.0 / gradient.variance for gradient in late])
        mean = weights @ np.array([gradient.gradient for gradient in late]) / weights.sum()
        noise = self.d / float(weights.sum())
        square = float(mean @ mean) - noise
        explained = max((c.pull * self.n) ** 2, (2.0 * c.surprising) ** 2 * (noise + sampling))
        return math.sqrt(square) / self.n if square > explained else 0.0

    def squares(self, count: int) -> float:
        """The mean squared norm of the last gradients, minus the expected one of the noise, divided by n^2."""
        late = self.gradients[-count:]
        return float(np.mean([g.gradient @ g.gradient - self.d * g.variance for g in late])) / self.n**2
