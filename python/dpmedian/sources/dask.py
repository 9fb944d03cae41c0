"""Records in the workers of a Dask cluster. Each worker answers queries about its own records, and this process adds
the answers.

One actor in each worker holds the records of its partitions as `Points` of the core. Exact sums and sampled records
leave a worker as a `Message`, which this process turns into opaque objects again. Only this process adds noise.
Workers, scheduler and this process are inside the trust boundary, like the records themselves. Like all messages of
Dask, the messages among these processes are encrypted only if the cluster was started with TLS.

If a worker is lost, its actor is lost, too. Then Dask computes the lost partitions again, all actors are created again,
and the query is repeated. The answer is the same as before the loss, and nobody has seen the earlier answer, so nothing
is charged twice.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpmedian._core import Coins, Exact, Message, Points, Statistic, Stream
from dpmedian.parameters import PublicParameters
from dpmedian.progress import Progress
from dpmedian.sources.array import ArraySource
from dpmedian.sources.cells import Floats
from dpmedian.sources.groups import Grouped
from dpmedian.sources.protocol import Source
from dpmedian.sources.records import Records
from dpmedian.warning import PlainConnectionWarning, warn_caller

__all__ = ["Collection", "DaskGroups", "DaskSource", "Holders", "by_name", "is_dask"]

# The largest number of attempts for a round of queries if workers are lost.
_ATTEMPTS = 5

# While a run waits for a new actor, it checks every few seconds whether the worker still exists.
_PATIENCE = 5.0

# Groups with at most _FEW coordinates (8 MiB) are fetched to this process when they are needed, because a run makes
# dozens of queries to a small group. At most _FETCHED coordinates (32 MiB) are fetched in one round, and they are
# dropped after use.
_FEW, _FETCHED = 1 << 20, 1 << 22

Ball = tuple[Sequence[float], float]
Answer = TypeVar("Answer")


def is_dask(points: Any) -> bool:
    """Return whether `points` is a Dask collection."""
    return hasattr(points, "__dask_graph__") and hasattr(points, "to_delayed")


def by_name(partition: Any, columns: tuple[str, ...] | None) -> Any:
    """Return a partition with the columns of its collection, in order. Dask does not check that they are there."""
    if columns is None or not hasattr(partition, "columns"):
        return partition
    names = tuple(map(str, partition.columns))
    if names == columns:
        return partition
    if sorted(names) != sorted(columns) or len(set(names)) < len(names):
        raise ValueError(
            f"every partition must have the columns of the collection, {', '.join(map(repr, columns))}, but one has "
            f"{', '.join(map(repr, names))}; rename or choose the columns in every partition"
        )
    return partition.iloc[:, [names.index(name) for name in columns]]


@dataclass(frozen=True)
class Wanted:
    """The records that a query is about: the records of a group, with rounded weights if they have weights."""

    group: int
    coins: Coins | None
    first: tuple[int, ...]
    """For every partition, the row of its first record among all records of the group."""


class Holder:
    """The actor of a worker. It holds the records of some partitions, each under the number of its partition."""

    def __init__(
        self,
        numbers: Sequence[int],
        parts: Sequence[Grouped],
        ball: Ball | None = None,
        replacement: Sequence[float] | None = None,
    ) -> None:
        self._parts = dict(zip(numbers, parts, strict=True))
        self._admission = (ball, replacement)
        self._points: dict[tuple[int, int], Points] = {}

    def reply(self, query: Message, wanted: Wanted) -> Message:
        """Return the sum over the partitions of this worker."""
        return query.answer([self._of(number, wanted) for number in self._parts])

    def records(self, places: dict[int, Message | None], wanted: Wanted) -> dict[int, Message]:
        """Return the records of partitions: all records, or those at positions drawn with hidden randomness."""
        return {number: Message.records(self._of(number, wanted), chosen) for number, chosen in places.items()}

    def rows(self, groups: Sequence[int]) -> dict[int, list[Records]]:
        """Return the records of small groups, under the number of each partition."""
        return {number: [part.records_of(group) for group in groups] for number, part in self._parts.items()}

    def forget(self, group: int) -> None:
        """Drop the validated and weighted records of a group."""
        self._points = {key: points for key, points in self._points.items() if key[1] != group}

    def _of(self, number: int, wanted: Wanted) -> Points:
        """Return the records of a partition. They are validated and weighted once."""
        found = self._points.get((number, wanted.group))
        if found is None:
            records = self._parts[number].records_of(wanted.group)
            found = records.admitted(*self._admission)
            if wanted.coins is not None and records.weights is not None:
                found = found.weighted(wanted.coins, records.weights, wanted.first[number])
            self._points[number, wanted.group] = found
        return found


@dataclass(frozen=True, eq=False)
class Collection:
    """A Dask array or frame whose partitions are computed on the workers of the current client."""

    client: Any
    partitions: tuple[Any, ...]
    """The futures of the partitions, in order; each is an array or a frame."""
    width: int
    columns: tuple[str, ...] | None
    chunks: tuple[Any, ...] | None

    @classmethod
    def of(cls, points: Any) -> Collection:
        """Let the workers compute the partitions, without waiting for the result."""
        try:
            import distributed  # type: ignore[import-untyped, import-not-found, unused-ignore]
        except ImportError as error:
            raise ImportError("records in a Dask cluster need distributed: pip install 'dpmedian[dask]'") from error
        try:
            client: Any = distributed.get_client()
        except ValueError as error:
            raise ValueError(
                "points are a Dask collection, but this process is not connected to a cluster: create a "
                "distributed.Client first"
            ) from error
        _warn_if_plain(client)
        if hasattr(points, "chunks"):
            if points.ndim != 2:
                raise ValueError(f"points must have shape (n, d), got {points.ndim} dimensions")
            points, columns = points.rechunk({1: -1}), None
        elif hasattr(points, "columns"):
            columns = tuple(map(str, points.columns))
        else:
            raise TypeError(
                f"a Dask collection of points must be an array or a data frame, got {type(points).__name__}"
            )
        width = points.shape[1] if columns is None else len(columns)
        chunks = points.chunks[0] if columns is None else None
        return cls(client, _computed(client, points), int(width), columns, chunks)

    def labels_of_parts(self, labels: Any) -> tuple[Any, ...]:
        """Return the partitions of the labels, as futures. They correspond to the partitions of the points."""
        return _computed(self.client, labels if self.chunks is None else labels.rechunk((self.chunks,)))

    def sizes(self) -> list[int]:
        """Return the number of rows of every partition."""
        sizes: list[int] = self.client.gather(self.client.map(len, self.partitions, pure=False))
        return sizes


def _warn_if_plain(client: Any) -> None:
    """Warn if messages between the machines of the cluster are not encrypted."""
    facts = client.scheduler_info()
    plain = [address for address in (facts["address"], *facts["workers"]) if _is_plain(address)]
    if plain:
        warn_caller(
            f"the connection to {plain[0]} is not encrypted, so others could read exact sums and records; start the "
            "cluster with TLS (distributed.security.Security), unless nobody else has access to this network",
            PlainConnectionWarning,
        )


def _is_plain(address: str) -> bool:
    scheme, _, place = address.partition("://")
    here = place.startswith(("127.", "[::1]", "localhost:"))
    return not here and scheme not in ("tls", "wss", "inproc")


def _computed(client: Any, collection: Any) -> tuple[Any, ...]:
    rows = np.atleast_1d(np.asarray(collection.to_delayed(), dtype=object))
    return tuple(client.compute([part for row in rows for part in np.ravel(row)]))


@dataclass(eq=False)
class Holders:
    """The actors of all workers that hold parts of the records. `parts` are the futures of these parts."""

    client: Any
    parts: tuple[Any, ...]
    ball: Ball | None = None
    replacement: Sequence[float] | None = None
    _actors: list[Any] = field(default_factory=list)
    _where: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, client: Any, parts: tuple[Any, ...], parameters: PublicParameters, nonfinite: str) -> Holders:
        """Return the actors for runs with these parameters. They are created at the first query."""
        replacement = parameters.origin.tolist() if nonfinite == "center" else None
        return cls(client, parts, parameters.ball, replacement)

    def replies(self, query: Message, wanted: Wanted) -> list[Message]:
        """Return the answers of all actors."""
        return self._repeated(lambda: self._round(lambda actor, _: actor.reply(query, wanted)))

    def records(self, places: Sequence[Message | None], wanted: Wanted) -> list[Message]:
        """Return the records at these positions, in one message for each part."""

        def ask(actor: Any, mine: int) -> Any:
            return actor.records({i: places[i] for i, at in enumerate(self._where) if at == mine}, wanted)

        return self._by_part(lambda: self._round(ask))

    def rows(self, groups: Sequence[int]) -> list[list[Records]]:
        """Return the records of small groups in each part."""
        return self._by_part(lambda: self._round(lambda actor, _: actor.rows(groups)))

    def forget(self, group: int) -> None:
        """Let the actors drop the validated and weighted records of a group."""
        if self._actors:
            self._repeated(lambda: self._round(lambda actor, _: actor.forget(group)))

    def _by_part(self, ask: Callable[[], list[dict[int, Answer]]]) -> list[Answer]:
        found: dict[int, Answer] = {}
        for part in self._repeated(ask):
            found.update(part)
        return [found[i] for i in range(len(self.parts))]

    def _round(self, ask: Callable[[Any, int], Any]) -> list[Any]:
        """Query every actor at once."""
        return [future.result() for future in [ask(actor, i) for i, actor in enumerate(self._actors)]]

    def _repeated(self, ask: Callable[[], Answer]) -> Answer:
        """Return the answers of a round. If a worker was lost, the round is repeated with new actors."""
        lost: BaseException | None = None
        for _ in range(_ATTEMPTS):
            try:
                if not self._actors:
                    self._settle()
                return ask()
            except Exception as error:
                if not _is_lost(error):
                    raise
                self._actors, lost = [], error
        raise RuntimeError(f"workers were lost in each of {_ATTEMPTS} attempts to answer a query") from lost

    def _settle(self) -> None:
        """Create one actor in each worker that holds parts. Parts of lost workers are computed again."""
        for future in self.parts:
            error = future.exception()  # This waits until the part is computed, without moving it.
            if error is not None:
                raise error
        held = self.client.who_has(list(self.parts))
        addresses = [next(iter(held[future.key]), None) for future in self.parts]
        if None in addresses:
            raise OSError("a partition of the points was lost with its worker")
        workers = sorted({str(address) for address in addresses})
        made = []
        for worker in workers:
            numbers = [i for i, address in enumerate(addresses) if address == worker]
            arguments = (numbers, [self.parts[i] for i in numbers], self.ball, self.replacement)
            made.append(self.client.submit(Holder, *arguments, actor=True, workers=[worker], pure=False))
        self._actors = [self._made(future, worker) for future, worker in zip(made, workers, strict=True)]
        self._where = [workers.index(str(address)) for address in addresses]

    def _made(self, future: Any, worker: str) -> Any:
        """Wait for the actor of a worker and return it. If the worker was lost before the actor was created, the future
        would never be done, so an error is raised.
        """
        while True:
            try:
                return future.result(timeout=_PATIENCE)
            except Exception as error:
                if future.done():
                    raise
                if worker not in self.client.nthreads():
                    raise OSError("a worker was lost before its actor was made") from error


class DaskSource:
    """The source of the records of one group in all parts. It adds the answers of the actors."""

    def __init__(
        self,
        holders: Holders,
        sizes: Sequence[int],
        d: int,
        progress: Progress | None = None,
        *,
        group: int = 0,
        coins: Coins | None = None,
    ) -> None:
        """`sizes` are the numbers of records that the group has in each part."""
        self._holders = holders
        self._sizes = [int(size) for size in sizes]
        self._d = d
        self._progress = progress if progress is not None else Progress(1.0, show=False)
        self._wanted = Wanted(group, coins, tuple(np.cumsum([0, *self._sizes])[:-1].tolist()))

    @property
    def d(self) -> int:
        return self._d

    @property
    def local(self) -> None:
        return None

    def answer(self, statistic: Statistic, passes: float = 1.0) -> Exact:
        pulse = self.advance(passes)
        if not statistic.adds_over_records:
            return self._gathered([None] * len(self._sizes)).answer(statistic, pulse)
        messages = self._holders.replies(Message.query(statistic), self._wanted)
        pulse(1.0)
        return Message.answered(messages, statistic)

    def sample(self, stream: Stream, size: int) -> ArraySource:
        """Draw a sample among all records, and copy its records to this process."""
        places = Message.places(stream, self._sizes, size)
        return self._sampled(places, min(size / max(sum(self._sizes), 1), 1.0))

    def sample_by_coins(self, stream: Stream, probability: tuple[int, int]) -> ArraySource:
        places = Message.places_by_coins(stream, self._sizes, probability)
        return self._sampled(places, float(np.ldexp(probability[0], -probability[1])))

    def weighted(self, coins: Coins) -> DaskSource:
        """The workers round the weights of the records as a single process would."""
        return DaskSource(self._holders, self._sizes, self._d, self._progress, group=self._wanted.group, coins=coins)

    def advance(self, passes: float) -> Callable[[float], None]:
        return self._progress.span(passes)

    def _sampled(self, places: Sequence[Message | None], share: float) -> ArraySource:
        return ArraySource(self._gathered(places), self._progress, share)

    def _gathered(self, places: Sequence[Message | None]) -> Points:
        return Message.gathered(self._holders.records(places, self._wanted))


@dataclass(frozen=True, eq=False)
class DaskGroups:
    """The records of groups, which stay in the workers. `sizes` has a row for each part and a column for each group.

    The class has the interface of `Grouped`. `parts` are futures of `Grouped` objects with the same groups.
    """

    client: Any
    parts: tuple[Any, ...]
    sizes: NDArray[np.int64]
    d: int
    unit: str
    columns: tuple[str, ...] | None
    by: tuple[str, ...]
    labels: list[bytes] | None = field(default=None, repr=False)

    @property
    def occurring(self) -> list[int]:
        """Return the indices of the groups that have a record. They are private if the keys were not listed."""
        return [int(group) for group in np.flatnonzero(self.sizes.sum(axis=0))]

    def blocks(
        self, groups: Sequence[int], parameters: PublicParameters, nonfinite: str, whole: bool
    ) -> Iterator[dict[int, Callable[[], Source]]]:
        """Yield the sources of groups, block by block. Small groups are fetched together, and large groups stay in the
        workers.

        If a method needs the `whole` group in this process, a group of any size is fetched.
        """
        holders = Holders.of(self.client, self.parts, parameters, nonfinite)
        coordinates = self.d * self.sizes.sum(axis=0)
        few: list[int] = []
        for group in groups:
            if coordinates[group] > _FEW and not whole:
                sizes = self.sizes[:, group].tolist()
                yield {group: functools.partial(DaskSource, holders, sizes, self.d, group=group)}
                holders.forget(group)
                continue
            if few and coordinates[[*few, group]].sum() > _FETCHED:
                yield self._fetched(holders, few, parameters, nonfinite)
                few = []
            few.append(group)
        if few:
            yield self._fetched(holders, few, parameters, nonfinite)

    def _fetched(
        self, holders: Holders, groups: list[int], parameters: PublicParameters, nonfinite: str
    ) -> dict[int, Callable[[], Source]]:
        parts = holders.rows(groups)
        whole = [joined([part[i] for part in parts]) for i in range(len(groups))]
        return {
            group: functools.partial(ArraySource.of, records, parameters, nonfinite=nonfinite)
            for group, records in zip(groups, whole, strict=True)
        }


def joined(parts: Sequence[Records]) -> Records:
    """Return the records of all parts, one part after the other."""
    array: Floats = np.concatenate([part.array for part in parts])
    weights = [part.weights for part in parts if part.weights is not None]
    return replace(parts[0], array=array, weights=np.concatenate(weights) if weights else None)


def _is_lost(error: Exception) -> bool:
    """Return whether an error means that a worker, its actor or the connection was lost. Other errors were raised by
    the code that the worker ran.
    """
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(names & {"OSError", "TimeoutError", "KilledWorker"}) or "Actor was lost" in str(error)
