"""Runs the code blocks of Markdown pages; `python tests/transcripts.py PAGE ...` writes their outputs again.

A ```python block runs in the namespace of its page, and a ```text block right after it is its output. In a ```console
block every line after `$ ` is a command of the shell, and the lines up to the next command are its output, including
errors. Other blocks (```sh: installing, building) are not run.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00")
# A run without a seed makes another number of queries every time.
QUERIES = re.compile(r"(?<=trace: )\d+(?= queries spent)")
BLOCK = re.compile(r"^```(python|text|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@contextlib.contextmanager
def _workplace() -> Iterator[None]:
    """An empty directory to run in, like that of a reader, from which the examples can be found."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        (place / "examples").symlink_to(ROOT / "examples")
        os.chdir(place)
        try:
            yield
        finally:
            os.chdir(before)


def _run_python(code: str, namespace: dict[str, object], name: str) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(code, name, "exec"), namespace)
    return printed.getvalue()


def _run_console(block: str) -> str:
    # The examples use a seed here, and without this setting each would warn about it, with the path of a file.
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONWARNINGS": "ignore",
    }
    lines = []
    for command in re.findall(r"^\$ (.*)$", block, re.MULTILINE):
        done = subprocess.run(
            command, shell=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment
        )
        # A page contains no dates of runs, and one number of queries for all runs without a seed.
        printed = QUERIES.sub("136", MOMENT.sub("2026-01-31T12:00:00+00:00", done.stdout))
        lines.append(f"$ {command}\n{printed}".rstrip())
    return "\n".join(lines) + "\n"


def refresh(page: Path) -> tuple[str, str]:
    """The page as it is, and as it reads with the outputs of a new run."""
    text = page.read_text(encoding="utf-8")
    namespace: dict[str, object] = {"__name__": "__main__"}
    pieces, end, printed = [], 0, None
    os.environ.setdefault("MPLBACKEND", "Agg")
    with _workplace():
        for found in BLOCK.finditer(text):
            kind, body = found.groups()
            between = text[end : found.start()]
            if kind == "python":
                line = text[: found.start(2)].count("\n")
                printed = _run_python("\n" * line + body, namespace, str(page))
            elif kind == "console":
                body, printed = _run_console(body), None
            elif printed is not None and not between.strip():
                body, printed = printed.rstrip() + "\n", None
            pieces += [between, f"```{kind}\n{body}```"]
            end = found.end()
    return text, "".join([*pieces, text[end:]])


if __name__ == "__main__":
    for name in sys.argv[1:] or PAGES:
        old, new = refresh(Path(name))
        Path(name).write_text(new, encoding="utf-8")
        print("written again" if old != new else "unchanged", name)
