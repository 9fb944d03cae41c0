"""Records in several parts. Sums of integers do not depend on the partition, so the answers have the same bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dpmedian._core import Exact, Points, Statistic, Stream
from dpmedian.progress import Progress
from dpmedian.sources.array import ArraySource

__all__ = ["PartitionedSource"]


class PartitionedSource:
    """Parts that each answer for their own records.

    A statistic that is a sum over records is asked of every part. One about pairs of records is asked of all records
    together, which are gathered for it.
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
        """Gathered in this process: the places of a sample are drawn among all records."""
        return ArraySource(Points.concatenate(list(self._parts)), self._progress).sample(stream, size)

    def sample_by_coins(self, stream: Stream, probability: tuple[int, int]) -> ArraySource:
        """Gathered in this process: the coins are those of all records in their order."""
        return ArraySource(Points.concatenate(list(self._parts)), self._progress).sample_by_coins(stream, probability)

    def advance(self, passes: float) -> Callable[[float], None]:
        return self._progress.span(passes)
