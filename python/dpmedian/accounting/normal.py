"""The normal distribution: the privacy profile of a Gaussian, and the Gaussian that dominates a pure release."""

from __future__ import annotations

import functools
import math
from statistics import NormalDist

from dpmedian.accounting.rounding import LEAST

__all__ = ["DELTA_FLOOR", "DELTA_MARGIN", "gaussian_delta", "pure_mu_squared", "upper_tail"]

# The computed normal tail has a relative error below 1e-11, as a test with many digits shows. With this factor, delta
# is an upper bound.
DELTA_MARGIN = 1.0 + 1e-10

# The smallest delta that is reported. Doubles near this number lose relative precision, and no budget requires so small
# a delta.
DELTA_FLOOR = 1e-299

# The inverse of the normal distribution function is computed with a relative error below 1e-13, as another test shows.
_QUANTILE_MARGIN = 1.0 + 1e-12

_ROOT_TWO = math.sqrt(2.0)
_ROOT_TWO_PI = math.sqrt(2.0 * math.pi)

# Gauss-Legendre quadrature with eight nodes on [0, 1]. For the smooth integrand here its error is below double
# precision.
_QUADRATURE = tuple(
    (0.5 + side * node / 2.0, weight / 2.0)
    for node, weight in (
        (0.1834346424956498, 0.3626837833783620),
        (0.5255324099163290, 0.3137066458778873),
        (0.7966664774136267, 0.2223810344533745),
        (0.9602898564975363, 0.1012285362903763),
    )
    for side in (-1.0, 1.0)
)


def _mills_complement(t: float) -> float:
    """The negative slope 1 - t R(t) of the Mills ratio R (the upper normal tail divided by the density), for t > -1."""
    if t < 10.0:
        return 1.0 - t * _mills(t)
    # The asymptotic series of 1 - t R(t). Its terms decrease until about k = t^2/2, and are then far below double
    # precision.
    square, term, total, k = t * t, 1.0, 0.0, 1
    while abs(term) > 1e-17 * abs(total) and k < 40:
        term *= -(2 * k - 1) / square
        total -= term
        k += 1
    return total


def _mills(t: float) -> float:
    """The Mills ratio of the normal distribution for t > -1."""
    if t < 10.0:
        return _ROOT_TWO_PI / 2.0 * math.exp(t * t / 2.0) * math.erfc(t / _ROOT_TWO)
    return (1.0 - _mills_complement(t)) / t


def upper_tail(t: float) -> float:
    """The probability that a standard normal variable exceeds t."""
    return 0.5 * math.erfc(t / _ROOT_TWO)


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu) for any real epsilon, without cancellation.

    Let a = epsilon/mu - mu/2 and b = a + mu. The normal density satisfies phi(a) = e^epsilon phi(b), so delta is phi(a)
    (R(a) - R(b)), where R is the Mills ratio. For small mu the two terms nearly cancel. So their difference is computed
    as the integral of -R' = 1 - t R(t) over [a, b], whose integrand is positive.
    """
    if epsilon < 0.0:
        # The pair of distributions is symmetric, so delta at a negative epsilon follows from delta at the positive
        # epsilon.
        return -math.expm1(epsilon) + math.exp(epsilon) * gaussian_delta(mu, -epsilon)
    if mu == 0.0:
        return 0.0
    a = epsilon / mu - mu / 2.0
    if a > 37.0:
        return DELTA_FLOOR  # The normal tail beyond 37 is below 6e-300.
    density = math.exp(-a * a / 2.0) / _ROOT_TWO_PI
    if mu < 1.0:
        delta = density * mu * sum(weight * _mills_complement(a + mu * node) for node, weight in _QUADRATURE)
    elif a < 0.0:
        delta = upper_tail(a) - density * _mills(a + mu)
    else:
        delta = density * (_mills(a) - _mills(a + mu))
    return max(delta, DELTA_FLOOR)


@functools.lru_cache(maxsize=256)
def pure_mu_squared(epsilon: float) -> float:
    """The smallest mu^2, rounded up, for which a Gaussian with this mu dominates every epsilon-DP release.

    Randomized response is the worst such release. A Gaussian dominates it if mu = 2 Phi^-1(1/(1 + e^-epsilon)), as
    accounting.md proves. An eta-bounded-range release needs the same mu as an (eta/2)-DP release.
    """
    if epsilon == 0.0:
        return 0.0
    if epsilon > 700.0:
        # Phi(-mu/2) <= e^(-mu^2/8)/2 <= 1/(1 + e^epsilon) at mu^2 = 8 epsilon.
        return 8.0 * epsilon * _QUANTILE_MARGIN
    if epsilon > 1.0:
        mu = -2.0 * NormalDist().inv_cdf(1.0 / (1.0 + math.exp(epsilon)))
    else:
        # erf(y) = tanh(epsilon/2) at y = mu/(2 sqrt 2). The function is concave, so Newton's method converges to the
        # root from the left. The start is the y with 2 y/sqrt(pi) = tanh(epsilon/2), so that the result is precise even
        # if epsilon is tiny.
        target = math.tanh(epsilon / 2.0)
        y = target * math.sqrt(math.pi) / 2.0
        for _ in range(6):
            y += (target - math.erf(y)) * math.sqrt(math.pi) / 2.0 * math.exp(y * y)
        mu = 2.0 * _ROOT_TWO * y
    return max((mu * _QUANTILE_MARGIN) ** 2, LEAST)
