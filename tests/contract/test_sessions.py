"""The public session: every query has the same noisy answers for any kind of input, and the same queries are
refused.
"""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import dpmedian
from contract.registry import cloud

POINTS = cloud(300, 3, seed=11)
AT = np.array([0.5, -0.25, 0.0])
QUERIES = {
    "gradient": {"at": AT},
    "count": {"center": AT, "radius": 1.5},
    "distance_counts": {"center": AT, "radii": [0.5, 1.5]},
    "mean_shift": {"center": AT, "radius": 1.5},
    "clipped_sum": {"center": AT, "threshold": 1.5},
    "ranks": {"thresholds": AT},
    "second_moments": {"at": AT},
}
PERSON, WEIGHT = np.arange(300) // 2, np.linspace(0.5, 3.0, 300)


def npy(folder):
    np.save(folder / "points.npy", POINTS)
    return folder / "points.npy"


def parquet(folder):
    arrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(
        arrow.table({name: POINTS[:, place] for place, name in enumerate("xyz")}), folder / "points.parquet"
    )
    return folder / "points.parquet"


KINDS = {
    "list": lambda folder: POINTS.tolist(),
    "Fortran order": lambda folder: np.asfortranarray(POINTS),
    "frame": lambda folder: pytest.importorskip("pandas").DataFrame(POINTS),
    ".npy file": npy,
    "Parquet file": parquet,
    "Dask array": lambda folder: pytest.importorskip("dask.array").from_array(POINTS, chunks=(100, -1)),
}
OPTIONS = {
    "plain": {},
    "scales": {"scales": [1.0, 2.0, 4.0]},
    "unit": {"unit": PERSON},
    "weights": {"sample_weight": WEIGHT, "weight_max": 2.0},
}


@pytest.fixture(scope="module")
def cluster():
    """Workers that are threads of this process."""
    distributed = pytest.importorskip("distributed")
    with distributed.Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
        yield client


def answers(points, relation, **options):
    with dpmedian.session(dpmedian.Dataset.of(points, **options), rho=1.0, neighbours=relation, seed=4) as s:
        found = [getattr(s, name)(**arguments, rho=0.125) for name, arguments in QUERIES.items()]
    return [(np.asarray(value).tolist(), sigma) for value, sigma in found], s.trace.rho


def test_every_query_of_a_session_is_here():
    methods = dict(inspect.getmembers(dpmedian.QuerySession, inspect.isfunction))
    queries = {name for name, method in methods.items() if "rho" in inspect.signature(method).parameters}
    assert {name for name in queries if not name.startswith("_")} == set(QUERIES)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_session_has_the_same_answers_for_every_kind_of_input(kind, option, tmp_path, request):
    if kind == "Dask array":
        request.getfixturevalue("cluster")
    for relation in ("replace", "add_remove"):
        expected = answers(POINTS, relation, **OPTIONS[option])
        assert answers(KINDS[kind](tmp_path), relation, **OPTIONS[option]) == expected
        assert expected[1] == pytest.approx(0.875, rel=1e-8)


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("rho", [0.0, -1.0, np.nan, np.inf, "0.1", None, 10**400])
def test_an_unusable_part_of_the_budget_releases_nothing(name, rho):
    with dpmedian.session(POINTS, rho=0.2, seed=1) as s:
        with pytest.raises((ValueError, TypeError), match=r"rho|budget"):
            getattr(s, name)(**QUERIES[name], rho=rho)
        assert (len(s.trace), s.remaining) == (0, pytest.approx(0.2))


@pytest.mark.parametrize(
    "arguments",
    [
        {"rho": -1.0},
        {"epsilon": 1.0},
        {"rho": 0.1, "neighbours": "neither"},
        {"rho": 0.1, "name": 5},
        {"rho": 0.1, "name": "\ud800"},
        {"rho": 0.1, "seed": -1},
        {"rho": 0.1, "seed": 0.5},
        {},
    ],
)
def test_an_argument_of_a_session_is_checked_before_the_charge(arguments):
    ledger = dpmedian.Ledger(rho=1.0)
    with pytest.raises((ValueError, TypeError), match=r"."), dpmedian.session(POINTS, ledger=ledger, **arguments):
        pass
    assert ledger.entries == ()
