"""The constants of the default method: what each one is, and what another value would do.

    python benches/tune_adaptive.py                    # the table: every constant, its kind and its reason
    python benches/tune_adaptive.py core shrink        # these constants at half to twice their values
    python benches/tune_adaptive.py --simulated        # all that were chosen by simulation: an hour
    python benches/tune_adaptive.py --confirm core     # the same on the sets that are kept for confirmation
    python benches/tune_adaptive.py --few odds_lost    # with few records, near the center and 10^9 spreads away from it

A value is compared with the one in the table by the median excess, as a geometric mean over the sets and sizes below,
with the same data and seeds for both; runs that fail are counted apart. Below 1 the other value is better. Choose on
the sets of TUNING, then look once at the gauntlet's sets for confirmation. With few records a value is judged by how
many runs near the center fail or have the note of a doubt, and by how many points far from the data lack it.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from dataclasses import Field, fields, replace
from typing import Any

import numpy as np
from gauntlet import CONFIRM, SETS, Generator, Yardstick

import dpmedian
from dpmedian.methods.adaptive.constants import CONSTANTS, Constants, Share
from dpmedian.methods.adaptive.descent import DOUBTED
from dpmedian.methods.adaptive.stages import calibrate
from dpmedian.parameters import PublicParameters
from dpmedian.sources.array import ArraySource
from dpmedian.tape import Tape

TUNING = ("gauss", "t2", "two", "aniso", "lattice", "atom")
SIZES = ((300, 2), (2000, 5), (5000, 50))
# Where n sqrt(rho/d) is 12.
FEW_SETS, FEW = ("gauss", "t2", "two"), ((101, 2), (160, 5))
RHO = dpmedian.plan(1000, 2, epsilon=1.0, delta=1e-6).cost.rho
FACTORS = (0.5, math.sqrt(0.5), math.sqrt(2.0), 2.0)


def others(value: Any) -> Iterator[Any]:
    """Other values of a constant: of a share what it needs, of several numbers the first one."""
    for factor in FACTORS:
        if isinstance(value, Share):
            yield value._replace(needed=factor * value.needed)
        elif isinstance(value, tuple):
            yield (next(iter(scaled(value[0], factor))), *value[1:])
        else:
            yield from scaled(value, factor)


def scaled(value: float, factor: float) -> Iterator[float]:
    """An integer stays one, and is left out where it does not change."""
    if not isinstance(value, int):
        yield factor * value
    elif round(factor * value) != value:
        yield round(factor * value)


def measure(constants: Constants, sets: dict[str, Generator], runs: int) -> tuple[dict[tuple[str, int], float], int]:
    """The median excess of every set and size, and the number of runs that failed."""
    medians, failed = {}, 0
    for name in sets:
        for n, d in SIZES:
            parameters = PublicParameters.of(n, d, rho=RHO)
            points = sets[name](np.random.default_rng([n, d]), n, d)
            source, yardstick = ArraySource.of(points, parameters), Yardstick(points)
            method, excess = calibrate(parameters, RHO, constants), []
            for run in range(runs):
                try:
                    found = method.run(source, Tape.draw(run.to_bytes(32, "little")))
                except dpmedian.ReleaseFailed:
                    failed += 1
                else:
                    excess.append(yardstick.excess(found.point))
            medians[name, n] = float(np.median(excess)) if excess else math.inf
    return medians, failed


def compare(constant: Field[Any], sets: dict[str, Generator], runs: int, usual: dict[tuple[str, int], float]) -> None:
    value = getattr(CONSTANTS, constant.name)
    print(f"\n{constant.name} = {value}: {constant.metadata['reason']}")
    for other in others(value):
        try:
            found, failed = measure(replace(CONSTANTS, **{constant.name: other}), sets, runs)
        except ValueError as error:
            print(f"  {other}: no plan ({error})")
            continue
        ratios = [math.log(max(found[key], 1e-300) / max(usual[key], 1e-300)) for key in usual]
        worst = max(zip(ratios, usual, strict=True))
        print(
            f"  {other}: excess times {math.exp(float(np.mean(ratios))):.3f}, at worst {math.exp(worst[0]):.2f} on "
            f"{worst[1]}, {failed} failed",
            flush=True,
        )


def few_records(constants: Constants, runs: int) -> str:
    """What becomes of few records near the center and far from it, over sets, sizes and runs."""
    lost = doubted = missed = silent = 0
    for n, d in FEW:
        parameters = PublicParameters.of(n, d, rho=RHO)
        method = calibrate(parameters, RHO, constants)
        for name in FEW_SETS:
            for run in range(runs):
                points = SETS[name](np.random.default_rng([n, d, run]), n, d)
                for shift in (0.0, 1e9):
                    source = ArraySource.of(points + shift, parameters)
                    try:
                        notes = method.run(source, Tape.draw(run.to_bytes(32, "little"))).notes
                    except dpmedian.ReleaseFailed:
                        lost += shift == 0.0
                    else:
                        doubted += shift == 0.0 and DOUBTED in notes
                        missed += shift > 0.0
                        silent += shift > 0.0 and DOUBTED not in notes
    total = len(FEW) * len(FEW_SETS) * runs
    near = f"of {total} runs near the center {lost} failed and {doubted} were doubted"
    return f"{near}; of as many far from it {missed} gave a point, {silent} of them without a doubt"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="constants to vary")
    parser.add_argument("--simulated", action="store_true", help="all constants that were chosen by simulation")
    parser.add_argument("--confirm", action="store_true", help="on the sets that are kept for confirmation")
    parser.add_argument("--few", action="store_true", help="with few records, near and far")
    parser.add_argument("--runs", type=int, default=20, help="runs of every set and size")
    options = parser.parse_args()
    table = {constant.name: constant for constant in fields(CONSTANTS)}
    unknown = sorted(set(options.names) - set(table))
    if unknown:
        parser.error(f"there is no constant {', '.join(unknown)}")
    names = options.names
    if options.simulated:
        names = [name for name, constant in table.items() if constant.metadata["kind"] == "simulated"]
    if options.few:
        print(f"sets: {', '.join(FEW_SETS)}; sizes: {FEW}; rho = {RHO:.4g}; {options.runs} runs each")
        print(f"with the table as it is: {few_records(CONSTANTS, options.runs)}")
        for name in names:
            print(f"\n{name} = {getattr(CONSTANTS, name)}: {table[name].metadata['reason']}")
            for other in others(getattr(CONSTANTS, name)):
                print(f"  {other}: {few_records(replace(CONSTANTS, **{name: other}), options.runs)}", flush=True)
        return
    if not names:
        for name, constant in table.items():
            print(
                f"{name} = {getattr(CONSTANTS, name)}\n    {constant.metadata['kind']}: {constant.metadata['reason']}"
            )
        return
    sets = CONFIRM if options.confirm else {name: SETS[name] for name in TUNING}
    usual, failed = measure(CONSTANTS, sets, options.runs)
    print(f"sets: {', '.join(sets)}; sizes: {SIZES}; rho = {RHO:.4g}; {options.runs} runs each")
    print(f"with the table as it is: {failed} failed")
    for name in names:
        compare(table[name], sets, options.runs, usual)


if __name__ == "__main__":
    main()
