"""The result of a robust step: a private direction, and how far the records agree about it."""

from __future__ import annotations

from dataclasses import dataclass

from dpmedian.release import Release

__all__ = ["Step"]


@dataclass(frozen=True, eq=False, repr=False)
class Step(Release):
    """A differentially private mean of unit vectors from a public point to the records, and its cost.

    `point` is this mean. Its length is at most 1 except for the noise, which has the standard deviation `noise_std` in
    every coordinate. Multiply it by a public step length. `coherence` estimates the length of the mean without the
    noise: 1 if all records lie in one direction, and 0 if they agree about nothing or if the noise hides the mean.
    `coherence_interval` contains the true length in 19 of 20 runs. `size` is the noisy number of records; None if the
    sum was divided by a public number.
    """

    coherence: float = 0.0
    coherence_interval: tuple[float, float] = (0.0, 1.0)
    noise_std: float = 0.0

    @property
    def withstands(self) -> float:
        """The share of hostile records below which the step still points forward, coherence/(1 + coherence).

        This share holds if all records are honest; if some are hostile already, it is the share that may be added.
        """
        return self.coherence / (1.0 + self.coherence)
