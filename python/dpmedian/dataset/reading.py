"""The options of a dataset, which decide how rows become records. All options are checked here, once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpmedian.parameters import geometry_of, positive_number
from dpmedian.sources.cells import Intake
from dpmedian.sources.units import check_reducer

__all__ = ["Reading"]


@dataclass(frozen=True, eq=False)
class Reading:
    """How rows become records.

    `d` is the public dimension of the records if a plan states it, and otherwise None. `labels` are the names of the
    columns that say which group a row is in.
    """

    columns: Sequence[str | int] | None = None
    unit: Any = None
    unit_reduce: str = "median"
    sample_weight: Any = None
    weight_max: float | None = None
    geometry: str = "euclidean"
    scales: Mapping[str | int, float] | Sequence[float] | None = None
    nonfinite: str = "raise"
    copy: bool = False
    d: int | None = None
    labels: tuple[str, ...] = ()

    @classmethod
    def of(cls, **options: Any) -> Reading:
        """Check every option."""
        if options.get("weight_max") is not None:
            options = {**options, "weight_max": positive_number("weight_max", options["weight_max"])}
        reading = cls(**options)
        Intake.of(reading.nonfinite, reading.d)
        geometry_of(reading.geometry, reading.scales)
        check_reducer(reading.unit_reduce, reading.unit)
        if isinstance(reading.columns, (str, bytes)):
            raise TypeError(
                f"columns must be a list of names or numbers, got {reading.columns!r}; one column is "
                f"[{reading.columns!r}]"
            )
        if reading.sample_weight is not None and reading.weight_max is None:
            raise ValueError("sample_weight needs weight_max=, a public cap: never take the largest weight of the data")
        if reading.sample_weight is None and reading.weight_max is not None:
            raise ValueError("this plan has weight_max=: pass the weights, sample_weight=...")
        return reading

    @property
    def intake(self) -> Intake:
        """The options for the conversion of numbers."""
        return Intake(self.nonfinite != "raise", self.d)

    @property
    def as_they_are(self) -> bool:
        """Whether every row is a record as it is stored. If so, files and partitions can stay in place."""
        plain = self.unit is None and self.sample_weight is None and self.weight_max is None and self.scales is None
        return plain and self.geometry == "euclidean" and not self.labels

    @property
    def row_width(self) -> int | None:
        """How many numbers each row has, or None if this is not known. The numbers are the coordinates, and the weight
        if a column of weights is named.
        """
        width = 2 if self.geometry == "sphere" else self.d
        return width if width is None else width + isinstance(self.sample_weight, str)
