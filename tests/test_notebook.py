"""The notebook view of releases, plans and ledgers."""

import pickle
import re
from html import escape

import numpy as np
import pytest

import dpmedian

pd = pytest.importorskip("pandas")
FRAME = pd.DataFrame(np.random.default_rng(0).normal(size=(900, 3)) + 5.0, columns=["east", "north", "<b>up</b>"])
BUDGET = {"epsilon": 1.0, "delta": 1e-6}


@pytest.fixture(scope="module")
def release():
    return dpmedian.geometric_median(FRAME, **BUDGET, name="typical place")


def closed(page):
    """Whether every element is closed."""
    tags = set(re.findall(r"<(\w+)[ >]", page))
    return all(len(re.findall(rf"<{tag}[ >]", page)) == page.count(f"</{tag}>") for tag in tags)


def test_a_release_keeps_the_names_of_its_columns(release):
    page = release._repr_html_()
    assert closed(page)
    head = "<thead><tr>" + "".join(f"<th class=right>{escape(name)}</th>" for name in FRAME.columns) + "</tr>"
    values = "".join(f"<td class=right>{value:.9g}</td>" for value in release.point)
    assert f"{head}</thead><tbody><tr>{values}</tr>" in page
    assert "typical place" in page
    assert "seeded" not in page
    for stage in release.plan.stages:
        assert stage.name in page
    for name, value in zip(FRAME.columns, release.point, strict=True):
        assert f"{name} = {value:.9g}" in str(release)


def test_long_points_are_shortened_with_their_names():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(3000, 30)), columns=[f"c{i}" for i in range(30)])
    release = dpmedian.geometric_median(frame, **BUDGET)
    for text in (release._repr_html_(), str(release)):
        assert "c0" in text
        assert "c29" in text
        assert "c15" not in text
        assert "..." in text


def test_a_seed_is_told():
    assert 'class="alarm"' in dpmedian.geometric_median(FRAME, **BUDGET, seed=1)._repr_html_()


def test_colors_are_those_of_the_surroundings(release):
    """The view suits dark and light mode: no text and no background has a color of its own, except warnings."""
    ledger = dpmedian.Ledger(**BUDGET)
    for shown in (release, release.plan, ledger):
        page = shown._repr_html_()
        assert closed(page)
        style = page.split("</style>")[0]
        assert set(re.findall(r"(?<![-\w])color: ([^;]+);", style)) == {"inherit", "#c9372c"}
        assert set(re.findall(r"background: ([^;]+);", style)) == {"none", "rgba(128, 128, 128, 0.09)"}
        assert "style=" not in page


def test_what_a_prompt_shows_is_for_people():
    """No raw dataclass is shown: a plan, a plan of groups and objects that were read from a record have a text."""
    made = dpmedian.plan(3000, 2, epsilon=1.0, delta=1e-6)
    assert repr(made) == str(made)
    assert repr(made).startswith("Plan: adaptive, n = 3000, d = 2")
    groups = dpmedian.plan_groups(range(300), 2, epsilon=1.0, delta=1e-6)
    assert repr(groups).startswith("Plan for 300 groups")
    assert len(repr(groups).splitlines()) < 80
    points = np.random.default_rng(0).normal(size=(900, 3))
    release = dpmedian.geometric_median(points, epsilon=2.0, delta=1e-6)
    again = dpmedian.Release.from_json(release.to_json())
    assert repr(again.plan).startswith("Plan: adaptive, n = 900, d = 3")
    for shown in (release, release.confidence_region(), dpmedian.verify(release), release.plan, release.cost):
        assert "array(" not in repr(shown)
        assert len(repr(shown)) < 6000


@pytest.mark.slow
def test_a_release_in_many_dimensions_says_how_to_get_its_region():
    points = np.random.default_rng(0).normal(size=(6000, 300))
    release = dpmedian.geometric_median(points, epsilon=4.0, delta=1e-6)
    assert release.moments is not None
    assert "95 % region" in str(release)
    assert "confidence_region()" in str(release)


def test_the_name_of_a_module_that_is_a_verb_says_what_to_call():
    with pytest.raises(AttributeError, match=r"call dpmedian\.geometric_median"):
        dpmedian.release  # noqa: B018
    assert pickle.loads(pickle.dumps(dpmedian.plan(3000, 2, rho=1.0))).method == "adaptive"
    assert "release" not in dir(dpmedian)
