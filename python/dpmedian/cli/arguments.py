"""The arguments that several commands share."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable
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
    "add_file",
    "add_neighbours",
    "add_output",
    "add_release",
    "check_release",
    "chosen",
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
    """Read a number, which may be written as a fraction such as 1/3000."""
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


def _add_method(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("method; these settings are public and must not depend on the data")
    methods = ["auto", *METHODS]
    group.add_argument("--method", default="auto", choices=methods, metavar="NAME", help=", ".join(methods))
    group.add_argument(
        "--radius",
        type=number,
        help="public bound on the distance of any record from the center; adaptive does not need it",
    )
    group.add_argument(
        "--resolution",
        type=number,
        help="distance below which accuracy does not matter; adaptive does not need it",
    )
    group.add_argument(
        "--center",
        type=numbers,
        metavar="X,Y,...",
        help="center of the public ball, or the point where the search starts; default: the origin",
    )
    group.add_argument(
        "--failure-probability",
        type=number,
        default=0.05,
        metavar="P",
        help="accepted probability of a failed or useless release; default: %(default)s",
    )
    group.add_argument(
        "--profile",
        default="default",
        choices=["default", "paper"],
        help="constants of the methods of the paper: of this package, or as the paper prints them",
    )
    group.add_argument(
        "--geometry",
        default="euclidean",
        choices=GEOMETRIES,
        help="sphere: the columns are longitude and latitude, in degrees; default: %(default)s",
    )
    group.add_argument(
        "--inference",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="whether the second moments that a confidence region needs are released, too; default: yes",
    )
    group.add_argument(
        "--axes",
        type=number,
        metavar="SHARE",
        help="share of the budget, below 0.5, for finding the directions in which the data extend far; default: 0",
    )


def add_file(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("file")
    group.add_argument(
        "--format", choices=FORMATS, metavar="NAME", help=f"{', '.join(FORMATS)}; default: from the file name"
    )
    group.add_argument(
        "--columns",
        type=names,
        metavar="A,B,...",
        help="the coordinates, by name or by number from 1; default: all columns",
    )
    group.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        help="whether the first line of text is a header; default: yes, except if it has only numbers",
    )
    group.add_argument(
        "--delimiter",
        metavar="C",
        help="the character between cells of text, or the word tab; default: found in the header",
    )
    group.add_argument("--decimal", metavar="C", help="the decimal sign in text, a point or a comma; default: a point")
    group.add_argument("--encoding", metavar="NAME", help="encoding of text, such as latin-1; default: utf-8")
    group.add_argument("--array", metavar="NAME", help="the name of the array in an npz file")
    group.add_argument(
        "--dimension", type=int, metavar="D", help="the public number of coordinates; another number is an error"
    )


def add_output(parser: argparse.ArgumentParser, default: str, *, csv: bool = False) -> None:
    choices = ["json", "table", "csv"] if csv else ["json", "table"]
    parser.add_argument("--output", choices=choices, default=default, help="form of the result; default: %(default)s")
    parser.add_argument("--json", dest="output", action="store_const", const="json", help="the same as --output json")


def _add_groups(parser: argparse.ArgumentParser) -> None:
    """Add the options that define the groups."""
    parser.add_argument(
        "--by",
        type=names,
        metavar="A,B,...",
        help="column or columns that say which group a row is in; each group gets a median",
    )
    parser.add_argument(
        "--keys",
        metavar="FILE",
        help="file with the public names of the groups, one per line, with commas between the keys of several "
        "columns; default: show only groups that are large enough, which uses a part of delta",
    )
    parser.add_argument(
        "--max-groups-per-unit",
        type=int,
        metavar="K",
        help="the largest number of groups to which a person contributes; default: 1",
    )
    parser.add_argument("--minimum", type=int, metavar="N", help="no median for groups whose noisy size is below N")


def add_neighbours(parser: argparse.ArgumentParser, *, groups: bool = False) -> None:
    """Add the neighbor relation.

    If there may be groups, the option has no default here, because groups have another default.
    """
    parser.add_argument(
        "--neighbours",
        "--neighbors",
        choices=get_args(Neighbours),
        default=None if groups else "replace",
        help="whether neighbors differ in one replaced record, or in one record more or less, so that n is private; "
        "default: replace" + (", and add_remove with --by" if groups else ""),
    )


def scales(text: str) -> dict[str, float] | list[float]:
    """Read public scales: by column name, as in income=5000,age=10, or one for each column, as in 5000,10."""
    parts = [part.rpartition("=") for part in text.split(",")]
    if all(sign for _, sign, _ in parts):
        return {name.strip(): number(value) for name, _, value in parts}
    if any(sign for _, sign, _ in parts):
        raise argparse.ArgumentTypeError(
            "give every scale the name of its column, as in income=5000, or give names to none"
        )
    return [number(value) for _, _, value in parts]


def _add_clusters(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("several typical places; both numbers are public and must not depend on the data")
    group.add_argument("--clusters", type=int, metavar="K", help="release this many centers: k-medians")
    group.add_argument(
        "--trim",
        type=number,
        metavar="SHARE",
        help="ignore this share of the records, those farthest from the centers; default: 0",
    )


def add_release(parser: argparse.ArgumentParser) -> None:
    """Add the options that describe the release. Planning and releasing share them."""
    _add_groups(parser)
    add_neighbours(parser, groups=True)
    parser.add_argument(
        "--weight-max", type=number, metavar="W", help="public cap of the weights; larger weights count as W"
    )
    parser.add_argument(
        "--scales",
        type=scales,
        metavar="A=X,...",
        help="public numbers by which columns are divided: by column name, or one for each column",
    )
    add_budget(parser)
    _add_method(parser)
    _add_clusters(parser)


def check_release(options: argparse.Namespace) -> None:
    """Raise an error if an option would have no effect with clusters or groups, or without them."""
    if options.by is None:
        if options.keys is not None:
            raise ValueError("--keys names groups, so --by must name the column that says which group a row is in")
        for option, value in (("--minimum", options.minimum), ("--max-groups-per-unit", options.max_groups_per_unit)):
            if value is not None:
                raise ValueError(
                    f"{option} {value} is for groups: name the column of groups with --by, or leave {option} out"
                )
    if options.clusters is None and options.trim is not None:
        raise ValueError(
            f"--trim {options.trim:g} is for clusters: state their number with --clusters, or leave --trim out"
        )
    given = {
        "--by": options.by is not None,
        "--method": options.method != "auto",
        "--profile": options.profile != "default",
        "--axes": options.axes is not None,
        "--no-inference": not options.inference,
    }
    if options.clusters is not None and True in given.values():
        option = next(option for option, here in given.items() if here)
        raise ValueError(f"{option} cannot be combined with --clusters: leave one of the two out")
    for option in ("--profile", "--axes"):
        if options.by is not None and given[option]:
            raise ValueError(f"{option} cannot be combined with --by: leave one of the two out")


def chosen(function: Callable[..., Any], options: argparse.Namespace, **known: Any) -> dict[str, Any]:
    """Return the arguments of a function: the `known` arguments, and every given option with the name of a parameter.

    An option that was not given is left out, so that the default of the function is used.
    """
    names = inspect.signature(function).parameters
    given = {name: value for name in names if (value := getattr(options, name, None)) is not None}
    return given | known


def plan_of(options: argparse.Namespace, **known: Any) -> Plan:
    """Make the plan of one median or of k-medians."""
    if options.clusters is not None:
        return plan_k_medians(**chosen(plan_k_medians, options, k=options.clusters, **known))
    return plan(**chosen(plan, options, **known))
