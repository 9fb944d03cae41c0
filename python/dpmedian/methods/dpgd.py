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

from dpmedian.accounting import PrivacyCost
from dpmedian.mechanisms.gaussian import NoisyGradient
from dpmedian.methods import Prediction, Stage
from dpmedian.problem import Problem
from dpmedian.release import Outcome
from dpmedian.source import ArraySource, Tape

__all__ = ["STEP_RULES", "Dpgd", "check", "name", "prepare", "proved_excess"]

name = "dpgd"


def proof_step(diameter: float, steps: int, noise: float, n: int, d: int) -> float:
    """The step that minimises the bound of the convergence proof, for a start in the middle of the feasible set.

    (diameter/2)/sqrt(T (1 + d s^2)) on the average gradient, s the noise on it; divided by n for the sum.
    """
    return diameter / 2.0 / math.sqrt(steps * (1.0 + d * (noise / n) ** 2)) / n


def printed_step(diameter: float, steps: int, noise: float, n: int, d: int) -> float:
    """The step of the paper's boxes: diameter sqrt(d/(12 rho n^2)) on the average gradient, rho = 2 T/noise^2."""
    return diameter * noise * math.sqrt(d / (24.0 * steps)) / n / n


def short_step(diameter: float, steps: int, noise: float, n: int, d: int) -> float:
    """A 250th of the diameter on the average gradient, whatever the noise: a fifth of the scale after localization.

    That is below the spread of the data, and there the sum of distances is curved, its Hessian about n/spread: descent
    contracts towards the median by a constant factor, and averaging the rest removes the noise.
    """
    return diameter / 250.0 / n


# From the diameter of the feasible set, the number of steps, the noise on the sum, n and d to a step on the sum.
STEP_RULES = {"proof": proof_step, "printed": printed_step, "short": short_step}


def proved_excess(start: float, diameter: float, step: float, steps: int, noise: float, d: int, beta: float) -> float:
    """A bound on the average excess distance of the mean iterate that fails with probability at most beta: dpgd.md.

    `start` bounds the way from the first iterate to the median; step and noise are those on the average gradient.
    """
    logarithm = math.log(2.0 / beta)
    relative = logarithm / (steps * d)
    square = d * noise**2 * (1.0 + 2.0 * math.sqrt(relative) + 2.0 * relative)
    drift = (diameter + step) * noise * math.sqrt(2.0 * logarithm / steps)
    return start**2 / (2.0 * step * steps) + step * (1.0 + square) / 2.0 + drift


@dataclass(frozen=True, eq=False)
class Dpgd:
    """A calibrated descent from the center within the public ball."""

    problem: Problem
    gradient: NoisyGradient
    uncapped: int
    radius: float

    @property
    def stages(self) -> tuple[Stage, ...]:
        gradient = self.gradient
        noise = f"Gaussian, sigma {gradient.noise:.4g}"
        return (Stage("descent", str(gradient.releases), noise, gradient.sensitivity, gradient.cost),)

    @property
    def cost(self) -> PrivacyCost:
        return self.gradient.cost

    @property
    def passes(self) -> float:
        return self.gradient.releases

    @property
    def step(self) -> float:
        rule = STEP_RULES[self.problem.profile.descent_step]
        gradient = self.gradient
        return rule(2.0 * self.radius, gradient.releases, gradient.noise, self.problem.n, self.problem.d)

    @property
    def notes(self) -> tuple[str, ...]:
        steps = self.gradient.releases
        if self.uncapped <= steps:
            return ()
        return (
            f"steps capped at {steps} (the theory asks for {self.uncapped}): this adds at most "
            f"{math.sqrt(1.0 / steps):.2%} of the radius to the average distance",
        )

    def predict(self) -> Prediction:
        """The expected excess distance per record: radius sqrt((1 + d s^2)/T), s the noise on the average gradient."""
        n, d, steps = self.problem.n, self.problem.d, self.gradient.releases
        loss = self.radius * math.sqrt((1.0 + d * (self.gradient.noise / n) ** 2) / steps)
        return Prediction(loss=min(loss, 2.0 * self.radius))

    def run(self, source: ArraySource, tape: Tape) -> Outcome:
        center = self.problem.center
        average, _ = self.gradient.descend(source, tape, start=center, balls=[(center, self.radius)], step=self.step)
        return Outcome(average)


def check(problem: Problem) -> None:
    problem.require(name, "radius")


def prepare(problem: Problem, rho: float) -> Dpgd:
    """T = max(1, ceil(n^2 rho/(128 d))), where the two terms of the paper's bound are equal, up to the cap."""
    assert problem.radius is not None
    n, d = problem.n, problem.d
    uncapped = max(1, math.ceil(n * n * rho / (128.0 * d)))
    steps = min(uncapped, problem.profile.descent_steps_most)
    return Dpgd(problem, NoisyGradient.of("descent", rho, n=n, d=d, releases=steps), uncapped, problem.radius)
