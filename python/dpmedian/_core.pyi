"""The compiled core. `stubtest` checks this file against it.

Exact integers enter by `Points.answer` and leave by `Tape` only: in between they are an `Exact`, which cannot be read.
"""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

__all__ = [
    "FIRST_HALF_OCTAVE",
    "FIRST_QUARTER_OCTAVE",
    "LAST_QUARTER_OCTAVE",
    "SHELLS",
    "Accumulator",
    "BallSize",
    "ClusterGradients",
    "Coins",
    "CoordinatePosterior",
    "Curvature",
    "DistanceCounts",
    "Exact",
    "Feasible",
    "Gradient",
    "GradientAndDirections",
    "GridCells",
    "GridPosterior",
    "Hessian",
    "LargestBallCounts",
    "MeanShift",
    "Message",
    "ObjectiveDifferences",
    "PairCounts",
    "Points",
    "Ranks",
    "RecordFile",
    "RobustStep",
    "Sensitivity",
    "ShellsAndDirections",
    "Size",
    "Statistic",
    "Stream",
    "Tape",
    "VolumetricCenter",
    "__version__",
    "gaussian_sigma",
    "group_contributions",
    "label_places",
    "label_ranks",
    "lattice_score_sensitivity",
    "nonprivate_ball_counts",
    "nonprivate_gradient",
    "nonprivate_lattice_scores",
    "nonprivate_median",
    "nonprivate_objective",
    "nonprivate_quantile_radius",
    "nonprivate_top_count_sums",
    "reduce_units",
    "set_threads",
    "sphere_vectors",
    "threads",
]
__version__: str
FIRST_HALF_OCTAVE: int
FIRST_QUARTER_OCTAVE: int
LAST_QUARTER_OCTAVE: int
SHELLS: int

_Neighbours = Literal["replace", "add_remove"]
_Pulse = Callable[[float], None] | None
_Floats = NDArray[np.floating[Any]]  # float64 or float32
_Ball = tuple[Sequence[float], float]
_Traced = tuple[
    str,
    str,
    float,
    float,
    tuple[str, NDArray[np.float64], list[int], int | None] | None,
    NDArray[np.int64] | None,
]
_Labels = NDArray[np.int64] | tuple[NDArray[np.uint8], NDArray[np.int64]]

@final
class Sensitivity:
    """How far an exact answer may move between neighbors, in units of its lattice, rounded up."""

    @property
    def replace(self) -> float: ...
    @property
    def add_remove(self) -> float: ...
    def under(self, neighbours: _Neighbours) -> float: ...

@disjoint_base
class Statistic:
    """A query about the records, with public parameters only. `name` is for plans and records."""

    @property
    def name(self) -> str: ...
    @property
    def sensitivity(self) -> Sensitivity: ...
    @property
    def adds_over_records(self) -> bool: ...
    @property
    def dimension(self) -> int | None: ...

@final
class Gradient(Statistic):
    """The sum over records of (theta - x)/||theta - x||, in units of 2^-bits."""

    def __new__(cls, theta: NDArray[np.float64], bits: int) -> Gradient: ...
    @staticmethod
    def bound(d: int, bits: int, weighted: bool = False) -> Sensitivity: ...

@final
class BallSize(Statistic):
    """The number of records within a radius of theta, in units of 2^-bits."""

    def __new__(cls, theta: NDArray[np.float64], radius: float, bits: int) -> BallSize: ...
    @staticmethod
    def bound(bits: int, weighted: bool = False) -> Sensitivity: ...

@final
class MeanShift(Statistic):
    """The sum over the records within a radius of theta of (theta - x)/radius, in units of 2^-bits."""

    def __new__(cls, theta: NDArray[np.float64], radius: float, bits: int) -> MeanShift: ...
    @staticmethod
    def bound(d: int, bits: int, weighted: bool = False) -> Sensitivity: ...

@final
class RobustStep(Statistic):
    """The sum over records of (x - center)/max(|x - center|, threshold), in units of 2^-bits.

    Without a center differences are taken from the origin. The threshold is 0, or lies between 2^-300 and 2^300.
    """

    def __new__(
        cls, d: int, center: NDArray[np.float32] | NDArray[np.float64] | None, threshold: float, bits: int
    ) -> RobustStep: ...
    @staticmethod
    def bound(d: int, bits: int, weighted: bool = False) -> Sensitivity: ...

