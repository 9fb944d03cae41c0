"""Zero-concentrated differential privacy: the rho of each kind of release, and the conversion to (epsilon, delta)."""

from __future__ import annotations

import math

from dpmedian.accounting.normal import DELTA_FLOOR, DELTA_MARGIN
from dpmedian.accounting.rounding import LEAST
from dpmedian.accounting.search import border

__all__ = ["concentrated_delta", "concentrated_epsilon", "pure_rho", "range_rho"]

# The margin for the rounding errors of rho. The products and the hyperbolic tangent have a relative error of a few
# units in the last place.
_RHO_MARGIN = 1.0 + 2.0**-49

# The largest order that is tried, because powers of larger orders would overflow.
_LARGEST_ORDER = 1e300


def pure_rho(epsilon: float) -> float:
    """The rho of a release that is epsilon-DP, rounded up."""
    return max(epsilon * math.tanh(epsilon / 2.0), LEAST) * _RHO_MARGIN if epsilon > 0.0 else 0.0


def range_rho(eta: float) -> float:
    """The rho of a release of bounded range eta, rounded up."""
    return max(eta * eta / 8.0, LEAST) * _RHO_MARGIN if eta > 0.0 else 0.0


def concentrated_delta(rho: float, epsilon: float) -> float:
    """The delta of rho-zCDP at this epsilon, by the conversion of Canonne, Kamath and Steinke.

    Every order gives a valid bound. The order that is used is nearly optimal.
    """
    if rho == 0.0:
        return 0.0
    rho = max(rho, LEAST)
    # With s = a - 1 the derivative of the exponent is (2s + 1) rho - epsilon - log(1 + 1/s). The derivative is
    # increasing and concave, so Newton's method converges to the root if it starts to the left of the root. Both
    # starting points lie to the left.
    s = 1.0 / math.expm1(min(max(rho - epsilon, 0.0) + math.sqrt(2.0 * rho), 700.0))
    s = max(s, (epsilon - rho) / (2.0 * rho))
    for _ in range(60):
        step = (epsilon + math.log1p(1.0 / s) - (2.0 * s + 1.0) * rho) / (2.0 * rho + 1.0 / (s * (s + 1.0)))
        s += max(step, 0.0)
        if step <= 1e-9 * s:
            break
    s = min(s, _LARGEST_ORDER)
    exponent = s * ((s + 1.0) * rho - epsilon) - math.log(s) - (s + 1.0) * math.log1p(1.0 / s)
    if exponent >= 0.0:
        return 1.0
    return max(math.exp(exponent), DELTA_FLOOR)


def concentrated_epsilon(rho: float, delta: float) -> float:
    """The smallest epsilon, rounded up, at which rho-zCDP implies (epsilon, delta)-DP. delta is at least 1e-100."""
    if rho == 0.0:
        return 0.0

    def excess(epsilon: float) -> float:
        return math.log(max(concentrated_delta(rho, epsilon) * DELTA_MARGIN, DELTA_FLOOR) / delta)

    # The search can start at the epsilon of Bun and Steinke's closed form, which is never below that of the best
    # conversion. The factor covers the rounding margin.
    high = 1.001 * (rho + 2.0 * math.sqrt(rho * math.log(1.0 / delta)))
    return 0.0 if excess(0.0) <= 0.0 else border(excess, good=high, bad=0.0, relative=1e-11)
