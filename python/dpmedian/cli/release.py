"""`dpmedian release` releases the private geometric median of a file."""

from __future__ import annotations

import argparse
import contextlib
from pathlib import Path
from typing import Any

from dpmedian import Dataset, ReleaseFailed
from dpmedian.accounting.protection import relation_of
from dpmedian.cli.arguments import add_file, add_output, add_release, check_release, chosen, plan_of
from dpmedian.cli.groups import read_keys, release_groups
from dpmedian.cli.ledger import open_ledger
from dpmedian.cli.output import EXIT_CODES, hand_out, show_failure
from dpmedian.files import open_points, read_points
from dpmedian.sources.cells import NONFINITE
from dpmedian.sources.file import FileRecords
from dpmedian.sources.records import Records
from dpmedian.sources.units import REDUCERS
from dpmedian.sources.weights import with_weight

__all__ = ["add", "release"]


def release(options: argparse.Namespace) -> None:
    """Read the data, plan the release, charge its cost, run it, and print the result."""
    _check(options)
    ledger = None if options.ledger is None else open_ledger(options.ledger)
    progress = False if options.quiet else None
    read = {
        "columns": with_weight(options.columns, options.weight),
        "name": options.array,
        "d": options.dimension if options.dimension is None or options.weight is None else options.dimension + 1,
    }
    ids = [] if options.unit is None else [options.unit]
    if options.by is not None:
        keys, labels = read_keys(options.keys, options.by), [*ids, *options.by]
        rows = read_points(options.file, **chosen(read_points, options, **read, labels=labels))
        release_groups(options, rows, keys, ledger)
        return
    if options.unit is None and options.geometry == "euclidean" and options.weight is None and options.scales is None:
        given: FileRecords | Records = open_points(
            options.file, **chosen(open_points, options, **read, progress=progress)
        )
    else:
        given = read_points(options.file, **chosen(read_points, options, **read, labels=ids))
    points = Dataset.of(**chosen(Dataset.of, options, points=given, columns=None, sample_weight=options.weight))
    # If the number of records (or the sum of weights) is private, n is a guess. Otherwise n is the number of points.
    n = options.n if _private(options) else points.shape[0]
    d = given.shape[1] - (options.weight is not None)
    made = plan_of(options, n=n, d=d, unit=points.unit, scales=points.scales)
    try:
        result = made.run(points, ledger=ledger, seed=options.seed, progress=progress, name=options.name)
    except ReleaseFailed as failed:
        if options.output == "json":
            show_failure(failed)
        if options.report is not None:
            # The exit code must show that the release failed, so an error while the page is written is ignored.
            with contextlib.suppress(Exception):
                failed.report(options.report, ledger=ledger)
        raise
    hand_out(result, options, ledger)


def _private(options: argparse.Namespace) -> bool:
    """Return whether the number of records, or the sum of their weights, is private."""
    return options.weight is not None or not relation_of(options.neighbours).size_is_public


def _check(options: argparse.Namespace) -> None:
    """Raise an error, before a row is read, if an argument is wrong or would have no effect."""
    check_release(options)
    if options.neighbours is None:
        options.neighbours = "replace" if options.by is None else "add_remove"
    if options.unit is None and options.unit_reduce is not None:
        raise ValueError(f"--unit-reduce {options.unit_reduce} is for units: name the column of ids with --unit")
    if (options.weight is None) != (options.weight_max is None):
        raise ValueError(
            "--weight names the column of weights and --weight-max their public cap: give both, and never take the cap "
            "from the data"
        )
    if options.n is not None and not _private(options):
        raise ValueError(
            f"--n {options.n} is a guess of a private number of records, but with --neighbours replace this number is "
            "public and is counted: leave --n out, or add --neighbours add_remove"
        )
    if options.cache is not None:
        _check_cache(options)
    if options.report is not None:
        # The page is written after the charge, so a path to which it cannot be written is refused before the charge.
        page = Path(options.report)
        if page.is_dir():
            raise ValueError(f"--report {options.report} is a folder: name a file in it, such as page.html")
        if not page.parent.is_dir():
            raise ValueError(f"--report {options.report}: there is no folder {str(page.parent)!r}")


def _check_cache(options: argparse.Namespace) -> None:
    """Raise an error if no file would be converted to the folder, or if the folder does not exist.

    A file is converted only if every row is a record as it is stored.
    """
    loading = {"--by": options.by, "--unit": options.unit, "--weight": options.weight, "--scales": options.scales}
    loading["--geometry sphere"] = options.geometry == "sphere" or None
    option = next((option for option, value in loading.items() if value is not None), None)
    if option is not None:
        raise ValueError(
            f"--cache {options.cache} would have no effect, because {option} loads the rows into memory: leave --cache "
            "out"
        )
    if not Path(options.cache).is_dir():
        raise ValueError(f"--cache {options.cache}: there is no such folder")


def add(commands: Any) -> None:
    """Add the command and its arguments."""
    parser = commands.add_parser(
        "release",
        help="release the private geometric median of a file",
        description="Release the differentially private geometric median of the rows of a file.",
        epilog="example: dpmedian release positions.csv --epsilon 1 --delta 1e-6\n\n" + EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", help="the file, with one record per row; - means stdin")
    add_file(parser)
    parser.add_argument(
        "--nonfinite",
        choices=NONFINITE,
        default="raise",
        help="if a value is not a finite number: stop with an error, replace the record by the center, or (only with "
        "add_remove) leave the record out; default: %(default)s",
    )
    parser.add_argument(
        "--unit", metavar="NAME", help="column with the id of the person, to protect all rows of a person together"
    )
    parser.add_argument("--weight", metavar="NAME", help="column with the weight of each row; weights are private")
    parser.add_argument(
        "--unit-reduce",
        choices=REDUCERS,
        help="how the rows of a person are reduced to one record; default: median",
    )
    parser.add_argument(
        "--n", type=int, help="a public guess of the number of records (of one group), if this number is private"
    )
    add_release(parser)
    parser.add_argument("--ledger", metavar="FILE", help="charge this ledger; see dpmedian ledger create")
    parser.add_argument("--name", help="a name of the release, for the ledger and the result")
    parser.add_argument(
        "--report", metavar="FILE", help="also write a page about the release to this file, such as page.html"
    )
    parser.add_argument(
        "--seed", type=int, help="make the noise predictable: only for simulations, because it protects nobody"
    )
    parser.add_argument(
        "--cache",
        metavar="FOLDER",
        help="folder for converted Parquet and Arrow files; default: the folder for temporary files",
    )
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    add_output(parser, "json", csv=True)
    parser.set_defaults(command=release)
