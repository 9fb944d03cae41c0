"""The statistics that can be queried, and their sensitivities.

A statistic is public. A source answers it with an `Exact`, which contains integers that only the tape can open. The
answer stores the sensitivity of its statistic, so the sensitivity is stated in one place only. Each statistic has a
file in `src/statistics/` with its kernel, its parameters and the proof of its sensitivity.

| statistic | a record contributes |
|---|---|
| `gradient` | the unit vector from the record to theta |
| `mean shift` | the difference from theta in units of a radius, if it lies within the radius |
| `ball size` | 1, if it lies within a radius of theta |
| `robust step` | its difference from a center, divided by the larger of its length and a threshold |
| `ranks` | in every coordinate, 1 if it is at or below the threshold, and 1/2 less if the ranks are centered |
| `distance counts` | for every radius 2^(k/4), 1 if it lies within the radius of theta, minus a target |
| `curvature` | 1 within a radius of theta, and beyond it (1 - 1/d) radius/distance |
| `hessian` | the curvature times a weight, and beyond the radius u u^T radius/distance (u: unit vector to theta) |
| `gradient and directions` | the unit vector u from the record to theta, and u u^T times a weight |
| `shells and directions` | 1 to the shell of its distance from theta, and u u^T times a weight |
| `grid cells` | 1 to its cell of a grid, if that cell is listed |
| `cluster gradients` | to its nearest center: a weight, a weight in its shell, and a unit vector or a shorter one |
| `size` | 1, or with weights its weight |
| `pair counts` | for every radius, the random pairs that it belongs to and that lie within the radius |
| `largest ball counts` | for every radius, its share in the sum of the m largest ball counts |
| `objective differences` | at every candidate, its distance from it minus its distance from the first candidate |

`Statistic("gradient", theta=theta, bits=32)` is a query. Its `.sensitivity` has `.replace`, `.add_remove` and
`.under(neighbours)`, in units of 2^-bits. `bound` gives the same sensitivity before a query is created, for the
calibration of the noise. A `Bound` stores a name and arguments for this function. A plan prints the name and the
arguments, so that a reviewer can evaluate the function again.

If records have weights, all statistics except pairs and balls are sums of weighted contributions. `bound` with
`weighted=True` is the sensitivity of these sums (`src/release/sensitivity.rs` has the proof). For pairs, hidden coins
keep each record with the probability given by its weight, and pairs are formed among the kept records.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Any

from dpmedian._core import (
    FIRST_HALF_OCTAVE,
    FIRST_QUARTER_OCTAVE,
    LAST_QUARTER_OCTAVE,
    SHELLS,
    STATISTICS,
    Exact,
    Sensitivity,
    Statistic,
    bound,
)
from dpmedian.accounting.protection import Neighbours, Protection

__all__ = [
    "FIRST_HALF_OCTAVE",
    "FIRST_QUARTER_OCTAVE",
    "LAST_QUARTER_OCTAVE",
    "QUERIES",
    "SHELLS",
    "SUMS",
    "Bound",
    "Exact",
    "Sensitivity",
    "Statistic",
    "bound",
]

QUERIES = {
    "gradient": "In which direction do most records lie, seen from a point?",
    "mean shift": "In which direction do the nearby records lie, seen from a point?",
    "ball size": "How many records lie in a ball?",
    "robust step": "In which direction do most records lie, seen from a public point?",
    "ranks": "In every coordinate, how many records lie below a value?",
    "distance counts": "How many records lie within some distance of a point?",
    "curvature": "How densely do records lie around a point?",
    "hessian": "How densely, and in which directions, do records lie around a point?",
    "gradient and directions": "In which direction do most records lie, and how are all directions distributed?",
    "shells and directions": "How far away from a point, and in which directions, do records lie?",
    "grid cells": "How many records lie in each cell of a grid?",
    "cluster gradients": "How many records lie around each center, how far away, and in which direction?",
    "size": "How many records are there?",
    "pair counts": "How many random pairs of records are close together?",
    "largest ball counts": "How many records lie near the records in the densest places?",
    "objective differences": "Which of a few candidates has the smallest sum of distances to the records?",
    "records to change": "How many records would have to change to make a place the median?",
}
"""Each statistic, and the score of a lattice draw, in plain words for the page of a release."""

SUMS = frozenset(name for name, is_sum in STATISTICS if is_sum)
"""The statistics that are sums over records. With weights, a contribution is multiplied by the weight of its record."""


@dataclass(frozen=True)
class Bound:
    """The L2 sensitivity of a statistic on a lattice of multiples of 2^-bits. It is a function of the bits, and is
    stored as a name and arguments.
    """

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
        return _bound(self.statistic, self.arguments, bits)[0].under(self.neighbours)

    def values(self, bits: int) -> int:
        """The number of values of an answer that are released at once."""
        return _bound(self.statistic, self.arguments, bits)[1]


@functools.lru_cache(maxsize=1024)
def _bound(statistic: str, arguments: tuple[tuple[str, Any], ...], bits: int) -> tuple[Sensitivity, int]:
    """The bound. It is cached because a calibration needs the same bounds many times."""
    return bound(statistic, **dict(arguments), bits=bits)


def __getattr__(name: str) -> Any:
    query = re.sub("(?<=[a-z])(?=[A-Z])", " ", name).lower()
    if query in dict(STATISTICS):
        raise AttributeError(f"dpmedian.statistics.{name} is now Statistic({query!r}, ...), with named parameters")
    raise AttributeError(f"module 'dpmedian.statistics' has no attribute {name!r}")
