"""Adapters for accountants of other libraries, which can be used instead of a ledger."""

from __future__ import annotations

import os
import threading
import warnings
from typing import Any

from dpmedian.accounting import RECORD, PrivacyCost
from dpmedian.ledger.charging import Account, Charge, Unrecorded
from dpmedian.ledger.filters import pair_of
from dpmedian.ledger.ledger import Ledger

__all__ = ["PairAccountant", "as_ledger"]

# An accountant of (epsilon, delta) pairs is charged epsilon_at(delta0 + this number) for a cost in rho.
DELTA_OF_RHO = 1e-6


class PairAccountant:
    """An accountant of (epsilon, delta) pairs, such as diffprivlib's, that is used instead of a ledger.

    The accountant is charged the requested pair. A cost in rho has no pair, so it is charged (epsilon_at(delta), delta)
    with delta = delta0 + 1e-6. For several costs in rho, the sum of these pairs is larger than necessary. A `Ledger` in
    rho avoids this. Accountants of pairs know neither neighbors nor units, so all their pairs must have the same
    meaning. Therefore a cost under "add_remove" is charged as the cost for a replaced record, with a warning. A cost
    per unit under "replace" is refused, because it gives no bound for a record. Errors of the accountant are passed on
    unchanged.
    """

    # Accountants check and append in two steps. With the lock, no other thread of this process can charge in between.
    _lock = threading.Lock()

    def __init__(self, accountant: Any) -> None:
        self._accountant = accountant

    def check(self, cost: PrivacyCost) -> None:
        """Check with the accountant whether the pair of the cost is permitted."""
        self._require(*_priced(cost))

    def charge(self, name: str, method: str, cost: PrivacyCost, **further: object) -> Charge:
        """Spend the pair of the cost. The accountant stores nothing else."""
        epsilon, delta = _priced(cost)
        if not cost.protection.is_default:
            warnings.warn(
                f"the accountant knows neither neighbours nor units: a cost under {cost.neighbours} of one {cost.unit} "
                f"is charged as epsilon = {epsilon:.6g}, delta = {delta:.6g} for a replaced {RECORD}; "
                "a dpmedian.Ledger distinguishes them",
                stacklevel=2,
            )
        with self._lock:
            self._require(epsilon, delta)
            self._accountant.spend(epsilon, delta)
        return Charge(lambda state, ran, digest: False, keeps_digest=False)

    def _require(self, epsilon: float, delta: float) -> None:
        if self._accountant.check(epsilon, delta) is False:
            raise ValueError(f"the accountant refuses epsilon = {epsilon:.6g}, delta = {delta:.6g}")


def _priced(cost: PrivacyCost) -> tuple[float, float]:
    cost = cost.per_record().under("replace")
    pair = pair_of(cost)
    if pair is not None:
        return pair
    delta = cost.delta0 + DELTA_OF_RHO
    if delta >= 1.0:
        raise ValueError(f"no (epsilon, delta) pair states the cost {cost}: use a Ledger in rho, Ledger(rho=...)")
    return cost.epsilon_at(delta), delta


def as_ledger(ledger: object) -> Account:
    """Return the account of a ledger, of an accountant with diffprivlib's methods `check` and `spend`, or of None."""
    if ledger is None:
        return Unrecorded()
    if isinstance(ledger, (Ledger, Unrecorded, PairAccountant)):
        return ledger
    if callable(getattr(ledger, "check", None)) and callable(getattr(ledger, "spend", None)):
        return PairAccountant(ledger)
    remedy = ""
    if isinstance(ledger, (str, os.PathLike)):
        remedy = f"; a file of a ledger is opened by dpmedian.Ledger.open({os.fspath(ledger)!r})"
    raise TypeError(
        "ledger must be a dpmedian.Ledger, an object with check(epsilon, delta) and spend(epsilon, delta), or None, "
        f"got {ledger!r} of type {type(ledger).__name__}{remedy}"
    )
