"""What a release needs of a ledger, and the order in which it is charged, run and marked."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, get_args

from dpmedian.accounting import PrivacyCost
from dpmedian.ledger.entry import FinalState
from dpmedian.recorded import Recorded
from dpmedian.release import ReleaseFailed

__all__ = ["Account", "Charge", "Outcome", "Unrecorded", "spending"]


@dataclass(frozen=True)
class Charge:
    """The handle of one charged release."""

    _mark: Callable[[FinalState, PrivacyCost | None, str | None], bool]
    keeps_digest: bool = True
    """Whether the digest of a record is kept: otherwise none needs to be computed."""

    def mark(self, state: FinalState, *, digest: str | None = None) -> None:
        """Says how the run ended, and with which record. The cost stays charged in every case.

        Parameters
        ----------
        state : {"released", "failed", "interrupted"}
            How the run ended.
        digest : str, optional
            The digest of the audit record, by which `dpmedian.verify(record, ledger)` recognizes it.
        """
        if state not in get_args(FinalState):
            raise ValueError(f"state must be 'released', 'failed' or 'interrupted', got {state!r}")
        if not isinstance(digest, (str, type(None))):
            raise TypeError(f"digest must be the digest of a record, or None, got a {type(digest).__name__}")
        self._mark(state, None, digest)

    def fail_after(self, ran: PrivacyCost, *, digest: str | None = None) -> bool:
        """Says that the run failed after a first part of this cost, and whether only that stays charged.

        That it ended may be decided by what the part released, but its cost must have been fixed beforehand: see "A
        release that ends early" in ledger.md. More than was charged, or what is said after `mark`, is an error.
        """
        return self._mark("failed", ran, digest)


class Account(Protocol):
    """What a release needs of a ledger."""

    def check(self, cost: PrivacyCost) -> None:
        """Raises if the cost would exceed the budget."""

    def charge(
        self,
        name: str,
        method: str,
        cost: PrivacyCost,
        *,
        seeded: bool = False,
        record: Mapping[str, Any] | None = None,
    ) -> Charge:
        """Checks and records the cost as pending, in one step."""


class Unrecorded:
    """No ledger: everything is allowed, nothing is remembered."""

    def check(self, cost: PrivacyCost) -> None:
        """Allows every cost."""

    def charge(
        self,
        name: str,
        method: str,
        cost: PrivacyCost,
        *,
        seeded: bool = False,
        record: Mapping[str, Any] | None = None,
    ) -> Charge:
        """Remembers nothing."""
        return Charge(lambda state, ran, digest: False, keeps_digest=False)


@dataclass
class Outcome:
    """What became of a run: the block that ran it says so here, and the ledger keeps the digest of its record."""

    value: object = None
    """What has an audit record, such as a release, or anything else."""


@contextlib.contextmanager
def spending(
    account: Account,
    method: str,
    cost: PrivacyCost,
    name: str | None = None,
    *,
    seeded: bool = False,
    record: Mapping[str, Any] | None = None,
) -> Iterator[Outcome]:
    """Charges the full cost before the block runs; a failure carries it, and stays charged like an interruption.

    The block may put what it made into the `Outcome`: if that has an audit record, the ledger gets its digest, in the
    same step in which the entry is marked. A failure that says what `ran`, because it ended after a first part, carries
    that cost where the ledger keeps it.

    Parameters
    ----------
    account : Account
        Where to charge, see `as_ledger`.
    method : str
        The method or building block that runs.
    cost : PrivacyCost
        The full planned cost.
    name : str, optional
        What the release is called; the method's name by default.
    seeded : bool
        Whether a seed chooses the noise, which every rendering of the ledger shows.
    record : mapping, optional
        A JSON object to be stored with the entry.
    """
    charge = account.charge(name or method, method, cost, seeded=seeded, record=record)

    def mark(state: FinalState, value: object = None, ran: PrivacyCost | None = None) -> bool:
        try:
            digest = _digest(value) if charge.keeps_digest else None
            if ran is not None:
                return charge.fail_after(ran, digest=digest)
            charge.mark(state, digest=digest)
        except Exception as error:  # Whatever became of the ledger during the run.
            # The cost stays charged as pending, and neither what was paid for nor what went wrong must be lost.
            what = (
                f"the ledger could not note {name or method!r} as {state}, its cost is spent and stays charged: {error}"
            )
            try:
                warnings.warn(what, stacklevel=5)
            except Exception:  # An error of its own, or one made of a warning, would take the result's place.
                with contextlib.suppress(Exception):
                    print(what, file=sys.stderr)
        return False

    outcome = Outcome()
    try:
        yield outcome
    except ReleaseFailed as failed:
        # What ran is a part of what was charged, so it holds for the same neighbours and the same unit.
        ran = None if failed.ran is None else replace(failed.ran, neighbours=cost.neighbours, unit=cost.unit)
        failed.ran = ran
        failed.cost = ran if mark("failed", failed, ran) and ran is not None else cost
        raise
    except BaseException:
        mark("interrupted")
        raise
    mark("released", outcome.value)


def _digest(value: object) -> str | None:
    """The digest of the audit record of a value, if it has one. That of a building block's failure does not exist."""
    if not isinstance(value, Recorded) or (isinstance(value, ReleaseFailed) and value.plan is None):
        return None
    return value.digest
