"""What a run gives back: a `Release`, or `ReleaseFailed`, which is an output too and has its cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpmedian.accounting import PrivacyCost
from dpmedian.accounting.neighbours import Neighbours

if TYPE_CHECKING:
    from dpmedian.planning.plan import Plan

__all__ = ["MethodResult", "Release", "ReleaseFailed"]


class ReleaseFailed(RuntimeError):
    """A private run ended without a point. The budget is spent: `cost` is the full planned cost.

    The message contains public or already noisy values only. `size` is the noisy number of records, where that is
    private and was released.
    """

    def __init__(self, message: str, cost: PrivacyCost, size: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.cost = cost
        self.size = size

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message, self.cost, self.size)

    def __str__(self) -> str:
        return f"{self.message} (the budget is spent: {self.cost})"


@dataclass(frozen=True, eq=False)
class MethodResult:
    """What a method returns to the plan that ran it: everything here is already private."""

    point: NDArray[np.float64]
    scale: float | None = None
    error_radius: float | None = None
    notes: tuple[str, ...] = ()
    size: int | None = None


@dataclass(frozen=True, eq=False)
class Release:
    """A differentially private geometric median, and what it cost.

    `scale` is a private estimate of the data's spread and `error_radius` predicts the distance to the exact median, as
    post-processing; both are None where the method does not give them. The default method's `error_radius` covers it in
    19 runs of 20 on data with one middle; with clusters of which none has half of the records, or one half scattered,
    in fewer, and `notes` say where it may be too small. `seeded` says whether the noise came from a seed: such a
    release protects nobody. `name` is what the caller called it. Where neighbours add or remove a record, n is None,
    `size` is a noisy number of records (None if the method needs none), and `plan` is the plan at that size.
    """

    point: NDArray[np.float64]
    scale: float | None
    error_radius: float | None
    cost: PrivacyCost
    method: str
    n: int | None
    plan: Plan = field(repr=False)
    notes: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = None
    seeded: bool = False
    name: str | None = None
    size: int | None = None

    @property
    def neighbours(self) -> Neighbours:
        """When data sets are neighbours: "replace" or "add_remove"."""
        return self.cost.neighbours

    def __post_init__(self) -> None:
        self.point.setflags(write=False)

    def to_series(self) -> Any:
        """The point as a pandas Series that keeps the frame's column names (needs pandas)."""
        import pandas as pd  # type: ignore[import-untyped, unused-ignore]

        index = list(self.columns) if self.columns is not None else None
        return pd.Series(self.point.copy(), index=index, name="geometric median")

    def plot(self, points: ArrayLike, ax: Any = None) -> Any:
        """The point over the private records, in two dimensions, with its predicted error (needs matplotlib)."""
        from dpmedian.plot import plot_release

        return plot_release(self, points, ax)

    def __repr__(self) -> str:
        from dpmedian.rendering.release import release_text

        return release_text(self)

    def _repr_html_(self) -> str:
        from dpmedian.rendering.release import release_html

        return release_html(self)
