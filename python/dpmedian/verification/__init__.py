"""Audit records read back, and their claims computed again."""

from dpmedian.verification.verify import Verification, verify

__all__ = ["Verification", "verify"]
