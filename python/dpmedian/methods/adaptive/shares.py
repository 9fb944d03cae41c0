"""How the default method splits rho between its stages.

What a search needs falls as 1/n^2, so with many records nearly all goes to the descent.
"""

from __future__ import annotations

import math

from dpmedian.mechanisms.coordinates import CoordinateSearch
from dpmedian.mechanisms.distance import Curvature, DistanceCount, DistanceSearch
from dpmedian.mechanisms.gradient import NoisyGradient
from dpmedian.mechanisms.pairs import PairCount, PairSearch
from dpmedian.methods.adaptive.constants import CONSTANTS, Constants
from dpmedian.methods.adaptive.stages import Adaptive, Recentring
from dpmedian.parameters import PublicParameters

__all__ = ["calibrate"]


def calibrate(parameters: PublicParameters, rho: float, constants: Constants = CONSTANTS) -> Adaptive:
    """The stages that cost rho together."""
    n, d, c = parameters.n, parameters.d, constants
    for_scale = c.scale_share.of(rho, n)
    for_center = c.center_share.of(rho, n, d)
    for_initial = c.initial_share.of(rho, n)
    for_curvature = c.curvature_share.of(rho, n)
    for_step = c.recentring_step.of(rho, n, d)
    for_check = c.recentring_check.of(rho, n)
    # The mean shift of a round has a noise of sqrt(2 d/rho) on the sum, by a sensitivity of 2.
    noise = math.sqrt(2.0 * d / for_step) / n
    affordable = int(c.recentring_most * rho / (for_step + for_check))
    rounds = min(c.recentring_rounds, affordable) if noise <= c.recentring_noise else 0
    for_spread = c.spread_share.of(rho, n) if rounds else 0.0
    needed = c.duplicates_needed / n**2
    for_duplicates = needed if needed <= c.duplicates_most * rho else 0.0
    left = rho - for_scale - for_center - for_initial - rounds * (for_step + for_check) - for_spread - for_duplicates
    left -= for_curvature
    approach = c.approach_steps * c.approach_weight
    weight = approach / (approach + c.descent_steps)

    low, high = c.exponents
    halves_low, halves_high = c.halves
    if parameters.radius is not None:
        high = min(high, math.frexp(parameters.radius)[1] + 1)
        halves_high = max(2 * high + 1, halves_low)
    if parameters.resolution is not None:
        low = max(low, math.frexp(parameters.resolution)[1] - 1)
    low = min(low, high)
    pairings = min(max(math.ceil(c.pair_sample / n), 1), c.pairings_most)
    pairs = n // 2 * pairings
    recentring = None
    if rounds:
        recentring = Recentring(
            step=NoisyGradient.of("recentring", rounds * for_step, parameters, releases=rounds),
            check=DistanceCount.of("recentring counts", rounds * for_check, parameters, releases=rounds),
            spread=DistanceSearch(
                *c.spread_window,
                stride=1,
                amplitude=c.spread_amplitude * n,
                prior_width=c.search_prior,
                count=DistanceCount.of("spread", for_spread, parameters, releases=c.spread_questions),
            ),
        )
    return Adaptive(
        parameters=parameters,
        constants=c,
        rho=rho,
        scale=PairSearch(
            low,
            high,
            target=c.pair_target * (n // 2) * pairings,
            amplitude=c.scale_amplitude * pairs,
            prior_width=c.scale_prior,
            count=PairCount.of("pair scale", for_scale, parameters, pairings=pairings, releases=c.scale_questions),
        ),
        center=CoordinateSearch.of("center", for_center, parameters, releases=c.center_questions),
        initial_spread=DistanceSearch(
            halves_low,
            halves_high,
            stride=2,
            amplitude=c.initial_amplitude * n,
            prior_width=c.search_prior,
            count=DistanceCount.of("initial spread", for_initial, parameters, releases=c.initial_questions),
        ),
        recentring=recentring,
        duplicates=DistanceCount.of("duplicates check", for_duplicates, parameters, releases=1)
        if for_duplicates
        else None,
        curvature=Curvature.of("curvature", for_curvature, parameters),
        approach=NoisyGradient.of("approach", weight * left, parameters, releases=c.approach_steps),
        descent=NoisyGradient.of("descent", (1.0 - weight) * left, parameters, releases=c.descent_steps),
    )
