"""What may be asked of the data: one frozen class per statistic, each with its sensitivity.

A statistic is public. A source answers it with an `Exact`, integer sums that only the tape can open, and the answer
carries the sensitivity of its statistic: nobody states it a second time. The classes, their kernels and the proofs of
their sensitivities lie together in `src/statistics/`, one file each.

| statistic | a record contributes |
|---|---|
| `Gradient` | the unit vector from the record to theta |
| `MeanShift` | the difference from theta in units of a radius, if it lies within the radius |
| `Ranks` | in every coordinate, 1 if it is at or below the threshold, less 1/2 if centered |
| `DistanceCounts` | for every radius 2^(k/4), 1 if it lies within the radius of theta, less a target |
| `Curvature` | 1 within a radius of theta, and beyond it (1 - 1/d) radius/distance |
| `SecondMoments` | w u u^T, u the unit vector to theta and w in [0, 1], falling with its distance, or 1 |
| `Size` | 1 |
| `PairCounts` | for every radius, the pairs of random pairings that it is in and that lie within the radius |
| `LargestBallCounts` | for every radius, its share in the sum of the m largest ball counts |
| `ObjectiveDifferences` | at every candidate, its distance from it minus its distance from the first candidate |

`Statistic.sensitivity` and the static `bound` of each class give a `Sensitivity` with `.replace`, `.add_remove` and
`.under(neighbours)`, in units of 2^-bits: `bound` needs no instance and serves to calibrate the noise.
"""

from dpmedian._core import (
    FIRST_QUARTER_OCTAVE,
    LAST_QUARTER_OCTAVE,
    Curvature,
    DistanceCounts,
    Exact,
    Gradient,
    LargestBallCounts,
    MeanShift,
    ObjectiveDifferences,
    PairCounts,
    Ranks,
    SecondMoments,
    Sensitivity,
    Size,
    Statistic,
)

__all__ = [
    "FIRST_QUARTER_OCTAVE",
    "LAST_QUARTER_OCTAVE",
    "Curvature",
    "DistanceCounts",
    "Exact",
    "Gradient",
    "LargestBallCounts",
    "MeanShift",
    "ObjectiveDifferences",
    "PairCounts",
    "Ranks",
    "SecondMoments",
    "Sensitivity",
    "Size",
    "Statistic",
]
