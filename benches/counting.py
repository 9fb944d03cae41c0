"""The queries of a run: passes over all records and over its sample, and the cost of every release.

Proxies for a source and a tape that count. For benches and tests only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpmedian._core import Points, Statistic, Stream, Tape
from dpmedian.sources.protocol import Source
from dpmedian.statistics import Exact


@dataclass
class Counts:
    """The counts of one run. A pass reads all records, or the whole sample."""

    passes: int = 0
    sample_passes: int = 0
    releases: list[tuple[str, float]] = field(default_factory=list)
    """The name of each release, and its cost in rho."""

    @property
    def rho(self) -> float:
        """The cost that was spent."""
        return sum(cost for _, cost in self.releases)

    @property
    def before_last(self) -> float:
        """The part of the spent cost that did not go to the last gradient."""
        return 1.0 - self.releases[-1][1] / self.rho


class CountedSource:
    """A proxy for a source that counts queries."""

    def __init__(self, source: Source, counts: Counts, sample: bool = False) -> None:
        self._source, self._counts, self._sample = source, counts, sample

    @property
    def d(self) -> int:
        return self._source.d

    @property
    def local(self) -> Points | None:
        return self._source.local

    def answer(self, statistic: Statistic, passes: float = 1.0) -> Exact:
        if self._sample:
            self._counts.sample_passes += 1
        else:
            self._counts.passes += 1
        return self._source.answer(statistic, passes)

    def sample(self, stream: Stream, size: int) -> CountedSource:
        return CountedSource(self._source.sample(stream, size), self._counts, sample=True)

    def sample_by_coins(self, stream: Stream, probability: tuple[int, int]) -> CountedSource:
        return CountedSource(self._source.sample_by_coins(stream, probability), self._counts, sample=True)

    def advance(self, passes: float) -> Callable[[float], None]:
        return self._source.advance(passes)


class CountedTape:
    """A tape with the noise of a seed that records the cost of each release."""

    def __init__(self, seed: int, counts: Counts) -> None:
        self._tape, self._counts = Tape.draw(seed.to_bytes(32, "little")), counts

    def gaussian(self, name: str, exact: Exact, noise_multiplier: float) -> NDArray[np.int64]:
        self._counts.releases.append((name, 0.5 / noise_multiplier**2))
        return self._tape.gaussian(name, exact, noise_multiplier)

    def hidden(self) -> Stream:
        return self._tape.hidden()
