"""A stage of a plan: the released statistic, its noise, the number of releases, and their cost.

The cost of a plan, its table, its HTML and its JSON are all derived from its stages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dpmedian.accounting import PrivacyCost

__all__ = ["Noise", "Stage"]


@dataclass(frozen=True)
class Noise:
    """The distribution of the noise, in the natural units of the statistic.

    `scale` is the standard deviation of Gaussian noise. For other noise, `scale` is the change of the value that
    changes a probability by a factor e. `remark` is additional text for the reader, for example "at least" if a run
    chooses the noise of a Gaussian release. `parameters` are the exact parameters of noise that is not Gaussian.
    """

    kind: str
    scale: float
    remark: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Stage:
    """Releases of one statistic with one noise.

    `releases` is the largest number of releases. If the number depends on an earlier release, `rule` describes how, and
    `cost` is the largest possible cost. All `capped` stages share one budget, so they cost less than the sum of their
    costs. The cost of a capped stage is its cost at the least noise.

    `arguments` are the numbers from which the sensitivity of the statistic is computed, and `coordinates` is the number
    of values in one release. A reviewer can compute the sensitivity and the cost again from them.
    """

    name: str
    statistic: str
    sensitivity: float
    noise: Noise
    releases: int
    cost: PrivacyCost
    rule: str = ""
    capped: bool = False
    times: int = 1
    coordinates: int = 1
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def sigma(self) -> float | None:
        """The standard deviation of Gaussian noise, or None for other kinds of noise."""
        return self.noise.scale if self.noise.kind == "Gaussian" else None
