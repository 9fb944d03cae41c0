"""What the README, the documentation, the docstrings and the examples show is what happens."""

import doctest
import importlib
import os
import pkgutil
import subprocess
import sys

import pytest

import dpmedian
from transcripts import PAGES, ROOT, refresh

MODULES = [name for _, name, _ in pkgutil.walk_packages(dpmedian.__path__, "dpmedian.")]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
# What the doors need beyond numpy.
OPTIONAL = {
    "dpmedian.sklearn": "sklearn",
    "dpmedian.opendp": "opendp",
    "dpmedian.plot": "matplotlib",
    "dpmedian.flower": "flwr",
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_code_block_runs_and_prints_what_the_page_says(page):
    """`make transcripts` writes the outputs anew after a change of them that is meant."""
    for extra in ("matplotlib", "sklearn", "opendp", "pandas", "flwr"):
        pytest.importorskip(extra)
    written, printed = refresh(page)
    assert written == printed


@pytest.mark.parametrize("name", ["dpmedian", *(name for name in MODULES if not name.endswith(("__main__", "_core")))])
def test_the_examples_in_docstrings_are_right(name):
    pytest.importorskip(OPTIONAL.get(name, "numpy"))
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda script: script.name)
def test_every_example_runs_without_a_word_on_stderr(script, tmp_path):
    """As a user runs it, without a seed; `make demo` runs the quickstart."""
    pytest.importorskip("matplotlib")
    if script.stem == "flower_simulation":
        pytest.importorskip("ray", reason="`make flower` installs Ray and runs the simulation")
    environment = {**os.environ, "MPLBACKEND": "template"}  # draws nothing and opens no window
    command = [sys.executable, script]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=300, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


def test_every_public_name_is_in_the_reference():
    reference = (ROOT / "docs" / "api.md").read_text()
    blocks = importlib.import_module("dpmedian.building_blocks").__all__
    missing = [name for name in dpmedian.__all__ if f"dpmedian.{name}" not in reference and name not in blocks]
    assert missing == ["__version__"]
