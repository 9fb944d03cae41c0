"""A budget and what was spent of it.

A release is checked against the ledger before its data are touched and charged as *pending* before its first access to
them; afterwards it is marked as released, failed or interrupted. Every entry counts as spent, whatever its state: a
failure is an output, an interruption may have been seen, and a crash leaves the entry pending.

Costs add up as `PrivacyCost` does, and their sum must fit the budget; under (epsilon, delta) it is also enough that the
pairs asked for add up to it. Budgets in rho, pure budgets and Gaussian releases allow later releases to be chosen after
earlier results were seen. Where pure steps and Gaussians mix under (epsilon, delta), the costs (not the data or the
questions) must be fixed beforehand: let analysts who choose costs as they go spend from a budget in rho.
"""

from __future__ import annotations

import contextlib
import html
import json
import math
import os
import shutil
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Literal, Protocol, cast, get_args

from dpmedian.accounting import Budget, PrivacyCost
from dpmedian.release import ReleaseFailed

__all__ = ["Account", "BudgetExceeded", "Charge", "Entry", "Ledger", "as_ledger", "spending"]

Outcome = Literal["released", "failed", "interrupted"]
State = Literal["pending", "released", "failed", "interrupted"]

# Ten releases at epsilon 0.1 fit epsilon 1, although the sum of ten doubles near 0.1 may exceed 1 by rounding.
_ROUNDING = 2.0**-48

# An accountant of (epsilon, delta) pairs that meets a cost asked for in rho is charged epsilon_at(delta0 + this).
DELTA_OF_RHO = 1e-6

_WIDTH = 80
_SHOWN = 40


class BudgetExceeded(ValueError):
    """The release would exceed the ledger's budget; nothing was charged and no data were touched."""

    def __init__(self, asked: PrivacyCost, spent: PrivacyCost, budget: Budget) -> None:
        self.asked, self.spent, self.budget = asked, spent, budget
        self.remaining = budget.remaining(spent)
        super().__init__(
            f"this release would exceed the ledger's budget: asked {asked}, "
            f"spent {_amount(budget, spent)}, left {budget.measure} = {self.remaining:.6g} of {budget}"
            + ("; a budget without delta admits only pure steps" if budget.pure and asked.mu_squared else "")
            + ("; a budget in rho without delta admits no delta" if budget.rho and asked.delta0 > 0.0 else "")
        )

    def __reduce__(self) -> tuple[type[BudgetExceeded], tuple[PrivacyCost, PrivacyCost, Budget]]:
        return BudgetExceeded, (self.asked, self.spent, self.budget)


def _amount(budget: Budget, cost: PrivacyCost) -> str:
    """A cost in the budget's unit."""
    if budget.rho is not None:
        return f"rho = {cost.rho:.6g}" + (f", delta = {cost.delta0:.6g}" if cost.delta0 else "")
    return f"epsilon = {cost.epsilon_at(budget.delta or 0.0):.6g}"


@dataclass(frozen=True)
class Entry:
    """One release. Its cost counts as spent in every state; `remaining` is what it left, in the budget's unit."""

    name: str
    method: str
    time: str
    cost: PrivacyCost
    state: State
    remaining: float

    def to_dict(self) -> dict[str, object]:
        return {**self.__dict__, "cost": self.cost.to_dict()}

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Entry:
        entry = cls(**{**stored, "cost": PrivacyCost.from_dict(stored["cost"])})
        if entry.state not in get_args(State):
            raise ValueError(f"unknown state {entry.state!r}")
        return entry


@dataclass(frozen=True)
class Charge:
    """The handle of one charged release."""

    _mark: Callable[[Outcome], None]

    def mark(self, state: Outcome) -> None:
        """Says how the run ended. The cost stays charged in every case."""
        if state not in get_args(Outcome):
            raise ValueError(f"state must be 'released', 'failed' or 'interrupted', got {state!r}")
        self._mark(state)


