"""A statistical audit compares the privacy that releases lose in an experiment with what is claimed.

`python tests/audit.py` plays the game of differential privacy with every mechanism and method. It runs them many times
on two neighboring inputs, chosen so that the claim is nearly tight, and guesses from the outcome which input was used.
A rule is learned on the first half of the runs. On the second half, Clopper-Pearson bounds its two error rates from
above. Error rates (a, b) refute a claim if no mechanism that keeps the claim could have them. A badly learned rule can
hide a leak but never invent one, so an honest claim is refuted with probability at most ALPHA per row.

Everything is measured in one unit, mu. A test of N(0, 1) against N(mu, 1) with the error rates a and b has mu =
-Phi^-1(a) - Phi^-1(b). The claim's trade-off curve gives the largest mu at the same a. (For Gaussian releases this mu
is the same at every a.) Pure claims are measured in epsilon >= log((1 - b)/a). Each row is played again, a quarter as
often, with half of the noise and the same claim. If the audit does not refute this claim, it has no power, and the row
fails.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import beta

import dpmedian
from dpmedian._core import Coins
from dpmedian.accounting import PrivacyCost
from dpmedian.accounting.protection import Neighbours, Protection
from dpmedian.mechanisms.above_threshold import AboveThreshold
from dpmedian.mechanisms.bisection import NoisyBisection
from dpmedian.mechanisms.clusters import Grid, NoisyCells, NoisyClusters, NoisyShells, shell_ends
from dpmedian.mechanisms.directions import FREE_WEIGHT, GradientAndDirections
from dpmedian.mechanisms.exponential import Exponential
from dpmedian.mechanisms.gaussian import Gaussian
from dpmedian.mechanisms.hessian import Hessian
from dpmedian.mechanisms.key_selection import KeySelection
from dpmedian.mechanisms.size import NoisySize
from dpmedian.parameters import PublicParameters
from dpmedian.sources.array import ArraySource
from dpmedian.sources.arriving import ArrivingSource, layers_of
from dpmedian.sources.records import Records
from dpmedian.statistics import Bound, Exact
from dpmedian.stepping import plan_step
from dpmedian.tape import Tape
from rows import group_records, unit_records

# The probability, per row, that an honest claim is refuted. Half of it goes to each of the two error rates.
ALPHA = 1e-3

Seen = NDArray[np.generic]
Views = dict[str, Seen]


@dataclass(frozen=True)
class Game:
    """Two neighboring inputs and the view of a run: doubles (a vector) or an integer (an outcome without order)."""

    claim: PrivacyCost
    play: Callable[[bool, Tape], Views]
    times: float = 1.0
    """The factor of the number of runs. It is larger if a run is fast and shows little, and smaller if a run is slow.
    """
    neighbours: Neighbours = "replace"


@dataclass(frozen=True)
class Verdict:
    """A lower bound on the privacy loss of the runs, and the privacy loss that the claim allows, in `unit`."""

    unit: str
    claimed: float
    measured: float

    @property
    def refuted(self) -> bool:
        return self.measured > self.claimed


def observe(game: Game, runs: int) -> dict[str, tuple[Seen, Seen]]:
    """The views of `runs` runs on each side, with keys that no two runs share."""
    sides = []
    for side in (False, True):
        keys = [(2 * run + side).to_bytes(32, "little") for run in range(round(runs * game.times))]
        seen = [game.play(side, Tape.record(key, game.neighbours)) for key in keys]
        sides.append({name: np.stack([views[name] for views in seen]) for name in seen[0]})
    return {name: (sides[0][name], sides[1][name]) for name in sides[0]}


def judge(claim: PrivacyCost, views: tuple[Seen, Seen], alpha: float = ALPHA) -> Verdict:
    """Learn a score and its threshold on the first half of the runs, and measure on the second half."""
    half = len(views[0]) // 2
    score = learn(views[0][:half], views[1][:half])
    learned = [score(side[:half]) for side in views]
    measured = [score(side[half:]) for side in views]
    thresholds = np.unique(np.quantile(np.concatenate(learned), np.linspace(0.002, 0.998, 250)))
    verdicts = (compare(claim, *errors(*learned, threshold, alpha)) for threshold in thresholds)
    gains = [verdict.measured / verdict.claimed for verdict in verdicts]
    best = thresholds[int(np.argmax(gains))]
    return compare(claim, *errors(*measured, best, alpha))


def learn(
    null: NDArray[np.generic], other: NDArray[np.generic]
) -> Callable[[NDArray[np.generic]], NDArray[np.float64]]:
    """A score that is larger on the other side: Fisher's direction for vectors, log-ratios of counts for outcomes."""
    if null.dtype.kind == "f":
        center, spread = np.mean(null, axis=0), np.maximum(np.std(null, axis=0), 1e-300)
        scaled = [(side - center) / spread for side in (null, other)]
        covariance = sum(np.atleast_2d(np.cov(side, rowvar=False)) for side in scaled)
        shift = np.mean(scaled[1], axis=0) - np.mean(scaled[0], axis=0)
        direction = np.linalg.solve(covariance + 1e-3 * np.eye(len(shift)), shift)
        return lambda seen: (seen - center) / spread @ direction
    outcomes, labels = np.unique(np.concatenate([null, other]), return_inverse=True)
    counts = [np.bincount(part, minlength=len(outcomes)) + 1 for part in np.split(labels.ravel(), [null.size])]
    ratios = np.log(counts[1] / counts[0])

    def score(seen: Seen) -> NDArray[np.float64]:
        place = np.minimum(np.searchsorted(outcomes, seen.ravel()), len(outcomes) - 1)
        return np.where(outcomes[place] == seen.ravel(), ratios[place], 0.0)

    return score


