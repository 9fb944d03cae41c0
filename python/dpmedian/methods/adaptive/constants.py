"""The constants of the default method: one frozen table, one number each, with its reason.

`python benches/tune.py` prints the table; with names it varies these constants and prints what each value does.
Lengths are counted in core radii and in quarter octaves (factors of 2^(1/4)), costs in parts of rho, gradients in n.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["CONSTANTS", "Constants"]


def _constant(value: float, reason: str) -> Any:
    return field(default=value, metadata={"reason": reason})


@dataclass(frozen=True)
class Constants:
    """m is the number of records of the sample, or n if all records are used.

    A query needs a budget of `..._needs`/m^2, times d for a vector, independent of rho. If that is cheap, the query
    gets `single_share` of rho (in a loop `loop_share`), but at most `generous` times what it needs.
    """

    # What a query costs.
    vector_needs: float = _constant(170.0, "the ranks of the center search together, or one mean shift: noise of 0.1 m")
    search_needs: float = _constant(300.0, "the counts of one search for a radius: noise of 0.2 m each")
    count_needs: float = _constant(80.0, "one count in a collapse: noise of 0.08 m")
    curvature_needs: float = _constant(200.0, "the curvature alone: noise of 0.05 m")
    hessian_needs: float = _constant(1200.0, "a Hessian: its eigenvalues to some percent")
    directions_need: float = _constant(30.0, "times d (d + 1): directions that cost something have eigenvalues to 13 %")
    center_share: float = _constant(0.02, "of rho for the center search: far data need more queries than near ones")
    single_share: float = _constant(0.005, "of rho for a search, a Hessian, the first gradient of all records")
    loop_share: float = _constant(0.001, "of rho for each count and mean shift of a collapse")
    generous: float = _constant(8.0, "more than this many times what a query needs tells nothing new")
    search_most: float = _constant(0.08, "of rho for one search, with few records")
    query_most: float = _constant(0.01, "of rho for any other query but gradients and the center")
    half_budget: float = _constant(0.5, "of rho: the most for the center search, and for one collapse")
    decision_share: float = _constant(0.01, "of rho for a count on which the end of the run depends")
    proof_share: float = _constant(0.05, "of rho for the gradient that proves that a nonsmooth point is the median")
    reserve: float = _constant(0.3, "of rho that must be left to begin again or to collapse: below, the run only ends")

    # Shares of the records, and the sample.
    core: float = _constant(0.4, "the core radius holds this share: half could lie scattered without changing it")
    half: float = _constant(0.42, "the share that a collapse follows: the median is there if it is more than half")
    majority: float = _constant(0.55, "a ball with this share holds the median or is near it")
    sample_records: int = _constant(20_000, "show where the data are; all are used up to twice as many")
    sample_signal: float = _constant(250.0, "m sqrt(rho/d) of the sample at least: its queries are then cheap")

    # Collapse.
    shrink: int = _constant(2, "quarter octaves by which a round must shrink the ball")
    misses: int = _constant(2, "rounds in a row that may fail to shrink it, once one has succeeded")
    depth: int = _constant(240, "quarter octaves in all: what is smaller than 2^-60 of the first ball is a point")
    shift_noise: float = _constant(0.6, "of a mean shift, relative to the records in the ball: above, nothing is seen")

    # Belief and descent.
    first_noise: float = _constant(0.15, "of the first gradient, in n: half of what a point one core radius away shows")
    first_share: float = _constant(0.05, "of rho for the first gradient, at most")
    growth: float = _constant(2.0, "factor of the cost after each gradient that agrees with the belief")
    growth_all: float = _constant(8.0, "the same, at most, with all records after a sample: passes count there")
    last_gradients: int = _constant(20, "equal parts of the budget at the end")
    last_many: int = _constant(12, "the same after a sample in many dimensions, where the Hessian takes far longer")
    last_nonsmooth: int = _constant(30, "the same at a nonsmooth point, which needs many steps")
    last_noise: float = _constant(0.6, "of a gradient at the end, in n, at most: few records have fewer parts")
    surprising: float = _constant(2.5, "standard deviations of a chi-square: 0.6 % of the gradients by noise alone")
    patience: int = _constant(3, "surprising gradients in a row before something is done")
    attempts: int = _constant(4, "times that a run may begin again, and react to surprises in one descent")
    bend: float = _constant(0.2, "model error of a gradient: 0.2 n (distance / core radius)^2")
    bias: float = _constant(0.5, "relative error of the Hessian per core radius of smoothing or distance")
    least_smoothing: float = _constant(0.02, "core radii: below it the records are too few to be smooth")
    most_smoothing: float = _constant(0.6, "core radii: above it the Hessian is that of another place")
    stiffer: float = _constant(2.0, "variances added to squared eigenvalues: too soft overshoots, too stiff is slow")
    far: float = _constant(0.35, "squared gradient norm over n^2 of a point away from all records")
    pull: float = _constant(0.03, "mean gradient over n that no median has, if it is above four standard errors")
    near: int = _constant(12, "quarter octaves below the core radius in which a nonsmooth point is looked for")
    nearer: int = _constant(8, "quarter octaves below that: the ball in which its records stay")
    stays: float = _constant(0.55, "of them stay there at a nonsmooth point: a line of records keeps a quarter")

    # Few records, see evidence.py.
    few: float = _constant(48.0, "n sqrt(rho/d) d^(1/4) below which gradients alone do not tell far from near")
    odds_lost: float = _constant(-2.0, "log odds of a cloud below which a run fails if its gradients are long, too")
    odds_doubted: float = _constant(7.0, "log odds of a cloud below which the result has a note")

    # Predictions, see prediction.py.
    overhead: float = _constant(1.04, "excess over that of one gradient with all of rho, with many records")
    few_dimensions: float = _constant(30.0, "over d n sqrt(rho/d) is added: few dimensions average less")
    small_signal: float = _constant(17.0, "n sqrt(rho/d) at which the excess is twice that, in many dimensions")
    far_signal: float = _constant(2.6, "n sqrt(rho/d) per root of an octave at which half of the searches fail")
    far_octaves: float = _constant(12.0, "octaves of the search that count without a radius: data are rarely farther")
    far_width: float = _constant(2.2, "standard deviation of the normal distribution of that signal, on the line")


CONSTANTS = Constants()
