"""LocDPCuttingPlane: localization, then noisy cutting planes, then a private choice. Proof: loc_cutting_plane.md.

| paper | here | meaning |
|---|---|---|
| theta_0, Delta_hat | `Localized.center`, `.scale` | what localization releases |
| Theta_t | `Region` | the ball of localization, cut by the half-spaces so far |
| tau | `Region.TAU` | the fraction of the volume that a cut removes |
| k_ft | `cuts` | ceil(d log(kappa)/log(1/(1 - tau))), kappa = n sqrt(rho/d) + sqrt(d) |
| xi_dir | `early`, `late` | noise on the directions: less in the second half, where the gradient is small |
| pi(t) | `selection` | weights exp(-c F) over the candidates |
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmedian.accounting import PrivacyCost
from dpmedian.centre import Region
from dpmedian.mechanisms.exponential import Selection, eta_of_rho
from dpmedian.mechanisms.gaussian import NoisyGradient
from dpmedian.methods import Prediction, Stage, localize
from dpmedian.methods.localize import FINAL, Localize
from dpmedian.problem import Problem
from dpmedian.release import Outcome
from dpmedian.source import ArraySource, Tape

__all__ = ["LocCuttingPlane", "check", "name", "prepare"]

name = "loc_cutting_plane"

Vector = NDArray[np.float64]

# Shares of the budget. The choice is made among points that are close together, so it is cheap.
LOCALIZATION, CUTS, SELECTION = 0.36, 0.62, 0.02

# A window of cuts whose misfit exceeds so many standard deviations is not noise around a linear gradient.
CONSISTENT = 3.0


@dataclass(frozen=True, eq=False)
class LocCuttingPlane:
    """A calibrated run."""

    problem: Problem
    localization: Localize
    early: NoisyGradient
    late: NoisyGradient
    selection: Selection

    @property
    def cuts(self) -> int:
        return self.early.releases + self.late.releases

    @property
    def stages(self) -> tuple[Stage, ...]:
        rows = [
            Stage(
                gradient.name,
                str(gradient.releases),
                f"Gaussian, sigma {gradient.noise:.4g}",
                gradient.sensitivity,
                gradient.cost,
            )
            for gradient in (self.early, self.late)
        ]
        choice = self.selection
        chosen = Stage("selection", "1", f"exponential mechanism, eta {choice.eta:.4g} on F/diameter", 2.0, choice.cost)
        return (*self.localization.stages, *rows, chosen)

    @property
    def cost(self) -> PrivacyCost:
        return PrivacyCost.total((self.localization.cost, self.early.cost, self.late.cost, self.selection.cost))

    @property
    def passes(self) -> float:
        return self.localization.passes + self.cuts + 1

    @property
    def error(self) -> float:
        """The noise of the late cuts' mean in units of the spread: near the median the Hessian is about n/spread."""
        return math.sqrt(self.problem.d / self.late.releases) * self.late.noise / self.problem.n

    @property
    def notes(self) -> tuple[str, ...]:
        return (
            *self.localization.doubts,
            f"{self.cuts} cuts, each expected to remove tau = {Region.TAU:.3g} of the volume; should the set collapse "
            "before, cutting stops at the same cost",
            "the sensitivity of the selection is in diameters of its candidates",
        )

    def predict(self) -> Prediction:
        """As for `loc_dpgd`: second order in the noise where F is curved; nothing if localization is lost."""
        failure = self.localization.failure
        if self.problem.n < self.localization.sufficient:
            return Prediction(failure=failure)
        return Prediction(excess=min(self.error**2 / 2.0, self.error), error_radius=self.error, failure=failure)

    def run(self, source: ArraySource, tape: Tape) -> Outcome:
        found = self.localization.run(source, tape)
        # The median lies in both balls: cut the smaller one.
        public = (self.problem.center, self.localization.radius)
        origin, radius = public if found.radius >= public[1] else (found.center, found.radius)
        trail = self.cut(source, tape, Region(origin, radius))
        candidates = np.array([within(point, *public) for point in self.candidates(trail, origin, radius)])
        weight = self.problem.profile.selection_weight
        chosen = self.selection.among(source, tape, candidates, None if weight is None else 2.0 * FINAL * found.scale)
        error = self.error * found.scale
        return Outcome(candidates[chosen], scale=found.scale, error_radius=error, notes=found.notes)

    def cut(self, source: ArraySource, tape: Tape, region: Region) -> Trail:
        """Cuts through the centre until the cuts are used up or the region has collapsed."""
        centres, gradients, noises = [region.centre], [], []
        for gradient in (self.early, self.late):
            for _ in range(gradient.releases):
                direction = gradient.at(source, tape, centres[-1])
                gradients.append(direction)
                noises.append(gradient.noise)
                if not region.cut(direction):
                    return Trail(np.array(centres), np.array(gradients), np.array(noises))
                centres.append(region.centre)
        return Trail(np.array(centres), np.array(gradients), np.array(noises))

    def candidates(self, trail: Trail, origin: Vector, radius: float) -> list[Vector]:
        """Two estimates from the last cuts, or all centres where the profile says so.

        Longer windows have less noise, but reach back to where the gradient was not yet linear. Whether one does can be
        seen in what was released, so only the longest window that is consistent with its noise, and the next, compete.
        """
        windows = self.problem.profile.selection_windows
        asked = len(trail.gradients)
        if not windows:
            return list(trail.centres[:asked])
        fits = [trail.fit(math.ceil(part * asked), origin, radius) for part in windows]
        first = next((i for i, (_, misfit) in enumerate(fits) if misfit <= CONSISTENT), len(fits) - 1)
        return [*(point for point, _ in fits), trail.centres[-1]][first : first + 2]


