"""A confidence region for the population's median: a ball, and also an ellipsoid if the shape is known."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpmedian.inference.error import FEWEST, error_of
from dpmedian.inference.moments import Moments
from dpmedian.spherical import kilometers

__all__ = ["Region", "confidence_region", "error_radius", "half_widths"]

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

# A region at the level 1 - alpha excludes a part of the draws: a alpha + b alpha^2, but at most alpha. Here a and b are
# these numbers. At the level 95 % a region excludes 0.6 alpha, which leaves room for errors beyond the first order.
# Below the levels 73 % (lengths) and 76 % (shapes) a region excludes alpha. Balls and intervals of single coordinates
# use the first pair, and ellipsoids the second. The numbers were chosen with benches/coverage.py.
_LENGTHS, _SHAPES = (0.52, 1.75), (0.5, 2.1)
# A region with a radius above this many core radii gets a note, because the theory holds for small errors.
_LARGE = 0.5

# A region prints the intervals of at most this many coordinates.
_SHOWN = 6

# The smallest cosine of a latitude by which degrees of longitude are divided.
_POLE = 0.01

COINCIDENT = "Many records coincide, so the region is a ball that is at least as large as error_radius."
LARGE = (
    "The region is large relative to the core radius of the data, so it may contain the median less often than its "
    "level says."
)


@dataclass(frozen=True, eq=False)
class Region:
    """A region around a released point that contains the median of the population with probability `level`.

    The probability is asymptotic, for records that are drawn independently from one population with a unique median. It
    includes the sampling of the records and the noise of the release. `radius` is the radius of a ball around `center`.
    If the budget suffices for the shape of the error, `covariance` is the covariance of the error, `standard_errors`
    are the square roots of its diagonal, and the region is also an ellipsoid. Otherwise, and if many records coincide
    with the point, both are None. `intervals` has one row for each coordinate: limits that contain this coordinate of
    the median with probability `level`. Without a covariance, these are the limits of the ball. On a globe the radius
    is in degrees of arc, and the coordinates are longitude and latitude. `notes` are warnings for the reader.
    """

    center: Vector
    level: float
    radius: float
    covariance: Matrix | None
    standard_errors: Vector | None
    intervals: Matrix
    notes: tuple[str, ...] = ()
    # A point is in the ellipsoid if the solution x of root x = difference/unit has a squared norm of at most the
    # threshold.
    _unit: float = field(default=1.0, repr=False)
    _root: Matrix | None = field(default=None, repr=False)
    _threshold: float = field(default=0.0, repr=False)
    # The length of the unit of every coordinate: a degree of longitude, or a public scale.
    _stretch: Vector | None = field(default=None, repr=False)
    _globe: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        for array in (self.center, self.covariance, self.standard_errors, self.intervals):
            if array is not None:
                array.setflags(write=False)

    def __repr__(self) -> str:
        """The level, the radius and the first intervals. The matrices are not shown."""
        limits = [f"{low:.6g} to {high:.6g}" for low, high in self.intervals[:_SHOWN].tolist()]
        more = self.center.size - len(limits)
        radius = (
            f"{kilometers(self.radius):.4g} km ({self.radius:.4g} degrees)" if self._globe else f"{self.radius:.4g}"
        )
        lines = [
            f"Region: {'a ball' if self.covariance is None else 'an ellipsoid and a ball'}, "
            f"level {self.level:g}, radius {radius}, d = {self.center.size}",
            f"  intervals  {', '.join(limits)}" + (f", and {more} more" if more > 0 else ""),
            *(f"  note       {note}" for note in self.notes),
        ]
        return "\n".join(lines)

    def contains(self, point: ArrayLike) -> bool:
        """Whether the point lies in the ellipsoid, or in the ball if there is no ellipsoid.

        Parameters
        ----------
        point : d numbers
            The point to test, of the dimension of the data.

        Returns
        -------
        bool
            Whether the region contains the point. Points on the border are inside.
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
            # Lengths are divided by the radius first, because squares of tiny lengths would be zero.
            unit = self.radius or 1.0
            return bool(np.linalg.norm(difference / unit) <= self.radius / unit)
        white = np.linalg.solve(self._root, difference / self._unit)
        return bool(white @ white <= self._threshold)

    def outline(self, count: int = 200) -> Matrix:
        """Points on the border of the ellipse, or of the circle if there is no ellipse, one in each column. The data
        must have two dimensions.
        """
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
    """The radius of a ball around the released point that contains the exact median in 95 % of the releases.

    The sampling error is not included.
    """
    error = error_of(replace(moments, position=None), sampling=False)
    return error.unit * float(np.quantile(np.linalg.norm(error.draws, axis=1), _outside(0.05, *_LENGTHS)))


def half_widths(moments: Moments) -> Vector:
    """Half of the widths of the 95 % intervals of the coordinates, up to a few percent, in a fraction of the time of
    a confidence region.
    """
    error = error_of(moments, draws=FEWEST)
    lengths = error.draws if error.covariance is not None else np.linalg.norm(error.draws, axis=1, keepdims=True)
    half = error.unit * np.quantile(np.abs(lengths), _outside(0.05, *_LENGTHS), axis=0)
    return np.asarray(np.maximum(np.broadcast_to(half, moments.d), moments.least))


def _outside(alpha: float, part: float, more: float) -> float:
    """The share of the draws that a region contains if it should miss the median with probability alpha."""
    return 1.0 - alpha * min(part + more * alpha, 1.0)


def confidence_region(
    center: Vector, moments: Moments, level: float, scale: float | None = None, scales: tuple[float, ...] | None = None
) -> Region:
    """The confidence region of a release at this level, at no further cost.

    With public `scales` the radius is in units of the scales, and coordinates are in the units of the columns.
    """
    if isinstance(level, bool) or not isinstance(level, (int, float)) or not 0.0 < level < 1.0:
        raise ValueError(f"level must be a number between 0 and 1, like 0.95, got {level!r}")
    error, alpha = error_of(moments), 1.0 - level
    of_lengths, of_shapes = (_outside(alpha, *parts) for parts in (_LENGTHS, _SHAPES))
    lengths = np.linalg.norm(error.draws, axis=1)
    least, stretch = moments.least, np.ones(center.size) if scales is None else np.array(scales)
    if moments.position is not None:
        least = math.degrees(math.asin(min(least / math.hypot(*moments.position), 1.0)))
        # A degree of longitude is shorter than a degree of latitude, and at a pole its length would be zero.
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
        # Near the smallest and the largest doubles, squared distances would underflow or overflow.
        covariance = error.unit * (error.unit * error.covariance) * np.outer(stretch, stretch)
        covariance = 0.5 * covariance + 0.5 * covariance.T  # Exactly symmetric, as callers expect.
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
