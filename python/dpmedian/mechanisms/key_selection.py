"""The noisy size of a group whose key is not public. The group is shown if its noisy size is large.

Proof: key_selection.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist

from dpmedian.accounting import PrivacyCost
from dpmedian.accounting.normal import upper_tail
from dpmedian.accounting.threshold import threshold_of, threshold_rule
from dpmedian.mechanisms.gaussian import Gaussian
from dpmedian.mechanisms.size import NoisySize
from dpmedian.mechanisms.stage import Stage
from dpmedian.parameters import PublicParameters

__all__ = ["KeySelection"]


@dataclass(frozen=True)
class KeySelection(NoisySize):
    """The noisy size of one group that occurs in the data. The group is shown if the noisy size is at least
    `threshold`.

    Neighbors: one unit added, removed or replaced. Sensitivity: 1. Cost: one Gaussian release, and `lone_delta`, which
    bounds the probability that a group with a single contribution is shown. Failure: a group with a small noisy size is
    not shown. The release is then the same as for a group that does not occur.
    """

    threshold: int = 0
    lone_delta: float = 0.0

    @classmethod
    def of(cls, name: str, rho: float, parameters: PublicParameters) -> KeySelection:
        """Calibrate the noise to rho, and the threshold to the `lone_delta` of the parameters."""
        if parameters.lone_delta is None:
            raise ValueError("a threshold needs lone_delta, the probability that a group of one contribution is shown")
        spec = Gaussian.of_statistic(name, "size", rho, parameters, largest=None)
        threshold = threshold_of(spec.sigma, spec.bits, parameters.lone_delta)
        return cls(**vars(spec), threshold=threshold, lone_delta=parameters.lone_delta)

    def shows(self, size: int) -> bool:
        """Whether a group of this noisy size is shown."""
        return size >= self.threshold

    def found(self, size: float) -> float:
        """The probability that a group of this exact size is shown."""
        return upper_tail((self.threshold - 0.5 - size) / self.noise)

    def size_found(self, probability: float) -> int:
        """The smallest exact size of a group that is shown with at least this probability."""
        return max(math.ceil(self.threshold - 0.5 + self.noise * NormalDist().inv_cdf(probability)), 1)

    @property
    def cost(self) -> PrivacyCost:
        return replace(super().cost, delta0=self.lone_delta)

    @property
    def stage(self) -> Stage:
        """The row of a plan. Its rule states the noisy size at which a group is shown."""
        return replace(super().stage, rule=threshold_rule(self.threshold))
