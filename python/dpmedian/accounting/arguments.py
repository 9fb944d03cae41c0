"""Checks of numbers that callers pass: errors name the argument, its value and what is accepted."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real

__all__ = ["not_negative", "positive", "probability", "whole", "within"]


def _number(name: str, value: object, accepted: str) -> float:
    """A real number as a double, or a TypeError that names the argument."""
    if type(value) is float:  # A plan makes hundreds of costs, and the check of an abstract type is slow.
        return value
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be {accepted}, got {value!r} of type {type(value).__name__}")
    return float(value)


def within(name: str, value: object, accepted: str, test: Callable[[float], bool]) -> float:
    """A finite number that passes the test, or an error that says what is accepted."""
    number = _number(name, value, accepted)
    if not (math.isfinite(number) and test(number)):
        raise ValueError(f"{name} must be {accepted}, got {value!r}")
    return number


def not_negative(name: str, value: object) -> float:
    """A finite number that is at least 0."""
    return within(name, value, "a finite number that is at least 0", lambda x: x >= 0.0)


def positive(name: str, value: object) -> float:
    """A finite number greater than 0."""
    return within(name, value, "a finite number greater than 0", lambda x: x > 0.0)


def probability(name: str, value: object) -> float:
    """A number in [0, 1)."""
    return within(name, value, "a number in [0, 1)", lambda x: 0.0 <= x < 1.0)


def whole(name: str, value: object) -> int:
    """A positive whole number."""
    return int(within(name, value, "a positive whole number", lambda x: x >= 1.0 and x == int(x)))
