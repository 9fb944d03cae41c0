"""The axes and the shape of the data, from the released second moments of the directions.

Privacy: axes and shape are functions of released values, so they cost nothing. axes.md derives the bounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmedian.inference.error import tangent
from dpmedian.inference.moments import Moments
from dpmedian.postprocess import semicircle

__all__ = ["Axes", "Shape", "axes_of", "shape_of"]

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

# An eigenvalue stands out if it exceeds the edge of the semicircle distribution of noise and sampling errors by this
# factor. The semicircle is exact only in many dimensions. benches/axes.py counts how often isotropic data show an axis.
_BEYOND_EDGE = 1.15
# The 95 % quantile of the standard normal distribution.
_NORMAL_95 = 1.645
# Gaps between eigenvalues are reduced by this many standard deviations of an eigenvalue before an angle is bounded.
# With one standard deviation, bounds of about 25 degrees would hold in only nine of ten runs.
_GAP_CAUTION = 2.0
# An axis whose angle has a larger bound than this (in degrees) counts as unknown, because it may be another axis.
_LARGEST_ANGLE = 45.0
# The number of steps of the iteration whose fixed point is the shape. The iteration converges linearly, and reaches an
# accuracy of 1e-6 for axes with a ratio of 100:1.
_SHAPE_STEPS = 400
# The number of nodes of the quadrature in log t, and its range. At both ends the integrand decreases like a power of t.
_NODES, _LOG_RANGE = 600, 40.0
# On a globe, at least this part of the squared directions is assumed to lie along the surface, even if noise hides it.
_LEAST_ALONG_SURFACE = 0.1
# Eigenvalues of the directions are assumed to be at least this part of their mean, because noise may make an eigenvalue
# negative.
_SMALLEST = 1e-3


@dataclass(frozen=True, eq=False)
class Axes:
    """The directions in which the data extend most, in decreasing order of extent. Only directions that stand out of
    the noise are included.

    `vectors` has one unit vector in each row, determined up to its sign. `angles` bounds the angle between each vector
    and the true axis, in degrees, with 95 % probability. The true axis is computed from the directions from the median
    of the population. The bound includes the noise of the release and the sampling of the records. `shares` are the
    shares of the squared directions along each axis. The sum of the shares of all d axes is 1. If the data extend
    equally in all directions, each share is 1/d. On a globe the coordinates of a vector are east and north. An axis is
    left out if the data extend nearly as far along another axis, because then only the plane of the two axes is known.
    """

    vectors: Matrix
    angles: Vector
    shares: Vector

    def __post_init__(self) -> None:
        for array in (self.vectors, self.angles, self.shares):
            array.setflags(write=False)

    def __len__(self) -> int:
        return len(self.angles)

    def __repr__(self) -> str:
        if not len(self):
            return "Axes: none stands out of the noise"
        rows = [
            f"  {place + 1}. share {share:.3g}, within {angle:.2g} degrees: "
            + np.array2string(vector, precision=4, threshold=8, edgeitems=3, max_line_width=100)
            for place, (vector, angle, share) in enumerate(zip(self.vectors, self.angles, self.shares, strict=True))
        ]
        return "\n".join([f"Axes: {len(self)} of {self.vectors.shape[1]} stand out", *rows])


@dataclass(frozen=True, eq=False)
class Shape:
    """The shape of elliptical data: `matrix` is proportional to their covariance, with trace d.

    `standard_deviations` are divided by their root mean square, largest first, and belong to the rows of `vectors`. The
    shape assumes that the population is elliptical, like a normal or a t distribution. For another population, it is
    the shape of the elliptical population with the same directions. The expected contribution of the noise is
    subtracted.
    """

    matrix: Matrix
    standard_deviations: Vector
    vectors: Matrix

    def __post_init__(self) -> None:
        for array in (self.matrix, self.standard_deviations, self.vectors):
            array.setflags(write=False)

    def __repr__(self) -> str:
        shown = np.array2string(self.standard_deviations, precision=3, threshold=8, edgeitems=3, max_line_width=100)
        return f"Shape: relative standard deviations {shown}, if the population is elliptical"


@dataclass(frozen=True)
class _Spectrum:
    """The mean second moments of the directions: eigenvalues in descending order, eigenvectors as columns, and their
    errors.
    """

    values: Vector
    vectors: Matrix
    sampling: float
    noise: float

    @property
    def edge(self) -> float:
        """The largest difference of an eigenvalue from the mean eigenvalue that is plausible for isotropic data of this
        size.
        """
        return _BEYOND_EDGE * semicircle(math.hypot(self.noise, self.sampling), len(self.values))


def _spectrum(moments: Moments | None) -> _Spectrum:
    found = None if moments is None else moments.directions
    if moments is not None and moments.axes is not None:
        found = moments.axes if found is None else found.combined(moments.axes)
    if moments is None or found is None:
        raise ValueError(
            "this release has no second moments of directions. Use method 'adaptive' with inference=True and at least "
            "two dimensions. If there are few records, give a share of the budget to the axes, for example axes=0.1. "
            "There are no axes if many records coincide with the released point"
        )
    n, matrix, noise = moments.size, found.matrix / moments.size, found.noise / moments.size
    if moments.position is not None:
        frame = tangent(moments.position)
        frame /= np.linalg.norm(frame, axis=1, keepdims=True)
        matrix = frame @ matrix @ frame.T
        # Seen from a point on the globe, records near the point lie nearly along the surface.
        level = max(float(np.trace(matrix)), _LEAST_ALONG_SURFACE)
        matrix, noise = matrix / level, noise / level
    d = len(matrix)
    values, vectors = np.linalg.eigh(matrix)
    return _Spectrum(values[::-1], vectors[:, ::-1], math.sqrt(2.0 / (d * (d + 2) * n)), noise)


def _without_noise(spectrum: _Spectrum) -> Vector:
    """The eigenvalues without the contribution of the noise.

    Eigenvalues beyond the edge of the semicircle are corrected one by one, and the others together. The semicircle is
    centered at the median eigenvalue, because a few large eigenvalues may raise the mean above all others.
    """
    d = len(spectrum.values)
    edge, most = semicircle(spectrum.noise, d), float(np.median(spectrum.values))
    away = spectrum.values - most
    out = np.abs(away) > _BEYOND_EDGE * edge
    grown = np.sqrt(np.maximum(away**2 - edge**2, 0.0))
    values = most + np.where(out, 0.5 * (away + np.sign(away) * grown), 0.0)
    if not out.all():
        values[~out] += (1.0 - values.sum()) / int((~out).sum())
    values = np.maximum(values, _SMALLEST / d)
    return np.asarray(values / values.sum())


def axes_of(moments: Moments | None) -> Axes:
    """The axes that stand out, with a bound on the angle of each."""
    spectrum = _spectrum(moments)
    d, size = len(spectrum.values), 1.0 if moments is None else moments.size
    values, total = _without_noise(spectrum), math.hypot(spectrum.noise, spectrum.sampling)
    chosen, angles = [], []
    for place in range(d):
        if spectrum.values[place] - spectrum.values.mean() <= spectrum.edge:
            break
        others = np.delete(values, place)
        gaps = np.maximum(np.abs(values[place] - others) - _GAP_CAUTION * total, 0.0)
        # To first order, the axis is rotated toward each other axis by an independent normal amount.
        variances = 0.5 * spectrum.noise**2 + values[place] * others / size
        with np.errstate(divide="ignore"):
            turned = variances / gaps**2
        angle = _angle_95(turned)
        if angle <= _LARGEST_ANGLE:
            chosen.append(place)
            angles.append(angle)
    return Axes(spectrum.vectors.T[chosen].copy(), np.array(angles), values[chosen].copy())


def _angle_95(variances: Vector) -> float:
    """The angle in degrees whose squared tangent is the 95 % quantile of a sum of squares of independent normal
    variables with these variances.

    The sum is approximated by a scaled chi-square variable with the same mean and variance. Its quantile is
    approximated by the formula of Wilson and Hilferty.
    """
    mean = float(variances.sum())
    if not math.isfinite(mean):
        return 90.0
    spare = 2.0 / 9.0 * float((variances**2).sum()) / mean**2
    return math.degrees(math.atan(math.sqrt(mean * (1.0 - spare + _NORMAL_95 * math.sqrt(spare)) ** 3)))


def shape_of(moments: Moments | None) -> Shape:
    """The shape of the elliptical population that has these directions."""
    spectrum = _spectrum(moments)
    squares = _elliptical(_without_noise(spectrum))
    vectors = spectrum.vectors
    return Shape((vectors * squares) @ vectors.T, np.sqrt(squares), vectors.T.copy())


def _elliptical(shares: Vector) -> Vector:
    """The variances a, with sum d, of the normal distribution whose directions have these mean squares.

    The mean of a_i z_i^2 / sum_j a_j z_j^2 is the integral over t > 0 of a_i/(1 + 2 a_i t) prod_j (1 + 2 a_j t)^(-1/2).
    """
    d = len(shares)
    log_t = np.linspace(-_LOG_RANGE, _LOG_RANGE, _NODES)
    t, step = np.exp(log_t), log_t[1] - log_t[0]
    variances = shares * d
    for _ in range(_SHAPE_STEPS):
        grown = 1.0 + 2.0 * variances * t[:, None]
        weight = t * np.exp(-0.5 * np.log(grown).sum(axis=1)) * step
        seen = (weight[:, None] * variances / grown).sum(axis=0)
        variances = variances * shares / seen
        variances *= d / variances.sum()
    return np.asarray(variances)