def errors(
    null: NDArray[np.float64], other: NDArray[np.float64], threshold: float, alpha: float
) -> tuple[float, float]:
    """Upper bounds on P(score >= threshold | null) and P(score < threshold | other), which both hold with probability 1
    - alpha.
    """

    def upper(count: int, total: int) -> float:
        return 1.0 if count == total else float(beta.ppf(1.0 - alpha / 2.0, count + 1, total - count))

    return upper(int(np.sum(null >= threshold)), null.size), upper(int(np.sum(other < threshold)), other.size)


def compare(claim: PrivacyCost, a: float, b: float) -> Verdict:
    """Compare error rates of at most a and b with the smallest ones that the claim allows."""
    if claim.mu_squared == 0.0 and claim.delta0 == 0.0:
        measured = max(math.log((1.0 - b) / a) if b < 1.0 else 0.0, math.log((1.0 - a) / b) if a < 1.0 else 0.0, 0.0)
        return Verdict("epsilon", claim.epsilon_at(0.0), measured)
    if a >= 1.0 or b >= 1.0:
        return Verdict("mu", 1.0, 0.0)
    measured = max(-ndtri(a) - ndtri(b), 0.0)
    if claim.mu_squared / 2.0 == claim.rho and claim.delta0 == 0.0:
        return Verdict("mu", math.sqrt(claim.mu_squared), measured)
    allowed = max(1.0 - delta - math.exp(epsilon) * a for epsilon, delta in curve(claim))
    allowed = max(allowed, *(math.exp(-epsilon) * (1.0 - delta - a) for epsilon, delta in curve(claim)))
    return Verdict("mu", -ndtri(a) - ndtri(allowed) if allowed > 0.0 else math.inf, measured)


_CURVES: dict[PrivacyCost, list[tuple[float, float]]] = {}


def curve(claim: PrivacyCost) -> list[tuple[float, float]]:
    """Points (epsilon, delta) of the claim. Fewer points claim less, so the audit errs in favor of the claim."""
    if claim not in _CURVES:
        _CURVES[claim] = [(epsilon, claim.delta_at(epsilon)) for epsilon in np.linspace(0.0, 8.0, 321)]
    return _CURVES[claim]


