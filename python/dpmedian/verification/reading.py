"""Functions that read an audit record (in this module: a record) and return the release, the failure or the plan that
it describes.

They check the form of the record. An entry that is missing, or has a type that cannot be read, is a `ValueError`, which
names the entry if possible. `verify` checks the content.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, NoReturn, TypeVar

import numpy as np

from dpmedian.accounting import Budget, PrivacyCost
from dpmedian.accounting.protection import relation_of
from dpmedian.digests import parse_object
from dpmedian.inference import Moments
from dpmedian.mechanisms.stage import Noise, Stage
from dpmedian.methods.contract import CalibratedMethod, Prediction, Reads
from dpmedian.parameters import PublicParameters
from dpmedian.places import Places
from dpmedian.planning.plan import Plan
from dpmedian.recorded import release_from
from dpmedian.release import ClusterResult, MethodResult, Release, ReleaseFailed, StepResult
from dpmedian.rendering.record import FORMAT
from dpmedian.sources.protocol import Source
from dpmedian.step import Step
from dpmedian.tape import Tape
from dpmedian.verification.trace import trace_of_record

__all__ = ["cost_of", "parameters_of", "parsed", "plan_of", "read", "release_of"]

Value = TypeVar("Value")

# The largest value of the entries `releases`, `times` and `coordinates` of a stage. The Rust core counts with 64-bit
# integers.
_MOST = 2**62

# The largest number of stages. No method has so many stages, so a record with more stages is refused at once.
_MOST_STAGES = 10_000

_OUTCOMES = ("planned", "released", "failed")


def _entry(name: str) -> Any:
    """Return a property whose value is an entry of a record."""
    return property(lambda method: method.contents[name])


@dataclass(frozen=True, eq=False)
class Recorded(CalibratedMethod):
    """A calibrated method as a record describes it."""

    contents: Mapping[str, Any]

    stages, cost, cap = _entry("stages"), _entry("cost"), _entry("cap")
    notes, guess, examples = _entry("notes"), _entry("guess"), _entry("examples")
    reads, region = _entry("reads"), _entry("region")

    @property
    def passes(self) -> float:
        return 0.0

    def predict(self, core_radius: float | None = None) -> Prediction:
        prediction: Prediction = self.contents["prediction"]
        return prediction

    def run(self, source: Source, tape: Tape) -> MethodResult:
        _refuse()


@dataclass(frozen=True, eq=False, repr=False)
class RecordedPlan(Plan):
    """A plan that was read from a record. It cannot run."""

    def run(self, points: Any, **options: Any) -> Release:
        """Raise an error, because this plan cannot run."""
        _refuse()


def _refuse() -> NoReturn:
    raise ValueError("this plan was read from a record and cannot run: make one with dpmedian.plan(...)")


def parsed(text: str) -> dict[str, Any]:
    """Return the JSON object of a record, or raise a ValueError that explains what is wrong with the text."""
    if not isinstance(text, (str, bytes, bytearray)):
        raise TypeError(f"a record must be text, as to_json() returns it, got {type(text).__name__}")
    record = parse_object(text, "this is no audit record")
    if "format" not in record:
        raise ValueError("this is no audit record: it must be a JSON object with the entry 'format'")
    if str(record["format"]).startswith("dpmedian ledger"):
        raise ValueError("this is a ledger and not an audit record: pass what dpmedian release printed")
    if record["format"] != FORMAT:
        raise ValueError(
            f"this is a record of the format {record['format']!r}, but this version of dpmedian reads {FORMAT!r}"
        )
    if record.get("outcome") not in _OUTCOMES:
        raise ValueError(f"the record's outcome must be one of {_OUTCOMES}, got {record.get('outcome')!r}")
    return record


def read(record: Mapping[str, Any]) -> Plan | Release | ReleaseFailed:
    """Return the object that a parsed record describes: a plan, a release or a failure, as the outcome of the record
    says.
    """
    if "plans" in record:
        raise ValueError(
            "this is the audit record of groups: dpmedian.verify(record) checks it, and its 'groups' are the results"
        )
    try:
        plan = plan_of(record)
        if record["outcome"] == "planned":
            return plan
        shared: dict[str, Any] = {
            "name": None if record["name"] is None else _of("name", str, record),
            "size": None if record["size"] is None else _of("size", int, record),
            "seeded": _of("seeded", bool, record),
            "date": _of("date", str, record),
            "version": _of("version", str, record),
            "trace": trace_of_record(record),
        }
        cost = plan.calibrated.cost
        if record["outcome"] == "failed":
            return ReleaseFailed(_of("message", str, record), cost, plan=plan, **shared)
        columns, point = record["columns"], record["point"]
        if point is None:
            _of("point_sha256", str, record)
            point = []
        if isinstance(point, dict):
            if columns is None or list(point) != columns:
                raise ValueError("point and columns name different coordinates")
            point = list(point.values())
        release = Release(
            point=np.array([_number("point", value) for value in point]),
            scale=record["scale"],
            error_radius=record["error_radius"],
            cost=cost,
            method=plan.method,
            n=record["n"],
            plan=plan,
            notes=tuple(record["notes"]),
            moments=None if record["moments"] is None else Moments.from_dict(record["moments"]),
            columns=None if columns is None else tuple(columns),
            **shared,
        )
        if plan.parameters.threshold is not None:
            return _step(release, record)
        return release if plan.parameters.clusters is None else _places(release, record)
    except KeyError as missing:
        raise ValueError(f"the record has no entry {missing}") from None
    except (TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"the record cannot be read: {error}") from None


def _places(release: Release, record: Mapping[str, Any]) -> Places:
    """Return a release of k-medians with its clusters."""
    clusters: dict[str, Any] = {
        name: np.array([_number(name, value) for value in record[name]]) for name in ("sizes", "radii")
    }
    centers = np.array([[_number("centers", value) for value in center] for center in record["centers"]])
    k = release.plan.parameters.clusters
    if centers.shape != (k, release.point.size) or any(values.shape != (k,) for values in clusters.values()):
        raise ValueError(
            f"the record must have {k} centers with as many coordinates as the point, {k} sizes and {k} radii"
        )
    if centers[0].tolist() != release.point.tolist():
        raise ValueError("the point must be the first center")
    sigma = _number("size_sigma", record["size_sigma"])
    return Places.of(release, ClusterResult(release.point, centers=centers, size_sigma=sigma, **clusters))


def _step(release: Release, record: Mapping[str, Any]) -> Step:
    """Return a robust step with its coherence and interval."""
    low, high = (_number("coherence_interval", value) for value in record["coherence_interval"])
    result = StepResult(
        release.point,
        coherence=_number("coherence", record["coherence"]),
        coherence_interval=(low, high),
        noise_std=_number("noise_std", record["noise_std"]),
    )
    return Step.of(release, result)


@release_from.register(object)
def release_of(text: Any) -> Release:
    """Return the release that the text of a record describes."""
    found = read(parsed(text))
    if isinstance(found, Step) and found.point.size == 0:
        raise ValueError(
            "this record has only the digest of a large step, and not the step itself, so the release cannot be read "
            "from it; dpmedian verify and dpmedian report accept it"
        )
    if isinstance(found, Release):
        return found
    what = "a failure, which has no point" if isinstance(found, ReleaseFailed) else "a plan: nothing was released"
    raise ValueError(f"this is the record of {what}")


def plan_of(record: Mapping[str, Any]) -> RecordedPlan:
    """Return the plan of a record of one release, with any outcome."""
    parameters = parameters_of(record)
    _number("rho", record["cost"]["rho"])
    if len(record["stages"]) > _MOST_STAGES:
        raise ValueError(f"a record has at most {_MOST_STAGES} stages, got {len(record['stages'])}")
    if record.get("size") is not None:
        parameters = parameters.at_size(record["size"])
    contents = {
        "stages": tuple(_named(stage) for stage in record["stages"]),
        "cost": cost_of(record["cost"]),
        "prediction": Prediction(**record["prediction"]),
        "notes": tuple(record["plan_notes"]),
        "reads": None if record["reads"] is None else Reads(**record["reads"]),
        "cap": None if record["cap"] is None else cost_of(record["cap"]),
        "guess": record["guess"],
        "examples": tuple(_example(**example) for example in record["examples"]),
        "region": record["region"],
    }
    return RecordedPlan(parameters, _of("method", str, record), Recorded(contents), record["reason"] or "")


_ADDED = {"scales", "lone_delta", "clusters", "trim", "axes", "threshold"}


def parameters_of(record: Mapping[str, Any]) -> PublicParameters:
    """Return the public parameters of a record. If the number of data records or the sum of weights is private, n is
    the caller's public guess, the entry `guess`.
    """
    names = {field.name for field in fields(PublicParameters)} - {"n", "budget", "size_noise"}
    private = not relation_of(record["neighbours"]).size_is_public or record["weight_max"] is not None
    size = record["guess"] if private else record["n"]
    # Records of 0.1.0 and 0.2.0 lack the parameters that 1.0.0 has added.
    there = sorted(name for name in names if name in record or name not in _ADDED)
    budget = Budget.of(**record["budget"])
    given = {name: getattr(budget, name) for name in ("epsilon", "delta", "rho")}
    return PublicParameters.of(size, **{name: record[name] for name in there}, **given)


def _example(n: int, **predicted: Any) -> tuple[int, Prediction]:
    return n, Prediction(**predicted)


def cost_of(stored: Mapping[str, Any]) -> PrivacyCost:
    """Return the cost in a record. The stated rho is ignored, because rho is computed from the other parts."""
    return PrivacyCost.from_dict({name: value for name, value in stored.items() if name != "rho"})


def _named(stored: Mapping[str, Any]) -> Stage:
    """Return a stage, or raise an error that names the stage."""
    try:
        return _stage(stored)
    except ValueError as error:
        raise ValueError(f"stage {stored['name']!r}: {error}") from None


def _stage(stored: Mapping[str, Any]) -> Stage:
    _number("rho", stored["rho"])
    return Stage(
        _of("name", str, stored),
        _of("statistic", str, stored),
        _number("sensitivity", stored["sensitivity"]),
        Noise(
            _of("noise", str, stored),
            _number("scale", stored["scale"]),
            "" if stored["remark"] is None else _of("remark", str, stored),
            _of("noise_parameters", dict, stored),
        ),
        _count("releases", stored),
        cost_of(stored["cost"]),
        rule="" if stored["rule"] is None else _of("rule", str, stored),
        capped=_of("capped", bool, stored),
        times=_count("times", stored),
        coordinates=_count("coordinates", stored),
        arguments=_of("arguments", dict, stored),
    )


def _of(name: str, kind: type[Value], stored: Mapping[str, Any]) -> Value:
    """Return an entry after a check of its type. The JSON value true is not a number, although Python's True is a
    number.
    """
    value = stored[name]
    if type(value) is not kind:
        raise ValueError(f"{name} must be of the kind {kind.__name__}, got {value!r}")
    return value


def _count(name: str, stored: Mapping[str, Any]) -> int:
    value = _of(name, int, stored)
    if not 1 <= value <= _MOST:
        raise ValueError(f"{name} must be between 1 and 2**62, got {value!r}")
    return value


def _number(name: str, value: object) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise ValueError(f"{name} must be a number, got {value!r}")
    return float(value)
