"""Public scales of the columns. Records are divided by the scales, and released points are multiplied by the scales.

The division changes each record separately and uses public numbers only, so neighbors stay neighbors. The
multiplication of a released point is post-processing. All distances in a run are distances of the divided records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dpmedian.parameters import LARGEST, PublicParameters, scales_of
from dpmedian.release import ClusterResult, MethodResult
from dpmedian.sources.columns import numbered, select
from dpmedian.sources.records import Records
from dpmedian.sources.sphere import as_position

__all__ = ["finishing", "scaled", "scales_by_column"]


def scales_by_column(scales: Any, columns: Sequence[str] | None, d: int) -> tuple[float, ...] | None:
    """Return one scale for each column, from a list or from a mapping by column name or number, or None without scales.

    A column that the mapping does not contain has the scale 1.
    """
    if scales is None or not isinstance(scales, Mapping):
        return scales_of(scales, d)
    if not scales:
        raise ValueError("scales must name at least one column, such as scales={'income': 5000.0}")
    found = [1.0] * d
    for place, name in zip(select(list(columns or numbered(d)), list(scales)), scales, strict=True):
        found[place] = scales[name]
    return scales_of(found, d)


def scaled(records: Records, scales: tuple[float, ...] | None) -> Records:
    """Return the records divided by the scales.

    A finite number stays finite, because values beyond 2^1000 are clamped.
    """
    if scales is None:
        return records
    with np.errstate(all="ignore"):
        divided = np.asarray(records.array, dtype=np.float64) / np.array(scales)
    too_large = np.isinf(divided) & np.isfinite(records.array)
    divided[too_large] = np.copysign(LARGEST, divided[too_large])
    return replace(records, array=divided)


def finishing(parameters: PublicParameters) -> Callable[[MethodResult], MethodResult] | None:
    """Return a function that converts a result to the units of the columns, or None if no conversion is needed."""
    if parameters.geometry == "sphere":
        return as_position
    if parameters.scales is None:
        return None
    factors = np.array(parameters.scales)

    def finish(result: MethodResult) -> MethodResult:
        if isinstance(result, ClusterResult):
            result = replace(result, centers=result.centers * factors)
        return replace(result, point=result.point * factors)

    return finish
