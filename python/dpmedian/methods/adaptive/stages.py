"""The calibrated default method, and its run. Proof: adaptive.md.

| stage | releases | finds |
|---|---|---|
| pair scale | counts of random pairs within 2^k | the power of two that covers nearly half of the pairs |
| center | ranks in every coordinate | coordinate medians, to a fraction of the spread |
| initial spread, spread | counts of distances to a point | the spread: the distance that covers 40 % of the records |
| recentring | mean shifts | many equal records, or a better center |
| counts | counts of distances to a point | whether a shift or a step may be believed; whether records coincide |
| curvature | the Hessian's mean over all directions | the length of a Newton step |
| hessian | the Hessian | the length and the direction of a Newton step |
| gradient | gradients | the median |
| directions | a gradient, and second moments of unit vectors | the shape of a confidence region, too |

The searches, and with many records all stages but the last gradients, ask a hidden sample of the records.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

from dpmedian.accounting import PrivacyCost
from dpmedian.mechanisms.spender import Allowance, Exhausted
from dpmedian.mechanisms.stage import Stage
from dpmedian.methods.adaptive.approach import approach, approach_all
from dpmedian.methods.adaptive.constants import CONSTANTS, Constants
from dpmedian.methods.adaptive.descent import NotFound, descend, exactly, finish
from dpmedian.methods.adaptive.location import Located, Locator
from dpmedian.methods.adaptive.prediction import predict
from dpmedian.methods.adaptive.questions import Offers, Questions
from dpmedian.methods.adaptive.state import State
from dpmedian.methods.adaptive.steps import steps_of
from dpmedian.methods.contract import CalibratedMethod, Prediction, Reads, worth
from dpmedian.parameters import PRIVATE_RECORDS_MAX, PublicParameters
from dpmedian.release import MethodResult, ReleaseFailed
from dpmedian.sources.protocol import Source
from dpmedian.tape import Tape

__all__ = ["Adaptive", "calibrate", "cap"]

# How often a run on a cloud reads the records of its searches and of its approach, beside the pairs and the descent;
# and all records after a sample. Counted by `benches/gauntlet.py --large`, and by the tests for fewer records.
_COARSE, _AFTER_SAMPLE = 80, 6

# Bytes that a run takes for few records in few dimensions, with room.
_BESIDE = 1 << 24


@dataclass(frozen=True, eq=False)
class Adaptive(CalibratedMethod):
    """A calibrated release. Every release is Gaussian, with the sum of mu^2 at most 2 rho."""

    parameters: PublicParameters
    constants: Constants
    rho: float
    offers: Offers
    allowance: Allowance

    def __reduce__(self) -> tuple[Callable[..., Adaptive], tuple[PublicParameters, float, Constants]]:
        """A pickled method is calibrated anew: its offers are functions of these three."""
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
        p, offers, c = self.parameters, self.offers, self.constants
        coarse = offers.pairings + _COARSE
        if offers.sample == p.size:
            expected = coarse + steps_of(worth(p) * p.size, p.d, self.rho, c)
            return Reads(expected, offers.most_reads, memory=_memory(p.size, p.d, copies=1))
        # Each gradient may be followed by a Hessian; at a kink there are mean shifts and their counts.
        before = len(c.all_costs) * c.all_attempts * 2 + 2
        most = before + c.tail_sharp[1] + 2 + 1 + 2 * c.polish_rounds + 1
        return Reads(_AFTER_SAMPLE, most, offers.sample, coarse, _memory(offers.sample, p.d, copies=2))

    @property
    def notes(self) -> tuple[str, ...]:
        share, d = self.constants.center_share, self.parameters.d
        m = worth(self.parameters) * self.offers.sample
        if share.needed * d / m**2 <= share.least * self.rho:
            return ()
        reach = "10^3" if m * math.sqrt(self.rho / max(d, 2)) < self.constants.signal_far else "10^5"
        return (f"data more than {reach} spreads away from `center` fail more often than predicted",)

    @property
    def region(self) -> str | None:
        region = self.offers.region
        return None if region is None else "ellipsoid" if region.ellipsoid else "ball"

    def predict(self, spread: float | None = None) -> Prediction:
        spread = self.parameters.assumed_spread if spread is None else spread
        return predict(self.parameters, self.rho, self.constants, spread)

    def run(self, source: Source, tape: Tape) -> MethodResult:
        try:
            return self._run(Questions(self.offers, self.allowance, self.constants, source, tape))
        except NotFound as lost:
            message = f"no median found: {lost}"
        except Exhausted as spent:
            message = f"no median found before the budget was used up ({spent})"
        raise ReleaseFailed(message, self.cost)

    def _run(self, ask: Questions) -> MethodResult:
        locator = Locator(ask)
        located = locator.locate()
        atom = (located.rounds > 0 or locator.is_point(located)) and locator.is_atom(located.center, located.spread)
        if atom and locator.is_point(located):
            return _exactly(locator, located)
        state = State(ask, locator, located, atom)
        while True:
            point = approach(state)
            if point is not None:
                return _exactly(locator, point)
            result = _descended(state)
            if not isinstance(result, Located):
                return result
            # Most records are elsewhere, which is found once at most: there everything begins anew.
            point = state.recentered(result)
            if point is not None:
                return _exactly(locator, point)


def _descended(state: State) -> MethodResult | Located:
    """The end of a run, or a better place to begin."""
    if state.ask.sampled_all:
        return descend(state, found=False)
    if state.sharp:
        # Gradients of the sample would only blur those of all records.
        state.measured.clear()
        return descend(state, found=False)
    return descend(state, found=True) if approach_all(state) else finish(state)


def _exactly(locator: Locator, located: Located) -> MethodResult:
    """Half of the records are one point, to the last digit: nothing is left to do, and the rest is not spent."""
    return exactly(locator.ask, *locator.exactly(located))


def _memory(records: int, d: int, copies: int) -> int:
    """Bytes for the copies of those records that the searches read (ranks are counted on a sorted one), at most.

    Blocks and threads take the same whatever n and d are; the sums of second moments have d(d + 1)/2 numbers.
    """
    return _BESIDE + 8 * d * records * copies + 32 * d * d


def cap(parameters: PublicParameters, rho: float) -> PrivacyCost:
    """The cost for every number of records: the allowance has the same kinds, and as many of each, for all of them."""
    return calibrate(parameters.at_size(PRIVATE_RECORDS_MAX), rho).cost


def calibrate(parameters: PublicParameters, rho: float, constants: Constants = CONSTANTS) -> Adaptive:
    """The releases that cost rho together, at most."""
    offers = Offers.of(parameters, rho, constants)
    return Adaptive(parameters, constants, rho, offers, offers.allowance(rho))
