"""Confidence regions for the population's median: their coverage, their cost, and the values that they state."""

import dataclasses
import json

import numpy as np
import pytest

import dpmedian
import dpmedian.nonprivate
from dpmedian.inference import Moments, Noisy, confidence_region, error_radius
from dpmedian.inference.region import COINCIDENT, LARGE
from dpmedian.mechanisms.directions import FREE_WEIGHT
from dpmedian.methods.adaptive.constants import CONSTANTS
from dpmedian.methods.adaptive.queries import HessianPlan, Region, hessian_plan
from dpmedian.parameters import PublicParameters
from dpmedian.sources.array import ArraySource
from dpmedian.tape import Tape

BUDGET = {"epsilon": 1.0, "delta": 1e-6}


def released(points: np.ndarray, seed: int = 0, **options: object) -> dpmedian.Release:
    with pytest.warns(dpmedian.InsecureSeedWarning):
        return dpmedian.geometric_median(points, seed=seed, **{**BUDGET, **options})


def gauss(n: int, d: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d))


def exact(points: np.ndarray, radius: float, *, variance: float = 0.0) -> Moments:
    """Moments without noise, at the origin."""
    n, d = points.shape
    r = np.linalg.norm(points, axis=1)
    u, weight = points / r[:, None], np.where(r > radius, radius / r, 0.0)
    curvature = float(np.where(r > radius, (1.0 - 1.0 / d) * radius / r, 1.0).sum())
    return Moments(
        d=d,
        size=float(n),
        gradient_variance=variance,
        radius=radius,
        records=float(n),
        curvature=curvature,
        hessian=Noisy((u * weight[:, None]).T @ u, 1e-9),
        directions=Noisy(u.T @ u, 1e-9),
    )


def theory(points: np.ndarray) -> np.ndarray:
    """Standard errors at the origin, for data with a diagonal Hessian there."""
    r = np.linalg.norm(points, axis=1)
    u = points / r[:, None]
    return np.sqrt((u**2).mean(axis=0) / len(points)) / ((1.0 - u**2) / r[:, None]).mean(axis=0)


def test_without_noise_the_covariance_is_that_of_the_theory():
    """H^-1 S H^-1/n for a Gaussian cloud in the plane: S = I/2, and H = E[1/r] I/2 with E[1/r] = sqrt(pi/2)."""
    points = gauss(200_000, 2)
    region = confidence_region(np.zeros(2), exact(points, 0.1), 0.95)
    deviation = np.sqrt(0.5) / (0.5 * np.sqrt(np.pi / 2.0)) / np.sqrt(200_000)
    assert region.covariance == pytest.approx(np.diag([deviation**2] * 2), rel=0.02, abs=0.02 * deviation**2)
    assert region.standard_errors == pytest.approx([deviation] * 2, rel=0.01)
    # A chi-square with two degrees of freedom has the tail exp(-q/2); the ball leaves 0.05 (0.52 + 1.75 0.05) outside.
    assert region.radius == pytest.approx(deviation * np.sqrt(-2.0 * np.log(0.030375)), rel=0.01)


@pytest.mark.parametrize("thickness", [0.03, 0.1, 0.3])
def test_across_a_thin_line_smoothing_does_not_hide_the_curvature(thickness):
    """With a radius far above the thickness, standard errors agree with the theory within a third."""
    points = gauss(200_000, 2) * [10.0, thickness]
    region = confidence_region(np.zeros(2), exact(points, 2.0), 0.95)
    assert region.standard_errors == pytest.approx(theory(points), rel=1 / 3)


def test_a_round_cloud_between_two_far_clusters_is_no_line():
    """Beyond the radius records lie along a line, and within it they form a disk: the theory holds within a tenth."""
    rng, n = np.random.default_rng(0), 200_000
    angle, clusters = rng.uniform(0.0, 2.0 * np.pi, size=n), 0.05 * rng.normal(size=(n, 2))
    disk = np.sqrt(rng.random(size=n)) * np.array([np.cos(angle), np.sin(angle)])
    clusters[:, 0] += 3.5 * rng.choice([-1.0, 1.0], size=n)
    points = np.where(rng.random(size=(n, 1)) < 0.35, disk.T, clusters)
    region = confidence_region(np.zeros(2), exact(points, 1.0), 0.95)
    assert region.standard_errors == pytest.approx(theory(points), rel=0.1)


