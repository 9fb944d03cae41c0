"""`dpmedian verify`: whether the claim of an audit record holds."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from dpmedian import verify
from dpmedian.cli.output import Refuted, show

__all__ = ["add", "verify_record"]


def verify_record(options: argparse.Namespace) -> None:
    """Computes a record again and says in words what was found."""
    text = sys.stdin.read() if options.file == "-" else Path(options.file).read_text(encoding="utf-8")
    found = verify(text)
    show(found)
    if not found.holds:
        raise Refuted(f"{options.file}: {found.wrong[0]}")


def add(commands: Any) -> None:
    """Adds the command and its arguments."""
    parser = commands.add_parser(
        "verify",
        help="whether the claim of an audit record holds",
        description="Compute an audit record again: sensitivities, costs, budget. It needs no data and spends nothing.",
        epilog="example: dpmedian verify record.json",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", help="what dpmedian release printed, or release.to_json(); - is stdin")
    parser.set_defaults(command=verify_record)
