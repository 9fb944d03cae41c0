"""Verification of an audit record: its sensitivities, its costs and its budget are computed again."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeGuard

from dpmedian._core import __version__
from dpmedian.accounting import PrivacyCost
from dpmedian.groups.plan import GroupsPlan
from dpmedian.groups.releases import Releases
from dpmedian.ledger import Ledger
from dpmedian.mechanisms.stage import Stage
from dpmedian.planning.choice import make_plan
from dpmedian.planning.plan import Plan
from dpmedian.release import Release, ReleaseFailed
from dpmedian.rendering.cost import explained, protected
from dpmedian.rendering.record import plan_record
from dpmedian.verification.authentic import FORMER_VERSIONS, called, digest_check, ledger_checks
from dpmedian.verification.check import Check, Verification
from dpmedian.verification.groups import is_of_groups, verify_groups
from dpmedian.verification.reading import parameters_of, parsed, plan_of, read
from dpmedian.verification.signature import signature_check
from dpmedian.verification.stages import shared_discretization, wrong_with
from dpmedian.verification.trace import wrong_sum, wrong_with_trace

__all__ = ["verify"]

# The relative tolerance of a cap, because every sigma is rounded to a whole number of lattice units.
_ROUNDING = 1e-8

# The relative tolerance of numbers in a plan. Its calibration uses logarithms and roots, whose last digits differ
# between machines.
_CLOSE = 1e-9

_NO_TRACE = "the queries of the run were left out of the record: of what was spent only the most is known"

# Values of a record that cannot be computed from other entries.
_UNAUTHENTICATED = {
    "released": ("the released values", "the moments", "the notes", "the name", "the date"),
    "failed": ("the message", "the noisy size", "the name", "the date"),
}


def verify(
    record: str | os.PathLike[str] | Mapping[str, Any] | Plan | GroupsPlan | Release | ReleaseFailed | Releases,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    *,
    key: str | os.PathLike[str] | None = None,
) -> Verification:
    """Verify an audit record: compute the sensitivities, the costs and the budget again.

    Verification needs no data and spends nothing. It checks that the entries of the record imply its claim. It cannot
    check that the run did what the record says; this is a property of the code that made the record, which the tests of
    the package check. The ledger that was charged, or a signature, shows whether a run produced the point, the date and
    the other values. Without either, the verdict lists the values that are not authenticated.

    Parameters
    ----------
    record : str, path, mapping, Plan, Release, ReleaseFailed, Releases or GroupsPlan
        The text of a record, the path of its file, its parsed JSON, or the object that it was made from.
    ledger : Ledger or path, optional
        The ledger that was charged. It must be consistent, and have the digest of this record.
    key : path, optional
        A PEM file with the public Ed25519 key of the person who signed the record. It needs the extra `sign`.

    Returns
    -------
    Verification
        `.holds`, `.wrong` and, when printed, a report in words.

    Raises
    ------
    ValueError
        If this is not a record that this version can read.

    Examples
    --------
    >>> import dpmedian
    >>> dpmedian.verify(dpmedian.plan(3000, 2, epsilon=1.0, delta=1e-6)).holds
    True
    """
    if isinstance(record, (Plan, GroupsPlan, Release, ReleaseFailed, Releases)):
        record = record.to_dict()
    if isinstance(record, Mapping):
        try:
            record = json.dumps(dict(record))
        except RecursionError:
            raise ValueError("this is no audit record: it is not JSON of a sensible depth") from None
    content = parsed(record if _is_text(record) else Path(record).read_text(encoding="utf-8"))
    found = verify_groups(content, _verified) if is_of_groups(content) else _verified(content)
    checks, notes, by = [*found.checks, digest_check(content)], list(found.notes), []
    if key is not None:
        checks.append(signature_check(content, key))
        by.append(f"the signature of the key {Path(key).name}")
    if ledger is not None:
        more, further, exact = ledger_checks(content, ledger)
        checks, notes = [*checks, *more], [*notes, *further]
        by += [called(ledger)] if exact else []
    unchecked = () if content["outcome"] == "planned" or by else _UNAUTHENTICATED[content["outcome"]]
    return replace(found, checks=tuple(checks), notes=tuple(notes), authenticated=tuple(by), unauthenticated=unchecked)


def _is_text(record: str | os.PathLike[str]) -> TypeGuard[str]:
    """Whether this is the text of a record, and not a path of a file."""
    if not isinstance(record, (str, os.PathLike)):
        raise TypeError(f"record must be a release, a plan, a record or its path, got {type(record).__name__}")
    return isinstance(record, str) and (record.lstrip().startswith("{") or not os.path.exists(record))


def _verified(record: Mapping[str, Any]) -> Verification:
    """Verify the record of a plan, a release or a failure."""
    try:
        return _Review(parsed(json.dumps(dict(record)))).verification()
    except KeyError as missing:
        raise ValueError(f"the record has no entry {missing}") from None
    except (TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"the record cannot be read: {error}") from None


class _Review:
    """One record, and the checks of it."""

    def __init__(self, record: dict[str, Any]) -> None:
        self.content = record
        self.found = read(record)
        self.plan = plan_of(record)
        self.cost = self.plan.calibrated.cost

    def verification(self) -> Verification:
        plan, cost, cap = self.plan, self.cost, self.plan.calibrated.cap
        checks = [Check("protected unit: plan and cost have the same neighbors and unit", tuple(self.relation()))]
        for index, stage in enumerate(plan.stages):
            stated = self.content["stages"][index]
            wrong = [*wrong_with(stage, plan.parameters, cap), *_sums(stated, stage.cost)]
            if stated["sigma"] != stage.sigma:
                wrong.append(f"sigma is {stated['sigma']!r}, and the scale of its noise {stage.noise.scale!r}")
            question = f"stage {stage.name!r} ({stage.statistic}): sensitivity, noise and cost"
            checks.append(Check(question, tuple(f"stage {stage.name!r}: {text}" for text in wrong)))
        how = "the sum of all stages" if cap is None else "what the capped stages share, and the sum of the others"
        nothing = () if plan.stages else ("the record names no stage, and nothing is released without one",)
        checks.append(Check(f"cost: {how}, rho = {cost.rho:.6g}", (*nothing, *self.total())))
        trace = None if isinstance(self.found, Plan) else self.found.trace
        if trace is not None:
            spent = f"trace: {len(trace)} queries spent rho = {trace.rho:.6g} of at most {cost.rho:.6g}"
            wrong = [*wrong_sum(self.content, trace), *wrong_with_trace(trace, plan, self.content["size"])]
            checks.append(Check(spent, tuple(wrong)))
        checks.append(Check(f"budget: {plan.parameters.budget} covers the cost", tuple(self.budget())))
        checks.append(Check("the sentences of the record agree with its numbers", tuple(self.words())))
        notes = [_NO_TRACE] if trace is None and self.content.get("trace") is not None else []
        checks.append(Check("the record was made by a version that this program knows", tuple(self.version())))
        if self.content["version"] == __version__:
            checks.append(
                Check(
                    "the plan, computed again from its public parameters, is the same", tuple(self.plan_differences())
                )
            )
        elif self.content["version"] in FORMER_VERSIONS:
            maker = self.content["version"]
            notes.append(
                f"version {maker} made this record, and this is {__version__}. The plan was not computed again, "
                f"so a stage that is missing in the record is not noticed; verify the record with version {maker}"
            )
        if self.content["outcome"] != "planned":
            checks.append(Check("the noise was not predictable", tuple(self.seed())))
        return Verification(tuple(checks), self.claim(), tuple(notes), whole=self.content["version"] == __version__)

    def claim(self) -> str:
        """The claim in one sentence."""
        what = {
            "planned": "the planned release",
            "released": "the release",
            "failed": "the failed release",
        }[self.content["outcome"]]
        name = f" {self.content['name']!r}" if self.content.get("name") else ""
        return (
            f"{what}{name} by {self.plan.method!r} is differentially private with {self.plan.parameters.budget}, for "
            f"{protected(self.cost.neighbours, self.cost.unit)}."
        )

    def version(self) -> Iterator[str]:
        maker = self.content["version"]
        if maker not in (__version__, *FORMER_VERSIONS):
            yield (
                f"the version {maker!r} is unknown to version {__version__}, so a stage that the record leaves out "
                "would not be missed: verify it with the version that made it"
            )

    def relation(self) -> Iterator[str]:
        for name in ("neighbours", "unit"):
            stated, of_cost = self.content[name], getattr(self.cost, name)
            if stated != of_cost:
                yield f"{name} is {stated!r}, but that of the cost is {of_cost!r}"
        if self.plan.parameters.private_size and self.content["n"] is not None:
            yield f"n = {self.content['n']} is stated, but under 'add_remove' or with weights it is private"
        if isinstance(self.found, Release) and self.content["point"] is not None:
            size, columns = self.found.point.size, self.found.columns
            wanted = 2 if self.plan.parameters.geometry == "sphere" else self.plan.d
            if size != wanted or (columns is not None and len(columns) != size):
                yield f"the point has {size} coordinates, but should have {wanted}"

    def total(self) -> Iterator[str]:
        cost, stages = self.cost, self.plan.stages
        yield from _sums(self.content["cost"], cost)
        cap = self.plan.calibrated.cap
        apart = [stage.cost for stage in stages if not stage.capped]
        if cap is not None:
            yield from self.shared(cap, [stage for stage in stages if stage.capped])
            apart.append(cap)
        expected = PrivacyCost.total(apart)
        for part in ("mu_squared", "discretization", "pure_epsilons", "bounded_ranges", "delta0"):
            stated, computed = getattr(cost, part), getattr(expected, part)
            if stated != computed:
                yield f"{part} of the cost is stated as {stated!r}, but the stages make it {computed!r}"

    @staticmethod
    def shared(cap: PrivacyCost, stages: list[Stage]) -> Iterator[str]:
        """Whether a cap belongs to the stages under it.

        If a run chooses its noise, the cap is the largest cost of any of the stages. If the noise depends on a noisy
        number of records, the stages are those for one such number, and the cap is slightly above their sum.
        """
        chosen = bool(stages) and all(stage.noise.remark == "at least" for stage in stages)
        costs = [stage.cost for stage in stages]
        if chosen:
            least = PrivacyCost(
                mu_squared=max(cost.mu_squared for cost in costs),
                discretization=shared_discretization(sum(stage.releases * stage.coordinates for stage in stages)),
            )
            holds = cap == least
        else:
            least = PrivacyCost.total(costs)
            holds = (
                least.mu_squared <= cap.mu_squared <= least.mu_squared * (1.0 + _ROUNDING)
                and least.discretization <= cap.discretization
                and replace(least, mu_squared=0.0, discretization=0.0)
                == replace(cap, mu_squared=0.0, discretization=0.0)
            )
        if not holds:
            yield f"the cap is stated as {cap.to_dict()}, but that of the stages under it is {least.to_dict()}"

    def budget(self) -> Iterator[str]:
        budget, cost = self.plan.parameters.budget, self.cost
        if (cost.epsilon, cost.delta) != (budget.epsilon, budget.delta):
            yield (
                f"the cost carries epsilon = {cost.epsilon}, delta = {cost.delta}, but the budget that was asked for "
                f"is {budget}"
            )
        if not budget.fits(cost):
            if budget.epsilon is not None:
                found = f"at epsilon = {budget.epsilon:.6g} the cost has delta = {cost.delta_at(budget.epsilon):.6g}"
            else:
                found = f"the cost has rho = {cost.rho!r}"
            yield f"the cost exceeds the budget {budget}: {found}"

    def words(self) -> Iterator[str]:
        if self.content["cost_explained"] != explained(self.cost, self.plan.calibrated.cap):
            yield "cost_explained does not explain this cost"

    def plan_differences(self) -> Iterator[str]:
        try:
            made = make_plan(parameters_of(self.content), self.plan.method).at_size(self.content.get("size"))
        except (ValueError, TypeError, ArithmeticError, MemoryError) as error:
            yield f"no such plan can be made: {error}"
            return
        yield from _differences("", self.comparable(self.content), self.comparable(plan_record(made)))

    @staticmethod
    def comparable(record: Mapping[str, Any]) -> dict[str, Any]:
        return {name: record[name] for name in ("stages", "cost", "cap", "prediction", "examples", "plan_notes")}

    def seed(self) -> Iterator[str]:
        if self.content["seeded"]:
            yield "the noise came from a seed: anybody who finds the seed can remove the noise, so nobody is protected"


def _sums(stated: Mapping[str, Any], cost: PrivacyCost) -> Iterator[str]:
    """Check that the rho of a cost follows from its components; hyperbolic tangents may differ in their last digit."""
    rho = stated["rho"]
    exact = not cost.pure_epsilons
    if (rho != cost.rho) if exact else not math.isclose(rho, cost.rho, rel_tol=1e-13):
        yield f"rho is stated as {rho!r}, but its parts make it {cost.rho!r}"


def _differences(place: str, stated: Any, made: Any) -> Iterator[str]:
    """The places at which two plans differ by more than arithmetic on another machine would explain."""
    if isinstance(stated, dict) and isinstance(made, dict):
        for name in sorted({*stated, *made}):
            yield from _differences(f"{place}.{name}" if place else name, stated.get(name), made.get(name))
    elif isinstance(stated, list) and isinstance(made, list) and len(stated) == len(made):
        for index, (one, other) in enumerate(zip(stated, made, strict=True)):
            yield from _differences(f"{place}[{index}]", one, other)
    elif not _same(stated, made):
        yield f"{place} is stated as {stated!r}, but the plan computed again has {made!r}"


def _same(stated: Any, made: Any) -> bool:
    if isinstance(stated, float) and isinstance(made, float):
        return math.isclose(stated, made, rel_tol=_CLOSE)
    return bool(stated == made)
