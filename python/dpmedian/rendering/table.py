"""Tables: aligned text that fits a terminal, and escaped HTML."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from html import escape
from itertools import zip_longest

__all__ = ["html_list", "html_table", "text_table"]


def text_table(head: Sequence[str], rows: Iterable[Sequence[str]], *, width: int = 80) -> list[str]:
    """The lines of a table: head, rule, rows. Cells are wrapped where the table would be wider than `width`."""
    cells = [head, *rows]
    for wrap in range(40, 15, -1):
        wrapped = [[textwrap.wrap(cell, wrap, break_long_words=False) for cell in row] for row in cells]
        widths = [
            max((len(line) for cell in column for line in cell), default=0) for column in zip(*wrapped, strict=True)
        ]
        if sum(widths) + 2 * len(widths) - 2 <= width:
            break
    lines = [
        [
            "  ".join(part.ljust(size) for part, size in zip(parts, widths, strict=True)).rstrip()
            for parts in zip_longest(*row, fillvalue="")
        ]
        for row in wrapped
    ]
    flat = [line for row in lines for line in row]
    rule = "-" * max(len(line) for line in flat)
    return [*lines[0], rule, *flat[len(lines[0]) :]]


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]], *, caption: str, row_headings: bool = False) -> str:
    """A table with escaped cells; with `row_headings` the first cell of a row is its heading."""
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = ""
    for row in rows:
        kinds = ["th" if row_headings and index == 0 else "td" for index in range(len(row))]
        body += "<tr>" + "".join(f"<{k}>{escape(cell)}</{k}>" for k, cell in zip(kinds, row, strict=True)) + "</tr>"
    first = f"<tr>{top}</tr>" if head else ""
    return f"<table><caption>{escape(caption)}</caption>{first}{body}</table>"


def html_list(items: Iterable[str]) -> str:
    """A list with escaped items."""
    return "<ul>" + "".join(f"<li>{escape(item)}</li>" for item in items) + "</ul>"
