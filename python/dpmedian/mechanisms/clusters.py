"""Noisy statistics of clusters: shells with directions, cells of a grid, and gradients. Proof: clusters.md."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmedian._core import Tape
from dpmedian.mechanisms.gaussian import Gaussian
from dpmedian.mechanisms.hessian import FINEST_PRODUCTS, symmetric
from dpmedian.parameters import PublicParameters
from dpmedian.sources.protocol import Source
from dpmedian.statistics import FIRST_HALF_OCTAVE, SHELLS

__all__ = ["CELLS_MOST", "Grid", "NoisyCells", "NoisyClusters", "NoisyShells", "shell_ends"]

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

CELLS_MOST = 1 << 15
"""The largest number of cells of one release. If 256 cells are halved along each of six axes, 2^14 cells result."""

# The lattice of the gradients has a spacing of at least 2^-40.
_FINEST_GRADIENTS = 40


def shell_ends() -> Vector:
    """The outer radius of every shell but the last, in units of the scale. The last shell has no outer radius."""
    ends: Vector = np.exp2((np.arange(SHELLS) + FIRST_HALF_OCTAVE + 1) / 2.0)
    return ends


@dataclass(frozen=True)
class NoisyShells(Gaussian):
    """The number of records in each shell around a point, and `weight` times the second moments of the directions.

    Neighbors and sensitivity: the statistic states them. The sensitivity is sqrt(1 + weight^2) under add/remove and
    sqrt(2 (1 + weight^2)) under replacement, plus the rounding. Cost: one Gaussian release. Failure: none.
    """

    weight: float

    @classmethod
    def of(cls, name: str, rho: float, parameters: PublicParameters, weight: float) -> NoisyShells:
        """Calibrate the release to rho. With a weight of 0 the directions are left out."""
        return cls.of_statistic(
            name,
            "shells and directions",
            rho,
            parameters,
            {"d": parameters.d, "weight": weight},
            finest=FINEST_PRODUCTS,
            weight=weight,
        )

    def around(self, source: Source, tape: Tape, theta: Vector, scale: float) -> tuple[Vector, Matrix | None]:
        """The noisy counts, and the noisy sum over the records of u u^T, where u is the unit vector from theta to a
        record.

        The noise of the matrix has the standard deviation sigma/weight on the diagonal and sigma/(sqrt(2) weight)
        elsewhere. If the weight is 0, the matrix is None.
        """
        vector = self.query(source, tape, theta=theta, scale=scale, weight=self.weight)
        if self.weight == 0.0:
            return vector, None
        return vector[:SHELLS], symmetric(vector[SHELLS:], len(theta)) / self.weight


@dataclass(frozen=True)
class Grid:
    """A grid along some public axes around a public point, as in the statistic of grid cells.

    The coordinates of a record along the axes, relative to the center and divided by `scale`, are *compressed*: a
    vector of length r > 1 is shortened to the length 1 + log2(r), in a piecewise linear approximation.
    """

    center: Vector
    axes: Matrix
    """One axis in each row."""
    scale: float
    reach: float
    """Records farther than this from the center have no cell."""
    side: float
    """Half the side of the cube that the cells divide, in compressed coordinates."""

    def widths(self, level: int) -> float:
        """The width of a cell, in compressed coordinates."""
        return 2.0 * self.side * 2.0**-level

    def middles(self, level: int, indices: NDArray[np.int64]) -> Matrix:
        """The centers of cells, in compressed coordinates."""
        return np.asarray((indices + 0.5) * self.widths(level) - self.side, dtype=np.float64)

    def codes(self, level: int, indices: NDArray[np.int64]) -> NDArray[np.uint64]:
        """The code of each cell: its indices as digits in base 2^level."""
        codes = np.zeros(len(indices), dtype=np.uint64)
        for axis in range(indices.shape[1]):
            codes = (codes << np.uint64(level)) | indices[:, axis].astype(np.uint64)
        return codes


@dataclass(frozen=True)
class NoisyCells(Gaussian):
    """The number of records in each of at most `CELLS_MOST` cells of a grid.

    Neighbors and sensitivity: the statistic states them. The sensitivity is 1 under add/remove and sqrt(2) under
    replacement. Cost: one Gaussian release, which adds noise to the counts of empty cells, too. Failure: none.
    """

    @classmethod
    def of(cls, name: str, rho: float, parameters: PublicParameters) -> NoisyCells:
        return cls.of_statistic(name, "grid cells", rho, parameters, {"cells": CELLS_MOST})

    def count(self, source: Source, tape: Tape, grid: Grid, level: int, indices: NDArray[np.int64]) -> Vector:
        """The noisy count of each of these cells. The choice of the cells may depend on earlier releases only."""
        if len(indices) > CELLS_MOST:
            raise ValueError(f"one release can have at most {CELLS_MOST} cells, got {len(indices)}")
        codes = grid.codes(level, indices)
        order = np.argsort(codes)
        counts = np.empty(len(indices))
        counts[order] = self.query(
            source,
            tape,
            theta=grid.center,
            axes=grid.axes.ravel(),
            scale=grid.scale,
            reach=grid.reach,
            side=grid.side,
            level=level,
            cells=codes[order],
        )
        return counts


@dataclass(frozen=True)
class NoisyClusters(Gaussian):
    """For each of k centers: the number of records that are nearest to this center, the number of these records in each
    shell, and the gradient of the sum of their Huber distances.

    Neighbors and sensitivity: the statistic states them. If the counts have the weight a and the shells the weight b,
    the sensitivity is sqrt(1 + a^2 + b^2) under add/remove and sqrt(4 + 2 b^2) under replacement, plus the rounding.
    Cost: one Gaussian release. Failure: none.
    """

    k: int
    weights: tuple[float, float]

    @classmethod
    def of(
        cls, name: str, rho: float, parameters: PublicParameters, k: int, weights: tuple[float, float]
    ) -> NoisyClusters:
        arguments = {"k": k, "d": parameters.d, "weights": weights}
        return cls.of_statistic(
            name,
            "cluster gradients",
            rho,
            parameters,
            arguments,
            finest=_FINEST_GRADIENTS,
            k=k,
            weights=weights,
        )

    @property
    def count_noise(self) -> float:
        """The standard deviation of a count."""
        return self.noise / self.weights[0]

    @property
    def shell_noise(self) -> float:
        """The standard deviation of a count in a shell."""
        return self.noise / self.weights[1]

    def at(
        self, source: Source, tape: Tape, centers: Matrix, radii: Vector, scale: float, reach: float = math.inf
    ) -> tuple[Vector, Matrix, Matrix]:
        """The noisy counts (k,), the counts in shells (k, SHELLS) and the gradients (k, d) of the sums of Huber
        distances.
        """
        k, d = centers.shape
        vector = self.query(
            source, tape, centers=centers.ravel(), radii=radii, scale=scale, reach=reach, weights=self.weights
        )
        counts, shells = vector[:k] / self.weights[0], vector[k : k * (1 + SHELLS)] / self.weights[1]
        return counts, shells.reshape(k, SHELLS), vector[k * (1 + SHELLS) :].reshape(k, d)
