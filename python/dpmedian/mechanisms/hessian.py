"""The Hessian of the sum of distances, or its mean over all directions alone. Proof: hessian.md."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmedian._core import Tape
from dpmedian.accounting.protection import Neighbours, relation_of
from dpmedian.mechanisms.gaussian import Gaussian
from dpmedian.parameters import PublicParameters
from dpmedian.sources.protocol import Source
from dpmedian.statistics import Bound
from dpmedian.statistics import Curvature as CurvatureStatistic
from dpmedian.statistics import Hessian as HessianStatistic

__all__ = ["FINEST_PRODUCTS", "MOMENTS_DIMENSION", "Curvature", "Hessian", "symmetric"]

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

# What a record contributes to the curvature is rounded to multiples of 2^-20 before it is summed.
_COARSEST_CURVATURE = 20
# The core multiplies directions on a lattice of multiples of 2^-20, or 2^-11 in more than 16 dimensions: their products
# are multiples of 2^-40.
FINEST_PRODUCTS = 40
# The sensitivity of second moments is proved up to this many dimensions.
MOMENTS_DIMENSION = 4000


@dataclass(frozen=True)
class Curvature(Gaussian):
    """The mean curvature of the sum of distances, smoothed at a radius: a sum over records of a value in [0, 1].

    Neighbors and sensitivity: those of the statistic, 1 under both relations. Cost: one Gaussian release. Failure:
    none.
    """

    @classmethod
    def of(cls, name: str, rho: float, parameters: PublicParameters) -> Curvature:
        return cls.calibrate(
            name,
            Bound.of("curvature", parameters.protection),
            rho,
            largest=parameters.records_most,
            coarsest=_COARSEST_CURVATURE,
        )

    def at(self, source: Source, tape: Tape, theta: Vector, radius: float) -> float:
        """The noisy sum over records of (1 - 1/d) radius/distance, or of 1 within the radius.

        Divided by the radius it is the mean over all directions of the second derivative of the sum of distances, where
        records within the radius count as if their distances were smoothed at it.
        """
        statistic = CurvatureStatistic(np.ascontiguousarray(theta), radius, self.bits)
        return float(self.release(tape, source.answer(statistic))[0])


@dataclass(frozen=True)
class Hessian(Gaussian):
    """The Hessian of the sum of distances, smoothed at a radius: its curvature K and its second moments T.

    Neighbors and sensitivity: those of the statistic, sqrt(2) under replacement, which T alone would have, and under
    add/remove sqrt(1 + a^2 (1 - 1/d)^2) with a the weight of K; plus the rounding. Cost: one Gaussian release. Failure:
    none.
    """

    weight: float
    """The weight of the curvature in the released vector."""

    @classmethod
    def of(cls, name: str, rho: float, parameters: PublicParameters) -> Hessian:
        d, weight = parameters.d, _curvature_weight(parameters.d, parameters.neighbours)
        return cls.calibrate(
            name,
            Bound.of("hessian", parameters.protection, d=d, weight=weight),
            rho,
            largest=_largest(parameters),
            coordinates=1 + d * (d + 1) // 2,
            finest=FINEST_PRODUCTS,
            weight=weight,
        )

    @staticmethod
    def noise_of(rho: float, parameters: PublicParameters) -> tuple[float, float]:
        """The standard deviations of T, on its diagonal, and of K in a release that costs rho, up to rounding."""
        d, weight = parameters.d, _curvature_weight(parameters.d, parameters.neighbours)
        bound = HessianStatistic.bound(d, weight, FINEST_PRODUCTS).under(parameters.neighbours)
        noise = math.ldexp(bound, -FINEST_PRODUCTS) / math.sqrt(2.0 * rho)
        return noise, noise / weight

    def at(self, source: Source, tape: Tape, theta: Vector, radius: float) -> tuple[float, Matrix]:
        """The noisy curvature, and the noisy symmetric matrix of second moments.

        The curvature has a standard deviation of noise/weight. Entries on the diagonal have the variance noise^2,
        others half of it.
        """
        statistic = HessianStatistic(np.ascontiguousarray(theta), radius, self.weight, self.bits)
        vector = self.release(tape, source.answer(statistic))
        return float(vector[0]) / self.weight, symmetric(vector[1:], len(theta))


def _curvature_weight(d: int, neighbours: Neighbours) -> float:
    """The weight of K beside T, in two dimensions and more.

    Under replacement the largest at which K costs nothing. Under add/remove the one that leaves the least noise in a
    row of the Hessian, in which T has the variance (1 + a^2 q^2)(d + 1)/2 and K (1 + a^2 q^2)/a^2, with q = 1 - 1/d;
    and no larger than that a record within the radius has no more than one beyond it.
    """
    q = 1.0 - 1.0 / d
    if relation_of(neighbours).size_is_public:
        return min(math.sqrt(2.0), 1.0 / q)
    return min(math.sqrt(math.sqrt(2.0 / (d + 1.0)) / q), 1.0 / math.sqrt(1.0 - q**2))


def symmetric(triangle: Vector, d: int) -> Matrix:
    """The matrix of an upper triangle whose entries off the diagonal have a factor sqrt(2)."""
    matrix = np.zeros((d, d))
    matrix[np.tri(d, dtype=bool).T] = triangle
    matrix += matrix.T
    matrix *= math.sqrt(0.5)
    matrix.flat[:: d + 1] *= math.sqrt(0.5)
    return matrix


def _largest(parameters: PublicParameters) -> int | None:
    """The largest possible entry of the vector: twice the number of records, because of the curvature's weight."""
    return None if parameters.records_most is None else 2 * parameters.records_most
