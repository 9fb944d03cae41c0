"""The scale-free release: no radius, no resolution, and an error of second order in the noise. Proof: adaptive.md.

| stage | releases | finds |
|---|---|---|
| scale | counts of random pairs within 2^k | the power of two that covers nearly half of the pairs |
| centre | ranks in every coordinate | coordinate medians, to a fraction of the spread |
| reach | counts of distances to the centre | the spread: the distance that covers 40 % of the records |
| walk | mean shifts or gradients, each with a count | an atom, or a better centre |
| spread, curvature | counts and one sum of functions of distances | the length of a Newton step |
| kink | a count near the centre | whether an atom asks for shorter steps |
| approach, fine | gradients | the median: fine averages the iterates |
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmedian.accounting import PrivacyCost
from dpmedian.mechanisms.distance import Curvature, DistanceCount, radius_of
from dpmedian.mechanisms.gaussian import Gaussian, NoisyGradient
from dpmedian.mechanisms.search import CoordinateSearch, GridSearch
from dpmedian.methods import Prediction, Stage
from dpmedian.problem import LARGEST, Problem
from dpmedian.release import Outcome, ReleaseFailed
from dpmedian.source import FIRST_QUARTER, LAST_QUARTER, ArraySource, Tape

__all__ = ["Adaptive", "check", "name", "prepare"]

name = "adaptive"

# The share of pairs that the scale must cover: between the pairs inside the larger of two clusters of 60 and 40 % (52 %
# with those of the smaller) and those inside an atom of 60 % (36 %).
_PAIRS = 0.44
# Pairs whose counts are averaged: enough that the sampling of pairs does not matter beside the noise.
_PAIR_SAMPLE = 20_000
_PAIRINGS_MAX = 16

# Questions of the searches: more make each one noisier, and cost time, but trust it less.
_SCALE_QUESTIONS, _CENTRE_QUESTIONS, _REACH_QUESTIONS, _SPREAD_QUESTIONS = 48, 80, 32, 16

# Powers of two that a distance between doubles can have, and half octaves whose reciprocals are normal numbers.
_EXPONENTS = (-1022, 1001)
_HALVES = (-2036, 2036)

# Cells of the centre's search below this fraction of scale/sqrt(d) are not divided.
_RESOLUTION = 1.0 / 256.0

# The share of records whose distance is the spread: fewer than half, so that a scattered half does not hide the rest.
_CORE = 0.4

_WALK_ROUNDS = 6
# A mean shift is accepted if half of the records lie within this many quarter octaves less than before: a factor 2.4.
_SHRINK = 5
# After a mean shift that found no atom, so many gradient steps before the next one.
_PATIENCE = 2
# A spread so many quarter octaves above the scale of the pairs is that of a cluster not yet reached, not of an atom.
_UNREACHED = 4

_APPROACH_STEPS, _FINE_STEPS = 4, 24
# An approach step has this share of a fine step's budget.
_APPROACH_SHARE = 0.3

# An atom at the median is a kink, where late steps must be short. One is suspected if so many records, beyond what a
# smooth density may have there, lie within this many quarter octaves less than the spread: a fifth of it.
_KINK, _KINK_QUARTERS = 0.025, 9

# Mean squared gradient per record, over n, above which the iterates are not near a median.
_LOST = 0.4

# Failures become rare where n sqrt(rho/d) exceeds the first by a few times the second, which is larger on the line: an
# upper bound of what was simulated, data 10^5 spreads and more away from the center left out.
_SIGNAL, _SIGNAL_WIDTH, _SIGNAL_WIDTH_LINE = 12.0, 4.5, 6.0

# The least share of the centre finds middles 10^9 spreads away from the center; what it needs nearby finds 10^5.
_CENTRE_NEEDED, _CENTRE_LEAST = 170.0, 0.025


@dataclass(frozen=True, eq=False)
class Adaptive:
    """A calibrated scale-free release. Every stage is Gaussian, so the whole is mu-GDP with mu^2 = 2 rho."""

    problem: Problem
    rho: float
    pairings: int
    scale: GridSearch
    centre: CoordinateSearch
    reach: GridSearch
    walk: NoisyGradient | None
    checks: DistanceCount | None
    spread: GridSearch | None
    kink: DistanceCount | None
    curvature: Curvature
    approach: NoisyGradient
    fine: NoisyGradient

    @property
    def _releases(self) -> list[tuple[str, Gaussian]]:
        """Everything that is released, by stage."""
        found = [("scale", self.scale.count), ("centre", self.centre.ranks), ("reach", self.reach.count)]
        if self.walk is not None and self.checks is not None and self.spread is not None:
            found += [("walk", self.walk), ("walk counts", self.checks), ("spread", self.spread.count)]
        if self.kink is not None:
            found.append(("kink", self.kink))
        return [*found, ("curvature", self.curvature), ("approach", self.approach), ("fine", self.fine)]

    @property
    def stages(self) -> tuple[Stage, ...]:
        return tuple(
            Stage(name, str(spec.releases), f"Gaussian, sigma {spec.noise:.4g}", spec.sensitivity, spec.cost)
            for name, spec in self._releases
        )

    @property
    def cost(self) -> PrivacyCost:
        return PrivacyCost.total(spec.cost for _, spec in self._releases)

    @property
    def passes(self) -> float:
        walk = 0 if self.walk is None else 2 * self.walk.releases + 1
        walk += 0 if self.kink is None else 1
        return self.pairings + self.centre.ranks.releases + 2 + walk + self.approach.releases + self.fine.releases

    @property
    def notes(self) -> tuple[str, ...]:
        if _CENTRE_NEEDED * self.problem.d / self.problem.n**2 <= _CENTRE_LEAST * self.rho:
            return ()
        return ("data more than 10^5 spreads away from `center` fail more often than predicted",)

    @property
    def jitter(self) -> float:
        """The noise of one fine gradient relative to the largest gradient."""
        return math.sqrt(self.problem.d) * self.fine.noise / self.problem.n

    @property
    def deviation(self) -> float:
        """The noise of the averaged fine gradients, on every coordinate."""
        return self.fine.noise / math.sqrt(self.fine.releases)

    def predict(self) -> Prediction:
        """Typical for a cloud. At most: F moves by n times the distance, and is at least half of n median distances."""
        n, d = self.problem.n, self.problem.d
        noise = math.sqrt(d) * self.deviation / n
        # The curvature times spread/n.
        error = noise / (0.55 if d == 1 else 1.0 - 1.0 / d)
        # The curvature times F/n^2 is near 1 - 1/(2d). Medians, not means: of a chi-square with d degrees of freedom.
        excess = 0.5 * noise**2 / (1.0 - 0.5 / d) * (1.0 - 2.0 / (9.0 * d)) ** 3 * (1.0 + 0.5 * self.jitter)
        signal = n * math.sqrt(self.rho / max(d, 2))
        width = _SIGNAL_WIDTH_LINE if d == 1 else _SIGNAL_WIDTH
        failure = math.exp(min((_SIGNAL - signal) / width, 0.0))
        # On the line two halves may have nothing between them: a slope is seen there only above the noise of one step.
        at_most = (4.0 * math.sqrt(self.fine.releases) if d == 1 else 2.0) * error
        return Prediction(excess=excess, excess_at_most=at_most, error_radius=error, failure=failure)

    def run(self, source: ArraySource, tape: Tape) -> Outcome:
        theta, octave = self._centre(source, tape)
        theta, quarter, atom = self._walk(source, tape, theta, self._reach(source, tape, theta, octave))
        # A cluster far smaller than the spread found looks like an atom; only the scale of the pairs tells them apart,
        # as long as doubles of this size can have differences of that scale.
        resolvable = math.ldexp(1.0, octave) > 2.0**-40 * float(np.max(np.abs(theta)))
        atom = atom and not (resolvable and quarter > 4 * octave + _UNREACHED)
        return self._fine(source, tape, theta, quarter, atom)

    def _centre(self, source: ArraySource, tape: Tape) -> tuple[NDArray[np.float64], int]:
        problem, low = self.problem, self.scale.low
        radii = np.ldexp(1.0, np.arange(low, self.scale.high + 1)).tolist()
        pairs = source.pair_counts(tape, radii, self.pairings)
        target = _PAIRS * (problem.n // 2) * self.pairings
        octave = self.scale.release(tape, lambda k: int(pairs[k - low]), target, likely=0.0, width=32.0)
        centre = self.centre.release(
            tape,
            source.ranks,
            center=problem.center,
            octave=octave,
            limit=LARGEST if problem.radius is None else problem.radius,
            resolution=math.ldexp(_RESOLUTION / math.sqrt(problem.d), octave),
        )
        return self._inside(centre), octave

    def _reach(self, source: ArraySource, tape: Tape, theta: NDArray[np.float64], octave: int) -> int:
        counts, core = source.distance_counts(theta), _CORE * self.problem.n
        return 2 * self.reach.release(tape, lambda k: int(counts[2 * k - FIRST_QUARTER]), core, 2.0 * octave, 8.0)

    def _walk(
        self, source: ArraySource, tape: Tape, theta: NDArray[np.float64], quarter: int
    ) -> tuple[NDArray[np.float64], int, bool]:
        """Better centres within shrinking balls; an atom with half of the records shrinks them again and again."""
        if self.walk is None or self.checks is None or self.spread is None:
            return theta, quarter, False
        n, wait, inside, atom = self.problem.n, 0, 0.5 * self.problem.n, False
        for _ in range(self.walk.releases):
            radius = radius_of(quarter)
            if wait == 0:
                shift = self.walk.shift(source, tape, theta, radius)
                moved = self._inside(theta - radius / min(max(inside, _CORE * n), n) * shift)
                count = self.checks.within(source, tape, moved, quarter - _SHRINK)
                if count > 0.5 * n:
                    theta, quarter, inside, atom = moved, max(quarter - _SHRINK, 2 * _HALVES[0]), count, True
                else:
                    wait = _PATIENCE
            else:
                theta = self._inside(theta - radius / n * self.walk.at(source, tape, theta))
                inside, wait = self.checks.within(source, tape, theta, quarter), wait - 1
                if inside < 0.25 * n:
                    quarter = min(quarter + 4, 2 * _HALVES[1])
        counts = source.distance_counts(theta)

        def near(step: int) -> int:
            return int(counts[min(max(quarter + step, FIRST_QUARTER), LAST_QUARTER) - FIRST_QUARTER])

        return theta, quarter + self.spread.release(tape, near, _CORE * n, 0.0, 8.0), atom

    def _fine(self, source: ArraySource, tape: Tape, theta: NDArray[np.float64], quarter: int, atom: bool) -> Outcome:
        n, d = self.problem.n, self.problem.d
        spread, jitter = radius_of(quarter), self.jitter
        # The curvature is measured where the iterates will be, but over enough records to be seen through the noise.
        inner = min(max(0.3 * jitter, 12.0 * self.curvature.noise / n, 0.25 if d == 1 else 0.02), 1.0)
        steps_in = math.floor(-4.0 * math.log2(inner))
        stiffness = self.curvature.at(source, tape, theta, quarter - steps_in) * 2.0 ** (steps_in / 4.0) / n
        stiffness = min(max(stiffness, 0.25), 10.0)
        rounds = self.approach.releases + self.fine.releases
        first = min(max(1.1 - 1.5 * jitter, 0.5), 1.0)
        sharp = self._kinked(source, tape, theta, quarter)
        power, weight = (2.0, 2.0) if sharp else (1.0, 1.0)
        average, slope = np.zeros(d), 0.0
        for step in range(rounds):
            spec = self.approach if step < self.approach.releases else self.fine
            gradient = spec.at(source, tape, theta)
            length = first * min(1.0, rounds / 3.0 / (step + 1.0)) ** power * spread / (stiffness * n)
            theta = self._inside(theta - length * gradient)
            if spec is self.fine:
                kept = step - self.approach.releases
                average += (theta - average) * weight / (kept + weight)
                slope += (float(gradient @ gradient) - d * spec.noise**2) / n**2 / self.fine.releases
        # At an atom the gradient never vanishes, but there the walk has counted half of the records nearby.
        if slope > _LOST and not atom:
            raise ReleaseFailed(f"no median found: the mean squared gradient is still {slope:.2f} n^2", self.cost)
        error = (3.0 if sharp else 1.65) * math.sqrt(_chi_square_90(d)) * self.deviation / (stiffness * n) * spread
        return Outcome(average, scale=spread, error_radius=max(error, spread) if atom else error)

    def _kinked(self, source: ArraySource, tape: Tape, theta: NDArray[np.float64], quarter: int) -> bool:
        if self.kink is None:
            return False
        smooth = math.pow(2.0, -_KINK_QUARTERS / 4.0 * self.problem.d)
        return self.kink.within(source, tape, theta, quarter - _KINK_QUARTERS) > (_KINK + smooth) * self.problem.n

    def _inside(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Projection onto the public ball, if there is one; otherwise only kept finite."""
        problem = self.problem
        if problem.radius is None:
            return np.clip(theta, -LARGEST, LARGEST)
        offset = theta - problem.center
        length = _length(offset)
        return theta if length <= problem.radius else problem.center + offset * (problem.radius / length)


