"""Checks of numbers that callers pass. An error names the argument, its value and the accepted values.

A number that is not equal to a double, such as a Fraction or a large integer, is rounded toward more privacy. A cost is
rounded up. With `down`, a number is rounded down: budgets, because a smaller budget protects more, and standard
deviations, because an overstated standard deviation would understate the cost.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import Any

__all__ = [
    "DELTA_LIMIT",
    "not_negative",
    "positive",
    "probability",
    "require_encodable",
    "usable_delta",
    "whole",
    "within",
]

# The smallest delta at which the accounting is tested. A smaller delta is refused, because the result might have too
# few correct digits.
DELTA_LIMIT = 1e-100


def _number(name: str, value: object, accepted: str, down: bool) -> float:
    """Return a real number as a double, rounded in the given direction, or raise a TypeError that names the
    argument.
    """
    # The common case comes first, because a plan has hundreds of costs and checking an abstract type is slow.
    if type(value) is float:
        return value
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be {accepted}, got {value!r} of type {type(value).__name__}")
    # NumPy would convert its integers to doubles before a comparison. So its integers are converted to Python's
    # integers, which are compared exactly.
    exact: Any = value
    if isinstance(value, Integral):
        exact = int(value)
    elif isinstance(value, Rational):
        exact = Fraction(value)
    try:
        number = float(exact)
    except OverflowError:
        return math.inf  # The caller refuses infinity.
    if down:
        return math.nextafter(number, -math.inf) if number > exact else number
    return math.nextafter(number, math.inf) if number < exact else number


def within(name: str, value: object, accepted: str, test: Callable[[float], bool], *, down: bool = False) -> float:
    """Return a finite number that passes the test, or raise an error that names the accepted values."""
    number = _number(name, value, accepted, down)
    if not (math.isfinite(number) and test(number)):
        raise ValueError(f"{name} must be {accepted}, got {value!r}")
    return number


def not_negative(name: str, value: object, *, down: bool = False) -> float:
    """Return a finite number that is at least 0."""
    return within(name, value, "a finite number that is at least 0", lambda x: x >= 0.0, down=down)


def positive(name: str, value: object, *, down: bool = False) -> float:
    """Return a finite number greater than 0."""
    return within(name, value, "a finite number greater than 0", lambda x: x > 0.0, down=down)


def probability(name: str, value: object, *, down: bool = False) -> float:
    """A number in [0, 1)."""
    return within(name, value, "a number in [0, 1)", lambda x: 0.0 <= x < 1.0, down=down)


def require_encodable(name: str, text: str) -> None:
    """Raise an error if a text has a lone surrogate, because such a text cannot be written to a file or a terminal."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name} must be text that UTF-8 can encode, without lone surrogates, got {text!a}") from None


def whole(name: str, value: object) -> int:
    """Return a positive whole number, which stays exact, because it is not converted to a double."""
    accepted = "a positive whole number"
    if isinstance(value, Integral) and not isinstance(value, bool):
        number = int(value)
    else:
        within(name, value, accepted, lambda x: x >= 1.0)
        exact: Any = value
        number = int(exact)
        if number != exact:
            raise ValueError(f"{name} must be {accepted}, got {value!r}")
    if number < 1:
        raise ValueError(f"{name} must be {accepted}, got {value!r}")
    return number


def usable_delta(delta: float) -> float:
    """Return a delta, rounded down to a double, or raise an error if no epsilon can be computed at this delta."""
    found = probability("delta", delta, down=True)
    if 0.0 < found < DELTA_LIMIT:
        raise ValueError(f"delta must be 0 or at least {DELTA_LIMIT:g}, got {delta!r}")
    return found
