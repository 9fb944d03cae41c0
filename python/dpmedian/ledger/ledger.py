"""A privacy budget with its entries."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpmedian.accounting import RECORD, Budget, Neighbours, PrivacyCost
from dpmedian.accounting.arguments import positive, require_encodable, whole
from dpmedian.accounting.events import approximate, cost_of_event
from dpmedian.accounting.protection import Protection
from dpmedian.accounting.rounding import product_up
from dpmedian.documented import documented
from dpmedian.ledger.charging import Charge
from dpmedian.ledger.conversion import converted, explained, factor_of, warn_of_conversion, whose
from dpmedian.ledger.entry import Entry, FinalState, json_object
from dpmedian.ledger.errors import BudgetExceeded
from dpmedian.ledger.filters import ENDS_EARLY, Composition
from dpmedian.ledger.log import now
from dpmedian.ledger.store import FileStore, MemoryStore, Terms
from dpmedian.recorded import as_record, as_view
from dpmedian.spelling import american

__all__ = ["Ledger"]

_MOST_SHARES = 10**9  # An upper limit far above the entries of any ledger.


class Ledger:
    """A privacy budget with its entries, in memory or in a file.

    Parameters
    ----------
    epsilon, delta, rho : float, optional
        The budget: (epsilon, delta), epsilon alone for pure differential privacy, rho, or rho with delta.
    path : path-like, optional
        A JSON file for the entries. Several processes may share the file, because a lock file makes check and charge
        one step. The file is replaced as a whole, so after a crash it is either the old or the new file. An existing
        file is opened if it was created with the same terms, and is never overwritten.
    composition : str, optional
        The filter that decides which costs fit. It is fixed when the ledger is created. With the defaults an analyst
        may choose every cost after seeing earlier results: "concentrated" (rho adds up) for rho, "pure" (epsilons add
        up) for epsilon alone, "gaussian" (mu^2 adds up, and other releases count as the Gaussians that dominate them)
        for (epsilon, delta). (epsilon, delta) also allows "concentrated", "pairs" (requested pairs add up), and
        "costs_fixed_beforehand": the exact composition, valid only if no cost depends on a result.
    neighbours : {"replace", "add_remove"}
        The relation for which costs are counted. A cost under "add_remove" is converted for a ledger under "replace";
        the opposite conversion is impossible.
    unit : str
        The protected unit: "record", or a label such as "user". A cost per unit under "add_remove" is converted for a
        ledger per record. Under "replace" such a cost is refused, because a record that moves to another unit may
        change the number of units. `cost.for_group(k, unit=...)` converts a cost from records to units.

    Notes
    -----
    A ledger guarantees its budget times 1 + 2^-48. The factor allows for the rounding of decimal numbers. If costs were
    chosen adaptively, only the budget may be claimed (`Budget.epsilon_at`), not the smaller number that follows from
    `spent`.

    An in-memory ledger belongs to one process. It cannot be copied or pickled, because each copy could spend the whole
    budget. In a forked process it refuses every charge.

    Examples
    --------
    >>> ledger = Ledger(epsilon=1.0, delta=1e-6)
    >>> charge = ledger.charge("home locations", "adaptive", PrivacyCost(mu_squared=0.01))
    >>> charge.mark("released")
    >>> round(ledger.remaining, 3)
    0.603
    >>> round(ledger.split(4), 5)  # Four more releases with this rho fit.
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
        """The ledger that is stored in a file, with the terms in the file."""
        store = FileStore(path)
        ledger = cls.__new__(cls)
        ledger._store = store
        ledger._terms = store.read().terms
        return ledger

    @property
    def budget(self) -> Budget:
        """The budget of the ledger."""
        return self._terms.budget

    @property
    def composition(self) -> Composition:
        """The name of the filter that decides which costs fit."""
        return self._terms.composition

    @property
    def protection(self) -> Protection:
        """The neighbors and the unit for which costs are counted."""
        return Protection(self.neighbours, self.unit)

    @property
    def neighbours(self) -> Neighbours:
        """The relation for which costs are counted."""
        return self._terms.neighbours

    @property
    def unit(self) -> str:
        """The protected unit."""
        return self._terms.unit

    @property
    def path(self) -> Path | None:
        """The file of the ledger, or None."""
        return self._store.path

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All entries, oldest first."""
        return tuple(self._entries())

    def _entries(self) -> list[Entry]:
        return self._store.read().log.entries

    @property
    def head(self) -> str:
        """The last link of the chain of all lines, which identifies the whole history.

        A person who notes the head elsewhere can detect later whether the file was rewritten with other entries.
        """
        return self._store.read().log.head

    @property
    def taken_over(self) -> int:
        """The number of entries at the beginning that come from a version without a hash chain."""
        return int(self._store.read().start["taken_over"])

    @property
    def spent(self) -> PrivacyCost:
        """The cost of all entries together, computed as if the costs had been fixed beforehand."""
        return self._total(self._entries())

    @property
    def remaining(self) -> float:
        """The budget that is left according to the filter, as rho, or as epsilon at the delta of the budget.

        Several releases together cost less than the sum of their epsilons, so releases with a larger sum may fit.
        """
        return self._terms.filter.remaining(_costs(self._entries()))

    @property
    def additive(self) -> str:
        """The quantity that is additive over entries: "rho", or "epsilon" for pure releases and pairs."""
        return self._terms.filter.additive

    @property
    def shares(self) -> tuple[list[float], float]:
        """The share of every entry in the additive quantity, and the share that is left. The sum of all shares is 1."""
        return self._terms.filter.shares(_costs(self._entries()))

    @property
    def counts(self) -> str:
        """The neighbors and the unit of this ledger, in a few words."""
        return whose(PrivacyCost(neighbours=self.neighbours, unit=self.unit))

    @documented
    def per_release(self, k: int) -> dict[str, float]:
        """The arguments with which each of k more releases fits the budget that is left.

        Parameters
        ----------
        k : int
            The number of releases that share the budget that is left.

        Returns
        -------
        dict of str to float
            `{"rho": ...}`, or for ledgers that add up epsilons or pairs `{"epsilon": ...}`, perhaps with `"delta"`. All
            k releases fit together. Example: `geometric_median(points, **ledger.per_release(12), ledger=ledger)`,
            twelve times.
        """
        return self._terms.filter.per_release(_costs(self._entries()), _shares(k))

    @documented
    def split(self, k: int) -> float:
        """The rho with which k more releases fit the budget that is left.

        Parameters
        ----------
        k
            As in `Ledger.per_release`.

        Returns
        -------
        float
            The number to pass as `rho=` in each of the k Gaussian releases, or 0 if nothing fits. In a ledger in
            (epsilon, delta), pure releases and selections count more than their rho.

        Raises
        ------
        ValueError
            If the ledger counts epsilons or pairs. The error states the epsilon, or the pair, for each of k releases.
        """
        return self._terms.filter.split(_costs(self._entries()), _shares(k))

    def check(self, cost: PrivacyCost) -> None:
        """Raise `BudgetExceeded` if the cost would exceed the budget. Nothing is charged."""
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
        """Check the cost and store it as pending, in one step. No other thread or process can charge in between.

        Parameters
        ----------
        name, method : str
            The name and the method of the release.
        cost : PrivacyCost
            The cost of the release, which is converted to the ledger's neighbors and unit if that is possible.
        seeded : bool
            Whether a seed determines the noise.
        record : mapping, optional
            A JSON object that is stored with the entry.

        Returns
        -------
        Charge
            The handle of the entry. Call its method `mark` when the run has ended.

        Raises
        ------
        BudgetExceeded
            If the cost does not fit; nothing is charged.
        ValueError
            If the cost holds for other neighbors or another unit and cannot be converted.
        """
        for argument, value in (("name", name), ("method", method)):
            if not isinstance(value, str):
                raise TypeError(f"{argument} must be a string, got {value!r} of type {type(value).__name__}")
            require_encodable(argument, value)
        if not isinstance(seeded, bool):
            raise TypeError(f"seeded must be True or False, got {seeded!r} of type {type(seeded).__name__}")
        requested, cost, stored = cost, self._converted(cost), json_object("record", record)
        conversion: dict[str, Any] = {}
        if (cost.neighbours, cost.unit) != (requested.neighbours, requested.unit):
            conversion = {"converted_from": whose(requested), "factor": factor_of(requested, cost)}
            warn_of_conversion(self.budget, requested, cost)
        with self._store.transaction(self._terms) as log:
            self._require(log.entries, cost, requested)
            left = self._terms.filter.remaining([*_costs(log.entries), cost])
            charged = Entry(name, method, now(), cost, "pending", left, seeded, stored, **conversion)
            number, link = log.charge(charged)
        return Charge(lambda state, ran, digest: self._mark(number, link, charged, state, ran, digest))

    def enter(
        self,
        name: str,
        cost: Any = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        library: str = "by hand",
        neighbours: Neighbours | None = None,
        unit: str | None = None,
    ) -> None:
        """Charge for a release that another program has made, or will make, from the same data.

        Parameters
        ----------
        name : str
            The name of the release.
        cost : PrivacyCost or dp_accounting event, optional
            The cost: a `PrivacyCost`, or an event of Google's library dp_accounting.
        epsilon, delta : float, optional
            Instead of `cost`: the release is (epsilon, delta)-differentially private, or epsilon-differentially private
            without delta.
        rho : float, optional
            Instead of `cost`: the release is rho-zero-concentrated. Only the filter "concentrated" adds it up.
        library : str
            The program that makes the release.
        neighbours, unit : str, optional
            The relation and the unit of the cost. The defaults are those of the ledger.

        Raises
        ------
        BudgetExceeded
            If the cost does not fit; nothing is charged.
        """
        about: dict[str, Any] = {"neighbours": neighbours or self.neighbours, "unit": unit or self.unit}
        given = [cost is not None, epsilon is not None, rho is not None]
        if sum(given) != 1 or (delta is not None and epsilon is None):
            raise ValueError("give one of cost, epsilon (with delta or without) and rho")
        if rho is not None:
            if self.composition != "concentrated":
                raise ValueError(
                    f"this ledger uses the filter {self.composition!r}, which cannot use rho alone: enter "
                    "the noise multipliers as an event, or epsilon and delta, or use a ledger in rho"
                )
            cost = PrivacyCost(mu_squared=product_up(2, positive("rho", rho)), **about)
        elif epsilon is not None:
            cost = replace(approximate(epsilon, delta or 0.0), **about)
        elif not isinstance(cost, PrivacyCost):
            cost = cost_of_event(cost, **about)
        elif (neighbours, unit) != (None, None):
            cost = replace(cost, **about)
        self.charge(name, library, cost).mark("released")

    def _converted(self, cost: PrivacyCost) -> PrivacyCost:
        """The cost for the ledger's neighbors and unit."""
        return converted(cost, self.budget, self.neighbours, self.unit)

    def _require(self, entries: Sequence[Entry], cost: PrivacyCost, requested: PrivacyCost) -> None:
        rule, costs = self._terms.filter, _costs(entries)
        if not rule.admits([*costs, cost]):
            used, left, advice = rule.spent(costs), rule.remaining(costs), rule.advice(costs, cost)
            if (cost.neighbours, cost.unit) != (requested.neighbours, requested.unit):
                advice += f"; {explained(self.budget, requested, cost)}"
            raise BudgetExceeded(cost, self._total(entries), self.budget, self.composition, used, left, advice)

    def _total(self, entries: Sequence[Entry]) -> PrivacyCost:
        nothing = PrivacyCost(neighbours=self.neighbours, unit=self.unit)
        return PrivacyCost.total((nothing, *_costs(entries)))

    def _mark(
        self, number: int, link: str, charged: Entry, state: FinalState, ran: PrivacyCost | None, digest: str | None
    ) -> bool:
        lowered = ran is not None and self.composition in ENDS_EARLY
        with self._store.transaction(self._terms) as log:
            # A file that was restored from an older copy may lack this entry, or have the entry of another release in
            # its place.
            if not log.has(number, link):
                raise ValueError(
                    f"the ledger has lost entry {number} ({charged.name}), whose cost, {charged.cost}, is spent all "
                    "the same. Was the file restored from an older copy? Charge the cost again"
                )
            entry = log.entries[number]
            if entry.state not in ("pending", state):
                raise ValueError(f"entry {number} ({entry.name}) is already marked as {entry.state}, not {state}")
            part = None
            if lowered and ran is not None:
                if entry.state != "pending":
                    raise ValueError(f"entry {number} ({entry.name}) is already marked as failed, with its whole cost")
                cost = self._converted(ran)
                part = cost, self._terms.filter.remaining([*_costs(log.entries[:number]), cost])
            if entry.state == "pending":
                log.end(number, state, time=now(), digest=digest, lowered=part)
        return lowered

    def __reduce__(self) -> tuple[Callable[[Path], Ledger], tuple[Path]]:
        if isinstance(self._store, MemoryStore):
            raise TypeError(
                "an in-memory ledger cannot be copied or pickled, because every copy could spend the whole budget: "
                "use a file, Ledger(..., path=...)"
            )
        return Ledger.open, (self._store.path,)

    # Displaying a ledger.

    def __repr__(self) -> str:
        where = f", path={str(self.path)!r}" if self.path else ""
        entries = self._entries()
        left = self._terms.filter.remaining(_costs(entries))
        count = "1 entry" if len(entries) == 1 else f"{len(entries)} entries"
        return f"<Ledger {self.budget}{where}: {count}, {self.budget.measure} = {left:.6g} left>"

    def __str__(self) -> str:
        """A table of at most 80 columns. Long names are cut."""
        return as_view(self).text

    def _repr_html_(self) -> str:
        return as_view(self).html

    def to_dict(self) -> dict[str, Any]:
        """The terms, the remaining budget and all entries, as JSON."""
        return as_record(self)


def _shares(k: int) -> int:
    """Check a number of releases that share the budget."""
    if whole("k", k) > _MOST_SHARES:
        raise ValueError(f"k must be at most {_MOST_SHARES} releases, got {k}")
    return int(k)


def _costs(entries: Sequence[Entry]) -> list[PrivacyCost]:
    """The cost of every entry, in any state."""
    return [entry.cost for entry in entries]
