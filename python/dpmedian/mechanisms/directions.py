"""A noisy gradient and the second moments of the directions to all records, in one release. Proof: directions.md."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmedian._core import Tape
from dpmedian.mechanisms.gaussian import Gaussian
from dpmedian.mechanisms.hessian import FINEST_PRODUCTS, symmetric
from dpmedian.parameters import PublicParameters
from dpmedian.sources.protocol import Source
from dpmedian.statistics import Bound

__all__ = ["FREE_WEIGHT", "LEAST_WEIGHT", "GradientAndDirections"]

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

# Under replacement, directions with a weight of up to sqrt(1/2) do not increase the sensitivity of the gradient in
# exact arithmetic. With this slightly smaller weight, rounding adds less than 0.3 % to the sensitivity.
FREE_WEIGHT = math.sqrt(0.45)
# The smallest weight. The Rust core rounds weights down to multiples of 2^-30. From 2^-20 on, the relative error of a
# weight is below 2^-10.
LEAST_WEIGHT = 2.0**-20


@dataclass(frozen=True)
class GradientAndDirections(Gaussian):
    """The gradient of the sum of distances, and `weight` times the second moments of the directions to all records.

    Neighbors and sensitivity: the statistic states them. The sensitivity is 2 under replacement, as for the gradient
    alone, and sqrt(1 + weight^2) under add/remove, plus the rounding. Cost: one Gaussian release. Failure: none.
    """

    weight: float

    @classmethod
    def of(cls, name: str, rho: float, parameters: PublicParameters, weight: float) -> GradientAndDirections:
        """Calibrate the release to rho. `weight` is at most `FREE_WEIGHT`."""
        return cls.of_statistic(
            name,
            "gradient and directions",
            rho,
            parameters,
            {"d": parameters.d, "weight": weight},
            finest=FINEST_PRODUCTS,
            weight=weight,
        )

    @staticmethod
    def noise_of(rho: float, parameters: PublicParameters, weight: float) -> float:
        """The standard deviation of the noise on the diagonal of the second moments, if the release costs rho."""
        bound = Bound("gradient and directions", parameters.neighbours, (("d", parameters.d), ("weight", weight)))
        return math.ldexp(bound(FINEST_PRODUCTS), -FINEST_PRODUCTS) / (weight * math.sqrt(2.0 * rho))

    def at(self, source: Source, tape: Tape, theta: Vector) -> tuple[Vector, Matrix]:
        """The noisy gradient, and the noisy sum over the records of u u^T, where u is the unit vector from theta to a
        record.

        The noise of the matrix has the standard deviation sigma/weight on the diagonal and sigma/(sqrt(2) weight)
        elsewhere.
        """
        d = len(theta)
        vector = self.query(source, tape, theta=theta, weight=self.weight)
        return vector[:d], symmetric(vector[d:], d) / self.weight
