"""Pictures show what the release and the plan say, and private data are marked as private."""

import dataclasses
import sys

import numpy as np
import pytest

import dpmedian

plt = pytest.importorskip("matplotlib.pyplot")
plt.switch_backend("Agg")

POINTS = np.random.default_rng(0).normal(size=(400, 2))
DPGD = {"epsilon": 1.0, "delta": 1e-6, "method": "dpgd", "radius": 10.0}


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.fixture
def release():
    made = dpmedian.geometric_median(POINTS, **DPGD, seed=1)
    return dataclasses.replace(made, error_radius=0.25)


def texts(ax):
    return [*(text.get_text() for text in ax.texts), *(text.get_text() for text in ax.get_legend().get_texts())]


def test_a_release_shows_the_point_its_error_circle_and_the_warning(release):
    ax = release.plot(POINTS)
    lines = {line.get_label(): line.get_xydata() for line in ax.lines}
    assert np.array_equal(lines["private median"][0], release.point)
    circle = lines["predicted error, radius 0.25"] - release.point
    assert np.allclose(np.linalg.norm(circle, axis=1), 0.25)
    assert "contains private data: do not publish" in texts(ax)
    ax.figure.canvas.draw()


def test_a_small_error_circle_is_shown_again_enlarged(release):
    small = dataclasses.replace(release, error_radius=1e-3)
    (zoom,) = [child for child in small.plot(POINTS).child_axes]
    assert zoom.get_xlim() == pytest.approx(release.point[0] + np.array([-1.6e-3, 1.6e-3]))
    assert release.plot(POINTS).child_axes == []


def test_outliers_do_not_shrink_the_picture_and_are_counted(release):
    points = POINTS.copy()
    points[:20] = 1e6
    ax = release.plot(points)
    assert ax.get_xlim()[1] < 10.0
    hidden = np.sum(np.max(np.abs(points - release.point), axis=1) > ax.get_xlim()[1] - release.point[0])
    assert f"records (private), {hidden} more outside" in texts(ax)


def test_a_frame_names_the_axes_and_an_axes_can_be_given(release):
    pandas = pytest.importorskip("pandas")
    _, ax = plt.subplots()
    assert release.plot(pandas.DataFrame(POINTS, columns=["east", "north"]), ax=ax) is ax
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("east", "north")


def test_identical_records_can_be_drawn():
    points = np.ones((400, 2))
    dpmedian.geometric_median(points, **DPGD, seed=1).plot(points).figure.canvas.draw()


def test_points_of_another_dimension_are_refused(release):
    with pytest.raises(ValueError, match=r"the release has d = 2, but the points have shape \(400, 3\)"):
        release.plot(np.zeros((400, 3)))


def of_dimension(d, n=400):
    points = np.random.default_rng(0).normal(size=(n, d))
    made = dpmedian.geometric_median(points, **{**DPGD, "epsilon": 9.0}, seed=1)
    return dataclasses.replace(made, error_radius=0.25), points


def test_many_records_are_drawn_as_a_density(release):
    from matplotlib.collections import PathCollection, PolyCollection

    points = np.random.default_rng(0).normal(size=(20_000, 2))
    dense = release.plot(points)
    (bins,) = [part for part in dense.collections if isinstance(part, PolyCollection)]
    left, right = dense.get_xlim()
    low, high = dense.get_ylim()
    inside = (np.abs(points[:, 0] - (left + right) / 2) <= (right - left) / 2) & (
        np.abs(points[:, 1] - (low + high) / 2) <= (high - low) / 2
    )
    assert np.sum(bins.get_array()) == np.sum(inside)
    assert any("records (private)" in text for text in texts(dense))
    sparse = release.plot(POINTS)
    assert not [part for part in sparse.collections if isinstance(part, PolyCollection)]
    assert sum(len(part.get_offsets()) for part in sparse.collections if isinstance(part, PathCollection)) > 300
    dense.figure.canvas.draw()


def test_a_line_shows_a_histogram_the_point_and_its_interval():
    release, points = of_dimension(1)
    ax = release.plot(points)
    left, right = ax.get_xlim()
    counted = sum(bar.get_height() for bar in ax.patches[:60])
    assert counted == np.sum((points >= left) & (points <= right))
    assert any(f"private median: {release.point[0]:.6g}" in text for text in texts(ax))
    assert "contains private data: do not publish" in texts(ax)
    ax.figure.canvas.draw()


@pytest.mark.parametrize("d", [3, 50])
def test_many_coordinates_have_intervals(d):
    release, points = of_dimension(d)
    ax = release.plot(points)
    shown = min(d, 40)
    (marks,) = [line for line in ax.lines if line.get_label() == "private median"]
    assert np.array_equal(marks.get_ydata(), release.point[:shown])
    (bars,) = [container for container in ax.containers if container.has_yerr]
    assert np.allclose(np.diff([segment[:, 1] for segment in bars[2][0].get_segments()]), 0.5)
    assert len(ax.get_xticklabels()) == shown
    assert ("the first 40 of 50" in ax.get_xlabel()) is (d == 50)
    ax.figure.canvas.draw()


@pytest.mark.parametrize("d", [1, 2, 5])
def test_a_picture_without_points_shows_what_was_released_only(d):
    release, _ = of_dimension(d)
    ax = release.plot()
    assert not [text for text in texts(ax) if "private data" in text or "records" in text]
    ax.figure.canvas.draw()


@pytest.mark.parametrize("budget", [{"epsilon": 1.0, "delta": 1e-6}, {"rho": 0.1}])
def test_a_plan_shows_its_prediction_among_those_of_other_budgets_and_sizes(budget):
    plan = dpmedian.plan(2000, 2, method="dpgd", radius=10.0, **budget)
    ax = plan.plot()
    *curves, mark = ax.lines
    assert [line.get_label() for line in curves] == ["n = 500", "n = 2,000", "n = 8,000"]
    value = budget.get("epsilon", budget.get("rho"))
    assert mark.get_xydata().tolist() == [[value, plan.prediction.excess_distance_bound]]
    middle = curves[1].get_xydata()
    assert np.interp(value, middle[:, 0], middle[:, 1]) == pytest.approx(
        plan.prediction.excess_distance_bound, rel=1e-6
    )
    # More data and more budget never make the prediction worse.
    assert all(np.all(np.diff(line.get_ydata()) <= 1e-9) for line in curves)
    ax.figure.canvas.draw()


def test_without_matplotlib_the_extra_is_named(release, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"dpmedian\[plot\]"):
        release.plot(POINTS)


def test_no_picture_tells_a_private_number_of_records():
    """The title of a release has the noisy size. A plan without a guess is drawn for the sizes that it shows."""
    hidden = {"epsilon": 1.0, "delta": 1e-6, "neighbours": "add_remove"}
    points = np.random.default_rng(0).normal(size=(1234, 2))
    made = dpmedian.geometric_median(points, **hidden, seed=1)
    title = made.plot(points).get_title()
    assert f"noisy size {made.size}" in title
    assert "1234" not in title
    assert texts(dpmedian.plan(None, 2, **hidden).plot()) == ["n = 1,000", "n = 10,000", "n = 100,000"]
    assert any(text.startswith("this plan") for text in texts(dpmedian.plan(3000, 2, **hidden).plot()))
