"""The calibrated method of k-medians, and its run. Proof: k_medians.md.

| stage | share of rho | finds |
|---|---|---|
| stages of the default method | 10 % | a first center, which is the median of all records, and the core radius |
| shells | 12 % | the reach of the records, and the axes along which they extend |
| cells | 38 % | cells of a grid that hold many records, level by level |
| clusters | 40 % | counts, distances and gradients of the records nearest to each center |
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpmedian.accounting import PrivacyCost
from dpmedian.clusters import grid
from dpmedian.clusters.refinement import Centers, Seen, longer, reach_of, revived, step
from dpmedian.clusters.start import assign, trimmed, weighted_k_medians
from dpmedian.mechanisms.clusters import NoisyCells, NoisyClusters, NoisyShells
from dpmedian.mechanisms.spender import Allowance, Offer, Spender
from dpmedian.methods import adaptive
from dpmedian.methods.adaptive.stages import Adaptive
from dpmedian.methods.adaptive.stages import calibrate as calibrate_median
from dpmedian.methods.contract import CappedMethod, Prediction, Reads, within
from dpmedian.parameters import PRIVATE_RECORDS_MAX, PublicParameters
from dpmedian.rates import pass_seconds
from dpmedian.release import ClusterResult, MethodResult, ReleaseFailed
from dpmedian.sources.protocol import Source
from dpmedian.tape import Tape

__all__ = ["KMedians", "calibrate", "cap", "check"]

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

# Shares of rho.
_WHERE, _SHELLS, _CELLS, _STEPS = 0.10, 0.12, 0.38, 0.40

# The relative rounding error of sums of shares.
_ROUNDING = 1e-9

# The number of gradient steps.
_STEPS_COUNT = 4

# The weight of the directions relative to the shells, in more than two dimensions. In one and two dimensions the
# coordinate axes are used.
_DIRECTIONS = 2.0

# The weights of the counts and of the shells relative to the gradients. Under replacement the counts cost nothing.
_WEIGHTS = {"replace": (1.0, 0.6), "add_remove": (0.5, 0.6)}

# A cluster with a size below this many standard deviations may be noise.
_DOUBTFUL = 3.0


@dataclass(frozen=True, eq=False)
class KMedians(CappedMethod):
    """Calibrated k-medians. Every release is Gaussian, and the sum of mu^2 is at most 2 rho."""

    parameters: PublicParameters
    rho: float
    where: Adaptive
    shells: Offer[NoisyShells]
    cells: Offer[NoisyCells]
    gradients: Offer[NoisyClusters]
    own: Allowance
    """The allowance of shells, cells and clusters."""
    allowance: Allowance
    """The allowance of all kinds of queries together, which determines the cost."""

    def __reduce__(self) -> tuple[Callable[..., KMedians], tuple[PublicParameters, float]]:
        return calibrate, (self.parameters, self.rho)

    @property
    def k(self) -> int:
        """The number of centers."""
        return _clusters(self.parameters)

    @property
    def passes(self) -> float:
        return self.where.passes + 1.0 + grid.LEVELS_MOST + _STEPS_COUNT

    @property
    def reads(self) -> Reads:
        reads, further = self.where.reads, 1 + grid.LEVELS_MOST + _STEPS_COUNT
        seconds = reads.seconds + pass_seconds(self.parameters.size, self.parameters.d, further)
        return reads._replace(expected=reads.expected + further, most=reads.most + further, seconds=seconds)

    @property
    def notes(self) -> tuple[str, ...]:
        found = self.smallest_cluster
        notes = [
            "A compact cluster that is smaller than the other clusters is found in about nineteen of twenty runs if it "
            f"has {found} records or more, and in every second run if it has {self.half_found} records. A cluster with "
            "fewer records usually shares its center with another cluster."
        ]
        if self.parameters.trim > 0.0:
            notes.append(
                f"The share trim = {self.parameters.trim:g} of the records does not count. These are the records "
                "farthest from all centers."
            )
        return tuple(notes)

    @functools.cached_property
    def _cell_noise(self) -> float:
        """The standard deviation of the count of a cell."""
        return self.cells.make(_CELLS * self.rho / grid.LEVELS_MOST).noise

    @property
    def half_found(self) -> int:
        """The size of a compact cluster that is found in half of the runs if there are larger clusters."""
        return math.ceil(_SMALL_BORDER[min(self.parameters.d, 3) - 1] * self._cell_noise)

    @property
    def smallest_cluster(self) -> int:
        """The size of a compact cluster that is found in nineteen of twenty runs if there are larger clusters."""
        return math.ceil(self.half_found * math.pow(19.0, 1.0 / _CLUSTER_SHARPNESS))

    def chance(self, size: float) -> float:
        """The predicted probability that a compact cluster of this size is found if there are larger clusters."""
        return within(self.half_found, size, _CLUSTER_SHARPNESS)

    def predict(self, core_radius: float | None = None) -> Prediction:
        """Predict a run. `failure` is the probability that clusters of equal sizes are not all found, or that the data
        are not found.
        """
        where = self.where.predict(core_radius)
        border = _EQUAL_BORDER[min(self.parameters.d, 3) - 1] * self._cell_noise
        missed = 1.0 - within(border, self.parameters.size / self.k, _CLUSTER_SHARPNESS)
        return Prediction(failure=max(where.failure, missed), silent=where.silent, uneven=where.uneven)

    def run(self, source: Source, tape: Tape) -> ClusterResult:
        try:
            where = self.where.among(source, tape)
        except ReleaseFailed as failed:
            raise ReleaseFailed(f"no first center was found: {failed.message}", self.cost) from None
        if where.scale is None or where.scale <= 0.0:
            raise ReleaseFailed("no core radius was found, so that distances have no unit", self.cost)
        # Records may be extremely far away. An overflow becomes infinite, and does not move any center.
        with np.errstate(over="ignore", invalid="ignore"):
            return _Run(self, source, Spender(self.own, tape), where.point, where.scale).result(where)


# The sizes of clusters that are found in half of the runs, in standard deviations of a cell's count. The three numbers
# are for one, two, and more dimensions. In more than two dimensions a cluster covers several cells. _EQUAL_BORDER is
# for clusters of equal sizes, and _SMALL_BORDER for one cluster beside four larger clusters. `benches/clusters.py
# --found` prints the measurements for _SMALL_BORDER. _CLUSTER_SHARPNESS is the exponent with which the probability
# grows with the size.
_EQUAL_BORDER, _SMALL_BORDER, _CLUSTER_SHARPNESS = (5.0, 7.0, 12.0), (4.5, 5.5, 16.0), 5.0


class _Run:
    """The state of one run."""

    def __init__(self, method: KMedians, source: Source, spender: Spender, center: Vector, scale: float) -> None:
        self._method = method
        self._source = source
        self._spender = spender
        self._center = center
        # If 40 % of the records coincide, the core radius is the smallest double, and dividing by this number would
        # overflow.
        self._scale = max(scale, _LEAST_SCALE)
        self._size_noise = math.inf
        self._notes: tuple[str, ...] = ()
        # Records farther than this from all centers do not count.
        self._reach = math.inf

    def result(self, where: MethodResult) -> ClusterResult:
        centers = self._refined(self._start())
        largest_first = np.argsort(-centers.sizes, kind="stable")
        points, sizes = centers.points[largest_first], centers.sizes[largest_first]
        return ClusterResult(
            point=points[0].copy(),
            scale=where.scale,
            notes=(*self._notes, *_doubts(sizes, self._size_noise)),
            centers=points,
            radii=centers.radii[largest_first],
            sizes=sizes,
            size_sigma=self._size_noise,
        )

    def _start(self) -> Centers:
        """The centers of k-medians of the noisy cells."""
        method, p = self._method, self._method.parameters
        (counts, moments), noise = self._spender.release(
            method.shells,
            _SHELLS * method.rho,
            lambda made, tape: made.around(self._source, tape, self._center, self._scale),
        )
        if counts[-1] > _MANY_BEYOND * p.size:
            self._notes = (_BEYOND.format(counts[-1]),)
        axes = grid.axes_of(moments, p.d, noise / _DIRECTIONS, method.k)
        made = grid.grid_of(self._center, axes, self._scale, grid.reach_of(counts, noise))
        share = _CELLS * method.rho / grid.levels_of(made)

        def count(level: int, indices: NDArray[np.int64]) -> Vector:
            return self._spender.release(
                method.cells, share, lambda cells, tape: cells.count(self._source, tape, made, level, indices)
            )[0]

        leaves = grid.search(made, self._spender.noise(method.cells, share), p.size, method.k, count)
        places, weights = _enough(leaves.places, np.maximum(leaves.weights, 1e-9), method.k)
        far = 0.0 if p.trim == 0.0 else grid.trimmed_weight(counts, noise, leaves, p.trim * p.size)
        trim = min(_SURELY_TRIMMED * far / float(weights.sum()), 0.5)
        found = weighted_k_medians(places, weights, method.k, trim)
        nearest, distances = assign(places, found)
        kept = trimmed(weights, distances, trim)
        sizes: Vector = np.bincount(nearest, kept, method.k).astype(np.float64)
        means = np.bincount(nearest, kept * distances, method.k) / np.maximum(sizes, 1e-300)
        radii = np.maximum(means, _LEAST_RADIUS) * self._scale
        return Centers(self._center + self._scale * (found @ axes), radii, sizes)

    def _refined(self, centers: Centers) -> Centers:
        """Make gradient steps, each with the same share of the remaining budget."""
        for done in range(_STEPS_COUNT):
            share = self._spender.left / (_STEPS_COUNT - done)
            before, last = centers, done + 1 == _STEPS_COUNT
            centers, seen = self._step(before, share)
            if not last:
                centers = revived(longer(before, centers), seen, self._scale)
        return centers

    def _step(self, centers: Centers, share: float) -> tuple[Centers, Seen]:
        method, p = self._method, self._method.parameters

        def ask(made: NoisyClusters, tape: Tape) -> Seen:
            counts, shells, gradients = made.at(
                self._source, tape, centers.points, centers.radii, self._scale, self._reach
            )
            self._size_noise = made.count_noise
            return Seen(counts, shells, gradients, made.count_noise, made.shell_noise, made.noise)

        seen, _ = self._spender.release(method.gradients, share, ask)
        if p.trim > 0.0:
            self._reach = reach_of(seen, self._scale, p.trim, p.size)
        return step(centers, seen, self._scale), seen


# The smallest core radius for which shells, radii and their quotients are normal doubles.
_LEAST_SCALE = 2.0**-900

# The smallest initial Huber radius, in core radii of all records.
_LEAST_RADIUS = 0.3


# With `trim`, only this part of the estimated share of far leaves is trimmed. The estimate is noisy, and trimming a
# small cluster increases the error more than keeping a few far leaves.
_SURELY_TRIMMED = 0.7

# If more than this share of the records lies beyond all shells, there is a note. The core radius then belongs to
# records that coincide, and gives no information about the other records.
_MANY_BEYOND = 0.1
_BEYOND = (
    "About {:.0f} records lie so far from the first center that no centers were searched among them. The reason is "
    "that 40 % of the records or more have (nearly) the same values. If these values stand for missing values, for "
    "example 0, leave such records out and release again."
)


def _enough(places: Matrix, weights: Vector, k: int) -> tuple[Matrix, Vector]:
    """At least k points. If there are fewer, copies of points drawn by weight are added at a small distance."""
    missing = k - len(places)
    if missing <= 0:
        return places, weights
    rng = np.random.default_rng(0)
    chosen = rng.choice(len(places), missing, p=weights / weights.sum())
    beside = places[chosen] + 0.5 * rng.standard_normal((missing, places.shape[1]))
    return np.concatenate([places, beside]), np.concatenate([weights, np.full(missing, weights.min())])


def _doubts(sizes: Vector, noise: float) -> tuple[str, ...]:
    """A note if some clusters may be noise."""
    doubtful = [str(j) for j in np.flatnonzero(sizes < _DOUBTFUL * noise)]
    if not doubtful:
        return ()
    return (
        f"The clusters with the indices {', '.join(doubtful)} may consist of noise, because their sizes are below "
        f"{_DOUBTFUL * noise:.0f}, three standard deviations of the noise of a size. Do not rely on their centers. Use "
        "a smaller k, more records or a larger budget.",
    )


def check(parameters: PublicParameters) -> None:
    """Raise an error if the number of clusters is missing, or if the budget does not admit Gaussian noise."""
    if parameters.clusters is None:
        raise ValueError("method 'k_medians' needs a number of clusters: call dpmedian.k_medians(points, k, ...)")
    adaptive.check(parameters)


def _clusters(parameters: PublicParameters) -> int:
    if parameters.clusters is None:
        raise ValueError("method 'k_medians' needs a number of clusters")
    return parameters.clusters


def cap(parameters: PublicParameters, rho: float) -> PrivacyCost:
    """The cost, which is the same for every number of records, because the kinds of releases and their largest numbers
    do not depend on the number of records.
    """
    return calibrate(parameters.at_size(PRIVATE_RECORDS_MAX), rho).cost


def calibrate(parameters: PublicParameters, rho: float) -> KMedians:
    """Calibrate the releases so that together they cost at most rho."""
    p, k = parameters, _clusters(parameters)
    where = calibrate_median(replace(p, inference=False), _WHERE * rho)
    weight, weights = _DIRECTIONS if p.d > 2 else 0.0, _WEIGHTS[p.neighbours]
    shells = Offer(lambda rho: NoisyShells.of("shells", rho, p, weight), 1, _SHELLS, "one")
    cells = Offer(
        lambda rho: NoisyCells.of("cells", rho, p), grid.LEVELS_MOST, _CELLS / (grid.LEVELS_MOST - 1), "3 or 4 levels"
    )
    gradients = Offer(
        lambda rho: NoisyClusters.of("clusters", rho, p, k, weights), _STEPS_COUNT, _STEPS, f"{_STEPS_COUNT} steps"
    )
    rest = (1.0 - _WHERE) * (1.0 - _ROUNDING)
    own = Allowance(
        rest * rho, tuple(replace(offer, largest=offer.largest / rest) for offer in (shells, cells, gradients))
    )
    shells, cells, gradients = own.offers  # type: ignore[assignment]
    kinds = (
        *(replace(offer, largest=_WHERE * offer.largest) for offer in where.allowance.offers),
        *(replace(offer, largest=rest * offer.largest) for offer in own.offers),
    )
    return KMedians(p, rho, where, shells, cells, gradients, own, Allowance(rho, kinds))
