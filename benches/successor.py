"""Compares *Private Geometric Median in Nearly-Linear Time* (Kumar, Liu, Tian, Yang, NeurIPS 2025) with the default
method.

    python benches/successor.py             # six data sets, ten runs: some minutes
    python benches/successor.py --quick     # two runs

The estimator here is a reconstruction from the paper's abstract and from summaries. It contains no code of the authors,
and its constants are not the constants of the paper. It has three parts:

1. Radius: every record is paired with k other records, drawn at random. The pairs within growing radii are counted
   until the noisy share of these pairs exceeds 0.775 (above threshold). The seed paper counts all n^2 pairs.
2. Center: as in FriendlyCore, a record has a weight that grows from 0 to 1 with the share of its k draws within twice
   the radius, and the weighted mean is released with Gaussian noise.
3. Boosting: stochastic gradient steps from single records, in phases with ever shorter steps. A phase releases its mean
   iterate with noise for the sensitivity of the phase, and the next phase starts there.

The paper analyzes the stability of gradient steps. Here a step that would pass its record stops at the record. Such a
step is the proximal map of a distance, which never increases the distance of two points. Suppose that each pass of a
phase shuffles the records once. Then the last iterate and the mean of the phase have the sensitivity 2 (step) (passes),
without further conditions.

`steps/n` is the number of single-record gradients divided by n, which is comparable with the passes of the default
method. Seconds are processor time. The estimator uses numpy and a Python loop, and the default method uses a core in
Rust. The estimator gets a radius R that contains all records, and the smallest radius r = R/2^40. Its noise is drawn in
floating-point arithmetic, which would not be safe for a release.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from gauntlet import Yardstick, paper
from numpy.typing import NDArray

import dpmedian

Vector = NDArray[np.float64]
Points = NDArray[np.float64]

# Shares of rho: radius, center, boosting. Half of delta is for the conversion from rho, and half is for failure events.
RADIUS, CENTER, BOOSTING = 0.15, 0.15, 0.7
# The share of pairs that the radius must contain. If 0.9 of the records are in one ball, 0.81 of the pairs are in it.
PAIRS = 0.775
# The weight of a record grows from 0 to 1 while its share of near draws grows from the first to the second of these
# numbers.
STRANGER, FRIEND = 0.55, 0.8
OCTAVES = 40
# The number of draws per record, divided by the logarithm of n/delta.
DRAWS = 5.0
# Boosting: the number of phases, the factor by which steps become shorter, and the largest number of passes of a phase.
PHASES, SHORTER, MOST_PASSES = 8, 4.0, 10
# The radius of the first ball, in units of the radius from part 1.
BALL = 4.0


class Lost(Exception):
    """Raised if a part of the estimator finds no result."""


@dataclass
class Successor:
    """The estimator with its public parameters. `steps` counts single-record gradients."""

    rho: float
    delta: float
    bound: float
    rng: np.random.Generator
    steps: int = 0

    def run(self, points: Points) -> Vector:
        n = len(points)
        draws = math.ceil(DRAWS * math.log(2.0 * n / self.delta))
        partners = self.rng.integers(n, size=(n, draws))
        # How often other records have drawn a record, divided by the number of draws. This depends on the random
        # numbers alone.
        load = float(np.bincount(partners.ravel(), minlength=n).max()) / draws
        distances = np.empty((n, draws))
        for start in range(0, n, 1 << 12):
            rows = slice(start, min(start + (1 << 12), n))
            distances[rows] = np.linalg.norm(points[rows, None] - points[partners[rows]], axis=2)
        radius = self._radius(distances, 1.0 + load)
        center = self._center(points, (distances <= 2.0 * radius).mean(axis=1), radius, load)
        return self._boost(points, center[0], BALL * radius + 2.0 * center[1])

    def _radius(self, distances: Points, sensitivity: float) -> float:
        """Find the radius by above threshold. Its epsilon costs epsilon^2/2 in rho, and half of epsilon is for the
        threshold.
        """
        epsilon = math.sqrt(2.0 * RADIUS * self.rho)
        n = len(distances)
        threshold = PAIRS * n + self.rng.laplace(scale=2.0 * sensitivity / epsilon)
        for octave in range(-OCTAVES, 2):
            radius = self.bound * 2.0**octave
            score = float((distances <= radius).mean()) * n
            if score + self.rng.laplace(scale=4.0 * sensitivity / epsilon) >= threshold:
                return radius
        raise Lost("no radius holds enough pairs")

    def _center(self, points: Points, friends: Vector, radius: float, load: float) -> tuple[Vector, float]:
        """Return the weighted mean of records with many near draws, and the typical length of its noise.

        Two such records have a near draw in common, so they are at most 4 radii apart.

        A replaced record changes its own weight and the weights of the records that have drawn it, by `moved` in total.
        """
        weights = np.clip((friends - STRANGER) / (FRIEND - STRANGER), 0.0, 1.0)
        moved = 1.0 + load / (FRIEND - STRANGER)
        half = 0.5 * CENTER * self.rho
        doubt = moved / math.sqrt(2.0 * half) * math.sqrt(2.0 * math.log(4.0 / self.delta))
        total = float(weights.sum())
        least = total + self.rng.normal(scale=moved / math.sqrt(2.0 * half)) - doubt
        if least < 0.25 * len(points):
            raise Lost("too few records have friends")
        mean = weights @ points / total
        sensitivity = 4.0 * radius * 2.0 * moved / least
        sigma, d = sensitivity / math.sqrt(2.0 * half), points.shape[1]
        return mean + self.rng.normal(scale=sigma, size=d), sigma * math.sqrt(d)

    def _boost(self, points: Points, center: Vector, ball: float) -> Vector:
        n, d = points.shape
        # The paper makes 1/alpha^2 steps, where alpha = sqrt(d)/(n sqrt(rho)) is the error that the budget allows.
        passes = min(max(round(n * self.rho / d), 1), MOST_PASSES)
        multiplier = 1.0 / math.sqrt(2.0 * BOOSTING * self.rho / PHASES)
        # The noise of the first phase is at most a quarter of the ball.
        step = ball * min(1.0 / math.sqrt(passes * n), 0.25 / (2.0 * passes * multiplier * math.sqrt(d)))
        theta = center.copy()
        for _ in range(PHASES):
            mean = np.zeros(d)
            for _ in range(passes):
                for i in self.rng.permutation(n):
                    offset = theta - points[i]
                    length = math.sqrt(offset @ offset)
                    theta = points[i].copy() if length <= step else theta - (step / length) * offset
                    away = theta - center
                    distance = math.sqrt(away @ away)
                    if distance > ball:
                        theta = center + (ball / distance) * away
                    mean += theta
            self.steps += passes * n
            theta = mean / (passes * n) + self.rng.normal(scale=2.0 * step * passes * multiplier, size=d)
            step /= SHORTER
        return theta


def cluster(rng: np.random.Generator, n: int, d: int) -> Points:
    """The experiment of the seed paper."""
    return paper(rng, n, d)


def heavy(rng: np.random.Generator, n: int, d: int) -> Points:
    """A multivariate t distribution with 2.5 degrees of freedom."""
    return np.asarray(rng.normal(size=(n, d)) / np.sqrt(rng.chisquare(2.5, size=(n, 1)) / 2.5))


SETS: dict[str, Callable[[np.random.Generator, int, int], Points]] = {"cluster": cluster, "heavy tails": heavy}
SHAPES = ((3_000, 200), (10_000, 50), (30_000, 10))
EPSILON = 2.0


def row(name: str, n: int, d: int, runs: int) -> str:
    points, delta = SETS[name](np.random.default_rng([n, d]), n, d), 1.0 / n**1.1
    yardstick = Yardstick(points)
    bound = 2.0 ** math.ceil(math.log2(2.0 * np.linalg.norm(points, axis=1).max()))
    rho = dpmedian.plan(n, d, epsilon=EPSILON, delta=0.5 * delta).cost.rho
    theirs: list[list[float]] = []
    lost = 0
    for run in range(runs):
        estimator, start = Successor(rho, 0.5 * delta, bound, np.random.default_rng(run)), time.process_time()
        try:
            point = estimator.run(points)
        except Lost:
            lost += 1
            continue
        theirs.append([yardstick.excess(point), time.process_time() - start, estimator.steps / n])
    plan, ours = dpmedian.plan(n, d, epsilon=EPSILON, delta=delta), []
    for _ in range(runs):
        start = time.process_time()
        release = plan.run(points)
        ours.append([yardstick.excess(release.point), time.process_time() - start])
    passes = f"{plan.calibrated.passes:.0f}"
    mine = np.median(np.array(ours), axis=0)
    if not theirs:
        return f"| {name} | {n} | {d} | {lost} of {runs} | | | | {mine[0]:.2g} | {passes} | {mine[1]:.2g} |"
    other = np.median(np.array(theirs), axis=0)
    return (
        f"| {name} | {n} | {d} | {lost} of {runs} | {other[0]:.2g} | {other[2]:.0f} | {other[1]:.2g} | "
        f"{mine[0]:.2g} | {passes} | {mine[1]:.2g} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two runs")
    runs = 2 if parser.parse_args().quick else 10
    print(f"epsilon = {EPSILON:g}, delta = n^-1.1; median excess F(point)/F(median) - 1 of {runs} runs\n")
    print(
        "| data | n | d | lost | their excess | their steps/n | their seconds | our excess | our passes | our seconds |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for n, d in SHAPES:
        for name in SETS:
            print(row(name, n, d, runs), flush=True)


if __name__ == "__main__":
    main()
