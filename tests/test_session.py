"""The public session, which is charged once, capped, and has the stated noise, and the trace of every method."""

import contextlib
import math

import numpy as np
import pytest

import dpmedian
from contract.registry import cloud
from dpmedian._core import Tape
from dpmedian.accounting import PrivacyCost
from dpmedian.mechanisms.spender import Spender
from dpmedian.trace import trace_of

POINTS = cloud(4000, 3, seed=5)
CENTER = np.zeros(3)

QUERIES = {
    "gradient": lambda s, rho: s.gradient(at=CENTER, rho=rho),
    "count": lambda s, rho: s.count(center=CENTER, radius=1.5, rho=rho),
    "distance counts": lambda s, rho: s.distance_counts(center=CENTER, radii=[0.5, 1.5, 4.0], rho=rho),
    "mean shift": lambda s, rho: s.mean_shift(center=CENTER, radius=1.5, rho=rho),
    "clipped sum": lambda s, rho: s.clipped_sum(center=CENTER, threshold=1.5, rho=rho),
    "ranks": lambda s, rho: s.ranks(thresholds=CENTER, rho=rho),
    "second moments": lambda s, rho: s.second_moments(at=CENTER, rho=rho),
}


def exact(name, points):
    """The answer of a query without its noise."""
    difference = points - CENTER
    distance = np.linalg.norm(difference, axis=1)
    units = difference / distance[:, None]
    return {
        "gradient": -units.sum(axis=0),
        "count": (distance <= 1.5).sum(),
        "distance counts": np.array([(distance <= radius).sum() for radius in (0.5, 1.5, 4.0)]),
        "mean shift": difference[distance <= 1.5].sum(axis=0),
        "clipped sum": (difference * np.minimum(1.0, 1.5 / distance)[:, None]).sum(axis=0),
        "ranks": (points <= CENTER).sum(axis=0),
        "second moments": units.T @ units,
    }[name]


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
@pytest.mark.parametrize("name", QUERIES)
def test_a_query_answers_with_the_noise_that_it_states(name, relation):
    """Six standard deviations in each of at most nine entries: alpha is below 2e-8."""
    with dpmedian.session(POINTS, rho=0.2, neighbours=relation, seed=3) as s:
        value, sigma = QUERIES[name](s, 0.2)
    assert np.max(np.abs(value - exact(name, POINTS))) < 6.0 * sigma
    assert s.trace.rho == pytest.approx(0.2, rel=1e-8)
    assert s.trace.rho <= s.cost.rho


@pytest.mark.parametrize("name", QUERIES)
def test_half_the_budget_is_a_root_of_two_more_noise(name):
    with dpmedian.session(POINTS, rho=0.3, seed=3) as s:
        sigmas = [QUERIES[name](s, rho).sigma for rho in (0.2, 0.1)]
    assert sigmas[1] / sigmas[0] == pytest.approx(np.sqrt(2.0), rel=1e-6)


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_beyond_the_budget_is_refused_and_the_session_goes_on(name):
    with dpmedian.session(POINTS, rho=0.1, seed=3) as s:
        with pytest.raises(dpmedian.SessionExceeded, match="nothing was released"):
            QUERIES[name](s, 0.11)
        assert (s.remaining, len(s.trace)) == (pytest.approx(0.1), 0)
        QUERIES[name](s, 0.06)
        with pytest.raises(dpmedian.SessionExceeded, match=r"rho = 0\.04"):
            QUERIES[name](s, 0.06)
        assert s.trace.rho == pytest.approx(0.06, rel=1e-8)


@pytest.mark.parametrize("name", QUERIES)
def test_a_neighbor_moves_an_answer_by_at_most_its_sensitivity(name):
    """The tape replays a session on neighbors, and compares the queries and how far the answers moved."""
    rng = np.random.default_rng(7)
    for relation in ("replace", "add_remove"):
        session = dpmedian.session(POINTS[:50], rho=0.5, neighbours=relation)
        recording = Tape.record(bytes(32), relation)
        replayed(session, recording, name)
        for case in range(20):
            points = POINTS[:50].copy()
            record = [0.0, 1.0, 1e-300, 1e300, 1.5][case % 5] * rng.choice([-1.0, 1.0], size=3)
            if relation == "replace":
                points[case % 50] = record
            else:
                points = np.vstack([points, record]) if case % 2 else np.delete(points, case, axis=0)
            replayed(dpmedian.session(points, rho=0.5, neighbours=relation), recording.replay(), name)


