"""The audit record: a plan, a release or a failure as JSON, with everything that a reviewer needs to check the claim.

A record contains only public parameters and released values, so it may be published like the release. Its last entry is
the digest of all other entries. `verification/` reads a record and computes its claims again. `docs/record.schema.json`
describes the entries.
"""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np

from dpmedian._core import __version__
from dpmedian.accounting import Budget
from dpmedian.digests import sealed
from dpmedian.mechanisms.stage import Stage
from dpmedian.parameters import PublicParameters
from dpmedian.planning.plan import Plan
from dpmedian.profile import Profile
from dpmedian.recorded import as_record
from dpmedian.release import Release, ReleaseFailed
from dpmedian.rendering.cost import cost_dict, explained
from dpmedian.rendering.trace import trace_entry

__all__ = ["FORMAT", "failure_record", "plan_record", "release_record"]

FORMAT = "dpmedian-record/1"
"""The first entry of every record. The number in it is increased if the meaning of an entry changes."""


@as_record.register
def release_record(release: Release) -> dict[str, Any]:
    """Return the audit record of a release: its point, and the plan that was charged."""
    content = {
        "format": FORMAT,
        "outcome": "released",
        "date": release.date,
        "name": release.name,
        "version": release.version,
        "seeded": release.seeded,
        "point": _point(release),
        "columns": None if release.columns is None else list(release.columns),
        "scale": release.scale,
        "error_radius": release.error_radius,
        "size": release.size,
        "moments": None if release.moments is None else release.moments.to_dict(),
        "notes": list(release.notes),
        "trace": trace_entry(release.trace),
        **_planned(release.plan),
    }
    return sealed(content)


@as_record.register
def failure_record(failed: ReleaseFailed) -> dict[str, Any]:
    """Return the audit record of a failure, which is an output: the plan, the cost, and a message but no point."""
    if failed.plan is None:
        raise ValueError(
            "this failure has no audit record, because a building block has no plan; the cost of the failure is .cost"
        )
    content = {
        "format": FORMAT,
        "outcome": "failed",
        "date": failed.date,
        "name": failed.name,
        "version": failed.version,
        "seeded": failed.seeded,
        "message": failed.message,
        "size": failed.size,
        "trace": trace_entry(failed.trace),
        **_planned(failed.plan),
    }
    return sealed(content)


@as_record.register
def plan_record(plan: Plan) -> dict[str, Any]:
    """Return the audit record of a plan, which a ledger stores. The record does not depend on data."""
    return sealed({"format": FORMAT, "outcome": "planned", "version": __version__, **_planned(plan)})


def _planned(plan: Plan) -> dict[str, Any]:
    """Return the part of an audit record that was fixed before the data were read."""
    calibrated = plan.calibrated
    return {
        "method": plan.method,
        **_parameters(plan.parameters),
        "n": None if plan.parameters.private_size else plan.n,
        "guess": calibrated.guess,
        "unit": plan.cost.unit,
        "cost": cost_dict(plan.cost),
        "cap": None if calibrated.cap is None else calibrated.cap.to_dict(),
        "cost_explained": explained(plan.cost, calibrated.cap),
        "stages": [_stage(stage) for stage in plan.stages],
        "prediction": {name: _finite(value) for name, value in vars(plan.prediction).items()},
        "examples": [
            {"n": n, **{name: _finite(value) for name, value in vars(predicted).items()}}
            for n, predicted in calibrated.examples
        ],
        "region": calibrated.region,
        "reads": None if calibrated.reads is None else calibrated.reads._asdict(),
        "plan_notes": list(plan.notes),
        "reason": plan.reason or None,
    }


def _parameters(parameters: PublicParameters) -> dict[str, Any]:
    """Return all public parameters by name. `PublicParameters.of` accepts them."""
    names = [
        "budget",
        *(name for name in inspect.signature(PublicParameters.of).parameters if hasattr(parameters, name)),
    ]
    return {name: _plain(getattr(parameters, name)) for name in names}


def _plain(value: Any) -> Any:
    if isinstance(value, Budget):
        return value.to_dict()
    if isinstance(value, Profile):
        return value.name
    if isinstance(value, np.ndarray):
        return value.tolist()
    return list(value) if isinstance(value, tuple) else value


def _stage(stage: Stage) -> dict[str, Any]:
    """Return a stage as JSON. Its sigma is null if the noise is not Gaussian; `noise_parameters` describes other kinds
    of noise.
    """
    return {
        "name": stage.name,
        "statistic": stage.statistic,
        "arguments": {name: _plain(value) for name, value in stage.arguments.items()},
        "sensitivity": stage.sensitivity,
        "noise": stage.noise.kind,
        "sigma": stage.sigma,
        "scale": stage.noise.scale,
        "remark": stage.noise.remark or None,
        "noise_parameters": {name: _plain(value) for name, value in stage.noise.parameters.items()},
        "coordinates": stage.coordinates,
        "releases": stage.releases,
        "times": stage.times,
        "rule": stage.rule or None,
        "capped": stage.capped,
        "rho": stage.cost.rho,
        "cost": stage.cost.to_dict(),
    }


def _point(release: Release) -> list[float] | dict[str, float]:
    """Return the point as a mapping by column name if all columns have different names, and otherwise as a list."""
    point: list[float] = release.point.tolist()
    if release.columns is None or len(set(release.columns)) < len(point):
        return point
    return dict(zip(release.columns, point, strict=True))


def _finite(value: float | None) -> float | None:
    """Return a finite number unchanged, and None for other numbers, because JSON has no infinity. A missing prediction
    is null in JSON.
    """
    return value if value is None or math.isfinite(value) else None
