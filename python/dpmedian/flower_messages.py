"""Conversion of Flower's messages and models to vectors, and back. The strategy is in `flower.py`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from dpmedian.sources.arriving import Parts, layers_of
from dpmedian.sources.weights import WHOLE_WEIGHT

try:
    from flwr.app import Array, ArrayRecord, Message
except ImportError as error:
    raise ImportError("dpmedian.flower needs Flower 1.22 or newer: pip install 'dpmedian[flower]'") from error

__all__ = ["arriving", "flat", "floating", "layers", "measured", "moved", "updates"]

Vector = NDArray[np.float32] | NDArray[np.float64]

# The number of coordinates of a record that are converted to doubles together.
_CHUNK = 1 << 16


def layers(message: Message, model: ArrayRecord) -> Parts | None:
    """Return the floating-point arrays of a reply in the order of the model, or None if names or shapes differ from the
    model.
    """
    try:
        if message.has_error():
            return None
        (record,) = message.content.array_records.values()
        if set(record) != set(model):
            return None
        arrays = {key: record[key].numpy() for key in model}
        if any(arrays[key].shape != tuple(array.shape) for key, array in model.items()):  # without reading the model
            return None
        if any(arrays[key].dtype.kind not in "fiu" for key in model):
            return None
        return [layer for key in model if floating(model[key]) for layer in layers_of(arrays[key])]
    except Exception:  # A client may send anything, so an error in its message must concern this client alone.
        return None


def floating(array: Array) -> bool:
    return np.dtype(array.dtype).kind == "f"


def arriving(replies: Iterable[Message], model: ArrayRecord, nodes: list[int]) -> Iterator[tuple[Parts | None, int]]:
    """Yield the layers of each client of the round, from its first reply with the names and shapes of the model."""
    waiting = set(nodes)
    for message in replies:
        node = message.metadata.src_node_id
        sent = layers(message, model) if node in waiting else None
        if sent is not None:
            waiting.discard(node)
            yield sent, WHOLE_WEIGHT


def measured(
    records: Iterable[tuple[Parts | None, int]],
    center: NDArray[np.float64],
    lengths: list[float],
    shortening: Callable[[float], float] | None,
) -> Iterator[tuple[Parts | None, int]]:
    """Yield the records one by one, each moved toward the center by a factor that depends on its own length only.

    `shortening` returns the factor for a length. If it is None, no record is moved. The distance of each record from
    the center, before it is moved, is appended to `lengths`.
    """
    for parts, weight in records:
        squares = 0.0
        with np.errstate(all="ignore"):
            for values, middle in _chunks(parts or (), center):
                difference = values - middle
                squares += float(difference @ difference)
        lengths.append(math.sqrt(squares) if squares >= 0.0 else math.nan)
        factor = 1.0 if shortening is None else shortening(lengths[-1])
        yield parts if parts is None or factor == 1.0 else _shortened(parts, center, factor), weight


def _shortened(parts: Parts, center: NDArray[np.float64], factor: float) -> Parts:
    """A record whose differences from the center are multiplied by a factor. Values that are not finite stay so."""
    result = [part.copy() for part in parts]
    with np.errstate(all="ignore"):
        for values, middle in _chunks(result, center):
            values[:] = middle + factor * (values - middle)
    return result


def _chunks(parts: Iterable[Vector], center: NDArray[np.float64]) -> Iterator[tuple[Vector, NDArray[np.float64]]]:
    """Views of the parts of a record, and the coordinates of the center that belong to them."""
    at = 0
    for part in parts:
        for start in range(0, part.size, _CHUNK):
            values = part[start : start + _CHUNK]
            yield values, center[at : at + values.size]
            at += values.size


def updates(
    replies: Iterable[Message], model: ArrayRecord, start: NDArray[np.float64], nodes: list[int], *, only_there: bool
) -> NDArray[np.float64]:
    """Return one row for each client: its update, taken from its first reply only.

    A client without a valid reply has no row, or a row of zeros.
    """
    rows: dict[int, NDArray[np.float64]] = {}
    chosen = set(nodes)
    for message in replies:
        node = message.metadata.src_node_id
        parts = None if node in rows or node not in chosen else layers(message, model)
        if parts is None:
            continue
        with np.errstate(all="ignore"):
            update = np.concatenate(parts, dtype=np.float64) - start
        if np.all(np.isfinite(update)):
            rows[node] = update
    if only_there:
        return np.array([rows[node] for node in sorted(rows)]).reshape(len(rows), start.size)
    zero = np.zeros_like(start)
    return np.array([rows.get(node, zero) for node in nodes])


def flat(arrays: ArrayRecord) -> NDArray[np.float64]:
    """Return all floating-point arrays as one vector. Other arrays, such as counters, are left out."""
    parts = [np.asarray(array.numpy(), dtype=np.float64).ravel() for array in arrays.values() if floating(array)]
    if not parts:
        raise ValueError("the model has no array of floating-point numbers")
    return np.concatenate(parts)


def moved(model: ArrayRecord, step: NDArray[np.float64]) -> ArrayRecord:
    """Return the model after a step. The vector `step` is added to the floating-point arrays, which keep their shapes
    and types.
    """
    result, at = ArrayRecord(), 0
    for key, array in model.items():
        value = array.numpy()
        if floating(array):
            part = step[at : at + value.size].reshape(value.shape)
            result[key] = Array(np.asarray(value + part, dtype=value.dtype))
            at += value.size
        else:
            result[key] = array
    return result
