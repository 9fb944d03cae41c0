"""Localization: a point near the median and the scale of the data, in log2(R/scale) rounds. Proof: localize.md.

| paper | here | meaning |
|---|---|---|
| Delta_hat | `scale` | the result of `find_radius` |
| k_wu | `rounds` | ceil(log2(R/scale)), known once the scale is released |
| T_wu | `localization_steps` | noisy gradients of a round |
| rad_t | `reach` | largest distance of the median from the point of round t |
| eta_t | `step` | by the rule that the profile names |
| Theta_loc | `Localized.radius` | 25 scale: with high probability the median lies within this distance |
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpmedian.accounting import PrivacyCost
from dpmedian.mechanisms.bisection import NoisyBisection
from dpmedian.mechanisms.gaussian import Gaussian
from dpmedian.mechanisms.gradient import NoisyGradient
from dpmedian.mechanisms.stage import Noise, Stage
from dpmedian.methods.contract import Calibrated, sensitivity_gain, within
from dpmedian.methods.paper import find_radius
from dpmedian.methods.paper.dpgd import STEP_RULES, proved_excess
from dpmedian.methods.paper.find_radius import FindRadius
from dpmedian.parameters import PublicParameters
from dpmedian.release import ReleaseFailed
from dpmedian.sources.protocol import Source
from dpmedian.tape import Tape

__all__ = ["Localize", "Localized", "calibrate", "cap", "most_numbers", "name"]

name = "localize"

# A round halves the reach and adds 12 scales. So the reach converges to 24 scales, and after k_wu rounds it is at most
# 25 scales.
ADDED = 12.0
FINAL = 25.0


@dataclass(frozen=True, eq=False)
class Localized:
    """A ball that contains the median with high probability, and the scale of the data."""

    center: NDArray[np.float64]
    scale: float
    radius: float
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Localize(Calibrated):
    """A calibrated localization. Half of the budget is for the search of the radius, and half for the descent."""

    parameters: PublicParameters
    finder: FindRadius
    rho: float
    radius: float
    failure_probability: float

    @property
    def steps(self) -> int:
        """The number of noisy gradients in a round."""
        return self.parameters.profile.localization_steps

    @property
    def most_rounds(self) -> int:
        return self.rounds(self.finder.radii[0])

    def rounds(self, scale: float) -> int:
        """The number of rounds, ceil(log2(R/scale)), at least 0. The scale was released, so this is post-processing."""
        return _rounds(self.radius, scale)

    def gradient(self, rounds: int) -> NoisyGradient:
        """The noisy gradient. The budget of the descent is divided evenly among the steps of this number of rounds."""
        return NoisyGradient.of("localization", self.rho, self.parameters, releases=rounds * self.steps)

    @property
    def descent_cost(self) -> PrivacyCost:
        """An upper bound on the cost of the descent for any number of rounds.

        For each number of rounds, the descent is calibrated to rho, with a sigma of at least 2^30 lattice units.
        """
        return Gaussian.cap(self.rho, max(self.most_rounds, 1) * self.steps * self.parameters.d)

    @property
    def stages(self) -> tuple[Stage, ...]:
        worst = self.gradient(max(self.most_rounds, 1))
        rule = f"{self.steps} x ceil(log2({self.radius:.4g}/scale)), at most {self.steps} x {self.most_rounds}"
        noise = Noise("Gaussian", worst.noise, "at most")
        descent = replace(worst.stage, noise=noise, cost=self.descent_cost, rule=rule)
        return (*self.finder.stages, descent)

    @property
    def passes(self) -> float:
        return self.finder.passes + self.most_rounds * self.steps

    def rounds_of(self, core_radius: float) -> float:
        """The approximate number of rounds for data with this core radius."""
        return max(math.log2(self.radius) - math.log2(core_radius) - 1.0, 0.0)

    def scale_of(self, core_radius: float) -> float:
        """The approximate scale that is found. In more than one dimension, pairs are about sqrt(2) core radii apart.

        The scale is rounded up to the grid, by a factor of sqrt(2) on average. Clouds with heavy tails have a larger
        scale. The numbers of this prediction were found by simulation: `benches/calibration.py --methods`.
        """
        return (2.4 + 1.5 / self.parameters.d) * core_radius

    def whole(self, core_radius: float) -> bool:
        """Whether the localized ball is the whole public ball, so that localization cannot lose the median."""
        return FINAL * self.scale_of(core_radius) >= self.radius

    def failure(self, core_radius: float) -> float:
        """The approximate probability that a round loses the median of data with this core radius.

        There is a threshold for the noise relative to the reach of a round. Below the threshold all rounds succeed, and
        above the threshold a round fails. The threshold is lower with more rounds, and sharper with more released
        numbers.
        """
        rounds, d = max(self.rounds_of(core_radius), 4.0), self.parameters.d
        noise = math.sqrt(2.0 * d * rounds / self.rho) / (sensitivity_gain(self.parameters) * self.parameters.size)
        border = 1.55 if self.whole(core_radius) else 0.58 + 3.2 / rounds
        kept = within(noise, border, math.sqrt(d * rounds))
        # A search by pairs that fails usually returns a wrong scale, which does little harm, so its failures are not
        # counted.
        missed = 0.0 if self.parameters.profile.radius_search == "pair counts" else self.finder.failure
        return 1.0 - (1.0 - missed) * kept

    @property
    def unpredictable(self) -> bool:
        """Whether no prediction is possible. If there are enough records, the reason is that the rounds cannot reach
        the median. If there are fewer records, the reason is that the profile has the step of the paper.
        """
        enough = self.parameters.size >= self.sufficient
        return self.starves if enough else self.parameters.profile.localization_step == "printed"

    def excess(self, n: int) -> float:
        """The bound on the average excess distance of a round at this budget and another n, in units of its reach."""
        d, steps, rounds = self.parameters.d, self.steps, max(self.most_rounds, 1)
        noise = self.gradient(rounds).noise
        step = STEP_RULES[self.parameters.profile.localization_step](2.0, steps, noise, n, d) * n
        return proved_excess(1.0, 2.0, step, steps, noise / n, d, self.failure_probability / rounds)

    @property
    def required(self) -> float:
        """The smallest n for which the proof keeps the median within reach, with explicit constants (localize.md).

        The result is infinite if no n suffices. The step of the paper decreases with n, so with many records the steps
        of a round may be too short to cover the reach.
        """
        powers = (round(2.0 ** (i / 8.0)) for i in range(8, 8 * 50))
        descent = next((n for n in powers if self.shrinks(n)), math.inf)
        return max(descent, self.finder.search.required)

    def shrinks(self, n: int) -> bool:
        """Whether the inequality of the proof holds at this n.

        With the step of the paper the inequality does not hold for very large n, because the step becomes too short.
        """
        return self.excess(n) <= self.finder.search.guaranteed - 0.5

    @property
    def sufficient(self) -> float:
        """The smallest n for which localization worked in simulations, which is far smaller than the n that the proof
        requires.
        """
        drift = math.sqrt(2.0 * self.parameters.d * max(self.most_rounds, 1) / self.rho) / sensitivity_gain(
            self.parameters
        )
        return max(drift, self.finder.search.sufficient)

    @property
    def starves(self) -> bool:
        """Whether all steps of a round together are shorter than its reach, so that the round cannot reach the
        median.
        """
        n, d, noise = self.parameters.size, self.parameters.d, self.gradient(max(self.most_rounds, 1)).noise
        step = STEP_RULES[self.parameters.profile.localization_step](2.0, self.steps, noise, n, d) * n
        return step * self.steps < 1.0

    @property
    def doubts(self) -> tuple[str, ...]:
        """Warnings about this n, as notes of a plan."""
        doubts = []
        if self.parameters.size < self.sufficient:
            doubts.append(f"n is too small: localization is likely lost below n = {self.sufficient:.3g}")
        elif self.starves:
            doubts.append(
                "localization cannot reach the median, because all steps of a round together are too short (the step "
                "of the profile 'paper' shrinks with n)"
            )
        if self.finder.search.requested > 0.85:
            doubts.append(
                f"the radius must hold {self.finder.search.requested:.0%} of the records: with more than "
                f"{1.0 - self.finder.search.requested:.0%} of outliers the radius depends on the outliers, and the "
                "error is larger than predicted"
            )
        return tuple(doubts)

    def fail_if_lost(self, found: Localized, last: NDArray[np.float64]) -> None:
        """Raise an error if a descent in the localized ball ended at the border of the ball, because the median then
        lies outside.

        The last iterate is already released, so this is post-processing.
        """
        if found.radius < self.radius and math.dist(last, found.center) > 0.98 * found.radius:
            raise ReleaseFailed(
                "localization was lost: the descent ended at the border of the ball in which the median should be; use "
                "more records or a larger budget",
                self.cost,
            )

    def run(self, source: Source, tape: Tape) -> Localized:
        n, d, center = self.parameters.size, self.parameters.d, self.parameters.origin
        scale = self.finder.run(source, tape)
        notes: tuple[str, ...] = ()
        if scale == self.finder.radii[0]:
            notes = (f"The scale of the data is at or below the resolution {scale:.6g}.",)
        rounds, theta, reach = self.rounds(scale), center, self.radius
        if rounds > 0:
            gradient = self.gradient(rounds)
            rule = STEP_RULES[self.parameters.profile.localization_step]
            for _ in range(rounds):
                step = rule(2.0 * reach, self.steps, gradient.noise, n, d)
                balls = [(center, self.radius), (theta, reach)]
                theta, _ = gradient.descend(source, tape, start=theta, balls=balls, step=step, steps=self.steps)
                reach = reach / 2.0 + ADDED * scale
        return Localized(theta, scale, min(FINAL * scale, 2.0 * self.radius), notes)


def most_numbers(parameters: PublicParameters) -> int:
    """The largest number of released values for any number of records, in the search and in the descent."""
    radii = find_radius.grid(*find_radius.scales(parameters))
    rounds = max(1, _rounds(*find_radius.scales(parameters)))
    return NoisyBisection.queries(0, len(radii)) + rounds * parameters.profile.localization_steps * parameters.d


def _rounds(radius: float, scale: float) -> int:
    return max(0, math.ceil(math.log2(radius) - math.log2(scale)))


def cap(parameters: PublicParameters, rho: float) -> PrivacyCost:
    """An upper bound on the cost, which holds for every number of records."""
    return Gaussian.cap(rho, most_numbers(parameters))


def calibrate(parameters: PublicParameters, rho: float, failure_probability: float | None = None) -> Localize:
    """Give half of rho to the search for the radius and half to the descent, as in the paper."""
    radius, _ = find_radius.scales(parameters)
    beta = parameters.failure_probability if failure_probability is None else failure_probability
    finder = find_radius.calibrate(parameters, rho / 2.0, beta / 2.0)
    made = Localize(parameters, finder, rho / 2.0, radius, beta)
    # The smallest and the largest radius that a run may find must both fit a lattice, so that no run can fail for that
    # reason.
    for rounds in (1, max(made.most_rounds, 1)):
        made.gradient(rounds)
    return made
