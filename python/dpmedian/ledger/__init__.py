"""A budget, what was spent of it, and the filter that decides what may still be spent. Proofs: ledger.md.

A release is checked against the ledger before its data are read, and charged as *pending* before the first access to
them. Afterwards it is marked as released, failed or interrupted. Every entry counts as spent, in any state: a failure
is an output, an interruption may have been seen, and a crash leaves the entry pending. The mark contains the digest of
the audit record, and all lines are chained: see log.py.
"""

from dpmedian.ledger.charging import Account, Charge, Outcome, spending
from dpmedian.ledger.entry import Entry
from dpmedian.ledger.errors import BrokenChain, BudgetExceeded
from dpmedian.ledger.foreign import as_ledger
from dpmedian.ledger.ledger import Ledger

__all__ = ["Account", "BrokenChain", "BudgetExceeded", "Charge", "Entry", "Ledger", "Outcome", "as_ledger", "spending"]
