"""Records in the workers of a Dask cluster: each answers for its own, and this process sums the answers.

One actor for each worker holds the records of its partitions, as the core's `Points`. Exact sums and sampled records
leave a worker enciphered, and are opaque again here: `Channel`. The noise is added in this process alone. Workers,
scheduler and this process are inside the trust boundary, like the records themselves.

A worker that is lost takes its actor along. Its partitions are computed anew from their graph, all actors are made
anew, and the question is asked again: it has one answer, which nobody has seen, so nothing is charged twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from dpmedian._core import Channel, Exact, Points, Statistic, Stream
from dpmedian.accounting.neighbours import RECORD
from dpmedian.parameters import PublicParameters
from dpmedian.progress import Progress
from dpmedian.sources.array import ArraySource
from dpmedian.sources.records import as_records

__all__ = ["Collection", "DaskRecords", "DaskSource", "by_name", "is_dask"]

# A round that is lost is asked again this often: every time a worker was lost.
_ATTEMPTS = 5

Ball = tuple[Sequence[float], float]
Answer = TypeVar("Answer")


def is_dask(points: Any) -> bool:
    """Whether this is a collection of Dask."""
    return hasattr(points, "__dask_graph__") and hasattr(points, "to_delayed")


def by_name(partition: Any, columns: tuple[str, ...] | None) -> Any:
    """A partition with the columns of its collection, in their order: Dask does not check that a partition has it."""
    if columns is None or not hasattr(partition, "columns"):
        return partition
    names = tuple(map(str, partition.columns))
    if names == columns:
        return partition
    if sorted(names) != sorted(columns) or len(set(names)) < len(names):
        raise ValueError(
            f"the columns must be those of the whole collection, {', '.join(map(repr, columns))}, and they are "
            f"{', '.join(map(repr, names))}; rename or choose the columns in every partition"
        )
    return partition.iloc[:, [names.index(name) for name in columns]]


class Holder:
    """The actor of a worker: the records of some partitions, by their number."""

    def __init__(
        self,
        channel: Channel,
        numbers: Sequence[int],
        partitions: Sequence[Any],
        ball: Ball | None,
        replacement: Sequence[float] | None,
        nonfinite: str,
        d: int,
        columns: tuple[str, ...] | None = None,
    ) -> None:
        self._channel = channel
        self._points: dict[int, Points] = {}
        for number, partition in zip(numbers, partitions, strict=True):
            try:
                records = as_records(by_name(partition, columns), nonfinite=nonfinite, d=d)
                if nonfinite == "drop":
                    records = records.finite()
                self._points[number] = records.admitted(ball, replacement)
            except ValueError as error:
                raise ValueError(f"partition {number + 1}: {error}") from None

    def sizes(self) -> dict[int, int]:
        """The number of records of every partition that is here."""
        return {number: points.n for number, points in self._points.items()}

    def reply(self, question: bytes) -> bytes:
        """The enciphered sum over the partitions that are here."""
        return self._channel.answer(question, list(self._points.values()))

    def records(self, places: dict[int, bytes | None]) -> dict[int, bytes]:
        """The enciphered records of partitions, at hidden places or all."""
        return {number: self._channel.records(self._points[number], chosen) for number, chosen in places.items()}


@dataclass(frozen=True, eq=False)
class Collection:
    """An array or a frame of Dask whose partitions are computed on the workers of the current client."""

    client: Any
    partitions: tuple[Any, ...]
    """Futures, in order; each is an array or a frame."""
    width: int
    columns: tuple[str, ...] | None
    chunks: tuple[Any, ...] | None

    @classmethod
    def of(cls, points: Any) -> Collection:
        """Begins to compute the partitions."""
        try:
            import distributed  # type: ignore[import-untyped, import-not-found, unused-ignore]
        except ImportError as error:
            raise ImportError("records in a Dask cluster need distributed: pip install 'dpmedian[dask]'") from error
        try:
            client: Any = distributed.get_client()
        except ValueError as error:
            raise ValueError("points is a Dask collection, and no cluster runs: make a distributed.Client") from error
        if hasattr(points, "chunks"):
            if points.ndim != 2:
                raise ValueError(f"points must have shape (n, d), got {points.ndim} dimensions")
            points, columns = points.rechunk({1: -1}), None
        elif hasattr(points, "columns"):
            columns = tuple(map(str, points.columns))
        else:
            raise TypeError(f"of Dask's collections an array or a data frame has points, got {type(points).__name__}")
        width = points.shape[1] if columns is None else len(columns)
        chunks = points.chunks[0] if columns is None else None
        return cls(client, _computed(client, points), int(width), columns, chunks)

    def beside(self, labels: Any) -> tuple[Any, ...]:
        """The partitions of labels that lie beside the points, as futures."""
        return _computed(self.client, labels if self.chunks is None else labels.rechunk((self.chunks,)))

    def sizes(self) -> list[int]:
        """The number of rows of every partition."""
        sizes: list[int] = self.client.gather(self.client.map(len, self.partitions, pure=False))
        return sizes


def _computed(client: Any, collection: Any) -> tuple[Any, ...]:
    rows = np.atleast_1d(np.asarray(collection.to_delayed(), dtype=object))
    return tuple(client.compute([part for row in rows for part in np.ravel(row)]))


@dataclass(frozen=True, eq=False)
class DaskRecords:
    """Records whose partitions were computed and stay in the workers' memory, with their shape."""

    client: Any
    partitions: tuple[Any, ...]
    """Futures, in order; each is an array or a frame."""
    shape: tuple[int, int]
    columns: tuple[str, ...] | None = None
    unit: str = RECORD
    """Whose records these are: single rows, or one for each unit."""
    geometry: str = "euclidean"

    @classmethod
    def of(cls, points: Any, d: int | None = None) -> DaskRecords:
        """A record for each row of an array or a frame."""
        found = Collection.of(points)
        if d is not None and found.width != d:
            raise ValueError(f"points must have d = {d} columns, got {found.width}")
        return cls(found.client, found.partitions, (sum(found.sizes()), found.width), found.columns)

    def finite(self) -> DaskRecords:
        """The workers leave out what is not finite, where that was asked for."""
        return self

    def source(self, parameters: PublicParameters, progress: Progress | None, nonfinite: str, copy: bool) -> DaskSource:
        """The records for a run."""
        if copy:
            raise ValueError("copy=True is for arrays: the partitions of a Dask collection do not change")
        replacement = parameters.origin.tolist() if nonfinite == "center" else None
        return DaskSource(self, parameters.ball, replacement, nonfinite, progress)


