"""The privacy losses of pure and bounded-range releases: distributions on finitely many values that dominate the true
losses.

Losses and their probabilities are rounded up. A computed delta is never too small, because delta increases with the
losses and with the probabilities. Proofs: accounting.md.
"""

from __future__ import annotations

import functools
import itertools
import math

from dpmedian.accounting.rounding import LEAST, sum_up, up

__all__ = ["Losses", "losses_of"]

# The number of intervals for the losses of a bounded-range release. Twice as many intervals would save less than 0.1 %
# of the noise.
_RANGE_INTERVALS = 16

# The largest number of intervals for the sum of all losses, and the largest number of releases whose losses are added
# exactly. Both limits bound the time of a conversion, and increase the cost only slightly if there are few releases.
_LOSS_INTERVALS = 64
_LOSS_STEPS = 32

Losses = tuple[tuple[float, float], ...]
"""Values of a privacy loss, each with its probability."""


@functools.lru_cache(maxsize=64)
def losses_of(pure_epsilons: tuple[float, ...], bounded_ranges: tuple[float, ...]) -> Losses:
    """The privacy loss that dominates these releases together."""
    steps = sorted(
        [*((epsilon, _pure_losses) for epsilon in pure_epsilons), *((eta, _range_losses) for eta in bounded_ranges)],
        reverse=True,
        key=lambda step: step[0],
    )
    losses: Losses = ((0.0, 1.0),)
    for size, losses_of_step in steps[: _LOSS_STEPS - 1]:
        if size > 0.0:
            losses = _compose(losses, losses_of_step(size))
    # If there are many releases, the smallest ones count as one pure release whose epsilon is the sum of their epsilons
    # and etas.
    rest = sum_up(size for size, _ in steps[_LOSS_STEPS - 1 :])
    return _compose(losses, _pure_losses(rest)) if rest > 0.0 else losses


def _pure_losses(epsilon: float) -> Losses:
    """The losses of randomized response, which dominate the losses of every epsilon-DP release."""
    likely = 1.0 / (1.0 + math.exp(-epsilon))
    return (epsilon, likely), (-epsilon, math.exp(-epsilon) * likely)


def _range_losses(eta: float) -> Losses:
    """The loss with density e^(l/2)/(4 sinh(eta/2)) on [-eta, eta], moved to evenly spaced points.

    The mass between two neighboring points is divided between the two points so that the totals under both
    distributions stay the same. The result is the trapezoidal rule, normalized to sum 1. If the points would be too
    close for doubles, the release counts as eta-DP, which is also a valid bound.
    """
    if eta < LEAST:
        return _pure_losses(eta)
    step = 2.0 * eta / _RANGE_INTERVALS
    scale = 2.0 * math.tanh(step / 4.0) / -math.expm1(-eta)
    inner = ((up(up(j * step) - eta), scale * math.exp(j * step / 2.0 - eta)) for j in range(1, _RANGE_INTERVALS))
    return (-eta, scale * math.exp(-eta) / 2.0), *inner, (eta, scale / 2.0)


def _compose(one: Losses, other: Losses) -> Losses:
    """Add the losses of independent releases. If there are too many values, move them to evenly spaced points.

    The mass of a value between two points is divided between the two points so that the totals under both distributions
    stay the same. The original pair of distributions is a post-processing of the new pair (it forgets which of the two
    points was taken), so the new pair dominates the original. Sums of losses are rounded up. The points are doubles, so
    moving adds no rounding error.
    """
    losses = tuple((_add_up(loss, more), weight * times) for loss, weight in one for more, times in other)
    if len(losses) <= _LOSS_INTERVALS + 1:
        return losses
    low, high = min(loss for loss, _ in losses), max(loss for loss, _ in losses)
    step = (high - low) / _LOSS_INTERVALS
    grid = [*(low + j * step for j in range(_LOSS_INTERVALS)), high]
    if any(left >= right for left, right in itertools.pairwise(grid)):
        return ((high, math.fsum(weight for _, weight in losses)),)  # All losses are equal, up to rounding.
    weights = [0.0] * len(grid)
    for loss, weight in losses:
        j = min(int((loss - low) / step), _LOSS_INTERVALS - 1)
        while loss < grid[j]:
            j -= 1
        while loss > grid[j + 1]:
            j += 1
        left, right = grid[j], grid[j + 1]
        # Both shares are computed without cancellation, so they are precise even if they are tiny.
        weights[j] += weight * math.expm1(right - loss) / math.expm1(right - left)
        weights[j + 1] += weight * math.expm1(left - loss) / math.expm1(left - right)
    return tuple(zip(grid, weights, strict=True))


def _add_up(one: float, other: float) -> float:
    """The sum of two losses, rounded up unless it is exact because one of them is 0."""
    total = one + other
    return total if one == 0.0 or other == 0.0 else up(total)
