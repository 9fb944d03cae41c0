"""The constants of the default method: one frozen table, in which every number has its reason.

`python benches/tune.py` prints the table. If names of constants are given as arguments, the program varies these
constants and prints the effect of each value. Lengths are in core radii and in quarter octaves (factors of 2^(1/4)),
costs are relative to rho, and gradient norms are relative to n.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["CONSTANTS", "Constants"]


def _constant(value: float, reason: str) -> Any:
    return field(default=value, metadata={"reason": reason})


@dataclass(frozen=True)
class Constants:
    """The constants. In the reasons, m is the number of records of the sample, or n if all records are used.

    A query needs a budget of `needs`/m^2, or `needs` d/m^2 for a vector, for any rho. If this is a small part of rho,
    the query gets more, namely `single_share` of rho, but at most `generous` times what it needs. In a loop a query
    gets only what it needs.
    """

    # The cost of a query.
    needs: float = _constant(170.0, "which gives noise of 0.11 m to a vector, 0.05 m to a count, and 0.3 m in a search")
    generous: float = _constant(8.0, "the largest cost relative to the needs of a query or to the last gradient")
    single_share: float = _constant(0.005, "of rho for a search, a Hessian, or the first gradient of all records")
    center_share: float = _constant(0.02, "of rho for the center search: data far from the center need more queries")
    query_most: float = _constant(0.01, "of rho, the largest cost of a query that is neither a gradient nor a search")
    search_most: float = _constant(0.06, "of rho, the largest cost of a search, the first gradient, or `exact_point`")
    half_budget: float = _constant(0.5, "of rho, the largest cost of the center search, and of one collapse")
    reserve: float = _constant(0.3, "of rho must be left for a restart or a collapse; with less, the run ends")

    # How often queries are made, and what searches expect.
    uses: int = _constant(256, "queries of a kind at most: no run needs more, and the discretization is bounded")
    center_queries: int = _constant(80, "noisy ranks of the center search: data far away need more than sixty")
    search_queries: int = _constant(32, "noisy counts of a search for a radius: ten suffice if the data are near")
    likely_octaves: float = _constant(8.0, "octaves of the prior for the core radius and the distance from the center")
    elsewhere: float = _constant(0.01, "posterior mass outside of its result at which a search for a radius stops")
    many_dimensions: int = _constant(128, "above which second moments take most of the time: one is released at most")

    # Shares of the records, and the sample.
    core: float = _constant(0.4, "the share within the core radius: almost half of the records may be outliers")
    half: float = _constant(0.42, "the share that a collapse follows: an atom with more than half is the median")
    majority: float = _constant(0.55, "a ball with this share holds the median or is near it")
    sample_records: int = _constant(20_000, "in the sample that finds the data; up to twice as many need no sample")
    sample_signal: float = _constant(250.0, "m sqrt(rho/d) of the sample at least: then its queries are cheap")

    # Collapse.
    shrink: int = _constant(2, "quarter octaves by which a round must shrink the ball")
    depth: int = _constant(240, "quarter octaves of a collapse: below 2^-60 of the first ball is a point")

    # Belief and descent.
    growth: float = _constant(2.0, "factor of the cost after each gradient that agrees with the belief")
    last_gradients: int = _constant(26, "equal gradients, into which the rest of the budget is divided at the end")
    most_noise: float = _constant(0.6, "the largest useful noise of a vector, relative to the number of its records")
    surprising: float = _constant(2.5, "standard deviations; noise alone exceeds this in 0.6 % of the cases")
    patience: int = _constant(3, "surprises or failed rounds before the run reacts, and reactions at most")
    bend: float = _constant(0.5, "model error of a gradient: 0.5 n (distance / core radius)^2")
    bias: float = _constant(0.5, "the relative error of the Hessian for each core radius of smoothing or distance")
    most_smoothing: float = _constant(0.6, "core radii; with more smoothing the Hessian would include distant records")
    clump: float = _constant(0.2, "of the curvature from records within the smoothing radius: a smooth cloud has less")
    far: float = _constant(0.35, "squared gradient norm over n^2 of a point that lies away from all records")
    pull: float = _constant(0.03, "mean gradient over n, beyond its noise, that no median has")
    near: int = _constant(8, "quarter octaves by which a ball shrinks when the run checks whether records stay in it")

    # Few records, see evidence.py.
    few: float = _constant(48.0, "n sqrt(rho/d) d^(1/4) below which gradients alone do not tell near from far")
    rounds: int = _constant(2, "times that the center of a cloud is fitted again, around the center found before")
    odds_doubted: float = _constant(5.0, "log odds of a cloud below which the result gets a note")
    place: float = _constant(0.06, "core radii, the size of an atom in the test of evidence.py")
    place_steepness: float = _constant(12.0, "how much faster counts grow around an atom than around a cloud")

    # Predictions, see prediction.py.
    few_dimensions: float = _constant(30.0, "divided by d n sqrt(rho/d), added to the excess in few dimensions")
    small_signal: float = _constant(17.0, "n sqrt(rho/d) at which the excess is twice its limit, in many dimensions")
    far_signal: float = _constant(2.6, "n sqrt(rho/d) per root of an octave at which half of the searches fail")
    far_octaves: float = _constant(13.0, "octaves of a search that count without a radius: data are rarely farther")
    far_later: float = _constant(0.3, "times log(d): `far_signal` is larger in many dimensions")
    other_reads: int = _constant(6, "passes on a cloud, without the center search and the last gradients")
    memory: int = _constant(1 << 24, "bytes that a run takes at most for few records in few dimensions")


CONSTANTS = Constants()
