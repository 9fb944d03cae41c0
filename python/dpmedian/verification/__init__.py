"""Reading audit records, and computing their claims again."""

from dpmedian.verification.check import Verification
from dpmedian.verification.verify import verify

__all__ = ["Verification", "verify"]
