"""Measures the method "loc_cutting_plane": how much volume a cut through its center removes (tau), the time of a cut,
the accuracy, and the speed.

    python benches/cutting_plane.py [tau] [accuracy] [large] [--runs 20] [--dimensions 2 5 10 20 50]

`tau`: the fraction of the volume that a cut removes, measured by random walks through the set and compared with the
claim, and the time per cut. `accuracy`: excess F(point)/F(median) - 1 on the paper's kind of data, n = 100,000, epsilon
1, delta 1e-6, R = 10^4, compared with `loc_dpgd`. `large`: time, excess and number of passes of both methods at n =
10^6, d = 10. By default all three parts run.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings

import numpy as np
from numpy.typing import NDArray

import dpmedian
from dpmedian import nonprivate
from dpmedian.postprocess import VolumetricCenter

Points = NDArray[np.float64]
WALKERS = 400


class Walk:
    """Uniform walkers in the unit ball cut by half-spaces. Hit-and-run moves them, in directions whose distribution has
    the shape of the set.
    """

    def __init__(self, d: int, rng: np.random.Generator) -> None:
        self.rng = rng
        self.normals, self.offsets = np.empty((0, d)), np.empty(0)
        self.walkers = rng.normal(size=(WALKERS, d))
        self.walkers *= (rng.random(WALKERS) ** (1.0 / d) / np.linalg.norm(self.walkers, axis=1))[:, None]

    def cut(self, normal: NDArray[np.float64], offset: float) -> float:
        """Cut the set, and return the fraction of the walkers that the cut removes. The others are duplicated and move
        on.
        """
        # Only half of the walkers are counted, because the adversary has learned from the other half.
        removed = float(np.mean(self.walkers[1::2] @ normal > offset))
        inside = self.walkers[self.walkers @ normal <= offset]
        self.normals, self.offsets = np.vstack([self.normals, normal]), np.append(self.offsets, offset)
        self.walkers = inside[self.rng.integers(len(inside), size=WALKERS)]
        covariance = np.cov(self.walkers, rowvar=False).reshape(len(normal), len(normal))
        self.shape = np.linalg.cholesky(covariance + 1e-9 * np.trace(covariance) * np.eye(len(normal)))
        for _ in range(20 + 2 * len(normal)):
            self.step()
        return removed

    def step(self) -> None:
        directions = self.rng.normal(size=self.walkers.shape) @ self.shape.T
        squares, along = np.sum(directions**2, axis=1), np.sum(self.walkers * directions, axis=1)
        root = np.sqrt(along**2 + squares * (1.0 - np.sum(self.walkers**2, axis=1)).clip(0.0))
        low, high = (-along - root) / squares, (-along + root) / squares
        slopes = directions @ self.normals.T
        with np.errstate(divide="ignore"):
            reach = (self.offsets - self.walkers @ self.normals.T).clip(0.0) / slopes
        high = np.minimum(high, np.where(slopes > 0.0, reach, np.inf).min(axis=1, initial=np.inf))
        low = np.maximum(low, np.where(slopes < 0.0, reach, -np.inf).max(axis=1, initial=-np.inf))
        self.walkers = self.walkers + (low + (high - low) * self.rng.random(WALKERS))[:, None] * directions

    def keeping_most(self, center: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the direction of an adversary: seen from the center, it points away from the mean of half of the
        walkers.
        """
        covariance = np.cov(self.walkers[::2], rowvar=False).reshape(len(center), len(center))
        ridge = 1e-9 * np.trace(covariance) * np.eye(len(center))
        return np.linalg.solve(covariance + ridge, center - self.walkers[::2].mean(axis=0))


def removed_fraction(d: int, kind: str) -> float:
    """Return 1 minus the geometric mean, over the cuts, of the fraction that remains."""
    rng = np.random.default_rng(d)
    region, walk = VolumetricCenter(np.zeros(d), 1.0), Walk(d, rng)
    target = rng.normal(size=d)
    target *= 0.5 / np.linalg.norm(target)
    axes = np.logspace(0.0, 2.0, d)
    logarithms = []
    for _ in range(max(40, 5 * d)):
        center = region.center
        direction = {
            "aimed": lambda center=center: axes * (center - target),
            "random": lambda: rng.normal(size=d),
            "adversary": lambda center=center: walk.keeping_most(center),
        }[kind]()
        normal = direction / np.linalg.norm(direction)
        logarithms.append(math.log1p(-min(walk.cut(normal, float(normal @ center)), 0.999)))
        if not region.cut(direction):
            break
    return 1.0 - math.exp(float(np.mean(logarithms)))