def _length(vector: NDArray[np.float64]) -> float:
    """The Euclidean norm, without overflow of the squares."""
    largest = float(np.max(np.abs(vector)))
    return 0.0 if largest == 0.0 else largest * float(np.linalg.norm(vector / largest))


def _chi_square_90(d: int) -> float:
    """The 90 % quantile of a chi-square with d degrees of freedom (Wilson and Hilferty)."""
    return d * (1.0 - 2.0 / (9.0 * d) + 1.2816 * math.sqrt(2.0 / (9.0 * d))) ** 3


def check(problem: Problem) -> None:
    if problem.budget.pure:
        raise ValueError(
            "method 'adaptive' needs delta or rho: Gaussian noise gives no pure differential privacy; "
            "method 'inverse_sensitivity' does, for d <= 3"
        )


def prepare(problem: Problem, rho: float) -> Adaptive:
    """The split of rho. What a search needs falls as 1/n^2, so with many records nearly all goes to the fine stage."""
    n, d = problem.n, problem.d

    def share(needed: float, least: float, most: float) -> float:
        return min(max(needed / n**2, least * rho), most * rho)

    for_scale = share(480.0, 0.01, 0.2)
    for_centre = share(_CENTRE_NEEDED * d, _CENTRE_LEAST, 0.45)
    for_reach = share(300.0, 0.005, 0.08)
    for_curvature = share(200.0, 0.01, 0.04)
    for_step = min(max(90.0 * d / n**2, 0.002 * rho), 0.01 * rho)
    for_check = max(80.0 / n**2, 0.001 * rho)
    # A walk whose steps are mostly noise would lose what the centre has found.
    noise = math.sqrt(2.0 * d / for_step) / n
    rounds = min(_WALK_ROUNDS, int(0.1 * rho / (for_step + for_check))) if noise <= 0.45 else 0
    for_spread = share(200.0, 0.005, 0.04) if rounds else 0.0
    for_kink = 1e4 / n**2 if 1e4 / n**2 <= 0.015 * rho else 0.0
    left = rho - for_scale - for_centre - for_reach - rounds * (for_step + for_check) - for_spread - for_kink
    left -= for_curvature
    weight = _APPROACH_STEPS * _APPROACH_SHARE / (_APPROACH_STEPS * _APPROACH_SHARE + _FINE_STEPS)

    low, high = _EXPONENTS
    halves_low, halves_high = _HALVES
    if problem.radius is not None:
        high = min(high, math.frexp(problem.radius)[1] + 1)
        halves_high = 2 * high + 1
    if problem.resolution is not None:
        low = max(low, math.frexp(problem.resolution)[1] - 1)
    low = min(low, high)
    pairings = min(max(math.ceil(_PAIR_SAMPLE / n), 1), _PAIRINGS_MAX)
    pairs = n // 2 * pairings
    walk = checks = spread = None
    if rounds:
        walk = NoisyGradient.of("walk", rounds * for_step, n=n, d=d, releases=rounds)
        checks = DistanceCount.of("walk count", rounds * for_check, n=n, releases=rounds)
        spread = GridSearch.of(
            "spread", -12, 8, amplitude=0.2 * n, sensitivity=1.0, rho=for_spread, largest=n, releases=_SPREAD_QUESTIONS
        )
    return Adaptive(
        problem=problem,
        rho=rho,
        pairings=pairings,
        scale=GridSearch.of(
            "scale",
            low,
            high,
            amplitude=0.35 * pairs,
            sensitivity=float(pairings),
            rho=for_scale,
            largest=pairs,
            releases=_SCALE_QUESTIONS,
        ),
        centre=CoordinateSearch.of("centre", n=n, d=d, rho=for_centre, releases=_CENTRE_QUESTIONS),
        reach=GridSearch.of(
            "reach",
            halves_low,
            halves_high,
            amplitude=0.3 * n,
            sensitivity=1.0,
            rho=for_reach,
            largest=n,
            releases=_REACH_QUESTIONS,
        ),
        walk=walk,
        checks=checks,
        spread=spread,
        kink=DistanceCount.of("kink", for_kink, n=n, releases=1) if for_kink else None,
        curvature=Curvature.of("curvature", for_curvature, n=n),
        approach=NoisyGradient.of("approach", weight * left, n=n, d=d, releases=_APPROACH_STEPS),
        fine=NoisyGradient.of("fine", (1.0 - weight) * left, n=n, d=d, releases=_FINE_STEPS),
    )
