"""A hidden random sample of the records. Proof: sample.md."""

from __future__ import annotations

from dataclasses import dataclass

from dpmedian._core import Tape
from dpmedian.sources.protocol import Source

__all__ = ["HiddenSample"]


@dataclass(frozen=True)
class HiddenSample:
    """A uniform sample of `size` of the n records, drawn from hidden randomness of the tape.

    Neighbours: one record replaced. Sensitivity: every statistic has on the sample the one that it has on all records.
    Cost: none of its own, and releases about the sample cost what they would about all records. Failure: none.
    """

    n: int
    size: int

    def draw(self, source: Source, tape: Tape) -> Source:
        """The records themselves where the sample would have all of them."""
        return source if self.size >= self.n else source.sample(tape.hidden(), self.size)
