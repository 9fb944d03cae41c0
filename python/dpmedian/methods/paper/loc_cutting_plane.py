"""LocDPCuttingPlane: localization, then noisy cutting planes, then a private choice. Proof: loc_cutting_plane.md.

| paper | here | meaning |
|---|---|---|
| theta_0, Delta_hat | `Localized.center`, `.scale` | the result of localization |
| Theta_t | `VolumetricCenter` | the ball of localization, cut by the half-spaces so far |
| tau | `VolumetricCenter.TAU` | the fraction of the volume that a cut removes |
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
from dpmedian.mechanisms.exponential import Selection, eta_of_rho
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
    useful_error,
    within,
)
from dpmedian.methods.paper import localize
from dpmedian.methods.paper.localize import FINAL, Localize, Localized
from dpmedian.parameters import PRIVATE_RECORDS_MAX, PublicParameters
from dpmedian.postprocess import VolumetricCenter, onto_ball
from dpmedian.rates import volumetric_seconds
from dpmedian.release import MethodResult, ReleaseFailed
from dpmedian.sources.protocol import Source
from dpmedian.tape import Tape

__all__ = ["LocCuttingPlane", "calibrate", "cap", "check", "name", "needs", "relations", "sized", "uses"]

name = "loc_cutting_plane"
uses = frozenset({"radius", "resolution", "center", "profile"})
needs = frozenset({"radius", "resolution"})
relations = frozenset({"replace", "add_remove"})
sized = True

Vector = NDArray[np.float64]

# Shares of the budget. The choice is cheap, because it is made among points that are close together.
LOCALIZATION, CUTS, SELECTION = 0.36, 0.62, 0.02

# A run counts as lost if the squared mean gradient of the last cuts exceeds this multiple of n^2, as in `adaptive`.
LOST = 0.4

# In one dimension the error is larger than the noise of the mean of the late cuts by this factor, because there are few
# cuts. The factor was found by simulation.
LINE = 1.36

# If the mean of the late cuts has this noise, and the ball has ten core radii, half of the error comes from cuts that
# are not near the median. The number was found by simulation.
UNSETTLED = 0.15

# A window of cuts whose misfit exceeds this many standard deviations is not consistent with noise around a linear
# gradient.
CONSISTENT = 3.0


@dataclass(frozen=True, eq=False)
class LocCuttingPlane(CalibratedMethod):
    """A calibrated run."""

    parameters: PublicParameters
    localization: Localize
    early: NoisyGradient
    late: NoisyGradient
    selection: Selection

    @property
    def cuts(self) -> int:
        return self.early.releases + self.late.releases

    @property
    def stages(self) -> tuple[Stage, ...]:
        return (
            *self.localization.stages,
            self.early.stage,
            self.late.stage,
            self.selection.stage(self.parameters.neighbours),
        )

    @property
    def passes(self) -> float:
        return self.localization.passes + self.cuts + 1

    @property
    def further_seconds(self) -> float:
        return volumetric_seconds(self.parameters.d, self.cuts)

    @property
    def error(self) -> float:
        """The noise of the mean of the late cuts in core radii. Near the median the Hessian is about n/core radius."""
        return math.sqrt(self.parameters.d / self.late.releases) * self.late.noise / self.parameters.size

    @property
    def notes(self) -> tuple[str, ...]:
        return (
            *self.localization.doubts,
            f"{self.cuts} cuts, each expected to remove tau = {VolumetricCenter.TAU:.3g} of the volume; if the set "
            "collapses before, cutting stops and the cost is the same",
            "the sensitivity of the selection is in diameters of its candidates",
        )

    def predict(self, core_radius: float | None = None) -> Prediction:
        """Predict the error from the noise of the late cuts, and the share of lost runs.

        All cuts together shrink the ball by the factor kappa. If localization lost the median, the last gradients still
        agree on a direction, and most such runs raise `ReleaseFailed`. With noisier gradients fewer lost runs raise
        this error, and if the ball is the public ball, no lost run raises it.
        """
        d, localization = self.parameters.d, self.localization
        core_radius = core_radius or self.parameters.assumed_core_radius
        ball = min(FINAL * localization.scale_of(core_radius), self.localization.radius) / core_radius
        signal = signal_of(self.parameters, self.cost.rho)
        arrives = within(ball / (signal + math.sqrt(d)), 13.9 / math.sqrt(d), 1.5 + 1.5 * math.sqrt(d))
        failure = 1.0 - (1.0 - localization.failure(core_radius)) * arrives
        if localization.unpredictable:
            return Prediction(failure=failure)
        # With noisier cuts and a larger ball, fewer of the late cuts are near the median. In few dimensions even very
        # noisy cuts do not lead far away.
        wild, most = (self.error / UNSETTLED) ** 2 * math.sqrt(ball / 10.0), d**0.6 * (ball / 10.0) ** 0.25
        unsettled = 1.0 + wild / (1.0 + wild / most)
        relative = useful_error((LINE if d == 1 else 1.0) * unsettled * cloud_error(self.error, d), d)
        silent = 1.0 if localization.whole(core_radius) else self.error / (self.error + 0.22 * math.sqrt(d))
        return Prediction(
            excess=cloud_excess(relative, d) if failure <= 0.5 else None,
            relative_error=relative,
            failure=failure,
            silent=silent * failure,
            # If two clusters are far apart, many cuts are made before the smaller cluster lies outside of the ball.
            uneven=min(localization.rounds_of(core_radius) / 5.0, 1.0)
            * within(signal, 22.0 * math.sqrt(max(localization.rounds_of(core_radius) - 2.0, 0.1)), 2.5),
        )

    def run(self, source: Source, tape: Tape) -> MethodResult:
        found = self.localization.run(source, tape)
        # The median lies in both balls, so the smaller one is cut.
        public = (self.parameters.origin, self.localization.radius)
        origin, radius = public if found.radius >= public[1] else (found.center, found.radius)
        trail = self.cut(source, tape, VolumetricCenter(origin, radius))
        self.fail_if_lost(trail, found)
        candidates = np.array([onto_ball(point, *public) for point in self.candidates(trail, origin, radius)])
        weight = self.parameters.profile.selection_weight
        chosen = self.selection.among(source, tape, candidates, None if weight is None else 2.0 * FINAL * found.scale)
        error = self.error * found.scale
        return MethodResult(candidates[chosen], scale=found.scale, error_radius=error, notes=found.notes)

    def fail_if_lost(self, trail: Trail, found: Localized) -> None:
        """Raise an error if the last gradients agree on a direction, because the median then lies outside of the ball
        that was cut.

        Near the median the unit vectors from different sides nearly cancel. Far away from the data all unit vectors
        agree.
        """
        late = trail.gradients[-max(len(trail.gradients) // 4, 1) :]
        noise = trail.noises[-len(late) :]
        slope = float(np.sum(late.mean(axis=0) ** 2)) - late.shape[1] * float(np.mean(noise**2)) / len(late)
        if found.radius < self.localization.radius and slope > LOST * self.parameters.size**2:
            raise ReleaseFailed(
                f"localization was lost: the squared mean gradient of the last cuts is still "
                f"{slope / self.parameters.size**2:.2f} n^2, so the median lies outside of the ball that was "
                "searched; use more records or a larger budget",
                self.cost,
            )

    def cut(self, source: Source, tape: Tape, region: VolumetricCenter) -> Trail:
        """Cut the region through its center until the cuts are used up or the region has collapsed."""
        centers, gradients, noises = [region.center], [], []
        for gradient in (self.early, self.late):
            for _ in range(gradient.releases):
                direction = gradient.at(source, tape, centers[-1])
                gradients.append(direction)
                noises.append(gradient.noise)
                if not region.cut(direction):
                    return Trail(np.array(centers), np.array(gradients), np.array(noises))
                centers.append(region.center)
        return Trail(np.array(centers), np.array(gradients), np.array(noises))

    def candidates(self, trail: Trail, origin: Vector, radius: float) -> list[Vector]:
        """Two estimates from the last cuts, or all centers if the profile has no `selection_windows`.

        The mean over a longer window of cuts has less noise, but the window includes earlier cuts, at which the
        gradient was not yet linear. The released values show whether a window is too long. So the candidates come from
        the longest window that is consistent with its noise, and from the next shorter window.
        """
        windows = self.parameters.profile.selection_windows
        queries = len(trail.gradients)
        if not windows:
            return list(trail.centers[:queries])
        fits = [trail.fit(math.ceil(part * queries), origin, radius) for part in windows]
        first = next((i for i, (_, misfit) in enumerate(fits) if misfit <= CONSISTENT), len(fits) - 1)
        return [*(point for point, _ in fits), trail.centers[-1]][first : first + 2]


@dataclass(frozen=True, eq=False)
class Trail:
    """The released values of the cuts: centers, noisy gradients at the centers, and the sigma of each gradient.

    No gradient was queried at the last center.
    """

    centers: Vector
    gradients: Vector
    noises: Vector

    def fit(self, last: int, origin: Vector, radius: float) -> tuple[Vector, float]:
        """The zero of a linear function that is fitted to the gradients of the last cuts, and the misfit of this
        function in standard deviations of a chi-square variable.

        A single late cut gives little information, because its noise is as large as the gradient, so the fit uses
        several cuts. The zero is the mean center plus one Newton step with the mean gradient, clipped to the extent of
        the centers. The curvature is a single number, the slope of the gradients against the centers.
        """
        queries, d = self.gradients.shape
        window = slice(queries - last, queries)
        weights = self.noises[window] ** -2.0
        weights = weights / weights.sum()
        centers, gradients = (self.centers[window] - origin) / radius, self.gradients[window]
        middle, mean = weights @ centers, weights @ gradients
        away, rest = centers - middle, gradients - mean
        covariance, variance = float(weights @ np.sum(away * rest, axis=1)), float(weights @ np.sum(away**2, axis=1))
        if covariance > 0.0:
            curvature = covariance / variance
            rest = rest - curvature * away
            step = mean / curvature
            reach, length = float(np.max(np.linalg.norm(away, axis=1))), float(np.linalg.norm(step))
            middle = middle - step * min(1.0, reach / max(length, reach))
        squares = float(np.sum((rest / self.noises[window, None]) ** 2))
        return np.asarray(origin + radius * middle), (squares - d * last) / math.sqrt(2.0 * d * last)


def check(parameters: PublicParameters) -> None:
    """Accept all parameters. This method only needs a radius and a resolution."""


def _cuts(parameters: PublicParameters, n: int, rho: float) -> int:
    """The number of cuts k_ft, which grows with n."""
    d = parameters.d
    kappa = sensitivity_gain(parameters) * n * math.sqrt(rho / d) + math.sqrt(d)
    return max(2, math.ceil(-d * math.log(kappa) / math.log1p(-VolumetricCenter.TAU)))


def cap(parameters: PublicParameters, rho: float) -> PrivacyCost:
    """The cost of localization, of the cuts for the largest number of records, and of the selection, whose eta does not
    depend on n.
    """
    numbers = localize.most_numbers(parameters) + _cuts(parameters, PRIVATE_RECORDS_MAX, rho) * parameters.d
    selection = Selection.of("selection", eta_of_rho(SELECTION * rho))
    return Gaussian.cap((LOCALIZATION + CUTS) * rho, numbers) + selection.cost


def calibrate(parameters: PublicParameters, rho: float) -> LocCuttingPlane:
    """Split rho between localization, cuts and selection. If the profile has the weights of the selection that the
    paper prints, the selection costs what these weights cost.
    """
    profile = parameters.profile
    localization = localize.calibrate(parameters, LOCALIZATION * rho, parameters.failure_probability / 3.0)
    cuts = _cuts(parameters, parameters.size, rho)
    late_cuts, late_rho = cuts // 2, profile.late_cuts * CUTS * rho
    early = NoisyGradient.of("cuts", CUTS * rho - late_rho, parameters, releases=cuts - late_cuts)
    late = NoisyGradient.of("late cuts", late_rho, parameters, releases=late_cuts)
    eta = eta_of_rho(SELECTION * rho)
    if profile.selection_weight is not None and parameters.budget.epsilon is not None:
        # exp(-c F) with c = weight epsilon/scale, over candidates within D = 50 scales: eta = 2 c D (exponential.md).
        eta = 2.0 * profile.selection_weight * parameters.budget.epsilon * 2.0 * FINAL
    return LocCuttingPlane(parameters, localization, early, late, Selection.of("selection", eta))
