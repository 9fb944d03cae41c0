"""The public functions: `plan`, `geometric_median` and `required_n`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from numpy.typing import ArrayLike

from dpmedian.accounting.protection import relation_of
from dpmedian.dataset import Dataset
from dpmedian.documented import documented
from dpmedian.parameters import PRIVATE_RECORDS_MAX, RECORDS_MAX, PublicParameters, positive_number
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
    """Calibrate a release of n points in d dimensions from public parameters. Nothing is spent.

    Neighbors are data sets of the same public size n that differ in one replaced record. With "add_remove" they are
    data sets of which one has one record more, and the number of records is private.

    Parameters
    ----------
    n : int or None
        The public number of records. With "add_remove" it is a public guess, or None. A guess influences only the
        predictions of the plan and the choice of a method, because the run releases a noisy number first and uses this
        number.
    d : int
        The dimension, which is public.
    epsilon, delta, rho, method, radius, resolution, center, failure_probability, profile, neighbours
        As in `geometric_median`.
    unit : str, optional
        The protected unit, such as "person", if a person may have several rows. n is then the number of units, and
        `run` needs their ids. By default a single record is protected.
    geometry, inference, axes
        As in `geometric_median`.
    weight_max : float, optional
        The public cap of the weights that `run` gets. Never take it from the data. The sum of (weight / cap) is private
        under both relations, and n is a public guess of this sum, or None.
    scales : d numbers, optional
        A public scale for each column. The columns are divided by their scales, so distances, `radius` and `resolution`
        are in units of the scales. Never take the scales from the data.

    Returns
    -------
    Plan
        `print(plan)` shows its stages and its cost. `plan.run(points)` makes the release and spends the budget.

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
    """Release a differentially private geometric median of the points.

    This function calls `plan(...)` for the shape of the points, and then `Plan.run`.

    Neighbors are data sets of the same public size n that differ in one replaced record. With "add_remove" they are
    data sets of which one has one record more, and the number of records is private. The full planned cost is charged
    before the first release, and stays charged if the run fails.

    Parameters
    ----------
    points : array, data frame, Arrow table or stream, iterator of batches, path, Dask collection, or Dataset
        The records, one per row: numpy, pandas, polars, Arrow, lists. A .npy, .arrow or .parquet file (or a folder of
        .arrow or .parquet files) is read in blocks and may be larger than the memory; `dpmedian.files.open_points` has
        the details. Most queries about a Dask collection are answered by the workers of the current
        `distributed.Client`.
    epsilon, delta, rho : float, optional
        The budget: (epsilon, delta), rho (zero-concentrated), (rho, delta), or epsilon alone for pure differential
        privacy. There is no default.
    method : str
        "auto", "adaptive", "dpgd", "loc_dpgd", "loc_cutting_plane" or "inverse_sensitivity". "auto" takes the method
        with the smallest predicted error among those that the other arguments allow.
    radius : float, optional
        A public bound on the distance of every record from `center`. Records outside of the ball are projected onto it.
        Never take the radius from the data. "adaptive" does not need a radius.
    resolution : float, optional
        The smallest distance that matters. "loc_dpgd", "loc_cutting_plane" and "inverse_sensitivity" need it.
        "adaptive" does not need it, but uses it to shorten its search.
    center : d numbers, optional
        The center of the public ball, or the point from which the search starts. The default is the origin.
    failure_probability : float
        The accepted probability of a failed or useless release. If a release is predicted to fail with a higher
        probability, there is a warning. If the predicted probability also exceeds 1/2, the release is refused before
        anything is spent.
    profile : {"default", "paper"}
        The constants of "dpgd", "loc_dpgd" and "loc_cutting_plane": those of this package, or those that the paper
        prints.
    neighbours : {"replace", "add_remove"}
        Whether neighbors differ in one replaced record, or whether one neighbor has one record more than the other.
    n : int, optional
        With "add_remove", a public guess of the number of records. Never take it from the data. It influences the
        predictions and the method that "auto" chooses. With "replace" it must equal the number of points.
    inference : bool
        Whether "adaptive" also releases second moments, in the same queries as its gradients.
        `release.confidence_region` needs them. With "replace" they add almost no noise, and with "add_remove" a little
        noise. No other method provides a region.
    axes : float
        A share of the budget, below 0.5, for `release.axes()` and `release.shape()`. With a share of 0 both still work
        and cost nothing, because they use released values only. But in more than about ten dimensions noise hides the
        axes unless there are many records.
    ledger : Ledger, optional
        The budget that is charged.
    seed : int, optional
        Predictable noise for simulations and tests, with an `InsecureSeedWarning`.
    progress : bool or callable, optional
        None shows a bar on a terminal after two seconds. A callable gets the finished fraction, from 0 to 1.
    nonfinite : {"raise", "center", "drop"}
        The treatment of a record with a missing or infinite value. "raise" raises an error, "center" moves the record
        to the center, and "drop" leaves the record out (only with "add_remove" or weights).
    name : str, optional
        A name of the release, for the ledger and for readers.
    columns : list of str or int, optional
        The coordinates, by name or by number from 1. The default is all columns except the unit and the weights.
    copy : bool
        An array of float64 or float32 in C order is read in place, and must not change during the call. If True, a copy
        is made first.
    unit : one id for each row, or the name of a column, optional
        The ids of the protected units, for example persons. All rows of a unit become one record. Neighbors then differ
        in one unit with all of its rows, and n is the number of units. The name of the column becomes the label of the
        unit in the cost.
    unit_reduce : {"median", "mean", "first"}
        How the rows of a unit become one record: by their geometric median, by their mean, or by taking the first row.
    geometry : {"euclidean", "sphere"}
        Whether points are coordinates, or longitude and latitude in degrees. With "sphere" the released point is a
        position, too, and `scale`, `error_radius` and `resolution` are in degrees of arc. The date line and the poles
        need no special treatment.
    sample_weight : one number for each row, or the name of a column, optional
        Weights, which are private like the records and need `weight_max`. The release is the median of the weighted
        records. n is then a public guess of the sum of (weight / cap), which is private under both relations.
    weight_max : float, optional
        The public cap of the weights. Larger weights count as the cap. Never take the cap from the data.
    scales : mapping from columns to numbers, or one number for each column, optional
        Public scales, such as `{"income": 5000.0}`. Columns are divided by their scales so that they count alike. A
        column without a scale has the scale 1. `point` and the intervals are in the units of the columns, but `scale`,
        `error_radius`, `radius` and `resolution` are in units of the scales. Never take the scales from the data.

    Returns
    -------
    Release
        The release, with `.point`, `.scale`, `.error_radius` and `.cost`. If no point is found, `ReleaseFailed` is
        raised. A failure is an output, too, and its cost is spent.

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
    """The smallest n >= 2 for which a plan predicts at most this excess and at most this probability of failure.

    Parameters
    ----------
    d : int
        The dimension.
    excess : float
        The largest acceptable F(point)/F(median) - 1, where F is the sum of distances. It is required unless `k` is
        given.
    k : int, optional
        The number of clusters, instead of an excess. The result is then the smallest n with which `k_medians` finds k
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
        wanted, arguments = positive_number("excess", excess), locals()
    elif excess is not None or method != "adaptive":
        raise ValueError("k= is for k-medians, for which excess= and method= have no meaning: leave these out")
    else:
        wanted, method, arguments = math.inf, "k_medians", {**locals(), "clusters": k, "inference": False}

    def enough(n: int) -> bool:
        predicted = make_plan(PublicParameters.from_arguments(arguments, n=n), method).prediction
        # The failure is checked first, because a plan that will probably fail may predict nothing else.
        if predicted.failure > min(failure_probability, 0.5):
            return False
        if k is not None:
            return True
        # With "auto" this is no error, because with more records `auto` may take a method that predicts an excess.
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
