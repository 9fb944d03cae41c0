"""Arithmetic that rounds towards more cost, so that what is reported is never below the truth."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

__all__ = ["product_up", "sum_up", "up"]


def up(x: float) -> float:
    """The next double: at least the exact result of the one operation that was rounded to x."""
    return math.nextafter(x, math.inf)


def sum_up(values: Iterable[float]) -> float:
    """The smallest double that is at least the exact sum of the values."""
    values = tuple(values)
    rounded = math.fsum(values)
    if math.isinf(rounded):
        return rounded
    # The sum is rounded correctly, and so is its error: the sign of the latter says on which side the former lies.
    return up(rounded) if math.fsum((*values, -rounded)) > 0.0 else rounded


def product_up(k: int, x: float) -> float:
    """The smallest double that is at least k times x."""
    rounded = k * x
    return up(rounded) if Fraction(rounded) < k * Fraction(x) else rounded
