"""The Hessian as a run uses it: the directions that stand out of its noise, and the regression over all gradients."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpmedian.mechanisms.hessian import symmetric
from dpmedian.methods.adaptive.belief import Belief, HessianModel
from dpmedian.methods.adaptive.constants import CONSTANTS
from dpmedian.methods.adaptive.queries import MANY_DIMENSIONS, Gradient
from dpmedian.postprocess import semicircle, spikes, stands_out, without_noise


def noisy(d: int, rng: np.random.Generator, noise: float = 3.0) -> np.ndarray:
    """The noise of a released symmetric matrix: this standard deviation on the diagonal, and 1/sqrt(2) of it
    elsewhere.
    """
    drawn = rng.normal(size=(d, d)) * noise
    return (drawn + drawn.T) / 2.0


@pytest.mark.parametrize("d", [5, 40, 200])
def test_a_triangle_becomes_a_matrix_without_the_factor_off_the_diagonal(d):
    matrix = noisy(d, np.random.default_rng(d))
    scaled = matrix * np.where(np.eye(d, dtype=bool), 1.0, math.sqrt(2.0))
    np.testing.assert_allclose(symmetric(scaled[np.triu_indices(d)], d), matrix, rtol=1e-15)


@pytest.mark.slow
@pytest.mark.parametrize("d", [130, 200])
def test_noise_rarely_stands_out_and_a_direction_twice_as_large_always_does(d):
    """Noise exceeds its mean by 2.5 standard deviations in 0.6 % of the cases. More than 4 of 100 cases do so with
    probability 4e-4.
    """
    rng = np.random.default_rng(d)
    false = sum(stands_out(noisy(d, rng) + 7.0 * np.eye(d), 3.0) for _ in range(100))
    assert false <= 4
    edge = 3.0 * math.sqrt(2.0 * d)
    for _ in range(20):
        direction = rng.normal(size=d)
        direction /= np.linalg.norm(direction)
        seen = noisy(d, rng) + 2.0 * edge * np.outer(direction, direction)
        assert stands_out(seen, 3.0)
        values, vectors, found_edge = without_noise(seen, 3.0)
        assert found_edge == pytest.approx(edge)
        assert abs(float(vectors[:, np.argmax(values)] @ direction)) > 0.7


def belief(hessian: HessianModel, d: int) -> Belief:
    made = Belief(1000, d, CONSTANTS, lambda point: point)
    made.place(2.0, hessian)
    made.begin(np.zeros(d), 1000.0**2 / d)
    return made


def model(values: np.ndarray, vectors: np.ndarray | None) -> HessianModel:
    return HessianModel(values, vectors, values, 0.1, 0.01, 0.2, np.zeros(len(values)))


@pytest.mark.parametrize("d", [1, 3, 12])
def test_a_hessian_without_vectors_is_that_of_the_coordinates(d):
    """The regression gives the same point, precision and innovation in both cases."""
    rng = np.random.default_rng(d)
    values = rng.uniform(0.5, 2.0, size=d)
    plain, turned = belief(model(values, None), d), belief(model(values, np.eye(d)), d)
    for _ in range(4):
        gradient = Gradient(rng.normal(size=d), 300.0 * rng.normal(size=d), 50.0)
        plain.learn(gradient)
        turned.learn(gradient)
    np.testing.assert_allclose(plain.point, turned.point, rtol=1e-12)
    assert plain.precision == pytest.approx(turned.precision)
    assert plain.innovation == pytest.approx(turned.innovation)


@pytest.mark.parametrize("d", [1, 4, 30])
def test_gradients_correct_a_hessian_that_is_wrong(d):
    """The gradients are linear with twice the assumed Hessian, and after some gradients the point is the median."""
    rng = np.random.default_rng(d)
    median = 0.2 * rng.normal(size=d) / math.sqrt(d)
    made = belief(model(np.ones(d), None), d)
    for _ in range(12):
        theta = made.point.copy()
        made.learn(Gradient(theta, 1000.0 * 2.0 * (theta - median) / 2.0, 1.0))
    assert np.linalg.norm(made.point - median) < 0.01


def test_a_gradient_that_the_belief_expects_is_consistent_and_a_long_one_is_not():
    """Alpha: 2.5 standard deviations of a chi-square in 50 dimensions are exceeded in about 1 % of the cases."""
    rng, d = np.random.default_rng(0), 50
    surprised = 0
    for _ in range(100):
        made = belief(model(np.ones(d), None), d)
        made.learn(Gradient(np.zeros(d), 30.0 * rng.normal(size=d), 900.0))
        surprised += not made.consistent
    assert surprised <= 6
    made.learn(Gradient(made.point, np.full(d, 500.0), 900.0))
    assert not made.consistent


def test_many_dimensions_are_reduced_to_the_span_of_what_was_seen():
    """The regression with two eigenvectors and otherwise equal eigenvalues agrees with the one with all
    eigenvectors.
    """
    rng, d = np.random.default_rng(3), MANY_DIMENSIONS + 12
    vectors = np.linalg.qr(rng.normal(size=(d, d)))[0]
    values = np.concatenate([[0.4, 1.9], np.full(d - 2, 1.1)])
    whole, reduced = belief(model(values, vectors), d), belief(model(values, vectors[:, :2]), d)
    for _ in range(6):
        noise = 40.0 * rng.normal(size=d)
        gradient = Gradient(whole.point + 0.05 * rng.normal(size=d), noise, 1600.0)
        whole.learn(gradient)
        reduced.learn(gradient)
        assert reduced.innovation == pytest.approx(whole.innovation)
    np.testing.assert_allclose(reduced.point, whole.point, rtol=1e-9, atol=1e-12)
    assert reduced.precision == pytest.approx(whole.precision)
    # With another Hessian, what was learned is expressed in the new span, and nothing is lost.
    for made, own in ((whole, vectors[:, ::-1]), (reduced, vectors[:, :0])):
        made.use(model(np.full(d, 0.9), own))
    np.testing.assert_allclose(reduced.point, whole.point, rtol=1e-9, atol=1e-12)


def test_spikes_are_those_eigenvalues_that_lie_beyond_the_edge():
    """The Lanczos method finds the same eigenvalues as a full decomposition. The others are equal, and the trace
    vanishes.
    """
    rng, d = np.random.default_rng(5), 300
    directions = np.linalg.qr(rng.normal(size=(d, 4)))[0]
    edge = semicircle(3.0, d)
    seen = noisy(d, rng) + 50.0 * np.eye(d) + (directions * (edge * np.array([5.0, 3.0, 2.0, -2.0]))) @ directions.T
    values, vectors, _ = spikes(seen, 3.0)
    every, basis, _ = without_noise(seen, 3.0)
    far = np.argsort(-np.abs(every))[: vectors.shape[1]]
    assert vectors.shape == (d, 4)
    np.testing.assert_allclose(np.sort(values[:4]), np.sort(every[far]), rtol=1e-8)
    np.testing.assert_allclose(np.abs(vectors.T @ basis[:, far]).max(axis=0), 1.0, rtol=1e-6)
    assert np.ptp(values[4:]) == 0.0
    assert abs(values.sum()) < 1e-9 * edge
    assert spikes(noisy(d, rng), 3.0)[1].shape == (d, 0)
    assert spikes(np.eye(d), 3.0)[1].shape == (d, 0)
