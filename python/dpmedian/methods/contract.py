"""The interface of a method, and the predictions that a method makes before any budget is spent."""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

from dpmedian.accounting import PrivacyCost
from dpmedian.mechanisms.spender import Allowance
from dpmedian.mechanisms.stage import Stage
from dpmedian.parameters import PublicParameters
from dpmedian.rates import pass_seconds
from dpmedian.release import MethodResult
from dpmedian.sources.protocol import Source
from dpmedian.tape import Tape

__all__ = [
    "USELESS",
    "Calibrated",
    "CalibratedMethod",
    "CappedMethod",
    "Method",
    "Prediction",
    "Reads",
    "cloud_curvature",
    "cloud_error",
    "cloud_excess",
    "hopeless",
    "least_size",
    "most_failures",
    "sensitivity_gain",
    "signal_of",
    "softened",
    "useful_error",
    "within",
]

# A point with an error of more than this many core radii is useless. Larger errors count as this number. A run that
# raises an error counts as an error of one core radius.
USELESS = 3.0

# For the comparison of methods: the assumed share of data sets with two clusters, and of data sets in which many
# records coincide.
_UNEVEN = 0.25


@dataclass(frozen=True)
class Prediction:
    """The prediction of a run, from public parameters alone. A value is None if it cannot be predicted without the
    data.

    The *core radius* of the data is the distance from their median within which 40 % of the records lie.

    `excess` is the median of F(point)/F(median) - 1 over many runs on a cloud: records at distances of similar size.
    Here F is the sum of distances. More precisely, `excess` is (F(point) - F(median))/(n m), where m is the median
    distance of the records from their median. For a cloud, F(median) is about n m. F(median) is never below n m/2. If
    there are far records, F(median) is larger than n m, and the true excess is smaller than predicted.
    `excess_if_many_coincide` is a value that nine of ten runs do not exceed if many records coincide, or if the data
    have no single middle. `excess_distance_bound` bounds (F(point) - F(median))/n in the units of the data.

    Every method predicts the distance of its point from the median as `relative_error` times the core radius plus
    `absolute_error`. The second part is in the units of the data and comes from a public radius or resolution.
    `failure` is the probability that a run on a cloud is useless, because the run raises `ReleaseFailed` or returns a
    point far away from the median (a *far point*). `silent` is the probability that a run on a cloud returns a far
    point. `uneven` is p + q - `silent`, where p is the probability of a far point if two fifths of the records lie
    somewhere else, and q is the probability of a far point if three fifths of the records coincide. `error_at` and
    `expected_error` combine these values into one number, by which methods are compared.
    """

    excess: float | None = None
    excess_if_many_coincide: float | None = None
    relative_error: float | None = None
    absolute_error: float = 0.0
    excess_distance_bound: float | None = None
    failure: float = 0.0
    silent: float = 0.0
    uneven: float = 0.0

    def error_at(self, core_radius: float) -> float:
        """The predicted distance from the median, for data with this core radius. Infinity if nothing is predicted."""
        return math.inf if self.relative_error is None else self.relative_error * core_radius + self.absolute_error

    def expected_error(self, core_radius: float) -> float:
        """The expected distance. A run that raises an error counts as one core radius, and a far point as three.

        The kind of the data is unknown before the run. It is assumed that a quarter of all data sets have two clusters,
        and that in another quarter many records coincide.
        """
        useful = (1.0 - self.failure) * min(self.error_at(core_radius), USELESS * core_radius)
        cloud = useful + (self.failure + (USELESS - 1.0) * self.silent) * core_radius
        return cloud + _UNEVEN * self.uneven * max(USELESS * core_radius - cloud, 0.0)


def most_failures(parameters: PublicParameters) -> float:
    """The probability of failure above which a release is refused."""
    return max(parameters.failure_probability, 0.5)


def hopeless(calibrated: CalibratedMethod, parameters: PublicParameters) -> str | None:
    """The reason why a release would be useless for every core radius of the data, or None.

    A release is useless if its probability of failure exceeds both 1/2 and `failure_probability`, or if its predicted
    error is at least half of the error of returning the public center. A far point counts as the center.
    """
    reasons = [
        _hopeless_at(core_radius, calibrated.predict(core_radius), parameters)
        for core_radius in parameters.assumed_core_radii
    ]
    return None if None in reasons else reasons[-1]


