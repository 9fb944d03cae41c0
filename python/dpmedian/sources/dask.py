"""Records in the workers of a Dask cluster: each worker answers for its own records, and this process adds the answers.

One actor in each worker holds the records of its partitions as `Points` of the core. Exact sums and sampled records
leave a worker as a `Message` and become opaque again here. The noise is added in this process only. Workers, scheduler
and this process are inside the trust boundary, like the records themselves. The messages between them are not
encrypted, like everything that Dask sends, unless the cluster was started with TLS.

If a worker is lost, its actor is lost, too. Its partitions are computed again from their graph, all actors are created
again, and the query is repeated. It has the same answer, which nobody has seen, so nothing is charged twice.
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

# A lost round is tried at most this many times in all.
_ATTEMPTS = 5

# Seconds after which a run that waits for a new actor asks whether the worker is still there.
_PATIENCE = 5.0

# Groups with at most this many coordinates (8 MiB) are fetched when they are needed, because a run sends dozens of
# queries to a group that is too small for hidden samples. At most this many coordinates (32 MiB) are fetched in one
# round, used and dropped.
_FEW, _FETCHED = 1 << 20, 1 << 22

Ball = tuple[Sequence[float], float]
Answer = TypeVar("Answer")


def is_dask(points: Any) -> bool:
    """Whether this is a Dask collection."""
    return hasattr(points, "__dask_graph__") and hasattr(points, "to_delayed")


def by_name(partition: Any, columns: tuple[str, ...] | None) -> Any:
    """A partition with the columns of its collection in their order; Dask does not check that a partition has them."""
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


@dataclass(frozen=True)
class Wanted:
    """The records that a query is about: a group, with rounded weights if it has weights."""

    group: int
    coins: Coins | None
    first: tuple[int, ...]
    """For every partition, the row of its first record among all records of the group."""


class Holder:
    """The actor of a worker: it holds the records of some partitions, by their number."""

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
        """The sum over the partitions of this worker."""
        return query.answer([self._of(number, wanted) for number in self._parts])

    def records(self, places: dict[int, Message | None], wanted: Wanted) -> dict[int, Message]:
        """The records of partitions: at hidden places, or all."""
        return {number: Message.records(self._of(number, wanted), chosen) for number, chosen in places.items()}

    def rows(self, groups: Sequence[int]) -> dict[int, list[Records]]:
        """The records of small groups, by the number of the partition."""
        return {number: [part.records_of(group) for group in groups] for number, part in self._parts.items()}

    def forget(self, group: int) -> None:
        """Forgets what was prepared for a group."""
        self._points = {key: points for key, points in self._points.items() if key[1] != group}

    def _of(self, number: int, wanted: Wanted) -> Points:
        """The records of a partition, validated and weighted once."""
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
        """Start to compute the partitions."""
        try:
            import distributed  # type: ignore[import-untyped, import-not-found, unused-ignore]
        except ImportError as error:
            raise ImportError("records in a Dask cluster need distributed: pip install 'dpmedian[dask]'") from error
        try:
            client: Any = distributed.get_client()
        except ValueError as error:
            raise ValueError("points is a Dask collection, and no cluster runs: make a distributed.Client") from error
        _warn_if_plain(client)
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
        """The partitions of labels that belong to the partitions of the points, as futures."""
        return _computed(self.client, labels if self.chunks is None else labels.rechunk((self.chunks,)))

    def sizes(self) -> list[int]:
        """The number of rows of every partition."""
        sizes: list[int] = self.client.gather(self.client.map(len, self.partitions, pure=False))
        return sizes


def _warn_if_plain(client: Any) -> None:
    """Warn if messages between processes of the cluster leave a machine without encryption."""
    facts = client.scheduler_info()
    plain = [address for address in (facts["address"], *facts["workers"]) if _is_plain(address)]
    if plain:
        warn_caller(
            f"the connection to {plain[0]} is not encrypted: exact sums and records travel in plain; start the cluster "
            "with TLS (distributed.security.Security), unless nobody else can read this network",
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
    """The actors of all workers that hold parts of the records. The parts are futures, in order."""

    client: Any
    parts: tuple[Any, ...]
    ball: Ball | None = None
    replacement: Sequence[float] | None = None
    _actors: list[Any] = field(default_factory=list)
    _where: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, client: Any, parts: tuple[Any, ...], parameters: PublicParameters, nonfinite: str) -> Holders:
        """Actors for runs with these parameters; they are created when they are needed."""
        replacement = parameters.origin.tolist() if nonfinite == "center" else None
        return cls(client, parts, parameters.ball, replacement)

    def replies(self, query: Message, wanted: Wanted) -> list[Message]:
        """The answers of all actors."""
        return self._asked(lambda: self._round(lambda actor, _: actor.reply(query, wanted)))

    def records(self, places: Sequence[Message | None], wanted: Wanted) -> list[Message]:
        """The records at these places, in one message for each part."""

        def ask(actor: Any, mine: int) -> Any:
            return actor.records({i: places[i] for i, at in enumerate(self._where) if at == mine}, wanted)

        return self._by_part(lambda: self._round(ask))

    def rows(self, groups: Sequence[int]) -> list[list[Records]]:
        """The records of small groups in each part."""
        return self._by_part(lambda: self._round(lambda actor, _: actor.rows(groups)))

    def forget(self, group: int) -> None:
        """Let the actors drop what they have prepared for a group."""
        if self._actors:
            self._asked(lambda: self._round(lambda actor, _: actor.forget(group)))

    def _by_part(self, ask: Callable[[], list[dict[int, Answer]]]) -> list[Answer]:
        found: dict[int, Answer] = {}
        for part in self._asked(ask):
            found.update(part)
        return [found[i] for i in range(len(self.parts))]

    def _round(self, ask: Callable[[Any, int], Any]) -> list[Any]:
        """Query every actor at once."""
        return [future.result() for future in [ask(actor, i) for i, actor in enumerate(self._actors)]]

    def _asked(self, ask: Callable[[], Answer]) -> Answer:
        """The answers of a round; if a worker was lost, the answers of the same round with new actors."""
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
        raise RuntimeError(f"workers were lost {_ATTEMPTS} times in one round") from lost

    def _settle(self) -> None:
        """Create one actor in each worker that holds parts; parts of lost workers are computed again."""
        for future in self.parts:
            error = future.exception()  # This waits for the part and does not move it.
            if error is not None:
                raise error
        held = self.client.who_has(list(self.parts))
        addresses = [next(iter(held[future.key]), None) for future in self.parts]
        if None in addresses:
            raise OSError("a partition is nowhere")
        workers = sorted({str(address) for address in addresses})
        made = []
        for worker in workers:
            numbers = [i for i, address in enumerate(addresses) if address == worker]
            arguments = (numbers, [self.parts[i] for i in numbers], self.ball, self.replacement)
            made.append(self.client.submit(Holder, *arguments, actor=True, workers=[worker], pure=False))
        self._actors = [self._made(future, worker) for future, worker in zip(made, workers, strict=True)]
        self._where = [workers.index(str(address)) for address in addresses]

    def _made(self, future: Any, worker: str) -> Any:
        """The actor of a worker. If that worker is lost before it has begun, the cluster keeps the actor waiting."""
        while True:
            try:
                return future.result(timeout=_PATIENCE)
            except Exception as error:
                if future.done():
                    raise
                if worker not in self.client.nthreads():
                    raise OSError("a worker was lost before its actor was made") from error


class DaskSource:
    """The records of a group in all parts: the answers of the actors are added."""

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
        """`sizes` are the numbers of records of the group in each part."""
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
        """A sample is gathered in this process: its places are drawn among all records."""
        places = Message.places(stream, self._sizes, size)
        return self._sampled(places, min(size / max(sum(self._sizes), 1), 1.0))

    def sample_by_coins(self, stream: Stream, probability: tuple[int, int]) -> ArraySource:
        places = Message.places_by_coins(stream, self._sizes, probability)
        return self._sampled(places, float(np.ldexp(probability[0], -probability[1])))

    def weighted(self, coins: Coins) -> DaskSource:
        """The records with their weights. The workers round them with these coins, as one process would."""
        return DaskSource(self._holders, self._sizes, self._d, self._progress, group=self._wanted.group, coins=coins)

    def advance(self, passes: float) -> Callable[[float], None]:
        return self._progress.span(passes)

    def _sampled(self, places: Sequence[Message | None], share: float) -> ArraySource:
        return ArraySource(self._gathered(places), self._progress, share)

    def _gathered(self, places: Sequence[Message | None]) -> Points:
        return Message.gathered(self._holders.records(places, self._wanted))


@dataclass(frozen=True, eq=False)
class DaskGroups:
    """The records of groups in the workers. `sizes` has a row for each part and a column for each group.

    It has the interface of `Grouped`. The parts are futures of `Grouped` with the same groups.
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
        """The groups that have a record; they are private if the keys were not listed."""
        return [int(group) for group in np.flatnonzero(self.sizes.sum(axis=0))]

    def blocks(
        self, groups: Sequence[int], parameters: PublicParameters, nonfinite: str, whole: bool
    ) -> Iterator[dict[int, Callable[[], Source]]]:
        """The sources of groups, block by block: small groups are fetched together, large ones query the workers.

        If a method needs the `whole` group in this process, the group is fetched, however large it is.
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
    """The records of all parts, one part after the other."""
    array: Floats = np.concatenate([part.array for part in parts])
    weights = [part.weights for part in parts if part.weights is not None]
    return replace(parts[0], array=array, weights=np.concatenate(weights) if weights else None)


def _is_lost(error: Exception) -> bool:
    """Whether a worker was lost, and with it an actor or a connection; an error that a worker raised is not a loss."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(names & {"OSError", "TimeoutError", "KilledWorker"}) or "Actor was lost" in str(error)
