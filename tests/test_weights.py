"""Weights: private like the records, with a public cap."""

import numpy as np
import pytest

import dpmedian
from dpmedian import _core, nonprivate
from dpmedian.sources.weights import WHOLE_WEIGHT, as_weights
from dpmedian.tape import Tape
from rows import unit_records

BUDGET = {"epsilon": 1.0, "delta": 1e-6, "neighbours": "add_remove"}
RELATIONS = pytest.mark.parametrize("relation", ["replace", "add_remove"])


def test_weights_are_shares_of_the_cap():
    weights = as_weights([0.0, 1.0, 2.0, 9.0, 2.0**-30], 2.0, 5, unattended=False)
    assert weights.tolist() == [0, WHOLE_WEIGHT // 2, WHOLE_WEIGHT, WHOLE_WEIGHT, 0]
    odd = [float("nan"), float("inf"), -1.0, "2", None]
    assert as_weights(np.array(odd, dtype=object), 2.0, 5, unattended=True).tolist() == [0, 0, 0, WHOLE_WEIGHT, 0]
    for wrong in (float("nan"), float("inf"), -1.0):
        with pytest.raises(ValueError, match=r"sample_weight\[1\] must be a finite number"):
            as_weights([1.0, wrong], 2.0, 2, unattended=False)
    with pytest.raises(ValueError, match="one weight for each row"):
        as_weights([1.0, 1.0], 2.0, 3, unattended=False)
    with pytest.raises(ValueError, match="2 dimensions"):
        as_weights(np.ones((2, 2)), 2.0, 2, unattended=False)


def test_columns_of_weights_of_every_kind():
    pandas, polars, arrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    data = {"x": [1.0, 2.0], "w": [1, 4], "y": [3.0, 4.0]}
    for frame in (pandas.DataFrame(data), polars.DataFrame(data), arrow.table(data)):
        records = unit_records(frame, sample_weight="w", weight_max=4.0)
        assert records.array.tolist() == [[1.0, 3.0], [2.0, 4.0]]
        assert records.weights.tolist() == [WHOLE_WEIGHT // 4, WHOLE_WEIGHT]
    rows = np.zeros((2, 1))
    for weights in ([1, 4], pandas.Series([1, 4]), polars.Series([1, 4]), arrow.array([1, 4]), np.float32([1, 4])):
        assert unit_records(rows, sample_weight=weights, weight_max=4.0).weights.tolist() == [
            WHOLE_WEIGHT // 4,
            WHOLE_WEIGHT,
        ]


@pytest.mark.parametrize("odd", [[2.0, 3.0], [], np.ones(2), {}, "text", None, b"\xff", 10**400, -1.0, np.nan])
def test_no_weight_of_an_unattended_run_is_an_error_or_changes_another_one(odd):
    assert as_weights([0.5, odd, 1.0], 1.0, 3, unattended=True).tolist() == [WHOLE_WEIGHT // 2, 0, WHOLE_WEIGHT]
    with pytest.raises((ValueError, TypeError), match=r"\[1(, 0)?\]"):
        as_weights([0.5, odd, 1.0], 1.0, 3, unattended=False)


def test_the_weight_of_a_unit_is_the_largest_of_its_rows():
    records = unit_records(np.zeros((4, 1)), [7, 7, 9, 7], sample_weight=[1, 3, 2, 0], weight_max=4.0)
    assert records.weights.tolist() == [3 * WHOLE_WEIGHT // 4, WHOLE_WEIGHT // 2]


@RELATIONS
def test_the_weighted_median_is_found(relation):
    """Half of the records have four times the weight of the others, so the median is among them."""
    rng = np.random.default_rng(0)
    points = np.vstack([rng.normal(size=(4000, 2)), 6.0 + rng.normal(size=(4000, 2))])
    weights = np.repeat([4.0, 1.0], 4000)
    asked = {**BUDGET, "neighbours": relation, "sample_weight": weights, "weight_max": 4.0, "n": 5000}
    release = dpmedian.geometric_median(points, seed=1, **asked)
    # Six standard deviations of the size, whose noise has a hundredth of rho, and the error that the release predicts.
    assert abs(release.size - 5000) < 6 * release.plan.stages[0].sigma
    exact = nonprivate.geometric_median(points, weights=weights)
    assert np.linalg.norm(release.point - exact) < 3 * release.error_radius
    assert nonprivate.excess(release, points, sample_weight=weights) < 1e-3
    assert (release.n, release.neighbours, release.plan.parameters.weight_max) == (None, relation, 4.0)
    assert any("its weight divided by the public cap 4" in note for note in release.notes)
    title = str(release.plan).splitlines()[0]
    assert f"{relation}, sum of weights over 4 private (noisy size {release.size})" in title
    assert ("the same noise, if a record is replaced" in str(release.plan)) == (relation == "add_remove")
    assert [text for text in dpmedian.verify(release.to_json()).wrong if "came from a seed" not in text] == []
    assert dpmedian.Release.from_json(release.to_json()).to_json() == release.to_json()


@pytest.mark.slow
@RELATIONS
@pytest.mark.parametrize("method", ["adaptive", "dpgd", "loc_dpgd", "loc_cutting_plane", "inverse_sensitivity"])
def test_no_method_errs_more_than_on_copies(relation, method):
    """With the same noise, the median error of 15 runs on weighted records equals that on copies of the records up to a
    factor of 2.
    """
    rng = np.random.default_rng(4)
    points = rng.normal(size=(1500, 2)) + np.where(rng.random((1500, 1)) < 0.3, 3.0, 0.0)
    copies = rng.integers(0, 5, size=1500)
    budget = {"epsilon": 2.0} if method == "inverse_sensitivity" else {"rho": 0.5}
    asked = {**budget, "method": method, "neighbours": relation, "n": int(copies.sum()) // 4}
    asked |= {} if method == "adaptive" else {"radius": 40.0}
    asked |= {} if method in ("adaptive", "dpgd") else {"resolution": 0.05}
    exact = nonprivate.geometric_median(points, weights=copies)
    weighted = [
        dpmedian.geometric_median(points, sample_weight=copies, weight_max=4.0, seed=seed, **asked)
        for seed in range(15)
    ]
    # A quarter of the copies, each as a whole record, has the same sum.
    quarter = points[np.repeat(np.arange(1500), copies)][::4]
    near = nonprivate.geometric_median(quarter)
    asked["n"] = len(quarter) if relation == "replace" else asked["n"]
    plain = [dpmedian.geometric_median(quarter, seed=seed, **asked) for seed in range(15)]
    errors = [
        np.median([np.linalg.norm(release.point - median) for release in releases])
        for releases, median in ((weighted, exact), (plain, near))
    ]
    assert errors[0] < 2.0 * errors[1], errors


def test_a_column_of_weights_of_a_file(tmp_path):
    """The column of weights is a column of numbers like the others. The release is the same for all kinds of files and
    for a frame.
    """
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({"x": rng.normal(size=500), "w": rng.uniform(size=500), "y": rng.normal(size=500)})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_parquet(tmp_path / "rows.parquet")
    asked = {"sample_weight": "w", "weight_max": 0.8, "n": 250, "seed": 1, **BUDGET}
    expected = dpmedian.geometric_median(frame, **asked)
    assert expected.columns == ("x", "y")
    for name in ("rows.csv", "rows.parquet"):
        for columns in (None, ["x", "y"]):
            found = dpmedian.geometric_median(tmp_path / name, columns=columns, **asked)
            assert (found.point.tolist(), found.columns) == (expected.point.tolist(), ("x", "y"))
    with pytest.raises(ValueError, match="sample_weight='z' is not the name of exactly one column of numbers"):
        dpmedian.geometric_median(tmp_path / "rows.csv", **{**asked, "sample_weight": "z"})
    with pytest.raises(ValueError, match="the only column of numbers"):
        dpmedian.geometric_median(tmp_path / "rows.csv", columns=[], **asked)


def test_groups_take_weights(tmp_path):
    """A person with several rows has the largest weight of these rows in a group, in a table as in a file."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(1)
    rows = 6000
    frame = pandas.DataFrame(
        {
            "x": rng.normal(size=rows),
            "y": rng.normal(size=rows),
            "who": [f"person {row // 2:04d}" for row in range(rows)],
            "side": rng.choice(["left", "right"], size=rows),
            "w": np.where(rng.random(rows) < 0.5, 5.0, 0.5),
        }
    )
    frame["x"] += 5.0 * (frame["w"] < 1.0)
    asked = {"by": "side", "keys": ["left", "right"], "unit": "who", "sample_weight": "w", "weight_max": 5.0, "seed": 3}
    found = dpmedian.geometric_medians(frame, epsilon=2.0, delta=1e-6, n=1500, **asked)
    points, labels, ids = frame[["x", "y"]].to_numpy(), frame["side"], frame["who"]
    exact = nonprivate.geometric_medians(points, labels, keys=["left", "right"], unit=ids, weights=frame["w"])
    for key, release in found.items():
        assert np.linalg.norm(release.point - exact[key]) < 3 * release.error_radius
        # A person with a row on either side is on the left, with the weight of that row.
        here = frame[labels == key].groupby("who")["w"].agg(["max", "size"])
        mass = (here["max"] * ((here["size"] == 2) | (key == "left"))).sum() / 5.0
        assert abs(release.size - mass) < 6 * release.plan.stages[0].sigma
    excess = nonprivate.excess(found, points, labels, unit=ids, sample_weight=frame["w"])
    assert all(value < 0.02 for value in excess.values()), excess
    assert dpmedian.verify(found.plan.to_json()).holds
    frame.to_csv(tmp_path / "rows.csv", index=False)
    again = dpmedian.geometric_medians(tmp_path / "rows.csv", epsilon=2.0, delta=1e-6, n=1500, **asked)
    assert all(again[key].point.tolist() == found[key].point.tolist() for key in found)
    with pytest.raises(ValueError, match="needs weight_max="):
        dpmedian.geometric_medians(frame, epsilon=2.0, delta=1e-6, **{**asked, "weight_max": None})
    made = dpmedian.plan_groups(["left", "right"], 2, epsilon=2.0, delta=1e-6, n=1500, unit="who", weight_max=5.0)
    run = made.run(points, labels, unit=ids, sample_weight=frame["w"], seed=3)
    assert run["left"].point.tolist() == found["left"].point.tolist()


def test_weights_on_the_sphere():
    rng = np.random.default_rng(2)
    places = np.column_stack([179.9 + 0.3 * rng.normal(size=3000), 10.0 + 0.3 * rng.normal(size=3000)])
    weights = rng.uniform(size=3000)
    asked = {"sample_weight": weights, "weight_max": 1.0, "geometry": "sphere", "n": 1500, "seed": 1}
    release = dpmedian.geometric_median(places, epsilon=1.0, delta=1e-6, **asked)
    exact = nonprivate.geometric_median(places, weights=weights, geometry="sphere")
    turned = (release.point - exact + 180.0) % 360.0 - 180.0
    assert np.abs(turned).max() < 3 * release.error_radius


@RELATIONS
def test_dropped_rows_take_their_weights_with_them(relation):
    points = np.zeros((3000, 2))
    points[::3] = np.nan
    weights = np.where(np.arange(3000) % 3 == 0, 1.0, np.where(np.arange(3000) % 3 == 1, 0.0, 1.0))
    records = unit_records(points, sample_weight=weights, weight_max=1.0, nonfinite="drop").finite()
    assert records.weights.tolist() == [0, WHOLE_WEIGHT] * 1000
    release = dpmedian.geometric_median(
        points, sample_weight=weights, weight_max=1.0, nonfinite="drop", seed=0, **{**BUDGET, "neighbours": relation}
    )
    assert abs(release.size - 1000) < 200


def test_what_weights_need():
    points = np.zeros((100, 2))
    with pytest.raises(ValueError, match="needs weight_max=, a public cap"):
        dpmedian.geometric_median(points, sample_weight=np.ones(100), **BUDGET)
    with pytest.raises(ValueError, match="pass the weights, sample_weight="):
        dpmedian.geometric_median(points, weight_max=1.0, **BUDGET)
    with pytest.raises(ValueError, match="profile 'paper' is not proved for weights"):
        dpmedian.plan(100, 2, weight_max=1.0, rho=1.0, method="dpgd", radius=1.0, profile="paper")
    with pytest.raises(ValueError, match="weight_max must be positive"):
        dpmedian.plan(None, 2, weight_max=0.0, **BUDGET)


@RELATIONS
def test_the_estimator_takes_weights(relation):
    estimator = pytest.importorskip("dpmedian.sklearn").PrivateGeometricMedian
    rng = np.random.default_rng(0)
    points, weights = rng.normal(size=(3000, 2)), rng.uniform(size=3000)
    budget = {**BUDGET, "neighbours": relation}
    fitted = estimator(n=1500, weight_max=1.0, random_state=5, **budget).fit(points, sample_weight=weights)
    direct = dpmedian.geometric_median(points, sample_weight=weights, weight_max=1.0, n=1500, seed=5, **budget)
    assert fitted.location_.tolist() == direct.point.tolist()
    assert fitted.cost_.neighbours == relation


def test_the_command_takes_weights(tmp_path, capsys):
    import json

    from dpmedian.cli import main

    rng = np.random.default_rng(0)
    lines = [
        f"{x},{y},{w},{side}" for x, y, w, side in zip(*rng.random((3, 400)), rng.choice(["a", "b"], 400), strict=True)
    ]
    (tmp_path / "rows.csv").write_text("x,y,w,side\n" + "\n".join(lines) + "\n")
    (tmp_path / "keys.txt").write_text("a\nb\n")
    path = str(tmp_path / "rows.csv")
    common = ["--epsilon", "2", "--delta", "1e-6", "--seed", "1", "--quiet", "--columns", "x,y"]
    weights = ["--weight", "w", "--weight-max", "0.5"]
    for relation in ("replace", "add_remove"):
        assert main(["release", path, *common, *weights, "--neighbours", relation, "--n", "300"]) == 0
        told = json.loads(capsys.readouterr().out)
        asked = {"weight_max": 0.5, "neighbours": relation, "n": 300, "seed": 1, "epsilon": 2.0, "delta": 1e-6}
        direct = dpmedian.geometric_median(path, sample_weight="w", columns=["x", "y"], **asked)
        assert (list(told["point"].values()), told["weight_max"]) == (direct.point.tolist(), 0.5)
    groups = ["--by", "side", "--keys", str(tmp_path / "keys.txt"), "--n", "150"]
    assert main(["release", path, *common, *weights, *groups]) == 0
    assert [group["key"] for group in json.loads(capsys.readouterr().out)["groups"]] == ["a", "b"]
    assert main(["plan", "private", "2", "--epsilon", "2", "--delta", "1e-6", "--weight-max", "0.5"]) == 0
    assert "replace, sum of weights over 0.5 private (no guess)" in capsys.readouterr().out
    assert main(["release", path, *common, "--weight", "w"]) == 2
    assert "--weight-max" in capsys.readouterr().err


@pytest.mark.parametrize("most", [5e-324, 1e-60, 1e-46, 1e30, 1e300])
def test_a_cap_that_is_no_single_is_one_for_weights_that_are(most):
    """No weight stops a run after its charge, for example 0 divided by a cap that is 0 in single precision."""
    single = np.array([0.0, 1e-40, 1.0, 3e38, np.inf, np.nan, -1.0], dtype=np.float32)
    found = as_weights(single, most, 7, unattended=True)
    assert found.max() <= WHOLE_WEIGHT
    assert np.array_equal(found, as_weights(single.astype(np.float64), most, 7, unattended=True))


def test_no_weights_of_a_file_are_ignored(tmp_path):
    path = tmp_path / "points.npy"
    np.save(path, np.random.default_rng(1).normal(size=(500, 2)))
    made = dpmedian.plan(500, 2, epsilon=1.0, delta=1e-6)
    for run in (
        lambda weights: made.run(path, sample_weight=weights),
        lambda weights: dpmedian.geometric_median(path, epsilon=1.0, delta=1e-6, sample_weight=weights),
    ):
        with pytest.raises(ValueError, match="needs weight_max=, a public cap"):
            run(np.ones(500))
    with pytest.raises(ValueError, match="pass the weights, sample_weight="):
        dpmedian.plan(500, 2, epsilon=1.0, delta=1e-6, weight_max=1.0).run(path)


def test_weighted_sums_of_parts_are_those_of_the_whole_with_its_sensitivity():
    """This also holds for messages between processes. A replacement moves the sum of weights, and not the number of
    records.
    """
    weights, whole = np.arange(6, dtype=np.uint32) * 77_777, np.arange(12.0).reshape(6, 2)
    coins, question = _core.Coins.of(Tape.draw(bytes(32), "replace").hidden()), _core.Statistic("size", bits=20)
    parts = [
        _core.Points(whole[rows].copy()).weighted(coins, weights[rows], rows.start)
        for rows in (slice(0, 2), slice(2, 2), slice(2, 6))
    ]
    query = _core.Message.query(question)
    sums = {
        "here": _core.Points(whole).weighted(coins, weights).answer(question),
        "parts": _core.Exact.sum([part.answer(question) for part in parts]),
        "sent": _core.Message.answered([query.answer([part]) for part in parts], question),
        "gathered": _core.Message.gathered([_core.Message.records(part) for part in parts]).answer(question),
    }
    released = []
    for exact in sums.values():
        assert exact.sensitivity.replace == sums["here"].sensitivity.replace > 2.0**20
        tape = Tape.draw(bytes(32), "replace")
        released.append(tape.gaussian("test", exact, 2.0**8).tolist())
    assert released == [released[0]] * 4
    with pytest.raises(ValueError, match="do not answer the same query"):
        _core.Exact.sum([parts[0].answer(question), _core.Points(np.zeros((4, 2))).answer(question)])
    with pytest.raises(ValueError, match="cannot be joined"):
        _core.Points.concatenate([parts[0]])
