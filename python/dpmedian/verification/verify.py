"""Verification of an audit record. Its sensitivities, its costs and its budget are computed again."""

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

# The relative tolerance of a cap. It is needed because every sigma is rounded to a whole number of lattice units.
_ROUNDING = 1e-8

# The relative tolerance of numbers in a plan. The calibration of a plan uses logarithms and roots, whose last digits
# differ between machines.
_CLOSE = 1e-9

_NO_TRACE = "the record does not contain the queries of the run, so only an upper bound on the spent cost is known"

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

    Verification needs no data and spends nothing. It checks that the claim follows from the entries of the record. It
    cannot check that the run did what the record says, which depends on the code that made the record; the tests of the
    package check that code. The ledger that was charged, or a signature, shows whether a run produced the point, the
    date and the other values. If neither is given, the verdict lists the values that are not authenticated.

    Parameters
    ----------
    record : str, path, mapping, Plan, Release, ReleaseFailed, Releases or GroupsPlan
        The text of a record, the path of its file, its parsed JSON, or the object from which the record was made.
    ledger : Ledger or path, optional
        The ledger that was charged. It must be consistent, and one of its entries must have the digest of this record.
    key : path, optional
        A PEM file with the public Ed25519 key of the person who signed the record. This needs the extra `sign`.

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
            raise ValueError("this is no audit record: its JSON is nested too deeply") from None
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
    """Return whether this is the text of a record, and not the path of a file."""
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
    """The checks of one record."""

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
                wrong.append(
                    f"sigma is stated as {stated['sigma']!r}, but the scale of the noise is stated as "
                    f"{stage.noise.scale!r}"
                )
            question = f"stage {stage.name!r} ({stage.statistic}): sensitivity, noise and cost"
            checks.append(Check(question, tuple(f"stage {stage.name!r}: {text}" for text in wrong)))
        how = (
            "the sum of all stages"
            if cap is None
            else "the cap that some stages share, plus the sum of the other stages"
        )
        nothing = () if plan.stages else ("the record names no stage, but nothing is released without a stage",)
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
                f"version {maker} made this record, and this is {__version__}. So the plan was not computed again, and "
                f"a stage that is missing in the record would not be noticed; verify the record with version {maker}"
            )
        if self.content["outcome"] != "planned":
            checks.append(Check("the noise was not predictable", tuple(self.seed())))
        return Verification(tuple(checks), self.claim(), tuple(notes), whole=self.content["version"] == __version__)

    def claim(self) -> str:
        """Return the claim in one sentence."""
        what = {
            "planned": "the planned release",
            "released": "the release",
            "failed": "the failed release",
        }[self.content["outcome"]]
        name = f" {self.content['name']!r}" if self.content.get("name") else ""
        return (
            f"{what}{name} by {self.plan.method!r} is differentially private with {self.plan.parameters.budget}, for "
            f"{protected(self.cost.protection)}."
        )

    def version(self) -> Iterator[str]:
        maker = self.content["version"]
        if maker not in (__version__, *FORMER_VERSIONS):
            yield (
                f"version {__version__} does not know the version {maker!r}, so a stage that is missing in the record "
                "would not be noticed: verify the record with the version that made it"
            )

    def relation(self) -> Iterator[str]:
        for name in ("neighbours", "unit"):
            stated, of_cost = self.content[name], getattr(self.cost, name)
            if stated != of_cost:
                yield f"the record states {name} = {stated!r}, but its cost states {of_cost!r}"
        if self.plan.parameters.private_size and self.content["n"] is not None:
            yield f"n = {self.content['n']} is stated, but under 'add_remove' or with weights it is private"
        if isinstance(self.found, Release) and self.content["point"] is not None:
            size, columns = self.found.point.size, self.found.columns
            wanted = 2 if self.plan.parameters.geometry == "sphere" else self.plan.d
            if size != wanted or (columns is not None and len(columns) != size):
                yield f"the point has {size} coordinates, but it should have {wanted}"

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
                yield f"{part} of the cost is stated as {stated!r}, but computed from the stages it is {computed!r}"

    @staticmethod
    def shared(cap: PrivacyCost, stages: list[Stage]) -> Iterator[str]:
        """Yield an error if a cap does not belong to the stages that share it.

        If a run chooses its noise, the cap is the largest cost of a single stage. If the noise depends on a noisy
        number of records, the record has the stages for one such number, and the cap is slightly above the sum of their
        costs.
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
            yield (
                f"the cap is stated as {cap.to_dict()}, but computed from the stages that share it, it is "
                f"{least.to_dict()}"
            )

    def budget(self) -> Iterator[str]:
        budget, cost = self.plan.parameters.budget, self.cost
        if (cost.epsilon, cost.delta) != (budget.epsilon, budget.delta):
            yield (
                f"the cost states epsilon = {cost.epsilon}, delta = {cost.delta}, but the requested budget is {budget}"
            )
        if not budget.fits(cost):
            if budget.epsilon is not None:
                found = f"at epsilon = {budget.epsilon:.6g} the cost has delta = {cost.delta_at(budget.epsilon):.6g}"
            else:
                found = f"the cost has rho = {cost.rho!r}"
            yield f"the cost exceeds the budget {budget}: {found}"

    def words(self) -> Iterator[str]:
        if self.content["cost_explained"] != explained(self.cost, self.plan.calibrated.cap):
            yield "the text of cost_explained does not belong to this cost"

    def plan_differences(self) -> Iterator[str]:
        try:
            made = make_plan(parameters_of(self.content), self.plan.method).at_size(self.content.get("size"))
        except (ValueError, TypeError, ArithmeticError, MemoryError) as error:
            yield f"no plan can be made from these parameters: {error}"
            return
        yield from _differences("", self.comparable(self.content), self.comparable(plan_record(made)))

    @staticmethod
    def comparable(record: Mapping[str, Any]) -> dict[str, Any]:
        return {name: record[name] for name in ("stages", "cost", "cap", "prediction", "examples", "plan_notes")}

    def seed(self) -> Iterator[str]:
        if self.content["seeded"]:
            yield "the noise came from a seed: anybody who finds the seed can remove the noise, so nobody is protected"


def _sums(stated: Mapping[str, Any], cost: PrivacyCost) -> Iterator[str]:
    """Check that the rho of a cost follows from its components. A tolerance is needed because the last digit of a
    hyperbolic tangent differs between machines.
    """
    rho = stated["rho"]
    exact = not cost.pure_epsilons
    if (rho != cost.rho) if exact else not math.isclose(rho, cost.rho, rel_tol=1e-13):
        yield f"rho is stated as {rho!r}, but computed from the other parts of the cost it is {cost.rho!r}"


def _differences(place: str, stated: Any, made: Any) -> Iterator[str]:
    """Yield the entries in which two plans differ by more than the rounding errors of different machines."""
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