def replayed(session, tape, name):
    session._runner._tape = tape
    with session as s:
        QUERIES[name](s, 0.4)


@pytest.mark.parametrize(
    "query",
    [
        lambda s: s.gradient(at=[0.0, 1.0], rho=0.1),
        lambda s: s.gradient(at=[0.0, 1.0, np.nan], rho=0.1),
        lambda s: s.gradient(at=CENTER, rho=0.0),
        lambda s: s.gradient(at=CENTER, rho=np.nan),
        lambda s: s.count(center=CENTER, rho=0.1),
        lambda s: s.count(rho=0.1),
        lambda s: s.count(center=CENTER, radius=-1.0, rho=0.1),
        lambda s: s.count(center=CENTER, radius=np.inf, rho=0.1),
        lambda s: s.distance_counts(center=CENTER, radii=[], rho=0.1),
        lambda s: s.mean_shift(center=CENTER, radius=1e-320, rho=0.1),
        lambda s: s.gradient(at=CENTER, rho=1e-40),
        lambda s: s.clipped_sum(center=CENTER, threshold=0.0, rho=0.1),
        lambda s: s.clipped_sum(center=CENTER, threshold=np.inf, rho=0.1),
        lambda s: s.clipped_sum(center=CENTER, threshold=1e-200, rho=0.1),
        lambda s: s.clipped_sum(center=CENTER[:2], threshold=1.0, rho=0.1),
        lambda s: s.clipped_sum(center=CENTER, threshold=1.0, rho=-0.1),
        lambda s: s.distance_counts(center=CENTER, radii=[1.0, -1.0], rho=0.1),
        lambda s: s.distance_counts(center=CENTER, radii=[1.0], rho=np.inf),
        lambda s: s.mean_shift(center=[1j, 0.0, 0.0], radius=1.0, rho=0.1),
        lambda s: s.mean_shift(center=CENTER, radius=1.0, rho=10**400),
        lambda s: s.ranks(thresholds=CENTER[:1], rho=0.1),
        lambda s: s.second_moments(at=np.full(3, np.inf), rho=0.1),
    ],
)
def test_bad_arguments_release_nothing(query):
    with dpmedian.session(POINTS, rho=0.2, seed=1) as s:
        with pytest.raises((ValueError, TypeError), match=r"."):
            query(s)
        assert (len(s.trace), s.remaining) == (0, pytest.approx(0.2))


def test_a_session_is_charged_when_its_block_begins_and_ends_in_the_ledger():
    ledger = dpmedian.Ledger(rho=1.0)
    session = dpmedian.session(POINTS, rho=0.4, ledger=ledger, name="mine")
    assert ledger.entries == ()
    with pytest.raises(RuntimeError, match="before its block"):
        session.gradient(at=CENTER, rho=0.1)
    with session as s:
        assert [entry.state for entry in ledger.entries] == ["pending"]
    with pytest.raises(RuntimeError, match="after its block"):
        s.gradient(at=CENTER, rho=0.1)
    with pytest.raises(KeyError), dpmedian.session(POINTS, rho=0.4, ledger=ledger):
        raise KeyError("of the caller")
    assert [(entry.name, entry.state) for entry in ledger.entries] == [("mine", "released"), ("session", "interrupted")]
    with pytest.raises(dpmedian.BudgetExceeded):
        dpmedian.session(POINTS, rho=0.4, ledger=ledger)


def another_failure():
    """The failure of another release, which spent less than it was charged."""
    return dpmedian.ReleaseFailed("lost", PrivacyCost(mu_squared=0.04), ran=PrivacyCost(mu_squared=0.002))


def test_a_failure_of_another_release_leaves_the_whole_cost_of_a_session_charged():
    ledger, other = dpmedian.Ledger(rho=1.0), another_failure()

    def block():
        with dpmedian.session(POINTS, rho=0.5, ledger=ledger) as s:
            s.count(center=CENTER, radius=1.0, rho=0.4)
            raise other

    with pytest.raises(dpmedian.ReleaseFailed, match="lost"):
        block()
    assert (ledger.entries[0].cost.rho, ledger.entries[0].state) == (pytest.approx(0.5), "interrupted")
    assert (other.trace, other.cost.rho) == (None, pytest.approx(0.02))


