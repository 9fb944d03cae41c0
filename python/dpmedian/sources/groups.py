"""The conversion of rows to the records of groups. Proof: groups.md."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpmedian import _core
from dpmedian.accounting.protection import RECORD
from dpmedian.parameters import PublicParameters
from dpmedian.sources.array import ArraySource
from dpmedian.sources.key_columns import key_labels, take_keys, width_of
from dpmedian.sources.labels import Labels
from dpmedian.sources.protocol import Source
from dpmedian.sources.records import Records
from dpmedian.sources.units import label_of
from dpmedian.sources.weights import largest_of

__all__ = ["GroupRecords", "Grouped", "as_group_records", "formed", "with_all_labels"]


class GroupRecords(Protocol):
    """The interface of the records of groups, in this process or in the workers of a cluster."""

    @property
    def by(self) -> tuple[str, ...]:
        """The names of the key columns."""
        ...

    @property
    def labels(self) -> list[bytes] | None:
        """The label of every group that has a record, in ascending order. It is None if the keys were listed.

        These labels are private.
        """
        ...

    @property
    def d(self) -> int:
        """The dimension of the records."""
        ...

    @property
    def unit(self) -> str:
        """The unit of the records."""
        ...

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The names of the coordinates, or None if the coordinates have no names."""
        ...

    @property
    def occurring(self) -> list[int]:
        """The indices of the groups that have a record. They are private if the keys were not listed."""
        ...

    def blocks(
        self, groups: Sequence[int], parameters: PublicParameters, nonfinite: str, whole: bool
    ) -> Iterator[dict[int, Callable[[], Source]]]:
        """Yield blocks of functions. Each function opens the source of one group.

        The sources of a block can be used until the next block is taken.
        """
        ...


@dataclass(frozen=True, eq=False)
class Grouped:
    """The records of all groups in this process.

    The records are ordered by group. `starts` holds the position at which each group begins.

    If the keys were listed, the groups are in the order of the keys. Otherwise `labels` holds the label of every group
    that has a record, in ascending order. The labels and their number are private.
    """

    records: Records
    starts: NDArray[np.int64]
    by: tuple[str, ...] = ("key",)
    labels: list[bytes] | None = field(default=None, repr=False)

    @property
    def d(self) -> int:
        return int(self.records.array.shape[1])

    @property
    def unit(self) -> str:
        return self.records.unit

    @property
    def columns(self) -> tuple[str, ...] | None:
        return self.records.columns

    @property
    def occurring(self) -> list[int]:
        return [int(group) for group in np.flatnonzero(np.diff(self.starts))]

    def blocks(
        self, groups: Sequence[int], parameters: PublicParameters, nonfinite: str, whole: bool
    ) -> Iterator[dict[int, Callable[[], Source]]]:
        """Yield one block with all groups, because their records are in this process."""

        def opened(group: int) -> ArraySource:
            return ArraySource.of(self.records_of(group), parameters, nonfinite=nonfinite)

        yield {group: functools.partial(opened, group) for group in groups}

    def records_of(self, group: int) -> Records:
        """Return the records of a group, with their weights if they have weights."""
        rows = slice(self.starts[group], self.starts[group + 1])
        weights = None if self.records.weights is None else self.records.weights[rows]
        return replace(self.records, array=self.records.array[rows], weights=weights)


def as_group_records(
    rows: Records,
    by: Any,
    keys: tuple[Hashable, ...] | None,
    ids: Labels | None,
    most: int,
    reducer: str,
    nonfinite: str,
) -> Grouped:
    """Return the records of groups: one record for each row, or with ids one record for each unit in each of its
    groups.

    `by` is the name of a column, a list of names, or the label of each row (`take_keys`). A row is left out if it has
    no id, no label, or a label that is not a key. If `keys` is None, every label that occurs is a group. A unit
    contributes to at most `most` groups, namely those in which it has the most rows. If it has equally many rows in two
    groups, the group that comes first in the order of the keys (or of the labels as text) is taken. The weight of a
    unit in a group is the largest weight of its rows in the group.
    """
    labels, names = take_keys(rows, by)
    if len(labels) != len(rows.array):
        raise ValueError(
            "by must have one label for each row of points, but has another length; pass several key columns as a list "
            "of the names of columns of a frame, or of columns of labels"
        )
    if nonfinite == "raise":
        rows.require_finite()
    return formed(rows, labels, ids, names, keys, most, reducer, nonfinite)


