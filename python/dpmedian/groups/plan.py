"""A plan for groups: the plan of each group, and the cost of all groups together."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dpmedian._core import Coins
from dpmedian.accounting import Budget, PrivacyCost, calibrate
from dpmedian.accounting.parallel import cost_of_groups
from dpmedian.accounting.protection import RECORD, Neighbours, relation_of
from dpmedian.accounting.rounding import product_up
from dpmedian.dataset import Dataset
from dpmedian.documented import documented
from dpmedian.groups.releases import Releases
from dpmedian.groups.workers import in_parallel
from dpmedian.mechanisms.key_selection import KeySelection
from dpmedian.methods.contract import hopeless
from dpmedian.methods.private_size import PrivateSize
from dpmedian.parameters import PublicParameters, integer
from dpmedian.planning.choice import make_plan
from dpmedian.planning.plan import Plan
from dpmedian.progress import Progress
from dpmedian.recorded import Recorded, Shown
from dpmedian.release import MethodResult, Release, ReleaseFailed
from dpmedian.running import Session, check_nonfinite, require_options, require_unit
from dpmedian.sources.dask import DaskGroups
from dpmedian.sources.groups import Grouped, GroupRecords
from dpmedian.sources.key_columns import canonical, key_of, key_parts, key_text, named_columns
from dpmedian.sources.protocol import Source
from dpmedian.sources.scales import finishing
from dpmedian.tape import Tape
from dpmedian.trace import Trace, trace_of

__all__ = ["GroupsPlan", "budget_of_one", "contributions", "plan_for_groups"]

# The share of delta for the event that a group with a single contribution is shown. The threshold and epsilon hardly
# depend on this share. key_selection.md has the details.
_SELECTION_DELTA = 0.1

# The largest number of groups per unit, and the largest number whose effect a plan shows. With more groups per unit,
# each group would have almost no budget.
_MOST_GROUPS, _MOST_SHOWN_GROUPS = 2**20, 16


@dataclass(frozen=True, eq=False, repr=False)
class GroupsPlan(Shown, Recorded):
    """Calibrated releases of groups. `run` spends the budget on data.

    `dpmedian.plan_groups` makes such plans. `plans` has the plan of each group, in the order of `keys`. Groups with the
    same guess of their size share a plan. If the keys were not listed, `keys` is None, and `plans` has one plan for all
    groups. Its first stage selects the groups that are shown. A unit contributes to at most `max_groups_per_unit`
    groups.
    """

    keys: tuple[Hashable, ...] | None
    plans: tuple[Plan, ...] = field(repr=False)
    budget: Budget
    max_groups_per_unit: int = 1
    minimum: int | None = None
    neighbours: Neighbours = "add_remove"

    @property
    def parameters(self) -> PublicParameters:
        """The parameters of the first group. The parameters of other groups differ only in the guess of their size."""
        return self.plans[0].parameters

    @property
    def method(self) -> str:
        """The method of all groups."""
        return self.plans[0].method

    @functools.cached_property
    def cost(self) -> PrivacyCost:
        """The cost of all groups together, which is that of a few groups, because a unit changes only a few groups."""
        together = cost_of_groups((plan.cost for plan in self.plans), self.max_groups_per_unit, self.neighbours)
        return together.requested(self.budget.epsilon, self.budget.delta)

    @property
    def selection(self) -> KeySelection | None:
        """The release that selects the groups that are shown. None if the keys were listed."""
        calibrated = self.plans[0].calibrated
        size = calibrated.size if isinstance(calibrated, PrivateSize) else None
        return size if isinstance(size, KeySelection) else None

    def contribution_choices(self) -> dict[int, GroupsPlan]:
        """The same plan for other values of `max_groups_per_unit`: 1, 2, 4, ... and the value of this plan. Nothing is
        spent.

        The groups that a unit contributes to share the budget, so a larger number means more noise in each group. A
        larger number is useful if units have rows in several groups. All plans use the guess of the first group.
        """
        limit = _MOST_SHOWN_GROUPS if self.keys is None else min(_MOST_SHOWN_GROUPS, len(self.keys))
        doubled = {2**power for power in range(limit.bit_length()) if 2**power <= limit}
        found = {}
        for most in sorted(doubled | {self.max_groups_per_unit} if self.parameters.unit != RECORD else {1}):
            parameters = replace(self.parameters, budget=self.budget, lone_delta=None, n=None)
            # The part of the budget for one group may be too small for any lattice.
            with contextlib.suppress(ValueError):
                found[most] = plan_for_groups(
                    self.keys,
                    parameters,
                    n=self.plans[0].n,
                    method=self.method,
                    max_groups_per_unit=most,
                    minimum=self.minimum,
                    neighbours=self.neighbours,
                )
        return found

    def refuse_if_hopeless(self) -> None:
        """Raise an error, before anything is spent, if every group would be useless at its guessed size."""
        plans = set(self.plans)
        if all(hopeless(plan.calibrated, plan.parameters) is not None for plan in plans):
            self.plans[0].refuse_if_hopeless()

    @documented
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
        columns: Sequence[str | int] | None = None,
    ) -> Releases:
        """Spend the budget on these points. All groups are charged together before any of them runs.

        Parameters
        ----------
        points : array, data frame, Arrow table, or a Dask array or data frame
            One row for each label.
        by : the name of a column or a list of names, or one label for each row
            The group of each row. Rows whose label is not a key are left out.
        unit, unit_reduce, ledger, seed, progress, nonfinite, name, sample_weight, columns
            As in `geometric_medians`.

        Returns
        -------
        Releases
            A release or a failure for every key, or for every group that is shown if the keys were not listed.
        """
        arguments, parameters = locals(), self.parameters
        self.refuse_if_hopeless()
        grouped: GroupRecords = points
        if not isinstance(points, (Grouped, DaskGroups)):
            data = Dataset.for_run(parameters, arguments, labels=named_columns(points, by) or ())
            require_options(data, parameters)
            nonfinite = data.nonfinite
            grouped = data.grouped(by, self.keys, self.max_groups_per_unit)
        check_nonfinite(nonfinite, parameters)
        require_unit(grouped.unit, parameters.unit, given=unit is not None)
        session = Session(
            self.cost,
            method=self.method,
            name=name,
            default_name=self._default_name(),
            ledger=ledger,
            seed=seed,
            record=self.to_dict(),
        )
        values: dict[Hashable, Release | ReleaseFailed] = {}
        with session, session.spent():
            order: dict[int, Hashable]
            run: dict[int, Callable[[Callable[[], Source]], tuple[MethodResult | ReleaseFailed, Trace]]]
            if self.keys is None:
                shown = self._shown(grouped, session, nonfinite)
                order = {group.place: group.key for group in shown}
                run = {group.place: group.run for group in shown}
            else:
                order = dict(enumerate(self.keys))
                run = {place: functools.partial(self._listed, place, session) for place in order}
            # The number of groups in the data is private. The number of groups that are shown is released.
            with Progress(float(len(order)), progress) as meter:
                for block in self._blocks(grouped, sorted(order), nonfinite):
                    places = list(block)
                    work = [functools.partial(run[place], opened) for place, opened in block.items()]
                    for index, (outcome, trace) in in_parallel(work):
                        meter.span(1.0)(1.0)
                        key = order[places[index]]
                        values[key] = self._value(key, outcome, grouped, nonfinite, name, session.seeded, trace)
            ordered = {key: values[key] for key in order.values()}
            found = Releases(ordered, self, session.seeded, name, by=grouped.by, columns=grouped.columns)
            session.keep(found)
        return found

    def _default_name(self) -> str:
        return "geometric medians of groups" + ("" if self.keys is None else f", {len(self.keys)} keys")

    def plan_of(self, key: Hashable) -> Plan:
        """The plan of a group."""
        return self.plans[0] if self.keys is None else self._plan_by_key[key]

    @functools.cached_property
    def _plan_by_key(self) -> dict[Hashable, Plan]:
        return dict(zip(self.keys or (), self.plans, strict=True))

    def _blocks(
        self, grouped: GroupRecords, groups: list[int], nonfinite: str
    ) -> Iterator[dict[int, Callable[[], Source]]]:
        """Yield blocks of groups that this process holds at a time. Each group has a function that opens its source."""
        whole = any(getattr(plan.calibrated, "needs_local_records", False) for plan in set(self.plans))
        return grouped.blocks(groups, self.parameters, nonfinite, whole)

    def _group(self, place: int, key: Hashable, session: Session) -> _Group:
        """Return a group with its own tape. Its records are not opened yet."""
        plan = self.plan_of(key)
        tape = session.part(plan.cost, _label(key))
        return _Group(place, key, plan, tape, Coins.of(tape.hidden()) if plan.parameters.weighted else None)

    def _listed(
        self, place: int, session: Session, opened: Callable[[], Source]
    ) -> tuple[MethodResult | ReleaseFailed, Trace]:
        """Open a listed group and run it. Only the groups that run at the moment are in memory twice."""
        if self.keys is None:
            raise ValueError("groups without listed keys are selected first")
        return self._group(place, self.keys[place], session).run(opened)

    def _shown(self, grouped: GroupRecords, session: Session, nonfinite: str) -> list[_Group]:
        """The groups that are shown if the keys were not listed. Their order depends on their keys alone.

        Only groups with a contribution are candidates, and all data of groups that are not shown are dropped.
        mechanisms/key_selection.md has the proof.
        """
        (plan,), selection = self.plans, self.selection
        if selection is None or grouped.labels is None or not isinstance(plan.calibrated, PrivateSize):
            raise ValueError("groups without listed keys need a plan with keys=None")
        shown = []
        for block in self._blocks(grouped, grouped.occurring, nonfinite):
            for place, opened in block.items():
                group = self._group(place, key_of(grouped.labels[place], len(grouped.by)), session)
                size = selection.among(group.weighted(opened()), group.tape)
                if selection.shows(size):
                    shown.append(replace(group, size=size))
        return sorted(shown, key=lambda group: canonical(group.key))

    def _value(
        self,
        key: Hashable,
        outcome: MethodResult | ReleaseFailed,
        grouped: GroupRecords,
        nonfinite: str,
        name: str | None,
        seeded: bool,
        trace: Trace,
    ) -> Release | ReleaseFailed:
        """Return the result of a group for the caller. If the noisy size is below the minimum, the result is a failure
        with the size.
        """
        plan, size = self.plan_of(key), outcome.size
        own = key_text(key) if name is None else f"{name}: {key_text(key)}"
        if self.minimum is not None and size is not None and size < self.minimum:
            message = f"about {size} contributions were seen (a noisy number), which is below minimum = {self.minimum}"
            return ReleaseFailed(message, plan.cost, size, plan=plan.at_size(size), name=own, seeded=seeded)
        shared: dict[str, Any] = {"name": own, "seeded": seeded, "trace": trace}
        if not isinstance(outcome, ReleaseFailed):
            return plan.released(outcome, columns=grouped.columns, nonfinite=nonfinite, **shared)
        return ReleaseFailed(outcome.message, plan.cost, size, plan=plan.at_size(size), **shared)


@dataclass(frozen=True, eq=False)
class _Group:
    """A group with its own tape, the coins that round its weights, and the noisy size if it was released."""

    place: int
    key: Hashable
    plan: Plan
    tape: Tape
    coins: Coins | None
    size: int | None = None

    def weighted(self, source: Source) -> Source:
        """Return the records with their weights, if they have weights."""
        return source if self.coins is None else source.weighted(self.coins)

    def run(self, opened: Callable[[], Source]) -> tuple[MethodResult | ReleaseFailed, Trace]:
        """Return the result or the failure, and the trace. On the sphere, positions are in degrees."""
        calibrated, finish = self.plan.calibrated, finishing(self.plan.parameters)
        try:
            source = self.weighted(opened())
            if self.size is not None and isinstance(calibrated, PrivateSize):
                result = calibrated.run_at(self.size, source, self.tape)
            else:
                result = calibrated.run(source, self.tape)
            return (result if finish is None else finish(result)), trace_of(self.tape)
        except ReleaseFailed as failed:
            return failed, trace_of(self.tape)


def contributions(name: str, value: int, keys: tuple[Hashable, ...] | None) -> int:
    """Check the largest number of groups that a unit contributes to, and return it."""
    most, limit = integer(name, value), _MOST_GROUPS if keys is None else len(keys)
    if not 1 <= most <= limit:
        raise ValueError(f"{name} must lie between 1 and {'the number of keys, ' if keys else ''}{limit}, got {most}")
    return most


def plan_for_groups(
    keys: tuple[Hashable, ...] | None,
    parameters: PublicParameters,
    *,
    n: int | Mapping[Any, int] | None,
    method: str,
    max_groups_per_unit: int,
    minimum: int | None,
    neighbours: Neighbours,
) -> GroupsPlan:
    """The plans of groups. All groups that a unit contributes to together cost the budget of the parameters.

    `neighbours` is the relation for all groups together. The parameters and the plan of one group are always for
    "add_remove", because a replaced unit may leave one group and enter another.
    """
    most = contributions("max_groups_per_unit", max_groups_per_unit, keys)
    if most > 1 and parameters.unit == RECORD:
        raise ValueError("max_groups_per_unit needs unit=, because a single record is in one group only")
    guesses = _guesses(keys, n)
    different = list(dict.fromkeys(guesses))
    budget = parameters.budget
    lone_delta = None if keys is not None else _lone_delta(budget, most)
    one = replace(parameters, lone_delta=lone_delta)
    alone = most == len(different) == 1 and not relation_of(neighbours).size_is_public
    shared = budget if alone else budget_of_one(one, method, different, most, neighbours)
    plans = {guess: make_plan(_at(one, guess, shared), method) for guess in different}
    made = GroupsPlan(keys, tuple(plans[guess] for guess in guesses), budget, most, neighbours=neighbours)
    if keys is None and made.selection is None:
        raise ValueError(
            f"keys=None needs noisy sizes, but method {made.method!r} does not release sizes; use another method"
        )
    if not budget.fits(made.cost):
        raise RuntimeError("the groups together exceed the budget: this is an error in dpmedian, and nothing was spent")
    if minimum is None:
        return made
    if integer("minimum", minimum) < 1:
        raise ValueError(f"minimum must be at least 1, got {minimum}")
    if not all(isinstance(plan.calibrated, PrivateSize) for plan in made.plans):
        raise ValueError(
            f"minimum needs noisy sizes, but method {made.method!r} does not release sizes; use another method"
        )
    return replace(made, minimum=minimum)


def _lone_delta(budget: Budget, most: int) -> float:
    """The bound on the probability that one group with a single contribution is shown."""
    if not budget.delta:
        raise ValueError(
            "without keys= (--keys) groups are selected by a noisy size, which needs a delta, but the budget is "
            f"{budget}: pass delta, for example 1e-6, or list the keys"
        )
    share = budget.delta * (_SELECTION_DELTA if budget.rho is None else 1.0)
    found = share / most
    while product_up(most, found) > share:
        found = math.nextafter(found, 0.0)
    return found


def _guesses(keys: tuple[Hashable, ...] | None, n: int | Mapping[Any, int] | None) -> list[int | None]:
    if not isinstance(n, Mapping):
        return [n] * (1 if keys is None else len(keys))
    if keys is None:
        raise TypeError("n must be one guess for all groups, or None, if keys are not listed: got a mapping")
    missing = [key for key in keys if key not in n]
    if missing:
        raise ValueError(f"n must have a guess for every key, but has none for {missing[0]!r}")
    return [n[key] for key in keys]


def _at(parameters: PublicParameters, guess: int | None, budget: Budget) -> PublicParameters:
    checked = PublicParameters.of(guess, parameters.d, rho=1.0, neighbours=parameters.neighbours)
    return replace(parameters, n=checked.n, budget=budget)


def budget_of_one(
    parameters: PublicParameters, method: str, guesses: list[int | None], most: int, relation: Neighbours = "add_remove"
) -> Budget:
    """The budget of one group, such that all groups that a unit changes together cost the whole budget."""
    budget, lone_delta = parameters.budget, parameters.lone_delta
    if budget.pure:
        assert budget.epsilon is not None
        share = budget.epsilon / (2 * most if relation_of(relation).size_is_public else most)
        while not budget.fits(cost_of_groups([_pure(share)], most, relation)):
            share = math.nextafter(share, 0.0)
        return Budget.of(epsilon=share)

    def cost(rho: float) -> PrivacyCost:
        own = Budget.of(rho=rho, delta=lone_delta)
        plans = [make_plan(_at(parameters, guess, own), method) for guess in guesses]
        return cost_of_groups((plan.cost for plan in plans), most, relation)

    return Budget.of(rho=calibrate(cost, budget), delta=lone_delta)


def _pure(epsilon: float) -> PrivacyCost:
    return replace(PrivacyCost.pure_dp(epsilon), neighbours="add_remove")


def _label(key: Hashable) -> bytes:
    """Return the label of a group in its session. With a seed, the label determines the noise of the group."""
    return "".join(f"{len(text)}:{text}" for text in map(str, key_parts(key))).encode("utf-8", "surrogatepass")
