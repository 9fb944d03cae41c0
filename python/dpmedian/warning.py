"""The warnings of this package, which point to the user's own line."""

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
    """A ledger charges a multiple of a cost, because it counts other neighbors or another unit than the release
    does.
    """


class InsecureSeedWarning(UserWarning):
    """A seed makes the noise predictable: for simulations and tests only, never for a release that is published."""


class LikelyFailureWarning(UserWarning):
    """A release is predicted to fail more often than `failure_probability`; it would be charged in any case."""


class LongRunWarning(UserWarning):
    """A release is predicted to take more than a minute of the processor's time."""


class PlainConnectionWarning(UserWarning):
    """Exact sums and records travel between machines without encryption: start the cluster with TLS."""


class WeakPrivacyWarning(UserWarning):
    """A budget is so large that it promises next to nothing."""


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn at the first frame outside of this package, so that each line of a user's script warns once."""
    here = os.path.dirname(os.path.abspath(__file__))
    # Our context managers are entered through the standard library, so its frames are skipped, too.
    ours = (here + os.sep, os.path.abspath(contextlib.__file__))
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and os.path.abspath(frame.f_code.co_filename).startswith(ours):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