# The games. Each is made with `noise` times the noise of its claim: 1 for the audit, less to show its power.


def gaussian(noise: float) -> Game:
    """One release of a vector of counts. The two inputs differ by its sensitivity."""
    honest, actual = (
        Gaussian.calibrate("counts", Bound.of("ranks", Protection(), d=2), rho, largest=100, coordinates=3)
        for rho in (0.5, 0.5 / noise**2)
    )
    counts = (np.array([10, 20, 30]), np.array([11, 19, 30]))

    def play(side: bool, tape: Tape) -> Views:
        exact = Exact.stated(counts[side] << actual.bits, actual.lattice_sensitivity)
        return {"counts": actual.release(tape, exact)}

    return Game(honest.cost, play)


def above_threshold(kind: str, noise: float) -> Game:
    """Queries that move up, then queries that move down, so that a late crossing tells the two inputs apart. The
    numbers of queries and their distances from the threshold were chosen by a search with the exact probabilities.
    """
    step = 8
    ups, downs, gap, epsilon = (8, 4, (-step, 0), 2.0) if kind == "laplace" else (1, 8, (0, step), 1.0)
    honest, actual = (AboveThreshold.of("test", step, e, kind) for e in (epsilon, epsilon / noise))
    here = [gap[0]] * ups + [gap[1]] * downs
    there = [gap[0] + step] * ups + [gap[1] - step] * downs

    def play(side: bool, tape: Tape) -> Views:
        index = actual.release(tape, map(actual.stated, there if side else here), -actual.recentring)
        return {"index": np.array(-1 if index is None else index)}

    return Game(honest.cost, play, times=4)


def hessian(noise: float) -> Game:
    """A record just beyond the radius turns by a right angle, which attains the whole sensitivity."""
    parameters = PublicParameters.of(2, 2, rho=0.5)
    honest, actual = (Hessian.of("hessian", rho, parameters) for rho in (0.5, 0.5 / noise**2))
    records = ([[1.0, 0.0], [0.0, 3.0]], [[0.0, 1.0], [0.0, 3.0]])
    sources = [ArraySource.of(np.array(data), parameters) for data in records]

    def play(side: bool, tape: Tape) -> Views:
        curvature, moments = actual.at(sources[side], tape, np.zeros(2), 0.9999)
        # Scaled as in the released vector, so that the noise is the same in all entries.
        return {"hessian": np.array([actual.weight * curvature, *_in_vector(moments)])}

    return Game(honest.cost, play)


def directions(noise: float) -> Game:
    """A record nearly turns around: gradient and directions together move by 99 % of their sensitivity."""
    parameters = PublicParameters.of(2, 2, rho=0.5)
    honest, actual = (
        GradientAndDirections.of("directions", rho, parameters, FREE_WEIGHT) for rho in (0.5, 0.5 / noise**2)
    )
    turned = [-0.9, math.sqrt(1.0 - 0.9**2)]
    sources = [ArraySource.of(np.array([record, [0.0, 3.0]]), parameters) for record in ([1.0, 0.0], turned)]

    def play(side: bool, tape: Tape) -> Views:
        gradient, moments = actual.at(sources[side], tape, np.zeros(2))
        return {"both": np.array([*gradient, *_in_vector(actual.weight * moments)])}

    return Game(honest.cost, play)


def _in_vector(moments: NDArray[np.float64]) -> NDArray[np.float64]:
    """The upper triangle of a symmetric matrix in two dimensions, with the off-diagonal entry times sqrt(2)."""
    return np.asarray(moments[np.triu_indices(2)] * [1.0, math.sqrt(2.0), 1.0])


