"""The pure-DP mechanism: the exact distribution, its sensitivity, its accuracy, and what it refuses.

Statistical tests have fixed seeds, so they pass always or never. Each of them states its alpha.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import dpmedian
from conftest import neighbours
from dpmedian import _core, nonprivate
from dpmedian.mechanisms.inverse_sensitivity import InverseSensitivity, Lattice
from dpmedian.methods.paper import inverse_sensitivity
from dpmedian.parameters import PublicParameters
from dpmedian.postprocess import onto_ball
from dpmedian.sources.array import ArraySource
from dpmedian.tape import Tape
from oracle import gauntlet, objective

PURE = {"epsilon": 1.0, "method": "inverse_sensitivity", "radius": 100.0, "resolution": 0.01}
# In three dimensions the tree takes seconds.
LONG = pytest.param(3, marks=pytest.mark.slow)


def chi_square_threshold(freedom, z=4.7534):
    """The Wilson-Hilferty quantile. z = 4.7534 corresponds to alpha = 1e-6."""
    spread = 2.0 / (9.0 * freedom)
    return freedom * (1.0 - spread + z * math.sqrt(spread)) ** 3


def scores(points, places, lattice, center=None, relation="replace"):
    """The exact scores in records, from the kernel that the sampler uses."""
    points = np.ascontiguousarray(points, dtype=float)
    d = points.shape[1]
    center = np.zeros(d) if center is None else center
    found = _core.nonprivate_lattice_scores(
        points, places, center.tolist(), (lattice.step, lattice.reach, lattice.smoothing), relation
    )
    return found.astype(float) / 2.0**31


def domain(lattice, d):
    """The centers of all cells."""
    side = np.arange(-lattice.extent - lattice.extent % 2 + 1, lattice.extent + 2, 2)
    places = np.array(list(itertools.product(side, repeat=d)), dtype=np.int64)
    return places[(places**2).sum(axis=1) <= lattice.extent**2]


# One dimension: the density.


@pytest.mark.parametrize(
    ("epsilon", "runs"),
    [(2.0, 20_000), *(pytest.param(epsilon, 100_000, marks=pytest.mark.slow) for epsilon in (0.5, 2.0))],
)
def test_on_the_line_the_releases_follow_the_exact_density(epsilon, runs):
    """Chi-square at alpha = 1e-6. The data have ties, outliers on both ends, and an even number of records."""
    rng = np.random.default_rng(0)
    records = np.concatenate([np.round(64.0 * rng.normal(size=30)) / 64.0, [1.25] * 8, [64.0] * 3, [-64.0] * 3])
    n, radius, r = len(records), 64.0, 0.25
    plan = dpmedian.plan(n, 1, epsilon=epsilon, method="inverse_sensitivity", radius=radius, resolution=r)
    source, tape = ArraySource.of(records[:, None], plan.parameters), Tape.draw(bytes(32))
    released = np.array([plan.calibrated.run(source, tape).point[0] for _ in range(runs)])
    assert np.abs(released).max() <= radius
    # The density between its jumps, by the definition of len_r; the projection moves the outermost part of it to the
    # ends.
    edges = np.unique(np.concatenate([records - r, records + r]))
    edges = np.concatenate([[-radius - r], edges[np.abs(edges) < radius], [radius + r]])
    middle = (edges[1:] + edges[:-1]) / 2.0
    left = (records[:, None] < middle - r).sum(axis=0)
    right = (records[:, None] > middle + r).sum(axis=0)
    length = np.maximum(0, np.maximum(left, right) - n // 2)
    weights = np.diff(edges) * np.exp(-epsilon / 2.0 * length)
    expected = weights / weights.sum() * released.size
    counts = np.histogram(released, edges)[0]
    likely = expected >= 5.0
    expected = np.append(expected[likely], expected[~likely].sum())
    counts = np.append(counts[likely], counts[~likely].sum())
    kept = expected > 0.0
    statistic = ((counts - expected)[kept] ** 2 / expected[kept]).sum()
    assert kept.sum() > 20
    assert statistic <= chi_square_threshold(kept.sum() - 1)


def test_on_the_line_the_score_is_the_papers_len():
    """Brute force: over all z within r, the fewest records whose change makes z a median."""
    rng = np.random.default_rng(1)
    lattice = Lattice(1.0, 20, 4)
    places = domain(lattice, 1)
    for n in range(2, 9):
        records = 2 * rng.integers(-10, 11, size=n)
        by_hand = [
            min(
                max(0, int((records < z).sum()) - n // 2, int((records > z).sum()) - n // 2)
                for z in np.arange(y - 4, y + 4.25, 0.25)
            )
            for y in places[:, 0]
        ]
        assert scores(records[:, None], places, lattice).tolist() == by_hand


def fewest_changes(points, z):
    """The paper's len: the fewest changed records such that the kept ones can be balanced at z, over all subsets."""
    away = points - z
    norms = np.linalg.norm(away, axis=1)
    units = np.divide(away, norms[:, None], out=np.zeros_like(away), where=norms[:, None] > 0)
    at = norms == 0
    for k in range(len(points) + 1):
        for changed in itertools.combinations(range(len(points)), k):
            kept = np.setdiff1d(np.arange(len(points)), changed)
            if np.linalg.norm(units[kept].sum(axis=0)) <= k + at[kept].sum() + 1e-9:
                return k
    raise AssertionError("all records changed make every point a median")


