"""SInvS: the paper's method under pure DP in one to three dimensions, sampled exactly. Proof: inverse_sensitivity.md.

| paper | here | meaning |
|---|---|---|
| R | `radius` | public bound on every norm |
| r | `resolution` | smallest scale of interest |
| len_r | the score | the number of records that must change so that a point within r is a median |
| k* | `Bound.changes` | the score of the release is at most k* with probability 1 - beta |
| beta | `failure_probability` | the probability that the bound does not hold |
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpmedian.accounting import PrivacyCost
from dpmedian.mechanisms.inverse_sensitivity import RECORDS_MAX, InverseSensitivity
from dpmedian.mechanisms.stage import Stage
from dpmedian.methods.contract import USELESS, CalibratedMethod, Prediction, cloud_curvature
from dpmedian.parameters import PublicParameters
from dpmedian.postprocess import onto_ball
from dpmedian.release import MethodResult
from dpmedian.sources.protocol import Source
from dpmedian.tape import Tape

__all__ = ["Bound", "LatticeDraw", "calibrate", "cap", "check", "name", "needs", "relations", "sized", "uses"]

name = "inverse_sensitivity"
uses = frozenset({"radius", "resolution", "center"})
needs = frozenset({"radius", "resolution"})
relations = frozenset({"replace", "add_remove"})
sized = False

DIMENSION_MAX = 3

# Numbers measured on one core: the number of sweeps over the records for each level of the tree of cells, the seconds
# per record in a sweep, and the smallest number of seconds of a draw. In one dimension, the last two numbers are for
# sorting.
_SWEEPS = {2: 16, 3: 64}
_SECONDS, _LEAST = 6e-9, 0.01
_SECONDS_SORTING, _LEAST_SORTING = 1e-7, 1e-3


@dataclass(frozen=True)
class Bound:
    """The utility theorem with its numbers. With probability 1 - beta the score of the released point y is at most
    `changes`.

    In this case F(y) <= (1 + factor) (F(median) + n rounding) + n addition, where F is the sum of distances, and the
    bound `distance` holds.
    """

    n: int
    d: int
    changes: float
    resolution: float
    snapping: float
    replaced: bool = True
    """Whether the score counts replaced records. Otherwise the score is half of the number of added records."""

    @property
    def rounding(self) -> float:
        """The largest change of a distance by the rounding of records to the lattice.

        In more than one dimension, the smoothing within the resolution is included.
        """
        return self.snapping if self.d == 1 else self.snapping + self.resolution / 4.0

    @property
    def factor(self) -> float:
        """4k/(n - 2k) with k = `changes`, or infinity if n <= 2k, for which the theorem gives no bound."""
        return 4.0 * self.changes / (self.n - 2.0 * self.changes) if self.n > 2.0 * self.changes else math.inf

    @property
    def addition(self) -> float:
        """An additional distance. In one dimension the resolution is included, because the theorem bounds F at some
        point that is within the resolution of the released point.
        """
        return self.rounding + self.resolution if self.d == 1 else self.rounding

    def loss(self, optimum: float) -> float:
        """The bound on F(y) if F(median) = `optimum`."""
        if math.isinf(self.factor):
            return math.inf
        return (1.0 + self.factor) * (optimum + self.n * self.rounding) + self.n * self.addition

    def distance(self, fraction: float, quantile: float) -> float:
        """The bound on |y - theta|, for any theta for which a `fraction` of the records lies within the distance
        `quantile`.
        """
        share = self.changes / self.n
        q = fraction - share if self.d == 1 and self.replaced else fraction / (1.0 + 2.0 * share)
        if q <= 0.5:
            return math.inf
        quantile += self.snapping
        cone = quantile * q / math.sqrt(2.0 * q - 1.0)
        return self.resolution + cone if self.d == 1 else max(quantile + self.resolution, cone)


@dataclass(frozen=True, eq=False)
class LatticeDraw(CalibratedMethod):
    """A calibrated draw. It needs the exact scores of thousands of cells, so all records must be in this process."""

    needs_local_records = True

    parameters: PublicParameters
    mechanism: InverseSensitivity
    radius: float
    resolution: float

    @property
    def stages(self) -> tuple[Stage, ...]:
        return (self.mechanism.stage,)

    @property
    def passes(self) -> float:
        return 1.0

    @property
    def reads(self) -> None:
        """None, because parts of the records are read many times. A note says how often."""
        return None

    @property
    def _sweeps(self) -> int:
        """The sweeps over the records in two or three dimensions."""
        return _SWEEPS[self.parameters.d] * math.ceil(math.log2(self.mechanism.lattice.extent))

    @property
    def seconds(self) -> float:
        if self.parameters.n is None:
            return 0.0
        if self.parameters.d == 1:
            return max(_SECONDS_SORTING * self.parameters.n, _LEAST_SORTING)
        return max(_SECONDS * self._sweeps * self.parameters.n, _LEAST)

    def bound(self, failure_probability: float | None = None) -> Bound:
        """The theorem at beta = `failure_probability`, or at the failure probability that the caller gave."""
        n, d, lattice = self.parameters.size, self.parameters.d, self.mechanism.lattice
        replaced = not self.parameters.private_size
        beta = self.parameters.failure_probability if failure_probability is None else failure_probability
        decay = max(self.mechanism.decay, 1e-300)
        if d == 1:
            changes = (math.log(1.0 / beta) + math.log(lattice.extent / lattice.smoothing)) / decay
            # Scores are whole numbers if records are replaced.
            changes = float(math.floor(changes)) if replaced else changes
            return Bound(n, d, changes, self.resolution, lattice.step, replaced)
        corner, rounding = math.sqrt(d), (2.0 * n + 1.0) * 2.0**-30

        def changes_with(free: float) -> float:
            """The bound on the score, if all points of a ball have a score of at most `free`.

            The ball has the radius `small` and lies around the median of the rounded records.
            """
            small = min(free * lattice.smoothing / n, lattice.smoothing - 2.0)
            cells = d * (math.log(lattice.extent + corner) - math.log(small - corner))
            return free + 2.0 * rounding + (math.log(1.0 / beta) + cells) / decay

        least = n * corner / lattice.smoothing
        changes = min(changes_with(least * (1.0 + 1.1**i)) for i in range(-40, 200))
        return Bound(n, d, changes, self.resolution, lattice.step * corner / 2.0, replaced)

    @property
    def guess(self) -> int | None:
        return self.parameters.n if self.parameters.private_size else None

    @property
    def notes(self) -> tuple[str, ...]:
        if self.parameters.n is None:
            return ("n is private and there is no guess (n=), so neither the error nor the time can be predicted",)
        n, d, bound = self.parameters.size, self.parameters.d, self.bound()
        if math.isinf(bound.factor):
            promise = (
                f"no accuracy is guaranteed: n must exceed {2.0 * bound.changes:.0f} for this epsilon, radius and "
                "resolution; the point may lie anywhere in the ball"
            )
        else:
            promise = (
                f"with probability {1.0 - self.parameters.failure_probability:.4g} the sum of distances is at most "
                f"{1.0 + bound.factor:.4g} times the least one, plus n times {bound.loss(0.0) / n:.3g}"
            )
        return (promise, self._expectation(n, d))

    def _expectation(self, n: int, d: int) -> str:
        """The expected time and memory, from public parameters.

        The run itself must not reveal the number of its trials.
        """
        copy = 16 * n if d == 1 else 8 * n * d
        if d == 1:
            return f"expect one sort of the records ({self.seconds:.1g} s) and {copy / 2**20 + 1.0:.0f} MiB"
        return (
            f"expect about {self._sweeps} sweeps over the records ({self.seconds:.1g} s on one core) and "
            f"{copy / 2**20 + 32.0:.0f} MiB; several times as much if the budget barely suffices"
        )

    def predict(self, core_radius: float | None = None) -> Prediction:
        """Predict the error. `excess_distance_bound` is proved. The other values are expectations for a cloud of this
        core radius.

        Nothing is predicted for a private n without a guess.
        """
        if self.parameters.n is None:
            return Prediction()
        n, d, bound = self.parameters.size, self.parameters.d, self.bound()
        loss = 2.0 * self.radius
        if math.isfinite(bound.factor):
            loss = min(bound.loss(n * self.radius) / n - self.radius, loss)
        core_radius = core_radius or self.parameters.assumed_core_radius
        # In one dimension the score of a point is the smallest score within the resolution, so it is 0 on an interval,
        # in which the draw is uniform. In more dimensions the resolution changes the score only if records coincide.
        # The factor 1/16 was found by simulation.
        error, square, lost = self._draw(core_radius, self.resolution if d == 1 else 0.0)
        blur = 0.0 if d == 1 else self.resolution / 16.0
        return Prediction(
            excess=0.5 * cloud_curvature(d) * square,
            relative_error=error,
            absolute_error=math.hypot(error * core_radius, blur) - error * core_radius,
            excess_distance_bound=loss,
            failure=lost,
            silent=lost,
            uneven=self._uneven(core_radius) + max(self._draw(core_radius, 0.0, coincide=0.6)[2] - lost, 0.0),
        )

    def _uneven(self, core_radius: float) -> float:
        """The probability of a far point if two fifths of the records lie somewhere else.

        The gradient then has a norm of less than n/10 in most of the ball.
        """
        volume = self.parameters.d * (math.log(self.radius) - math.log(1.5 * core_radius))
        return 0.5 * (1.0 + math.tanh(0.5 * (volume - 0.08 * self.mechanism.decay * self.parameters.size)))

    def _draw(self, core_radius: float, free: float, coincide: float = 0.0) -> tuple[float, float, float]:
        """The mean and the mean squared distance of useful draws from the median, in core radii, and the share of
        useless draws.

        Twice the score, divided by n, is the norm of the gradient of a cloud, relative to n. At the distance t from the
        median this norm is about c t/sqrt(1 + (c t)^2), where c is the curvature of the cloud. The density of the
        distance of a draw is proportional to exp(-decay score) t^(d - 1), up to the radius. The score is zero up to the
        distance `free`. A share of the records may coincide: their part of the gradient is proportional to the distance
        within the resolution, and constant beyond the resolution.
        """
        n, d, c = self.parameters.size, self.parameters.d, cloud_curvature(self.parameters.d)
        logarithm = np.linspace(-12.0, math.log(self.radius) - math.log(core_radius), 2000)
        t = np.exp(logarithm)
        pulled = c * np.maximum(t - free / core_radius, 0.0)
        pull = (1.0 - coincide) * pulled / np.hypot(1.0, pulled)
        pull = pull + coincide * np.minimum(t * core_radius / self.resolution, 1.0)
        weight = d * logarithm - 0.5 * self.mechanism.decay * n * pull
        mass = np.exp(weight - weight.max())
        useful = mass * (t <= USELESS)
        total = float(useful.sum())
        lost = 1.0 - total / float(mass.sum())
        return float(useful @ t) / total, float(useful @ t**2) / total, lost

    def run(self, source: Source, tape: Tape) -> MethodResult:
        center = self.parameters.origin
        offset = self.mechanism.release(source, tape, center)
        # The point is projected onto the ball that contains all records. This does not increase the distance to any
        # record, and is post-processing.
        return MethodResult(center + onto_ball(offset, np.zeros_like(offset), self.radius))


def check(parameters: PublicParameters) -> None:
    if parameters.d > DIMENSION_MAX:
        raise ValueError(
            f"method {name!r} works in at most {DIMENSION_MAX} dimensions, got d = {parameters.d}: its cost is "
            "exponential in d; with epsilon and delta (or rho) the methods 'adaptive', 'loc_dpgd', 'loc_cutting_plane' "
            "and 'dpgd' work in any dimension"
        )
    if parameters.n is not None and parameters.n > RECORDS_MAX:
        raise ValueError(f"method {name!r} takes at most 2**28 records, got n = {parameters.n}")


def cap(parameters: PublicParameters, rho: float) -> PrivacyCost:
    """The cost of the draw, which does not depend on the number of records."""
    return PrivacyCost.bounded_range(math.sqrt(8.0 * rho))


def calibrate(parameters: PublicParameters, rho: float) -> LatticeDraw:
    """Calibrate a draw. A draw of bounded range epsilon costs rho = epsilon^2/8 and is epsilon-DP."""
    assert parameters.radius is not None
    assert parameters.resolution is not None
    mechanism = InverseSensitivity.of(math.sqrt(8.0 * rho), parameters)
    return LatticeDraw(parameters, mechanism, parameters.radius, parameters.resolution)
