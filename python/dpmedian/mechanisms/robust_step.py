"""One noisy robust step: the sum of the unit vectors from a public point to the records. Proof: robust_step.md."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmedian._core import Tape
from dpmedian.mechanisms.gaussian import Gaussian
from dpmedian.parameters import PublicParameters
from dpmedian.sources.protocol import Source
from dpmedian.statistics import Exact

__all__ = ["NoisyStep"]

# The finest lattice, multiples of 2^-36. On this lattice a sum over 2^25 records fits 64 bits.
_FINEST = 36

# The number of entries that are converted to doubles at a time.
_CHUNK = 1 << 16


@dataclass(frozen=True)
class NoisyStep(Gaussian):
    """One Gaussian release of the sum of (x - center)/max(|x - center|, threshold).

    Neighbors and sensitivity: the statistic states them. The sensitivity is 1 under add/remove and 2 under
    replacement, plus the rounding. Cost: one Gaussian release. Failure: none.
    """

    @classmethod
    def of(cls, name: str, rho: float, parameters: PublicParameters) -> NoisyStep:
        """Calibrate the release to rho."""
        return cls.of_statistic(name, "robust step", rho, parameters, {"d": parameters.d}, largest=None, finest=_FINEST)

    def toward(
        self,
        source: Source,
        tape: Tape,
        center: NDArray[np.float32] | NDArray[np.float64] | None,
        threshold: float,
    ) -> NDArray[np.float64]:
        """The noisy sum of the differences from a public center, in natural units."""
        from_center = {"d": source.d} if center is None else {"center": center}
        return self.query(source, tape, threshold=threshold, **from_center)

    def release(self, tape: Tape, exact: Exact) -> NDArray[np.float64]:
        """The exact sum plus noise, converted to doubles in place, so that a large vector is not copied."""
        noisy = tape.gaussian(self.name, exact, self.noise_multiplier)
        natural, unit = noisy.view(np.float64), math.ldexp(1.0, -self.bits)
        for start in range(0, len(noisy), _CHUNK):
            natural[start : start + _CHUNK] = noisy[start : start + _CHUNK] * unit
        return natural
