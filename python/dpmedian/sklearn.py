"""The private geometric median and private k-medians as scikit-learn estimators (needs `dpmedian[sklearn]`).

>>> import numpy as np
>>> from dpmedian.sklearn import PrivateGeometricMedian
>>> X = np.random.default_rng(0).normal(size=(2000, 3))
>>> PrivateGeometricMedian(epsilon=1.0, delta=1e-6).fit(X).location_.shape
(3,)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpmedian.accounting import PrivacyCost
from dpmedian.accounting.protection import Protection, neighbours_of
from dpmedian.api import plan
from dpmedian.clustering import plan_k_medians
from dpmedian.inference import Region
from dpmedian.places import Places
from dpmedian.planning.plan import Plan
from dpmedian.release import Release
from dpmedian.sources.cells import HINT
from dpmedian.sources.records import as_records

try:
    from sklearn.base import BaseEstimator, ClusterMixin, clone  # type: ignore[import-untyped, unused-ignore]
    from sklearn.utils import check_random_state  # type: ignore[import-untyped, unused-ignore]
    from sklearn.utils.validation import check_is_fitted, validate_data  # type: ignore[import-untyped, unused-ignore]
except ImportError as error:
    raise ImportError("dpmedian.sklearn needs scikit-learn 1.6 or newer: pip install 'dpmedian[sklearn]'") from error

__all__ = ["PrivateGeometricMedian", "PrivateKMedians"]


class _Releasing(BaseEstimator):  # type: ignore[misc, unused-ignore]
    """The common base of both estimators. An estimator stores its parameters, and every `fit` makes a release."""

    def _keep(self, parameters: dict[str, Any]) -> None:
        """Set the arguments of the constructor (its `locals()`) as attributes with the same names."""
        self.__dict__.update({name: parameters[name] for name in self._get_param_names()})

    def __sklearn_clone__(self) -> Any:
        """Return a clone that shares the ledger, because with a copied ledger every clone could spend the whole
        budget.
        """
        parameters = self.get_params(deep=False)
        ledger = parameters.pop("ledger")
        return type(self)(ledger=ledger, **{name: clone(value, safe=False) for name, value in parameters.items()})

    def _released(
        self, planned: Callable[..., Plan], X: Any, sample_weight: Any
    ) -> tuple[NDArray[np.float64], Release]:
        """Return the validated samples, and a release by a plan with the parameters of the estimator."""
        given = self.get_params(deep=False)
        ledger, random_state, n = (given.pop(name) for name in ("ledger", "random_state", "n"))
        # If the number of records is private, not even an error about too few records may depend on it.
        hidden = not Protection(neighbours_of(self.neighbours), weight_max=self.weight_max).size_is_public
        _forget(self)
        points = _validated(self, X, ensure_min_samples=0 if hidden else 2)
        made = planned(n if hidden else points.shape[0], points.shape[1], **given)
        return points, made.run(points, ledger=ledger, seed=_seed(random_state), sample_weight=sample_weight)


class PrivateGeometricMedian(_Releasing):
    """A differentially private geometric median, released by `fit`. Every call of `fit` is a new release with its own
    cost.

    There is no default budget, and `fit` raises an error without a budget. Only the release may be published, because
    nothing else that `fit` computes has noise. An earlier step of a pipeline must transform each record separately,
    like `Normalizer`. A step that learns parameters from the data, like `StandardScaler`, would reveal these parameters
    without noise, and `cost_` would not include them.

    Parameters
    ----------
    epsilon, delta, rho : float, optional
        The budget of every `fit`: (epsilon, delta), rho, (rho, delta), or epsilon alone for pure privacy.
    method : str
        "auto", or one of the methods of `dpmedian.plan`.
    radius, resolution, center : optional
        The public ball that contains the records, and the smallest distance that matters. "adaptive" does not need
        them.
    failure_probability : float
        The accepted probability of a failed or useless release.
    profile : {"default", "paper"}
        The constants of the methods "dpgd", "loc_dpgd" and "loc_cutting_plane": the constants of this package, or the
        constants that the paper prints.
    geometry : {"euclidean", "sphere"}
        Whether samples are coordinates, or longitude and latitude in degrees.
    inference : bool
        Whether "adaptive" also releases second moments, together with its gradients. `confidence_region` needs second
        moments.
    neighbours : {"replace", "add_remove"}
        The neighbor relation: neighbors differ in one replaced record, or one of them has one record more.
    n : int, optional
        With "add_remove", where the number of samples is private, a public guess of this number. With `weight_max`, a
        public guess of the sum of (weight / weight_max).
    weight_max : float, optional
        The public cap on the weights that `fit` gets as `sample_weight`.
    ledger : Ledger, optional
        The ledger that is charged for every `fit`. Clones share the ledger.
    random_state : int or RandomState, optional
        A seed that makes the noise predictable, for simulations only. Leave it at None for a release.

    Attributes
    ----------
    location_ : ndarray of one number for each feature
        The median.
    scale_, error_radius_ : float or None
        A private estimate of the core radius, and the predicted distance to the exact median.
    cost_ : PrivacyCost
        The cost of `fit`.
    release_ : Release
        The whole release. `confidence_region(level)` is a region for the median of the population from which X is a
        sample.
    """

    location_: NDArray[np.float64]
    scale_: float | None
    error_radius_: float | None
    cost_: PrivacyCost
    release_: Release

    def __init__(
        self,
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
        geometry: str = "euclidean",
        weight_max: float | None = None,
        inference: bool = True,
        neighbours: str = "replace",
        n: int | None = None,
        ledger: Any = None,
        random_state: Any = None,
    ) -> None:
        self._keep(locals())

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> PrivateGeometricMedian:
        """Release the private median of the rows of X. `y` is ignored; `sample_weight` needs `weight_max`."""
        _, self.release_ = self._released(plan, X, sample_weight)
        self.location_ = self.release_.point
        self.scale_ = self.release_.scale
        self.error_radius_ = self.release_.error_radius
        self.cost_ = self.release_.cost
        return self

    def confidence_region(self, level: float = 0.95) -> Region:
        """Return a confidence region for the median of the population of which X is a sample. See
        `Release.confidence_region`.
        """
        check_is_fitted(self)
        return self.release_.confidence_region(level)


class PrivateKMedians(ClusterMixin, _Releasing):  # type: ignore[misc, unused-ignore]
    """Differentially private k-medians, released by `fit`. Every call of `fit` is a new release with its own cost.

    There is no default budget, and `fit` raises an error without a budget. Only the centers and their sizes may be
    published. `predict` and `fit_predict` compute labels from the records, without noise. These labels are for the
    holder of the data. An earlier step of a pipeline must transform each record separately.

    Parameters
    ----------
    n_clusters : int
        The number of centers. It is public and must not be taken from the data.
    epsilon, delta, rho : float, optional
        The budget of every `fit`: (epsilon, delta), rho, or (rho, delta).
    trim : float
        The share of the samples that is ignored, namely those farthest from all centers.
    failure_probability : float
        The accepted probability that not all clusters are found if the data consist of n_clusters clusters of equal
        sizes.
    neighbours : {"replace", "add_remove"}
        The neighbor relation: neighbors differ in one replaced record, or one of them has one record more.
    n : int, optional
        With "add_remove", where the number of samples is private, a public guess of this number. With `weight_max`, a
        public guess of the sum of (weight / weight_max).
    weight_max : float, optional
        The public cap on the weights that `fit` gets as `sample_weight`.
    ledger : Ledger, optional
        The ledger that is charged for every `fit`. Clones share the ledger.
    random_state : int or RandomState, optional
        A seed that makes the noise predictable, for simulations only. Leave it at None for a release.

    Attributes
    ----------
    cluster_centers_ : ndarray of one row for each cluster
        The centers, in descending order of their noisy sizes.
    sizes_ : ndarray of one number for each cluster
        The noisy sizes.
    labels_ : ndarray of one number for each sample
        The index of the nearest center of each sample. Never publish the labels, because each label reveals something
        about a record.
    cost_ : PrivacyCost
        The cost of `fit`.
    release_ : Places
        The whole release.
    """

    cluster_centers_: NDArray[np.float64]
    sizes_: NDArray[np.float64]
    labels_: NDArray[np.intp]
    cost_: PrivacyCost
    release_: Places

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        trim: float = 0.0,
        failure_probability: float = 0.05,
        neighbours: str = "replace",
        n: int | None = None,
        weight_max: float | None = None,
        ledger: Any = None,
        random_state: Any = None,
    ) -> None:
        self._keep(locals())

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> PrivateKMedians:
        """Release private centers of the rows of X. `y` is ignored; `sample_weight` needs `weight_max`."""
        points, found = self._released(_plan_k_medians, X, sample_weight)
        if not isinstance(found, Places):
            raise TypeError("a run of k-medians gives Places")
        self.release_ = found
        self.cluster_centers_ = found.centers
        self.sizes_ = found.sizes
        self.cost_ = found.cost
        self.labels_ = _nearest(points, found.centers)
        return self

    def predict(self, X: Any) -> NDArray[np.intp]:
        """Return the index of the nearest center for each row of X.

        Never publish an index, because it reveals something about its row.
        """
        check_is_fitted(self)
        return _nearest(_validated(self, X, reset=False), self.cluster_centers_)


def _plan_k_medians(n: int, d: int, n_clusters: int, **given: Any) -> Plan:
    return plan_k_medians(n, d, n_clusters, **given)


# The number of coordinate differences that are computed together.
_BLOCK = 1 << 22


def _nearest(points: NDArray[np.float64], centers: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the index of the nearest center for each row. Of several equally near centers, the first center is
    taken.
    """
    rows = max(_BLOCK // centers.size, 1)
    found = [
        np.linalg.norm(points[first : first + rows, None] - centers[None], axis=2).argmin(axis=1)
        for first in range(0, len(points), rows)
    ]
    return np.concatenate(found) if found else np.empty(0, dtype=np.intp)


# Messages of scikit-learn that do not print values of samples.
_SAFE = (
    "contains NaN",
    "contains infinity",
    "Found array with",
    "sparse",
    "Sparse",
    "features, but",
    "feature names",
    "Unable to convert array of bytes/strings",
    "argument must be a string or a real number",
)


def _validated(estimator: Any, samples: Any, **options: Any) -> NDArray[np.float64]:
    """Return the samples after the checks of scikit-learn. An error names the kind of the problem, but no value. If a
    cell is not a number, the error also names the position of the cell.
    """
    try:
        points: NDArray[np.float64] = validate_data(estimator, samples, dtype=np.float64, **options)
        return points
    except (ValueError, TypeError, OverflowError) as error:
        message = str(error)
        if "\narray=" not in message and any(safe in message for safe in _SAFE):
            raise
        kind = type(error) if isinstance(error, (ValueError, TypeError)) else ValueError
    if "Complex data not supported" in message:
        raise ValueError("Complex data not supported") from None
    if "Reshape your data" in message:
        first = message.partition("\n")[0].rstrip(":")
        raise ValueError(
            f"{first}. Reshape your data either using array.reshape(-1, 1) if your data has a single feature or "
            "array.reshape(1, -1) if it contains a single sample."
        )
    try:
        as_records(samples)  # The error names the position of a cell that is not a number.
    except (ValueError, TypeError) as error:
        # The estimators have no `nonfinite`, so the hint must not recommend it.
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(str(error).replace(HINT, "correct it")) from None
    raise kind("X must be an array of shape (samples, features) that holds real numbers only") from None


def _forget(estimator: Any) -> None:
    """Delete the results of an earlier `fit`. After a failed `fit` a user could mistake them for new results."""
    for name in [name for name in vars(estimator) if name.endswith("_") and not name.startswith("_")]:
        delattr(estimator, name)


def _seed(random_state: Any) -> int | None:
    """Return the seed for a `random_state`. None stays None, which means random numbers of the operating system."""
    if random_state is None:
        return None
    if isinstance(random_state, (int, np.integer)):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31))
