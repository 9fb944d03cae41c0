"""Records of groups are computed again, with every plan in them and with their page."""

import json
import re

import numpy as np
import pytest

import dpmedian
from dpmedian.cli import main
from dpmedian.report import page
from test_verify import refuted, valid, with_value

pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def releases():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(4000, 2)) + 50.0, columns=["x", "y"])
    frame["place"] = rng.choice(["north", "<south>"], size=4000)
    frame["person"] = rng.integers(0, 3000, size=4000)
    keys = ["north", "<south>", "nowhere"]
    return dpmedian.geometric_medians(
        frame,
        "place",
        keys=keys,
        unit="person",
        max_groups_per_unit=2,
        epsilon=4.0,
        delta=1e-6,
        n={"north": 1500, "<south>": 1500, "nowhere": 900},
    )


def test_groups_verify_and_so_does_their_plan(releases):
    for record in (releases.to_dict(), releases.plan.to_dict()):
        assert valid(json.loads(json.dumps(record))) == []
    for told in (releases, releases.plan, releases.to_json(), releases.to_dict()):
        found = dpmedian.verify(told)
        assert found.holds, str(found)
    assert "of 3 groups are together differentially private with epsilon = 4, delta = 1e-06" in str(
        dpmedian.verify(releases)
    ).replace("\n", " ")


@pytest.mark.parametrize(
    ("place", "value", "wrong"),
    [
        (("max_groups_per_unit",), 1, "mu_squared of the cost is stated as"),
        (("max_groups_per_unit",), 4, "between 1 and the number of keys, got 4"),
        (("unit",), "record", "the record states unit = 'record'"),
        (("plans", 0, "unit"), "record", "plan 0 states unit = 'record'"),
        (("plans", 1, "stages", 1, "sensitivity"), 0.5, "plan 1: stage 'center': the sensitivity is stated as 0.5"),
        (("cost", "mu_squared"), 0.1, "mu_squared of the cost is stated as 0.1"),
        (("cost", "rho"), 0.1, "rho is stated as 0.1"),
        (("budget", "epsilon"), 2.0, "the cost exceeds the budget epsilon = 2"),
        (("plan_of_key",), [0, 0], "plan_of_key must name one of the 2 plans for each of the 3 keys"),
        (("keys",), ["north", "<south>", "north"], "keys must differ: 'north' occurs twice"),
        (("keys",), [1, "<south>", "1"], "keys must differ: '1' occurs twice"),
        (("keys",), [1, "<south>", True], "keys must differ: True is equal to 1"),
        (("keys",), {"north": 0, "<south>": 1, "nowhere": 2}, "keys must be a list"),
        (("groups", 0, "key"), "east", "there must be one group for each key"),
        (("seeded",), True, "nobody is protected"),
        (("plans",), [], "the audit record of groups has no plan"),
    ],
)
def test_what_is_wrong_with_groups_is_named(releases, place, value, wrong):
    told = refuted(with_value(releases.to_dict(), place, value))
    assert any(wrong in text for text in told), told


def test_groups_have_a_page(releases, tmp_path):
    text = releases.report(tmp_path / "page.html").read_text()
    assert "3 groups" in text
    assert "&lt;south&gt;" in text
    assert "<south>" not in text
    for release in releases.released.values():
        assert f"{release.point[0]:.6g}" in text
    for failed in releases.failed.values():
        assert "no point: " in text
        assert failed.message.split("(")[0] in text
    assert "the claim holds" in text
    assert "Queries to the data of nowhere" in text
    assert page(json.loads(releases.to_json())) == text
    for tag in ("section", "table", "tr", "td", "th", "svg", "p", "div", "pre"):
        assert len(re.findall(rf"<{tag}[ >]", text)) == text.count(f"</{tag}>"), tag
    assert "planned, nothing spent" in page(releases.plan.to_dict())


def test_the_page_of_groups_has_a_date_units_intervals_and_a_map(tmp_path):
    rng = np.random.default_rng(1)
    places = {"<north>": (11.5, 48.2), "south": (11.6, 48.0)}
    district = rng.choice(list(places), size=6000)
    frame = pd.DataFrame(np.array([places[name] for name in district]), columns=["lon", "lat"])
    frame += 0.01 * rng.normal(size=(6000, 2))
    frame["district"], frame["month"] = district, rng.choice(["2026-01", "2026-02"], size=6000)
    found = dpmedian.geometric_medians(frame, ["district", "month"], epsilon=2.0, delta=1e-6, geometry="sphere")
    text = found.report(tmp_path / "page.html").read_text()
    assert found.date[:16].replace("T", ", ") + " UTC" in text
    assert "<th>district</th><th>month</th>" in text
    assert "Predicted error, km" in text
    release = found["south", "2026-02"]
    assert f"{release.error_radius * 6371.0088 * np.pi / 180.0:.3g}" in text
    low, high = release.confidence_region().intervals[1]
    assert f"<small>{low:.6g} to {high:.6g}</small>" in text
    assert text.count('class="here"') == 4 + 1, "a dot for each point, and one on the curve"
    assert "<title>&lt;north&gt;, 2026-01</title>" in text
    assert text.count('<text class="name"') == 2, "names that would overlap are left out"
    assert re.search(r"[125]0? km</text>", text), "a ruler in kilometers"
    assert "The groups were not listed in advance." in text
    assert "This protects one record, which is one row of the table." in text
    for tag in ("section", "table", "tr", "td", "th", "svg", "p", "div", "pre", "g", "text", "title"):
        assert len(re.findall(rf"<{tag}[ >]", text)) == text.count(f"</{tag}>"), tag


def test_a_page_says_what_unit_it_protects_and_what_it_does_not_promise(releases, tmp_path):
    text = releases.report(tmp_path / "page.html").read_text()
    assert "This protects each person with everything that the person contributed" in text
    assert "each person counts in at most 2 groups." in text
    assert "It does not promise that nothing can be learned about anybody." in text
    assert "All lengths are in the unit of the columns." in text
    for overstated in ("nearly as likely", "pip install dpmedian", "noise hides"):
        assert overstated not in text


def test_the_command_makes_the_page_of_groups(tmp_path, capsys):
    data, keys, file = tmp_path / "data.csv", tmp_path / "keys.txt", tmp_path / "page.html"
    rng = np.random.default_rng(0)
    rows = "".join(f"{x:.3f},{y:.3f},{'ab'[i % 2]}\n" for i, (x, y) in enumerate(rng.normal(size=(3000, 2))))
    data.write_text(f"x,y,place\n{rows}")
    keys.write_text("a\nb\n")
    arguments = ["release", str(data), "--columns", "x,y", "--by", "place", "--keys", str(keys), "--rho", "0.5"]
    assert main([*arguments, "--report", str(file)]) == 0
    out = capsys.readouterr().out
    assert file.read_text() == page(json.loads(out))
    (tmp_path / "record.json").write_text(out)
    assert main(["verify", str(tmp_path / "record.json")]) == 0
    assert "of 2 groups" in capsys.readouterr().out
