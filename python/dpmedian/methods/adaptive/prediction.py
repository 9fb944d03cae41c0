"""What to expect of the default method, from public parameters: see "Predictions" in adaptive.md."""

from __future__ import annotations

import math

from dpmedian.methods.adaptive.constants import Constants
from dpmedian.methods.adaptive.queries import last_gradients
from dpmedian.methods.contract import Prediction, cloud_error, sensitivity_gain, within
from dpmedian.parameters import PublicParameters

__all__ = ["predict"]

# In more dimensions half of the runs fail at a signal that is larger by this times log(d), and the range of signals in
# which some runs fail and others do not is narrower by this power of d.
_LATER, _NARROWER = 0.15, 0.28
# Octaves of a public radius over the core radius within which no cluster is missed.
_FREE_OCTAVES = 1.7
# The signal over that of `far_signal` at which every other run misses the larger of two clusters, per octave.
_CLUSTERS = 6.2


def predict(p: PublicParameters, rho: float, c: Constants, core_radius: float) -> Prediction:
    """What a typical run on a cloud with this core radius gives.

    The worst case uses |F(a) - F(b)| <= n |a - b| and that F(median) is at least n/2 times the median distance.
    """
    n, d = sensitivity_gain(p) * p.size, p.d
    signal = n * math.sqrt(rho / d)
    # The noise of one gradient with all of rho, relative to the largest gradient.
    noise = math.sqrt(2.0) / signal
    # What the queries before the last gradients cost, and steps that are not small.
    factor = c.overhead + c.few_dimensions / (d * signal) + (1.0 - 1.0 / d) * (c.small_signal / signal) ** 2
    error = cloud_error(noise * math.sqrt(factor), d)
    # The curvature times F/n^2 is near 1 - 1/(2d). Medians, not means: of a chi-square with d degrees of freedom.
    excess = 0.5 * noise**2 / (1.0 - 0.5 / d) * (1.0 - 2.0 / (9.0 * d)) ** 3 * factor
    # The farther away the center may be, the more queries its search needs. Their noise grows with the root of their
    # number. Many dimensions average: failures become rare sooner.
    octaves = c.far_octaves
    if p.radius is not None:
        octaves = max(math.log2(p.radius) - math.log2(core_radius), 0.0)
    width = c.far_width / d**_NARROWER
    half = c.far_signal * math.sqrt(octaves) + _LATER * math.log(d)
    failure = 0.5 * math.erfc((signal - half) / (math.sqrt(2.0) * width))
    # On the line two halves may have nothing between them: a gradient is seen there only above the noise of one query.
    steps = last_gradients(p, rho, c, p.size)
    worst = (7.0 * math.sqrt(steps) if d == 1 else 2.0 * d / (d - 1.0)) * noise * math.sqrt(factor)
    return Prediction(
        excess=excess,
        excess_if_many_coincide=worst,
        relative_error=error,
        failure=failure,
        uneven=within(signal, _CLUSTERS * max(octaves - _FREE_OCTAVES, 0.1), 4.0),
    )
