"""Audit records read back, and their claims computed again."""

from dpmedian.verification.check import Verification
from dpmedian.verification.verify import verify

__all__ = ["Verification", "verify"]
