"""The noisy number of records, or the noisy sum of their weights, for data sets whose size is private. Proof:
size.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpmedian._core import Tape
from dpmedian.mechanisms.gaussian import Gaussian
from dpmedian.parameters import PRIVATE_RECORDS_MAX, PublicParameters
from dpmedian.sources.protocol import Source

__all__ = ["NoisySize"]


@dataclass(frozen=True)
class NoisySize(Gaussian):
    """The number of records, or the sum of their weights, with Gaussian noise.

    Neighbors: one record added or removed. With weights also one record replaced, because a replacement can change the
    sum of the weights. Sensitivity: 1. Cost: one Gaussian release. Failure: none. If there are few records, the result
    may be 0.
    """

    @classmethod
    def of(cls, name: str, rho: float, parameters: PublicParameters) -> NoisySize:
        return cls.of_statistic(name, "size", rho, parameters, largest=None)

    def among(self, source: Source, tape: Tape) -> int:
        """The noisy number, rounded to the nearest possible integer. Rounding and clamping are post-processing."""
        noisy = float(self.query(source, tape)[0])
        return min(max(round(noisy), 0), PRIVATE_RECORDS_MAX)
