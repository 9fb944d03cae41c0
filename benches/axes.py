"""Measures the axes that are computed from released directions: their angles to the true axes, the coverage of their
bounds, and a comparison with a clipped covariance.

    python benches/axes.py [--runs 40] [--epsilon 1.0] [--share 0.1]

The data have standard deviations 4, 2.5, 1, ..., 1 along randomly rotated axes: normal, t with two degrees of freedom,
or normal with 5 % outliers at a distance of 100. `angle` is the median angle between the first released axis and the
true axis, in degrees. `found` is the share of the runs in which an axis stands out. `covered` is the share of the
listed axes whose bound holds; each axis is compared with the nearest of the two true axes. `ratio` is the released
ratio of the largest to the smallest standard deviation, divided by the true ratio. The clipped covariance (Gaussian
noise on the sum of clipped outer products) gets 30 % of rho, and as its clipping norm the true largest distance, which
nobody knows in practice. `isotropic` counts the runs in which isotropic data of the same size show an axis. In the
columns "with a share", the releases have a share of the budget for the axes.
"""

from __future__ import annotations

import argparse
import math
import warnings

import numpy as np

import dpmedian

KINDS = ("normal", "t2", "outliers")
SIZES = ((2, 2000), (5, 2000), (5, 10_000), (20, 2000), (20, 10_000), (50, 10_000), (50, 50_000))


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
    """The angle between two axes, in degrees."""
    return math.degrees(math.acos(min(1.0, abs(float(first @ second)))))


def clipped(points: np.ndarray, center: np.ndarray, rho: float, rng: np.random.Generator) -> np.ndarray:
    """The first axis of a clipped covariance with the true largest norm, under replacement."""
    away = points - center
    norm = np.linalg.norm(away, axis=1).max()
    noise = rng.normal(size=(points.shape[1],) * 2) * math.sqrt(2.0) / math.sqrt(2.0 * rho)
    return np.linalg.eigh(away.T @ away / norm**2 + (noise + noise.T) / 2.0)[1][:, -1]


class Seen:
    """The results of the releases of one row."""

    def __init__(self) -> None:
        self.angles: list[float] = []
        self.runs = self.listed = self.covered = 0

    def add(self, release: dpmedian.Release, axes: np.ndarray) -> None:
        """Count the axes of a release, if it lists any."""
        self.runs += 1
        try:
            found = release.axes()
        except ValueError:
            return
        if len(found):
            self.angles.append(angle(found.vectors[0], axes[:, 0]))
            true = [min(angle(v, axes[:, place]) for place in (0, 1)) for v in found.vectors]
            self.listed += len(found)
            self.covered += sum(a <= b for a, b in zip(true, found.angles, strict=True))

    def cells(self) -> list[str]:
        """The median angle, the share of the runs with an axis, and how often the bounds held."""
        median = f"{np.median(self.angles):.1f}" if self.angles else "none"
        covers = f"{self.covered / self.listed:.0%} of {self.listed}" if self.listed else "none"
        return [median, f"{len(self.angles) / self.runs:.0%}", covers]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--share", type=float, default=0.1)
    options = parser.parse_args()
    warnings.simplefilter("ignore", dpmedian.InsecureSeedWarning)
    budget = {"epsilon": options.epsilon, "delta": 1e-6, "progress": False}
    with_share = [f"{name} with a share" for name in ("angle", "found", "covered")]
    head = ["data", "(d, n)", "angle", "found", "covered", *with_share, "clipped covariance", "ratio", "isotropic"]
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    total = {share: Seen() for share in (0.0, options.share)}
    for kind in KINDS:
        for d, n in SIZES:
            seen, ratios, peers, false = {share: Seen() for share in total}, [], [], 0
            for run in range(options.runs):
                rng = np.random.default_rng([run, d, n])
                points, axes = data(kind, n, d, rng)
                for share in total:
                    release = dpmedian.geometric_median(points, **budget, axes=share, seed=run)
                    seen[share].add(release, axes)
                    total[share].add(release, axes)
                    if share == 0.0:
                        peers.append(angle(clipped(points, release.point, 0.3 * release.cost.rho, rng), axes[:, 0]))
                deviations = release.shape().standard_deviations
                ratios.append(deviations[0] / deviations[-1] / (4.0 / (2.5 if d == 2 else 1.0)))
                if kind == "normal":
                    isotropic = Seen()
                    release = dpmedian.geometric_median(rng.normal(size=(n, d)), **budget, axes=options.share, seed=run)
                    isotropic.add(release, axes)
                    false += len(isotropic.angles)
            shown = [kind, f"({d}, {n})", *seen[0.0].cells(), *seen[options.share].cells(), f"{np.median(peers):.1f}"]
            shown += [f"{np.median(ratios):.2f}", f"{false} of {options.runs}" if kind == "normal" else ""]
            print(f"| {' | '.join(shown)} |", flush=True)
    print(f"| all | | | | {total[0.0].cells()[2]} | | | {total[options.share].cells()[2]} | | | |")


if __name__ == "__main__":
    main()
