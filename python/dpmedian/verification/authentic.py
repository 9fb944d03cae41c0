"""Checks that an audit record is exactly what a run made. They use the digest of the record, the ledger that was
charged, and a signature.

The digest alone shows accidental changes only, because a person who changes a record can compute a new digest. A ledger
stores the digest of the result of the run, and only the holder of the private key can make a signature.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dpmedian._core import __version__
from dpmedian.digests import digest_of
from dpmedian.ledger import BrokenChain, Ledger
from dpmedian.verification.check import Check

__all__ = ["FORMER_VERSIONS", "Match", "called", "digest_check", "ledger_checks", "match_in"]

FORMER_VERSIONS = ("0.1.0", "0.2.0")
"""Earlier versions, without digests, whose records this version can read and partly verify."""


class Match(NamedTuple):
    """The entries of a ledger that belong to a record."""

    exact: tuple[int, ...]
    """The entries that have the digest of the record."""
    alike: tuple[int, ...]
    """Other entries with the name and the cost of the record that were charged before its date."""
    undigested: tuple[int, ...]
    """The entries in `alike` that have no digest. Either an earlier version wrote them, or the ledger does not know how
    their run ended.
    """


def match_in(entries: Sequence[Mapping[str, Any]], record: Mapping[str, Any]) -> Match:
    """Find the entries of a ledger (as `to_dict()` returns them) that were charged for a record."""
    planned = record["outcome"] == "planned"
    own = digest_of(record)
    exact, alike, undigested = [], [], []
    for number, entry in enumerate(entries):
        plan = entry.get("record") or {}
        if own == (plan.get("digest") if planned else entry.get("digest")):
            exact.append(number)
            continue
        same = plan.get("cost") == record["cost"] and record.get("name") in (None, entry["name"])
        if same and not planned and entry["time"] <= record.get("date", ""):
            alike.append(number)
            if entry.get("digest") is None:
                undigested.append(number)
    return Match(tuple(exact), tuple(alike), tuple(undigested))


def digest_check(record: Mapping[str, Any]) -> Check:
    """Check that the record has the digest that it states."""
    return Check("the digest is correct for the content", tuple(_digest(record)))


def _digest(record: Mapping[str, Any]) -> Iterator[str]:
    stated = record.get("digest")
    if stated is None:
        if record["version"] == __version__ or record["version"] not in FORMER_VERSIONS:
            yield f"the record has no digest, but version {record['version']} writes one"
        return
    found = digest_of(record)
    if stated != found:
        yield (
            f"the record states the digest {_short(stated)}, but its content has {_short(found)}: at least one value "
            "was changed after the record was made, such as the point, the date or the moments"
        )


def ledger_checks(
    record: Mapping[str, Any], ledger: Ledger | str | os.PathLike[str]
) -> tuple[list[Check], list[str], bool]:
    """Check that a ledger is consistent and has an entry for this record.

    Return the checks, notes, and whether the ledger authenticates the whole record.
    """
    chain = "the ledger is consistent: no line was changed, removed or moved"
    try:
        found = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
        content = found.to_dict()
    except BrokenChain as error:
        return [Check(chain, (str(error),))], [], False
    match, notes = match_in(content["entries"], record), []
    if content["taken_over"]:
        notes.append(
            f"the first {content['taken_over']} entries of the ledger were written by a version without a chain of "
            "digests, so it is not known whether one of them was changed"
        )
    wrong = list(_member(record, content["entries"], match))
    if not wrong and not match.exact:
        notes.append(
            f"the ledger's entry {match.undigested[-1]} has the name and the cost of this record, and was charged "
            "before its date; the entry has no digest, because former versions wrote none"
        )
    checks = [Check(chain), Check("the ledger was charged for this record", tuple(wrong))]
    return checks, notes, not wrong and bool(match.exact)


def _member(record: Mapping[str, Any], entries: Sequence[Mapping[str, Any]], match: Match) -> Iterator[str]:
    if record["outcome"] == "planned":
        if not match.exact:
            yield "no entry of the ledger was charged for this plan"
        return
    if match.exact:
        states = [entries[number]["state"] for number in match.exact]
        if record["outcome"] not in states:
            yield f"the record says {record['outcome']!r}, but the ledger says {states[0]!r}"
        elif len(states) > 1:
            yield f"{len(states)} entries of the ledger have the digest of this record, but a run is charged once"
        return
    if record.get("digest") is None and match.undigested:
        return
    if not match.alike:
        yield (
            "no entry of the ledger has the digest of this record, or its name and cost: this ledger was not charged "
            "for the record"
        )
        return
    number = match.alike[-1]
    entry = entries[number]
    known = (
        f"it has the digest {_short(entry['digest'])}: the point, the date, the moments or another value was changed"
        if entry.get("digest") is not None
        else f"it has no digest, and its state is {entry['state']!r}: the ledger does not know how its run ended"
    )
    yield (
        "no entry of the ledger has the digest of this record. "
        f"Entry {number} ({entry['name']}) has its name and cost, and {known}"
    )


def _short(digest: object) -> str:
    """Return the first characters of a digest, which are enough to tell two digests apart."""
    return f"{str(digest)[:19]}..."


def called(ledger: object) -> str:
    """Return the name of a ledger for a verdict."""
    if isinstance(ledger, Ledger):
        return "the ledger" if ledger.path is None else f"the ledger {ledger.path.name}"
    return f"the ledger {Path(str(ledger)).name}"
