"""The Hessian of the sum of distances, in two releases: its mean and its directions. Proof: hessian.md."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmedian._core import Tape
from dpmedian.mechanisms.gaussian import Gaussian
from dpmedian.parameters import PublicParameters
from dpmedian.sources.protocol import Source
from dpmedian.statistics import Bound
from dpmedian.statistics import Curvature as CurvatureStatistic
from dpmedian.statistics import SecondMoments as SecondMomentsStatistic

__all__ = ["MOMENTS_DIMENSION", "Curvature", "SecondMoments"]

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

# What a record contributes to the curvature is rounded to multiples of 2^-20 before it is summed.
_COARSEST_CURVATURE = 20
# The core multiplies directions on a lattice of multiples of 2^-20: their products are multiples of 2^-40.
_FINEST_MOMENTS = 40
# The sensitivity of second moments is proved up to this many dimensions.
MOMENTS_DIMENSION = 4000


@dataclass(frozen=True)
class Curvature(Gaussian):
    """The mean curvature of the sum of distances, smoothed at a radius: a sum over records of a value in [0, 1].

    Neighbours and sensitivity: those of the statistic, 1 under both relations. Cost: one Gaussian release. Failure:
    none.
    """

    @classmethod
    def of(cls, name: str, rho: float, parameters: PublicParameters) -> Curvature:
        spec = Gaussian.calibrate(
            name,
            Bound.of("curvature", parameters.neighbours, parameters.weighted),
            rho,
            largest=parameters.records_most,
            coarsest=_COARSEST_CURVATURE,
        )
        return cls(**vars(spec))

    def at(self, source: Source, tape: Tape, theta: Vector, radius: float) -> float:
        """The noisy sum over records of (1 - 1/d) radius/distance, or of 1 within the radius.

        Divided by the radius it is the mean over all directions of the second derivative of the sum of distances, where
        records within the radius count as if their distances were smoothed at it.
        """
        statistic = CurvatureStatistic(np.ascontiguousarray(theta), radius, self.bits)
        return float(self.release(tape, source.answer(statistic))[0])


@dataclass(frozen=True)
class SecondMoments(Gaussian):
    """The second moments of the directions to the records, weighted by radius/distance beyond a radius.

    Neighbours and sensitivity: those of the statistic, sqrt(2) in the Frobenius norm under replacement and 1 under
    add/remove, plus the rounding. Cost: one Gaussian release. Failure: none.
    """

    @classmethod
    def of(cls, name: str, rho: float, parameters: PublicParameters) -> SecondMoments:
        d = parameters.d
        spec = Gaussian.calibrate(
            name,
            Bound.of("second moments", parameters.neighbours, parameters.weighted, d=d),
            rho,
            largest=parameters.records_most,
            coordinates=d * (d + 1) // 2,
            finest=_FINEST_MOMENTS,
        )
        return cls(**vars(spec))

    def at(self, source: Source, tape: Tape, theta: Vector, radius: float | None) -> Matrix:
        """The noisy symmetric matrix: entries on the diagonal have the variance noise^2, others half of it.

        Without a radius every direction has the weight 1.
        """
        statistic = SecondMomentsStatistic(np.ascontiguousarray(theta), radius, self.bits)
        triangle = self.release(tape, source.answer(statistic))
        matrix = np.zeros((len(theta), len(theta)))
        matrix[np.triu_indices(len(theta))] = triangle
        # Off the diagonal the statistic has a factor sqrt(2), so that its norm is that of the matrix.
        return (matrix + matrix.T) * np.where(np.eye(len(theta), dtype=bool), 0.5, np.sqrt(0.5))
