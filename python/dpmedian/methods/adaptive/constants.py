"""The constants of the default method: one frozen table, each with its reason.

A constant is *derived* (a formula or a fact about doubles gives it), *simulated* (chosen by measurement: the command
`python benches/tune_adaptive.py` varies it on named data sets and prints what each value does), or a *safety factor*
(chosen on the careful side; nothing was optimised)."""

# ruff: noqa: RUF009 - the three functions below make dataclass fields.
from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

__all__ = ["CONSTANTS", "Constants", "Share"]


class Share(NamedTuple):
    """What a stage gets of rho: `needed`/m^2, or where that is cheap more.

    What a search needs to tell a fraction of m records from its noise does not depend on rho, and falls as 1/m^2. A
    stage gets `least` of rho if that is more than it needs, though no more than `generous` times what it needs, and
    never more than `most` of rho.
    """

    needed: float
    least: float
    most: float
    questions: int = 1
    generous: float = 4.0

    def of(self, rho: float, m: float, dimensions: int = 1) -> float:
        """`needed` is multiplied by the dimension where the noise is that of a vector."""
        needed = self.needed * dimensions / m**2
        return min(self.generous * needed, max(needed, self.least * rho), self.most * rho)


def _derived(default: Any, reason: str) -> Any:
    return field(default=default, metadata={"kind": "derived", "reason": reason})


def _simulated(default: Any, reason: str) -> Any:
    return field(default=default, metadata={"kind": "simulated", "reason": reason})


def _safety(default: Any, reason: str) -> Any:
    return field(default=default, metadata={"kind": "safety factor", "reason": reason})