def test_the_noise_of_the_gradient_widens_it():
    points = gauss(5000, 2)
    quiet, loud = (confidence_region(np.zeros(2), exact(points, 0.1, variance=v), 0.95) for v in (0.0, 2500.0))
    # S/n is I/10000 here, and the noise adds 2500/n^2 = 1/10000.
    assert loud.covariance == pytest.approx(2.0 * quiet.covariance, rel=0.03, abs=1e-5)
    assert loud.radius == pytest.approx(np.sqrt(2.0) * quiet.radius, rel=0.02)


@pytest.mark.parametrize(("n", "d"), [(200, 2), (300, 2), (600, 1), (3000, 2), (2000, 20)])
def test_the_plan_says_what_the_region_will_be(n, d):
    plan = dpmedian.plan(n, d, **BUDGET)
    region = released(gauss(n, d)).confidence_region()
    assert plan.region == ("ball" if region.covariance is None else "ellipsoid")
    assert (region.standard_errors is None) == (region.covariance is None)
    assert "confidence region" in str(plan)
    assert [stage.name for stage in plan.stages].count("directions") == (d > 1)


def test_without_inference_nothing_is_released_for_it_and_there_is_no_region():
    plan = dpmedian.plan(3000, 2, **BUDGET, inference=False)
    assert plan.region is None
    assert "directions" not in {stage.name for stage in plan.stages}
    release = released(gauss(3000, 2), inference=False)
    assert release.moments is None
    assert "region" not in repr(release)
    with pytest.raises(ValueError, match="made with inference=False"):
        release.confidence_region()


def test_a_method_that_cannot_give_a_region_says_so():
    release = released(gauss(300, 2), method="dpgd", radius=5.0)
    with pytest.raises(ValueError, match=r"method 'dpgd' does not release .*use 'adaptive'"):
        release.confidence_region()
    released(gauss(300, 2), method="dpgd", radius=5.0, inference=False)


def test_inference_is_true_or_false():
    with pytest.raises(TypeError, match="inference must be True or False, got 'yes'"):
        dpmedian.plan(300, 2, **BUDGET, inference="yes")


def test_any_level_at_no_further_cost():
    release = released(gauss(3000, 2))
    regions = [release.confidence_region(level) for level in (0.5, 0.8, 0.95, 0.99)]
    assert np.all(np.diff([region.radius for region in regions]) > 0.0)
    assert release.confidence_region(0.8).radius == regions[1].radius, "the draws are fixed"
    for level in (0.0, 1.0, 95, True, float("nan"), "0.95"):
        with pytest.raises(ValueError, match="level must be a number between 0 and 1"):
            release.confidence_region(level)


def test_a_region_contains_its_center_and_its_outline_and_nothing_far():
    for points in (gauss(3000, 2) * [1.0, 5.0], gauss(300, 2)):
        region = released(points).confidence_region()
        if region.covariance is not None:
            assert (region.covariance == region.covariance.T).all()
        assert region.contains(region.center)
        middle = region.center[:, None]
        for point in region.outline().T:
            assert region.contains(point + 1e-6 * (region.center - point))
            assert not region.contains(point - 1e-6 * (region.center - point))
        assert not region.contains(region.center + 1000.0 * region.radius)
        assert (np.abs(region.outline() - middle).max() < 2.0 * region.radius).all()
    with pytest.raises(ValueError, match=r"point must have shape \(2,\)"):
        region.contains([1.0])


def test_on_the_line_the_region_is_an_interval():
    region = released(gauss(3000, 1)).confidence_region()
    low, high = region.intervals[0]
    assert region.covariance.shape == (1, 1)
    assert high - low == pytest.approx(2.0 * region.radius)
    assert region.contains([low + 1e-9])
    assert not region.contains([low - 0.1 * region.radius])


def test_where_records_coincide_there_is_a_ball_and_no_ellipsoid():
    points = gauss(3000, 2)
    points[:1800] = 3.0
    release = released(points)
    region = release.confidence_region()
    assert region.covariance is None
    assert COINCIDENT in region.notes
    assert region.radius >= release.error_radius
    assert region.contains([3.0, 3.0])


