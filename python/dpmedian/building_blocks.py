"""The parts of the methods as functions of their own: each plans, charges and releases, and says what it cost.

Every function takes `ledger=` and `seed=` like `geometric_median`, charges its full cost before it looks at the data,
and returns a frozen `Block`. Neighbours are data sets of the same size that differ in one replaced record.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from dpmedian.accounting import Budget, PrivacyCost, calibrate
from dpmedian.ledger import as_ledger, spending
from dpmedian.mechanisms.above_threshold import AboveThreshold, epsilon_of_rho
from dpmedian.mechanisms.bisection import NoisyBisection
from dpmedian.mechanisms.exponential import RANGE_LIMIT, Exponential, eta_of_rho
from dpmedian.methods import dpgd as dpgd_method
from dpmedian.methods import localize as localize_method
from dpmedian.methods import radius_finder as radius_finder_method
from dpmedian.methods.localize import Localized
from dpmedian.plan import tape_of
from dpmedian.problem import Problem, positive, whole
from dpmedian.progress import Progress
from dpmedian.release import Outcome, ReleaseFailed
from dpmedian.source import ArraySource, Tape, as_array

__all__ = [
    "Block",
    "above_threshold",
    "dpgd",
    "exponential_mechanism",
    "localize",
    "noisy_bisection",
    "radius_finder",
]

Value = TypeVar("Value")
Made_co = TypeVar("Made_co", covariant=True)

# Counts are taken relative to the target and clamped to this magnitude, which moves no two of them farther apart, so
# that their lattice fits 64 bits.
_LARGEST = 2**26


@dataclass(frozen=True)
class Block(Generic[Value]):
    """What a building block released, and its cost."""

    value: Value
    cost: PrivacyCost


def above_threshold(
    queries: Iterable[int],
    threshold: int,
    *,
    sensitivity: int,
    epsilon: float | None = None,
    rho: float | None = None,
    noise: str = "laplace",
    ledger: Any = None,
    seed: int | None = None,
) -> Block[int]:
    """The index of the first query that reaches the threshold, or `ReleaseFailed` when none does.

    Sensitivity: every query is an integer that moves by at most `sensitivity` when one record is replaced; the
    threshold is public. Cost: epsilon-DP, or the epsilon that costs rho, however many queries are asked. Queries are
    taken from the iterable one by one, none after the crossing. `noise="laplace"` is the textbook form; "exponential",
    one-sided noise, has two thirds of its deviation.

    >>> counts = [3, 12, 480, 2100, 2950]
    >>> above_threshold(counts, 1500, sensitivity=1, epsilon=0.5, noise="exponential").value
    3
    """
    budget = Budget.of(epsilon=epsilon, rho=rho)
    allowed = budget.epsilon if budget.epsilon is not None else epsilon_of_rho(budget.rho or 0.0)
    mechanism = AboveThreshold.of("above threshold", whole("sensitivity", sensitivity), allowed, noise)
    threshold = whole("threshold", threshold)
    tape = tape_of(seed)
    cost = mechanism.cost.asked(budget.epsilon, None)
    with spending(as_ledger(ledger), "above_threshold", cost):
        index = mechanism.release(tape, map(_integer, queries), threshold)
        if index is None:
            raise ReleaseFailed(f"no query reached the threshold {threshold}", cost)
    return Block(index, cost)


def noisy_bisection(
    count: Callable[[int], int],
    low: int,
    high: int,
    target: float,
    *,
    sensitivity: float,
    rho: float,
    ledger: Any = None,
    seed: int | None = None,
) -> Block[int]:
    """The smallest index from `low` to `high` whose count reaches the target; `high` if none below it does.

    Sensitivity: every `count(index)` is an integer that moves by at most `sensitivity` when one record is replaced;
    counts should rise with the index. Cost: rho, spent on ceil(log2(high - low + 1)) Gaussian counts. Failure: none.

    >>> ages = [23, 25, 31, 38, 44, 52, 60, 71] * 50
    >>> noisy_bisection(lambda age: sum(a <= age for a in ages), 0, 120, 175, sensitivity=1, rho=1.0).value
    38
    """
    budget = Budget.of(rho=rho)
    assert budget.rho is not None
    mechanism = NoisyBisection.of(
        "bisection",
        whole("low", low),
        whole("high", high),
        sensitivity=positive("sensitivity", sensitivity),
        rho=budget.rho,
        largest=_LARGEST,
    )
    origin = math.floor(target)
    tape = tape_of(seed)
    with spending(as_ledger(ledger), "noisy_bisection", mechanism.cost):
        index = mechanism.release(
            tape, lambda j: min(max(_integer(count(j)) - origin, -_LARGEST), _LARGEST), target - origin
        )
    return Block(index, mechanism.cost)


def exponential_mechanism(
    scores: Iterable[int],
    *,
    sensitivity: int | None = None,
    bounded_range: int | None = None,
    epsilon: float | None = None,
    rho: float | None = None,
    ledger: Any = None,
    seed: int | None = None,
) -> Block[int]:
    """The index of a small score: i with probability proportional to exp(-scores[i] * c), exactly.

    Scores are integers, the smaller the better, one for each of a public number of candidates. Sensitivity: replacing
    one record moves every score by at most `sensitivity`, or the difference of any two by at most `bounded_range`
    (give one; a sensitivity is a range of twice its size). Cost: eta = epsilon, or eta = sqrt(8 rho): the choice is
    eta-DP and eta^2/8-zCDP. Failure: none.

    >>> votes = {"red": 120, "green": 950, "blue": 430}
    >>> list(votes)[exponential_mechanism([-v for v in votes.values()], sensitivity=1, epsilon=0.5).value]
    'green'
    """
    budget = Budget.of(epsilon=epsilon, rho=rho)
    if (sensitivity is None) == (bounded_range is None):
        raise ValueError(
            f"give either sensitivity= or bounded_range=, got sensitivity={sensitivity}, bounded_range={bounded_range}"
        )
    if bounded_range is None:
        given, value, width = "sensitivity", sensitivity, 2 * whole("sensitivity", sensitivity)
    else:
        given, value, width = "bounded_range", bounded_range, whole("bounded_range", bounded_range)
    if not 0 < width <= RANGE_LIMIT:
        raise ValueError(f"{given} must be positive and at most 2**61, got {value}")
    eta = budget.epsilon if budget.epsilon is not None else eta_of_rho(budget.rho or 0.0)
    mechanism = Exponential.of("exponential mechanism", eta)
    tape = tape_of(seed)
    cost = mechanism.cost.asked(budget.epsilon, None)
    with spending(as_ledger(ledger), "exponential_mechanism", cost):
        integers = [_integer(score) for score in scores]
        if not integers:
            raise ValueError("scores must not be empty")
        smallest = min(integers)
        above = np.array([min(score - smallest, 2**62) for score in integers], dtype=np.int64)
        index = mechanism.release(tape, above, width)
    return Block(index, cost)


class _Part(Protocol[Made_co]):
    """A calibrated part of a method."""

    @property
    def cost(self) -> PrivacyCost: ...

    @property
    def passes(self) -> float: ...

    def run(self, source: ArraySource, tape: Tape) -> Made_co: ...


def _release(
    name: str,
    prepare: Callable[[Problem, float], _Part[Value]],
    points: Any,
    budget: Budget,
    *,
    ledger: Any,
    seed: int | None,
    progress: bool | Callable[[float], object] | None,
    **parameters: Any,
) -> Block[Value]:
    """Plans for the shape of the points, charges, and runs."""
    array, _ = as_array(points)
    n, d = array.shape
    problem = Problem.of(n, d, budget, **parameters)
    part = prepare(problem, calibrate(lambda rho: prepare(problem, rho).cost, budget))
    cost = part.cost.asked(budget.epsilon, budget.delta)
    tape, account = tape_of(seed), as_ledger(ledger)
    account.check(cost)
    meter = Progress(part.passes, progress)
    source = ArraySource(array, problem, meter)
    try:
        with spending(account, name, cost):
            return Block(part.run(source, tape), cost)
    finally:
        meter.close()


def radius_finder(
    points: Any,
    *,
    radius: float,
    resolution: float,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    center: ArrayLike | None = None,
    failure_probability: float = 0.05,
    profile: str = "default",
    ledger: Any = None,
    seed: int | None = None,
    progress: bool | Callable[[float], object] | None = None,
) -> Block[float]:
    """A radius, resolution times a power of two, in which some point has most of the others; or `ReleaseFailed`.

    Sensitivity and cost: `methods/radius_finder.md`; zero-concentrated. The resolution itself means "at or below it".
    """
    return _release(
        "radius_finder",
        radius_finder_method.prepare,
        points,
        Budget.of(epsilon=epsilon, delta=delta, rho=rho),
        radius=radius,
        resolution=resolution,
        center=center,
        failure_probability=failure_probability,
        profile=profile,
        ledger=ledger,
        seed=seed,
        progress=progress,
    )


def localize(
    points: Any,
    *,
    radius: float,
    resolution: float,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    center: ArrayLike | None = None,
    failure_probability: float = 0.05,
    profile: str = "default",
    ledger: Any = None,
    seed: int | None = None,
    progress: bool | Callable[[float], object] | None = None,
) -> Block[Localized]:
    """A ball that contains the median with high probability: `value.center`, `value.radius`, and the data's scale.

    Sensitivity and cost: `methods/localize.md`; zero-concentrated. Failure: `ReleaseFailed`, when no radius is found.
    """
    return _release(
        "localize",
        localize_method.prepare,
        points,
        Budget.of(epsilon=epsilon, delta=delta, rho=rho),
        radius=radius,
        resolution=resolution,
        center=center,
        failure_probability=failure_probability,
        profile=profile,
        ledger=ledger,
        seed=seed,
        progress=progress,
    )


def dpgd(
    points: Any,
    *,
    radius: float,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    center: ArrayLike | None = None,
    profile: str = "default",
    ledger: Any = None,
    seed: int | None = None,
    progress: bool | Callable[[float], object] | None = None,
) -> Block[Outcome]:
    """Noisy projected gradient descent over the public ball; `value.point` is the mean iterate.

    Sensitivity and cost: `methods/dpgd.md`; zero-concentrated. Failure: none.
    """
    return _release(
        "dpgd",
        dpgd_method.prepare,
        points,
        Budget.of(epsilon=epsilon, delta=delta, rho=rho),
        radius=radius,
        center=center,
        profile=profile,
        ledger=ledger,
        seed=seed,
        progress=progress,
    )


def _integer(value: object) -> int:
    """A query or a count."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise TypeError(f"queries and counts must be integers, got one of type {type(value).__name__}")
    return int(value)
