"""What a run believes: where the median is, from all noisy gradients so far and an uncertain Hessian.

Near the median a noisy gradient at p is b + (H + E)(p - reference) + noise + model error. E is the error of the
Hessian H; it is the same for all gradients and has a Gaussian prior: the noise of H, its smoothing, and the distance
from where it was measured. This is a ridge regression. If H is good, the point that it gives is the precision-weighted
mean of all Newton steps; if not, the differences of gradients correct H, as in a quasi-Newton method. Gradients from
far away have little weight by their model error. Everything here is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmedian.inference import Noisy
from dpmedian.methods.adaptive.constants import Constants
from dpmedian.methods.adaptive.queries import Gradient

__all__ = ["Belief", "HessianModel", "Released"]

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

# The curvature of a cloud before it is measured, in units of (1 - 1/d) n/core radius: a little too stiff is safe.
_CLOUD = 1.15
# How often the regression is repeated around the point that it found.
_ROUNDS = 2
_TINY = 1e-300


class Released(NamedTuple):
    """A Hessian as it was released: smoothed at a radius, over this many records."""

    radius: float
    records: int
    curvature: float
    noise: float
    moments: Noisy | None


@dataclass(frozen=True, eq=False)
class HessianModel:
    """The Hessian in units of n/core radius, by eigenvalues and eigenvectors (None: those of the coordinates)."""

    values: Vector
    vectors: Matrix | None
    found: Vector
    """The eigenvalues as released; `values` are a little stiffer."""
    deviation: float
    """Standard deviation of each eigenvalue."""
    noise: float
    """Variance of each coordinate of E x for |x| = 1, by the noise of the release alone."""
    smoothing: float
    at: Vector | None
    """Where it was measured; None for the guess."""

    @classmethod
    def guess(cls, d: int) -> HessianModel:
        """Isotropic guess; its relative error is taken to be 100 %."""
        values = np.full(d, _CLOUD * (1.0 - 1.0 / d if d > 1 else 0.5))
        return cls(values, None, values, float(values[0]), float(values[0]) ** 2 / d, 0.0, None)

    def along(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """A vector, or rows, in the basis of the eigenvectors."""
        return x if self.vectors is None else np.asarray(x @ self.vectors)

    def back(self, x: Vector) -> Vector:
        return x if self.vectors is None else np.asarray(x @ self.vectors.T)

    def doubt(self, point: Vector, core_radius: float, bias: float) -> float:
        """Variance of each coordinate of E x for |x| = 1, at a point."""
        away = 0.0 if self.at is None else float(np.linalg.norm((point - self.at) / core_radius))
        return self.noise + (bias * float(self.values.mean()) * math.hypot(self.smoothing, away)) ** 2 / len(
            self.values
        )


class Belief:
    """The median is normal around `point`; H times its error has the variance 1/precision in every coordinate."""

    def __init__(self, n: int, d: int, c: Constants, inside: Callable[[Vector], Vector]) -> None:
        self.n, self.d, self.c, self.inside = n, d, c, inside
        self.gradients: list[Gradient] = []
        self.innovation = 0.0
        """Of the newest gradient: its squared norm in the metric of H, over what was expected."""
        self.model_error = 0.0
        """The length of the mean model error of all gradients: a gradient that is not noise."""

    def begin(self, point: Vector, variance: float) -> None:
        """Begins at a point whose gradient vanishes with this variance; earlier gradients are forgotten."""
        self.gradients = []
        self.prior = Gradient(point, np.zeros(self.d), variance)
        self.point, self.precision = point, 1.0 / variance

    def place(self, core_radius: float, hessian: HessianModel) -> None:
        self.core_radius, self.hessian = core_radius, hessian

    def use(self, hessian: HessianModel) -> None:
        """A new Hessian: the regression is repeated with it."""
        self.hessian = hessian
        self._update()

    @property
    def consistent(self) -> bool:
        """Whether the newest gradient was what the belief before it expected (chi-square test)."""
        return self.innovation < 1.0 + self.c.surprising * math.sqrt(2.0 / self.d)

    def learn(self, gradient: Gradient) -> None:
        """One more gradient, queried where the median was believed to be or on the way there."""
        hessian = self.hessian
        expected = gradient.variance + 1.0 / self.precision + self.model_variance()
        away = hessian.along((self.point - gradient.point) / self.core_radius) * hessian.values
        root = (hessian.along(gradient.gradient) + self.n * away) / np.sqrt(hessian.values)
        self.innovation = float(root @ root) / float((1.0 / hessian.values).sum()) / expected
        self.gradients.append(gradient)
        self._update()

    def model_variance(self) -> float:
        """The variance of each coordinate of what the model will not explain of a gradient at the believed point."""
        hessian, n = self.hessian, self.n
        square = min(float((1.0 / hessian.values**2).sum()) / self.precision / n**2, 1.0)
        of_hessian = hessian.doubt(self.point, self.core_radius, self.c.bias) * square
        return n**2 * (of_hessian + (self.c.bend * square) ** 2 / self.d)

    def _update(self) -> None:
        """The regression, around the point that it finds."""
        hessian, every = self.hessian, [*self.gradients, self.prior]
        points = np.array([gradient.point for gradient in every])
        gradients = hessian.along(np.array([gradient.gradient for gradient in every])) / self.n
        noise = np.array([gradient.variance for gradient in every]) / self.n**2
        for _ in range(_ROUNDS):
            prior = hessian.doubt(self.point, self.core_radius, self.c.bias)
            away = hessian.along((points - self.point) / self.core_radius)
            squares = (away**2).sum(axis=1)
            variances = noise + (self.c.bend * squares) ** 2 / self.d
            unit = float(variances.min())
            inverse = np.linalg.inv((np.diag(variances) + prior * away @ away.T) / unit)
            weights = inverse.sum(axis=0)
            residuals = gradients - away * hessian.values
            mean = weights @ residuals / weights.sum()
            # The posterior mean of E is of low rank, so H + E is inverted by Woodbury's formula.
            left = prior / unit * (inverse @ (residuals - mean)).T / hessian.values[:, None]
            plain = -mean / hessian.values
            step = plain - left @ np.linalg.solve(np.eye(len(away)) + away @ left, away @ plain)
            step *= min(1.0, 1.0 / max(float(np.linalg.norm(step)), _TINY))
            self.point = self.inside(self.point + self.core_radius * hessian.back(step))
        self.precision = float(weights.sum()) / unit / self.n**2
        self.model_error = self.c.bend * self.n * float(np.abs(weights / weights.sum()) @ squares)

    def mean(self, count: int) -> tuple[Vector, float, float]:
        """The mean of the last gradients, the variance of its coordinates, and its squared norm without noise."""
        late = self.gradients[-count:]
        weights = np.array([1.0 / gradient.variance for gradient in late])
        mean = np.asarray(weights @ np.array([gradient.gradient for gradient in late]) / weights.sum())
        variance = 1.0 / float(weights.sum())
        return mean, variance, float(mean @ mean) - self.d * variance

    def squares(self, count: int) -> float:
        """The mean of the squared norms of the last gradients over n^2, without noise."""
        late = self.gradients[-count:]
        return float(np.mean([g.gradient @ g.gradient - self.d * g.variance for g in late])) / self.n**2
