"""Fixtures of all tests. `replay` tests privacy, and the tests of every method use it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmedian import InsecureSeedWarning, Plan, ReleaseFailed
from dpmedian._core import Coins
from dpmedian.release import ClusterResult
from dpmedian.sources.array import ArraySource
from dpmedian.statistics import Exact
from dpmedian.tape import Tape

Points = NDArray[np.float64]

# Coordinates that break careless arithmetic: squares overflow or underflow, sums lose bits, and ties are frequent.
EXTREMES = (0.0, -0.0, 1.0, -1.0, 5e-324, 1e-200, -1e-162, 1e16, 1e150, -1e300, 1.7e308)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the first case of each test quick, and mark the others as `slow`.

    This runs before `-m` selects, so `make quick` checks every claim once.
    """
    seen: set[str] = set()
    for item in items:
        claim = item.nodeid.partition("[")[0]
        if item.get_closest_marker("slow") is None:
            if claim in seen:
                item.add_marker(pytest.mark.slow)
            seen.add(claim)


@pytest.fixture(autouse=True)
def _seeds_are_fine_in_tests():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureSeedWarning)
        yield


def neighbours(
    points: Points, count: int, rng: np.random.Generator, scale: float = 1.0, relation: str = "replace"
) -> list[Points]:
    """Data sets that differ from `points` in one record, which is near, far, duplicated, extreme, first or last.

    Under "add_remove" the record is appended, or the last one is removed, because hidden choices are coupled for these.
    """
    n, d = points.shape
    found = []
    for trial in range(count):
        other = points.copy()
        place = (0, n - 1)[trial % 2] if trial < 4 else int(rng.integers(n))
        kind = trial % 6
        if kind == 0:
            record = points[place] + scale * rng.normal(size=d)
        elif kind == 1:
            record = 1e6 * scale * rng.normal(size=d)
        elif kind == 2:
            record = points[rng.integers(n)]
        elif kind == 3:
            record = -points[place]
        elif kind == 4:
            record = rng.choice(EXTREMES, size=d)
        else:
            record = np.median(points, axis=0)
        if relation == "replace":
            other[place] = record
        else:
            other = points[:-1] if trial % 5 == 0 else np.vstack([points, record])
        found.append(other)
    return found


def form_of(exact: Exact) -> str:
    """The form in which an answer is released: a vector as a whole, a table entry by entry, scores as a
    chosen index.
    """
    return repr(exact).removeprefix("Exact(").split(",")[0].lower()


def wide(exact: Exact, neighbours: Literal["replace", "add_remove"] = "replace") -> float:
    """A noise multiplier with which every lattice has a sampler."""
    return 2.0**40 / max(exact.sensitivity.under(neighbours), 1.0)


def opened(exact: Exact, neighbours: Literal["replace", "add_remove"] = "replace") -> NDArray[np.int64]:
    """The exact integers of an answer, which only a recording tape shows."""
    tape = Tape.record(bytes(32), neighbours)
    if form_of(exact) == "scores":
        tape.choose("test", exact, 1.0)
    else:
        table = form_of(exact) == "table"
        for part in [exact.pick(index) for index in range(len(exact))] if table else [exact]:
            tape.gaussian("test", part, wide(part, neighbours))
    return np.concatenate([np.zeros(0, dtype=np.int64), *(entry[3] for entry in tape.entries())])


@pytest.fixture
def replay() -> Callable[..., int]:
    """Record a run on `points`, replay its noisy outputs on neighbors, and require the same releases.

    At the privacy boundary every replayed release must have the same name, scale, sensitivity and length as the
    recorded one, and its exact values may differ by at most the declared sensitivity. Otherwise the tape raises an
    error. The outcome, including a failure, must be the same, because it is post-processing of the replayed values.
    Return the number of releases.
    """

    def run(plan: Plan, points: Any, others: list[Any], seed: int = 1) -> int:
        def outcome(data: Any, tape: Tape) -> object:
            source = ArraySource.of(data, plan.parameters)
            if plan.parameters.weighted:
                source = source.weighted(Coins.of(tape.hidden()))
            try:
                result = plan.calibrated.run(source, tape)
            except ReleaseFailed as failed:
                return failed.message
            moments = None if result.moments is None else result.moments.to_dict()
            centers = result.centers.tobytes() if isinstance(result, ClusterResult) else None
            return (
                result.point.tobytes(),
                centers,
                result.scale,
                result.error_radius,
                result.notes,
                result.size,
                moments,
            )

        recorded = Tape.record(seed.to_bytes(32, "little"), plan.parameters.neighbours)
        expected = outcome(points, recorded)
        entries = recorded.entries()
        assert entries, "a private run must release something through the tape"
        for other in others:
            replayed = recorded.replay()
            assert outcome(other, replayed) == expected
            assert len(replayed.entries()) == len(entries), "the run on the neighbor made fewer releases"
        return len(entries)

    return run
