"""The warnings of this package, which point to the line of the user's code."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings

__all__ = [
    "ConversionWarning",
    "InsecureSeedWarning",
    "LikelyFailureWarning",
    "LongRunWarning",
    "PlainConnectionWarning",
    "WeakPrivacyWarning",
    "warn_caller",
]


class ConversionWarning(UserWarning):
    """A ledger charges a multiple of a cost, because it has other neighbors or another unit than the release."""


class InsecureSeedWarning(UserWarning):
    """A seed makes the noise predictable. Seeds are for simulations and tests only, never for a release that is
    published.
    """


class LikelyFailureWarning(UserWarning):
    """A release is predicted to fail more often than `failure_probability`. A failure is charged, too."""


class LongRunWarning(UserWarning):
    """A release is predicted to take more than a minute of the processor's time."""


class PlainConnectionWarning(UserWarning):
    """Exact sums and records are sent between machines without encryption. Start the cluster with TLS."""


class WeakPrivacyWarning(UserWarning):
    """A budget is so large that it guarantees almost nothing."""


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn at the first frame outside of this package, so that each line of a user's script warns once."""
    here = os.path.dirname(os.path.abspath(__file__))
    # Context managers of this package are entered through the standard library, so frames of contextlib are skipped,
    # too.
    ours = (here + os.sep, os.path.abspath(contextlib.__file__))
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and os.path.abspath(frame.f_code.co_filename).startswith(ours):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
