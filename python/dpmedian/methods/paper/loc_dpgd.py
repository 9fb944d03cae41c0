"""LocDPGD: localization finds a small ball, in which noisy gradient descent runs. Proof: loc_dpgd.md.

| paper | here | meaning |
|---|---|---|
| R, r | `radius`, `resolution` | largest and smallest scale of interest |
| theta_0, Delta_hat | `Localized.center`, `.scale` | the result of localization |
| Theta_0 | `Localized.radius` | 25 scale |
| T_ft | `printed_steps` | max(1, ceil(n^2 rho/(256 d))); the profile limits the actual number |
| eta_ft | `step` | by the rule that the profile names; "printed" is 50 scale sqrt(d/(6 rho n^2)) |
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpmedian.accounting import PrivacyCost
from dpmedian.mechanisms.gaussian import Gaussian
from dpmedian.mechanisms.gradient import NoisyGradient
from dpmedian.mechanisms.stage import Stage
from dpmedian.methods.contract import (
    CalibratedMethod,
    Prediction,
    cloud_error,
    cloud_excess,
    sensitivity_gain,
    signal_of,
    softened,
    useful_error,
    within,
)
from dpmedian.methods.paper import localize
from dpmedian.methods.paper.dpgd import STEP_RULES, proved_excess
from dpmedian.methods.paper.localize import Localize
from dpmedian.parameters import PublicParameters
from dpmedian.release import MethodResult
from dpmedian.sources.protocol import Source
from dpmedian.tape import Tape

__all__ = ["LocDpgd", "calibrate", "cap", "check", "name", "needs", "relations", "sized", "uses"]

name = "loc_dpgd"
uses = frozenset({"radius", "resolution", "center", "profile"})
needs = frozenset({"radius", "resolution"})
relations = frozenset({"replace", "add_remove"})
sized = True

# The scale varies from run to run. In the prediction of the mean error, this variation has the effect of steps that are
# longer by this factor. The factor was found by simulation.
_UNEQUAL = 1.62


@dataclass(frozen=True, eq=False)
class LocDpgd(CalibratedMethod):
    """A calibrated run. Half of the budget is for localization, and half for fine-tuning."""

    parameters: PublicParameters
    localization: Localize
    gradient: NoisyGradient
    printed_steps: int

    @property
    def stages(self) -> tuple[Stage, ...]:
        return (*self.localization.stages, self.gradient.stage)

    @property
    def passes(self) -> float:
        return self.localization.passes + self.gradient.releases

    @property
    def burn_in(self) -> int:
        """The number of steps before the average begins. These steps remove the error of the start."""
        return math.floor(self.parameters.profile.fine_burn_in * self.gradient.releases)

    def step(self, scale: float) -> float:
        """The step for the gradient of the sum."""
        rule, gradient = STEP_RULES[self.parameters.profile.fine_step], self.gradient
        return rule(
            2.0 * localize.FINAL * scale, gradient.releases, gradient.noise, self.parameters.size, self.parameters.d
        )

    @property
    def error(self) -> float:
        """The noise of the averaged iterate in units of the core radius."""
        d, averaged = self.parameters.d, self.gradient.releases - self.burn_in
        return math.sqrt(d / averaged) * self.gradient.noise / self.parameters.size

    @property
    def bound(self) -> float:
        """The bound on the average excess distance, in units of the scale. loc_dpgd.md has the proof."""
        n, d, gradient = self.parameters.size, self.parameters.d, self.gradient
        averaged, noise = gradient.releases - self.burn_in, gradient.noise / n
        step, reach = self.step(1.0) * n, 2.0 * localize.FINAL
        return min(reach, proved_excess(reach, reach, step, averaged, noise, d, self.parameters.failure_probability))

    @property
    def notes(self) -> tuple[str, ...]:
        n, d, budget = self.parameters.size, self.parameters.d, self.parameters.budget
        steps, localization = self.gradient.releases, self.localization
        required = localization.required
        epsilon = budget.epsilon if budget.epsilon is not None else math.sqrt(2.0 * self.cost.rho)
        if n >= required and localization.shrinks(n):
            verdict = f"this is met: the loss ratio is at most {1.0 + 20.0 * self.bound:.3g} with probability " + (
                f"{1.0 - 2.0 * self.parameters.failure_probability:.3g}"
            )
        else:
            verdict = "this is not met: nothing is proved at this n, although far fewer records suffice in practice"
        notes = [
            *localization.doubts,
            f"the utility theorem, with explicit constants, requires n >= {required:.3g}; {verdict}",
            f"lower bound: every method needs n of the order of sqrt(d)/epsilon = {math.sqrt(d) / epsilon:.2g} "
            "(this is an order of magnitude, because the constants are unknown)",
        ]
        if steps < self.printed_steps:
            notes.append(
                f"fine-tuning is capped at {steps} steps (the paper requires {self.printed_steps}, in a time cubic in "
                f"n): the noise of the average is the same, and the proved bound is {self.bound:.3g} scales per record"
            )
        return tuple(notes)

    def predict(self, core_radius: float | None = None) -> Prediction:
        """Predict the error from the noise of averaged steps, and the share of runs in which localization loses the
        median.

        Lost runs end at an arbitrary point, or at the border of the ball, where they raise `ReleaseFailed`. With more
        rounds and in more dimensions, more of the lost runs end at the border.
        """
        d, localization = self.parameters.d, self.localization
        core_radius = core_radius or self.parameters.assumed_core_radius
        failure = localization.failure(core_radius)
        if localization.unpredictable:
            return Prediction(failure=failure)
        scale, averaged = localization.scale_of(core_radius), self.gradient.releases - self.burn_in
        step = self.step(scale) * self.parameters.size / core_radius
        # A scale varies from run to run, and a larger scale gives a larger mean error.
        relative = cloud_error(self.error, d) * softened(_UNEQUAL * step, self.error * math.sqrt(averaged), d)
        relative = useful_error(relative, d)
        loud = (
            0.0 if localization.whole(core_radius) else math.sqrt(d) * (localization.rounds_of(core_radius) / 21.0) ** 2
        )
        return Prediction(
            excess=cloud_excess(relative, d) if failure <= 0.5 else None,
            relative_error=relative,
            failure=failure,
            silent=failure / (1.0 + loud),
            uneven=self._uneven(core_radius),
        )

    def _uneven(self, core_radius: float) -> float:
        """The probability that the released point is far from the median, if two fifths of the records form a second
        cluster.

        With two clusters, localization takes their distance as the scale, so the steps and the noise are too large. In
        simulations with clusters about as far apart as the public radius, of 10 to 1000 core radii, the number of
        records that is needed grows with the square of this radius.
        """
        signal = signal_of(self.parameters, self.cost.rho)
        return within(signal, 0.3 * (self.localization.radius / core_radius) ** 2, 1.5)

    def run(self, source: Source, tape: Tape) -> MethodResult:
        found = self.localization.run(source, tape)
        public = (self.parameters.origin, self.localization.radius)
        balls, step, first = [public, (found.center, found.radius)], self.step(found.scale), self.burn_in
        _, start = self.gradient.descend(source, tape, start=found.center, balls=balls, step=step, steps=first)
        rest = self.gradient.releases - first
        point, last = self.gradient.descend(source, tape, start=start, balls=balls, step=step, steps=rest)
        self.localization.fail_if_lost(found, last)
        return MethodResult(point, scale=found.scale, error_radius=self.error * found.scale, notes=found.notes)


def check(parameters: PublicParameters) -> None:
    """Accept all parameters. This method only needs a radius and a resolution."""


def cap(parameters: PublicParameters, rho: float) -> PrivacyCost:
    """The cost of localization and of the largest number of steps that the profile allows."""
    return Gaussian.cap(rho, localize.most_numbers(parameters) + parameters.profile.fine_steps_most * parameters.d)


def calibrate(parameters: PublicParameters, rho: float) -> LocDpgd:
    """Give half of rho to localization and half to fine-tuning, as in the paper."""
    n, d, profile = sensitivity_gain(parameters) * parameters.size, parameters.d, parameters.profile
    localization = localize.calibrate(parameters, rho / 2.0, parameters.failure_probability / 2.0)
    printed = max(1, math.ceil(n * n * rho / (256.0 * d)))
    steps = min(max(printed, profile.fine_steps_least), profile.fine_steps_most)
    gradient = NoisyGradient.of("fine-tuning", rho / 2.0, parameters, releases=steps)
    return LocDpgd(parameters, localization, gradient, printed)
