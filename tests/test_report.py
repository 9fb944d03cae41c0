"""The page of a release is made from its record alone, complete, safe, and right in a real browser."""

import json
import math
import re
import shutil
import subprocess
from statistics import NormalDist

import numpy as np
import pytest

import dpmedian
from contract.registry import RELATION_CASES
from dpmedian._core import STATISTICS
from dpmedian.accounting import PrivacyCost
from dpmedian.cli import main
from dpmedian.data import POSITIONS
from dpmedian.planning.prediction_curves import PredictionCurves
from dpmedian.report import page
from dpmedian.report.curves import chart, epsilon_curve, error_by_budget, error_by_size
from dpmedian.report.picture import map_of
from dpmedian.report.words import chance, guarantee, power
from dpmedian.spherical import on_a_map, west_of
from dpmedian.statistics import QUERIES
from dpmedian.verification.reading import parsed
from test_verify import planned

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
BUDGET = {"epsilon": 1.0, "delta": 1e-6}


@pytest.fixture(scope="module")
def points():
    return np.random.default_rng(5).normal(size=(1500, 3)) * 7.0 + 100.0


@pytest.fixture(scope="module")
def release(points):
    return dpmedian.geometric_median(points, **BUDGET, name="typical place")


def test_a_page_shows_no_record_of_the_data(points, release, tmp_path):
    """The page shows no coordinate in any usual precision, and nothing that is not in the audit record."""
    written = release.report(tmp_path / "page.html").read_text()
    shown = set(re.findall(r"\d+\.\d{3,}", written))
    private = {f"{value:.{digits}f}" for value in points.ravel() for digits in (6, 9, 12)}
    private |= {repr(value) for value in points.ravel().tolist()}
    assert not shown & private
    again = dpmedian.Release.from_json(release.to_json())
    assert page(again.to_dict()) == written == page(parsed(release.to_json()))


def test_a_page_loads_nothing_and_says_so_to_the_browser(release):
    text = page(release.to_dict())
    assert "default-src 'none'" in text
    assert not re.search(
        r"<link|<img|<iframe|<object|\ssrc=|\shref=|@import|url\(|fetch\(|XMLHttpRequest|WebSocket", text
    )


