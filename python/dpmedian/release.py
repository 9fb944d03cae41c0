"""The result of a run: a `Release`, or `ReleaseFailed`, which is an output, too, and has its cost."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpmedian._core import __version__
from dpmedian.accounting import PrivacyCost
from dpmedian.accounting.protection import Neighbours
from dpmedian.inference import Axes, Moments, Region, Shape, axes_of, confidence_region, shape_of
from dpmedian.recorded import Recorded, Shown, as_csv, picture, release_from
from dpmedian.trace import Trace

if TYPE_CHECKING:
    from typing_extensions import Self

    from dpmedian.planning.plan import Plan

__all__ = ["ClusterResult", "MethodResult", "Release", "ReleaseFailed", "StepResult", "now"]

# The largest dimension in which a region is computed for a display. In more dimensions this would take seconds, so the
# region is computed on request only.
_REGION_DIMENSION = 200


def now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


class ReleaseFailed(Recorded, RuntimeError):
    """A private run ended without a point. The budget is spent: `cost` is the full planned cost.

    `ran` is the cost of the part that ran, if this cost is known. It is known for "adaptive", and if the noisy size
    showed that the rest would be hopeless. A ledger in rho charges only `ran`, and then `cost` equals `ran`. The
    message contains public or noisy values only. `size` is the noisy number of records, if this number is private and
    was released. `trace` lists the releases before the failure. If a plan failed, the exception also has the plan, the
    name of the release, its date, and whether it was seeded. A failure is an output, so it has an audit record,
    `to_dict()`.
    """

    def __init__(
        self,
        message: str,
        cost: PrivacyCost,
        size: int | None = None,
        *,
        plan: Plan | None = None,
        name: str | None = None,
        seeded: bool = False,
        date: str | None = None,
        version: str = __version__,
        ran: PrivacyCost | None = None,
        trace: Trace | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.cost = cost
        self.size = size
        self.ran = ran
        self.trace = trace
        self.plan = plan
        self.name = name
        self.seeded = seeded
        self.date = now() if date is None else date
        self.version = version

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message, self.cost), self.__dict__

    def __str__(self) -> str:
        return f"{self.message} (the budget is spent: {self.cost})"


@dataclass(frozen=True, eq=False)
class MethodResult:
    """The result of a method, for the plan that ran it. All values are released."""

    point: NDArray[np.float64]
    scale: float | None = None
    error_radius: float | None = None
    notes: tuple[str, ...] = ()
    moments: Moments | None = None
    size: int | None = None


@dataclass(frozen=True, eq=False)
class ClusterResult(MethodResult):
    """The result of k-medians: the median of all records, and k centers, each with a size and a radius."""

    centers: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))
    radii: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    sizes: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    size_sigma: float = 0.0


@dataclass(frozen=True, eq=False)
class StepResult(MethodResult):
    """The result of a robust step: the private mean of unit or clipped differences, and their coherence."""

    coherence: float = 0.0
    coherence_interval: tuple[float, float] = (0.0, 1.0)
    noise_std: float = 0.0


@dataclass(frozen=True, eq=False, repr=False)
class Release(Shown, Recorded):
    """A differentially private geometric median, and its cost.

    `scale` is a private estimate of the core radius. `error_radius` is a prediction of the distance to the exact
    median, computed from released values. Both are None if the method does not provide them. With the default method,
    the distance is at most `error_radius` in 19 of 20 runs on data with one cluster. If no cluster has half of the
    records, or if half of the records are scattered, this holds in fewer runs. A note states when `error_radius` may be
    too small. `seeded` states whether the noise came from a seed. A seeded release gives no protection. `name` is the
    caller's name of the release, `date` is the time of the release (UTC, ISO 8601), and `version` is the version of
    this package. If neighbors add or remove a record, n is None, `size` is a noisy number of records (None if the
    method does not need it), and `plan` is the plan at this size. `confidence_region` is computed from `moments`, which
    is None if the method does not release moments, or if `inference` was False.
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
    date: str = field(default_factory=now)
    version: str = __version__
    moments: Moments | None = field(default=None, repr=False)
    trace: Trace | None = field(default=None, repr=False)
    """Every noisy release of the run. None if the release was read from a record without a trace."""

    @classmethod
    def of(cls, release: Release, result: MethodResult) -> Self:
        """A release of this type, with the additional values of its result."""
        own = {field.name for field in fields(cls)} - set(vars(release))
        return cls(**vars(release), **{name: getattr(result, name) for name in own})

    @property
    def neighbours(self) -> Neighbours:
        """Which data sets are neighbors: "replace" or "add_remove"."""
        return self.cost.neighbours

    def __post_init__(self) -> None:
        self.point.setflags(write=False)

    @property
    def unit(self) -> str:
        """The protected unit: "record", or the label of the ids."""
        return self.cost.unit

    def axes(self) -> Axes:
        """The directions in which the data extend most, if they stand out of the noise. This computation costs nothing.

        With public scales, the directions are those of the divided columns.

        Returns
        -------
        Axes
            `.vectors` with one unit vector in each row, strongest first, and `.angles`, bounds on the angles between
            each vector and the true axis, in degrees.

        Raises
        ------
        ValueError
            If the release has no second moments of directions. The error explains how to release them.
        """
        return axes_of(self._directed())

    def shape(self) -> Shape:
        """The relative standard deviations of the data, if the population is elliptical. This computation costs
        nothing.

        Returns
        -------
        Shape
            `.matrix`, proportional to the covariance with trace d, `.standard_deviations` and `.vectors`.

        Raises
        ------
        ValueError
            If the release has no second moments of directions. The error explains how to release them.
        """
        return shape_of(self._directed())

    def _directed(self) -> Moments | None:
        """The moments from which axes and shape are computed."""
        if self.method != "adaptive":
            raise ValueError(
                f"method {self.method!r} does not release directions, from which axes are computed; use 'adaptive'"
            )
        return self.moments

    def to_series(self) -> Any:
        """The point as a pandas Series with the names of the columns (needs pandas)."""
        try:
            import pandas as pd  # type: ignore[import-untyped, unused-ignore]
        except ImportError as error:
            raise ImportError("to_series needs pandas: pip install pandas") from error

        index = list(self.columns) if self.columns is not None else None
        return pd.Series(self.point.copy(), index=index, name="geometric median")

    def to_csv(self) -> str:
        """The point as one row of comma-separated values with a header.

        The columns are the coordinates, the ends of the 95 % interval of each coordinate, and `error_radius`, `scale`,
        `size`, `outcome` and `reason`. On the sphere there is also `error_km`, the error radius in kilometers. A value
        that does not exist is an empty cell. If a coordinate has one of these names, the other column is called
        `release_size` and so on.
        """
        return as_csv(self)

    @classmethod
    def from_json(cls, text: str) -> Release:
        """The release that an audit record describes. Its plan describes the run, but cannot be run again.

        Parameters
        ----------
        text : str
            The output of `to_json`, or of the command `dpmedian release`.

        Returns
        -------
        Release
            A release with the date and the version of the record.

        Raises
        ------
        ValueError
            If the text is not the record of a release. Only the form is checked; `dpmedian.verify` checks the content.
        """
        found: Release = release_from(text)
        return found

    @property
    def shown_region(self) -> Region | None:
        """The 95 % region for a display. None if the release has no region, or if computing it would take long."""
        large = self.point.size > _REGION_DIMENSION
        return None if self.moments is None or large else self.confidence_region()

    def confidence_region(self, level: float = 0.95) -> Region:
        """A confidence region for the median of the population from which the records are a sample.

        `error_radius` is about the median of the given records, but this region is about the median of the population.
        The region is computed from released values, so every level is available at any time at no further cost.

        Parameters
        ----------
        level : float
            The probability with which the region contains the median. It holds asymptotically, for records that are
            drawn independently from one population with a unique median.

        Returns
        -------
        Region
            The region, with the `.radius` of a ball and `.contains(point)`. If the budget suffices for an ellipsoid, it
            also has `.covariance` and `.standard_errors`.
        """
        if self.moments is None:
            raise ValueError(
                f"method {self.method!r} does not release the values that a confidence region needs; use 'adaptive'"
                if self.method != "adaptive"
                else "this release was made with inference=False, so there are no values for a confidence region"
            )
        return confidence_region(self.point, self.moments, level, self.scale, self.plan.parameters.scales)

    def plot(self, points: ArrayLike | None = None, ax: Any = None) -> Any:
        """Plot the released values, over the private records if they are given (needs matplotlib)."""
        return picture(self, points, ax)
