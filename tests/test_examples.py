"""The README, the documentation, the docstrings and the examples show what really happens."""

import doctest
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

import dpmedian
from transcripts import PAGES, ROOT, refresh

PACKAGE = Path(dpmedian.__file__).parent
# Modules whose docstrings show a session at the prompt.
MODULES = [
    ".".join(("dpmedian", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
    for path in sorted(PACKAGE.rglob("*.py"))
    if ">>> " in path.read_text("utf-8")
]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
# Pages that take half a second or more, and all examples except the one that `make demo` runs.
SLOW = {
    "README.md",
    "docs/command-line.md",
    "docs/methods.md",
    *(
        f"docs/how-to/{name}.md"
        for name in (
            "confidence",
            "districts",
            "embeddings",
            "federated",
            "flower",
            "opendp",
            "other-libraries",
            "per-district-and-month",
            "positions",
            "quarter",
            "reviewers",
        )
    ),
    *(f"examples/{script.name}" for script in EXAMPLES if script.stem != "quickstart"),
}


def marked(path: Path) -> ParameterSet:
    name = path.relative_to(ROOT).as_posix()
    return pytest.param(path, id=name, marks=[pytest.mark.slow] * (name in SLOW))


# The packages that the integrations need in addition to numpy.
OPTIONAL = {
    "dpmedian.sklearn": "sklearn",
    "dpmedian.opendp": "opendp",
    "dpmedian.flower": "flwr",
}


@pytest.mark.parametrize("page", [marked(page) for page in PAGES])
def test_every_code_block_runs_and_prints_what_the_page_says(page):
    """`make transcripts` writes the outputs again after an intended change."""
    for extra in ("matplotlib", "sklearn", "opendp", "pandas", "flwr"):
        pytest.importorskip(extra)
    written, printed = refresh(page)
    assert written == printed


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_docstrings_are_right(name):
    pytest.importorskip(OPTIONAL.get(name, "numpy"))
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("script", [marked(script) for script in EXAMPLES])
def test_every_example_runs_without_a_word_on_stderr(script, tmp_path):
    """Each example runs as users run it, without a seed; `make demo` runs the quickstart."""
    pytest.importorskip("matplotlib")
    if script.stem == "flower_simulation":
        pytest.importorskip("ray", reason="`make flower` installs Ray and runs the simulation")
    environment = {**os.environ, "MPLBACKEND": "template"}  # The backend draws nothing and opens no window.
    command = [sys.executable, script]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=300, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


def test_every_public_name_is_in_the_reference():
    reference = (ROOT / "docs" / "api.md").read_text()
    blocks = importlib.import_module("dpmedian.building_blocks").__all__
    missing = [name for name in dpmedian.__all__ if f"dpmedian.{name}" not in reference and name not in blocks]
    assert missing == ["__version__"]
