"""The trace of a run as an entry of its audit record, and as rows of a table.

The entry has the queries as compressed JSON, because a run may make thousands of queries. Its hash covers the JSON and
not the compressed bytes, which differ between versions of zlib. The digest of the record covers only this hash. So
`data` may be removed to shorten a record without changing its digest.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dpmedian.recorded import View, as_view
from dpmedian.rendering.table import html_block, titled
from dpmedian.trace import Query, Trace

__all__ = ["TRACE_HEAD", "groups_trace_entry", "trace_entry", "trace_rows", "trace_view"]

# The largest number of released numbers and parameters in a record (about half a megabyte). `release.trace` has all
# numbers.
_NUMBERS_MAX = 20_000

# If a table would have more rows than this, only one row is printed for each stage.
_PRINTED = 24

TRACE_HEAD = ("stage", "queries", "statistic", "sigma", "rho", "released")
"""The columns of `trace_rows`."""


@as_view.register
def trace_view(trace: Trace) -> View:
    """Show a table of the queries, or of the stages if there are many queries."""
    rows = [_row([query]) for query in trace] if len(trace) <= _PRINTED else trace_rows(trace)
    if not rows:
        return View("Trace: no queries", "Trace: no queries")
    title = [f"Trace: {len(trace)} queries, rho = {trace.rho:.6g} spent"]
    table = titled(title, TRACE_HEAD, rows, [], yielding=(2, 5), numbers=(1,), aligned=True, framed=False)
    return View(table.text, html_block(table.html))


def trace_entry(trace: Trace | None) -> dict[str, Any] | None:
    """Return the trace entry of one run, or None if the run has no trace."""
    return None if trace is None else _entry(_Room().rows(trace)) | {"rho": trace.rho}


def groups_trace_entry(traces: Sequence[Trace | None]) -> dict[str, Any]:
    """Return the trace entry of groups, in which every query has the number of its group."""
    room = _Room()
    return _entry(
        {"group": place, **row} for place, trace in enumerate(traces) if trace is not None for row in room.rows(trace)
    )


def _entry(rows: Iterable[dict[str, Any]]) -> dict[str, Any]:
    listed = list(rows)
    text = json.dumps(listed, allow_nan=False, separators=(",", ":")).encode("ascii")
    return {
        "queries": len(listed),
        "sha256": hashlib.sha256(text).hexdigest(),
        "data": base64.b64encode(zlib.compress(text)).decode("ascii"),
    }


class _Room:
    """Counts how many more values fit into a record.

    An array that does not fit is left out. Later arrays that fit are included.
    """

    def __init__(self) -> None:
        self.left = _NUMBERS_MAX

    def rows(self, trace: Trace) -> Iterable[dict[str, Any]]:
        """Yield the queries of a trace as JSON."""
        for query in trace:
            content = vars(query) | {
                "parameters": {name: self.plain(value) for name, value in query.parameters.items()}
            }
            yield content | {"value": self.plain(query.value)}

    def plain(self, value: Any) -> Any:
        """Return an array as a list if it fits into the audit record.

        An infinite number becomes null, because JSON has no infinity.
        """
        if isinstance(value, (np.ndarray, list, tuple)):
            if len(value) > self.left:
                return None
            self.left -= len(value)
            return [self.plain(one) for one in np.asarray(value).tolist()]
        return None if isinstance(value, float) and not math.isfinite(value) else value


def trace_rows(queries: Sequence[Query]) -> list[tuple[str, ...]]:
    """Return one row for consecutive queries of the same stage."""
    found: list[list[Query]] = []
    for query in queries:
        if found and (found[-1][-1].stage, found[-1][-1].statistic) == (query.stage, query.statistic):
            found[-1].append(query)
        else:
            found.append([query])
    return [_row(together) for together in found]


def _row(queries: Sequence[Query]) -> tuple[str, ...]:
    """Return one row for several queries."""
    last = queries[-1]
    sigmas = sorted({float(f"{query.sigma:.3g}") for query in queries if query.sigma is not None})
    sigma = "" if not sigmas else f"{sigmas[0]:g}" if len(sigmas) == 1 else f"{sigmas[0]:g} to {sigmas[-1]:g}"
    rho = math.fsum(query.rho for query in queries)
    return last.stage, str(len(queries)), last.statistic or last.noise, sigma, f"{rho:.3g}", _released(last)


def _released(query: Query) -> str:
    if query.value is None:
        return "left out: too long"
    if query.value.size > 1:
        return f"{query.value.size} numbers"
    return f"{query.value[0]:.6g}" if query.value.size else "none"
