"""A search for the border between arguments that satisfy a condition and arguments that do not."""

from __future__ import annotations

import math
from collections.abc import Callable

__all__ = ["border"]


def border(
    excess: Callable[[float], float], *, good: float, bad: float, absolute: float = 0.0, relative: float = 0.0
) -> float:
    """The argument nearest to `bad`, up to a precision, at which the excess is at most 0.

    The excess is at most 0 at `good` and positive at `bad`.

    The search uses the rule of false position in the Illinois form, which needs few steps if the excess is smooth. If
    the excess is infinite, and in every fourth step, the search tries the middle of the interval. Candidates keep a
    distance from both ends, so that the interval shrinks from both sides.
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
