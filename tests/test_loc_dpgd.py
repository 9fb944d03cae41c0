"""RadiusFinder, Localization, DPGD and LocDPGD: privacy at the boundary, edge cases, and the promises of the plan."""

import itertools
import math

import numpy as np
import pytest

import dpmedian
from conftest import neighbours
from dpmedian import nonprivate
from dpmedian.methods.paper.find_radius import grid
from dpmedian.sources.array import ArraySource
from dpmedian.tape import Tape

# With large budgets the noise is small, so that each test is about something else.
pytestmark = pytest.mark.filterwarnings("ignore::dpmedian.WeakPrivacyWarning")

PROFILES = ("default", "paper")


def cloud(n: int, d: int, seed: int = 0, shift: float = 3.0) -> np.ndarray:
    points = np.random.default_rng(seed).normal(size=(n, d)) + shift
    points[: n // 10] = points[n // 10]
    return points


def loc_dpgd(n: int, d: int, profile: str = "default", **arguments) -> dpmedian.Plan:
    budget = {"radius": 20.0, "resolution": 0.5, "rho": 40.0} | arguments
    return dpmedian.plan(n, d, method="loc_dpgd", profile=profile, **budget)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(("n", "d"), [(2, 1), (40, 3), (120, 11)])
def test_loc_dpgd_replays_on_neighbours(replay, profile, n, d):
    points = cloud(n, d, seed=d)
    plan = loc_dpgd(n, d, profile)
    assert replay(plan, points, neighbours(points, 24, np.random.default_rng(d))) >= 1


@pytest.mark.parametrize("profile", PROFILES)
def test_dpgd_replays_on_neighbours(replay, profile):
    points = cloud(60, 4)
    plan = dpmedian.plan(60, 4, rho=2.0, method="dpgd", radius=20.0, profile=profile)
    assert replay(plan, points, neighbours(points, 60, np.random.default_rng(1))) == plan.calibrated.gradient.releases


@pytest.mark.parametrize("profile", PROFILES)
def test_the_recorded_releases_of_the_gaussian_stages_cost_what_the_plan_says(profile):
    points = cloud(300, 5)
    plan = loc_dpgd(300, 5, profile, rho=10.0)
    tape = Tape.record(bytes(32))
    plan.calibrated.run(ArraySource.of(points, plan.parameters), tape)
    for stage in plan.stages:
        entries = [entry for entry in tape.entries() if entry[0] == stage.name]
        spent = math.fsum((sensitivity / sigma) ** 2 / 2.0 for _, sensitivity, sigma, _, _ in entries)
        if entries:
            assert spent == pytest.approx(stage.cost.rho, rel=1e-6), stage.name
            assert spent <= stage.cost.rho * (1.0 + 1e-12)
    assert {entry[0] for entry in tape.entries()} >= {"localization", "fine-tuning"}
    assert math.fsum(stage.cost.rho for stage in plan.stages) == pytest.approx(plan.cost.rho)


@pytest.mark.parametrize("profile", PROFILES)
def test_the_budget_is_split_as_printed(profile):
    radius, walk, fine = (stage.cost.rho for stage in loc_dpgd(3000, 10, profile, rho=1.0).stages)
    assert walk == pytest.approx(radius, rel=1e-6)
    assert fine == pytest.approx(radius + walk, rel=1e-6)


EDGES = {
    "all equal": np.full((200, 3), 7.0),
    "below the resolution": 5.0 + 1e-9 * np.random.default_rng(0).normal(size=(200, 3)),
    "heavy atom": np.concatenate([np.full((140, 3), 2.0), np.random.default_rng(1).normal(size=(60, 3)) * 8.0]),
    "two records": np.array([[1.0, 2.0, 3.0], [-1.0, 0.0, 1e300]]),
    "one dimension": np.random.default_rng(2).normal(size=(200, 1)),
    "many dimensions": np.random.default_rng(3).normal(size=(60, 1000)),
    "extremes": np.random.default_rng(4).choice([0.0, 5e-324, -1e-200, 1e16, 1.7e308, -1.7e308], size=(100, 2)),
    "two far halves": np.repeat([[1e4, 0.0], [-1e4, 0.0]], 60, axis=0),
}


@pytest.mark.filterwarnings("ignore::dpmedian.LikelyFailureWarning")
@pytest.mark.parametrize(
    "profile", [pytest.param(name, marks=[pytest.mark.slow] * (name == "paper")) for name in PROFILES]
)
@pytest.mark.parametrize("name", EDGES)
def test_edge_data_give_a_finite_release(name, profile):
    """If the plan is not refused, the run with seed 2 succeeds."""
    points = EDGES[name]
    plan = loc_dpgd(*points.shape, profile, radius=1e5, resolution=0.01, rho=60.0)
    if plan.prediction.failure > 0.5:
        # The printed threshold is above n.
        assert profile == "paper"
        with pytest.raises(ValueError, match="refused before spending"):
            plan.run(points)
        return
    release = plan.run(points, seed=2)
    assert release.cost == plan.cost
    assert np.all(np.isfinite(release.point))
    assert np.linalg.norm(release.point) <= 1e5 * (1.0 + 1e-9)
    assert release.scale in grid(1e5, 0.01)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(("radius", "resolution"), [(2.0**1000, 1e-300), (1e15, 1.0), (1.0, 0.9)])
def test_any_ratio_of_radius_and_resolution_works(profile, radius, resolution):
    plan = loc_dpgd(100, 2, profile, radius=radius, resolution=resolution, rho=1000.0)
    points = cloud(100, 2)
    # A round takes hundreds of passes, and 2^3300 takes thousands of rounds, so only the found radius is checked.
    scale = plan.calibrated.localization.finder.run(ArraySource.of(points, plan.parameters), Tape.draw(bytes(32)))
    assert scale in plan.calibrated.localization.finder.radii
    if radius < 1e16:
        assert np.all(np.isfinite(plan.run(points, seed=1).point))


def test_a_scale_at_the_resolution_is_said_to_be_so():
    release = loc_dpgd(200, 3, radius=100.0).run(EDGES["all equal"], seed=1)
    assert release.scale == 0.5
    assert "at or below the resolution 0.5" in "".join(release.notes)
    assert np.linalg.norm(release.point - 7.0) < 0.5
    assert loc_dpgd(200, 3, radius=100.0).run(cloud(200, 3), seed=1).notes == ()


def attempt(plan: dpmedian.Plan, points: np.ndarray, **arguments) -> dpmedian.Release | dpmedian.ReleaseFailed:
    try:
        return plan.run(points, **arguments)
    except dpmedian.ReleaseFailed as failed:
        return failed


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::dpmedian.LikelyFailureWarning")
def test_a_radius_that_is_never_found_is_a_failed_release_with_the_full_cost():
    """In 60 runs with a predicted probability p, more than 60 p + 4 sqrt(60 p) + 4 failures have a probability below
    1e-4.
    """
    plan, ledger = loc_dpgd(300, 2, "paper", rho=6.0), dpmedian.Ledger(rho=1000.0)
    predicted = plan.prediction.failure
    assert 0.05 < predicted < 0.5
    results = [attempt(plan, cloud(300, 2), seed=seed, ledger=ledger) for seed in range(60)]
    failures = [result for result in results if isinstance(result, dpmedian.ReleaseFailed)]
    assert 0 < len(failures) < 60 * predicted + 4.0 * math.sqrt(60 * predicted) + 4.0
    assert {failed.cost for failed in failures} == {plan.cost}
    assert sum(entry.state == "failed" for entry in ledger.entries) == len(failures)
    assert ledger.spent.rho == pytest.approx(60 * plan.cost.rho)


def test_a_plan_that_would_mostly_fail_is_refused_before_spending():
    plan = loc_dpgd(100, 2, "paper", rho=0.5)
    assert plan.prediction.failure > 0.5
    ledger = dpmedian.Ledger(rho=1.0)
    with pytest.raises(ValueError, match="refused before spending"):
        plan.run(cloud(100, 2), ledger=ledger)
    assert not ledger.entries


def test_the_grid_reaches_twice_the_radius_and_starts_at_the_resolution():
    for radius, resolution in itertools.product((1.0, 3.7, 1e10, 2.0**1000), (1e-3, 0.05, 0.3)):
        radii = grid(radius, resolution)
        assert radii[0] == resolution
        assert radii[-2] < 2.0 * radius <= radii[-1]
        assert len(radii) in (math.ceil(math.log2(2.0 * (radius / resolution))) + k for k in (0, 1, 2))


def test_the_radius_is_within_the_factor_of_the_theorem():
    """A ball of radius nu contains 0.6 n records, and nu <= 4 Delta_{4n/5}: both hold here with a margin of ten
    standard deviations.
    """
    points = np.random.default_rng(5).normal(size=(4000, 8))
    median = nonprivate.geometric_median(points)
    for seed in range(5):
        found = dpmedian.building_blocks.find_radius(points, radius=1e6, resolution=1e-3, rho=0.05, seed=seed)
        counts = nonprivate.ball_counts(points, [found.value])[:, 0]
        assert counts.max() >= 0.6 * len(points)
        assert found.value <= 4.0 * nonprivate.quantile_radius(points, median, 0.8)
        assert found.cost.rho == pytest.approx(0.05, rel=1e-6)


def test_localization_keeps_the_median_within_its_ball():
    points = np.random.default_rng(6).normal(size=(4000, 8)) + 50.0
    median = nonprivate.geometric_median(points)
    for seed in range(5):
        found = dpmedian.building_blocks.localize(points, radius=1e6, resolution=1e-3, rho=0.5, seed=seed).value
        assert np.linalg.norm(found.center - median) <= found.radius == 25.0 * found.scale


@pytest.mark.parametrize(("n", "d"), [(2000, 3), (1000, 20)])
def test_the_predicted_excess_is_right_on_a_gaussian_cloud(n, d):
    """The median of 15 runs is within a factor of 4 of the prediction. The excess is like a chi-square with d >= 3
    degrees of freedom.
    """
    points = np.random.default_rng(7).normal(size=(n, d)) + 5.0
    plan = loc_dpgd(n, d, radius=1e3, resolution=0.01, rho=None, epsilon=1.0, delta=1e-5)
    best = nonprivate.objective(points, nonprivate.geometric_median(points))
    excess = [nonprivate.objective(points, plan.run(points, seed=s).point) / best - 1.0 for s in range(15)]
    assert plan.prediction.excess / 4.0 < np.median(excess) < plan.prediction.excess * 4.0


def test_more_records_make_the_default_profile_more_accurate_where_the_printed_step_starves():
    def excess(n: int, profile: str) -> float:
        points = np.random.default_rng(8).normal(size=(n, 2)) + 300.0
        best = nonprivate.objective(points, nonprivate.geometric_median(points))
        plan = loc_dpgd(n, 2, profile, radius=1e3, resolution=0.1, rho=0.1)
        return nonprivate.objective(points, plan.run(points, seed=1).point) / best - 1.0

    assert excess(30_000, "default") < excess(3_000, "default") / 10.0
    notes = "".join(loc_dpgd(1_000_000, 2, "paper", radius=1e3, resolution=0.1, rho=0.1).notes)
    assert "cannot reach" in notes
    assert "cannot reach" not in "".join(loc_dpgd(1_000_000, 2, radius=1e3, resolution=0.1, rho=0.1).notes)


def test_the_plan_says_what_is_proved_capped_and_too_small():
    large = "\n".join(loc_dpgd(1_000_000, 10, radius=1e4, resolution=0.05, rho=0.1).notes)
    assert "this is met" in large
    assert "capped at 512 steps" in large
    assert "an order of magnitude" in large
    small = loc_dpgd(50, 200, radius=1e4, resolution=0.05, rho=0.1)
    assert "n is too small" in small.notes[0]
    strict = loc_dpgd(3000, 200, radius=1e10, resolution=0.05, rho=0.2, profile="paper")
    assert "the radius must hold 92% of the records" in strict.notes[0]
    assert small.prediction.excess is None
    assert "this is not met" in "\n".join(small.notes)


def test_profiles_are_tables_without_a_branch_on_their_name():
    from pathlib import Path

    for path in Path(dpmedian.__file__).parent.rglob("*.py"):
        text = path.read_text()
        assert "profile.name ==" not in text, path
        assert 'profile == "' not in text, path


@pytest.mark.parametrize("block", [dpmedian.building_blocks.find_radius, dpmedian.building_blocks.localize])
def test_blocks_charge_before_they_run_and_name_what_is_missing(block):
    ledger = dpmedian.Ledger(rho=1.0)
    result = block(cloud(300, 2), radius=20.0, resolution=0.5, rho=0.4, ledger=ledger, seed=1)
    assert [entry.state for entry in ledger.entries] == ["released"]
    assert ledger.remaining == pytest.approx(0.6, abs=1e-6)
    assert result.cost.rho <= 0.4
    with pytest.raises(ValueError, match="resolution must be smaller than radius"):
        block(cloud(300, 2), radius=20.0, resolution=50.0, rho=0.4, ledger=ledger)
    assert len(ledger.entries) == 1
    with pytest.raises(TypeError):
        block(cloud(300, 2), radius=20.0, rho=0.4)


def test_the_dpgd_block_is_the_method():
    points = cloud(300, 2)
    block = dpmedian.building_blocks.dpgd(points, radius=20.0, rho=0.4, seed=9)
    method = dpmedian.geometric_median(points, radius=20.0, rho=0.4, seed=9, method="dpgd")
    assert np.array_equal(block.value.point, method.point)
    assert block.cost == method.cost
