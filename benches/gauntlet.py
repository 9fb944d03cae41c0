"""Measures the accuracy of the default method without any knowledge of the data, as excess = F(point)/F(median) - 1.

    python benches/gauntlet.py            # every table: paper, gauntlet, small samples
    python benches/gauntlet.py --quick    # a tenth of the runs
    python benches/gauntlet.py --peers    # also private coordinate medians, and methods that need a radius
    python benches/gauntlet.py --peers DIRECTORY   # and other private locations whose checkouts are in this directory
    python benches/gauntlet.py --long # useless points without a note: thousands of small runs, hours
    python benches/gauntlet.py --long --minutes 30 # the first rows of this table, for 30 minutes
    python benches/gauntlet.py --edges # few records, or many equal records, with new data in every run
    python benches/gauntlet.py --confirm  # the gauntlet on other sets, which were not used to choose any constant
    python benches/gauntlet.py --dimensions 5 --sets three halves --no-inference   # some rows of the gauntlet only
    python benches/gauntlet.py --large    # 10^5 and 10^6 records, with passes and the cost before the last gradient
    python benches/gauntlet.py --large --seed 1000   # other data and noise
    python benches/gauntlet.py --region   # M with and without the stages of a confidence region
    python benches/gauntlet.py --neighbours add_remove    # the same rho if records are added or removed, n unknown

Constants were chosen on the sets of the gauntlet. The sets of `--confirm` and the digits were not used for any choice.
Predictions are relative to F of the core, which is n times the median of the distances from the median. For a cloud
this is about F(median), and it is less if far records dominate F(median).
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
from counting import CountedSource, CountedTape, Counts
from numpy.typing import NDArray

import dpmedian
from dpmedian import nonprivate
from dpmedian._core import Tape
from dpmedian.accounting import calibrate
from dpmedian.mechanisms.coordinates import CoordinateSearch
from dpmedian.methods.adaptive.notes import DOUBTED
from dpmedian.parameters import LARGEST, PublicParameters
from dpmedian.release import MethodResult
from dpmedian.sources.array import ArraySource
from peers import Release, Told, available, runs_of

Points = NDArray[np.float64]
Generator = Callable[[np.random.Generator, int, int], Points]
Others = dict[str, Release]


def paper(rng: np.random.Generator, n: int, d: int) -> Points:
    """Nine tenths of the records are N(mu, 0.1^2 I) with mu uniform on the sphere of radius 50. One tenth is uniform in
    a ball of radius 100.
    """
    inliers = 9 * n // 10
    mu = rng.normal(size=d)
    far = rng.normal(size=(n - inliers, d))
    far *= 100.0 * rng.random((n - inliers, 1)) ** (1.0 / d) / np.linalg.norm(far, axis=1, keepdims=True)
    return np.vstack([50.0 * mu / np.linalg.norm(mu) + 0.1 * rng.normal(size=(inliers, d)), far])


def two(rng: np.random.Generator, n: int, d: int) -> Points:
    """Two clusters with 60 % and 40 % of the records, at a distance of 10^4."""
    points = rng.normal(size=(n, d))
    points[6 * n // 10 :, 0] += 1e4
    return points


def three(rng: np.random.Generator, n: int, d: int) -> Points:
    """Three clusters with 45, 30 and 25 % of the records, at distances of 100."""
    points = rng.normal(size=(n, d))
    points[45 * n // 100 : 75 * n // 100, 0] += 100.0
    points[75 * n // 100 :, -1] -= 100.0
    return points


def atom(rng: np.random.Generator, n: int, d: int) -> Points:
    """60 % of the records at the point (3, ..., 3), the rest N(0, I)."""
    points = rng.normal(size=(n, d))
    points[: 6 * n // 10] = 3.0
    return points


def ring(rng: np.random.Generator, n: int, d: int) -> Points:
    """A sphere of radius 5 around (-20, ..., -20) with a small thickness."""
    directions = rng.normal(size=(n, d))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return -20.0 + directions * (5.0 + 0.1 * rng.normal(size=(n, 1)))


def halves(rng: np.random.Generator, n: int, d: int) -> Points:
    """One half exponential, the other half uniform in a box a hundred times as large."""
    points = rng.exponential(size=(n, d))
    points[n // 2 :] = 100.0 * rng.random((n - n // 2, d))
    return points


SETS: dict[str, Generator] = {
    "gauss": lambda rng, n, d: 1000.0 + rng.normal(size=(n, d)),
    "t2": lambda rng, n, d: 3.0 * rng.standard_t(2, size=(n, d)) - 50.0,
    "cauchy": lambda rng, n, d: rng.standard_cauchy(size=(n, d)),
    "two": two,
    "aniso": lambda rng, n, d: rng.normal(size=(n, d)) * np.logspace(-3.0, 3.0, d),
    "lattice": lambda rng, n, d: np.round(0.7 * rng.normal(size=(n, d))),
    "atom": atom,
    "three": three,
    "halves": halves,
    "lognormal": lambda rng, n, d: np.exp(2.0 * rng.normal(size=(n, d))),
    "ring": ring,
    "laplace": lambda rng, n, d: 1e5 + 0.01 * rng.laplace(size=(n, d)),
    "pareto": lambda rng, n, d: rng.pareto(1.5, size=(n, d)) - 7.0,
}


def coincident(share: float, blur: float) -> Generator:
    """A share of the records within a distance of one point, the rest N(0, I)."""

    def generate(rng: np.random.Generator, n: int, d: int) -> Points:
        points, many = rng.normal(size=(n, d)), round(share * n)
        points[:many] = 1.5 + blur * points[:many]
        return points

    return generate


def shifted(distance: float) -> Generator:
    return lambda rng, n, d: distance + rng.normal(size=(n, d))


# Data for the long table, on which an earlier version failed without need, or on which a run might fail. On far data a
# run may fail with an error.
HARD: dict[str, Generator] = {
    "zero-inflated": lambda rng, n, d: rng.exponential(size=(n, d)) * (rng.random((n, d)) < 0.02),
    "duplicates": coincident(0.7, 0.0),
    "blurred": coincident(0.75, 1e-9),
    "far 1e9": shifted(1e9),
    "far 1e13": shifted(1e13),
    "far 1e15": shifted(1e15),
    "subnormal": lambda rng, n, d: 1e-310 * rng.normal(size=(n, d)),
}


def five(rng: np.random.Generator, n: int, d: int) -> Points:
    """Five clusters of 30, 25, 20, 15 and 10 %, at random places 30 from the origin."""
    places = rng.normal(size=(5, d))
    places *= 30.0 / np.linalg.norm(places, axis=1, keepdims=True)
    return rng.normal(size=(n, d)) + places[rng.choice(5, size=n, p=[0.3, 0.25, 0.2, 0.15, 0.1])]


def helix(rng: np.random.Generator, n: int, d: int) -> Points:
    """A curve that winds through all coordinates, with a little noise."""
    time = rng.random((n, 1))
    return np.sin(2.0 * np.pi * time * (1.0 + np.arange(d)) / d + np.arange(d)) + 0.05 * rng.normal(size=(n, d))


def axes(rng: np.random.Generator, n: int, d: int) -> Points:
    """Every record differs from a fixed point in one coordinate only, and some records by a large amount."""
    points = np.full((n, d), 2.0)
    points[np.arange(n), rng.integers(d, size=n)] += rng.standard_t(1.5, size=n)
    return points


# Other generators, for confirmation only: they were not used to choose any constant.
CONFIRM: dict[str, Generator] = {
    "weibull": lambda rng, n, d: 5.0 * rng.weibull(0.7, size=(n, d)) + 100.0,
    "logistic": lambda rng, n, d: rng.logistic(-300.0, 7.0, size=(n, d)),
    "arcsine": lambda rng, n, d: rng.beta(0.5, 0.5, size=(n, d)),
    "counts": lambda rng, n, d: rng.negative_binomial(3, 0.05, size=(n, d)).astype(np.float64),
    "scales": lambda rng, n, d: (
        rng.normal(size=(n, d)) * rng.choice([1.0, 10.0, 100.0], size=(n, 1), p=[0.5, 0.3, 0.2])
    ),
    "gumbel": lambda rng, n, d: rng.gumbel(size=(n, d)) @ rng.normal(size=(d, d)),
    "five": five,
    "helix": helix,
    "axes": axes,
}

DIMENSIONS = (5, 50)
# Only if `--dimensions` asks for it.
MORE_DIMENSIONS = (*DIMENSIONS, 200)


class Edge(NamedTuple):
    """Data that are hard for the method, and the requirement for the result."""

    generate: Generator
    n: int
    d: int
    goal: str


def two_values(rng: np.random.Generator, n: int, d: int) -> Points:
    """58 % of the records are one point, and the others are another point."""
    return np.where(np.arange(n)[:, None] < 0.58 * n, 7.25, np.zeros((n, d)))


def many_zeros(rng: np.random.Generator, n: int, d: int) -> Points:
    """85 % of all entries are zero, the rest exponential: in 8 dimensions 27 % of the records are the origin."""
    return rng.exponential(size=(n, d)) * (rng.random((n, d)) > 0.85)


EDGES = {
    "gauss": Edge(SETS["gauss"], 100, 2, "lost at most 9 %"),
    "two values": Edge(two_values, 2000, 4, "lost at most 1 of 300"),
    "many zeros": Edge(many_zeros, 1500, 8, "median excess at most 2e-4; covered or noted at least 95 %"),
}

# The largest acceptable median excess in these dimensions, which shows regressions.
LIMITS = {
    "gauss": (1.7e-5, 1.7e-4),
    "t2": (1.4e-5, 1.2e-4),
    "cauchy": (3.6e-6, 2.1e-5),
    "two": (1.4e-8, 6.6e-4),
    "aniso": (1.6e-5, 1.5e-4),
    "lattice": (3e-5, 1.5e-4),
    "atom": (1e-6, 1e-5),
    "lognormal": (4.1e-6, 8.4e-5),
}


@dataclass(frozen=True)
class Runs:
    """Many releases of one data set. `core` is n times the median of the distances to the median, divided by F(median).

    `limit` is the mean excess of one exact Newton step from a gradient with the whole budget, or None if the median is
    a nonsmooth point.
    """

    excess: Points
    core: float
    error: Points
    radius: Points
    failed: int
    plan: dpmedian.Plan
    limit: float | None

    def row(self, name: str, limit: float | None) -> str:
        """Return one line of a table. The interval is a bootstrap interval for the median."""
        total = len(self.excess) + self.failed
        if not len(self.excess):
            return f"| {name} | {total} | {self.failed} | | | | | | | | |"
        draws = np.random.default_rng(0).choice(self.excess, size=(2000, len(self.excess)))
        low, high = np.quantile(np.median(draws, axis=1), [0.025, 0.975])
        median = float(np.median(self.excess))
        against = "" if limit is None else f"{limit:.1e}" + ("" if median <= limit else " (missed)")
        covered = "" if np.isnan(self.radius).any() else f"{np.mean(self.error <= self.radius):.0%}"
        slack = "" if not covered else f"{np.median(self.radius) / np.quantile(self.error, 0.9):.2f}"
        return (
            f"| {name} | {total} | {self.failed} | {median:.2e} [{low:.1e}, {high:.1e}] | {against} | "
            f"{self.over_limit()} | {predictions(self.plan, self.excess, self.core)} | {covered} | {slack} |"
        )

    def over_limit(self) -> str:
        """Return M, the mean excess divided by the limit, with its standard error."""
        if self.limit is None:
            return ""
        ratios = self.excess / self.limit
        return f"{ratios.mean():.2f} +- {ratios.std() / math.sqrt(len(ratios)):.2f}"


def predictions(plan: dpmedian.Plan, excess: Points, core: float | Points) -> str:
    """Return the predicted divided by the measured median excess, relative to F and to F of the core, and the bound
    divided by the 90 % quantile.
    """
    typical, most = plan.prediction.excess, plan.prediction.excess_if_many_coincide
    of_all, of_core, high = np.median(excess), np.median(excess / np.maximum(core, 1e-300)), np.quantile(excess, 0.9)
    ratios = [(typical, of_all), (typical, of_core), (most, high)]
    return " | ".join("" if p is None or m <= 0.0 or m > 1e9 else f"{p / m:.2g}" for p, m in ratios)


PREDICTIONS = "predicted/measured | of the core | bound/90 %"
HEAD = (
    f"| data | runs | failed | median excess [95 %] | at most | M | {PREDICTIONS} | covered | radius/90 % error |\n"
    "|---|---|---|---|---|---|---|---|---|---|---|"
)


class Yardstick:
    """The median of some points, and F at the median."""

    def __init__(self, points: Points) -> None:
        self.points = points
        self.median = nonprivate.geometric_median(points)
        self.best = nonprivate.objective(points, self.median)

    @property
    def core(self) -> float:
        return len(self.points) * float(np.median(np.linalg.norm(self.points - self.median, axis=1))) / self.best

    def limit(self, rho: float) -> float | None:
        """tr(H^-1) D^2/(4 rho F(median)), with D = 2 the sensitivity of a gradient and H the Hessian; None at a
        nonsmooth point.
        """
        difference = self.points - self.median
        distance = np.linalg.norm(difference, axis=1)
        near = distance <= 1e-3 * np.median(distance)
        if np.mean(near) > 0.025:
            return None
        unit, inverse = difference[~near] / distance[~near, None], 1.0 / distance[~near]
        hessian = np.eye(difference.shape[1]) * inverse.sum() - (unit * inverse[:, None]).T @ unit
        return float(np.trace(np.linalg.inv(hessian))) / (rho * self.best)

    def excess(self, point: Points) -> float:
        return nonprivate.objective(self.points, point) / self.best - 1.0


def attempt(plan: dpmedian.Plan, source: ArraySource, seed: int) -> MethodResult | None:
    """Return a release with the noise of this seed, or None if it failed."""
    try:
        return plan.calibrated.run(source, Tape.draw(seed.to_bytes(32, "little"), plan.parameters.neighbours))
    except dpmedian.ReleaseFailed:
        return None


def measure(points: Points, runs: int, **arguments: object) -> Runs:
    """Return releases of the same points with different noise. If the number of records is private, no guess of it is
    given.
    """
    n, d = points.shape
    known = None if arguments.get("neighbours") == "add_remove" else n
    plan = dpmedian.plan(known, d, **arguments)  # type: ignore[arg-type]
    source, yardstick = ArraySource.of(points, plan.parameters), Yardstick(points)
    outcomes = [outcome for seed in range(runs) if (outcome := attempt(plan, source, seed)) is not None]
    excess = [yardstick.excess(outcome.point) for outcome in outcomes]
    error = [float(np.linalg.norm(outcome.point - yardstick.median)) for outcome in outcomes]
    radius = [math.nan if outcome.error_radius is None else outcome.error_radius for outcome in outcomes]
    failed = runs - len(outcomes)
    limit = yardstick.limit(plan.cost.rho)
    return Runs(np.array(excess), yardstick.core, np.array(error), np.array(radius), failed, plan, limit)


def paper_table(runs: int, others: Others | None) -> None:
    points = paper(np.random.default_rng(0), 3000, 200)
    print(f"\n## The paper's data: n = 3000, d = 200, delta = 1/n\n\n{HEAD}")
    for epsilon, limit in ((0.5, 2.2e-4), (1.0, 5.8e-5), (2.0, 1.6e-5), (3.0, 8e-6)):
        made = measure(points, runs, epsilon=epsilon, delta=1 / 3000, method="adaptive")
        print(made.row(f"epsilon {epsilon}", limit), flush=True)
        if others is not None:
            print_peers(points, 1000.0, epsilon, 1 / 3000, others)


def gauntlet_table(
    runs: int, others: Others | None, sets: dict[str, Generator], inference: bool, dimensions: Sequence[int]
) -> None:
    for d in dimensions:
        print(f"\n## Gauntlet: n = 5000, d = {d}, epsilon = 1, delta = 1e-6\n\n{HEAD}")
        smooth = []
        for name, generate in sets.items():
            points = generate(np.random.default_rng(1), 5000, d)
            made = measure(points, runs, epsilon=1.0, delta=1e-6, method="adaptive", inference=inference)
            limits = dict(zip(DIMENSIONS, LIMITS.get(name, ()), strict=False))
            print(made.row(name, limits.get(d)), flush=True)
            if name in SMOOTH and made.limit is not None and len(made.excess):
                smooth.append(float(np.mean(made.excess)) / made.limit)
            if others is not None:
                radius = 10.0 ** math.ceil(math.log10(np.linalg.norm(points, axis=1).max()))
                print_peers(points, radius, 1.0, 1e-6, others)
        if smooth and others is None:
            print(f"\nThe mean of M over the {len(smooth)} smooth sets ({', '.join(SMOOTH)}): {np.mean(smooth):.2f}.")


# Sets with one middle and a smooth density there. On these sets the last gradients decide the accuracy, and their noise
# is half as large under add/remove. On other sets counts decide, whose noise is not smaller.
SMOOTH = ("gauss", "t2", "cauchy", "aniso", "lognormal", "laplace", "pareto")
HEAD_OF_RATIOS = (
    "| data | runs | failed, replace | failed | median excess, replace | median excess | ratio [95 %] | covered |\n"
    "|---|---|---|---|---|---|---|---|"
)


def neighbours_table(runs: int) -> None:
    """Print the excess under add/remove divided by the excess under replacement, at the same rho, without a guess of
    n.
    """
    for d in (5, 50):
        print(f"\n## Add/remove compared with replacement: n = 5000, d = {d}, rho = 0.028\n\n{HEAD_OF_RATIOS}")
        highest, most = 0.0, 0.0
        for name, generate in SETS.items():
            points = generate(np.random.default_rng(1), 5000, d)
            replaced, added = (
                measure(points, runs, rho=0.028, method="adaptive", neighbours=relation)
                for relation in ("replace", "add_remove")
            )
            ratio = ratio_of(added, replaced)
            highest, most = max(highest, ratio[0]), max(most, ratio[0] if name in SMOOTH else 0.0)
            covered = f"{np.mean(added.error <= added.radius):.0%}"
            print(
                f"| {name} | {runs} | {replaced.failed} | {added.failed} | {np.median(replaced.excess):.2e} | "
                f"{np.median(added.excess):.2e} | {ratio[0]:.2f} [{ratio[1]:.2f}, {ratio[2]:.2f}] | {covered} |",
                flush=True,
            )
        print(f"\nlargest ratio: {most:.2f} of the smooth sets ({', '.join(SMOOTH)}), {highest:.2f} of all")


def inference_table(runs: int) -> None:
    """Print the effect of a confidence region on the point: M and the median excess, with and without the stages for
    the region.
    """
    for n, d in ((1000, 5), (5000, 5), (5000, 50), (100_000, 10)):
        print(f"\n## With and without a confidence region: n = {n}, d = {d}, epsilon = 1, delta = 1e-6\n")
        print("| data | runs | failed, with | failed, without | M, with | M, without | ratio of medians [95 %] |")
        print("|---|---|---|---|---|---|---|")
        for name in SMOOTH:
            points = SETS[name](np.random.default_rng(1), n, d)
            there, away = (
                measure(points, runs, epsilon=1.0, delta=1e-6, method="adaptive", inference=inference)
                for inference in (True, False)
            )
            if not (len(there.excess) and len(away.excess)):
                print(f"| {name} | {runs} | {there.failed} | {away.failed} | | | |", flush=True)
                continue
            ratio = ratio_of(there, away)
            print(
                f"| {name} | {runs} | {there.failed} | {away.failed} | {there.over_limit()} | {away.over_limit()} | "
                f"{ratio[0]:.2f} [{ratio[1]:.2f}, {ratio[2]:.2f}] |",
                flush=True,
            )


def ratio_of(one: Runs, other: Runs) -> tuple[float, float, float]:
    """Return the ratio of two median excesses with a bootstrap interval, or 1 if both are zero up to rounding."""
    rng = np.random.default_rng(0)
    # An excess below the precision of F has no meaning.
    medians = [
        np.maximum(np.median(rng.choice(runs.excess, size=(2000, len(runs.excess))), axis=1), 1e-15)
        for runs in (one, other)
    ]
    ratio = max(float(np.median(one.excess)), 1e-15) / max(float(np.median(other.excess)), 1e-15)
    low, high = np.quantile(medians[0] / medians[1], [0.025, 0.975])
    return ratio, float(low), float(high)


def print_peers(points: Points, radius: float, epsilon: float, delta: float, others: Others) -> None:
    """Print coordinate medians, which need no radius, and methods that need a radius and get a radius that contains all
    records.
    """
    print(coordinate_medians(points, 3, epsilon, delta), flush=True)
    for method in ("dpgd", "loc_dpgd"):
        resolution = None if method == "dpgd" else 1e-6 * radius
        made = measure(points, 3, epsilon=epsilon, delta=delta, method=method, radius=radius, resolution=resolution)
        print(made.row(f"... {method}, radius {radius:.0e}", None), flush=True)
    rho = dpmedian.plan(*points.shape, epsilon=epsilon, delta=delta).cost.rho
    yardstick = Yardstick(points)
    # Peers that need a scale get the exact scale of the data, which nobody knows in practice.
    distance = np.linalg.norm(points - yardstick.median, axis=1)
    told = Told(rho, radius, float(np.median(distance)) / math.sqrt(points.shape[1]) or 1.0, delta)
    for name, release in others.items():
        excess = [math.inf if found is None else yardstick.excess(found) for found in runs_of(release, points, told, 3)]
        middle = float(np.median(excess))
        failed = sum(math.isinf(value) for value in excess)
        shown = "" if math.isinf(middle) else f"{middle:.2e}"
        print(f"| ... {name} | 3 | {failed} | {shown} | | | | | | | |", flush=True)


def coordinate_medians(points: Points, runs: int, epsilon: float, delta: float) -> str:
    """Return a line about the search for the center with the whole budget, which finds the coordinate medians, and
    about its excess.
    """
    n, d = points.shape
    parameters = PublicParameters.of(n, d, epsilon=epsilon, delta=delta)

    def search(rho: float) -> CoordinateSearch:
        return CoordinateSearch.of("medians", rho, parameters, releases=80)

    spec = search(calibrate(lambda rho: search(rho).ranks.cost, parameters.budget))
    source, best = ArraySource.of(points, parameters), nonprivate.objective(points, nonprivate.geometric_median(points))
    excess = []
    for run in range(runs):
        found = spec.release(
            source,
            Tape.draw(run.to_bytes(32, "little")),
            center=parameters.origin,
            octave=0,
            limit=LARGEST,
            resolution=2.0**-20,
        )
        excess.append(nonprivate.objective(points, found.value.point) / best - 1.0)
    return f"| ... coordinate medians, no radius | {runs} | 0 | {np.median(excess):.2e} | | | | | | | |"


def small_table(runs: int) -> None:
    print(f"\n## Small samples, and digits\n\n{HEAD}")
    points = np.random.default_rng(2).normal(size=(300, 2))
    made = measure(points, runs, epsilon=1.0, delta=1e-5, method="adaptive")
    print(made.row("N(0, I), n = 300, d = 2", None), flush=True)
    good = int(np.sum(made.excess < 1e-2))
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        print("| digits: scikit-learn is not installed | | | | | | | | | | |")
    else:
        digits = np.asarray(load_digits().data, dtype=np.float64)
        for epsilon, limit in ((1.0, 1.2e-3), (3.0, None)):
            made = measure(digits, runs, epsilon=epsilon, delta=1e-5, method="adaptive")
            print(made.row(f"digits, epsilon {epsilon:g} (held out)", limit), flush=True)
    print(f"\nn = 300, d = 2: {good} of {runs} runs have an excess below 1e-2.")


LARGE = ((100_000, 10), (1_000_000, 3), (100_000, 50))
LARGE_SETS = ("gauss", "t2", "cauchy", "lognormal", "two", "three", "halves", "aniso", "lattice", "atom")


def large_table(runs: int, sets: Sequence[str], sizes: Sequence[tuple[int, int]], seed: int) -> None:
    """Print results for many records: the passes of a run over all records, and its cost before the last gradient."""
    for n, d in sizes:
        print(f"\n## Many records: n = {n}, d = {d}, epsilon = 1, delta = 1e-6\n")
        print(
            "| data | runs | failed | median excess | M | passes, most | of the sample | before last, most | covered |"
        )
        print("|---|---|---|---|---|---|---|---|---|")
        for name in sets:
            print(large_row(name, SETS[name](np.random.default_rng(seed + 1), n, d), runs, seed), flush=True)


def large_row(name: str, points: Points, runs: int, first: int) -> str:
    plan = dpmedian.plan(*points.shape, epsilon=1.0, delta=1e-6, method="adaptive")
    source, yardstick = ArraySource.of(points, plan.parameters), Yardstick(points)
    limit, excess, covered, counted = yardstick.limit(plan.cost.rho), [], [], []
    for seed in range(first, first + runs):
        counts = Counts()
        try:
            found = plan.calibrated.run(CountedSource(source, counts), cast(Tape, CountedTape(seed, counts)))
        except dpmedian.ReleaseFailed:
            continue
        counted.append(counts)
        excess.append(yardstick.excess(found.point))
        if found.error_radius is not None and not found.notes:
            covered.append(bool(np.linalg.norm(found.point - yardstick.median) <= found.error_radius))
    if not counted:
        return f"| {name} | {runs} | {runs} | | | | | | |"
    made = Runs(np.array(excess), 1.0, np.array([]), np.array([]), runs - len(excess), plan, limit)
    passes, samples = [counts.passes for counts in counted], [counts.sample_passes for counts in counted]
    before = [counts.before_last for counts in counted]
    share = f"{np.mean(covered):.0%} of {len(covered)}" if covered else ""
    return (
        f"| {name} | {runs} | {made.failed} | {np.median(excess):.2e} | {made.over_limit()} | {np.mean(passes):.1f}, "
        f"{max(passes)} | {np.mean(samples):.0f} | {np.mean(before):.1%}, {max(before):.1%} | {share} |"
    )


def edges_table(runs: int, seed: int) -> None:
    """Print results with new data in every run. `lost` counts failures and excesses above 1; `noted` counts results
    with any note.
    """
    print("\n## Hard data: epsilon = 1, delta = 1e-6, new data in every run\n")
    print("| data | n | d | runs | lost | median excess | covered | covered or noted | goal |")
    print("|---" * 9 + "|")
    for name, edge in EDGES.items():
        plan = dpmedian.plan(edge.n, edge.d, epsilon=1.0, delta=1e-6, method="adaptive")
        excess, covered, noted = [], [], []
        for run in range(seed, seed + runs):
            points = edge.generate(np.random.default_rng([edge.n, edge.d, run]), edge.n, edge.d)
            outcome = attempt(plan, ArraySource.of(points, plan.parameters), run)
            if outcome is None:
                continue
            yardstick, radius = Yardstick(points), outcome.error_radius or 0.0
            excess.append(yardstick.excess(outcome.point))
            covered.append(bool(np.linalg.norm(outcome.point - yardstick.median) <= radius))
            noted.append(covered[-1] or bool(outcome.notes))
        lost = runs - sum(value < 1.0 for value in excess)
        print(
            f"| {name} | {edge.n} | {edge.d} | {runs} | {lost} ({lost / runs:.1%}) | {np.median(excess):.2e} | "
            f"{np.mean(covered):.1%} | {np.mean(noted):.1%} | {edge.goal} |",
            flush=True,
        )


def upper_bound(events: int, runs: int, alpha: float = 0.05) -> float:
    """Return the one-sided Clopper-Pearson bound: the rate at which at most this number of events has probability
    alpha.
    """
    if events == runs:
        return 1.0
    low, high = events / runs, 1.0
    for _ in range(60):
        rate = (low + high) / 2.0
        logs = [
            math.lgamma(runs + 1) - math.lgamma(k + 1) - math.lgamma(runs - k + 1)
            + k * math.log(rate) + (runs - k) * math.log1p(-rate)
            for k in range(events + 1)
        ]  # fmt: skip
        low, high = (rate, high) if sum(map(math.exp, logs)) > alpha else (low, rate)
    return high


class Judged(NamedTuple):
    """Whether a release has an excess above 1 (`bad`), and whether a note says that the records may be elsewhere
    (`doubted`).
    """

    bad: bool
    doubted: bool


def judged(plan: dpmedian.Plan, generate: Generator, run: int) -> Judged | None:
    """Judge a release of new data. The result is None if the release failed."""
    n, d = plan.n, plan.d
    points = generate(np.random.default_rng([n, d, run]), n, d)
    outcome = attempt(plan, ArraySource.of(points, plan.parameters), run)
    if outcome is None:
        return None
    value = nonprivate.objective(points, outcome.point)
    # The coordinate medians are close enough to the optimum to detect an excess of 1, and are fast.
    far = value > 1.5 * nonprivate.objective(points, np.median(points, axis=0))
    bad = far and value > 2.0 * nonprivate.objective(points, nonprivate.geometric_median(points))
    return Judged(bad, DOUBTED in outcome.notes)


def garbage(plan: dpmedian.Plan, generate: Generator, run: int) -> bool | None:
    """Return whether a release of new data has an excess above 1, or None if the release failed."""
    made = judged(plan, generate, run)
    return None if made is None else made.bad


def long_plans(n: int) -> list[dpmedian.Plan]:
    """A plan in every dimension of the long table."""
    return [dpmedian.plan(n, d, epsilon=1.0, delta=1e-6, method="adaptive") for d in (2, 5, 50)]


def long_row(n: int, name: str, runs: int) -> str:
    """Return one row of the long table. The runs are divided evenly among the dimensions whose plans are not
    refused.
    """
    dpmedian.set_threads(1)
    plans = [plan for plan in long_plans(n) if plan.prediction.failure <= 0.5]
    seen = [judged(plans[run % len(plans)], (SETS | HARD)[name], run) for run in range(runs)]
    made, dimensions = [one for one in seen if one is not None], ", ".join(str(plan.d) for plan in plans)
    bad, silent = sum(one.bad for one in made), sum(one.bad and not one.doubted for one in made)
    predicted = runs * sum(plan.prediction.failure for plan in plans) / len(plans)
    counts = f"{runs - len(made)} | {predicted:.0f} | {sum(one.doubted for one in made)} | {bad} | {silent}"
    return f"| {name} | {n} | {dimensions} | {runs} | {counts} | {upper_bound(silent, runs):.2e} |"


def long_table(runs: int, minutes: float) -> None:
    """Print a row for every set and every n, each computed in a process of its own. Refused plans spend and return
    nothing.

    A useless point is silent if the release lacks the note that the records may be together far away from the point. If
    there are few records, good points have this note, too. So the table shows the number of all points with the note,
    and the number of all useless points.
    """
    print("\n## Useless points without a note: epsilon = 1, delta = 1e-6\n")
    columns = (
        "data | n | d | runs | failed | predicted | with the note | excess above 1 | of these without the note "
        "| upper bound (95 %)"
    )
    print(f"| {columns} |")
    print("|---" * 10 + "|")
    end = time.monotonic() + 60.0 * minutes
    with ProcessPoolExecutor() as pool:
        for n in (50, 100, 300, 1000, 5000):
            plans = long_plans(n)
            refused = [plan for plan in plans if plan.prediction.failure > 0.5]
            for plan in refused:
                print(
                    f"| all | {n} | {plan.d} | refused | | {plan.prediction.failure:.2g} of one | | | | |", flush=True
                )
            names = list(SETS | HARD) if len(refused) < len(plans) else []
            # Runs with few records are fast. For them, a useless point without the note is rare, but not as rare as
            # with many records.
            each = 3 * runs if n <= 100 else runs
            for row in pool.map(long_row, [n] * len(names), names, [each] * len(names)):
                print(row, flush=True)
                if time.monotonic() > end:
                    print(f"\nStopped after {minutes:g} minutes. The remaining rows were not run.")
                    pool.shutdown(wait=False, cancel_futures=True)
                    return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, help="runs of every row")
    parser.add_argument("--quick", action="store_true", help="a tenth of the runs")
    parser.add_argument(
        "--peers",
        nargs="?",
        const="",
        metavar="DIRECTORY",
        help="also coordinate medians and methods that need a radius; with a directory of checkouts, other private "
        "locations, too",
    )
    parser.add_argument("--long", action="store_true", help="only the long table: useless points without a note")
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="stop the long table after this number of minutes"
    )
    parser.add_argument("--edges", action="store_true", help="only data that are hard for the method")
    parser.add_argument("--seed", type=int, default=0, help="with --large or --edges: other data and noise")
    parser.add_argument(
        "--no-inference", dest="inference", action="store_false", help="no budget for confidence regions"
    )
    parser.add_argument("--region", action="store_true", help="only the effect of a confidence region on the point")
    parser.add_argument("--confirm", action="store_true", help="only the gauntlet on sets kept for confirmation")
    parser.add_argument("--large", action="store_true", help="only the tables of 10^5 and 10^6 records")
    parser.add_argument(
        "--neighbours",
        choices=("replace", "add_remove"),
        default="replace",
        help="add_remove: compare with replacement at equal rho",
    )
    parser.add_argument("--sets", nargs="+", choices=SETS, help="only these sets, in the gauntlet or with --large")
    parser.add_argument(
        "--dimensions",
        nargs="+",
        type=int,
        choices=MORE_DIMENSIONS,
        default=DIMENSIONS,
        help="dimensions of the gauntlet",
    )
    options = parser.parse_args()

    def count(usual: int) -> int:
        return options.runs or (usual // 10 if options.quick else usual)

    if options.long:
        long_table(count(3000), options.minutes)
        return
    if options.edges:
        edges_table(count(1000), options.seed)
        return
    if options.region:
        inference_table(count(200))
        return
    if options.confirm:
        gauntlet_table(count(200), None, CONFIRM, options.inference, options.dimensions)
        return
    if options.large:
        large_table(count(50), options.sets or LARGE_SETS, LARGE, options.seed)
        return
    if options.neighbours == "add_remove":
        neighbours_table(count(200))
        return
    others = None if options.peers is None else available(Path(options.peers)) if options.peers else {}
    if options.sets:
        chosen = {name: SETS[name] for name in options.sets}
        gauntlet_table(count(200), others, chosen, options.inference, options.dimensions)
        return
    paper_table(count(20), others)
    gauntlet_table(count(200), others, SETS, options.inference, options.dimensions)
    small_table(count(100))


if __name__ == "__main__":
    main()
