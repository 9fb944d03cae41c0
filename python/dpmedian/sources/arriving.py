"""Records that arrive one by one. They are added to an exact sum and are not stored."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmedian._core import Accumulator, Coins, Exact, Statistic, Stream

__all__ = ["ArrivingSource", "Parts", "layers_of"]

Parts = list[NDArray[np.float32] | NDArray[np.float64]]


class ArrivingSource:
    """A source that reads its records once. It answers the query of one robust step, and afterwards the query for the
    number of records.

    `arrivals` yields each record with its weight in units of 2^-20. A record is a list of arrays, or None for a record
    at the center. `arrivals` is read at the first query, which is after the charge.
    """

    local = None

    def __init__(self, arrivals: Iterable[tuple[Parts | None, int]], d: int, weighted: bool, count: int | None) -> None:
        """`count` is the public number of records under replacement. If fewer records arrive, the missing records count
        as records at the center.
        """
        self._arrivals = arrivals
        self._d = d
        self._weighted = weighted
        self._count = count
        self._read: Accumulator | None = None

    @property
    def d(self) -> int:
        return self._d

    def answer(self, statistic: Statistic, passes: float = 1.0) -> Exact:
        if statistic.name == "robust step":
            if self._read is not None:
                raise ValueError(
                    "records that arrive one by one answer one robust step only, and it was already queried"
                )
            self._read = self._accumulated(Accumulator(statistic, self._weighted))
            return self._read.sum()
        if self._read is None or statistic.name != "size":
            raise ValueError(f"records that arrive one by one do not answer the statistic {statistic.name!r}")
        return self._read.size(-statistic.exponent)

    def _accumulated(self, sum_: Accumulator) -> Accumulator:
        seen = 0
        for parts, weight in self._arrivals:
            seen += 1
            there = parts is not None and sum_.add(parts, weight)
            if not there and (parts is None or self._count is not None):
                sum_.add_center(weight)
        if self._count is not None:
            if seen > self._count:
                raise ValueError(f"{seen} records arrived, but their public number is n = {self._count}")
            for _ in range(self._count - seen):
                sum_.add_center()
        return sum_

    def weighted(self, coins: Coins) -> ArrivingSource:
        """Return the source itself, because every record arrives with its weight."""
        return self

    def sample(self, stream: Stream, size: int) -> ArrivingSource:
        raise ValueError("records that arrive one by one cannot be sampled")

    def sample_by_coins(self, stream: Stream, probability: tuple[int, int]) -> ArrivingSource:
        raise ValueError("records that arrive one by one cannot be sampled")

    def advance(self, passes: float) -> Callable[[float], None]:
        return lambda done: None


def layers_of(record: Any) -> Parts:
    """A record as C-order arrays of singles or doubles: one array, or one for each layer."""
    layered = isinstance(record, (list, tuple)) and any(hasattr(layer, "shape") for layer in record)
    return [_flat(layer) for layer in (record if layered else [record])]


def _flat(layer: Any) -> NDArray[np.float32] | NDArray[np.float64]:
    array = np.asarray(layer)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"a record must hold real numbers, got an array of {array.dtype}")
    if array.dtype.kind == "f" and array.dtype.itemsize <= 4:
        return np.ascontiguousarray(array, dtype=np.float32).reshape(-1)
    return np.ascontiguousarray(array, dtype=np.float64).reshape(-1)
