"""The trace of a run: every noisy release with its query, its noise, its cost and its answer.

A trace contains public parameters and released values only, so it costs nothing, and everybody who may see a release
may see its trace. For AboveThreshold it contains the released index and not the compared values. For a choice it
contains the index. Hidden samples do not appear.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from dpmedian.accounting.concentrated import pure_rho, range_rho
from dpmedian.recorded import Shown
from dpmedian.statistics import FIRST_QUARTER_OCTAVE
from dpmedian.tape import Tape

__all__ = ["Query", "Trace", "rho_of", "trace_of"]


@dataclass(frozen=True, eq=False)
class Query:
    """One noisy release of a run.

    `stage` is the name of the stage in the plan. `statistic` is the name of the statistic, and `parameters` are its
    public parameters. For Gaussian noise, which is a multiple of 2^-bits, they include `bits`. For other noise they
    include `eta` or `epsilon`. `noise` is "Gaussian", "choice", "draw" or "above threshold". `sensitivity` and `sigma`,
    the standard deviation of the noise, are in the units of `value`. sigma is None if the noise is not Gaussian. `rho`
    is the cost. `value` is the released value: noisy numbers, the index of a choice, or None if the trace became too
    long to store the value.
    """

    stage: str
    noise: str
    sensitivity: float
    sigma: float | None
    rho: float
    value: NDArray[np.floating[Any]] | None
    statistic: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        noise = self.noise if self.sigma is None else f"{self.noise}, sigma = {self.sigma:.4g}"
        value = "not kept" if self.value is None else np.array2string(self.value, precision=6, threshold=8, edgeitems=3)
        what = "" if self.statistic is None else f" ({self.statistic})"
        return f"Query {self.stage}{what}: {noise}, rho = {self.rho:.4g}, released {value}"


class Trace(Shown, Sequence[Query]):
    """All noisy releases of a run, in order. `print(trace)` shows a table."""

    def __init__(self, queries: Sequence[Query]) -> None:
        self._queries = tuple(queries)

    @overload
    def __getitem__(self, index: int) -> Query: ...
    @overload
    def __getitem__(self, index: slice) -> Trace: ...
    def __getitem__(self, index: int | slice) -> Query | Trace:
        return Trace(self._queries[index]) if isinstance(index, slice) else self._queries[index]

    def __iter__(self) -> Iterator[Query]:
        return iter(self._queries)

    def __len__(self) -> int:
        return len(self._queries)

    @property
    def rho(self) -> float:
        """The rho that the queries spent. The cost of a run is its cap, which may be larger."""
        return math.fsum(query.rho for query in self)

    def to_frame(self) -> Any:
        """One row for each query as a pandas data frame (needs pandas)."""
        try:
            import pandas as pd  # type: ignore[import-untyped, unused-ignore]
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install pandas") from error
        return pd.DataFrame([vars(query) for query in self])


def trace_of(tape: Tape) -> Trace:
    """Return all releases of a tape so far."""
    return Trace([_query(*row) for row in tape.trace()])


def _query(
    stage: str,
    noise: str,
    sensitivity: float,
    scale: float,
    query: tuple[str, dict[str, Any], int | None] | None,
    answer: NDArray[np.int64] | None,
) -> Query:
    statistic, parameters, unit = (None, {}, 1.0) if query is None else (query[0], _parameters(*query), 1.0)
    bits = parameters.pop("bits", 0)
    if query is not None and noise == "Gaussian":
        unit = math.ldexp(1.0, -bits)
        parameters["bits"] = bits
    elif noise in ("choice", "draw"):
        # Two scores of a draw may move in opposite directions.
        parameters["eta"] = sensitivity / scale if noise == "choice" else 2.0 * sensitivity / scale
    elif noise == "above threshold":
        parameters["epsilon"] = sensitivity / scale
    return Query(
        stage,
        noise,
        sensitivity * unit,
        scale * unit if noise == "Gaussian" else None,
        rho_of(noise, sensitivity, scale, parameters),
        None if answer is None else answer * unit,
        statistic,
        parameters,
    )


def rho_of(noise: str, sensitivity: float, sigma: float | None, parameters: Mapping[str, Any]) -> float:
    """Return the cost of a query, from its sensitivity and its noise."""
    if noise == "Gaussian":
        ratio = sensitivity / float(sigma or 0.0)
        return 0.5 * ratio * ratio
    return pure_rho(parameters["epsilon"]) if noise == "above threshold" else range_rho(parameters["eta"])


def _parameters(statistic: str, parameters: dict[str, Any], entry: int | None) -> dict[str, Any]:
    """The public parameters of a query, including the entry that was picked from its answer."""
    if entry is None:
        return parameters
    if statistic == "distance counts":
        return parameters | {"radius": 2.0 ** ((entry + FIRST_QUARTER_OCTAVE) / 4)}
    return parameters | {"entry": entry}
