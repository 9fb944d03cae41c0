"""Statements of the project about itself outside of the code: links, the citation, the marks of its tests."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXTS = ["CITATION.cff", "pyproject.toml", ".github/ISSUE_TEMPLATE/config.yml"]


@pytest.mark.parametrize("name", TEXTS)
def test_there_is_one_public_address(name):
    found = set(re.findall(r"https://github\.com/[\w-]+/[\w-]+", (ROOT / name).read_text()))
    assert found == {"https://github.com/dpmedian/dpmedian"}


def test_the_citation_has_no_version_of_its_own():
    """The version number is in Cargo.toml only, so that no other place can be forgotten."""
    assert not re.search(r"^version:", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)


def test_cases_that_proptest_found_are_not_ignored():
    assert "proptest" not in (ROOT / ".gitignore").read_text()


def test_of_each_test_one_case_is_quick(tmp_path):
    """The hook of conftest.py is run on tests made for this purpose. It leaves one case of each test quick, but never a
    case that is marked slow.
    """
    (tmp_path / "test_made.py").write_text(
        "import pytest\n"
        "@pytest.mark.parametrize('name', [pytest.param('a', marks=pytest.mark.slow), 'b', 'c'])\n"
        "def test_one(name): pass\n"
        "@pytest.mark.parametrize('name', ['a', 'b'])\n"
        "def test_two(name): pass\n"
    )
    options = ["-p", "conftest", "-c", ROOT / "pyproject.toml", "--rootdir", tmp_path, "-m", "not slow"]
    command = [sys.executable, "-m", "pytest", *options, "--collect-only", tmp_path]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "tests"), *sys.path]),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # Plugins take most of the time to start.
    }
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert re.findall(r"test_\w+\[\w\]", done.stdout) == ["test_one[b]", "test_two[a]"], done.stdout + done.stderr