def formed(
    records: Records,
    labels: Labels,
    ids: Labels | None,
    names: tuple[str, ...],
    keys: tuple[Hashable, ...] | None,
    most: int,
    reducer: str,
    nonfinite: str,
) -> Grouped:
    """Return the records of the groups, made from the records of the rows, the label of each row and the id of its
    unit.
    """
    rows, found = len(records.array), None
    if keys is None:
        groups, found = _candidates(labels)
        candidates = len(found)
    else:
        _check_width(keys, len(names))
        groups, candidates = labels.places(key_labels(keys)), len(keys)
    if nonfinite == "drop":
        groups[~np.isfinite(records.array).all(axis=1)] = -1
    units, count = (np.arange(rows, dtype=np.int64), rows) if ids is None else ids.ranks()
    codes, starts = _core.group_contributions(units, count, groups, candidates, most)
    array = np.ascontiguousarray(records.array, dtype=np.float64)
    reduced = _core.reduce_units(array, codes, int(starts[-1]), "first" if ids is None else reducer)
    label = RECORD if ids is None else label_of(ids)
    own = None if records.weights is None else largest_of(records.weights, codes, int(starts[-1]))
    return Grouped(replace(records, array=reduced, unit=label, weights=own), starts, names, found)


def _candidates(labels: Labels) -> tuple[NDArray[np.int64], list[bytes]]:
    """Return the rank of each row's label (its code), and the labels in the order of their ranks.

    Labels are always compared as text, because their order decides between two groups in which a unit has equally many
    rows. If integers were compared as numbers, a label of another row could turn the column into text and so change the
    order. A label that is not valid UTF-8 cannot be printed as a key, so it counts as missing.
    """
    text = labels.as_text()
    codes, count = text.ranks()
    there = np.flatnonzero(codes >= 0)
    _, first = np.unique(codes[there], return_index=True)
    chosen = np.zeros(len(codes), dtype=bool)
    chosen[there[first]] = True
    found: list[bytes] = [b""] * count
    for code, label in zip(codes[chosen].tolist(), text.chosen(chosen).listed(), strict=True):
        found[code] = label
    unreadable = np.fromiter((not _is_text(label) for label in found), dtype=bool, count=count)
    if unreadable.any():
        codes[there] = np.where(unreadable[codes[there]], -1, codes[there])
    return codes, found


def _is_text(label: bytes) -> bool:
    try:
        label.decode()
    except UnicodeDecodeError:
        return False
    return True


def _check_width(keys: tuple[Hashable, ...], columns: int) -> None:
    width = width_of(keys)
    if width != columns:
        expected = "1 column, so every key must be a label"
        if columns > 1:
            expected = f"{columns} columns, so every key must be a tuple of {columns} labels"
        raise ValueError(f"by has {expected}, but the first key is {keys[0]!r}; change by= or keys=")


def with_all_labels(part: Grouped, labels: list[bytes]) -> Grouped:
    """Return the groups of one part of the rows, with a position for every group that occurs in any part.

    So a group has the same position in all parts.
    """
    place = {label: index for index, label in enumerate(labels)}
    sizes = np.zeros(len(labels), dtype=np.int64)
    sizes[[place[label] for label in part.labels or ()]] = np.diff(part.starts)
    return replace(part, starts=np.concatenate([[0], np.cumsum(sizes)]), labels=None)
