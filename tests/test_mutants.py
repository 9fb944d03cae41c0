"""The table of mutants is kept up to date with the code. `make mutants` runs the mutants, which takes too long for
every change.
"""

import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "mutants"))

from table import MUTANTS, Mutant  # noqa: E402


@cache
def text_of(path: Path) -> str:
    return path.read_text()


def problems(mutant: Mutant) -> Iterator[str]:
    """Yield what is wrong with one row of the table."""
    if (times := text_of(ROOT / mutant.file).count(mutant.old)) != 1:
        yield f"{mutant.name}: its text stands {times} times in {mutant.file}"
    kind, test = mutant.caught_by.split(" ", 1)
    module, name = test.split("::", 1)
    if kind == "cargo":
        files = (ROOT / "src" / module).rglob("*.rs")
        found = any(f"fn {name.rpartition('::')[2]}(" in text_of(file) for file in files)
    else:
        found = f"def {name.partition('[')[0]}(" in text_of(ROOT / module)
    if not found:
        yield f"{mutant.name}: there is no test {mutant.caught_by}"


def test_every_mutant_still_applies_and_its_test_exists() -> None:
    assert not [problem for mutant in MUTANTS for problem in problems(mutant)]


def test_a_mutant_whose_text_or_test_is_gone_is_a_problem() -> None:
    gone = Mutant("gone", "python/dpmedian/tape.py", "no such text", "", "pytest tests/test_wall.py::test_no_such")
    assert len(list(problems(gone))) == 2
