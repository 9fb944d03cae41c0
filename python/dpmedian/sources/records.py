"""What a caller has, turned into one array of records, once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Records", "as_records"]


@dataclass(frozen=True, eq=False)
class Records:
    """A C-order (n, d) array of doubles, and the column names of a frame or an Arrow table."""

    array: NDArray[np.float64]
    columns: tuple[str, ...] | None = None


def as_records(points: Any, *, nonfinite: str = "raise") -> Records:
    """The points as records; records are returned as they are."""
    if isinstance(points, Records):
        return points
    columns = None
    try:
        if hasattr(points, "column_names"):
            columns = tuple(str(name) for name in points.column_names)
            array = np.column_stack([np.asarray(column) for column in points.columns])
        elif hasattr(points, "columns") and hasattr(points, "to_numpy"):
            columns = tuple(str(name) for name in points.columns)
            array = points.to_numpy()
        else:
            array = np.asarray(points)
    except ValueError as error:
        raise ValueError(f"points must be a rectangular (n, d) array of numbers: {error}") from error
    if array.dtype.kind not in "iuf":
        raise TypeError(f"points must be numbers (integers or floats), got dtype {array.dtype}")
    if array.ndim != 2:
        raise ValueError(f"points must have shape (n, d), got shape {array.shape}")
    return Records(np.ascontiguousarray(array, dtype=np.float64), columns)