@final
class Accumulator:
    """The robust step of records that arrive one by one and are not kept, and their number."""

    def __new__(cls, step: RobustStep, weighted: bool = False) -> Accumulator: ...
    def add(self, parts: Sequence[NDArray[np.float32] | NDArray[np.float64]], weight: int = 1048576) -> bool:
        """Whether all coordinates are finite numbers; otherwise the record is not there."""
    def add_center(self, weight: int = 1048576) -> None:
        """A record that counts and moves nothing."""
    def size(self, bits: int) -> Exact: ...
    def sum(self) -> Exact:
        """The sum, which is taken out."""

@final
class Ranks(Statistic):
    """In every coordinate the number of records at or below its threshold, in units of 2^-bits.

    Centered, minus half the number of records, with bits at least 1.
    """

    def __new__(cls, thresholds: NDArray[np.float64], bits: int = 0, centered: bool = False) -> Ranks: ...
    @staticmethod
    def bound(d: int, bits: int = 0, centered: bool = False, weighted: bool = False) -> Sensitivity: ...

@final
class DistanceCounts(Statistic):
    """The number of records within each quarter octave 2^(k/4) of theta, in units of 2^-bits: a table, picked from.

    Entry k - FIRST_QUARTER_OCTAVE belongs to 2^(k/4), up to LAST_QUARTER_OCTAVE. A target (p, k) takes p/2^k times the
    number of records off every entry, with bits at least k.
    """

    def __new__(cls, theta: NDArray[np.float64], bits: int = 0, target: tuple[int, int] = ...) -> DistanceCounts: ...
    @staticmethod
    def bound(bits: int = 0, target: tuple[int, int] = ..., weighted: bool = False) -> Sensitivity: ...

@final
class Curvature(Statistic):
    """The sum over records of (1 - 1/d) radius/distance, or of 1 within the radius of theta.

    One value in units of 2^-bits, with bits at least 20.
    """

    def __new__(cls, theta: NDArray[np.float64], radius: float, bits: int) -> Curvature: ...
    @staticmethod
    def bound(bits: int, weighted: bool = False) -> Sensitivity: ...

@final
class Hessian(Statistic):
    """The Hessian of the sum of distances, smoothed at a radius, times that radius, in units of 2^-bits: a vector.

    First `weight` times what `Curvature` sums. Then the sum over the records beyond the radius of radius/distance times
    u u^T, u the unit vector to theta: the upper triangle in the order of numpy's `triu_indices`, off the diagonal times
    sqrt(2), so that its norm is the Frobenius norm. The weight is at most 2, bits are at most 40, and dimensions 4000.
    """

    def __new__(cls, theta: NDArray[np.float64], radius: float, weight: float, bits: int) -> Hessian: ...
    @staticmethod
    def bound(d: int, weight: float, bits: int, weighted: bool = False) -> Sensitivity: ...

@final
class GradientAndDirections(Statistic):
    """The gradient, then `weight` times the sum of u u^T over all records, as `Hessian` has it: in units of 2^-bits.

    The weight is at most 1/sqrt(2), bits are at most 40, and dimensions 4000.
    """

    def __new__(cls, theta: NDArray[np.float64], weight: float, bits: int) -> GradientAndDirections: ...
    @staticmethod
    def bound(d: int, weight: float, bits: int, weighted: bool = False) -> Sensitivity: ...

@final
class ShellsAndDirections(Statistic):
    """The number of records in each shell around theta, then `weight` times the sum of u u^T, as `Hessian` has it.

    Shell i holds the distances from 2^((i + FIRST_HALF_OCTAVE)/2) scales to the next; the first and the last of the
    SHELLS are open. In units of 2^-bits. The weight is between 0, which leaves the second part out, and 2.
    """

    def __new__(cls, theta: NDArray[np.float64], scale: float, weight: float, bits: int) -> ShellsAndDirections: ...
    @staticmethod
    def bound(d: int, weight: float, bits: int, weighted: bool = False) -> Sensitivity: ...

