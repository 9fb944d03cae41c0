"""`dpmedian ledger` manages a budget in a file."""

from __future__ import annotations

import argparse
import shlex
from typing import Any, get_args

from dpmedian import Ledger
from dpmedian.accounting import Budget, Neighbours
from dpmedian.accounting.protection import RECORD, REPLACE
from dpmedian.cli.arguments import add_budget, add_neighbours, add_output
from dpmedian.cli.output import show
from dpmedian.digests import as_json

__all__ = ["add", "create_ledger", "enter_cost", "open_ledger", "show_ledger", "split_ledger"]


def create_ledger(options: argparse.Namespace) -> None:
    """Create a ledger, or show the existing ledger if it has the same budget."""
    terms = {name: getattr(options, name) for name in ("epsilon", "delta", "rho", "neighbours", "unit")}
    show(Ledger(**terms, path=options.file))


def show_ledger(options: argparse.Namespace) -> None:
    """Print a ledger's budget and entries."""
    ledger = open_ledger(options.file)
    show(ledger if options.output == "table" else as_json(ledger.to_dict()))


def split_ledger(options: argparse.Namespace) -> None:
    """Print how much each of several more releases may cost, and the options with which each release costs this
    much.
    """
    ledger = open_ledger(options.file)
    shares = ledger.per_release(options.k)
    if not min(shares.values()) > 0.0 and "delta" not in shares:
        raise ValueError(f"nothing is left of the budget {ledger.budget}, so no further release fits")
    if options.output == "json":
        show(as_json({"releases": options.k, **shares}))
        return
    # All digits are printed, because if a share were rounded up, fewer releases might fit.
    with_shares = " ".join(f"--{name} {value!r}" for name, value in shares.items())
    whose = "" if ledger.protection.relation is REPLACE else f" --neighbours {ledger.neighbours}"
    if ledger.unit != RECORD:
        whose += f" --unit {shlex.quote(ledger.unit)}"
    each = ", ".join(f"{name} = {value:.6g}" for name, value in shares.items())
    show(
        f"{options.k} more releases fit: {each} each, {_percent_left(ledger) / options.k:.3g} % of {ledger.additive}\n"
        f"dpmedian release FILE --ledger {shlex.quote(options.file)} {with_shares}{whose}"
    )


def _percent_left(ledger: Ledger) -> float:
    return 100.0 * ledger.shares[1]


def enter_cost(options: argparse.Namespace) -> None:
    """Charge a release that another program has made."""
    ledger = open_ledger(options.file)
    budget = Budget.of(epsilon=options.epsilon, delta=options.delta, rho=options.rho)
    if budget.rho is not None and budget.delta:
        raise ValueError(
            "--delta is for a cost in epsilon: leave it out with --rho, because a cost in rho has no delta"
        )
    limits: dict[str, Any] = {"epsilon": options.epsilon, "delta": options.delta, "rho": options.rho}
    ledger.enter(options.name, **limits, library=options.library, neighbours=options.neighbours, unit=options.unit)
    show(ledger)


def open_ledger(path: str) -> Ledger:
    try:
        return Ledger.open(path)
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"{error}; create a ledger with: dpmedian ledger create {path} --epsilon ... "
        ) from None


def add(commands: Any) -> None:
    """Adds the command and its arguments."""
    parser = commands.add_parser("ledger", help="a budget in a file: create it, show it, share it")
    actions = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    create = actions.add_parser("create", help="a new ledger", description="Create a ledger with a budget.")
    create.add_argument("file", help="for example ledger.json")
    add_budget(create, "the ledger")
    add_neighbours(create)
    create.add_argument("--unit", default=RECORD, help="the protected unit, such as person; default: %(default)s")
    create.set_defaults(command=create_ledger)
    show = actions.add_parser("show", help="show what was spent", description="Show a ledger's budget and entries.")
    show.add_argument("file")
    add_output(show, "table")
    show.set_defaults(command=show_ledger)
    split = actions.add_parser(
        "split",
        help="how much each of several more releases may cost",
        description="Print how much each of K more releases may cost\n"
        "so that all of them fit into the remaining budget.",
        epilog="example: dpmedian ledger split ledger.json 12",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    split.add_argument("file")
    split.add_argument("k", type=int, metavar="K", help="the number of releases that share the remaining budget")
    add_output(split, "table")
    split.set_defaults(command=split_ledger)
    enter = actions.add_parser(
        "enter",
        help="charge what another program has released",
        description="Charge what another program has released about the same data.",
        epilog="example: dpmedian ledger enter ledger.json --name counts --library opendp --epsilon 0.1 --delta 1e-8",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    enter.add_argument("file")
    enter.add_argument("--name", required=True, help="the name of the release")
    enter.add_argument("--library", default="by hand", help="the program that made the release; default: %(default)s")
    add_budget(enter)
    enter.add_argument(
        "--neighbours", choices=get_args(Neighbours), help="the neighbor relation of the cost; default: the ledger's"
    )
    enter.add_argument("--unit", help="the unit that the release protects, such as person; default: the ledger's")
    enter.set_defaults(command=enter_cost)
