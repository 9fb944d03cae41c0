"""One line of a ledger: a release, its cost and its end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from dpmedian.accounting import PrivacyCost
from dpmedian.accounting.arguments import require_encodable

__all__ = ["Entry", "EntryState", "FinalState", "json_object"]

FinalState = Literal["released", "failed", "interrupted"]
EntryState = Literal["pending", "released", "failed", "interrupted"]


@dataclass(frozen=True)
class Entry:
    """One release.

    Its cost counts as spent in every state. `remaining` is the budget that is left after the release, in the unit of
    the budget.
    """

    name: str
    """The name of the release, chosen by the analyst."""
    method: str
    """The method or building block of the release."""
    time: str
    """The time of the charge, in UTC, in ISO 8601 format."""
    cost: PrivacyCost
    """The cost that was charged, under the neighbors and for the unit of the ledger."""
    state: EntryState
    """How the release ended. A pending release may still be running, or its process may have died."""
    remaining: float
    """The part of the budget that was left after the release."""
    seeded: bool = False
    """Whether a seed determined the noise. Such a release gives no protection against a reader who can guess the
    seed.
    """
    record: Mapping[str, Any] | None = field(default=None, repr=False)
    """A JSON object that was stored with the entry, such as the audit record of the plan."""
    digest: str | None = None
    """The digest of the audit record of the result. None before the run ended, and if the result has no audit
    record.
    """
    converted_from: str | None = None
    """The neighbors and the unit of the cost before it was converted for the ledger. None if it was not converted.
    """
    factor: float | None = None
    """The factor by which the conversion multiplied rho. None if there was no conversion."""

    def to_dict(self) -> dict[str, object]:
        """The entry as JSON. Fields that are None are left out."""
        return {
            name: value for name, value in {**self.__dict__, "cost": self.cost.to_dict()}.items() if value is not None
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Entry:
        """Read a stored entry. Entries of version 0.1.0, which had no seeds and records, can be read, too."""
        entry = cls(**{**stored, "cost": PrivacyCost.from_dict(stored["cost"])})
        for name in ("name", "method", "time"):
            if not isinstance(getattr(entry, name), str):
                raise ValueError(f"{name} is {getattr(entry, name)!r}, which is not a text")
        for name in ("remaining", "factor"):
            value = getattr(entry, name)
            if not isinstance(value, (int, float)) and (name, value) != ("factor", None):
                raise ValueError(f"{name} is {value!r}, which is not a number")
        if entry.state not in get_args(EntryState):
            raise ValueError(f"unknown state {entry.state!r}")
        if not isinstance(entry.seeded, bool):
            raise ValueError(f"seeded is {entry.seeded!r}, neither true nor false")
        return entry


def json_object(name: str, value: object) -> dict[str, Any] | None:
    """A copy of a JSON object, or an error before anything is charged. None is returned unchanged."""
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise TypeError(
            f"{name} must be a mapping that JSON can hold, or None, got {value!r} of {type(value).__name__}"
        )
    try:
        text = json.dumps(dict(value), ensure_ascii=False, allow_nan=False)
        require_encodable(name, text)
        copy = json.loads(text)
    except RecursionError:
        raise ValueError(f"{name} must be a mapping that JSON can hold: it nests too deep") from None
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name} must be a mapping that JSON can hold: {error}") from None
    return dict(copy)
