"""DPGD: noisy projected gradient descent over the public ball, the baseline of the paper. Proof: dpgd.md.

| paper | here | meaning |
|---|---|---|
| R | `radius` | public bound on every norm |
| T | `steps` | noisy gradients |
| eta | `step` | step size, here on the gradient of the sum |
| sigma | `gradient.noise` | standard deviation on the gradient of the sum |
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmedian.accounting import PrivacyCost
from dpmedian.mechanisms.gaussian import Gaussian
from dpmedian.mechanisms.gradient import NoisyGradient
from dpmedian.mechanisms.stage import Stage
from dpmedian.methods.contract import (
    USELESS,
    CalibratedMethod,
    Prediction,
    cloud_curvature,
    cloud_error,
    sensitivity_gain,
)
from dpmedian.parameters import PublicParameters
from dpmedian.release import MethodResult
from dpmedian.sources.protocol import Source
from dpmedian.tape import Tape

__all__ = [
    "STEP_RULES",
    "Dpgd",
    "calibrate",
    "cap",
    "check",
    "name",
    "needs",
    "proved_excess",
    "relations",
    "sized",
    "uses",
]

name = "dpgd"
uses = frozenset({"radius", "center", "profile"})
needs = frozenset({"radius"})
relations = frozenset({"replace", "add_remove"})
sized = True

# The number of distances between median and center for which a descent is predicted. The mean over several distances is
# a smooth function of n.
_DISTANCES = 21


def proof_step(diameter: float, steps: int, noise: float, n: int, d: int) -> float:
    """The step that minimizes the bound of the convergence proof, for a start in the middle of the feasible set.

    The step is (diameter/2)/sqrt(T (1 + d s^2)) for the average gradient, where T is the number of steps and s the
    noise of the average gradient. For the gradient of the sum, the step is divided by n.
    """
    return diameter / 2.0 / math.sqrt(steps * (1.0 + d * (noise / n) ** 2)) / n


def printed_step(diameter: float, steps: int, noise: float, n: int, d: int) -> float:
    """The step that the paper prints: diameter sqrt(d/(12 rho n^2)) for the average gradient, with rho = 2
    T/noise^2.
    """
    return diameter * noise * math.sqrt(d / (24.0 * steps)) / n / n


def short_step(diameter: float, steps: int, noise: float, n: int, d: int) -> float:
    """The step diameter/250 for the average gradient, for any noise. After localization this is a fifth of the scale.

    This step is smaller than the core radius of the data. Within the core radius the Hessian of the sum of distances is
    about n/core radius, so the descent contracts towards the median by a constant factor per step. Averaging later
    iterates removes noise.
    """
    return diameter / 250.0 / n


# Each rule takes the diameter of the feasible set, the number of steps, the noise on the sum, n and d, and returns the
# step for the gradient of the sum.
STEP_RULES = {"proof": proof_step, "printed": printed_step, "short": short_step}


def proved_excess(start: float, diameter: float, step: float, steps: int, noise: float, d: int, beta: float) -> float:
    """A bound on the average excess distance of the mean iterate that holds with probability 1 - beta (dpgd.md).

    `start` bounds the distance from the first iterate to the median. `step` and `noise` refer to the average gradient.
    """
    logarithm = math.log(2.0 / beta)
    relative = logarithm / (steps * d)
    square = d * noise**2 * (1.0 + 2.0 * math.sqrt(relative) + 2.0 * relative)
    drift = (diameter + step) * noise * math.sqrt(2.0 * logarithm / steps)
    return start**2 / (2.0 * step * steps) + step * (1.0 + square) / 2.0 + drift


@dataclass(frozen=True, eq=False)
class Dpgd(CalibratedMethod):
    """A calibrated descent from the center within the public ball."""

    parameters: PublicParameters
    gradient: NoisyGradient
    uncapped: int
    radius: float

    @property
    def stages(self) -> tuple[Stage, ...]:
        return (self.gradient.stage,)

    @property
    def passes(self) -> float:
        return self.gradient.releases

    @property
    def step(self) -> float:
        rule = STEP_RULES[self.parameters.profile.descent_step]
        gradient = self.gradient
        return rule(2.0 * self.radius, gradient.releases, gradient.noise, self.parameters.size, self.parameters.d)

    @property
    def notes(self) -> tuple[str, ...]:
        steps = self.gradient.releases
        if self.uncapped <= steps:
            return ()
        return (
            f"steps capped at {steps} (the theory requires {self.uncapped}): this adds at most "
            f"{math.sqrt(1.0 / steps):.2%} of the radius to the average distance",
        )

    def predict(self, core_radius: float | None = None) -> Prediction:
        """Predict the error.

        The proved bound is radius sqrt((1 + d s^2)/T) per record, where T is the number of steps and s the noise on the
        average gradient.

        The expected error has two parts: the distance of the mean iterate from the median in a descent without noise,
        and the noise of the averaged gradients. This method never raises `ReleaseFailed`, so a far mean iterate counts
        as an error.
        """
        n, d, steps = self.parameters.size, self.parameters.d, self.gradient.releases
        bound = self.radius * math.sqrt((1.0 + d * (self.gradient.noise / n) ** 2) / steps)
        core_radius = core_radius or self.parameters.assumed_core_radius
        noise = cloud_error(math.sqrt(d / steps) * self.gradient.noise / n, d)
        # The two errors are independent, so their squares add up.
        error = float(np.mean(np.hypot(self._bias(core_radius), noise * core_radius)))
        return Prediction(
            relative_error=noise,
            absolute_error=error - noise * core_radius,
            excess_distance_bound=min(bound, 2.0 * self.radius),
            # If there are two clusters, the descent takes twice as many steps to the larger one, because the smaller
            # cluster shortens the gradient.
            uneven=error / (USELESS * core_radius - error) if 2.0 * error < USELESS * core_radius else 1.0,
        )

    def _bias(self, core_radius: float) -> NDArray[np.float64]:
        """The distance of the mean iterate from the median of a cloud, in a descent without noise.

        The distance is computed for medians at half to one and a half times the assumed distance from the center,
        because with few steps the mean iterate may lie near one of them by chance. Iterates that have reached the
        median stay there or jump from side to side.
        """
        length, steps = self.step * self.parameters.size, self.gradient.releases
        curvature = cloud_curvature(self.parameters.d) / core_radius
        center = -self.parameters.assumed_distance * np.linspace(0.5, 1.5, _DISTANCES)
        place, total = center, np.zeros(_DISTANCES)
        for _ in range(min(steps, math.ceil(4.0 * math.sqrt(steps)) + 8)):
            total = total + place
            place = place - length * curvature * place / np.hypot(1.0, curvature * place)
            place = np.clip(place, center - self.radius, center + self.radius)
        return np.asarray(np.abs(total)) / steps

    def run(self, source: Source, tape: Tape) -> MethodResult:
        center = self.parameters.origin
        average, _ = self.gradient.descend(source, tape, start=center, balls=[(center, self.radius)], step=self.step)
        return MethodResult(average)


def check(parameters: PublicParameters) -> None:
    """Accept all parameters. This method only needs a radius."""


def cap(parameters: PublicParameters, rho: float) -> PrivacyCost:
    """The cost for the largest number of steps that the profile allows."""
    return Gaussian.cap(rho, parameters.profile.descent_steps_most * parameters.d)


def calibrate(parameters: PublicParameters, rho: float) -> Dpgd:
    """Calibrate T = max(1, ceil(n^2 rho/(128 d))) steps, but at most the cap. With this T the two terms of the paper's
    bound are equal.

    Under add/remove, the noise is as small as for twice as many records under replacement.
    """
    assert parameters.radius is not None
    n, d = sensitivity_gain(parameters) * parameters.size, parameters.d
    uncapped = max(1, math.ceil(n * n * rho / (128.0 * d)))
    steps = min(uncapped, parameters.profile.descent_steps_most)
    gradient = NoisyGradient.of("descent", rho, parameters, releases=steps)
    return Dpgd(parameters, gradient, uncapped, parameters.radius)
