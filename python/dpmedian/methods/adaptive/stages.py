"""The calibrated default method: its stages, what to expect, and its run. Proof: adaptive.md."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

from dpmedian.accounting import PrivacyCost
from dpmedian.mechanisms.spender import Allowance, Exhausted
from dpmedian.mechanisms.stage import Stage
from dpmedian.methods.adaptive.constants import CONSTANTS, Constants
from dpmedian.methods.adaptive.prediction import predict
from dpmedian.methods.adaptive.queries import Offers, Queries, last_gradients
from dpmedian.methods.adaptive.run import NotFound, Run
from dpmedian.methods.contract import CalibratedMethod, Prediction, Reads, sensitivity_gain
from dpmedian.parameters import PRIVATE_RECORDS_MAX, PublicParameters
from dpmedian.release import MethodResult, ReleaseFailed
from dpmedian.sources.protocol import Source
from dpmedian.tape import Tape

__all__ = ["Adaptive", "calibrate", "cap"]

# How often a run on a cloud reads the records before its last gradients, and all records after a sample: counted by
# `benches/gauntlet.py --large`.
_BEFORE_LAST, _AFTER_SAMPLE = 90, 5
# n sqrt(rho/d) from which on data 10^5 core radii away from the center are found.
_FAR_SIGNAL = 20.0
# Bytes that a run takes for few records in few dimensions, with room.
_MEMORY = 1 << 24


@dataclass(frozen=True, eq=False)
class Adaptive(CalibratedMethod):
    """A calibrated release. Every release is Gaussian, with the sum of mu^2 at most 2 rho."""

    parameters: PublicParameters
    constants: Constants
    rho: float
    offers: Offers
    allowance: Allowance

    def __reduce__(self) -> tuple[Callable[..., Adaptive], tuple[PublicParameters, float, Constants]]:
        """A pickled method is calibrated again: its offers are functions of these three."""
        return calibrate, (self.parameters, self.rho, self.constants)

    @property
    def stages(self) -> tuple[Stage, ...]:
        return self.allowance.stages

    @functools.cached_property
    def cost(self) -> PrivacyCost:
        """The cap on all stages together."""
        return self.allowance.cost

    @property
    def cap(self) -> PrivacyCost:
        return self.cost

    @property
    def passes(self) -> float:
        reads = self.reads
        return reads.expected + reads.sample_expected * reads.sample / self.parameters.size

    @property
    def reads(self) -> Reads:
        p, sample, most = self.parameters, self.offers.sample, self.offers.most_reads
        if sample == p.size:
            expected = _BEFORE_LAST + last_gradients(p, self.rho, self.constants, sample)
            return Reads(expected, most, memory=_memory(p.size, p.d, copies=1))
        last = last_gradients(p, self.rho, self.constants, sample)
        return Reads(_AFTER_SAMPLE + last, most, sample, _BEFORE_LAST, _memory(sample, p.d, copies=2))

    @property
    def notes(self) -> tuple[str, ...]:
        c, d = self.constants, self.parameters.d
        m = sensitivity_gain(self.parameters) * self.offers.sample
        if c.vector_needs * d / m**2 <= c.center_share * self.rho:
            return ()
        reach = "10^3" if m * math.sqrt(self.rho / max(d, 2)) < _FAR_SIGNAL else "10^5"
        return (f"data more than {reach} core radii away from `center` fail more often than predicted",)

    @property
    def region(self) -> str | None:
        region = self.offers.region
        return None if region is None else "ellipsoid" if region.ellipsoid else "ball"

    def predict(self, core_radius: float | None = None) -> Prediction:
        core_radius = self.parameters.assumed_core_radius if core_radius is None else core_radius
        return predict(self.parameters, self.rho, self.constants, core_radius)

    def run(self, source: Source, tape: Tape) -> MethodResult:
        try:
            return Run(Queries(self.offers, self.allowance, self.constants, source, tape)).run()
        except NotFound as lost:
            message = f"no median found: {lost}"
        except Exhausted as spent:
            message = f"no median found before the budget was used up ({spent})"
        raise ReleaseFailed(message, self.cost)


def _memory(records: int, d: int, copies: int) -> int:
    """Bytes for the copies of the records that the searches read (ranks are counted on a sorted copy), at most.

    Blocks and threads take the same for all n and d; the sums of second moments have d(d + 1)/2 numbers.
    """
    return _MEMORY + 8 * d * records * copies + 32 * d * d


def cap(parameters: PublicParameters, rho: float) -> PrivacyCost:
    """The cost for every number of records: the allowance has the same kinds, and as many of each, for all of them."""
    return calibrate(parameters.at_size(PRIVATE_RECORDS_MAX), rho).cost


def calibrate(parameters: PublicParameters, rho: float, constants: Constants = CONSTANTS) -> Adaptive:
    """The queries that cost rho together, at most."""
    offers = Offers.of(parameters, rho, constants)
    return Adaptive(parameters, constants, rho, offers, offers.allowance(rho))
