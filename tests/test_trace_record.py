"""The trace in audit records can be read back and left out without changing the digest, and a changed query is
found.
"""

import base64
import hashlib
import json
import zlib

import numpy as np
import pytest

import dpmedian
from contract.registry import cloud
from dpmedian.digests import digest_of, sealed
from dpmedian.trace import Query

POINTS = cloud(2000, 2, seed=8)
BY = np.arange(2000) % 4

RUNS = {
    "adaptive": lambda **options: dpmedian.geometric_median(POINTS, rho=0.5, **options),
    "private size": lambda **options: dpmedian.geometric_median(POINTS, rho=0.5, neighbours="add_remove", **options),
    "inverse_sensitivity": lambda **options: dpmedian.geometric_median(
        POINTS, epsilon=1.0, method="inverse_sensitivity", radius=50.0, resolution=0.1, **options
    ),
    "loc_cutting_plane": lambda **options: dpmedian.geometric_median(
        POINTS, rho=0.5, method="loc_cutting_plane", radius=50.0, resolution=0.1, **options
    ),
    "above threshold": lambda **options: dpmedian.geometric_median(
        POINTS, rho=0.5, method="loc_dpgd", radius=50.0, resolution=0.1, profile="paper", **options
    ),
    "k-medians": lambda **options: dpmedian.k_medians(POINTS, 2, rho=0.5, **options),
    "robust step": lambda **options: dpmedian.robust_step(POINTS, rho=0.5, **options),
    "groups": lambda **options: dpmedian.geometric_medians(POINTS, BY, keys=range(4), rho=0.5, **options),
    "unlisted groups": lambda **options: dpmedian.geometric_medians(POINTS, BY, epsilon=4.0, delta=1e-4, **options),
}


# Two cases are quick: one that adapts its queries, and one with a private size.
QUICK = ("adaptive", "private size")


@pytest.fixture(
    scope="module", params=[pytest.param(name, marks=[pytest.mark.slow] * (name not in QUICK)) for name in RUNS]
)
def record(request):
    return json.loads(RUNS[request.param](seed=3).to_json())


def refuted(record):
    """The errors of a record, apart from its seed."""
    return [text for text in dpmedian.verify(record).wrong if "seed" not in text]


def queries_of(record):
    return json.loads(zlib.decompress(base64.b64decode(record["trace"]["data"])))


def changed(record, queries, **entries):
    """The record with other queries, by an attacker who computes the hash and the digest again."""
    text = json.dumps(queries).encode()
    trace = {
        **record["trace"],
        "queries": len(queries),
        "sha256": hashlib.sha256(text).hexdigest(),
        "data": base64.b64encode(zlib.compress(text)).decode(),
        **entries,
    }
    return sealed({**record, "trace": trace})


def test_a_trace_is_verified(record):
    found = dpmedian.verify(record)
    assert [check.question for check in found.checks if check.question.startswith("trace")]
    assert refuted(record) == []
    assert refuted(changed(record, queries_of(record))) == []


