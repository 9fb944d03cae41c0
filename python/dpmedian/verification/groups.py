"""Verification of the audit record of a release for groups. All plans in the record, and the cost of all groups
together, are computed again.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from dpmedian.accounting import Budget, PrivacyCost
from dpmedian.accounting.parallel import cost_of_groups
from dpmedian.accounting.protection import relation_of
from dpmedian.accounting.threshold import threshold_of
from dpmedian.planning.choice import make_plan
from dpmedian.rendering.cost import protected
from dpmedian.sources.key_columns import canonical, group_keys
from dpmedian.trace import Trace
from dpmedian.verification.check import Check, Verification
from dpmedian.verification.reading import cost_of, parameters_of
from dpmedian.verification.trace import traces_of_groups, wrong_with_trace

__all__ = ["is_of_groups", "verify_groups"]


def is_of_groups(record: Mapping[str, Any]) -> bool:
    """Return whether this is the audit record of a release for groups, or of a plan for groups."""
    return "plans" in record


def verify_groups(record: Mapping[str, Any], verify_one: Callable[[Mapping[str, Any]], Verification]) -> Verification:
    """Verify every plan with `verify_one`, and the cost of all groups together."""
    try:
        return _verified(record, verify_one)
    except KeyError as missing:
        raise ValueError(f"the record has no entry {missing}") from None
    except (TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"the record cannot be read: {error}") from None


def _verified(record: Mapping[str, Any], verify_one: Callable[[Mapping[str, Any]], Verification]) -> Verification:
    plans, budget, cost = record["plans"], Budget.of(**record["budget"]), cost_of(record["cost"])
    if not plans:
        raise ValueError("the audit record of groups has no plan")
    found = [verify_one(plan) for plan in plans]
    checks = [
        Check(f"plan {index}: {check.question}", tuple(f"plan {index}: {text}" for text in check.wrong))
        for index, one in enumerate(found)
        for check in one.checks
    ]
    most = record["max_groups_per_unit"]
    checks += [
        Check("every group has one of these plans", tuple(_assignment(record, len(plans)))),
        Check("protected unit: plan and cost have the same neighbors and unit", tuple(_relation(record, cost))),
        Check(f"cost: one {cost.unit} contributes to at most {most} groups", tuple(_total(record, cost))),
        Check(f"budget: {budget} covers the cost", tuple(_budget(budget, cost))),
    ]
    sound = not any(check.wrong for check in checks)  # Traces are checked only if no error was found before.
    if record["outcome"] != "planned":
        seeded = (
            "the noise came from a seed: anybody who finds the seed can remove the noise, so nobody is protected",
        )
        checks.append(Check("the noise was not predictable", seeded if record["seeded"] is not False else ()))
        traces = traces_of_groups(record, len(record["groups"]))
        if traces is not None and sound:
            most_spent = max((trace.rho for trace in traces), default=0.0)
            question = (
                f"traces: every group spent at most rho = {most_spent:.6g}, with {sum(map(len, traces))} queries in all"
            )
            checks.append(Check(question, tuple(_traces(record, traces))))
    name = f" {record['name']!r}" if record.get("name") else ""
    many = "the groups that are shown" if record["keys"] is None else f"{len(record['keys'])} groups"
    claim = (
        f"the releases{name} of {many} are together differentially private with {budget}, for "
        f"{protected(cost.protection)}."
    )
    return Verification(
        tuple(checks),
        claim,
        tuple(dict.fromkeys(note for one in found for note in one.notes)),
        whole=all(one.whole for one in found),
    )


def _assignment(record: Mapping[str, Any], plans: int) -> Iterator[str]:
    assigned, keys = record["plan_of_key"], record["keys"]
    released = [group["key"] for group in record.get("groups", [])]
    if keys is None:
        yield from _selected(record, plans, released)
        return
    try:
        group_keys(keys)  # A repeated key is an error, because its group would be released twice but charged once.
    except (TypeError, ValueError) as error:
        yield str(error)
    listed = isinstance(assigned, list) and len(assigned) == len(keys)
    if not listed or not all(type(index) is int and 0 <= index < plans for index in assigned):
        yield f"plan_of_key must name one of the {plans} plans for each of the {len(keys)} keys, got {assigned}"
    if record["outcome"] != "planned" and released != keys:
        yield "there must be one group for each key, in the order of the keys"
    if any(plan["lone_delta"] is not None for plan in record["plans"]):
        yield "the keys are listed, but a plan has a threshold, which only keys that are not listed need"


def _selected(record: Mapping[str, Any], plans: int, released: list[Any]) -> Iterator[str]:
    """Yield the errors of groups whose keys were not listed."""
    if plans != 1:
        yield f"keys that are not listed have one plan for all groups, but the record has {plans}"
    if record["plan_of_key"] is not None:
        yield "keys that are not listed have one plan for all groups, but plan_of_key assigns a plan to each key"
    (plan, *_) = record["plans"]
    if plan["lone_delta"] is None:
        yield "the keys are not listed, but the plan has no threshold: groups with a single unit would be shown"
        return
    if released:
        try:
            found = group_keys(released)
        except (TypeError, ValueError) as error:
            yield str(error)
            return
        if sorted(found, key=canonical) != list(found):
            yield "the groups are not in the order of their keys, and another order may reveal something about the data"
    threshold = threshold_of(*_noise_of(plan), plan["lone_delta"])
    small = [group["key"] for group in record.get("groups", []) if group["size"] < threshold]
    if small:
        yield f"the group {small[0]!r} is shown, but its noisy size is below the threshold {threshold}"


def _noise_of(plan: Mapping[str, Any]) -> tuple[int, int]:
    """Return the standard deviation of the noise of the size in lattice units, and the bits of the lattice."""
    (stage,) = (stage for stage in plan["stages"] if stage["statistic"] == "size")
    bits = stage["arguments"]["bits"]
    return int(math.ldexp(stage["scale"], bits)), bits


def _traces(record: Mapping[str, Any], traces: Sequence[Trace]) -> Iterator[str]:
    """Yield the errors in the queries of each group. The plan of a group is calibrated at the noisy size of the
    group.
    """
    made = functools.cache(lambda own, size: make_plan(parameters_of(record["plans"][own]), method[own]).at_size(size))
    method = [plan["method"] for plan in record["plans"]]
    for place, (group, trace) in enumerate(zip(record["groups"], traces, strict=True)):
        own = 0 if record["keys"] is None else record["plan_of_key"][place]
        for text in wrong_with_trace(trace, made(own, group["size"]), group["size"]):
            yield f"group {group['key']!r}: {text}"


def _relation(record: Mapping[str, Any], cost: PrivacyCost) -> Iterator[str]:
    if record["neighbours"] != cost.neighbours:
        yield f"the record states neighbours = {record['neighbours']!r}, but its cost states {cost.neighbours!r}"
    for index, plan in enumerate(record["plans"]):
        if relation_of(plan["neighbours"]).size_is_public:
            yield f"the plan of one group must be for 'add_remove', but plan {index} is for {plan['neighbours']!r}"
    places = [("the record", record), *((f"plan {index}", plan) for index, plan in enumerate(record["plans"]))]
    for place, released in places:
        if released["unit"] != cost.unit:
            yield f"{place} states unit = {released['unit']!r}, but the cost states {cost.unit!r}"


def _total(record: Mapping[str, Any], cost: PrivacyCost) -> Iterator[str]:
    most = record["max_groups_per_unit"]
    if type(most) is not int or most < 1 or (record["keys"] is not None and most > len(record["keys"])):
        yield f"max_groups_per_unit must be between 1 and the number of keys, got {most!r}"
        return
    expected = cost_of_groups((cost_of(plan["cost"]) for plan in record["plans"]), most, cost.neighbours)
    for part in ("mu_squared", "discretization", "pure_epsilons", "bounded_ranges", "delta0"):
        stated, computed = getattr(cost, part), getattr(expected, part)
        if stated != computed:
            yield f"{part} of the cost is stated as {stated!r}, but computed from the plans it is {computed!r}"
    if record["cost"]["rho"] != cost.rho and not cost.pure_epsilons:
        yield (
            f"rho is stated as {record['cost']['rho']!r}, but computed from the other parts of the cost it is "
            f"{cost.rho!r}"
        )


def _budget(budget: Budget, cost: PrivacyCost) -> Iterator[str]:
    if (cost.epsilon, cost.delta) != (budget.epsilon, budget.delta):
        yield f"the cost states epsilon = {cost.epsilon}, delta = {cost.delta}, but the budget is {budget}"
    if not budget.fits(cost):
        yield f"the cost exceeds the budget {budget}: rho = {cost.rho!r}"
