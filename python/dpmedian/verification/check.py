"""Classes for the result of one check of an audit record, and of all checks."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

__all__ = ["Check", "Verification"]


@dataclass(frozen=True)
class Check:
    """One check of an audit record. `question` describes the check, and `wrong` lists the errors that were found."""

    question: str
    wrong: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verification:
    """The result of verifying an audit record. `print` shows a report in words."""

    checks: tuple[Check, ...]
    """All checks, in order."""
    claim: str
    """The claim of the record, in words."""
    notes: tuple[str, ...] = ()
    """Further notes for the reader."""
    whole: bool = True
    """Whether the whole plan was computed again from its public parameters. If not, only the stages in the record were
    computed again, so a missing stage is not noticed.
    """
    authenticated: tuple[str, ...] = ()
    """The evidence that the record was not changed: the ledger that was charged, or a signature."""
    unauthenticated: tuple[str, ...] = ()
    """The values of the record for which there is no such evidence."""

    @property
    def holds(self) -> bool:
        """Whether no errors were found. `whole` says how much was checked."""
        return not self.wrong

    @property
    def wrong(self) -> tuple[str, ...]:
        """All errors, in words."""
        return tuple(text for check in self.checks for text in check.wrong)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        lines = [*textwrap.wrap(f"Claim: {self.claim}", 80), ""]
        for check in self.checks:
            lines.append(f"  {'WRONG' if check.wrong else 'ok   '}  {check.question}")
            lines += [f"           {text}" for text in check.wrong]
        lines += [f"  note   {note}" for note in self.notes]
        return "\n".join([*lines, "", *textwrap.wrap(self._verdict(), 80)])

    def _verdict(self) -> str:
        if not self.holds:
            count = len(self.wrong)
            return f"The claim does not hold as recorded: {count} {'thing is' if count == 1 else 'things are'} wrong."
        holds = "The claim holds." if self.whole else "The claim holds if the record names all stages."
        if self.authenticated:
            return f"{holds} It is authenticated by {' and '.join(self.authenticated)}."
        if not self.unauthenticated:
            return holds
        *first, last = self.unauthenticated
        return (
            f"{holds} Not authenticated: {', '.join(first)} and {last}, because whoever changes a record can also "
            "change its digest. Verify it with the ledger that was charged, or with a signature."
        )
