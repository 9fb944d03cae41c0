"""Gaussian releases of integer vectors. Proof: gaussian.md."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpmedian._core import Tape, gaussian_sigma
from dpmedian.accounting import PrivacyCost
from dpmedian.mechanisms.stage import Noise, Stage
from dpmedian.parameters import PublicParameters
from dpmedian.sources.protocol import Source
from dpmedian.statistics import Bound, Exact, Statistic

__all__ = ["CAP_ROUNDING", "SIGMA_LIMITS", "Gaussian"]

# Costs are sums of doubles. Rounding changes a sum of thousands of costs by at most this relative amount.
CAP_ROUNDING = 1e-12

# The smallest and the largest sigma in lattice units. With a smaller sigma, discrete noise would differ too much from
# continuous noise. With a larger sigma, the arithmetic of the sampler would not fit 128 bits.
SIGMA_LIMITS = (2**30, 2**50)
# A lattice is chosen so that sigma is about 2^40 lattice units, which is the middle of the limits. If no public number
# bounds the values, sigma is about 2^32 lattice units, so that the clamp to 2^62 changes only values beyond 2^30
# standard deviations.
_SIGMA_AIM, _SIGMA_AIM_UNBOUNDED = 40.0, 32.0


Made = TypeVar("Made", bound="Gaussian")


class LatticeBound(Protocol):
    """An L2 sensitivity in units of 2^-bits, and the parameters that it is computed from."""

    @property
    def statistic(self) -> str: ...
    @property
    def arguments(self) -> tuple[tuple[str, Any], ...]: ...
    def __call__(self, bits: int) -> float: ...
    def values(self, bits: int) -> int: ...


@dataclass(frozen=True)
class _Stated:
    """The sensitivity that a caller states for exact counts that the caller computed."""

    sensitivity: float
    statistic = "stated counts"

    @property
    def arguments(self) -> tuple[tuple[str, Any], ...]:
        return (("sensitivity", self.sensitivity),)

    def __call__(self, bits: int) -> float:
        return math.ldexp(self.sensitivity, bits)

    def values(self, bits: int) -> int:
        return 1


@dataclass(frozen=True)
class Gaussian:
    """`releases` integer vectors of `coordinates` entries, each with discrete Gaussian noise.

    Neighbors: the relation for which the sensitivity was computed. Sensitivity: the L2 sensitivity of the statistic on
    a lattice of multiples of 2^-bits. Cost: `releases` Gaussian releases whose standard deviation is `noise_multiplier`
    times the sensitivity. Failure: none.

    The tape gets only the noise multiplier, and takes the sensitivity from the value that it opens. So the noise always
    corresponds to the cost that is charged.
    """

    name: str
    bound: LatticeBound
    bits: int
    noise_multiplier: float
    lattice_sensitivity: float
    coordinates: int
    releases: int

    @classmethod
    def calibrate(
        cls: type[Made],
        name: str,
        bound: LatticeBound,
        rho: float,
        *,
        largest: int | None,
        coordinates: int | None = None,
        releases: int = 1,
        coarsest: int = 0,
        finest: int = 50,
        **more: Any,
    ) -> Made:
        """Calibrate the noise so that all releases together cost rho. Values are at most `largest` in magnitude.

        If no public number bounds the values, `largest` is None. The lattice then does not depend on the number of
        records, and the tape clamps values beyond 2^62 units. `bound(bits)` is the L2 sensitivity of the statistic in
        units of 2^-bits. `coordinates` replaces the number of values per release that the bound states. `more` holds
        the fields that a subclass adds.
        """
        multiplier = math.sqrt(releases / (2.0 * rho))
        aim = _SIGMA_AIM_UNBOUNDED if largest is None else _SIGMA_AIM
        finest = finest if largest is None else min(finest, 62 - largest.bit_length())
        natural = math.ldexp(bound(finest), -finest) * multiplier
        bits = min(max(round(aim - math.log2(natural)), coarsest), finest)
        numbers = bound.values(bits) if coordinates is None else coordinates
        made = cls(name, bound, bits, multiplier, bound(bits), numbers, releases, **more)
        if not SIGMA_LIMITS[0] <= made.sigma <= SIGMA_LIMITS[1]:
            raise ValueError(
                f"the noise of {name!r} fits no lattice: its standard deviation {natural:.3g} is {made.sigma:.3g} "
                f"multiples of 2**-{bits}, and {SIGMA_LIMITS[0]} to {SIGMA_LIMITS[1]} multiples are supported; "
                "choose a budget closer to common values"
            )
        return made

    @classmethod
    def of_statistic(
        cls: type[Made],
        name: str,
        statistic: str,
        rho: float,
        parameters: PublicParameters,
        arguments: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Made:
        """The noise for releases of a statistic of the records, as in `calibrate`.

        `arguments` are the public numbers that the sensitivity of the statistic depends on.
        """
        bound = Bound.of(statistic, parameters.protection, **(arguments or {}))
        return cls.calibrate(name, bound, rho, **({"largest": parameters.records_most} | options))

    @staticmethod
    def of_stated(name: str, sensitivity: float, rho: float, *, largest: int, releases: int = 1) -> Gaussian:
        """Gaussian releases of integer counts that the caller computes.

        The counts are at most `largest`, and the caller states their sensitivity.
        """
        return Gaussian.calibrate(name, _Stated(sensitivity), rho, largest=largest, releases=releases)

    def stated(self, count: int) -> Exact:
        """An exact count of the caller on this lattice, with the sensitivity that `of_stated` was given."""
        return Exact.stated(np.array([count << self.bits], dtype=np.int64), self.lattice_sensitivity)

    @staticmethod
    def cap(rho: float, coordinates: int) -> PrivacyCost:
        """The cost of Gaussian releases that together cost `rho` and release at most `coordinates` numbers.

        A run may choose the releases as it goes, on lattices with a sigma of at least 2^30 units; spender.md has the
        proof. The bound has room for the rounding of a sum of thousands of costs.
        """
        discretization = coordinates / (40.0 * float(SIGMA_LIMITS[0]) ** 2)
        return PrivacyCost(mu_squared=2.0 * rho * (1.0 + CAP_ROUNDING), discretization=discretization)

    @property
    def sigma(self) -> int:
        """The standard deviation in lattice units."""
        return gaussian_sigma(self.lattice_sensitivity, self.noise_multiplier)

    @property
    def sensitivity(self) -> float:
        """The sensitivity in natural units."""
        return math.ldexp(self.lattice_sensitivity, -self.bits)

    @property
    def noise(self) -> float:
        """The standard deviation in natural units."""
        return math.ldexp(float(self.sigma), -self.bits)

    @property
    def cost(self) -> PrivacyCost:
        return PrivacyCost.gaussian(self.lattice_sensitivity, self.sigma, self.coordinates, self.releases)

    @property
    def stage(self) -> Stage:
        """The row of a plan."""
        return Stage(
            self.name,
            self.bound.statistic,
            self.sensitivity,
            Noise("Gaussian", self.noise),
            self.releases,
            self.cost,
            coordinates=self.coordinates,
            arguments={**dict(self.bound.arguments), "bits": self.bits},
        )

    def query(self, source: Source, tape: Tape, **parameters: Any) -> NDArray[np.float64]:
        """The noisy answer to the statistic of this release with these parameters."""
        return self.release(tape, source.answer(self.of_records(**parameters)))

    def of_records(self, **parameters: Any) -> Statistic:
        """The statistic of this release with these parameters, on its lattice."""
        return Statistic(self.bound.statistic, **parameters, bits=self.bits)

    def release(self, tape: Tape, exact: Exact) -> NDArray[np.float64]:
        """The exact answer plus noise. Scaling it back to natural units is post-processing."""
        noisy = tape.gaussian(self.name, exact, self.noise_multiplier)
        return noisy * np.float64(math.ldexp(1.0, -self.bits))