@dataclass(frozen=True, eq=False)
class Trail:
    """What the cuts released: centres (the last one was not asked), noisy gradients there, and the noise of each."""

    centres: Vector
    gradients: Vector
    noises: Vector

    def fit(self, last: int, origin: Vector, radius: float) -> tuple[Vector, float]:
        """The root of a linear gradient fitted to the last cuts, and the misfit in standard deviations of chi-square.

        A single late cut knows little, for its noise is as large as the gradient; together they have all of their
        budget. The root is the mean centre moved by one Newton step of the mean gradient, within the centres' reach;
        the curvature is one number, the slope of the gradients against the centres.
        """
        asked, d = self.gradients.shape
        window = slice(asked - last, asked)
        weights = self.noises[window] ** -2.0
        weights = weights / weights.sum()
        centres, gradients = (self.centres[window] - origin) / radius, self.gradients[window]
        middle, mean = weights @ centres, weights @ gradients
        away, rest = centres - middle, gradients - mean
        covariance, variance = float(weights @ np.sum(away * rest, axis=1)), float(weights @ np.sum(away**2, axis=1))
        if covariance > 0.0:
            curvature = covariance / variance
            rest = rest - curvature * away
            step = mean / curvature
            reach, length = float(np.max(np.linalg.norm(away, axis=1))), float(np.linalg.norm(step))
            middle = middle - step * min(1.0, reach / max(length, reach))
        squares = float(np.sum((rest / self.noises[window, None]) ** 2))
        return np.asarray(origin + radius * middle), (squares - d * last) / math.sqrt(2.0 * d * last)


def within(point: Vector, center: Vector, radius: float) -> Vector:
    """The nearest point of the public ball: it is no farther from any record than `point`."""
    offset = point - center
    largest = float(np.max(np.abs(offset)))
    length = largest * float(np.linalg.norm(offset / largest)) if largest > 0.0 else 0.0
    return point if length <= radius else np.asarray(center + offset * (radius / length))


def check(problem: Problem) -> None:
    problem.require(name, "radius", "resolution")


def prepare(problem: Problem, rho: float) -> LocCuttingPlane:
    """Localization, cuts and selection share rho; printed weights have a cost of their own."""
    n, d, profile = problem.n, problem.d, problem.profile
    localization = localize.prepare(problem, LOCALIZATION * rho, problem.failure_probability / 3.0)
    kappa = n * math.sqrt(rho / d) + math.sqrt(d)
    cuts = max(2, math.ceil(-d * math.log(kappa) / math.log1p(-Region.TAU)))
    late_cuts, late_rho = cuts // 2, profile.late_cuts * CUTS * rho
    early = NoisyGradient.of("cuts", CUTS * rho - late_rho, n=n, d=d, releases=cuts - late_cuts)
    late = NoisyGradient.of("late cuts", late_rho, n=n, d=d, releases=late_cuts)
    eta = eta_of_rho(SELECTION * rho)
    if profile.selection_weight is not None and problem.budget.epsilon is not None:
        # exp(-weight epsilon F/scale) over candidates within 50 scales of each other: E4's 2 c D.
        eta = 2.0 * profile.selection_weight * problem.budget.epsilon * 2.0 * FINAL
    return LocCuttingPlane(problem, localization, early, late, Selection.of("selection", eta))
