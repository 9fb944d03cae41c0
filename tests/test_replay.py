"""Replay at the privacy boundary: with the noisy outputs of a run, neighbors must request the same releases."""

import math

import numpy as np
import pytest

import dpmedian
from conftest import neighbours, opened
from dpmedian.sources.array import ArraySource
from dpmedian.statistics import Statistic
from dpmedian.tape import Tape


def cloud(n: int, d: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, d)) + 3.0
    points[: n // 10] = points[n // 10]
    return points


@pytest.mark.parametrize(("n", "d"), [(2, 1), (30, 3), (200, 17)])
def test_dpgd_replays_on_neighbours(replay, n, d):
    points = cloud(n, d, seed=d)
    plan = dpmedian.plan(n, d, rho=0.5, method="dpgd", radius=20.0)
    assert replay(plan, points, neighbours(points, 300, np.random.default_rng(d))) == plan.calibrated.gradient.releases


def test_dpgd_replays_where_a_record_lies_on_the_iterate(replay):
    points = np.zeros((50, 2))
    plan = dpmedian.plan(50, 2, rho=0.5, method="dpgd", radius=20.0)
    replay(plan, points, neighbours(points, 100, np.random.default_rng(0)))


def test_the_claimed_cost_is_that_of_the_recorded_releases():
    """The ledger's cost must be the sum of D^2/(2 sigma^2) over what really went through the tape."""
    points = cloud(300, 5, seed=1)
    plan = dpmedian.plan(300, 5, epsilon=1.0, delta=1e-6, method="dpgd", radius=20.0)
    tape = Tape.record(bytes(32))
    plan.calibrated.run(ArraySource.of(points, plan.parameters), tape)
    spent = math.fsum((sensitivity / sigma) ** 2 / 2.0 for _, sensitivity, sigma, _, _ in tape.entries())
    assert spent == pytest.approx(plan.cost.rho, rel=1e-9)


def test_the_sensitivity_of_a_gradient_is_reached():
    """A record that moves through theta turns its unit vector around, so the declared sensitivity is tight."""
    points, other = np.array([[1.0, 0.0], [5.0, 5.0]]), np.array([[-1.0, 0.0], [5.0, 5.0]])
    plan = dpmedian.plan(2, 2, rho=0.5, method="dpgd", radius=20.0)
    bits = plan.calibrated.gradient.bits
    question = Statistic("gradient", theta=np.zeros(2), bits=bits)
    gradients = [opened(ArraySource.of(data, plan.parameters).answer(question)) for data in (points, other)]
    moved = float(np.linalg.norm((gradients[0] - gradients[1]).astype(float)))
    assert 2.0 * 2.0**bits <= moved <= plan.calibrated.gradient.lattice_sensitivity


def test_a_replay_on_a_stranger_is_refused(replay):
    points = cloud(30, 3, seed=0)
    plan = dpmedian.plan(30, 3, rho=0.5, method="dpgd", radius=20.0)
    with pytest.raises(RuntimeError, match="stated sensitivity"):
        replay(plan, points, [-points])


def test_every_noise_of_a_run_is_fresh():
    points = cloud(100, 4, seed=2)
    plan = dpmedian.plan(100, 4, rho=5.0, method="dpgd", radius=20.0)
    tape = Tape.record(bytes(32))
    plan.calibrated.run(ArraySource.of(points, plan.parameters), tape)
    noise = [tuple(noisy - exact) for _, _, _, exact, noisy in tape.entries()]
    assert len(set(noise)) == len(noise) > 1
