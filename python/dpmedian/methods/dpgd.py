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

__all__ = ["Dpgd", "check", "name", "prepare", "proof_step"]

name = "dpgd"

# More steps than this buy nothing: the optimisation error diam * sqrt(2/T) is then below 2.3 % of the diameter, and
# one pass over the data per step would make the run cubic in n. The plan says when the cap binds.
STEPS_MAX = 4000


def proof_step(diameter: float, steps: int, d: int, noise: float, n: int) -> float:
    """The step size of the convergence proof, on the gradient of the sum: (diam/sqrt(T)) / sqrt(2 + 10 d s^2) / n.

    s is the noise on the average gradient.
    """
    return diameter / math.sqrt(steps) / math.sqrt(2.0 + 10.0 * d * (noise / n) ** 2) / n


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
        n, d = self.problem.n, self.problem.d
        return proof_step(2.0 * self.radius, self.gradient.releases, d, self.gradient.noise, n)

    @property
    def notes(self) -> tuple[str, ...]:
        if self.uncapped <= STEPS_MAX:
            return ()
        return (
            f"steps capped at {STEPS_MAX} (the theory asks for {self.uncapped}): this adds at most "
            f"{math.sqrt(2.0 / STEPS_MAX):.2%} of the diameter to the average distance",
        )

    def predict(self) -> Prediction:
        """The lemma's bound with its constants: diam * (sqrt(2/T) + 2 s sqrt(28 d ... )) per record."""
        n, d, steps = self.problem.n, self.problem.d, self.gradient.releases
        average_noise = self.gradient.noise / n
        diameter = 2.0 * self.radius
        loss = diameter * math.sqrt((2.0 + 10.0 * d * average_noise**2) / steps)
        return Prediction(loss=min(loss, diameter))

    def run(self, source: ArraySource, tape: Tape) -> Outcome:
        center = self.problem.center
        average, _ = self.gradient.descend(source, tape, start=center, balls=[(center, self.radius)], step=self.step)
        return Outcome(average)


def check(problem: Problem) -> None:
    problem.require(name, "radius")


def prepare(problem: Problem, rho: float) -> Dpgd:
    """T = max(1, ceil(n^2 rho/(128 d))), where the two terms of the error bound are equal."""
    assert problem.radius is not None
    n, d = problem.n, problem.d
    uncapped = max(1, math.ceil(n * n * rho / (128.0 * d)))
    gradient = NoisyGradient.of("descent", rho, n=n, d=d, releases=min(uncapped, STEPS_MAX))
    return Dpgd(problem, gradient, uncapped, problem.radius)
