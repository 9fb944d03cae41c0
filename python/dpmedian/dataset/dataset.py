"""`Dataset`: the caller's points, converted once, for any number of releases."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from dpmedian.accounting.protection import Neighbours
from dpmedian.dataset.cluster import Cluster
from dpmedian.dataset.memory import Memory
from dpmedian.dataset.protocol import Input
from dpmedian.dataset.reading import Reading
from dpmedian.dataset.stored import Stored
from dpmedian.parameters import PublicParameters
from dpmedian.progress import Progress
from dpmedian.sources.dask import is_dask
from dpmedian.sources.file import FileRecords, is_path
from dpmedian.sources.groups import GroupRecords
from dpmedian.sources.protocol import Source
from dpmedian.sources.units import check_missing

__all__ = ["Dataset"]

_DEFAULTS = {field.name: field.default for field in fields(Reading)}


class Dataset:
    """The caller's points, converted once: every function accepts a Dataset in place of points.

    Make a Dataset with `Dataset.of`, which says what the columns are, whose rows these are and how they count. It can
    be used for any number of releases, each of which is charged on its own. An array of float64 or float32 in C order
    is read in place and must not change while the dataset is used, unless it was made with `copy=True`.
    """

    def __init__(self, source: Input, reading: Reading) -> None:
        """Called by `Dataset.of`."""
        self._input = source
        self._reading = reading

    @classmethod
    def of(
        cls,
        points: Any,
        columns: Sequence[str | int] | None = None,
        unit: Any = None,
        unit_reduce: str = "median",
        sample_weight: Any = None,
        weight_max: float | None = None,
        geometry: str = "euclidean",
        scales: Mapping[str | int, float] | Sequence[float] | None = None,
        nonfinite: str = "raise",
        copy: bool = False,
    ) -> Dataset:
        """Convert the points and check every option; nothing is released and nothing is spent.

        Parameters
        ----------
        points : array, data frame, Arrow table or stream, iterator of batches, path or list of paths, Dask collection
            The rows. The page about inputs lists what is accepted, and with which options.
        columns : list of str or int, optional
            The coordinates, by name or by number from 1; by default all columns except the unit, the weights and the
            groups.
        unit : one id for each row, or the name of a column, optional
            Whose rows these are, such as people's: the rows of each unit become one record.
        unit_reduce : {"median", "mean", "first"}
            How the rows of a unit become one record.
        sample_weight : one number for each row, or the name of a column, optional
            Weights, which are private like the rows and need `weight_max`.
        weight_max : float, optional
            The public cap of the weights. Never take it from the data.
        geometry : {"euclidean", "sphere"}
            Whether points are coordinates, or longitude and latitude in degrees.
        scales : mapping from columns to numbers, or one number for each column, optional
            Public scales, by which the columns are divided. Never take them from the data.
        nonfinite : {"raise", "center", "drop"}
            What happens to a record with a missing or infinite value.
        copy : bool
            Whether an array is copied, so that it may change afterwards.

        Returns
        -------
        Dataset
            A dataset for `geometric_median`, `geometric_medians`, `Plan.run` and the other functions.

        Examples
        --------
        >>> import dpmedian, numpy as np
        >>> points = np.random.default_rng(0).normal(size=(2000, 3))
        >>> data = dpmedian.Dataset.of(points, columns=[1, 3])
        >>> [dpmedian.geometric_median(data, rho=rho).point.shape for rho in (0.1, 0.2)]
        [(2,), (2,)]
        """
        return cls.taken(
            points,
            columns=columns,
            unit=unit,
            unit_reduce=unit_reduce,
            sample_weight=sample_weight,
            weight_max=weight_max,
            geometry=geometry,
            scales=scales,
            nonfinite=nonfinite,
            copy=copy,
        )

    @classmethod
    def taken(cls, points: Any, **options: Any) -> Dataset:
        """The dataset for a function's arguments; `points` may already be a dataset with options of its own."""
        if isinstance(points, Dataset):
            points._require_same(options)
            return points
        reading = Reading(**options)
        if is_dask(points):
            return cls(Cluster.of(points, reading), reading)
        if isinstance(points, FileRecords) or is_path(points):
            return cls(Stored.of(points, reading), reading)
        return cls(Memory.of(points, reading), reading)

    def _require_same(self, options: Mapping[str, Any]) -> None:
        """Raises if a function was given an option that contradicts the dataset."""
        for name, value in options.items():
            told = isinstance(value, (str, float, int)) and value in (_DEFAULTS[name], getattr(self._reading, name))
            if told or value is _DEFAULTS[name] or name in ("d", "labels"):
                continue
            if name == "scales" and value == self.scales:
                continue
            raise ValueError(
                f"points are a Dataset, which has its own {name}: say it there, Dataset.of(..., {name}=...)"
            )

    def __repr__(self) -> str:
        """The public properties: neither a record nor the number of records."""
        return f"Dataset(d={self.d}, columns={self.columns}, unit={self.unit!r})"

    @property
    def shape(self) -> tuple[int, int]:
        """The number of records and their dimension. The number is public only under replacement."""
        return self._input.shape

    @property
    def d(self) -> int:
        """The number of coordinates of a point: two on the sphere."""
        return 2 if self.geometry == "sphere" else self.shape[1]

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The names of the coordinates, if they have names."""
        return self._input.columns

    @property
    def unit(self) -> str:
        """Whose records these are: the name of the column of ids, or "record"."""
        return self._input.unit

    @property
    def has_ids(self) -> bool:
        """Whether the caller gave ids of units."""
        return self._reading.unit is not None

    @property
    def geometry(self) -> str:
        """What the coordinates are."""
        return self._reading.geometry

    @property
    def scales(self) -> tuple[float, ...] | None:
        """The public scale of each column, if there are any."""
        return self._input.scales

    @property
    def weight_max(self) -> float | None:
        """The public cap of the weights, if there are any."""
        return self._reading.weight_max

    @property
    def nonfinite(self) -> str:
        """What happens to a record with a missing or infinite value."""
        return self._reading.nonfinite

    def require_ids(self, neighbours: Neighbours) -> None:
        """Raises if a row has no id although the number of units is public."""
        if self.has_ids:
            check_missing(self._input.first_missing, self.unit, self.nonfinite, neighbours)

    def source(self, parameters: PublicParameters, progress: Progress | None = None) -> Source:
        """The records for a run, after a pass that validates them."""
        return self._input.source(parameters, progress)

    def grouped(self, by: Any, keys: tuple[Hashable, ...] | None, most: int) -> GroupRecords:
        """The records of groups of the rows."""
        return self._input.grouped(by, keys, most)