def shells(noise: float) -> Game:
    """A record moves to another shell and turns by a right angle, which attains the whole sensitivity."""
    parameters = PublicParameters.of(2, 2, rho=0.5)
    honest, actual = (NoisyShells.of("shells", rho, parameters, 2.0) for rho in (0.5, 0.5 / noise**2))
    sources = [ArraySource.of(np.array([record, [0.0, 3.0]]), parameters) for record in ([1.0, 0.0], [0.0, 8.0])]
    moved = np.searchsorted(shell_ends(), [1.0, 8.0], side="right")

    def play(side: bool, tape: Tape) -> Views:
        counts, moments = actual.around(sources[side], tape, np.zeros(2), 1.0)
        return {"both": np.array([*counts[moved], *_in_vector(actual.weight * moments)])}

    return Game(honest.cost, play)


def cells(noise: float) -> Game:
    """A record moves to another cell, and both cells are released, which attains the whole sensitivity."""
    parameters = PublicParameters.of(2, 1, rho=0.5)
    honest, actual = (NoisyCells.of("cells", rho, parameters) for rho in (0.5, 0.5 / noise**2))
    grid = Grid(np.zeros(1), np.ones((1, 1)), 1.0, 10.0, 5.0)
    sources = [ArraySource.of(np.array([[x], [3.0]]), parameters) for x in (-1.0, 1.0)]

    def play(side: bool, tape: Tape) -> Views:
        return {"counts": actual.count(sources[side], tape, grid, 1, np.array([[0], [1]]))}

    return Game(honest.cost, play)


def clusters(noise: float, neighbours: Neighbours = "replace") -> Game:
    """A record turns around its center and moves to another shell, or is added. Both attain the whole sensitivity."""
    n = 2 if neighbours == "replace" else None
    parameters = PublicParameters.of(n, 1, rho=0.5, neighbours=neighbours)
    weights = {"replace": (1.0, 0.6), "add_remove": (0.5, 0.6)}[neighbours]
    honest, actual = (NoisyClusters.of("clusters", rho, parameters, 2, weights) for rho in (0.5, 0.5 / noise**2))
    here = [[1.0], [99.0]]
    there = [[-8.0], [99.0]] if neighbours == "replace" else [*here, [-8.0]]
    sources = [ArraySource.of(np.array(data), parameters) for data in (here, there)]
    moved = np.searchsorted(shell_ends(), [1.0, 8.0], side="right")

    def play(side: bool, tape: Tape) -> Views:
        counts, around, gradients = actual.at(sources[side], tape, np.array([[0.0], [100.0]]), np.full(2, 0.5), 1.0)
        # Scaled as in the released vector, so that the noise is the same in all entries.
        seen = [weights[0] * counts[0], *(weights[1] * around[0][moved]), gradients[0, 0]]
        return {"all": np.array(seen)}

    return Game(honest.cost, play, neighbours=neighbours)


def bisection(noise: float) -> Game:
    """Counts equal the target everywhere, so every answer is a coin flip, and every count moves by the sensitivity."""
    honest, actual = (
        Gaussian.of_stated("test", 1.0, rho, largest=100, releases=NoisyBisection.queries(0, 7))
        for rho in (0.5, 0.5 / noise**2)
    )
    search = NoisyBisection(0, 7, actual)

    def play(side: bool, tape: Tape) -> Views:
        return {"index": np.array(search.release(tape, lambda _: actual.stated(50 + side), 50.5))}

    return Game(honest.cost, play)


