"""The paper's deterministic lemmas, as properties of data sets with ties, duplicates, outliers and atoms."""

import math

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dpmedian import nonprivate

# A coordinate: mostly small integers, so that ties and duplicates are frequent; some are far away or have many digits.
COORDINATES = st.one_of(
    st.integers(-3, 3).map(float),
    st.floats(-5.0, 5.0, allow_subnormal=False).map(lambda x: round(x, 6)),
    st.sampled_from([1e3, -1e4, 0.125]),
)

# The reference median has a relative gap of the objective below 1e-10. So distances to it are right to about 1e-5 of
# the core radius if the objective is curved, and bounds get this tolerance relative to the size of the data.
SLACK = 1e-4


def data(least: int = 3, most: int = 14) -> st.SearchStrategy[np.ndarray]:
    return st.tuples(st.integers(least, most), st.integers(1, 3)).flatmap(
        lambda shape: arrays(np.float64, shape, elements=COORDINATES)
    )


@st.composite
def neighbouring(draw, least: int = 3, most: int = 14) -> tuple[np.ndarray, np.ndarray]:
    points = draw(data(least, most))
    other = points.copy()
    other[draw(st.integers(0, len(points) - 1))] = draw(arrays(np.float64, points.shape[1], elements=COORDINATES))
    return points, other


def distances(points: np.ndarray, theta: np.ndarray) -> np.ndarray:
    return np.linalg.norm(points - theta, axis=1)


def size(*sets: np.ndarray) -> float:
    return 1.0 + max(float(np.max(np.abs(points))) for points in sets)


def unique_median(points: np.ndarray) -> np.ndarray:
    """The median if it is unique. An even number of records on a line may have a segment of medians."""
    centred = points - points[0]
    assume(len(points) % 2 == 1 or np.linalg.matrix_rank(centred) >= 2)
    return nonprivate.geometric_median(points)


def fraction_radius(points: np.ndarray, theta: np.ndarray, fraction: float) -> float:
    """A plain implementation of Delta_{gamma n}(theta)."""
    return float(np.sort(distances(points, theta))[math.ceil(fraction * len(points) - 1e-9) - 1])


@given(neighbouring(2, 14), st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0, 1e4]), st.floats(0.5, 1.0))
@example((np.array([[0.0], [0.0], [0.0]]), np.array([[9.0], [0.0], [0.0]])), 1.0, 0.75)
@settings(max_examples=300, deadline=None)
def test_the_mean_of_the_m_largest_ball_counts_moves_by_at_most_m_plus_n_minus_2_over_m(pair, radius, gamma):
    """Lemma sens-radius-finder. The paper charges 3 for the mean, and the sum of the m largest counts moves by at most
    m + n - 2.
    """
    n = len(pair[0])
    m = math.ceil(gamma * n)
    sums = [int(nonprivate.top_count_sums(x, [radius], m)[0]) for x in pair]
    assert abs(sums[0] - sums[1]) <= m + n - 2 <= 3 * m


def test_that_sensitivity_is_reached():
    """All four records are together, and one of them leaves. The counts fall from 4, 4, 4, 4 to 3, 3, 3, 1, so the sum
    of the m = n = 4 counts falls by m + n - 2 = 6.
    """
    together, apart = np.zeros((4, 1)), np.array([[0.0], [0.0], [0.0], [9.0]])
    sums = [int(nonprivate.top_count_sums(x, [1.0], 4)[0]) for x in (together, apart)]
    assert sums[0] - sums[1] == 4 + 4 - 2


@given(data(), st.sampled_from([0.75, 0.9, 1.0]))
@settings(max_examples=200, deadline=None)
@pytest.mark.slow
def test_a_radius_between_two_counts_is_within_its_factors_of_the_quantile_radius(points, gamma):
    """Lemma quantile-qual with gamma_1 = gamma_2: N(nu) >= ceil(gamma n) and N(nu/2) < ceil(gamma n).

    The lemma is printed for any m, but the upper bound needs m <= gamma n, as in the algorithm. For records at 0, 0 and
    1000, with m = 3 and gamma = 0.6, the third record lowers the mean of the counts although two lie within 0 of the
    median.
    """
    n = len(points)
    m, wanted = math.ceil(0.75 * n), math.ceil(gamma * n)
    median = nonprivate.geometric_median(points)
    quantile = fraction_radius(points, median, gamma)
    for exponent in range(-6, 18):
        radius = 2.0**exponent
        low, high = nonprivate.top_count_sums(points, [radius / 2.0, radius], m)
        if high >= m * wanted and low < m * wanted:
            slack = SLACK * size(points)
            assert quantile * (2.0 * gamma - 1.0) / (4.0 * gamma - 1.0) <= radius + slack
            assert radius <= 4.0 * quantile + slack


