"""The events of a ledger in order (every charge, and how each run ended), as a hash chain.

A line of the log is a JSON object, and its `link` is the SHA-256 digest of the previous link and the line's own
content. If a line is changed, removed or moved, the following links no longer match. The head, which is the last link,
identifies the whole history. Lines are only ever appended.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any, get_args

from dpmedian.accounting import PrivacyCost
from dpmedian.digests import canonical
from dpmedian.ledger.entry import Entry, FinalState
from dpmedian.ledger.errors import BrokenChain

__all__ = ["Log", "now"]


def now() -> str:
    """Return the time for a line. No result depends on it, so a wrong clock does no harm."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


class Log:
    """The lines of a log, and the entries that they describe."""

    def __init__(self, start: Mapping[str, Any]) -> None:
        """An empty log. The first link is computed from `start`: the terms of the ledger and its identity."""
        self.lines: list[dict[str, Any]] = []
        self.entries: list[Entry] = []
        self.head = _digest("", start)
        # For every entry, the link of its charge.
        self._charged: list[str] = []

    @classmethod
    def read(cls, start: Mapping[str, Any], lines: Sequence[Any], head: object) -> Log:
        """The log with these stored lines. `BrokenChain` is raised if a line was changed, removed or moved."""
        log = cls(start)
        for number, line in enumerate(lines):
            content = {name: value for name, value in line.items() if name != "link"}
            link = _digest(log.head, content)
            if line.get("link") != link:
                raise BrokenChain(
                    f"line {number} of its log does not fit the line before it: a line was changed, removed or moved, "
                    "or the terms were changed. Restore the ledger from a backup"
                )
            log._add(content, link)
        if head != log.head:
            raise BrokenChain(
                "its log does not end with the link that 'head' names: lines at the end were removed, or the terms "
                "were changed. Restore the ledger from a backup"
            )
        return log

    @classmethod
    def of_former(cls, start: Mapping[str, Any], entries: Sequence[Entry]) -> Log:
        """The log with entries that an earlier version stored without a chain."""
        log = cls(start)
        for number, entry in enumerate(entries):
            log.charge(replace(entry, state="pending"))
            if entry.state != "pending":
                log.end(number, entry.state, time=None)
        return log

    def copy(self) -> Log:
        """A copy that can grow independently. Lines and entries are never changed in place."""
        other = Log.__new__(Log)
        other.lines, other.entries, other.head = self.lines.copy(), self.entries.copy(), self.head
        other._charged = self._charged.copy()
        return other

    def charge(self, entry: Entry) -> tuple[int, str]:
        """Add the charge of a pending entry. Return its number, and the link by which `has` recognizes it."""
        content = {name: value for name, value in entry.to_dict().items() if name != "state"}
        self._add(content, _digest(self.head, content))
        return len(self.entries) - 1, self.head

    def end(
        self,
        number: int,
        state: FinalState,
        *,
        time: str | None,
        digest: str | None = None,
        lowered: tuple[PrivacyCost, float] | None = None,
    ) -> None:
        """Note how the run of an entry ended: the digest of its record, and if the charge is reduced, the new cost and
        the remaining budget.
        """
        content: dict[str, Any] = {"entry": number, "state": state, "time": time, "digest": digest}
        if lowered is not None:
            content |= {"cost": lowered[0].to_dict(), "remaining": lowered[1]}
        content = {name: value for name, value in content.items() if value is not None}
        self._add(content, _digest(self.head, content))

    def has(self, number: int, link: str) -> bool:
        """Whether the entry with this number is the charge with this link."""
        return number < len(self._charged) and self._charged[number] == link

    def _add(self, content: dict[str, Any], link: str) -> None:
        if "entry" in content:
            number, state = content["entry"], content["state"]
            if type(number) is not int or not 0 <= number < len(self.entries):
                raise ValueError(f"a line of its log ends an entry {number!r}, which does not exist")
            before = self.entries[number]
            if state not in get_args(FinalState) or before.state != "pending":
                raise ValueError(f"a line of its log marks entry {number} as {state!r}, after {before.state!r}")
            self.entries[number] = _ended(before, content)
        else:
            self.entries.append(Entry.from_dict({**content, "state": "pending"}))
            self._charged.append(link)
        self.lines.append({**content, "link": link})
        self.head = link


def _ended(entry: Entry, line: Mapping[str, Any]) -> Entry:
    ended = replace(entry, state=line["state"], digest=line.get("digest"))
    if "cost" not in line:
        return ended
    cost = PrivacyCost.from_dict(line["cost"])
    if cost.rho > entry.cost.rho or cost.delta0 > entry.cost.delta0:
        raise ValueError(f"the cost of the part that ran, {cost}, exceeds the charged cost, {entry.cost}")
    return replace(ended, cost=cost, remaining=line["remaining"])


def _digest(before: str, content: Mapping[str, Any]) -> str:
    return hashlib.sha256(before.encode() + b"\n" + canonical(content)).hexdigest()
