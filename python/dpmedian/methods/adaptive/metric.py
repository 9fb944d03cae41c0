"""The inverse Hessian as it is believed, from noisy releases. Everything here is post-processing."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmedian.methods.adaptive.constants import Constants

__all__ = ["Metric", "error_quantile"]

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Metric:
    """The Hessian is the matrix with these eigenvalues and vectors, in units of gradient over `unit`.

    `unit` is a spread over n, so eigenvalues are near 1, whatever the scale of the data. Where the vectors are those of
    the coordinates there are none, for products with a unit matrix take time in many dimensions.
    """

    values: Vector
    vectors: Matrix | None
    unit: float
    doubt: float
    """The variance of what a unit vector times the Hessian has in each coordinate, by the Hessian's own noise."""
    smoothing: float
    """The radius at which it was smoothed, in spreads."""
    found: Vector
    """The eigenvalues as they were found; `values` are on the stiff side, for steps."""
    deviation: float
    """Of each of them, by the Hessian's own noise."""

    @classmethod
    def round(cls, value: float, d: int, unit: float, deviation: float = 0.0) -> Metric:
        """The same curvature in all directions; it may be as wrong as it is large."""
        same = np.full(d, value)
        return cls(same, None, unit, value**2 / d, 1.0, same, deviation)

    def _along(self, vector: Vector) -> Vector:
        """In the basis of the eigenvectors: a vector, or rows."""
        return vector if self.vectors is None else np.asarray(vector @ self.vectors)

    def newton(self, gradient: Vector) -> Vector:
        """The inverse Hessian times a gradient, or every row of a matrix of them: a difference of points."""
        step = self._along(gradient) / self.values
        return np.asarray(self.unit * (step if self.vectors is None else step @ self.vectors.T))

    def left_over(self, gradient: Vector, n: int, bias: float) -> float:
        """The variance of each coordinate of the gradient at the end of its step, by the errors of the Hessian.

        These are its noise, and what smoothing and the length of the step change: `bias` of it for every spread.
        """
        step = self._along(gradient) / self.values
        length = float(np.linalg.norm(step))
        changed = bias * max(self.smoothing, length / n) * float(self.values.mean())
        return (self.doubt + changed**2 / len(step)) * length**2

    @property
    def condition(self) -> float:
        """By which factor eigenvalues differ."""
        return float(self.values.max() / self.values.min())

    def root(self, gradient: Vector) -> Vector:
        """A vector, or rows, whose squared norm is the decrement g^T H^-1 g."""
        return np.asarray(self._along(gradient) / np.sqrt(self.values))

    def squared(self, differences: Matrix) -> Vector:
        """v^T H v of the rows, differences of points, in the units of the decrement."""
        return np.asarray((self._along(differences / self.unit) ** 2) @ self.values)

    @property
    def trace(self) -> float:
        """Of the inverse Hessian: the decrement that noise of variance 1 has in the mean."""
        return float((1.0 / self.values).sum())


def error_quantile(metric: Metric, variance: float, c: Constants, bent: float = 0.0) -> float:
    """The 95 % quantile of |H^-1 noise| (Satterthwaite, Wilson and Hilferty), H drawn from its own noise.

    `bent` is how long a gradient may be that is none of noise, but of what the Hessian changes between the points where
    gradients were asked: it counts as if in the softest direction.

    To second order the mean of 1/h^2 is 1 + 3 (deviation/h)^2 times what it is without noise. Runs whose noise hides a
    soft direction look like any others, so eigenvalues are lowered by part of their deviation first.
    """
    part, least = c.lowered
    low = np.maximum(metric.found - part * metric.deviation, least * metric.deviation)
    parts = variance / low**2 * (1.0 + 3.0 * (metric.deviation / low) ** 2)
    parts[np.argmin(low)] += (bent / float(low.min())) ** 2
    freedom = float(parts.sum()) ** 2 / float((parts**2).sum())
    factor = (1.0 - 2.0 / (9.0 * freedom) + c.level * math.sqrt(2.0 / (9.0 * freedom))) ** 3
    return metric.unit * math.sqrt(float(parts.sum()) * factor)