@pytest.mark.slow
@given(data(), st.data(), st.sampled_from([0.51, 0.6, 0.75, 0.9, 1.0]))
@settings(max_examples=300, deadline=None)
def test_points_far_from_each_other_differ_in_loss(points, source, gamma):
    """Lemma distance-subopt: (2 gamma - 1)||theta_1 - theta_0|| - 2 gamma Delta_{gamma n}(theta_0) <= zeta."""
    d = points.shape[1]
    theta_0, theta_1 = (source.draw(arrays(np.float64, d, elements=COORDINATES)) for _ in range(2))
    zeta = max((distances(points, theta_1).sum() - distances(points, theta_0).sum()) / len(points), 0.0)
    far = float(np.linalg.norm(theta_1 - theta_0))
    bound = (2.0 * gamma - 1.0) * far - 2.0 * gamma * fraction_radius(points, theta_0, gamma)
    assert bound <= zeta + 1e-9 * size(points, theta_0, theta_1)


@given(neighbouring(4, 14))
@settings(max_examples=300, deadline=None)
@pytest.mark.slow
def test_one_replaced_record_moves_the_median_by_at_most_three_halves_of_its_quantile_radius(pair):
    """Lemma worst-case-distance-one, for n >= 4.

    Its proof counts 3n/4 common records inside the ball, but one of them may be the replaced record. So the bound needs
    the ball of ceil(3n/4) + 1 records.
    """
    points, other = pair
    median = unique_median(points)
    moved = float(np.linalg.norm(unique_median(other) - median))
    records = min(math.ceil(0.75 * len(points)) + 1, len(points))
    radius = float(np.sort(distances(points, median))[records - 1])
    assert moved <= 1.5 * radius + SLACK * size(*pair)


def test_worst_case_distance_one_needs_the_record_more():
    """A counterexample to the printed radius: of three records at 0 and one at 1 (Delta_{3n/4} = 0), one moves to 1."""
    points, other = np.array([[0.0], [0.0], [0.0], [1.0]]), np.array([[0.0], [0.0], [1.0], [1.0]])
    assert fraction_radius(points, nonprivate.geometric_median(points), 0.75) == 0.0
    # Every point between 0 and 1 is a median of the neighbor, so the distance may be 1.
    losses = [nonprivate.objective(other, [x]) for x in (0.0, 0.3, 1.0)]
    assert losses == pytest.approx([2.0, 2.0, 2.0])


