"""The released moments, from which confidence regions are computed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Moments", "Noisy"]

Matrix = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Noisy:
    """A released symmetric matrix. The standard deviation of its noise is `noise` on the diagonal and `noise`/sqrt(2)
    elsewhere.
    """

    matrix: Matrix
    noise: float

    def __post_init__(self) -> None:
        self.matrix.setflags(write=False)

    def combined(self, other: Noisy) -> Noisy:
        """The weighted mean of two releases of nearly the same matrix, with the least noise."""
        share = 1.0 / (1.0 + (self.noise / other.noise) ** 2)
        noise = 1.0 / math.hypot(1.0 / self.noise, 1.0 / other.noise)
        return Noisy(share * self.matrix + (1.0 - share) * other.matrix, noise)

    def to_dict(self) -> dict[str, Any]:
        """The upper triangle, row by row, and the noise."""
        return {"upper_triangle": self.matrix[np.triu_indices(len(self.matrix))].tolist(), "noise": self.noise}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any], d: int) -> Noisy:
        """Read the matrix that `to_dict` wrote."""
        matrix = np.zeros((d, d))
        matrix[np.triu_indices(d)] = record["upper_triangle"]
        return cls(np.where(np.tri(d, k=-1, dtype=bool), matrix.T, matrix), float(record["noise"]))


@dataclass(frozen=True, eq=False)
class Moments:
    """The released values about the records around a point. Confidence regions are computed from them at no further
    cost.

    Let u be the direction to a record and r its distance. `curvature` is the sum of 1 over the records within `radius`,
    plus the sum of (1 - 1/d) radius/r over the other records. `hessian` is the sum of (radius/r) u u^T over the records
    beyond the radius. These two sums are over `records` records, which may be a sample. `directions` is the sum of u
    u^T over all records. All three are None if many records coincide with the point. `hessian` and `directions` are
    also None if the noise would hide them. `size` is the number of records, exact or noisy. `gradient_variance` is the
    variance of the noise in every coordinate of the gradients that determined the point. No region has a smaller radius
    than `least`. If the records are positions on a globe, `position` is the released point in space, and regions
    describe its direction, in degrees. `axes` is a second release of the sum of u u^T, if a share of the budget was for
    the axes. `away` is the distance between the released point and the point at which the Hessian was measured, in core
    radii, at most 1.
    """

    d: int
    size: float
    gradient_variance: float
    least: float = 0.0
    radius: float = 1.0
    records: float = 0.0
    curvature: float | None = None
    curvature_noise: float = 0.0
    hessian: Noisy | None = None
    directions: Noisy | None = None
    position: tuple[float, float, float] | None = None
    axes: Noisy | None = None
    away: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """The moments as a JSON object."""
        matrices = {name: None if (noisy := getattr(self, name)) is None else noisy.to_dict() for name in _MATRICES}
        others = {name: value for name, value in vars(self).items() if name not in _MATRICES}
        return {**others, **matrices, "position": None if self.position is None else list(self.position)}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Moments:
        """Read the moments that `to_dict` wrote."""
        d = int(record["d"])
        matrices = {name: None if record.get(name) is None else Noisy.from_dict(record[name], d) for name in _MATRICES}
        position = None if record["position"] is None else tuple(map(float, record["position"]))
        return cls(**{**record, **matrices, "position": position})


_MATRICES = ("hessian", "directions", "axes")
