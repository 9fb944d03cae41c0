"""Compares the speed of the kernels with the usual alternatives, all measured in this run.

    python benches/compare.py [--quick] [--only KERNEL ...] [--authors PATH] [--peers DIRECTORY]

Times vary between machines, but their ratios hardly do. Every time is the smallest of several, or for whole releases
the median. Our calls and the calls of the peer alternate, so that a busy machine slows both. Our calls use two threads,
like cKDTree and the plain sum. The loops of numpy use one thread. `--authors` is a checkout of the paper's public code,
for a comparison of whole private releases. It needs scipy, but not torch, which only its non-private median uses.
`--peers` is a directory of checkouts of other private locations, which `benches/peers.py` lists. Rows of a peer that is
not installed are left out, and the peer is named.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import math
import sys
import time
import types
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

import dpmedian
import peers
from dpmedian import _core, nonprivate

Points = NDArray[np.float64]
RADII = 1e-3 * 2.0 ** np.arange(20)
THREADS = 2


def best(ours: Callable[[], object], peer: Callable[[], object], repeat: int, batch: int = 1) -> tuple[float, float]:
    """Return the smallest time of each. `batch` calls of the same kind are made in a row."""
    times: list[list[float]] = [[], []]
    for _ in range(repeat):
        for call, record in zip((ours, peer), times, strict=True):
            for _ in range(batch):
                start = time.perf_counter()
                call()
                record.append(time.perf_counter() - start)
    return min(times[0]), min(times[1])


def row(
    what: str,
    peer_name: str,
    ours: Callable[[], object],
    peer: Callable[[], object],
    repeat: int = 5,
    batch: int = 1,
) -> None:
    mine, other = best(ours, peer, repeat, batch)
    print(f"| {what} | {peer_name} | {mine * 1e3:.4g} | {other * 1e3:.4g} | {other / mine:.3g} |", flush=True)


def table(title: str) -> None:
    print(f"\n{title}\n\n| data | compared with | ours, ms | theirs, ms | theirs/ours |\n|---|---|---|---|---|")


def gauss(n: int, d: int) -> Points:
    return np.random.default_rng(n + d).normal(size=(n, d))


def scipy_top_sums(points: Points, m: int) -> NDArray[np.int64]:
    """The algorithm of the paper's public code: an n by n array, one comparison and one sort per radius."""
    distances = cdist(points, points)
    return np.array([np.sort((distances <= radius).sum(axis=1))[-m:].sum() for radius in RADII])


def tree_top_sums(points: Points, m: int) -> NDArray[np.int64]:
    tree = cKDTree(points)
    count = [tree.query_ball_point(points, radius, return_length=True, workers=THREADS) for radius in RADII]
    return np.array([np.sort(counts)[-m:].sum() for counts in count])


def balls(quick: bool) -> None:
    table(f"Ball counts for {len(RADII)} radii, each twice the one before, and the sums of the 3/4 n largest")
    for n, d in [(10_000, 2), (10_000, 10), (10_000, 100), (3_000, 200)]:
        n = n // 4 if quick else n
        points, m = gauss(n, d), 3 * n // 4
        ours = nonprivate.top_count_sums(points, RADII, m)
        # A distance that equals a radius up to rounding may be counted or not.
        assert np.abs(ours - scipy_top_sums(points, m)).max() <= 1e-6 * n * n
        name, call = f"({n}, {d})", partial(nonprivate.top_count_sums, points, RADII, m)
        row(name, "cdist, compare, sort", call, partial(scipy_top_sums, points, m), 3)
        if d <= 10:
            row(name, f"cKDTree, {THREADS} workers", call, partial(tree_top_sums, points, m), 3)

    table("The same ball counts by a tree of boxes, compared with our own comparison of all pairs")
    for n, d in [(100_000, 2), (100_000, 3)]:
        n = n // 10 if quick else n
        points, radii = gauss(n, d), RADII.tolist()
        ours, pairs = (
            partial(_core.nonprivate_ball_counts, points, radii, pairwise=pairwise) for pairwise in (False, True)
        )
        assert np.array_equal(ours(), pairs())
        row(f"({n}, {d})", "all pairs", ours, pairs, 1)


def numpy_gradient(points: Points, theta: NDArray[np.float64]) -> NDArray[np.float64]:
    """The four lines of the paper's public code."""
    difference = theta - points
    norms = np.linalg.norm(difference, axis=1, keepdims=True)
    normalised = difference / np.maximum(norms, 1e-10)
    return np.sum(normalised, axis=0)


