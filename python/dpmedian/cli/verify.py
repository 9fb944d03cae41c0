"""`dpmedian verify` checks an audit record, and `dpmedian sign` signs an audit record."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from dpmedian import verify
from dpmedian.cli.ledger import open_ledger
from dpmedian.cli.output import Refuted, say, show
from dpmedian.digests import as_json
from dpmedian.ledger import BrokenChain, Ledger
from dpmedian.verification.reading import parsed
from dpmedian.verification.signature import sign

__all__ = ["add", "read_record", "sign_record", "verify_record"]


def read_record(file: str) -> str:
    """Return the text of a record, from a file or stdin."""
    return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")


def verify_record(options: argparse.Namespace) -> None:
    """Compute the claims of a record again, compare the record with a ledger, and print the findings in words."""
    found = verify(read_record(options.file), _ledger(options.ledger), key=options.key)
    show(found)
    if not found.holds:
        raise Refuted(f"{options.file}: {found.wrong[0]}")
    if not found.whole:
        say(
            "warning", f"{options.file}: another version made this record, so not everything was checked: see the notes"
        )


def _ledger(path: str | None) -> Ledger | str | None:
    """Return the ledger, or its path if the ledger is inconsistent, so that the verdict reports the inconsistency.
    Without a path, return None.
    """
    try:
        return None if path is None else open_ledger(path)
    except BrokenChain:
        return path


def sign_record(options: argparse.Namespace) -> None:
    """Print a record with a signature."""
    record = parsed(read_record(options.file))
    found = verify(record)
    if not found.holds:
        raise Refuted(f"{options.file} is not signed: {found.wrong[0]}")
    show(as_json(sign(record, options.key)))


def add(commands: Any) -> None:
    """Add the commands and their arguments."""
    parser = commands.add_parser(
        "verify",
        help="check whether the claim of an audit record holds",
        description="Compute the sensitivities, the costs and the budget in an audit record again.\n"
        "This needs no data and spends nothing.",
        epilog="example: dpmedian verify record.json --ledger ledger.json",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "file", help="the audit record: what dpmedian release printed, or release.to_json(); - means stdin"
    )
    parser.add_argument(
        "--ledger", metavar="FILE", help="the ledger that was charged; it must have an entry for exactly this record"
    )
    parser.add_argument(
        "--key", metavar="FILE", help="PEM file with the public key of the person who signed the record"
    )
    parser.set_defaults(command=verify_record)
    parser = commands.add_parser(
        "sign",
        help="sign an audit record with a private key",
        description="Print an audit record with an Ed25519 signature of its digest (needs the extra sign).",
        epilog="example: dpmedian sign record.json --key private.pem > signed.json",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", help="the record; - means stdin")
    parser.add_argument(
        "--key", metavar="FILE", required=True, help="PEM file with the private key, without a password"
    )
    parser.set_defaults(command=sign_record)
