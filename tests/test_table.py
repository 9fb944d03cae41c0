"""Tables fit a terminal, keep their content and escape what they show."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmedian.rendering.table import html_block, html_table, text_pairs, text_table

HEAD = ("stage", "steps", "noise", "rho")


def test_columns_are_aligned_and_the_head_is_ruled() -> None:
    text = text_table(HEAD, [("size", "1", "Gaussian", "0.01"), ("fine", "48", "Gaussian", "0.9")], right=(1,))
    assert text.splitlines() == [
        "stage  steps  noise     rho",
        "----------------------------",
        "size       1  Gaussian  0.01",
        "fine      48  Gaussian  0.9",
    ]
    framed = text_table(HEAD, [("a", "b", "c", "d")], framed=True, note="(3 earlier)").splitlines()
    assert framed[0] == framed[2] == framed[-1] == "-" * len("stage  steps  noise  rho")
    assert framed[3] == "(3 earlier)"


def test_long_cells_wrap_without_loss_or_are_cut() -> None:
    long = "24 x ceil(log2(1e+06/scale)), at most 24 x 31, by the rule of the radius"
    rows = [("localization", long, "Gaussian, sigma 42.5", "0.25")]
    wrapped = text_table(HEAD, rows, yielding=(1, 2))
    assert all(len(line) <= 80 for line in wrapped.splitlines())
    assert len(wrapped.splitlines()) > 3
    words = sorted(" ".join(line[14:] for line in wrapped.splitlines()[2:]).split())
    assert words == sorted(f"{long} Gaussian, sigma 42.5 0.25".split())
    cut = text_table(HEAD, rows, yielding=(1,), overflow="cut")
    assert len(cut.splitlines()) == 3
    assert len(cut.splitlines()[2]) == 80
    assert "~  Gaussian, sigma 42.5  0.25" in cut


words = st.text("abcdefg", min_size=1, max_size=9)
cells = st.lists(words, min_size=1, max_size=12).map(" ".join)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(st.lists(st.tuples(cells, cells, words), min_size=1, max_size=5))
def test_every_word_survives_wrapping_within_the_width(rows: list[tuple[str, ...]]) -> None:
    lines = text_table(("one", "two", "three"), rows, 50, yielding=(0, 1)).splitlines()
    assert all(len(line) <= 50 for line in lines)
    shown = sorted(" ".join(lines[2:]).split())
    assert shown == sorted(word for row in rows for cell in row for word in cell.split())


def test_rows_of_another_length_are_refused() -> None:
    with pytest.raises(ValueError, match=r"every row must have 4 cells, got rows of \[3, 4\]"):
        text_table(HEAD, [("a", "b", "c")])


def test_html_escapes_every_text() -> None:
    bad = "<script>alert('x') & \"y\"</script>"
    page = html_table((bad,), [(bad,)], caption=(bad, bad), notes=(bad,))
    assert "<script>" not in page
    assert page.count("&lt;script&gt;") == 5
    # Every element is closed.
    for tag in ("table", "caption", "thead", "tbody", "tr", "th", "td", "ul", "li"):
        assert len(re.findall(rf"<{tag}\b", page)) == page.count(f"</{tag}>") > 0


def test_html_without_head_names_its_rows() -> None:
    page = html_table(None, [("point", "[0 1]"), ("cost", "rho = 1")], row_names=True)
    assert "<thead>" not in page
    assert page.count("<th>") == page.count("<td>") == 2


def test_numbers_are_aligned_to_the_right_and_a_block_has_its_style() -> None:
    page = html_block(html_table(("a", "b"), [("x", "1")], right=(1,)))
    assert page.count("<td class=right>1</td>") == page.count("<th class=right>b</th>") == 1
    assert page.startswith('<div class="dpmedian"><style scoped>')
    named = html_table(None, [("x", "1")], row_names=True, right=(1,))
    assert "<th>x</th><td class=right>1</td>" in named


def test_pairs_are_aligned() -> None:
    assert text_pairs([("point", "[0 1]"), ("error radius", "0.5")]) == "  point         [0 1]\n  error radius  0.5"
    assert text_pairs([]) == ""
