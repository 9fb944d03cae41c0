"""The public parameters of a release, which are checked once and then passed as one object."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpmedian.accounting import Budget
from dpmedian.accounting.arguments import DELTA_LIMIT
from dpmedian.accounting.protection import RECORD, Neighbours, Protection, relation_of, unit_of
from dpmedian.profile import DEFAULT, Profile
from dpmedian.spherical import on_unit_ball

__all__ = [
    "GEOMETRIES",
    "LARGEST",
    "METHOD_ARGUMENTS",
    "PRIVATE_RECORDS_MAX",
    "RECORDS_MAX",
    "Checked",
    "PublicParameters",
    "geometry_of",
    "integer",
    "positive_number",
    "scales_of",
    "step_threshold",
]

# Coordinates above this magnitude are clamped, so a larger radius or center has no meaning.
LARGEST = 2.0**1000

# The largest public number of records. If n is public, lattices are chosen so that totals fit 62 bits, and up to this
# number of records no lattice is too coarse. If n is private, lattices are chosen from the noise, and extremely large
# totals are clamped. See gaussian.md.
RECORDS_MAX = 2**40
PRIVATE_RECORDS_MAX = 2**30

# The largest dimension. No machine holds larger records, and sizes that are computed from the dimension fit the
# integers of the Rust core.
DIMENSIONS_MAX = 2**40

GEOMETRIES = ("euclidean", "sphere")
"""The possible meanings of points: coordinates, or longitude and latitude in degrees, which become unit vectors."""

# The arguments that only some methods use. Giving one of them to a method that does not use it is an error.
METHOD_ARGUMENTS = ("radius", "resolution", "center", "profile", "clusters", "trim", "axes", "threshold")


class Checked(NamedTuple):
    """The parameters that a dataset checked when it was made, and its number of records, or None without a dataset."""

    size: int | None
    unit: str
    geometry: str
    weight_max: float | None
    scales: tuple[float, ...] | None


@dataclass(frozen=True, eq=False)
class PublicParameters:
    """The public parameters of a release. No field may depend on the data.

    `neighbours` says which data sets are neighbors: "replace" means data sets of the same public size n that differ in
    one replaced record, and "add_remove" means data sets of which one has one record more. With "add_remove" the number
    of records is private, and n is a public guess, or None. When the method runs, n is replaced by a released noisy
    number. `unit` is the label of the protected unit. With the `geometry` "sphere" records are the unit vectors of
    longitudes and latitudes. If the public cap of weights, `weight_max`, is given, the sum of the weights replaces the
    number of records, and is private under both relations. `lone_delta` bounds the probability that a group with a
    single contribution is shown, if the keys of groups are not listed.
    """

    n: int | None
    d: int
    budget: Budget
    radius: float | None = None
    resolution: float | None = None
    center: NDArray[np.float64] | None = None
    failure_probability: float = 0.05
    profile: Profile = DEFAULT
    neighbours: Neighbours = "replace"
    unit: str = RECORD
    geometry: str = "euclidean"
    weight_max: float | None = None
    scales: tuple[float, ...] | None = None
    """One public scale for each column.

    Records are divided by the scales. `center` is stored undivided, and `origin` is the divided center.
    """
    size_noise: float = 0.0
    """The standard deviation of the noise of n, if n is a released noisy number."""
    inference: bool = True
    lone_delta: float | None = None
    clusters: int | None = None
    """The number of centers of k-medians. None for a single median."""
    trim: float = 0.0
    """The share of the records that k-medians leaves out, namely the records farthest from all centers."""
    axes: float = 0.0
    """The share of the budget for the axes of the data."""
    threshold: float | None = None
    """The threshold of a robust step: a record nearer than this distance moves the sum by less than 1. With 0, every
    record moves the sum by 1. None if the release is not a robust step.
    """

    @classmethod
    def of(
        cls,
        n: int | None,
        d: int,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        radius: float | None = None,
        resolution: float | None = None,
        center: ArrayLike | None = None,
        failure_probability: float = 0.05,
        profile: str = "default",
        neighbours: str = "replace",
        unit: str | None = None,
        geometry: str = "euclidean",
        weight_max: float | None = None,
        scales: Sequence[float] | None = None,
        inference: bool = True,
        lone_delta: float | None = None,
        clusters: int | None = None,
        trim: float = 0.0,
        axes: float = 0.0,
        threshold: float | None = None,
        dataset: Checked | None = None,
    ) -> PublicParameters:
        """Check every argument. An error names the argument, its value and the accepted values."""
        budget = Budget.of(epsilon=epsilon, delta=delta, rho=rho)
        relation, d = relation_of(neighbours), integer("d", d)
        if not 1 <= d <= DIMENSIONS_MAX:
            raise ValueError(f"d must be at least 1 and at most 2**40, got {d}")
        if dataset is None:
            label = RECORD if unit is None else unit_of(unit)
            cap = None if weight_max is None else positive_number("weight_max", weight_max)
            dataset = Checked(None, label, geometry_of(geometry, scales), cap, scales_of(scales, d))
        if not isinstance(dataset, Checked):  # Audit records and callers can write any value.
            raise TypeError(f"dataset must come from a Dataset, got {type(dataset).__name__}")
        n = _records(n, dataset.size, private=not relation.size_is_public or dataset.weight_max is not None)
        if radius is not None:
            radius = positive_number("radius", radius)
            if radius < 1.0 / LARGEST:
                raise ValueError(f"radius must be at least 2**-1000, got {radius}: choose a larger unit for the data")
        if resolution is not None:
            resolution = positive_number("resolution", resolution)
            if radius is not None and resolution >= radius:
                raise ValueError(f"resolution must be smaller than radius, got {resolution} and radius {radius}")
        if not isinstance(inference, (bool, np.bool_)):
            raise TypeError(f"inference must be True or False, got {inference!r}")
        if lone_delta is not None and not DELTA_LIMIT <= positive_number("lone_delta", lone_delta) < 0.5:
            raise ValueError(f"lone_delta must lie between {DELTA_LIMIT:g} and 1/2, got {lone_delta!r}")
        beta = positive_number("failure_probability", failure_probability)
        if beta >= 1.0:
            raise ValueError(f"failure_probability must lie between 0 and 1, got {failure_probability}")
        return cls(
            n=n,
            d=d,
            budget=budget,
            radius=radius,
            resolution=resolution,
            center=None if center is None else _center(center, d),
            failure_probability=beta,
            profile=Profile.named(profile),
            neighbours=relation.name,
            **{name: value for name, value in dataset._asdict().items() if name != "size"},
            inference=bool(inference),
            lone_delta=None if lone_delta is None else float(lone_delta),
            clusters=None if clusters is None else _clusters(clusters, n),
            trim=_share("trim", trim, "records"),
            axes=_share("axes", axes, "budget"),
            threshold=None if threshold is None else step_threshold(threshold),
        )

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any], **known: Any) -> PublicParameters:
        """Pick the public parameters from the arguments of a public function, which passes its `locals()`.

        Parameters for longitudes and latitudes become parameters for records of the unit ball.
        """
        names = inspect.signature(cls.of).parameters
        given = {name: value for name, value in {**arguments, **known}.items() if name in names}
        return cls.of(**(on_unit_ball(given) if given.get("geometry") == "sphere" else given))

    @functools.cached_property
    def protection(self) -> Protection:
        """The neighbor relation, the protected unit, and the cap of weights."""
        return Protection(self.neighbours, self.unit, self.weight_max)

    @property
    def private_size(self) -> bool:
        """Whether the number of records, or the sum of weights, is private. The sum of weights is always private."""
        return not self.protection.size_is_public

    @property
    def weighted(self) -> bool:
        """Whether records count with weights."""
        return self.weight_max is not None

    @property
    def size(self) -> int:
        """The number of records to which a method is calibrated: the public n, or a noisy number if n is private."""
        assert self.n is not None, "a method needs a number of records, which is released first"
        return self.n

    @property
    def records_most(self) -> int | None:
        """The largest possible number of records, for the choice of lattices. None if no public number bounds it."""
        return None if self.private_size else self.n

    def at_size(self, n: int, noise: float = 0.0) -> PublicParameters:
        """The same parameters for another number of records.

        The number must be public, or released with noise of this sigma.
        """
        return replace(self, n=max(n, 2), size_noise=noise)

    @property
    def origin(self) -> NDArray[np.float64]:
        """The given center, in units of the scales if there are scales. The default is the origin."""
        if self.center is not None and self.scales is None:
            return self.center
        origin = np.zeros(self.d) if self.center is None else self.center / np.array(self.scales)
        origin.setflags(write=False)
        return origin

    @property
    def ball(self) -> tuple[list[float], float] | None:
        """The public ball onto which records are projected, or None without a radius."""
        return None if self.radius is None else (self.origin.tolist(), self.radius)

    @property
    def assumed_core_radius(self) -> float:
        """The assumed core radius of the data for predictions: the middle one of `assumed_core_radii`."""
        return self.assumed_core_radii[1]

    @property
    def assumed_core_radii(self) -> tuple[float, float, float]:
        """The assumed core radii of the data for the comparison of methods: from a thousandth to a tenth of the radius.

        A public radius is usually larger than the core radius by a factor in this range, and the resolution is at most
        a tenth of the core radius. Without a radius no prediction depends on the core radius, which is then the unit of
        length.
        """
        if self.radius is None:
            return (1.0, 1.0, 1.0)
        largest = max(self.radius / 10.0, self.resolution or 0.0)
        smallest = min(max(self.radius / 1000.0, 10.0 * (self.resolution or 0.0)), largest)
        return (smallest, math.sqrt(smallest) * math.sqrt(largest), largest)

    @property
    def assumed_distance(self) -> float:
        """The assumed distance of the median from the center: a third of the radius, or a thousand core radii."""
        return 1000.0 * self.assumed_core_radius if self.radius is None else self.radius / 3.0

    @property
    def given(self) -> tuple[str, ...]:
        """The method arguments that differ from their defaults."""
        defaults = {field.name: field.default for field in fields(self) if field.default is not MISSING}
        return tuple(name for name in METHOD_ARGUMENTS if _differs(getattr(self, name), defaults[name]))

    def require_proved_profile(self) -> None:
        """Raise an error if the profile has no proof for these neighbors, or for a private sum of weights."""
        if self.private_size and "add_remove" not in self.profile.relations:
            what = f"neighbours = {self.neighbours!r}" if not self.protection.relation.size_is_public else "weights"
            raise ValueError(
                f"profile {self.profile.name!r} is not proved for {what}, because the sensitivity of its ball counts "
                "depends on the number of records; use profile='default'"
            )

    def require(self, method: str, *names: str) -> None:
        """Raise an error unless the arguments that `method` needs were given."""
        missing = [name for name in names if getattr(self, name) is None]
        if missing:
            wanted = ", ".join(f"{name}=..." for name in missing)
            raise ValueError(f"method {method!r} needs {wanted}; method 'adaptive' needs neither radius nor resolution")


def _differs(value: object, default: object) -> bool:
    """Whether an argument differs from its default. Arrays and profiles are compared by identity."""
    return value != default if isinstance(value, float) else value is not default


def integer(name: str, value: object) -> int:
    """Return the argument as an integer, or raise an error that names the argument."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    return int(value)