@final
class GridCells(Statistic):
    """The number of records in each listed cell of a grid in the axes around theta, in units of 2^-bits.

    Places in units of the scale are shortened to c(r) = r up to 1 and e + m for r = m 2^e beyond; the cube of half the
    side `side` is cut into 2^level parts along each axis. The code of a cell has its indices as digits in base 2^level.
    """

    def __new__(
        cls,
        theta: NDArray[np.float64],
        axes: NDArray[np.float64],
        scale: float,
        reach: float,
        side: float,
        level: int,
        codes: NDArray[np.uint64],
        bits: int,
    ) -> GridCells: ...
    @staticmethod
    def bound(cells: int, bits: int, weighted: bool = False) -> Sensitivity: ...

@final
class ClusterGradients(Statistic):
    """For each center: the count of its nearest records, their numbers in shells, and their Huber gradient.

    The weights are those of the counts and of the shells, both at most 1. In units of 2^-bits, at most 40.
    """

    def __new__(
        cls,
        centers: NDArray[np.float64],
        radii: NDArray[np.float64],
        scale: float,
        reach: float,
        weights: tuple[float, float],
        bits: int,
    ) -> ClusterGradients: ...
    @staticmethod
    def bound(k: int, d: int, weights: tuple[float, float], bits: int, weighted: bool = False) -> Sensitivity: ...

@final
class Size(Statistic):
    """The number of records, in units of 2^-bits.

    If neighbors replace a record it is public, its sensitivity is 0, and no tape adds Gaussian noise to it.
    """

    def __new__(cls, bits: int = 0) -> Size: ...
    @staticmethod
    def bound(bits: int = 0, weighted: bool = False) -> Sensitivity: ...

@final
class PairCounts(Statistic):
    """The number of pairs within each ascending radius, over hidden random pairings, in units of 2^-bits: a table.

    A target (p, k) takes p/2^k times the number of pairs off every entry, with bits at least k.
    """

    def __new__(
        cls, radii: Sequence[float], pairings: int, stream: Stream, bits: int = 0, target: tuple[int, int] = ...
    ) -> PairCounts: ...
    @staticmethod
    def bound(pairings: int, bits: int = 0) -> Sensitivity: ...

@final
class LargestBallCounts(Statistic):
    """The sum of the m largest numbers of records within each ascending radius of a record: a table. n is public."""

    def __new__(cls, radii: Sequence[float], m: int, n: int) -> LargestBallCounts: ...
    @staticmethod
    def bound(m: int, n: int) -> Sensitivity: ...

@final
class ObjectiveDifferences(Statistic):
    """The sum of distances at every candidate (a row) against the first one, in units of 2^exponent: scores."""

    def __new__(cls, candidates: NDArray[np.float64]) -> ObjectiveDifferences: ...
    @property
    def exponent(self) -> int: ...
    @staticmethod
    def bound(candidates: NDArray[np.float64]) -> Sensitivity: ...

@final
class Exact:
    """Exact integers, which only a tape can open.

    A vector is released as a whole, of a table one entry that was picked, and of scores the index of one. `sum` takes
    the answers of shards to one and the same statistic, which adds over records; no record may be in two of them.
    """

    def __len__(self) -> int: ...
    @property
    def sensitivity(self) -> Sensitivity: ...
    def pick(self, index: int) -> Exact: ...
    @staticmethod
    def sum(shards: Sequence[Exact]) -> Exact: ...
    @staticmethod
    def stated(values: NDArray[np.int64], sensitivity: float, scores: bool = False) -> Exact: ...
    @staticmethod
    def public(values: NDArray[np.int64]) -> Exact: ...

@final
class RecordFile:
    """An open file, and where its records lie: in pieces of some records, of every column the offset of its first
    number, the stride to the next, and whether it has 8 bytes, and not 4.
    """

    def __new__(cls, path: str | PathLike[str]) -> RecordFile: ...
    def lay_out(self, pieces: Sequence[tuple[int, Sequence[tuple[int, int, bool]]]]) -> None: ...

