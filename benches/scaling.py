"""Measures how the time of the default method grows: whole releases by stage, in seconds and in units of a plain sum
over the array.

    python benches/scaling.py             # 10^5 to 10^7 records in 10 dimensions, then 10 to 1000 dimensions
    python benches/scaling.py --quick     # a tenth of the records: a check that it runs, not a measurement
    python benches/scaling.py --embeddings        # only embeddings, by stage, in plain sums
    python benches/scaling.py --against PYTHON    # only (3000, 200), beside the version that this interpreter has

A plain sum adds up all numbers of the array, with one half on each of two threads. Releases use two threads, too. A
release is timed from the call until the point and its error radius are there: the plan, the validation of the records,
and every stage. The time between two noisy releases counts for the stage of the later release, and the time after the
last release counts for the error radius. All times are medians. With `--cpu` they are processor times of both threads
instead of wall times, for a machine that is not idle. The slope is the slope of log(seconds) as a function of
log(size), so 1 means linear time. It needs 3 GB of memory.

The shape (3000, 200) is small, so plans, calibration and searches matter. It is measured in separate processes, as
processor time, with one thread for linear algebra, because the processor time of idle threads would be counted, too.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import numpy as np
from embeddings import embeddings
from numpy.typing import NDArray

import dpmedian
from dpmedian._core import Stream, Tape
from dpmedian.sources.array import ArraySource
from dpmedian.statistics import Exact

Points = NDArray[np.float64] | NDArray[np.float32]

clock = time.process_time if "--cpu" in sys.argv else time.perf_counter

THREADS = 2
# The limit for (10^6, 10), in plain sums.
MOST_SUMS = 20
# The limits for embeddings in float32, in plain sums.
MOST_EMBEDDED = {(100_000, 768): 100, (200_000, 768): 60, (10_000, 10_000): 60}
SHAPES_EMBEDDED = (*MOST_EMBEDDED, (100_000, 1536))


class Stopwatch:
    """A proxy for a tape that assigns the time since the last release to the stage that makes the next release."""

    def __init__(self) -> None:
        self.tape = Tape.draw(bytes(32))
        self.seconds: dict[str, float] = {}
        self._last = clock()

    def lap(self, stage: str) -> None:
        now = clock()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self._last
        self._last = now

    def gaussian(self, name: str, exact: Exact, noise_multiplier: float) -> NDArray[np.int64]:
        noisy = self.tape.gaussian(name, exact, noise_multiplier)
        self.lap(name)
        return noisy

    def hidden(self) -> Stream:
        return self.tape.hidden()


def release(points: Points) -> dict[str, float]:
    """Seconds of every stage of one release."""
    watch = Stopwatch()
    plan = dpmedian.plan(*points.shape, epsilon=1.0, delta=1e-6, method="adaptive")
    watch.lap("plan")
    source = ArraySource.of(points, plan.parameters)
    watch.lap("validation")
    plan.calibrated.run(source, cast(Tape, watch))
    watch.lap("error radius")
    return watch.seconds


def plain_sum(halves: Sequence[Points], pool: ThreadPoolExecutor) -> float:
    """Seconds of one plain sum."""
    start = clock()
    sum(pool.map(np.sum, halves))
    return clock() - start


def slope(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """Least squares in logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def table(title: str, shapes: Sequence[tuple[int, int]], sizes: Sequence[int], repeat: int) -> None:
    profiles, sums = [], []
    with ThreadPoolExecutor(THREADS) as pool:
        for n, d in shapes:
            points = np.random.default_rng(n + d).normal(size=(n, d))
            halves = np.array_split(points.ravel(), THREADS)
            releases, plain = [], []
            # Releases and sums alternate, so that a busy machine slows both.
            for _ in range(repeat):
                releases.append(release(points))
                plain += [plain_sum(halves, pool) for _ in range(20)]
            profiles.append(sorted(releases, key=lambda stages: sum(stages.values()))[repeat // 2])
            sums.append(float(np.median(plain)))
            del points, halves
    totals = [sum(profile.values()) for profile in profiles]

    def row(name: str, cells: Iterable[str], last: str) -> None:
        print(f"| {name} | {' | '.join(cells)} | {last} |")

    print(f"\n## {title}\n")
    row("stage", (f"({n}, {d})" for n, d in shapes), "slope")
    print("|---" * (len(shapes) + 2) + "|")
    for stage in profiles[-1]:
        seconds = [profile.get(stage, math.nan) for profile in profiles]
        row(stage, (f"{value:.3g} s" for value in seconds), f"{slope(sizes, seconds):.2f}")
    row("all", (f"{total:.3g} s" for total in totals), f"{slope(sizes, totals):.2f}")
    row("a plain sum", (f"{value:.3g} s" for value in sums), f"{slope(sizes, sums):.2f}")
    ratios = [total / value for total, value in zip(totals, sums, strict=True)]
    row("all, in plain sums", (f"{ratio:.0f}" for ratio in ratios), "")
    for shape, ratio in zip(shapes, ratios, strict=True):
        if shape == (1_000_000, 10):
            verdict = "kept" if ratio <= MOST_SUMS else "missed"
            print(f"\n(10^6, 10) in at most {MOST_SUMS} plain sums: {verdict}, {ratio:.0f}", flush=True)


def embedded(shapes: Sequence[tuple[int, int]], repeat: int) -> None:
    """Embeddings in float32: the time of each stage, in plain sums of the same array."""
    columns = []
    with ThreadPoolExecutor(THREADS) as pool:
        for n, d in shapes:
            points = embeddings(np.random.default_rng(n + d), n, d)
            halves = np.array_split(points.ravel(), THREADS)
            releases, plain = [], []
            for _ in range(repeat):
                plain += [plain_sum(halves, pool) for _ in range(5)]
                releases.append(release(points))
                plain += [plain_sum(halves, pool) for _ in range(5)]
            unit = float(np.median(plain))
            middle = sorted(releases, key=lambda stages: sum(stages.values()))[repeat // 2]
            columns.append({stage: seconds / unit for stage, seconds in middle.items()})
            columns[-1] |= {"all": sum(middle.values()) / unit, "a plain sum, ms": 1e3 * unit}
            del points, halves
    print("\n## Embeddings in float32, in plain sums\n")
    print(f"| stage | {' | '.join(f'({n}, {d})' for n, d in shapes)} |")
    print("|---" * (len(shapes) + 1) + "|")
    stages = list(dict.fromkeys(stage for column in columns for stage in column))
    for stage in sorted(stages, key=lambda stage: stage.startswith("a")):
        print(f"| {stage} | {' | '.join(f'{column.get(stage, 0.0):.1f}' for column in columns)} |")
    for shape, column in zip(shapes, columns, strict=True):
        if shape in MOST_EMBEDDED:
            verdict = "kept" if column["all"] <= MOST_EMBEDDED[shape] else "missed"
            print(f"\n{shape} in at most {MOST_EMBEDDED[shape]} plain sums: {verdict}, {column['all']:.0f}", flush=True)


def singles(n: int, repeat: int) -> None:
    """Print the time of float32 divided by the time of float64. The two alternate."""
    points = np.random.default_rng(n).normal(size=(n, 10))
    narrow = points.astype(np.float32)
    pairs = [[sum(release(array).values()) for array in (points, narrow)] for _ in range(repeat)]
    ratio = float(np.median([single / double for double, single in pairs]))
    print(f"\n({n}, 10): float32 takes {ratio:.2f} of the time of float64.", flush=True)


def seconds_of(python: str, options: str) -> float:
    """Return the median processor time of 9 releases of (3000, 200), with the version of the package that an
    interpreter has.
    """
    program = f"""
import time, warnings
import numpy as np, dpmedian
warnings.simplefilter("ignore")
points = np.random.default_rng(3200).normal(size=(3000, 200))
def one(seed):
    start = time.process_time()
    dpmedian.geometric_median(points, epsilon=1.0, delta=1e-6, method="adaptive", seed=seed{options})
    return time.process_time() - start
print(float(np.median([one(seed) for seed in range(10)][1:])))
"""
    single = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    if python != sys.executable:
        single.pop("PYTHONPATH", None)
    return float(subprocess.run([python, "-c", program], env=single, check=True, capture_output=True, text=True).stdout)


def small_shape(against: str | None, repeat: int) -> None:
    """Print the times with and without a confidence region, which needs second moments. They alternate with the other
    version.
    """
    kinds = {"with a region": (sys.executable, ""), "without": (sys.executable, ", inference=False")}
    if against is not None:
        kinds["the other version"] = (against, "")
    times: dict[str, list[float]] = {kind: [] for kind in kinds}
    for _ in range(repeat):
        for kind, asked in kinds.items():
            times[kind].append(seconds_of(*asked))
    medians = {kind: float(np.median(values)) for kind, values in times.items()}
    print("\n## (3000, 200), in processor time\n")
    for kind, value in medians.items():
        ratio = f", {value / medians['the other version']:.2f} of the other version's" if against is not None else ""
        print(f"* {kind}: {value * 1e3:.1f} ms{ratio}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the records")
    parser.add_argument("--repeat", type=int, default=3, help="releases of every size")
    parser.add_argument("--cpu", action="store_true", help="processor time instead of wall time")
    parser.add_argument("--embeddings", action="store_true", help="only embeddings")
    parser.add_argument(
        "--against", metavar="PYTHON", help="only (3000, 200), compared with the version that this interpreter has"
    )
    options = parser.parse_args()
    dpmedian.set_threads(THREADS)
    shapes = [(n // 4, d // 4) if options.quick else (n, d) for n, d in SHAPES_EMBEDDED]
    if options.embeddings:
        embedded(shapes, options.repeat)
        return
    small_shape(options.against, options.repeat)
    if options.against is not None:
        return
    records = [n // 10 if options.quick else n for n in (100_000, 1_000_000, 10_000_000)]
    table("Records: n points in 10 dimensions", [(n, 10) for n in records], records, options.repeat)
    singles(records[-1], 3 * options.repeat)
    dimensions = [10, 100, 1000]
    table("Dimensions", [(records[0], d) for d in dimensions], dimensions, options.repeat)
    embedded(shapes, options.repeat)


if __name__ == "__main__":
    main()
