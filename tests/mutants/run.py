"""Applies every mutant of `table.py` to a temporary copy of the sources and runs the test that must notice it.

`python tests/mutants/run.py [words]` runs the mutants whose name or file contains one of the words (all of them by
default) and prints which test caught each. It fails if a mutant survives, if its text is no longer in the source, or if
its test does not pass without it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from table import MUTANTS, Mutant

import dpmedian._core

ROOT = Path(__file__).resolve().parents[2]
CORE = Path(dpmedian._core.__file__)
COPIED = ("Cargo.toml", "Cargo.lock", "README.md", "pyproject.toml", "benches", "python", "src", "tests")


class Copy:
    """A copy of the sources, with a compiled core in its Python package."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(
                    ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.so", "mutants")
                )
            else:
                shutil.copy2(ROOT / name, folder)
        self.core = folder / "python" / "dpmedian" / CORE.name
        shutil.copy2(CORE, self.core)
        # One target directory for all mutants: only this crate is compiled again. The test profile is optimised.
        self.target = ROOT / "target" / "mutants"
        self.environment = {
            **os.environ,
            "CARGO_TARGET_DIR": str(self.target),
            "CARGO_INCREMENTAL": "1",
            "PYO3_BUILD_EXTENSION_MODULE": "1",
            "PYTHONPATH": str(folder / "python"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False
        )

    def compiles(self, *command: str) -> None:
        built = self.run("cargo", *command)
        if built.returncode != 0:
            raise Broken(f"does not compile:\n{built.stderr[-2000:]}")

    def passes(self, test: str) -> bool:
        """Whether the test passes. A test that does not run, or that did not exist, is an error and no failure."""
        kind, name = test.split(" ", 1)
        if kind == "cargo":
            self.compiles("test", "--quiet", "--lib", "--no-run")
            ran = self.run("cargo", "test", "--quiet", "--lib", "--", "--exact", name)
            if "running 1 test" not in ran.stdout:
                raise Broken(f"there is no test {name}")
            return ran.returncode == 0
        ran = self.run(sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", *name.split())
        if ran.returncode not in (0, 1) or "ERROR" in ran.stdout:
            raise Broken(f"{name} did not run:\n{ran.stdout[-2000:]}{ran.stderr[-500:]}")
        return ran.returncode == 0

    def install(self) -> None:
        """Compiles the extension and puts it into the package."""
        self.compiles("build", "--quiet", "--profile", "test", "--lib", "--features", "python")
        built = [self.target / "debug" / name for name in ("libdpmedian.so", "libdpmedian.dylib", "dpmedian.dll")]
        # A new file, not new bytes in the old one, which a running interpreter may have mapped.
        self.core.unlink()
        shutil.copy2(next(file for file in built if file.exists()), self.core)


class Broken(Exception):
    """The mutant could not be tried."""


def patch(source: str, mutant: Mutant) -> str:
    if source.count(mutant.old) != 1:
        raise Broken(f"its text occurs {source.count(mutant.old)} times in {mutant.file}, not once")
    return source.replace(mutant.old, mutant.new)


def trial(copy: Copy, mutant: Mutant) -> bool:
    """Whether the named test fails on the mutant."""
    file = copy.folder / mutant.file
    source = file.read_text(encoding="utf-8")
    file.write_text(patch(source, mutant), encoding="utf-8")
    compiled = mutant.file.endswith(".rs") and mutant.caught_by.startswith("pytest")
    try:
        if compiled:
            copy.install()
        return not copy.passes(mutant.caught_by)
    finally:
        file.write_text(source, encoding="utf-8")
        if compiled:
            copy.core.unlink()
            shutil.copy2(CORE, copy.core)


def chosen(words: Iterable[str]) -> list[Mutant]:
    words = list(words)
    return [m for m in MUTANTS if not words or any(word in m.name or word in m.file for word in words)]


def main(words: list[str]) -> int:
    start, failures = time.monotonic(), 0
    mutants = chosen(words)
    width = max(len(mutant.name) for mutant in mutants)
    with tempfile.TemporaryDirectory(prefix="dpmedian-mutants-") as folder:
        copy = Copy(Path(folder))
        for test in sorted({mutant.caught_by for mutant in mutants}):
            try:
                if not copy.passes(test):
                    raise Broken("it fails without any mutant")
            except Broken as broken:
                failures += 1
                print(f"test {test}: {broken}", flush=True)
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