@pytest.mark.parametrize("d", [2, 3])
def test_the_score_is_never_above_the_papers_len(d):
    """Data sets of at most 12 records, some of them at the scored point. benches/inverse_sensitivity.py
    prints the gap.
    """
    rng = np.random.default_rng(d)
    lattice = Lattice(1.0, 2**20, 2)
    for n in (2, 5, 9, 12):
        points = 2 * rng.integers(-20, 21, size=(n, d)) + 1
        points[: n // 3] = points[0]
        places = np.concatenate([points[[0, n - 1]], 2 * rng.integers(-15, 16, size=(6, d)) + 1])
        ours = scores(points, places, lattice)
        paper = [fewest_changes(points.astype(float), z) for z in places]
        assert np.all(ours <= np.array(paper) + 1e-6)
        assert ours.max() > 0.0


# Privacy, by enumeration.


@pytest.mark.parametrize("d", [1, 2, 3])
def test_no_outcome_tells_more_than_epsilon_on_any_neighbours(d):
    """All data sets of three records at seven places: the worst log-ratio over all neighbors and outcomes."""
    epsilon, lattice = 1.5, Lattice(1.0, 6, 2)
    rng = np.random.default_rng(0)
    sites = np.arange(-6, 7, 2)[:, None] if d == 1 else rng.integers(-4, 5, size=(7, d))
    places = domain(lattice, d)
    rate = (
        InverseSensitivity.of(epsilon, PublicParameters.of(3, d, epsilon=epsilon, radius=6.0, resolution=2.0)).rate
        / 2.0**40
    )
    logs = {}
    for chosen in itertools.product(range(7), repeat=3):
        log_weights = -rate * math.log(2.0) * scores(sites[list(chosen)], places, lattice)
        logs[chosen] = log_weights - np.logaddexp.reduce(log_weights)
    worst = max(np.abs(logs[chosen] - logs[(other, *chosen[1:])]).max() for chosen in logs for other in range(7))
    assert 0.5 * epsilon < worst <= epsilon


@pytest.mark.parametrize("d", [1, 2, 3])
def test_no_outcome_tells_more_than_epsilon_where_a_record_is_added(d):
    """All data sets of up to three records at seven places, and the empty one. Any record is removed, in any row."""
    epsilon, lattice = 1.5, Lattice(1.0, 6, 2)
    sites = np.arange(-6, 7, 2)[:, None] if d == 1 else np.random.default_rng(0).integers(-4, 5, size=(7, d))
    places = domain(lattice, d)
    asked = PublicParameters.of(None, d, epsilon=epsilon, radius=6.0, resolution=2.0, neighbours="add_remove")
    rate = InverseSensitivity.of(epsilon, asked).rate / 2.0**40
    logs = {}
    for n in range(4):
        for chosen in itertools.product(range(7), repeat=n):
            log_weights = -rate * math.log(2.0) * scores(sites[list(chosen)], places, lattice, relation="add_remove")
            logs[chosen] = log_weights - np.logaddexp.reduce(log_weights)
    worst = max(
        np.abs(logs[chosen] - logs[chosen[:row] + chosen[row + 1 :]]).max()
        for chosen in logs
        for row in range(len(chosen))
    )
    assert 0.5 * epsilon < worst <= epsilon


@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_replaced_record_moves_every_score_by_at_most_one(d):
    """Scores at many places, on neighbors with extremes, ties and records at the scored points."""
    rng = np.random.default_rng(d)
    plan = dpmedian.plan(40, d, **PURE)
    lattice = plan.calibrated.mechanism.lattice
    units = (lattice.step, lattice.reach, lattice.smoothing)
    points = np.concatenate([rng.normal(size=(30, d)), np.zeros((10, d))])
    spread = np.concatenate([rng.normal(size=(60, d)), np.zeros((20, d)), 50.0 * rng.normal(size=(20, d))])
    places = (2 * np.round(spread / lattice.step / 2.0) + 1).astype(np.int64)

    def exact(data):
        projected = np.array([onto_ball(record, np.zeros(d), plan.parameters.radius) for record in data])
        return _core.nonprivate_lattice_scores(projected, places, [0.0] * d, units).astype(np.int64)

    base = exact(points)
    moved = max(np.abs(exact(other) - base).max() for other in neighbours(points, 120, rng))
    assert 2**30 < moved <= 2**31


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_run_replays_on_neighbours(replay, d):
    rng = np.random.default_rng(d)
    points = rng.normal(size=(50, d))
    points[:10] = points[10]
    assert replay(dpmedian.plan(50, d, **PURE), points, neighbours(points, 60, rng)) == 1


def test_a_replay_on_a_stranger_is_refused(replay):
    points = np.random.default_rng(0).normal(size=(50, 2))
    with pytest.raises(RuntimeError, match="stated sensitivity"):
        replay(dpmedian.plan(50, 2, **PURE), points, [points + 50.0])


@pytest.mark.parametrize("epsilon", [1e-8, 0.1, 1.0, 7.3, 900.0])
def test_the_rate_never_exceeds_half_of_epsilon(epsilon):
    """In exact arithmetic: 2 ln 2 rate <= epsilon, and at most one part in 10^4 is lost."""
    plan = dpmedian.plan(100, 2, **{**PURE, "epsilon": epsilon})
    ln_two = Fraction("0.693147180559945309417232121458")
    spent = 2 * (ln_two + Fraction(1, 10**30)) * plan.calibrated.mechanism.rate / 2**40
    assert spent <= Fraction(plan.calibrated.mechanism.epsilon) <= Fraction(epsilon)
    assert spent >= Fraction(epsilon) * (1 - Fraction(1, 10**4))
    assert plan.cost.epsilon_at(0.0) <= epsilon


def test_the_plan_states_its_cost():
    plan = dpmedian.plan(1000, 2, **PURE)
    assert plan.cost.epsilon == 1.0
    assert plan.cost.delta is None
    assert plan.cost.rho == pytest.approx(1.0 / 8.0, rel=1e-6)
    assert plan.cost.delta_at(1.0) == 0.0
    assert "inverse sensitivity" in str(plan)
    assert any("sum of distances" in note for note in plan.notes)
    assert any("sweeps" in note for note in plan.notes)
    assert any("no accuracy" in note for note in dpmedian.plan(20, 2, **PURE).notes)


def test_other_budgets_buy_a_pure_release_too():
    plan = dpmedian.plan(1000, 1, rho=0.125, method="inverse_sensitivity", radius=10.0, resolution=0.1)
    assert plan.calibrated.mechanism.epsilon == pytest.approx(1.0, rel=1e-6)


# Accuracy.


def paper_bound(n, d, epsilon, beta, radius, r, optimum):
    changes = math.floor(2.0 / epsilon * (math.log(1.0 / beta) + d * math.log(radius / r)))
    return (1.0 + 4.0 * changes / (n - 2.0 * changes)) * optimum + n * r if n > 2 * changes else math.inf


@pytest.mark.parametrize("d", [1, 2, LONG])
@pytest.mark.parametrize("name", ["gauss", "ties", "outliers"])
def test_the_bounds_hold(d, name):
    """In 100 runs at beta = 0.05, the bound on the value, the bound on the distance (errata, item 8) and the paper's
    bound on the value each hold in at least 95 runs.

    With failures of probability at most 0.05 the number of successes is at least 89 with probability 0.996. Measured
    failures are far rarer than the bound allows, so 95 leaves room.
    """
    n, radius, r, beta = 600, 1e4, 0.01, 0.05
    rng = np.random.default_rng(d)
    points = rng.normal(size=(n, d)) + 20.0
    if name == "ties":
        points = np.round(points)
    elif name == "outliers":
        points[: n // 5] = 1e4 * rng.normal(size=(n // 5, d))
    plan = dpmedian.plan(n, d, epsilon=1.0, method="inverse_sensitivity", radius=radius, resolution=r)
    norms = np.linalg.norm(points, axis=1)
    inside = points * np.minimum(1.0, radius / norms)[:, None]
    median = nonprivate.geometric_median(inside)
    optimum = objective(inside, median)
    source, tape = ArraySource.of(points, plan.parameters), Tape.draw(bytes(32))
    released = [plan.calibrated.run(source, tape).point for _ in range(100)]
    bound = plan.calibrated.bound()
    quantiles = [(share, nonprivate.quantile_radius(inside, median, share)) for share in (0.7, 0.75, 0.9, 1.0)]
    distance = min(bound.distance(share, quantile) for share, quantile in quantiles)
    papers = paper_bound(n, d, 1.0, beta, radius, r, optimum)
    assert max(distance, papers, bound.loss(optimum)) < math.inf
    values = np.array([objective(inside, y) for y in released])
    assert (values <= bound.loss(optimum)).sum() >= 95
    assert (values <= papers).sum() >= 95
    assert (np.linalg.norm(np.array(released) - median, axis=1) <= distance).sum() >= 95


def test_the_bound_of_the_distance_is_that_of_the_proof():
    """The factor is q/sqrt(2q - 1) with q = gamma - k/n on the line, not the printed 1/sqrt(2q - q^2)."""
    line = inverse_sensitivity.Bound(n=100, d=1, changes=10.0, resolution=0.5, snapping=0.0)
    assert line.distance(0.9, 2.0) == pytest.approx(0.5 + 2.0 * 0.8 / math.sqrt(0.6))
    assert line.distance(0.6, 2.0) == math.inf
    plane = inverse_sensitivity.Bound(n=100, d=2, changes=10.0, resolution=0.5, snapping=0.0)
    assert plane.distance(0.9, 2.0) == pytest.approx(max(2.5, 2.0 * 0.75 / math.sqrt(0.5)))
    assert plane.factor == pytest.approx(40.0 / 80.0)
    assert inverse_sensitivity.Bound(20, 2, 10.0, 0.5, 0.0).loss(1.0) == math.inf


@pytest.mark.parametrize("d", [1, 2, LONG])
def test_the_prediction_is_about_what_comes_out(d):
    """The mean over 60 runs on a Gaussian cloud is within a factor of three of the prediction."""
    n = 1000
    points = gauntlet("gauss", n, d)
    plan = dpmedian.plan(n, d, epsilon=1.0, method="inverse_sensitivity", radius=1e4, resolution=1e-3)
    median = nonprivate.geometric_median(points)
    spread = objective(points, median) / n
    source, tape = ArraySource.of(points, plan.parameters), Tape.draw(bytes(32))
    released = [plan.calibrated.run(source, tape).point for _ in range(60)]
    excess = np.mean([objective(points, y) for y in released]) / (n * spread) - 1.0
    error = np.mean([np.linalg.norm(y - median) for y in released]) / spread
    assert plan.prediction.excess / 3.0 <= excess <= 3.0 * plan.prediction.excess
    assert plan.prediction.relative_error / 3.0 <= error <= 3.0 * plan.prediction.relative_error
    assert plan.prediction.failure == 0.0


def test_a_median_at_the_border_keeps_its_volume():
    """All records are at the edge of the ball: the release is within a resolution of them, and inside the ball."""
    points = np.tile([[60.0, 80.0]], (400, 1))
    for seed in range(20):
        point = dpmedian.geometric_median(points, **PURE, seed=seed).point
        assert np.linalg.norm(point) <= 100.0 * (1.0 + 1e-12)
        assert np.linalg.norm(point - points[0]) <= 0.02


def test_a_center_moves_everything_with_it():
    points = np.random.default_rng(0).normal(size=(300, 2))
    here = dpmedian.geometric_median(points, **PURE, seed=5).point
    shift = np.array([4096.0, -512.0])
    there = dpmedian.geometric_median(points + shift, **PURE, center=shift, seed=5).point
    assert np.allclose(there - shift, here, atol=1e-3)


# Choice by `auto`, and refusals.


@pytest.mark.parametrize("d", [1, 2, 3])
def test_auto_takes_it_for_a_pure_budget(d):
    plan = dpmedian.plan(1000, d, epsilon=1.0, radius=100.0, resolution=0.1)
    assert plan.method == "inverse_sensitivity"


def test_auto_passes_it_over_on_a_grid_beyond_its_reach():
    assert dpmedian.plan(1000, 1, rho=1.0, radius=1e30, resolution=1e-3).method == "adaptive"


def test_auto_takes_it_on_the_line_when_it_predicts_less_error():
    options = {"epsilon": 1.0, "delta": 1e-6, "radius": 100.0, "resolution": 0.01}
    chosen, other = dpmedian.plan(500, 1, **options), dpmedian.plan(500, 1, **options, method="adaptive")
    assert chosen.method == "inverse_sensitivity"
    assert chosen.prediction.excess < other.prediction.excess
    # A coarse resolution and a large n are better served by the adaptive method.
    assert dpmedian.plan(500, 1, **{**options, "resolution": 5.0}).method == "adaptive"
    assert dpmedian.plan(50_000, 2, **options).method == "adaptive"
    # If no lattice can be built, another method is taken.
    assert dpmedian.plan(500, 1, **{**options, "resolution": 1e-15}).method == "adaptive"


def test_the_required_number_of_records_is_found():
    options = {"excess": 0.01, "epsilon": 1.0, "method": "inverse_sensitivity", "radius": 1e4, "resolution": 0.1}
    n = dpmedian.required_n(2, **options)
    plans = [dpmedian.plan(k, 2, **{key: options[key] for key in options if key != "excess"}) for k in (n - 1, n)]
    assert plans[1].prediction.excess <= 0.01 < plans[0].prediction.excess


@pytest.mark.parametrize("method", ["auto", "inverse_sensitivity"])
def test_more_than_three_dimensions_are_refused_with_the_reason(method):
    with pytest.raises(ValueError, match=r"exponential in d.*'adaptive'"):
        dpmedian.plan(1000, 4, **{**PURE, "method": method})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"radius": None}, "needs radius="),
        ({"resolution": None}, "needs resolution="),
        ({"resolution": 1e-14}, "radius/resolution must be at most"),
        ({"radius": 1e-299, "resolution": 1e-300}, "resolution must be at least"),
        ({"resolution": 200.0}, "resolution must be smaller than radius"),
        ({"epsilon": 1e-12}, "epsilon must lie between"),
        ({"epsilon": -1.0}, "epsilon"),
    ],
)
def test_bad_arguments_are_named_and_nothing_is_charged(change, message):
    ledger = dpmedian.Ledger(epsilon=10.0)
    with pytest.raises(ValueError, match=message):
        dpmedian.geometric_median(np.zeros((50, 2)), **{**PURE, **change}, ledger=ledger)
    assert ledger.entries == ()