@pytest.mark.parametrize("entry", ["stage", "noise", "sensitivity", "sigma", "rho", "statistic"])
def test_a_changed_query_is_refuted_though_its_digest_was_computed_again(record, entry):
    queries = queries_of(record)
    for place in (0, len(queries) // 2, -1):
        query = dict(queries[place])
        if query[entry] is None or (entry in ("statistic", "sensitivity") and query["noise"] != "Gaussian"):
            continue  # For a choice, its eta is verified; the units of its scores are not in the record.
        query[entry] = query[entry] * 0.9 if isinstance(query[entry], float) else "counts of another kind"
        told = [*queries]
        told[place] = query
        assert refuted(changed(record, told)), query


def test_more_noise_or_more_queries_than_planned_are_refuted(record):
    queries = queries_of(record)
    assert refuted(changed(record, queries * 2))
    quiet = []
    for query in queries:
        sigma = None if query["sigma"] is None else query["sigma"] / 4.0
        rho = query["rho"] * 16.0
        quiet.append({**query, "sigma": sigma, "rho": rho})
    assert refuted(
        changed(record, quiet, **({"rho": 16.0 * record["trace"]["rho"]} if "rho" in record["trace"] else {}))
    )


def test_a_number_that_the_lattice_does_not_have_is_refuted(record):
    queries = queries_of(record)
    place = next((i for i, query in enumerate(queries) if query["noise"] == "Gaussian" and query["value"]), None)
    if place is None:
        pytest.skip("this run has no Gaussian noise")
    queries[place]["value"][0] = 0.5 * 2.0 ** -queries[place]["parameters"]["bits"]
    assert any("not a multiple" in text for text in refuted(changed(record, queries)))


def test_any_change_is_found_by_the_digest(record):
    queries = queries_of(record)
    place = next(i for i, query in enumerate(queries) if query["value"])
    queries[place]["value"][0] += 1.0
    told = changed(record, queries)
    assert any("digest" in text for text in refuted({**told, "digest": record["digest"]}))
    damaged = {**record, "trace": {**told["trace"], "sha256": record["trace"]["sha256"]}}
    with pytest.raises(ValueError, match="does not have the stated sha256"):
        dpmedian.verify(damaged)


def test_the_queries_can_be_left_out_of_a_record(record):
    trace = {name: value for name, value in record["trace"].items() if name != "data"}
    short = {**record, "trace": trace}
    assert digest_of(short) == record["digest"]
    assert refuted(short) == []
    if "plans" not in record:
        assert any("does not contain the queries" in note for note in dpmedian.verify(short).notes)


@pytest.mark.parametrize(
    ("name", "whole"),
    [
        ("adaptive", True),
        ("loc_cutting_plane", True),
        ("above threshold", False),
        ("k-medians", False),
        ("robust step", True),
    ],
)
def test_a_trace_reads_back_but_for_what_is_too_long_for_a_record(name, whole):
    release = RUNS[name](seed=3)
    again = dpmedian.Release.from_json(release.to_json())
    assert (len(again.trace), again.trace.rho) == (len(release.trace), release.trace.rho)
    lacking = [same(one, other) for one, other in zip(release.trace, again.trace, strict=True)]
    assert whole == (not any(lacking))
    assert not all(lacking)


def same(one: Query, other: Query) -> bool:
    """Compare two queries, and return whether the second one lacks numbers."""
    for name in ("stage", "noise", "sensitivity", "sigma", "rho", "statistic"):
        assert getattr(one, name) == getattr(other, name)
    assert set(one.parameters) == set(other.parameters)
    pairs = [(one.value, other.value), *((one.parameters[name], other.parameters[name]) for name in one.parameters)]
    for left, right in pairs:
        if right is not None:
            np.testing.assert_array_equal(np.nan_to_num(left, posinf=0.0), np.nan_to_num(right, posinf=0.0))
    return any(left is not None and right is None for left, right in pairs)


def failure(points, seed):
    """The failure of a run, or None."""
    try:
        dpmedian.geometric_median(points, rho=0.2, seed=seed)
    except dpmedian.ReleaseFailed as failed:
        return failed
    return None


def test_a_failure_has_its_trace_in_its_record():
    points = np.random.default_rng(0).normal(size=(120, 3)) + 1e12
    failed = next(filter(None, (failure(points, seed) for seed in range(30))))
    record = failed.to_dict()
    assert record["trace"]["queries"] == len(failed.trace) > 0
    assert refuted(record) == []


def test_a_group_below_the_minimum_has_no_queries_in_the_record():
    releases = dpmedian.geometric_medians(
        POINTS, BY % 2, keys=range(3), rho=0.5, minimum=300, seed=2, neighbours="add_remove"
    )
    record = releases.to_dict()
    assert releases[2].trace is None
    assert {query["group"] for query in queries_of(record)} == {0, 1}
    assert refuted(record) == []


def test_a_bomb_is_refused():
    record = RUNS["robust step"](seed=3).to_dict()
    text = b"[" + b" " * 2**27 + b"]"
    packed = base64.b64encode(zlib.compress(text, 9)).decode()
    entry = {"queries": 0, "rho": 0.0, "sha256": hashlib.sha256(text).hexdigest(), "data": packed}
    with pytest.raises(ValueError, match="cannot be read"):
        dpmedian.verify(sealed({**record, "trace": entry}))


def test_the_page_shows_what_the_run_did(record, tmp_path):
    (tmp_path / "record.json").write_text(json.dumps(record))
    from dpmedian.report import page

    assert "What the run did" in page(record)
    assert "What the run did" not in page({name: value for name, value in record.items() if name != "trace"})
