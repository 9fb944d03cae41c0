"""Apply every mutant of `table.py` to a temporary copy of the sources, and run the test that must notice it.

`python tests/mutants/run.py [words]` runs the mutants whose name or file contains one of the words (by default all
mutants) and prints which test caught each. The script fails if a mutant survives, if the text of a mutant is no longer
in the source, or if its test does not pass without the mutant.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from table import MUTANTS, Mutant

import dpmedian._core

ROOT = Path(__file__).resolve().parents[2]
# The directory is always the same, so that cargo compiles only what a mutant changed.
MUTANTS_TARGET = ROOT / "target" / "mutants"
CORE = Path(dpmedian._core.__file__)
# In seconds. The first compilation of the dependencies takes the longest.
TIMEOUT = 1800
COPIED = ("Cargo.toml", "Cargo.lock", "README.md", "pyproject.toml", "benches", "crates", "python", "src", "tests")


class Copy:
    """A copy of the sources, with a compiled core in its Python package."""

    def __init__(self, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self.folder = folder
        skip = shutil.ignore_patterns("__pycache__", "*.so")
        for name in COPIED:
            # Plain copies get the current time, so that cargo does not take the build of the last mutant for a new one.
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, folder / name, ignore=skip, copy_function=shutil.copy)
            else:
                shutil.copy(ROOT / name, folder)
        shutil.copy(CORE, folder / "python" / "dpmedian")
        self.environment = {
            **os.environ,
            # The target directory of the repository is not used, because a mutant must not remain there.
            "CARGO_TARGET_DIR": str(MUTANTS_TARGET),
            "PYTHONPATH": str(folder / "python"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(
                command, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=TIMEOUT
            )
        except subprocess.TimeoutExpired:
            raise Broken(f"{command[0]} did not end within {TIMEOUT} seconds") from None

    def passes(self, *tests: str) -> bool:
        """Whether the tests pass. A test that does not run, or does not exist, is an error and not a failure."""
        names = {kind: [test.split(" ", 1)[1] for test in tests if test.startswith(kind)] for kind in KINDS}
        return all(KINDS[kind](self, names[kind]) for kind in KINDS if names[kind])

    def cargo(self, names: list[str]) -> bool:
        built = self.run("cargo", "test", "--quiet", "--lib", "--no-run")
        if built.returncode != 0:
            raise Broken(f"does not compile:\n{built.stderr[-2000:]}")
        ran = self.run("cargo", "test", "--quiet", "--lib", "--", "--exact", *names)
        if f"running {len(names)} test" not in ran.stdout:
            raise Broken(f"not all of these tests exist: {', '.join(names)}")
        return ran.returncode == 0

    def pytest(self, names: list[str]) -> bool:
        ran = self.run(sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", *names)
        if ran.returncode not in (0, 1) or "ERROR" in ran.stdout:
            raise Broken(f"{', '.join(names)} did not run:\n{ran.stdout[-2000:]}{ran.stderr[-500:]}")
        return ran.returncode == 0


KINDS = {"cargo": Copy.cargo, "pytest": Copy.pytest}


class Broken(Exception):
    """The mutant could not be tried."""


def patch(source: str, mutant: Mutant) -> str:
    if source.count(mutant.old) != 1:
        raise Broken(f"its text occurs {source.count(mutant.old)} times in {mutant.file}, not once")
    return source.replace(mutant.old, mutant.new)


def trial(copy: Copy, mutant: Mutant) -> bool:
    """Whether the named test fails on the mutant."""
    if mutant.file.endswith(".rs") != mutant.caught_by.startswith("cargo"):
        raise Broken("a mutant in Rust needs a test in Rust: the compiled core of the copy stays as it is")
    file = copy.folder / mutant.file
    source = file.read_text(encoding="utf-8")
    file.write_text(patch(source, mutant), encoding="utf-8")
    try:
        return not copy.passes(mutant.caught_by)
    finally:
        file.write_text(source, encoding="utf-8")


def chosen(words: Iterable[str]) -> list[Mutant]:
    words = list(words)
    return [m for m in MUTANTS if not words or any(word in m.name or word in m.file for word in words)]


def main(words: list[str]) -> int:
    start, failures = time.monotonic(), 0
    mutants = chosen(words)
    width = max(len(mutant.name) for mutant in mutants)
    copy = Copy(MUTANTS_TARGET / "copy")
    # A test that fails even without a mutant would catch everything.
    if not copy.passes(*sorted({mutant.caught_by for mutant in mutants})):
        raise SystemExit("the tests fail without any mutant: run `make test` first")
    print(f"{'mutant':<{width}}  {'result':<8}  caught by", flush=True)
    for mutant in mutants:
        try:
            result, detail = ("caught", "") if trial(copy, mutant) else ("SURVIVED", "")
        except Broken as broken:
            result, detail = "BROKEN", f"\n    {broken}"
        failures += result != "caught"
        print(f"{mutant.name:<{width}}  {result:<8}  {mutant.caught_by}{detail}", flush=True)
    print(f"{len(mutants)} mutants, {failures} failures ({time.monotonic() - start:.0f} s)")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
