"""Building blocks for integers that the caller computes, with a sensitivity that the caller has proved."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np

from dpmedian.accounting import Budget, PrivacyCost
from dpmedian.accounting.protection import neighbours_of
from dpmedian.building_blocks.value import PrivateValue
from dpmedian.documented import documented
from dpmedian.mechanisms.above_threshold import AboveThreshold, epsilon_of_rho
from dpmedian.mechanisms.bisection import NoisyBisection
from dpmedian.mechanisms.exponential import RANGE_LIMIT, Exponential, eta_of_rho
from dpmedian.mechanisms.gaussian import Gaussian
from dpmedian.parameters import integer, positive_number
from dpmedian.release import ReleaseFailed
from dpmedian.running import Session
from dpmedian.spelling import american
from dpmedian.statistics import Exact
from dpmedian.tape import Tape

__all__ = ["above_threshold", "exponential_mechanism", "noisy_bisection"]

# Differences between counts and the target are clamped to this magnitude, so that their lattice fits 64 bits. Clamping
# does not increase the difference of two counts.
_LARGEST = 2**26

Value = TypeVar("Value")


@documented
@american
def above_threshold(
    queries: Iterable[int],
    threshold: int,
    *,
    sensitivity: int,
    epsilon: float | None = None,
    rho: float | None = None,
    noise: str = "laplace",
    neighbours: str = "replace",
    ledger: Any = None,
    seed: int | None = None,
) -> PrivateValue[int]:
    """Release the index of the first query that reaches the threshold, or raise `ReleaseFailed` if none does.

    Sensitivity: every query is an integer that moves by at most `sensitivity` between neighbors. The threshold is
    public. Cost: the release is epsilon-DP for any number of queries. If `rho` is given, epsilon is the largest number
    that costs at most rho. Queries are taken from the iterable one by one, until one of them reaches the threshold.

    Parameters
    ----------
    queries : iterable of int
        Exact integers that the caller computes from the data, queried one after the other.
    threshold : int
        The public threshold.
    sensitivity : int
        The largest change of a query between neighbors, which the caller has proved.
    epsilon, rho : float, optional
        The budget, one of the two.
    noise : {"laplace", "exponential"}
        "laplace" is two-sided noise, as in textbooks. "exponential" is one-sided noise with two thirds of its standard
        deviation.
    neighbours : {"replace", "add_remove"}
        The relation for which the caller's proof and the cost hold.
    ledger, seed
        As in `find_radius`.

    Returns
    -------
    PrivateValue of int
        The index, and the cost.

    Examples
    --------
    >>> counts = [3, 12, 480, 2100, 2950]
    >>> above_threshold(counts, 1500, sensitivity=1, epsilon=0.5, noise="exponential").value
    3
    """
    budget = Budget.of(epsilon=epsilon, rho=rho)
    allowed = budget.epsilon if budget.epsilon is not None else epsilon_of_rho(budget.rho or 0.0)
    mechanism = AboveThreshold.of("above threshold", integer("sensitivity", sensitivity), allowed, noise)
    threshold = integer("threshold", threshold)
    if abs(threshold) > 2**61:
        raise ValueError(f"threshold must be at most 2**61 in magnitude, got {threshold}")
    iterator = _iterator("queries", queries)
    cost = replace(mechanism.cost.requested(budget.epsilon, None), neighbours=neighbours_of(neighbours))

    def run(tape: Tape) -> int | ReleaseFailed:
        index = mechanism.release(tape, (mechanism.stated(_integer(query)) for query in iterator), threshold)
        return ReleaseFailed(f"no query reached the threshold {threshold}", cost) if index is None else index

    return _charged_value("above_threshold", cost, run, ledger, seed)


@documented
@american
def noisy_bisection(
    count: Callable[[int], int],
    low: int,
    high: int,
    target: float,
    *,
    sensitivity: float,
    rho: float,
    neighbours: str = "replace",
    ledger: Any = None,
    seed: int | None = None,
) -> PrivateValue[int]:
    """Release the smallest index from `low` to `high` whose count reaches the target, or `high` if no smaller index
    does.

    Sensitivity: every `count(index)` is an integer that moves by at most `sensitivity` between neighbors. Counts should
    increase with the index. Cost: rho, for ceil(log2(high - low + 1)) Gaussian counts. Failure: none.

    Parameters
    ----------
    count : callable
        A function from an index to the exact integer count, which should increase with the index.
    low, high : int
        The first and the last index, both public.
    target : float
        The public count to reach.
    sensitivity : float
        The largest change of a count between neighbors, which the caller has proved.
    rho : float
        The budget.
    neighbours, ledger, seed
        As in `above_threshold`.

    Returns
    -------
    PrivateValue of int
        The index, and the cost.

    Examples
    --------
    >>> ages = [23, 25, 31, 38, 44, 52, 60, 71] * 50
    >>> noisy_bisection(lambda age: sum(a <= age for a in ages), 0, 120, 175, sensitivity=1, rho=1.0).value
    38
    """
    budget = Budget.of(rho=rho)
    assert budget.rho is not None
    low, high, sensitivity = integer("low", low), integer("high", high), positive_number("sensitivity", sensitivity)
    releases = NoisyBisection.queries(low, high)
    counts = Gaussian.of_stated("bisection", sensitivity, budget.rho, largest=_LARGEST, releases=releases)
    mechanism = NoisyBisection(low, high, counts)
    if not callable(count):
        raise TypeError(f"count must be a function from an index to an integer, got a {type(count).__name__}")
    if not isinstance(target, Real) or isinstance(target, bool) or not math.isfinite(target):
        raise ValueError(f"target must be a finite number, got {target!r}")
    origin = math.floor(target)

    def relative(index: int) -> Exact:
        return counts.stated(min(max(_integer(count(index)) - origin, -_LARGEST), _LARGEST))

    cost = replace(mechanism.cost, neighbours=neighbours_of(neighbours))
    return _charged_value(
        "noisy_bisection", cost, lambda tape: mechanism.release(tape, relative, float(target - origin)), ledger, seed
    )


@documented
@american
def exponential_mechanism(
    scores: Iterable[int],
    *,
    sensitivity: int | None = None,
    bounded_range: int | None = None,
    epsilon: float | None = None,
    rho: float | None = None,
    neighbours: str = "replace",
    ledger: Any = None,
    seed: int | None = None,
) -> PrivateValue[int]:
    """Release the index of a small score. The index i has a probability proportional to exp(-scores[i] * c), exactly.

    Scores are integers, one for each of a public number of candidates. Smaller scores are better. Sensitivity: between
    neighbors, every score moves by at most `sensitivity`, or the difference of any two scores by at most
    `bounded_range`. Give one of the two. A sensitivity of s implies a bounded range of 2 s. Cost: eta = epsilon, or eta
    = sqrt(8 rho). The choice is eta-DP and eta^2/8-zCDP, and c = eta divided by the bounded range. Failure: none.

    Parameters
    ----------
    scores : iterable of int
        Exact integers that the caller computes from the data, one for each candidate.
    sensitivity, bounded_range : int, optional
        The largest change between neighbors of one score, or of the difference of two scores: give one of the two.
    epsilon, rho : float, optional
        The budget, one of the two.
    neighbours, ledger, seed
        As in `above_threshold`.

    Returns
    -------
    PrivateValue of int
        The index of the chosen candidate, and the cost.

    Examples
    --------
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
        given, value, width = "sensitivity", sensitivity, 2 * integer("sensitivity", sensitivity)
    else:
        given, value, width = "bounded_range", bounded_range, integer("bounded_range", bounded_range)
    if not 0 < width <= RANGE_LIMIT:
        raise ValueError(f"{given} must be positive and at most 2**61, got {value}")
    eta = budget.epsilon if budget.epsilon is not None else eta_of_rho(budget.rho or 0.0)
    mechanism = Exponential.of("exponential mechanism", eta)
    given_scores = _iterator("scores", scores)
    if isinstance(scores, Sized) and len(scores) == 0:
        raise ValueError("scores must not be empty")
    cost = replace(mechanism.cost.requested(budget.epsilon, None), neighbours=neighbours_of(neighbours))

    def run(tape: Tape) -> int:
        integers = [_integer(score) for score in given_scores]
        if not integers:
            raise ValueError("scores must not be empty")
        smallest = min(integers)
        above = np.array([min(score - smallest, 2**62) for score in integers], dtype=np.int64)
        return mechanism.release(tape, Exact.stated(above, float(width), scores=True))

    return _charged_value("exponential_mechanism", cost, run, ledger, seed)


def _charged_value(
    method: str, cost: PrivacyCost, run: Callable[[Tape], Value | ReleaseFailed], ledger: Any, seed: int | None
) -> PrivateValue[Value]:
    """Charge the cost, then run with a tape that refuses to release more than was charged.

    The caller of this function has checked every public argument, so an error in `run` occurs after the charge. If this
    release fails, `run` returns the `ReleaseFailed`. A `ReleaseFailed` that `run` raises comes from code of the user,
    and belongs to another release.
    """
    session = Session(cost, method=method, ledger=ledger, seed=seed)
    with session, session.spent():
        value = run(session.tape())
        if isinstance(value, ReleaseFailed):
            raise session.failure(value)
    return PrivateValue(value, cost)


def _iterator(name: str, values: Iterable[Value]) -> Iterator[Value]:
    """Return an iterator over the caller's values, or raise an error before the charge if they are not iterable."""
    try:
        return iter(values)
    except TypeError:
        raise TypeError(f"{name} must be an iterable of integers, got a {type(values).__name__}") from None


def _integer(value: object) -> int:
    """A query or a count as an integer."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise TypeError(f"queries and counts must be integers, got one of type {type(value).__name__}")
    return int(value)
