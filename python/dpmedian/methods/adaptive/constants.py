"""The constants of the default method: one frozen table, in which every number has its reason.

`python benches/tune.py` prints the table. With names as arguments, it varies these constants and prints the effect of
each value. This package has no other constants except the limits of doubles, which Python and the core define. Lengths
are in core radii and in quarter octaves (factors of 2^(1/4)), costs are relative to rho, and gradient norms are
relative to n.
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

    A query needs a budget of `needs`/m^2, times d for a vector, for any rho. If this is a small part of rho, the query
    gets `single_share` of rho (in a loop only what it needs), but at most `generous` times what it needs.
    """

    # What a query costs.
    needs: float = _constant(170.0, "a vector has noise of 0.11 m, a count of 0.05 m, one of a search of 0.3 m")
    generous: float = _constant(8.0, "times what a query needs, or a gradient had last: more tells nothing new")
    single_share: float = _constant(0.005, "of rho for a search, a Hessian, the first gradient of all records")
    center_share: float = _constant(0.02, "of rho for the center search: far data need more queries than near ones")
    query_most: float = _constant(0.01, "of rho for a query, at most, but for gradients and searches")
    search_most: float = _constant(0.06, "of rho for a search, for the first gradient, and for that of a proof")
    half_budget: float = _constant(0.5, "of rho: the most for the center search, and for one collapse")
    reserve: float = _constant(0.3, "of rho that must be left to begin again or to collapse: below, the run only ends")

    # How often queries are made, and what searches expect.
    uses: int = _constant(256, "of one kind of query at most: no run comes near, and it bounds discretization")
    center_queries: int = _constant(80, "noisy ranks of the center search: far data take more than sixty")
    search_queries: int = _constant(32, "noisy counts of a search for a radius: near data take ten")
    likely_octaves: float = _constant(8.0, "of the core radius and of the distance from the center before a search")
    elsewhere: float = _constant(0.01, "posterior mass outside of the result with which a search for a radius stops")
    many_dimensions: int = _constant(128, "second moments take most of the time: they are released once, if at all")

    # Shares of the records, and the sample.
    core: float = _constant(0.4, "the core radius holds this share: half could lie scattered without changing it")
    half: float = _constant(0.42, "the share that a collapse follows: the median is there if it is more than half")
    majority: float = _constant(0.55, "a ball with this share holds the median or is near it")
    sample_records: int = _constant(20_000, "show where the data are; all are used up to twice as many")
    sample_signal: float = _constant(250.0, "m sqrt(rho/d) of the sample at least: its queries are then cheap")

    # Collapse.
    shrink: int = _constant(2, "quarter octaves by which a round must shrink the ball")
    depth: int = _constant(240, "quarter octaves in all: what is smaller than 2^-60 of the first ball is a point")

    # Belief and descent.
    growth: float = _constant(2.0, "factor of the cost after each gradient that agrees with the belief")
    last_gradients: int = _constant(26, "equal parts of the budget at the end")
    most_noise: float = _constant(0.6, "of a vector, relative to the records that it is about: above, nothing is seen")
    surprising: float = _constant(2.5, "standard deviations, which noise alone exceeds in 0.6 % of the cases")
    patience: int = _constant(3, "surprises, or rounds that fail, before something is done; and times that it is done")
    rounds: int = _constant(2, "times that a regression is repeated around the point that it found")
    bend: float = _constant(0.2, "model error of a gradient: 0.2 n (distance / core radius)^2")
    bias: float = _constant(0.5, "relative error of the Hessian per core radius of smoothing or distance")
    most_smoothing: float = _constant(0.6, "core radii: above it the Hessian is that of another place")
    clump: float = _constant(0.2, "of the curvature, within the smoothing radius: a smooth cloud has less there")
    far: float = _constant(0.35, "squared gradient norm over n^2 of a point away from all records")
    pull: float = _constant(0.03, "mean gradient over n that no median has, if it is not noise")
    near: int = _constant(8, "quarter octaves below the core radius, and below that, in which records may stay")

    # Few records, see evidence.py.
    few: float = _constant(48.0, "n sqrt(rho/d) d^(1/4) below which gradients alone do not tell far from near")
    odds_doubted: float = _constant(5.0, "log odds of a cloud below which the result has a note")
    place: float = _constant(0.06, "core radii of a single place: its gradients are long")
    place_steepness: float = _constant(12.0, "how much faster the counts around a place grow than those of a cloud")

    # Predictions, see prediction.py.
    few_dimensions: float = _constant(30.0, "over d n sqrt(rho/d) is added to the excess: few dimensions average less")
    small_signal: float = _constant(17.0, "n sqrt(rho/d) at which the excess doubles, in many dimensions")
    far_signal: float = _constant(2.6, "n sqrt(rho/d) per root of an octave at which half of the searches fail")
    far_octaves: float = _constant(13.0, "octaves of the search that count without a radius: data are rarely farther")
    far_later: float = _constant(0.3, "times log(d): that signal is larger in many dimensions")
    other_reads: int = _constant(6, "of the records, beside the center search and the last gradients, on a cloud")
    memory: int = _constant(1 << 24, "bytes that a run takes for few records in few dimensions, with room")


CONSTANTS = Constants()
