"""The guess of the time of a release, in plans, records and warnings."""

from __future__ import annotations

import numpy as np
import pytest

import dpmedian
from dpmedian.rates import pass_seconds, second_moment_seconds, volumetric_seconds

LOCALIZED = {"radius": 100.0, "resolution": 0.01}


@pytest.mark.parametrize(
    ("method", "options"),
    [("adaptive", {}), ("dpgd", {"radius": 100.0}), ("loc_dpgd", LOCALIZED), ("loc_cutting_plane", LOCALIZED)],
)
def test_a_plan_says_about_how_long_a_release_takes(method, options):
    small, large = (dpmedian.plan(n, 8, epsilon=1.0, delta=1e-6, method=method, **options) for n in (5000, 5_000_000))
    assert 0.0 < small.calibrated.reads.seconds < large.calibrated.reads.seconds
    for plan in (small, large):
        assert "processor time: about" in str(plan)
        assert "processor time: about" in plan._repr_html_()
        assert plan.to_dict()["reads"]["seconds"] == plan.calibrated.reads.seconds


def test_second_moments_and_centers_are_what_takes_long_in_many_dimensions():
    assert second_moment_seconds(100_000, 768) > 10.0 * pass_seconds(100_000, 768, 1.0)
    # Measured: 27 ms for one of the first cuts in 200 dimensions, and more for later cuts.
    assert 0.02 < volumetric_seconds(200, 1) < 0.1


@pytest.mark.filterwarnings("ignore::dpmedian.LikelyFailureWarning")
def test_a_run_of_more_than_a_minute_warns_before_it_begins():
    """The cutting planes for (3000, 200) take minutes. The records have a wrong shape, so the run ends after the
    warning.
    """
    plan = dpmedian.plan(3000, 200, epsilon=1.0, delta=1e-6, method="loc_cutting_plane", **LOCALIZED)
    assert plan.calibrated.reads.seconds > 60.0
    shape = pytest.raises(ValueError, match="199")
    with pytest.warns(dpmedian.LongRunWarning, match="minutes of the processor's time"), shape:
        plan.run(np.zeros((3000, 199)))


@pytest.mark.filterwarnings("ignore::dpmedian.LikelyFailureWarning")
def test_a_draw_of_more_than_a_minute_warns_and_promises_no_progress():
    options = {"method": "inverse_sensitivity", "radius": 100.0, "resolution": 0.01}
    plan = dpmedian.plan(100_000_000, 3, epsilon=1.0, **options)
    assert plan.calibrated.seconds > 60.0
    with (
        pytest.warns(dpmedian.LongRunWarning, match="cannot show its progress"),
        pytest.raises(ValueError, match="199"),
    ):
        plan.run(np.zeros((199, 3)))


def test_a_short_run_says_nothing():
    plan = dpmedian.plan(2000, 2, epsilon=1.0, delta=1e-6)
    assert plan.calibrated.reads.seconds < 1.0
    plan.run(np.random.default_rng(0).normal(size=(2000, 2)))


def test_stated_memory_has_no_second_moments_where_there_are_none():
    """In more than 4000 dimensions there is no Hessian. 10^4 records in 10^4 dimensions need one sorted copy, 0.8
    GB.
    """
    memory = dpmedian.plan(10_000, 10_000, epsilon=1.0, delta=1e-6, method="adaptive").calibrated.reads.memory
    assert 8e8 < memory < 1e9
