"""The private geometric median as an OpenDP measurement (needs `dpmedian[opendp]`).

>>> import dpmedian.opendp, numpy as np, opendp.prelude as dp
>>> dp.enable_features("contrib", "honest-but-curious")
>>> domain = dp.numpy.array2_domain(norm=10.0, p=2, size=1000, num_columns=2, T=float)
>>> measurement = dpmedian.opendp.make_geometric_median(domain, dp.change_one_distance(), 0.1)
>>> measurement.map(1)
0.1
>>> measurement(np.full((1000, 2), 3.0)).shape
(2,)

Importing this module registers it for OpenDP's contexts, as `context.query().geometric_median()`. OpenDP requires the
feature "honest-but-curious" because it cannot check the privacy guarantee of a measurement from another library.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmedian.accounting.protection import Neighbours, relation_of
from dpmedian.api import plan

try:
    import opendp.prelude as dp
    from opendp.context import register
    from opendp.mod import Domain, Measurement, Metric
except ImportError as error:
    raise ImportError("dpmedian.opendp needs opendp 0.14 or newer: pip install 'dpmedian[opendp]'") from error

__all__ = ["make_geometric_median"]


_CHANGES, _EDITS = ("ChangeOneDistance", "HammingDistance"), ("SymmetricDistance", "InsertDeleteDistance")


def _steps(metric: Metric, neighbours: Neighbours, distance: int) -> int:
    """Return the largest number of neighboring steps between two data sets at this distance.

    If the domain has a size, a neighboring step is one changed record. A change is a removal and an addition, so the
    metrics that count additions and removals count every change twice. Without a size, a neighboring step is one added
    or removed record, which these metrics count once. The order of the records has no effect on the privacy, because
    every aggregate is a sum over records, or over random pairs that stay hidden.
    """
    kind = str(metric.type)
    public = relation_of(neighbours).size_is_public
    if public and kind in _CHANGES:
        return distance
    if kind in _EDITS:
        return distance // 2 if public else distance
    expected = "symmetric_distance() or insert_delete_distance()"
    if public:
        raise ValueError(f"input_metric must be change_one_distance(), hamming_distance(), {expected}, got {metric}")
    raise ValueError(
        f"input_metric must be {expected} if the domain has no size, got {metric}, which compares data sets of one "
        "size: give the domain its size, if the size is public"
    )


def _described(domain: Domain) -> Any:
    """Return the descriptor of a domain of arrays. Its rows may have a bounded L2 norm, and its size may be missing."""
    found: Any = getattr(domain, "descriptor", None)
    bounded = getattr(found, "norm", None) is not None
    if getattr(found, "num_columns", None) is None or (bounded and (found.p != 2 or found.origin is None)):
        raise ValueError(
            "input_domain must be dp.numpy.array2_domain(num_columns=..., T=float), with size=... if the number of "
            f"rows is public, and with norm=..., p=2 if their L2 norm is bounded, got {domain}"
        )
    return found


def make_geometric_median(
    input_domain: Domain,
    input_metric: Metric,
    rho: float,
    *,
    method: str = "auto",
    resolution: float | None = None,
    failure_probability: float = 0.05,
    profile: str = "default",
    n: int | None = None,
) -> Measurement:
    """Make a measurement that releases the geometric median of the rows of an array under zero-concentrated divergence.

    `input_domain` is `dp.numpy.array2_domain` with a number of columns. The rows need no bound. If the domain bounds
    their L2 norm, the bound is used as the public radius. If the domain has a size, `rho` is the cost of one changed
    record. Otherwise the number of rows is private, and `rho` is the cost of one added or removed row. k changes cost
    k^2 rho. The measurement returns an array, or None if the release failed. A failure is an output with the same cost,
    and not an error, so that a compositor counts its cost.

    Parameters
    ----------
    input_domain : opendp Domain
        `dp.numpy.array2_domain(num_columns=..., T=float)`, with `size=...` if the size is public, and with `norm=...,
        p=2` if the L2 norm of the rows is bounded.
    input_metric : opendp Metric
        Symmetric or insert-delete distance. If the domain has a size, change-one and Hamming distance are allowed, too.
    rho : float
        The cost of one changed record, or without a size of one added or removed row.
    method, resolution, failure_probability, profile
        As in `dpmedian.plan`.
    n : int, optional
        A public guess of the number of rows, if the domain has no size.

    Returns
    -------
    opendp Measurement
        A measurement from an array to its private geometric median, or None.
    """
    bounds = _described(input_domain)
    neighbours: Neighbours = "add_remove" if bounds.size is None else "replace"
    if bounds.size is not None and n not in (None, bounds.size):
        raise ValueError(f"n = {n}, but the size of the domain is {bounds.size}: leave n out")
    _steps(input_metric, neighbours, 0)
    made = plan(
        n if bounds.size is None else bounds.size,
        bounds.num_columns,
        rho=rho,
        method=method,
        radius=bounds.norm,
        resolution=resolution,
        center=None if bounds.norm is None else bounds.origin,
        failure_probability=failure_probability,
        profile=profile,
        inference=False,  # Only the point is returned.
        neighbours=neighbours,
    )

    made.refuse_if_hopeless()

    def release(points: NDArray[Any]) -> NDArray[np.float64] | None:
        shape = np.shape(points)
        if len(shape) != 2 or shape[1] != made.d or bounds.size not in (None, shape[0]):
            # The message contains the number of rows only if it is public.
            rows, found = ("any", shape[1:]) if bounds.size is None else (bounds.size, shape)
            raise ValueError(f"the domain has arrays of shape ({rows}, {made.d}), got {found}")
        try:
            # A row that contains NaN is moved to the origin, because an error would reveal something about the row.
            return made.run(points, nonfinite="center", progress=False).point
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:
            # Usually the error is `ReleaseFailed`. OpenDP does not charge for exceptions, so no exception may depend on
            # the data. Therefore every error becomes an output. This includes a panic of the Rust core, which is not an
            # `Exception`.
            return None

    def privacy_map(distance: int) -> float:
        # The group privacy of zCDP: k changes cost k^2 rho. The cost is rounded up if the product is not a double.
        exact = Fraction(rho) * _steps(input_metric, neighbours, distance) ** 2
        return float(exact) if Fraction(float(exact)) >= exact else math.nextafter(float(exact), math.inf)

    return dp.m.make_user_measurement(
        input_domain, input_metric, dp.zero_concentrated_divergence(), release, privacy_map
    )


register(make_geometric_median)
