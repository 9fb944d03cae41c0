"""What notebooks show of releases, plans and ledgers."""

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
    """In the dark as in the light: no text and no background has a color of its own, but for alarms."""
    ledger = dpmedian.Ledger(**BUDGET)
    for shown in (release, release.plan, ledger):
        page = shown._repr_html_()
        assert closed(page)
        style = page.split("</style>")[0]
        assert set(re.findall(r"(?<![-\w])color: ([^;]+);", style)) == {"inherit", "#c9372c"}
        assert set(re.findall(r"background: ([^;]+);", style)) == {"none", "rgba(128, 128, 128, 0.09)"}
        assert "style=" not in page
