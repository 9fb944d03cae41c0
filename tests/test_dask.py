"""Records in a Dask cluster: the same bits for any partition, few rounds, and a lost worker costs time only."""

import os
import pickle
import signal
import time
import warnings

import numpy as np
import pytest

import dpmedian
from dpmedian._core import Exact, Message, Points, Tape
from dpmedian.parameters import PublicParameters
from dpmedian.sources import dask as in_the_cluster
from dpmedian.sources.array import ArraySource
from dpmedian.sources.dask import Holders
from dpmedian.statistics import Statistic

# Distributed warns of busy machines, and of ports that are in use.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

POINTS = np.random.default_rng(0).normal(size=(60_000, 3))
BUDGET = {"rho": 0.5, "method": "adaptive"}


def released(points, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dpmedian.geometric_median(points, **{**BUDGET, **options}, seed=1).point


def opened(points):
    """The records of a collection behind the privacy boundary."""
    return dpmedian.Dataset.of(points).source(PublicParameters.of(len(points), 3, rho=1.0))


@pytest.fixture(scope="module")
def distributed():
    return pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def array():
    return pytest.importorskip("dask.array")


@pytest.fixture(scope="module", params=[1, 2])
def client(request, distributed):
    options = {"n_workers": request.param, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield client


def test_no_cluster_is_said(array):
    with pytest.raises(ValueError, match="not connected to a cluster"):
        released(array.from_array(POINTS[:100], chunks=(50, 3)))


@pytest.mark.parametrize("partitions", [1, 3, 8])
def test_the_same_bits_as_in_memory(client, array, partitions):
    collection = array.from_array(POINTS, chunks=(-(-len(POINTS) // partitions), 2))
    assert np.array_equal(released(collection), released(POINTS))


def test_float32_balls_replacement_and_private_sizes_are_those_of_an_array(client, array):
    points = POINTS[:5000].astype(np.float32)
    points[17, 1] = np.nan
    collection = array.from_array(points, chunks=(700, 3))
    for options in (
        {"nonfinite": "center"},
        {"nonfinite": "center", "radius": 1.5},
        {"nonfinite": "drop", "neighbours": "add_remove", "n": 5000},
    ):
        assert np.array_equal(released(collection, **options), released(points, **options))
    ledger = dpmedian.Ledger(rho=1.0)
    with pytest.raises(ValueError, match=r"partition 1: points\[17, 1\] is not finite"):
        released(collection, ledger=ledger)
    assert ledger.spent.rho == 0.0


def test_frames_from_parquet_end_to_end(client, tmp_path):
    frames = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    for part, some in enumerate(np.array_split(POINTS, 4)):
        pandas.DataFrame(some, columns=["x", "y", "z"]).to_parquet(tmp_path / f"{part}.parquet")
    frame = frames.read_parquet(tmp_path, columns=["x", "y", "z"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release = dpmedian.geometric_median(frame, **BUDGET, seed=1)
    assert np.array_equal(release.point, released(POINTS))
    assert list(release.to_series().index) == ["x", "y", "z"]


def test_few_rounds_and_little_overhead(client, array, monkeypatch):
    rounds = []
    ask = Holders._round
    monkeypatch.setattr(Holders, "_round", lambda self, question: rounds.append(1) or ask(self, question))
    released(array.from_array(POINTS, chunks=(10_000, 3)))
    assert 2 <= len(rounds) <= 15
    source, question = (
        opened(array.from_array(POINTS[:100], chunks=(50, 3))),
        Statistic("gradient", theta=np.zeros(3), bits=20),
    )
    seconds = []
    for _ in range(20):
        start = time.perf_counter()
        source.answer(question)
        seconds.append(time.perf_counter() - start)
    # The median is 15 ms on an idle machine (benches/cluster.py prints it); here other programs run, too.
    assert np.median(seconds) < 0.25


def test_a_lost_worker_costs_time_only(distributed, array):
    ledger = dpmedian.Ledger(rho=2.0)
    expected = released(POINTS)
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        collection = array.from_array(POINTS, chunks=(10_000, 3))
        ask, killed = Holders._round, []

        def round_with_a_loss(self, question):
            if len(killed) == 2:
                os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
            killed.append(1)
            return ask(self, question)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Holders, "_round", round_with_a_loss)
            assert np.array_equal(released(collection, ledger=ledger), expected)
    assert len(killed) > 3
    assert ledger.spent.rho == pytest.approx(0.5)
    assert len(ledger.entries) == 1


def test_a_worker_that_is_lost_before_its_actor_is_made_is_not_waited_for(distributed, array, monkeypatch):
    """The cluster would wait forever with an actor for a worker that is gone."""
    monkeypatch.setattr(in_the_cluster, "_PATIENCE", 0.2)
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        collection = array.from_array(POINTS[:5000], chunks=(1000, 3))
        ask, processes, killed = client.who_has, client.run(os.getpid), []

        def then_lost(futures):
            held = ask(futures)
            if not killed:
                killed.append(held[futures[0].key][0])
                os.kill(processes[killed[0]], signal.SIGKILL)
                while killed[0] in client.nthreads():
                    time.sleep(0.01)
            return held

        monkeypatch.setattr(client, "who_has", then_lost)
        assert np.array_equal(released(collection), released(POINTS[:5000]))
    assert len(killed) == 1


def test_what_a_cluster_cannot_answer_is_named(client, array):
    collection = array.from_array(POINTS[:100, :2], chunks=(50, 2))
    with pytest.raises(ValueError, match="all records in this process"):
        released(collection, method="inverse_sensitivity", rho=None, epsilon=2.0, radius=4.0, resolution=0.1)
    with pytest.raises(ValueError, match="sample_weight must have one entry for each row"):
        released(collection, sample_weight=np.ones(99), weight_max=1.0, neighbours="add_remove")
    with pytest.raises(ValueError, match="another length"):
        released(collection, unit=np.arange(99))
    with pytest.raises(TypeError, match="unit='who' names a column"):
        released(collection, unit="who")
    with pytest.raises(ValueError, match="copy=True"):
        released(collection, copy=True)
    with pytest.raises(TypeError, match="must be an array or a data frame, got Bag"):
        released(pytest.importorskip("dask.bag").from_sequence([1.0, 2.0]))


@pytest.fixture(scope="module")
def visits():
    """Rows of people who have several rows, in random order. The ids are texts whose order is not that of the numbers
    in them.
    """
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(5)
    person = rng.integers(0, 3000, 12_000)
    frame = pandas.DataFrame(rng.normal(size=(12_000, 2)), columns=["x", "y"])
    return frame.assign(person=person, name=[f"p{k}" for k in person], place=rng.choice(["a", "b", "c"], 12_000))


@pytest.mark.parametrize("partitions", [1, 5])
@pytest.mark.parametrize("who", ["person", "name"])
def test_units_have_the_same_bits_as_in_memory(client, visits, partitions, who):
    frames = pytest.importorskip("dask.dataframe")
    rows = visits[["x", "y", who]]
    collection = frames.from_pandas(rows, npartitions=partitions)
    for options in ({"unit_reduce": "first"}, {"neighbours": "add_remove", "n": 3000}):
        assert np.array_equal(released(collection, unit=who, **options), released(rows, unit=who, **options))


def test_a_worker_that_is_lost_while_rows_are_moved_costs_time_only(distributed, visits):
    """The worker is lost between reading the ids and cutting by their ranges: its rows are read and cut in another
    worker.
    """
    frames = pytest.importorskip("dask.dataframe")
    rows = visits[["x", "y", "name"]]
    expected, ledger = released(rows, unit="name"), dpmedian.Ledger(rho=2.0, unit="name")
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        count_threads, killed = distributed.Client.nthreads, []

        def counted_with_a_loss(self, *arguments, **named):
            if not killed:
                killed.append(next(iter(client.run(os.getpid).values())))
                os.kill(killed[0], signal.SIGKILL)
            return count_threads(self, *arguments, **named)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(distributed.Client, "nthreads", counted_with_a_loss)
            collection = frames.from_pandas(rows, npartitions=5)
            assert np.array_equal(released(collection, unit="name", ledger=ledger), expected)
    assert len(killed) == 1
    assert len(ledger.entries) == 1


def test_ids_beside_the_points_and_rows_without_one(client, array, visits):
    frames = pytest.importorskip("dask.dataframe")
    points, person = visits[["x", "y"]].to_numpy(), visits["person"].to_numpy()
    expected = released(points, unit=person)
    collection = array.from_array(points, chunks=(2500, 2))
    assert np.array_equal(released(collection, unit=person), expected)
    assert np.array_equal(released(collection, unit=array.from_array(person, chunks=4000)), expected)
    some = visits[["x", "y", "name"]].copy()
    some.loc[7000, "name"] = None
    frame = frames.from_pandas(some, npartitions=4)
    with pytest.raises(ValueError, match="row 7001 has no 'name'"):
        released(frame, unit="name")
    private = {"unit": "name", "neighbours": "add_remove", "n": 3000}
    assert np.array_equal(released(frame, **private), released(some, **private))


def test_groups_have_the_same_bits_as_in_memory(client, visits, few):
    frames = pytest.importorskip("dask.dataframe")
    budget = {"keys": ["a", "b", "z"], "rho": 1.0, "method": "adaptive", "n": 1000, "seed": 1}
    weights = np.random.default_rng(4).uniform(0.0, 3.0, len(visits))
    for rows, options in (
        (visits[["x", "y", "place"]], {}),
        (visits[["x", "y", "place", "name"]], {"unit": "name", "max_groups_per_unit": 2}),
        (visits[["x", "y", "place", "name"]].assign(w=weights), {"unit": "name", **WEIGHED, "scales": [2.0, 1.0]}),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            there = dpmedian.geometric_medians(
                frames.from_pandas(rows, npartitions=5), "place", **{**budget, **options}
            )
            here = dpmedian.geometric_medians(rows, "place", **{**budget, **options})
        for key in "ab":
            assert np.array_equal(there[key].point, here[key].point)
        assert there["z"].size == here["z"].size
        assert there.columns == here.columns == ("x", "y")


def test_groups_that_nobody_has_listed_have_the_same_bits_as_in_memory(client, visits, few):
    frames = pytest.importorskip("dask.dataframe")
    rows = visits[["x", "y", "place", "name"]].assign(month=np.arange(len(visits)) % 2, w=2.0)
    budget = {
        "sample_weight": "w",
        "weight_max": 3.0,
        "unit": "name",
        "max_groups_per_unit": 2,
        "rho": 1.0,
        "delta": 1e-6,
        "method": "adaptive",
        "seed": 1,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        by = ["place", "month"]
        there = dpmedian.geometric_medians(frames.from_pandas(rows, npartitions=5), by, **budget)
        here = dpmedian.geometric_medians(rows, by, **budget)
    assert list(there) == list(here)
    assert len(here) >= 4
    for key, release in here.released.items():
        assert np.array_equal(there[key].point, release.point)
    assert there.by == here.by == ("place", "month")


def test_the_sphere_has_the_same_bits_as_in_memory(client, array):
    rng = np.random.default_rng(3)
    places = np.column_stack([rng.normal(10.0, 5.0, 3000), rng.normal(50.0, 3.0, 3000)])
    options = {"geometry": "sphere", "method": "auto"}
    assert np.array_equal(released(array.from_array(places, chunks=(900, 2)), **options), released(places, **options))


def test_pairs_are_queried_on_gathered_records(client, array):
    points = POINTS[:500]
    source = opened(array.from_array(points, chunks=(90, 3)))
    tape = Tape.record(bytes(32))
    parameters = PublicParameters.of(500, 3, rho=1.0)
    pairs = Statistic("pair counts", stream=Tape.draw(bytes(32)).hidden(), radii=[1.0, 2.0], pairings=1, bits=20)
    for asked in (source, ArraySource.of(points, parameters)):
        tape.gaussian("pairs", asked.answer(pairs).pick(0), 2.0**25)
    first, second = tape.entries()
    assert first[3].tolist() == second[3].tolist()


def test_a_message_is_opaque_at_both_ends():
    """The pickled bytes are not encrypted, but Dask's TLS protects them. No program or log reads them by mistake."""
    question, points = Statistic("gradient", theta=np.zeros(3), bits=20), Points(POINTS[:10].copy())
    query = pickle.loads(pickle.dumps(Message.query(question)))
    answers = pickle.loads(pickle.dumps([query.answer([points])]))
    assert isinstance(Message.answered(answers, question), Exact)
    with pytest.raises(ValueError, match="records in common"):
        Message.answered(answers * 2, question)
    with pytest.raises(ValueError, match="another query"):
        Message.answered(answers, Statistic("gradient", theta=np.zeros(3), bits=20))
    with pytest.raises(ValueError, match="not a message of the expected kind"):
        Message.answered([Message(b"anything")], question)
    with pytest.raises(ValueError, match="not a message of the expected kind"):
        Message.answered([Message.records(points)], question)
    assert isinstance(Message.gathered([Message.records(points)]), Points)
    assert repr(answers[0]) == f"Message({len(answers[0].__reduce__()[1][0])} bytes)"
    assert not {"values", "open", "points", "bytes"} & set(dir(answers[0]))
    with pytest.raises(TypeError):
        bytes(answers[0])


@pytest.fixture(params=["fetched", "asked"])
def few(request, monkeypatch):
    """Small groups are fetched, and large groups are queried in rounds. Here all groups are small, or all are large."""
    if request.param == "asked":
        monkeypatch.setattr(in_the_cluster, "_FEW", 0)


@pytest.mark.parametrize(
    ("address", "plain"),
    [
        ("tcp://10.0.0.7:8786", True),
        ("ws://node:8786", True),
        ("tls://10.0.0.7:8786", False),
        ("tcp://127.0.0.1:40001", False),
        ("tcp://[::1]:40001", False),
        ("inproc://10.0.0.7/1/1", False),
    ],
)
def test_a_connection_that_others_could_read_is_said(address, plain):
    class Client:
        def scheduler_info(self):
            return {"address": "tcp://127.0.0.1:8786", "workers": {address: {}}}

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        in_the_cluster._warn_if_plain(Client())
    assert [warning.category for warning in caught] == [dpmedian.PlainConnectionWarning] * plain


WEIGHED = {"sample_weight": "w", "weight_max": 3.0, "n": 1500}


@pytest.mark.parametrize("partitions", [1, 5])
@pytest.mark.parametrize("options", [{}, {"unit": "person"}, {"scales": {"x": 4.0}}, {"columns": ["y", "x"]}])
def test_weights_have_the_same_bits_as_in_memory(client, visits, options, partitions):
    frames = pytest.importorskip("dask.dataframe")
    rows = visits[["x", "y", "person"]].assign(w=np.random.default_rng(1).uniform(0.0, 4.0, len(visits)))
    if "unit" not in options:
        rows = rows.drop(columns="person")
    for relation in ("replace", "add_remove"):
        there, here = (
            released(points, **WEIGHED, **options, neighbours=relation)
            for points in (frames.from_pandas(rows, npartitions=partitions), rows)
        )
        assert np.array_equal(there, here)


def test_weights_beside_an_array_and_methods_that_compare_pairs(client, array):
    points, weights = POINTS[:2000], np.random.default_rng(2).uniform(0.0, 2.0, 2000)
    collection, options = array.from_array(points, chunks=(300, 3)), {"weight_max": 1.5, "n": 1000}
    expected = released(points, sample_weight=weights, **options)
    for beside in (weights, array.from_array(weights, chunks=170), weights.tolist()):
        assert np.array_equal(released(collection, sample_weight=beside, **options), expected)
    pairs = {**options, "sample_weight": weights, "method": "loc_dpgd", "radius": 20.0, "resolution": 0.05}
    assert np.array_equal(released(collection, **pairs), released(points, **pairs))


def test_large_weighted_records_have_the_hidden_sample_of_memory(client, array):
    weights = np.random.default_rng(3).uniform(0.0, 2.0, len(POINTS))
    options = {"sample_weight": weights, "weight_max": 2.0, "n": 30_000}
    collection = array.from_array(POINTS, chunks=(9000, 3))
    assert np.array_equal(released(collection, **options), released(POINTS, **options))


def test_partitions_are_read_by_the_names_of_their_columns(client, visits):
    """Dask does not check that every partition has the columns of the collection in their order."""
    pandas, dataframe, dask = (pytest.importorskip(name) for name in ("pandas", "dask.dataframe", "dask"))
    frame = pandas.DataFrame(POINTS[:4000], columns=["x", "y", "z"])
    frame["person"] = np.arange(4000) // 2
    parts = [frame[:2000], frame[2000:][["person", "z", "x", "y"]]]
    collection = dataframe.from_delayed(list(map(dask.delayed, parts)), meta=frame[:0], verify_meta=False)
    for options in ({}, {"unit": "person"}):
        points, expected = (collection, frame) if options else (collection[["x", "y", "z"]], frame[["x", "y", "z"]])
        assert np.array_equal(released(points, **options), released(expected, **options))
    other = [frame[:2000], frame[2000:].rename(columns={"x": "w"})]
    renamed = dataframe.from_delayed(list(map(dask.delayed, other)), meta=frame[:0], verify_meta=False)
    with pytest.raises(ValueError, match=r"partition 2: every partition must have the columns of the collection"):
        released(renamed, unit="person")


def test_what_the_client_fetches_of_groups_is_bounded(client, visits, monkeypatch):
    """Large groups are never fetched. Small groups are fetched in rounds of a few groups, and are then dropped."""
    frames = pytest.importorskip("dask.dataframe")
    rows, fetched = visits[["x", "y", "place"]], []
    fetch = Holders.rows
    monkeypatch.setattr(Holders, "rows", lambda self, groups: fetched.append(list(groups)) or fetch(self, groups))
    budget = {"keys": ["a", "b", "c", "z"], "rho": 1.0, "n": 1000, "seed": 1, "progress": False}
    largest = 2 * int(rows["place"].value_counts().max())
    expected = dpmedian.geometric_medians(rows, "place", **budget)
    for few, rounds in ((largest, [[0], [1], [2, 3]]), (largest - 1, None), (0, [[3]])):
        fetched.clear()
        monkeypatch.setattr(in_the_cluster, "_FEW", few)
        monkeypatch.setattr(in_the_cluster, "_FETCHED", largest)
        found = dpmedian.geometric_medians(frames.from_pandas(rows, npartitions=3), "place", **budget)
        assert rounds is None or fetched == rounds
        for key, release in expected.released.items():
            assert np.array_equal(found[key].point, release.point)


def test_a_method_that_needs_whole_groups_gets_them(client, visits, monkeypatch):
    frames = pytest.importorskip("dask.dataframe")
    monkeypatch.setattr(in_the_cluster, "_FEW", 0)
    rows = visits[["x", "y", "place"]]
    budget = {"keys": ["a"], "epsilon": 2.0, "n": 4000, "seed": 1, "method": "inverse_sensitivity", "radius": 4.0}
    there, here = (
        dpmedian.geometric_medians(points, "place", **budget, resolution=0.1)["a"].point
        for points in (frames.from_pandas(rows, npartitions=3), rows)
    )
    assert np.array_equal(there, here)