def gradients(quick: bool) -> None:
    table("One gradient on the integer lattice")
    with ThreadPoolExecutor(THREADS) as pool:
        for n, d in [(1_000_000, 10), (1_000_000, 3), (100_000, 100), (3_000, 200)]:
            n = n // 10 if quick else n
            points, theta = gauss(n, d), np.full(d, 0.1)
            admitted, question = _core.Points(points), _core.Statistic("gradient", theta=theta, bits=32)
            assert np.abs(nonprivate.gradient(points, theta) - numpy_gradient(points, theta)).max() < 1e-9 * n
            halves = np.array_split(points.ravel(), THREADS)
            calls = (
                ("numpy's four lines", partial(numpy_gradient, points, theta)),
                (f"a plain sum, {THREADS} threads", lambda halves=halves: sum(pool.map(np.sum, halves))),
            )
            # A descent queries gradients one after the other, so each call finds the caches as the previous call has
            # left them.
            repeat, batch = (20, 20) if n * d < 1e6 else (5, 3)
            for name, peer in calls:
                row(f"({n}, {d})", name, partial(admitted.answer, question), peer, repeat, batch)


def numpy_moments(points: Points, theta: NDArray[np.float64], radius: float) -> tuple[float, Points, Points]:
    """The matrices for the Hessian and a confidence region, in plain numpy: curvature, T and S."""
    difference = theta - points
    distance = np.linalg.norm(difference, axis=1)
    unit = difference / distance[:, None]
    weight = np.where(distance > radius, radius / distance, 0.0)
    curvature = np.where(distance > radius, (1.0 - 1.0 / points.shape[1]) * weight, 1.0).sum()
    return float(curvature), (unit * weight[:, None]).T @ unit, unit.T @ unit


def questions(theta: NDArray[np.float64], radius: float) -> list[_core.Statistic]:
    """Curvature and T, then a gradient and S."""
    given = {"theta": theta, "bits": 32}
    hessian = _core.Statistic("hessian", radius=radius, weight=1.0, **given)
    return [hessian, _core.Statistic("gradient and directions", weight=0.5, **given)]


def our_moments(points: Points, theta: NDArray[np.float64], radius: float) -> list[NDArray[np.float64]]:
    """Return the same matrices from the package, in natural units, with noise of a few lattice units."""
    tape, admitted = _core.Tape.draw(bytes(32)), _core.Points(points)
    asked = questions(theta, radius)
    return [tape.gaussian("bench", admitted.answer(question), 1e-3) / 2.0**32 for question in asked]


def moments(quick: bool) -> None:
    table(
        "Curvature, second moments T beyond a radius and second moments S of all directions, on the integer lattice. "
        f"Ours include a gradient. The matrix products of numpy also have {THREADS} threads"
    )
    for n, d in [(1_000_000, 10), (100_000, 100)]:
        n = n // 10 if quick else n
        points, theta, radius = gauss(n, d), np.full(d, 0.1), 0.5 * math.sqrt(d)
        curvature, beyond, whole = numpy_moments(points, theta, radius)
        ours, triangle = our_moments(points, theta, radius), np.triu_indices(d)
        scale = np.where(triangle[0] == triangle[1], 1.0, math.sqrt(2.0))
        assert abs(ours[0][0] - curvature) < 1e-5 * n
        assert np.abs(ours[0][1:] - scale * beyond[triangle]).max() < 1e-5 * n
        assert np.abs(2.0 * ours[1][d:] - scale * whole[triangle]).max() < 1e-5 * n
        admitted, asked = _core.Points(points), questions(theta, radius)
        answer = partial(lambda admitted, asked: [admitted.answer(question) for question in asked], admitted, asked)
        row(f"({n}, {d})", "numpy's lines", answer, partial(numpy_moments, points, theta, radius), 5)


def noise(_quick: bool) -> None:
    zeros = _core.Exact.stated(np.zeros(1 << 20, dtype=np.int64), 1.0)
    tape = _core.Tape.draw(bytes(32))
    dpmedian.set_threads(1)
    start = time.perf_counter()
    for _ in range(3):
        tape.gaussian("bench", zeros, 2.0**40)
    rate = 3 * len(zeros) / (time.perf_counter() - start)
    dpmedian.set_threads(THREADS)
    print(f"\nDiscrete Gaussian, sigma = 2^40: {rate / 1e6:.2f} million draws per second and thread")


def medians(quick: bool) -> None:
    try:
        peer = importlib.import_module("geom_median.numpy").compute_geometric_median
    except ImportError:
        print("\nNon-private median: geom_median is not installed (pip install geom_median), its rows are left out")
        return
    table("The median without privacy. The gap is F(answer of geom_median)/F(our answer) - 1")
    for n, d in [(3_000, 200), (100_000, 10)]:
        n = n // 10 if quick else n
        points = gauss(n, d)
        theirs = peer(points).median
        gap = nonprivate.objective(points, theirs) / nonprivate.objective(points, nonprivate.geometric_median(points))
        calls = (partial(nonprivate.geometric_median, points), partial(peer, points))
        row(f"({n}, {d})", f"geom_median, gap {gap - 1:.1e}", *calls, 2)


