"""The class `Dataset`: the caller's points, converted once, for any number of releases."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from dpmedian.accounting.protection import Relation
from dpmedian.dataset.cluster import Cluster
from dpmedian.dataset.memory import Memory
from dpmedian.dataset.protocol import Input
from dpmedian.dataset.reading import Reading
from dpmedian.dataset.stored import Stored
from dpmedian.documented import documented
from dpmedian.parameters import Checked, PublicParameters
from dpmedian.progress import Progress
from dpmedian.sources.dask import is_dask
from dpmedian.sources.file import FileRecords, is_path
from dpmedian.sources.groups import GroupRecords
from dpmedian.sources.protocol import Source
from dpmedian.sources.units import check_missing

__all__ = ["SHARED", "Dataset"]

SHARED = ("geometry", "scales", "weight_max")
"""The options that the public parameters of a run also contain, because these options decide how rows become records.
"""

_DEFAULTS = {field.name: field.default for field in fields(Reading)}


class Dataset:
    """The caller's points, converted once. Every function that takes points also takes a Dataset.

    Make a Dataset with `Dataset.of`, whose arguments describe the columns, the protected unit and the weights. A
    Dataset can be used for any number of releases. Each release is charged separately. An array of float64 or float32
    in C order is read in place. Do not change such an array while the dataset is used, or make the dataset with
    `copy=True`.
    """

    def __init__(self, source: Input, reading: Reading) -> None:
        """Use `Dataset.of` instead, which calls this constructor."""
        self._input = source
        self._reading = reading

    @classmethod
    @documented
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
        """Convert the points and check every option. Nothing is released and nothing is spent.

        Parameters
        ----------
        points : array, data frame, Arrow table or stream, iterator of batches, path or list of paths, Dask collection
            The rows. The page about inputs lists the accepted types and their options.
        columns, unit, unit_reduce, sample_weight, weight_max, geometry, scales, nonfinite, copy
            As in `geometric_median`.

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
        return cls.taken(locals())

    @classmethod
    def taken(cls, arguments: Mapping[str, Any], **known: Any) -> Dataset:
        """Return the dataset for the arguments (`locals()`) of a function. If `points` is already a dataset, it is
        returned.
        """
        given = {**arguments, **known}
        points, options = given["points"], {name: given[name] for name in _DEFAULTS if name in given}
        if isinstance(points, Dataset):
            points._require_same(options)
            return points
        reading = Reading.of(**options)
        if is_dask(points):
            return cls(Cluster.of(points, reading), reading)
        if isinstance(points, FileRecords) or is_path(points):
            return cls(Stored.of(points, reading), reading)
        return cls(Memory.of(points, reading), reading)

    @classmethod
    def for_run(cls, parameters: PublicParameters, arguments: Mapping[str, Any], **known: Any) -> Dataset:
        """Return the dataset for a run with these parameters. Some options of a dataset are in the parameters and are
        no arguments of the run.
        """
        planned = {option: getattr(parameters, option) for option in ("d", *SHARED)}
        return cls.taken(arguments, **planned, **known)

    def parameters(self, arguments: Mapping[str, Any], **known: Any) -> PublicParameters:
        """Return the public parameters of a release of these points, from the dataset and the arguments of a call."""
        checked = Checked(self.shape[0], self.unit, **{option: getattr(self, option) for option in SHARED})
        known |= {"n": arguments.get("n"), "d": self.d, "dataset": checked}
        return PublicParameters.from_arguments(arguments, **known)

    def _require_same(self, options: Mapping[str, Any]) -> None:
        """Raise an error if an option of a function contradicts the dataset."""
        for name, value in options.items():
            equal = isinstance(value, (str, float, int)) and value in (_DEFAULTS[name], getattr(self._reading, name))
            if equal or value is _DEFAULTS[name] or name in ("d", "labels"):
                continue
            if name == "scales" and value == self.scales:
                continue
            raise ValueError(
                f"points are a Dataset, and {name} is an option of the Dataset: pass Dataset.of(..., {name}=...)"
            )

    def __repr__(self) -> str:
        """Show the public properties only: no record, and not the number of records."""
        return f"Dataset(d={self.d}, columns={self.columns}, unit={self.unit!r})"

    @property
    def shape(self) -> tuple[int, int]:
        """The number of records and their dimension. The number is public only under replacement."""
        return self._input.shape

    @property
    def d(self) -> int:
        """The number of coordinates of a point. On the sphere it is two."""
        return 2 if self.geometry == "sphere" else self.shape[1]

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The names of the coordinates, or None if the coordinates have no names."""
        return self._input.columns

    @property
    def unit(self) -> str:
        """The protected unit: the name of the column of ids, or "record"."""
        return self._input.unit

    @property
    def has_ids(self) -> bool:
        """Whether the caller gave ids of units."""
        return self._reading.unit is not None

    @property
    def geometry(self) -> str:
        """The geometry of the coordinates: "euclidean" or "sphere"."""
        return self._reading.geometry

    @property
    def scales(self) -> tuple[float, ...] | None:
        """The public scale of each column, or None."""
        return self._input.scales

    @property
    def weight_max(self) -> float | None:
        """The public cap of the weights, or None."""
        return self._reading.weight_max

    @property
    def nonfinite(self) -> str:
        """The treatment of a record with a missing or infinite value."""
        return self._reading.nonfinite

    def require_ids(self, relation: Relation) -> None:
        """Raise an error if a row has no id although the number of units is public."""
        if self.has_ids:
            check_missing(self._input.first_missing, self.unit, self.nonfinite, relation)

    def source(self, parameters: PublicParameters, progress: Progress | None = None) -> Source:
        """Return the records for a run, after a pass that validates them."""
        return self._input.source(parameters, progress)

    def grouped(self, by: Any, keys: tuple[Hashable, ...] | None, most: int) -> GroupRecords:
        """Return the records of groups of the rows."""
        return self._input.grouped(by, keys, most)