def test_a_failure_that_the_queries_of_a_caller_raise_leaves_the_whole_cost_charged():
    def queries():
        yield 0
        raise another_failure()

    ledger = dpmedian.Ledger(rho=10.0)
    with pytest.raises(dpmedian.ReleaseFailed, match="lost"):
        dpmedian.building_blocks.above_threshold(queries(), 10_000, sensitivity=1, epsilon=1.0, ledger=ledger)
    with pytest.raises(dpmedian.ReleaseFailed, match="no query"):
        dpmedian.building_blocks.above_threshold([0], 10_000, sensitivity=1, epsilon=1.0, ledger=ledger)
    costs = [(entry.cost.epsilon, entry.state) for entry in ledger.entries]
    assert costs == [(1.0, "interrupted"), (1.0, "failed")]


@pytest.mark.filterwarnings("ignore::dpmedian.LikelyFailureWarning")
def test_a_failure_that_states_less_than_the_tape_has_released_is_charged_in_full(monkeypatch):
    rng = np.random.default_rng(0)
    scattered = rng.normal(size=(120, 2)) * np.exp(200.0 * rng.normal(size=(120, 1)))

    def charged():
        ledger = dpmedian.Ledger(rho=1.0)
        with pytest.raises(dpmedian.ReleaseFailed) as raised:
            dpmedian.geometric_median(scattered, rho=0.02, method="adaptive", ledger=ledger, seed=2)
        return raised.value.trace.rho, ledger.entries[0].cost.rho

    released, cost = charged()
    assert released <= cost < 0.02
    monkeypatch.setattr(Spender, "cost", PrivacyCost(mu_squared=1e-9))
    assert charged() == (released, pytest.approx(0.02))


def test_a_session_that_is_used_up_answers_not_even_a_cheap_query():
    with dpmedian.session(POINTS, rho=0.1) as s:
        while s.remaining > 1e-15:
            s.count(center=CENTER, radius=1.0, rho=s.remaining)
        answered = len(s.trace)
        # Each query is so cheap that a sum of doubles would not grow.
        with contextlib.suppress(dpmedian.SessionExceeded):
            for _ in range(10_000):
                s.count(center=CENTER, radius=1.0, rho=1e-18)
        assert len(s.trace) < answered + 10_000
        assert math.fsum(query.rho for query in s.trace) <= s.cost.rho


def test_a_private_number_of_records_is_counted_and_a_public_one_is_known():
    with dpmedian.session(POINTS, rho=0.2, neighbours="add_remove", seed=1) as s:
        assert s.n is None
        assert abs(s.count(rho=0.1).value - len(POINTS)) < 20
    assert dpmedian.session(POINTS, rho=0.2).n == len(POINTS)


