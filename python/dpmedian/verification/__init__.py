"""Functions that read audit records and compute the claims of the records again."""

from dpmedian.verification.check import Verification
from dpmedian.verification.verify import verify

__all__ = ["Verification", "verify"]
