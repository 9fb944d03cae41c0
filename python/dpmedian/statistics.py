"""The statistics that can be queried: one frozen class each, with its sensitivity.

A statistic is public. A source answers it with an `Exact`, which contains integer sums that only the tape can open. The
answer carries the sensitivity of its statistic, so the sensitivity is stated in one place only. The classes, their
kernels and the proofs of their sensitivities are in `src/statistics/`, one file each.

| statistic | a record contributes |
|---|---|
| `Gradient` | the unit vector from the record to theta |
| `MeanShift` | the difference from theta in units of a radius, if it lies within the radius |
| `BallSize` | 1, if it lies within a radius of theta |
| `RobustStep` | its difference from a center, divided by the larger of its length and a threshold |
| `Ranks` | in every coordinate, 1 if it is at or below the threshold, less 1/2 if centered |
| `DistanceCounts` | for every radius 2^(k/4), 1 if it lies within the radius of theta, minus a target |
| `Curvature` | 1 within a radius of theta, and beyond it (1 - 1/d) radius/distance |
| `Hessian` | the same times a weight; beyond the radius also radius/distance u u^T, with u the unit vector to theta |
| `GradientAndDirections` | the unit vector u from the record to theta, and u u^T times a weight |
| `ShellsAndDirections` | 1 to the shell of its distance from theta, and u u^T times a weight |
| `GridCells` | 1 to its cell of a grid, if that cell is listed |
| `ClusterGradients` | to its nearest center: a weight, a weight in its shell, and a unit vector or a shorter one |
| `Size` | 1, or with weights its weight |
| `PairCounts` | for every radius, the random pairs that it belongs to and that lie within the radius |
| `LargestBallCounts` | for every radius, its share in the sum of the m largest ball counts |
| `ObjectiveDifferences` | at every candidate, its distance from it minus its distance from the first candidate |

`Statistic.sensitivity` and the static `bound` of each class give a `Sensitivity` with `.replace`, `.add_remove` and
`.under(neighbours)`, in units of 2^-bits. `bound` needs no instance; it is used to calibrate the noise. `Bound` is the
same function as data: a name and arguments, which a plan prints and a reviewer can evaluate again.

If records have weights, all statistics except pairs and balls are sums of weighted contributions. `bound` with
`weighted=True` says how far these sums move (`src/release/sensitivity.rs` has the proof). Pairs are formed among the
records that hidden coins keep, each with the probability given by its weight.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dpmedian._core import (
    FIRST_HALF_OCTAVE,
    FIRST_QUARTER_OCTAVE,
    LAST_QUARTER_OCTAVE,
    SHELLS,
    BallSize,
    ClusterGradients,
    Curvature,
    DistanceCounts,
    Exact,
    Gradient,
    GradientAndDirections,
    GridCells,
    Hessian,
    LargestBallCounts,
    MeanShift,
    ObjectiveDifferences,
    PairCounts,
    Ranks,
    RobustStep,
    Sensitivity,
    ShellsAndDirections,
    Size,
    Statistic,
)
from dpmedian.accounting.protection import Neighbours, Protection

__all__ = [
    "BOUNDS",
    "FIRST_HALF_OCTAVE",
    "FIRST_QUARTER_OCTAVE",
    "LAST_QUARTER_OCTAVE",
    "SHELLS",
    "SUMS",
    "BallSize",
    "Bound",
    "ClusterGradients",
    "Curvature",
    "DistanceCounts",
    "Exact",
    "Gradient",
    "GradientAndDirections",
    "GridCells",
    "Hessian",
    "LargestBallCounts",
    "MeanShift",
    "ObjectiveDifferences",
    "PairCounts",
    "Ranks",
    "RobustStep",
    "Sensitivity",
    "ShellsAndDirections",
    "Size",
    "Statistic",
]

BOUNDS: dict[str, Callable[..., Sensitivity]] = {
    "gradient": Gradient.bound,
    "mean shift": MeanShift.bound,
    "ball size": BallSize.bound,
    "robust step": RobustStep.bound,
    "ranks": Ranks.bound,
    "distance counts": DistanceCounts.bound,
    "curvature": Curvature.bound,
    "hessian": Hessian.bound,
    "gradient and directions": GradientAndDirections.bound,
    "shells and directions": ShellsAndDirections.bound,
    "grid cells": GridCells.bound,
    "cluster gradients": ClusterGradients.bound,
    "size": Size.bound,
    "pair counts": PairCounts.bound,
    "largest ball counts": LargestBallCounts.bound,
}
"""The sensitivities that depend on public numbers only, by the name of the statistic."""

SUMS = frozenset(BOUNDS) - {"pair counts", "largest ball counts"}
"""The statistics that are sums over records, in which weights are factors; pairs are formed after hidden coins."""


@dataclass(frozen=True)
class Bound:
    """The L2 sensitivity of a statistic on a lattice of multiples of 2^-bits, as a function that is also data."""

    statistic: str
    neighbours: Neighbours
    arguments: tuple[tuple[str, Any], ...] = ()
    """The arguments of the bound in addition to the bits."""

    @classmethod
    def of(cls, statistic: str, protection: Protection, **arguments: Any) -> Bound:
        """The bound of this statistic, or of its sum over weighted records, with named arguments."""
        weights = {"weighted": True} if protection.weighted and statistic in SUMS else {}
        return cls(statistic, protection.neighbours, tuple({**arguments, **weights}.items()))

    def __call__(self, bits: int) -> float:
        """The sensitivity in units of 2^-bits, rounded up."""
        return BOUNDS[self.statistic](**dict(self.arguments), bits=bits).under(self.neighbours)
