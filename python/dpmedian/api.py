"""The public functions: `plan`, `geometric_median` and `required_n`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from numpy.typing import ArrayLike

from dpmedian.accounting.protection import relation_of
from dpmedian.dataset import Dataset
from dpmedian.documented import documented
from dpmedian.parameters import PRIVATE_RECORDS_MAX, RECORDS_MAX, PublicParameters, positive
from dpmedian.planning.choice import make_plan
from dpmedian.planning.plan import Plan
from dpmedian.release import Release
from dpmedian.spelling import american

__all__ = ["geometric_median", "plan", "required_n"]


@documented
@american
def plan(
    n: int | None,
    d: int,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    method: str = "auto",
    radius: float | None = None,
    resolution: float | None = None,
    center: ArrayLike | None = None,
    failure_probability: float = 0.05,
    profile: str = "default",
    neighbours: str = "replace",
    unit: str | None = None,
    geometry: str = "euclidean",
    inference: bool = True,
    axes: float = 0.0,
    weight_max: float | None = None,
    scales: Sequence[float] | None = None,
) -> Plan:
    """Calibrates a release of n points in d dimensions from public parameters; nothing is spent.

    Neighbors are data sets of the same public size n that differ in one replaced record. With "add_remove" they are
    data sets of which one has one record more, and the number of records is private.

    Parameters
    ----------
    n : int or None
        The public number of records; with "add_remove" a public guess, or None. A guess influences the predictions of
        the plan and the choice of a method; the run itself uses a noisy number that it releases first.
    d : int
        The dimension, which is public.
    epsilon, delta, rho, method, radius, resolution, center, failure_probability, profile, neighbours
        As in `geometric_median`.
    unit : str, optional
        Whose contribution is protected, such as "person", if a person has several rows. n is then the number of units,
        and `run` takes their ids. By default a single record is protected.
    geometry, inference, axes
        As in `geometric_median`.
    weight_max : float, optional
        A public cap of weights, which `run` then takes. Never take it from the data. The sum of the weights over the
        cap is private under both relations, and n is a public guess of that sum, or None.
    scales : d numbers, optional
        A public scale for each column, by which the columns are divided: distances, `radius` and `resolution` are in
        units of the scales. Never take them from the data.

    Returns
    -------
    Plan
        `print(plan)` shows its stages and its cost; `plan.run(points)` spends the budget.

    Examples
    --------
    >>> made = plan(3000, 2, epsilon=1.0, delta=1e-6)
    >>> made.method, made.prediction.failure < 0.01
    ('adaptive', True)
    """
    return make_plan(PublicParameters.from_arguments(locals()), method)


@documented
@american
def geometric_median(
    points: Any,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    method: str = "auto",
    radius: float | None = None,
    resolution: float | None = None,
    center: ArrayLike | None = None,
    failure_probability: float = 0.05,
    profile: str = "default",
    neighbours: str = "replace",
    n: int | None = None,
    inference: bool = True,
    axes: float = 0.0,
    ledger: Any = None,
    seed: int | None = None,
    progress: bool | Callable[[float], object] | None = None,
    nonfinite: str = "raise",
    name: str | None = None,
    columns: Sequence[str | int] | None = None,
    copy: bool = False,
    unit: Any = None,
    unit_reduce: str = "median",
    geometry: str = "euclidean",
    sample_weight: Any = None,
    weight_max: float | None = None,
    scales: Mapping[str | int, float] | Sequence[float] | None = None,
) -> Release:
    """Release a differentially private geometric median of the points: `plan(...)` for their shape, then `Plan.run`.

    Neighbors are data sets of the same public size n that differ in one replaced record. With "add_remove" they are
    data sets of which one has one record more, and the number of records is private. The full planned cost is charged
    before the first release, and stays charged if the run fails.

    Parameters
    ----------
    points : array, data frame, Arrow table or stream, iterator of batches, path, Dask collection, or Dataset
        The records, one per row: numpy, pandas, polars, Arrow, lists. A file of records, .npy, .arrow or .parquet (or a
        folder of these), is read in blocks and may be larger than the memory; `dpmedian.files.open_points` says how.
        The records of a Dask collection stay in the workers of the current `distributed.Client`.
    epsilon, delta, rho : float, optional
        The budget: epsilon and delta, rho (zero-concentrated), rho and delta, or epsilon alone for pure differential
        privacy. There is no default.
    method : str
        "auto", "adaptive", "dpgd", "loc_dpgd", "loc_cutting_plane" or "inverse_sensitivity". "auto" takes the method
        with the smallest predicted error among those that the other arguments allow.
    radius : float, optional
        A public bound on the distance of every record from `center`; records outside are projected onto the ball.
        Never take it from the data. "adaptive" needs none.
    resolution : float, optional
        The smallest distance that matters. Three methods need it; "adaptive" uses it to shorten its search.
    center : d numbers, optional
        The center of the public ball, or the point from which the search starts; the origin by default.
    failure_probability : float
        The accepted probability of a failed or useless release. If a release is predicted to fail more often, it warns;
        above max(this, 1/2) it is refused before anything is spent.
    profile : {"default", "paper"}
        The table of constants of the paper's methods: those of this package, or those that the paper prints.
    neighbours : {"replace", "add_remove"}
        Whether neighbors differ in one replaced record, or one of them has one record more.
    n : int, optional
        With "add_remove" a public guess of the number of records, which must not be taken from the data. It influences
        the predictions, and which method "auto" takes. With "replace" it must equal the number of points.
    inference : bool
        Whether "adaptive" releases with its gradients what `release.confidence_region` needs. This is free with
        "replace", and needs a little more noise with "add_remove". No other method has a region.
    axes : float
        A share of the budget, below 0.5, for `release.axes()` and `release.shape()`. With a share of 0 they are free,
        but in more than about ten dimensions noise hides the axes unless there are many records.
    ledger : Ledger, optional
        The budget that is charged.
    seed : int, optional
        Predictable noise for simulations and tests, with an `InsecureSeedWarning`.
    progress : bool or callable, optional
        None shows a bar on a terminal after two seconds; a callable gets the fraction done, from 0 to 1.
    nonfinite : {"raise", "center", "drop"}
        What happens to a record with a missing or infinite value: "raise" is an error, "center" moves the record to the
        center, and "drop" leaves it out (with "add_remove" or weights).
    name : str, optional
        What is released, for the ledger and for readers.
    columns : list of str or int, optional
        The coordinates, by name or by number from 1; by default all columns except the unit and the weights.
    copy : bool
        An array of float64 or float32 in C order is read in place and must not change during the call. True makes a
        private copy first.
    unit : one id for each row, or the name of a column, optional
        Whose rows these are, such as people's. All rows of a unit become one record; neighbors then differ in one unit
        with all of its rows, and n is the number of units. The unit of the cost is named after the column.
    unit_reduce : {"median", "mean", "first"}
        How the rows of a unit become one record: their own geometric median, their mean, or the first of them.
    geometry : {"euclidean", "sphere"}
        Whether points are coordinates, or longitude and latitude in degrees. In the latter case the released point is a
        position, too, and `scale`, `error_radius` and `resolution` are in degrees of arc. The date line and the poles
        need no special treatment.
    sample_weight : one number for each row, or the name of a column, optional
        Weights, which are private like the records and need `weight_max`. The release is the median of the weighted
        records. n is then a public guess of the sum of the weights over the cap, which is private under both relations.
    weight_max : float, optional
        The public cap: larger weights count as the cap. Never take it from the data.
    scales : mapping from columns to numbers, or one number for each column, optional
        Public scales, such as `{"income": 5000.0}`. Columns are divided by their scales so that they count alike; a
        column without a scale has the scale 1. `point` and the intervals are in the units of the columns; `scale`,
        `error_radius`, `radius` and `resolution` are in units of the scales. Never take them from the data.

    Returns
    -------
    Release
        `.point`, `.scale`, `.error_radius`, `.cost`. If nothing is found, `ReleaseFailed` is raised instead: a failure
        is an output, too, and its cost is spent.

    Examples
    --------
    >>> import numpy as np
    >>> points = np.random.default_rng(0).normal(size=(2000, 3))
    >>> geometric_median(points, epsilon=1.0, delta=1e-6).point.shape
    (3,)
    """
    arguments = locals()
    data = Dataset.taken(arguments)
    made = make_plan(data.parameters(arguments), method)
    return made.run(data, ledger=ledger, seed=seed, progress=progress, name=name)


@documented
@american
def required_n(
    d: int,
    *,
    excess: float | None = None,
    k: int | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    method: str = "adaptive",
    radius: float | None = None,
    resolution: float | None = None,
    failure_probability: float = 0.05,
    profile: str = "default",
    neighbours: str = "replace",
) -> int:
    """The smallest n whose plan predicts at most the wanted excess and the accepted probability of failure.

    Parameters
    ----------
    d : int
        The dimension.
    excess : float
        The wanted F(point)/F(median) - 1, with F the sum of distances. It is required unless `k` is given.
    k : int, optional
        The number of clusters, instead of an excess: the result is the smallest n with which `k_medians` find k
        clusters of equal sizes.
    epsilon, delta, rho, method, radius, resolution, failure_probability, profile, neighbours
        As in `plan`.

    Returns
    -------
    int
        The number of records.

    Examples
    --------
    >>> required_n(2, excess=1e-3, epsilon=1.0, delta=1e-6) < 1000
    True
    """
    if k is None:
        wanted, arguments = positive("excess", excess), locals()
    elif excess is not None or method != "adaptive":
        raise ValueError("k= asks about k-medians, which take no excess= and no method=: leave these out")
    else:
        wanted, method, arguments = math.inf, "k_medians", {**locals(), "clusters": k, "inference": False}

    def enough(n: int) -> bool:
        predicted = make_plan(PublicParameters.from_arguments(arguments, n=n), method).prediction
        # A plan that fails with a larger probability may predict nothing else.
        if predicted.failure > min(failure_probability, 0.5):
            return False
        if k is not None:
            return True
        # With more records `auto` may take a method that predicts an excess.
        if predicted.excess is None and method != "auto":
            raise ValueError(f"method {method!r} predicts no relative excess; use method 'adaptive'")
        return predicted.excess is not None and predicted.excess <= wanted

    most = RECORDS_MAX if relation_of(neighbours).size_is_public else PRIVATE_RECORDS_MAX
    low, high = (1, 2) if k is None else (k, 2 * k)
    while not enough(high):
        low, high = high, 2 * high
        if high > most:
            raise ValueError(
                f"no number of records up to 2**{most.bit_length() - 1} "
                + (f"reaches an excess of {excess}" if k is None else f"shows {k} clusters")
                + " under this budget"
            )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
