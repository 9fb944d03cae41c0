"""The public functions for groups: `plan_groups` and `geometric_medians`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from numpy.typing import ArrayLike

from dpmedian.accounting.protection import neighbours_of
from dpmedian.dataset import SHARED, Dataset
from dpmedian.documented import documented
from dpmedian.groups.plan import GroupsPlan, contributions, plan_for_groups
from dpmedian.groups.releases import Releases
from dpmedian.parameters import PublicParameters, integer
from dpmedian.sources.key_columns import group_keys, named_columns
from dpmedian.spelling import american

__all__ = ["geometric_medians", "plan_groups"]


@documented
@american
def plan_groups(
    keys: Any,
    d: int,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    n: int | Mapping[Any, int] | None = None,
    unit: str | None = None,
    max_groups_per_unit: int = 1,
    minimum: int | None = None,
    method: str = "auto",
    radius: float | None = None,
    resolution: float | None = None,
    center: ArrayLike | None = None,
    failure_probability: float = 0.05,
    geometry: str = "euclidean",
    neighbours: str = "add_remove",
    inference: bool = True,
    weight_max: float | None = None,
    scales: Sequence[float] | None = None,
) -> GroupsPlan:
    """Calibrate the releases of groups. Nothing is spent.

    Neighboring data sets differ in one unit with all of its rows, which is added, removed or replaced.

    Parameters
    ----------
    keys : list or None
        The names of the groups, which are public. With several key columns they are tuples. Never take the names from
        the data, because it is private which groups occur. With None the run selects the groups that are large enough
        to be shown.
    d : int
        The dimension.
    epsilon, delta, rho : float, optional
        The budget of all groups together. There is no default.
    n : int or mapping, optional
        A public guess of the number of units in each group, or a mapping with a guess for each key.
    unit : str, optional
        The protected unit, such as "person", if a person may have several rows.
    max_groups_per_unit : int
        The largest number of groups that a unit contributes to. This number of groups shares the budget.
    minimum : int, optional
        The smallest noisy size with which a group gets a point.
    method, radius, resolution, center, failure_probability, geometry, inference, weight_max, scales
        As in `plan`.
    neighbours : {"add_remove", "replace"}
        Whether neighbors differ in one unit that is added or removed, or in one unit that is replaced. A replaced unit
        may leave some groups and enter others, so "replace" needs more noise for the same budget.

    Returns
    -------
    GroupsPlan
        `print(plan)` shows the groups and the plan of one group; `plan.run(points, by)` spends the budget.

    Examples
    --------
    >>> made = plan_groups(["north", "south"], 2, epsilon=1.0, delta=1e-6, n=2000)
    >>> made.cost.epsilon, len(made.plans)
    (1.0, 2)
    """
    return _planned(None if keys is None else group_keys(keys), locals())


@documented
@american
def geometric_medians(
    points: Any,
    by: Any,
    *,
    keys: Any = None,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    unit: Any = None,
    unit_reduce: str = "median",
    max_groups_per_unit: int = 1,
    minimum: int | None = None,
    n: int | Mapping[Any, int] | None = None,
    method: str = "auto",
    radius: float | None = None,
    resolution: float | None = None,
    center: ArrayLike | None = None,
    failure_probability: float = 0.05,
    geometry: str = "euclidean",
    neighbours: str = "add_remove",
    inference: bool = True,
    ledger: Any = None,
    seed: int | None = None,
    progress: bool | Callable[[float], object] | None = None,
    nonfinite: str = "raise",
    name: str | None = None,
    columns: Sequence[str | int] | None = None,
    sample_weight: Any = None,
    weight_max: float | None = None,
    scales: Mapping[str | int, float] | Sequence[float] | None = None,
) -> Releases:
    """Release differentially private geometric medians of groups under one budget.

    This function calls `plan_groups(...)`, and then `run` of the plan.

    Neighboring data sets differ in one unit with all of its rows, which is added, removed or replaced. A unit
    contributes to a few groups only, so the cost does not depend on the number of groups. The cost is charged once,
    before any group runs.

    Parameters
    ----------
    points : array, data frame, Arrow table or stream, iterator of batches, path, Dask collection, or Dataset
        The rows.
    by : the name of a column or a list of names, or one label for each row
        The group of each row. Rows are left out if their label is missing or is not a key. With several key columns,
        such as ["district", "month"], the keys are tuples. If the points have no named columns, `by` may also be a list
        of columns of labels.
    keys : list, optional
        The names of the groups, which are public. Never take them from the data, because it is private which groups
        occur. Without a list, the groups whose noisy size reaches a threshold are shown, and a small part of delta is
        used for this selection. The keys are then text.
    epsilon, delta, rho : float, optional
        The budget of all groups together. There is no default.
    unit : one id for each row, or the name of a column, optional
        The ids of the protected units. The rows of a unit in each of its groups become one record.
    unit_reduce : {"median", "mean", "first"}
        How the rows of a unit become one record.
    max_groups_per_unit : int
        The largest number of groups that a unit contributes to, namely the groups in which it has the most rows. This
        number of groups shares the budget.
    minimum : int, optional
        The smallest noisy size with which a group gets a point.
    n : int or mapping, optional
        A public guess of the number of units in each group, or a mapping with a guess for each key.
    method, radius, resolution, center, failure_probability, geometry, inference, scales
        As in `geometric_median`.
    ledger, seed, progress, nonfinite, name
        As in `geometric_median`.
    neighbours : {"add_remove", "replace"}
        Whether neighbors differ in one unit that is added or removed, or in one unit that is replaced. "replace" needs
        more noise for the same budget.
    columns : list of str or int, optional
        The coordinates, by name or by number from 1. The default is all columns except `by`, `unit` and the weights.
    sample_weight : one number for each row, or the name of a column, optional
        Weights, which are private like the rows and need `weight_max`. The weight of a unit in a group is the largest
        weight of its rows there. `n` and `minimum` then refer to the sums of (weight / cap).
    weight_max : float, optional
        The public cap of the weights. Larger weights count as the cap. Never take the cap from the data.

    Returns
    -------
    Releases
        A mapping from every key (without `keys`, from every group that is shown) to a release, or to a `ReleaseFailed`
        if the group failed. A failure of a group raises no exception. `.cost` is the cost of all groups together, and
        `.to_frame()` is a table of the groups.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> points, side = rng.normal(size=(4000, 2)), rng.choice(["left", "right"], size=4000)
    >>> found = geometric_medians(points, side, keys=["left", "right"], epsilon=1.0, delta=1e-6)
    >>> list(found), found["left"].point.shape
    (['left', 'right'], (2,))
    """
    arguments = locals()
    found = None if keys is None else group_keys(keys)
    data = Dataset.taken(arguments, labels=named_columns(points, by) or ())
    grouped = data.grouped(by, found, contributions("max_groups_per_unit", max_groups_per_unit, found))
    shared = {option: getattr(data, option) for option in SHARED}
    d = 2 if data.geometry == "sphere" else grouped.d
    made = _planned(found, {**arguments, **shared, "d": d, "unit": grouped.unit})
    return made.run(grouped, ledger=ledger, seed=seed, progress=progress, nonfinite=data.nonfinite, name=name)


def _planned(keys: tuple[Hashable, ...] | None, arguments: Mapping[str, Any]) -> GroupsPlan:
    """The plan for the arguments of one of the two functions. The plan of one group is always for "add_remove"."""
    relation, d = neighbours_of(arguments["neighbours"]), integer("d", arguments["d"])
    parameters = PublicParameters.from_arguments(arguments, n=None, d=d, neighbours="add_remove")
    own = {name: arguments[name] for name in ("n", "method", "max_groups_per_unit", "minimum")}
    return plan_for_groups(keys, parameters, **own, neighbours=relation)
