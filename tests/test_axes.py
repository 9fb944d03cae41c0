"""Axes and shape of the data: without noise they are found to first order, and noise is not mistaken for an axis."""

import math

import numpy as np
import pytest

import dpmedian
from dpmedian.inference import Moments, Noisy, axes_of, shape_of


def moments_of(points, noise=0.0, rng=None):
    """The moments of directions from the origin, with noise of this standard deviation on the diagonal."""
    units = points / np.linalg.norm(points, axis=1, keepdims=True)
    n, d = points.shape
    matrix = units.T @ units
    if noise:
        wide = rng.normal(size=(d, d)) * noise
        matrix = matrix + (wide + wide.T) / 2.0
    return Moments(d=d, size=n, gradient_variance=0.0, directions=Noisy(matrix, max(noise, 1e-9)))


def angle(first, second):
    return math.degrees(math.acos(min(1.0, abs(float(first @ second)))))


def test_bounds_of_angles_hold_in_about_19_of_20_runs():
    """With a coverage of 95 %, fewer than 175 or all of 200 bounds hold with probability below 1e-4."""
    rng, covered, listed = np.random.default_rng(0), 0, 0
    deviations = np.array([3.0, 1.0, 1.0, 1.0])
    for _ in range(200):
        turn, _ = np.linalg.qr(rng.normal(size=(4, 4)))
        points = (rng.normal(size=(2000, 4)) * deviations) @ turn.T
        found = axes_of(moments_of(points, 60.0, rng))
        listed += len(found)
        covered += sum(angle(v, turn[:, 0]) <= bound for v, bound in zip(found.vectors, found.angles, strict=True))
    assert listed == 200
    assert 175 <= covered < 200, "bounds that always hold would be too wide"


def test_isotropic_data_rarely_show_an_axis():
    """If one run in fifty showed an axis, 12 of 200 runs would show one with probability below 1e-3."""
    rng = np.random.default_rng(1)
    for d in (2, 5, 20):
        shown = sum(len(axes_of(moments_of(rng.normal(size=(1000, d)), 20.0, rng))) > 0 for _ in range(200))
        assert shown < 12, d


def test_two_axes_of_equal_length_are_not_told_apart():
    rng = np.random.default_rng(2)
    points = rng.normal(size=(3000, 5)) * [3.0, 3.0, 1.0, 1.0, 1.0]
    assert len(axes_of(moments_of(points, 30.0, rng))) == 0


def test_the_shape_of_elliptical_data_does_not_depend_on_their_distances():
    rng = np.random.default_rng(3)
    deviations = np.array([5.0, 2.0, 1.0])
    points = rng.normal(size=(400_000, 3)) * deviations
    heavy = points / rng.chisquare(1, size=(400_000, 1))
    expected = deviations / math.sqrt(np.mean(deviations**2))
    for sample in (points, heavy):
        assert shape_of(moments_of(sample)).standard_deviations == pytest.approx(expected, rel=0.02)
    shape = shape_of(moments_of(points))
    assert np.trace(shape.matrix) == pytest.approx(3.0)
    assert angle(shape.vectors[0], np.eye(3)[0]) < 1.0


def test_axes_of_a_release_cost_nothing_and_survive_its_record():
    rng = np.random.default_rng(4)
    points = rng.normal(size=(5000, 3)) * [4.0, 1.0, 1.0] + 100.0
    release = dpmedian.geometric_median(points, epsilon=1.0, delta=1e-6, seed=1)
    found = release.axes()
    assert angle(found.vectors[0], np.eye(3)[0]) <= found.angles[0] < 10.0
    again = dpmedian.Release.from_json(release.to_json())
    assert again.axes().vectors.tolist() == found.vectors.tolist()
    assert repr(found).startswith("Axes: 1 of 3 stand out\n  1. share 0.")
    assert repr(release.shape()).startswith("Shape: relative standard deviations [")
    with pytest.raises(ValueError, match="read-only"):
        found.vectors[0, 0] = 0.0


def test_axes_on_a_globe_are_east_and_north():
    rng = np.random.default_rng(5)
    positions = np.array([10.0, 60.0]) + rng.normal(size=(5000, 2)) * [0.1, 0.2]  # 0.05 and 0.2 degrees of arc
    release = dpmedian.geometric_median(positions, epsilon=1.0, delta=1e-6, geometry="sphere", seed=1)
    found = release.axes()
    assert found.vectors.shape == (1, 2)
    assert angle(found.vectors[0], np.array([0.0, 1.0])) < 5.0
    assert release.shape().standard_deviations[0] / release.shape().standard_deviations[1] == pytest.approx(
        4.0, rel=0.2
    )


def test_a_release_without_directions_says_what_they_need():
    points = np.random.default_rng(6).normal(size=(2000, 2))
    release = dpmedian.geometric_median(points, epsilon=1.0, delta=1e-6, inference=False, seed=1)
    for ask in (release.axes, release.shape):
        with pytest.raises(ValueError, match="inference=True"):
            ask()


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_a_share_of_the_budget_shows_axes_that_free_directions_do_not(relation, replay):
    """Ten degrees are twice the median error that `benches/axes.py` prints."""
    rng = np.random.default_rng(4)
    points = rng.normal(size=(2000, 20)) * ([4.0, 2.5] + [1.0] * 18)
    budget = {"epsilon": 1.0, "delta": 1e-6, "neighbours": relation}
    plain = dpmedian.geometric_median(points, **budget, seed=1)
    release = dpmedian.geometric_median(points, **budget, axes=0.2, seed=1)
    found = release.axes()
    assert angle(found.vectors[0], np.eye(20)[0]) < 10.0
    assert found.angles[0] < 0.7 * (plain.axes().angles[0] if len(plain.axes()) else 45.0)
    assert release.cost.rho == pytest.approx(plain.cost.rho)
    assert [text for text in dpmedian.verify(release).wrong if "seed" not in text] == []
    again = dpmedian.Release.from_json(release.to_json())
    assert np.array_equal(again.axes().vectors, found.vectors)
    made = dpmedian.plan(300, 2, rho=2.0, axes=0.2, neighbours=relation)
    assert "one, at the released point" in {stage.rule for stage in made.stages}
    cloud = rng.normal(size=(300, 2))
    others = [cloud[:-1]] if relation == "add_remove" else [np.vstack([cloud[:-1], [[1e9, 0.0]]])]
    assert replay(made, cloud, others) >= 10


def test_a_share_for_axes_that_cannot_be_used_is_refused():
    for d, wrong in ((3, {"axes": 0.6}), (3, {"axes": 0.1, "inference": False}), (1, {"axes": 0.1})):
        with pytest.raises(ValueError, match="axes"):
            dpmedian.plan(2000, d, rho=0.1, **wrong)
    with pytest.raises(ValueError, match="'dpgd' does not use axes="):
        dpmedian.plan(2000, 3, rho=0.1, axes=0.1, method="dpgd", radius=5.0)


def test_the_shape_of_a_few_long_axes_is_not_that_of_the_noise():
    """Noise makes the eighteen equal eigenvalues unequal. The two large ones must not lead to small estimates of the
    others.
    """
    rng, ratios = np.random.default_rng(6), []
    for _ in range(20):
        points = rng.normal(size=(2000, 20)) * ([4.0, 2.5] + [1.0] * 18)
        found = shape_of(moments_of(points, 30.0, rng)).standard_deviations
        ratios.append(found[0] / found[-1] / 4.0)
    assert np.median(ratios) == pytest.approx(1.0, abs=0.1)
    assert max(ratios) < 1.3
