"""Records in several parts. Answers are sums of integers, which do not depend on the order of addition. So an answer
has the same bits as if all records were in one part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from dpmedian._core import Coins, Exact, Message, Points, Statistic, Stream
from dpmedian.progress import Progress
from dpmedian.sources.array import ArraySource

__all__ = ["PartitionedSource"]


class PartitionedSource:
    """A source with several parts. Each part answers for its own records.

    If a statistic is a sum over records, every part is queried, and the answers are added. If a statistic is about
    pairs of records, all records are first copied into one part.
    """

    def __init__(self, parts: Sequence[Points], progress: Progress | None = None) -> None:
        if not parts:
            raise ValueError("a partitioned source needs at least one part")
        self._parts = tuple(parts)
        self._progress = progress if progress is not None else Progress(1.0, show=False)

    @property
    def d(self) -> int:
        return self._parts[0].d

    @property
    def local(self) -> None:
        return None

    def answer(self, statistic: Statistic, passes: float = 1.0) -> Exact:
        pulse = self.advance(passes)
        if statistic.adds_over_records:
            return Exact.sum([part.answer(statistic, pulse) for part in self._parts])
        return Points.concatenate(list(self._parts)).answer(statistic, pulse)

    def sample(self, stream: Stream, size: int) -> ArraySource:
        """Draw the positions of a sample among all records, and copy only the records at these positions."""
        sizes = [part.n for part in self._parts]
        share = min(size / max(sum(sizes), 1), 1.0)
        return self._gathered(Message.places(stream, sizes, size), share)

    def sample_by_coins(self, stream: Stream, probability: tuple[int, int]) -> ArraySource:
        """Toss the coins for all records in their order, and copy only the records that the coins keep."""
        sizes = [part.n for part in self._parts]
        share = math.ldexp(probability[0], -probability[1])
        return self._gathered(Message.places_by_coins(stream, sizes, probability), share)

    def weighted(self, coins: Coins) -> PartitionedSource:
        """Return the source itself, because these parts have no weights."""
        return self

    def advance(self, passes: float) -> Callable[[float], None]:
        return self._progress.span(passes)

    def _gathered(self, places: Sequence[Message], share: float) -> ArraySource:
        records = [Message.records(part, chosen) for part, chosen in zip(self._parts, places, strict=True)]
        return ArraySource(Message.gathered(records), self._progress, share)
