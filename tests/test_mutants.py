"""The table of mutants stays true as the code moves; `make mutants` runs it, which takes too long for every change."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "mutants"))

from table import MUTANTS, Mutant  # noqa: E402


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_still_applies_and_its_test_exists(mutant: Mutant) -> None:
    assert (ROOT / mutant.file).read_text().count(mutant.old) == 1
    kind, test = mutant.caught_by.split(" ", 1)
    module, name = test.split("::", 1)
    if kind == "cargo":
        files = (ROOT / "src" / module).rglob("*.rs")
        assert any(f"fn {name.rpartition('::')[2]}(" in file.read_text() for file in files)
    else:
        assert f"def {name.partition('[')[0]}(" in (ROOT / module).read_text()
