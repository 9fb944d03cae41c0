"""What a confidence region may cost a run, and what it will know: functions of public parameters."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpmedian.inference.error import KNOWN
from dpmedian.mechanisms.directions import FREE_WEIGHT, GradientAndDirections
from dpmedian.mechanisms.hessian import MOMENTS_DIMENSION, Hessian
from dpmedian.methods.adaptive.constants import Constants
from dpmedian.methods.adaptive.steps import steps_of
from dpmedian.methods.contract import worth
from dpmedian.parameters import PublicParameters
from dpmedian.postprocess import semicircle

__all__ = ["Shares"]


@dataclass(frozen=True)
class Shares:
    """What each release may cost, in rho; 0 where its noise would hide it.

    The curvature is released alone where the Hessian is not. `directions` is the weight of the directions beside the
    gradients that carry them, and `every` says that all gradients of the descent do once the Hessian is known: if not,
    one does. `ellipsoid` says whether they will be known well enough for a covariance, unless a run needs more for
    other things than most do. On the line they are known anyhow.
    """

    curvature: float
    hessian: float
    directions: float
    every: bool
    ellipsoid: bool

    @classmethod
    def of(cls, p: PublicParameters, rho: float, c: Constants, sampled_all: bool) -> Shares:
        """For so many records in d dimensions; where n is private, for a noisy number of them."""
        n, d = max(p.size, 1), p.d
        curvature = c.region_curvature.of(rho, n, d)
        if not 1 < d <= MOMENTS_DIMENSION:
            return cls(curvature, 0.0, 0.0, False, d == 1)
        hessian = c.region_hessian.of(rho, n, d + 1)
        if semicircle(Hessian.noise_of(hessian, p)[0], d) / n > c.useless[0] * c.smoothing[1]:
            return cls(curvature, 0.0, 0.0, False, False)

        def weight_of(carriers: float) -> float:
            """Of the directions in gradients that cost this together."""
            if p.neighbours == "replace":
                return FREE_WEIGHT
            # They are not free: a weight of b costs b^2/(1 + b^2) of the gradients.
            weight = math.sqrt(c.region_directions.of(rho, n, d**2 * (d + 1)) / carriers)
            return min(max(weight, c.least_weight), FREE_WEIGHT)

        def known(carriers: float) -> bool:
            """Whether their noise is small beside the directions, whose eigenvalues are n/d in the mean."""
            noise = GradientAndDirections.noise_of(carriers, p, weight_of(carriers))
            # As a matrix the noise has eigenvalues of about sqrt((d + 1)/2) times its deviation.
            return noise * math.sqrt((d + 1.0) / 2.0) < KNOWN * n / d

        if not sampled_all:
            last = c.carrier[1] * rho
            return cls(curvature, hessian, weight_of(last), False, known(last))
        step = c.carrier[0] * rho / steps_of(worth(p) * n, d, rho, c)
        late = c.carrier[0] * rho * (1.0 - c.again[0])
        # Where even all of them do not show the directions, or there are very many, one will do: it takes less time.
        every = known(late) and d <= c.many_dimensions
        return cls(curvature, hessian, weight_of(late if every else step), every, every or known(step))
