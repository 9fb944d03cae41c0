"""Noisy gradients of the sum of distances, alone or in a projected descent. Proof: gradient.md."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmedian._core import Feasible, Tape
from dpmedian.mechanisms.gaussian import Gaussian
from dpmedian.parameters import PublicParameters
from dpmedian.sources.protocol import Source
from dpmedian.statistics import Statistic

__all__ = ["NoisyGradient"]

Vector = NDArray[np.float64]
Ball = tuple[Vector, float]


@dataclass(frozen=True)
class NoisyGradient(Gaussian):
    """Gaussian releases of the gradient of the sum of distances, or of mean shifts.

    Neighbors and sensitivity: the gradient states them. The sensitivity is 2 under replacement and 1 under add/remove,
    plus the rounding. The mean shift has the same sensitivity. Cost: `releases` Gaussian releases. Failure: none.
    """

    @classmethod
    def of(cls, name: str, rho: float, parameters: PublicParameters, *, releases: int) -> NoisyGradient:
        """Calibrate `releases` gradients that together cost rho."""
        return cls.of_statistic(name, "gradient", rho, parameters, {"d": parameters.d}, releases=releases, finest=40)

    def at(self, source: Source, tape: Tape, theta: Vector) -> Vector:
        """One noisy gradient of the sum of distances."""
        return self.query(source, tape, theta=theta)

    def shift(self, source: Source, tape: Tape, theta: Vector, radius: float) -> Vector:
        """One noisy mean shift: the sum of (theta - x)/radius over the records x within the radius."""
        shift = Statistic("mean shift", theta=theta, radius=radius, bits=self.bits)
        return self.release(tape, source.answer(shift))

    def descend(
        self, source: Source, tape: Tape, *, start: Vector, balls: list[Ball], step: float, steps: int | None = None
    ) -> tuple[Vector, Vector]:
        """Projected descent in one ball or in the intersection of two balls. `steps` limits the number of releases.

        Return the mean of theta_1, ..., theta_T, and the last iterate theta_(T+1). The mean includes the start theta_1
        but not the last iterate. If all records are in this process, the loop runs in Rust. Otherwise the loop runs
        here, and gives the same bits.
        """
        steps = self.releases if steps is None else steps
        if source.local is None:
            return self._descend_in_rounds(source, tape, start=start, balls=balls, step=step, steps=steps)
        return source.local.descend(
            tape,
            self.name,
            start=start.tolist(),
            balls=[(center.tolist(), radius) for center, radius in balls],
            step=step,
            steps=steps,
            bits=self.bits,
            noise_multiplier=self.noise_multiplier,
            pulse=source.advance(steps),
        )

    def _descend_in_rounds(
        self, source: Source, tape: Tape, *, start: Vector, balls: list[Ball], step: float, steps: int
    ) -> tuple[Vector, Vector]:
        feasible = Feasible([(center.tolist(), radius) for center, radius in balls])
        theta, average = np.array(start, dtype=np.float64), np.zeros(len(start))
        for done in range(steps):
            average += (theta - average) / (done + 1)
            theta = feasible.project(theta - step * self.at(source, tape, theta))
        return average, theta
