"""The result of a building block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from dpmedian.accounting import PrivacyCost

__all__ = ["PrivateValue"]

Value = TypeVar("Value")


@dataclass(frozen=True)
class PrivateValue(Generic[Value]):
    """The released value of a building block, and its cost. `size` is the noisy number of records if the number is
    private.
    """

    value: Value
    cost: PrivacyCost
    size: int | None = None