@pytest.mark.filterwarnings("ignore::dpmedian.WeakPrivacyWarning")
@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_finest_and_the_widest_parameters_run(d):
    points = np.random.default_rng(0).normal(size=(60, d))
    huge = {"radius": 1e300, "resolution": 1e290}
    for change in ({"resolution": 1e-12}, {"epsilon": 1e-9}, {"epsilon": 1000.0}, huge):
        assert np.all(np.isfinite(drawn(points, **change)))
    extremes = np.tile([[1e308], [-1e308], [5e-324], [0.0]], (5, d))
    assert np.all(np.abs(drawn(extremes)) <= 100.0)
    assert np.all(np.isfinite(drawn(points[:2])))


def drawn(points, **change):
    """The draw itself, because a plan whose draw would be useless is refused."""
    plan = dpmedian.plan(*points.shape, **{**PURE, **change})
    return plan.calibrated.run(ArraySource.of(points, plan.parameters), Tape.draw(bytes(32))).point


@pytest.mark.parametrize("d", [1, 2, LONG])
def test_the_seed_decides_and_the_threads_do_not(d):
    points = np.random.default_rng(0).normal(size=(20_000, d))
    try:
        found = []
        for threads in (1, 2, 3):
            dpmedian.set_threads(threads)
            found.append(dpmedian.geometric_median(points, **PURE, seed=7).point.tolist())
    finally:
        dpmedian.set_threads(None)
    assert found[0] == found[1] == found[2]
    assert found[0] != dpmedian.geometric_median(points, **PURE, seed=8).point.tolist()


@pytest.mark.slow
def test_progress_shows_nothing_of_the_trials():
    seen = []
    points = np.random.default_rng(0).normal(size=(200_000, 3))
    dpmedian.geometric_median(points, **PURE, seed=1, progress=seen.append)
    assert set(seen) == {0.0, 1.0}
