"""The private geometric median as an OpenDP measurement (needs `dpmedian[opendp]`).

>>> import dpmedian.opendp, numpy as np, opendp.prelude as dp
>>> dp.enable_features("contrib", "honest-but-curious")
>>> domain = dp.numpy.array2_domain(norm=10.0, p=2, size=1000, num_columns=2, T=float)
>>> measurement = dpmedian.opendp.make_geometric_median(domain, dp.change_one_distance(), 0.1)
>>> measurement.map(1)
0.1
>>> measurement(np.full((1000, 2), 3.0)).shape
(2,)

Importing this module registers it for OpenDP's contexts, as `context.query().geometric_median()`. OpenDP asks for the
feature "honest-but-curious" because it cannot check what a measurement from outside promises.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmedian.api import plan

try:
    import opendp.prelude as dp
    from opendp.context import register
    from opendp.mod import Domain, Measurement, Metric
except ImportError as error:
    raise ImportError("dpmedian.opendp needs opendp 0.14 or newer: pip install 'dpmedian[opendp]'") from error

__all__ = ["make_geometric_median"]


def _changes(metric: Metric, distance: int) -> int:
    """How many records differ, at most, between two data sets of one size at this distance.

    A change is a removal and an addition: the two metrics that count those see every change twice. Order does not
    matter: every aggregate is a sum over records, or over pairs drawn at random.
    """
    kind = str(metric.type)
    if kind in ("ChangeOneDistance", "HammingDistance"):
        return distance
    if kind in ("SymmetricDistance", "InsertDeleteDistance"):
        return distance // 2
    raise ValueError(
        "input_metric must be change_one_distance(), hamming_distance(), symmetric_distance() or "
        f"insert_delete_distance(), got {metric}"
    )


def _bounded(domain: Domain) -> Any:
    """The descriptor of a domain of arrays of known shape whose rows have a bounded L2 norm."""
    found = getattr(domain, "descriptor", None)
    missing = [name for name in ("norm", "size", "num_columns", "origin", "p") if getattr(found, name, None) is None]
    if found is None or missing or found.p != 2:
        raise ValueError(
            "input_domain must be dp.numpy.array2_domain(norm=..., p=2, size=..., num_columns=..., T=float), got "
            f"{domain}"
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
) -> Measurement:
    """A measurement that releases the geometric median of an array's rows under zero-concentrated divergence.

    `input_domain` is `dp.numpy.array2_domain` with an L2 norm (the public radius, around its origin), a size and a
    number of columns. `rho` is the cost of one changed record; k changed records cost k^2 rho. The result is an array,
    or None when the release failed: a failure is an output with the same cost, not an error, so that a compositor
    counts it.

    Parameters
    ----------
    input_domain : opendp Domain
        `dp.numpy.array2_domain(norm=..., p=2, size=..., num_columns=..., T=float)`.
    input_metric : opendp Metric
        Change-one, Hamming, symmetric or insert-delete distance.
    rho : float
        The cost of one changed record.
    method, resolution, failure_probability, profile
        As in `dpmedian.plan`.

    Returns
    -------
    opendp Measurement
        From an array to its private geometric median, or None.
    """
    bounds = _bounded(input_domain)
    _changes(input_metric, 0)
    made = plan(
        bounds.size,
        bounds.num_columns,
        rho=rho,
        method=method,
        radius=bounds.norm,
        resolution=resolution,
        center=bounds.origin,
        failure_probability=failure_probability,
        profile=profile,
        inference=False,  # Only the point is given back.
    )

    made.refuse_if_hopeless()

    def release(points: NDArray[Any]) -> NDArray[np.float64] | None:
        if np.shape(points) != (made.n, made.d):
            raise ValueError(f"the domain has arrays of shape ({made.n}, {made.d}), got {np.shape(points)}")
        try:
            # The domain may contain NaN, and an error would tell: the record goes to the origin instead.
            return made.run(points, nonfinite="center", progress=False).point
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:
            # ReleaseFailed above all. OpenDP does not charge for exceptions, so none may depend on the data: whatever
            # else goes wrong is an output too, a panic of the core included, which is no `Exception`.
            return None

    def privacy_map(distance: int) -> float:
        # Group privacy of zCDP, rounded up where the product is no double.
        exact = Fraction(rho) * _changes(input_metric, distance) ** 2
        return float(exact) if Fraction(float(exact)) >= exact else math.nextafter(float(exact), math.inf)

    return dp.m.make_user_measurement(
        input_domain, input_metric, dp.zero_concentrated_divergence(), release, privacy_map
    )


register(make_geometric_median)
