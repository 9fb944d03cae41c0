"""The runner for plans, groups and building blocks: it checks, charges, creates a capped tape, runs, and marks the
entry.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, ClassVar, Literal, Protocol, TypeVar

from dpmedian._core import Coins
from dpmedian.accounting import PrivacyCost
from dpmedian.accounting.arguments import require_encodable
from dpmedian.accounting.protection import RECORD
from dpmedian.dataset import SHARED, Dataset
from dpmedian.ledger import as_ledger, spending
from dpmedian.parameters import PublicParameters
from dpmedian.progress import Progress
from dpmedian.release import ReleaseFailed
from dpmedian.sources.protocol import Source
from dpmedian.sources.units import UNNAMED
from dpmedian.tape import Tape, capped_tape, seed_bytes
from dpmedian.trace import Trace, trace_of
from dpmedian.warning import WeakPrivacyWarning, warn_caller

__all__ = [
    "Runnable",
    "Session",
    "check_name",
    "check_nonfinite",
    "refuse_if_elsewhere",
    "require_fit",
    "require_options",
    "require_unit",
]

# Larger budgets are probably mistakes. With epsilon = 20 an event may become e^20 times as likely, and with delta =
# 0.01 one of a hundred records may be shown.
_WEAK_EPSILON, _WEAK_DELTA = 20.0, 0.01
# The quotient of two sums of the same costs is at most this number.
_ROUNDING = 1.0 + 1e-9

Value = TypeVar("Value")
Value_co = TypeVar("Value_co", covariant=True)
Result = TypeVar("Result")


class Runnable(Protocol[Value_co]):
    """Calibrated stages that can run: a method, or a part of a method."""

    needs_local_records: ClassVar[bool]

    @property
    def passes(self) -> float: ...

    def run(self, source: Source, tape: Tape) -> Value_co: ...


def check_nonfinite(nonfinite: str, parameters: PublicParameters) -> None:
    """Raise an error if records that are not finite cannot be dropped because the number of records is public."""
    if nonfinite == "drop" and not parameters.private_size:
        raise ValueError(
            "nonfinite='drop' changes the number of records, which is public with neighbours='replace': use "
            "nonfinite='center', or neighbours='add_remove'"
        )


def refuse_if_elsewhere(calibrated: Runnable[object], source: Source) -> None:
    """Raise an error, before anything is spent, if the run makes thousands of queries and the records are not in this
    process.
    """
    if calibrated.needs_local_records and source.local is None:
        raise ValueError(
            "this method computes thousands of exact scores and needs all records in this process: load the records "
            "into one array, or choose another method, such as 'adaptive'"
        )


class Session:
    """A budget that is charged once. Only sessions create tapes.

    A session checks the ledger when it is created, and charges the full cost when its `with` block begins. It creates
    tapes that release no more than was charged. At the end it marks in the ledger how the block ended. The cost stays
    charged in every case.
    """

    def __init__(
        self,
        cost: PrivacyCost,
        *,
        method: str,
        name: str | None = None,
        default_name: str | None = None,
        ledger: Any = None,
        seed: int | None = None,
        record: Mapping[str, Any] | None = None,
    ) -> None:
        check_name(name)
        self.cost, self.seeded = cost, seed is not None
        self._key = seed_bytes(seed)
        self._account = as_ledger(ledger)
        self._account.check(cost)
        self._spending = spending(self._account, method, cost, name or default_name, seeded=self.seeded, record=record)
        self._state: Literal["ready", "open", "closed"] = "ready"
        self._tape: Tape | None = None
        self._labels: set[bytes] = set()
        self._lock = threading.Lock()
        self._failure: ReleaseFailed | None = None

    def __enter__(self) -> Session:
        """Charge the cost."""
        if self._state != "ready":
            raise RuntimeError("a session is charged once: create a new session")
        _warn_if_weak(self.cost)
        self._outcome = self._spending.__enter__()
        self._state = "open"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Mark how the block ended. An exception in the block is passed on."""
        self._state = "closed"
        if isinstance(error, ReleaseFailed) and error is not self._failure:
            # The failure belongs to another release, so its `ran` says nothing about the cost of this session.
            kind, error = RuntimeError, RuntimeError("another release failed in the block of this session")
        self._spending.__exit__(kind, error, traceback)

    def failure(self, failed: ReleaseFailed) -> ReleaseFailed:
        """Store a failure as the failure of this session's own run, add the trace, and return the failure.

        For such a failure a ledger may charge only `ran`, the cost of the part that ran. So `ran` is dropped if this
        session's tape has released more, for example because code of the caller raised the failure of another release.
        """
        failed.trace = self.trace
        if failed.ran is not None and failed.ran.rho * _ROUNDING < failed.trace.rho:
            failed.ran = None
        self._failure = failed
        return failed

    def require_open(self) -> None:
        """Raise an error unless the cost is charged and the block has not ended."""
        if self._state != "open":
            when = "before its block begins" if self._state == "ready" else "after its block has ended"
            raise RuntimeError(f"a session answers no query {when}: use it as `with session(...) as s:`")

    def tape(self) -> Tape:
        """Return the tape. Its releases cost at most the charge."""
        self.require_open()
        if self._tape is None:
            self._tape = capped_tape(self.cost, self._key)
        return self._tape

    def part(self, cost: PrivacyCost, label: bytes) -> Tape:
        """Return a new tape for a part of the run, such as a group.

        The caller must prove that all parts together cost at most the charge of the session. A label can be used once,
        because the noise of a seeded part is derived from its label.
        """
        self.require_open()
        with self._lock:
            if label in self._labels:
                raise RuntimeError("every part of a session must have a different label")
            self._labels.add(label)
        key = None if self._key is None else hashlib.sha256(b"dpmedian group" + self._key + label).digest()
        return capped_tape(cost, key)

    @property
    def trace(self) -> Trace:
        """The trace of all releases so far."""
        return Trace([]) if self._tape is None else trace_of(self._tape)

    def run(
        self,
        calibrated: Runnable[Value],
        data: Dataset,
        parameters: PublicParameters,
        *,
        progress: bool | Callable[[float], object] | None = None,
        finish: Callable[[Value], Result],
        failing: Callable[[ReleaseFailed], None] | None = None,
    ) -> Result:
        """Run calibrated stages on the points, in a block of this session.

        An error before the charge depends only on public parameters and on the shape (on the dimension only, if the
        number of records is private). If `nonfinite` is "raise", it may also depend on values, because only the curator
        sees the error. After the charge a failure is an output, and every error states that the cost is spent. `finish`
        is post-processing that converts the result for the caller, and may fail, too. `failing` completes a failure.
        Both run before the entry of the ledger is marked, so that the ledger gets the digest of the audit record.
        """
        require_fit(data, parameters)
        if self.cost.neighbours != parameters.neighbours:
            raise ValueError(
                f"the cost is for neighbours = {self.cost.neighbours!r}, but the run is for {parameters.neighbours!r}"
            )
        with Progress(calibrated.passes, progress) as meter:
            source = data.source(parameters, meter)
            refuse_if_elsewhere(calibrated, source)
            with self, self.spent():
                try:
                    result = finish(calibrated.run(self.weighted(source, parameters), self.tape()))
                except ReleaseFailed as failed:
                    self.failure(failed)
                    if failing is not None:
                        failing(failed)
                    raise
                self.keep(result)
        return result

    def keep(self, result: object) -> None:
        """Store the result of the block for the ledger. If the result has an audit record, the entry gets its
        digest.
        """
        self._outcome.value = result

    def weighted(self, source: Source, parameters: PublicParameters) -> Source:
        """Return the records with their weights, rounded by hidden coins. Without weights, the records are
        unchanged.
        """
        if not parameters.weighted:
            return source
        return source.weighted(Coins.of(self.tape().hidden()))

    @contextlib.contextmanager
    def spent(self) -> Iterator[None]:
        """Convert every error in this block to an error which states that the cost is spent."""
        try:
            yield
        except ReleaseFailed:
            raise
        except Exception as error:
            raise RuntimeError(f"the run stopped after its cost was charged ({self.cost}): {error}") from error


