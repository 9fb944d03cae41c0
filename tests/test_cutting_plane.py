"""LocDPCuttingPlane: the center, the cuts, the choice, and the promise that the plan makes about them."""

import math
from dataclasses import replace

import numpy as np
import pytest

import dpmedian
from conftest import neighbours
from dpmedian import nonprivate
from dpmedian.mechanisms.exponential import Selection
from dpmedian.methods.paper.loc_cutting_plane import LocCuttingPlane, Trail
from dpmedian.methods.paper.localize import Localized
from dpmedian.postprocess import VolumetricCenter
from dpmedian.sources.array import ArraySource
from dpmedian.tape import Tape

# With large budgets the noise is small, so that each test is about something else.
pytestmark = pytest.mark.filterwarnings("ignore::dpmedian.WeakPrivacyWarning")


def cutting(n: int, d: int, profile: str = "default", **arguments) -> dpmedian.Plan:
    options = {"radius": 100.0, "resolution": 0.1, "rho": 5.0, **arguments}
    return dpmedian.plan(n, d, method="loc_cutting_plane", profile=profile, **options)


def cloud(n: int, d: int, seed: int = 0) -> np.ndarray:
    points = np.random.default_rng(seed).normal(size=(n, d)) + 7.0
    points[: n // 10] *= -5.0
    return points


def excess(points: np.ndarray, point: np.ndarray) -> float:
    median = nonprivate.geometric_median(points)
    return nonprivate.objective(points, point) / nonprivate.objective(points, median) - 1.0


class Start:
    """A stand-in for localization that has found its ball, so that the tests of the cuts are fast."""

    def __init__(self, center: np.ndarray, scale: float, radius: float = 1e6) -> None:
        self.found, self.radius = Localized(center, scale, 25.0 * scale), radius

    def run(self, source: ArraySource, tape: Tape) -> Localized:
        return self.found

    def fail_if_lost(self, found: Localized, last: np.ndarray) -> None:
        """The median lies in the ball of every test."""


def fine(points: np.ndarray, start: np.ndarray, scale: float, **arguments) -> LocCuttingPlane:
    return replace(cutting(*points.shape, radius=1e6, **arguments).calibrated, localization=Start(start, scale))


# Privacy.


@pytest.mark.parametrize("profile", ["default", "paper"])
@pytest.mark.parametrize(("n", "d"), [(2, 1), (60, 2), (200, 5)])
def test_it_replays_on_neighbours(replay, profile, n, d):
    points = cloud(n, d)
    # With a large budget most counts exceed the noise, so the runs reach the cuts and the choice.
    plan = cutting(n, d, profile, rho=80.0, resolution=1.0)
    assert replay(plan, points, neighbours(points, 24, np.random.default_rng(d))) >= 1


@pytest.mark.parametrize("profile", ["default", "paper"])
def test_cuts_and_choice_replay_on_neighbours(replay, profile):
    """From a given start, every cut and the choice are queried, and the range of the choice holds."""
    points = cloud(400, 3)
    plan = cutting(400, 3, profile, rho=0.5, radius=1e6)
    plan = replace(plan, calibrated=replace(plan.calibrated, localization=Start(np.full(3, 6.0), 2.0)))
    releases = replay(plan, points, neighbours(points, 200, np.random.default_rng(1)))
    assert releases == plan.calibrated.cuts + 1


@pytest.mark.parametrize("profile", ["default", "paper"])
def test_the_claimed_cost_is_that_of_the_recorded_releases(profile):
    points = cloud(3000, 3)
    plan = cutting(3000, 3, profile, rho=1.0)
    tape = Tape.record(bytes(32))
    plan.calibrated.run(ArraySource.of(points, plan.parameters), tape)
    entries = tape.entries()
    fine = [row for row in entries if row[0] in ("cuts", "late cuts")]
    spent = math.fsum((sensitivity / sigma) ** 2 / 2.0 for _, sensitivity, sigma, _, _ in fine)
    assert spent == pytest.approx(plan.calibrated.early.cost.rho + plan.calibrated.late.cost.rho, rel=1e-9)
    (name, bounded_range, scale, scores, chosen) = entries[-1]
    assert name == "selection"
    assert bounded_range / scale <= plan.calibrated.selection.eta
    assert bounded_range / scale == pytest.approx(plan.calibrated.selection.eta, rel=1e-3)
    assert len(scores) == (2 if profile == "default" else plan.calibrated.cuts)
    assert chosen.shape == (1,)
    assert plan.cost.rho <= 1.0 + 1e-9


@pytest.mark.parametrize("budget", [{"rho": 0.3}, {"epsilon": 1.0, "delta": 1e-6, "rho": None}])
@pytest.mark.parametrize("profile", ["default", "paper"])
def test_budgets_in_both_currencies_are_used_up_and_not_exceeded(budget, profile):
    plan = cutting(20_000, 4, profile, **budget)
    if budget["rho"] is None:
        assert 0.98e-6 <= plan.cost.delta_at(1.0) <= 1e-6
    else:
        assert 0.98 * 0.3 <= plan.cost.rho <= 0.3
    assert plan.cost.rho == pytest.approx(math.fsum(stage.cost.rho for stage in plan.stages), rel=1e-6)
    assert plan.cost.delta0 == 0.0, "no good event, no delta of its own"


def test_the_paper_profile_has_the_printed_weights():
    plan = cutting(20_000, 4, "paper", epsilon=1.0, delta=1e-6, rho=None)
    assert plan.calibrated.selection.eta == pytest.approx(100.0 / 448.0, rel=1e-8)
    assert plan.calibrated.selection.cost.rho == pytest.approx((100.0 / 448.0) ** 2 / 8.0, rel=1e-8)
    # The requested rate is epsilon/(448 scale) per unit of F.
    points, scale = cloud(2000, 4), 2.0
    tape = Tape.record(bytes(32))
    recipe = replace(plan.calibrated, localization=Start(np.full(4, 6.0), scale))
    recipe.run(ArraySource.of(points, plan.parameters), tape)
    _, _, width, scores, chosen = tape.entries()[-1]
    centers = len(scores)
    assert centers == recipe.cuts
    # F at two centers in numpy is not recorded, so the unit follows from the range: 2 * 50 scales correspond to eta.
    assert tape.entries()[-1][1] / width == pytest.approx(100.0 / 448.0, rel=1e-5)
    assert 0 <= chosen[0] < centers


# The plan.


def test_the_plan_shows_cuts_noise_tau_and_cost():
    plan = cutting(100_000, 10, epsilon=1.0, delta=1e-6, rho=None)
    text, recipe = str(plan), plan.calibrated
    rho = plan.cost.rho
    kappa = 100_000 * math.sqrt(rho / 10.0) + math.sqrt(10.0)
    assert recipe.cuts == pytest.approx(10.0 * math.log(kappa) / math.log(1.5), abs=1.5)
    for shown in (
        f"{recipe.cuts} cuts",
        f"tau = {VolumetricCenter.TAU:.3g}",
        f"{recipe.late.noise:.4g}",
        "late cuts",
        "selection",
    ):
        assert shown in text
    assert recipe.late.noise**2 == pytest.approx(2.0 * recipe.late.releases / recipe.late.cost.rho, rel=1e-6)


def test_missing_arguments_are_named():
    with pytest.raises(ValueError, match=r"radius=\.\.\., resolution=\.\.\."):
        dpmedian.plan(100, 2, rho=1.0, method="loc_cutting_plane")
    with pytest.raises(ValueError, match="without delta only pure releases fit"):
        dpmedian.plan(100, 2, epsilon=1.0, method="loc_cutting_plane", radius=10.0, resolution=0.1)


# Accuracy.


@pytest.mark.slow
def test_it_finds_the_median_to_second_order():
    """The median excess of 40 runs is below ten times the predicted excess, error^2/2."""
    points = cloud(20_000, 4)
    recipe = fine(points, np.full(4, 5.0), 3.0, rho=0.05)
    found = [
        excess(points, recipe.run(ArraySource.of(points, recipe.parameters), Tape.draw(bytes([run] * 32))).point)
        for run in range(40)
    ]
    assert np.median(found) < 5.0 * recipe.error**2 < 1e-4


def test_it_is_not_worse_than_descent_at_a_nonsmooth_point():
    """60 % of the records are at one point, at which F is not smooth. The medians of 9 runs each, from the same start,
    are compared.
    """
    rng = np.random.default_rng(5)
    points = rng.normal(size=(4000, 3))
    points[:2400] = 3.0
    cuts = fine(points, np.zeros(3), 3.0, rho=0.1)
    arguments = {"method": "loc_dpgd", "rho": 0.1, "radius": 1e6, "resolution": 0.1}
    descent = replace(dpmedian.plan(4000, 3, **arguments).calibrated, localization=Start(np.zeros(3), 3.0))

    def median_excess(method) -> float:
        source = ArraySource.of(points, method.parameters)
        return float(
            np.median([excess(points, method.run(source, Tape.draw(bytes([i] * 32))).point) for i in range(9)])
        )

    assert median_excess(cuts) < median_excess(descent)


def test_the_whole_method_releases_a_good_point():
    points = cloud(20_000, 3)
    release = cutting(20_000, 3, epsilon=1.0, delta=1e-6, rho=None, radius=1e3).run(points, seed=3)
    assert excess(points, release.point) < 1e-4
    assert release.scale is not None
    assert release.error_radius is not None


EDGES = {
    "all equal": np.full((200, 3), 2.5),
    "a heavy atom": np.vstack([np.full((120, 3), 3.0), np.random.default_rng(2).normal(size=(80, 3))]),
    "on a line": np.outer(np.linspace(-1.0, 1.0, 200), [1.0, 2.0, 3.0]),
    "at the border": np.random.default_rng(2).choice([-1e300, 1e300], size=(200, 3)),
    "tiny": 1e-200 * np.random.default_rng(2).normal(size=(200, 3)),
}


@pytest.mark.parametrize("profile", ["default", pytest.param("paper", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", EDGES)
def test_edges_give_a_finite_point_in_the_ball(name, profile):
    """With this budget none of ten runs fails."""
    plan = cutting(200, 3, profile, rho=200.0)
    for seed in range(10):
        release = plan.run(EDGES[name], seed=seed)
        assert np.all(np.isfinite(release.point))
        assert np.linalg.norm(release.point) <= 100.0 * (1.0 + 1e-12)


@pytest.mark.parametrize(
    ("n", "d", "radius", "resolution"),
    [(2, 1, 1.0, 0.5), pytest.param(50, 60, 1e8, 1e-7, marks=pytest.mark.slow), (1000, 2, 1e300, 1e290)],
)
def test_odd_sizes_run(n, d, radius, resolution):
    """With this budget none of five runs fails."""
    points = radius * np.random.default_rng(0).uniform(-0.5, 0.5, size=(n, d)) / math.sqrt(d)
    plan = cutting(n, d, radius=radius, resolution=resolution, rho=500.0)
    for seed in range(5):
        assert np.all(np.isfinite(plan.run(points, seed=seed).point))


def test_a_collapsed_region_ends_the_cutting_early():
    """The plan has more cuts than double precision can represent. Fewer cuts are queried than planned, and the answer
    is a point.
    """
    points = np.full((1000, 1), 0.25)
    recipe = fine(points, np.zeros(1), 1.0, rho=1e4)
    recipe = replace(recipe, late=replace(recipe.late, releases=500))
    tape = Tape.record(bytes(32))
    outcome = recipe.run(ArraySource.of(points, recipe.parameters), tape)
    assert abs(outcome.point[0] - 0.25) < 1e-6
    assert 20 < len(tape.entries()) < 200


# The parts of the method.


def test_a_fit_finds_the_root_of_a_linear_gradient_and_its_misfit_is_chi_square():
    """Misfits of honest noise lie within 5 standard deviations. The misfit of a quadratic part that exceeds the noise
    does not.
    """
    rng = np.random.default_rng(8)
    centers = rng.normal(size=(301, 4))
    root = np.array([0.3, -0.2, 0.1, 0.4])
    noise = np.full(300, 2.0)
    gradients = 50.0 * (centers[:300] - root) + 2.0 * rng.normal(size=(300, 4))
    point, misfit = Trail(centers, gradients, noise).fit(200, np.zeros(4), 10.0)
    assert np.linalg.norm(point - root) < 5.0 * 2.0 * math.sqrt(4.0 / 200.0) / 50.0
    assert abs(misfit) < 5.0
    _, bent = Trail(centers, gradients + 4.0 * centers[:300] ** 2, noise).fit(200, np.zeros(4), 10.0)
    assert bent > 5.0


def test_directions_that_point_at_the_target_close_in_on_it():
    target = np.array([3.0, -1.0, 2.0])
    region = VolumetricCenter(np.zeros(3), 10.0)
    assert 0.0 < VolumetricCenter.TAU < 0.5
    for _ in range(60):
        assert region.cut(region.center - target)
    assert np.linalg.norm(region.center - target) < 1e-3
    assert region.cuts <= 60


def test_a_region_refuses_what_is_no_ball_and_no_direction():
    with pytest.raises(ValueError, match="positive radius"):
        VolumetricCenter(np.zeros(2), 0.0)
    with pytest.raises(ValueError, match="finite origin"):
        VolumetricCenter(np.array([np.nan]), 1.0)
    with pytest.raises(ValueError, match="dimension"):
        VolumetricCenter(np.zeros(2), 1.0).cut(np.zeros(3))


def test_the_selection_prefers_the_better_candidate():
    """F differs by 100 diameters at eta = 1, so the better candidate is missed with probability exp(-50)."""
    points = np.zeros((200, 2))
    candidates = np.array([[1.0, 0.0], [0.5, 0.0]])
    source = ArraySource.of(points, cutting(200, 2).parameters)
    assert Selection.of("selection", 1.0).among(source, Tape.draw(bytes(32)), candidates) == 1


@pytest.mark.slow
@pytest.mark.parametrize("method", ["loc_cutting_plane", "loc_dpgd"])
def test_a_lost_localization_is_a_failed_release_and_no_far_point(method):
    """With slightly more records than the sufficient n and a radius of 10^20 core radii, none of 60 runs returns an
    excess above 1.
    """
    points = np.random.default_rng(0).normal(size=(500, 2)) + 5.0
    plan = dpmedian.plan(500, 2, epsilon=1.0, delta=1e-6, method=method, radius=1e20, resolution=0.05)
    messages = []
    for seed in range(60):
        try:
            found = plan.run(points, seed=seed)
        except dpmedian.ReleaseFailed as failure:
            messages.append(failure.message)
        else:
            assert excess(points, found.point) < 1.0
    assert all("localization was lost" in message for message in messages)
    assert len(messages) < 20
    assert bool(messages) == (method == "loc_cutting_plane"), "the cutting plane loses some of these runs"
