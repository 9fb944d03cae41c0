"""NPY and NPZ files. Pickles inside of them are never loaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, BinaryIO

import numpy as np

from dpmedian.files.columns import divide, labels, numbered
from dpmedian.sources.labels import as_labels
from dpmedian.sources.records import Intake, Records, from_array

__all__ = ["read_array"]


def read_array(
    source: BinaryIO,
    kind: str,
    name: str | None,
    wanted: Sequence[str | int] | None,
    intake: Intake,
    beside: Sequence[str | int] = (),
) -> Records:
    """The wanted columns of an array of shape (n, d), and the labels beside them."""
    loaded: Any = np.load(source, allow_pickle=False)
    if kind == "npz":
        if not isinstance(loaded, np.lib.npyio.NpzFile):
            raise ValueError("this is no NPZ file but a single array; its format is npy")
        with loaded as arrays:
            if name is None and len(arrays.files) != 1:
                raise ValueError(f"it holds the arrays {arrays.files}: choose one, name=... (--array)")
            if name is not None and name not in arrays.files:
                raise ValueError(f"it holds no array {name!r}, only {arrays.files}")
            loaded = arrays[name or arrays.files[0]]
    elif isinstance(loaded, np.lib.npyio.NpzFile):
        raise ValueError("this is no NPY file but an archive of arrays; its format is npz")
    points = from_array(loaded, intake)
    names = numbered(points.shape[1])
    places, others = divide(names, wanted, beside)
    found = {
        str(column): replace(as_labels(points[:, i], str(column)), name=str(column))
        for column, i in zip(beside, others, strict=True)
    }
    if places != list(range(points.shape[1])):
        points = np.ascontiguousarray(points[:, places])
    return Records(points, labels(names, places), labels=found)
