"""The arguments that several commands share, and how they are read."""

from __future__ import annotations

import argparse
from fractions import Fraction
from typing import Any, NoReturn, get_args

from dpmedian import Plan, plan, plan_k_medians
from dpmedian.accounting.protection import Neighbours
from dpmedian.files import FORMATS
from dpmedian.methods.registry import METHODS
from dpmedian.parameters import GEOMETRIES

__all__ = [
    "Parser",
    "add_budget",
    "add_clusters",
    "add_file",
    "add_groups",
    "add_method",
    "add_neighbours",
    "add_output",
    "add_scales",
    "add_weight_max",
    "check_clusters",
    "check_groups",
    "names",
    "number",
    "numbers",
    "plan_of",
]


class Parser(argparse.ArgumentParser):
    """A parser of arguments that prints errors in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"dpmedian: error: {message} ({self.prog} --help says more)\n")


def number(text: str) -> float:
    """The number in a text, which may be a fraction such as 1/3000."""
    try:
        return float(Fraction(text))
    except (ValueError, ZeroDivisionError, OverflowError):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def numbers(text: str) -> list[float]:
    return [number(part) for part in text.split(",")]


def names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def add_budget(parser: argparse.ArgumentParser, what: str = "the release") -> None:
    group = parser.add_argument_group(f"budget of {what}; there is no default")
    group.add_argument("--epsilon", type=number, help="epsilon, with --delta, or alone for pure differential privacy")
    group.add_argument("--delta", type=number, help="delta, also as a fraction: 1/3000")
    group.add_argument("--rho", type=number, help="rho of zero-concentrated differential privacy, instead of epsilon")


def add_method(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("method; all of it is public and must not depend on the data")
    methods = ["auto", *METHODS]
    group.add_argument("--method", default="auto", choices=methods, metavar="NAME", help=", ".join(methods))
    group.add_argument("--radius", type=number, help="public bound on the distance of any record to the center")
    group.add_argument("--resolution", type=number, help="smallest distance that matters")
    group.add_argument("--center", type=numbers, metavar="X,Y,...", help="center of the ball, default the origin")
    group.add_argument("--failure-probability", type=number, default=0.05, metavar="P", help="default: %(default)s")
    group.add_argument("--profile", default="default", choices=["default", "paper"], help="table of constants")
    group.add_argument(
        "--geometry", default="euclidean", choices=GEOMETRIES, help="sphere: longitude and latitude in degrees"
    )
    group.add_argument(
        "--inference",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="whether what confidence regions need is released with the gradients; default: it is",
    )
    group.add_argument(
        "--axes",
        type=number,
        metavar="SHARE",
        help="share of the budget, below 0.5, for the directions in which the data extend; default: 0",
    )


def add_file(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("file")
    group.add_argument("--format", choices=FORMATS, metavar="NAME", help=f"{', '.join(FORMATS)}; default: by its name")
    group.add_argument("--columns", type=names, metavar="A,B,...", help="by name, or by number from 1; default all")
    group.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        help="whether the first line of text is a header; default: it is, unless it has only numbers",
    )
    group.add_argument(
        "--delimiter", metavar="C", help="delimiter between cells of text, or tab; default: found in the header"
    )
    group.add_argument("--decimal", metavar="C", help="decimal sign of text, . or the comma; default: .")
    group.add_argument("--encoding", metavar="NAME", help="encoding of text, such as latin-1; default: utf-8")
    group.add_argument("--array", metavar="NAME", help="which array of an npz file")
    group.add_argument("--dimension", type=int, metavar="D", help="how many coordinates there must be")


def add_output(parser: argparse.ArgumentParser, default: str, *, csv: bool = False) -> None:
    choices = ["json", "table", "csv"] if csv else ["json", "table"]
    parser.add_argument("--output", choices=choices, default=default, help="default: %(default)s")
    parser.add_argument("--json", dest="output", action="store_const", const="json", help="the same as --output json")


def add_groups(parser: argparse.ArgumentParser) -> None:
    """Adds the options that define the groups."""
    parser.add_argument(
        "--by",
        type=names,
        metavar="A,B,...",
        help="column, or columns, with the group of each row; each group gets a median",
    )
    parser.add_argument(
        "--keys",
        metavar="FILE",
        help="public names of the groups, one per line, with commas between the keys of several columns; default: show "
        "the groups that are large enough, for which a part of delta is used",
    )
    parser.add_argument(
        "--max-groups-per-unit", type=int, metavar="K", help="the most groups in which a person counts; default: 1"
    )
    parser.add_argument("--minimum", type=int, metavar="N", help="no median for groups whose noisy size is below N")


def add_neighbours(parser: argparse.ArgumentParser, *, groups: bool = False) -> None:
    """Adds the neighbor relation; if there may be groups it has no default here, because groups have another
    default.
    """
    parser.add_argument(
        "--neighbours",
        "--neighbors",
        choices=get_args(Neighbours),
        default=None if groups else "replace",
        help="neighbors differ in a replaced record, or one that is added or removed, which hides n; default: replace"
        + (", and add_remove with --by" if groups else ""),
    )


def add_weight_max(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--weight-max", type=number, metavar="W", help="public cap of the weights; larger weights count as W"
    )


def scales(text: str) -> dict[str, float] | list[float]:
    """The public scales in a text: by column name, income=5000,age=10, or one for each column, 5000,10."""
    parts = [part.rpartition("=") for part in text.split(",")]
    if all(sign for _, sign, _ in parts):
        return {name.strip(): number(value) for name, _, value in parts}
    if any(sign for _, sign, _ in parts):
        raise argparse.ArgumentTypeError("scales must all have the name of a column, as in income=5000, or none")
    return [number(value) for _, _, value in parts]


def add_scales(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--scales",
        type=scales,
        metavar="A=X,...",
        help="public scales by which columns are divided: by name, or one for each column",
    )


def add_clusters(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("several typical places; both are public and must not depend on the data")
    group.add_argument("--clusters", type=int, metavar="K", help="release this many centers: k-medians")
    group.add_argument(
        "--trim",
        type=number,
        metavar="SHARE",
        help="share of the records, the farthest, that does not count; default: 0",
    )


def check_clusters(options: argparse.Namespace) -> None:
    """Raises if an option would be ignored with clusters, or without them."""
    if options.clusters is None:
        if options.trim is not None:
            raise ValueError(f"--trim {options.trim:g} is for clusters: say how many with --clusters, or leave it out")
        return
    for option, ignored in (
        ("--by", options.by is not None),
        ("--method", options.method != "auto"),
        ("--profile", options.profile != "default"),
        ("--axes", options.axes is not None),
        ("--no-inference", not options.inference),
    ):
        if ignored:
            raise ValueError(f"{option} does not go with --clusters: leave one of them out")


def check_groups(options: argparse.Namespace) -> None:
    """Raises if an option would be ignored with groups."""
    for option, ignored in (("--profile", options.profile != "default"), ("--axes", options.axes is not None)):
        if ignored:
            raise ValueError(f"groups have no {option}: leave it out")


def plan_of(
    options: argparse.Namespace, n: int | None, d: int, unit: str | None, scales: tuple[float, ...] | None = None
) -> Plan:
    common: dict[str, Any] = {
        "epsilon": options.epsilon,
        "delta": options.delta,
        "rho": options.rho,
        "radius": options.radius,
        "resolution": options.resolution,
        "center": options.center,
        "failure_probability": options.failure_probability,
        "geometry": options.geometry,
        "unit": unit,
        "neighbours": options.neighbours,
        "weight_max": options.weight_max,
        "scales": scales,
    }
    if options.clusters is not None:
        return plan_k_medians(n, d, options.clusters, trim=options.trim or 0.0, **common)
    common |= {"inference": options.inference, "axes": options.axes or 0.0}
    return plan(n, d, method=options.method, profile=options.profile, **common)
