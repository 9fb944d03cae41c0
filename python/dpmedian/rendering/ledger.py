"""A ledger as text, as HTML and as a dictionary."""

from __future__ import annotations

import contextlib
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from dpmedian.accounting import Budget, PrivacyCost
from dpmedian.accounting.protection import Protection
from dpmedian.rendering.table import html_block, html_table, text_table

__all__ = ["ledger_dict", "ledger_html", "ledger_text"]

_COLUMNS = ("name", "method", "date", "cost", "share", "state", "seeded", "left")

# So many entries are shown, the latest ones, and so many names in a note.
_SHOWN, _NAMED = 40, 3


class _Entry(Protocol):
    """What is shown of an entry."""

    @property
    def name(self) -> str: ...
    @property
    def method(self) -> str: ...
    @property
    def time(self) -> str: ...
    @property
    def cost(self) -> PrivacyCost: ...
    @property
    def state(self) -> str: ...
    @property
    def remaining(self) -> float: ...
    @property
    def seeded(self) -> bool: ...
    @property
    def converted_from(self) -> str | None: ...
    @property
    def factor(self) -> float | None: ...
    def to_dict(self) -> dict[str, object]: ...


class _Ledger(Protocol):
    """What is shown of a ledger; the rendering needs to know nothing else of it."""

    @property
    def budget(self) -> Budget: ...
    @property
    def composition(self) -> str: ...
    @property
    def counts(self) -> str: ...
    @property
    def neighbours(self) -> str: ...
    @property
    def unit(self) -> str: ...
    @property
    def protection(self) -> Protection: ...
    @property
    def path(self) -> Path | None: ...
    @property
    def additive(self) -> str: ...
    @property
    def shares(self) -> tuple[list[float], float]: ...
    @property
    def spent(self) -> PrivacyCost: ...
    @property
    def remaining(self) -> float: ...
    @property
    def entries(self) -> Sequence[_Entry]: ...
    @property
    def taken_over(self) -> int: ...
    @property
    def head(self) -> str: ...


def ledger_text(ledger: _Ledger) -> str:
    """A table of at most 80 columns; long names and methods are cut."""
    heading, rows, earlier, notes = _content(ledger)
    if not rows:
        return "\n".join([*heading, "no entries"])
    note = f"({earlier} earlier entries)" if earlier else None
    table = text_table(_COLUMNS, rows, yielding=(0, 1), overflow="cut", note=note)
    return "\n".join([*heading, table, *(textwrap.fill(note, 80, subsequent_indent="  ") for note in notes)])


def ledger_html(ledger: _Ledger) -> str:
    """The same table in HTML."""
    heading, rows, earlier, notes = _content(ledger)
    omitted = [f"({earlier} earlier entries)"] if earlier else []
    right = (_COLUMNS.index("share"), _COLUMNS.index("left"))
    return html_block(html_table(_COLUMNS, rows, caption=[*heading, *omitted], notes=notes, right=right))


def ledger_dict(ledger: _Ledger) -> dict[str, Any]:
    """Terms, what is left and all entries with their shares, as JSON can hold them."""
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


def _content(ledger: _Ledger) -> tuple[list[str], list[tuple[str, ...]], int, list[str]]:
    """A heading, the last rows, how many earlier ones are not among them, and notes."""
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
    notes = [f"share: of {ledger.additive}, which adds up, in what was spent and what is left"]
    if measure != ledger.additive:
        notes[0] += f". {measure.capitalize()} does not add up: equal shares take less and less of it"
    converted: dict[tuple[str, float], list[str]] = {}
    for entry in entries:
        if entry.converted_from is not None and entry.factor is not None:
            converted.setdefault((entry.converted_from, entry.factor), []).append(entry.name)
    for (whose, factor), names in converted.items():
        notes.append(
            f"converted: {factor:.3g} times its rho is charged for what protects {whose}, because this ledger counts "
            f"{ledger.counts}: {', '.join(names[:_NAMED])}" + (", ..." if len(names) > _NAMED else "")
        )
    return heading, rows, max(len(entries) - _SHOWN, 0), notes


def _percent(share: float) -> str:
    """A share in percent; what is less than a tenth of one is not shown as nothing."""
    return "< 0.1 %" if 0.0 < share < 0.0005 else f"{100.0 * share:.1f} %"


def _from_here(path: Path) -> str:
    """The path as one would type it: ledgers know theirs from the root, so that no change of directory loses it."""
    with contextlib.suppress(OSError, ValueError):  # Elsewhere, or the directory is gone.
        return str(path.relative_to(Path.cwd().resolve()))
    return str(path)


def _short(cost: PrivacyCost) -> str:
    """The cost in a few characters."""
    if cost.epsilon is not None:
        measure, value, delta = "eps", cost.epsilon, cost.delta
    elif cost.is_pure:
        measure, value, delta = "eps", cost.epsilon_at(0.0), None
    else:
        measure, value, delta = "rho", cost.rho, cost.delta0
    return f"{measure} {value:.3g}" + (f", {delta:.2g}" if delta else "")
