"""Compares private k-medians with the best k-medians without privacy, and with other private clusterings.

    python benches/clusters.py [--runs 6] [--sizes 2000,10000] [--dimensions 2,5,20] [--clusters 3,5,10]
                               [--epsilons 1] [--relations add_remove,replace] [--kinds balanced,HARD]
                               [--searches 4] [--first-seed 1000]
                               [--google CHECKOUT/learning] [--diffprivlib CHECKOUT]
    python benches/clusters.py --real          # digits of scikit-learn and the bundled positions
    python benches/clusters.py --found         # the share of clusters of several sizes that are found
    python benches/clusters.py --time          # seconds for a million records

A ratio is the sum of distances to the nearest released center, divided by the same sum for the best of several searches
without privacy. One of these searches starts at the true centers. The table shows the median of the runs, and the
largest ratio in parentheses. A goal is met if all of our columns have a smaller median than every peer and, at n =
10,000, d <= 20, k <= 10 and epsilon 1, a median of at most 1.03 and no ratio above 1.15. The data:

    balanced    k normal clouds of standard deviation 1 and equal sizes, about 6 standard deviations apart
    HARD        sizes 16:1, standard deviations from 0.5 to 2, 3 % of the records at a distance of about 1000, and
                all records shifted by 10^6; the 5 % of the records with the largest distances are ignored, `trim=0.05`
    student     k clouds of t with three degrees of freedom, sizes 4:1
    boxes       k uniform boxes with sides from 1 to 4, sizes 4:1

The constants of the method were chosen on `balanced` and `HARD` with seeds below 1000. The treatment of trimmed records
was chosen on the positions, too. `student`, `boxes`, the digits, and seeds from 1000 on were not used for any choice.
The peers get the true radius or bounds of the data, which nobody knows in practice, or bounds that are a hundred times
too large. Google's clustering uses the add/remove relation, and diffprivlib pure epsilon.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import dpmedian
import dpmedian.data
from dpmedian.clusters.start import trimmed

DELTA = 1e-6
Cluster = Callable[[np.ndarray, int, float, int], np.ndarray]


def mixture(kind: str, n: int, k: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Records and the true centers."""
    rng = np.random.default_rng(seed)
    apart, least = 6.0, 4.0 if d <= 2 else 3.0
    while True:
        length = apart * (2.0 * math.sqrt(k) / 2.0 if d <= 2 else 1.2)
        centers = rng.normal(size=(k, d)) * length / math.sqrt(2.0 * d)
        gaps = np.linalg.norm(centers[:, None] - centers[None], axis=2) + 1e9 * np.eye(k)
        if gaps.min() > least:
            break
        apart *= 1.02
    ratio = {"balanced": 0.0, "HARD": 4.0, "student": 2.0, "boxes": 2.0}[kind]
    shares = 2.0 ** (-ratio * np.arange(k) / max(k - 1, 1))
    label = rng.choice(k, n, p=shares / shares.sum())
    if kind == "student":
        noise = rng.standard_t(3, size=(n, d)) / math.sqrt(3.0)
    elif kind == "boxes":
        noise = rng.uniform(-0.5, 0.5, size=(n, d)) * rng.uniform(1.0, 4.0, size=(k, d))[label]
    else:
        wide = 0.5 * 2.0 ** rng.uniform(0, 2, k) if kind == "HARD" else np.ones(k)
        noise = wide[label, None] * rng.normal(size=(n, d))
    points = centers[label] + noise
    if kind == "HARD":
        far = rng.random(n) < 0.03
        points[far] = 1000.0 * rng.normal(size=(int(far.sum()), d)) / math.sqrt(d)
        points, centers = points + 1e6, centers + 1e6
    return points, centers


