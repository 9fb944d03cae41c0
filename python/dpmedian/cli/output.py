"""The output of commands: results on stdout, and everything else in one line on stderr."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Iterator
from typing import TextIO

from dpmedian import Ledger, Release, ReleaseFailed, Releases

__all__ = ["EXIT_CODES", "Refuted", "Undelivered", "hand_out", "paid_for", "say", "show", "show_failure", "shown"]

EXIT_CODES = """\
exit codes:
  0    done
  1    unexpected error; a charged ledger stays charged
  2    wrong arguments or data; nothing was spent
  3    the remaining budget of the ledger is too small; nothing was spent
  4    the release failed; a failure is an output, too, so its cost is spent
  5    released and spent, but the result could not be written: it is on stderr
  6    the claim of an audit record does not hold
  130  interrupted; every charge in the ledger stays spent
"""


class Refuted(Exception):
    """The claim of a record does not hold."""


class Undelivered(Exception):
    """The release was made and charged, but could not be written to its destination."""


@contextlib.contextmanager
def paid_for(result: Release | Releases) -> Iterator[None]:
    """Run a block after the charge. If the block fails, the release is written to stderr, so that it is not lost."""
    try:
        yield
    except Exception as error:
        _write_error(_record(result))
        raise Undelivered(f"the release above is spent, but the result could not be written: {error}") from None


def hand_out(result: Release | Releases, options: argparse.Namespace, ledger: Ledger | None) -> None:
    """Print a result that was charged, and write its page if `--report` was given."""
    with paid_for(result):
        deliver(shown(result, options.output))
    if options.report is not None:
        with paid_for(result):
            result.report(options.report, ledger=ledger)


def show_failure(failed: ReleaseFailed) -> None:
    """Print the record of a failure, which is an output, to stdout, or to stderr if stdout cannot be written."""
    text = _record(failed)
    try:
        deliver(text)
    except (OSError, ValueError):
        _write_error(text)


def _record(result: Release | Releases | ReleaseFailed) -> str:
    """Return the audit record, or if the record cannot be made, a text that describes the result.

    This function runs after the charge, so it must not fail.
    """
    try:
        return result.to_json()
    except Exception:
        return str(result)


def shown(result: Release | Releases, output: str) -> str:
    """Return a result in the form that --output states: a table for people, a CSV file, or the audit record."""
    if output == "table":
        if isinstance(result, Release) and result.plan.parameters.axes > 0.0:
            return f"{result}\n{result.axes()}"
        return str(result)
    return result.to_csv() if output == "csv" else result.to_json()


def show(text: object) -> None:
    """Print a text that a second call of the command would print again. If the reader closes the pipe early, as `head`
    does, this is not an error.
    """
    with contextlib.suppress(BrokenPipeError):
        deliver(text)


def deliver(text: object) -> None:
    """Print a result that was charged, and flush stdout, so that a failure to write is an error now and not at exit."""
    if sys.stdout is None:
        raise OSError("stdout is closed")
    try:
        print(text, flush=True)
    except (OSError, ValueError):
        _abandon(sys.stdout)
        raise


def say(kind: str, message: object, code: int = 0) -> int:
    """Print one line to stderr and return the exit code, which is the same if the line cannot be written."""
    _write_error(f"dpmedian: {kind}: {' '.join(str(message).split())}")
    return code


def _write_error(text: str) -> None:
    """Write to stderr if it is open. `print` would write to stdout if stderr were closed."""
    if sys.stderr is not None:
        try:
            print(text, file=sys.stderr, flush=True)
        except (OSError, ValueError):
            _abandon(sys.stderr)


def _abandon(stream: TextIO | None) -> None:
    """Redirect a broken stream to the null device.

    Otherwise the interpreter would flush it at exit and change the exit code.
    """
    with contextlib.suppress(OSError, ValueError):
        if stream is not None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
