"""Makes a file of 10^9 positions (float32, 8 GB), releases their median, and removes the file.

    python benches/billion.py                          # 10^9 records; the folder needs 8 GB
    python benches/billion.py --records 1e8            # 800 MB, and minutes faster
    python benches/billion.py --folder /somewhere      # where the file is made; default: the folder for temporary files

It prints seconds and passes by stage, the peak of anonymous memory (`RssAnon` of Linux, sampled ten times a second),
and the distance of the released point from the median of the distribution. The limits are 10 passes and 1 GB.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

import numpy as np
from scaling import Stopwatch

import dpmedian
from dpmedian._core import Exact, Points, Statistic, Stream, Tape
from dpmedian.files import open_points
from dpmedian.sources.array import ArraySource

MOST_PASSES, MOST_BYTES = 10, 2**30
BLOCK = 1 << 22


class Passes:
    """A proxy for a source that counts the queries about all records."""

    def __init__(self, source: ArraySource) -> None:
        self._source = source
        self.asked: list[str] = []

    @property
    def d(self) -> int:
        return self._source.d

    @property
    def local(self) -> Points:
        return self._source.local

    def answer(self, statistic: Statistic, passes: float = 1.0) -> Exact:
        self.asked.append(statistic.name)
        return self._source.answer(statistic, passes)

    def sample(self, stream: Stream, size: int) -> ArraySource:
        return self._source.sample(stream, size)

    def sample_by_coins(self, stream: Stream, probability: tuple[int, int]) -> ArraySource:
        return self._source.sample_by_coins(stream, probability)

    def advance(self, passes: float) -> Callable[[float], None]:
        return self._source.advance(passes)


class Watch(Stopwatch):
    """Also counts the passes of every stage."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.passes: dict[str, int] = {}

    def lap(self, stage: str) -> None:
        super().lap(stage)
        self.passes[stage] = self.passes.get(stage, 0) + len(self.asked) - sum(self.passes.values())


class Memory(threading.Thread):
    """Samples the anonymous memory of this process until it is stopped."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most, self.running = 0, True

    def run(self) -> None:
        while self.running:
            lines = Path("/proc/self/status").read_text().splitlines()
            found = next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))
            self.most = max(self.most, 1024 * found)
            time.sleep(0.1)


def write(path: Path, n: int) -> None:
    """Normal positions around (3, -1), block by block."""
    with path.open("wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": (n, 2)}
        np.lib.format.write_array_header_1_0(file, header)
        for start in range(0, n, BLOCK):
            block = np.random.default_rng(start).standard_normal((min(BLOCK, n - start), 2), dtype=np.float32)
            block += np.array([3.0, -1.0], dtype=np.float32)
            file.write(block.tobytes())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=float, default=1e9, help="the number of records; default: 1e9")
    parser.add_argument("--folder", help="the folder in which the file is made")
    options = parser.parse_args()
    n = int(options.records)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder) / "positions.npy"
        start = time.perf_counter()
        write(path, n)
        print(f"{path.stat().st_size / 1e9:.1f} GB written in {time.perf_counter() - start:.0f} s", flush=True)
        memory = Memory()
        memory.start()
        watch = Watch()
        plan = dpmedian.plan(n, 2, epsilon=1.0, delta=1e-9)
        watch.lap("plan")
        source = Passes(ArraySource.of(open_points(path), plan.parameters))
        watch.asked = source.asked
        source.asked.append("validation")
        watch.lap("validation")
        result = plan.calibrated.run(source, cast(Tape, watch))
        memory.running = False
        memory.join()
    print("\n| stage | seconds | passes over all records |\n|---|---|---|")
    for stage, seconds in watch.seconds.items():
        print(f"| {stage} | {seconds:.2f} | {watch.passes[stage] or ''} |")
    print(f"| all | {sum(watch.seconds.values()):.1f} | {len(source.asked)} |")
    error = float(np.hypot(result.point[0] - 3.0, result.point[1] + 1.0))
    sampling = 1.2 / np.sqrt(n)
    print(f"\ndistance to the distribution's median: {error:.2g}; without noise it would be about {sampling:.2g}")
    for what, found, most in (
        ("passes, with the validation", len(source.asked), MOST_PASSES),
        ("MiB of anonymous memory", memory.most / 2**20, MOST_BYTES / 2**20),
    ):
        print(f"{found:.0f} {what}, at most {most:.0f}: {'kept' if found <= most else 'missed'}")


if __name__ == "__main__":
    main()