def test_a_region_as_large_as_the_data_is_noted():
    assert LARGE in released(gauss(200, 2)).confidence_region(0.999).notes
    assert released(gauss(3000, 2)).confidence_region().notes == ()


@pytest.mark.parametrize(("n", "d"), [(3000, 2), (300, 2), (600, 1)])
def test_the_record_survives_json(n, d):
    release = released(gauss(n, d))
    moments = Moments.from_dict(json.loads(json.dumps(release.moments.to_dict())))
    again, first = (made.confidence_region(0.9) for made in (dpmedian.Release.from_json(release.to_json()), release))
    assert again.radius == first.radius
    assert np.array_equal(again.intervals, first.intervals)
    assert moments.to_dict() == release.moments.to_dict()


@pytest.mark.parametrize("scale", [1e-250, 1e-9, 1e200])
def test_it_scales_with_the_data(scale):
    points = gauss(3000, 2)
    region = released(scale * points).confidence_region()
    assert region.radius / scale == pytest.approx(0.06, rel=0.3)
    assert region.contains(np.zeros(2))
    assert not region.contains(np.full(2, scale))


def test_the_text_of_a_release_has_the_region_and_an_interval_for_each_coordinate():
    pandas = pytest.importorskip("pandas")
    release = released(pandas.DataFrame(gauss(3000, 2), columns=["east", "north"]))
    region = release.confidence_region()
    for text in (repr(release), release._repr_html_()):
        assert f"radius {region.radius:.4g}" in text
        assert f"{region.intervals[0, 0]:.6g} to {region.intervals[0, 1]:.6g}" in text


def test_what_a_region_needs_is_small_and_vanishes_with_many_records():
    def made(n: int, d: int, **options: object) -> tuple[Region, HessianPlan]:
        parameters = PublicParameters.of(n, d, rho=0.03, **options)
        gradients = 12 if n < 20_000 else 1
        return Region.of(parameters, 0.03, CONSTANTS, gradients, n), hessian_plan(parameters, CONSTANTS, 0.03, n)

    (few, few_hessian), (many, many_hessian), (none, none_hessian) = made(2000, 5), made(10**6, 5), made(200, 50)
    assert max(few_hessian.cost, none_hessian.cost) <= 0.02 * 0.03
    assert many_hessian.cost <= 0.005 * 0.03
    assert not none_hessian.moments
    assert none == Region(0.0, False, False)
    # Under replacement the directions are free; under add/remove they need a part of a gradient's budget.
    assert few.weight == many.weight == FREE_WEIGHT
    assert 0.1 < made(2000, 5, neighbours="add_remove")[0].weight <= FREE_WEIGHT
    assert made(10**6, 5, neighbours="add_remove")[0].weight < 0.2


def test_the_directions_get_what_the_plan_says():
    """The directions are released with the later gradients, on all records, and their total noise is the noise in the
    record.
    """
    n, d = 3000, 2
    plan = dpmedian.plan(n, d, **BUDGET)
    tape = Tape.record((3).to_bytes(32, "little"))
    result = plan.calibrated.run(ArraySource.of(gauss(n, d), plan.parameters), tape)
    found = [entry for entry in tape.entries() if entry[0] == "directions"]
    assert 5 <= len(found) <= next(stage for stage in plan.stages if stage.name == "directions").times
    noise = result.moments.directions.noise
    # Together they cost no more than rho, a part of which was spent before.
    assert noise >= 2.0 / FREE_WEIGHT / np.sqrt(2.0 * plan.cost.rho)
    # The trace of u u^T is 1, so the exact sum has the trace n, and the released one differs from it by noise.
    assert np.trace(result.moments.directions.matrix) == pytest.approx(n, abs=6.0 * np.sqrt(d) * noise)


