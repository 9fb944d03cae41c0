"""Predictions for the default method from public parameters; see "Predictions" in adaptive.md."""

from __future__ import annotations

import math
import sys

from dpmedian.methods.adaptive.constants import Constants
from dpmedian.methods.adaptive.queries import last_gradients
from dpmedian.methods.contract import Prediction, cloud_error, sensitivity_gain, within
from dpmedian.parameters import PublicParameters

__all__ = ["failure", "octaves_within", "predict"]

# This many halvings of an interval find a double between zero and a number.
_HALVINGS = sys.float_info.mant_dig


def failure(signal: float, d: int, octaves: float, c: Constants) -> float:
    """The probability that a run fails, if the signal n sqrt(rho/d) and the size of the public ball are given.

    `octaves` is the binary logarithm of the radius of the ball over the core radius. If the data may be far away, the
    search for the center needs more queries, and their noise grows with the square root of their number. In many
    dimensions the noise averages out, so all runs begin to fail at nearly the same signal.
    """
    half = c.far_signal * math.sqrt(octaves) + c.far_later * math.log(d)
    return within(signal, half, half * math.sqrt(math.sqrt(d))) if half > 0.0 else 0.0


def octaves_within(signal: float, d: int, most: float, c: Constants) -> float:
    """The octaves of the largest public ball with at most this probability of a failure, see `failure`."""
    low, high = 0.0, (signal / c.far_signal) ** 2
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if failure(signal, d, middle, c) <= most else (low, middle)
    return low


def predict(p: PublicParameters, rho: float, c: Constants, core_radius: float) -> Prediction:
    """The prediction for a typical run on a cloud with this core radius.

    The worst case uses two facts: |F(a) - F(b)| <= n |a - b|, and F(median) is at least n/2 times the median distance.
    """
    n, d = sensitivity_gain(p) * p.size, p.d
    signal = n * math.sqrt(rho / d)
    # The noise of one gradient that gets the whole budget, relative to the largest possible gradient.
    noise = math.sqrt(2.0) / signal
    # The factor for the cost of the queries before the last gradients and for steps that are not small.
    factor = 1.0 + c.few_dimensions / (d * signal) + (1.0 - 1.0 / d) * (c.small_signal / signal) ** 2
    error = cloud_error(noise * math.sqrt(factor), d)
    # The curvature times F/n^2 is near 1 - 1/(2d), and the median of a chi-square variable is below its mean.
    excess = 0.5 * noise**2 / (1.0 - 0.5 / d) * (1.0 - 2.0 / (9.0 * d)) ** 3 * factor
    octaves = c.far_octaves
    if p.radius is not None:
        octaves = max(math.log2(p.radius) - math.log2(core_radius), 0.0)
    # In one dimension the data may have a gap in the middle. A run notices this only by surprising gradients.
    steps = last_gradients(p, rho, c, p.size)
    slack = 3.0 * c.surprising * math.sqrt(steps) if d == 1 else 2.0 * d / (d - 1.0)
    # The larger of two clusters is found only if gradients are precise enough for the distance between the clusters.
    border = c.few * max(octaves, 1.0) / c.far_octaves
    return Prediction(
        excess=excess,
        excess_if_many_coincide=slack * noise * math.sqrt(factor),
        relative_error=error,
        failure=failure(signal, d, octaves, c),
        uneven=within(signal, border, math.sqrt(border)),
    )
