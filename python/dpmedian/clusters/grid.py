"""The location of the records: their reach, the axes along which they extend, and the cells of a grid that contain many
of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from dpmedian.mechanisms.clusters import CELLS_MOST, Grid, shell_ends
from dpmedian.statistics import FIRST_HALF_OCTAVE, SHELLS

__all__ = [
    "AXES_MOST",
    "LEVELS_MOST",
    "Leaves",
    "axes_of",
    "expanded",
    "grid_of",
    "levels_of",
    "reach_of",
    "search",
    "trimmed_weight",
]

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Indices = NDArray[np.int64]

# The index of the shell that begins at the scale, which is the core radius of all records.
_CORE = -FIRST_HALF_OCTAVE

# One, two or four neighboring shells stand out if their count exceeds this many standard deviations of the noise. There
# are about 120 such groups of shells. In one of fifteen data sets noise alone exceeds this number, and then the grid is
# slightly larger than necessary.
_STANDS_OUT = 3.3

# A shell counts as occupied if its count exceeds this many standard deviations.
_OCCUPIED = 2.0

# A grid has at most this many axes, this many levels, and 2^13 cells at its first level.
AXES_MOST, LEVELS_MOST, _FIRST_BITS = 6, 4, 13

# The largest width of a cell of the last level near the center, in core radii, for one, two, three, and more axes.
_FINEST = (0.04, 0.08, 0.2, 0.3)

# The number of cells of the first level. Let s be the standard deviation of a count. A cube around the center with
# sides of _CORE_WIDTH core radii has about one cell for every _RECORDS_PER_CELL s records, or two cells per center if
# this is more. With finer cells most records would lie in cells that do not stand out of the noise, and would be lost.
# This happens to wide clusters, which cover many cells, if a compact cluster determines the core radius.
_CORE_WIDTH, _RECORDS_PER_CELL = 2.4, 80.0

# A cell is split into at most 2^6 parts at once.
_SPLIT_BITS = 6

# A cell is split if its noisy count exceeds two thresholds: _LEAST_KEPT standard deviations, and _OF_LARGEST times the
# largest noisy count that is expected among empty cells. If noise alone let a far cell be split, a center would move
# away from the data. So cells of the first level that are farther than _FAR (in compressed coordinates) have a larger
# threshold, which noise exceeds in one of 500 runs.
_LEAST_KEPT, _OF_LARGEST, _FAR, _FAR_ODDS = 1.5, 0.85, 2.1, 2e-3


def reach_of(counts: Vector, noise: float) -> float:
    """The distance, in core radii, up to which records stand out of the noise, plus half an octave.

    One, two or four neighboring shells are tested together. In a sum over all outer shells, the noise of empty shells
    would hide a cluster.
    """
    outermost = _CORE
    for width in (1, 2, 4):
        sums = np.convolve(counts, np.ones(width), "valid")
        # Only windows beyond the outermost shell found so far can find more.
        seen = np.flatnonzero(sums[outermost + 1 :] > _STANDS_OUT * noise * math.sqrt(width))
        if len(seen):
            outermost += int(seen[-1]) + width
    return float(shell_ends()[min(outermost + 1, SHELLS - 1)])


def axes_of(moments: Matrix | None, d: int, noise: float, k: int) -> Matrix:
    """The axes of the grid, one in each row. Along these axes the directions to the records vary more than noise
    explains.

    `noise` is the standard deviation of the diagonal of the moments. k centers lie in k - 1 dimensions around their
    mean, so at most k - 1 axes are needed.
    """
    if moments is None:
        return np.eye(d)
    values, vectors = np.linalg.eigh(moments)
    values, vectors = values[::-1], vectors[:, ::-1]
    edge = noise * math.sqrt(2.0 * d)  # The edge of the semicircle distribution of the eigenvalues of the noise.
    bulk = values[-max(1, d // 3) :].mean() + (0.8 * edge if d >= 6 else 0.0)
    above = int((values - bulk > 0.9 * edge).sum())
    count = int(np.clip(above, min(d, 2), min(d, AXES_MOST, max(k - 1, 2))))
    return np.ascontiguousarray(vectors[:, :count].T)


def levels_of(grid: Grid) -> int:
    """The number of levels of a grid. With three or more axes there is one level less if the cells are fine enough."""
    axes = len(grid.axes)
    return LEVELS_MOST if axes <= 2 or _last(grid) > _FIRST_BITS // axes + LEVELS_MOST - 2 else LEVELS_MOST - 1


def _last(grid: Grid) -> int:
    """The level at which cells are as fine as necessary."""
    finest = _FINEST[min(len(grid.axes), len(_FINEST)) - 1]
    return math.ceil(math.log2(2.0 * grid.side / finest))


def grid_of(center: Vector, axes: Matrix, scale: float, reach: float) -> Grid:
    """The grid around the center that contains records up to `reach` core radii away."""
    side = float(compressed(np.array(reach))) * (1.0 + 1e-4)
    return Grid(center, axes, scale, scale * reach, side)


def compressed(length: Vector) -> Vector:
    """The length after compression. A length up to 1 is unchanged. A length m 2^e with 1 <= m < 2 becomes e + m."""
    mantissa, power = np.frexp(length)
    return np.asarray(np.where(length <= 1.0, length, power - 1 + 2.0 * mantissa))


def expanded(length: Vector) -> Vector:
    """The inverse of compression."""
    power = np.floor(np.maximum(length, 1.0) - 1.0)
    return np.asarray(np.where(length <= 1.0, length, np.ldexp(length - power, power.astype(np.int64))))


@dataclass(frozen=True)
class Leaves:
    """Points, with the noisy number of records around each point. The coordinates are along the axes of a grid, in core
    radii from its center.
    """

    places: Matrix
    weights: Vector


@dataclass(frozen=True)
class _Kept:
    """Cells of one level whose noisy counts are large enough to be split."""

    level: int
    indices: Indices
    counts: Vector


def _levels(grid: Grid, noise: float, size: float, k: int) -> list[int]:
    """The levels. The first one is coarse enough for the number of records. The last one is as fine as necessary,
    unless cells would be split into too many parts. The other levels lie evenly between these two.
    """
    axes, further = len(grid.axes), levels_of(grid) - 1
    cells = max(size / (_RECORDS_PER_CELL * noise), 2.0 * k)
    coarse = math.ceil(math.log2(2.0 * grid.side / _CORE_WIDTH * math.pow(cells, 1.0 / axes)))
    first = max(1, min(coarse, max(_last(grid) - further, 1), _FIRST_BITS // axes))
    finer = min(max(_last(grid) - first, further), further * max(1, _SPLIT_BITS // axes))
    return [first + round(level * finer / further) for level in range(further + 1)]


def search(grid: Grid, noise: float, size: float, k: int, count: Callable[[int, Indices], Vector]) -> Leaves:
    """Split the cells with many records, level by level. There are about `size` records.

    `count(level, indices)` releases the counts of cells. `noise` is the standard deviation of the noise of a count.
    """
    axes, levels = len(grid.axes), _levels(grid, noise, size, k)
    kept, places, weights = None, [], []
    for index, level in enumerate(levels):
        indices, parents = _cells(level, axes, kept)
        counts = count(level, indices)
        if kept is not None:
            counts = _combined(counts, parents, kept)
        middles = grid.middles(level, indices)
        large = counts > _thresholds(middles, noise, first=kept is None)
        if kept is not None:
            inside = np.bincount(parents[large], counts[large], len(kept.counts))
            stays = (inside <= 0.0) | (kept.counts - inside > 3.0 * noise)
            places.append(grid.middles(kept.level, kept.indices[stays]))
            weights.append(np.maximum((kept.counts - inside)[stays], noise))
            # In the other cells, the parts that are kept share the count of the whole cell, because few records lie in
            # the parts that are dropped.
            counts = counts * np.where(stays, 1.0, kept.counts / np.where(stays, 1.0, inside))[parents]
        if level == levels[-1] or not large.any():
            places.append(middles[large])
            weights.append(counts[large])
            break
        most = CELLS_MOST >> axes * (levels[index + 1] - level)
        kept = _most(level, indices[large], counts[large], most)
    found, masses = np.concatenate(places), np.concatenate(weights)
    if not len(found):
        return Leaves(np.zeros((1, axes)), np.ones(1))
    lengths = np.linalg.norm(found, axis=1)
    longer = np.where(lengths > 1.0, expanded(lengths) / np.maximum(lengths, 1.0), 1.0)
    return Leaves(found * longer[:, None], masses)


def trimmed_weight(counts: Vector, noise: float, leaves: Leaves, far: float) -> float:
    """The weight of the leaves that are as far from the center as the `far` farthest records.

    The noisy counts of the shells give the distance of these records. The leaves do not contain all records, because
    cells with few records are dropped, and most of these cells are far away.
    """
    seen = np.where(counts > _OCCUPIED * noise, counts, 0.0)
    lengths, starts = np.linalg.norm(leaves.places, axis=1), np.append(0.0, shell_ends()[:-1])
    beyond = np.append(np.cumsum(seen[::-1])[::-1], 0.0)
    weight = np.append((lengths >= starts[:, None]) @ leaves.weights, 0.0)
    # More than `far` records lie beyond the start of this shell, and at most `far` records beyond its end.
    shell = int(np.flatnonzero(beyond > far)[-1]) if beyond[0] > far else 0
    part = (far - beyond[shell + 1]) / max(beyond[shell] - beyond[shell + 1], 1e-300)
    return float(weight[shell + 1] + min(part, 1.0) * (weight[shell] - weight[shell + 1]))


def _cells(level: int, axes: int, kept: _Kept | None) -> tuple[Indices, Indices]:
    """The cells of the next level, and the index of the parent of each cell. These are all cells of the first level, or
    the parts of the kept cells.
    """
    if kept is None:
        return _all_cells(level, axes), np.zeros(1 << level * axes, dtype=np.int64)
    halvings = level - kept.level
    parts = _all_cells(halvings, axes)
    indices = ((kept.indices[:, None, :] << halvings) + parts[None]).reshape(-1, axes)
    return indices, np.repeat(np.arange(len(kept.indices)), len(parts))


def _all_cells(level: int, axes: int) -> Indices:
    """The indices of all cells of a level."""
    steps = np.meshgrid(*[np.arange(1 << level)] * axes, indexing="ij")
    return np.stack(steps, axis=-1).reshape(-1, axes).astype(np.int64)


def _combined(counts: Vector, parents: Indices, kept: _Kept) -> Vector:
    """Combine the counts of parts with the counts of their parents. The count of a parent and the sum of the counts of
    its parts estimate the same number, with different noise.
    """
    parts = len(counts) // len(kept.counts)
    sums = np.bincount(parents, counts, len(kept.counts))
    # The sum of the parts has `parts` times the variance of the parent's own count.
    best = (kept.counts * parts + sums) / (parts + 1.0)
    return np.asarray(counts + ((best - sums) / parts)[parents])


def _thresholds(middles: Matrix, noise: float, *, first: bool) -> Vector:
    """The noisy count above which a cell is kept."""
    cells = max(len(middles), 2)
    usual = noise * max(_LEAST_KEPT, _OF_LARGEST * math.sqrt(2.0 * math.log(cells)))
    thresholds = np.full(len(middles), usual)
    if first:
        far = np.linalg.norm(middles, axis=1) > _FAR
        thresholds[far] = noise * NormalDist().inv_cdf(1.0 - _FAR_ODDS / cells)
    return thresholds


def _most(level: int, indices: Indices, counts: Vector, most: int) -> _Kept:
    """At most `most` cells, those with the largest counts."""
    if len(indices) > most:
        order = np.sort(np.argsort(-counts, kind="stable")[:most])
        indices, counts = indices[order], counts[order]
    return _Kept(level, indices, counts)
