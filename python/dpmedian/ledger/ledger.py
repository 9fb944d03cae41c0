"""A privacy budget with its entries."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dpmedian.accounting import RECORD, Budget, Neighbours, PrivacyCost
from dpmedian.accounting.arguments import whole
from dpmedian.accounting.protection import REPLACE, Protection
from dpmedian.ledger.charging import Charge
from dpmedian.ledger.entry import Entry, FinalState, json_object
from dpmedian.ledger.errors import BudgetExceeded
from dpmedian.ledger.filters import ENDS_EARLY, Composition
from dpmedian.ledger.log import now
from dpmedian.ledger.store import FileStore, MemoryStore, Terms
from dpmedian.rendering.ledger import ledger_dict, ledger_html, ledger_text
from dpmedian.spelling import american
from dpmedian.warning import ConversionWarning, warn_caller

__all__ = ["Ledger"]


class Ledger:
    """A privacy budget with its entries, in memory or in a file.

    Parameters
    ----------
    epsilon, delta, rho : float, optional
        The budget: (epsilon, delta), epsilon alone for pure differential privacy, rho, or rho with delta.
    path : path-like, optional
        A JSON file for the entries. Several processes may share it: a lock file beside it makes check and charge one
        step, and the file is replaced as a whole, so a crash leaves the old or the new one. An existing file is opened
        if it was created on the same terms, and never overwritten.
    composition : str, optional
        The filter that decides what fits, fixed for good. The defaults let an analyst choose every cost after seeing
        the results before it: "concentrated" (rho adds up) for rho, "pure" (epsilons add up) for epsilon alone,
        "gaussian" for (epsilon, delta): mu^2 adds up, and pure steps and selections count as the Gaussians that
        dominate them. Under (epsilon, delta) there are also "concentrated", "pairs" (the pairs asked for add up), and
        "costs_fixed_beforehand": the exact composition, valid only if no cost depends on a result.
    neighbours : {"replace", "add_remove"}
        The relation that is counted. A cost under "add_remove" is converted for a ledger under "replace"; the other
        way is impossible.
    unit : str
        Whose contribution is protected, "record" or a label. A cost per unit under "add_remove" is converted for a
        ledger per record; under "replace" it is refused, since a record that changes its unit may change the number of
        units. From records to units, see `cost.for_group(k, unit=...)`.

    Notes
    -----
    The promise is the budget times 1 + 2^-48, which allows for the rounding of decimal numbers. What may be claimed
    after costs were chosen adaptively is the budget, see `Budget.epsilon_at`, not what `spent` amounts to.

    An in-memory ledger belongs to one process: its copies could each spend the whole budget, so it refuses to be copied
    or pickled, and a forked copy refuses every charge.

    Examples
    --------
    >>> ledger = Ledger(epsilon=1.0, delta=1e-6)
    >>> charge = ledger.charge("home locations", "adaptive", PrivacyCost(mu_squared=0.01))
    >>> charge.mark("released")
    >>> round(ledger.remaining, 3)
    0.603
    >>> round(ledger.split(4), 5)  # The rho of which four more releases fit.
    0.00575
    """

    @american
    def __init__(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        path: str | os.PathLike[str] | None = None,
        composition: Composition | None = None,
        neighbours: Neighbours = "replace",
        unit: str = RECORD,
    ) -> None:
        budget = Budget.of(epsilon=epsilon, delta=delta, rho=rho)
        self._terms = Terms.of(budget, composition, neighbours, unit)
        self._store: MemoryStore | FileStore
        if path is None:
            self._store = MemoryStore(self._terms)
        else:
            self._store = FileStore(path)
            self._store.create(self._terms)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Ledger:
        """The ledger that is stored in a file, on the terms that the file names."""
        store = FileStore(path)
        ledger = cls.__new__(cls)
        ledger._store = store
        ledger._terms = store.read().terms
        return ledger

    @property
    def budget(self) -> Budget:
        """What may be spent."""
        return self._terms.budget

    @property
    def composition(self) -> Composition:
        """The filter that decides what fits."""
        return self._terms.composition

    @property
    def protection(self) -> Protection:
        """Whom the costs are about."""
        return Protection(self.neighbours, self.unit)

    @property
    def neighbours(self) -> Neighbours:
        """The relation for which costs are counted."""
        return self._terms.neighbours

    @property
    def unit(self) -> str:
        """Whose contribution is protected."""
        return self._terms.unit

    @property
    def path(self) -> Path | None:
        """The file of the entries, or None."""
        return self._store.path

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All entries, oldest first."""
        return tuple(self._entries())

    def _entries(self) -> list[Entry]:
        return self._store.read().log.entries

    @property
    def head(self) -> str:
        """The last link of the chain of all lines, which stands for the whole history.

        Who notes it elsewhere notices later if the file was written again with other entries.
        """
        return self._store.read().log.head

    @property
    def taken_over(self) -> int:
        """How many entries, the first ones, are from a version that did not chain them."""
        return int(self._store.read().start["taken_over"])

    @property
    def spent(self) -> PrivacyCost:
        """The cost of all entries together, as if they had been fixed beforehand."""
        return self._total(self._entries())

    @property
    def remaining(self) -> float:
        """What is left by the ledger's filter, in the budget's measure: rho, or epsilon at the budget's delta.

        Epsilon does not add up exactly: more than this may fit, since a sum of releases costs less than the sum of
        their epsilons.
        """
        return self._terms.filter.remaining(_costs(self._entries()))

    def split(self, k: int) -> float:
        """The rho of which k more releases fit what is left.

        Parameters
        ----------
        k : int
            How many releases are to share what is left.

        Returns
        -------
        float
            To be asked for with `rho=`, k times. It is what Gaussian releases may cost; in a ledger under
            (epsilon, delta), pure steps and selections count more than their rho. 0 if nothing fits.

        Raises
        ------
        ValueError
            If the ledger counts epsilons or pairs: the error says which of them k releases may ask for.
        """
        return self._terms.filter.split(_costs(self._entries()), whole("k", k))

    def check(self, cost: PrivacyCost) -> None:
        """Raises `BudgetExceeded` if the cost would exceed the budget. Charges nothing."""
        self._require(self._entries(), self._converted(cost), cost)

    def charge(
        self,
        name: str,
        method: str,
        cost: PrivacyCost,
        *,
        seeded: bool = False,
        record: Mapping[str, Any] | None = None,
    ) -> Charge:
        """Checks and records the cost as pending, in one step that no thread or process can come between.

        Parameters
        ----------
        name, method : str
            What the release is called, and what makes it.
        cost : PrivacyCost
            What it costs. It is converted to the ledger's neighbours and unit where that is possible.
        seeded : bool
            Whether a seed chooses the noise.
        record : mapping, optional
            A JSON object that is stored with the entry.

        Returns
        -------
        Charge
            Its `mark` says how the run ended.

        Raises
        ------
        BudgetExceeded
            If the cost does not fit; nothing is charged.
        ValueError
            If the cost holds for other neighbours or another unit and cannot be converted.
        """
        for argument, value in (("name", name), ("method", method)):
            if not isinstance(value, str):
                raise TypeError(f"{argument} must be a string, got {value!r} of type {type(value).__name__}")
        if not isinstance(seeded, bool):
            raise TypeError(f"seeded must be True or False, got {seeded!r} of type {type(seeded).__name__}")
        asked, cost, stored = cost, self._converted(cost), json_object("record", record)
        conversion: dict[str, Any] = {}
        if (cost.neighbours, cost.unit) != (asked.neighbours, asked.unit):
            conversion = {"converted_from": _whose(asked), "factor": _factor(asked, cost)}
            self._say_conversion(asked, cost)
        with self._store.transaction(self._terms) as log:
            self._require(log.entries, cost, asked)
            left = self._terms.filter.remaining([*_costs(log.entries), cost])
            charged = Entry(name, method, now(), cost, "pending", left, seeded, stored, **conversion)
            number, link = log.charge(charged)
        return Charge(lambda state, ran, digest: self._mark(number, link, charged, state, ran, digest))

    def _say_conversion(self, asked: PrivacyCost, cost: PrivacyCost) -> None:
        """Warns that a cost becomes larger because the ledger counts something else, and says how to avoid that."""
        warn_caller(
            f"the release protects {_whose(asked)}, and this ledger counts {_whose(cost)}: its rho is charged "
            f"{_factor(asked, cost):.3g} times. A ledger that counts what the release protects charges it once: "
            f"{_creation(self.budget, asked)}",
            ConversionWarning,
        )

    def _converted(self, cost: PrivacyCost) -> PrivacyCost:
        """The cost for the ledger's neighbours and unit."""
        if not isinstance(cost, PrivacyCost):
            raise TypeError(f"cost must be a PrivacyCost, got {cost!r} of type {type(cost).__name__}")
        if cost.unit != self.unit:
            if self.unit != RECORD:
                way = f"k, unit={self.unit!r}) if each has at most k of the units {cost.unit!r}"
                if cost.protection.relation.size_is_public:
                    way = way.replace(") if each has at most", ", exactly=True) if each has, in all data sets, exactly")
                raise ValueError(
                    f"this ledger protects the unit {self.unit!r}, and the cost holds for one {cost.unit!r}: release "
                    f"per {self.unit}, or convert it with cost.for_group({way}"
                )
            cost = cost.per_record()
        return cost.under(self.neighbours)

    def _require(self, entries: Sequence[Entry], cost: PrivacyCost, asked: PrivacyCost) -> None:
        rule, costs = self._terms.filter, _costs(entries)
        if not rule.admits([*costs, cost]):
            used, left, advice = rule.spent(costs), rule.remaining(costs), rule.advice(costs, cost)
            if (cost.neighbours, cost.unit) != (asked.neighbours, asked.unit):
                advice += (
                    f"; the release protects {_whose(asked)}, so its rho counts {_factor(asked, cost):.3g} times "
                    f"here, and once in a ledger of its own kind: {_creation(self.budget, asked)}"
                )
            raise BudgetExceeded(cost, self._total(entries), self.budget, self.composition, used, left, advice)

    def _total(self, entries: Sequence[Entry]) -> PrivacyCost:
        nothing = PrivacyCost(neighbours=self.neighbours, unit=self.unit)
        return PrivacyCost.total((nothing, *_costs(entries)))

    def _mark(
        self, number: int, link: str, charged: Entry, state: FinalState, ran: PrivacyCost | None, digest: str | None
    ) -> bool:
        lowered = ran is not None and self.composition in ENDS_EARLY
        with self._store.transaction(self._terms) as log:
            # A file that was restored to an older copy may have no such entry, or that of another release.
            if not log.has(number, link):
                raise ValueError(
                    f"the ledger has lost entry {number} ({charged.name}), which cost {charged.cost} and is spent all "
                    "the same: was it restored to an older copy? Charge the cost again"
                )
            entry = log.entries[number]
            if entry.state not in ("pending", state):
                raise ValueError(f"entry {number} ({entry.name}) is already marked as {entry.state}, not {state}")
            part = None
            if lowered and ran is not None:
                if entry.state != "pending":
                    raise ValueError(f"entry {number} ({entry.name}) is already marked as failed, at its whole cost")
                cost = self._converted(ran)
                part = cost, self._terms.filter.remaining([*_costs(log.entries[:number]), cost])
            if entry.state == "pending":
                log.end(number, state, time=now(), digest=digest, lowered=part)
        return lowered

    def __reduce__(self) -> tuple[Callable[[Path], Ledger], tuple[Path]]:
        if isinstance(self._store, MemoryStore):
            raise TypeError(
                "an in-memory ledger cannot be copied or pickled, since every copy could spend the whole budget: "
                "give it a file, Ledger(..., path=...)"
            )
        return Ledger.open, (self._store.path,)

    # How it reads.

    def __repr__(self) -> str:
        where = f", path={str(self.path)!r}" if self.path else ""
        entries = self._entries()
        left = self._terms.filter.remaining(_costs(entries))
        return f"<Ledger {self.budget}{where}: {len(entries)} entries, {self.budget.measure} = {left:.6g} left>"

    def __str__(self) -> str:
        """A table of at most 80 columns; long names are cut."""
        return ledger_text(self)

    def _repr_html_(self) -> str:
        return ledger_html(self)

    def to_dict(self) -> dict[str, Any]:
        """Terms, what is left and all entries, as JSON can hold them."""
        return ledger_dict(self)


def _whose(cost: PrivacyCost) -> str:
    """For whom a cost holds, in a few words."""
    return f"one {cost.unit} that is " + cost.protection.relation.changed


def _factor(asked: PrivacyCost, cost: PrivacyCost) -> float:
    """By how much a conversion multiplied rho; 1 if nothing is spent."""
    return cost.rho / asked.rho if asked.rho > 0.0 else 1.0


def _creation(budget: Budget, asked: PrivacyCost) -> str:
    """The command that creates a ledger with this budget that counts what a release protects."""
    terms = [(name, getattr(budget, name)) for name in ("epsilon", "delta", "rho")]
    options = [f"--{name} {value:g}" for name, value in terms if value is not None]
    options += [f"--neighbours {asked.neighbours}"] if asked.protection.relation is not REPLACE else []
    options += [f"--unit {shlex.quote(asked.unit)}"] if asked.unit != RECORD else []
    return "dpmedian ledger create FILE " + " ".join(options)


def _costs(entries: Sequence[Entry]) -> list[PrivacyCost]:
    """What every entry costs, whatever became of it."""
    return [entry.cost for entry in entries]
