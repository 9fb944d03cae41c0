"""The records of rows and of groups, read as a release reads them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from dpmedian.accounting.protection import relation_of
from dpmedian.dataset import Dataset
from dpmedian.dataset.memory import Memory
from dpmedian.dataset.reading import Reading
from dpmedian.sources.groups import Grouped
from dpmedian.sources.key_columns import named_columns
from dpmedian.sources.records import Records


def unit_records(
    points: Any, unit: Any = None, *, reducer: str = "median", neighbours: str = "replace", **options: Any
) -> Records:
    """One record for each row, or one for each unit. The other options are the options of `Reading`."""
    reading = Reading.of(unit=unit, unit_reduce=reducer, **options)
    rows = Memory.of(points, reading)
    Dataset(rows, reading).require_ids(relation_of(neighbours))
    return rows.records


def group_records(
    points: Any,
    by: Any,
    keys: tuple[Hashable, ...] | None,
    unit: Any = None,
    *,
    most: int = 1,
    reducer: str = "median",
    nonfinite: str = "raise",
) -> Grouped:
    """The records of groups, as `geometric_medians` reads them."""
    labels = named_columns(points, by) or ()
    reading = Reading.of(unit=unit, unit_reduce=reducer, nonfinite=nonfinite, labels=labels)
    return Memory.of(points, reading).grouped(by, keys, most)
