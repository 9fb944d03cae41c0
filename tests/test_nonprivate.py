"""The non-private kernels agree with plain numpy, for any layout, type and number of threads."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

import dpmedian
import oracle
from dpmedian import nonprivate

RNG = np.random.default_rng(7)
POINTS = RNG.integers(-3, 4, size=(61, 3)).astype(float)
RADII = np.array([0.0, 1.0, np.sqrt(2.0), 2.0, 3.0, 5.0, 20.0])


@pytest.mark.parametrize("name", oracle.GAUNTLET)
@pytest.mark.parametrize("shape", [(5000, 5), (2000, 50), (301, 2)])
def test_the_median_has_a_gap_below_its_promise(name, shape):
    points = oracle.gauntlet(name, *shape)
    assert oracle.relative_gap(points, nonprivate.geometric_median(points)) < 1e-10


@pytest.mark.parametrize("name", oracle.GAUNTLET)
def test_objective_and_gradient_are_those_of_numpy(name):
    points = oracle.gauntlet(name, 500, 7)
    for theta in (np.zeros(7), points[3], points.mean(axis=0)):
        assert nonprivate.objective(points, theta) == pytest.approx(oracle.objective(points, theta), rel=1e-13)
        assert nonprivate.gradient(points, theta) == pytest.approx(oracle.gradient(points, theta), abs=1e-9)


def test_ball_counts_are_those_of_numpy_with_ties_on_the_radii():
    # With integer coordinates squared distances are exact, and many equal a squared radius exactly.
    assert np.array_equal(nonprivate.ball_counts(POINTS, RADII**2), oracle.ball_counts(POINTS, RADII**2))
    for d in (1, 2, 3, 4, 10, 300):
        points = RNG.integers(-2, 3, size=(150, d)).astype(float)
        assert np.array_equal(nonprivate.ball_counts(points, np.arange(40)), oracle.ball_counts(points, np.arange(40)))


def test_top_count_sums_are_those_of_a_sort():
    for m in (1, 30, 61):
        assert np.array_equal(
            nonprivate.top_count_sums(POINTS, [1, 2, 4], m), oracle.top_count_sums(POINTS, [1, 2, 4], m)
        )


def test_radii_may_come_in_any_order():
    assert np.array_equal(
        nonprivate.ball_counts(POINTS, [4, 1, 2]), nonprivate.ball_counts(POINTS, [1, 2, 4])[:, [2, 0, 1]]
    )
    sums = nonprivate.top_count_sums(POINTS, [1, 2, 4], 10)
    assert np.array_equal(nonprivate.top_count_sums(POINTS, [4, 1, 2], 10), sums[[2, 0, 1]])


def test_the_quantile_radius_holds_its_fraction():
    center = np.array([0.5, 0.0, -1.0])
    lengths = np.sort(oracle.distances(POINTS, center))
    for fraction in (0.01, 0.5, 0.75, 1.0):
        expected = lengths[int(np.ceil(fraction * 61)) - 1]
        assert nonprivate.quantile_radius(POINTS, center, fraction) == pytest.approx(expected, rel=1e-15)


def everything(points):
    return (
        nonprivate.geometric_median(points).tobytes(),
        nonprivate.objective(points, np.zeros(3)),
        nonprivate.gradient(points, np.zeros(3)).tobytes(),
        nonprivate.ball_counts(points, RADII).tobytes(),
        nonprivate.top_count_sums(points, RADII, 40).tobytes(),
        nonprivate.quantile_radius(points, np.zeros(3), 0.75),
    )


def test_layout_type_and_threads_do_not_change_a_bit():
    wide = RNG.normal(size=(900, 3)).astype(np.float32)
    expected = everything(wide)
    for same in (wide.astype(float), np.asfortranarray(wide), np.repeat(wide, 2, axis=0)[::2], wide.tolist()):
        assert everything(same) == expected
    for threads in (1, 2, 4):
        dpmedian.set_threads(threads)
        assert everything(wide) == expected
    dpmedian.set_threads(None)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: nonprivate.geometric_median(np.zeros((0, 2))), ValueError, r"got shape \(0, 2\)"),
        (lambda: nonprivate.geometric_median(np.zeros((2, 0))), ValueError, r"got shape \(2, 0\)"),
        (lambda: nonprivate.geometric_median([[np.nan]]), ValueError, r"points\[0, 0\] is not finite"),
        (lambda: nonprivate.objective(POINTS, [1.0]), ValueError, r"theta must have shape \(3,\), got shape \(1,\)"),
        (lambda: nonprivate.gradient(POINTS, [1.0, np.inf, 0.0]), ValueError, "theta must be finite"),
        (lambda: nonprivate.quantile_radius(POINTS, np.zeros(3), 0.0), ValueError, "fraction must lie in"),
        (lambda: nonprivate.ball_counts(POINTS, 1.0), ValueError, r"radii must have shape \(k,\), got shape \(\)"),
        (lambda: nonprivate.ball_counts(POINTS, [-1.0]), ValueError, "radii must be finite and at least 0"),
        (lambda: nonprivate.top_count_sums(POINTS, [1.0], 62), ValueError, "m must lie between 1 and n = 61, got 62"),
        (lambda: nonprivate.top_count_sums(POINTS, [1.0], 2.5), TypeError, "m must be an integer"),
    ],
)
def test_bad_input_is_refused_by_name(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(("n", "d"), [(4_000, 40), (20_000, 3)])
def test_ball_counts_need_no_array_of_pairs(n, d):
    # The peak memory of a new process, in addition to what it holds before the call: a copy of the input, and at most
    # 64 bytes per point and radius. An array of all pairs would need 8 n^2 bytes, 3.2 GB and 128 MB.
    script = f"""
        import resource, numpy as np
        from dpmedian import nonprivate
        points = np.random.default_rng(0).normal(size=({n}, {d}))
        radii = 2.0 ** np.arange(-10, 10)
        nonprivate.ball_counts(points[:100], radii)
        peak = lambda: 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        before = peak()
        nonprivate.ball_counts(points, radii)
        print(peak() - before)
    """
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True)
    assert int(run.stdout) <= 8 * n * d + 64 * n * 20


def test_medians_of_groups_and_units_are_those_of_their_records():
    rng = np.random.default_rng(4)
    rows, ids, labels = rng.normal(size=(400, 2)), rng.integers(60, size=400), rng.choice(["a", "b"], size=400)
    plain = nonprivate.geometric_medians(rows, labels, keys=["a", "b", "c"])
    assert plain["c"] is None
    for key in "ab":
        assert np.allclose(plain[key], nonprivate.geometric_median(rows[labels == key]), atol=1e-6)
    people = np.array([nonprivate.geometric_median(rows[ids == person]) for person in np.unique(ids)])
    assert np.allclose(nonprivate.geometric_median(rows, unit=ids), nonprivate.geometric_median(people), atol=1e-6)
    both = nonprivate.geometric_medians(rows, labels, keys=["a", "b"], unit=ids, max_groups_per_unit=2)
    own = [nonprivate.geometric_median(rows[(ids == i) & (labels == "a")]) for i in np.unique(ids[labels == "a"])]
    assert np.allclose(both["a"], nonprivate.geometric_median(own), atol=1e-6)


def test_the_median_on_the_sphere_is_the_middle_of_its_positions():
    square = [[179.0, 10.0], [-179.0, 10.0], [180.0, 11.0], [180.0, 9.0]]
    longitude, latitude = nonprivate.geometric_median(square, geometry="sphere")
    assert abs(abs(longitude) - 180.0) < 1e-6
    assert abs(latitude - 10.0) < 0.01


def test_the_excess_is_that_of_the_released_point():
    rng = np.random.default_rng(4)
    rows, labels = rng.normal(size=(3000, 2)), rng.choice(["a", "b"], size=3000)
    release = dpmedian.geometric_median(rows, epsilon=1.0, delta=1e-6, seed=1)
    expected = (
        nonprivate.objective(rows, release.point) / nonprivate.objective(rows, nonprivate.geometric_median(rows)) - 1
    )
    assert nonprivate.excess(release, rows) == pytest.approx(expected, rel=1e-6)
    releases = dpmedian.geometric_medians(rows, labels, keys=["a", "b"], epsilon=1.0, delta=1e-6, seed=1)
    for key, value in nonprivate.excess(releases, rows, labels).items():
        own = rows[labels == key]
        least = nonprivate.objective(own, nonprivate.geometric_median(own))
        assert value == pytest.approx(nonprivate.objective(own, releases[key].point) / least - 1.0, rel=1e-6)
    sphere = dpmedian.geometric_median(rows, epsilon=1.0, delta=1e-6, seed=1, geometry="sphere")
    assert 0.0 <= nonprivate.excess(sphere, rows) < 0.01


def test_the_weighted_median_is_that_of_copies():
    rng = np.random.default_rng(6)
    points, copies = rng.standard_t(2, size=(300, 3)), rng.integers(0, 4, size=300)
    repeated = np.repeat(points, copies, axis=0)
    found = nonprivate.geometric_median(points, weights=copies)
    least = nonprivate.objective(repeated, nonprivate.geometric_median(repeated))
    assert nonprivate.objective(repeated, found) == pytest.approx(least, rel=1e-9)
    assert nonprivate.objective(points, found, weights=copies) == pytest.approx(least, rel=1e-9)
    assert nonprivate.geometric_median([[0.0], [5.0]], weights=[1.0, 3.0]).tolist() == [5.0]
    ids = np.repeat(np.arange(150), 2)
    people = np.array([nonprivate.geometric_median(points[ids == i]) for i in range(150)])
    expected = nonprivate.geometric_median(people, weights=copies.reshape(150, 2).max(axis=1))
    assert np.allclose(nonprivate.geometric_median(points, weights=copies, unit=ids), expected, atol=1e-4)
    for wrong in ([-1.0, 1.0], [np.nan, 1.0]):
        with pytest.raises(ValueError, match="weights must be finite numbers that are not negative"):
            nonprivate.geometric_median([[0.0], [1.0]], weights=wrong)
    with pytest.raises(ValueError, match="at least one row"):
        nonprivate.geometric_median([[0.0], [1.0]], weights=[0.0, 0.0])
