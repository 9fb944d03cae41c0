"""The site: formulas are typeset without changing their meaning, and a reader needs no network."""

import re
import subprocess
import sys

import pytest

from transcripts import ROOT

sys.path.insert(0, str(ROOT / "docs" / "_sphinx"))


@pytest.mark.parametrize(
    ("plain", "formulas"),
    [
        ("is rho-zCDP with rho = T D^2/(2 sigma^2), whatever", [r"\rho", r"\rho = T D ^{2} / (2 \sigma ^{2})"]),
        ("rounded to multiples of 2^-bits before", [r"2 ^{-\text{ bits }}"]),
        ("with theta_{t+1} the projection", [r"\theta _{t + 1}"]),
        ("f_k becomes f_k' with |f_k - f_k'| <= D.", ["f_{k}", "f_{k}'", r"|f_{k} - f_{k}'| \le D"]),
        ("at least sqrt(2d) records, or sqrt 2", [r"\sqrt{2 d}", r"\sqrt{2}"]),
        ("a record's distance, a 64-bit integer (2020), 1e-299", []),
        ("the paper\u2019s T", ["T"]),
        ("on a vector of sensitivity D' = a + s", ["D' = a + s"]),
        ("an unfinished bracket (see x", ["x"]),
    ],
)
def test_formulas_are_found_in_plain_text(plain, formulas):
    nodes = pytest.importorskip("docutils.nodes")
    from formulas import typeset

    assert [piece.astext() for piece in typeset(plain) if isinstance(piece, nodes.math)] == formulas


def test_what_is_no_formula_stays_as_it_is():
    nodes = pytest.importorskip("docutils.nodes")
    from formulas import typeset

    for proof in (ROOT / "python" / "dpmedian").rglob("*.md"):
        text = proof.read_text("utf-8")
        pieces = typeset(text)
        plain = "".join(piece for piece in pieces if not isinstance(piece, nodes.math))
        words = re.findall(r"[a-z]{4,}", plain)
        # Words of the language are in formulas only if they name a quantity or a function.
        lost = set(re.findall(r"[a-z]{4,}", text)) - set(words)
        assert not {word for word in lost if len(word) > 7}, proof


@pytest.mark.slow
def test_the_documentation_builds_without_warnings_and_needs_no_network(tmp_path):
    for needed in ("pydata_sphinx_theme", "flwr"):
        pytest.importorskip(needed)
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", ROOT / "docs", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    # The page of proofs consists of the files beside the code, and the browser draws its formulas.
    page = (tmp_path / "proofs.html").read_text()
    proofs = list((ROOT / "python" / "dpmedian").rglob("*.md"))
    assert "accounting.md" in {proof.name for proof in proofs}
    for proof in proofs:
        title = proof.read_text("utf-8").splitlines()[0].removeprefix("# ")
        assert title.replace("'", "\u2019") in page  # Quotes are curled.
    assert page.count("<math") > 1000
    # Every example is in the gallery, except the one that writes the bundled data.
    examples = {path.stem for path in (ROOT / "examples").glob("*.py")}
    assert examples - {path.stem for path in (tmp_path / "gallery").glob("*.html")} == {"make_positions"}
    for path in tmp_path.rglob("*.html"):
        loaded = re.findall(r"<(?:script|img|iframe)[^>]*\bsrc=\"(http[^\"]*)", path.read_text("utf-8"))
        loaded += re.findall(
            r"<link[^>]*rel=\"(?:stylesheet|preload|icon)\"[^>]*href=\"(http[^\"]*)", path.read_text("utf-8")
        )
        assert loaded == [], path


def test_every_answer_has_main_entries_of_the_index_which_the_search_shows_first():
    """The search of the site shows a main entry of the index that contains the query above all other hits."""
    sections = (ROOT / "docs" / "faq.md").read_text("utf-8").split("\n## ")[1:]
    for section in sections:
        question, _, directive, *_ = section.splitlines()
        assert directive.startswith("```{index} !"), question
        entries = [entry.strip() for entry in directive.removeprefix("```{index} ").split(",")]
        assert all(entry.startswith("!") for entry in entries), question
