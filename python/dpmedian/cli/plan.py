"""`dpmedian plan` shows what a release would do and cost."""

from __future__ import annotations

import argparse
from typing import Any

from dpmedian import GroupsPlan, Plan, plan_groups
from dpmedian.cli.arguments import (
    add_budget,
    add_clusters,
    add_groups,
    add_method,
    add_neighbours,
    add_output,
    add_scales,
    add_weight_max,
    check_clusters,
    check_groups,
    plan_of,
)
from dpmedian.cli.groups import read_keys
from dpmedian.cli.output import show

__all__ = ["add", "show_plan"]


def show_plan(options: argparse.Namespace) -> None:
    """Print what a release would do and cost. It needs no data and spends nothing."""
    check_clusters(options)
    made = _plan_of_groups(options) if options.by is not None else _plan_of_one(options)
    show(made if options.output == "table" else made.to_json())


def _plan_of_one(options: argparse.Namespace) -> Plan:
    for option, value in (
        ("--keys", options.keys),
        ("--minimum", options.minimum),
        ("--max-groups-per-unit", options.max_groups_per_unit),
    ):
        if value is not None:
            raise ValueError(f"{option} {value} is for groups: name their column with --by, or leave it out")
    options.neighbours = options.neighbours or "replace"
    return plan_of(options, options.n, options.d, options.unit, options.scales)


def _plan_of_groups(options: argparse.Namespace) -> GroupsPlan:
    check_groups(options)
    return plan_groups(
        read_keys(options.keys, options.by),
        options.d,
        epsilon=options.epsilon,
        delta=options.delta,
        rho=options.rho,
        n=options.n,
        unit=options.unit,
        max_groups_per_unit=1 if options.max_groups_per_unit is None else options.max_groups_per_unit,
        minimum=options.minimum,
        method=options.method,
        radius=options.radius,
        resolution=options.resolution,
        center=options.center,
        failure_probability=options.failure_probability,
        geometry=options.geometry,
        neighbours=options.neighbours or "add_remove",
        weight_max=options.weight_max,
        scales=options.scales,
        inference=options.inference,
    )


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
    parser.add_argument(
        "n", type=_records, help="number of records; with add_remove, weights or groups a guess, or 'private'"
    )
    parser.add_argument("d", type=int, help="dimension")
    parser.add_argument("--unit", metavar="NAME", help="whose contribution is protected, such as person; n counts them")
    add_groups(parser)
    add_neighbours(parser, groups=True)
    add_weight_max(parser)
    add_scales(parser)
    add_budget(parser)
    add_method(parser)
    add_clusters(parser)
    add_output(parser, "table")
    parser.set_defaults(command=show_plan)
