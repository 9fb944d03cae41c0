"""What a confidence region may cost a run: functions of public parameters."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpmedian.inference.error import KNOWN
from dpmedian.mechanisms.hessian import MOMENTS_DIMENSION
from dpmedian.methods.adaptive.constants import Constants
from dpmedian.methods.contract import worth
from dpmedian.parameters import PublicParameters

__all__ = ["Shares"]


@dataclass(frozen=True)
class Shares:
    """What each release may cost, in rho; 0 where its noise would hide it.

    `ellipsoid` says whether the directions are known well enough for a covariance. On the line they are known anyhow.
    """

    curvature: float
    hessian: float
    directions: float
    ellipsoid: bool

    @classmethod
    def of(cls, p: PublicParameters, rho: float, c: Constants) -> Shares:
        """For so many records in d dimensions; where n is private, for a noisy number of them."""
        n, d = max(p.size, 1), p.d
        curvature = c.region_curvature.of(rho, n, d)
        if not 1 < d <= MOMENTS_DIMENSION:
            return cls(curvature, 0.0, 0.0, d == 1)
        hessian = c.region_hessian.of(rho, n, d + 1)
        if math.sqrt(2.0 * d / hessian / worth(p)) / n > c.useless[0] * c.smoothing[1]:
            return cls(curvature, 0.0, 0.0, False)
        directions = c.region_directions.of(rho, n, d**2 * (d + 1))
        # The noise has a deviation of 1/sqrt(rho), by a sensitivity of sqrt(2), or of 1 where a record is added or
        # removed, and as a matrix eigenvalues of about sqrt((d + 1)/2) times that; the directions have n/d in the mean.
        known = math.sqrt((d + 1.0) / (2.0 * directions * worth(p))) < KNOWN * n / d
        # What stands out of the noise improves the ball, too, and needs less.
        return cls(curvature, hessian, directions if known else 0.5 * directions, known)
