"""The estimator follows scikit-learn's conventions, and never has a budget that nobody gave it."""

import pickle

import numpy as np
import pytest

import dpmedian

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.utils.estimator_checks import parametrize_with_checks

from dpmedian.sklearn import PrivateGeometricMedian, PrivateKMedians

# The conventions are checked on ten or fewer records, for which only a budget without protection gives a point.
pytestmark = pytest.mark.filterwarnings("ignore::dpmedian.WeakPrivacyWarning")

POINTS = np.random.default_rng(0).normal(loc=3.0, size=(500, 3))
OPTIONS = {"epsilon": 1.0, "delta": 1e-6, "method": "dpgd", "radius": 10.0}


# These checks pass weights without a public cap, which is refused, because the largest weight in the data is private.
WEIGHT_CHECKS = dict.fromkeys(
    [
        "check_sample_weights_pandas_series",
        "check_sample_weights_not_an_array",
        "check_sample_weights_list",
        "check_all_zero_sample_weights_error",
        "check_sample_weights_shape",
        "check_sample_weights_not_overwritten",
        "check_sample_weight_equivalence_on_dense_data",
    ],
    "weights need weight_max, a public cap",
)


# The checks fit ten to a few hundred records, so the budget is large enough for stable results.
@parametrize_with_checks(
    [PrivateGeometricMedian(epsilon=500.0, delta=1e-6)], expected_failed_checks=lambda estimator: WEIGHT_CHECKS
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


SECRET = "123456"


@pytest.mark.parametrize(
    "samples",
    [
        np.array([[1.0, 2.0]] * 99 + [[f"salary={SECRET}", 3.0]], dtype=object),
        [[1.0, 2.0]] * 99 + [[f"salary={SECRET}", 3.0]],
        np.array([[1.0, 2.0]] * 99 + [[complex(SECRET), 3.0]]),
        np.full(100, float(SECRET)),
        np.array([[1.0, 2.0]] * 99 + [[{SECRET: 1}, 3.0]], dtype=object),
        np.array([[1.0, 2.0]] * 99 + [[int(SECRET) ** 100, 3.0]], dtype=object),
        np.array([["1"] * 2] * 99 + [[SECRET + "x", "3"]]),
    ],
)
@pytest.mark.parametrize("kind", [PrivateGeometricMedian, PrivateKMedians])
@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_no_error_of_fit_shows_a_value(samples, kind, neighbours):
    """An error may be seen by people who must not see the data, so it names only the place and the kind of
    the problem.
    """
    estimator = kind(epsilon=1.0, delta=1e-6, neighbours=neighbours)
    with pytest.raises((ValueError, TypeError)) as raised:
        estimator.fit(samples)
    shown, error = [], raised.value
    while error is not None:
        shown.append(str(error))
        error = None if error.__suppress_context__ else error.__cause__ or error.__context__
    assert SECRET not in " ".join(shown)


def test_the_error_of_a_cell_names_its_position_and_no_option_that_estimators_lack():
    with pytest.raises(TypeError, match=r"points\[0, 1\] is str; correct it$"):
        PrivateGeometricMedian(epsilon=1.0, delta=1e-6).fit([[1.0, "a"], [2.0, "b"]])


def test_a_fit_that_fails_leaves_no_result_of_an_earlier_one():
    for estimator in (PrivateGeometricMedian(epsilon=1.0, delta=1e-6), PrivateKMedians(3, epsilon=1.0, delta=1e-6)):
        estimator.fit(np.random.default_rng(0).normal(size=(6000, 2)))
        with pytest.raises(ValueError, match="NaN"):
            estimator.fit(np.full((6000, 2), np.nan))
        assert not [name for name in vars(estimator) if name.endswith("_")]


def test_without_a_budget_fit_raises():
    with pytest.raises(ValueError, match="no privacy budget"):
        PrivateGeometricMedian().fit(POINTS)


def test_random_state_is_the_seed():
    expected = dpmedian.geometric_median(POINTS, **OPTIONS, seed=5)
    fitted = PrivateGeometricMedian(**OPTIONS, random_state=5).fit(POINTS)
    assert np.array_equal(fitted.location_, expected.point)
    assert fitted.cost_ == expected.cost
    assert (fitted.scale_, fitted.error_radius_) == (expected.scale, expected.error_radius)
    again = [PrivateGeometricMedian(**OPTIONS, random_state=np.random.RandomState(1)).fit(POINTS) for _ in range(2)]
    assert np.array_equal(again[0].location_, again[1].location_)


def test_without_a_random_state_no_two_fits_are_alike():
    estimator = PrivateGeometricMedian(**OPTIONS)
    first = estimator.fit(POINTS).location_
    assert not np.array_equal(first, estimator.fit(POINTS).location_)


def test_the_number_of_samples_can_be_private():
    """No number of samples raises an error, not even zero or one, and the release is that of the library."""
    hidden = {**OPTIONS, "neighbours": "add_remove"}
    fitted = PrivateGeometricMedian(**hidden, random_state=5).fit(POINTS)
    assert np.array_equal(fitted.location_, dpmedian.geometric_median(POINTS, **hidden, seed=5).point)
    assert fitted.release_.n is None
    guessed = PrivateGeometricMedian(**hidden, n=1000, random_state=5)
    assert guessed.fit(POINTS).release_.size == dpmedian.geometric_median(POINTS, **hidden, n=1000, seed=5).size
    for n in (0, 1):
        estimator = clone(PrivateGeometricMedian(epsilon=1.0, delta=1e-6, neighbours="add_remove"))
        with pytest.raises(dpmedian.ReleaseFailed, match="a noisy number"):
            estimator.fit(POINTS[:n])
    with pytest.raises(ValueError, match="minimum of 2"):
        PrivateGeometricMedian(**OPTIONS).fit(POINTS[:1])


def test_pipeline_clone_and_pickle():
    pipeline = clone(make_pipeline(Normalizer(), PrivateGeometricMedian(**OPTIONS, random_state=1)))
    fitted = pickle.loads(pickle.dumps(pipeline.fit(POINTS)))[-1]
    rows = POINTS / np.linalg.norm(POINTS, axis=1, keepdims=True)
    assert np.allclose(fitted.location_, dpmedian.geometric_median(rows, **OPTIONS, seed=1).point)


def test_frames_give_their_feature_names():
    pandas = pytest.importorskip("pandas")
    fitted = PrivateGeometricMedian(**OPTIONS).fit(pandas.DataFrame(POINTS, columns=["a", "b", "c"]))
    assert fitted.feature_names_in_.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("stored", [True, False])
def test_every_fit_is_charged_also_that_of_a_clone(tmp_path, stored):
    ledger = dpmedian.Ledger(epsilon=1.2, delta=1e-5, path=tmp_path / "ledger.json" if stored else None)
    estimator = clone(PrivateGeometricMedian(**OPTIONS, ledger=ledger))
    estimator.fit(POINTS)
    with pytest.raises(ValueError, match="budget"):
        estimator.fit(POINTS)
    assert len(ledger.entries) == 1


def test_clones_share_the_ledger():
    """With a deep copy of an accountant, every clone could spend the whole budget."""

    class Accountant:
        def __init__(self):
            self.spent = []

        def check(self, epsilon, delta):
            if len(self.spent) == 2:
                raise ValueError("spent")

        def spend(self, epsilon, delta):
            self.spent.append((epsilon, delta))

    accountant = Accountant()
    points = np.random.default_rng(0).normal(size=(2000, 2))
    estimator = PrivateGeometricMedian(epsilon=1.0, delta=1e-6, ledger=accountant)
    for _ in range(2):
        clone(estimator).fit(points)
    with pytest.raises(ValueError, match="spent"):
        clone(estimator).fit(points)
    assert len(accountant.spent) == 2


@parametrize_with_checks(
    [PrivateKMedians(2, epsilon=1000.0, delta=1e-6, failure_probability=0.999)],
    expected_failed_checks=lambda estimator: WEIGHT_CHECKS,
)
def test_scikit_learn_conventions_of_k_medians(estimator, check):
    check(estimator)


def test_k_medians_fit_predict_clone_and_charge():
    rng = np.random.default_rng(0)
    side = rng.integers(2, size=4000)
    points = rng.normal(size=(4000, 2)) + 20.0 * side[:, None]
    ledger = dpmedian.Ledger(epsilon=5.0, delta=1e-5)
    model = PrivateKMedians(2, epsilon=1.0, delta=1e-6, ledger=ledger, random_state=3)
    labels = clone(model).fit_predict(points)
    assert np.mean((labels == labels[0]) == (side == side[0])) > 0.999
    fitted = model.fit(points)
    assert len(ledger.entries) == 2
    expected = dpmedian.k_medians(points, 2, epsilon=1.0, delta=1e-6, seed=3)
    assert np.array_equal(fitted.cluster_centers_, expected.centers)
    assert np.array_equal(fitted.sizes_, expected.sizes)
    assert np.array_equal(fitted.predict(points), fitted.labels_)
    assert fitted.cost_ == expected.cost
