"""A ledger as text, as HTML and as a dictionary."""

from __future__ import annotations

import contextlib
import textwrap
from pathlib import Path
from typing import Any

from dpmedian.accounting import PrivacyCost
from dpmedian.ledger import Ledger
from dpmedian.recorded import View, as_record, as_view
from dpmedian.rendering.table import html_block, html_table, text_table

__all__ = ["ledger_record", "ledger_view"]

_COLUMNS = ("name", "method", "date", "cost", "share", "state", "seeded", "left")

# The largest number of entries that are shown (the latest entries), and the largest number of names in a note.
_SHOWN, _NAMED = 40, 3


@as_view.register
def ledger_view(ledger: Ledger) -> View:
    """Show a table with lines of at most 80 characters. Long names and methods are cut."""
    heading, rows, earlier, notes = _content(ledger)
    omitted = [f"({earlier} earlier entries)"] if earlier else []
    right = (_COLUMNS.index("share"), _COLUMNS.index("left"))
    page = html_block(html_table(_COLUMNS, rows, caption=[*heading, *omitted], notes=notes, right=right))
    if not rows:
        return View("\n".join([*heading, "no entries"]), page)
    table = text_table(_COLUMNS, rows, yielding=(0, 1), overflow="cut", note=omitted[0] if omitted else None)
    filled = (textwrap.fill(note, 80, subsequent_indent="  ") for note in notes)
    return View("\n".join([*heading, table, *filled]), page)


@as_record.register
def ledger_record(ledger: Ledger) -> dict[str, Any]:
    """Return the terms, the remaining budget, and all entries with their shares, as JSON."""
    shares, left = ledger.shares
    return {
        "budget": ledger.budget.to_dict(),
        "composition": ledger.composition,
        "neighbours": ledger.neighbours,
        "unit": ledger.unit,
        "measure": ledger.budget.measure,
        "remaining": ledger.remaining,
        "shares_of": ledger.additive,
        "share_left": left,
        "spent": ledger.spent.to_dict(),
        "entries": [entry.to_dict() | {"share": share} for entry, share in zip(ledger.entries, shares, strict=False)],
        "taken_over": ledger.taken_over,
        "head": ledger.head,
    }


def _content(ledger: Ledger) -> tuple[list[str], list[tuple[str, ...]], int, list[str]]:
    """Return a heading, the last rows, the number of earlier rows that are not shown, and notes."""
    entries, (shares, left) = ledger.entries, ledger.shares
    measure = ledger.budget.measure
    heading = [
        f"Ledger: {ledger.budget}; left: {measure} = {ledger.remaining:.6g}, {_percent(left)} of {ledger.additive}"
    ]
    if not ledger.protection.is_default:
        heading.append(f"neighbours: {ledger.neighbours} one {ledger.unit}")
    heading.append(f"filter: {ledger.composition}")
    if ledger.path:
        heading.append(f"file: {_from_here(ledger.path)}")
    rows: list[tuple[str, ...]] = [
        (
            entry.name,
            entry.method,
            entry.time[:10],
            _short(entry.cost),
            _percent(share),
            entry.state,
            "yes" if entry.seeded else "no",
            f"{entry.remaining:.3g}",
        )
        for entry, share in list(zip(entries, shares, strict=False))[-_SHOWN:]
    ]
    notes = [f"share: of the budget in {ledger.additive}, in which costs add up"]
    if measure != ledger.additive:
        notes[0] += f". In {measure} costs do not add up: of two equal shares, the later takes less"
    converted: dict[tuple[str, float], list[str]] = {}
    for entry in entries:
        if entry.converted_from is not None and entry.factor is not None:
            converted.setdefault((entry.converted_from, entry.factor), []).append(entry.name)
    for (whose, factor), names in converted.items():
        notes.append(
            f"converted: for a release that protects {whose}, {factor:.3g} times its rho is charged, because this "
            "ledger counts "
            f"{ledger.counts}: {', '.join(names[:_NAMED])}" + (", ..." if len(names) > _NAMED else "")
        )
    return heading, rows, max(len(entries) - _SHOWN, 0), notes


def _percent(share: float) -> str:
    """Return a share in percent. A positive share below 0.1 % is not shown as 0."""
    return "< 0.1 %" if 0.0 < share < 0.0005 else f"{100.0 * share:.1f} %"


def _from_here(path: Path) -> str:
    """Return the path relative to the current directory.

    A ledger stores an absolute path, so that a change of the current directory has no effect.
    """
    # An error means that the path cannot be relative, or that the current directory does not exist.
    with contextlib.suppress(OSError, ValueError):
        return str(path.relative_to(Path.cwd().resolve()))
    return str(path)


def _short(cost: PrivacyCost) -> str:
    """Return the cost in a few characters."""
    if cost.epsilon is not None:
        measure, value, delta = "eps", cost.epsilon, cost.delta
    elif cost.is_pure:
        measure, value, delta = "eps", cost.epsilon_at(0.0), None
    else:
        measure, value, delta = "rho", cost.rho, cost.delta0
    return f"{measure} {value:.3g}" + (f", {delta:.2g}" if delta else "")
