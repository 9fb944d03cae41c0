"""The log odds that few records form a cloud around the point, and not a cluster far away from the point."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dpmedian
from dpmedian._core import Tape
from dpmedian.mechanisms.distance import Counted, radius_of
from dpmedian.methods.adaptive.constants import CONSTANTS
from dpmedian.methods.adaptive.evidence import log_odds_of_a_cloud
from dpmedian.methods.adaptive.notes import DOUBTED
from dpmedian.methods.adaptive.queries import Gradient
from dpmedian.sources.array import ArraySource


def odds(points, scale, rng, signal):
    """The log odds that follow from noisy answers about these records, multiplied by `scale`, at the origin. The noise
    corresponds to n sqrt(rho/d) = `signal`.
    """
    n, d = points.shape
    theta = np.zeros(d)
    distances = np.linalg.norm(points - theta, axis=1)
    spread = float(np.quantile(distances, 0.4))
    quarter = math.ceil(4.0 * math.log2(spread))
    shift = 4 * math.frexp(scale)[1]
    quarters = quarter + rng.integers(-4, 5, size=32)
    within = np.array([(distances <= radius_of(int(k))).sum() for k in quarters])
    noise = 2.0 * n / signal
    counts = within - 0.5 * n + noise * rng.normal(size=32)
    factor = math.ldexp(1.0, shift // 4)
    counted = Counted(quarter + shift, factor * theta, quarters + shift, counts, noise)
    measured = []
    for _ in range(5):
        place = 0.3 * spread * rng.normal(size=d) / math.sqrt(d)
        offsets = place - points
        gradient = (offsets / np.linalg.norm(offsets, axis=1, keepdims=True)).sum(axis=0)
        deviation = 3.0 * n / signal / math.sqrt(d)
        measured.append(Gradient(factor * place, gradient + deviation * rng.normal(size=d), deviation**2))
    return log_odds_of_a_cloud(measured, [counted], factor * theta, quarter + shift, n, CONSTANTS)


@pytest.mark.parametrize("scale", [2.0**-900, 1.0, 2.0**900])
@pytest.mark.parametrize("d", [1, 2, 5, 30])
def test_the_odds_tell_a_cloud_from_a_place_far_away(d, scale):
    """With little noise the sign of the log odds is right in every dimension and at every scale."""
    rng = np.random.default_rng(d)
    cloud = rng.normal(size=(200, d))
    place = 1e-3 * cloud + np.eye(d)[0]
    assert odds(cloud, scale, rng, 60.0) > CONSTANTS.odds_doubted
    assert odds(place, scale, rng, 60.0) < 0.0


def test_the_odds_are_the_same_in_all_units():
    """Scaling by powers of two changes nothing at all."""
    points = np.random.default_rng(0).normal(size=(100, 3))
    found = {odds(points, scale, np.random.default_rng(1), 12.0) for scale in (2.0**-700, 1.0, 2.0**40)}
    assert len(found) == 1


@pytest.mark.parametrize("d", [1, 3, 60])
def test_a_gradient_of_zero_has_no_direction_but_odds(d):
    counted = Counted(0, np.zeros(d), np.arange(-4, 4), np.linspace(-20.0, 20.0, 8), 5.0)
    measured = [Gradient(np.full(d, 0.1), np.zeros(d), 4.0), Gradient(np.full(d, -0.1), np.full(d, -3.0), 4.0)]
    assert math.isfinite(log_odds_of_a_cloud(measured, [counted], np.zeros(d), 0, 50, CONSTANTS))


def test_the_odds_are_the_same_in_the_coordinates_of_what_is_spanned(monkeypatch):
    """Many dimensions are reduced to the span of all points and gradients, up to rounding."""
    points = np.random.default_rng(0).normal(size=(100, 40))
    reduced = odds(points, 1.0, np.random.default_rng(1), 20.0)
    monkeypatch.setattr("dpmedian.methods.adaptive.evidence._Answers._rotate", lambda self: None)
    assert odds(points, 1.0, np.random.default_rng(1), 20.0) == pytest.approx(reduced, rel=1e-9)


def released(plan, points, seed):
    """The result of a method, or None if it failed."""
    try:
        tape = Tape.draw(seed.to_bytes(32, "little"), plan.parameters.neighbours)
        return plan.calibrated.run(ArraySource.of(points, plan.parameters), tape)
    except dpmedian.ReleaseFailed:
        return None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "d", "runs"),
    [(101, 2, 60), *(pytest.param(n, d, 150, marks=pytest.mark.slow) for n, d in ((101, 2), (160, 5)))],
)
def test_few_records_far_away_are_lost_or_doubted_and_few_others_are(n, d, runs):
    """The signal n sqrt(rho/d) is 12. If one in a thousand points far from the data had no note, two of 150 would have
    none with probability 0.01. If one cloud in ten was lost, more than the allowed number would be lost with
    probability 0.001. At least 30 % of the clouds have no note.
    """
    plan = dpmedian.plan(n, d, epsilon=1.0, delta=1e-6, method="adaptive")
    far, near = [], []
    for seed in range(runs):
        cloud = np.random.default_rng([d, seed]).normal(size=(n, d))
        far.append(released(plan, 1e9 + cloud, seed))
        near.append(released(plan, cloud, seed))
    assert sum(result is not None and DOUBTED not in result.notes for result in far) <= 1
    assert sum(result is None for result in far) >= 0.8 * runs
    assert sum(result is None for result in near) <= {60: 14, 150: 27}[runs]
    assert sum(result is not None and DOUBTED not in result.notes for result in near) >= 0.3 * runs


@pytest.mark.slow
def test_far_records_of_a_private_number_are_doubted():
    """Runs with too few records continue if the noisy number is too large, and then gradients look short.

    The signal n sqrt(rho/d) is 16. Of about twenty points far from the data at most one has no note.
    """
    plan = dpmedian.plan(68, 2, epsilon=1.0, delta=1e-6, method="adaptive", neighbours="add_remove")
    found = [released(plan, 1e9 + np.random.default_rng([68, seed]).normal(size=(68, 2)), seed) for seed in range(400)]
    made = [result for result in found if result is not None]
    assert len(made) >= 10
    assert sum(DOUBTED not in result.notes for result in made) <= 1
