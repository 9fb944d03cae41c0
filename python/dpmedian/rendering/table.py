"""Tables, as aligned text that fits a terminal and as escaped HTML: the one home of both."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Sequence
from html import escape
from itertools import zip_longest
from typing import Literal

__all__ = ["html_table", "text_pairs", "text_table"]

_GAP = "  "

# A column that gives way keeps at least this many characters.
_LEAST = 8


def text_table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int = 80,
    *,
    yielding: Collection[int] = (),
    overflow: Literal["wrap", "cut"] = "wrap",
    right: Collection[int] = (),
    framed: bool = False,
    note: str | None = None,
) -> str:
    """A table of aligned columns, with a rule under its head.

    Parameters
    ----------
    head : sequence of str
        The names of the columns.
    rows : sequence of sequences of str
        The cells; every row is as long as the head.
    width : int
        The largest length of a line. It is exceeded only if the columns that may give way cannot.
    yielding : collection of int
        The columns that give way when the table is too wide, the widest of them first.
    overflow : {"wrap", "cut"}
        Whether a cell that is longer than its column continues below, or ends in a tilde.
    right : collection of int
        The columns that are aligned to the right.
    framed : bool
        Whether there are rules above and below the table too.
    note : str, optional
        A line between the head and the first row.

    Returns
    -------
    str
        The lines, without a line break at the end.
    """
    table = [list(head), *(list(row) for row in rows)]
    if any(len(row) != len(head) for row in table):
        raise ValueError(f"every row must have {len(head)} cells, got rows of {sorted({len(row) for row in table})}")
    widths = [max(len(row[column]) for row in table) for column in range(len(head))]
    least = [_least(column, table, overflow) if column in yielding else widths[column] for column in range(len(head))]
    while sum(widths) + len(_GAP) * (len(widths) - 1) > width:
        wide = [column for column in range(len(head)) if widths[column] > least[column]]
        if not wide:
            break
        widths[max(wide, key=lambda column: widths[column])] -= 1
    cells = [[_fit(cell, size, overflow) for cell, size in zip(row, widths, strict=True)] for row in table]
    # Wrapped cells may need less than their column allows.
    widths = [max(len(line) for row in cells for line in row[column]) for column in range(len(head))]
    blocks = [
        [_line(parts, widths, right) for parts in zip_longest(*row, fillvalue="")]  # One line, or several if wrapped.
        for row in cells
    ]
    rule = "-" * max(len(line) for block in blocks for line in block)
    outer = [rule] if framed else []
    body = [line for block in blocks[1:] for line in block]
    return "\n".join([*outer, *blocks[0], rule, *([note] if note else []), *body, *outer])


def _least(column: int, table: Sequence[Sequence[str]], overflow: Literal["wrap", "cut"]) -> int:
    """How narrow a column may become: no word is broken where cells are wrapped."""
    longest = max(len(row[column]) for row in table)
    if overflow == "cut":
        return min(longest, max(_LEAST, len(table[0][column])))
    words = [len(word) for row in table for word in row[column].split()]
    return min(longest, max([_LEAST, *words]))


def _fit(cell: str, width: int, overflow: Literal["wrap", "cut"]) -> list[str]:
    if len(cell) <= width:
        return [cell]
    if overflow == "cut":
        return [cell[: width - 1] + "~"]
    return textwrap.wrap(cell, width, break_long_words=False, break_on_hyphens=False) or [""]


def _line(parts: Sequence[str], widths: Sequence[int], right: Collection[int]) -> str:
    aligned = (
        part.rjust(width) if column in right else part.ljust(width)
        for column, (part, width) in enumerate(zip(parts, widths, strict=True))
    )
    return _GAP.join(aligned).rstrip()


def text_pairs(pairs: Sequence[tuple[str, str]], *, indent: str = "  ") -> str:
    """Names and values, one pair a line, with the values aligned."""
    width = max((len(name) for name, _ in pairs), default=0)
    return "\n".join(f"{indent}{name:<{width}}{_GAP}{value}" for name, value in pairs)


def html_table(
    head: Sequence[str] | None,
    rows: Sequence[Sequence[str]],
    *,
    caption: Sequence[str] = (),
    notes: Sequence[str] = (),
    row_names: bool = False,
) -> str:
    """A table in HTML. Every text is escaped, since names may come from anywhere.

    Parameters
    ----------
    head : sequence of str or None
        The names of the columns, if they have any.
    rows : sequence of sequences of str
        The cells.
    caption : sequence of str
        The lines of the caption.
    notes : sequence of str
        What is listed below the table.
    row_names : bool
        Whether the first cell of every row names it.

    Returns
    -------
    str
        A `table` element, followed by a list of the notes if there are any.
    """
    title = f"<caption>{'<br>'.join(map(escape, caption))}</caption>" if caption else ""
    names = "" if head is None else f"<thead><tr>{''.join(_cell('th', name) for name in head)}</tr></thead>"
    body = "".join(
        "<tr>"
        + "".join(_cell("th" if row_names and not column else "td", cell) for column, cell in enumerate(row))
        + "</tr>"
        for row in rows
    )
    listed = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return f'<table class="dpmedian">{title}{names}<tbody>{body}</tbody></table>' + (
        f"<ul>{listed}</ul>" if notes else ""
    )


def _cell(tag: str, text: str) -> str:
    return f'<{tag} style="text-align: left">{escape(text)}</{tag}>'
