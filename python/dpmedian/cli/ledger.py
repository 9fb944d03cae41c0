"""`dpmedian ledger`: a budget in a file."""

from __future__ import annotations

import argparse
from typing import Any

from dpmedian import Ledger
from dpmedian.accounting.protection import RECORD
from dpmedian.cli.arguments import add_budget, add_neighbours, add_output
from dpmedian.cli.output import show
from dpmedian.rendering.record import as_json

__all__ = ["add", "create_ledger", "open_ledger", "show_ledger"]


def create_ledger(options: argparse.Namespace) -> None:
    """Creates a ledger, or shows the one that is there if its budget is the same."""
    terms = {name: getattr(options, name) for name in ("epsilon", "delta", "rho", "neighbours", "unit")}
    show(Ledger(**terms, path=options.file))


def show_ledger(options: argparse.Namespace) -> None:
    """Prints a ledger's budget and entries."""
    ledger = open_ledger(options.file)
    show(ledger if options.output == "table" else as_json(ledger.to_dict()))


def open_ledger(path: str) -> Ledger:
    try:
        return Ledger.open(path)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{error}; for a new one: dpmedian ledger create {path} --epsilon ... ") from None


def add(commands: Any) -> None:
    """Adds the command and its arguments."""
    parser = commands.add_parser("ledger", help="a budget in a file: create it, show it")
    actions = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    create = actions.add_parser("create", help="a new ledger", description="Create a ledger with a budget.")
    create.add_argument("file", help="for example ledger.json")
    add_budget(create, "the ledger")
    add_neighbours(create)
    create.add_argument("--unit", default=RECORD, help="whose contribution is protected; default: one %(default)s")
    create.set_defaults(command=create_ledger)
    show = actions.add_parser("show", help="what was spent", description="Show a ledger's budget and entries.")
    show.add_argument("file")
    add_output(show, "table")
    show.set_defaults(command=show_ledger)
