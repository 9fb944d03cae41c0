"""`dpmedian plan`: what a release would do and cost."""

from __future__ import annotations

import argparse
from typing import Any

from dpmedian.cli.arguments import add_budget, add_method, add_neighbours, add_output, add_weight_max, plan_of
from dpmedian.cli.output import show

__all__ = ["add", "show_plan"]


def show_plan(options: argparse.Namespace) -> None:
    """Prints what a release would do and cost. It needs no data and spends nothing."""
    made = plan_of(options, options.n, options.d, options.unit)
    show(made if options.output == "table" else made.to_json())


def _records(text: str) -> int | None:
    if text == "private":
        return None
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a whole number nor 'private'") from None


def add(commands: Any) -> None:
    """Adds the command and its arguments."""
    parser = commands.add_parser(
        "plan",
        help="what a release would do, cost and achieve",
        description="Show what a release would do, cost and achieve. No data, nothing spent.",
        epilog="example: dpmedian plan 3000 200 --epsilon 2 --delta 1/3000",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("n", type=_records, help="number of records; with add_remove or weights a guess, or 'private'")
    parser.add_argument("d", type=int, help="dimension")
    parser.add_argument("--unit", metavar="NAME", help="whose contribution is protected, such as person; n counts them")
    add_neighbours(parser)
    add_weight_max(parser)
    add_budget(parser)
    add_method(parser)
    add_output(parser, "table")
    parser.set_defaults(command=show_plan)
