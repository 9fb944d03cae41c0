"""Verification of the trace of an audit record. The trace is read, and its cost is computed again.

A plan states the largest cost of a run, and the trace lists each query of the run. The sensitivity of every query is
computed again from its statistic, the cost of the query from its noise, and then the sum of all costs. If a run spent
more than its record claims, this finds it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from dpmedian.accounting import Neighbours
from dpmedian.mechanisms.stage import Stage
from dpmedian.parameters import PRIVATE_RECORDS_MAX
from dpmedian.planning.plan import Plan
from dpmedian.trace import Query, Trace, rho_of
from dpmedian.verification.stages import LEAST_SIGMA, MOST_SIGMA, bound_of

__all__ = ["trace_of_record", "traces_of_groups", "wrong_sum", "wrong_with_trace"]

# The largest size of a trace in bytes. A record stores at most 20,000 numbers, and a query without numbers has about a
# hundred bytes.
_BYTES_MAX = 2**26

# The relative tolerance of comparisons. sigma is rounded to an integer of at least 2^30 units, and the last digits of a
# sum of costs depend on the order of addition.
_ROUNDING = 1e-8

# The largest number of wrong queries that are named.
_NAMED = 3

# For each name of a kind of noise in a trace, the name of this kind in a plan.
_KINDS = {
    "Gaussian": "Gaussian",
    "choice": "exponential mechanism",
    "draw": "lattice draw",
    "above threshold": "Laplace",
}


def trace_of_record(record: Mapping[str, Any]) -> Trace | None:
    """Return the trace of a record, or None if the record has no trace."""
    rows = _rows(record)
    return None if rows is None else Trace([_query(row) for row in rows])


def traces_of_groups(record: Mapping[str, Any], groups: int) -> list[Trace] | None:
    """Return the trace of every group of a record, or None if the record has no trace."""
    rows = _rows(record)
    if rows is None:
        return None
    found: list[list[Query]] = [[] for _ in range(groups)]
    for row in rows:
        if type(row.get("group")) is not int or not 0 <= row["group"] < groups:
            raise ValueError(f"a query of the trace is of the group {row.get('group')!r}, but there are {groups}")
        found[row["group"]].append(_query(row))
    return [Trace(queries) for queries in found]


def _rows(record: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    entry = record.get("trace")  # Records of earlier versions have no trace.
    if entry is None or "data" not in entry:
        return None
    try:
        unpacked = zlib.decompressobj()
        text = unpacked.decompress(base64.b64decode(entry["data"], validate=True), _BYTES_MAX)
        if not unpacked.eof or hashlib.sha256(text).hexdigest() != entry["sha256"]:
            raise ValueError("its content does not have the stated sha256")
        rows = json.loads(text)
        if not (isinstance(rows, list) and len(rows) == entry["queries"]):
            raise ValueError(f"it does not have the {entry['queries']} queries that are stated")
    except (ValueError, TypeError, binascii.Error, zlib.error, RecursionError) as error:
        raise ValueError(f"the trace cannot be read: {error}") from None
    return rows


def _query(row: Mapping[str, Any]) -> Query:
    """Return a query of the run. Values that did not fit into the record are None."""
    try:
        for name in ("sensitivity", "rho", *(() if row["sigma"] is None else ("sigma",))):
            if type(row[name]) is not float or not 0.0 <= row[name] < math.inf:
                raise ValueError(f"{name} must be a number of at least 0, got {row[name]!r}")
        given = {name: _array_of_floats(value) for name, value in row["parameters"].items()}
        value = None if row["value"] is None else np.array(row["value"], dtype=np.float64)
        if value is not None and value.ndim != 1:
            raise ValueError("a value must be a list of numbers")
        stated = {name: row[name] for name in ("stage", "noise", "sensitivity", "sigma", "rho", "statistic")}
        return Query(**stated, value=value, parameters=given)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ValueError(f"a query of the trace cannot be read: {type(error).__name__}: {error}") from None


def _array_of_floats(value: Any) -> Any:
    """Return the value of a parameter. A list that contains a floating-point number was an array."""
    floats = isinstance(value, list) and any(isinstance(entry, float) for entry in value)
    return np.array(value, dtype=np.float64) if floats else value


def wrong_with_trace(trace: Trace, plan: Plan, size: int | None) -> Iterator[str]:
    """Yield the errors of a trace, in words. There are none if a run of this plan can have made the trace without
    exceeding its budget.
    """
    stages = {stage.name: stage for stage in plan.stages}
    wrong = [
        f"query {index} ({query.stage}): {text}"
        for index, query in enumerate(trace)
        for text in _wrong(query, stages.get(query.stage), plan, size)
    ]
    yield from islice(wrong, _NAMED)
    if len(wrong) > _NAMED:
        yield f"{len(wrong) - _NAMED} more things are wrong with the queries"
    for stage in plan.stages:
        own = [query for query in trace if query.stage == stage.name]
        if len(own) > stage.releases:
            yield f"stage {stage.name!r} has {len(own)} queries, but {stage.releases} were planned"
        yield from _exceeds(f"stage {stage.name!r}", math.fsum(query.rho for query in own), stage.cost.rho)
    cap = plan.calibrated.cap
    capped = [query for query in trace if query.stage in stages and stages[query.stage].capped]
    if cap is not None:
        yield from _exceeds("the capped stages together", math.fsum(query.rho for query in capped), cap.rho)
    yield from _exceeds("the run", trace.rho, plan.cost.rho)


def wrong_sum(record: Mapping[str, Any], trace: Trace) -> Iterator[str]:
    """Yield an error if the sum that the record states for its trace is wrong."""
    if record["trace"]["rho"] != trace.rho:
        yield (
            f"the spent rho is stated as {record['trace']['rho']!r}, but computed from the queries it is {trace.rho!r}"
        )


def _exceeds(what: str, spent: float, most: float) -> Iterator[str]:
    if not spent <= most * (1.0 + _ROUNDING):
        yield f"{what} spent rho = {spent!r}, but at most {most!r} was planned"


def _wrong(query: Query, stage: Stage | None, plan: Plan, size: int | None) -> Iterator[str]:
    if stage is None:
        yield "the plan has no such stage"
        return
    if _KINDS.get(query.noise) != stage.noise.kind or (query.noise == "Gaussian") != (query.sigma is not None):
        yield f"its noise is {query.noise!r}, but the noise of its stage is {stage.noise.kind!r}"
        return
    if query.value is not None and query.value.size > stage.coordinates and query.noise == "Gaussian":
        yield f"it released {query.value.size} numbers, but the stage has {stage.coordinates}"
    try:
        if not math.isclose(query.rho, computed := _rho(query), rel_tol=1e-13):
            yield f"its rho is stated as {query.rho!r}, but computed from its noise it is {computed!r}"
        if query.noise == "Gaussian":
            yield from _gaussian(query, stage, plan.parameters.neighbours)
        else:
            yield from _exceeds("it", query.rho, stage.cost.rho)
    except (KeyError, TypeError, ValueError, OverflowError, ZeroDivisionError) as error:
        yield f"it cannot be computed again: {type(error).__name__}: {error}"
        return
    if query.statistic == "size" and query.value is not None and size is not None:
        seen = min(max(round(float(query.value[0])), 0), PRIVATE_RECORDS_MAX)
        if seen != size:
            yield f"it released the size {seen}, but the record states the size {size}"


def _rho(query: Query) -> float:
    return rho_of(query.noise, query.sensitivity, query.sigma, query.parameters)


def _gaussian(query: Query, stage: Stage, neighbours: Neighbours) -> Iterator[str]:
    """Check that the statistic has the stated sensitivity on the lattice of the query, and that the plan allows the
    noise.
    """
    sigma = float(query.sigma or 0.0)
    least = stage.noise.scale / stage.sensitivity
    if stage.noise.remark != "at most" and not sigma / query.sensitivity >= least * (1.0 - _ROUNDING):
        yield f"its sigma is {sigma / query.sensitivity!r} times its sensitivity, but at least {least!r} was planned"
    if "at" not in stage.noise.remark and sigma != stage.noise.scale:
        yield f"its sigma is {sigma!r}, but {stage.noise.scale!r} was planned"
    if query.statistic is None:  # The trace was too long to store the parameters.
        return
    if query.statistic != stage.statistic and (query.statistic, stage.statistic) != ("mean shift", "gradient"):
        yield f"its statistic is {query.statistic!r}, but the statistic of its stage is {stage.statistic!r}"
        return
    bits = query.parameters["bits"]
    chosen = {name: query.parameters[name] for name in ("weight",) if name in stage.arguments}
    lattice = bound_of(query.statistic, {**stage.arguments, **chosen, "bits": bits}, neighbours)
    if query.sensitivity != math.ldexp(lattice, -bits):
        yield f"its sensitivity is stated as {query.sensitivity!r}, but it is {math.ldexp(lattice, -bits)!r}"
    units = math.ldexp(sigma, bits)
    if units != math.floor(units) or not LEAST_SIGMA <= units <= MOST_SIGMA:
        yield f"its sigma is {units!r} units of 2^-{bits}: it must be a whole number between 2^30 and 2^50"
    if query.value is not None and not _whole(query.value, bits):
        yield f"a released number is not a multiple of 2^-{bits}"


def _whole(values: Sequence[float] | np.ndarray[Any, Any], bits: int) -> bool:
    units = np.ldexp(np.asarray(values, dtype=np.float64), bits)
    return bool(np.isfinite(units).all() and (units == np.floor(units)).all())
