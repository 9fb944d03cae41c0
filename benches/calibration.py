"""Compares predictions of plans with measurements. Every run has new data.

    python benches/calibration.py             # the default method: excess, its bound, and failures: half an hour
    python benches/calibration.py --methods   # every method: expected error and failures: a quarter of an hour
    python benches/calibration.py --signal    # the default method near the smallest signals: failures: ten minutes
    python benches/calibration.py --quick     # a fifth of the runs
    python benches/calibration.py --methods --seed 1000   # other data and noise
    python benches/calibration.py --methods --neighbours add_remove

Excess: predictions are relative to F of the core, which is n times the median of the distances from the median. The
first ratio is relative to F itself, which is larger if there are far records. The bound is compared with the 90 %
quantile.

Failure: a run is lost if it fails, or if its excess is above 1. A prediction is missed if it is below the 95 % lower
bound of the measured rate. The data of `laplace` are 10^7 core radii away from the center. Predictions do not include
such data.

Signal: failures as above at the signal s = n sqrt(rho/d), without a radius and with radii from 10 to 10^4 core radii. A
prediction is for a cloud. It is missed if it is not within a factor of 1.5 of the 95 % bounds of the measured rate.

Methods: clouds (gauss, t2) with core radius 1. Their distance from the center, and the definitions of error and
failure, are as in `benches/auto.py`. A ratio is missed if it is not within a factor of 1.5, and a failure rate if it is
outside of its 95 % bounds.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from auto import Measured, Place, data, plan_of, refused
from gauntlet import PREDICTIONS, SETS, Points, Yardstick, attempt, garbage, paper, predictions, upper_bound

import dpmedian
from dpmedian.methods.contract import USELESS
from dpmedian.methods.registry import METHODS
from dpmedian.sources.array import ArraySource

# Data sets whose excess must be predicted within a factor of two, relative to F of the core.
CLOUDS = ("gauss", "t2", "paper")
FAR = "laplace"


def excess_row(name: str, n: int, d: int, epsilon: float, runs: int) -> str:
    generate = paper if name == "paper" else SETS[name]
    plan = dpmedian.plan(n, d, epsilon=epsilon, delta=1e-6, method="adaptive")
    excess, core = [], []
    for run in range(runs):
        points = generate(np.random.default_rng([n, d, run]), n, d)
        outcome = attempt(plan, ArraySource.of(points, plan.parameters), run)
        if outcome is not None:
            yardstick = Yardstick(points)
            excess.append(yardstick.excess(outcome.point))
            core.append(yardstick.core)
    ratios = predictions(plan, np.array(excess), np.array(core)) if excess else " | | "
    median_excess = f"{np.median(excess):.2e}" if excess else ""
    failed = runs - len(excess)
    return f"| {name} | {n} | {d} | {epsilon:g} | {runs} | {failed} | {median_excess} | {ratios} |"


def hopeless(n: int, d: int, epsilon: float) -> bool:
    """Whether `run` would refuse the plan."""
    return dpmedian.plan(n, d, epsilon=epsilon, delta=1e-6, method="adaptive").prediction.failure > 0.5


def excess_table(runs: int) -> None:
    print("\n## Predicted excess: delta = 1e-6\n")
    print(f"| data | n | d | epsilon | runs | failed | median excess | {PREDICTIONS} |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    grid = [(n, d, 1.0) for d in (1, 2, 5, 50, 200) for n in (300, 1000, 5000, 100_000)]
    grid += [(5000, d, epsilon) for d in (2, 50) for epsilon in (0.3, 3.0)]
    elsewhere = [(n, 1, 1.0) for n in (1000, 20_000)] + [(300, 2, 1.0), (1000, 5, 1.0)]
    elsewhere += [(5000, d, 1.0) for d in (2, 5, 50)]
    for name in (*CLOUDS, *(name for name in SETS if name not in CLOUDS)):
        for n, d, epsilon in grid if name in CLOUDS else elsewhere:
            if not hopeless(n, d, epsilon):
                # In many dimensions the excess hardly varies, and large data take long.
                fewer = max(runs // 10 if n * d > 100_000 else runs, 5)
                print(excess_row(name, n, d, epsilon, fewer), flush=True)


def failure_table(runs: int) -> None:
    print("\n## Predicted probability of failure, and lost runs by set: delta = 1e-6\n")
    print(f"| n | d | epsilon | predicted | {' | '.join(SETS)} | missed |")
    print("|---" * (len(SETS) + 5) + "|")
    for epsilon in (0.3, 1.0, 3.0):
        for d in (1, 2, 5, 10):
            for n in (50, 75, 100, 150, 200, 300, 500):
                plan = dpmedian.plan(n, d, epsilon=epsilon, delta=1e-6, method="adaptive")
                predicted = plan.prediction.failure
                if predicted > 0.5:
                    print(f"| {n} | {d} | {epsilon:g} | {predicted:.2g}: refused | {' |' * len(SETS)} |", flush=True)
                    continue
                lost = {
                    name: sum(garbage(plan, generate, run) is not False for run in range(runs))
                    for name, generate in SETS.items()
                }
                # The lower bound of a rate is one minus the upper bound of its complement.
                missed = [name for name, k in lost.items() if 1.0 - upper_bound(runs - k, runs) > predicted]
                cells = " | ".join(f"{k / runs:.2g}" for k in lost.values())
                named = ", ".join(name for name in missed if name != FAR)
                print(f"| {n} | {d} | {epsilon:g} | {predicted:.2g} | {cells} | {named} |", flush=True)


# Signals n sqrt(rho/d), and radii in core radii. Failure rates below RARE are not compared by a factor.
SIGNALS, RADII = (8, 10, 12, 15, 18, 25, 40), (None, 10.0, 100.0, 1000.0, 10_000.0)
SIGNAL_SETS = ("gauss", "t2", "two", "halves")
RARE = 0.03
FACTOR = 1.5


def signal_table(runs: int, seed: int) -> None:
    """Print failures for small numbers of records, in few and in many dimensions. Predictions are for the first set,
    which is a cloud.
    """
    print("\n## Lost runs of the default method with few records: epsilon = 1, delta = 1e-6\n")
    print(f"| s | d | n | radius | predicted | {' | '.join(SIGNAL_SETS)} | ratio | missed |")
    print("|---" * (len(SIGNAL_SETS) + 7) + "|")
    rho = dpmedian.plan(1000, 2, epsilon=1.0, delta=1e-6, method="adaptive").cost.rho
    rows = missed = 0
    for radius in RADII:
        for d in (1, 2, 5, 20):
            for signal in SIGNALS:
                n = round(signal * (d / rho) ** 0.5)
                plan = plan_of("adaptive", n, d, (radius, None), "replace")
                lost = {}
                for name in SIGNAL_SETS:
                    made = SETS[name] if radius is None and name != SIGNAL_SETS[0] else partial(place, name, radius)
                    lost[name] = sum(garbage(plan, made, seed + run) is not False for run in range(runs))
                cells = " | ".join(f"{k / runs:.2g}" for k in lost.values())
                predicted, k = plan.calibrated.predict(1.0).failure, lost[SIGNAL_SETS[0]]
                low, high = 1.0 - upper_bound(runs - k, runs, 0.025), upper_bound(k, runs, 0.025)
                rare = max(predicted, k / runs) < RARE
                wrong = not (rare or low / FACTOR <= predicted <= high * FACTOR)
                rows, missed = rows + 1, missed + wrong
                ratio = "" if rare or not k else f"{predicted * runs / k:.2f}"
                print(
                    f"| {signal} | {d} | {n} | {radius or ''} | {predicted:.2g} | {cells} | {ratio} | "
                    f"{'missed' if wrong else ''} |",
                    flush=True,
                )
                if rare and not k:
                    break  # With more records fewer runs fail.
    print(f"\nIn {missed} of {rows} rows the prediction misses the 95 % bounds by more than a factor of {FACTOR:g}.")


def place(name: str, radius: float, rng: np.random.Generator, n: int, d: int) -> Points:
    """Data with core radius 1 within the public ball."""
    return data(name, n, d, radius, int(rng.integers(2**31)))[0]


# Radius and resolution in core radii.
PLACES: tuple[Place, ...] = ((None, None), (10.0, 0.01), (100.0, 0.01), (1000.0, 0.1), (1e6, 0.1))


def methods_table(runs: int, sizes: Sequence[int], dimensions: Sequence[int], neighbours: str, seed: int) -> None:
    """Every method whose plan is not refused."""
    print(
        "\n## Predicted error with failures counted, in core radii, and predicted failure: epsilon = 1, delta = 1e-6\n"
    )
    print("| method | n | d | radius | resolution | predicted | measured | ratio | failure | measured | missed |")
    print("|---" * 11 + "|")
    rows, missed = 0, {"error": 0, "failure": 0}
    for name, method in METHODS.items():
        for where in PLACES:
            if any(
                value is None for key, value in zip(("radius", "resolution"), where, strict=True) if key in method.needs
            ):
                continue
            for d in dimensions:
                for n in sizes:
                    try:
                        plan = plan_of(name, n, d, where, neighbours)
                    except ValueError:  # Outside of its range.
                        continue
                    if refused(plan):
                        continue
                    # These data are clouds, so the parts of a prediction for uneven data do not apply.
                    predicted = replace(plan.calibrated.predict(1.0), uneven=0.0)
                    measured = Measured(plan, where[0], runs, CLOUDS[:2], seed)
                    ratio = predicted.expected_error(1.0) / measured.error
                    total = measured.errors.size
                    lost = round(measured.failure * total)
                    low, high = 1.0 - upper_bound(total - lost, total, 0.025), upper_bound(lost, total, 0.025)
                    # If the predicted error is so large that every error counts as useless, no failures are predicted.
                    failure = predicted.failure if predicted.error_at(1.0) < USELESS else max(predicted.failure, low)
                    wrong = [
                        *(["error"] if not 1.0 / FACTOR <= ratio <= FACTOR else []),
                        *(["failure"] if not low <= failure <= high else []),
                    ]
                    for each in wrong:
                        missed[each] += 1
                    rows += 1
                    print(
                        f"| {name} | {n} | {d} | {where[0] or ''} | {where[1] or ''} | "
                        f"{predicted.expected_error(1.0):.2g} | {measured.error:.2g} | {ratio:.2f} | "
                        f"{predicted.failure:.2g} | {measured.failure:.2g} | {', '.join(wrong)} |",
                        flush=True,
                    )
    print(
        f"\nOf {rows} rows the error is not within a factor of {FACTOR:g} in {missed['error']}, the failure not within "
        f"95 % bounds in {missed['failure']}."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a fifth of the runs")
    parser.add_argument("--methods", action="store_true", help="every method instead of the default method")
    parser.add_argument("--signal", action="store_true", help="failures of the default method with few records")
    parser.add_argument("--seed", type=int, default=0, help="with --methods or --signal: the seed of the first run")
    parser.add_argument("--neighbours", choices=("replace", "add_remove"), default="replace", help="with --methods")
    options = parser.parse_args()
    if options.methods:
        sizes = (100, 300, 1000) if options.quick else (50, 75, 100, 150, 200, 300, 500, 1000)
        methods_table(10 if options.quick else 25, sizes, (1, 2, 5, 20), options.neighbours, options.seed)
        return
    if options.signal:
        signal_table(40 if options.quick else 200, options.seed)
        return
    runs = 20 if options.quick else 100
    excess_table(runs)
    failure_table(runs)


if __name__ == "__main__":
    main()
