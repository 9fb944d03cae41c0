"""k-medians of weighted points. The points are the centers of noisy cells, so this is post-processing.

The unit of length is the core radius of all records.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["assign", "trimmed", "weighted_k_medians"]

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

# The number of starts of the search, the largest number of steps after each start, and the number of candidates for
# each center of a start.
_STARTS, _STEPS, _CANDIDATES = 40, 40, 3

# A point stands for the records of a cell. These records lie about this far from the point (in core radii), within the
# cell and perpendicular to the axes of the grid. So a point at the distance r from a center costs sqrt(r^2 +
# _AROUND^2). A second center reduces the cost little if two clusters are closer to each other than about _AROUND.
_AROUND = 0.3

# A search ends if a step improves the cost by less than this share.
_CONVERGED = 1e-4


def costs(distances: Vector) -> Vector:
    """The approximate mean distance between a center and the records of a cell, for each distance between the center
    and the cell's point."""
    return np.hypot(distances, _AROUND)


def assign(points: Matrix, centers: Matrix) -> tuple[NDArray[np.intp], Vector]:
    """The index of the nearest center of each point, and the distance to it."""
    distances = np.sqrt(((points[:, None, :] - centers[None, :, :]) ** 2).sum(axis=2))
    nearest = distances.argmin(axis=1)
    return nearest, distances[np.arange(len(points)), nearest]


def trimmed(weights: Vector, distances: Vector, trim: float) -> Vector:
    """The weights. At the largest distances, the share `trim` of their sum is set to zero.

    A point is left out or kept as a whole, because a far cell with half of its weight could still get a center of its
    own.
    """
    if trim == 0.0:
        return weights
    order = np.argsort(distances)
    kept = (1.0 - trim) * weights.sum() - (np.cumsum(weights[order]) - weights[order])
    result = np.empty(len(weights))
    result[order] = np.where(kept >= 0.5 * weights[order], weights[order], 0.0)
    return result


def weighted_k_medians(points: Matrix, weights: Vector, k: int, trim: float = 0.0) -> Matrix:
    """The centers with the smallest weighted sum of costs that several searches find.

    The share `trim` of the weight, farthest from all centers, does not count. The searches start at random points with
    a fixed seed, so the result is a function of the arguments.
    """
    rng = np.random.default_rng(0)
    best, found = np.inf, points[:1].repeat(k, axis=0)
    for _ in range(_STARTS):
        cost, centers = _descend(points, weights, _spread_out(points, weights, k, rng, trim), trim)
        if cost < best:
            best, found = cost, centers
    return found


def _spread_out(points: Matrix, weights: Vector, k: int, rng: np.random.Generator, trim: float) -> Matrix:
    """k points for a start. The first is drawn by weight. Each other point is the best of a few candidates.

    The probability of a candidate is proportional to its trimmed weight times the difference between its cost and the
    cost at distance 0.
    """
    chosen = [int(rng.choice(len(points), p=weights / weights.sum()))]
    distances = costs(np.linalg.norm(points - points[chosen[0]], axis=1))
    while len(chosen) < k:
        pull = trimmed(weights, distances, trim) * (distances - _AROUND)
        total = pull.sum()
        if total <= 0.0:
            pull, total = weights, weights.sum()
        candidates = rng.choice(len(points), size=_CANDIDATES, p=pull / total)
        nearer = [np.minimum(distances, costs(np.linalg.norm(points - points[i], axis=1))) for i in candidates]
        best = int(np.argmin([trimmed(weights, d, trim) @ d for d in nearer]))
        chosen.append(int(candidates[best]))
        distances = nearer[best]
    return points[chosen]


def _descend(points: Matrix, weights: Vector, centers: Matrix, trim: float) -> tuple[float, Matrix]:
    """Alternate between assigning points to centers and one Weiszfeld step of each center."""
    centers, last = centers.copy(), np.inf
    for _ in range(_STEPS):
        nearest, distances = assign(points, centers)
        distances = costs(distances)
        kept = trimmed(weights, distances, trim)
        cost = float(kept @ distances)
        if cost >= last * (1.0 - _CONVERGED):
            break
        last = cost
        pull = kept / distances
        total = np.bincount(nearest, pull, len(centers))
        moved = np.stack([np.bincount(nearest, pull * column, len(centers)) for column in points.T], axis=1)
        centers = np.where(total[:, None] > 0.0, moved / np.where(total > 0.0, total, 1.0)[:, None], centers)
    distances = costs(assign(points, centers)[1])
    return float(trimmed(weights, distances, trim) @ distances), centers