def least_size(hopeless_at: Callable[[int], str | None], most: int) -> int:
    """The smallest number of records with which a release is not hopeless, at most `most`."""
    low, high = 0, most
    while high - low > 1:
        middle = math.isqrt(max(low, 1) * high) if high > 2 * low + 2 else (low + high) // 2
        low, high = (low, middle) if hopeless_at(middle) is None else (middle, high)
    return high


def _hopeless_at(core_radius: float, prediction: Prediction, parameters: PublicParameters) -> str | None:
    if prediction.failure > most_failures(parameters):
        return f"would fail with probability {prediction.failure:.2g}"
    # A far point without an error message counts as the center.
    error = prediction.error_at(core_radius)
    error += prediction.silent * max(parameters.assumed_distance - error, 0.0)
    if 0.5 * parameters.assumed_distance <= error < math.inf:
        return "would release a point that hardly depends on the data"
    return None


def sensitivity_gain(parameters: PublicParameters) -> int:
    """The sensitivity gain of the relation over replacement: 2 if records are added or removed, otherwise 1.

    Gradients, centered ranks and counts minus half of all records have half the sensitivity if a record is added or
    removed. With the same budget, n records are then as informative as 2 n records under replacement. The constants of
    the methods were chosen for replacement.
    """
    return parameters.protection.relation.sensitivity_gain


def signal_of(parameters: PublicParameters, rho: float) -> float:
    """The signal n sqrt(rho/d): the number of records relative to the noise of a gradient."""
    return sensitivity_gain(parameters) * parameters.size * math.sqrt(rho / parameters.d)


def cloud_curvature(d: int) -> float:
    """The curvature of F at the median of a normal distribution, in units of n/core radius.

    The curvature is the mean of (1 - 1/d)/distance over the records, times the core radius. It is near one, because
    most distances are about one core radius. In one dimension it is twice the density at the median times the core
    radius.
    """
    return 0.418 if d == 1 else (1.0 - 1.0 / d) * (1.0 + 1.0 / d**2)


def cloud_error(noise: float, d: int) -> float:
    """The mean distance from the median, in core radii, after a Newton step with a noisy gradient.

    `noise` is the root mean square length of the noise relative to n. The mean length is smaller than the root mean
    square length.
    """
    mean = math.sqrt(2.0 / d) * math.exp(math.lgamma((d + 1) / 2.0) - math.lgamma(d / 2.0))
    return mean * noise / cloud_curvature(d)


def cloud_excess(error: float, d: int) -> float:
    """The excess at this distance (in core radii) from the median.

    The excess is quadratic near the median, and at most the distance.
    """
    return min(0.5 * cloud_curvature(d) * error**2, error)


def useful_error(error: float, d: int) -> float:
    """The mean error of the useful runs, in core radii, if the mean error of all runs is `error`.

    If `error` is large, the useful points are almost uniform in the ball of `USELESS` core radii. The mean distance of
    a uniform point from the center of a ball is d/(d + 1) times the radius.
    """
    return error / math.hypot(1.0, error * (d + 1.0) / (USELESS * d))


def within(value: float, border: float, sharpness: float) -> float:
    """A probability that is 1/2 if the value equals the border. Its odds are (border/value)^sharpness."""
    return 1.0 / (1.0 + math.exp(min(sharpness * math.log(value / border), 700.0)))


def softened(step: float, noise: float, d: int) -> float:
    """The factor c/c' by which noisy steps reduce the curvature of a cloud.

    `step` is in core radii, and `noise` is the root mean square length of the noise of one gradient relative to n.
    Noisy steps keep the iterates away from the median, at a mean square distance of w^2 = step noise^2/(2 c'), where c'
    is the curvature at this distance. If c is the curvature at the median, then c' = c/sqrt(1 + (c w)^2).
    """
    wide = cloud_curvature(d) * step * noise**2 / 2.0
    return math.sqrt(1.0 + wide * (wide + math.hypot(wide, 2.0)) / 2.0)


