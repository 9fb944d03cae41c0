"""Every statistic: its sensitivity under both relations, its shards, its threads, and arbitrary bits as input."""

from __future__ import annotations

import numpy as np
import pytest

import dpmedian
from conftest import EXTREMES, form_of, opened
from contract.registry import STATISTIC_CASES, cloud
from dpmedian._core import STATISTICS, Exact, Points, Statistic, Tape, bound

# If neighbors replace a record, the number of records is public, and no tape adds noise to it.
CASES = pytest.mark.parametrize("kind", [kind for kind in STATISTIC_CASES if kind != "size"])


def distance(statistic: Statistic, one: np.ndarray, other: np.ndarray, exact: Exact) -> float:
    """The change that the sensitivity bounds: in L2, in every entry of a table separately, or in the range of
    scores.
    """
    moved = one.astype(float) - other.astype(float)
    if form_of(exact) == "scores":
        return float(moved.max() - moved.min())
    return float(np.abs(moved).max()) if form_of(exact) == "table" else float(np.linalg.norm(moved))


def asked(kind: str, points: np.ndarray, at: np.ndarray, n: int) -> tuple[Statistic, Exact]:
    statistic = STATISTIC_CASES[kind].query(kind, at, n)
    return statistic, Points(np.ascontiguousarray(points)).answer(statistic)


def records(rng: np.random.Generator, d: int) -> list[np.ndarray]:
    return [rng.normal(size=d) + 3.0, 1e6 * rng.normal(size=d), np.full(d, 3.0), rng.choice(EXTREMES, size=d)]


def test_every_statistic_is_registered():
    assert set(STATISTIC_CASES) == set(dict(STATISTICS))


@pytest.mark.parametrize("kind", [kind for kind, case in STATISTIC_CASES.items() if case.bits is not None])
def test_a_lattice_that_no_query_has_has_no_bound_either(kind):
    case, at = STATISTIC_CASES[kind], np.zeros(2)
    for made in (case.query, case.stated):
        made(kind, at, 31)
    for bits in (63, 2**40):
        finer = case._replace(bits=bits)
        for made in (finer.query, finer.stated):
            with pytest.raises(ValueError, match="finer than"):
                made(kind, at, 31)


@pytest.mark.parametrize("sizes", [{"k": 2**63, "d": 2}, {"k": 2, "d": 2**63}, {"k": 0, "d": 2}])
def test_absurd_numbers_of_clusters_and_dimensions_have_no_bound(sizes):
    with pytest.raises(ValueError, match="no bound"):
        bound("cluster gradients", **sizes, weights=[1.0, 0.5], bits=30)


@CASES
@pytest.mark.parametrize("d", [1, 3, 40])
def test_replacing_a_record_moves_the_answer_by_at_most_the_sensitivity(kind, d):
    rng = np.random.default_rng(d)
    points = cloud(31, d, seed=d)
    statistic, exact = asked(kind, points, np.full(d, 3.0), 31)
    before = opened(exact)
    for record in records(rng, d):
        for place in (0, 7, 30):
            other = points.copy()
            other[place] = record
            after = opened(asked(kind, other, np.full(d, 3.0), 31)[1])
            assert distance(statistic, before, after, exact) <= statistic.sensitivity.replace


@pytest.mark.parametrize("kind", STATISTIC_CASES)
@pytest.mark.parametrize("n", [0, 1, 2, 31])
def test_a_record_more_moves_the_answer_by_at_most_the_sensitivity(kind, n):
    """The record is appended at the end: the distribution of hidden pairings does not depend on the row."""
    d = 3
    rng = np.random.default_rng(n)
    points = cloud(31, d, seed=n)[:n]
    statistic, exact = asked(kind, points, np.full(d, 3.0), n)
    if not np.isfinite(statistic.sensitivity.add_remove):
        pytest.skip("its sensitivity would grow with the secret number of records, and the tape refuses it")
    before = opened(exact, "add_remove")
    for record in records(rng, d):
        grown = np.vstack([points, record])
        after = opened(asked(kind, grown, np.full(d, 3.0), n)[1], "add_remove")
        assert distance(statistic, before, after, exact) <= statistic.sensitivity.add_remove


