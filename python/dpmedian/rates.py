"""Guesses of the processor time and the memory of a release, from rates that were measured on one machine.

`benches/scaling.py` measures the data behind the rates. Times differ between machines, so a guess only shows whether a
release takes seconds or hours. Processor time is the sum over all threads.
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

# Nanoseconds of a pass: for every coordinate, for every record, and for the pass itself. The Python code of the default
# method around an answer takes longer.
_COORDINATE, _RECORD, _PASS, _ANSWER = 0.4, 8.0, 10_000.0, 130_000.0
# The search for all coordinate medians: nanoseconds for every coordinate of a record, and for every dimension.
_RANKED, _POSTERIOR = 11.0, 32_000.0
# Second moments: nanoseconds for a product of two coordinates, and, times d^2, for the linear algebra that follows.
_PRODUCT, _EIGENVECTORS = 0.008, 40.0
# The largest number of coordinates for which ranks are counted on a sorted copy of the records.
_SORTED = 1 << 27
# Two numbers for the memory of a run of the default method: the number of vectors that it stores (points, gradients and
# basis vectors), and the number of bytes for every product of two coordinates (sums of every thread, exact integers,
# noisy numbers, and matrices). `benches/memory.py --shapes` prints the memory that is used.
_VECTORS, _MOMENTS = 800, 120
# One volumetric center takes _CENTER nanoseconds times d^_POWER, because a cut solves some systems of d equations.
_CENTER, _POWER = 120.0, 2.4


def pass_seconds(n: int, d: int, passes: float) -> float:
    """Seconds of processor time for passes over n records."""
    return 1e-9 * passes * (n * (_COORDINATE * d + _RECORD) + _PASS)


def answer_seconds(answers: float) -> float:
    """Seconds for the Python code of the default method around this many answers."""
    return 1e-9 * answers * _ANSWER


def search_seconds(n: int, d: int) -> float:
    """Seconds for the search for d coordinate medians, with all its passes."""
    return 1e-9 * d * (_RANKED * n + _POSTERIOR)


def second_moment_seconds(n: int, d: int) -> float:
    """Seconds for one sum of d x d second moments."""
    return 1e-9 * d**2 * (_PRODUCT * n + _EIGENVECTORS)


def volumetric_seconds(d: int, cuts: int) -> float:
    """Seconds for the centers of a ball that is cut this many times."""
    return 1e-9 * cuts * _CENTER * math.pow(d, _POWER)


def copy_bytes(records: int, d: int, *, sampled: bool) -> int:
    """Bytes for a sample of this number of records, if there is a sample, and for a sorted copy of the records that are
    read. Records in single precision need half of this.
    """
    return 8 * records * d * (sampled + (records * d <= _SORTED))


def answer_bytes(d: int, *, moments: bool) -> int:
    """Bytes for the answers that a run keeps."""
    return 8 * _VECTORS * d + (_MOMENTS * d * d if moments else 0)
