"""The Hessian as a run believes it: what stands out of its noise, and steps in its metric."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpmedian.mechanisms.hessian import symmetric
from dpmedian.methods.adaptive.metric import Metric
from dpmedian.postprocess import stands_out, without_noise


def noisy(d: int, rng: np.random.Generator, noise: float = 3.0) -> np.ndarray:
    """The noise of a released symmetric matrix: this deviation on the diagonal, and 1/sqrt(2) of it elsewhere."""
    drawn = rng.normal(size=(d, d)) * noise
    return (drawn + drawn.T) / 2.0


@pytest.mark.parametrize("d", [5, 40, 200])
def test_a_triangle_becomes_a_matrix_whose_entries_aside_have_lost_their_factor(d):
    matrix = noisy(d, np.random.default_rng(d))
    scaled = matrix * np.where(np.eye(d, dtype=bool), 1.0, math.sqrt(2.0))
    np.testing.assert_allclose(symmetric(scaled[np.triu_indices(d)], d), matrix, rtol=1e-15)


@pytest.mark.parametrize("d", [130, 200])
def test_noise_rarely_stands_out_and_a_direction_twice_as_large_always_does(d):
    """Noise is 2.5 deviations above its mean in 0.6 % of the cases: of 100 more than 4 with probability 4e-4."""
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


def test_a_metric_without_vectors_is_that_of_the_coordinates():
    rng = np.random.default_rng(0)
    values = rng.uniform(0.5, 2.0, size=6)
    plain = Metric(values, None, 0.1, 0.0, 1.0, values, 0.0)
    turned = Metric(values, np.eye(6), 0.1, 0.0, 1.0, values, 0.0)
    gradients = rng.normal(size=(4, 6))
    for name in ("newton", "root", "squared"):
        np.testing.assert_allclose(getattr(plain, name)(gradients), getattr(turned, name)(gradients), rtol=1e-14)
    assert plain.left_over(gradients[0], 9, 0.5) == pytest.approx(turned.left_over(gradients[0], 9, 0.5))
