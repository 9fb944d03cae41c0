"""Releases about the distances from a public point. Proof: distance.md."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmedian.mechanisms.gaussian import Gaussian
from dpmedian.source import FIRST_QUARTER, LAST_QUARTER, ArraySource, Tape

__all__ = ["Curvature", "DistanceCount", "radius_of"]

# Functions of a distance are rounded to multiples of 2^-20 before they are summed.
_UNIT = 20


def radius_of(quarter: int) -> float:
    """2^(quarter/4), the radii of `ArraySource.distance_counts`."""
    return math.ldexp(2.0 ** (quarter % 4 / 4.0), quarter // 4)


@dataclass(frozen=True)
class DistanceCount(Gaussian):
    """Numbers of records within a radius of a point (sensitivity 1)."""

    @classmethod
    def of(cls, name: str, rho: float, *, n: int, releases: int) -> DistanceCount:
        return cls(**vars(Gaussian.of_counts(name, 1.0, rho, n=n, releases=releases)))

    def within(self, source: ArraySource, tape: Tape, theta: NDArray[np.float64], quarter: int) -> float:
        """The noisy number of records within 2^(quarter/4) of theta."""
        place = min(max(quarter, FIRST_QUARTER), LAST_QUARTER) - FIRST_QUARTER
        return float(self.release(tape, source.distance_counts(theta)[place : place + 1])[0])


@dataclass(frozen=True)
class Curvature(Gaussian):
    """The curvature of the sum of distances, smoothed at a radius: a sum over records of a value in [0, 1]."""

    @classmethod
    def of(cls, name: str, rho: float, *, n: int) -> Curvature:
        """The sum is an integer of up to n 2^20 in units of 2^-20, and one record moves it by at most 2^20."""
        spec = Gaussian.of_counts(name, math.ldexp(1.0, _UNIT), rho, n=n << _UNIT)
        return cls(**vars(spec) | {"bits": spec.bits + _UNIT})

    def at(self, source: ArraySource, tape: Tape, theta: NDArray[np.float64], quarter: int) -> float:
        """The noisy sum over records of min(1, (1 - 1/d) r/distance), or 1 within r = 2^(quarter/4).

        Divided by r it is the mean over all directions of the second derivative of the sum of distances, where records
        within r count as if their distances were smoothed at r.
        """
        counts = source.distance_counts(theta)
        quarters = np.arange(FIRST_QUARTER, LAST_QUARTER + 1) - quarter
        # A bucket's distances lie between two quarter octaves: take the middle one.
        outside = (1.0 - 1.0 / source.d) * np.exp2(-(np.maximum(quarters, 1) - 0.5) / 4.0)
        values = np.rint(np.ldexp(np.where(quarters <= 0, 1.0, outside), _UNIT)).astype(np.int64)
        exact = int(np.dot(np.diff(counts, prepend=0), values))
        return float(self.release_lattice(tape, np.array([exact], dtype=np.int64) << (self.bits - _UNIT))[0])
