"""A progress bar for long runs, which depends only on public numbers of steps."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable
from types import TracebackType

__all__ = ["Progress"]

# A bar appears on a terminal if a run takes longer than _PATIENCE seconds. It is updated at most once every _INTERVAL
# seconds.
_PATIENCE = 2.0
_INTERVAL = 0.1
_WIDTH = 32


class Progress:
    """A count of the planned passes over the data. The callback of a kernel reports the finished fraction of its own
    pass.

    As a context manager it reports 0 at the beginning, and 1 at the end of a run that succeeded. The reported number
    never decreases.
    """

    def __init__(self, passes: float, show: bool | Callable[[float], object] | None = None) -> None:
        self._passes = max(passes, 1.0)
        self._done = 0.0
        self._callback = show if callable(show) else None
        # A program without a terminal may have no stderr.
        self._bar = sys.stderr is not None and (show is True or (show is None and sys.stderr.isatty()))
        self._started = time.monotonic()
        self._patience = 0.0 if show is True else _PATIENCE
        self._last = 0.0
        self._reached = 0.0
        self._drawn = False

    def span(self, passes: float = 1.0) -> Callable[[float], None]:
        """A callback for a kernel that makes this number of the planned passes."""
        base = self._done
        self._done += passes
        return lambda done: self._advance((base + passes * done) / self._passes)

    def __enter__(self) -> Progress:
        self._show(0.0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self._callback is not None:
            # If the caller's callback raises an error at the last report, the result, which was paid for, must not be
            # lost.
            with contextlib.suppress(Exception):
                self._show(1.0)
        if self._drawn:
            self._draw("\r" + " " * (_WIDTH + 18) + "\r")

    def _advance(self, fraction: float) -> None:
        now = time.monotonic()
        if now - self._last >= _INTERVAL:
            self._last = now
            self._show(fraction)

    def _show(self, fraction: float) -> None:
        self._reached = fraction = min(max(fraction, self._reached), 1.0)
        if self._callback is not None:
            self._callback(fraction)
        elif self._bar and time.monotonic() - self._started >= self._patience:
            filled = round(_WIDTH * fraction)
            self._draw(f"\rdpmedian [{'#' * filled}{'.' * (_WIDTH - filled)}] {fraction:4.0%}")

    def _draw(self, text: str) -> None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
            self._drawn = True
        except (OSError, ValueError):  # If the terminal was closed, the result, which was paid for, must not be lost.
            self._bar = self._drawn = False
