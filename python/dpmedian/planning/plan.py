"""A plan: a calibrated method, its cost and its predicted error. A plan does not depend on the data."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dpmedian.accounting import PrivacyCost
from dpmedian.dataset import Dataset
from dpmedian.documented import documented
from dpmedian.mechanisms.stage import Stage
from dpmedian.methods.contract import CalibratedMethod, Prediction, hopeless, least_size
from dpmedian.methods.private_size import PrivateSize
from dpmedian.methods.registry import method_named
from dpmedian.parameters import PRIVATE_RECORDS_MAX, RECORDS_MAX, PublicParameters
from dpmedian.places import Places
from dpmedian.planning.notes import notes_of
from dpmedian.recorded import Recorded, Shown, picture
from dpmedian.release import ClusterResult, MethodResult, Release, ReleaseFailed, StepResult
from dpmedian.running import Session
from dpmedian.sources.scales import finishing
from dpmedian.step import Step
from dpmedian.trace import Trace
from dpmedian.warning import LikelyFailureWarning, LongRunWarning, warn_caller

__all__ = ["Plan"]

# A run warns if a release is predicted to take more than this many seconds.
_LONG = 60.0

# The default names in a ledger for releases that are not geometric medians.
_NAMES = {"k_medians": "k-medians", "robust_step": "robust step"}


@dataclass(frozen=True, eq=False, repr=False)
class Plan(Shown, Recorded):
    """A calibrated release: its stages, noise, cost and predicted error. `run` makes the release and spends the budget.

    Plans are made by `dpmedian.plan`. `print(plan)` shows a table that a reviewer can check.
    """

    parameters: PublicParameters
    method: str
    calibrated: CalibratedMethod = field(repr=False)
    reason: str = ""
    others: tuple[Plan, ...] = field(default=(), repr=False)
    """The other plans that `auto` compared this one with."""

    @property
    def n(self) -> int | None:
        """The number of records. If this number is private, it is the caller's guess, or None without a guess. In the
        plan of a release it is the noisy number.
        """
        return self.parameters.n

    @property
    def d(self) -> int:
        """The dimension."""
        return self.parameters.d

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages in the order of their releases, each with its noise and its cost."""
        return self.calibrated.stages

    @functools.cached_property
    def cost(self) -> PrivacyCost:
        """The cost of all stages, which is charged whether or not the run succeeds."""
        budget = self.parameters.budget
        cost = self.calibrated.cost.requested(budget.epsilon, budget.delta)
        return replace(cost, neighbours=self.parameters.neighbours, unit=self.parameters.unit)

    @property
    def prediction(self) -> Prediction:
        """The predicted error and the probability of failure."""
        return self.calibrated.predict()

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for a reader of the plan."""
        return self.calibrated.notes

    @property
    def region(self) -> str | None:
        """The confidence region that a release will have: "ellipsoid", "ball" or None. "by size" means that the private
        number of records decides between ellipsoid and ball.
        """
        return self.calibrated.region

    @property
    def expected_error(self) -> float:
        """The predicted distance to the median, including failures, for the core radius that plans assume."""
        return self.prediction.expected_error(self.parameters.assumed_core_radius)

    def refuse_if_hopeless(self) -> None:
        """Raise an error, before anything is spent, if the release would be useless.

        A release is useless if its probability of failure exceeds both 1/2 and `failure_probability`, or if its
        predicted error is at least half of the error of returning the public center. If the number of records is
        private and there is no guess, this is not known before the run, and the run raises the error after it has
        released the number.
        """
        wrong = hopeless(self.calibrated, self.parameters)
        if wrong is None:
            return
        further = ", a radius" if self.parameters.radius is None else ""
        # The number of records with which `auto` would take this method.
        found = [enough for made in (self, *self.others) if (enough := made._enough()) is not None]
        enough = min(found, default=None)
        records = "more records" if enough is None else f"more records (about {enough} would do)"
        across = (
            ". Rows are records: if your records are columns, pass points.T"
            if self.d > 100 * (self.n or self.d)
            else ""
        )
        raise ValueError(
            f"refused before spending: method {self.method!r} {wrong} at n={self.n}, d={self.d} under this budget; "
            f"give {records}{further} or a larger budget{across}"
        )

    def _enough(self) -> int | None:
        """The smallest number of records with which this method would not be refused, at the same rho."""
        parameters, method, rho = self.parameters, method_named(self.method), self.cost.rho
        if isinstance(self.calibrated, PrivateSize):
            most, found = PRIVATE_RECORDS_MAX, self.calibrated.enough_to_see
        else:
            most = PRIVATE_RECORDS_MAX if parameters.private_size else RECORDS_MAX

            def hopeless_at(n: int) -> str | None:
                try:
                    return hopeless(method.calibrate(parameters.at_size(n), rho), parameters.at_size(n))
                except ValueError as error:  # The noise does not fit any lattice at this number of records.
                    return str(error)

            found = least_size(hopeless_at, most)
        return None if found == most else found

    def _warn(self) -> None:
        """Warn of a likely failure or of a long run."""
        parameters, failure = self.parameters, self.prediction.failure
        if failure > parameters.failure_probability:
            warn_caller(
                f"this release is predicted to fail with probability {failure:.2g}, above failure_probability = "
                f"{parameters.failure_probability:g}, and a failed release is charged, too",
                LikelyFailureWarning,
            )
        if self.calibrated.seconds > _LONG:
            progress = (
                "progress=True shows the progress"
                if self.calibrated.reads is not None
                else "it cannot show its progress, because the progress depends on the records"
            )
            warn_caller(
                f"this release may take about {self.calibrated.seconds / 60.0:.2g} minutes of the processor's time; "
                f"{progress}",
                LongRunWarning,
            )

    @documented
    def run(
        self,
        points: Any,
        *,
        ledger: Any = None,
        seed: int | None = None,
        progress: bool | Callable[[float], object] | None = None,
        nonfinite: str = "raise",
        name: str | None = None,
        copy: bool = False,
        unit: Any = None,
        unit_reduce: str = "median",
        sample_weight: Any = None,
        columns: Sequence[str | int] | None = None,
    ) -> Release:
        """Make the release and spend the budget.

        The order of the steps is: check shape and parameters, check the ledger, check that values are finite, charge
        the full planned cost, make the first release. If the run raises `ReleaseFailed` or is interrupted, the cost
        stays charged.

        Parameters
        ----------
        points : array, data frame, Arrow table or stream, path, Dask collection, or Dataset
            The records, one per row. They must have the shape of the plan. If neighbors add or remove a record, any
            number of records is possible.
        ledger, seed, progress, nonfinite, name, copy, unit, unit_reduce, sample_weight, columns
            As in `geometric_median`.

        Returns
        -------
        Release
            The point and its cost. If no point is found, `ReleaseFailed` is raised, and the cost is spent.
        """
        arguments = locals()
        self.refuse_if_hopeless()
        self._warn()
        parameters = self.parameters
        data = Dataset.for_run(parameters, arguments)
        session = Session(
            self.cost,
            name=name,
            default_name=_NAMES.get(self.method, "geometric median"),
            method=self.method,
            record=None if ledger is None else self.to_dict(),
            ledger=ledger,
            seed=seed,
        )
        positions = finishing(parameters)

        def finish(result: MethodResult) -> Release:
            result = result if positions is None else positions(result)
            shared: dict[str, Any] = {"seeded": session.seeded, "name": name, "trace": session.trace}
            return self.released(result, columns=data.columns, nonfinite=data.nonfinite, **shared)

        def failing(failed: ReleaseFailed) -> None:
            failed.plan, failed.name, failed.seeded = self.at_size(failed.size), name, session.seeded

        return session.run(self.calibrated, data, parameters, progress=progress, finish=finish, failing=failing)

    def released(
        self,
        result: MethodResult,
        *,
        columns: tuple[str, ...] | None,
        nonfinite: str,
        seeded: bool,
        name: str | None,
        trace: Trace,
    ) -> Release:
        """Return the release for a result of the method."""
        release = Release(
            point=result.point,
            scale=result.scale,
            error_radius=result.error_radius,
            cost=self.cost,
            method=self.method,
            n=None if self.parameters.private_size else self.n,
            plan=self.at_size(result.size),
            size=result.size,
            notes=(
                *result.notes,
                *notes_of(self.parameters, result, columns, nonfinite, self.prediction.absolute_error),
            ),
            columns=columns,
            seeded=seeded,
            name=name,
            moments=result.moments,
            trace=trace,
        )
        if isinstance(result, StepResult):
            return Step.of(release, result)
        return Places.of(release, result) if isinstance(result, ClusterResult) else release

    def at_size(self, size: int | None) -> Plan:
        """The plan as it was run. If the number of records is private, this is the plan for the released noisy size."""
        if size is None or (not method_named(self.method).sized and self.stages[0].statistic == "size"):
            return self
        if not isinstance(self.calibrated, PrivateSize):
            raise ValueError(
                f"method {self.method!r} does not release a number of records, so {size} cannot be a noisy size"
            )
        seen = self.calibrated.seen(size)
        return replace(self, parameters=seen.parameters, calibrated=seen)

    def plot(self, ax: Any = None) -> Any:
        """The predicted error against the budget and the number of records (needs matplotlib)."""
        return picture(self, ax)
