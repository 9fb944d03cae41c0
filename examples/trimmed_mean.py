"""
A trimmed mean of your own
==========================

How do I write a private mechanism that the library does not have? In a session you query noisy sums under one budget.

A trimmed mean is the mean of the records near the middle of the data. If the data have no outliers, it is more accurate
than the median. If a tenth of the records lie anywhere, it hardly moves. A fifth of the budget finds the middle, by the
median of the library. A session spends the rest on three queries. Counts find a radius that holds 80 % of the records,
and a mean shift moves the center to the mean of these records. Nothing has to be known about the data.
Run with a number to make the noise reproducible (and worthless as protection): trimmed_mean.py 1
"""

import sys

import numpy as np

import dpmedian

SHARE = 0.8
RHO = 0.1


def trimmed_mean(points: np.ndarray, rho: float, ledger: dpmedian.Ledger, seed: int | None = None) -> np.ndarray:
    """Return the mean of the records in a ball around the median that holds 80 % of the records. It costs rho."""
    start = dpmedian.geometric_median(points, rho=0.2 * rho, ledger=ledger, seed=seed, progress=False)
    radii = start.scale * 2.0 ** np.arange(0.0, 3.0, 0.25)
    with dpmedian.session(points, rho=0.8 * rho, ledger=ledger, seed=seed, name="trimmed mean") as s:
        inside = s.distance_counts(center=start.point, radii=radii, rho=0.2 * rho)
        enough = np.flatnonzero(inside.value >= SHARE * s.n)
        radius = radii[enough[0]] if enough.size else radii[-1]
        count = s.count(center=start.point, radius=radius, rho=0.1 * rho)
        moved = s.mean_shift(center=start.point, radius=radius, rho=s.remaining)
        print(s.trace)
    return start.point + moved.value / max(count.value, 1.0)


def main() -> None:
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else None
    rng = np.random.default_rng(2026)
    middle = np.array([52.0, -7.0, 300.0])
    points = middle + rng.normal(size=(20_000, 3))
    points[:2_000] = 1e6 * rng.normal(size=(2_000, 3))  # A tenth of the records are wrong.
    ledger = dpmedian.Ledger(rho=RHO)
    found = trimmed_mean(points, RHO, ledger, seed)
    print(ledger)
    print(f"the mean is off by              {np.linalg.norm(points.mean(axis=0) - middle):10.4f}")
    print(f"the private trimmed mean is off by {np.linalg.norm(found - middle):7.4f}")


if __name__ == "__main__":
    main()
