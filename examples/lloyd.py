"""
Private Lloyd steps
===================

How do I write an iterative private algorithm? This example makes k-means by noisy steps, in a session that is charged
once.

Each of six steps moves every center to the noisy mean of the records in a ball around the center. The radius of the
ball is half of the distance to the nearest other center, so the balls do not overlap. In each ball the step queries a
count and a mean shift. The session refuses queries beyond the budget. `k_medians` of the library needs no start and is
more accurate, but this example shows how to try an idea of your own.
Run with a number to make the noise reproducible (and worthless as protection): lloyd.py 1
"""

import sys

import numpy as np

import dpmedian

STEPS = 6
RHO = 0.2


def lloyd(points: np.ndarray, centers: np.ndarray, rho: float, seed: int | None = None) -> np.ndarray:
    """Return the centers after noisy Lloyd steps from public centers. The steps cost rho."""
    centers = centers.copy()
    part = rho / (STEPS * len(centers))
    with dpmedian.session(points, rho=rho, seed=seed, name="Lloyd") as s:
        for _ in range(STEPS):
            gaps = np.linalg.norm(centers[:, None] - centers[None], axis=2)
            radii = 0.5 * np.min(gaps + np.diag(np.full(len(centers), np.inf)), axis=1)
            for k, radius in enumerate(radii):
                count, sigma = s.count(center=centers[k], radius=radius, rho=0.3 * part)
                if count > 3.0 * sigma:  # Otherwise the count may be only noise, and the center stays.
                    shift = s.mean_shift(center=centers[k], radius=radius, rho=0.7 * part)
                    centers[k] += shift.value / count
        print(f"queries: {len(s.trace)}, rho spent: {s.trace.rho:.4f} of {rho}")
    return centers


def main() -> None:
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else None
    rng = np.random.default_rng(2026)
    true = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 12.0], [11.0, 11.0]])
    points = true[rng.integers(4, size=20_000)] + rng.normal(size=(20_000, 2))
    start = true + rng.normal(size=true.shape)  # A public guess.
    found = lloyd(points, start, RHO, seed)
    print(f"distance of the centers to the true ones: {np.linalg.norm(start - true, axis=1).max():.3f} at the start,")
    print(f"{np.linalg.norm(found - true, axis=1).max():.3f} after {STEPS} steps")


if __name__ == "__main__":
    main()
