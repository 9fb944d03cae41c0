"""`dpmedian report` writes the page of an audit record."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from dpmedian.cli.ledger import open_ledger
from dpmedian.cli.output import show
from dpmedian.report import write_page
from dpmedian.verification.reading import parsed

__all__ = ["add", "write_report"]


def write_report(options: argparse.Namespace) -> None:
    """Write the page of a record."""
    text = sys.stdin.read() if options.file == "-" else Path(options.file).read_text(encoding="utf-8")
    ledger = None if options.ledger is None else open_ledger(options.ledger).to_dict()
    write_page(parsed(text), options.page, ledger)
    show(f"{options.page}: one HTML file, which loads nothing and contains no private data")


def add(commands: Any) -> None:
    """Add the command and its arguments."""
    parser = commands.add_parser(
        "report",
        help="a page about a release, for those who approve it",
        description="Write a page about an audit record.\nThe page is a single HTML file, made from the record alone.",
        epilog="example: dpmedian report record.json page.html",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "file", help="the audit record: what dpmedian release printed, or release.to_json(); - means stdin"
    )
    parser.add_argument("page", help="for example page.html")
    parser.add_argument("--ledger", metavar="FILE", help="also show the entries of this ledger")
    parser.set_defaults(command=write_report)
