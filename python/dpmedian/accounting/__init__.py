"""The costs of releases, the budgets that limit them, and the noise that a budget requires. Proofs: accounting.md."""

from dpmedian.accounting.budget import Budget
from dpmedian.accounting.calibration import calibrate
from dpmedian.accounting.cost import PrivacyCost
from dpmedian.accounting.protection import RECORD, Neighbours

__all__ = ["RECORD", "Budget", "Neighbours", "PrivacyCost", "calibrate"]