@final
class Message:
    """A query, an answer, records or places of records, for another process of a run: opaque at both ends.

    It can be pickled, to get there, and shows its size only. Its bytes are in plain. `query` is for other processes,
    `answer` the sum over the shards of one of them, and `answered` the sum over all. `places` and `places_by_coins`
    choose hidden places, a message for each shard; `records` has the records of a shard with their weights, all or
    those at hidden places, and `gathered` joins those of several messages.
    """

    def __new__(cls, bytes: bytes) -> Message: ...
    @staticmethod
    def query(statistic: Statistic) -> Message: ...
    def answer(self, shards: Sequence[Points]) -> Message: ...
    @staticmethod
    def answered(messages: Sequence[Message], statistic: Statistic) -> Exact: ...
    @staticmethod
    def places(stream: Stream, sizes: Sequence[int], m: int) -> list[Message]: ...
    @staticmethod
    def places_by_coins(stream: Stream, sizes: Sequence[int], probability: tuple[int, int]) -> list[Message]: ...
    @staticmethod
    def records(shard: Points, places: Message | None = None) -> Message: ...
    @staticmethod
    def gathered(messages: Sequence[Message]) -> Points: ...

@final
class Points:
    """The validated records, read where they lie. No exact number can be read from them.

    The array is in C order and must not change while it is held.

    A sample is hidden, and under add/remove so is its size. `sample` has min(m, n) records and is for neighbors that
    replace a record; `sample_by_coins` has every record with probability numerator/2^halvings.
    """

    def __new__(
        cls,
        array: _Floats,
        *,
        ball: _Ball | None = None,
        replacement: Sequence[float] | None = None,
    ) -> Points: ...
    @staticmethod
    def read(file: RecordFile, *, ball: _Ball | None = None, replacement: Sequence[float] | None = None) -> Points: ...
    @property
    def d(self) -> int: ...
    @property
    def n(self) -> int: ...
    @staticmethod
    def concatenate(shards: Sequence[Points]) -> Points: ...
    def sample(self, stream: Stream, m: int) -> Points: ...
    def sample_by_coins(self, stream: Stream, probability: tuple[int, int]) -> Points: ...
    def weighted(self, coins: Coins, weights: NDArray[np.uint32], first: int = 0) -> Points: ...
    def answer(self, statistic: Statistic, pulse: _Pulse = None) -> Exact: ...
    def descend(
        self,
        tape: Tape,
        name: str,
        *,
        start: Sequence[float],
        balls: Sequence[_Ball],
        step: float,
        steps: int,
        bits: int,
        noise_multiplier: float,
        pulse: _Pulse = None,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
    def draw_lattice(
        self,
        tape: Tape,
        *,
        center: Sequence[float],
        lattice: tuple[float, int, int],
        rate: int,
        pulse: _Pulse = None,
    ) -> NDArray[np.int64]: ...

@final
class Tape:
    """Every noisy release: drawn, recorded or replayed, under one neighbor relation.

    From `allow` on, which is called at most once, a release raises and opens nothing if the sum of
    (sensitivity/sigma)^2 over Gaussian releases would exceed `mu_squared`, or that of the bounded ranges of choices and
    lattice draws `ranges`. Laplace and geometric noise, for vectors of one only, is not counted.
    """

    @staticmethod
    def draw(key: bytes | None = None, neighbours: _Neighbours = "replace") -> Tape: ...
    @staticmethod
    def record(key: bytes, neighbours: _Neighbours = "replace") -> Tape: ...
    def replay(self) -> Tape: ...
    def entries(self) -> list[tuple[str, float, float, NDArray[np.int64], NDArray[np.int64]]]: ...
    @property
    def neighbours(self) -> _Neighbours: ...
    def allow(self, mu_squared: float, ranges: float) -> None: ...
    def gaussian(self, name: str, exact: Exact, noise_multiplier: float) -> NDArray[np.int64]: ...
    def laplace(self, name: str, exact: Exact, rate: tuple[int, int]) -> NDArray[np.int64]: ...
    def geometric(self, name: str, exact: Exact, rate: tuple[int, int]) -> NDArray[np.int64]: ...
    def choose(self, name: str, exact: Exact, eta: float, at_least: int = 0) -> int: ...
    def hidden(self) -> Stream: ...
    def trace(self) -> list[_Traced]: ...
    def outcome(self, name: str, sensitivity: float, epsilon: float, found: int | None) -> None: ...

@final
class Stream:
    """Hidden randomness of a tape: independent of the data, the same in a replay, never shown, and good for one use."""

@final
class Coins:
    """Hidden coins that round the weights of one data set, a coin for each of its rows, wherever these lie.

    They can be pickled, to get to the processes that hold the records.
    """

    def __new__(cls, key: bytes) -> Coins: ...
    @staticmethod
    def of(stream: Stream) -> Coins: ...

@final
class Feasible:
    """Where an iterate may be: in one ball, or in the intersection of two."""

    def __new__(cls, balls: Sequence[_Ball]) -> Feasible: ...
    def project(self, point: NDArray[np.float64]) -> NDArray[np.float64]: ...

@final
class VolumetricCenter:
    """A ball cut by half-spaces, and its volumetric center."""

    TAU: float
    def __new__(cls, origin: NDArray[np.float64], radius: float) -> VolumetricCenter: ...
    @property
    def center(self) -> NDArray[np.float64]: ...
    @property
    def cuts(self) -> int: ...
    def cut(self, direction: NDArray[np.float64]) -> bool: ...

@final
class GridPosterior:
    """The posterior of a search for an index of a grid."""

    def __new__(cls, size: int, likely: float, width: float) -> GridPosterior: ...
    def ask(self) -> int: ...
    def learn(self, evidence: float) -> None: ...
    def mode(self) -> int: ...
    def doubt(self, around: int) -> float: ...

@final
class CoordinatePosterior:
    """The posterior of a search for the median of every coordinate."""

    def __new__(
        cls,
        dimension: int,
        octaves: tuple[int, int],
        limit: float,
        resolution: float,
        likely: tuple[float, float] | None = None,
    ) -> CoordinatePosterior: ...
    def ask(self) -> NDArray[np.float64]: ...
    def learn(self, evidence: NDArray[np.float64]) -> None: ...
    def median(self) -> NDArray[np.float64]: ...
    def quantile(self, share: float) -> NDArray[np.float64]: ...

def set_threads(threads: int | None = None) -> None: ...
def threads() -> int: ...
def gaussian_sigma(sensitivity: float, noise_multiplier: float) -> int: ...
def lattice_score_sensitivity(d: int, weighted: bool = False) -> Sensitivity: ...
def nonprivate_median(
    array: _Floats, weights: NDArray[np.float64] | None = None, pulse: _Pulse = None
) -> NDArray[np.float64]: ...
def nonprivate_objective(array: _Floats, theta: NDArray[np.float64]) -> float: ...
def nonprivate_gradient(array: _Floats, theta: NDArray[np.float64], bits: int) -> NDArray[np.int64]: ...
def nonprivate_ball_counts(array: _Floats, radii: Sequence[float], *, pairwise: bool = False) -> NDArray[np.int64]: ...
def nonprivate_top_count_sums(array: _Floats, radii: Sequence[float], m: int) -> NDArray[np.int64]: ...
def nonprivate_quantile_radius(array: _Floats, center: NDArray[np.float64], count: int) -> float: ...
def nonprivate_lattice_scores(
    array: _Floats,
    places: NDArray[np.int64],
    center: Sequence[float],
    lattice: tuple[float, int, int],
    neighbours: str = "replace",
) -> NDArray[np.uint64]: ...
def label_ranks(labels: _Labels, missing: NDArray[np.bool_] | None = None) -> tuple[NDArray[np.int64], int]: ...
def label_places(labels: _Labels, keys: _Labels, missing: NDArray[np.bool_] | None = None) -> NDArray[np.int64]: ...
def reduce_units(
    array: NDArray[np.float64],
    codes: NDArray[np.int64],
    units: int,
    reducer: str,
    pulse: _Pulse = None,
) -> NDArray[np.float64]: ...
def group_contributions(
    units: NDArray[np.int64], unit_count: int, groups: NDArray[np.int64], group_count: int, most: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...
def sphere_vectors(positions: NDArray[np.float64]) -> NDArray[np.float64]: ...