def distances(points: np.ndarray, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The index of the nearest center of each record and the distance to it, computed in blocks."""
    nearest, least = np.empty(len(points), int), np.empty(len(points))
    for first in range(0, len(points), 4096):
        block = points[first : first + 4096]
        apart = np.linalg.norm(block[:, None] - centers[None], axis=2)
        nearest[first : first + 4096] = chosen = apart.argmin(axis=1)
        least[first : first + 4096] = apart[np.arange(len(block)), chosen]
    return nearest, least


def cost(points: np.ndarray, centers: np.ndarray, trim: float) -> float:
    """The sum of distances to the nearest centers, without the given share of the largest distances."""
    _, apart = distances(points, centers)
    return float(np.sort(apart)[: math.ceil((1.0 - trim) * len(apart))].sum())


def best(points: np.ndarray, k: int, trim: float, true: np.ndarray | None, searches: int = 6) -> float:
    """The smallest cost that searches without privacy find."""
    rng, found = np.random.default_rng(0), math.inf
    starts = [] if true is None else [true]
    for _ in range(searches):
        chosen = [points[rng.integers(len(points))]]
        apart = np.linalg.norm(points - chosen[0], axis=1)
        while len(chosen) < k:
            pull = trimmed(np.ones(len(points)), apart, trim) * apart
            chosen.append(points[rng.choice(len(points), p=pull / pull.sum())])
            apart = np.minimum(apart, np.linalg.norm(points - chosen[-1], axis=1))
        starts.append(np.array(chosen))
    for start in starts:
        centers, last = start.copy(), math.inf
        for _ in range(40):
            nearest, apart = distances(points, centers)
            kept = trimmed(np.ones(len(points)), apart, trim)
            now = float(kept @ apart)
            if now > last * (1.0 - 1e-5):
                break
            last = now
            pull = kept / np.maximum(apart, 1e-3 * np.median(apart) + 1e-300)
            for j in range(k):
                mine = nearest == j
                if pull[mine].sum() > 0.0:
                    centers[j] = pull[mine] @ points[mine] / pull[mine].sum()
        found = min(found, cost(points, centers, trim))
    return found


def ours(relation: str, trim: float) -> Cluster:
    def run(points: np.ndarray, k: int, epsilon: float, seed: int) -> np.ndarray:
        found = dpmedian.k_medians(
            points,
            k,
            epsilon=epsilon,
            delta=DELTA,
            neighbours=relation,
            n=len(points),
            trim=trim,
            seed=seed,
            failure_probability=0.999,
        )
        return found.centers

    return run


def google(factor: float) -> Cluster:
    """Return Google's clustering by locality-sensitive hashing, with the true radius times a factor."""
    from clustering import clustering_algorithm, clustering_params  # type: ignore[import-not-found]

    def run(points: np.ndarray, k: int, epsilon: float, seed: int) -> np.ndarray:
        np.random.seed(seed)  # noqa: NPY002 (the generator that its noise uses)
        middle = (points.min(axis=0) + points.max(axis=0)) / 2.0
        radius = float(np.linalg.norm(points - middle, axis=1).max()) * factor
        data = clustering_params.Data(points - middle, radius)
        budget = clustering_params.DifferentialPrivacyParam(epsilon, DELTA)
        result = clustering_algorithm.private_lsh_clustering(k, data, budget)
        return np.asarray(result.centers) + middle

    return run


def diffprivlib(factor: float) -> Cluster:
    """Return IBM's private k-means, whose bounds are the true bounds, widened around their middle by a factor."""
    import sklearn.tree._tree as tree

    for name in (
        "DOUBLE",
        "DTYPE",
        "NODE_DTYPE",
    ):  # The forests of diffprivlib, which are not used here, need an older scikit-learn.
        if not hasattr(tree, name):
            setattr(tree, name, None)
    from diffprivlib.models import KMeans  # type: ignore[import-not-found]

    def run(points: np.ndarray, k: int, epsilon: float, seed: int) -> np.ndarray:
        low, high = points.min(axis=0), points.max(axis=0)
        middle, half = (low + high) / 2.0, (high - low) / 2.0 * factor + 1e-9
        model = KMeans(k, epsilon=epsilon, bounds=(middle - half, middle + half), random_state=seed)
        return np.asarray(model.fit(points).cluster_centers_)

    return run


def ratios(
    cluster: Cluster, cases: list[tuple[np.ndarray, float]], k: int, epsilon: float, trim: float, seed: int
) -> list[float]:
    """The ratio of every run; refused and failed runs count as infinite."""
    found = []
    for index, (points, reference) in enumerate(cases):
        try:
            found.append(cost(points, cluster(points, k, epsilon, seed + index), trim) / reference)
        except (ValueError, dpmedian.ReleaseFailed):
            found.append(math.inf)
    return found


def shown(found: list[float]) -> str:
    """Return the median and the largest ratio, or a word if every run was refused or failed."""
    if min(found) == math.inf:
        return "refused"
    return f"{np.median(found):.4g} ({max(found):.4g})"


def judged(own: list[list[float]], others: list[list[float]], most: float, worst: float) -> str:
    """Whether all of our columns are within the limits and have a smaller median than every peer."""
    best = min((float(np.median(found)) for found in others), default=math.inf)
    met = all(np.median(found) <= most and max(found) <= worst and np.median(found) < best for found in own)
    return "met" if met else "**missed**"


def head(names: list[str]) -> None:
    print(f"| {' | '.join(names)} |\n|{'---|' * len(names)}")


def table(options: argparse.Namespace) -> None:
    """One row for each size, dimension, number of clusters and budget."""
    peers: list[tuple[str, Cluster]] = []
    if options.google is not None:
        peers += [("Google", google(1.0)), ("Google, 100 R", google(100.0))]
    if options.diffprivlib is not None:
        peers += [("diffprivlib", diffprivlib(1.0)), ("diffprivlib, 100 R", diffprivlib(100.0))]
    own = [f"dpmedian, {relation}" for relation in options.relations]
    head(["data", "n", "d", "k", "epsilon", *own, *(name for name, _ in peers), "goal"])
    for kind, n, d, k in itertools.product(options.kinds, options.sizes, options.dimensions, options.clusters):
        trim, cases = 0.05 if kind == "HARD" else 0.0, []
        for run in range(options.runs):
            points, true = mixture(kind, n, k, d, options.first_seed + run)
            cases.append((points, best(points, k, trim, true, options.searches)))
        for epsilon in options.epsilons:
            clusterings = [*(ours(relation, trim) for relation in options.relations), *(run for _, run in peers)]
            found = [ratios(run, cases, k, epsilon, trim, options.first_seed) for run in clusterings]
            goal = ""
            if n == 10_000 and d <= 20 and k <= 10 and epsilon == 1.0:
                goal = judged(found[: len(own)], found[len(own) :], 1.03, 1.15)
            elif peers:
                goal = judged(found[: len(own)], found[len(own) :], math.inf, math.inf)
            cells = [kind, f"{n:,}", str(d), str(k), f"{epsilon:g}", *map(shown, found), goal]
            print(f"| {' | '.join(cells)} |", flush=True)


def real(options: argparse.Namespace) -> None:
    """Digits, which are 1,797 records in 64 dimensions, and the bundled positions, of which 3 % are at the origin."""
    from sklearn.datasets import load_digits  # type: ignore[import-untyped]

    cases = [
        ("digits", load_digits().data.astype(float), 10, 0.0, 1.10),
        ("positions", dpmedian.data.load_positions(), 3, 0.0, math.inf),
        ("positions, trimmed", dpmedian.data.load_positions(), 3, 0.05, 1.02),
    ]
    head(["data", "n", "d", "k", "epsilon", *(f"dpmedian, {relation}" for relation in options.relations), "goal"])
    for name, points, k, trim, most in cases:
        reference = best(points, k, trim, None, searches=30)
        for epsilon in options.epsilons:
            runs = [(points, reference)] * options.runs
            found = [
                ratios(ours(relation, trim), runs, k, epsilon, trim, options.first_seed)
                for relation in options.relations
            ]
            goal = judged(found, [], most, math.inf) if epsilon == 1.0 and math.isfinite(most) else ""
            size = [f"{len(points):,}", str(points.shape[1]), str(k), f"{epsilon:g}"]
            print(f"| {' | '.join([name, *size, *map(shown, found), goal])} |", flush=True)


def found(options: argparse.Namespace) -> None:
    """Print the share of the runs that find a small cloud. The data have four large clouds, and the small cloud is ten
    standard deviations from the first of them.

    If there are fewer centers than clouds, or only one cloud, halving a large cloud may reduce the cost more than
    finding a small one.
    """
    head(["d", "size", "predicted", "found"])
    for d in options.dimensions:
        made = dpmedian.plan_k_medians(
            10_000, d, 5, epsilon=1.0, delta=DELTA, neighbours=options.relations[0], failure_probability=0.999
        )
        method = getattr(made.calibrated, "typical", made.calibrated)
        for factor in (0.5, 0.7, 1.0, 1.4, 2.0, 3.0):
            size, hits = round(factor * method.half_found), 0
            for run in range(options.runs):
                rng = np.random.default_rng(options.first_seed + run)
                turns = rng.normal(size=(5, d))
                places = turns / np.linalg.norm(turns, axis=1, keepdims=True)
                # On the line, neighboring clouds have a distance of 20. In more dimensions, the other large clouds have
                # a distance of 20 from the first.
                places *= np.array([[0.0], [20.0], [20.0], [20.0], [10.0]])
                if d == 1:
                    places = np.array([[0.0], [20.0], [40.0], [60.0], [-10.0]])
                label = rng.integers(4, size=10_000)
                label[:size] = 4
                points = places[label] + rng.normal(size=(10_000, d))
                centers = ours(options.relations[0], 0.0)(points, 5, 1.0, options.first_seed + run)
                hits += int(np.linalg.norm(centers - places[4], axis=1).min() < 3.0)
            print(f"| {d} | {size} | {method.chance(size):.2f} | {hits / options.runs:.2f} |", flush=True)


def seconds() -> None:
    """A million records in ten dimensions, ten clusters."""
    points, _ = mixture("balanced", 1_000_000, 10, 10, 1)
    before, processor = time.perf_counter(), time.process_time()
    dpmedian.k_medians(points, 10, epsilon=1.0, delta=DELTA, progress=False)
    passed, used = time.perf_counter() - before, time.process_time() - processor
    print(f"n = 10^6, d = 10, k = 10: {passed:.2f} s, of which {used:.2f} s are processor time of all threads")


def main() -> None:
    def several(kind: Any) -> Callable[[str], list[Any]]:
        return lambda text: [kind(part) for part in text.split(",")]

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--searches", type=int, default=4)
    parser.add_argument("--sizes", type=several(int), default=[2000, 10_000])
    parser.add_argument("--dimensions", type=several(int), default=[2, 5, 20])
    parser.add_argument("--clusters", type=several(int), default=[3, 5, 10])
    parser.add_argument("--epsilons", type=several(float), default=[1.0])
    parser.add_argument("--relations", type=several(str), default=["add_remove", "replace"])
    parser.add_argument("--kinds", type=several(str), default=["balanced", "HARD"])
    parser.add_argument("--first-seed", type=int, default=1000)
    parser.add_argument("--google", metavar="FOLDER", help="the folder `learning` of a checkout")
    parser.add_argument("--diffprivlib", metavar="FOLDER", help="a checkout")
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--found", action="store_true")
    parser.add_argument("--time", action="store_true")
    options = parser.parse_args()
    sys.path[:0] = [path for path in (options.google, options.diffprivlib) if path is not None]
    warnings.simplefilter("ignore")
    if options.real:
        real(options)
    elif options.found:
        found(options)
    elif options.time:
        seconds()
    else:
        table(options)


if __name__ == "__main__":
    main()
