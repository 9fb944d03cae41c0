"""The predictions of plans, the method that `auto` takes, and releases that are refused before anything is spent."""

from __future__ import annotations

import contextlib
import math
import re
from dataclasses import replace

import numpy as np
import pytest

import dpmedian
from dpmedian import nonprivate
from dpmedian.methods.contract import USELESS, Prediction, cloud_curvature
from dpmedian.methods.registry import METHODS
from dpmedian.sources.array import ArraySource
from dpmedian.tape import Tape

ASKED = {"epsilon": 1.0, "delta": 1e-6}
RELATIONS = ("replace", "add_remove")


def possible(n: int, d: int, **given) -> dict[str, dpmedian.Plan]:
    """The plans of all methods that these arguments allow."""
    found = {}
    for name, method in METHODS.items():
        used = {key: value for key, value in given.items() if key in method.uses or key == "neighbours"}
        if method.needs <= used.keys() and (d <= 3 or name != "inverse_sensitivity"):
            found[name] = dpmedian.plan(n, d, **ASKED, **used, method=name)
    return found


def is_refused(plan: dpmedian.Plan) -> bool:
    try:
        plan.refuse_if_hopeless()
    except ValueError:
        return True
    return False


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize(("n", "d"), [(100, 1), (300, 2), (150, 3), (200, 5), (400, 20)])
def test_auto_takes_the_method_that_is_nowhere_far_above_the_best(n, d, neighbours):
    given = {"radius": 50.0, "resolution": 0.05, "neighbours": neighbours}
    plans = {name: plan for name, plan in possible(n, d, **given).items() if not is_refused(plan)}
    chosen = dpmedian.plan(n, d, **ASKED, **given)
    spreads = chosen.parameters.assumed_core_radii
    # A resolution is at most a tenth of the core radius; a radius is between ten and a thousand core radii.
    assert spreads == pytest.approx((0.5, math.sqrt(2.5), 5.0))
    errors = {
        name: np.array([plan.calibrated.predict(spread).expected_error(spread) for spread in spreads])
        for name, plan in plans.items()
    }
    least = np.min(list(errors.values()), axis=0)
    worst = {name: float(np.max(error / least)) for name, error in errors.items()}
    assert worst[chosen.method] == min(worst.values())
    assert len(worst) > 1


@pytest.mark.parametrize("given", [{}, {"resolution": 0.01}])
@pytest.mark.parametrize("d", [1, 2, 3, 10])
def test_the_choice_does_not_depend_on_the_unit_of_length(d, given):
    for n in (75, 150, 300, 1000):
        small = dpmedian.plan(n, d, **ASKED, radius=10.0, **given)
        large = dpmedian.plan(n, d, **ASKED, radius=1e7, **{key: 1e6 * value for key, value in given.items()})
        assert small.method == large.method
        assert is_refused(small) == is_refused(large)
        assert small.prediction.failure == pytest.approx(large.prediction.failure, rel=1e-6, abs=1e-12)


def test_a_failure_counts_as_one_core_radius_a_silent_one_as_three_and_no_error_as_more():
    assert Prediction(relative_error=0.1, absolute_error=1.0).expected_error(2.0) == pytest.approx(1.2)
    assert Prediction(relative_error=0.0, failure=0.25).expected_error(2.0) == pytest.approx(0.5)
    assert Prediction(relative_error=0.0, failure=0.25, silent=0.25).expected_error(2.0) == pytest.approx(1.5)
    assert Prediction(relative_error=100.0).expected_error(2.0) == pytest.approx(2.0 * USELESS)
    assert Prediction(relative_error=0.0, uneven=1.0).expected_error(2.0) == pytest.approx(0.25 * 2.0 * USELESS)
    assert Prediction().expected_error(1.0) == USELESS


