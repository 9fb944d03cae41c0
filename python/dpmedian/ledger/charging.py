"""The interface between a release and a ledger: a release is charged, then run, then marked."""

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
    """Whether the account stores the digest of an audit record. If not, no digest is computed."""

    def mark(self, state: FinalState, *, digest: str | None = None) -> None:
        """Note how the run ended, and the digest of its audit record. The cost stays charged in every case.

        Parameters
        ----------
        state : {"released", "failed", "interrupted"}
            How the run ended.
        digest : str, optional
            The digest of the audit record, by which `dpmedian.verify(record, ledger)` recognizes the record.
        """
        if state not in get_args(FinalState):
            raise ValueError(f"state must be 'released', 'failed' or 'interrupted', got {state!r}")
        if not isinstance(digest, (str, type(None))):
            raise TypeError(f"digest must be the digest of a record, or None, got a {type(digest).__name__}")
        self._mark(state, None, digest)

    def fail_after(self, ran: PrivacyCost, *, digest: str | None = None) -> bool:
        """Note that the run failed after a first part with this cost. Return True if the charge was reduced to this
        cost, and False if the full cost stays charged.

        The run may end because of the results of its first part. The cost of this part, however, must have been fixed
        before it ran; see "A release that ends early" in ledger.md. A cost above the charge, or a call after `mark`, is
        an error.
        """
        return self._mark("failed", ran, digest)


class Account(Protocol):
    """The interface that a release requires of a ledger."""

    def check(self, cost: PrivacyCost) -> None:
        """Raise an error if the cost would exceed the budget."""

    def charge(
        self,
        name: str,
        method: str,
        cost: PrivacyCost,
        *,
        seeded: bool = False,
        record: Mapping[str, Any] | None = None,
    ) -> Charge:
        """Check the cost and store it as pending, in one step."""


class Unrecorded:
    """The account of a release without a ledger. Every cost is allowed, and nothing is stored."""

    def check(self, cost: PrivacyCost) -> None:
        """Allow every cost."""

    def charge(self, *arguments: object, **further: object) -> Charge:
        """Store nothing."""
        return Charge(lambda state, ran, digest: False, keeps_digest=False)


@dataclass
class Outcome:
    """The result of a run. The body of the `with` statement stores the result here, and the ledger stores the digest of
    its audit record.
    """

    value: object = None
    """The result. Some results, such as releases, have an audit record."""


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
    """Charge the full cost before the body of the `with` statement runs, and mark the entry afterwards.

    The body may store its result in the `Outcome`. If the result has an audit record, its digest is stored in the same
    step in which the entry is marked. If the body fails or is interrupted, the cost stays charged, and is stored in a
    `ReleaseFailed` as `failed.cost`. There is one exception: if a failure states the cost of the part that ran
    (`failed.ran`), and the ledger can reduce a charge, only this cost stays charged.

    Parameters
    ----------
    account : Account
        The account that is charged; see `as_ledger`.
    method : str
        The method or building block that runs.
    cost : PrivacyCost
        The full planned cost.
    name : str, optional
        The name of the release; by default the name of the method.
    seeded : bool
        Whether a seed determines the noise. Every display of the ledger shows this.
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
        except Exception as error:  # The ledger may have become unusable during the run.
            # The cost stays charged as pending. Neither the result, which was paid for, nor the error may be lost.
            what = (
                f"the ledger could not mark {name or method!r} as {state}; its cost is spent and stays charged: {error}"
            )
            try:
                warnings.warn(what, stacklevel=5)
            except Exception:  # An error here (or a warning that is turned into an error) would replace the result.
                with contextlib.suppress(Exception):
                    print(what, file=sys.stderr)
        return False

    outcome = Outcome()
    try:
        yield outcome
    except ReleaseFailed as failed:
        # `failed.ran` is a part of the charged cost, so it has the relation and the unit of the charge.
        ran = None if failed.ran is None else replace(failed.ran, neighbours=cost.neighbours, unit=cost.unit)
        failed.ran = ran
        failed.cost = ran if mark("failed", failed, ran) and ran is not None else cost
        raise
    except BaseException:
        mark("interrupted")
        raise
    mark("released", outcome.value)


def _digest(value: object) -> str | None:
    """The digest of the audit record of a value, or None without a record. The failure of a building block has none."""
    if not isinstance(value, Recorded) or (isinstance(value, ReleaseFailed) and value.plan is None):
        return None
    return value.digest
