"""The threshold on the noisy size of groups whose keys are not listed. Proof: mechanisms/key_selection.md."""

from __future__ import annotations

import math
from statistics import NormalDist

from dpmedian.accounting.normal import DELTA_MARGIN, upper_tail

__all__ = ["discrete_tail", "threshold_of", "threshold_rule"]


def threshold_of(sigma: int, bits: int, lone_delta: float) -> int:
    """The smallest threshold T for which a group of size at most 1 is shown with a probability of at most `lone_delta`.

    A group is shown if its size plus noise is rounded to at least T. The noise has a standard deviation of `sigma`
    units of 2^-bits.
    """
    natural = math.ldexp(float(sigma), -bits)
    found = max(math.floor(1.5 - natural * NormalDist().inv_cdf(lone_delta)) - 2, 2)
    while discrete_tail(sigma, _least_noise(found, bits)) > lone_delta:
        found += 1
    return found


def _least_noise(threshold: int, bits: int) -> int:
    """A lower bound, in units of 2^-bits, on the noise with which a size of at most 1 is rounded to at least the
    threshold.

    In that case the size plus noise is at least T - 1/2, so the noise is at least T - 3/2. The result is slightly
    smaller than T - 3/2, because the noisy size is rounded to a double, with a relative error of up to 2^-53.
    """
    units = ((2 * threshold - 3) << bits) >> 1
    return units - (units >> 50) - 1


def discrete_tail(sigma: int, least: int) -> float:
    """An upper bound on the probability that a discrete Gaussian of parameter sigma is at least this positive integer.

    The bound is the tail of the continuous Gaussian beyond `least` - 1; key_selection.md has the proof.
    """
    return upper_tail((least - 1) / sigma) * DELTA_MARGIN


def threshold_rule(threshold: int) -> str:
    """The threshold in words, for plans and records."""
    return f"1 per group; shown if the noisy size is {threshold} or more"
