"""What to expect of the default method, from public parameters: see "Why it works" in adaptive.md."""

from __future__ import annotations

import math

from dpmedian.methods.adaptive.constants import Constants
from dpmedian.methods.adaptive.steps import steps_of
from dpmedian.methods.contract import Prediction, cloud_error, within, worth
from dpmedian.parameters import PublicParameters

__all__ = ["predict"]


def predict(parameters: PublicParameters, rho: float, c: Constants, spread: float) -> Prediction:
    """What a typical run on a cloud with this spread gives.

    The worst case uses |F(a) - F(b)| <= n |a - b| and that F(median) is at least n/2 times the median distance.
    """
    n, d = worth(parameters) * parameters.size, parameters.d
    # The noise of one gradient with all of rho, relative to the largest gradient: its sensitivity is 2, or 1 where a
    # record is added or removed, as if there were twice as many.
    signal = n * math.sqrt(rho / d)
    noise = math.sqrt(2.0) / signal
    # What the stages before the last gradients cost, and steps that are not small.
    factor = c.settled_excess + c.few_dimensions / (d * signal) + (1.0 - 1.0 / d) * (c.small_signal / signal) ** 2
    error = cloud_error(noise * math.sqrt(factor), d)
    # The curvature times F/n^2 is near 1 - 1/(2d). Medians, not means: of a chi-square with d degrees of freedom.
    excess = 0.5 * noise**2 / (1.0 - 0.5 / d) * (1.0 - 2.0 / (9.0 * d)) ** 3 * factor
    # The farther away the center may be, the more questions the search for it needs in every dimension. Their noise
    # grows with the root of their number.
    octaves = c.far_octaves[0] if parameters.radius is None else math.log2(parameters.radius) - math.log2(spread)
    far, width = c.far_signal * math.sqrt(max(octaves - c.far_octaves[1], 0.0)), c.far_width[0] / d ** c.far_width[1]
    # At `far_signal` half of all runs miss the center, so certainty ends earlier.
    far -= width * math.sqrt(math.log(2.0))
    missed = _missed(signal, c.signal / math.sqrt(d), c.signal_width, 1.5), _missed(signal, far, width, 2.0)
    found = (1.0 - missed[0]) * (1.0 - missed[1])
    found *= 1.0 - c.rare[0] / d**2 * math.exp(-((signal / c.rare[1]) ** 2))
    # On the line two halves may have nothing between them: a slope is seen there only above the noise of one step.
    worst = (7.0 * math.sqrt(steps_of(n, d, rho, c)) if d == 1 else 2.0 * d / (d - 1.0)) * noise * math.sqrt(factor)
    clusters = c.uneven_signal * max(octaves - c.uneven_octaves, 0.1)
    return Prediction(
        excess=excess,
        excess_if_many_coincide=worst,
        relative_error=error,
        failure=1.0 - found,
        uneven=within(signal, clusters, 4.0),
    )


def _missed(signal: float, least: float, width: float, power: float) -> float:
    """The probability that a search misses: certain below the least signal, and above soon rare."""
    return math.exp(-((max(signal - least, 0.0) / width) ** power))
