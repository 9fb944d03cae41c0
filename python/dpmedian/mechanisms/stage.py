"""A stage of a plan, as data: what is released, with which noise, how often, and what that costs.

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

    `scale` is the standard deviation of Gaussian noise, and for all others the change of the value that changes a
    probability by a factor e. `remark` is what a reader needs beyond that: of a Gaussian, "at least"
    or "at most" where a run chooses its noise. `parameters` are those of the other kinds, exactly as they are used.
    """

    kind: str
    scale: float
    remark: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Stage:
    """Releases of one statistic with one noise.

    `releases` is the number of releases, at most. Where it depends on an earlier release, `rule` says how, and `cost`
    bounds every case. A `capped` stage shares one budget with the others: together they cost no more than the plan, and
    each of its `times` costs no more than it would at the least noise.

    `arguments` are those from which the sensitivity of the statistic is computed, and `coordinates` is the number of
    values in one release: with them a reviewer computes sensitivity and cost again.
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
        """The standard deviation of Gaussian noise; None for other kinds."""
        return self.noise.scale if self.noise.kind == "Gaussian" else None
