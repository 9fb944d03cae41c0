"""`session` is for mechanisms of your own: it gives noisy answers to queries under one charged budget.

Every answer is a sum over records with discrete Gaussian noise. The whole budget is charged once, when the `with` block
begins, and the tape refuses a query that would exceed the charge. A query may depend on earlier answers.
mechanisms/spender.md proves that all queries together cost at most the charge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpmedian.accounting import PrivacyCost, calibrate
from dpmedian.accounting.capped_sum import CappedSum
from dpmedian.dataset import Dataset
from dpmedian.documented import documented
from dpmedian.mechanisms.directions import FREE_WEIGHT, GradientAndDirections
from dpmedian.mechanisms.gaussian import Gaussian
from dpmedian.mechanisms.gradient import NoisyGradient
from dpmedian.mechanisms.hessian import MOMENTS_DIMENSION
from dpmedian.mechanisms.robust_step import NoisyStep
from dpmedian.mechanisms.size import NoisySize
from dpmedian.parameters import PublicParameters, positive_number, step_threshold
from dpmedian.progress import Progress
from dpmedian.running import Session, require_fit
from dpmedian.sources.protocol import Source
from dpmedian.spelling import american
from dpmedian.trace import Trace

__all__ = ["NoisyValue", "QuerySession", "SessionExceeded", "session"]

Vector = NDArray[np.float64]

# The largest number of values of a session. The charge contains the discretization of the noise of all values.
_NUMBERS_MAX = 2**30

# The cost of a query is reduced by this relative amount, so that parts fit the budget despite rounding.
_ROUNDING = 1e-9


class NoisyValue(NamedTuple):
    """A noisy answer, and the standard deviation of the noise of each entry."""

    value: Any
    sigma: float


class SessionExceeded(ValueError):
    """A query costs more than is left of its session. Nothing was released, and the session can be used further."""


class QuerySession:
    """Noisy answers under one budget: `with dpmedian.session(points, rho=0.1) as s:`.

    Neighbors: the relation of the session. Sensitivity: each query has the sensitivity of its statistic. The exact
    answer contains this sensitivity, and the tape reads it there. Cost: the whole budget, charged when the block
    begins, for any queries. Failure: a query that costs more than is left raises `SessionExceeded` and releases
    nothing.

    If the dataset has scales, points and thresholds of ranks are in the units of the data. Radii, lengths and answers
    are in units of the scales.

    Attributes
    ----------
    n : int or None
        The number of records, if it is public.
    d : int
        The dimension.
    """

    def __init__(self, data: Dataset, parameters: PublicParameters, runner: Session) -> None:
        """Called by `session`."""
        self._data, self._parameters, self._runner = data, parameters, runner
        self._source: Source | None = None
        self._spent, self._numbers = CappedSum(runner.cost.mu_squared), 0
        self.n = None if parameters.private_size else parameters.n
        self.d = parameters.d

    def __enter__(self) -> QuerySession:
        """Validate the records, then charge the budget."""
        source = self._data.source(self._parameters, Progress(1.0, show=False))
        self._runner.__enter__()
        try:
            self._source = self._runner.weighted(source, self._parameters)
        except BaseException as error:  # Close the ledger's entry in this case, too.
            self._runner.__exit__(type(error), error, error.__traceback__)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._source = None
        self._runner.__exit__(kind, error, traceback)

    def __repr__(self) -> str:
        records = "n private" if self.n is None else f"n = {self.n}"
        state = "open" if self._source is not None else "queries are answered inside of its `with` block only"
        left = f"rho = {self.remaining:.4g} left of {self.cost.rho:.4g}"
        return f"QuerySession: {records}, d = {self.d}, {left}, {state}"

    @property
    def cost(self) -> PrivacyCost:
        """The cost of the session: the whole budget."""
        return self._runner.cost

    @property
    def remaining(self) -> float:
        """The rho that is left for queries."""
        return self._spent.left / 2.0

    @property
    def trace(self) -> Trace:
        """All releases of the session so far."""
        return self._runner.trace

    @documented
    def count(self, *, center: ArrayLike | None = None, radius: float | None = None, rho: float) -> NoisyValue:
        """The number of records within a radius of a center, or the number of all records.

        Parameters
        ----------
        center : d numbers, optional
            The center. Without center and radius all records are counted, or an error is raised if `s.n` is public.
        radius : float, optional
            The radius, which must be finite. A record at this distance is counted.
        rho : float
            The part of the budget for this query.

        Returns
        -------
        NoisyValue
            `.value` and `.sigma`. Sensitivity: 1. With weights the value is the sum of (weight / weight_max).
        """
        parameters = self._parameters
        if (center is None) != (radius is None):
            raise ValueError("give center= and radius= together, or neither of them to count all records")
        if center is None or radius is None:
            if not parameters.private_size:
                raise ValueError(f"the number of records is public: s.n = {self.n}")
            size = NoisySize.of("count", _part(rho), parameters)
            return self._scalar(size, lambda source: size.query(source, self._tape))
        theta, reach = self._point("center", center), positive_number("radius", radius)
        made = self._gaussian("count", "ball size", rho)
        return self._scalar(made, lambda source: made.query(source, self._tape, theta=theta, radius=reach))

    @documented
    def distance_counts(self, *, center: ArrayLike, radii: Sequence[float], rho: float) -> NoisyValue:
        """The numbers of records within several radii of a center. The radii share rho equally.

        Parameters
        ----------
        center : d numbers
            The center.
        radii : list of float
            Public radii.
        rho : float
            The part of the budget for all radii together.

        Returns
        -------
        NoisyValue
            `.value` with one count for each radius, and the `.sigma` of each count. Sensitivity: 1 for each count.
        """
        reach = [positive_number("radii", radius) for radius in radii]
        if not reach:
            raise ValueError("radii must not be empty")
        self._require(2.0 * _part(rho))
        found = [self.count(center=center, radius=radius, rho=rho / len(reach)) for radius in reach]
        return NoisyValue(np.array([one.value for one in found]), found[0].sigma)

    @documented
    def gradient(self, *, at: ArrayLike, rho: float) -> NoisyValue:
        """The gradient of the sum of distances: the sum of the unit vectors from the records to a point.

        Parameters
        ----------
        at : d numbers
            The point.
        rho
            As in `QuerySession.count`.

        Returns
        -------
        NoisyValue
            `.value`, an array of d numbers, and `.sigma`. Sensitivity: 2 under "replace" and 1 under "add_remove", plus
            the rounding.
        """
        theta = self._point("at", at)
        made = NoisyGradient.of("gradient", _part(rho), self._parameters, releases=1)
        return self._vector(made, lambda source: made.at(source, self._tape, theta))

    @documented
    def mean_shift(self, *, center: ArrayLike, radius: float, rho: float) -> NoisyValue:
        """The sum of (x - center) over the records x within a radius of the center.

        This sum, divided by the count of these records, is the mean shift: the vector from the center to the mean of
        these records.

        Parameters
        ----------
        center
            As in `QuerySession.distance_counts`.
        radius : float
            The public radius, between 2^-1020 and 2^1020.
        rho
            As in `QuerySession.count`.

        Returns
        -------
        NoisyValue
            `.value`, an array of d numbers, and `.sigma`. Sensitivity: twice the radius if a record is replaced, the
            radius if one is added or removed, plus the rounding.
        """
        theta, reach = self._point("center", center), positive_number("radius", radius)
        if not 2.0**-1020 <= reach <= 2.0**1020:
            raise ValueError(f"radius must lie between 2**-1020 and 2**1020, got {radius}")
        made = NoisyGradient.of("mean shift", _part(rho), self._parameters, releases=1)
        found = self._vector(made, lambda source: made.shift(source, self._tape, theta, reach))
        return NoisyValue(-reach * found.value, reach * found.sigma)

    @documented
    def clipped_sum(self, *, center: ArrayLike, threshold: float, rho: float) -> NoisyValue:
        """The sum of (x - center) over all records x. Differences above the threshold are shortened to it.

        This sum, divided by the number of records, is a step from the center toward the mean. No record contributes
        more than the threshold to the sum.

        Parameters
        ----------
        center
            As in `QuerySession.distance_counts`.
        threshold : float
            The public length, between 2^-300 and 2^300.
        rho
            As in `QuerySession.count`.

        Returns
        -------
        NoisyValue
            `.value`, an array of d numbers, and `.sigma`. Sensitivity: twice the threshold if a record is replaced, the
            threshold if one is added or removed, plus the rounding.
        """
        theta, length = self._point("center", center), step_threshold(positive_number("threshold", threshold))
        made = NoisyStep.of("clipped sum", _part(rho), self._parameters)
        found = self._vector(made, lambda source: made.toward(source, self._tape, theta, length))
        return NoisyValue(length * found.value, length * found.sigma)

    @documented
    def ranks(self, *, thresholds: ArrayLike, rho: float) -> NoisyValue:
        """In every coordinate, the number of records at or below its threshold.

        Parameters
        ----------
        thresholds : d numbers
            One threshold for each coordinate.
        rho
            As in `QuerySession.count`.

        Returns
        -------
        NoisyValue
            `.value`, an array of d counts, and `.sigma`. Sensitivity: sqrt(d) in L2.
        """
        at = self._point("thresholds", thresholds)
        made = self._gaussian("ranks", "ranks", rho, d=self.d)
        return self._vector(made, lambda source: made.query(source, self._tape, thresholds=at))

    @documented
    def second_moments(self, *, at: ArrayLike, rho: float) -> NoisyValue:
        """The sum of u u^T over the records, where u is the unit vector from a record to the point.

        The query releases the gradient at the point as well. Under "replace" the second moments add almost nothing to
        the cost of the gradient. Without the gradient, they would cost about a quarter of rho for the same sigma.

        Parameters
        ----------
        at, rho
            As in `QuerySession.gradient`.

        Returns
        -------
        NoisyValue
            `.value`, a symmetric (d, d) array, and the `.sigma` of its diagonal. Other entries have sigma/sqrt(2).
            Sensitivity: see mechanisms/directions.md.
        """
        if not 2 <= self.d <= MOMENTS_DIMENSION:
            raise ValueError(f"second moments are for 2 to {MOMENTS_DIMENSION} dimensions, got {self.d}")
        theta = self._point("at", at)
        made = GradientAndDirections.of("second moments", _part(rho), self._parameters, FREE_WEIGHT)
        self._pay(made)
        _, moments = made.at(self._records, self._tape, theta)
        return NoisyValue(moments, made.noise / made.weight)

    # Paying for a query.

    @property
    def _tape(self) -> Any:
        return self._runner.tape()

    @property
    def _records(self) -> Source:
        self._runner.require_open()
        if self._source is None:
            raise RuntimeError("the records of this session could not be read")
        return self._source

    def _gaussian(self, stage: str, statistic: str, rho: float, **arguments: Any) -> Gaussian:
        return Gaussian.of_statistic(stage, statistic, _part(rho), self._parameters, arguments)

    def _scalar(self, made: Gaussian, query: Callable[[Source], Vector]) -> NoisyValue:
        found = self._vector(made, query)
        return NoisyValue(float(found.value[0]), found.sigma)

    def _vector(self, made: Gaussian, query: Callable[[Source], Vector]) -> NoisyValue:
        self._pay(made)
        with self._runner.spent():
            return NoisyValue(query(self._records), made.noise)

    def _require(self, mu_squared: float) -> None:
        """Raise an error unless this part of the budget is left. The tape checks this again when it draws the noise."""
        self._runner.require_open()
        if not self._spent.fits(mu_squared):
            raise SessionExceeded(
                f"this query needs rho = {mu_squared / 2.0:.6g}, but rho = {self.remaining:.6g} of the session's "
                f"{self.cost.rho:.6g} is left; nothing was released"
            )

    def _pay(self, made: Gaussian) -> None:
        self._require(made.cost.mu_squared)
        if self._numbers + made.coordinates > _NUMBERS_MAX:
            raise SessionExceeded(f"a session releases at most {_NUMBERS_MAX} numbers; nothing was released")
        self._spent.add(made.cost.mu_squared)
        self._numbers += made.coordinates

    def _point(self, name: str, value: ArrayLike) -> Vector:
        """A public point in units of the scales."""
        try:
            point = np.array(value, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"{name} must be {self.d} finite numbers, got {value!r}") from None
        if point.shape != (self.d,) or not np.isfinite(point).all():
            raise ValueError(f"{name} must be {self.d} finite numbers, got an array of shape {point.shape}")
        scales = self._parameters.scales
        return np.ascontiguousarray(point if scales is None else point / np.array(scales))


@documented
@american
def session(
    points: Any,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    neighbours: str = "replace",
    ledger: Any = None,
    seed: int | None = None,
    name: str | None = None,
) -> QuerySession:
    """Open a session for queries under one charged budget: `with dpmedian.session(points, rho=0.1) as s:`.

    Neighbors: data sets of the same public size that differ in one replaced record, or with "add_remove" data sets of
    which one has one record more. Cost: the whole budget, charged when the block begins, for any queries. After the
    block every query is refused.

    Parameters
    ----------
    points : array, data frame, Arrow table or stream, path, Dask collection, or Dataset
        The records, one per row. A `Dataset` may also have units, weights, scales and columns.
    epsilon, delta, rho : float, optional
        The budget of all queries together: epsilon and delta, rho, or rho and delta. There is no default. Each query
        takes a part of rho, and `s.remaining` is the part that is left.
    neighbours : {"replace", "add_remove"}
        Whether neighbors differ in one replaced record, or one of them has one record more.
    ledger : Ledger, optional
        The budget that is charged.
    seed : int, optional
        Predictable noise for simulations and tests, with an `InsecureSeedWarning`.
    name : str, optional
        The name of the session in the ledger.

    Returns
    -------
    QuerySession
        A context manager with the queries `gradient`, `count`, `distance_counts`, `mean_shift`, `clipped_sum`,
        `ranks` and `second_moments`. Each returns the noisy value and its sigma.

    Examples
    --------
    >>> import dpmedian, numpy as np
    >>> points = np.random.default_rng(0).normal(size=(5000, 2))
    >>> with dpmedian.session(points, rho=0.1) as s:
    ...     inside, sigma = s.count(center=[0, 0], radius=1.0, rho=0.02)
    ...     gradient, _ = s.gradient(at=[0.5, 0.0], rho=0.05)
    >>> bool(abs(inside - 1967) < 6 * sigma), gradient.shape, round(s.remaining, 6)
    (True, (2,), 0.03)
    """
    arguments = locals()
    data = Dataset.taken(arguments)
    if data.geometry == "sphere":
        raise ValueError("a session has no positions on the sphere: pass unit vectors of three numbers instead")
    parameters = data.parameters(arguments)
    budget = parameters.budget
    if budget.pure:
        raise ValueError("a session has Gaussian noise, which gives no pure differential privacy: pass delta, too")
    require_fit(data, parameters)
    cost = Gaussian.cap(calibrate(lambda part: Gaussian.cap(part, _NUMBERS_MAX), budget), _NUMBERS_MAX)
    cost = replace(cost.requested(budget.epsilon, budget.delta), neighbours=parameters.neighbours, unit=parameters.unit)
    return QuerySession(data, parameters, Session(cost, method="session", name=name, ledger=ledger, seed=seed))


def _part(rho: float) -> float:
    """Return the cost to which noise is calibrated, which is reduced so that parts fit the budget despite rounding."""
    return positive_number("rho", rho) * (1.0 - _ROUNDING)