@dataclass(frozen=True)
class Constants:
    """Distances are counted in quarter octaves, factors of 2^(1/4); "the spread" is the distance of `core`.

    m is the number of records of the sample, or n where all records are used. The noise of a gradient is counted in n.
    """

    # Sample.
    sample: int = _simulated(20_000, "records that show where the data are; all are used up to twice as many")
    sample_signal: float = _safety(400.0, "m sqrt(rho/d) of the sample at least: its stages are then cheap")

    # Searches.
    sure: float = _simulated(0.01, "a search stops when less is in doubt; 1e-3 costs more and finds no more")
    pair_target: float = _derived(
        0.44,
        "share of pairs that the scale must cover: between the pairs within the clusters of a 60/40 mixture (52 %) and "
        "those within 60 % of equal records (36 %)",
    )
    pair_sample: int = _safety(20_000, "pairs that are counted: their sampling then hardly matters beside the noise")
    pairings_most: int = _safety(16, "pairings of few records are not independent, so more of them add little")
    exponents: tuple[int, int] = _derived((-1022, 1001), "powers of two that a distance between doubles can have")
    scale_share: Share = _simulated(Share(480.0, 0.005, 0.12, 48), "the least budget at which the search rarely errs")
    scale_amplitude: float = _simulated(0.35, "of the pairs: by how much a count usually misses its target")
    scale_prior: float = _safety(32.0, "octaves around 1 that are likely beforehand")
    center_share: Share = _simulated(
        Share(170.0, 0.035, 0.5, 80, generous=1e4),
        "`needed` is multiplied by d; it finds centers up to 10^5 spreads away, and up to 10^9 where `least` applies. "
        "With less, more runs begin at the smaller of two values where the larger has 58 % of the records",
    )
    center_of_sample: float = _simulated(
        0.015, "of rho at least for the center of a sample: its signal is 400 and more"
    )
    scale_signal: tuple[float, float] = _simulated(
        (40.0, 17.0),
        "m sqrt(rho/d) below which pairs are not asked, and the center is searched to the last question",
    )
    center_sure: float = _safety(
        0.2, "of the posteriors outside of the intervals that must shrink for another question"
    )
    center_likely: tuple[float, float, float] = _simulated(
        (4.0, 8.0, 4.0),
        "octave and width in octaves of a center that is likely where the scale is unknown; octaves below a radius",
    )
    center_doubt: int = _simulated(3, "octaves by which the center is then less known than the spread is large")
    center_resolution: float = _safety(1.0 / 256.0, "cells below this fraction of scale/sqrt(d) are not divided")
    center_width: tuple[float, float] = _simulated(
        (0.25, 5.0), "the center is found when it is known to 1/4 of the scale, or to 5 over m sqrt(rho/d) of it"
    )
    core: float = _derived(
        0.4, "of the records within the spread: fewer than half, so that a scattered half does not hide the rest"
    )
    halves: tuple[int, int] = _derived((-2036, 2036), "half octaves whose reciprocals are normal doubles")
    initial_share: Share = _simulated(Share(300.0, 0.005, 0.08, 32), "the least budget at which the search rarely errs")
    initial_amplitude: float = _simulated(0.3, "of the records: by how much a count usually misses its target")
    search_prior: float = _safety(8.0, "steps of the searches for a spread that are likely beforehand")
    spread_share: Share = _simulated(
        Share(200.0, 0.005, 0.04, 16, generous=8.0),
        "with half of it, a cluster of 45 % is taken for 40 % at many radii",
    )
    spread_amplitude: float = _simulated(0.2, "of the records: by how much a count usually misses its target")
    spread_window: tuple[int, int] = _safety((-12, 8), "quarter octaves around the last radius")
    far_window: int = _safety(-24, "the same downwards, where the last radius was that of a place far away")

    # Recentring.
    recentring_step: Share = _simulated(
        Share(90.0, 0.001, 0.01, 1, math.inf), "what a mean shift gets; `needed` is multiplied by d"
    )
    recentring_check: Share = _simulated(
        Share(80.0, 0.0003, 0.02, 1, math.inf), "what the count before a mean shift gets"
    )
    recentring_most: tuple[float, float] = _safety(
        (0.1, 0.5), "of rho for all rounds together, and for those that shrank the spread four times"
    )
    recentring_keeps: float = _safety(0.3, "of rho must be left for another round")
    recentring_noise: float = _safety(0.45, "relative to m: shifts with more noise would lose what the center found")
    recentring_window: tuple[int, int] = _safety((-40, 4), "quarter octaves by which a round may shrink the spread")
    half: float = _simulated(0.42, "of the records stay: 0.4 follows a cluster of 40 %, 0.5 misses one half")
    shrink: int = _simulated(4, "quarter octaves by which the spread must shrink for a round to be accepted")
    lost_share: float = _safety(0.2, "of the records within the radius: fewer mean that it is too small")
    least_share: float = _safety(0.35, "of the records by which the sum of a mean shift is divided at least")
    widen: int = _safety(6, "quarter octaves by which the radius grows when it holds less than `lost_share`")
    misses: int = _safety(2, "rounds that may miss when the recentring is repeated, with twice the budget")

    # Equal records.
    atom_share: Share = _simulated(Share(1250.0, 0.0, 0.015), "a count that tells half of the records from fewer")
    atom_radius: int = _simulated(8, "quarter octaves above the pair scale: a larger spread is no point")
    atom_far: tuple[tuple[int, float], ...] = _simulated(
        ((40, 0.05), (28, 0.2)),
        "or 5 % of the records lie 40 quarter octaves beyond, or 20 % lie 28 beyond: they decide the sum of distances",
    )
    resolvable: int = _derived(50, "octaves below a point in which doubles beside it have no neighbours")
    smallest: tuple[int, int, int] = _derived(
        (-985, -3940, -1010),
        "octaves, quarter octaves and exponents near the end of the doubles: all is one point there",
    )

    # Approach.
    first_noise: float = _simulated(0.15, "of the first gradient, unless that costs more than `first_most`")
    first_most: float = _simulated(0.05, "of rho for the first gradient")
    growth: float = _simulated(2.0, "by which the cost of a gradient grows whenever one is settled")
    approach_steps: int = _safety(40, "gradients of the approach, at most")
    approach_most: float = _safety(0.5, "of rho for the approach")
    approach_last: float = _safety(0.5, "of what is left: no gradient of the approach is more expensive")
    stall: float = _simulated(2.5, "deviations of a chi-square above its mean that noise alone explains")
    memory: float = _simulated(0.2, "precision relative to the last gradient below which an older one is forgotten")
    memory_all: float = _simulated(0.02, "the same with gradients of all records")
    trust: float = _simulated(4.0, "in a plain step against acceleration, while not settled")
    longest: float = _safety(1.0, "spreads of one step")
    damping: tuple[float, float, float, float] = _simulated(
        (1.1, 1.5, 0.4, 1.0), "a step in Newton steps: 1.1 - 1.5 noise, between 0.4 and 1"
    )
    patience: int = _simulated(3, "unsettled steps before the spread and the Hessian are measured again")
    measures: int = _safety(2, "times that they are measured again without a better center")
    measures_keep: float = _safety(0.6, "of rho must be left for that")
    majority: tuple[float, float, int] = _simulated(
        (0.55, 0.015, 12),
        "share of the records that a ball must hold to have the median, the gradient over n from which a smaller "
        "cluster is doubted, and the quarter octaves by which that ball must be larger",
    )
    majority_cost: float = _simulated(0.05, "of rho to search for that ball, wherever it ends")
    majority_keeps: float = _safety(0.25, "of rho must be left in the descent to begin anew in a larger cluster")
    height: float = _simulated(0.03, "squared gradient over n^2 above which unsettled means far away")
    high: float = _simulated(0.2, "the same above which equal records are looked for")
    far: float = _simulated(0.35, "the same where all records pull one way: the spread is measured at once")
    far_steps: int = _safety(8, "the first steps, for which that is done")
    cloud: float = _simulated(1.15, "curvature of a cloud in units of (1 - 1/d) n/spread, before it is measured")

    # Hessian.
    curvature_share: Share = _simulated(Share(200.0, 0.005, 0.03), "a curvature alone: a noise of a few percent")
    hessian_share: tuple[float, float] = _simulated(
        (600.0, 0.01), "needed for a Hessian with second moments, times d/n^2, and the most of rho"
    )
    hessian_sample: tuple[float, float] = _simulated((4000.0, 0.005), "the same on a sample of m, where it is cheap")
    hessian_most: int = _safety(3, "Hessians with second moments in the approach, at most")
    before_hessian: tuple[float, float] = _simulated(
        (0.05, 0.02), "noise, or share of rho, of the gradient that must be settled before the second moments"
    )
    smoothing: tuple[float, float] = _simulated(
        (0.25, 0.6),
        "the smoothing radius in spreads: 0.2 hides soft directions in noise, and 0.3 makes flat data too soft",
    )
    smoothing_sample: float = _simulated(0.2, "the least one on a sample")
    smoothing_all: float = _simulated(0.01, "the least one with all records")
    edge: float = _simulated(
        0.25, "noise of the second moments, as their largest eigenvalue, relative to the curvature"
    )
    edge_all: float = _simulated(0.03, "the same with all records")
    useless: tuple[float, float] = _simulated(
        (0.5, 0.22),
        "such a noise at the largest smoothing radius: the second moments are left out; where they are more than the "
        "records, earlier, for they take most of the time",
    )
    careful: float = _simulated(2.0, "variances over an eigenvalue added to it: too soft overshoots, too stiff is slow")
    hessian_all: tuple[float, float] = _simulated(
        (2e7, 0.005), "with all records: needed, times d/n^2, and the most of rho"
    )
    bias: float = _safety(0.5, "of the Hessian per smoothing radius in spreads: by how much smoothing may change it")

    # Confidence region.
    region_curvature: Share = _simulated(
        Share(800.0, 0.008, 0.013, generous=16.0),
        "a curvature alone to some percent, and better in many dimensions, where lengths vary less: times d",
    )
    region_hessian: Share = _simulated(
        Share(1_500.0, 0.014, 0.021, generous=16.0), "eigenvalues and the curvature to some percent, times d + 1"
    )
    region_directions: Share = _simulated(
        Share(30.0, 0.008, 0.014, generous=16.0),
        "eigenvalues to 13 %, and where it is cheap to 3 %, times d^2 (d + 1), where the directions are not free",
    )
    carrier: tuple[float, float] = _safety(
        (0.7, 0.8),
        "of rho for the gradient that carries the directions: over the steps of a descent, and after a sample",
    )
    least_weight: float = _derived(2.0**-20, "of the directions: the core rounds weights down to multiples of 2^-30")
    many_dimensions: int = _safety(
        128,
        "from which on second moments take time: only one gradient carries the directions, and eigenvectors are "
        "computed only where something stands out of the noise",
    )
    region_edge: tuple[float, float] = _simulated(
        (0.15, 0.36), "noise of the second moments, as `edge`, for an ellipsoid, and for a ball, which needs them less"
    )
    region_noise: float = _simulated(0.06, "of the curvature, in units of the smoothing radius")

    # All records after a sample.
    all_costs: tuple[float, float] = _simulated((0.005, 0.026), "of rho for the first two gradients of all records")
    all_left: tuple[float, float] = _simulated(
        (10.0, 2.0),
        "variances of its noise that errors of the Hessian may leave of the first one, in place of one, where the "
        "eigenvalues of the Hessian differ by less than a factor of 2",
    )
    all_attempts: int = _safety(4, "times that each of them is repeated while they leave more")
    all_keeps: float = _safety(0.75, "of rho that is left when they are no longer repeated")
    sample_most: float = _simulated(0.005, "of rho for a gradient of the sample")
    kink_all: tuple[float, float, float, float] = _simulated(
        (0.01, 0.1, 1.2, 4.3),
        "of rho for a count near the center, but 0.1/d, whose noise is that of a gradient; deviations of its noise "
        "from which on a second one is asked, and of both together from which on records coincide",
    )

    # Descent on all records.
    tail: tuple[float, int, int] = _simulated((6.5, 4, 20), "steps: n sqrt(rho/d)/6.5, between 4 and 20")
    tail_sharp: tuple[int, int] = _simulated((24, 20), "steps where many records coincide, and after a sample")
    again: tuple[float, float] = _simulated((0.4, 0.35), "of the steps have 0.35 of the budget; then the Hessian again")
    mean: float = _simulated(16.0, "trust in the mean against the least gradient, in the descent and at its end")
    heat: tuple[float, float] = _simulated(
        (2.0, 2.5), "decrement over its noise, and deviations above, from which on a kink is looked for"
    )
    heat_of: int = _safety(4, "decrements at least, and steps that are left, for a kink or a Hessian again")
    heat_keeps: float = _safety(0.3, "of rho must be left for that Hessian")
    kink: tuple[int, int, float] = _simulated((12, 8, 0.01), "radius of a kink, its half, and the share of each count")
    kink_stays: float = _simulated(0.55, "of the records within a quarter of the radius: a line of records loses more")
    kink_seen: float = _simulated(1.5, "deviations of the noise that a kink must have")
    pulled: tuple[float, float] = _simulated(
        (0.03, 4.0), "of n, and deviations of the noise: a longer mean gradient at the end is that of another place"
    )
    late_height: float = _simulated(0.15, "squared gradient over n^2 above which equal records are looked for, once")
    polish: tuple[float, float, float] = _simulated(
        (0.005, 0.1, 0.05), "of rho for a mean shift towards a kink, the most noise of it, and the share of its proof"
    )
    polish_rounds: int = _safety(60, "mean shifts towards a kink")
    polish_keeps: float = _safety(0.4, "of rho that is left when they end")

    # Failure and error radius.
    lost: float = _simulated(0.35, "squared mean gradient over n^2 above which the point is not near a median")
    few: float = _simulated(
        48.0,
        "n sqrt(rho/d), over the fourth root of d, below which all answers are compared with those of a cloud and of a "
        "single place: in more dimensions gradients alone tell more",
    )
    lost_few: float = _simulated(
        0.25, "the same with few records, where the odds of a cloud must be below `odds_lost`, too"
    )
    odds_lost: float = _simulated(
        -2.0, "logarithm of the odds of a cloud below which such a point is not near a median"
    )
    odds_doubted: float = _simulated(10.0, "logarithm of the odds of a cloud below which a point has a note")
    size_doubts: tuple[float, ...] = _safety(
        (0.0, 0.5, 1.0, 1.7, 2.5), "deviations below a noisy number of records for which these odds are computed"
    )
    cloud_spreads: tuple[float, ...] = _simulated((1.0, 1.4), "over the spread that was found, of a cloud")
    cloud_error: float = _simulated(0.35, "spreads between the point and the center of a cloud")
    cloud_fits: tuple[float, ...] = _safety((1.4, 0.3, 0.06), "spreads of the clouds whose centers are tried")
    place: tuple[float, float, float] = _simulated(
        (0.06, 12.0, 3.0),
        "spreads of a single place; how much faster its counts grow than those of a cloud; and spreads between the "
        "point and its center, at most",
    )
    jump: float = _simulated(0.2, "by which single gradients may be higher, where iterates jump over a cluster")
    blind: float = _simulated(0.6, "noise of the squared mean gradient over n^2 with which lost runs would go unseen")
    level: float = _simulated(1.45, "deviations of an error radius that covers 95 %, with what else is added to it")
    lowered: tuple[float, float] = _simulated(
        (0.5, 1.0), "deviations by which an eigenvalue is lowered for the error radius, and that it has at least"
    )
    bend: float = _simulated(
        0.2, "of n times squared distances in spreads: a gradient that the Hessian does not explain"
    )
    unsure: float = _simulated(1.0, "deviation of the softest eigenvalue relative to it, from which on a note is made")
    unsure_factor: float = _safety(1.3, "of the error radius with that note")
    sharp_factor: float = _safety(2.0, "of the error radius where many records coincide")

    # Predictions.
    settled_excess: float = _simulated(1.04, "excess over that of one gradient with all of rho, with many records")
    few_dimensions: float = _simulated(30.0, "over d n sqrt(rho/d) is added: few dimensions average less")
    small_signal: float = _simulated(
        17.0, "n sqrt(rho/d) at which it is one more, in many dimensions; the square is added"
    )
    signal: float = _simulated(8.0, "n sqrt(rho) below which releases fail")
    signal_width: float = _simulated(3.0, "of n sqrt(rho/d) by which failures become rarer by a factor e, then faster")
    far_signal: float = _simulated(
        2.97, "n sqrt(rho/d) at which half of all releases fail, over the root of the octaves of `far_octaves`"
    )
    far_octaves: tuple[float, float] = _simulated(
        (13.1, 1.7), "octaves of the radius over the spread where there is none, and those that cost nothing"
    )
    far_width: tuple[float, float] = _simulated((4.4, 0.12), "as `signal_width`, over this power of d")
    rare: tuple[float, float] = _simulated(
        (0.006, 40.0), "of runs fail on the line beyond that, over d^2, and the n sqrt(rho/d) at which they cease"
    )
    uneven_signal: float = _simulated(
        6.2, "n sqrt(rho/d) at which every other run misses the larger of two clusters, per octave of their distance"
    )
    uneven_octaves: float = _simulated(2.0, "of the radius over the spread that are left out there")
    signal_far: float = _simulated(20.0, "n sqrt(rho/d) from which on data 10^5 spreads away are found, with some room")


CONSTANTS = Constants()
