"""The exponential mechanism: a private choice that prefers small scores. Proof: exponential.md.

The table translates the symbols of the paper (Haghifam, Steinke, Ullman, NeurIPS 2024). F is the sum of distances.

| paper | here | meaning |
|---|---|---|
| c in pi(i) ~ exp(-c F(theta_i)) | eta/range | the rate per unit of score; `scores` states its range |
| Lemma exp-mech-anal | `Selection` | the choice among points by their sum of distances |
| 2 c diam | `eta` | bounded range: how far the log-odds of two outputs may move |
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmedian._core import Tape
from dpmedian.accounting import Neighbours, PrivacyCost
from dpmedian.accounting.protection import relation_of
from dpmedian.mechanisms.stage import Noise, Stage
from dpmedian.sources.protocol import Source
from dpmedian.statistics import Exact, Statistic

__all__ = ["RANGE_LIMIT", "Exponential", "Selection", "eta_of_rho"]

# eta is rounded down to a multiple of 2^-_ETA_BITS, because the tape represents eta as a fraction with this
# denominator.
_ETA_BITS = 30
RANGE_LIMIT = 2**62


def eta_of_rho(rho: float) -> float:
    """The bounded range (eta) that costs rho: eta^2/8 = rho, rounded down."""
    return math.sqrt(8.0 * rho) * (1.0 - 2.0**-50)


@dataclass(frozen=True)
class Exponential:
    """A draw of an index i with probability proportional to exp(-score_i eta/range).

    Neighbors: the relation for which `scores` states its range. Sensitivity: the range, which is the largest change of
    the difference of two scores between neighbors. Cost: one bounded-range release of `eta`. Failure: none.
    """

    name: str
    eta: float

    @classmethod
    def of(cls, name: str, eta: float) -> Exponential:
        rounded = math.ldexp(math.floor(math.ldexp(eta, _ETA_BITS)), -_ETA_BITS)
        if rounded == 0.0:
            raise ValueError(
                f"the choice {name!r} would have eta = {eta:.3g}, below the minimum of 2**-{_ETA_BITS}; use a "
                "larger budget"
            )
        return cls(name, rounded)

    @property
    def cost(self) -> PrivacyCost:
        return PrivacyCost.bounded_range(self.eta)

    def release(self, tape: Tape, scores: Exact, at_least: int = 0) -> int:
        """Return the index of the choice. The larger of `at_least` and the range of the scores is used as the range."""
        return tape.choose(self.name, scores, self.eta, at_least)


@dataclass(frozen=True)
class Selection(Exponential):
    """A choice of a point with a small sum of distances to the records, among candidates that were already released.

    Replacing a record moves the difference of two scores by at most twice the distance of the two points. So for all
    data the range is at most twice the diameter of the candidates, plus the rounding to the lattice.
    """

    @classmethod
    def of(cls, name: str, eta: float) -> Selection:
        return cls(**vars(Exponential.of(name, eta)))

    def stage(self, neighbours: Neighbours) -> Stage:
        """The row of a plan. Sensitivity and noise are in units of the diameter of the candidates."""
        moves = 2.0 / relation_of(neighbours).sensitivity_gain
        noise = Noise("exponential mechanism", moves / self.eta, f"eta {self.eta:.4g} on F/diameter", {"eta": self.eta})
        return Stage(self.name, "objective differences", moves, noise, 1, self.cost)

    def among(self, source: Source, tape: Tape, candidates: NDArray[np.float64], diameter: float | None = None) -> int:
        """The index of the chosen row.

        The probabilities depend on the diameter of the candidates, or on a larger `diameter` if one is given.
        """
        differences = Statistic("objective differences", candidates=candidates.ravel(), d=candidates.shape[1])
        if differences.sensitivity.replace == 0.0:
            return 0  # All candidates are the same point, so the choice does not depend on the data.
        at_least = 0
        if diameter is not None:
            at_least = min(math.ceil(2.0 * math.ldexp(diameter, -differences.exponent)) + 2, RANGE_LIMIT)
        return self.release(tape, source.answer(differences), at_least)
