"""What to expect of the default method, from public parameters: see "Why it works" in adaptive.md."""

from __future__ import annotations

import math

from dpmedian.mechanisms.gradient import NoisyGradient
from dpmedian.methods.adaptive.constants import Constants
from dpmedian.methods.contract import Prediction, cloud_curvature
from dpmedian.parameters import PublicParameters

__all__ = ["chi_square_90", "predict"]


def predict(parameters: PublicParameters, rho: float, descent: NoisyGradient, c: Constants) -> Prediction:
    """What a typical run on a cloud gives.

    The worst case uses |F(a) - F(b)| <= n |a - b| and that F(median) is at least n/2 times the median distance.
    """
    n, d = parameters.n, parameters.d
    # The noise of one gradient, and of the mean of all, relative to the largest gradient.
    jitter = math.sqrt(d) * descent.noise / n
    noise = jitter / math.sqrt(descent.releases)
    error = noise / cloud_curvature(d)
    # The curvature times F/n^2 is near 1 - 1/(2d). Medians, not means: of a chi-square with d degrees of freedom.
    excess = 0.5 * noise**2 / (1.0 - 0.5 / d) * (1.0 - 2.0 / (9.0 * d)) ** 3 * (1.0 + 0.5 * jitter)
    signal = n * math.sqrt(rho / max(d, 2))
    width = c.signal_width_line if d == 1 else c.signal_width
    failure = math.exp(min((c.signal - signal) / width, 0.0))
    # On the line two halves may have nothing between them: a slope is seen there only above the noise of one step.
    worst = (4.0 * math.sqrt(descent.releases) if d == 1 else 2.0) * error
    return Prediction(excess=excess, excess_if_many_coincide=worst, relative_error=error, failure=failure)


def chi_square_90(d: int) -> float:
    """The 90 % quantile of a chi-square with d degrees of freedom (Wilson and Hilferty)."""
    return d * (1.0 - 2.0 / (9.0 * d) + 1.2816 * math.sqrt(2.0 / (9.0 * d))) ** 3
