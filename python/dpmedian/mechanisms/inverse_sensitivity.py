"""The draw of a random lattice point. The score of a point is the number of records that must change to make the point
a median, and points with a small score are more likely.

Proof: inverse_sensitivity.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmedian._core import Tape, lattice_score_sensitivity
from dpmedian.accounting import PrivacyCost
from dpmedian.mechanisms.stage import Noise, Stage
from dpmedian.parameters import PublicParameters
from dpmedian.sources.protocol import Source

__all__ = ["RECORDS_MAX", "InverseSensitivity", "Lattice"]

# The largest number of records for which the cells are small enough and the bounds of the scores are proved.
RECORDS_MAX = 2**28
# The largest coordinate on the lattice, in steps. Doubles represent differences of such coordinates exactly.
_EXTENT_MAX = 2**52
# The number of lattice steps per resolution. In one dimension only the rounding depends on this number. In two and
# three dimensions cells must be smaller than the ball in which the score is small; see `Lattice.of`. A resolution of
# fewer than sixteen steps is refused.
_STEPS_LINE, _STEPS_SPACE, _STEPS_MIN = 2**20, 2**6, 2**4
# A smaller step than this one would not be a normal double.
_STEP_MIN = 2.0**-1000

_LN_TWO_ABOVE = Fraction(693147180559945309417232121459, 10**30)
_RATE_BITS = 40
# Scores are integers in units of 2^-31 records.
_SCORE_BITS = 31


@dataclass(frozen=True)
class Lattice:
    """The public lattice. Records are rounded to multiples of `step`. Every coordinate of a released point is an odd
    multiple of `step`.

    `reach` is the largest distance of a record from the center, and `smoothing` is the resolution. Both are even
    numbers of steps.
    """

    step: float
    reach: int
    smoothing: int

    @classmethod
    def of(cls, epsilon: float, *, n: int, d: int, radius: float, resolution: float) -> Lattice:
        """Choose the lattice.

        In more than one dimension, the points within k0/n resolutions of the median have a score below k0 = 2
        d/epsilon. These points form a ball. The step is chosen so that the radius of this ball is eight half diagonals
        of a cell. A half diagonal is sqrt(d) steps.
        """
        wanted = _STEPS_LINE if d == 1 else max(_STEPS_SPACE, 4.0 * epsilon * n / math.sqrt(d))
        possible = _EXTENT_MAX / (radius / resolution + 2.0)
        if possible < _STEPS_MIN:
            raise ValueError(
                f"resolution is too fine for the radius: radius/resolution must be at most "
                f"{_EXTENT_MAX // _STEPS_MIN - 2:.3g}, got {radius!r}/{resolution!r} = {radius / resolution:.3g}"
            )
        smoothing = 2 ** min(math.ceil(math.log2(wanted)), math.floor(math.log2(possible)))
        step = resolution / smoothing
        if step < _STEP_MIN:
            raise ValueError(f"resolution must be at least {_STEP_MIN * smoothing:.3g}, got {resolution!r}")
        return cls(step, 2 * math.ceil(radius / step / 2.0), smoothing)

    @property
    def extent(self) -> int:
        """The radius of the domain, in steps."""
        return self.reach + self.smoothing

    def place(self, z: NDArray[np.int64]) -> NDArray[np.float64]:
        """The position of a lattice point relative to the center, in the units of the data."""
        return np.asarray(z, dtype=np.float64) * self.step


@dataclass(frozen=True)
class InverseSensitivity:
    """One exact draw with weights exp(-epsilon/2 score/sensitivity).

    Neighbors and sensitivity: the score states them. The sensitivity is 1 if a record is replaced and 1/2 if a
    record is added or removed. With weights, the rounding is added. Cost: epsilon of pure differential privacy, and a
    bounded range of epsilon. Failure: none."""

    epsilon: float
    sensitivity: float
    rate: int
    lattice: Lattice
    d: int
    weighted: bool = False

    @classmethod
    def of(cls, epsilon: float, parameters: PublicParameters) -> InverseSensitivity:
        """Calibrate the draw.

        A point has the weight 2^(-score rate/2^40). The rate is rounded down, so that 2 ln 2 rate/2^40 sensitivity <=
        epsilon.
        """
        assert parameters.radius is not None
        assert parameters.resolution is not None
        # Without a public number of records and without a guess, cells are as small as RECORDS_MAX records require.
        n = RECORDS_MAX if parameters.n is None else parameters.n
        d, radius, resolution = parameters.d, parameters.radius, parameters.resolution
        bound = lattice_score_sensitivity(d, parameters.weighted).under(parameters.neighbours)
        sensitivity = Fraction(bound) / 2**_SCORE_BITS
        rate = math.floor(Fraction(epsilon) * 2 ** (_RATE_BITS - 1) / _LN_TWO_ABOVE / sensitivity)
        lattice = Lattice.of(epsilon, n=n, d=d, radius=radius, resolution=resolution)
        return cls(epsilon, float(sensitivity), min(rate, 2**56 - 1), lattice, d, parameters.weighted)

    @property
    def decay(self) -> float:
        """The decay of the weights: epsilon/2 divided by the sensitivity, up to rounding.

        If the score grows by 1/decay, the weight is divided by e.
        """
        return math.ldexp(self.rate, -_RATE_BITS) * math.log(2.0)

    @property
    def cost(self) -> PrivacyCost:
        return PrivacyCost.bounded_range(self.epsilon)

    @property
    def stage(self) -> Stage:
        """The row of a plan."""
        remark = f"weights exp(-{self.decay:.4g} score)"
        noise = Noise("lattice draw", 1.0 / max(self.decay, 1e-300), remark, {"rate": self.rate})
        arguments: dict[str, Any] = {"d": self.d, **({"weighted": True} if self.weighted else {})}
        return Stage(
            "inverse sensitivity", "records to change", self.sensitivity, noise, 1, self.cost, arguments=arguments
        )

    def release(self, source: Source, tape: Tape, center: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the drawn point relative to the center. The draw computes thousands of scores, and every score needs
        all records.
        """
        if source.local is None:
            raise ValueError("this mechanism needs all records in this process")
        lattice = (self.lattice.step, self.lattice.reach, self.lattice.smoothing)
        place = source.local.draw_lattice(
            tape, center=center.tolist(), lattice=lattice, rate=self.rate, pulse=source.advance(1.0)
        )
        return self.lattice.place(place)
