"""The calibrated default method: its stages, its predicted error, and its run. Proof: adaptive.md."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from dpmedian import rates
from dpmedian.accounting import PrivacyCost
from dpmedian.mechanisms.hessian import MOMENTS_DIMENSION
from dpmedian.mechanisms.spender import Allowance, Exhausted
from dpmedian.methods.adaptive.constants import CONSTANTS, Constants
from dpmedian.methods.adaptive.prediction import octaves_within, predict
from dpmedian.methods.adaptive.queries import SAMPLED_DIMENSIONS, Offers, Queries, hessian_plan, last_gradients
from dpmedian.methods.adaptive.run import Run
from dpmedian.methods.adaptive.start import NotFound
from dpmedian.methods.contract import CappedMethod, Prediction, Reads, sensitivity_gain
from dpmedian.parameters import PRIVATE_RECORDS_MAX, PublicParameters
from dpmedian.release import MethodResult, ReleaseFailed
from dpmedian.sources.protocol import Source
from dpmedian.tape import Tape

__all__ = ["Adaptive", "calibrate", "cap"]


@dataclass(frozen=True, eq=False)
class Adaptive(CappedMethod):
    """A calibrated default method. Every release is Gaussian, and the sum of mu^2 is at most 2 rho."""

    parameters: PublicParameters
    constants: Constants
    rho: float
    offers: Offers
    allowance: Allowance

    def __reduce__(self) -> tuple[Callable[..., Adaptive], tuple[PublicParameters, float, Constants]]:
        """Pickle the arguments of `calibrate` only, because the offers contain functions, which cannot be pickled."""
        return calibrate, (self.parameters, self.rho, self.constants)

    @property
    def passes(self) -> float:
        reads = self.reads
        return reads.expected + reads.sample_expected * reads.sample / self.parameters.size

    @property
    def reads(self) -> Reads:
        p, c, sample, most = self.parameters, self.constants, self.offers.sample, self.offers.most_reads
        last, before = last_gradients(p, self.rho, c, sample), c.center_queries + c.other_reads
        # An upper bound: the sample, a sorted copy of it for ranks, points and gradients, and second moments.
        memory = c.memory + rates.copy_bytes(sample, p.d, sampled=sample < p.size)
        memory += rates.answer_bytes(p.d, moments=p.d <= MOMENTS_DIMENSION)
        seconds = rates.search_seconds(sample, p.d) + rates.answer_seconds(before + last)
        seconds += rates.pass_seconds(sample, p.d, c.other_reads)
        if sample == p.size:
            seconds += rates.pass_seconds(p.size, p.d, last + 1) + self._moments_seconds(p.size, p.size, 2)
            return Reads(before + last, most, memory=memory, seconds=seconds)
        seconds += rates.pass_seconds(p.size, p.d, c.other_reads + last + 1)
        region, hessian = self.offers.region, sample if p.d > SAMPLED_DIMENSIONS else p.size
        seconds += self._moments_seconds(hessian, sample if region is not None and region.cost else p.size, 1)
        return Reads(c.other_reads + last, most, sample, before, memory, seconds)

    def _moments_seconds(self, of_hessian: int, of_directions: int, hessians: int) -> float:
        """The seconds for sums of second moments: of Hessians, and of the directions for a confidence region."""
        p, region, directions = self.parameters, self.offers.region, 0
        if not hessian_plan(p, self.constants, self.rho, of_hessian).moments:
            hessians = 0
        if region is not None and region.weight:
            directions = last_gradients(p, self.rho, self.constants, self.offers.sample) if region.every else 1
        seconds = rates.second_moment_seconds
        return hessians * seconds(of_hessian, p.d) + directions * seconds(of_directions, p.d)

    @property
    def notes(self) -> tuple[str, ...]:
        p, c = self.parameters, self.constants
        signal, most = sensitivity_gain(p) * p.size * math.sqrt(self.rho / p.d), p.failure_probability
        octaves = octaves_within(signal, p.d, most, c)
        if octaves > (2.0 if p.radius is None else 1.0) * c.far_octaves:
            return ()
        if p.radius is None:
            reach = math.floor(c.far_octaves * math.log10(2.0))
            return (f"data more than 10^{reach} core radii away from `center` fail more often than predicted",)
        return (
            f"fails with a probability of at most {most:g} if the core radius of the data (the radius of the "
            "ball around the median that contains 40 % of the records) is at least "
            f"{p.radius / 2.0**octaves:.3g} (the radius divided by {2.0**octaves:.3g}); a smaller "
            "radius, or a resolution= of a tenth of the core radius, would make the plan more precise",
        )

    @property
    def region(self) -> str | None:
        region = self.offers.region
        return None if region is None else "ellipsoid" if region.ellipsoid else "ball"

    def predict(self, core_radius: float | None = None) -> Prediction:
        core_radius = self.parameters.assumed_core_radius if core_radius is None else core_radius
        return predict(self.parameters, self.rho, self.constants, core_radius)

    def among(self, source: Source, tape: Tape) -> MethodResult:
        """Return the median, or if the gradients do not vanish, another point among the records."""
        return self.run(source, tape, anywhere=True)

    def run(self, source: Source, tape: Tape, anywhere: bool = False) -> MethodResult:
        queries = Queries(self.offers, self.allowance, self.constants, source, tape)
        try:
            return Run(queries).run()
        except NotFound as lost:
            if anywhere and lost.near is not None:
                return lost.near
            message = f"no median found: {lost}"
        except Exhausted as spent:
            message = f"no median found before the budget was used up ({spent})"
        message = f"{message}; use more records or a larger budget"
        raise ReleaseFailed(message, self.cost, ran=queries.spender.cost)


def cap(parameters: PublicParameters, rho: float) -> PrivacyCost:
    """The cost for every number of records. The kinds of queries and their largest numbers do not depend on it."""
    return calibrate(parameters.at_size(PRIVATE_RECORDS_MAX), rho).cost


def calibrate(parameters: PublicParameters, rho: float, constants: Constants = CONSTANTS) -> Adaptive:
    """Calibrate the queries so that together they cost at most rho."""
    offers = Offers.of(parameters, rho, constants)
    return Adaptive(parameters, constants, rho, offers, offers.allowance(rho))
