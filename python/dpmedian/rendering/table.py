"""Tables, as aligned text that fits a terminal and as escaped HTML. No other module makes tables."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Sequence
from html import escape
from itertools import zip_longest
from typing import Literal

from dpmedian.recorded import View

__all__ = ["html_block", "html_table", "text_pairs", "text_table", "titled"]

_GAP = "  "

# The smallest width of a column that is narrowed, in characters.
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
    """Return a table of aligned columns, with a line below its head.

    Parameters
    ----------
    head : sequence of str
        The names of the columns.
    rows : sequence of sequences of str
        The cells. Every row must be as long as the head.
    width : int
        The largest length of a line. Lines are longer only if the columns cannot be narrowed enough.
    yielding : collection of int
        The columns that may be narrowed if the table is too wide. The widest of these columns is narrowed first.
    overflow : {"wrap", "cut"}
        Whether a cell that is longer than its column continues in the next line, or ends in a tilde.
    right : collection of int
        The columns that are aligned to the right.
    framed : bool
        Whether there are lines above and below the table, too.
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
    # Wrapped cells may need less than the width of their column.
    widths = [max(len(line) for row in cells for line in row[column]) for column in range(len(head))]
    blocks = [
        [_line(parts, widths, right) for parts in zip_longest(*row, fillvalue="")]  # A wrapped row has several lines.
        for row in cells
    ]
    rule = "-" * max(len(line) for block in blocks for line in block)
    outer = [rule] if framed else []
    body = [line for block in blocks[1:] for line in block]
    return "\n".join([*outer, *blocks[0], rule, *([note] if note else []), *body, *outer])


def _least(column: int, table: Sequence[Sequence[str]], overflow: Literal["wrap", "cut"]) -> int:
    """Return the smallest width of a column. If cells are wrapped, the longest word must fit."""
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
    """Return lines with a name and a value each. The values are aligned."""
    width = max((len(name) for name, _ in pairs), default=0)
    return "\n".join(f"{indent}{name:<{width}}{_GAP}{value}" for name, value in pairs)


# Notebooks may be light or dark. So text has the color of the text around it, and lines and stripes are a
# half-transparent gray.
_STYLE = """
.dpmedian { overflow-x: auto; }
.dpmedian table { border-collapse: collapse; margin: 0 0 6px; font-size: 0.92em; color: inherit; }
.dpmedian caption { text-align: left; font-weight: 600; padding: 0 0 6px; color: inherit; caption-side: top; }
.dpmedian caption small { display: block; font-weight: 400; opacity: 0.75; }
.dpmedian th, .dpmedian td {
  text-align: left; vertical-align: top; padding: 4px 12px 4px 6px; background: none; border: 0;
  border-bottom: 1px solid rgba(128, 128, 128, 0.3); max-width: 32em; white-space: normal;
}
.dpmedian thead th { font-weight: 600; border-bottom: 1px solid rgba(128, 128, 128, 0.8); white-space: nowrap; }
.dpmedian tbody tr:nth-child(even) { background: rgba(128, 128, 128, 0.09); }
.dpmedian .right { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.dpmedian ul { margin: 4px 0 6px; padding-left: 1.4em; font-size: 0.92em; }
.dpmedian summary { cursor: pointer; opacity: 0.8; margin: 4px 0; }
.dpmedian .alarm { color: #c9372c; font-weight: 600; }
"""


def html_block(*parts: str) -> str:
    """Return tables as one block with their style, for notebooks, as pandas and scikit-learn do."""
    return f'<div class="dpmedian"><style scoped>{_STYLE}</style>{"".join(parts)}</div>'


def html_table(
    head: Sequence[str] | None,
    rows: Sequence[Sequence[str]],
    *,
    caption: Sequence[str] = (),
    notes: Sequence[str] = (),
    row_names: bool = False,
    right: Collection[int] = (),
) -> str:
    """Return a table in HTML, for a block. Every text is escaped, because names come from the user and may contain
    HTML.

    Parameters
    ----------
    head : sequence of str or None
        The names of the columns, or None.
    rows : sequence of sequences of str
        The cells.
    caption : sequence of str
        The title, and the lines below the title.
    notes : sequence of str
        The items of the list below the table.
    row_names : bool
        Whether the first cell of a row is the name of the row.
    right : collection of int
        The columns that are aligned to the right, as numbers are.

    Returns
    -------
    str
        A `table` element, followed by a list of the notes if there are any.
    """
    lines = "".join(f"<small>{escape(line)}</small>" for line in caption[1:])
    title = f"<caption>{escape(caption[0])}{lines}</caption>" if caption else ""
    names = "" if head is None else f"<thead><tr>{_cells('th', head, right)}</tr></thead>"
    body = "".join(
        f"<tr>{_cells('th', row[:1], ())}{_cells('td', row[1:], {column - 1 for column in right})}</tr>"
        if row_names
        else f"<tr>{_cells('td', row, right)}</tr>"
        for row in rows
    )
    listed = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return f"<table>{title}{names}<tbody>{body}</tbody></table>" + (f"<ul>{listed}</ul>" if notes else "")


def _cells(tag: str, texts: Sequence[str], right: Collection[int]) -> str:
    return "".join(
        f"<{tag}{' class=right' if column in right else ''}>{escape(text)}</{tag}>" for column, text in enumerate(texts)
    )


def titled(
    title: Sequence[str],
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    facts: Sequence[str],
    *,
    width: int = 80,
    yielding: Collection[int] = (),
    overflow: Literal["wrap", "cut"] = "wrap",
    numbers: Collection[int] = (),
    aligned: bool = False,
    framed: bool = True,
    facts_first: bool = False,
) -> View:
    """Return a table below its title, with sentences, as text and as HTML for a block.

    Parameters
    ----------
    title, facts : sequence of str
        Lines above the table, and sentences below it. If `facts_first`, the sentences are above the table in the text.
    numbers : collection of int
        The columns of numbers, which are aligned to the right in HTML, and as text if `aligned`.
    head, rows, width, yielding, overflow, framed
        As in `text_table`.

    Returns
    -------
    View
        The text, and the HTML without its block.
    """
    right = numbers if aligned else ()
    table = text_table(head, rows, width, yielding=yielding, overflow=overflow, right=right, framed=framed)
    filled = [textwrap.fill(fact, width, subsequent_indent="  ") for fact in facts]
    return View(
        "\n".join([*title, *filled, table] if facts_first else [*title, table, *filled]),
        html_table(head, rows, caption=title, notes=facts, right=numbers),
    )
