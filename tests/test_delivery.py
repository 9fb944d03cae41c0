"""After a charge no message says that nothing was spent, and no result that was paid for is lost."""

import errno
import io
import itertools
import json
import os
import shlex
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import dpmedian
from dpmedian.cli import main
from dpmedian.data import load_positions
from dpmedian.ledger.store import FileStore

COMMAND = [sys.executable, "-m", "dpmedian"]
BUDGET = ["--epsilon", "1", "--delta", "1e-6"]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs /dev/full and POSIX permissions")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    points = load_positions()
    rows = "\n".join(f"{x},{y}" for x, y in points)
    (tmp_path / "points.csv").write_text(f"x,y\n{rows}\n")
    dpmedian.Ledger(rho=1.0, path=tmp_path / "ledger.json")
    return tmp_path


RELEASE = [*COMMAND, "release", "points.csv", *BUDGET, "--ledger", "ledger.json", "--name", "typical place"]


def release(folder: Path, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(RELEASE, cwd=folder, stderr=subprocess.PIPE, text=True, check=False, **options)


def in_shell(folder: Path, redirections: str) -> subprocess.CompletedProcess[str]:
    """The same command with streams that can be closed only by a shell."""
    line = f"{shlex.join(RELEASE)} {redirections}"
    return subprocess.run(line, shell=True, cwd=folder, capture_output=True, text=True, check=False)


def states(folder: Path) -> list[tuple[str, str]]:
    return [(entry.name, entry.state) for entry in dpmedian.Ledger.open(folder / "ledger.json").entries]


def delivered(stderr: str) -> dict:
    """The release that was printed to stderr, before the line that says why."""
    text, _, reason = stderr.rpartition("dpmedian: error: ")
    assert "is spent" in reason
    return json.loads(text)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_full_disk_loses_no_point_and_says_that_it_is_spent(folder):
    with open("/dev/full", "w") as full:
        done = release(folder, stdout=full)
    assert done.returncode == 5
    assert states(folder) == [("typical place", "released")]
    found = delivered(done.stderr)
    assert found["name"] == "typical place"
    assert set(found["point"]) == {"x", "y"}


def test_a_closed_pipe_loses_no_point_and_says_that_it_is_spent(folder):
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = release(folder, stdout=writing)
    finally:
        os.close(writing)
    assert done.returncode == 5
    assert states(folder) == [("typical place", "released")]
    assert delivered(done.stderr)["method"] == "adaptive"


def test_a_closed_stdout_loses_no_point(folder):
    """Python then has no stdout, and prints to nowhere without an error."""
    done = in_shell(folder, ">&-")
    assert done.returncode == 5
    assert states(folder) == [("typical place", "released")]
    assert set(delivered(done.stderr)["point"]) == {"x", "y"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("redirections", "code"),
    [(">&- 2>&-", 5), (">/dev/full 2>/dev/full", 5), ("--seed 1 2>/dev/full", 0), ("--seed 1 2>&-", 0)],
)
def test_the_exit_code_does_not_depend_on_whether_stderr_takes_the_message(folder, redirections, code):
    done = in_shell(folder, redirections)
    assert done.returncode == code
    assert states(folder) == [("typical place", "released")]
    if code == 0:
        # The warning about the seed was not written to stdout in place of the closed stderr.
        assert set(json.loads(done.stdout)["point"]) == {"x", "y"}


@pytest.mark.slow
@pytest.mark.parametrize("command", ["plan 2000 2 --rho 1", "ledger show ledger.json", "example positions.csv"])
def test_no_command_is_silent_about_output_that_nobody_got(folder, command):
    for redirection in (">/dev/full", ">&-"):
        line = f"{shlex.join(COMMAND)} {command} {redirection}"
        done = subprocess.run(line, shell=True, cwd=folder, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr[:17]) == (2, "dpmedian: error: ")


def test_a_closed_stdin_is_an_error_that_says_so(folder):
    line = f"{shlex.join(COMMAND)} release - {shlex.join(BUDGET)} <&-"
    done = subprocess.run(line, shell=True, cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "dpmedian: error: stdin is closed\n")


@pytest.mark.parametrize("broken", ["to_json", "report"])
def test_whatever_breaks_after_the_charge_the_exit_code_says_that_it_is_spent(folder, broken, monkeypatch, capsys):
    def fails(*_: object, **__: object) -> None:
        raise ValueError("this part is broken")

    monkeypatch.chdir(folder)
    monkeypatch.setattr(dpmedian.Release, broken, fails)
    code = main([*RELEASE[3:], "--report", "page.html"])
    assert (code, states(folder)) == (5, [("typical place", "released")])
    printed = capsys.readouterr().err
    assert "point" in printed
    assert "is spent" in printed


def test_a_failure_whose_record_cannot_be_made_is_a_failure_that_is_charged(folder, monkeypatch, capsys):
    def fails(*_: object, **__: object) -> None:
        raise ValueError("this part is broken")

    def finds_nothing(self: dpmedian.Plan, *_: object, **__: object) -> None:
        raise dpmedian.ReleaseFailed("nothing was found", self.cost, plan=self)

    monkeypatch.chdir(folder)
    monkeypatch.setattr(dpmedian.Plan, "run", finds_nothing)
    for broken in ("to_json", "report"):
        monkeypatch.setattr(dpmedian.ReleaseFailed, broken, fails)
    assert main([*RELEASE[3:], "--report", "page.html"]) == 4
    assert "nothing was found (the budget is spent" in capsys.readouterr().err


class Gone(io.StringIO):
    """A terminal that was closed."""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        raise OSError(5, "Input/output error")


def test_a_terminal_that_is_gone_stops_no_run(monkeypatch):
    ledger = dpmedian.Ledger(rho=1.0)
    monkeypatch.setattr(sys, "stderr", Gone())
    release = dpmedian.geometric_median(load_positions(), rho=0.1, progress=True, ledger=ledger)
    assert release.point.shape == (2,)
    assert [entry.state for entry in ledger.entries] == ["released"]


def test_a_warning_that_cannot_be_shown_takes_no_point_away(folder, monkeypatch):
    """A full disk breaks both the ledger's note and stderr."""
    ledger = dpmedian.Ledger.open(folder / "ledger.json")

    def gone(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    def lose_the_ledger(fraction: float) -> None:
        if fraction == 0.0:
            monkeypatch.setattr(dpmedian.Ledger, "_mark", gone)
            monkeypatch.setattr(warnings, "showwarning", gone)

    release = dpmedian.geometric_median(load_positions(), rho=0.1, progress=lose_the_ledger, ledger=ledger)
    assert release.point.shape == (2,)
    assert states(folder) == [("geometric median", "pending")]


@pytest.mark.parametrize(("allowed", "code", "left"), [(0, 2, []), (1, 0, [("typical place", "pending")])])
def test_a_disk_that_becomes_read_only_is_refused_before_the_charge_or_loses_no_point(
    folder, allowed, code, left, monkeypatch, capsys
):
    """The ledger is written first for the charge, and then to record how the run ended."""
    write, writes = FileStore._write_copy, itertools.count()

    def read_only(*arguments):
        if next(writes) >= allowed:
            raise OSError(errno.EROFS, "Read-only file system")
        return write(*arguments)

    monkeypatch.chdir(folder)
    monkeypatch.setattr(FileStore, "_write_copy", read_only)
    assert (main(RELEASE[3:]), states(folder)) == (code, left)
    out, err = capsys.readouterr()
    assert "Read-only file system" in err
    assert ("is spent" in err, out != "") == (allowed == 1, allowed == 1)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="the superuser writes anywhere")
def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_spent(folder):
    folder.chmod(0o500)
    try:
        done = release(folder, stdout=subprocess.PIPE)
    finally:
        folder.chmod(0o700)
    assert done.returncode == 2
    assert states(folder) == []
