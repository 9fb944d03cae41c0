"""The Hessian of the sum of distances, or only its mean over all directions. Proof: hessian.md."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmedian._core import Tape
from dpmedian.accounting.protection import Relation
from dpmedian.mechanisms.gaussian import Gaussian
from dpmedian.parameters import PublicParameters
from dpmedian.sources.protocol import Source
from dpmedian.statistics import Bound

__all__ = ["FINEST_PRODUCTS", "MOMENTS_DIMENSION", "Curvature", "Hessian", "symmetric"]

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

# The contribution of a record to the curvature is rounded to multiples of 2^-20 before it is summed.
_COARSEST_CURVATURE = 20
# The Rust core multiplies coordinates of directions, which are multiples of 2^-20, or of 2^-11 in more than 16
# dimensions. So the products are multiples of 2^-40.
FINEST_PRODUCTS = 40
# The sensitivity of second moments is proved up to this many dimensions.
MOMENTS_DIMENSION = 4000


@dataclass(frozen=True)
class Curvature(Gaussian):
    """The curvature of the sum of distances, averaged over all directions and smoothed at a radius. It is a sum over
    the records of values in [0, 1].

    Neighbors and sensitivity: the statistic states them. The sensitivity is 1 under both relations. Cost: one Gaussian
    release. Failure: none.
    """

    @classmethod
    def of(cls, name: str, rho: float, parameters: PublicParameters) -> Curvature:
        return cls.of_statistic(name, "curvature", rho, parameters, coarsest=_COARSEST_CURVATURE)

    def at(self, source: Source, tape: Tape, theta: Vector, radius: float) -> float:
        """The noisy sum over the records of 1 within the radius, and of (1 - 1/d) radius/distance beyond the radius.

        Divided by the radius, the sum is the second derivative of the sum of distances, averaged over all directions.
        Within the radius the distance is smoothed, so that its second derivative is 1/radius in every direction.
        """
        return float(self.query(source, tape, theta=theta, radius=radius)[0])


@dataclass(frozen=True)
class Hessian(Gaussian):
    """The Hessian of the sum of distances, smoothed at a radius: its curvature K and its second moments T.

    Neighbors and sensitivity: the statistic states them. The sensitivity is sqrt(2) under replacement, the same as of
    T alone. Under add/remove it is sqrt(1 + a^2 (1 - 1/d)^2), where a is the weight of K. The rounding is added to
    both. Cost: one Gaussian release. Failure: none.
    """

    weight: float
    """The weight of the curvature in the released vector."""

    @classmethod
    def of(cls, name: str, rho: float, parameters: PublicParameters) -> Hessian:
        d, weight = parameters.d, _curvature_weight(parameters.d, parameters.protection.relation)
        return cls.of_statistic(
            name,
            "hessian",
            rho,
            parameters,
            {"d": d, "weight": weight},
            largest=_largest(parameters),
            finest=FINEST_PRODUCTS,
            weight=weight,
        )

    @staticmethod
    def noise_of(rho: float, parameters: PublicParameters) -> tuple[float, float]:
        """The standard deviations of the noise on the diagonal of T and on K, for a release that costs rho.

        Rounding is not included.
        """
        d, weight = parameters.d, _curvature_weight(parameters.d, parameters.protection.relation)
        bound = Bound("hessian", parameters.neighbours, (("d", d), ("weight", weight)))
        noise = math.ldexp(bound(FINEST_PRODUCTS), -FINEST_PRODUCTS) / math.sqrt(2.0 * rho)
        return noise, noise / weight

    def at(self, source: Source, tape: Tape, theta: Vector, radius: float) -> tuple[float, Matrix]:
        """The noisy curvature, and the noisy symmetric matrix of second moments.

        The noise of the curvature has the standard deviation sigma/weight. The noise of an entry of the matrix has the
        variance sigma^2 on the diagonal and sigma^2/2 elsewhere.
        """
        vector = self.query(source, tape, theta=theta, radius=radius, weight=self.weight)
        return float(vector[0]) / self.weight, symmetric(vector[1:], len(theta))


def _curvature_weight(d: int, relation: Relation) -> float:
    """The weight a of K relative to T in the released vector, in two dimensions and more.

    Under replacement, it is the largest weight at which K does not increase the sensitivity. Under add/remove, it is
    the weight with the least noise in a row of the Hessian. With q = 1 - 1/d, T adds the variance (1 + a^2 q^2)(d +
    1)/2 to the row, and K adds (1 + a^2 q^2)/a^2. The weight is capped so that a record within the radius moves the
    vector by no more than a record beyond the radius.
    """
    q = 1.0 - 1.0 / d
    if relation.size_is_public:
        return min(math.sqrt(2.0), 1.0 / q)
    return min(math.sqrt(math.sqrt(2.0 / (d + 1.0)) / q), 1.0 / math.sqrt(1.0 - q**2))


def symmetric(triangle: Vector, d: int) -> Matrix:
    """The symmetric matrix of an upper triangle in which entries off the diagonal carry a factor sqrt(2)."""
    upper = np.zeros((d, d))
    upper[np.tri(d, dtype=bool).T] = math.sqrt(0.5) * triangle
    matrix = upper + upper.T
    matrix.flat[:: d + 1] *= math.sqrt(0.5)
    return matrix


def _largest(parameters: PublicParameters) -> int | None:
    """The largest possible entry of the vector: twice the number of records, because of the weight of the curvature."""
    return None if parameters.records_most is None else 2 * parameters.records_most