class Account(Protocol):
    """What a release needs of a ledger."""

    def check(self, cost: PrivacyCost) -> None:
        """Raises if the cost would exceed the budget."""

    def charge(self, name: str, method: str, cost: PrivacyCost) -> Charge:
        """Checks and records the cost as pending, in one step."""


class Ledger:
    """A privacy budget with its entries, in memory or in a file.

    >>> ledger = Ledger(epsilon=1.0, delta=1e-6)
    >>> charge = ledger.charge("home locations", "adaptive", PrivacyCost(mu_squared=0.01))
    >>> charge.mark("released")
    >>> round(ledger.remaining, 3)
    0.603

    With `path` the entries live in a JSON file: several processes may share it, a lock file beside it makes check and
    charge one step, and the file is replaced as a whole, so a crash leaves the old or the new one. An existing file is
    opened if its budget is the same. An in-memory ledger belongs to one process: its copies could each spend the whole
    budget, so it refuses to be copied or pickled, and a forked copy refuses every charge.
    """

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        path: str | os.PathLike[str] | None = None,
    ) -> None:
        self.budget = Budget.of(epsilon=epsilon, delta=delta, rho=rho)
        self._store: _Memory | _File
        if path is None:
            self._store = _Memory()
        else:
            self._store = _File(path)
            self._store.create(self.budget)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Ledger:
        """The ledger that is stored in a file, with the budget the file names."""
        store = _File(path)
        budget, _ = store.read()
        ledger = cls.__new__(cls)
        ledger.budget, ledger._store = budget, store
        return ledger

    @property
    def path(self) -> Path | None:
        return self._store.path if isinstance(self._store, _File) else None

    @property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(self._store.entries())

    @property
    def spent(self) -> PrivacyCost:
        """The cost of all entries together."""
        return _total(self.entries)

    @property
    def remaining(self) -> float:
        """What is left, in the budget's unit: rho, or epsilon at the budget's delta.

        Epsilon does not add up exactly: more than this may fit, since a sum of releases costs less than the sum of
        their epsilons.
        """
        return self.budget.remaining(self.spent)

    def check(self, cost: PrivacyCost) -> None:
        """Raises `BudgetExceeded` if the cost would exceed the budget. Charges nothing."""
        self._require(self._store.entries(), cost)

    def charge(self, name: str, method: str, cost: PrivacyCost) -> Charge:
        """Checks and records the cost as pending, in one step that no thread or process can come between."""
        for argument, value in (("name", name), ("method", method)):
            if not isinstance(value, str):
                raise TypeError(f"{argument} must be a string, got {value!r} of type {type(value).__name__}")
        with self._store.transaction(self.budget) as entries:
            spent = self._require(entries, cost)
            now = datetime.now(timezone.utc).isoformat(timespec="seconds")
            left = self.budget.remaining(PrivacyCost.total((spent, cost)))
            entries.append(Entry(name, method, now, cost, "pending", left))
            number = len(entries) - 1
        return Charge(lambda state: self._mark(number, state))

    def _require(self, entries: Sequence[Entry], cost: PrivacyCost) -> PrivacyCost:
        if not isinstance(cost, PrivacyCost):
            raise TypeError(f"cost must be a PrivacyCost, got {cost!r} of type {type(cost).__name__}")
        spent = _total(entries)
        costs = [*(entry.cost for entry in entries), cost]
        if not (self.budget.fits(PrivacyCost.total(costs), rounding=_ROUNDING) or _pairs_fit(self.budget, costs)):
            raise BudgetExceeded(cost, spent, self.budget)
        return spent

    def _mark(self, number: int, state: Outcome) -> None:
        with self._store.transaction(self.budget) as entries:
            entry = entries[number]
            if entry.state not in ("pending", state):
                raise ValueError(f"entry {number} ({entry.name}) is already marked as {entry.state}, not {state}")
            entries[number] = replace(entry, state=state)

    def __reduce__(self) -> tuple[Callable[[Path], Ledger], tuple[Path]]:
        if isinstance(self._store, _Memory):
            raise TypeError(
                "an in-memory ledger cannot be copied or pickled, since every copy could spend the whole budget: "
                "give it a file, Ledger(..., path=...)"
            )
        return Ledger.open, (self._store.path,)

    # How it reads.

    def __repr__(self) -> str:
        where = f", path={str(self.path)!r}" if self.path else ""
        entries = self.entries
        left = self.budget.remaining(_total(entries))
        return f"<Ledger {self.budget}{where}: {len(entries)} entries, {self.budget.measure} = {left:.6g} left>"

    def _rows(self) -> tuple[list[str], list[tuple[str, ...]], int]:
        """A heading, the last rows, and how many earlier ones are not among them."""
        entries = self.entries
        left = self.budget.remaining(_total(entries))
        heading = [f"Ledger: {self.budget}; left: {self.budget.measure} = {left:.6g}"]
        if self.path:
            heading.append(f"file: {self.path}")
        rows: list[tuple[str, ...]] = [
            (entry.name, entry.method, entry.time[:10], _short(entry.cost), entry.state, f"{entry.remaining:.3g}")
            for entry in entries[-_SHOWN:]
        ]
        return heading, rows, max(len(entries) - _SHOWN, 0)

    def __str__(self) -> str:
        """A table of at most 80 columns; long names are cut."""
        heading, rows, earlier = self._rows()
        if not rows:
            return "\n".join([*heading, "no entries"])
        cells = [_COLUMNS, *rows]
        widths = [max(len(row[column]) for row in cells) for column in range(len(_COLUMNS))]
        # The name gives way first, then the method; the other columns are short.
        for column, least in ((0, 8), (1, 8)):
            surplus = sum(widths) + 2 * (len(widths) - 1) - _WIDTH
            widths[column] -= min(max(surplus, 0), max(widths[column] - least, 0))
        lines = [
            "  ".join(_cut(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells
        ]
        omitted = [f"({earlier} earlier entries)"] if earlier else []
        return "\n".join([*heading, lines[0], "-" * max(map(len, lines)), *omitted, *lines[1:]])

    def _repr_html_(self) -> str:
        heading, rows, earlier = self._rows()
        title = "<br>".join(html.escape(line) for line in heading)
        omitted = f"<tr><td colspan={len(_COLUMNS)}>({earlier} earlier entries)</td></tr>" if earlier else ""
        head = "".join(f"<th>{column}</th>" for column in _COLUMNS)
        body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        return f"<table><caption>{title}</caption><tr>{head}</tr>{omitted}{body}</table>"


_COLUMNS = ("name", "method", "date", "cost", "state", "left")


def _cut(text: str, width: int) -> str:
    return (text if len(text) <= width else text[: width - 1] + "~").ljust(width)


def _short(cost: PrivacyCost) -> str:
    if cost.epsilon is not None:
        kind, value, delta = "eps", cost.epsilon, cost.delta
    elif cost.mu_squared == 0.0 and cost.delta0 == 0.0:
        kind, value, delta = "eps", cost.epsilon_at(0.0), None
    else:
        kind, value, delta = "rho", cost.rho, cost.delta0
    return f"{kind} {value:.3g}" + (f", {delta:.2g}" if delta else "")


def _total(entries: Sequence[Entry]) -> PrivacyCost:
    return PrivacyCost.total(entry.cost for entry in entries)


def _pair(cost: PrivacyCost) -> tuple[float, float] | None:
    """The pair that was asked for, if the cost keeps to it."""
    if cost.epsilon is None:
        return None
    delta = cost.delta or 0.0
    return (cost.epsilon, delta) if cost.delta_at(cost.epsilon) <= delta else None


def _pairs_fit(budget: Budget, costs: Sequence[PrivacyCost]) -> bool:
    """Whether the pairs asked for add up to the budget: basic composition, which no split of a budget may fail."""
    pairs = [_pair(cost) for cost in costs]
    if budget.epsilon is None or None in pairs:
        return False
    epsilons, deltas = zip(*cast("list[tuple[float, float]]", pairs), strict=True)
    grown = 1.0 + _ROUNDING
    return math.fsum(epsilons) <= budget.epsilon * grown and math.fsum(deltas) <= (budget.delta or 0.0) * grown


class _Memory:
    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._lock = threading.Lock()
        self._process = os.getpid()

    def entries(self) -> list[Entry]:
        # A transaction replaces the list and never changes it, so reading needs no lock.
        return self._entries

    @contextlib.contextmanager
    def transaction(self, budget: Budget) -> Iterator[list[Entry]]:
        self._require_own_process()
        with self._lock:
            entries = self._entries.copy()
            yield entries
            self._entries = entries

    def _require_own_process(self) -> None:
        if os.getpid() != self._process:
            raise RuntimeError(
                f"this in-memory ledger belongs to process {self._process}, and process {os.getpid()} has a copy of it "
                "that could spend the budget again: share a file, Ledger(..., path=...)"
            )


class _File:
    """The stored form: one JSON object, replaced as a whole. The lock file beside it is empty and stays."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        # Resolved once: a later change of directory, or a link, must not lead to another ledger.
        self.path = Path(os.path.realpath(path))

    def create(self, budget: Budget) -> None:
        with self._lock():
            if not self.path.exists():
                self._write(budget, [])
                return
            stored, _ = self.read()
            if _limits(stored) != _limits(budget):
                raise ValueError(
                    f"the ledger {self.path} has the budget {stored}, not {budget}: open it with Ledger.open(path), "
                    "or choose another file"
                )

    def read(self) -> tuple[Budget, list[Entry]]:
        # The file is replaced as a whole, so reading needs no lock.
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise FileNotFoundError(
                f"there is no ledger at {self.path}; if there was one, restore it, since a new one would not know what "
                "was spent"
            ) from None
        try:
            stored = json.loads(text)
            if stored["format"] != "dpmedian ledger 1":
                raise ValueError(f"its format is {stored['format']!r}")
            return Budget.of(**stored["budget"]), [Entry.from_dict(entry) for entry in stored["entries"]]
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(
                f"{self.path} is not a ledger this version can read, and was left as it is: {error}"
            ) from error

    def entries(self) -> list[Entry]:
        return self.read()[1]

    @contextlib.contextmanager
    def transaction(self, budget: Budget) -> Iterator[list[Entry]]:
        with self._lock():
            stored, entries = self.read()
            if _limits(stored) != _limits(budget):
                raise ValueError(f"the budget in {self.path} was changed from {budget} to {stored}: open it again")
            yield entries
            self._write(stored, entries)

    def _write(self, budget: Budget, entries: Sequence[Entry]) -> None:
        stored = {
            "format": "dpmedian ledger 1",
            "budget": {name: value for name, value in budget.__dict__.items() if value is not None},
            "entries": [entry.to_dict() for entry in entries],
        }
        # One name suffices for the new file, since only the holder of the lock writes it; a crash leaves at most this.
        fresh = self.path.with_name(self.path.name + ".new")
        with open(fresh, "w", encoding="utf-8") as file:
            json.dump(stored, file, indent=2, ensure_ascii=False, allow_nan=False)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        if self.path.exists():
            shutil.copymode(self.path, fresh)
        os.replace(fresh, self.path)
        if sys.platform != "win32":
            # The new name survives a power failure only once the directory is on disk.
            directory = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        # The operating system drops the lock when its holder dies, so a crash blocks nobody. Every transaction opens
        # the file anew, so threads exclude each other as processes do.
        with open(self.path.with_name(self.path.name + ".lock"), "ab") as file:
            if sys.platform == "win32":
                import msvcrt

                while True:
                    try:
                        file.seek(0)
                        msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
                        break
                    except OSError:  # It gives up after ten seconds; another process may be slow.
                        continue
                try:
                    yield
                finally:
                    file.seek(0)
                    msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)
            else:
                import fcntl

                fcntl.flock(file, fcntl.LOCK_EX)
                try:
                    yield
                finally:
                    fcntl.flock(file, fcntl.LOCK_UN)


def _limits(budget: Budget) -> tuple[float | None, float, float | None]:
    return budget.epsilon, budget.delta or 0.0, budget.rho


class _Unrecorded:
    """No ledger: everything is allowed, nothing is remembered."""

    def check(self, cost: PrivacyCost) -> None:
        pass

    def charge(self, name: str, method: str, cost: PrivacyCost) -> Charge:
        return Charge(lambda state: None)


class _Accountant:
    """An accountant of (epsilon, delta) pairs, such as diffprivlib's, in the place of a ledger.

    It is charged the pair that was asked for. A cost asked for in rho has none, so it is charged
    (epsilon_at(delta), delta) with delta = delta0 + 1e-6, which composes worse than rho does: a `Ledger` in rho loses
    nothing. The accountant's own errors pass through unchanged.
    """

    # Accountants check and append in two steps; the lock makes them one for the threads of this process.
    _lock = threading.Lock()

    def __init__(self, accountant: Any) -> None:
        self._accountant = accountant

    def check(self, cost: PrivacyCost) -> None:
        self._require(*self._priced(cost))

    def charge(self, name: str, method: str, cost: PrivacyCost) -> Charge:
        epsilon, delta = self._priced(cost)
        with self._lock:
            self._require(epsilon, delta)
            self._accountant.spend(epsilon, delta)
        return Charge(lambda state: None)

    def _require(self, epsilon: float, delta: float) -> None:
        if self._accountant.check(epsilon, delta) is False:
            raise ValueError(f"the accountant refuses epsilon = {epsilon:.6g}, delta = {delta:.6g}")

    @staticmethod
    def _priced(cost: PrivacyCost) -> tuple[float, float]:
        pair = _pair(cost)
        if pair is not None:
            return pair
        if cost.mu_squared == 0.0 and cost.delta0 == 0.0:
            return cost.epsilon_at(0.0), 0.0
        delta = cost.delta0 + DELTA_OF_RHO
        if delta >= 1.0:
            raise ValueError(f"no (epsilon, delta) pair states the cost {cost}: use a Ledger in rho, Ledger(rho=...)")
        return cost.epsilon_at(delta), delta


def as_ledger(ledger: object) -> Account:
    """A ledger, or what can stand for one: an accountant with diffprivlib's `check` and `spend`, or None for none."""
    if ledger is None:
        return _Unrecorded()
    if isinstance(ledger, (Ledger, _Unrecorded, _Accountant)):
        return ledger
    if callable(getattr(ledger, "check", None)) and callable(getattr(ledger, "spend", None)):
        return _Accountant(ledger)
    raise TypeError(
        "ledger must be a dpmedian.Ledger, an object with check(epsilon, delta) and spend(epsilon, delta), or None, "
        f"got {ledger!r} of type {type(ledger).__name__}"
    )


@contextlib.contextmanager
def spending(account: Account, method: str, cost: PrivacyCost, name: str | None = None) -> Iterator[None]:
    """Charges the full cost before the block runs; a failure carries it, and stays charged like an interruption."""
    charge = account.charge(name or method, method, cost)

    def mark(state: Outcome) -> None:
        try:
            charge.mark(state)
        except OSError as error:
            # The cost stays charged as pending, and neither what was paid for nor what went wrong must be lost.
            warnings.warn(f"the ledger could not note a run as {state}, its cost stays charged: {error}", stacklevel=5)

    try:
        yield
    except ReleaseFailed as failed:
        mark("failed")
        raise ReleaseFailed(failed.message, cost) from None
    except BaseException:
        mark("interrupted")
        raise
    mark("released")