class Calibrated(ABC):
    """Stages that were calibrated from public parameters. The kinds of queries and the largest total cost are fixed."""

    needs_local_records: ClassVar[bool] = False
    """Whether all records must be in this process, because the run makes thousands of queries."""

    @property
    @abstractmethod
    def stages(self) -> tuple[Stage, ...]:
        """The stages, in the order of their releases."""

    @property
    def cost(self) -> PrivacyCost:
        """The cost of all stages."""
        return PrivacyCost.total(stage.cost for stage in self.stages)

    @property
    @abstractmethod
    def passes(self) -> float:
        """The largest number of passes of a run over the data, or the usual number if it depends on the answers.

        The progress bar uses this number.
        """


class Reads(NamedTuple):
    """How often a run reads all records, and how often it reads a hidden sample.

    Validation and the drawing of samples are not included.
    """

    expected: float
    """The expected number of passes on data with one cluster."""
    most: int
    sample: int = 0
    """The number of records in the sample (0 if there is no sample), and how often they are read on data with one
    cluster.
    """
    sample_expected: float = 0.0
    memory: int = 0
    """The largest number of bytes that a run needs in addition to an array of the records in C order. 0 if unknown."""
    seconds: float = 0.0
    """A guess of the processor time in seconds on the machine of the benchmarks (`rates.py`). 0 if unknown."""


class CalibratedMethod(Calibrated):
    """A method that can be run."""

    parameters: PublicParameters

    @property
    def cap(self) -> PrivacyCost | None:
        """The cost that bounds all `capped` stages together, or None if every stage has a cost of its own."""
        return None

    @property
    def guess(self) -> int | None:
        """The public guess of a private number of records with which the method was calibrated, or None."""
        return None

    @property
    def reads(self) -> Reads | None:
        """The expected and the largest number of passes, and a guess of the time. None if a note states them."""
        n, d = self.parameters.n, self.parameters.d
        seconds = 0.0 if n is None else pass_seconds(n, d, self.passes) + self.further_seconds
        return Reads(self.passes, math.ceil(self.passes), seconds=seconds)

    @property
    def seconds(self) -> float:
        """A guess of the processor time in seconds. 0 if unknown."""
        return 0.0 if self.reads is None else self.reads.seconds

    @property
    def further_seconds(self) -> float:
        """A guess of the time that a run takes in addition to its passes over the records."""
        return 0.0

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for a reader of the plan."""
        return ()

    @property
    def region(self) -> str | None:
        """The confidence region that a release will have, as in `Plan.region`."""
        return None

    @abstractmethod
    def predict(self, core_radius: float | None = None) -> Prediction:
        """The prediction for data with this core radius, or with the core radius that plans assume."""

    @property
    def examples(self) -> tuple[tuple[int, Prediction], ...]:
        """Predictions for some numbers of records, if `predict` returns nothing because the number of records is not
        known.
        """
        return ()

    @abstractmethod
    def run(self, source: Source, tape: Tape) -> MethodResult:
        """Run the method: query the source through mechanisms and the tape. `ReleaseFailed` is raised if the run finds
        no point.
        """


class CappedMethod(CalibratedMethod):
    """A method whose stages share one allowance. During a run the method decides how much each stage gets."""

    allowance: Allowance

    @property
    def stages(self) -> tuple[Stage, ...]:
        return self.allowance.stages

    @functools.cached_property
    def cost(self) -> PrivacyCost:
        """The cap on all stages together."""
        return self.allowance.cost

    @property
    def cap(self) -> PrivacyCost:
        return self.cost


class Method(Protocol):
    """The interface of a method, which is a module of this package."""

    name: str
    uses: frozenset[str]
    """The arguments of `METHOD_ARGUMENTS` that change what the method does, and "inference" if it can give a region.

    An argument that a method does not use is an error, except inference=False, which every method accepts.
    """
    needs: frozenset[str]
    """The arguments of `uses` that are required."""
    relations: frozenset[str]
    """The neighbor relations for which the method has a proof."""
    sized: bool
    """Whether the method is calibrated to the number of records. If this number is private, a noisy number is released
    first.
    """

    def check(self, parameters: PublicParameters) -> None:
        """Raise an error if an argument that the method needs is missing or out of range."""

    def calibrate(self, parameters: PublicParameters, rho: float) -> CalibratedMethod:
        """Calibrate the method so that its stages cost about rho."""

    def cap(self, parameters: PublicParameters, rho: float) -> PrivacyCost:
        """An upper bound on the cost of `calibrate` for every number of records, used if the number is noisy."""
