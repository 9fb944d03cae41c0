"""Records that arrive one by one, such as the updates of clients. Each record is read once and not stored."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from dpmedian.parameters import PublicParameters
from dpmedian.progress import Progress
from dpmedian.sources.arriving import ArrivingSource, Parts, layers_of
from dpmedian.sources.groups import Grouped
from dpmedian.sources.weights import as_weights

__all__ = ["Arriving", "arrivals"]


@dataclass(frozen=True, eq=False)
class Arriving:
    """Records in the order of arrival, with their weights.

    A record is an array of d coordinates, or one array for each layer of a model.
    """

    records: Iterable[tuple[Parts | None, int]]
    d: int
    n: int | None
    """The number of records if it is public, and otherwise None."""
    unit: str

    columns = None
    scales = None
    first_missing = None

    @property
    def shape(self) -> tuple[int, int]:
        return (0 if self.n is None else self.n, self.d)

    def source(self, parameters: PublicParameters, progress: Progress | None) -> ArrivingSource:
        count = None if parameters.private_size else self.n
        return ArrivingSource(self.records, self.d, parameters.weighted, count)

    def grouped(self, by: Any, keys: tuple[Hashable, ...] | None, most: int) -> Grouped:
        raise ValueError("records that arrive one by one have no groups: collect them in an array")


def arrivals(
    records: Iterable[Any], weights: Iterable[float] | None, weight_max: float | None
) -> Iterator[tuple[Parts | None, int]]:
    """Yield records with their weights in units of 2^-20 of the cap."""
    if weights is None or weight_max is None:
        for record in records:
            yield layers_of(record), 1 << 20
        return
    for record, weight in zip(records, weights, strict=True):
        yield layers_of(record), int(as_weights([weight], weight_max, 1, unattended=True)[0])
