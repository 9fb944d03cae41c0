"""The interface that every kind of input offers to a run."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Protocol

from dpmedian.parameters import PublicParameters
from dpmedian.progress import Progress
from dpmedian.sources.groups import GroupRecords
from dpmedian.sources.protocol import Source

__all__ = ["Input", "OfRecords"]


class Input(Protocol):
    """The records of a dataset: one record for each row, or one for each unit."""

    @property
    def shape(self) -> tuple[int, int]:
        """The number of records and their dimension. The number may be private, so errors must not show the number."""
        ...

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The names of the coordinates, or None if the coordinates have no names."""
        ...

    @property
    def unit(self) -> str:
        """The protected unit: the name of the column of ids, or "record"."""
        ...

    @property
    def scales(self) -> tuple[float, ...] | None:
        """The public scale of each column, or None. The records are divided by the scales."""
        ...

    @property
    def first_missing(self) -> int | None:
        """The number of the first row without an id, or None. Only the curator may see it."""
        ...

    def source(self, parameters: PublicParameters, progress: Progress | None) -> Source:
        """Return a source that answers statistics of the records, after a pass that validates them."""
        ...

    def grouped(self, by: Any, keys: tuple[Hashable, ...] | None, most: int) -> GroupRecords:
        """Make the records of groups from the same rows."""
        ...


class OfRecords:
    """A base class for inputs that have `records`, from which it reads the properties."""

    records: Any

    @property
    def shape(self) -> tuple[int, int]:
        n, d = self.records.shape
        return n, d

    @property
    def columns(self) -> tuple[str, ...] | None:
        columns: tuple[str, ...] | None = self.records.columns
        return columns

    @property
    def unit(self) -> str:
        return str(self.records.unit)
