"""What commands write: results to stdout, everything else to stderr in one line."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from typing import Any

__all__ = ["EXIT_CODES", "Undelivered", "as_json", "deliver", "say"]

EXIT_CODES = """\
exit codes:
  0    done
  1    unexpected error; a charged ledger stays charged
  2    wrong arguments or data; nothing was spent
  3    the ledger's budget does not allow the release; nothing was spent
  4    the release failed, which is an output too: its full cost is spent
  5    released and spent, but stdout did not take the result: it is on stderr
  130  interrupted; what the ledger shows is spent
"""


class Undelivered(Exception):
    """The release was made and charged, and stdout did not take it."""


def deliver(text: str) -> None:
    """Prints what was paid for; where stdout fails (a full disk, a closed pipe), to stderr, so that it is not lost."""
    try:
        print(text, flush=True)
    except (OSError, ValueError) as error:
        # The interpreter would try to flush stdout again at its end, and fail with another exit code.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        with contextlib.suppress(OSError, ValueError):
            print(text, file=sys.stderr, flush=True)
        raise Undelivered(f"the release above is spent, but could not be written to stdout: {error}") from None


def as_json(value: dict[str, Any]) -> str:
    """The JSON of a value, for people and programs."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def say(kind: str, message: object, code: int = 0) -> int:
    """One line on stderr; returns the exit code."""
    print(f"dpmedian: {kind}: {' '.join(str(message).split())}", file=sys.stderr)
    return code
