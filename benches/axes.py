"""Axes of the data from released directions: angles, coverage of their bounds, and a clipped covariance beside them.

    python benches/axes.py [--runs 40] [--epsilon 1.0]

The data have standard deviations 4, 2.5, 1, ..., 1 along axes that are turned at random: normal, t with two degrees of
freedom, or normal with 5 % outliers at a hundred. `angle` is the median angle between the first released axis and the
true one, in degrees. `found` is the share of the runs in which an axis stands out. `covered` is the share of the listed
axes whose bound holds, each beside the nearest of the two true axes. `ratio` is the released ratio of the largest to
the smallest standard deviation over the true one. The clipped covariance (Gaussian noise on the sum of clipped outer
products) gets 30 % of rho, and is told what nobody knows: the true largest distance as its clipping norm. `isotropic`
counts the runs in which round data of the same size show an axis, although they have none.
"""

from __future__ import annotations

import argparse
import math
import warnings

import numpy as np

import dpmedian

KINDS = ("normal", "t2", "outliers")
SIZES = ((2, 2000), (5, 2000), (5, 10_000), (20, 10_000), (20, 50_000), (50, 50_000))


def data(kind: str, n: int, d: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Records, and their true axes as columns."""
    deviations = np.ones(d)
    deviations[:2] = (4.0, 2.5)
    axes, _ = np.linalg.qr(rng.normal(size=(d, d)))
    records = rng.normal(size=(n, d)) * deviations
    if kind == "t2":
        records /= np.sqrt(rng.chisquare(2, n) / 2.0)[:, None]
    if kind == "outliers":
        far = rng.random(n) < 0.05
        records[far] = 100.0 * rng.normal(size=(int(far.sum()), d)) / math.sqrt(d)
    return records @ axes.T, axes


def angle(first: np.ndarray, second: np.ndarray) -> float:
    """Between two axes, in degrees."""
    return math.degrees(math.acos(min(1.0, abs(float(first @ second)))))


def clipped(points: np.ndarray, center: np.ndarray, rho: float, rng: np.random.Generator) -> np.ndarray:
    """The first axis of a clipped covariance with its true largest norm, under replacement."""
    away = points - center
    norm = np.linalg.norm(away, axis=1).max()
    noise = rng.normal(size=(points.shape[1],) * 2) * math.sqrt(2.0) / math.sqrt(2.0 * rho)
    return np.linalg.eigh(away.T @ away / norm**2 + (noise + noise.T) / 2.0)[1][:, -1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--epsilon", type=float, default=1.0)
    options = parser.parse_args()
    warnings.simplefilter("ignore", dpmedian.InsecureSeedWarning)
    budget = {"epsilon": options.epsilon, "delta": 1e-6}
    print("| data | (d, n) | angle | found | covered | ratio | clipped covariance | isotropic |")
    print("|---|---|---|---|---|---|---|---|")
    for kind in KINDS:
        for d, n in SIZES:
            angles, ratios, peers, runs_with, covered, listed, false = [], [], [], 0, 0, 0, 0
            for run in range(options.runs):
                rng = np.random.default_rng([run, d, n])
                points, axes = data(kind, n, d, rng)
                release = dpmedian.geometric_median(points, **budget, seed=run)
                found = release.axes()
                if len(found):
                    runs_with += 1
                    listed += len(found)
                    angles.append(angle(found.vectors[0], axes[:, 0]))
                    true = [min(angle(v, axes[:, place]) for place in (0, 1)) for v in found.vectors]
                    covered += sum(a <= b for a, b in zip(true, found.angles, strict=True))
                deviations = release.shape().standard_deviations
                ratios.append(deviations[0] / deviations[-1] / (4.0 / (2.5 if d == 2 else 1.0)))
                peers.append(angle(clipped(points, release.point, 0.3 * release.cost.rho, rng), axes[:, 0]))
                if kind == "normal":
                    round_data = rng.normal(size=(n, d))
                    false += len(dpmedian.geometric_median(round_data, **budget, seed=run).axes()) > 0
            median = f"{np.median(angles):.1f}" if angles else "none"
            covers = f"{covered / listed:.0%} of {listed}" if listed else "none"
            isotropic = f"{false} of {options.runs}" if kind == "normal" else ""
            shown = [kind, f"({d}, {n})", median, f"{runs_with / options.runs:.0%}", covers]
            shown += [f"{np.median(ratios):.2f}", f"{np.median(peers):.1f}", isotropic]
            print(f"| {' | '.join(shown)} |", flush=True)


if __name__ == "__main__":
    main()