def _warn_if_weak(cost: PrivacyCost) -> None:
    """Warn of a cost that gives little protection. A cost in rho is judged by its epsilon at delta = 0.01."""
    epsilon = cost.epsilon if cost.epsilon is not None else cost.epsilon_at(_WEAK_DELTA)
    if epsilon >= _WEAK_EPSILON or (cost.delta or cost.delta0) >= _WEAK_DELTA:
        warn_caller(
            f"the budget {cost} guarantees almost nothing: usual values are epsilon up to 10, rho up to 1, and delta "
            "far below 1/n",
            WeakPrivacyWarning,
        )


def check_name(name: object) -> None:
    """Raise an error unless the name is text or None, because a record with another name could not be read."""
    if name is not None and not isinstance(name, str):
        raise TypeError(f"name must be a string, got {name!r} of type {type(name).__name__}")
    if name is not None:
        require_encodable("name", name)


def require_unit(found: str, planned: str, *, given: bool) -> None:
    """Raise an error unless the records have the unit of the plan. Ids whose column has no name get the unit of the
    plan.
    """
    if found == planned or (given and found == UNNAMED and planned != RECORD):
        return
    if planned == RECORD:
        raise ValueError(
            f"this plan is for single records: make a plan with unit={found!r} for one record per {found!r}"
        )
    if found == RECORD:
        raise ValueError(
            f"this plan protects whole units {planned!r}: pass the unit of each row, unit=ids or the name of a "
            "column; if every row is a different unit, unit=range(len(points))"
        )
    raise ValueError(f"this plan is for the unit {planned!r}, but the ids are for {found!r}: use one name for both")


def require_fit(data: Dataset, parameters: PublicParameters) -> None:
    """Raise an error, before anything is spent, unless the dataset fits these parameters."""
    require_options(data, parameters)
    require_unit(data.unit, parameters.unit, given=data.has_ids)
    data.require_ids(parameters.protection.relation)
    if not parameters.private_size and data.shape != (parameters.n, parameters.d):
        raise ValueError(f"this plan is for points of shape ({parameters.n}, {parameters.d}), got {data.shape}")
    if data.shape[1] != parameters.d:
        raise ValueError(f"points must have d = {parameters.d} columns, got {data.shape[1]}")


def require_options(data: Dataset, parameters: PublicParameters) -> None:
    """Raise an error unless the rows of the dataset became records with the options of these parameters."""
    check_nonfinite(data.nonfinite, parameters)
    for option in SHARED:
        own, planned = getattr(data, option), getattr(parameters, option)
        if own != planned:
            raise ValueError(
                f"this plan has {option} = {planned!r}, but the dataset has {own!r}: use the same value for both"
            )