def exponential(noise: float) -> Game:
    """Two candidates whose scores move by the range, from log-odds of -3/2 eta to -1/2 eta."""
    honest, actual = (Exponential.of("test", eta) for eta in (1.0, 1.0 / noise))
    width = 8
    scores = (np.array([3 * width // 2, 0]), np.array([width // 2, 0]))

    def play(side: bool, tape: Tape) -> Views:
        return {"index": np.array(actual.release(tape, Exact.stated(scores[side], float(width), scores=True)))}

    return Game(honest.cost, play, times=4)


def method(
    name: str,
    noise: float,
    *,
    n: int,
    even: bool = False,
    times: float = 1.0,
    neighbours: Neighbours = "replace",
    **options: Any,
) -> Game:
    """On the line, half of the records are at -1 and half at 1, or all are evenly spaced in between. The neighbor moves
    one record across. With records at -1 and 1 this moves the gradient by 2. With evenly spaced records there is a
    median that the release follows. Under "add_remove" the neighbor has one record more at -1, which moves the gradient
    and the noisy size by 1. `release` is what the user gets, with a failure read as 0. `transcript` is everything that
    the stages release, which the proof covers, too. It is reduced to its log-likelihood ratio, because no test of the
    two inputs is better.
    """
    make = dpmedian.plan_k_medians if name == "k_medians" else functools.partial(dpmedian.plan, method=name)
    honest, actual = (make(n, 1, rho=rho, neighbours=neighbours, **options) for rho in (0.5, 0.5 / noise**2))
    points = np.linspace(1.0, -1.0, n)[:, None]
    points = points if even else np.sign(points)
    if neighbours == "replace":
        other = points.copy()
        other[0] = -1.0
    else:
        other = np.vstack([points, [[-1.0]]])
    return runs(honest.cost, [[(actual, Records(data))] for data in (points, other)], times)


def runs(claim: PrivacyCost, sides: list[list[tuple[dpmedian.Plan, Records]]], times: float = 1.0) -> Game:
    """All runs of a side on one tape, with the views of `method`."""

    def run(side: bool, tape: Tape) -> NDArray[np.float64]:
        found = []
        for plan, records in sides[side]:
            source = ArraySource.of(records, plan.parameters)
            if plan.parameters.weighted:
                source = source.weighted(Coins.of(tape.hidden()))
            try:
                found.append(plan.calibrated.run(source, tape).point[0])
            except dpmedian.ReleaseFailed:
                found.append(0.0)
        return np.array(found)

    def play(side: bool, tape: Tape) -> Views:
        points = run(side, tape)
        replayed = tape.replay()
        run(not side, replayed)
        gain = log_likelihood(replayed) - log_likelihood(tape)
        return {"release": points, "transcript": np.array([-gain if side else gain])}

    return Game(claim, play, times, claim.neighbours)


def step(noise: float, neighbours: Neighbours) -> Game:
    """Four records at 1 and -1 arrive one by one. The other input has one more record at -1, or one record turns
    around. The sum moves by the sensitivity, and under "add_remove" the noisy size by one.
    """
    records = [1.0, 1.0, -1.0, -1.0]
    others = [*records, -1.0] if neighbours == "add_remove" else [-1.0, *records[1:]]
    n = 4 if neighbours == "replace" else None
    honest, actual = (plan_step(n, 1, rho=rho, neighbours=neighbours) for rho in (0.5, 0.5 / noise**2))

    def play(side: bool, tape: Tape) -> Views:
        arrived = ((layers_of(np.array([x])), 1 << 20) for x in (others if side else records))
        # So few records may be noise only, but the view contains what was released.
        with contextlib.suppress(dpmedian.ReleaseFailed):
            actual.calibrated.run(ArrivingSource(arrived, 1, False, n), tape)
        return {"release": np.array([entry[4][0] for entry in tape.entries()], dtype=float)}

    return Game(honest.cost, play, neighbours=neighbours)


def units(noise: float) -> Game:
    """`method` with one to three rows of each unit. One unit moves across with all of its rows."""
    options: dict[str, Any] = {"method": "dpgd", "radius": 1.0, "unit": "unit"}
    honest, actual = (dpmedian.plan(24, 1, rho=rho, **options) for rho in (0.5, 0.5 / noise**2))
    ids = np.repeat(np.arange(24), np.arange(24) % 3 + 1)
    rows = np.where(ids < 12, 1.0, -1.0)[:, None]
    other = np.where(ids[:, None] == 2, -1.0, rows)
    return runs(honest.cost, [[(actual, unit_records(data, ids))] for data in (rows, other)])


def groups(noise: float) -> Game:
    """Two groups of 24. A person with rows in both groups is in only one of the two inputs."""
    keys, options = ("a", "b"), {"method": "dpgd", "radius": 1.0, "unit": "unit", "max_groups_per_unit": 2}
    honest, actual = (dpmedian.plan_groups(keys, 1, rho=rho, n=24, **options) for rho in (0.5, 0.5 / noise**2))
    rows, ids = np.append(np.sign(np.linspace(1.0, -1.0, 48)), [-1.0] * 3)[:, None], np.append(np.arange(48), [48] * 3)
    labels = np.append(np.tile(keys, 24), ["a", "b", "a"])
    grouped = [group_records(rows[:end], labels[:end], keys, ids[:end], most=2) for end in (48, 51)]
    sides = [[(plan, side.records_of(i)) for i, plan in enumerate(actual.plans)] for side in grouped]
    return runs(honest.cost, sides)


def unlisted_keys(noise: float) -> Game:
    """A person who is added is alone in one group, and in another group whose size is at the threshold.

    The view is whether the first group is shown, and otherwise the noisy size of the second, in bins. The bound on the
    probability that a group of one is shown is large, so that the audit attains it; with less noise the size reveals
    the input.
    """
    delta = 0.04
    parameters = PublicParameters.of(None, 1, rho=0.5, neighbours="add_remove", lone_delta=delta / 2.0)
    honest, actual = (KeySelection.of("size", rho, parameters) for rho in (0.25, 0.25 / noise**2))
    actual = replace(actual, threshold=honest.threshold)
    occupied = honest.threshold + 2
    sizes = [(None, occupied), (1, occupied + 1)]
    sources = [
        [None if size is None else ArraySource.of(np.zeros((size, 1)), parameters) for size in side] for side in sizes
    ]

    def play(side: bool, tape: Tape) -> Views:
        seen = [0 if source is None else actual.among(source, tape) for source in sources[side]]
        shown = [size if actual.shows(size) else 0 for size in seen]
        return {"groups": np.array(-1 if shown[0] else shown[1])}

    claim = PrivacyCost.total([honest.cost] * 2)
    return Game(claim, play, times=4, neighbours="add_remove")


def weights(noise: float, neighbours: Neighbours) -> Game:
    """`method` with weights: 24 records have a weight at the cap and 24 a third of it. A record at the cap moves
    across, or is added.
    """
    options: dict[str, Any] = {"method": "dpgd", "radius": 1.0, "weight_max": 3.0, "neighbours": neighbours}
    honest, actual = (dpmedian.plan(32, 1, rho=rho, **options) for rho in (0.5, 0.5 / noise**2))
    points = np.sign(np.linspace(1.0, -1.0, 48))[:, None]
    own = np.tile([3.0, 1.0], 24)
    other, others = (np.where(np.arange(48)[:, None] == 0, -1.0, points), own)
    if neighbours == "add_remove":
        other, others = np.vstack([points, [[-1.0]]]), np.append(own, 3.0)
    records = [unit_records(data, sample_weight=w, weight_max=3.0) for data, w in ((points, own), (other, others))]
    return runs(honest.cost, [[(actual, side)] for side in records])


def size(noise: float) -> Game:
    """The sum of weights, which a replaced record reduces by its whole weight."""
    parameters = PublicParameters.of(None, 1, rho=0.5, weight_max=1.0)
    honest, actual = (NoisySize.of("size", rho, parameters) for rho in (0.5, 0.5 / noise**2))
    records = [
        Records(np.zeros((9, 1)), weights=np.array([*[2**20] * 8, last], dtype=np.uint32)) for last in (2**20, 0)
    ]

    def play(side: bool, tape: Tape) -> Views:
        source = ArraySource.of(records[side], parameters).weighted(Coins.of(tape.hidden()))
        return {"size": actual.query(source, tape)}

    return Game(honest.cost, play)


def log_likelihood(tape: Tape) -> float:
    """The log-likelihood of the noisy values of a tape given its exact values, without terms that no data change.

    The noisy queries of AboveThreshold are left out, because it reveals its index only, and the later stages show this
    index.
    """
    total = 0.0
    for stage, _, scale, exact, noisy in tape.entries():
        if len(noisy) < len(exact):  # One index of many was chosen.
            scores = -(exact - exact.min()) / scale
            total += scores[noisy[0]] - math.log(np.exp(scores).sum())
        elif not stage.endswith((": threshold", ": query")):
            total -= float(np.sum(((noisy - exact) / scale) ** 2)) / 2.0
    return total


def inverse_sensitivity(noise: float, neighbours: Neighbours = "replace") -> Game:
    """Two records are on the left, one at 1/2, and one on the right. The neighbor moves one record from left to right.

    To the left of 1/2 the score rises from 0 to 1, and to its right it falls from 1 to 0. So the log-odds of the two
    sides move by all of epsilon, from -1.6 epsilon, because the left side is three times as wide. The view is the
    eighth of the ball in which the release lies. Under "add_remove" the neighbor has one record more on the right. Both
    scores become 1/2, and with twice the rate the log-odds move as far.
    """
    honest, actual = (
        dpmedian.plan(4, 1, epsilon=e, method="inverse_sensitivity", radius=1.0, resolution=1e-3, neighbours=neighbours)
        for e in (1.0, 1.0 / noise)
    )
    records = [[-1.0, -1.0, 0.5, 1.0], [-1.0, 1.0, 0.5, 1.0]]
    if neighbours == "add_remove":
        records[1] = [*records[0], 1.0]
    sources = [ArraySource.of(np.array(data)[:, None], actual.parameters) for data in records]

    def play(side: bool, tape: Tape) -> Views:
        outcome = actual.calibrated.run(sources[side], tape)
        return {"release": np.floor(4.0 * outcome.point[0]).astype(np.int64)}

    return Game(honest.cost, play, times=4, neighbours=neighbours)


class Row(NamedTuple):
    """The game with a given fraction of its noise."""

    make: Callable[[float], Game]
    slow: bool = False
    """Whether a run takes milliseconds."""


# The fraction of the noise that the audit must notice.
WEAK = 0.5

LOCALIZED = {"radius": 4.0, "resolution": 0.5}
# With the resolution above, the default method ends when half of the records lie within it, and spends little.
SMOOTH: dict[str, Any] = {"radius": 4.0, "resolution": 1e-3, "even": True}
ADDED: dict[str, Any] = {"neighbours": "add_remove"}

GAMES: dict[str, Row] = {
    "gaussian": Row(gaussian),
    "above_threshold-laplace": Row(lambda noise: above_threshold("laplace", noise)),
    "above_threshold-exponential": Row(lambda noise: above_threshold("exponential", noise)),
    "hessian": Row(hessian),
    "directions": Row(directions),
    "shells": Row(shells),
    "cells": Row(cells),
    "clusters": Row(clusters),
    "clusters, add_remove": Row(lambda noise: clusters(noise, "add_remove")),
    "noisy_bisection": Row(bisection),
    "exponential_mechanism": Row(exponential),
    "inverse_sensitivity": Row(inverse_sensitivity),
    "dpgd": Row(lambda noise: method("dpgd", noise, n=24, radius=1.0)),
    "dpgd, paper's profile": Row(lambda noise: method("dpgd", noise, n=24, radius=1.0, profile="paper")),
    "loc_dpgd": Row(lambda noise: method("loc_dpgd", noise, n=200, **LOCALIZED), slow=True),
    "loc_dpgd, paper's profile": Row(
        lambda noise: method("loc_dpgd", noise, n=1000, **LOCALIZED, profile="paper", times=0.25), slow=True
    ),
    "loc_cutting_plane": Row(lambda noise: method("loc_cutting_plane", noise, n=200, **LOCALIZED), slow=True),
    "adaptive": Row(lambda noise: method("adaptive", noise, n=200, **SMOOTH), slow=True),
    "k_medians": Row(lambda noise: method("k_medians", noise, n=200, k=2, even=True), slow=True),
    "inverse_sensitivity, add_remove": Row(lambda noise: inverse_sensitivity(noise, "add_remove")),
    "dpgd, add_remove": Row(lambda noise: method("dpgd", noise, n=24, radius=1.0, **ADDED)),
    "loc_dpgd, add_remove": Row(lambda noise: method("loc_dpgd", noise, n=200, **LOCALIZED, **ADDED), slow=True),
    "loc_cutting_plane, add_remove": Row(
        lambda noise: method("loc_cutting_plane", noise, n=200, **LOCALIZED, **ADDED), slow=True
    ),
    "robust step": Row(lambda noise: step(noise, "replace")),
    "robust step, add_remove": Row(lambda noise: step(noise, "add_remove")),
    "units": Row(units),
    "groups": Row(groups, slow=True),
    "unlisted keys": Row(unlisted_keys),
    "size of weights": Row(size),
    "weights": Row(lambda noise: weights(noise, "replace")),
    "weights, add_remove": Row(lambda noise: weights(noise, "add_remove"), slow=True),
    "adaptive, add_remove": Row(lambda noise: method("adaptive", noise, n=200, **SMOOTH, **ADDED), slow=True),
}


def table(names: list[str], runs: int) -> Iterator[tuple[bool, str]]:
    yield True, f"{runs} runs a side (of some four times as many, or a quarter), half to learn; alpha = {ALPHA:g} a row"
    yield True, f"{'':<33}{'seen':<12}{'unit':<9}{'claimed':>8}{'measured':>10}{'share':>7}{'with noise times':>19}"
    for name in names:
        honest, weakened = GAMES[name].make(1.0), GAMES[name].make(WEAK)
        seen, weak = observe(honest, runs), observe(weakened, runs // 4)
        verdicts = {view: judge(honest.claim, seen[view]) for view in seen}
        powers = {view: judge(weakened.claim, weak[view]) for view in seen}
        # The intermediate releases show more than the result alone, so one view with power is enough.
        good = any(power.refuted for power in powers.values())
        for view, verdict in verdicts.items():
            row = f"{name:<33}{view:<12}{verdict.unit:<9}{verdict.claimed:8.3f}{verdict.measured:10.3f}"
            row += f"{verdict.measured / verdict.claimed:7.0%}{WEAK:12.3g}:{powers[view].measured:6.3f}"
            found = "LEAKS" if verdict.refuted else "caught" if powers[view].refuted else "" if good else "MISSED"
            yield good and not verdict.refuted, f"{row}  {found}".rstrip()


def main() -> int:
    parser = argparse.ArgumentParser(description="Claimed against measured privacy, for every mechanism and method.")
    parser.add_argument("names", nargs="*", help=f"rows to play, of {', '.join(GAMES)} (all of them by default)")
    parser.add_argument("--runs", type=int, default=20_000, help="runs a side")
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(GAMES))
    if unknown:
        parser.error(f"there is no row {', '.join(unknown)}; there are {', '.join(GAMES)}")
    dpmedian.set_threads(1)
    start, good = time.monotonic(), True
    for fine, line in table(options.names or list(GAMES), options.runs):
        good &= fine
        print(line, flush=True)
    print(f"{'every claim holds' if good else 'NOT every claim holds'} ({time.monotonic() - start:.0f} s)")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
