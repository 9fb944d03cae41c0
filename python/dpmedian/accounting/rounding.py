"""Arithmetic that rounds toward more cost, so that a reported cost is never below the true cost."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

__all__ = ["LEAST", "half_up", "integer_up", "product_up", "sum_up", "up"]

LEAST = 2.0**-1000
"""The smallest factor of products. A smaller number that is not 0 is replaced by this number, because the product could
lose precision. Doubles have full precision down to 2^-1022.
"""


def up(x: float) -> float:
    """The next larger double, which is at least the exact result of the operation whose rounded result is x."""
    return math.nextafter(x, math.inf)


def sum_up(values: Iterable[float]) -> float:
    """The smallest double that is at least the exact sum of the values."""
    values = tuple(values)
    rounded = math.fsum(values)
    if math.isinf(rounded):
        return rounded
    # `fsum` rounds the sum and its error correctly. The sign of the error shows whether the sum was rounded down.
    return up(rounded) if math.fsum((*values, -rounded)) > 0.0 else rounded


def product_up(k: int, x: float) -> float:
    """The smallest double that is at least k times x."""
    exact = k * Fraction(x)
    try:
        # The conversion is correctly rounded. The product k * x would not be, because k itself may not be a double.
        rounded = float(exact)
    except OverflowError:
        return math.inf
    return up(rounded) if Fraction(rounded) < exact else rounded


def integer_up(k: int) -> float:
    """The smallest double that is at least k."""
    return product_up(k, 1.0) if abs(k) > 2**53 else float(k)


def half_up(x: float) -> float:
    """The smallest double that is at least x/2. Halving is exact except for the smallest doubles."""
    half = x / 2.0
    return half if 2.0 * half >= x else up(half)
