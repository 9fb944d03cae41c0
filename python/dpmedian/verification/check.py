"""What was asked about a record, and what was found."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

__all__ = ["Check", "Verification"]


@dataclass(frozen=True)
class Check:
    """One question about a record: what was asked, and what was found wrong."""

    question: str
    wrong: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verification:
    """What became of computing a record again. `print` it for a report in words."""

    checks: tuple[Check, ...]
    """All that was asked, in order."""
    claim: str
    """What the record claims, in words."""
    notes: tuple[str, ...] = ()
    """What a reader should know beyond that."""
    whole: bool = True
    """Whether the plan was made anew: otherwise only the stages that the record names were computed again."""

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong with what was computed again: all of it if `whole`, or the stages that are named."""
        return not self.wrong

    @property
    def wrong(self) -> tuple[str, ...]:
        """What is wrong, in words."""
        return tuple(text for check in self.checks for text in check.wrong)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        lines = [*textwrap.wrap(f"Claim: {self.claim}", 80), ""]
        for check in self.checks:
            lines.append(f"  {'WRONG' if check.wrong else 'ok   '}  {check.question}")
            lines += [f"           {text}" for text in check.wrong]
        lines += [f"  note   {note}" for note in self.notes]
        count = len(self.wrong)
        holds = "The claim holds." if self.whole else "The claim holds if the record names all stages."
        verdict = (
            holds
            if self.holds
            else f"The claim does not hold as recorded: {count} {'thing is' if count == 1 else 'things are'} wrong."
        )
        return "\n".join([*lines, "", verdict])