def time_per_cut(d: int) -> tuple[float, int]:
    """Return the milliseconds per cut after the set has reached its full number of cuts, and the number of half-spaces
    that the set keeps.
    """
    rng = np.random.default_rng(d)
    region = VolumetricCenter(np.zeros(d), 1.0)
    for _ in range(6 * d):
        region.cut(rng.normal(size=d))
    start = time.perf_counter()
    for _ in range(2 * d):
        region.cut(rng.normal(size=d))
    return 1e3 * (time.perf_counter() - start) / (2 * d), region.cuts


def tau(dimensions: list[int]) -> None:
    print(f"\nVolume removed per cut (walks of {WALKERS}), claimed tau = {VolumetricCenter.TAU:.3f}\n")
    print("| d | aimed | random | adversary | ms per cut | half-spaces kept |\n|---|---|---|---|---|---|")
    for d in dimensions:
        aimed, blind, adverse = (removed_fraction(d, kind) for kind in ("aimed", "random", "adversary"))
        milliseconds, kept = time_per_cut(d)
        print(f"| {d} | {aimed:.3f} | {blind:.3f} | {adverse:.3f} | {milliseconds:.3g} | {kept} |", flush=True)


def paper_like(n: int, d: int) -> Points:
    """90 % with standard deviation 0.1 at distance 50, 10 % uniform in the ball of 100."""
    rng = np.random.default_rng(1000 * d + 1)
    points, inliers = np.empty((n, d)), round(0.9 * n)
    points[:inliers] = 0.1 * rng.normal(size=(inliers, d))
    points[:inliers, 0] += 50.0
    outliers = rng.normal(size=(n - inliers, d))
    radii = 100.0 * rng.random(n - inliers) ** (1.0 / d)
    points[inliers:] = outliers * (radii / np.linalg.norm(outliers, axis=1))[:, None]
    return points


def excess(points: Points, median: NDArray[np.float64], point: NDArray[np.float64]) -> float:
    """Return the excess, computed without the cancellation of two large sums."""
    here, there = point - points, median - points
    sums = np.linalg.norm(here, axis=1) + np.linalg.norm(there, axis=1)
    return float(np.sum((here + there) @ (point - median) / sums)) / nonprivate.objective(points, median)


def compare(n: int, d: int, runs: int) -> None:
    points = paper_like(n, d)
    median = nonprivate.geometric_median(points)
    for method in ("loc_cutting_plane", "loc_dpgd"):
        plan = dpmedian.plan(n, d, epsilon=1.0, delta=1e-6, method=method, radius=1e4, resolution=0.05)
        found, start = [], time.perf_counter()
        for seed in range(runs):
            found.append(excess(points, median, plan.run(points, seed=seed, progress=False).point))
        seconds = (time.perf_counter() - start) / runs
        fine = plan.calibrated.passes - plan.calibrated.localization.passes
        errors = f"{np.median(found):.2e} | {max(found):.2e}"
        print(f"| {n} | {d} | {method} | {errors} | {seconds:.3g} | {fine:.0f} |", flush=True)


HEAD = "| n | d | method | median excess | worst | seconds a run | passes after localization |\n" + "|---" * 7 + "|"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help="tau, accuracy, large")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--dimensions", type=int, nargs="+", default=None)
    options = parser.parse_args()
    parts = options.parts or ["tau", "accuracy", "large"]
    if set(parts) - {"tau", "accuracy", "large"}:
        parser.error(f"the parts are tau, accuracy and large, got {' '.join(parts)}")
    warnings.simplefilter("ignore", dpmedian.InsecureSeedWarning)
    if "tau" in parts:
        tau(options.dimensions or [2, 5, 10, 20, 50])
    if "accuracy" in parts:
        print(f"\nThe paper's kind of data, epsilon 1, delta 1e-6, R = 10^4, {options.runs} runs\n\n{HEAD}")
        for d in options.dimensions or [2, 5, 10, 20]:
            compare(100_000, d, options.runs)
    if "large" in parts:
        runs = min(options.runs, 10)
        print(f"\nn = 10^6, d = 10, {runs} runs\n\n{HEAD}")
        compare(1_000_000, 10, runs)
        plan = dpmedian.plan(1_000_000, 10, epsilon=1.0, delta=1e-6, method="loc_dpgd", radius=1e4, resolution=0.05)
        printed = plan.calibrated.printed_steps
        print(f"\nThe fine-tuning of the paper would make {printed} passes over the data (computed, not run).")


if __name__ == "__main__":
    main()
