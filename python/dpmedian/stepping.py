"""The public function for training and other searches in many dimensions: `robust_step`."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpmedian.accounting.protection import RECORD, Protection, neighbours_of, relation_of
from dpmedian.dataset import Dataset
from dpmedian.dataset.arriving import Arriving, arrivals
from dpmedian.dataset.reading import Reading
from dpmedian.parameters import PublicParameters, integer
from dpmedian.planning.choice import make_plan
from dpmedian.planning.plan import Plan
from dpmedian.spelling import american
from dpmedian.step import Step
from dpmedian.steps.method import CalibratedStep

__all__ = ["plan_step", "robust_step"]


@american
def robust_step(
    points: Any,
    d: int | None = None,
    center: ArrayLike | None = None,
    threshold: float = 0.0,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    neighbours: str = "add_remove",
    n: int | None = None,
    unit: str | None = None,
    sample_weight: Iterable[float] | None = None,
    weight_max: float | None = None,
    ledger: Any = None,
    seed: int | None = None,
    name: str | None = None,
) -> Step:
    """Release a differentially private mean of the unit vectors from a public point to the records, in any number of
    dimensions.

    A robust step is one step from a public point toward the geometric median, for example one round of federated
    training from the current model. In very many dimensions noise would hide the median itself, but steps are still
    useful. A record moves the sum by at most 1, wherever the record lies.

    Neighbors are data sets of which one has one record more. With "replace" they are data sets of the same public size
    n that differ in one replaced record. Sensitivity: 1, or 2 with "replace". The full cost is charged before the first
    record is read, and stays charged if the run fails.

    Parameters
    ----------
    points : array of shape (n, d), or an iterable of records
        Each record is an array of d numbers, or a list of arrays, such as the layers of a model, which are
        concatenated. An iterable is read once, and no record is stored, so two vectors of memory suffice for any number
        of records. A record with a value that is not finite is left out. With "replace" it counts as a record at the
        center. A `Dataset` is accepted, too.
    d : int, optional
        The dimension. It is required if there is no center and `points` is not an array.
    center : d numbers, optional
        The public point from which the differences are taken. The default is the origin, for records that are already
        differences. Single precision is kept.
    threshold : float
        A public distance. A record nearer than the threshold contributes a vector of the length distance/threshold
        instead of a unit vector, so steps become shorter near the median. With 0, the default, all records count alike.
    epsilon, delta, rho : float, optional
        The budget: epsilon and delta, rho, or rho and delta. There is no default.
    neighbours : {"add_remove", "replace"}
        Whether neighbors differ in one added or removed record, so that the number of records is private, or in one
        replaced record.
    n : int, optional
        With "add_remove" or weights, a public number by which the sum is divided. Never count it in the data. If it is
        given, no budget is spent on a noisy number. With "replace" it is the public number of records, and records that
        do not arrive count as records at the center.
    unit : str, optional
        The name of a record in costs and ledgers, such as "client".
    sample_weight : one number for each record, optional
        Private weights. Larger weights than `weight_max` count as `weight_max`.
    weight_max : float, optional
        The public cap of the weights. Never take it from the data.
    ledger : Ledger, optional
        The budget that is charged, before the first record is read.
    seed : int, optional
        Predictable noise for simulations and tests, with an `InsecureSeedWarning`.
    name : str, optional
        A name of the release, for the ledger and for readers.

    Returns
    -------
    Step
        The release, with `.point` (d,), the noisy mean of the contributions; `.coherence`, an estimate of the length of
        the mean without the noise; `.withstands`, the largest share of hostile records with which the step still points
        forward; `.size`; and `.cost`. If the noisy number of records is near zero, `ReleaseFailed` is raised, and the
        cost is spent.

    Examples
    --------
    >>> import numpy as np
    >>> truth = np.linspace(-1.0, 1.0, 20_000)
    >>> updates = (truth + np.random.default_rng(k).normal(size=20_000) for k in range(500))
    >>> step = robust_step(updates, d=20_000, rho=0.5)
    >>> step.point.shape, 0.45 < step.coherence < 0.55
    ((20000,), True)
    """
    if isinstance(points, Dataset):
        data, d = points, points.d
        protection = Protection(neighbours_of(neighbours), data.unit, data.weight_max)
        n = data.shape[0] if n is None and protection.size_is_public else n
        weight_max, unit = data.weight_max, data.unit
    else:
        records, n, d = _records(points, n, _dimension(points, d, center), neighbours, weight_max is not None)
        _require_weights(sample_weight, weight_max, records)
        weights = arrivals(records, sample_weight, weight_max)
        data = Dataset(Arriving(weights, d, n, unit or RECORD), Reading(weight_max=weight_max))
    made = plan_step(
        n,
        d,
        threshold,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        neighbours=neighbours,
        unit=unit,
        weight_max=weight_max,
    )
    return taken_step(made, data, center, ledger=ledger, seed=seed, name=name)


def plan_step(
    n: int | None, d: int, threshold: float = 0.0, *, neighbours: str = "add_remove", **arguments: Any
) -> Plan:
    """Calibrate a robust step from public parameters. Nothing is spent.

    Parameters
    ----------
    n : int or None
        With "replace" the public number of records, otherwise a public divisor or None.
    d : int
        The dimension.
    threshold : float
        As in `robust_step`.
    neighbours : {"add_remove", "replace"}
        As in `robust_step`.
    **arguments
        The budget, `unit` and `weight_max`, as in `robust_step`.

    Returns
    -------
    Plan
        A plan with its stages, their noise and its cost.
    """
    known: dict[str, Any] = {"threshold": threshold, "inference": False, "neighbours": neighbours}
    return make_plan(PublicParameters.of(n, d, **known, **arguments), "robust_step")


def taken_step(made: Plan, data: Dataset, center: ArrayLike | None, **options: Any) -> Step:
    """Run the step of a plan from a public point."""
    if not isinstance(made.calibrated, CalibratedStep):
        raise TypeError("this plan is not for a robust step")
    calibrated = replace(made.calibrated, center=None if center is None else _center(center, made.d))
    step = replace(made, calibrated=calibrated).run(data, progress=False, **options)
    if not isinstance(step, Step):
        raise TypeError("a run of a robust step gives a Step")
    return step


def _dimension(points: Any, d: int | None, center: ArrayLike | None) -> int:
    """The dimension, from public arguments or from the shape of an array."""
    if d is not None:
        return integer("d", d)
    if center is not None:
        return int(np.size(center))
    if isinstance(points, np.ndarray) and points.ndim == 2:
        return int(points.shape[1])
    raise ValueError("d, the number of coordinates of a record, is not known: give d= or center=")


def _records(
    points: Any, n: int | None, d: int, neighbours: str, weighted: bool
) -> tuple[Iterable[Any], int | None, int]:
    """The records one by one, and their public number."""
    if isinstance(points, (str, bytes)) or hasattr(points, "columns") or not isinstance(points, Iterable):
        raise TypeError(
            f"points must be an array of shape (n, d) or an iterable of records, got {type(points).__name__}; "
            "files, frames and collections go through dpmedian.Dataset.of(...)"
        )
    if isinstance(points, np.ndarray) and points.ndim != 2:
        raise ValueError(f"points must have the shape (n, d), got {points.shape}")
    if isinstance(points, np.ndarray) and points.shape[1] != d:
        raise ValueError(f"points must have d = {d} columns, got {points.shape[1]}")
    if n is None and relation_of(neighbours).size_is_public and not weighted:
        if not isinstance(points, (np.ndarray, list, tuple)):
            raise ValueError("with neighbours='replace' the number of records is public: pass n=")
        n = len(points)
    public = n is not None and relation_of(neighbours).size_is_public and not weighted
    if public and isinstance(points, Sized) and len(points) > integer("n", n):
        raise ValueError(f"n = {n}, but there are {len(points)} records; with neighbours='replace' n is their number")
    return points, n, d


def _require_weights(weights: Any, cap: float | None, records: Iterable[Any]) -> None:
    """Raise an error, before anything is charged, if the weights have no cap, the wrong type or another length."""
    if (weights is None) != (cap is None):
        raise ValueError("sample_weight and weight_max, the public cap, must be given together")
    if weights is None:
        return
    if isinstance(weights, (str, bytes)) or not isinstance(weights, Iterable):
        raise TypeError(f"sample_weight must be one number for each record, got {type(weights).__name__}")
    if isinstance(weights, Sized) and isinstance(records, Sized) and len(weights) != len(records):
        # With "add_remove" both lengths are private, so the error does not contain them.
        raise ValueError("sample_weight must have one weight for each record, but has another length")


def _center(center: ArrayLike, d: int) -> NDArray[np.float32] | NDArray[np.float64]:
    """A public point in singles or doubles."""
    given = np.asarray(center)
    point: NDArray[np.float32] | NDArray[np.float64] = (
        np.ascontiguousarray(given).reshape(-1)
        if given.dtype == np.float32
        else np.ascontiguousarray(given, dtype=np.float64).reshape(-1)
    )
    if point.shape != (d,):
        raise ValueError(f"center must have {d} coordinates like the records, got {point.shape}")
    if not np.all(np.isfinite(point)):
        raise ValueError("center must be finite, but has a coordinate that is not")
    return point