@pytest.mark.parametrize("d", [1, 2, 3, 5, 20])
def test_the_curvature_of_a_cloud_is_that_of_a_normal_distribution(d):
    points = np.random.default_rng(d).normal(size=(400_000, d))
    distance = np.linalg.norm(points, axis=1)
    spread = np.quantile(distance, 0.4)
    # On the line: the density at the median, estimated from the records nearest to it.
    exact = np.mean(distance < 0.05) / 0.05 * spread if d == 1 else (1.0 - 1.0 / d) * np.mean(1.0 / distance) * spread
    assert cloud_curvature(d) == pytest.approx(exact, rel=0.04)


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("d", [1, 2, 3, 10, 300])
@pytest.mark.parametrize(
    "given",
    [
        {"method": "dpgd", "radius": 60.0},
        {"method": "adaptive"},
        {"method": "loc_dpgd", "radius": 60.0, "resolution": 0.1},
        {"radius": 60.0},
        {"radius": 60.0, "resolution": 0.1},
        {"radius": 1e4, "resolution": 0.1, "failure_probability": 0.8},
    ],
)
def test_a_refusal_names_the_records_that_would_do(d, neighbours, given):
    """This number is accepted, and a number smaller by a tenth is not accepted, by the same method, or by `auto` with
    any method.
    """
    n = 4 if d < 100 else 50
    plan = dpmedian.plan(n, d, **ASKED, **given, neighbours=neighbours)
    ledger = dpmedian.Ledger(**ASKED, neighbours=neighbours)
    with pytest.raises(ValueError, match=r"refused before spending.*about \d+ would do") as refused:
        plan.run(np.zeros((n, d)), ledger=ledger)
    assert not ledger.entries
    found = re.search(r"about (\d+) would do", str(refused.value))
    assert found is not None
    enough = int(found.group(1))
    assert not is_refused(dpmedian.plan(enough, d, **ASKED, **given, neighbours=neighbours))
    assert is_refused(dpmedian.plan(math.floor(0.9 * enough), d, **ASKED, **given, neighbours=neighbours))


@pytest.mark.parametrize("method", ["auto", "loc_dpgd", "loc_cutting_plane", "inverse_sensitivity"])
def test_the_required_number_of_records_is_found_though_fewer_would_fail(method):
    given = {"method": method, "radius": 100.0, "resolution": 0.1}
    strict, loose = (
        dpmedian.required_n(2, excess=0.1, **ASKED, **given, failure_probability=beta) for beta in (0.001, 0.4)
    )
    assert loose < strict
    assert dpmedian.plan(strict, 2, **ASKED, **given).prediction.failure <= 0.001
    assert dpmedian.plan(strict - 1, 2, **ASKED, **given).prediction.failure > 0.001


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("d", [1, 2, 10, 100])
def test_a_mean_iterate_that_is_the_center_is_refused(d, neighbours):
    """One step of descent returns its start, for any data."""
    n = 2
    while dpmedian.plan(2 * n, d, **ASKED, method="dpgd", radius=1.0, neighbours=neighbours).stages[-1].releases == 1:
        n *= 2
    with pytest.raises(ValueError, match=r"refused before spending: method 'dpgd' would"):
        dpmedian.plan(n, d, **ASKED, method="dpgd", radius=1.0, neighbours=neighbours).refuse_if_hopeless()


def test_a_failure_that_is_allowed_is_not_refused():
    plans = [dpmedian.plan(70, 2, **ASKED, method="adaptive", failure_probability=beta) for beta in (0.05, 0.5, 0.9)]
    assert 0.5 < plans[0].prediction.failure < 0.9
    assert [is_refused(plan) for plan in plans] == [True, True, False]


def test_auto_passes_over_a_plan_that_would_be_refused():
    """With one step the error of dpgd is that of the center. adaptive is refused, too, and another method is not."""
    given = {"radius": 10.0, "resolution": 0.01}
    assert is_refused(dpmedian.plan(25, 1, **ASKED, **given, method="adaptive"))
    chosen = dpmedian.plan(25, 1, **ASKED, **given)
    assert chosen.method == "inverse_sensitivity"
    assert not is_refused(chosen)


