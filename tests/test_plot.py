"""Pictures: what they show is what the release and the plan say, and private data are marked as such."""

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


def test_only_two_dimensions_can_be_drawn(release):
    with pytest.raises(ValueError, match="two dimensions"):
        release.plot(np.zeros((400, 3)))


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
