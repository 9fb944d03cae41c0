"""A confidence region for the population's median: always a ball, and an ellipsoid if the shape is known."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpmedian.inference.error import error_of
from dpmedian.inference.moments import Moments

__all__ = ["Region", "confidence_region", "error_radius"]

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

# Of alpha = 1 - level a region leaves this part outside of its draws, plus so many alphas: six tenths at the level
# 95 %, for what is beyond the first order, and all below 73 and 76 %. Lengths, which the longest axis decides, need
# more than shapes at low levels; intervals of single coordinates are lengths. Measured by benches/coverage.py.
_LENGTHS, _SHAPES = (0.52, 1.75), (0.5, 2.1)
# A region whose radius is above this many core radii has a note: the theory needs small errors.
_LARGE = 0.5

# A region prints the intervals of at most this many coordinates.
_SHOWN = 6

# The least cosine of a latitude by which degrees of longitude are divided.
_POLE = 0.01

COINCIDENT = "many records coincide, so the region is a ball that is at least as large as error_radius"
LARGE = (
    "the region is large relative to the core radius of the data, so it may cover the median less often than it says"
)


@dataclass(frozen=True, eq=False)
class Region:
    """A region around a released point that holds the median of the population with probability `level`.

    The probability is asymptotic, for records that are drawn independently from one population whose median is a single
    point; it counts the sampling of the records and the noise of the release. `radius` is that of a ball around
    `center`. Where the budget affords its shape, `covariance` is that of the error, `standard_errors` are the roots of
    its diagonal, and the region is an ellipsoid too; otherwise both are None, as if many records coincide.
    `intervals` has one row for each coordinate, the limits that hold this coordinate of the median with probability
    `level`; without a covariance they are those of the ball, which hold all of them together. On a globe the radius is
    in degrees of arc, and the coordinates are longitude and latitude. `notes` say where to be careful.
    """

    center: Vector
    level: float
    radius: float
    covariance: Matrix | None
    standard_errors: Vector | None
    intervals: Matrix
    notes: tuple[str, ...] = ()
    # The ellipsoid is where the square of the solution of root x = difference/unit is at most the threshold.
    _unit: float = field(default=1.0, repr=False)
    _root: Matrix | None = field(default=None, repr=False)
    _threshold: float = field(default=0.0, repr=False)
    # How long the unit of every coordinate is: a degree of longitude, or a public scale.
    _stretch: Vector | None = field(default=None, repr=False)
    _globe: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        for array in (self.center, self.covariance, self.standard_errors, self.intervals):
            if array is not None:
                array.setflags(write=False)

    def __repr__(self) -> str:
        """The level, the radius and the first intervals: the matrices are attributes."""
        limits = [f"{low:.6g} to {high:.6g}" for low, high in self.intervals[:_SHOWN].tolist()]
        more = self.center.size - len(limits)
        lines = [
            f"Region: {'a ball' if self.covariance is None else 'an ellipsoid and a ball'}, "
            f"level {self.level:g}, radius {self.radius:.4g}, d = {self.center.size}",
            f"  intervals  {', '.join(limits)}" + (f", and {more} more" if more > 0 else ""),
            *(f"  note       {note}" for note in self.notes),
        ]
        return "\n".join(lines)

    def contains(self, point: ArrayLike) -> bool:
        """Whether the point lies in the ellipsoid, or in the ball if there is no ellipsoid.

        Parameters
        ----------
        point : d numbers
            Of the dimension of the data.

        Returns
        -------
        bool
            True on the border too.
        """
        there = np.asarray(point, dtype=np.float64)
        if there.shape != self.center.shape:
            raise ValueError(f"point must have shape {self.center.shape} like the center, got {there.shape}")
        difference = there - self.center
        if self._globe:
            difference[0] = np.remainder(difference[0] + 180.0, 360.0) - 180.0
        if self._stretch is not None:
            difference = difference / self._stretch
        if self._root is None:
            # In units of the radius, because squares of tiny lengths are zero.
            unit = self.radius or 1.0
            return bool(np.linalg.norm(difference / unit) <= self.radius / unit)
        white = np.linalg.solve(self._root, difference / self._unit)
        return bool(white @ white <= self._threshold)

    def outline(self, count: int = 200) -> Matrix:
        """Points on the border of the region in the plane, one a column: of the ellipse, or of the circle."""
        if self.center.size != 2:
            raise ValueError(f"only a region in the plane has an outline, got d = {self.center.size}")
        turn = np.linspace(0.0, 2.0 * np.pi, count)
        circle = np.array([np.cos(turn), np.sin(turn)])
        if self._root is None:
            border = self.radius * circle
        else:
            border = self._unit * np.sqrt(self._threshold) * (self._root @ circle)
        return np.asarray(self.center[:, None] + (border if self._stretch is None else border * self._stretch[:, None]))


def error_radius(moments: Moments) -> float:
    """The radius that holds the exact median of these records in 95 % of the releases: the law without sampling."""
    error = error_of(replace(moments, position=None), sampling=False)
    return error.unit * float(np.quantile(np.linalg.norm(error.draws, axis=1), _outside(0.05, *_LENGTHS)))


def _outside(alpha: float, part: float, more: float) -> float:
    """The level of the draws for a region that leaves alpha outside."""
    return 1.0 - alpha * min(part + more * alpha, 1.0)


def confidence_region(
    center: Vector, moments: Moments, level: float, scale: float | None = None, scales: tuple[float, ...] | None = None
) -> Region:
    """The region of a release, at any level: the same moments serve all of them, at no further cost.

    With public `scales` the radius is in their units, and everything about coordinates in the units of the columns.
    """
    if isinstance(level, bool) or not isinstance(level, (int, float)) or not 0.0 < level < 1.0:
        raise ValueError(f"level must be a number between 0 and 1, like 0.95, got {level!r}")
    error, alpha = error_of(moments), 1.0 - level
    of_lengths, of_shapes = (_outside(alpha, *parts) for parts in (_LENGTHS, _SHAPES))
    lengths = np.linalg.norm(error.draws, axis=1)
    least, stretch = moments.least, np.ones(center.size) if scales is None else np.array(scales)
    if moments.position is not None:
        least = math.degrees(math.asin(min(least / math.hypot(*moments.position), 1.0)))
        # A degree of longitude is shorter than one of latitude; at a pole it would be none.
        stretch[0] = 1.0 / max(math.cos(math.radians(center[1])), _POLE)
    globe = moments.position is not None
    radius = max(error.unit * float(np.quantile(lengths, of_lengths)), least)
    large = scale is not None and moments.curvature is not None and radius > _LARGE * scale
    notes = ((COINCIDENT,) if moments.least else ()) + ((LARGE,) if large else ())
    if error.covariance is None or moments.least:
        half = radius * stretch
        intervals = np.array([center - half, center + half]).T
        return Region(center, level, radius, None, None, intervals, notes, _stretch=stretch, _globe=globe)
    root = np.asarray(np.linalg.cholesky(error.covariance), dtype=np.float64)
    white = np.linalg.solve(root, error.draws.T)
    with np.errstate(over="ignore", under="ignore"):
        # At the ends of the doubles squares of distances are none.
        covariance = error.unit * (error.unit * error.covariance) * np.outer(stretch, stretch)
        covariance = 0.5 * covariance + 0.5 * covariance.T  # Symmetric to the last digit, as others rely on.
    half = stretch * error.unit * np.quantile(np.abs(error.draws), of_lengths, axis=0)
    return Region(
        center,
        level,
        radius,
        covariance=covariance,
        standard_errors=stretch * error.unit * np.sqrt(np.diag(error.covariance)),
        intervals=np.array([center - half, center + half]).T,
        notes=notes,
        _unit=error.unit,
        _root=root,
        _threshold=error.growth * float(np.quantile((white**2).sum(axis=0), of_shapes)),
        _stretch=stretch,
        _globe=globe,
    )
