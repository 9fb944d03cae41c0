"""NPY and NPZ files. Pickles inside them are never loaded."""

from __future__ import annotations

import math
import os
import sys
import tokenize
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, BinaryIO

import numpy as np

from dpmedian.sources.cells import Intake, from_array
from dpmedian.sources.columns import divide, labels, numbered
from dpmedian.sources.labels import as_labels
from dpmedian.sources.records import Records

__all__ = ["read_array", "require_size"]


# The largest ratio of output to input of deflate (RFC 1951): two bits of input give at most 258 bytes of output.
_DEFLATE_RATIO = 1032


def read_array(
    source: BinaryIO,
    kind: str,
    name: str | None,
    wanted: Sequence[str | int] | None,
    intake: Intake,
    label_columns: Sequence[str | int] = (),
) -> Records:
    """Read the wanted columns of an array of shape (n, d), and the label columns."""
    if kind == "npy":
        require_size(source, source.seek(0, os.SEEK_END))
        source.seek(0)
    loaded: Any = np.load(source, allow_pickle=False)
    if kind == "npz":
        if not isinstance(loaded, np.lib.npyio.NpzFile):
            raise ValueError("this is not an NPZ file but a single array; its format is npy")
        with loaded as arrays:
            if name is None and len(arrays.files) != 1:
                raise ValueError(f"it holds the arrays {arrays.files}: choose one, name=... (--array)")
            if name is not None and name not in arrays.files:
                raise ValueError(f"it has no array {name!r}, only {arrays.files}")
            chosen = name or arrays.files[0]
            _require_member_size(arrays, chosen)
            loaded = arrays[chosen]
    elif isinstance(loaded, np.lib.npyio.NpzFile):
        raise ValueError("this is not an NPY file but an archive of arrays; its format is npz")
    points = from_array(loaded, intake)
    names = numbered(points.shape[1])
    places, others = divide(names, wanted, label_columns)
    # Ids are read from the array before its conversion to doubles, because different integers or long doubles may
    # become the same double.
    exact = loaded if loaded.dtype.kind in "iuf" else points
    found = {
        str(column): replace(as_labels(exact[:, i], str(column)), name=str(column))
        for column, i in zip(label_columns, others, strict=True)
    }
    if places != list(range(points.shape[1])):
        points = np.ascontiguousarray(points[:, places])
    return Records(points, labels(names, places), labels=found)


def require_size(stream: BinaryIO, size: int) -> None:
    """Raise an error if the header of an NPY file states more numbers than the size of the file allows."""
    stream.seek(0)
    try:
        version = np.lib.format.read_magic(stream)
    except ValueError:
        return  # This is not an NPY file. The next read raises an error.
    found = header_of(stream, version)
    if found is None:
        raise ValueError(f"NPY version {version} is for arrays with named fields; save an array of numbers")
    shape, _, dtype = found
    if dtype.hasobject:
        return  # This array contains pickled objects, which numpy refuses to load.
    # Every length must be a valid index, even if the array is empty, as with the shape (0, 2**70).
    needed = math.prod(shape) * max(dtype.itemsize, 1)
    if not all(0 <= length <= sys.maxsize for length in shape) or needed > size - stream.tell():
        raise ValueError(f"its header states the shape {shape}, but the file has only {size} bytes and may be damaged")


def header_of(stream: BinaryIO, version: tuple[int, int]) -> tuple[tuple[int, ...], bool, np.dtype[Any]] | None:
    """Return the shape, the order and the type that the header of an NPY file states.

    The result is None if the format version is for arrays with named fields.
    """
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        return None
    try:
        shape, fortran, dtype = readers[version](stream)
    except (SyntaxError, tokenize.TokenError, TypeError, RecursionError, MemoryError) as error:
        # numpy parses a header as Python code, which may raise errors other than ValueError.
        raise ValueError(f"its header is not a valid NPY header: {type(error).__name__}") from None
    return shape, fortran, dtype


def _require_member_size(arrays: Any, name: str) -> None:
    members = {member.filename: member for member in arrays.zip.infolist()}
    member = members.get(f"{name}.npy", members.get(name))
    if member is None:
        return
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError("its arrays must be stored or deflated, as numpy.savez and numpy.savez_compressed do")
    # The archive states the size of a member. A true size is at most the compressed size times the largest ratio.
    if member.file_size > _DEFLATE_RATIO * max(member.compress_size, 1):
        raise ValueError(
            f"its array {name!r} is said to have {member.file_size} bytes, more than its compressed bytes can hold; "
            "the file may be damaged"
        )
    with arrays.zip.open(member) as stream:
        require_size(stream, member.file_size)
