"""The command `dpmedian`. Results go to stdout, everything else to stderr; an error is one line and an exit code."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import warnings
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

from dpmedian import InsecureSeedWarning, Ledger, Plan, ReleaseFailed, __version__, plan
from dpmedian.data import POSITIONS
from dpmedian.files import FORMATS, read_points
from dpmedian.ledger import BudgetExceeded
from dpmedian.methods.registry import METHODS
from dpmedian.rendering.plan import plan_dict
from dpmedian.rendering.release import release_dict
from dpmedian.reproduce import Experiment, draw, table, write
from dpmedian.reproduce import run as run_experiment

__all__ = ["main"]

EXIT_CODES = """\
exit codes:
  0    done
  1    unexpected error; a charged ledger stays charged
  2    wrong arguments or data; nothing was spent
  3    the ledger's budget does not allow the release; nothing was spent
  4    the release failed, which is an output too: its full cost is spent
  5    released and spent, but stdout did not take the result: it is on stderr
  130  interrupted; what the ledger shows is spent
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    options = _parser().parse_args(arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("always", InsecureSeedWarning)
        warnings.showwarning = _warn
        try:
            options.command(options)
        except BudgetExceeded as error:
            return _say("error", error, 3)
        except ReleaseFailed as failed:
            return _say("failed", failed, 4)
        except Undelivered as error:
            return _say("error", error, 5)
        except (ValueError, TypeError, OSError, ImportError) as error:
            return _say("error", error, 2)
        except KeyboardInterrupt:
            return _say("interrupted", "what the ledger shows is spent, whatever became of it", 130)
        except Exception as error:
            return _say("unexpected", f"{type(error).__name__}: {error}", 1)
    return 0


def release(options: argparse.Namespace) -> None:
    """Reads, plans, charges, runs, and prints the release."""
    ledger = None if options.ledger is None else _open(options.ledger)
    points = read_points(
        options.file,
        columns=options.columns,
        header=options.header,
        name=options.array,
        nonfinite=options.nonfinite,
        format=options.format,
        delimiter=options.delimiter,
        decimal=options.decimal,
        encoding=options.encoding,
        d=options.dimension,
    )
    made = _plan(options, *points.array.shape)
    progress = False if options.quiet else None
    result = made.run(
        points, ledger=ledger, seed=options.seed, progress=progress, nonfinite=options.nonfinite, name=options.name
    )
    _deliver(str(result) if options.output == "table" else _json(release_dict(result)))


class Undelivered(Exception):
    """The release was made and charged, and stdout did not take it."""


def _deliver(text: str) -> None:
    """Prints what was paid for; where stdout fails (a full disk, a closed pipe), to stderr, so that it is not lost."""
    try:
        print(text, flush=True)
    except (OSError, ValueError) as error:
        # The interpreter would try to flush stdout again at its end, and fail with another exit code.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        with contextlib.suppress(OSError, ValueError):
            print(text, file=sys.stderr, flush=True)
        raise Undelivered(f"the release above is spent, but could not be written to stdout: {error}") from None


def show_plan(options: argparse.Namespace) -> None:
    """Prints what a release would do and cost. It needs no data and spends nothing."""
    made = _plan(options, options.n, options.d)
    print(made if options.output == "table" else _json({**plan_dict(made), "version": __version__}))


def create_ledger(options: argparse.Namespace) -> None:
    """Creates a ledger, or shows the one that is there if its budget is the same."""
    print(Ledger(epsilon=options.epsilon, delta=options.delta, rho=options.rho, path=options.file))


def show_ledger(options: argparse.Namespace) -> None:
    """Prints a ledger's budget and entries."""
    ledger = _open(options.file)
    print(ledger if options.output == "table" else _json(ledger.to_dict()))


def write_example(options: argparse.Namespace) -> None:
    """Writes the bundled data, so that the examples of the documentation run as printed."""
    text = POSITIONS.read_bytes()
    if options.file.exists() and options.file.read_bytes() != text:
        raise FileExistsError(f"{options.file} is there already and has another content: choose another name")
    options.file.write_bytes(text)
    print(f"{options.file}: 2,000 positions of invented people, in kilometres; 60 devices without a fix report (0, 0)")


def reproduce(options: argparse.Namespace) -> None:
    """Runs the paper's experiment; writes a CSV and, where matplotlib is there, a picture."""
    chosen = {
        name: value
        for name in ("n", "d", "delta", "resolution", "deviation", "repeats", "seed", "epsilons", "radii")
        if (value := getattr(options, name)) is not None
    }
    experiment = replace(Experiment().quick() if options.quick else Experiment(), **chosen)
    runs = run_experiment(experiment, False if options.quiet else None)
    write(runs, options.csv)
    print(table(experiment, runs))
    try:
        draw(experiment, runs, options.png)
    except ImportError as error:
        _say("note", error)


# What a command prints, as JSON.


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _say(kind: str, message: object, code: int = 0) -> int:
    print(f"dpmedian: {kind}: {' '.join(str(message).split())}", file=sys.stderr)
    return code


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    _say("warning", message)


# Arguments.


def _plan(options: argparse.Namespace, n: int, d: int) -> Plan:
    return plan(
        n,
        d,
        epsilon=options.epsilon,
        delta=options.delta,
        rho=options.rho,
        method=options.method,
        radius=options.radius,
        resolution=options.resolution,
        center=options.center,
        failure_probability=options.failure_probability,
        profile=options.profile,
    )


def _open(path: str) -> Ledger:
    try:
        return Ledger.open(path)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{error}; for a new one: dpmedian ledger create {path} --epsilon ... ") from None


def _number(text: str) -> float:
    """A number, also as a fraction: 1/3000."""
    try:
        return float(Fraction(text))
    except (ValueError, ZeroDivisionError, OverflowError):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def _numbers(text: str) -> list[float]:
    return [_number(part) for part in text.split(",")]


def _tuple(text: str) -> tuple[float, ...]:
    return tuple(_numbers(text))


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


class _Parser(argparse.ArgumentParser):
    """argparse, with its errors in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"dpmedian: error: {message} ({self.prog} --help says more)\n")


def _add_budget(parser: argparse.ArgumentParser, what: str = "the release") -> None:
    group = parser.add_argument_group(f"budget of {what}; there is no default")
    group.add_argument("--epsilon", type=_number, help="with --delta, or alone for pure differential privacy")
    group.add_argument("--delta", type=_number, help="fractions are fine: 1/3000")
    group.add_argument("--rho", type=_number, help="zero-concentrated differential privacy, instead of epsilon")


def _add_method(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("method; all of it is public and must not depend on the data")
    methods = ["auto", *METHODS]
    group.add_argument("--method", default="auto", choices=methods, metavar="NAME", help=", ".join(methods))
    group.add_argument("--radius", type=_number, help="public bound on the distance of any record to the center")
    group.add_argument("--resolution", type=_number, help="smallest distance that matters")
    group.add_argument("--center", type=_numbers, metavar="X,Y,...", help="center of the ball, default the origin")
    group.add_argument("--failure-probability", type=_number, default=0.05, metavar="P", help="default: %(default)s")
    group.add_argument("--profile", default="default", choices=["default", "paper"], help="table of constants")


def _add_file(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("file")
    group.add_argument("--format", choices=FORMATS, metavar="NAME", help=f"{', '.join(FORMATS)}; default: by its name")
    group.add_argument("--columns", type=_names, metavar="A,B,...", help="by name, or by number from 1; default all")
    group.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        help="whether the first line of text is a header; default: it is, unless it has only numbers",
    )
    group.add_argument("--delimiter", metavar="C", help="between cells of text, or tab; default: as the header has it")
    group.add_argument("--decimal", metavar="C", help="decimal sign of text, . or the comma; default: .")
    group.add_argument("--encoding", metavar="NAME", help="of text, such as latin-1; default: utf-8")
    group.add_argument("--array", metavar="NAME", help="which array of an npz file")
    group.add_argument("--dimension", type=int, metavar="D", help="how many coordinates there must be")


def _add_output(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument("--output", choices=["json", "table"], default=default, help="default: %(default)s")


def _add_release(commands: Any) -> None:
    parser = commands.add_parser(
        "release",
        help="release the private geometric median of a file",
        description="Release the differentially private geometric median of the rows of a file.",
        epilog="example: dpmedian release positions.csv --epsilon 1 --delta 1e-6\n\n" + EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", help="one record per row; - is stdin")
    _add_file(parser)
    parser.add_argument(
        "--nonfinite",
        choices=["raise", "center"],
        default="raise",
        help="what is no finite number: refuse it, or replace its record by the center; default: %(default)s",
    )
    _add_budget(parser)
    _add_method(parser)
    parser.add_argument("--ledger", metavar="FILE", help="charge this ledger; see dpmedian ledger create")
    parser.add_argument("--name", help="what is released, for the ledger and the result")
    parser.add_argument("--seed", type=int, help="predictable noise: for simulations only, it protects nobody")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    _add_output(parser, "json")
    parser.set_defaults(command=release)


def _add_plan(commands: Any) -> None:
    parser = commands.add_parser(
        "plan",
        help="what a release would do, cost and achieve",
        description="Show what a release would do, cost and achieve. No data, nothing spent.",
        epilog="example: dpmedian plan 3000 200 --epsilon 2 --delta 1/3000",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("n", type=int, help="number of records")
    parser.add_argument("d", type=int, help="dimension")
    _add_budget(parser)
    _add_method(parser)
    _add_output(parser, "table")
    parser.set_defaults(command=show_plan)


def _add_ledger(commands: Any) -> None:
    parser = commands.add_parser("ledger", help="a budget in a file: create it, show it")
    actions = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    create = actions.add_parser("create", help="a new ledger", description="Create a ledger with a budget.")
    create.add_argument("file", help="for example ledger.json")
    _add_budget(create, "the ledger")
    create.set_defaults(command=create_ledger)
    show = actions.add_parser("show", help="what was spent", description="Show a ledger's budget and entries.")
    show.add_argument("file")
    _add_output(show, "table")
    show.set_defaults(command=show_ledger)


def _add_example(commands: Any) -> None:
    parser = commands.add_parser(
        "example", help="write the bundled data to a file", description="Write the bundled data, a CSV file."
    )
    parser.add_argument("file", type=Path, help="for example positions.csv")
    parser.set_defaults(command=write_example)


def _add_reproduce(commands: Any) -> None:
    usual = Experiment()
    parser = commands.add_parser(
        "reproduce",
        help="the experiment of the paper's figure",
        description="Run the experiment of the paper's figure on simulated data and compare with the published curve.",
        epilog="example: dpmedian reproduce --quick",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="epsilon 2, three radii, three repeats: a minute or two")
    parser.add_argument("--n", type=int, help=f"records, default {usual.n}")
    parser.add_argument("--d", type=int, help=f"dimension, default {usual.d}")
    parser.add_argument("--epsilons", type=_tuple, metavar="E,...", help="default 2,3")
    parser.add_argument("--delta", type=_number, help="default 1/n")
    parser.add_argument("--radii", type=_tuple, metavar="R,...", help="default 1e3,1e4,...,1e10")
    parser.add_argument("--resolution", type=_number, help=f"default {usual.resolution:g}")
    parser.add_argument("--deviation", type=_number, help=f"of the inliers, default {usual.deviation:g}")
    parser.add_argument("--repeats", type=int, help=f"default {usual.repeats}")
    parser.add_argument("--seed", type=int, help=f"default {usual.seed}; the data are simulated")
    parser.add_argument("--csv", type=Path, default=Path("reproduce.csv"), metavar="FILE", help="default: %(default)s")
    parser.add_argument("--png", type=Path, default=Path("reproduce.png"), metavar="FILE", help="default: %(default)s")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    parser.set_defaults(command=reproduce)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="dpmedian",
        description="The differentially private geometric median.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"dpmedian {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for add in (_add_release, _add_plan, _add_ledger, _add_example, _add_reproduce):
        add(commands)
    return parser
