"""Which method `auto` chooses for few records, and whether another one would have been better.

    python benches/auto.py             # n = 30 ... 1000, d = 1 ... 20, with and without radius and resolution
    python benches/auto.py --quick     # fewer sizes and runs

Every method that the parameters allow runs on the same fresh data, of spread 1 and 0.3 radii away from the center (10
spreads where there is no radius). The error of a run is its distance from the median in spreads, at most 3, and 1 where
it failed, as a plan counts it; measured is the mean over all sets. A plan that `run` would refuse spends and returns
nothing. The last column is the measured error of the choice over that of the best method that is not refused.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
from gauntlet import SETS, Points, attempt

import dpmedian
from dpmedian import nonprivate
from dpmedian.methods.registry import METHODS
from dpmedian.sources.array import ArraySource

NAMES = ("gauss", "t2", "two", "atom")
# What the choice's error may be, over that of the best method.
MOST = 1.3


def data(name: str, n: int, d: int, radius: float | None, run: int) -> tuple[Points, Points]:
    """Points whose spread is 1 around a median at a known distance from the origin, and that median."""
    rng = np.random.default_rng([n, d, run])
    points = SETS[name](rng, n, d)
    center = nonprivate.geometric_median(points)
    distances = np.linalg.norm(points - center, axis=1)
    spread = float(np.quantile(distances, 0.4)) or float(np.quantile(distances, 0.9))
    direction = rng.normal(size=d)
    place = (10.0 if radius is None else 0.3 * radius) * direction / np.linalg.norm(direction)
    points = (points - center) / spread + place
    if radius is not None:
        # Records outside of the public ball are projected onto it: the second cluster of `two` is.
        points *= np.minimum(1.0, radius / np.linalg.norm(points, axis=1, keepdims=True))
    return points, nonprivate.geometric_median(points)


def plans(n: int, d: int, radius: float | None, resolution: float | None) -> Iterator[dpmedian.Plan]:
    """Those of all methods that these parameters allow."""
    for name, method in METHODS.items():
        given = {"radius": radius, "resolution": resolution}
        used = {key: value for key, value in given.items() if value is not None and key in method.uses}
        try:
            yield dpmedian.plan(n, d, epsilon=1.0, delta=1e-6, method=name, **used)  # type: ignore[arg-type]
        except ValueError:
            continue


def refused(plan: dpmedian.Plan) -> bool:
    try:
        plan.refuse_if_hopeless()
    except ValueError:
        return True
    return False


def measure(plan: dpmedian.Plan, radius: float | None, runs: int) -> tuple[float, float]:
    """The mean error over all sets, and the share of failed runs."""
    errors, failed = [], 0
    for name in NAMES:
        for run in range(runs):
            points, median = data(name, plan.n, plan.d, radius, run)
            found = attempt(plan, ArraySource.of(points, plan.parameters), run)
            failed += found is None
            errors.append(1.0 if found is None else min(float(np.linalg.norm(found.point - median)), 3.0))
    return float(np.mean(errors)), failed / len(errors)


def row(n: int, d: int, radius: float | None, resolution: float | None, runs: int) -> tuple[str, float]:
    """One line of the table, and the last ratio in it."""
    given = {key: value for key, value in (("radius", radius), ("resolution", resolution)) if value is not None}
    head = f"| {n} | {d} | {radius or ''} | {resolution or ''} |"
    chosen = dpmedian.plan(n, d, epsilon=1.0, delta=1e-6, **given)  # type: ignore[arg-type]
    if refused(chosen):
        return f"{head} refused | | | | | |", 1.0
    measured = {
        plan.method: measure(plan, radius, runs) for plan in plans(n, d, radius, resolution) if not refused(plan)
    }
    error, failed = measured[chosen.method]
    best = min(measured, key=lambda method: measured[method][0])
    ratio = error / measured[best][0]
    predicted = chosen.prediction
    return (
        f"{head} {chosen.method} | {chosen.expected_error / chosen.parameters.assumed_spread:.2g} | {error:.2g} | "
        f"{predicted.failure:.2g} | {failed:.2g} | {best}, {measured[best][0]:.2g} | {ratio:.2f} |",
        ratio,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer sizes, a quarter of the runs")
    parser.add_argument("--runs", type=int, help="runs of every set")
    options = parser.parse_args()
    sizes = (50, 150, 500) if options.quick else (30, 50, 75, 100, 150, 200, 300, 500, 1000)
    dimensions = (1, 2, 5, 20) if options.quick else (1, 2, 3, 5, 10, 20)
    runs = options.runs or (5 if options.quick else 20)
    print(
        "| n | d | radius | resolution | chosen | predicted | measured | predicted failure | measured | best | ratio |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    worst = 0.0
    for d in dimensions:
        for n in sizes:
            for radius, resolution in ((None, None), (10.0, None), (10.0, 0.01), (1000.0, None), (1000.0, 0.1)):
                text, ratio = row(n, d, radius, resolution, runs)
                worst = max(worst, ratio)
                print(text, flush=True)
    verdict = "kept" if worst <= MOST else "missed"
    print(f"\nThe choice has at most {MOST:g} times the error of the best method: {verdict}, {worst:.2f} at worst.")


if __name__ == "__main__":
    main()
