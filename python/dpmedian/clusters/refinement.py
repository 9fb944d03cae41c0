"""Noisy gradient steps of all centers at once."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpmedian.mechanisms.clusters import shell_ends

__all__ = ["Centers", "Seen", "longer", "reach_of", "revived", "step"]

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

# A shell counts as occupied if its count exceeds _OCCUPIED standard deviations. A center is moved only if its count
# exceeds _SEEN standard deviations. Otherwise the records of this center count as not seen.
_OCCUPIED, _SEEN = 2.0, 3.0

# The shells of a cluster are used if they contain this share of the count of the cluster. Otherwise the shells of all
# clusters are used.
_CLEAR = 0.6

# The largest step is the smaller of two lengths: _LONGEST Huber radii, and _TOWARDS_NEXT times the distance to the
# nearest other center.
_LONGEST, _TOWARDS_NEXT = 3.0, 0.5

# In three dimensions and more, every step except the last one is lengthened by this factor. Centers that share clusters
# with others move slowly in one direction, because every step moves only a part of the records to another center. In
# the plane and on the line, where gradients are not shrunk, longer steps lose more by noise than they gain.
_LONGER = 1.5

# With `trim`, at least this part of the share is trimmed from the records that are seen. The other far records may be
# too sparse to be seen.
_LEAST_TRIMMED = 0.2

# A center whose records were not seen may be moved into the cluster with the largest sum of distances. The move
# increases the distance of each of its own records by at most the distance to the nearest other center, and halving a
# cluster saves about the share _SAVED of the sum of that cluster. So the center is moved if the number of its own
# records, times the distance to the nearest other center, is at most _SAVED times the largest sum. The noisy number of
# records is first increased by _HIDDEN standard deviations, because noise may hide records. The two centers of the
# halved cluster are _APART Huber radii away from the old center.
_HIDDEN, _SAVED, _APART = 2.0, 0.1, 0.5


@dataclass(frozen=True)
class Centers:
    """The centers, the Huber radius of each, and the noisy number of records nearest to each."""

    points: Matrix
    radii: Vector
    sizes: Vector


@dataclass(frozen=True)
class Seen:
    """The noisy values of one release about the records around the centers, and the standard deviations of the
    noise.
    """

    counts: Vector
    shells: Matrix
    gradients: Matrix
    count_noise: float
    shell_noise: float
    gradient_noise: float

    @property
    def occupied(self) -> Vector:
        """The number of records in each shell around all centers, or 0 if the number does not stand out of the
        noise.
        """
        together = self.shells.sum(axis=0)
        return np.where(together > _OCCUPIED * self.shell_noise * math.sqrt(len(self.shells)), together, 0.0)


def step(centers: Centers, seen: Seen, scale: float) -> Centers:
    """Move every center by a Newton step on its Huber distances. The step is shorter if noise may explain the
    gradient.
    """
    points, radii = centers.points.copy(), centers.radii.copy()
    k, d = points.shape
    # The middle radii of the shells, from their outer radii. A shell is half an octave wide.
    distances = scale * shell_ends() * 2.0**-0.25
    occupied = seen.occupied
    gaps = _gaps(centers.points)
    for j in range(k):
        if seen.counts[j] < _SEEN * seen.count_noise:
            continue
        # Shells beyond the next center contain records of other clusters.
        near = distances < max(gaps[j], 1.5 * radii[j])
        own = np.where((seen.shells[j] > _OCCUPIED * seen.shell_noise) & near, seen.shells[j], 0.0)
        shape = own if own.sum() > _CLEAR * seen.counts[j] else np.where(near, occupied, 0.0)
        shape = shape / max(shape.sum(), 1e-300)
        bent = np.minimum(1.0, radii[j] / distances) * np.where(distances > radii[j], 1.0 - 1.0 / d, 1.0)
        curvature = seen.counts[j] * float(np.clip(shape @ bent, 0.5, 1.0))
        move = -radii[j] * seen.gradients[j] / curvature * _shrinkage(seen.gradients[j], seen.gradient_noise)
        longest = min(_LONGEST * radii[j], _TOWARDS_NEXT * gaps[j])
        points[j] += move * min(1.0, longest / max(float(np.linalg.norm(move)), 1e-300))
        if shape.sum() > 0.0:
            median = _median(shape, scale * shell_ends())
            radii[j] = min(max(median, 0.02 * scale, 0.25 * radii[j]), 1.5 * radii[j])
    return replace(centers, points=points, radii=radii, sizes=seen.counts)


def longer(before: Centers, after: Centers) -> Centers:
    """Move the centers farther in the direction of a step, which saves steps."""
    if before.points.shape[1] <= 2:
        return after
    return replace(after, points=before.points + _LONGER * (after.points - before.points))


def reach_of(seen: Seen, scale: float, trim: float, size: float) -> float:
    """The distance from the nearest center beyond which about the share `trim` of the records lies."""
    within = np.cumsum(seen.occupied)
    wanted = min((1.0 - trim) * size, (1.0 - _LEAST_TRIMMED * trim) * float(within[-1]))
    return float(scale * shell_ends()[min(int(np.searchsorted(within, wanted)), len(within) - 1)])


def revived(centers: Centers, seen: Seen, scale: float) -> Centers:
    """Move centers whose records were not seen into the clusters with the largest sums of distances, and halve these
    clusters.

    A center that is far away from all others is not moved, because even a few records there may justify it.
    """
    points, radii, sizes = centers.points.copy(), centers.radii.copy(), centers.sizes.copy()
    occupied = np.where(seen.shells > _OCCUPIED * seen.shell_noise, seen.shells, 0.0)
    middles = scale * shell_ends() * 2.0**-0.25
    mean = occupied @ middles / np.maximum(occupied.sum(axis=1), 1e-300)
    # The mean distance is capped at three Huber radii, because otherwise a few far records would count more than all
    # others.
    costs = sizes * np.where(mean > 0.0, np.minimum(mean, 3.0 * radii), radii)
    for j in np.flatnonzero(sizes < _SEEN * seen.count_noise).tolist():
        costliest = int(np.argmax(costs))
        hidden = max(sizes[j], 0.0) + _HIDDEN * seen.count_noise
        if costliest == j or hidden * _gaps(points)[j] > _SAVED * costs[costliest]:
            continue
        # Any direction is possible. A fixed seed makes the result a function of released values.
        direction = np.random.default_rng(j).standard_normal(points.shape[1])
        away = _APART * radii[costliest] / np.linalg.norm(direction) * direction
        points[j], points[costliest] = points[costliest] - away, points[costliest] + away
        radii[j] = radii[costliest]
        sizes[[j, costliest]] = sizes[costliest] / 2.0
        costs[[j, costliest]] = costs[costliest] / 2.0
    return Centers(points, radii, sizes)


def _median(shape: Vector, ends: Vector) -> float:
    """The distance within which half of the records lie, interpolated within a shell."""
    below = np.cumsum(shape)
    index = int(np.searchsorted(below, 0.5 * shape.sum()))
    part = 1.0 - (below[index] - 0.5 * shape.sum()) / max(shape[index], 1e-300)
    return float(ends[index] * 2.0 ** (0.5 * (part - 1.0)))


def _gaps(points: Matrix) -> Vector:
    """The distance of each center from the nearest other center, or infinity if there is no other center."""
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    return np.asarray(distances.min(axis=1))


def _shrinkage(gradient: Vector, noise: float) -> float:
    """The James-Stein factor. In three and more dimensions, a step that noise alone explains becomes zero."""
    if len(gradient) <= 2:
        return 1.0
    squares = float(gradient @ gradient)
    return max(0.0, 1.0 - len(gradient) * noise**2 / max(squares, 1e-300))
