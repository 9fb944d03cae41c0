"""The exponential mechanism: a private choice, smaller scores more likely. Proof: exponential.md.

| paper | here | meaning |
|---|---|---|
| pi(i) ~ exp(-c F(theta_i)) | `rate` | c in units of the score, a ratio of integers |
| Lemma exp-mech-anal | `Selection` | the choice among points by their sum of distances |
| 2 c diam | `eta` | bounded range: how far the log-odds of two outputs may move |
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmedian.accounting import PrivacyCost
from dpmedian.source import ArraySource, Tape, difference_range

__all__ = ["RANGE_LIMIT", "Exponential", "Selection", "eta_of_rho"]

# eta is rounded down to a multiple of 2^-_ETA_BITS, and the rate's denominator stays below 2^63.
_ETA_BITS = 30
RANGE_LIMIT = 2**62


def eta_of_rho(rho: float) -> float:
    """The bounded range that costs rho: eta^2/8 = rho, rounded down."""
    return math.sqrt(8.0 * rho) * (1.0 - 2.0**-50)


@dataclass(frozen=True)
class Exponential:
    """Draws index i with probability proportional to exp(-score_i * rate).

    Neighbours: one record replaced. Sensitivity: the difference of any two scores moves by at most the `bounded_range`
    that `release` is given, which is public or already private. Cost: one bounded-range step of `eta`. Failure: none.
    """

    name: str
    eta: float

    @classmethod
    def of(cls, name: str, eta: float) -> Exponential:
        rounded = math.ldexp(math.floor(math.ldexp(eta, _ETA_BITS)), -_ETA_BITS)
        if rounded == 0.0:
            raise ValueError(f"the choice {name!r} has a budget of {eta:.3g} only, below 2**-{_ETA_BITS}; spend more")
        return cls(name, rounded)

    @property
    def cost(self) -> PrivacyCost:
        return PrivacyCost.bounded_range(self.eta)

    def rate(self, bounded_range: int) -> tuple[int, int]:
        """p/q with bounded_range * p/q <= eta, exactly."""
        bits = min(_ETA_BITS, 63 - bounded_range.bit_length())
        return math.floor(math.ldexp(self.eta, bits)), bounded_range << bits

    def release(self, tape: Tape, scores: NDArray[np.int64], bounded_range: int) -> int:
        """The index of the choice. Scores are integers: nothing is rounded after this."""
        return tape.choose(self.name, np.ascontiguousarray(scores), self.rate(bounded_range), float(bounded_range))


@dataclass(frozen=True)
class Selection(Exponential):
    """Chooses among points that are private already the one with a small sum of distances.

    Replacing a record moves the difference of two scores by at most twice the points' distance, so the range is twice
    the diameter of the candidates, plus the lattice's rounding, whatever the data are.
    """

    @classmethod
    def of(cls, name: str, eta: float) -> Selection:
        return cls(**vars(Exponential.of(name, eta)))

    def among(
        self, source: ArraySource, tape: Tape, candidates: NDArray[np.float64], diameter: float | None = None
    ) -> int:
        """The index of the chosen row. The weights follow the candidates' diameter, or a larger one that is given."""
        exponent, bounded_range = difference_range(candidates)
        if bounded_range == 0:
            return 0  # All candidates are the same point: there is nothing to choose, on any data.
        if diameter is not None:
            wider = math.ceil(2.0 * math.ldexp(diameter, -exponent)) + 2
            bounded_range = min(max(bounded_range, wider), RANGE_LIMIT)
        return self.release(tape, source.differences(candidates), bounded_range)
