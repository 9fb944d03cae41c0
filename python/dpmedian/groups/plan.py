"""A plan for groups: the plan of each of them, and what all of them cost together."""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dpmedian.accounting import Budget, PrivacyCost, calibrate
from dpmedian.accounting.neighbours import RECORD
from dpmedian.accounting.parallel import bound_of
from dpmedian.groups.releases import Releases
from dpmedian.groups.workers import in_parallel
from dpmedian.ledger import as_ledger
from dpmedian.methods.contract import hopeless
from dpmedian.methods.private_size import PrivateSize
from dpmedian.parameters import PublicParameters, whole
from dpmedian.planning.choice import make_plan
from dpmedian.planning.plan import Plan
from dpmedian.progress import Progress
from dpmedian.recorded import Recorded
from dpmedian.release import MethodResult, Release, ReleaseFailed
from dpmedian.rendering.groups import groups_plan_html, groups_plan_record, groups_plan_text
from dpmedian.running import charged, check_name, check_nonfinite, require_unit
from dpmedian.sources.array import ArraySource
from dpmedian.sources.groups import Grouped, as_group_records
from dpmedian.sources.sphere import as_position
from dpmedian.tape import Tape, allow, seed_bytes

__all__ = ["GroupsPlan", "budget_of_one", "plan_for_groups"]


