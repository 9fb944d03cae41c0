"""`dpmedian reproduce` runs the experiment of the paper's figure."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpmedian.cli.arguments import number, numbers
from dpmedian.cli.output import say, show
from dpmedian.reproduce import Experiment, draw, run, table, write

__all__ = ["add", "reproduce"]


def reproduce(options: argparse.Namespace) -> None:
    """Run the paper's experiment and write a CSV file and, if matplotlib is installed, a picture."""
    chosen = {
        name: value
        for name in ("n", "d", "delta", "resolution", "deviation", "repeats", "seed", "epsilons", "radii")
        if (value := getattr(options, name)) is not None
    }
    experiment = replace(Experiment().quick() if options.quick else Experiment(), **chosen)
    runs = run(experiment, False if options.quiet else None)
    write(runs, options.csv)
    show(table(experiment, runs))
    try:
        draw(experiment, runs, options.png)
    except ImportError as error:
        say("note", error)


def _tuple(text: str) -> tuple[float, ...]:
    return tuple(numbers(text))


def add(commands: Any) -> None:
    """Add the command and its arguments."""
    usual = Experiment()
    parser = commands.add_parser(
        "reproduce",
        help="the experiment of the paper's figure",
        description="Run the experiment of the paper's figure on simulated data and compare with the published curve.",
        epilog="example: dpmedian reproduce --quick",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="epsilon 2, three radii and three repeats only, which takes a minute or two",
    )
    parser.add_argument("--n", type=int, help=f"records, default {usual.n}")
    parser.add_argument("--d", type=int, help=f"dimension, default {usual.d}")
    parser.add_argument("--epsilons", type=_tuple, metavar="E,...", help="default 2,3")
    parser.add_argument("--delta", type=number, help="default 1/n")
    parser.add_argument("--radii", type=_tuple, metavar="R,...", help="default 1e3,1e4,...,1e10")
    parser.add_argument("--resolution", type=number, help=f"default {usual.resolution:g}")
    parser.add_argument(
        "--deviation", type=number, help=f"standard deviation of the inliers, default {usual.deviation:g}"
    )
    parser.add_argument("--repeats", type=int, help=f"default {usual.repeats}")
    parser.add_argument("--seed", type=int, help=f"seed of the simulated data and of the noise, default {usual.seed}")
    parser.add_argument("--csv", type=Path, default=Path("reproduce.csv"), metavar="FILE", help="default: %(default)s")
    parser.add_argument("--png", type=Path, default=Path("reproduce.png"), metavar="FILE", help="default: %(default)s")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    parser.set_defaults(command=reproduce)
