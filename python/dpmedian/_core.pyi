"""The types of the compiled core. `stubtest` compares this file with the core.

Exact integers come from `Points.answer` as an `Exact`, which cannot be read. Only a `Tape` releases them.
"""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from dpmedian.accounting.protection import Neighbours as _Neighbours

__all__ = [
    "FIRST_HALF_OCTAVE",
    "FIRST_QUARTER_OCTAVE",
    "LAST_QUARTER_OCTAVE",
    "SHELLS",
    "STATISTICS",
    "Accumulator",
    "Coins",
    "CoordinatePosterior",
    "Exact",
    "Feasible",
    "GridPosterior",
    "Message",
    "Points",
    "RecordFile",
    "Sensitivity",
    "Statistic",
    "Stream",
    "Tape",
    "VolumetricCenter",
    "__version__",
    "bound",
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
STATISTICS: list[tuple[str, bool]]

_Pulse = Callable[[float], None] | None
_Floats = NDArray[np.floating[Any]]  # float64 or float32
_Ball = tuple[Sequence[float], float]
_Traced = tuple[
    str,
    str,
    float,
    float,
    tuple[str, dict[str, Any], int | None] | None,
    NDArray[np.int64] | None,
]
_Parameter = float | NDArray[np.floating[Any]] | NDArray[np.uint64] | Sequence[float] | Sequence[int]
_Labels = NDArray[np.int64] | tuple[NDArray[np.uint8], NDArray[np.int64]]

@final
class Sensitivity:
    """The largest change of an exact answer between neighbors, in units of its lattice, rounded up."""

    @property
    def replace(self) -> float: ...
    @property
    def add_remove(self) -> float: ...
    def under(self, neighbours: _Neighbours) -> float: ...

@final
class Statistic:
    """A query about the records: the name of a statistic and its public parameters.

    Each statistic and its parameters are described in its file in `src/statistics/`. A ValueError is raised for a
    parameter that the statistic does not have, and for a value that the statistic refuses. `stream` is the hidden
    randomness of pairings.
    """

    def __new__(cls, name: str, /, stream: Stream | None = None, **parameters: _Parameter) -> Statistic: ...
    @property
    def name(self) -> str: ...
    @property
    def sensitivity(self) -> Sensitivity: ...
    @property
    def adds_over_records(self) -> bool: ...
    @property
    def dimension(self) -> int | None: ...
    @property
    def exponent(self) -> int: ...

@final
class Accumulator:
    """The robust step of records that arrive one by one and are not stored, and their number."""

    def __new__(cls, step: Statistic, weighted: bool = False) -> Accumulator: ...
    def add(self, parts: Sequence[NDArray[np.float32] | NDArray[np.float64]], weight: int = 1048576) -> bool:
        """Add a record. Return whether all coordinates are finite numbers. Otherwise the record is left out."""
    def add_center(self, weight: int = 1048576) -> None:
        """Add a record at the center, which counts and does not move the sum."""
    def size(self, bits: int) -> Exact: ...
    def sum(self) -> Exact:
        """Take the sum out of the accumulator."""

@final
class Exact:
    """Exact integers, which only a tape can open.

    A vector is released as a whole. From a table, one entry that was picked is released, and from scores the index of
    one score. `sum` adds the answers of shards to one statistic, which must be a sum over records. No record may be in
    two shards.
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
    """An open file, and the positions of its records. A piece has some records. For every column of a piece, the
    position is the offset of the first number, the stride to the next number, and whether a number has 8 bytes
    (otherwise 4).
    """

    def __new__(cls, path: str | PathLike[str]) -> RecordFile: ...
    def lay_out(self, pieces: Sequence[tuple[int, Sequence[tuple[int, int, bool]]]]) -> None: ...

@final
class Message:
    """A query, an answer, records or places of records, for another process of a run.

    A message can be pickled to be sent. Python code sees only its size, but its bytes are not encrypted. `query` is for
    other processes, `answer` has the sum over the shards of one process, and `answered` has the sum over all processes.
    `places` and `places_by_coins` choose hidden places, in one message for each shard. `records` has the records of a
    shard with their weights, either all records or those at hidden places. `gathered` joins the records of several
    messages.
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
    """The validated records, which are read in place. No exact number can be read from this object.

    The array is in C order and must not change while this object exists.

    A sample is hidden, and under add/remove its size is hidden, too. `sample` has min(m, n) records and is for
    neighbors that replace a record. `sample_by_coins` has every record with probability numerator/2^halvings.
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
    """The object that makes every noisy release under one neighbor relation. The noise is drawn, recorded or replayed.

    `allow` is called at most once. After this call, a release raises an error and opens nothing if the sum of
    (sensitivity/sigma)^2 over Gaussian releases would exceed `mu_squared`, or if the sum of the bounded ranges of
    choices and lattice draws would exceed `ranges`. Laplace and geometric noise, which is for vectors of length one
    only, is not counted.
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
    """Hidden randomness of a tape. It is independent of the data, is the same in a replay, is never shown, and can be
    used once.
    """

@final
class Coins:
    """Hidden coins that round the weights of one data set. Each row has its own coin, in every process.

    Coins can be pickled, to be sent to the processes that hold the records.
    """

    def __new__(cls, key: bytes) -> Coins: ...
    @staticmethod
    def of(stream: Stream) -> Coins: ...

@final
class Feasible:
    """The set of possible iterates: one ball, or the intersection of two balls."""

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
def bound(name: str, /, **parameters: _Parameter) -> tuple[Sensitivity, int]: ...
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
