"""Measures the error of weighted medians, with weights as factors in the sums, with one coin per record, and with whole
copies.

All three have the same records, weights and privacy: one record with its weight is added or removed, at the same rho.
With coins, a record counts as a whole record with probability weight/cap, and otherwise not at all. With copies, a
record at the cap is there ten times, so the release has the smaller budget with which a group of ten records costs rho.
Errors are distances from the exact weighted median.

    python benches/weights.py [--runs 41] [--n 5000] [--rho 0.1] [--method adaptive]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dpmedian
from dpmedian import nonprivate

Array = NDArray[np.float64]
COPIES = 10

WEIGHTS: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "1 and 0.1, half each": lambda rng, n: np.where(rng.random(n) < 0.5, 1.0, 0.1),
    "1 and 0.1, one in ten": lambda rng, n: np.where(rng.random(n) < 0.1, 1.0, 0.1),
    "skewed": lambda rng, n: np.minimum(rng.lognormal(-1.5, 1.0, n), 1.0),
}


def error(points: Array, exact: Array, rho: float, options: dict[str, Any], seed: int, weights: Any = None) -> float:
    """Return the distance of a release from the exact median. A failure, which is rare here, counts as infinite."""
    asked = {} if weights is None else {"sample_weight": weights, "weight_max": 1.0}
    try:
        release = dpmedian.geometric_median(points, rho=rho, neighbours="add_remove", seed=seed, **asked, **options)
    except dpmedian.ReleaseFailed:
        return float("inf")
    return float(np.linalg.norm(release.point - exact))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=41)
    parser.add_argument("--n", type=int, default=5000)
    parser.add_argument("--rho", type=float, default=0.1)
    parser.add_argument("--method", default="adaptive", choices=["adaptive", "dpgd"])
    given = parser.parse_args()
    warnings.simplefilter("ignore", dpmedian.InsecureSeedWarning)
    options = {"method": given.method, "inference": False, **({"radius": 10.0} if given.method == "dpgd" else {})}
    print(f"{given.method}, n = {given.n}, d = 2, rho = {given.rho:g}, medians of {given.runs} runs, cap 1")
    print(f"{'weights':<24}{'in the sums':>12}{'coins':>10}{'copies':>10}{'coins/sums':>12}{'copies/sums':>12}")
    for name, make in WEIGHTS.items():
        rng = np.random.default_rng(1)
        weights = make(rng, given.n)
        # The weights depend on the positions, because otherwise they would not change the median.
        points = rng.normal(size=(given.n, 2)) + np.where(weights > 0.5, 0.0, 1.0)[:, None]
        times = np.rint(COPIES * weights).astype(int)
        copied, mass = np.repeat(points, times, axis=0), round(float(weights.sum()))
        exact, exact_copied = (nonprivate.geometric_median(points, weights=w) for w in (weights, times))
        sums, coins, copies = [], [], []
        for seed in range(given.runs):
            kept = points[rng.random(given.n) < weights]
            sums.append(error(points, exact, given.rho, {**options, "n": mass}, seed, weights))
            coins.append(error(kept, exact, given.rho, {**options, "n": mass}, seed))
            copies.append(error(copied, exact_copied, given.rho / COPIES**2, {**options, "n": COPIES * mass}, seed))
        a, b, c = (float(np.median(found)) for found in (sums, coins, copies))
        print(f"{name:<24}{a:12.4f}{b:10.4f}{c:10.4f}{b / a:12.2f}{c / a:12.2f}", flush=True)


if __name__ == "__main__":
    main()
