"""`dpmedian plan` shows the queries, the cost and the predicted error of a release."""

from __future__ import annotations

import argparse
from typing import Any

from dpmedian import GroupsPlan, Plan, plan_groups
from dpmedian.cli.arguments import add_output, add_release, check_release, chosen, plan_of
from dpmedian.cli.groups import read_keys
from dpmedian.cli.output import show

__all__ = ["add", "show_plan"]


def show_plan(options: argparse.Namespace) -> None:
    """Print the queries, the cost and the predicted error of a release. This needs no data and spends nothing."""
    check_release(options)
    made: Plan | GroupsPlan
    if options.by is None:
        made = plan_of(options, n=options.n)
    else:
        made = plan_groups(**chosen(plan_groups, options, keys=read_keys(options.keys, options.by)))
    show(made if options.output == "table" else made.to_json())


def _records(text: str) -> int | None:
    if text == "private":
        return None
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a whole number nor 'private'") from None


def add(commands: Any) -> None:
    """Add the command and its arguments."""
    parser = commands.add_parser(
        "plan",
        help="show the queries, the cost and the predicted error of a release",
        description="Show the queries, the cost and the predicted error of a release.\n"
        "This needs no data and spends nothing.",
        epilog="example: dpmedian plan 3000 200 --epsilon 2 --delta 1/3000",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "n",
        type=_records,
        help="number of records; if it is private (add_remove, weights, groups): a guess, or the word 'private'",
    )
    parser.add_argument("d", type=int, help="dimension")
    parser.add_argument(
        "--unit", metavar="NAME", help="the protected unit, such as person; then n is the number of persons"
    )
    add_release(parser)
    add_output(parser, "table")
    parser.set_defaults(command=show_plan)
