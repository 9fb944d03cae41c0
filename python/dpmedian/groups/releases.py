"""The releases of groups: a release or a failure for every key."""

from __future__ import annotations

from collections.abc import Hashable, ItemsView, Iterator, KeysView, Mapping, ValuesView
from typing import TYPE_CHECKING, Any

from dpmedian.accounting import PrivacyCost
from dpmedian.recorded import Recorded, Shown, picture
from dpmedian.release import Release, ReleaseFailed, now
from dpmedian.rows import csv_text, row_names, row_of
from dpmedian.sources.key_columns import key_parts

if TYPE_CHECKING:
    from dpmedian.groups.plan import GroupsPlan

__all__ = ["Releases"]


class Releases(Shown, Recorded, Mapping[Hashable, "Release | ReleaseFailed"]):
    """The released values of all groups: for every key a `Release`, or a `ReleaseFailed`, which is an output, too.

    The keys keep their order. If the keys were not listed, only the groups that are shown are included. `by` has the
    names of the key columns. With several key columns, the keys are tuples. `date` is the time of the releases (UTC,
    ISO 8601). `cost` is the cost of all groups together. This cost is far less than the sum of the costs of the single
    groups, because a unit contributes to a few groups only.
    """

    def __init__(
        self,
        values: Mapping[Hashable, Release | ReleaseFailed],
        plan: GroupsPlan,
        seeded: bool,
        name: str | None = None,
        by: tuple[str, ...] = ("key",),
        columns: tuple[str, ...] | None = None,
    ) -> None:
        self._values = dict(values)
        self._columns = columns
        self.plan = plan
        self.seeded = seeded
        self.name = name
        self.by = by
        self.date = now()

    def __getitem__(self, key: Hashable) -> Release | ReleaseFailed:
        return self._values[key]

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    # The views of the class Mapping would print the whole table.
    def keys(self) -> KeysView[Hashable]:
        return self._values.keys()

    def values(self) -> ValuesView[Release | ReleaseFailed]:
        return self._values.values()

    def items(self) -> ItemsView[Hashable, Release | ReleaseFailed]:
        return self._values.items()

    @property
    def cost(self) -> PrivacyCost:
        """The cost of all groups together, which was charged before any of them ran."""
        return self.plan.cost

    @property
    def unit(self) -> str:
        """The protected unit."""
        return self.cost.unit

    @property
    def released(self) -> dict[Hashable, Release]:
        """The groups with a point."""
        return {key: value for key, value in self._values.items() if isinstance(value, Release)}

    @property
    def failed(self) -> dict[Hashable, ReleaseFailed]:
        """The groups without a point."""
        return {key: value for key, value in self._values.items() if isinstance(value, ReleaseFailed)}

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the coordinates."""
        if self._columns is not None:
            return self._columns
        if self.plan.parameters.geometry == "sphere":
            return ("longitude", "latitude")
        return tuple(f"x{i}" for i in range(self.plan.parameters.d))

    @property
    def _sphere(self) -> bool:
        return self.plan.parameters.geometry == "sphere"

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The names of the key columns in tables: `by`, with `key_` in front of a name that is also a coordinate."""
        names = row_names(self.columns, self._sphere)
        for name in self.by:
            while name in names:
                name = f"key_{name}"
            names.append(name)
        return tuple(names[-len(self.by) :])

    def to_frame(self) -> Any:
        """One row for each key, as a pandas DataFrame.

        The index has the key, with one level for each key column. The columns are: the coordinates of the point; the
        ends of the 95 % interval of each coordinate, such as `x0_low` and `x0_high`; `error_radius`, `scale`, `size`;
        `outcome`, which is "released" or "failed"; `reason`, the reason why there is no point; and `notes`, which state
        the limits of a point. On the sphere `error_km` is the error radius in kilometers. A value that does not exist
        is missing. If a coordinate has one of these names, the package's column is called `release_size` and so on.
        Needs pandas.
        """
        try:
            import pandas as pd  # type: ignore[import-untyped, unused-ignore]
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install pandas") from error

        header = row_names(self.columns, self._sphere)
        frame = pd.DataFrame([row_of(value, self.columns, self._sphere) for value in self.values()], columns=header)
        names = list(self.key_columns)
        frame.index = (
            pd.Index(list(self), name=names[0])
            if len(names) == 1
            else pd.MultiIndex.from_arrays(
                [[key_parts(key)[place] for key in self] for place in range(len(names))], names=names
            )
        )
        *numbers, size, _, _, _ = header
        return frame.astype({**dict.fromkeys(numbers, float), size: "Int64"})

    def to_csv(self) -> str:
        """The table of `to_frame` as comma-separated values. The key columns come first. pandas is not needed."""
        names = self.key_columns
        rows = ([*key_parts(key), *row_of(value, self.columns, self._sphere)] for key, value in self.items())
        return csv_text(rows, [*names, *row_names(self.columns, self._sphere)])

    def plot(self, points: Any, by: Any, ax: Any = None) -> Any:
        """A small picture for each group: its point over its private records, in two dimensions (needs matplotlib)."""
        return picture(self, points, by, ax)

    def plot_map(self, ax: Any = None) -> Any:
        """All released points in one picture, each with its error and its name. The picture contains nothing
        private.
        """
        return picture(self, None, None, ax)
