"""What a source is. Mechanisms know this protocol and nothing else about where the records are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from dpmedian._core import Coins, Exact, Points, Statistic, Stream

__all__ = ["Source"]


class Source(Protocol):
    """Records that answer statistics. An answer has the same bits for every source and every partition."""

    @property
    def d(self) -> int:
        """The dimension, which is public. The number of records is not here: it is public only when a plan says so."""
        ...

    @property
    def local(self) -> Points | None:
        """All records, if they are in this process (loops of thousands of queries run in Rust then); else None."""
        ...

    def answer(self, statistic: Statistic, passes: float = 1.0) -> Exact:
        """The exact answer, which costs about this many passes over the records (for the progress bar)."""
        ...

    def sample(self, stream: Stream, size: int) -> Source:
        """A uniform random sample of this many records, or of all if there are fewer, by hidden randomness.

        Only if neighbors replace a record.
        """
        ...

    def sample_by_coins(self, stream: Stream, probability: tuple[int, int]) -> Source:
        """A sample that has every record with probability p/2^k, independently, by hidden randomness."""
        ...

    def weighted(self, coins: Coins) -> Source:
        """The records with their weights, rounded by hidden coins, or as they are if there are none."""
        ...

    def advance(self, passes: float) -> Callable[[float], None]:
        """The progress callback of a fused loop of this many passes."""
        ...
