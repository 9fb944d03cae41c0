"""What commands write: results to stdout, everything else to stderr in one line."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TextIO

from dpmedian.rendering.release import release_dict

if TYPE_CHECKING:
    from dpmedian import Release

__all__ = ["EXIT_CODES", "Undelivered", "as_json", "paid_for", "say", "show"]

EXIT_CODES = """\
exit codes:
  0    done
  1    unexpected error; a charged ledger stays charged
  2    wrong arguments or data; nothing was spent
  3    the ledger's budget does not allow the release; nothing was spent
  4    the release failed, which is an output too: its full cost is spent
  5    released and spent, but the result could not be written: it is on stderr
  130  interrupted; what the ledger shows is spent
"""


class Undelivered(Exception):
    """The release was made and charged, and could not be written to where it should be."""


@contextlib.contextmanager
def paid_for(result: Release) -> Iterator[None]:
    """Whatever fails from here on comes after the charge: the release goes to stderr, so that it is not lost."""
    try:
        yield
    except Exception as error:
        _write_aside(as_json(release_dict(result)))
        raise Undelivered(f"the release above is spent, but could not be delivered: {error}") from None


def show(text: object) -> None:
    """Prints a result to stdout, at once: what stdout does not take is an error now, and not at the program's end."""
    if sys.stdout is None:
        raise OSError("stdout is closed")
    try:
        print(text, flush=True)
    except (OSError, ValueError):
        _abandon(sys.stdout)
        raise


def as_json(value: dict[str, Any]) -> str:
    """The JSON of a value, for people and programs."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def say(kind: str, message: object, code: int = 0) -> int:
    """One line on stderr; returns the exit code, which must not depend on whether anybody reads the line."""
    _write_aside(f"dpmedian: {kind}: {' '.join(str(message).split())}")
    return code


def _write_aside(text: str) -> None:
    """To stderr, if there is one that takes it. `print` would take stdout for a stderr that is closed."""
    if sys.stderr is not None:
        try:
            print(text, file=sys.stderr, flush=True)
        except (OSError, ValueError):
            _abandon(sys.stderr)


def _abandon(stream: TextIO | None) -> None:
    """Lets a broken stream lead nowhere: the interpreter flushes it at its end, and its failure is an exit code, too."""
    with contextlib.suppress(OSError, ValueError):
        if stream is not None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
