"""The entries of a ledger as HTML: a bar that shows the spent shares, and a table."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from dpmedian.accounting import Budget, PrivacyCost
from dpmedian.accounting.protection import relation_of
from dpmedian.verification.authentic import match_in

__all__ = ["history"]

# The largest number of entries that are listed. If there are more, the latest entries are listed.
_SHOWN = 40


def history(ledger: Mapping[str, Any], record: Mapping[str, Any]) -> str:
    """Return the entries of a ledger (its `to_dict()`) as HTML. If one of them is the entry of this audit record, it is
    highlighted.
    """
    budget = Budget.of(**ledger["budget"])
    entries = ledger["entries"]
    own = _own(entries, record)
    bar = "".join(
        f'<i{" class=now" if index == own else ""} style="width:{100.0 * entry["share"]:.3f}%" '
        f'title="{escape(entry["name"])}"></i>'
        for index, entry in enumerate(entries)
    )
    rows = "".join(
        f'<tr><td class="date">{escape(entry["time"][:10])}</td><th>{escape(entry["name"])}</th>'
        f"<td>{escape(entry['method'])}</td>"
        f'<td data-name="cost">{escape(_cost(entry["cost"]))}</td>'
        f'<td class="number" data-name="share">{100.0 * entry["share"]:.1f} %</td>'
        f'<td data-name="state">{escape(entry["state"])}{", seeded" if entry["seeded"] else ""}</td>'
        f'<td class="number" data-name="left">{entry["remaining"]:.3g}</td></tr>'
        for entry in entries[-_SHOWN:]
    )
    earlier = len(entries) - _SHOWN
    more = f'<p class="soft">{earlier} earlier entries are not shown.</p>' if earlier > 0 else ""
    protects = relation_of(ledger["neighbours"]).changed
    text = (
        f"The releases below share a budget of {budget}, for one {ledger['unit']} {protects}. The ledger knows only "
        f"what was charged to it. {ledger['remaining']:.3g} of {budget.measure} is left. Shares are fractions of the "
        f"budget in {ledger['shares_of']}, in which costs add up; {100.0 * ledger['share_left']:.1f} % of it is left. "
        "Failed and interrupted runs count like all other runs."
    )
    head = "".join(
        f"<th{' class=number' if name in ('Share', 'Left') else ''}>{name}</th>"
        for name in ("Date", "Name", "Method", "Cost", "Share", "State", "Left")
    )
    table = f'<table class="stack"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
    return (
        f'<p>{escape(text)}</p>\n<div class="spent" role="img" aria-label="spent">{bar}</div>\n'
        f'<div class="wide">{table}</div>{more}'
    )


def _own(entries: list[Mapping[str, Any]], record: Mapping[str, Any]) -> int | None:
    """Return the index of the entry that was charged for this audit record, or None.

    For a record of an earlier version, this is the last entry with its name and cost.
    """
    match = match_in(entries, record)
    found = match.exact or match.undigested
    return found[-1] if found else None


def _cost(stored: Mapping[str, Any]) -> str:
    return str(PrivacyCost.from_dict(stored))
