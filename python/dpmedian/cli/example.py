"""`dpmedian example` writes the bundled data."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from dpmedian.cli.output import show
from dpmedian.data import POSITIONS

__all__ = ["add", "write_example"]


def write_example(options: argparse.Namespace) -> None:
    """Write the bundled data, so that the examples of the documentation run as printed."""
    text = POSITIONS.read_bytes()
    if options.file.exists() and options.file.read_bytes() != text:
        raise FileExistsError(f"{options.file} already exists and contains something else: choose another name")
    options.file.write_bytes(text)
    show(f"{options.file}: 2,000 positions of invented people, in kilometers; 60 lost devices report (0, 0)")


def add(commands: Any) -> None:
    """Add the command and its arguments."""
    parser = commands.add_parser(
        "example", help="write the bundled data to a file", description="Write the bundled data, a CSV file."
    )
    parser.add_argument("file", type=Path, help="for example positions.csv")
    parser.set_defaults(command=write_example)
