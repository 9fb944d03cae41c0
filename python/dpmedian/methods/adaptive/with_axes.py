"""The default method plus one more release, for the axes of the data. Proof: adaptive.md, and clusters.md for the
additional release.

A run of the default method gets the budget (1 - a) rho. Then `NoisyShells` releases the second moments of the
directions from the released point to all records, with the budget a rho. Neighbors: the relation of the run. Cost: the
sum, which is rho. Failure: as for the default method. The directions that the default method releases for its
confidence region are free, but in more than about ten dimensions their noise hides the axes unless there are many
records.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from dpmedian.accounting import PrivacyCost
from dpmedian.inference import Noisy
from dpmedian.mechanisms.clusters import NoisyShells
from dpmedian.mechanisms.spender import Allowance, Offer, Spender
from dpmedian.methods.adaptive import stages
from dpmedian.methods.contract import CappedMethod, Prediction, Reads
from dpmedian.parameters import PRIVATE_RECORDS_MAX, PublicParameters
from dpmedian.release import MethodResult
from dpmedian.sources.protocol import Source
from dpmedian.tape import Tape

__all__ = ["WithAxes", "calibrate", "cap"]

# The weight of the directions relative to the shells, which is the largest possible weight. The shells are released
# with the directions and are not used here.
_WEIGHT = 2.0

# Shares are rounded down by this relative amount, so that their sum does not exceed the budget.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class WithAxes(CappedMethod):
    """A calibrated median, and a release of directions. All releases are Gaussian, and the sum of mu^2 is at most 2
    rho.
    """

    parameters: PublicParameters
    rho: float
    median: stages.Adaptive
    directions: Offer[NoisyShells]
    own: Allowance
    """The allowance of the directions alone."""
    allowance: Allowance
    """The allowance of all releases together, which determines the cost."""

    def __reduce__(self) -> tuple[Callable[..., WithAxes], tuple[PublicParameters, float]]:
        return calibrate, (self.parameters, self.rho)

    @property
    def passes(self) -> float:
        return self.median.passes + 1.0

    @property
    def reads(self) -> Reads:
        reads = self.median.reads
        return reads._replace(expected=reads.expected + 1, most=reads.most + 1)

    @property
    def notes(self) -> tuple[str, ...]:
        return self.median.notes

    @property
    def region(self) -> str | None:
        return self.median.region

    def predict(self, spread: float | None = None) -> Prediction:
        return self.median.predict(spread)

    def run(self, source: Source, tape: Tape) -> MethodResult:
        result = self.median.run(source, tape)
        if result.moments is None:
            return result
        # The shells need some scale, although their counts are not used.
        scale = result.scale or 1.0
        (_, moments), noise = Spender(self.own, tape).release(
            self.directions, self.own.rho, lambda made, tape: made.around(source, tape, result.point, scale)
        )
        if moments is None:
            raise TypeError("directions with a weight are released")
        return replace(result, moments=replace(result.moments, axes=Noisy(moments, noise / _WEIGHT)))


def cap(parameters: PublicParameters, rho: float) -> PrivacyCost:
    """The cost for every number of records."""
    return calibrate(parameters.at_size(PRIVATE_RECORDS_MAX), rho).cost


def calibrate(parameters: PublicParameters, rho: float) -> WithAxes:
    """Calibrate the queries so that together they cost at most rho."""
    share = parameters.axes
    median = stages.calibrate(replace(parameters, axes=0.0), (1.0 - share) * rho)
    offer = Offer(lambda rho: NoisyShells.of("axes", rho, parameters, _WEIGHT), 1, 1.0, "one, at the released point")
    own = Allowance(share * rho * (1.0 - _ROUNDING), (offer,))
    kinds = (
        *(replace(kind, largest=(1.0 - share) * kind.largest) for kind in median.allowance.offers),
        replace(offer, largest=share),
    )
    return WithAxes(parameters, rho, median, offer, own, Allowance(rho, kinds))
