"""Groups under one budget: every key has a value, there is one charge, and no group depends on another."""

import csv
import functools
import io
import json
import math
import operator
import warnings
from dataclasses import replace

import numpy as np
import pytest

import dpmedian
from dpmedian._core import set_threads
from dpmedian.accounting.parallel import bound_of
from dpmedian.cli import main
from dpmedian.groups import workers
from dpmedian.groups.plan import budget_of_one
from dpmedian.groups.releases import Releases
from dpmedian.parameters import PublicParameters
from dpmedian.sources.key_columns import group_keys
from rows import group_records

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
KEYS = ["north", "east", "south"]
CENTERS = {"north": [0.0, 10.0], "east": [10.0, 0.0], "south": [0.0, -10.0]}


def table(n=6000, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.choice(KEYS, size=n)
    return np.array([CENTERS[label] for label in labels]) + rng.normal(size=(n, 2)), labels


def test_every_key_has_a_value_and_every_other_label_is_left_out():
    points, labels = table()
    labels = labels.astype(object)
    labels[:50], labels[50:100] = "nowhere", None
    found = dpmedian.geometric_medians(points, labels, keys=[*KEYS, "empty"], n=2000, seed=1, **BUDGET)
    assert list(found) == [*KEYS, "empty"]
    assert list(found.released) == KEYS
    assert list(found.failed) == ["empty"]
    assert isinstance(found["empty"], dpmedian.ReleaseFailed)
    for key in KEYS:
        assert np.linalg.norm(found[key].point - CENTERS[key]) < 0.2
        assert found[key].n is None
    assert found.cost == found.plan.cost
    assert "nowhere" not in str(found)


def test_keys_that_are_equal_in_python_are_refused_before_the_charge():
    """1 and True are different labels but the same key of the mapping that is returned, so a group would be lost."""
    ledger = dpmedian.Ledger(rho=9.0, neighbours="add_remove")
    with pytest.raises(ValueError, match="keys must differ"):
        dpmedian.geometric_medians(np.zeros((20, 2)), [1] * 20, keys=[1, True], n=20, ledger=ledger, **BUDGET)
    assert ledger.entries == ()


def test_all_groups_are_charged_once_before_any_of_them_runs():
    points, labels = table()
    ledger = dpmedian.Ledger(epsilon=1.0, delta=1e-6, neighbours="add_remove")
    found = dpmedian.geometric_medians(points, labels, keys=KEYS, n=2000, ledger=ledger, seed=1, name="sides", **BUDGET)
    (entry,) = ledger.entries
    assert (entry.name, entry.state, entry.cost) == ("sides", "released", found.cost)
    with pytest.raises(dpmedian.BudgetExceeded):
        dpmedian.geometric_medians(points, labels, keys=KEYS, n=2000, ledger=ledger, **BUDGET)
    with pytest.raises(ValueError, match="protects the unit 'user'"):
        dpmedian.geometric_medians(
            points, labels, keys=KEYS, ledger=dpmedian.Ledger(rho=9.0, neighbours="add_remove", unit="user"), **BUDGET
        )


def test_no_group_runs_before_the_charge(monkeypatch):
    ledger, seen = dpmedian.Ledger(rho=1.0, neighbours="add_remove"), []
    usual = dpmedian.GroupsPlan._listed

    def watched(self, *arguments):
        seen.append([entry.state for entry in ledger.entries])
        return usual(self, *arguments)

    monkeypatch.setattr(dpmedian.GroupsPlan, "_listed", watched)
    dpmedian.geometric_medians(*table(600), keys=KEYS, rho=0.5, ledger=ledger)
    assert seen == [["pending"]] * 3


def test_the_number_of_groups_does_not_matter_for_the_cost():
    few, many = (dpmedian.plan_groups(range(k), 2, n=2000, **BUDGET) for k in (2, 500))
    assert few.cost == many.cost
    assert few.cost == few.plans[0].cost
    assert (few.cost.epsilon, few.cost.delta, few.cost.neighbours) == (1.0, 1e-6, "add_remove")


@pytest.mark.parametrize("budget", [BUDGET, {"rho": 0.5}, {"rho": 0.5, "delta": 1e-9}])
def test_a_unit_in_several_groups_pays_for_each(budget):
    made = dpmedian.plan_groups(range(9), 2, n=5000, unit="person", max_groups_per_unit=3, **budget)
    one = made.plans[0].cost
    assert made.cost.mu_squared == pytest.approx(3 * one.mu_squared, rel=1e-12)
    assert made.cost.discretization == pytest.approx(3 * one.discretization, rel=1e-12)
    assert made.budget.fits(made.cost)
    assert not made.budget.fits(dpmedian.PrivacyCost.total([made.cost, one]))
    assert made.cost.unit == "person"


@pytest.mark.parametrize(("epsilon", "most"), [(1.0, 3), (0.1, 7), (2.5, 11), (1e-3, 49)])
def test_pure_budgets_are_shared_exactly(epsilon, most):
    parameters = PublicParameters.of(None, 1, epsilon=epsilon, neighbours="add_remove", unit="person")
    share = budget_of_one(parameters, "inverse_sensitivity", [None], most)
    together = dpmedian.PrivacyCost.total([dpmedian.PrivacyCost.pure_dp(share.epsilon)] * most)
    assert parameters.budget.fits(together)
    assert share.epsilon * most == pytest.approx(epsilon)


def test_guesses_differ_and_the_cost_bounds_each():
    made = dpmedian.plan_groups(["a", "b", "c"], 2, n={"a": 500, "b": 100_000, "c": 500}, **BUDGET)
    assert [plan.n for plan in made.plans] == [500, 100_000, 500]
    assert made.plans[0] is made.plans[2]
    for plan in made.plans:
        assert plan.cost.mu_squared <= made.cost.mu_squared
        assert plan.cost.discretization <= made.cost.discretization
    assert made.cost.delta_at(1.0) <= 1e-6
    with pytest.raises(ValueError, match="n must have a guess for every key, but has none for 'c'"):
        dpmedian.plan_groups(["a", "b", "c"], 2, n={"a": 500, "b": 2000}, **BUDGET)


def test_a_bound_is_above_each_cost_in_every_part():
    cost = dpmedian.PrivacyCost
    costs = [
        cost(mu_squared=1.0, pure_epsilons=(0.1, 0.5), delta0=1e-7),
        cost(mu_squared=0.5, discretization=1e-9, pure_epsilons=(0.3,), bounded_ranges=(0.2,)),
    ]
    bound = bound_of(costs)
    assert bound == cost(
        mu_squared=1.0, discretization=1e-9, pure_epsilons=(0.5, 0.1), bounded_ranges=(0.2,), delta0=1e-7
    )
    assert all(bound.delta_at(e) >= one.delta_at(e) for one in costs for e in (0.0, 0.5, 1.0, 3.0))
    with pytest.raises(ValueError, match="different neighbours or units"):
        bound_of([cost(), cost(unit="user")])


@pytest.mark.parametrize(
    ("keys", "error", "message"),
    [
        ("north", TypeError, "must be a list of the names of the groups"),
        ([], ValueError, "at least one group"),
        (["a", "b", "a"], ValueError, "keys must differ: 'a' occurs twice"),
        ([1, "1"], ValueError, "keys must differ: '1' occurs twice"),
        ([1, True], ValueError, "keys must differ: True is equal to 1 in Python, so use text for both"),
        (["a", False, 0], ValueError, "keys must differ: 0 is equal to False in Python"),
        (["a", None], ValueError, "a key must be an integer or text that is not empty, got None"),
    ],
)
def test_keys_are_told(keys, error, message):
    with pytest.raises(error, match=message):
        dpmedian.geometric_medians(*table(10), keys=keys, **BUDGET)


def test_what_groups_do_not_take():
    points, labels = table(100)
    with pytest.raises(ValueError, match="neighbours must be one of"):
        dpmedian.geometric_medians(points, labels, keys=KEYS, neighbours="moved", **BUDGET)
    with pytest.raises(ValueError, match="needs unit="):
        dpmedian.geometric_medians(points, labels, keys=KEYS, max_groups_per_unit=2, **BUDGET)
    with pytest.raises(ValueError, match="between 1 and the number of keys, 3"):
        dpmedian.geometric_medians(points, labels, keys=KEYS, unit=range(100), max_groups_per_unit=4, **BUDGET)
    with pytest.raises(ValueError, match="by must have one label for each row"):
        dpmedian.geometric_medians(points, labels[1:], keys=KEYS, **BUDGET)
    with pytest.raises(ValueError, match="unit must have one id for each row"):
        dpmedian.geometric_medians(points, labels, keys=KEYS, unit=range(99), **BUDGET)
    with pytest.raises(ValueError, match="refused before spending"):
        dpmedian.geometric_medians(points, labels, keys=KEYS, n=4, **BUDGET)


def test_the_minimum_is_compared_with_the_noisy_size():
    """At an exact size of 300 and a minimum of 300 the noise decides, and the result agrees with the noisy size."""
    rng = np.random.default_rng(5)
    points, labels = rng.normal(size=(300 * 40, 2)), np.repeat(np.arange(40), 300)
    found = dpmedian.geometric_medians(
        points, labels, keys=range(40), n=300, minimum=300, seed=2, epsilon=2, delta=1e-6
    )
    sizes = {key: value.size for key, value in found.items()}
    assert {key for key, size in sizes.items() if size < 300} <= set(found.failed)
    assert 5 < len(found.failed) < 35
    for key, failed in found.failed.items():
        assert sizes[key] < 300
        assert f"about {sizes[key]} contributions" in failed.message


def test_a_unit_contributes_to_a_limited_number_of_groups_by_its_own_rows():
    ids = ["p", "p", "p", "q", "q", "r", None]
    labels = ["south", "north", "north", "east", "west", "south", "south"]
    rows = np.arange(14.0).reshape(7, 2)
    one = group_records(rows, labels, group_keys(KEYS), ids)
    assert one.starts.tolist() == [0, 1, 2, 3]
    assert one.records.array.tolist() == [[3.0, 4.0], [6.0, 7.0], [10.0, 11.0]]
    two = group_records(rows, labels, group_keys(KEYS), ids, most=2, reducer="first")
    assert two.starts.tolist() == [0, 1, 2, 4]
    assert two.records.array.tolist() == [[2.0, 3.0], [6.0, 7.0], [0.0, 1.0], [10.0, 11.0]]
    without = group_records(rows, labels, group_keys(KEYS))
    assert without.starts.tolist() == [0, 2, 3, 6]
    assert without.records_of(2).array.tolist() == rows[[0, 5, 6]].tolist()


def test_rows_that_are_not_finite():
    rows = np.array([[1.0, 1.0], [math.nan, 1.0], [3.0, 3.0], [math.inf, 0.0]])
    labels, ids = ["north", "north", "east", "east"], [1, 1, 2, 3]
    with pytest.raises(ValueError, match="row 2"):
        group_records(rows, labels, group_keys(KEYS), ids)
    dropped = group_records(rows, labels, group_keys(KEYS), ids, nonfinite="drop")
    assert dropped.records.array.tolist() == [[1.0, 1.0], [3.0, 3.0]]
    centered = group_records(rows, labels, group_keys(KEYS), ids, nonfinite="center")
    assert centered.starts.tolist() == [0, 1, 3, 3]
    assert np.isnan(centered.records.array[2]).all()
    single = group_records(rows, labels, group_keys(KEYS), nonfinite="center")
    assert single.starts.tolist() == [0, 2, 4, 4]
    assert np.isnan(single.records.array).any(axis=1).tolist() == [False, True, False, True]


@pytest.mark.parametrize("method", [{"method": "dpgd", "radius": 5.0}, {"method": "adaptive"}])
def test_groups_have_the_same_bits_in_processes_and_without(method):
    rng = np.random.default_rng(1)
    points, labels = rng.normal(size=(70 * 200, 2)), np.repeat(np.arange(70), 200)
    made = dpmedian.plan_groups(range(70), 2, n=200, epsilon=2.0, delta=1e-6, **method)
    results = []
    for threads in (1, 2):
        set_threads(threads)
        try:
            results.append(made.run(points, labels, seed=3))
        finally:
            set_threads(None)
    for key in range(70):
        one, other = results[0][key], results[1][key]
        assert (one.size, type(one)) == (other.size, type(other))
        if isinstance(one, dpmedian.Release):
            assert one.point.tobytes() == other.point.tobytes()
    assert len({value.size for value in results[0].values()}) > 20, "every group has noise of its own"


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_in_a_group_says_that_the_cost_is_spent(threads, monkeypatch):
    points, labels = np.zeros((700, 2)), np.repeat(np.arange(70), 10)
    ledger = dpmedian.Ledger(rho=1.0, neighbours="add_remove")
    made = dpmedian.plan_groups(range(70), 2, rho=0.5)

    def broken(self, place, session, opened):
        raise OSError("no more memory" if place == 40 else "")

    monkeypatch.setattr(dpmedian.GroupsPlan, "_listed", broken)
    set_threads(threads)
    try:
        with pytest.raises(RuntimeError, match="the run stopped after its cost was charged"):
            made.run(points, labels, ledger=ledger)
    finally:
        set_threads(None)
    assert [entry.state for entry in ledger.entries] == ["interrupted"]


def test_a_process_that_dies_is_noticed():
    def work(index):
        if index == 30:
            raise SystemExit(1)
        return index

    set_threads(2)
    try:
        with pytest.raises(RuntimeError, match="a worker process ended before its work was done"):
            list(workers.in_parallel([functools.partial(work, index) for index in range(100)]))
        assert sorted(workers.in_parallel([functools.partial(operator.neg, index) for index in range(100)])) == [
            (i, -i) for i in range(100)
        ]
    finally:
        set_threads(None)


def test_people_in_districts_on_the_globe():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(2)
    homes = {"fiji": (179.9, -17.0), "tonga": (-175.0, -21.0)}
    person = rng.integers(4000, size=30_000)
    island = np.array(["fiji", "tonga"])[person % 2]
    spread = 0.3 * rng.normal(size=(30_000, 2))
    frame = pandas.DataFrame({"lon": 0.0, "lat": 0.0, "island": island, "person": person})
    frame[["lon", "lat"]] = np.array([homes[name] for name in island]) + spread
    found = dpmedian.geometric_medians(
        frame, "island", keys=list(homes), unit="person", n=2000, geometry="sphere", minimum=100, seed=0, **BUDGET
    )
    shown = found.to_frame()
    ends = ["lon_low", "lon_high", "lat_low", "lat_high", "error_km"]
    assert list(shown.columns) == ["lon", "lat", *ends, "error_radius", "scale", "size", "outcome", "reason", "notes"]
    assert (shown.lat_low < shown.lat).all()
    assert (shown.lat < shown.lat_high).all()
    assert shown.index.tolist() == ["fiji", "tonga"]
    assert found.unit == "person"
    assert shown.error_km.to_numpy() == pytest.approx(shown.error_radius.to_numpy() * 111.195, rel=1e-5)
    for name, home in homes.items():
        assert np.abs((found[name].point - home + 180.0) % 360.0 - 180.0).max() < 0.1
    assert abs(int(shown.loc["fiji", "size"]) - 2000) < 300


def test_how_groups_read():
    points, labels = table()
    keys = [*KEYS, "<b>empty</b>"]
    found = dpmedian.geometric_medians(points, labels, keys=keys, n=2000, minimum=50, seed=1, name="sides", **BUDGET)
    text = str(found)
    assert text.startswith("Releases of 4 groups: sides (point: x0, x1)\n")
    assert "3 of 4 groups have a point" in text
    assert "predictable" in text
    assert "&lt;b&gt;empty" in found._repr_html_()
    record = json.loads(found.to_json())
    assert [group["key"] for group in record["groups"]] == keys
    assert record["groups"][0]["point"] == found["north"].point.tolist()
    assert record["groups"][3]["outcome"] == "failed"
    assert record["cost"]["rho"] == found.cost.rho
    rows = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert [row["key"] for row in rows] == keys
    assert [row["outcome"] for row in rows] == ["released"] * 3 + ["failed"]
    assert [float(rows[0][name]) for name in ("x0", "x1")] == found["north"].point.tolist()
    assert float(rows[0]["x0_low"]) < found["north"].point[0] < float(rows[0]["x0_high"])
    assert (rows[3]["x0"], rows[0]["reason"]) == ("", "")
    assert rows[3]["reason"] == found["<b>empty</b>"].message
    for row, key in zip(rows, KEYS, strict=False):
        assert all(note in row["notes"] for note in found[key].notes)
    plan = str(found.plan)
    assert plan.startswith("Plan for 4 groups: adaptive, epsilon = 1, delta = 1e-06")
    assert "each record contributes to one of them" in plan
    assert "minimum: a group whose noisy size is below 50 has no point" in plan
    assert "Plan for 4 groups" in found.plan._repr_html_()
    assert dpmedian.verify(found.plan.plans[0]).holds


def test_pictures_of_groups():
    pytest.importorskip("matplotlib").use("Agg")
    points, labels = table(600)
    found = dpmedian.geometric_medians(points, labels, keys=[*KEYS, "empty"], epsilon=4, delta=1e-6, seed=1)
    figure = found.plot(points, labels)
    assert [axes.get_title() for axes in figure.axes if axes.get_title()] == [*KEYS, "empty"]
    assert any("do not publish" in text.get_text() for text in figure.texts)
    axes = found.plot_map()
    assert {text.get_text() for text in axes.texts} == set(map(str, found.released))
    scales = [5000.0, 10.0]
    scaled = dpmedian.geometric_medians(points * scales, labels, keys=KEYS, scales=scales, rho=0.5, seed=1)
    widths = [np.ptp(patch.get_path().vertices, axis=0) for patch in scaled.plot_map().patches]
    assert np.allclose([width / height for width, height in widths], 500.0, rtol=1e-3)  # Polygons of 100 corners.
    with pytest.raises(ValueError, match="only two dimensions"):
        dpmedian.geometric_medians(points[:, :1], labels, keys=KEYS, rho=0.5, seed=0).plot_map()


def test_names_on_a_map_do_not_overlap_and_a_large_circle_leaves_room():
    pytest.importorskip("matplotlib").use("Agg")
    points, labels = table(3000)
    found = dpmedian.geometric_medians(points, labels, keys=KEYS, rho=5.0, seed=1)
    first = found[KEYS[0]]
    crowded = {f"a long name {k}": replace(first, point=first.point + 1e-3 * k, error_radius=0.1) for k in range(30)}
    crowded["far away"] = replace(first, point=first.point + 5.0, error_radius=0.1)
    crowded["rough"] = replace(first, point=first.point - 5.0, error_radius=1000.0)
    axes = Releases(crowded, found.plan, seeded=True).plot_map()
    assert {text.get_text() for text in axes.texts} == {"a long name 0", "far away", "rough"}
    axes.figure.draw_without_rendering()
    assert np.ptp(axes.get_xlim()) < 50.0
    assert axes.get_xlim()[0] < (first.point - 5.0)[0] < (first.point + 5.0)[0] < axes.get_xlim()[1]


def test_the_command_releases_groups(tmp_path, capsys):
    points, labels = table(3000)
    path, keys = tmp_path / "rows.csv", tmp_path / "keys.txt"
    lines = [
        f"{x!r},{label},{y!r},{i % 1500}" for i, ((x, y), label) in enumerate(zip(points.tolist(), labels, strict=True))
    ]
    path.write_text("\n".join(["x,side,y,person", *lines]))
    keys.write_text("north\neast\n\nwest\n")
    arguments = ["release", str(path), "--by", "side", "--keys", str(keys), "--unit", "person", "--seed", "1"]
    budget = ["--epsilon", "2", "--delta", "1e-6"]
    assert main([*arguments, *budget, "--minimum", "20"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert [group["key"] for group in record["groups"]] == ["north", "east", "west"]
    assert record["columns"] == ["x", "y"]
    assert (record["unit"], record["minimum"], record["max_groups_per_unit"]) == ("person", 20, 1)
    again = dpmedian.geometric_medians(
        path, "side", keys=["north", "east", "west"], unit="person", minimum=20, seed=1, epsilon=2, delta=1e-6
    )
    assert again["north"].point.tolist() == record["groups"][0]["point"]
    assert main([*arguments, *budget, "--output", "table"]) == 0
    assert "Releases of 3 groups" in capsys.readouterr().out
    assert main(["release", str(path), "--columns", "x,y", "--keys", str(keys), *budget]) == 2
    assert "--by" in capsys.readouterr().err
    assert main([*arguments, *budget, "--neighbours", "replace"]) == 0
    assert json.loads(capsys.readouterr().out)["cost"]["mu_squared"] == pytest.approx(record["cost"]["mu_squared"])


@pytest.mark.parametrize("cell", [math.nan, "secret", None, 1j, [1], b"\xff", 10**400, True])
@pytest.mark.parametrize("nonfinite", ["center", "drop"])
def test_no_cell_of_a_row_shows_in_an_unattended_run(cell, nonfinite):
    """For any content of a row, as a coordinate, a label or an id, there is no error and no warning, and the other
    records are unchanged.
    """
    pandas = pytest.importorskip("pandas")
    usual = {
        "x": np.arange(60.0) % 7,
        "y": np.arange(60.0) % 5,
        "side": ["north", "east"] * 30,
        "person": np.arange(60) // 2,
    }
    plain = group_records(pandas.DataFrame(usual), "side", group_keys(KEYS), "person", nonfinite=nonfinite)
    expected = {record.tobytes() for record in plain.records.array}
    for column in usual:
        changed = pandas.DataFrame(usual).astype({column: object})
        changed[column] = [cell if row == 6 else value for row, value in enumerate(changed[column])]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = group_records(changed, "side", group_keys(KEYS), "person", nonfinite=nonfinite)
        assert len(expected - {record.tobytes() for record in found.records.array}) <= 1, column
        assert abs(len(found.records.array) - len(plain.records.array)) <= 1


def test_a_plan_shows_what_other_numbers_of_groups_per_unit_mean():
    made = dpmedian.plan_groups(range(12), 2, n=500, unit="person", max_groups_per_unit=3, **BUDGET)
    choices = made.contribution_choices()
    assert list(choices) == [1, 2, 3, 4, 8]
    errors = [choice.plans[0].prediction.relative_error for choice in choices.values()]
    assert errors == sorted(errors)
    assert errors[2] == made.plans[0].prediction.relative_error
    assert choices[3].cost == made.cost
    text = str(made)
    assert "3 (this plan)" in text
    assert f"{errors[-1]:.2g} core radii" in text
    assert "0; 1; 2; ... (12 groups)" in text
    assert "groups per person" in made._repr_html_()
    single = dpmedian.plan_groups(range(12), 2, n=500, **BUDGET)
    assert list(single.contribution_choices()) == [1]
    assert "groups per" not in str(single)
    unlisted = dpmedian.plan_groups(None, 2, unit="person", max_groups_per_unit=12, **BUDGET)
    assert list(unlisted.contribution_choices()) == [1, 2, 4, 8, 12, 16]
    assert "threshold" in str(unlisted)
    assert "none; if 1000" in str(unlisted)


def test_the_command_plans_groups(tmp_path, capsys):
    keys = tmp_path / "keys.txt"
    keys.write_text("north\nsouth\n")
    arguments = ["plan", "400", "2", "--by", "side", "--epsilon", "1", "--delta", "1e-6", "--unit", "person"]
    assert main([*arguments, "--keys", str(keys), "--max-groups-per-unit", "2", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    expected = dpmedian.plan_groups(["north", "south"], 2, n=400, unit="person", max_groups_per_unit=2, **BUDGET)
    assert record == json.loads(expected.to_json())
    assert main([*arguments, "--minimum", "90"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Plan for groups whose keys are not listed: adaptive, epsilon = 1, delta = 1e-06\n")
    assert "a group whose noisy size is below 90 has no point" in out
    assert main(["plan", "private", "2", "--by", "side", "--rho", "0.1"]) == 2
    assert "pass delta" in capsys.readouterr().err
    assert main(["plan", "400", "2", "--rho", "0.1", "--minimum", "9"]) == 2
    assert "--by" in capsys.readouterr().err


def test_tables_of_positions_are_in_kilometers_and_have_intervals():
    rng = np.random.default_rng(3)
    points = np.array([11.5, 48.1]) + 0.05 * rng.normal(size=(4000, 2))
    found = dpmedian.geometric_medians(
        points, np.repeat(["a", "b"], 2000), keys=["a", "b"], n=2000, geometry="sphere", seed=1, **BUDGET
    )
    text = str(found)
    assert "error, km" in text
    assert f"{found['a'].error_radius * 111.195:.2g}" in text
    low, high = found["a"].confidence_region().intervals[0]
    assert f"+- {(high - low) / 2.0:.2g}, " in text
    (row, _) = csv.DictReader(io.StringIO(found.to_csv()))
    assert float(row["error_km"]) == pytest.approx(float(row["error_radius"]) * 111.195, rel=1e-4)
    assert "error_km" in found["a"].to_csv()
