"""The interface of a source. Mechanisms access the records only through this interface."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from dpmedian._core import Coins, Exact, Points, Statistic, Stream

__all__ = ["Source"]


class Source(Protocol):
    """Records that answer statistics. An answer has the same bits for every source and every partition."""

    @property
    def d(self) -> int:
        """The dimension, which is public.

        A source does not state the number of records, because this number is private in some plans.
        """
        ...

    @property
    def local(self) -> Points | None:
        """All records if they are in this process, and otherwise None.

        With the records in this process, loops of thousands of queries can run in Rust.
        """
        ...

    def answer(self, statistic: Statistic, passes: float = 1.0) -> Exact:
        """The exact answer. `passes` is its cost in passes over the records, for the progress bar."""
        ...

    def sample(self, stream: Stream, size: int) -> Source:
        """A uniform random sample of this many records, or all records if there are fewer.

        The sample is drawn with hidden randomness.

        It is allowed only if neighbors replace a record.
        """
        ...

    def sample_by_coins(self, stream: Stream, probability: tuple[int, int]) -> Source:
        """A sample that contains every record with probability p/2^k, independently, drawn with hidden randomness."""
        ...

    def weighted(self, coins: Coins) -> Source:
        """The records with their weights rounded by hidden coins, or unchanged if they have no weights."""
        ...

    def advance(self, passes: float) -> Callable[[float], None]:
        """The progress callback of a fused loop of this many passes."""
        ...
