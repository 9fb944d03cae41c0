"""Weights of records. The weights are private, like the records, and have a public cap. Proof: weights.md."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmedian.sources.cells import Intake
from dpmedian.sources.records import converted

__all__ = ["WHOLE_WEIGHT", "Weights", "as_weights", "largest_of", "with_weight"]

WHOLE_WEIGHT = 2**20
"""The integer that stands for a weight equal to the cap."""

Weights = NDArray[np.uint32]


def with_weight(columns: Sequence[str | int] | None, weights: Any) -> Sequence[str | int] | None:
    """Return the columns of numbers to read from a file: the coordinates, and the column of weights if `weights` is a
    name. None means all columns.
    """
    return columns if columns is None or not isinstance(weights, str) else [*columns, weights]


def as_weights(weights: Any, most: float, rows: int, *, unattended: bool) -> Weights:
    """Return one weight for each row, as a multiple of 2^-20 of the cap. Weights above the cap count as the cap.

    A weight that is negative or not a number raises an error that names its row. In an unattended run it counts as 0.
    """
    column = weights if _is_frame(weights) else _as_column(weights)
    # The weights are converted to doubles, because a very small cap would be zero as a single, and a division by zero
    # gives no number.
    values = converted(column, Intake(unattended, d=1)).array[:, 0].astype(np.float64)
    if len(values) != rows:
        raise ValueError("sample_weight must have one weight for each row of points, but has another length")
    wrong = ~(np.isfinite(values) & (values >= 0.0))
    if wrong.any() and not unattended:
        row = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"sample_weight[{row}] must be a finite number that is not negative; correct it, or let nonfinite='center' "
            "or 'drop' count such records with weight 0"
        )
    with np.errstate(all="ignore"):
        shares = np.clip(np.where(wrong, 0.0, values) / most, 0.0, 1.0)
        return np.asarray(np.rint(WHOLE_WEIGHT * shares), dtype=np.uint32)


def largest_of(weights: Weights, codes: NDArray[np.int64], units: int) -> Weights:
    """Return the weight of each unit, which is the largest weight of its rows."""
    largest = np.zeros(units, dtype=np.uint32)
    there = codes >= 0
    np.maximum.at(largest, codes[there], weights[there])
    return largest


def _is_frame(weights: Any) -> bool:
    return hasattr(weights, "columns") or hasattr(weights, "schema")


def _as_column(weights: Any) -> Any:
    """Return a series or a list as a table with one column."""
    libraries: dict[str, Callable[[Any, Any], Any]] = {
        "pandas": lambda module, column: column.to_frame() if isinstance(column, module.Series) else None,
        "polars": lambda module, column: column.to_frame() if isinstance(column, module.Series) else None,
        "pyarrow": lambda module, column: (
            module.table({"weight": column}) if isinstance(column, (module.Array, module.ChunkedArray)) else None
        ),
    }
    for library, framed in libraries.items():
        module = sys.modules.get(library)
        frame = None if module is None else framed(module, weights)
        if frame is not None:
            return frame
    if isinstance(weights, Sequence) and not isinstance(weights, (str, bytes, memoryview)):
        # Each weight becomes a row of its own, because numpy would refuse or convert the whole list because of a single
        # unusual weight.
        return [(weight,) for weight in weights]
    array = np.asanyarray(weights)
    if array.ndim != 1:
        raise ValueError(f"sample_weight must be one weight for each row, got an array with {array.ndim} dimensions")
    return array.reshape(-1, 1)