def positive_number(name: str, value: object) -> float:
    """Return the argument as a positive finite number, or raise an error that names the argument."""
    number = _real(name, value)
    if not (math.isfinite(number) and 0.0 < number <= LARGEST):
        raise ValueError(f"{name} must be positive and finite (at most 2**1000), got {value!r}")
    return number


def _real(name: str, value: object) -> float:
    """Return the argument as a double, or infinity if it is too large. An error names the argument."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number, got {value!r}")
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _records(n: object, found: int | None, private: bool) -> int | None:
    """Return the public number of records, or a guess. If the number is public, a given n must be equal to it."""
    if found is not None and not private:
        if n is not None and integer("n", n) != found:
            raise ValueError(
                f"n = {n}, but there are {found} points. With neighbours='replace' leave n out, because it is the "
                "number of points; only with neighbours='add_remove' is n a guess"
            )
        n = found
    if n is None and private:
        return None
    if n is None:
        raise TypeError(
            "n must be an integer, the public number of records; n may be None only with neighbours='add_remove' or "
            "weights"
        )
    n = integer("n", n)
    if n < 2:
        raise ValueError(f"n must be at least 2 for a private release, got {n}")
    if private and n > PRIVATE_RECORDS_MAX:
        raise ValueError(
            f"n must be at most 2**30 records if neighbors add or remove a record, or with weights, got {n}; with "
            "neighbours='replace' and without weights up to 2**40 records are possible"
        )
    if n > RECORDS_MAX:
        raise ValueError(f"n must be at most 2**40 records, got {n}")
    return n


# The largest number of centers. With more centers, clusters that stand out of the noise would need tens of thousands of
# records.
_CLUSTERS_MOST = 100


def _clusters(k: object, n: int | None) -> int:
    k = integer("k", k)
    if not 1 <= k <= _CLUSTERS_MOST:
        raise ValueError(f"k must lie between 1 and {_CLUSTERS_MOST}, got {k}")
    if n is not None and k > n:
        raise ValueError(f"k must not exceed the number of records, {n}, got {k}")
    return k


def _share(name: str, value: object, of: str) -> float:
    """Return a share, which must be below one half."""
    number = _real(name, value)
    if not 0.0 <= number < 0.5:
        raise ValueError(f"{name} must be at least 0 and below 0.5, a share of the {of}, got {value!r}")
    return number


def step_threshold(value: object) -> float:
    """Return a threshold of a robust step, which must be 0 or a number whose square is far from underflow and
    overflow.
    """
    threshold = _real("threshold", value)
    if threshold != 0.0 and not 2.0**-300 <= threshold <= 2.0**300:
        raise ValueError(f"threshold must be 0 or lie between 2**-300 and 2**300, got {value!r}")
    return threshold


def geometry_of(value: object, scales: object = None) -> str:
    """Return the geometry, or raise an error that names all geometries. The sphere has no scales."""
    if value == "sphere" and scales is not None:
        raise ValueError("geometry='sphere' does not accept scales=: longitude and latitude are both in degrees")
    if value not in GEOMETRIES:
        raise ValueError(f"geometry must be one of {', '.join(map(repr, GEOMETRIES))}, got {value!r}")
    return str(value)


def scales_of(scales: Any, d: int) -> tuple[float, ...] | None:
    """Return one positive number for each of d columns, or None."""
    if scales is None:
        return None
    if hasattr(scales, "__array__"):
        scales = np.asarray(scales).tolist()
    if isinstance(scales, (str, bytes, Mapping)) or not hasattr(scales, "__len__"):
        raise TypeError(
            f"scales must be {d} positive numbers, one for each column, got {scales!r}; names of columns are known "
            "only if there are points, geometric_median(points, scales={'income': 5000.0})"
        )
    if len(scales) != d:
        raise ValueError(f"scales must be {d} positive numbers, one for each column, got {len(scales)}")
    found = tuple(positive_number("scales", scale) for scale in scales)
    if min(found) < 1.0 / LARGEST:
        raise ValueError(f"scales must be at least 2**-1000, got {min(found)}")
    return found


def _center(center: ArrayLike, d: int) -> NDArray[np.float64]:
    try:
        point = np.array(center, dtype=np.float64)
    except OverflowError:
        raise ValueError(f"center must be finite (at most 2**1000 in magnitude), got {center!r}") from None
    except (TypeError, ValueError) as error:
        raise TypeError(f"center must be {d} numbers, got {center!r}") from error
    if point.shape != (d,):
        raise ValueError(f"center must have shape ({d},) like the points, got {point.shape}")
    if not np.all(np.abs(point) <= LARGEST):
        raise ValueError(f"center must be finite (at most 2**1000 in magnitude), got {center!r}")
    point.setflags(write=False)
    return point