class DaskSource:
    """Answers of the actors of all workers, summed."""

    def __init__(
        self,
        records: DaskRecords,
        ball: Ball | None = None,
        replacement: Sequence[float] | None = None,
        nonfinite: str = "raise",
        progress: Progress | None = None,
    ) -> None:
        self._records = records
        self._admission = (ball, replacement, nonfinite)
        self._progress = progress if progress is not None else Progress(1.0, show=False)
        self._channel = Channel()
        self._holders: list[Any] = []
        self._sizes: list[int] = []
        self._where: list[int] = []
        self._asked(lambda: None)

    @property
    def d(self) -> int:
        return self._records.shape[1]

    @property
    def local(self) -> None:
        return None

    def answer(self, statistic: Statistic, passes: float = 1.0) -> Exact:
        pulse = self.advance(passes)
        if not statistic.adds_over_records:
            return self._gathered([None] * len(self._sizes)).answer(statistic, pulse)
        question = self._channel.ask(statistic)
        messages = self._asked(lambda: self._round(lambda holder, _: holder.reply(question)))
        pulse(1.0)
        return self._channel.answered(messages, statistic)

    def sample(self, stream: Stream, size: int) -> ArraySource:
        """Gathered in this process: the places of a sample are drawn among all records."""
        places = self._channel.places(stream, self._sizes, size)
        return self._sampled(places, min(size / max(sum(self._sizes), 1), 1.0))

    def sample_by_coins(self, stream: Stream, probability: tuple[int, int]) -> ArraySource:
        places = self._channel.places_by_coins(stream, self._sizes, probability)
        return self._sampled(places, float(np.ldexp(probability[0], -probability[1])))

    def advance(self, passes: float) -> Callable[[float], None]:
        return self._progress.span(passes)

    def _sampled(self, places: Sequence[bytes | None], share: float) -> ArraySource:
        return ArraySource(self._gathered(places), self._progress, share)

    def _gathered(self, places: Sequence[bytes | None]) -> Points:
        def ask(holder: Any, mine: int) -> Any:
            return holder.records({i: places[i] for i, at in enumerate(self._where) if at == mine})

        found: dict[int, bytes] = {}
        for part in self._asked(lambda: self._round(ask)):
            found.update(part)
        return self._channel.gathered([found[i] for i in range(len(places))])

    # Rounds.

    def _round(self, ask: Callable[[Any, int], Any]) -> list[Any]:
        """Asks every actor at once."""
        return [future.result() for future in [ask(holder, i) for i, holder in enumerate(self._holders)]]

    def _asked(self, ask: Callable[[], Answer]) -> Answer:
        """What a round gives; where a worker was lost, what the same round gives with new actors."""
        lost: BaseException | None = None
        for _ in range(_ATTEMPTS):
            try:
                if not self._holders:
                    self._settle()
                return ask()
            except Exception as error:
                if not _is_lost(error):
                    raise
                self._holders, lost = [], error
        raise RuntimeError(f"workers were lost {_ATTEMPTS} times in one round") from lost

    def _settle(self) -> None:
        """Makes one actor for each worker that holds partitions; those of lost workers are computed anew."""
        client, futures = self._records.client, self._records.partitions
        for future in futures:
            error = future.exception()  # Waits for the partition and leaves it where it is.
            if error is not None:
                raise error
        held = client.who_has(list(futures))
        addresses = [next(iter(held[future.key]), None) for future in futures]
        if None in addresses:
            raise OSError("a partition is nowhere")
        workers = sorted({str(address) for address in addresses})
        made = []
        for worker in workers:
            numbers = [i for i, address in enumerate(addresses) if address == worker]
            arguments = (
                self._channel,
                numbers,
                [futures[i] for i in numbers],
                *self._admission,
                self.d,
                self._records.columns,
            )
            made.append(client.submit(Holder, *arguments, actor=True, workers=[worker], pure=False))
        holders = [future.result() for future in made]
        sizes: dict[int, int] = {}
        for part in [holder.sizes() for holder in holders]:
            sizes.update(part.result())
        self._sizes = [sizes[i] for i in range(len(futures))]
        self._where = [workers.index(str(address)) for address in addresses]
        self._holders = holders


def _is_lost(error: Exception) -> bool:
    """Whether a worker was lost, and with it an actor or a connection; what a worker raised itself is no loss."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(names & {"OSError", "TimeoutError", "KilledWorker"}) or "Actor was lost" in str(error)
