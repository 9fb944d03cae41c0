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
        """The dimension. It is public.

        The interface has no number of records, because this number is private in some plans.
        """
        ...

    @property
    def local(self) -> Points | None:
        """All records if this process holds them, and otherwise None.

        If this process holds the records, loops of thousands of queries run in Rust.
        """
        ...

    def answer(self, statistic: Statistic, passes: float = 1.0) -> Exact:
        """Return the exact answer. `passes` says how many passes over the records the answer takes, for the progress
        bar.
        """
        ...

    def sample(self, stream: Stream, size: int) -> Source:
        """Return a uniform random sample of this many records, or all records if there are fewer.

        The sample is drawn with hidden randomness. The function is allowed only under replacement, because under
        add/remove an added record would push another record out of the sample.

        It is allowed only if neighbors replace a record.
        """
        ...

    def sample_by_coins(self, stream: Stream, probability: tuple[int, int]) -> Source:
        """Return a sample that contains each record with probability p/2^k, independently of the others, drawn with
        hidden randomness. `probability` is the pair (p, k).
        """
        ...

    def weighted(self, coins: Coins) -> Source:
        """Return the records with weights that are rounded at random, or the source itself if the records have no
        weights.
        """
        ...

    def advance(self, passes: float) -> Callable[[float], None]:
        """Return a function to which a loop of this many passes reports its progress."""
        ...
