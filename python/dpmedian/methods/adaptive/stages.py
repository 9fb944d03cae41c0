"""The calibrated stages of the default method, and the run. Proof: adaptive.md.

| stage | releases | finds |
|---|---|---|
| pair scale | counts of random pairs within 2^k | the power of two that covers nearly half of the pairs |
| center | ranks in every coordinate | coordinate medians, to a fraction of the spread |
| initial spread | counts of distances to the center | the spread: the distance that covers 40 % of the records |
| recentring | mean shifts or gradients, each with a count | many equal records, or a better center |
| spread, curvature | counts and one sum of functions of distances | the length of a Newton step |
| duplicates check | a count near the center | whether many equal records ask for shorter steps |
| approach, descent | gradients | the median: the descent averages the iterates |
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmedian.mechanisms.coordinates import CoordinateSearch
from dpmedian.mechanisms.distance import Curvature, DistanceCount, DistanceSearch, radius_of
from dpmedian.mechanisms.gaussian import Gaussian
from dpmedian.mechanisms.gradient import NoisyGradient
from dpmedian.mechanisms.pairs import PairSearch
from dpmedian.mechanisms.stage import Stage
from dpmedian.methods.adaptive.constants import Constants
from dpmedian.methods.adaptive.prediction import chi_square_90, predict
from dpmedian.methods.contract import CalibratedMethod, Prediction
from dpmedian.parameters import LARGEST, PublicParameters
from dpmedian.postprocess import onto_ball
from dpmedian.release import MethodResult, ReleaseFailed
from dpmedian.sources.protocol import Source
from dpmedian.tape import Tape

__all__ = ["Adaptive", "Recentring"]

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Recentring:
    """Rounds that look for a better center, and the spread around it."""

    step: NoisyGradient
    check: DistanceCount
    spread: DistanceSearch


@dataclass(frozen=True)
class Located:
    """Where the data are: a center, the quarter octave of their spread, and whether half of them nearly coincide."""

    center: Vector
    spread: int
    coincide: bool


@dataclass(frozen=True, eq=False)
class Adaptive(CalibratedMethod):
    """A calibrated release. Every stage is Gaussian, so the whole is mu-GDP with mu^2 = 2 rho."""

    parameters: PublicParameters
    constants: Constants
    rho: float
    scale: PairSearch
    center: CoordinateSearch
    initial_spread: DistanceSearch
    recentring: Recentring | None
    duplicates: DistanceCount | None
    curvature: Curvature
    approach: NoisyGradient
    descent: NoisyGradient

    @property
    def stages(self) -> tuple[Stage, ...]:
        found: list[Gaussian] = [self.scale.count, self.center.ranks, self.initial_spread.count]
        if self.recentring is not None:
            found += [self.recentring.step, self.recentring.check, self.recentring.spread.count]
        if self.duplicates is not None:
            found.append(self.duplicates)
        return tuple(gaussian.stage for gaussian in (*found, self.curvature, self.approach, self.descent))

    @property
    def passes(self) -> float:
        rounds = 0 if self.recentring is None else 2 * self.recentring.step.releases + 1
        rounds += 0 if self.duplicates is None else 1
        searches = self.scale.count.pairings + self.center.ranks.releases + 2
        return searches + rounds + self.approach.releases + self.descent.releases

    @property
    def notes(self) -> tuple[str, ...]:
        share, n = self.constants.center_share, self.parameters.n
        if share.needed * self.parameters.d / n**2 <= share.least * self.rho:
            return ()
        return ("data more than 10^5 spreads away from `center` fail more often than predicted",)

    @property
    def jitter(self) -> float:
        """The noise of one gradient of the descent relative to the largest gradient."""
        return math.sqrt(self.parameters.d) * self.descent.noise / self.parameters.n

    @property
    def deviation(self) -> float:
        """The noise of the averaged gradients of the descent, on every coordinate."""
        return self.descent.noise / math.sqrt(self.descent.releases)

    def predict(self) -> Prediction:
        return predict(self.parameters, self.rho, self.descent, self.constants)

    def run(self, source: Source, tape: Tape) -> MethodResult:
        octave = self.scale.release(source, tape)
        theta = self._find_center(source, tape, octave)
        located = self._recenter(source, tape, theta, self._find_spread(source, tape, theta, octave))
        return self._descend(source, tape, located, self._many_coincide(located, octave))

    def _find_center(self, source: Source, tape: Tape, octave: int) -> Vector:
        parameters = self.parameters
        found = self.center.release(
            source,
            tape,
            center=parameters.origin,
            octave=octave,
            limit=LARGEST if parameters.radius is None else parameters.radius,
            resolution=math.ldexp(self.constants.center_resolution / math.sqrt(parameters.d), octave),
        )
        return self._inside(found)

    def _find_spread(self, source: Source, tape: Tape, theta: Vector, octave: int) -> int:
        core = self.constants.core * self.parameters.n
        return self.initial_spread.release(source, tape, theta, origin=0, target=core, likely=2.0 * octave)

    def _recenter(self, source: Source, tape: Tape, theta: Vector, quarter: int) -> Located:
        """Better centers within shrinking balls; where half of the records nearly coincide, every round shrinks them."""
        if self.recentring is None:
            return Located(theta, quarter, coincide=False)
        c, n, stages = self.constants, self.parameters.n, self.recentring
        wait, inside, coincide = 0, 0.5 * n, False
        for _ in range(stages.step.releases):
            radius = radius_of(quarter)
            if wait == 0:
                shift = stages.step.shift(source, tape, theta, radius)
                moved = self._inside(theta - radius / min(max(inside, c.core * n), n) * shift)
                count = stages.check.within(source, tape, moved, quarter - c.shrink)
                if count > 0.5 * n:
                    theta, quarter, inside, coincide = moved, max(quarter - c.shrink, 2 * c.halves[0]), count, True
                else:
                    wait = c.patience
            else:
                theta = self._inside(theta - radius / n * stages.step.at(source, tape, theta))
                inside, wait = stages.check.within(source, tape, theta, quarter), wait - 1
                if inside < c.lost_share * n:
                    quarter = min(quarter + c.widen, 2 * c.halves[1])
        spread = stages.spread.release(source, tape, theta, origin=quarter, target=c.core * n, likely=0.0)
        return Located(theta, spread, coincide)

    def _many_coincide(self, located: Located, octave: int) -> bool:
        """A cluster far smaller than the spread found looks like equal records; only the scale of the pairs tells them
        apart, as long as doubles of this size can have differences of that scale."""
        c = self.constants
        resolvable = math.ldexp(1.0, octave) > c.resolvable * float(np.max(np.abs(located.center)))
        return located.coincide and not (resolvable and located.spread > 4 * octave + c.unreached)

    def _descend(self, source: Source, tape: Tape, located: Located, coincide: bool) -> MethodResult:
        c, n, d = self.constants, self.parameters.n, self.parameters.d
        theta, spread, jitter = located.center, radius_of(located.spread), self.jitter
        stiffness = self._stiffness(source, tape, located)
        rounds = self.approach.releases + self.descent.releases
        longest, per_jitter, least, most = c.first_step
        first = min(max(longest - per_jitter * jitter, least), most)
        sharp = self._has_duplicates(source, tape, located)
        power = weight = c.sharp_power if sharp else 1.0
        average, slope = np.zeros(d), 0.0
        for step in range(rounds):
            stage = self.approach if step < self.approach.releases else self.descent
            gradient = stage.at(source, tape, theta)
            length = first * min(1.0, rounds / c.full_steps / (step + 1.0)) ** power * spread / (stiffness * n)
            theta = self._inside(theta - length * gradient)
            if stage is self.descent:
                kept = step - self.approach.releases
                average += (theta - average) * weight / (kept + weight)
                slope += (float(gradient @ gradient) - d * stage.noise**2) / n**2 / self.descent.releases
        # Where many records coincide the gradient never vanishes, but there half of the records were counted nearby.
        if slope > c.lost and not coincide:
            raise ReleaseFailed(f"no median found: the mean squared gradient is still {slope:.2f} n^2", self.cost)
        factor = c.error_factor_sharp if sharp else c.error_factor
        error = factor * math.sqrt(chi_square_90(d)) * self.deviation / (stiffness * n) * spread
        return MethodResult(average, scale=spread, error_radius=max(error, spread) if coincide else error)

    def _stiffness(self, source: Source, tape: Tape, located: Located) -> float:
        """The curvature in units of n/spread: measured where the iterates will be, over enough records to be seen."""
        c, n = self.constants, self.parameters.n
        of_jitter, of_noise, on_line, elsewhere = c.curvature_radius
        least = on_line if self.parameters.d == 1 else elsewhere
        inner = min(max(of_jitter * self.jitter, of_noise * self.curvature.noise / n, least), 1.0)
        steps_in = math.floor(-4.0 * math.log2(inner))
        found = self.curvature.at(source, tape, located.center, located.spread - steps_in)
        return min(max(found * math.pow(2.0, steps_in / 4.0) / n, c.stiffness[0]), c.stiffness[1])

    def _has_duplicates(self, source: Source, tape: Tape, located: Located) -> bool:
        """Whether more records lie near the center than a smooth density would have there."""
        if self.duplicates is None:
            return False
        c = self.constants
        smooth = math.pow(2.0, -c.duplicates_radius / 4.0 * self.parameters.d)
        count = self.duplicates.within(source, tape, located.center, located.spread - c.duplicates_radius)
        return count > (c.duplicates_share + smooth) * self.parameters.n

    def _inside(self, theta: Vector) -> Vector:
        """The nearest point of the public ball, if there is one; otherwise only kept finite."""
        return onto_ball(theta, self.parameters.origin, self.parameters.radius)
