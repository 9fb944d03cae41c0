"""One line of a ledger: a release, what it costs and how it ended."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from dpmedian.accounting import PrivacyCost
from dpmedian.accounting.arguments import require_encodable

__all__ = ["Entry", "EntryState", "FinalState", "json_object"]

FinalState = Literal["released", "failed", "interrupted"]
EntryState = Literal["pending", "released", "failed", "interrupted"]


@dataclass(frozen=True)
class Entry:
    """One release. Its cost counts as spent in every state; `remaining` is what it left, in the budget's measure."""

    name: str
    """What the release is called, chosen by the analyst."""
    method: str
    """The method or building block that made it."""
    time: str
    """When it was charged, in UTC, as ISO 8601 writes it."""
    cost: PrivacyCost
    """What was charged, under the ledger's neighbours and for its unit."""
    state: EntryState
    """How it ended: a pending one may be running, or its process died."""
    remaining: float
    """What was left of the budget after it."""
    seeded: bool = False
    """Whether a seed chose the noise: such a release protects nobody who can guess the seed."""
    record: Mapping[str, Any] | None = None
    """A JSON object that was stored with the entry, such as the audit record of the plan."""
    digest: str | None = None
    """The digest of the audit record of what the run gave; None before its end, and if there is no such record."""
    converted_from: str | None = None
    """For whom the cost held before it was converted to the ledger's neighbors and unit; None if it was not."""
    factor: float | None = None
    """By how much that conversion multiplied rho; None if there was none."""

    def to_dict(self) -> dict[str, object]:
        """The entry as JSON can hold it; what is missing is left out."""
        return {
            name: value for name, value in {**self.__dict__, "cost": self.cost.to_dict()}.items() if value is not None
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Entry:
        """The entry that was stored, also by version 0.1.0, which did not know of seeds and records."""
        entry = cls(**{**stored, "cost": PrivacyCost.from_dict(stored["cost"])})
        for name in ("name", "method", "time"):
            if not isinstance(getattr(entry, name), str):
                raise ValueError(f"{name} is {getattr(entry, name)!r}, which is no text")
        for name in ("remaining", "factor"):
            value = getattr(entry, name)
            if not isinstance(value, (int, float)) and (name, value) != ("factor", None):
                raise ValueError(f"{name} is {value!r}, which is no number")
        if entry.state not in get_args(EntryState):
            raise ValueError(f"unknown state {entry.state!r}")
        if not isinstance(entry.seeded, bool):
            raise ValueError(f"seeded is {entry.seeded!r}, neither true nor false")
        return entry


def json_object(name: str, value: object) -> dict[str, Any] | None:
    """A copy of a JSON object, or an error before anything is charged; None stays None."""
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
