"""The calibrated robust step: one noisy sum, and the noisy size if it is needed. Proof: robust_step.md."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmedian.accounting import PrivacyCost
from dpmedian.mechanisms.robust_step import NoisyStep
from dpmedian.mechanisms.size import NoisySize
from dpmedian.mechanisms.stage import Stage
from dpmedian.methods.contract import CalibratedMethod, Prediction
from dpmedian.parameters import PublicParameters
from dpmedian.release import ReleaseFailed, StepResult
from dpmedian.sources.protocol import Source
from dpmedian.tape import Tape

__all__ = ["CalibratedStep", "calibrate", "cap", "check"]

# The share of rho for the noisy size. This share increases the noise of the step by one percent.
_SIZE = 0.02

# If the noisy size is below this many standard deviations, there may be no records at all, and the mean would have an
# arbitrary length.
_NONE = 3.0

# The quantile of a 95 % interval.
_QUANTILE = 1.96


@dataclass(frozen=True, eq=False)
class CalibratedStep(CalibratedMethod):
    """One noisy sum of differences from a public center, and a divisor that is public or noisy."""

    parameters: PublicParameters
    size: NoisySize | None
    step: NoisyStep
    center: NDArray[np.float32] | NDArray[np.float64] | None = None
    """The public point, or None for the origin. Privacy does not depend on it."""

    @property
    def stages(self) -> tuple[Stage, ...]:
        return (self.step.stage,) if self.size is None else (self.size.stage, self.step.stage)

    @property
    def passes(self) -> float:
        return float(len(self.stages))

    @property
    def guess(self) -> int | None:
        return self.parameters.n if self.parameters.private_size else None

    @property
    def notes(self) -> tuple[str, ...]:
        if self.guess is None:
            return ()
        return (f"the sum is divided by the public number {self.guess:,}, not by the private number of records",)

    def predict(self, spread: float | None = None) -> Prediction:
        """Predict nothing about distances, because a step is not a point."""
        return Prediction()

    def run(self, source: Source, tape: Tape) -> StepResult:
        # The sum comes first, because records that arrive one by one are read for the sum. The order has no effect on
        # the noise.
        threshold = self.parameters.threshold
        if threshold is None:
            raise ValueError("a robust step needs a threshold")
        point = self.step.toward(source, tape, self.center, threshold)
        size = None if self.size is None else self.size.among(source, tape)
        if self.size is not None and size is not None and size < _NONE * self.size.noise:
            raise ReleaseFailed(
                f"the noisy number of records, {size}, may be noise only: its noise has the standard deviation "
                f"{self.size.noise:.3g}; use more clients, or a larger budget",
                self.cost,
            )
        divisor = float(self.parameters.size if size is None else size)
        point /= divisor
        noise = self.step.noise / divisor
        coherence, interval = _coherence(float(point @ point), noise, self.parameters.d)
        return StepResult(point, size=size, coherence=coherence, coherence_interval=interval, noise_std=noise)


def _coherence(squared: float, noise: float, d: int) -> tuple[float, tuple[float, float]]:
    """An estimate of the length of the exact mean, and a 95 % interval. `squared` is the squared length of the noisy
    mean.
    """
    estimate = squared - d * noise**2
    error = _QUANTILE * math.sqrt(4.0 * noise**2 * max(estimate, 0.0) + 2.0 * d * noise**4)
    low, middle, high = (math.sqrt(min(max(x, 0.0), 1.0)) for x in (estimate - error, estimate, estimate + error))
    return middle, (low, high)


def check(parameters: PublicParameters) -> None:
    """Raise an error if the budget does not admit Gaussian noise, or if the records are positions on the sphere."""
    if parameters.budget.pure:
        raise ValueError(
            "a robust step has Gaussian noise, which gives no pure differential privacy: pass delta too, for example "
            "delta=1e-6, or rho"
        )
    if parameters.geometry != "euclidean" or parameters.scales is not None:
        raise ValueError("a robust step needs plain coordinates, without geometry='sphere' and without scales=")


def cap(parameters: PublicParameters, rho: float) -> PrivacyCost:
    """The cost, which does not depend on the number of records."""
    return calibrate(parameters, rho).cost


def calibrate(parameters: PublicParameters, rho: float) -> CalibratedStep:
    """Calibrate the releases so that together they cost rho."""
    if not parameters.private_size or parameters.n is not None:
        return CalibratedStep(parameters, None, NoisyStep.of("step", rho, parameters))
    size = NoisySize.of("size", _SIZE * rho, parameters)
    return CalibratedStep(parameters, size, NoisyStep.of("step", (1.0 - _SIZE) * rho, parameters))
