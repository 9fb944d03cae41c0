"""What to expect of the default method, from public parameters: see "Why it works" in adaptive.md."""

from __future__ import annotations

import math

from dpmedian.methods.adaptive.constants import Constants
from dpmedian.methods.adaptive.descent import steps_of
from dpmedian.methods.contract import Prediction, cloud_curvature, worth
from dpmedian.parameters import PublicParameters

__all__ = ["predict"]


def predict(parameters: PublicParameters, rho: float, c: Constants) -> Prediction:
    """What a typical run on a cloud gives.

    The worst case uses |F(a) - F(b)| <= n |a - b| and that F(median) is at least n/2 times the median distance.
    """
    n, d = worth(parameters) * parameters.size, parameters.d
    # The noise of one gradient with all of rho, relative to the largest gradient: its sensitivity is 2, or 1 where a
    # record is added or removed, as if there were twice as many.
    signal = n * math.sqrt(rho / d)
    noise = math.sqrt(2.0) / signal
    # What the stages before the last gradients cost, and steps that are not small.
    few = c.few_dimensions / (d * signal) if d > 1 else 0.0
    factor = c.settled_excess + few + (c.small_signal / signal) ** 4
    error = noise * math.sqrt(factor) / cloud_curvature(d)
    # The curvature times F/n^2 is near 1 - 1/(2d). Medians, not means: of a chi-square with d degrees of freedom.
    excess = 0.5 * noise**2 / (1.0 - 0.5 / d) * (1.0 - 2.0 / (9.0 * d)) ** 3 * factor
    width = c.signal_width_line if d == 1 else c.signal_width
    failure = math.exp(min((c.signal - n * math.sqrt(rho / max(d, 2))) / width, 0.0))
    # On the line two halves may have nothing between them: a slope is seen there only above the noise of one step.
    worst = (4.0 * math.sqrt(steps_of(n, d, rho, c)) if d == 1 else 2.0) * error
    return Prediction(excess=excess, excess_if_many_coincide=worst, relative_error=error, failure=failure)