# Cases between certain success and certain failure, and far on either side: radius, resolution, d, n.
LOCALIZED = [
    ("loc_cutting_plane", 1e5, 0.05, 2, 150),
    ("loc_cutting_plane", 1e10, 0.05, 2, 200),
    ("loc_cutting_plane", 1e10, 0.05, 2, 500),
    ("loc_dpgd", 1e5, 0.05, 2, 150),
    ("loc_dpgd", 1e10, 0.05, 2, 300),
    ("loc_cutting_plane", 1e15, 0.05, 2, 400),
    ("adaptive", 1e6, 0.05, 5, 150),
    ("adaptive", 1e10, 0.05, 5, 250),
    ("adaptive", 1e10, 0.05, 5, 300),
    ("inverse_sensitivity", 1e3, 0.1, 2, 75),
    ("inverse_sensitivity", 1e3, 0.1, 3, 100),
    ("inverse_sensitivity", 1e3, 0.1, 2, 150),
]


def measured(plan: dpmedian.Plan, runs: int) -> tuple[np.ndarray, float]:
    """Distances to the median over new clouds, in core radii, infinite for failed runs, and the mean core radius."""
    n, d, radius = plan.n, plan.d, plan.parameters.radius
    errors, spreads = np.full(runs, math.inf), np.empty(runs)
    for seed in range(runs):
        rng = np.random.default_rng([n, d, seed])
        away = rng.normal(size=d)
        away *= rng.uniform(0.5, 1.5) * radius / 3.0 / np.linalg.norm(away)
        points = rng.normal(size=(n, d)) + away
        spreads[seed] = np.quantile(np.linalg.norm(points - away, axis=1), 0.4)
        with contextlib.suppress(dpmedian.ReleaseFailed):
            source, tape = ArraySource.of(points, plan.parameters), Tape.draw(seed.to_bytes(32, "little"))
            median = nonprivate.geometric_median(points)
            errors[seed] = np.linalg.norm(plan.calibrated.run(source, tape).point - median) / spreads[seed]
    return errors, float(spreads.mean())


# Steps that noise keeps away from the middle, few long steps, cuts of a large ball, and a coarse resolution.
PREDICTED = [
    ("loc_dpgd", 1e3, 0.1, 5, 150),
    ("loc_dpgd", 15.0, 0.01, 20, 200),
    ("loc_cutting_plane", 40.0, 0.01, 20, 300),
    ("loc_cutting_plane", 100.0, 0.01, 2, 500),
    ("dpgd", 10.0, None, 2, 100),
    ("dpgd", 100.0, None, 5, 1000),
    ("inverse_sensitivity", 100.0, 0.1, 1, 200),
    ("adaptive", 100.0, None, 1, 100),
    ("adaptive", 100.0, None, 20, 400),
]


@pytest.mark.slow
@pytest.mark.parametrize(("method", "radius", "resolution", "d", "n"), PREDICTED)
def test_the_predicted_error_is_right_within_a_factor(method, radius, resolution, d, n):
    """The mean of 60 runs with fixed seeds has a relative standard error of at most a sixth."""
    given = {"radius": radius} if resolution is None else {"radius": radius, "resolution": resolution}
    plan = dpmedian.plan(n, d, **ASKED, method=method, **given)
    errors, spread = measured(plan, 60)
    expected = replace(plan.calibrated.predict(spread), uneven=0.0).expected_error(spread) / spread
    error = np.mean(np.where(np.isinf(errors), 1.0, np.minimum(errors, USELESS)))
    assert 1.0 / 1.5 < expected / error < 1.5


@pytest.mark.slow
@pytest.mark.parametrize(("method", "radius", "resolution", "d", "n"), LOCALIZED)
def test_predictions_know_how_often_a_search_is_lost_within_a_large_ball(method, radius, resolution, d, n):
    """In 40 runs on new clouds, the rate of failed or useless runs is within 0.25 of the predicted rate.

    If the prediction is right, the test fails with a probability of at most 2 exp(-2 * 40 * 0.25^2) < 0.014; seeds are
    fixed.
    """
    plan = dpmedian.plan(n, d, **ASKED, method=method, radius=radius, resolution=resolution)
    errors, spread = measured(plan, 40)
    assert abs(np.mean(errors > USELESS) - plan.calibrated.predict(spread).failure) < 0.25
