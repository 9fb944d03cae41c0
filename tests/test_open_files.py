"""Files that are not loaded: the same bits as in memory, errors instead of wrong answers, and caches that leave
nothing.
"""

import errno
import os
import signal
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import numpy as np
import pytest

import dpmedian
from dpmedian import nonprivate
from dpmedian.files import open_points, opening, read_points
from dpmedian.sources.file import FileRecords
from dpmedian.sources.records import Records

BUDGET = {"rho": 2.0, "method": "adaptive"}
POINTS = np.random.default_rng(0).normal(size=(3000, 3)).astype(np.float32)


def released(points, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dpmedian.geometric_median(points, **{**BUDGET, **options}, seed=1).point


@pytest.fixture
def arrow():
    return pytest.importorskip("pyarrow")


def write(arrow, path: Path, points, *, compression: str | None = None, per_batch: int = 700) -> Path:
    """Write the format of the extension, with several batches, one of them empty, and several row groups."""
    names = [f"x{j}" for j in range(points.shape[1])]
    table = arrow.table({name: points[:, j] for j, name in enumerate(names)})
    if path.suffix == ".parquet":
        import pyarrow.parquet as parquet

        parquet.write_table(table, path, row_group_size=per_batch)
        return path
    options = arrow.ipc.IpcWriteOptions(compression=compression)
    with arrow.OSFile(os.fspath(path), "wb") as sink, arrow.ipc.new_file(sink, table.schema, options=options) as out:
        out.write_table(table.slice(0, 0))
        out.write_table(table, max_chunksize=per_batch)
    return path


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_file_releases_what_the_array_does(tmp_path, arrow, dtype):
    points = POINTS.astype(dtype)
    expected = released(points)
    np.save(tmp_path / "c.npy", points)
    np.save(tmp_path / "fortran.npy", np.asfortranarray(points))
    write(arrow, tmp_path / "a.arrow", points)
    write(arrow, tmp_path / "packed.feather", points, compression="lz4")
    write(arrow, tmp_path / "a.parquet", points)
    (tmp_path / "parts").mkdir()
    for part, some in enumerate(np.array_split(points, 4)):
        write(arrow, tmp_path / "parts" / f"{part}.parquet", some)
    for path in sorted(tmp_path.iterdir()):
        opened = open_points(path)
        assert isinstance(opened, FileRecords), path
        assert opened.shape == points.shape
        assert np.array_equal(released(opened), expected), path
        assert np.array_equal(released(os.fspath(path)), expected), path


def test_other_methods_read_files_too(tmp_path):
    np.save(tmp_path / "a.npy", POINTS[:200, :2])
    for options in (
        {"method": "dpgd", "radius": 2.0},
        {"method": "loc_dpgd", "radius": 8.0, "resolution": 0.5, "rho": 20.0},
        {"method": "inverse_sensitivity", "rho": None, "epsilon": 2.0, "radius": 4.0, "resolution": 0.1},
    ):
        assert np.array_equal(released(tmp_path / "a.npy", **options), released(POINTS[:200, :2].copy(), **options))


def test_columns_are_chosen_where_they_lie(tmp_path, arrow):
    np.save(tmp_path / "c.npy", POINTS)
    np.save(tmp_path / "fortran.npy", np.asfortranarray(POINTS))
    expected = released(np.ascontiguousarray(POINTS[:, [2, 0]]))
    for path in sorted(tmp_path.iterdir()):
        assert np.array_equal(released(path, columns=[3, 1]), expected)
    for name in ("a.arrow", "a.parquet"):
        path = write(arrow, tmp_path / name, POINTS)
        assert np.array_equal(released(path, columns=["x2", "x0"]), expected)
        assert open_points(path, columns=["x2", "x0"]).columns == ("x2", "x0")
    assert np.array_equal(released(POINTS, columns=[3, 1]), expected)
    with pytest.raises(ValueError, match="'x7' is not there"):
        released(tmp_path / "a.parquet", columns=["x7"])


def test_what_cannot_stay_a_file_is_loaded(tmp_path):
    np.save(tmp_path / "integers.npy", np.arange(6).reshape(3, 2))
    np.savez(tmp_path / "a.npz", points=POINTS)
    (tmp_path / "a.csv").write_text("x,y\n1,2\n3,4\n")
    for path in sorted(tmp_path.iterdir()):
        opened = open_points(path)
        assert isinstance(opened, Records), path
        assert np.array_equal(opened.array, read_points(path).array)


def test_missing_and_infinite_values_are_named_replaced_or_dropped(tmp_path, arrow):
    points = POINTS.astype(np.float64)
    points[1234, 1], points[2000, 2] = np.nan, np.inf
    np.save(tmp_path / "a.npy", points)
    parquet = write(arrow, tmp_path / "a.parquet", points)
    ledger = dpmedian.Ledger(rho=10.0)
    for path in (tmp_path / "a.npy", parquet):
        with pytest.raises(ValueError, match=r"points\[1234, 1\] is not finite"):
            released(path, ledger=ledger)
        assert np.array_equal(released(path, nonfinite="center"), released(points, nonfinite="center"))
        private = {"neighbours": "add_remove", "n": 3000, "nonfinite": "drop"}
        assert np.array_equal(released(path, **private), released(points, **private))
    assert ledger.spent.rho == 0.0
    with pytest.raises(ValueError, match="not opened with nonfinite='drop'"):
        open_points(tmp_path / "a.npy").finite()


def test_a_file_that_is_cut_off_is_refused_before_the_charge(tmp_path):
    ledger = dpmedian.Ledger(rho=10.0)
    np.save(tmp_path / "a.npy", POINTS)
    whole = (tmp_path / "a.npy").read_bytes()
    for kept in (len(whole) - 1, len(whole) // 2, 60, 0):
        (tmp_path / "a.npy").write_bytes(whole[:kept])
        with pytest.raises((ValueError, OSError), match=r"a\.npy"):
            released(tmp_path / "a.npy", ledger=ledger)
    (tmp_path / "b.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(ValueError, match=r"b.parquet.*not a complete parquet"):
        released(tmp_path / "b.parquet", ledger=ledger)
    assert ledger.spent.rho == 0.0


@pytest.mark.parametrize("change", ["cut", "write"])
def test_a_file_that_changes_during_a_run_is_an_error_and_charged(tmp_path, change):
    path = tmp_path / "a.npy"
    np.save(path, np.random.default_rng(0).normal(size=(200_000, 3)))
    ledger = dpmedian.Ledger(rho=10.0)

    def spoil(done: float) -> None:
        if done > 0.0 and path.stat().st_size > 5000 and not spoiled:
            spoiled.append(done)
            if change == "cut":
                os.truncate(path, 4000)
            else:
                with path.open("r+b") as file:
                    file.seek(2000)
                    file.write(np.full(500, np.nan).tobytes())

    spoiled: list[float] = []
    with pytest.raises(RuntimeError, match=r"after its cost was charged.*cannot be read"):
        released(path, method="dpgd", radius=4.0, ledger=ledger, progress=spoil)
    assert spoiled
    assert ledger.spent.rho > 1.9


def test_a_cache_is_private_and_has_no_name(tmp_path, arrow, monkeypatch):
    path = write(arrow, tmp_path / "a.parquet", POINTS)
    (cache := tmp_path / "cache").mkdir()
    modes = []
    opened = opening.RecordFile
    monkeypatch.setattr(opening, "RecordFile", lambda path: modes.append(os.stat(path).st_mode & 0o777) or opened(path))
    records = open_points(path, cache=cache)
    assert modes == [0o600]
    assert list(cache.iterdir()) == []
    assert np.array_equal(released(records), released(POINTS))


def test_a_full_disk_is_said_before_the_charge(tmp_path, arrow, monkeypatch):
    path = write(arrow, tmp_path / "a.parquet", POINTS)
    (cache := tmp_path / "cache").mkdir()
    monkeypatch.setattr(opening.shutil, "disk_usage", lambda folder: Usage(0))
    with pytest.raises(OSError, match=r"too full to convert 'a.parquet'.*cache=.*needs 0 MiB") as raised:
        open_points(path, cache=cache)
    assert raised.value.errno == errno.ENOSPC
    assert list(cache.iterdir()) == []


class Usage:
    def __init__(self, free: int) -> None:
        self.free = free


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_of_a_cache_however_the_process_ends(tmp_path, arrow, sent):
    path = write(arrow, tmp_path / "a.parquet", POINTS)
    (cache := tmp_path / "cache").mkdir()
    script = f"""
        import time
        from dpmedian.files import open_points, opening
        blocks = opening._blocks
        def slowly(*arguments):
            for block in blocks(*arguments):
                print("converting", flush=True)
                time.sleep(60)
                yield block
        opening._blocks = slowly
        open_points({os.fspath(path)!r}, cache={os.fspath(cache)!r})
    """
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "converting\n"
    process.send_signal(sent)
    assert process.wait(30) != 0
    process.stdout.close()
    assert list(cache.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_disk_that_fills_up_is_said_too():
    with open("/dev/full", "wb") as full, pytest.raises(OSError, match=r"too full to convert 'a.parquet'"):
        opening._write(full, bytes(1 << 16), "here", "'a.parquet'")


@pytest.mark.slow
def test_a_hundred_million_records_in_a_file_are_released_with_little_memory(tmp_path):
    """800 MB, as copies of one block, which has the same median. A separate process shows the peak of its memory."""
    block = np.random.default_rng(0).standard_normal((1_000_000, 2), dtype=np.float32)
    path, n = tmp_path / "points.npy", 100 * len(block)
    with path.open("wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": (n, 2)}
        np.lib.format.write_array_header_1_0(file, header)
        for _ in range(100):
            file.write(block.data)
    script = (
        "import sys, resource, dpmedian\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "release = dpmedian.geometric_median(sys.argv[1], epsilon=1.0, delta=1e-9, seed=1)\n"
        "after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "print(*release.point, release.error_radius, after - before)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True)
    x, y, radius, kilobytes = map(float, done.stdout.split())
    median = nonprivate.geometric_median(block)
    # Ten times the bound that holds for 95 of 100 runs, with a fixed seed.
    assert np.hypot(x - median[0], y - median[1]) < 10.0 * radius < 1e-5
    assert kilobytes < 128 * 1024, "the file has 800 MB"


def test_hidden_and_temporary_files_of_a_folder_are_left_out(tmp_path, arrow):
    """Copies of records under such names would give every person several records."""
    folder = tmp_path / "parts"
    for place in (".", "month=1", "_temporary/0", ".ipynb_checkpoints", "month=1/_committed"):
        (folder / place).mkdir(parents=True, exist_ok=True)
        write(arrow, folder / place / "a.parquet", POINTS)
    write(arrow, folder / "_copy.parquet", POINTS)
    write(arrow, folder / ".copy.parquet", POINTS)
    (folder / "dangling.parquet").symlink_to(tmp_path / "nowhere")
    assert open_points(folder).shape == (2 * len(POINTS), POINTS.shape[1])
    hidden = tmp_path / "only"
    hidden.mkdir()
    write(arrow, hidden / "_copy.parquet", POINTS)
    with pytest.raises(ValueError, match=r"has no files that end in .*\.parquet"):
        open_points(hidden)


@pytest.mark.skipif(sys.platform == "win32", reason="times of POSIX inodes")
def test_a_file_that_is_rewritten_with_its_old_time_is_noticed(tmp_path):
    """Programs can reset the time of modification, but not the time at which the inode changed."""
    path = tmp_path / "points.npy"
    points = np.random.default_rng(0).normal(size=(3000, 2))
    np.save(path, points)
    records, before, ledger = open_points(path), path.stat(), dpmedian.Ledger(rho=1.0)
    with open(path, "r+b") as file:
        file.seek(-8, os.SEEK_END)
        file.write(np.float64(1e9).tobytes())
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_mtime_ns, path.stat().st_size) == (before.st_mtime_ns, before.st_size)
    with pytest.raises(OSError, match="it was changed while it was read"):
        dpmedian.geometric_median(records, rho=0.5, ledger=ledger)
    assert ledger.entries == ()
