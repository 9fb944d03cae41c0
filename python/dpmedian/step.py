"""The result of a robust step: a private direction, and its coherence."""

from __future__ import annotations

from dataclasses import dataclass

from dpmedian.release import Release

__all__ = ["Step"]


@dataclass(frozen=True, eq=False, repr=False)
class Step(Release):
    """A differentially private mean of unit vectors from a public point to the records, and its cost.

    `point` is this mean. Without noise its length is at most 1. The noise has the standard deviation `noise_std` in
    every coordinate. Multiply `point` by a public step length to make a step. `coherence` is an estimate of the length
    of the mean without the noise. The coherence is 1 if all records lie in one direction, and 0 if their directions
    cancel or if the noise hides the mean. `coherence_interval` contains the true length in 19 of 20 runs. `size` is the
    noisy number of records, or None if the sum was divided by a public number.
    """

    coherence: float = 0.0
    coherence_interval: tuple[float, float] = (0.0, 1.0)
    noise_std: float = 0.0

    @property
    def withstands(self) -> float:
        """The largest share of hostile records with which the step still points forward: coherence/(1 + coherence).

        A step points forward if it has a positive component in the direction of the honest mean. The formula assumes
        that all records of this step were honest. If some of them were hostile, the result is the share of hostile
        records that may be added.
        """
        return self.coherence / (1.0 + self.coherence)
