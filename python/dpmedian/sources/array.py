"""Records that this process reads: in memory, or in a file."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from dpmedian._core import Coins, Exact, Points, Statistic, Stream
from dpmedian.parameters import PublicParameters
from dpmedian.progress import Progress
from dpmedian.sources.file import FileRecords
from dpmedian.sources.records import Records, as_records
from dpmedian.sources.weights import Weights

__all__ = ["ArraySource"]


class ArraySource:
    """Records in an array or a file. One pass validates them. They are read in place, or from a copy."""

    def __init__(
        self, points: Points, progress: Progress | None = None, share: float = 1.0, weights: Weights | None = None
    ) -> None:
        """`share` is the fraction of all records that are in this source. The progress bar counts a pass over a sample
        as this fraction of a pass.
        """
        self._points = points
        self._weights = weights
        self._share = share
        self._progress = progress if progress is not None else Progress(1.0, show=False)

    @classmethod
    def of(
        cls,
        points: Any,
        parameters: PublicParameters,
        progress: Progress | None = None,
        nonfinite: str = "raise",
        copy: bool = False,
    ) -> ArraySource:
        """Validate the records and return their source. If a value is not finite, raise an error, or move its record to
        the center.

        If the number of records is private, `nonfinite="drop"` leaves such records out.

        Without a copy, the caller must not change the array while the source is used, because a value that is not a
        number would make sums exceed their sensitivity.
        """
        replacement = parameters.origin.tolist() if nonfinite == "center" else None
        if not isinstance(points, (FileRecords, Records)):
            points = as_records(points, nonfinite=nonfinite, d=parameters.d)
        records: FileRecords | Records = points
        if nonfinite == "drop":
            if not parameters.private_size:
                raise ValueError(
                    "nonfinite='drop' would change the number of records, which is public: use nonfinite='center'"
                )
            records = records.finite()
        return cls(records.admitted(parameters.ball, replacement, copy), progress, weights=records.weights)

    @property
    def d(self) -> int:
        return self._points.d

    @property
    def local(self) -> Points:
        return self._points

    def answer(self, statistic: Statistic, passes: float = 1.0) -> Exact:
        return self._points.answer(statistic, self.advance(passes))

    def sample(self, stream: Stream, size: int) -> ArraySource:
        share = min(size / max(self._points.n, 1), 1.0)
        return ArraySource(self._points.sample(stream, size), self._progress, self._share * share)

    def sample_by_coins(self, stream: Stream, probability: tuple[int, int]) -> ArraySource:
        share = math.ldexp(probability[0], -probability[1])
        return ArraySource(self._points.sample_by_coins(stream, probability), self._progress, self._share * share)

    def weighted(self, coins: Coins) -> ArraySource:
        """Return the records with weights that are rounded at random, or the source itself if the records have no
        weights.
        """
        if self._weights is None:
            return self
        return ArraySource(self._points.weighted(coins, self._weights), self._progress, self._share)

    def advance(self, passes: float) -> Callable[[float], None]:
        return self._progress.span(self._share * passes)
