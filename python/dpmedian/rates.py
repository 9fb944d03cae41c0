"""A guess of the processor's time of a release and the memory that it takes, from rates measured on one machine.

`benches/scaling.py` measures what the rates are made of. On another machine a release takes another time; the guess is
meant to tell a second from an hour. Two threads need about half of the processor's time.
"""

from __future__ import annotations

import math

__all__ = [
    "answer_bytes",
    "answer_seconds",
    "copy_bytes",
    "pass_seconds",
    "search_seconds",
    "second_moment_seconds",
    "volumetric_seconds",
]

# Nanoseconds of a pass: for every coordinate, every record, and the pass itself. What a run of the default method does
# about an answer in Python takes longer.
_COORDINATE, _RECORD, _PASS, _ANSWER = 0.4, 8.0, 10_000.0, 130_000.0
# Of a search for all coordinate medians: for every coordinate of a record, and for every dimension.
_RANKED, _POSTERIOR = 11.0, 32_000.0
# Of a product of two coordinates in a sum of second moments, and of the linear algebra that follows, for d^2.
_PRODUCT, _EIGENVECTORS = 0.008, 40.0
# Ranks of more coordinates than this are counted without a sorted copy of the records.
_SORTED = 1 << 27
# The points, gradients and basis vectors that a run of the default method keeps, and the bytes that it takes for every
# product of two coordinates: sums of every thread, exact integers, noisy ones, and matrices. What is used is printed by
# `benches/memory.py --shapes`.
_VECTORS, _MOMENTS = 800, 120
# Of one volumetric center, times d to the power: a cut through d dimensions solves some systems of equations.
_CENTER, _POWER = 120.0, 2.4


def pass_seconds(n: int, d: int, passes: float) -> float:
    """Seconds of the processor for passes over n records."""
    return 1e-9 * passes * (n * (_COORDINATE * d + _RECORD) + _PASS)


def answer_seconds(answers: float) -> float:
    """For what a run of the default method does about so many answers."""
    return 1e-9 * answers * _ANSWER


def search_seconds(n: int, d: int) -> float:
    """For the search for d coordinate medians, with all its passes."""
    return 1e-9 * d * (_RANKED * n + _POSTERIOR)


def second_moment_seconds(n: int, d: int) -> float:
    """For one sum of d x d second moments."""
    return 1e-9 * d**2 * (_PRODUCT * n + _EIGENVECTORS)


def volumetric_seconds(d: int, cuts: int) -> float:
    """For the centers of a ball that is cut so many times."""
    return 1e-9 * cuts * _CENTER * math.pow(d, _POWER)


def copy_bytes(records: int, d: int, *, sampled: bool) -> int:
    """Bytes for a sample of this many records, if there is one, and for a sorted copy of it; singles take half."""
    return 8 * records * d * (sampled + (records * d <= _SORTED))


def answer_bytes(d: int, *, moments: bool) -> int:
    """Bytes for what a run keeps of its answers."""
    return 8 * _VECTORS * d + (_MOMENTS * d * d if moments else 0)
