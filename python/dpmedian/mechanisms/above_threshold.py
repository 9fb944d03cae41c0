"""AboveThreshold finds the first of many counts that reaches a threshold, at the cost of one release.

Proof: above_threshold.md. The table translates the symbols of the paper (Haghifam, Steinke, Ullman, NeurIPS 2024).

| paper | here | meaning |
|---|---|---|
| f_0, f_1, ... | `queries` | integers, queried one after the other |
| T | `threshold` | integer |
| Lap(6/sqrt(2 rho)) | `threshold_rate` | noise on the threshold |
| Lap(12/sqrt(2 rho)) | `query_rate` | noise on every query |
| Fail | None | no query reached the threshold |
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpmedian._core import Tape
from dpmedian.accounting import PrivacyCost
from dpmedian.statistics import Exact

__all__ = ["NOISES", "AboveThreshold", "epsilon_of_rho"]

# The ratio of the budget of the query noise to the budget of the threshold noise. The textbook splits the budget
# evenly. Let D be the sensitivity, e1 the budget of the threshold noise and e2 the budget of the query noise. For
# exponential noise, the variance (D/e1)^2 + (2 D/e2)^2 is smallest at e2/e1 = 2^(2/3).
NOISES = {"laplace": 1.0, "exponential": 2.0 ** (2.0 / 3.0)}

# e1 and e2 are rounded down to multiples of 2^-_RATE_BITS. The scale of the noise is at most _WIDEST, so that
# noise beyond 64-bit integers has a probability below exp(-2^12).
_RATE_BITS = 30
_WIDEST = 2**50
_LARGEST = 2**62


def epsilon_of_rho(rho: float) -> float:
    """The largest epsilon, rounded down, for which an epsilon-DP mechanism costs at most rho.

    An epsilon-DP mechanism costs epsilon tanh(epsilon/2) in rho.
    """
    low, high = 0.0, rho + math.sqrt(2.0 * rho) + 1.0
    while high - low > 1e-15 * high:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (middle, high) if middle * math.tanh(middle / 2.0) <= rho else (low, middle)
    return low


@dataclass(frozen=True)
class AboveThreshold:
    """A search for the first of a sequence of integer queries that reaches a threshold.

    Neighbors: the relation for which `sensitivity` holds. Sensitivity: every query moves by at most `sensitivity`, an
    integer. Cost: one release that is `epsilon`-DP, for any number of queries. Failure: None is returned if no query
    reached the threshold."""

    name: str
    noise: str
    sensitivity: int
    threshold_rate: tuple[int, int]
    query_rate: tuple[int, int]

    @classmethod
    def of(cls, name: str, sensitivity: int, epsilon: float, noise: str = "laplace") -> AboveThreshold:
        """Calibrate the noise: the rate is e1/sensitivity on the threshold and e2/(2 sensitivity) on the queries, with
        e1 + e2 = epsilon.
        """
        if noise not in NOISES:
            raise ValueError(f"noise must be one of {sorted(NOISES)}, got {noise!r}")
        if not 0 < sensitivity <= 2**31:
            raise ValueError(f"sensitivity must be an integer between 1 and 2**31, got {sensitivity}")
        e1 = epsilon / (1.0 + NOISES[noise])
        rates = [
            (math.floor(math.ldexp(e, _RATE_BITS)), width << _RATE_BITS)
            for e, width in ((e1, sensitivity), (epsilon - e1, 2 * sensitivity))
        ]
        if any(p == 0 or q // p > _WIDEST for p, q in rates):
            raise ValueError(
                f"epsilon = {epsilon:.3g} at sensitivity {sensitivity} needs noise wider than 2**50; use a "
                "larger budget"
            )
        return cls(name, noise, sensitivity, *rates)

    @property
    def epsilon(self) -> float:
        """The epsilon of the noise, computed exactly from the rates and then rounded up to a double."""
        exact = self.sensitivity * (Fraction(*self.threshold_rate) + 2 * Fraction(*self.query_rate))
        nearest = float(exact)
        return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)

    @property
    def cost(self) -> PrivacyCost:
        return PrivacyCost.pure_dp(self.epsilon)

    @property
    def scales(self) -> tuple[float, float]:
        """The scales of the noise on the threshold and on a query: 1/rate."""
        return self.threshold_rate[1] / self.threshold_rate[0], self.query_rate[1] / self.query_rate[0]

    @property
    def recentring(self) -> int:
        """The mean noise of a query minus the mean noise of the threshold, or 0 if the noise is two-sided."""
        if self.noise == "laplace":
            return 0
        threshold, query = (1.0 / math.expm1(1.0 / scale) for scale in self.scales)
        return round(query - threshold)

    def stated(self, query: int) -> Exact:
        """An exact answer that the caller computed, with the sensitivity of this mechanism.

        The integer is clamped to the range of the tape. Clamping does not increase the difference of two answers.
        """
        clamped = min(max(query, -_LARGEST), _LARGEST)
        return Exact.stated(np.array([clamped], dtype=np.int64), float(self.sensitivity))

    def release(self, tape: Tape, queries: Iterable[Exact], threshold: int) -> int | None:
        """The index of the first query whose noisy value reaches the noisy threshold.

        The queries after this index are not made. `threshold` is public.
        """
        draw = tape.laplace if self.noise == "laplace" else tape.geometric
        center = Exact.public(np.array([threshold + self.recentring], dtype=np.int64))
        bar = draw(f"{self.name}: threshold", center, self.threshold_rate)[0]
        for index, query in enumerate(queries):
            if query.sensitivity.under(tape.neighbours) > self.sensitivity:
                raise RuntimeError(
                    f"the sensitivity of a query of {self.name!r} is larger than the sensitivity to which the noise is "
                    "calibrated"
                )
            if draw(f"{self.name}: query", query, self.query_rate)[0] >= bar:
                tape.outcome(self.name, self.sensitivity, self.epsilon, index)
                return index
        tape.outcome(self.name, self.sensitivity, self.epsilon, None)
        return None