@given(data(), st.data())
@settings(max_examples=300, deadline=None)
@pytest.mark.slow
def test_the_median_is_near_every_point_that_is_near_most_records(points, source):
    """Lemma geom-quantile: ||theta - median|| <= (2n - 2|B|)/(n - 2|B|) max over the others, |B| < n/2."""
    n, d = points.shape
    theta = source.draw(arrays(np.float64, d, elements=COORDINATES))
    bad = source.draw(st.integers(0, (n - 1) // 2))
    median = nonprivate.geometric_median(points)
    kept = float(np.sort(distances(points, theta))[n - bad - 1])
    bound = (2 * n - 2 * bad) / (n - 2 * bad) * kept
    assert np.linalg.norm(theta - median) <= bound + SLACK * size(points, theta)


@pytest.mark.slow
@given(data(3, 12), st.data())
@settings(max_examples=300, deadline=None)
def test_k_replaced_records_move_the_median_by_at_most_twice_the_loss_over_n_minus_2k(points, source):
    """Lemma k-stability, k < n/2."""
    n, d = points.shape
    k = source.draw(st.integers(1, (n - 1) // 2))
    other = points.copy()
    other[n - k :] = source.draw(arrays(np.float64, (k, d), elements=COORDINATES))
    before, after = nonprivate.geometric_median(points), nonprivate.geometric_median(other)
    bound = 2.0 / (n - 2 * k) * nonprivate.objective(points, before)
    assert np.linalg.norm(after - before) <= bound + SLACK * size(points, other)


@given(data())
@settings(max_examples=200, deadline=None)
def test_a_fifth_of_the_records_lie_outside_of_their_quantile_radius(points):
    """The fact that turns the error bound into a loss ratio: F(median) >= (1 - gamma) n Delta_{gamma n}(median)."""
    median = nonprivate.geometric_median(points)
    for gamma in (0.6, 0.75, 0.8):
        bound = (1.0 - gamma) * len(points) * fraction_radius(points, median, gamma)
        assert bound <= nonprivate.objective(points, median) + 1e-9 * size(points)


@given(data(2, 14), st.floats(0.05, 8.0))
@settings(max_examples=200, deadline=None)
def test_some_record_has_at_least_the_mean_number_of_records_within_a_radius(points, radius):
    """The basis of the pair counts: if a fraction p of the pairs lies within nu, some ball of radius nu contains p n
    records.
    """
    n = len(points)
    counts = nonprivate.ball_counts(points, [radius])[:, 0]
    fraction = float(np.sum(counts - 1)) / (n * (n - 1))
    assert counts.max() >= fraction * (n - 1) + 1 - 1e-9 >= fraction * n - 1e-9


@given(data(), st.data(), st.floats(0.05, 8.0))
@settings(max_examples=200, deadline=None)
@pytest.mark.slow
def test_localization_may_use_twelve_radii_and_five_times_the_excess(points, source, radius):
    """With q = 0.6 of the records within nu of a record, ||theta - median|| <= 12 nu + 5 zeta."""
    n, d = points.shape
    counts = nonprivate.ball_counts(points, [radius])[:, 0]
    assume(counts.max() >= 0.6 * n)
    theta = source.draw(arrays(np.float64, d, elements=COORDINATES))
    median = nonprivate.geometric_median(points)
    zeta = (nonprivate.objective(points, theta) - nonprivate.objective(points, median)) / n
    assert np.linalg.norm(theta - median) <= 12.0 * radius + 5.0 * zeta + SLACK * size(points, theta)


# The lemmas of the utility theorem in docs/default-method.md; `benches/theorem.py` computes its bound with them.


def linear_error(offsets: np.ndarray, h: np.ndarray) -> np.ndarray:
    """|g(v + h) - g(v) - H(v) h| for each distance function, where g is its gradient and H its Hessian."""

    def gradient(v: np.ndarray) -> np.ndarray:
        return v / np.linalg.norm(v, axis=1, keepdims=True)

    u, s = gradient(offsets), np.linalg.norm(offsets, axis=1, keepdims=True)
    linear = (h - u * (u @ h)[:, None]) / s
    return np.linalg.norm(gradient(offsets + h) - u - linear, axis=1)


@pytest.mark.parametrize("eta", [0.01, 0.3, 0.9, 3.0])
def test_the_gradient_of_a_distance_is_linear_up_to_the_bound_of_the_utility_theorem(eta):
    rng = np.random.default_rng(5)
    offsets = rng.normal(size=(20_000, 3))
    h = eta * np.array([1.0, 0.0, 0.0])
    s = np.linalg.norm(offsets, axis=1)
    with np.errstate(divide="ignore"):
        bound = np.minimum(eta**2 / math.sqrt(3.0) / np.maximum(s - eta, 0.0) ** 2, 2.0 + eta / s)
    assert (linear_error(offsets, h) <= bound).all()


def test_the_constant_of_the_utility_theorem_is_attained():
    """In the direction with cosine -1/sqrt(3), nine tenths of the constant would not suffice."""
    eta, p = 1e-4, -math.sqrt(1.0 / 3.0)
    offsets = np.array([[x, math.sqrt(1.0 - x**2)] for x in np.linspace(-1.0, 1.0, 2001)])
    worst = linear_error(offsets, eta * np.array([1.0, 0.0])) / (eta**2 / math.sqrt(3.0))
    assert 0.9 < worst.max() < 1.001
    assert abs(abs(offsets[worst.argmax(), 0]) - abs(p)) < 0.01
