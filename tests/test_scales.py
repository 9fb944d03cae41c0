"""Public scales of the columns: the release of the divided records, converted to the units of the columns."""

import json
import warnings

import numpy as np
import pytest

import dpmedian
from dpmedian import Dataset, nonprivate
from dpmedian.cli import main

RNG = np.random.default_rng(4)
N = 3000
# Powers of two divide without rounding, so that the values are the same to the last bit.
SCALES = {"income": 4096.0, "age": 8.0}
INCOME, AGE = RNG.lognormal(10.0, 0.5, N), RNG.normal(40.0, 12.0, N)
FACTORS = np.array(list(SCALES.values()))
POINTS = np.column_stack([INCOME, AGE])
BUDGET = {"epsilon": 1.0, "delta": 1e-6, "seed": 1, "progress": False}


def table():
    return pytest.importorskip("pandas").DataFrame({"income": INCOME, "age": AGE, "person": np.arange(N) // 2})


def released(points, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dpmedian.geometric_median(points, **{**BUDGET, **options})


def test_a_release_with_scales_is_that_of_the_divided_records():
    plain = released(POINTS / FACTORS)
    frame = table()[["income", "age"]]
    for scales in (SCALES, {"age": 8.0, "income": 4096}, [4096.0, 8.0], FACTORS):
        found = released(frame, scales=scales)
        assert np.array_equal(found.point, plain.point * FACTORS)
        assert (found.scale, found.error_radius) == (plain.scale, plain.error_radius)
        assert found.plan.parameters.scales == (4096.0, 8.0)
    assert np.array_equal(released(POINTS, scales={1: 4096.0, 2: 8.0}).point, plain.point * FACTORS)
    only = released(frame, scales={"income": 4096.0})
    assert np.array_equal(only.point, released(POINTS / [4096.0, 1.0]).point * [4096.0, 1.0])


def test_center_and_radius_are_in_the_units_that_the_documentation_says():
    asked = {"method": "dpgd", "radius": 30.0}
    plain = released(POINTS / FACTORS, center=[5.0, 4.0], **asked)
    found = released(POINTS, scales=[4096.0, 8.0], center=[5.0 * 4096.0, 32.0], **asked)
    assert np.array_equal(found.point, plain.point * FACTORS)
    assert found.plan.parameters.center.tolist() == [20480.0, 32.0]
    outside = POINTS.copy()
    outside[7] = np.nan
    found = released(outside, scales=[4096.0, 8.0], center=[20480.0, 32.0], nonfinite="center", **asked)
    expected = released(outside / FACTORS, center=[5.0, 4.0], nonfinite="center", **asked)
    assert np.array_equal(found.point, expected.point * FACTORS)


def test_regions_are_in_the_units_of_the_columns():
    plain, found = released(POINTS / FACTORS), released(POINTS, scales=[4096.0, 8.0])
    for level in (0.5, 0.95):
        expected, region = plain.confidence_region(level), found.confidence_region(level)
        assert region.radius == expected.radius
        assert np.allclose(region.intervals, expected.intervals * FACTORS[:, None], rtol=1e-12)
        assert np.allclose(region.standard_errors, expected.standard_errors * FACTORS, rtol=1e-12)
        assert np.allclose(region.covariance, expected.covariance * np.outer(FACTORS, FACTORS), rtol=1e-12)
        for turn in np.linspace(0.0, 6.0, 9):
            beside = plain.point + 1.02 * expected.radius * np.array([np.cos(turn), np.sin(turn)])
            assert region.contains(beside * FACTORS) == expected.contains(beside)
        assert np.allclose(region.outline(), expected.outline() * FACTORS[:, None], rtol=1e-9)


def test_units_groups_weights_and_files_know_scales(tmp_path):
    frame = table()
    frame.to_csv(tmp_path / "a.csv", index=False)
    plain = released(POINTS / FACTORS, unit=np.arange(N) // 2)
    for points in (frame, str(tmp_path / "a.csv"), Dataset.of(frame, unit="person", scales=SCALES)):
        options = {} if isinstance(points, Dataset) else {"unit": "person", "scales": SCALES}
        assert np.array_equal(released(points, **options).point, plain.point * FACTORS)
    by, told = np.arange(N) % 2, {"keys": [0, 1], **BUDGET}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = dpmedian.geometric_medians(POINTS / FACTORS, by, **told)
        found = dpmedian.geometric_medians(POINTS, by, scales=[4096.0, 8.0], **told)
        weighted = released(POINTS, scales=FACTORS, sample_weight=np.ones(N), weight_max=2.0, n=1500)
    assert all(np.array_equal(found[key].point, expected[key].point * FACTORS) for key in (0, 1))
    assert nonprivate.excess(found, POINTS, by) == nonprivate.excess(expected, POINTS / FACTORS, by)
    assert weighted.point.shape == (2,)


def test_the_record_the_page_the_plan_and_the_command_have_them(tmp_path, capsys):
    table()[["income", "age"]].to_csv(tmp_path / "a.csv", index=False)
    found = released(table()[["income", "age"]], scales=SCALES)
    assert found.to_dict()["scales"] == [4096.0, 8.0]
    again = dpmedian.Release.from_json(found.to_json())
    assert np.array_equal(again.confidence_region().intervals, found.confidence_region().intervals)
    assert dpmedian.verify(released(table()[["income", "age"]], scales=SCALES, seed=None).to_json()).holds
    page = found.report(tmp_path / "page.html").read_text()
    assert "The scales are income: 4096, age: 8." in page
    assert "in units of the public scales" in page
    assert "public scales of the columns: 4096, 8" in str(found.plan)
    command = ["release", str(tmp_path / "a.csv"), "--epsilon", "1", "--delta", "1e-6", "--seed", "1", "--quiet"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert main([*command, "--scales", "income=4096,age=8"]) == 0
    assert json.loads(capsys.readouterr().out)["point"] == found.to_dict()["point"]
    assert main(["plan", "3000", "2", "--epsilon", "1", "--delta", "1e-6", "--scales", "4096,8"]) == 0
    assert "4096, 8" in capsys.readouterr().out


def test_the_excess_is_that_of_the_divided_records():
    found, plain = released(POINTS, scales=FACTORS), released(POINTS / FACTORS)
    assert nonprivate.excess(found, POINTS) == nonprivate.excess(plain, POINTS / FACTORS)


@pytest.mark.parametrize(
    ("scales", "error", "message"),
    [
        ([1.0], ValueError, "scales must be 2 positive numbers, one for each column, got 1"),
        ([1.0, 0.0], ValueError, "scales must be positive and finite"),
        ([1.0, float("inf")], ValueError, "scales must be positive and finite"),
        ([1.0, "a"], TypeError, "scales must be a number, got 'a'"),
        ({"wealth": 2.0}, ValueError, "column 'wealth' is not there; the columns are 'income', 'age'"),
        ({}, ValueError, "scales must name at least one column"),
        ("income", TypeError, "scales must be 2 positive numbers"),
        (3.0, TypeError, "scales must be 2 positive numbers"),
    ],
)
def test_scales_that_cannot_be_are_refused_before_the_charge(scales, error, message):
    ledger = dpmedian.Ledger(rho=10.0)
    with pytest.raises(error, match=message):
        released(table()[["income", "age"]], scales=scales, ledger=ledger)
    assert ledger.spent.rho == 0.0


def test_what_does_not_go_with_scales_is_refused():
    with pytest.raises(ValueError, match="does not accept scales="):
        released(np.ones((9, 2)), geometry="sphere", scales=[1.0, 2.0])
    with pytest.raises(ValueError, match="does not accept scales="):
        dpmedian.plan(100, 2, rho=1.0, geometry="sphere", scales=[1.0, 2.0])
    with pytest.raises(TypeError, match="names of columns are known only if there are points"):
        dpmedian.plan(100, 2, rho=1.0, scales=SCALES)
    data = Dataset.of(POINTS, scales=FACTORS)
    with pytest.raises(ValueError, match=r"this plan has scales = None, but the dataset has \(4096"):
        dpmedian.plan(N, 2, rho=1.0).run(data)
    with pytest.raises(ValueError, match="this plan has scales = None"):
        dpmedian.plan_groups([0, 1], 2, rho=1.0, n=1000).run(data, np.arange(N) % 2)
    assert dpmedian.plan(N, 2, rho=1.0, scales=FACTORS).run(data, progress=False).point.shape == (2,)


def test_finite_numbers_stay_finite():
    large = np.full((200, 2), 1e300)
    made = Dataset.of(large, scales=[1e-200, 1.0])
    assert np.isfinite(made._input.records.array).all()
    with pytest.raises(ValueError, match="infinite"):
        released(np.full((200, 2), np.inf), scales=[2.0, 2.0])


def test_columns_of_different_size_make_a_note_and_scales_do_not():
    few = {"epsilon": 0.5}
    plain = released(table()[["income", "age"]], **few)
    note = [note for note in plain.notes if "give public scales" in note]
    assert note
    assert "interval of age is wide relative to its value, and the interval of income is not" in note[0]
    assert not any("public scales" in note for note in released(table()[["income", "age"]], scales=SCALES, **few).notes)
    assert not any("public scales" in note for note in released(RNG.normal(50.0, 5.0, size=(N, 3)), **few).notes)


def test_the_note_about_scales_does_not_need_a_hopeless_interval():
    """The data are life expectancy and income of countries. Half of the interval of the life expectancy is less than
    its value.
    """
    rng = np.random.default_rng(0)
    points = np.column_stack([rng.normal(60.0, 12.0, 1700), rng.lognormal(8.2, 1.2, 1700)])
    release = released(points, epsilon=1.0)
    (years, dollars), half = release.point, np.diff(release.confidence_region().intervals, axis=1)[:, 0] / 2.0
    assert 0.25 * years < half[0] < 0.5 * years
    assert half[1] < 0.2 * dollars
    assert any(
        "interval of coordinate 1 is wide relative to its value, and the interval of coordinate 2" in n
        for n in release.notes
    )


def test_a_coordinate_near_zero_makes_no_note_about_scales():
    """Positions near the meridian of Greenwich, in degrees."""
    rng = np.random.default_rng(0)
    points = rng.normal([0.01, 51.5], 0.025, size=(1700, 2))
    release = released(points, epsilon=0.15)
    (low, high), _ = release.confidence_region().intervals
    assert high - low > 0.5 * abs(release.point[0])
    assert not any("public scales" in note for note in release.notes)


def test_a_record_of_an_older_version_has_no_scales():
    record = json.loads(released(POINTS).to_json())
    for name in ("scales", "lone_delta", "clusters", "trim", "axes", "threshold"):
        del record[name]
    assert dpmedian.Release.from_json(json.dumps(record)).plan.parameters.scales is None


def test_a_table_of_groups_shows_the_note_that_columns_of_different_size_get():
    rng = np.random.default_rng(0)
    points = np.column_stack([rng.normal(1.0, 0.3, 6000), rng.normal(4000.0, 900.0, 6000)])
    groups = dpmedian.geometric_medians(points, np.arange(6000) % 3, keys=[0, 1, 2], rho=0.1, seed=1, progress=False)
    text = " ".join(str(groups).split())
    assert "note of 3 of 3 groups: The 95 % interval of coordinate 1 is wide relative to its value" in text
    assert "e+03" not in text
    assert "note of 3 of 3 groups" in groups._repr_html_()
