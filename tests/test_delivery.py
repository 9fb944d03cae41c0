"""After a charge nothing says that nothing was spent, and what was paid for is not lost."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import dpmedian
from dpmedian.data import load_positions

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


def release(folder: Path, **options) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, "release", "points.csv", *BUDGET, "--ledger", "ledger.json", "--name", "typical place"]
    return subprocess.run(command, cwd=folder, stderr=subprocess.PIPE, text=True, check=False, **options)


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


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="the superuser writes anywhere")
def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_spent(folder):
    folder.chmod(0o500)
    try:
        done = release(folder, stdout=subprocess.PIPE)
    finally:
        folder.chmod(0o700)
    assert done.returncode == 2
    assert states(folder) == []
