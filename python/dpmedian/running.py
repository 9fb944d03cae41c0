"""The one runner: convert once, check, charge, run, mark. Plans and building blocks go through it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from dpmedian.accounting import PrivacyCost
from dpmedian.accounting.neighbours import RECORD
from dpmedian.dataset import Dataset
from dpmedian.ledger import Account, Outcome, as_ledger, spending
from dpmedian.parameters import PublicParameters
from dpmedian.progress import Progress
from dpmedian.recorded import Recorded
from dpmedian.release import ReleaseFailed
from dpmedian.sources.array import ArraySource
from dpmedian.sources.protocol import Source
from dpmedian.sources.units import UNNAMED
from dpmedian.tape import Tape, capped_tape, seed_bytes
from dpmedian.warning import WeakPrivacyWarning, warn_caller

__all__ = [
    "Done",
    "Runnable",
    "charged",
    "check_name",
    "check_nonfinite",
    "refuse_if_elsewhere",
    "require_fit",
    "require_options",
    "require_unit",
    "run_calibrated",
]

# Budgets from here on are mistakes: an event becomes e^20 times as likely, or one record in a hundred is shown.
_WEAK_EPSILON, _WEAK_DELTA = 20.0, 0.01

Value = TypeVar("Value")
Value_co = TypeVar("Value_co", covariant=True)


class Runnable(Protocol[Value_co]):
    """Calibrated stages that can run: a method, or a part of one."""

    needs_local_records: ClassVar[bool]

    @property
    def passes(self) -> float: ...

    def run(self, source: Source, tape: Tape) -> Value_co: ...


def check_nonfinite(nonfinite: str, parameters: PublicParameters) -> None:
    """Raises if records that are not finite cannot be treated like this because the number of records is public."""
    if nonfinite == "drop" and not parameters.private_size:
        raise ValueError(
            "nonfinite='drop' changes the number of records, which neighbours='replace' takes for public: use "
            "nonfinite='center', or neighbours='add_remove'"
        )


def refuse_if_elsewhere(calibrated: Runnable[object], source: Source) -> None:
    """Raises, before anything is spent, if the run asks thousands of times and the records are not in this process."""
    if calibrated.needs_local_records and source.local is None:
        raise ValueError(
            "this method asks for exact scores thousands of times, which takes all records in this process: load them "
            "into one array, or choose a method that asks in rounds, such as 'adaptive'"
        )


@dataclass(frozen=True)
class Done(Generic[Value]):
    """What a run released, the column names of its records, and what `describe` made of it."""

    value: Value
    columns: tuple[str, ...] | None
    described: Recorded | None = None


def charged(
    account: Account,
    method: str,
    cost: PrivacyCost,
    name: str | None = None,
    *,
    seeded: bool = False,
    record: Mapping[str, Any] | None = None,
) -> contextlib.AbstractContextManager[Outcome]:
    """Charges the cost before the block runs. Whatever stops the block afterwards says that the cost is spent."""
    _warn_if_weak(cost)  # Here, where the frames up to the caller's line are all our own.
    return _charged(account, method, cost, name, seeded, record)


@contextlib.contextmanager
def _charged(
    account: Account,
    method: str,
    cost: PrivacyCost,
    name: str | None,
    seeded: bool,
    record: Mapping[str, Any] | None,
) -> Iterator[Outcome]:
    with spending(account, method, cost, name, seeded=seeded, record=record) as outcome:
        try:
            yield outcome
        except ReleaseFailed:
            raise
        except Exception as error:
            raise RuntimeError(f"the run stopped after its cost was charged ({cost}): {error}") from error


def _warn_if_weak(cost: PrivacyCost) -> None:
    """Warns of a cost that protects little. One in rho is judged by the epsilon that it has at a delta that is weak."""
    epsilon = cost.epsilon if cost.epsilon is not None else cost.epsilon_at(_WEAK_DELTA)
    if epsilon >= _WEAK_EPSILON or (cost.delta or cost.delta0) >= _WEAK_DELTA:
        warn_caller(
            f"the budget {cost} promises next to nothing: usual values are epsilon up to 10, rho up to 1, and delta "
            "far below 1/n",
            WeakPrivacyWarning,
        )


def check_name(name: object) -> None:
    """Raises unless it is text or None: the record of a release that is called otherwise could not be read back."""
    if name is not None and not isinstance(name, str):
        raise TypeError(f"name must be a string, got {name!r} of type {type(name).__name__}")


def require_unit(found: str, planned: str, *, given: bool) -> None:
    """Raises unless the records are those of the plan's unit. Ids without a name of their own take the plan's."""
    if found == planned or (given and found == UNNAMED and planned != RECORD):
        return
    if planned == RECORD:
        raise ValueError(f"this plan is for single records: make one with unit={found!r} for one record per {found!r}")
    if found == RECORD:
        raise ValueError(
            f"this plan protects whole units {planned!r}: say which rows belong to which, unit=ids or the name of a "
            "column; where every row is a unit of its own, unit=range(len(points))"
        )
    raise ValueError(
        f"this plan is for the unit {planned!r}, and the ids are those of {found!r}: use one name for both"
    )


def require_fit(data: Dataset, parameters: PublicParameters) -> None:
    """Raises, before anything is spent, unless the dataset is one for these parameters."""
    require_options(data, parameters)
    require_unit(data.unit, parameters.unit, given=data.has_ids)
    data.require_ids(parameters.neighbours)
    if not parameters.private_size and data.shape != (parameters.n, parameters.d):
        raise ValueError(f"this plan is for points of shape ({parameters.n}, {parameters.d}), got {data.shape}")
    if data.shape[1] != parameters.d:
        raise ValueError(f"points must have d = {parameters.d} columns, got {data.shape[1]}")


def require_options(data: Dataset, parameters: PublicParameters) -> None:
    """Raises unless the rows of the dataset became records as the parameters say."""
    check_nonfinite(data.nonfinite, parameters)
    for option in ("geometry", "scales", "weight_max"):
        own, planned = getattr(data, option), getattr(parameters, option)
        if own != planned:
            raise ValueError(f"this plan has {option} = {planned!r}, and the dataset has {own!r}: use one for both")


def run_calibrated(
    calibrated: Runnable[Value],
    data: Dataset,
    parameters: PublicParameters,
    *,
    cost: PrivacyCost,
    method: str,
    name: str | None = None,
    record: Mapping[str, Any] | None = None,
    ledger: Any = None,
    seed: int | None = None,
    progress: bool | Callable[[float], object] | None = None,
    finish: Callable[[Value], Value] | None = None,
    describe: Callable[[Value, tuple[str, ...] | None], Recorded] | None = None,
    describe_failure: Callable[[ReleaseFailed], ReleaseFailed] | None = None,
) -> Done[Value]:
    """Runs calibrated stages on the points and charges their full cost before the first release.

    Whatever raises before the charge depends on public parameters, on the shape (where the number of records is
    private, on the dimension only), or, where `nonfinite` is "raise", on values that the curator alone sees. Afterwards
    a failure is an output, and every error says that the cost is spent. `finish` is post-processing that may fail, too.
    `describe` and `describe_failure` make what has an audit record, before the entry of the ledger is marked, so that
    the ledger gets its digest.
    """
    require_fit(data, parameters)
    if cost.neighbours != parameters.neighbours:
        raise ValueError(f"the cost is for neighbours = {cost.neighbours!r}, the run for {parameters.neighbours!r}")
    tape = capped_tape(cost, seed_bytes(seed))
    account = as_ledger(ledger)
    account.check(cost)
    with Progress(calibrated.passes, progress) as meter:
        source = data.source(parameters, meter)
        refuse_if_elsewhere(calibrated, source)
        with charged(account, method, cost, name, seeded=seed is not None, record=record) as outcome:
            if parameters.weighted:
                if not isinstance(source, ArraySource):
                    raise TypeError("weights are for rows in memory")
                source = source.weighted(tape.hidden())
            try:
                value = calibrated.run(source, tape)
                value = value if finish is None else finish(value)
            except ReleaseFailed as failed:
                raise failed if describe_failure is None else describe_failure(failed) from None
            described = None if describe is None else describe(value, data.columns)
            outcome.value = described
    return Done(value, data.columns, described)
