"""The public functions for k-medians: `plan_k_medians` and `k_medians`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from numpy.typing import ArrayLike

from dpmedian.dataset import Dataset
from dpmedian.documented import documented
from dpmedian.parameters import PublicParameters
from dpmedian.places import Places
from dpmedian.planning.choice import make_plan
from dpmedian.planning.plan import Plan
from dpmedian.spelling import american

__all__ = ["k_medians", "plan_k_medians"]


@documented
@american
def plan_k_medians(
    n: int | None,
    d: int,
    k: int,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    trim: float = 0.0,
    radius: float | None = None,
    resolution: float | None = None,
    center: ArrayLike | None = None,
    failure_probability: float = 0.05,
    neighbours: str = "replace",
    unit: str | None = None,
    geometry: str = "euclidean",
    weight_max: float | None = None,
    scales: Sequence[float] | None = None,
) -> Plan:
    """Calibrate private k-medians of n points in d dimensions from public parameters. Nothing is spent.

    Neighbors are data sets of the same public size n that differ in one replaced record. With "add_remove" they are
    data sets of which one has one record more, and the number of records is private.

    Parameters
    ----------
    n : int or None
        The public number of records. With "add_remove" or weights it is a public guess, or None.
    d : int
        The dimension.
    k : int
        The number of centers, from 1 to 100. It is public and must not be taken from the data.
    epsilon, delta, rho : float, optional
        The budget of all centers together. There is no default.
    trim : float
        The share of the records that does not count, namely the records farthest from all centers. With 0, all records
        count, and a few far records may attract a center.
    radius, resolution, center, failure_probability, neighbours, unit, geometry, weight_max, scales
        As in `plan`.

    Returns
    -------
    Plan
        The plan. Its notes state the size of the clusters that will be found, and `plan.prediction.failure` is the
        probability that not all clusters are found if they have equal sizes. `plan.run(points)` spends the budget and
        returns `Places`.

    Examples
    --------
    >>> made = plan_k_medians(10_000, 2, 5, epsilon=1.0, delta=1e-6)
    >>> made.method, made.prediction.failure < 0.01
    ('k_medians', True)
    """
    return make_plan(PublicParameters.from_arguments(locals(), clusters=k, inference=False), "k_medians")


@documented
@american
def k_medians(
    points: Any,
    k: int,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    trim: float = 0.0,
    radius: float | None = None,
    resolution: float | None = None,
    center: ArrayLike | None = None,
    failure_probability: float = 0.05,
    neighbours: str = "replace",
    n: int | None = None,
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
) -> Places:
    """Release differentially private k-medians: k centers for which the sum of the distances from each record to its
    nearest center is small.

    No radius and no bounds are needed. Neighbors are data sets of the same public size n that differ in one replaced
    record. With "add_remove" they are data sets of which one has one record more. A unit becomes one record, so a
    person with several rows counts at one point only. The full planned cost is charged before the first release, and
    stays charged if the run fails.

    Parameters
    ----------
    points : array, data frame or Arrow table of shape (n, d), the path of a file, or a Dask array or data frame
        The records, one per row, as in `geometric_median`.
    k, epsilon, delta, rho, trim
        As in `plan_k_medians`.
    radius, resolution, center, failure_probability, neighbours, n, geometry, ledger, seed, progress, nonfinite, name
        As in `geometric_median`.
    columns, copy, unit, unit_reduce, sample_weight, weight_max, scales
        As in `geometric_median`.

    Returns
    -------
    Places
        The release, with `.centers` (k, d) in descending order of their sizes, `.sizes` with `.size_sigma`, `.radii`,
        `.cost` and `.to_frame()`. If the data are not found, `ReleaseFailed` is raised. A failure is an output, too,
        and its cost is spent.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> points = rng.normal(size=(6000, 2)) + rng.choice([0.0, 10.0, 20.0], size=(6000, 1))
    >>> found = k_medians(points, 3, epsilon=1.0, delta=1e-6)
    >>> found.centers.shape, found.sizes.shape
    ((3, 2), (3,))
    """
    arguments = locals()
    data = Dataset.taken(arguments)
    made = make_plan(data.parameters(arguments, clusters=k, inference=False), "k_medians")
    found = made.run(data, ledger=ledger, seed=seed, progress=progress, name=name)
    if not isinstance(found, Places):
        raise TypeError("a run of k-medians gives Places")
    return found
