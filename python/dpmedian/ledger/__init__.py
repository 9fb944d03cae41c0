"""A privacy budget, its entries, and the filter that decides which costs still fit. Proofs: ledger.md.

The cost of a release is checked before its data are read, and charged as *pending* before the first access to the data.
After the run the entry is marked as released, failed or interrupted. Every entry counts as spent, in any state, because
a failure is an output, somebody may have seen an interruption, and a crash leaves the entry pending. The mark contains
the digest of the audit record. All lines form a hash chain; see log.py.
"""

from dpmedian.ledger.charging import Account, Charge, Outcome, spending
from dpmedian.ledger.entry import Entry
from dpmedian.ledger.errors import BrokenChain, BudgetExceeded
from dpmedian.ledger.foreign import as_ledger
from dpmedian.ledger.ledger import Ledger

__all__ = ["Account", "BrokenChain", "BudgetExceeded", "Charge", "Entry", "Ledger", "Outcome", "as_ledger", "spending"]