@dataclass(frozen=True, eq=False)
class GroupsPlan(Recorded):
    """Calibrated releases of groups that are named beforehand. `run` spends the budget on data.

    Made by `dpmedian.plan_groups`. `plans` has the plan of each group, in the order of `keys`; groups with the same
    guess of their size share one. A unit contributes to at most `max_groups_per_unit` groups.
    """

    keys: tuple[Hashable, ...]
    plans: tuple[Plan, ...] = field(repr=False)
    budget: Budget
    max_groups_per_unit: int = 1
    minimum: int | None = None

    @property
    def parameters(self) -> PublicParameters:
        """Those of the first group; the others differ in the guess of their size only."""
        return self.plans[0].parameters

    @property
    def method(self) -> str:
        """The method of all groups."""
        return self.plans[0].method

    @functools.cached_property
    def cost(self) -> PrivacyCost:
        """The cost of all groups together: that of as many as a unit contributes to."""
        one = bound_of(plan.cost for plan in self.plans)
        return PrivacyCost.total([one] * self.max_groups_per_unit).asked(self.budget.epsilon, self.budget.delta)

    def refuse_if_hopeless(self) -> None:
        """Raises, before anything is spent, if every group would be worth nothing at the size that was guessed."""
        plans = set(self.plans)
        if all(hopeless(plan.calibrated, plan.parameters) is not None for plan in plans):
            self.plans[0].refuse_if_hopeless()

    def run(
        self,
        points: Any,
        by: Any = None,
        *,
        unit: Any = None,
        unit_reduce: str = "median",
        ledger: Any = None,
        seed: int | None = None,
        progress: bool | Callable[[float], object] | None = None,
        nonfinite: str = "raise",
        name: str | None = None,
        sample_weight: Any = None,
    ) -> Releases:
        """Spends the budget on these points: one charge for all groups, before any of them runs.

        Parameters
        ----------
        points : array, data frame, Arrow table, or a Dask array or data frame
            One row for each label.
        by : one label for each row, or the name of a column
            The group of each row; rows whose label is no key are left out.
        unit, unit_reduce, ledger, seed, progress, nonfinite, name, sample_weight
            As in `dpmedian.geometric_medians`.

        Returns
        -------
        Releases
            A release or a failure for every key.
        """
        parameters = self.parameters
        check_name(name)
        self.refuse_if_hopeless()
        check_nonfinite(nonfinite, parameters)
        grouped = points
        if not isinstance(points, Grouped):
            grouped = as_group_records(
                points,
                by,
                self.keys,
                unit,
                most=self.max_groups_per_unit,
                reducer=unit_reduce,
                nonfinite=nonfinite,
                d=parameters.d,
                geometry=parameters.geometry,
                weights=sample_weight,
                weight_max=parameters.weight_max,
            )
        require_unit(grouped.records.unit, parameters.unit, given=unit is not None)
        key = None if seed is None else seed_bytes(seed)
        account = as_ledger(ledger)
        account.check(self.cost)
        release_name = name or f"geometric medians of {len(self.keys)} groups"
        values: dict[int, Release | ReleaseFailed] = {}
        with (
            Progress(float(len(self.keys)), progress) as meter,
            charged(
                account, self.method, self.cost, release_name, seeded=seed is not None, record=groups_plan_record(self)
            ),
        ):
            for index, outcome in in_parallel(len(self.keys), lambda index: self._run(grouped, index, key, nonfinite)):
                meter.span(1.0)(1.0)
                values[index] = self._value(index, outcome, grouped, name, seed is not None)
        return Releases({key: values[i] for i, key in enumerate(self.keys)}, self, seed is not None, name)

    def _run(self, grouped: Grouped, index: int, key: bytes | None, nonfinite: str) -> MethodResult | ReleaseFailed:
        """One group, with noise of its own."""
        plan = self.plans[index]
        tape = Tape.draw(None if key is None else _group_key(key, index), "add_remove")
        allow(tape, plan.cost)
        source = ArraySource.of(grouped.records_of(index), plan.parameters, nonfinite=nonfinite)
        if plan.parameters.weighted:
            source = source.weighted(tape.hidden())
        try:
            result = plan.calibrated.run(source, tape)
            return as_position(result) if plan.parameters.geometry == "sphere" else result
        except ReleaseFailed as failed:
            return failed

    def _value(
        self, index: int, outcome: MethodResult | ReleaseFailed, grouped: Grouped, name: str | None, seeded: bool
    ) -> Release | ReleaseFailed:
        """What a caller sees of a group. The minimum is compared with the noisy size, which is released."""
        plan, size = self.plans[index], outcome.size
        own = str(self.keys[index]) if name is None else f"{name}: {self.keys[index]}"
        if self.minimum is not None and size is not None and size < self.minimum:
            message = f"about {size} contributions were seen (a noisy number), fewer than minimum = {self.minimum}"
            return ReleaseFailed(message, plan.cost, size, plan=plan.at_size(size), name=own, seeded=seeded)
        if isinstance(outcome, ReleaseFailed):
            return ReleaseFailed(outcome.message, plan.cost, size, plan=plan.at_size(size), name=own, seeded=seeded)
        return plan.released(outcome, columns=grouped.records.columns, seeded=seeded, name=own)

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON can hold it."""
        return groups_plan_record(self)

    def __str__(self) -> str:
        return groups_plan_text(self)

    def _repr_html_(self) -> str:
        return groups_plan_html(self)


def plan_for_groups(
    keys: tuple[Hashable, ...],
    parameters: PublicParameters,
    *,
    n: int | Mapping[Any, int] | None,
    method: str,
    max_groups_per_unit: int,
    minimum: int | None,
) -> GroupsPlan:
    """The plans of groups, of which a unit touches so many that together they cost the budget of the parameters."""
    most = whole("max_groups_per_unit", max_groups_per_unit)
    if not 1 <= most <= len(keys):
        raise ValueError(f"max_groups_per_unit must lie between 1 and the number of keys, {len(keys)}, got {most}")
    if most > 1 and parameters.unit == RECORD:
        raise ValueError("max_groups_per_unit needs unit=: a single record is in one group")
    guesses = _guesses(keys, n)
    different = list(dict.fromkeys(guesses))
    budget = parameters.budget
    shared = budget if most == len(different) == 1 else budget_of_one(parameters, method, different, most)
    plans = {guess: make_plan(_at(parameters, guess, shared), method) for guess in different}
    made = GroupsPlan(keys, tuple(plans[guess] for guess in guesses), budget, most)
    if not budget.fits(made.cost):
        raise AssertionError("the groups together must fit the budget")
    if minimum is None:
        return made
    if whole("minimum", minimum) < 1:
        raise ValueError(f"minimum must be at least 1, got {minimum}")
    if not all(isinstance(plan.calibrated, PrivateSize) for plan in made.plans):
        raise ValueError(f"minimum needs noisy sizes, and method {made.method!r} releases none; use another method")
    return replace(made, minimum=minimum)


def _guesses(keys: tuple[Hashable, ...], n: int | Mapping[Any, int] | None) -> list[int | None]:
    if not isinstance(n, Mapping):
        return [n] * len(keys)
    missing = [key for key in keys if key not in n]
    if missing:
        raise ValueError(f"n must have a guess for every key, and has none for {missing[0]!r}")
    return [n[key] for key in keys]


def _at(parameters: PublicParameters, guess: int | None, budget: Budget) -> PublicParameters:
    checked = PublicParameters.of(guess, parameters.d, rho=1.0, neighbours=parameters.neighbours)
    return replace(parameters, n=checked.n, budget=budget)


def budget_of_one(parameters: PublicParameters, method: str, guesses: list[int | None], most: int) -> Budget:
    """What one group may cost, so that as many as a unit contributes to cost the budget together."""
    budget = parameters.budget
    if budget.pure:
        assert budget.epsilon is not None
        share = budget.epsilon / most
        while not budget.fits(PrivacyCost.total([PrivacyCost.pure_dp(share)] * most)):
            share = math.nextafter(share, 0.0)
        return Budget.of(epsilon=share)

    def cost(rho: float) -> PrivacyCost:
        plans = [make_plan(_at(parameters, guess, Budget.of(rho=rho)), method) for guess in guesses]
        return PrivacyCost.total([bound_of(plan.cost for plan in plans)] * most)

    return Budget.of(rho=calibrate(cost, budget))


def _group_key(key: bytes, index: int) -> bytes:
    """The seed of a group's noise: each has one of its own."""
    return hashlib.sha256(b"dpmedian group" + key + index.to_bytes(8, "little")).digest()
