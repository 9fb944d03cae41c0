"""Weights: private like the records, with a public cap."""

import numpy as np
import pytest

import dpmedian
from dpmedian._core import Points
from dpmedian.sources.array import ArraySource
from dpmedian.sources.units import as_unit_records
from dpmedian.sources.weights import WHOLE_WEIGHT, as_weights
from dpmedian.tape import Tape

BUDGET = {"epsilon": 1.0, "delta": 1e-6, "neighbours": "add_remove"}


def test_weights_are_shares_of_the_cap():
    weights = as_weights([0.0, 1.0, 2.0, 9.0, 2.0**-30], 2.0, 5, "raise")
    assert weights.tolist() == [0, WHOLE_WEIGHT // 2, WHOLE_WEIGHT, WHOLE_WEIGHT, 0]
    odd = [float("nan"), float("inf"), -1.0, "2", None]
    assert as_weights(np.array(odd, dtype=object), 2.0, 5, "center").tolist() == [0, 0, 0, WHOLE_WEIGHT, 0]
    for wrong in (float("nan"), float("inf"), -1.0):
        with pytest.raises(ValueError, match=r"sample_weight\[1\] must be a finite number"):
            as_weights([1.0, wrong], 2.0, 2, "raise")
    with pytest.raises(ValueError, match="one weight for each row"):
        as_weights([1.0, 1.0], 2.0, 3, "raise")
    with pytest.raises(ValueError, match="2 dimensions"):
        as_weights(np.ones((2, 2)), 2.0, 2, "raise")


def test_columns_of_weights_of_every_kind():
    pandas, polars, arrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    data = {"x": [1.0, 2.0], "w": [1, 4], "y": [3.0, 4.0]}
    for frame in (pandas.DataFrame(data), polars.DataFrame(data), arrow.table(data)):
        records = as_unit_records(frame, weights="w", weight_max=4.0)
        assert records.array.tolist() == [[1.0, 3.0], [2.0, 4.0]]
        assert records.weights.tolist() == [WHOLE_WEIGHT // 4, WHOLE_WEIGHT]
    rows = np.zeros((2, 1))
    for weights in ([1, 4], pandas.Series([1, 4]), polars.Series([1, 4]), arrow.array([1, 4]), np.float32([1, 4])):
        assert as_unit_records(rows, weights=weights, weight_max=4.0).weights.tolist() == [
            WHOLE_WEIGHT // 4,
            WHOLE_WEIGHT,
        ]


@pytest.mark.parametrize("odd", [[2.0, 3.0], [], np.ones(2), {}, "text", None, b"\xff", 10**400, -1.0, np.nan])
def test_no_weight_of_an_unattended_run_is_an_error_or_changes_another_one(odd):
    assert as_weights([0.5, odd, 1.0], 1.0, 3, "center").tolist() == [WHOLE_WEIGHT // 2, 0, WHOLE_WEIGHT]
    with pytest.raises((ValueError, TypeError), match=r"\[1(, 0)?\]"):
        as_weights([0.5, odd, 1.0], 1.0, 3, "raise")


def test_the_weight_of_a_unit_is_the_largest_of_its_rows():
    records = as_unit_records(np.zeros((4, 1)), [7, 7, 9, 7], weights=[1, 3, 2, 0], weight_max=4.0)
    assert records.weights.tolist() == [3 * WHOLE_WEIGHT // 4, WHOLE_WEIGHT // 2]


def test_the_weighted_median_is_found():
    """Half of the records have four times the weight of the others: the median is among them."""
    rng = np.random.default_rng(0)
    points = np.vstack([rng.normal(size=(4000, 2)), 6.0 + rng.normal(size=(4000, 2))])
    weights = np.repeat([4.0, 1.0], 4000)
    release = dpmedian.geometric_median(points, sample_weight=weights, weight_max=4.0, n=5000, seed=1, **BUDGET)
    assert np.linalg.norm(release.point) < 1.0
    assert abs(release.size - 5000) < 400
    assert any("weighted" in note for note in release.notes)
    assert release.plan.parameters.weight_max == 4.0
    # At the cap no coin falls, and the release is that of the records without weights, but for its place in the noise.
    same = dpmedian.geometric_median(
        points[:4000], sample_weight=np.full(4000, 9.0), weight_max=4.0, n=4000, seed=1, **BUDGET
    )
    assert abs(same.size - 4000) < 300


def test_dropped_rows_take_their_weights_with_them():
    points = np.zeros((3000, 2))
    points[::3] = np.nan
    weights = np.where(np.arange(3000) % 3 == 0, 1.0, np.where(np.arange(3000) % 3 == 1, 0.0, 1.0))
    records = as_unit_records(points, weights=weights, weight_max=1.0, nonfinite="drop").finite()
    assert records.weights.tolist() == [0, WHOLE_WEIGHT] * 1000
    release = dpmedian.geometric_median(
        points, sample_weight=weights, weight_max=1.0, nonfinite="drop", seed=0, **BUDGET
    )
    assert abs(release.size - 1000) < 200


def test_a_record_with_its_weight_moves_no_release_by_more_than_its_sensitivity():
    """The tape's replay on neighbours of which one has a record more, of any weight."""
    rng = np.random.default_rng(3)
    points, weights = rng.normal(size=(200, 2)), rng.integers(0, WHOLE_WEIGHT + 1, size=200).astype(np.uint32)
    made = dpmedian.plan(200, 2, rho=1.0, neighbours="add_remove", weight_max=1.0)

    def outcome(n, tape):
        source = ArraySource(Points(points[:n]), weights=weights[:n]).thinned(tape.hidden())
        try:
            return made.calibrated.run(source, tape).point.tobytes()
        except dpmedian.ReleaseFailed as failed:
            return failed.message

    for n in (150, 180, 199):
        recorded = Tape.record(n.to_bytes(32, "little"), "add_remove")
        expected = outcome(n, recorded)
        for weight in (0, 1, WHOLE_WEIGHT // 2, WHOLE_WEIGHT):
            weights[n] = weight
            assert outcome(n + 1, recorded.replay()) == expected


def test_what_weights_need():
    points = np.zeros((100, 2))
    with pytest.raises(ValueError, match="needs weight_max=, a public cap"):
        dpmedian.geometric_median(points, sample_weight=np.ones(100), **BUDGET)
    with pytest.raises(ValueError, match="say the weights, sample_weight="):
        dpmedian.geometric_median(points, weight_max=1.0, **BUDGET)
    with pytest.raises(ValueError, match="weights need neighbours='add_remove'"):
        dpmedian.geometric_median(points, sample_weight=np.ones(100), weight_max=1.0, epsilon=1.0, delta=1e-6)
    with pytest.raises(ValueError, match="weight_max must be positive"):
        dpmedian.plan(None, 2, weight_max=0.0, **BUDGET)


def test_a_column_of_weights_is_one_of_a_frame(tmp_path):
    (tmp_path / "rows.csv").write_text("x,y,w\n0,0,1\n1,1,1\n")
    with pytest.raises(TypeError, match=r"sample_weight='w' names a column of a frame, and points come from a file"):
        dpmedian.geometric_median(
            tmp_path / "rows.csv", sample_weight="w", weight_max=1.0, neighbours="add_remove", rho=1.0
        )


def test_the_estimator_takes_weights():
    estimator = pytest.importorskip("dpmedian.sklearn").PrivateGeometricMedian
    rng = np.random.default_rng(0)
    points, weights = rng.normal(size=(3000, 2)), rng.uniform(size=3000)
    fitted = estimator(n=1500, weight_max=1.0, random_state=5, **BUDGET).fit(points, sample_weight=weights)
    direct = dpmedian.geometric_median(points, sample_weight=weights, weight_max=1.0, n=1500, seed=5, **BUDGET)
    assert fitted.location_.tolist() == direct.point.tolist()
    assert fitted.cost_.neighbours == "add_remove"