def test_an_infinite_sensitivity_is_refused_by_the_tape():
    """The sensitivity of the largest ball counts would grow with the private number of records."""
    statistic, exact = asked("largest ball counts", cloud(31, 2, seed=0), np.full(2, 3.0), 31)
    assert np.isinf(statistic.sensitivity.add_remove)
    with pytest.raises(ValueError, match="sensitivity"):
        Tape.draw(None, "add_remove").gaussian("test", exact.pick(0), 2.0**30)


@CASES
def test_shards_add_up_to_the_whole(kind):
    points = cloud(100, 4, seed=0)
    statistic, exact = asked(kind, points, np.full(4, 3.0), 100)
    if not statistic.adds_over_records:
        assert kind in ("pair counts", "largest ball counts")
        return
    shards = [Points(np.ascontiguousarray(part)).answer(statistic) for part in np.array_split(points, 7)]
    assert np.array_equal(opened(Exact.sum(shards)), opened(exact))


@CASES
def test_the_same_integers_on_any_threads(kind):
    points = cloud(20_000 if kind != "largest ball counts" else 500, 4, seed=0)
    found = []
    for threads in (1, 2, 4):
        dpmedian.set_threads(threads)
        found.append(opened(asked(kind, points, np.full(4, 3.0), len(points))[1]).tolist())
    dpmedian.set_threads(None)
    assert found[0] == found[1] == found[2]


@CASES
@pytest.mark.parametrize("d", [1, 3])
def test_the_instance_carries_the_bound_that_calibrates_the_noise(kind, d):
    """The sensitivity of an answer is that of its statistic, and that of the bound without a query, which also states
    how many numbers are released at once.
    """
    statistic, exact = asked(kind, cloud(31, d, seed=1), np.full(d, 3.0), 31)
    bound, values = STATISTIC_CASES[kind].stated(kind, np.full(d, 3.0), 31)
    assert (bound.replace, bound.add_remove) == (statistic.sensitivity.replace, statistic.sensitivity.add_remove)
    assert exact.sensitivity.replace == statistic.sensitivity.replace
    assert exact.sensitivity.add_remove == statistic.sensitivity.add_remove
    assert values == (len(exact) if form_of(exact) == "vector" else 1)
    assert 0.0 < statistic.sensitivity.replace < np.inf
    with pytest.raises(ValueError, match="add_remove"):
        statistic.sensitivity.under("nobody")


@CASES
@pytest.mark.parametrize("at", [np.nan, np.inf, -np.inf, 5e-324, 1.7e308])
def test_any_bits_give_a_bounded_answer(kind, at):
    """For any bits of the iterate, an answer changes by at most the sensitivity that it states."""
    points = np.array([[0.0, 1.0], [1e300, -1e300], [5e-324, 0.0], [3.0, 3.0]])
    theta = np.array([at, 1.0])
    statistic, exact = asked(kind, points, theta, 4)
    before = opened(exact)
    for record in ([1.7e308, -1.7e308], [0.0, 0.0], [-5e-324, 1.0]):
        other = points.copy()
        other[2] = record
        after = opened(asked(kind, other, theta, 4)[1])
        assert distance(statistic, before, after, exact) <= statistic.sensitivity.replace


def test_a_class_of_an_earlier_version_is_an_error_that_names_the_query():
    with pytest.raises(AttributeError, match=r"is now Statistic\('gradient and directions'"):
        _ = dpmedian.statistics.GradientAndDirections
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = dpmedian.statistics.Nothing


def test_a_parameter_that_a_statistic_does_not_have_is_refused():
    for parameters in ({"theta": np.zeros(2)}, {"theta": np.zeros(2), "bits": 20, "radius": 1.0}, {"bits": 20}):
        with pytest.raises(ValueError, match="parameter"):
            Statistic("gradient", **parameters)
    with pytest.raises(ValueError, match='no statistic "nothing"'):
        Statistic("nothing")
