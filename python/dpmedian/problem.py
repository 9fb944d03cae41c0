"""The public parameters of a release, checked once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpmedian.accounting import Budget
from dpmedian.profile import Profile

__all__ = ["Problem"]

# A coordinate above this magnitude is clamped, so no radius or center beyond it has a meaning.
LARGEST = 2.0**1000


@dataclass(frozen=True, eq=False)
class Problem:
    """What is known before the data are looked at. Every field is public."""

    n: int
    d: int
    budget: Budget
    radius: float | None
    resolution: float | None
    center: NDArray[np.float64]
    failure_probability: float
    profile: Profile

    @classmethod
    def of(
        cls,
        n: int,
        d: int,
        budget: Budget,
        *,
        radius: float | None = None,
        resolution: float | None = None,
        center: ArrayLike | None = None,
        failure_probability: float = 0.05,
        profile: str = "default",
    ) -> Problem:
        n, d = whole("n", n), whole("d", d)
        if n < 2:
            raise ValueError(f"n must be at least 2 for a private release, got {n}")
        if n > 2**30:
            raise ValueError(f"n must be at most 2**30 records, got {n}")
        if d < 1:
            raise ValueError(f"d must be at least 1, got {d}")
        if radius is not None:
            radius = positive("radius", radius)
        if resolution is not None:
            resolution = positive("resolution", resolution)
            if radius is not None and resolution >= radius:
                raise ValueError(f"resolution must be smaller than radius, got {resolution} and radius {radius}")
        beta = positive("failure_probability", failure_probability)
        if beta >= 1.0:
            raise ValueError(f"failure_probability must lie between 0 and 1, got {failure_probability}")
        return cls(n, d, budget, radius, resolution, _center(center, d), beta, Profile.named(profile))

    def require(self, method: str, *names: str) -> None:
        """Raises unless the arguments that `method` needs were given."""
        missing = [name for name in names if getattr(self, name) is None]
        if missing:
            wanted = ", ".join(f"{name}=..." for name in missing)
            raise ValueError(f"method {method!r} needs {wanted}; method 'adaptive' needs neither radius nor resolution")


def whole(name: str, value: object) -> int:
    """An integer argument."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    return int(value)


def positive(name: str, value: object) -> float:
    """A positive finite argument."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number, got {value!r}")
    number = float(value)
    if not (math.isfinite(number) and 0.0 < number <= LARGEST):
        raise ValueError(f"{name} must be positive and finite (at most 2**1000), got {value!r}")
    return number


def _center(center: ArrayLike | None, d: int) -> NDArray[np.float64]:
    if center is None:
        point = np.zeros(d)
    else:
        try:
            point = np.array(center, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise TypeError(f"center must be {d} numbers, got {center!r}") from error
        if point.shape != (d,):
            raise ValueError(f"center must have shape ({d},) like the points, got {point.shape}")
        if not np.all(np.abs(point) <= LARGEST):
            raise ValueError(f"center must be finite (at most 2**1000 in magnitude), got {center!r}")
    point.setflags(write=False)
    return point
