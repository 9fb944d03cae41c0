"""Measures the mechanism of pure differential privacy, in three parts: a comparison with the private medians of OpenDP
and diffprivlib in one dimension, the time and the memory of several targets, and its score compared with the paper's
len. `python benches/inverse_sensitivity.py` prints all three. Peers that are not installed are left out (diffprivlib
0.6 needs scikit-learn below 1.6).
"""

from __future__ import annotations

import itertools
import resource
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import dpmedian
from dpmedian import _core, nonprivate
from dpmedian._core import Tape
from dpmedian.sources.array import ArraySource

Points = NDArray[np.float64]
RUNS = 400


def line(name: str, n: int) -> Points:
    """Five data sets on the line, all within [-100, 100]."""
    rng = np.random.default_rng(0)
    match name:
        case "gaussian":
            found = 9.37 + rng.normal(size=n)
        case "skewed":
            found = np.exp(rng.normal(size=n))
        case "ages (ties)":
            found = np.clip(np.round(rng.normal(40.0, 12.0, size=n)), 18, 90)
        case "constant":
            found = np.full(n, 7.0)
        case _:
            found = np.clip(rng.standard_cauchy(size=n), -100.0, 100.0)
    return found


LINES = ("gaussian", "skewed", "ages (ties)", "constant", "heavy tails")


def ours(n: int, epsilon: float, radius: float, resolution: float) -> Callable[[Points], float]:
    plan = dpmedian.plan(n, 1, epsilon=epsilon, method="inverse_sensitivity", radius=radius, resolution=resolution)
    tape = Tape.draw(bytes(32))
    return lambda records: float(plan.calibrated.run(ArraySource.of(records[:, None], plan.parameters), tape).point[0])


def opendp(n: int, epsilon: float, radius: float, spacing: float) -> Callable[[Points], float] | None:
    """Return OpenDP's noisy max over candidates, which counts a replaced record as a removal and an addition, or None
    if OpenDP is not installed.
    """
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    candidates = np.arange(-radius, radius + spacing / 2.0, spacing).tolist()
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=n), dp.symmetric_distance()
    scores = space >> dp.t.then_quantile_score_candidates(candidates, alpha=0.5)
    measurement = dp.binary_search_chain(
        lambda scale: scores >> dp.m.then_noisy_max(dp.max_divergence(), scale, negate=True),
        d_in=2,
        d_out=epsilon,
        T=float,
    )
    return lambda records: float(candidates[measurement(records.tolist())])


def diffprivlib(n: int, epsilon: float, radius: float, _: float) -> Callable[[Points], float] | None:
    """Return diffprivlib's exponential mechanism on the intervals between the sorted records, which has no resolution,
    or None if diffprivlib is not installed.
    """
    try:
        from diffprivlib.tools import median
    except ImportError:
        return None
    return lambda records: float(median(records, epsilon=epsilon, bounds=(-radius, radius)))


def compare() -> None:
    n, radius = 1000, 100.0
    print(f"line, n = {n}, R = {radius:g}: mean |release - median| (s.e.) over {RUNS} runs, the data shifted at random")
    print("dpmedian with r = R/10^5; OpenDP with candidates R/1000 apart (with more candidates it takes 0.2 seconds)")
    print(f"{'data':<14}{'epsilon':>8}{'dpmedian':>20}{'diffprivlib':>20}{'OpenDP':>20}")
    for name, epsilon in itertools.product(LINES, (0.1, 1.0)):
        records, shifts = line(name, n), np.random.default_rng(1).uniform(0.0, 1.0, size=RUNS)
        row = f"{name:<14}{epsilon:>8g}"
        for method, scale in ((ours, 1e-5 * radius), (diffprivlib, 0.0), (opendp, 1e-3 * radius)):
            release = method(n, epsilon, radius, scale)
            if release is None:
                row += f"{'not installed':>20}"
                continue
            errors = np.abs([release(records + shift) - np.median(records + shift) for shift in shifts])
            row += f"{errors.mean():>11.4f} ({errors.std() / np.sqrt(RUNS):.4f})"
        print(row, flush=True)


TARGETS = (
    (1, 1_000_000, 1e6, 1.0),
    (1, 10_000_000, 1e6, 1.0),
    (2, 1000, 1e6, 1.0),
    (3, 1000, 1e4, 1.0),
    (3, 1000, 1e6, 0.1),
    (2, 100_000, 1e6, 1.0),
    (3, 100_000, 1e4, 1.0),
    (2, 1_000_000, 1e6, 1.0),
)


def cloud(d: int, n: int, radius: float) -> Points:
    """Return a cloud with standard deviation 10 that does not lie at the center, with 10 % outliers."""
    rng = np.random.default_rng(0)
    points = radius / 10.0 + 10.0 * rng.normal(size=(n, d))
    points[: n // 10] = radius * rng.uniform(-0.5, 0.5, size=(n // 10, d))
    return points


def one(d: int, n: int, ratio: float, epsilon: float) -> None:
    """Measure one target in this process: the seconds of three releases, and their memory in addition to the points."""
    points = cloud(d, n, ratio)
    plan = dpmedian.plan(n, d, epsilon=epsilon, method="inverse_sensitivity", radius=ratio, resolution=1.0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        plan.run(points)
        seconds.append(time.perf_counter() - start)
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024.0
    times = " ".join(f"{s:8.3f}" for s in seconds)
    print(f"{d:>3}{n:>10}{ratio:>8.0e}{epsilon:>8g}   {times}{memory:>12.0f}", flush=True)


def targets() -> None:
    print("targets: seconds of three releases (unseeded), MiB in addition to the points")
    print(f"{'d':>3}{'n':>10}{'R/r':>8}{'epsilon':>8}   {'seconds':<26}{'MiB':>12}", flush=True)
    for target in TARGETS:
        subprocess.run([sys.executable, __file__, *map(str, target)], check=True)


def gap() -> None:
    """Compare the score with the paper's len, which is computed by brute force over subsets, at points that are likely
    to be released.
    """
    print("score against the paper's len, n = 12, at points around the median: mean of each, largest gap")
    rng = np.random.default_rng(0)
    for d in (2, 3):
        ours_, papers = [], []
        for _ in range(20):
            points = rng.normal(size=(12, d)) * 1000.0
            plan = dpmedian.plan(12, d, epsilon=1.0, radius=1e5, resolution=0.1)
            median = nonprivate.geometric_median(points)
            lattice = plan.calibrated.mechanism.lattice  # type: ignore[attr-defined]
            spread = median + 1000.0 * rng.normal(size=(10, d))
            places = (2 * np.round(spread / lattice.step / 2.0) + 1).astype(np.int64)
            units = (lattice.step, lattice.reach, lattice.smoothing)
            ours_ += (_core.nonprivate_lattice_scores(points, places, [0.0] * d, units) / 2.0**31).tolist()
            papers += [_fewest_changes(points, place * lattice.step) for place in places]
        difference = np.array(papers) - np.array(ours_)
        print(
            f"d = {d}: score {np.mean(ours_):.2f}, len {np.mean(papers):.2f}, "
            f"gap at least {difference.min():.2f} and at most {difference.max():.2f}"
        )


def _fewest_changes(points: Points, z: Points) -> int:
    units = (points - z) / np.linalg.norm(points - z, axis=1)[:, None]
    for k in range(len(points) + 1):
        for changed in itertools.combinations(range(len(points)), k):
            kept = np.setdiff1d(np.arange(len(points)), changed)
            if np.linalg.norm(units[kept].sum(axis=0)) <= k:
                return k
    return len(points)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        one(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4]))
    else:
        targets()
        gap()
        compare()
