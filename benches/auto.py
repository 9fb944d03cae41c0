"""Shows which method `auto` chooses for few records, and whether another method would have been better.

    python benches/auto.py             # n = 30 ... 1000, d = 1 ... 20, with and without radius and resolution
    python benches/auto.py --quick     # fewer sizes and runs
    python benches/auto.py --neighbours add_remove
    python benches/auto.py --refusals  # is the number of records in a refusal accepted?
    python benches/auto.py --seed 100000 --sets weibull logistic scales helix five   # other noise, and other data

Every method that the parameters allow runs on the same new data, with core radius 1. The distance of the median from
the center is between 1/6 and 1/2 of the radius, or without a radius between 500 and 1500 core radii, as plans assume.
The distance varies because with a fixed distance, a descent of a few long steps might end near the median by chance.
The error of a run is the distance of its point from the median in core radii, but at most 3, and it is 1 for a failed
run, as in a plan. "measured" is the mean over all sets, and "predicted" is the plan's prediction for this core radius.
Plans that `run` would refuse are left out, because they spend and return nothing.

The ratio is the measured error of the choice divided by the measured error of the best method that is not refused, with
a lower 5 % bound by bootstrap. A choice uses public parameters only, which are the same for all rows of a block, except
for the unit of length. So the ratio of a block is the largest ratio of its rows. The last column is the smallest ratio
that any rule could have, which is the smallest of these ratios over all methods.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import math
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from gauntlet import CONFIRM, SETS, Points, attempt

import dpmedian
from dpmedian import nonprivate
from dpmedian.methods.contract import USELESS
from dpmedian.methods.registry import METHODS
from dpmedian.sources.array import ArraySource

Place = tuple[float | None, float | None]

# The sets to which predictions were fitted, with seeds from 1000 on. None of these sets is in `CONFIRM`.
NAMES = ("gauss", "t2", "two", "atom")
GENERATORS = SETS | CONFIRM
# The largest acceptable error of the choice, divided by the error of the best method.
MOST = 1.3
# Radius and resolution in core radii: the rows of a block have the same public parameters in different units.
BLOCKS: tuple[tuple[Place, ...], ...] = (
    ((None, None),),
    ((10.0, None), (1000.0, None)),
    ((10.0, 0.01), (100.0, 0.1)),
    ((10.0, 0.001), (1000.0, 0.1)),
)


@functools.lru_cache(maxsize=256)  # Every method of a row uses the same points.
def data(name: str, n: int, d: int, radius: float | None, run: int) -> tuple[Points, Points]:
    """Points with core radius 1 around a median at a known distance from the origin, and this median."""
    rng = np.random.default_rng([n, d, run])
    points = GENERATORS[name](rng, n, d)
    center = nonprivate.geometric_median(points)
    distances = np.linalg.norm(points - center, axis=1)
    spread = float(np.quantile(distances, 0.4)) or float(np.quantile(distances, 0.9))
    direction = rng.normal(size=d)
    away = 1000.0 if radius is None else radius / 3.0
    place = away * rng.uniform(0.5, 1.5) * direction / np.linalg.norm(direction)
    points = (points - center) / spread + place
    if radius is not None:
        # Records outside of the public ball are projected onto the ball. This is so for the second cluster of `two`.
        points *= np.minimum(1.0, radius / np.linalg.norm(points, axis=1, keepdims=True))
    return points, nonprivate.geometric_median(points)


def plan_of(method: str, n: int, d: int, place: Place, neighbours: str) -> dpmedian.Plan:
    given = dict(zip(("radius", "resolution"), place, strict=True))
    uses = frozenset(given) if method == "auto" else METHODS[method].uses
    used = {key: value for key, value in given.items() if value is not None and key in uses}
    return dpmedian.plan(n, d, epsilon=1.0, delta=1e-6, method=method, neighbours=neighbours, **used)  # type: ignore[arg-type]


def refused(plan: dpmedian.Plan) -> bool:
    try:
        plan.refuse_if_hopeless()
    except ValueError:
        return True
    return False


def possible(n: int, d: int, block: tuple[Place, ...], neighbours: str) -> list[str]:
    """The methods that these parameters allow and whose plans are not refused."""
    found = []
    for name in METHODS:
        try:
            if not refused(plan_of(name, n, d, block[0], neighbours)):
                found.append(name)
        except ValueError:
            continue
    return found


class Measured:
    """The errors of one method on some sets, and the share of failed or useless runs."""

    def __init__(
        self, plan: dpmedian.Plan, radius: float | None, runs: int, names: Sequence[str] = NAMES, seed: int = 0
    ) -> None:
        assert plan.n is not None
        self.errors, lost = np.empty((len(names), runs)), 0
        for i, name in enumerate(names):
            for run in range(runs):
                points, median = data(name, plan.n, plan.d, radius, seed + run)
                found = attempt(plan, ArraySource.of(points, plan.parameters), seed + run)
                error = 1.0 if found is None else float(np.linalg.norm(found.point - median))
                lost += found is None or error > USELESS
                self.errors[i, run] = min(error, USELESS)
        self.failure = lost / self.errors.size

    @property
    def error(self) -> float:
        return float(self.errors.mean())

    def over(self, best: Measured) -> tuple[float, float]:
        """The ratio of the errors, and its lower 5 % bound over sets of runs."""
        picks = np.random.default_rng(0).integers(self.errors.shape[1], size=(500, self.errors.shape[1]))
        own, other = (each.errors[:, picks].mean(axis=(0, 2)) for each in (self, best))
        return self.error / best.error, float(np.quantile(own / other, 0.05))


class Outcome(NamedTuple):
    """The results for one block: the ratio of the choice, its lower bound, and the smallest ratio that any rule could
    have.
    """

    ratio: float
    low: float
    least: float


def show(n: int, d: int, block: tuple[Place, ...], options: argparse.Namespace) -> Outcome | None:
    """Print one line for each entry of a block. The result is None if the plan is refused."""
    neighbours = options.neighbours
    chosen = plan_of("auto", n, d, block[0], neighbours).method
    names = possible(n, d, block, neighbours)
    if not names:
        for radius, resolution in block:
            print(f"| {n} | {d} | {radius or ''} | {resolution or ''} | refused | | | | | | | |", flush=True)
        return None
    ratios: dict[str, list[float]] = {name: [] for name in names}
    worst, lines = (0.0, 0.0), []
    for place in block:
        measured = {
            name: Measured(plan_of(name, n, d, place, neighbours), place[0], options.runs, options.sets, options.seed)
            for name in names
        }
        best = min(names, key=lambda name: measured[name].error)
        for name in names:
            ratios[name].append(measured[name].error / measured[best].error)
        over, predicted = measured[chosen].over(measured[best]), plan_of(chosen, n, d, place, neighbours)
        worst = max(worst, over)
        expected, own = predicted.calibrated.predict(1.0), measured[chosen]
        lines.append(
            f"| {n} | {d} | {place[0] or ''} | {place[1] or ''} | {chosen} | {expected.expected_error(1.0):.2g} | "
            f"{own.error:.2g} | {expected.failure:.2g} | {own.failure:.2g} | {best}, {measured[best].error:.2g} | "
            f"{over[0]:.2f} [{over[1]:.2f}] |"
        )
    least = min(max(each) for each in ratios.values())
    for line in lines:
        print(f"{line} {least:.2f} |", flush=True)
    return Outcome(*worst, least)


REFUSED = (
    {},
    {"radius": 60.0},
    {"radius": 1e6},
    {"radius": 60.0, "resolution": 0.1},
    {"radius": 1e4, "resolution": 0.1},
)


def refusals(neighbours: str) -> None:
    """Check refusals of plans for four records. The number of records that a refusal names, and all larger numbers,
    must be accepted, and a number that is 10 % smaller must not.
    """
    print("| method | d | given | failure probability | refused plan of | records named | wrong |\n" + "|---" * 7 + "|")
    total = wrong = free = 0
    for method in ("auto", *METHODS):
        for d, given, beta in itertools.product((1, 2, 3, 10, 100), REFUSED, (0.05, 0.8)):
            uses = frozenset(given) if method == "auto" else METHODS[method].uses
            if not given.keys() <= uses:
                continue
            asked = {**given, "method": method, "neighbours": neighbours, "failure_probability": beta}

            def made(n: int, d: int = d, asked: dict[str, object] = asked) -> dpmedian.Plan:
                return dpmedian.plan(n, d, epsilon=1.0, delta=1e-6, **asked)  # type: ignore[arg-type]

            try:
                plan = made(4)
            except ValueError:  # The number is outside of the range of the search.
                continue
            try:
                plan.refuse_if_hopeless()
            except ValueError as error:
                found = re.search(r"about (\d+) would do", str(error))
            else:
                free += 1
                continue
            total += 1
            n = 0 if found is None else int(found.group(1))
            bad = []
            if n == 0 or refused(made(n)):
                bad.append("not accepted")
            elif not refused(made(max(math.floor(0.9 * n), 2))):
                bad.append("a tenth less is accepted")
            if n and any(refused(made(math.ceil(factor * n))) for factor in (1.05, 1.2, 1.5, 2.0, 3.0, 5.0)):
                bad.append("more are not accepted")
            wrong += bool(bad)
            print(f"| {method} | {d} | {given} | {beta} | {plan.method} | {n} | {', '.join(bad)} |", flush=True)
    print(f"\nOf {total} refusals {wrong} are wrong. {free} plans for four records are not refused.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer sizes, a quarter of the runs")
    parser.add_argument("--runs", type=int, help="runs of every set")
    parser.add_argument("--neighbours", choices=("replace", "add_remove"), default="replace")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first run")
    parser.add_argument("--sets", nargs="+", choices=sorted(GENERATORS), default=NAMES, help="other data")
    parser.add_argument("--refusals", action="store_true", help="only the check of refusals")
    options = parser.parse_args()
    if options.refusals:
        refusals(options.neighbours)
        return
    sizes = (50, 150, 500) if options.quick else (30, 50, 75, 100, 150, 200, 300, 500, 1000)
    dimensions = (1, 2, 5, 20) if options.quick else (1, 2, 3, 5, 10, 20)
    options.runs = options.runs or (5 if options.quick else 20)
    print(
        "| n | d | radius | resolution | chosen | predicted | measured | predicted failure | measured | best | "
        "ratio [5 %] | least |\n" + "|---" * 12 + "|"
    )
    found = [
        outcome
        for d in dimensions
        for n in sizes
        for block in BLOCKS
        if (outcome := show(n, d, block, options)) is not None
    ]
    above = [outcome for outcome in found if outcome.ratio > MOST]
    forced = [outcome for outcome in above if outcome.least > MOST]
    avoidable = [outcome for outcome in above if outcome.least <= MOST]
    sure = [outcome for outcome in avoidable if outcome.low > MOST]
    worst = max((outcome.ratio for outcome in avoidable), default=MOST)
    print(
        f"\nThe choice has at most {MOST:g} times the error of the best method in {len(found) - len(above)} of "
        f"{len(found)} blocks that are not refused. In {len(forced)} no rule that knows public parameters only could "
        f"have kept that; in {len(avoidable)} another choice would have, at worst {worst:.2f} instead, in {len(sure)} "
        "of them beyond the noise of the measurement."
    )


if __name__ == "__main__":
    main()
