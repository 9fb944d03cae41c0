"""Accountants of other libraries in the place of a ledger."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Mapping
from typing import Any

from dpmedian.accounting import RECORD, PrivacyCost
from dpmedian.ledger.charging import Account, Charge, Unrecorded
from dpmedian.ledger.filters import pair_of
from dpmedian.ledger.ledger import Ledger

__all__ = ["PairAccountant", "as_ledger"]

# An accountant of (epsilon, delta) pairs that meets a cost asked for in rho is charged epsilon_at(delta0 + this).
DELTA_OF_RHO = 1e-6


class PairAccountant:
    """An accountant of (epsilon, delta) pairs, such as diffprivlib's, in the place of a ledger.

    It is charged the pair that was asked for. A cost asked for in rho has none, so it is charged
    (epsilon_at(delta), delta) with delta = delta0 + 1e-6, which composes worse than rho does: a `Ledger` in rho loses
    nothing. Such accountants know of no neighbours or units: a cost under "add_remove" is charged as what it is for a
    replaced record, with a warning, since the pairs in it must all mean the same; a cost per unit under "replace"
    bounds nothing for a record, and is refused. The accountant's own errors pass through unchanged.
    """

    # Accountants check and append in two steps; the lock makes them one for the threads of this process.
    _lock = threading.Lock()

    def __init__(self, accountant: Any) -> None:
        self._accountant = accountant

    def check(self, cost: PrivacyCost) -> None:
        """Asks the accountant whether the pair of the cost is permitted."""
        self._require(*_priced(cost))

    def charge(
        self,
        name: str,
        method: str,
        cost: PrivacyCost,
        *,
        seeded: bool = False,
        record: Mapping[str, Any] | None = None,
    ) -> Charge:
        """Spends the pair of the cost; the accountant has no place for the rest."""
        epsilon, delta = _priced(cost)
        if not cost.protection.is_default:
            warnings.warn(
                f"the accountant knows neither neighbours nor units: a cost under {cost.neighbours} of one {cost.unit} "
                f"is charged as epsilon = {epsilon:.6g}, delta = {delta:.6g} for a replaced {RECORD}; "
                "a dpmedian.Ledger keeps them apart",
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
    """A ledger, or what can stand for one: an accountant with diffprivlib's `check` and `spend`, or None for none."""
    if ledger is None:
        return Unrecorded()
    if isinstance(ledger, (Ledger, Unrecorded, PairAccountant)):
        return ledger
    if callable(getattr(ledger, "check", None)) and callable(getattr(ledger, "spend", None)):
        return PairAccountant(ledger)
    raise TypeError(
        "ledger must be a dpmedian.Ledger, an object with check(epsilon, delta) and spend(epsilon, delta), or None, "
        f"got {ledger!r} of type {type(ledger).__name__}"
    )
