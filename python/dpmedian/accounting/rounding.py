"""Arithmetic that rounds towards more cost, so that what is reported is never below the truth."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

__all__ = ["LEAST", "half_up", "integer_up", "product_up", "sum_up", "up"]

LEAST = 2.0**-1000
"""What is smaller, but not 0, counts as this much where a product could lose its digits, or vanish, for want of
exponents: doubles have all of their digits down to 2^-1022."""


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
    exact = k * Fraction(x)
    try:
        rounded = float(exact)  # Correctly rounded, unlike k * x, where k itself may be no double.
    except OverflowError:
        return math.inf
    return up(rounded) if Fraction(rounded) < exact else rounded


def integer_up(k: int) -> float:
    """The smallest double that is at least k."""
    return product_up(k, 1.0) if abs(k) > 2**53 else float(k)


def half_up(x: float) -> float:
    """The smallest double that is at least x/2: halving is exact but for the smallest doubles."""
    half = x / 2.0
    return half if 2.0 * half >= x else up(half)