def test_units_weights_and_scales_of_a_dataset_count():
    data = dpmedian.Dataset.of(POINTS, unit=np.arange(4000) // 4, scales=[1.0, 2.0, 4.0])
    with dpmedian.session(data, rho=0.2, seed=1) as s:
        assert (s.n, s.cost.unit) == (1000, "unit")
        assert abs(s.count(center=CENTER, radius=1e6, rho=0.1).value - 1000) < 20
    weighted = dpmedian.Dataset.of(POINTS, sample_weight=np.full(4000, 0.5), weight_max=1.0)
    with dpmedian.session(weighted, rho=0.2, seed=1) as s:
        assert abs(s.count(rho=0.1).value - 2000) < 20


def test_the_sphere_and_a_pure_budget_are_refused_uncharged():
    ledger = dpmedian.Ledger(rho=1.0)
    with pytest.raises(ValueError, match="sphere"):
        dpmedian.session(dpmedian.Dataset.of([[10.0, 50.0]] * 10, geometry="sphere"), rho=0.1, ledger=ledger)
    with pytest.raises(ValueError, match="pass delta"):
        dpmedian.session(POINTS, epsilon=1.0, ledger=ledger)
    assert ledger.entries == ()


def test_american_spelling_is_accepted_everywhere():
    assert dpmedian.plan(1000, 2, rho=0.5, neighbors="add_remove").parameters.neighbours == "add_remove"
    assert dpmedian.Ledger(rho=1.0, neighbors="add_remove").neighbours == "add_remove"
    with dpmedian.session(POINTS, rho=0.2, neighbors="add_remove") as s:
        assert s.cost.neighbours == "add_remove"
    with pytest.raises(TypeError, match="two spellings"):
        dpmedian.plan(1000, 2, rho=0.5, neighbors="replace", neighbours="replace")


# The trace.

METHODS = {
    "adaptive": {},
    "dpgd": {"radius": 100.0},
    "loc_dpgd": {"radius": 100.0, "resolution": 0.01},
    "loc_cutting_plane": {"radius": 100.0, "resolution": 0.01},
}


@pytest.mark.parametrize("method", METHODS)
def test_a_trace_adds_up_to_what_was_spent(method):
    release = dpmedian.geometric_median(POINTS, rho=0.5, method=method, seed=2, **METHODS[method])
    assert 0.8 * release.cost.rho < release.trace.rho <= release.cost.rho * (1.0 + 1e-9)
    assert {query.stage for query in release.trace} <= {stage.name for stage in release.plan.stages}
    assert all(query.value is not None and query.parameters is not None for query in release.trace)
    assert "Trace:" in repr(release.trace)


def test_a_trace_of_a_pure_method_has_its_one_draw():
    release = dpmedian.geometric_median(
        POINTS[:200, :2], epsilon=1.0, method="inverse_sensitivity", radius=10.0, resolution=0.1, seed=2
    )
    (query,) = release.trace
    assert (query.noise, query.value.shape) == ("draw", (2,))
    assert query.rho == pytest.approx(release.cost.rho, rel=1e-6)


def test_above_threshold_leaves_its_index_and_no_noisy_value():
    tape = Tape.draw(bytes(32))
    from dpmedian.mechanisms.above_threshold import AboveThreshold

    mechanism = AboveThreshold.of("test", 1, 1.0)
    index = mechanism.release(tape, (mechanism.stated(10 * i) for i in range(100)), 500)
    (query,) = trace_of(tape)
    assert (query.noise, query.value.tolist(), query.parameters) == ("above threshold", [index], {"epsilon": 1.0})
    assert query.rho == pytest.approx(mechanism.cost.rho, rel=1e-12)


def test_a_failure_and_groups_have_their_traces():
    far = np.vstack([np.zeros((40, 2)), np.full((40, 2), 1e9)])
    try:
        trace = dpmedian.geometric_median(far, rho=0.4, seed=1, progress=False).trace
    except dpmedian.ReleaseFailed as failed:
        trace = failed.trace
    assert trace is not None
    assert trace.rho > 0.0
    labels = np.repeat(["a", "b"], 2000)
    groups = dpmedian.geometric_medians(POINTS, labels, keys=["a", "b"], rho=0.5, seed=1)
    assert all(0.0 < release.trace.rho <= release.cost.rho * (1.0 + 1e-9) for release in groups.values())


def test_a_group_below_the_minimum_shows_its_size_only():
    labels = np.repeat(["a", "b"], [3900, 100])
    groups = dpmedian.geometric_medians(POINTS, labels, keys=["a", "b"], rho=0.5, seed=1, minimum=1000)
    assert isinstance(groups["b"], dpmedian.ReleaseFailed)
    assert (groups["b"].trace, groups["a"].trace is not None) == (None, True)


def test_a_long_trace_leaves_answers_out_and_keeps_the_cost():
    data = np.random.default_rng(0).normal(size=(2000, 400))
    release = dpmedian.geometric_median(data, rho=2.0, seed=1, method="dpgd", radius=40.0)
    left_out = [query for query in release.trace if query.value is None]
    kept = sum(query.value.size for query in release.trace if query.value is not None)
    assert kept <= 2**22
    assert release.trace.rho == pytest.approx(release.cost.rho, rel=1e-6)
    assert not left_out or "left out" in repr(release.trace)


def test_a_query_and_a_session_print_in_a_line():
    """In every dimension the line shows the released value, its noise and the budget that is left."""
    data = np.random.default_rng(0).normal(size=(2000, 400))
    s = dpmedian.session(data, rho=0.5)
    assert "inside of its `with` block only" in repr(s)
    with s:
        s.gradient(at=np.zeros(400), rho=0.1)
        assert repr(s) == "QuerySession: n = 2000, d = 400, rho = 0.4 left of 0.5, open"
    (query,) = s.trace
    assert repr(query).startswith(
        f"Query gradient (gradient): Gaussian, sigma = {query.sigma:.4g}, rho = 0.1, released ["
    )
    assert len(repr(query)) < 300
