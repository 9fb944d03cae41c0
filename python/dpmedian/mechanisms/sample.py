"""A hidden random sample of the records. Proof: sample.md."""

from __future__ import annotations

from dataclasses import dataclass

from dpmedian._core import Tape
from dpmedian.sources.protocol import Source

__all__ = ["HiddenSample"]

# The probability of a coin is a multiple of 2^-48, which is far finer than one over the number of records.
_COIN_BITS = 48


@dataclass(frozen=True)
class HiddenSample:
    """A random sample that contains `size` of the n records, or about `size` if n is private. Hidden randomness of the
    tape decides which records.

    If n is public, the sample is uniform among all samples of this size. If n is private, n is a noisy number, and
    every record is in the sample with probability size/n, independently of the others. Sensitivity: a statistic has the
    same sensitivity on the sample as on all records. Cost: none for the sample. A release about the sample costs as
    much as the same release about all records. Failure: none.
    """

    n: int
    size: int
    private: bool
    """Whether n is private."""

    def draw(self, source: Source, tape: Tape) -> Source:
        """Draw the sample, or return the records themselves if the sample would contain all of them."""
        if self.size >= self.n:
            return source
        if not self.private:
            return source.sample(tape.hidden(), self.size)
        return source.sample_by_coins(tape.hidden(), ((self.size << _COIN_BITS) // self.n, _COIN_BITS))
