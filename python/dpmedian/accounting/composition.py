"""The privacy profile of Gaussian releases together with pure and bounded-range releases. Proof: accounting.md."""

from __future__ import annotations

import math

from dpmedian.accounting.losses import Losses
from dpmedian.accounting.normal import gaussian_delta, upper_tail

__all__ = ["composed_delta"]


def composed_delta(mu_squared: float, discretization: float, losses: Losses, epsilon: float) -> float:
    """The delta of Gaussian releases and other releases together. It is exact for continuous noise, and a term is added
    for the discretization of the noise.

    The other releases are given by their losses.
    """
    mu = math.sqrt(mu_squared)

    def composed(at: float) -> float:
        return math.fsum(weight * gaussian_delta(mu, at - loss) for loss, weight in losses)

    # If mu is 0, the noisy values have the same distribution on both data sets, so discretization adds nothing.
    if mu == 0.0 or discretization == 0.0:
        return composed(epsilon)

    def slope(at: float) -> float:
        """Minus the derivative of `composed` with respect to e^epsilon."""
        tails = ((loss, weight, upper_tail((at - loss) / mu + mu / 2.0)) for loss, weight in losses)
        return math.fsum(weight * math.exp(min(-loss, 700.0)) * tail for loss, weight, tail in tails)

    # The bound is convex in e^epsilon. If the discretization exceeds the slope, the bound increases here, and its
    # minimum is at a smaller epsilon, where the two are equal. The minimum is also a bound at this epsilon, because the
    # true delta decreases with epsilon.
    if slope(epsilon) < discretization:
        low, high = 0.0, epsilon
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if slope(middle) > discretization else (low, middle)
        epsilon = low
    if epsilon > 700.0:
        return 1.0
    return composed(epsilon) + (1.0 + math.exp(epsilon)) * discretization
