"""The search for the border between what holds and what does not."""

from __future__ import annotations

import math
from collections.abc import Callable

__all__ = ["border"]


def border(
    excess: Callable[[float], float], *, good: float, bad: float, absolute: float = 0.0, relative: float = 0.0
) -> float:
    """The argument nearest to `bad`, to a precision, whose excess was found to be at most 0, as it is at `good`.

    By the rule of false position, in its Illinois form, which needs few steps where the excess is smooth; if it is
    infinite, and every fourth time, the middle is taken. Candidates keep a distance from both ends, so that the last
    ones fall on either side of the border and the interval closes.
    """
    below, above = excess(good), excess(bad)
    moved, tries = 0, 0
    while (length := abs(bad - good)) > (width := absolute + relative * max(abs(good), abs(bad))):
        margin = 0.4 * width
        tries += 1
        share = below / (below - above) if tries % 4 and math.isfinite(above - below) else 0.5
        candidate = good + math.copysign(min(max(share * length, margin), length - margin), bad - good)
        value = excess(candidate)
        if value <= 0.0:
            good, below, above = candidate, value, above * (0.5 if moved < 0 else 1.0)
            moved = -1
        else:
            bad, above, below = candidate, value, below * (0.5 if moved > 0 else 1.0)
            moved = 1
    return good
