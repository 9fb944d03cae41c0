"""Measures by how much a release increases the peak resident memory of its process, for arrays in place and for files.

    python benches/memory.py              # 4 * 10^6 records in 10 dimensions: 305 MiB of float64, 153 of float32
    python benches/memory.py --quick # a tenth of the records: a check that it runs, not a measurement
    python benches/memory.py --shapes     # other shapes: the memory that the plan states, and the memory that was used

Every line is a separate process that makes the input, releases it once, and reads its peak resident memory (Linux's
`VmHWM`, which does not include the memory of the parent). For an array the limit is 1.1 times its size plus 64 MiB in
total, and for a file that is not converted it is 64 MiB. If a file is converted, pyarrow is loaded and holds some row
groups: 256 MiB.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

import dpmedian

MIB = 2**20
# Shapes for which most of the stated memory is for the sample and the ranks, for the vectors of a run, or for second
# moments.
SHAPES = ((1_000_000, 10), (3_000, 1_000), (100_000, 768), (10_000, 10_000))
# The data are so far from the public center that a run must search for a center, which takes the most memory in many
# dimensions.
_AWAY = 1e4
ALLOWED = {"array": (1.1, 64.0), "npy": (0.0, 64.0), "parquet": (0.0, 256.0)}


def resident() -> float:
    """The peak memory of this process so far, in MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def measure(kind: str, dtype: str, n: int, d: int, path: str) -> None:
    """Make one release in this process, and print the size of its input and the memory that it took, in MiB."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dpmedian.geometric_median(np.random.default_rng(0).normal(size=(100, 10)), epsilon=1e3, delta=1e-6)
    before = resident()
    if kind == "array":
        # The input is made block by block, so that making it takes no more memory than the input itself.
        points = np.empty((n, d), dtype)
        for block in np.array_split(points, 100):
            block[:] = _AWAY + np.random.default_rng(len(block)).normal(size=block.shape)
        dpmedian.geometric_median(points, epsilon=1.0, delta=1e-6)
    else:
        dpmedian.geometric_median(path, epsilon=1.0, delta=1e-6)
    print(n * d * np.dtype(dtype).itemsize / MIB, resident() - before)


def write(kind: str, dtype: str, n: int, folder: Path) -> Path:
    """A file of n records."""
    path = folder / f"{dtype}.{kind}"
    if kind == "npy":
        points = np.lib.format.open_memmap(path, "w+", dtype, (n, 10))
        for block in np.array_split(points, 100):
            block[:] = np.random.default_rng(len(block)).normal(size=block.shape)
        points.flush()
        return path
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    schema = arrow.schema([(f"x{j}", arrow.from_numpy_dtype(dtype)) for j in range(10)])
    with parquet.ParquetWriter(path, schema) as out:
        for _ in range(20):
            block = np.random.default_rng(n).normal(size=(n // 20, 10)).astype(dtype)
            out.write_table(arrow.table([block[:, j] for j in range(10)], schema=schema))
    return path


def shapes_table() -> None:
    """Print the memory that a release used in addition to the array, and the memory that its plan states for
    doubles.
    """
    print("| shape | array, MiB | stated, MiB | used, MiB | |")
    print("|---|---|---|---|---|")
    for n, d in SHAPES:
        plan = dpmedian.plan(n, d, epsilon=1.0, delta=1e-6, method="adaptive")
        stated = plan.calibrated.reads.memory / MIB if plan.calibrated.reads is not None else 0.0
        for dtype in ("float64", "float32"):
            size, took = run("array", dtype, n, d, "")
            verdict = "kept" if took - size <= stated else "missed"
            print(f"| {dtype} ({n}, {d}) | {size:.0f} | {stated:.0f} | {took - size:.0f} | {verdict} |", flush=True)


def run(kind: str, dtype: str, n: int, d: int, path: str) -> tuple[float, float]:
    """Return the size of the input, and the memory of the process after a release, in MiB, measured in a separate
    process.
    """
    command = [sys.executable, __file__, "--measure", kind, dtype, str(n), str(d)]
    done = subprocess.run([*command, path], check=True, capture_output=True, text=True)
    size, took = map(float, done.stdout.split())
    return size, took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the records")
    parser.add_argument("--shapes", action="store_true", help="only the memory that plans of several shapes state")
    parser.add_argument("--measure", nargs=5, metavar=("KIND", "DTYPE", "N", "D", "PATH"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        kind, dtype, n, d, path = options.measure
        measure(kind, dtype, int(n), int(d), path)
        return
    if options.shapes:
        shapes_table()
        return
    n = 400_000 if options.quick else 4_000_000
    print("| input | MiB | a release took, MiB | allowed | |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("array", "npy", "parquet"):
            for dtype in ("float64", "float32"):
                path = "" if kind == "array" else os.fspath(write(kind, dtype, n, Path(folder)))
                size, took = run(kind, dtype, n, 10, path)
                factor, more = ALLOWED[kind]
                allowed = factor * size + more
                verdict = "kept" if took <= allowed else "missed"
                print(f"| {dtype} {kind} | {size:.0f} | {took:.0f} | {allowed:.0f} | {verdict} |", flush=True)


if __name__ == "__main__":
    main()
