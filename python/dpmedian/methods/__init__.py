"""Methods: one file per algorithm, its proof beside it. They compose mechanisms and never touch the points.

A method is a module with `name`, `check(problem)`, which raises when an argument that it needs is missing, and
`prepare(problem, rho)`, which turns public parameters into a `Recipe`: a frozen value that knows its stages and its
cost and can run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from dpmedian.accounting import PrivacyCost
from dpmedian.problem import Problem
from dpmedian.release import Outcome
from dpmedian.source import ArraySource, Tape

__all__ = ["Method", "Prediction", "Recipe", "Stage"]


@dataclass(frozen=True)
class Stage:
    """A row of the plan."""

    name: str
    steps: str
    noise: str
    sensitivity: float
    cost: PrivacyCost


@dataclass(frozen=True)
class Prediction:
    """What to expect, from public parameters alone. None where nothing can be said without the data.

    `excess` is the median of F(point)/F(median) - 1 over many runs on a cloud of records at distances of one size.
    Exactly, it is what the point adds to F, in units of n times the median distance of the records from their median:
    F(median) is about that for a cloud, never below half of it, and larger with far records, whose excess is smaller.
    `excess_at_most` is where nine runs of ten stay if many records coincide, or if there is no single middle.
    `error_radius` is the distance to the median in units of the data's spread, `loss` a bound on
    (F(point) - F(median))/n in the units of the data, `failure` the probability of `ReleaseFailed`.
    """

    excess: float | None = None
    excess_at_most: float | None = None
    error_radius: float | None = None
    loss: float | None = None
    failure: float = 0.0


class Recipe(Protocol):
    """A calibrated method: everything that affects privacy is decided."""

    @property
    def stages(self) -> tuple[Stage, ...]: ...

    @property
    def cost(self) -> PrivacyCost: ...

    @property
    def passes(self) -> float:
        """Passes over the data, at most: for the progress bar."""
        ...

    @property
    def notes(self) -> tuple[str, ...]: ...

    def predict(self) -> Prediction: ...

    def run(self, source: ArraySource, tape: Tape) -> Outcome: ...


class Method(Protocol):
    """A module of this package."""

    name: str

    def check(self, problem: Problem) -> None: ...

    def prepare(self, problem: Problem, rho: float) -> Recipe: ...
