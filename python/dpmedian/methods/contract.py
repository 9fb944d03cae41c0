"""What a method is, and what it says before anything is spent."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Protocol

from dpmedian.accounting import PrivacyCost
from dpmedian.mechanisms.stage import Stage
from dpmedian.parameters import PublicParameters
from dpmedian.release import MethodResult
from dpmedian.sources.protocol import Source
from dpmedian.tape import Tape

__all__ = ["Calibrated", "CalibratedMethod", "Method", "Prediction"]


@dataclass(frozen=True)
class Prediction:
    """What to expect, from public parameters alone. None where nothing can be said without the data.

    The *spread* of the data is the distance from their median within which 40 % of the records lie.

    `excess` is the median of F(point)/F(median) - 1 over many runs on a cloud of records at distances of one size.
    Exactly, it is what the point adds to F, in units of n times the median distance of the records from their median:
    F(median) is about that for a cloud, never below half of it, and larger with far records, whose excess is smaller.
    `excess_if_many_coincide` is where nine runs of ten stay if many records coincide, or if there is no single middle.
    `relative_error` is the distance to the median in units of the data's spread. `excess_distance_bound` bounds
    (F(point) - F(median))/n in the units of the data. `failure` is the probability of `ReleaseFailed`.
    """

    excess: float | None = None
    excess_if_many_coincide: float | None = None
    relative_error: float | None = None
    excess_distance_bound: float | None = None
    failure: float = 0.0


class Calibrated(ABC):
    """Stages that were calibrated from public parameters: everything that affects privacy is decided."""

    in_process: ClassVar[bool] = False
    """Whether all records must be in this process, because the run asks thousands of times."""

    @property
    @abstractmethod
    def stages(self) -> tuple[Stage, ...]:
        """What is released, in order."""

    @property
    def cost(self) -> PrivacyCost:
        """The cost of all stages."""
        return PrivacyCost.total(stage.cost for stage in self.stages)

    @property
    @abstractmethod
    def passes(self) -> float:
        """Passes over the data, at most: for the progress bar."""


class CalibratedMethod(Calibrated):
    """A method that can run."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the plan should know."""
        return ()

    @abstractmethod
    def predict(self) -> Prediction:
        """What to expect."""

    @abstractmethod
    def run(self, source: Source, tape: Tape) -> MethodResult:
        """Asks the source through mechanisms and the tape; raises `ReleaseFailed` if it finds nothing."""


class Method(Protocol):
    """A module of this package."""

    name: str
    uses: frozenset[str]
    """The arguments of `METHOD_ARGUMENTS` that change what it does."""
    relations: frozenset[str]
    """The neighbour relations that it is proved for."""

    def check(self, parameters: PublicParameters) -> None:
        """Raises if an argument that it needs is missing or out of its reach."""

    def calibrate(self, parameters: PublicParameters, rho: float) -> CalibratedMethod:
        """The stages that cost about rho."""
