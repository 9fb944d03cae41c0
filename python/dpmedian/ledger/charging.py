"""What a release requires of a ledger, and the order in which it is charged, run and marked."""

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
    """Whether the account keeps the digest of a record; if not, no digest needs to be computed."""

    def mark(self, state: FinalState, *, digest: str | None = None) -> None:
        """Record how the run ended, and with which record. The cost stays charged in every case.

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
        """Record that the run failed after a first part with this cost. Return whether only this cost stays charged.

        What the part released may decide that the run ended, but the cost of the part must have been fixed beforehand:
        see "A release that ends early" in ledger.md. A cost above the charge, or a call after `mark`, is an error.
        """
        return self._mark("failed", ran, digest)


class Account(Protocol):
    """The interface that a release requires of a ledger."""

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
    """No ledger: every cost is allowed, and nothing is stored."""

    def check(self, cost: PrivacyCost) -> None:
        """Allows every cost."""

    def charge(self, *told: object, **further: object) -> Charge:
        """Store nothing."""
        return Charge(lambda state, ran, digest: False, keeps_digest=False)


@dataclass
class Outcome:
    """The result of a run, which the block that ran it stores here; the ledger keeps the digest of its record."""

    value: object = None
    """The result, which has an audit record if it is, for example, a release."""


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
    """Charge the full cost before the block runs. A failure carries the cost, and stays charged, as does an
    interruption.

    The block may store its result in the `Outcome`. If the result has an audit record, the ledger gets its digest in
    the same step in which the entry is marked. If a failure has a cost `ran`, because it ended after a first part, and
    the ledger supports this, only that cost stays charged.

    Parameters
    ----------
    account : Account
        Where to charge, see `as_ledger`.
    method : str
        The method or building block that runs.
    cost : PrivacyCost
        The full planned cost.
    name : str, optional
        The name of the release; by default the name of the method.
    seeded : bool
        Whether a seed determines the noise; every rendering of the ledger shows this.
    record : mapping, optional
        A JSON object that is stored with the entry.
    """
    charge = account.charge(name or method, method, cost, seeded=seeded, record=record)

    def mark(state: FinalState, value: object = None, ran: PrivacyCost | None = None) -> bool:
        try:
            digest = _digest(value) if charge.keeps_digest else None
            if ran is not None:
                return charge.fail_after(ran, digest=digest)
            charge.mark(state, digest=digest)
        except Exception as error:  # The ledger may have become unusable during the run, for any reason.
            # The cost stays charged as pending. Neither the paid result nor the error must be lost.
            what = (
                f"the ledger could not note {name or method!r} as {state}, its cost is spent and stays charged: {error}"
            )
            try:
                warnings.warn(what, stacklevel=5)
            except Exception:  # An error here, or a warning turned into one, would take the place of the result.
                with contextlib.suppress(Exception):
                    print(what, file=sys.stderr)
        return False

    outcome = Outcome()
    try:
        yield outcome
    except ReleaseFailed as failed:
        # What ran is a part of the charge, so it holds for the same neighbors and the same unit.
        ran = None if failed.ran is None else replace(failed.ran, neighbours=cost.neighbours, unit=cost.unit)
        failed.ran = ran
        failed.cost = ran if mark("failed", failed, ran) and ran is not None else cost
        raise
    except BaseException:
        mark("interrupted")
        raise
    mark("released", outcome.value)


def _digest(value: object) -> str | None:
    """The digest of the audit record of a value, if it has a record. The failure of a building block has none."""
    if not isinstance(value, Recorded) or (isinstance(value, ReleaseFailed) and value.plan is None):
        return None
    return value.digest