@pytest.mark.slow
def test_it_covers_the_median_of_the_population():
    """Regions of 95 % and 80 % are computed for 200 fresh samples of a skewed population, with alpha = 1e-4 for each of
    four binomial tests. A region with the stated probability covers fewer than 176 of 200 with probability 7e-5 at 95
    %, fewer than 138 with probability 1e-4 at 80 %, and all 200 with probability 3e-5 at 95 %.
    """
    n, d = 2000, 2
    plan = dpmedian.plan(n, d, **BUDGET)
    # The median of independent exponentials is a multiple of (1, 1), by symmetry.
    many = np.random.default_rng(1).exponential(size=(10**6, d))
    median = np.full(d, dpmedian.nonprivate.geometric_median(many).mean())
    covered = np.zeros(3)
    for seed in range(200):
        points = np.random.default_rng([7, seed]).exponential(size=(n, d))
        result = plan.calibrated.run(ArraySource.of(points, plan.parameters), Tape.draw(seed.to_bytes(32, "little")))
        wide, narrow = (confidence_region(result.point, result.moments, level) for level in (0.95, 0.8))
        distance = np.linalg.norm(result.point - median)
        covered += [wide.contains(median), distance <= wide.radius, narrow.contains(median)]
    assert 176 <= covered[0] < 200
    assert 176 <= covered[1] < 200
    assert 138 <= covered[2] <= 188


def test_on_a_globe_the_region_is_one_of_longitude_and_latitude():
    """The cloud is at 60 degrees north, where a degree of longitude is half as long as at the equator, and lies across
    the date line.
    """
    rng = np.random.default_rng(0)
    arcs = rng.normal(size=(5000, 2))
    points = np.column_stack([np.remainder(180.0 + 2.0 * arcs[:, 0] + 180.0, 360.0) - 180.0, 60.0 + arcs[:, 1]])
    release = released(points, geometry="sphere")
    region = release.confidence_region()
    flat = released(arcs).confidence_region()
    assert region.radius == pytest.approx(flat.radius, rel=0.2)
    assert region.standard_errors == pytest.approx(flat.standard_errors * [2.0, 1.0], rel=0.3)
    assert region.contains([180.0, 60.0])
    assert region.contains([-180.0, 60.0])
    assert not region.contains([180.0 + 4.0 * region.radius, 60.0])
    again = dpmedian.Release.from_json(release.to_json()).confidence_region()
    assert np.array_equal(again.intervals, region.intervals)


def test_the_error_radius_does_not_depend_on_the_smoothing_of_a_precise_hessian():
    """With many records the smoothing radius is small, and the curvature a small part of the number of records."""

    def radius(smoothing: float) -> float:
        n, noise = 1e6, smoothing
        return error_radius(
            Moments(
                d=3,
                size=n,
                gradient_variance=100.0,
                radius=smoothing,
                records=n,
                curvature=0.8 * smoothing * n,
                curvature_noise=noise,
                hessian=Noisy(np.zeros((3, 3)), noise),
            )
        )

    assert radius(0.005) == pytest.approx(radius(0.5), rel=1e-3)


@pytest.mark.parametrize("largest", [1.0, 12.0, 2000.0], ids=["round", "one axis beyond the noise", "a soft axis"])
def test_in_many_dimensions_groups_of_eigenvalues_give_the_error_radius_of_all_eigenvectors(largest, monkeypatch):
    d, n, noise = 150, 1e5, 60.0
    rng = np.random.default_rng(0)
    sizes = np.concatenate([[largest], rng.uniform(0.5, 1.5, d - 1)])
    upper = np.triu(rng.normal(scale=noise / np.sqrt(2.0), size=(d, d)), 1)
    moments = Moments(
        d=d,
        size=n,
        gradient_variance=1600.0,
        radius=0.6,
        records=n,
        curvature=0.62 * n,
        curvature_noise=45.0,
        hessian=Noisy(
            np.diag(0.6 * n * sizes / sizes.sum()) + upper + upper.T + np.diag(rng.normal(scale=noise, size=d)), noise
        ),
        away=0.02,
    )
    grouped = error_radius(moments)
    monkeypatch.setattr("dpmedian.inference.error._MANY", d)
    monkeypatch.setattr("dpmedian.inference.error.FEWEST", 8000)
    assert grouped == pytest.approx(error_radius(moments), rel=0.02)
    if largest == 2000.0:
        round_cloud = dataclasses.replace(moments, hessian=Noisy(upper + upper.T, noise))
        assert grouped > 1.1 * error_radius(round_cloud)