def authors_code(path: Path) -> types.ModuleType:
    """The paper's public code without its non-private median, which needs torch."""
    stubs = {name: types.ModuleType(name) for name in ("torch", "geom_median.torch") if name not in sys.modules}
    for stub in stubs.values():
        stub.compute_geometric_median = None  # type: ignore[attr-defined]
    sys.modules.update(stubs)
    sys.path.insert(0, str(path))
    code = importlib.import_module("private_geometric_median")
    for name in stubs:
        del sys.modules[name]  # scipy would take a module of this name for torch itself.
    code.GeometricMedianProblem._compute_exact_median = lambda self: None
    return code


def paper_data(n: int = 3_000, d: int = 200) -> Points:
    """Nine tenths within 0.1 of a center at distance 50, one tenth uniform in the ball of radius 100."""
    rng = np.random.default_rng(0)
    centre = rng.normal(size=d)
    inliers = 50 * centre / np.linalg.norm(centre) + 0.1 * rng.normal(size=(n * 9 // 10, d))
    outliers = rng.normal(size=(n - len(inliers), d))
    outliers *= 100 * rng.random((len(outliers), 1)) ** (1 / d) / np.linalg.norm(outliers, axis=1, keepdims=True)
    return np.vstack([inliers, outliers])


def releases(path: Path, quick: bool) -> None:
    code, points = authors_code(path), paper_data()
    n = len(points)
    least = nonprivate.objective(points, nonprivate.geometric_median(points))

    def authors(radius: float) -> NDArray[np.float64]:
        with contextlib.redirect_stdout(io.StringIO()):
            return code.private_geometric_median(points, radius, 2.0)

    def ours(**options: object) -> NDArray[np.float64]:
        return dpmedian.geometric_median(points, epsilon=2.0, delta=1 / n, **options).point  # type: ignore[arg-type]

    def run(release: Callable[[], NDArray[np.float64]]) -> tuple[float, float]:
        """Seconds and excess of one release."""
        start = time.perf_counter()
        try:
            theta = release()
        except dpmedian.ReleaseFailed:
            return time.perf_counter() - start, math.inf
        return time.perf_counter() - start, nonprivate.objective(points, theta) / least - 1

    # The time of the authors' code varies by a factor of three with its noise, and for large radii it takes minutes.
    rounds = {1e3: 1} if quick else {1e3: 9, 1e10: 3}
    print(
        "\nWhole releases: n = 3000, d = 200, epsilon = 2, delta = 1/n. The excess is F(point)/F(median) - 1. The table"
    )
    print("has medians of the authors' runs, and of our runs, of which five follow each run of the authors.\n")
    print("| method | radius | authors' runs | ours, s | excess | authors, s | excess | ratio of times |")
    print("|---" * 8 + "|")
    for radius, repeat in rounds.items():
        calls = {
            "loc_dpgd": partial(ours, method="loc_dpgd", radius=radius, resolution=0.05),
            "adaptive": partial(ours, method="adaptive"),
        }
        theirs: list[tuple[float, float]] = []
        runs: dict[str, list[tuple[float, float]]] = {method: [] for method in calls}
        for _ in range(repeat):
            theirs.append(run(partial(authors, radius)))
            for method, call in calls.items():
                runs[method] += [run(call) for _ in range(5)]
        peer_time, peer_excess = np.median(theirs, axis=0)
        for method, made in runs.items():
            seconds, excess = np.median(made, axis=0)
            mine, peer = f"{seconds:.3g} | {excess:.1e}", f"{peer_time:.3g} | {peer_excess:.1e}"
            print(f"| {method} | {radius:.0e} | {repeat} | {mine} | {peer} | {peer_time / seconds:.3g} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller inputs: a check that it runs, not a measurement")
    parser.add_argument("--authors", type=Path, help="checkout of the paper's public code")
    parser.add_argument("--peers", type=Path, help="directory of checkouts of other private locations")
    tables = {"balls": balls, "gradients": gradients, "moments": moments, "noise": noise, "medians": medians}
    parser.add_argument("--only", nargs="+", choices=tables, default=tables, help="some of the kernels")
    arguments = parser.parse_args()
    dpmedian.set_threads(THREADS)
    for name in arguments.only:
        tables[name](arguments.quick)
    if arguments.authors:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            releases(arguments.authors, arguments.quick)
    if arguments.peers:
        peers.tables(arguments.peers, 1 if arguments.quick else 10)


if __name__ == "__main__":
    main()