def test_a_page_tells_what_was_released_and_promised(release):
    text = page(release.to_dict())
    for value in release.point:
        assert f"{value:.9g}" in text
    for told in (
        "typical place",
        "epsilon = 1, delta = 1e-06",
        "one record",
        f"within {release.error_radius:.3g} of the exact median",
        "at most 2.72 times as large as it would have been then, apart from a probability of at most 1e-06",
        "This protects one record, which is one row of the table.",
        "With 5 rows of the same person, the factor of 2.72 below becomes",
        "It does not promise that nothing can be learned about anybody.",
        "pip install .\ndpmedian verify record.json",
        "the claim holds",
        *(stage.name for stage in release.plan.stages),
        *(QUERIES[stage.statistic] for stage in release.plan.stages),
    ):
        assert told in text, told
    stored = re.search(r'<pre id="record">(.*?)</pre>', text, re.DOTALL).group(1)
    assert json.loads(stored.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")) == release.to_dict()


@pytest.mark.slow
def test_names_cannot_break_out_of_the_page(points):
    bad = '</pre><script>alert("x")</script>'
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(points, columns=[bad, "b", "c"])
    ledger = dpmedian.Ledger(rho=5.0)
    made = dpmedian.geometric_median(frame, **BUDGET, name=bad, ledger=ledger)
    text = page(made.to_dict(), ledger.to_dict())
    assert "<script>alert" not in text
    assert text.count("<script>") == text.count("</script>") == 1
    assert text.count("</pre>") == text.count("<pre")


@pytest.mark.parametrize(("name", "relation"), RELATION_CASES)
def test_every_method_has_a_page(name, relation):
    text = page(planned(name, relation).to_dict())
    assert "planned, nothing spent" in text
    assert "the claim holds" in text
    tags = "section table tr td th svg figure ul li p div details pre dl dt dd"
    for tag in tags.split(" "):
        assert len(re.findall(rf"<{tag}[ >]", text)) == text.count(f"</{tag}>"), tag


def test_every_statistic_is_described_in_plain_words():
    assert set(QUERIES) == {*dict(STATISTICS), "records to change"}


def test_a_bound_for_presence_in_the_data_is_not_stated_as_a_bound_for_the_values():
    """Of two data sets one has one more person; the second half of a replacement is missing."""
    cost = PrivacyCost(mu_squared=0.05, neighbours="add_remove", unit="person")
    first, attack, replaced = guarantee(cost, 1e-6)
    epsilon = cost.epsilon_at(1e-6)
    assert "if any one person had not been in the data, or one more had been" in first
    assert "whether one person is in the data" in attack
    assert "guess" not in attack
    assert f"the factor is at most {math.exp(2.0 * epsilon):.3g}" in replaced
    # The package's bound for two people is not larger at the stated delta.
    assert cost.under("replace").epsilon_at((1.0 + math.exp(epsilon)) * 1e-6) <= 2.0 * epsilon
    assert "promises nothing" in guarantee(PrivacyCost(mu_squared=4.0, neighbours="add_remove"), 1e-6)[2]
    assert len(guarantee(PrivacyCost(mu_squared=0.05), 1e-6)) == 2


@pytest.mark.parametrize(
    ("delta", "told"),
    [
        (1e-6, "1e-06 (1 in 1,000,000)"),
        (1e-5, "1e-05 (1 in 100,000)"),
        (3.72e-6, "3.7e-06 (1 in 260,000)"),
        (0.4, "0.4 (1 in 2)"),
    ],
)
def test_a_small_probability_is_told_as_one_in_how_many(delta, told):
    assert chance(delta) == told


def test_a_unit_that_is_no_person_is_told(points):
    for unit, told in (("order", True), ("person", False)):
        text = page(dpmedian.plan(1500, 3, **BUDGET, unit=unit).to_dict())
        assert ("does not say whether one order is one person" in text) is told


def test_a_plan_is_told_as_what_will_be_and_a_release_as_what_was(release):
    planned_page, made = page(release.plan.to_dict()), page(release.to_dict())
    for later, before in (
        ("What would be released", "What was released"),
        ("these queries will be computed", "these queries were computed"),
        ("The red dots are this plan", "The red dots are this release"),
    ):
        assert (later in planned_page, before in planned_page) == (True, False)
        assert (later in made, before in made) == (False, True)


@pytest.mark.slow
def test_a_failure_and_a_seed_are_told(release):
    failed = dpmedian.ReleaseFailed("no median found", release.cost, plan=release.plan)
    text = page(failed.to_dict())
    assert "failed, and spent" in text
    assert "No point: no median found." in text
    seeded = {**release.to_dict(), "seeded": True}
    assert "This release protects nobody" in page(seeded)
    assert "does not hold" in page(seeded)
    assert "protects nobody" not in page(release.to_dict())


def test_a_ledger_is_told_with_what_each_release_took(points):
    ledger = dpmedian.Ledger(rho=1.0)
    for name, rho in (("first", 0.25), ("second", 0.125)):
        made = dpmedian.geometric_median(points, rho=rho, ledger=ledger, name=name)
    text = page(made.to_dict(), ledger.to_dict())
    widths = [float(width) for width in re.findall(r'style="width:([\d.]+)%"', text)]
    assert widths == pytest.approx([25.0, 12.5], abs=1e-3)
    assert '<i class=now style="width:12.500%" title="second">' in text
    assert "0.625 of rho is left" in text


@pytest.mark.parametrize("mu", [0.1, 0.5, 1.0, 3.0])
def test_the_power_of_an_attacker_is_that_of_the_best_test(mu):
    """For a Gaussian with shift mu the power is Phi(mu + Phi^-1(5 %)). The bound is never below the power, and close to
    it.
    """
    normal = NormalDist()
    best = normal.cdf(mu + normal.inv_cdf(0.05))
    assert best <= power(PrivacyCost(mu_squared=mu * mu)) <= 1.01 * best


def test_curves_go_through_the_chosen_point_and_in_the_right_direction(release):
    curve = epsilon_curve(release.cost, 1e-6)
    assert curve.here == (1e-6, release.cost.epsilon_at(1e-6))
    assert all(np.diff(curve.y) <= 0.0)
    curves = PredictionCurves.of(release.plan)
    for errors in (error_by_size(curves), error_by_budget(curves)):
        assert errors.here[1] == release.plan.prediction.relative_error
        known = [(x, y) for x, y in zip(errors.x, errors.y, strict=True) if y is not None]
        assert all(np.diff([y for _, y in known]) < 0.0)
        assert np.interp(errors.here[0], *zip(*known, strict=True)) == pytest.approx(errors.here[1], rel=0.05)
        assert 'class="here"' in chart(errors)
    assert epsilon_curve(PrivacyCost.bounded_range(1.0), 0.0) is None


# The command.


def test_the_command_writes_pages(tmp_path, capsys):
    record, file, ledger = tmp_path / "record.json", tmp_path / "page.html", tmp_path / "ledger.json"
    assert main(["ledger", "create", str(ledger), "--rho", "1"]) == 0
    capsys.readouterr()
    arguments = ["release", str(POSITIONS), "--rho", "0.1", "--ledger", str(ledger), "--name", "homes"]
    assert main([*arguments, "--report", str(file)]) == 0
    out = capsys.readouterr().out
    record.write_text(out)
    assert file.read_text() == page(parsed(out), dpmedian.Ledger.open(ledger).to_dict())
    other = tmp_path / "other.html"
    assert main(["report", str(record), str(other), "--ledger", str(ledger)]) == 0
    assert other.read_text() == file.read_text()
    assert main(["report", str(ledger), str(other)]) == 2


def test_a_page_that_cannot_be_written_loses_no_release(tmp_path, capsys):
    nowhere = tmp_path / "page.html"
    nowhere.symlink_to(tmp_path / "no" / "page.html")  # Writing to this path fails, which is noticed only then.
    code = main(["release", str(POSITIONS), "--rho", "0.1", "--report", str(nowhere)])
    out, err = capsys.readouterr()
    assert code == 5
    assert json.loads(out)["outcome"] == "released"
    assert "is spent" in err


def test_a_page_that_has_no_place_is_refused_before_anything_is_spent(tmp_path, capsys):
    ledger = tmp_path / "ledger.json"
    dpmedian.Ledger(rho=1.0, path=ledger)
    arguments = ["release", str(POSITIONS), "--rho", "0.1", "--ledger", str(ledger), "--report"]
    assert main([*arguments, str(tmp_path / "no" / "page.html")]) == 2
    assert f"there is no folder {str(tmp_path / 'no')!r}" in capsys.readouterr().err
    assert main([*arguments, str(tmp_path)]) == 2
    assert "is a folder: name a file in it" in capsys.readouterr().err
    assert not dpmedian.Ledger.open(ledger).entries


# A real browser.

PROBE = """
<script>
const chart = document.querySelector(".chart svg"), box = chart.getBoundingClientRect();
const there = { clientX: box.left + box.width / 2, clientY: box.top + box.height / 2, bubbles: true };
chart.dispatchEvent(new PointerEvent("pointermove", there));
const root = document.documentElement;
document.body.dataset.seen = JSON.stringify({
  hint: document.querySelector(".hint").textContent,
  visible: getComputedStyle(document.querySelector(".hint")).visibility,
  charts: document.querySelectorAll(".chart").length,
  hints: document.querySelectorAll(".hint").length,
  overflow: root.scrollWidth - root.clientWidth,
  width: root.clientWidth,
  save: document.getElementById("save").hidden,
  page: getComputedStyle(document.body).backgroundColor,
  ink: getComputedStyle(document.body).color,
  record: JSON.parse(document.getElementById("record").textContent).name,
});
</script>
</body>"""


def browse(file, directory, *options):
    """What a script in the page sees after a browser has drawn the page."""
    plain = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    command = [BROWSER, *plain, f"--user-data-dir={directory}", *options]
    done = subprocess.run([*command, "--dump-dom", file.as_uri()], capture_output=True, text=True, timeout=120)
    seen = re.search(r'data-seen="(.*?)"', done.stdout)
    assert seen, done.stderr[-2000:]
    return json.loads(seen.group(1).replace("&quot;", '"').replace("&amp;", "&"))


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no chromium here")
@pytest.mark.parametrize(
    ("width", "dark"), [(1200, False), (500, True)], ids=["a desktop in light", "a narrow window in the dark"]
)
def test_a_browser_draws_the_page(tmp_path, width, dark):
    file = tmp_path / "page.html"
    ledger = dpmedian.Ledger(rho=5.0)
    ledger.charge("an earlier release", "adaptive", PrivacyCost(mu_squared=0.5))
    points = np.random.default_rng(0).normal(size=(3000, 2))
    charged = dpmedian.geometric_median(points, rho=0.1, name="typical place", ledger=ledger)
    file.write_text(page(charged.to_dict(), ledger.to_dict()).replace("</body>", PROBE))
    scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
    seen = browse(file, tmp_path / "browser", f"--window-size={width},1000", scheme)
    assert seen["hint"].startswith("delta ")
    assert "epsilon" in seen["hint"]
    assert seen["visible"] == "visible"
    assert seen["charts"] == seen["hints"] == 3
    assert seen["overflow"] == 0, "nothing may stick out to the side"
    assert seen["save"] is False
    assert seen["record"] == "typical place"
    brightness = {name: sum(map(int, re.findall(r"\d+", seen[name])[:3])) for name in ("page", "ink")}
    assert (brightness["page"] < brightness["ink"]) is dark


def test_a_map_of_many_groups_stays_readable():
    """Circles that overlap are not opaque, and a name that several groups share appears once."""
    groups = [
        {"outcome": "released", "point": [float(k % 7), float(k // 7)], "error_radius": 3.0, "key": ["AA", str(k)]}
        for k in range(40)
    ]
    drawn = map_of(groups, ["x", "y"], sphere=False)
    assert 'fill-opacity="0.050"' in drawn
    assert drawn.count(">AA</text>") == 1
    assert drawn.count("<title>AA, ") == 40
    assert 'fill-opacity="0.250"' in map_of(groups[:3], ["x", "y"], sphere=False)


def dots(drawn):
    """The middle of every point on a map."""
    return [
        tuple(map(float, found)) for found in re.findall(r'<circle class="here" cx="([\d.]+)" cy="([\d.]+)"', drawn)
    ]


def places_at(*points, error=None):
    return [{"outcome": "released", "point": p, "error_radius": error, "key": str(k)} for k, p in enumerate(points)]


def test_places_on_both_sides_of_the_date_line_are_neighbors_on_a_map():
    across = dots(map_of(places_at([179.0, -17.0], [-179.0, -17.0], [178.0, -18.0]), ["x", "y"], sphere=True))
    inland = dots(map_of(places_at([9.0, -17.0], [11.0, -17.0], [8.0, -18.0]), ["x", "y"], sphere=True))
    assert across == inland


def test_a_map_has_the_usual_longitudes():
    longitudes = np.array([-118.0, -74.0, -88.0])
    assert np.array_equal(on_a_map(longitudes, west_of(longitudes)), longitudes)
    assert np.array_equal(on_a_map(longitudes + 360.0, west_of(longitudes)), longitudes)


def test_one_large_error_does_not_hide_the_other_points():
    """One circle has a radius of 27 degrees, and the points are eight degrees apart, like in a data set of flights."""
    groups = places_at([-91.0, 37.0], [-83.0, 36.0], [-85.0, 35.0], error=0.3)
    alike = dots(map_of(groups, ["lon", "lat"], sphere=True))
    groups[2]["error_radius"] = 27.0
    shown = dots(map_of(groups, ["lon", "lat"], sphere=True))
    apart = [float(np.ptp(np.array(found), axis=0).max()) for found in (shown, alike)]
    assert 0.4 * apart[1] < apart[0] < apart[1]
    for group in groups:  # If all errors are large, all circles are whole.
        group["error_radius"] = 27.0
    drawn = map_of(groups, ["lon", "lat"], sphere=True)
    radius = float(re.search(r'class="error".*? r="([\d.]+)"', drawn)[1])
    assert all(radius < x < 720.0 - radius for x, _ in dots(drawn))


def test_names_on_a_map_are_drawn_after_the_points():
    drawn = map_of(places_at([0.0, 0.0], [1.0, 2.0]), ["x", "y"], sphere=False)
    assert drawn.rindex('class="here"') < drawn.index('class="name"')


def test_a_map_of_scaled_columns_is_in_units_of_the_scales():
    plain = map_of(places_at([0.0, 0.0], [1.0, 2.0], error=0.5), ["x", "y"], sphere=False)
    scaled = map_of(places_at([0.0, 0.0], [5000.0, 20.0], error=0.5), ["x", "y"], sphere=False, scales=(5000.0, 10.0))
    assert dots(plain) == dots(scaled)
    assert re.findall(r'class="error".*?r="([\d.]+)"', plain) == re.findall(r'class="error".*?r="([\d.]+)"', scaled)
    assert "in units of the scales" in scaled


def test_the_notes_of_groups_are_on_their_page(points):
    side = np.where(points[:, 0] > 100.0, "east", "west")
    made = dpmedian.geometric_medians(points[:, :2], side, keys=["east", "west"], **BUDGET)
    record = made.to_dict()
    record["groups"][0]["notes"], record["groups"][1]["notes"] = ["Doubt it.", "Look again."], ["Doubt it."]
    text = page(record)
    assert "<li><b>a</b>: Doubt it. (note of 2 of 2 groups)</li>" in text
    assert "<li><b>b</b>: Look again. (note of 1 of 2 groups)</li>" in text
    assert text.count("<small>note a, b</small>") == text.count("<small>note a</small>") == 1
    for group in record["groups"]:
        group["notes"] = []
    assert "Notes, each with its letter" not in page(record)


def test_notes_are_in_the_words_of_the_page(points):
    record = json.loads(dpmedian.geometric_median(points, **BUDGET).to_json())
    record["notes"] = ["It is rough, so error_radius may be too small."]
    assert "<li>It is rough, so the predicted error may be too small.</li>" in page(record)


def test_the_page_of_clusters_has_a_map_of_the_centers():
    rng = np.random.default_rng(1)
    points = np.vstack([rng.normal(center, 1.0, (1500, 2)) for center in ((0.0, 0.0), (30.0, 10.0))])
    text = page(dpmedian.k_medians(points, 2, epsilon=2.0, delta=1e-6).to_dict())
    assert len(dots(text.split("</figure>")[0])) == 2
    assert text.count('<circle class="error"') == 2
