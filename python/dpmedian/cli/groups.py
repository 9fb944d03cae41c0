"""`dpmedian release --by` releases private geometric medians of the groups of a file, under one budget."""

from __future__ import annotations

import argparse
import csv
import io
from pathlib import Path

from dpmedian import Ledger, geometric_medians
from dpmedian.cli.arguments import chosen
from dpmedian.cli.output import hand_out, say
from dpmedian.rendering.groups import NOTHING_SHOWN
from dpmedian.sources.records import Records

__all__ = ["read_keys", "release_groups"]


def read_keys(file: str | None, by: list[str]) -> list[str] | list[tuple[str, ...]] | None:
    """Read the keys in a file, one for each line. With several key columns, a line has one label for each column,
    separated by commas.

    The first line may contain the names of the columns. Empty lines are ignored. Without a file the result is None, so
    that keys are selected privately.
    """
    if file is None:
        return None
    if not Path(file).is_file():
        raise FileNotFoundError(f"--keys {file}: there is no such file")
    text = Path(file).read_text(encoding="utf-8-sig")
    if len(by) == 1:
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return lines[1:] if lines[:1] == by else lines
    rows = [tuple(cell.strip() for cell in row) for row in csv.reader(io.StringIO(text)) if row]
    wrong = next((place for place, row in enumerate(rows) if len(row) != len(by)), None)
    if wrong is not None:
        raise ValueError(
            f"--keys {file}: row {wrong + 1} (without empty lines) has {len(rows[wrong])} cells, but --by names "
            f"{len(by)} columns; write one row of comma-separated labels for each group"
        )
    return rows[1:] if rows[:1] == [tuple(by)] else rows


def release_groups(
    options: argparse.Namespace,
    points: Records,
    keys: list[str] | list[tuple[str, ...]] | None,
    ledger: Ledger | None,
) -> None:
    """Plan the release, charge it once, run every group, and print one object with a list of the groups."""
    found = geometric_medians(
        **chosen(
            geometric_medians,
            options,
            points=points,
            by=options.by if len(options.by) > 1 else options.by[0],
            keys=keys,
            ledger=ledger,
            progress=False if options.quiet else None,
            columns=None,  # The columns were already chosen when the file was read.
            sample_weight=options.weight,
        )
    )
    hand_out(found, options, ledger)
    if not found:
        say("note", NOTHING_SHOWN)
