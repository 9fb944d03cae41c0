"""Gaussian releases of integer vectors. Proof: gaussian.md."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmedian.accounting import PrivacyCost
from dpmedian.source import ArraySource, Tape, gradient_sensitivity

__all__ = ["Gaussian", "NoisyGradient"]

# Below the first the slack between discrete and continuous noise would be felt, above the second the sampler's
# arithmetic would not fit into 128 bits.
SIGMA_LIMITS = (2**30, 2**50)
_TARGET = 40.0


@dataclass(frozen=True)
class Gaussian:
    """`releases` integer vectors of `coordinates` entries, each with discrete Gaussian noise.

    Neighbours: one record replaced. Sensitivity: L2, `sensitivity` in natural units, on a lattice of multiples of
    2^-bits. Cost: `releases` Gaussian releases of that sensitivity at `sigma` lattice units. Failure: none.
    """

    name: str
    bits: int
    sigma: int
    lattice_sensitivity: float
    coordinates: int
    releases: int

    @classmethod
    def calibrate(
        cls,
        name: str,
        lattice_sensitivity: Callable[[int], float],
        rho: float,
        *,
        n: int,
        coordinates: int = 1,
        releases: int = 1,
        finest: int = 50,
    ) -> Gaussian:
        """The noise that costs rho over all releases, for values of magnitude at most n.

        `lattice_sensitivity(bits)` is the L2 sensitivity in units of 2^-bits.
        """
        factor = math.sqrt(releases / (2.0 * rho))
        finest = min(finest, 62 - n.bit_length())
        natural = math.ldexp(lattice_sensitivity(finest), -finest) * factor
        bits = min(max(round(_TARGET - math.log2(natural)), 0), finest)
        sensitivity = lattice_sensitivity(bits)
        sigma = math.ceil(sensitivity * factor * (1.0 + 1e-15))
        if not SIGMA_LIMITS[0] <= sigma <= SIGMA_LIMITS[1]:
            raise ValueError(
                f"the noise of {name!r}, standard deviation {natural:.3g}, fits no lattice: on multiples of 2**-{bits} "
                f"it is {sigma:.3g} units, and {SIGMA_LIMITS[0]} to {SIGMA_LIMITS[1]} are supported; "
                "choose a budget nearer to common values"
            )
        return cls(name, bits, sigma, sensitivity, coordinates, releases)

    @classmethod
    def of_counts(
        cls, name: str, sensitivity: float, rho: float, *, n: int, coordinates: int = 1, releases: int = 1
    ) -> Gaussian:
        """For integer counts up to n, which become multiples of 2^bits: the sensitivity scales exactly."""
        return cls.calibrate(
            name, lambda bits: math.ldexp(sensitivity, bits), rho, n=n, coordinates=coordinates, releases=releases
        )

    @property
    def sensitivity(self) -> float:
        """In natural units."""
        return math.ldexp(self.lattice_sensitivity, -self.bits)

    @property
    def noise(self) -> float:
        """The standard deviation in natural units."""
        return math.ldexp(float(self.sigma), -self.bits)

    @property
    def cost(self) -> PrivacyCost:
        return PrivacyCost.gaussian(self.lattice_sensitivity, self.sigma, self.coordinates, self.releases)

    def release(self, tape: Tape, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """The counts with noise. Scaling back to natural units is post-processing."""
        return self.release_lattice(tape, counts << self.bits)

    def release_lattice(self, tape: Tape, exact: NDArray[np.int64]) -> NDArray[np.float64]:
        """Values that are in lattice units already."""
        noisy = tape.gaussian(self.name, np.ascontiguousarray(exact), self.sigma, self.lattice_sensitivity)
        return noisy * np.float64(math.ldexp(1.0, -self.bits))


@dataclass(frozen=True)
class NoisyGradient(Gaussian):
    """Gaussian releases of the lattice gradient of the sum of distances (sensitivity 2, plus the rounding)."""

    @classmethod
    def of(cls, name: str, rho: float, *, n: int, d: int, releases: int) -> NoisyGradient:
        """`releases` gradients that cost rho together: variance 2 releases/rho on every coordinate of the sum."""
        spec = cls.calibrate(
            name, lambda bits: gradient_sensitivity(d, bits), rho, n=n, coordinates=d, releases=releases, finest=40
        )
        return cls(**vars(spec))

    def at(self, source: ArraySource, tape: Tape, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """One noisy gradient of the sum of distances."""
        return self.release_lattice(tape, source.gradient(theta, self.bits))

    def shift(self, source: ArraySource, tape: Tape, theta: NDArray[np.float64], radius: float) -> NDArray[np.float64]:
        """One noisy mean shift in place of a gradient: its sensitivity is the same, see src/shift.rs."""
        return self.release_lattice(tape, source.shift(theta, radius, self.bits))

    def descend(
        self,
        source: ArraySource,
        tape: Tape,
        *,
        start: NDArray[np.float64],
        balls: list[tuple[NDArray[np.float64], float]],
        step: float,
        steps: int | None = None,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Projected descent within the intersection of one ball or two, in one fused loop: all releases, or `steps`.

        Returns the mean of theta_1 ... theta_T (the start is in it, the last iterate is not) and the last iterate.
        """
        return source.descend(
            tape,
            self.name,
            start=start,
            balls=balls,
            step=step,
            steps=self.releases if steps is None else steps,
            bits=self.bits,
            sigma=self.sigma,
        )
