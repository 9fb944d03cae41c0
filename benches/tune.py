"""Shows the constants and the mechanisms of the default method: the reason for each, and the results without it.

    python benches/tune.py                  # the table: every constant and its reason
    python benches/tune.py bend surprising # these constants, with half and with twice their values
    python benches/tune.py --all            # every constant: a quarter of an hour
    python benches/tune.py --ablate         # every mechanism switched off, one at a time: five minutes
    python benches/tune.py --ablate --quick # a third of the runs
    python benches/tune.py --all --fresh    # on other sets and seeds, which were not used to choose any constant

A row compares a variant with the unchanged method, on the same data and noise. M is the mean excess divided by the mean
excess of one exact Newton step from a gradient with the whole budget, averaged over smooth sets with 5 and with 50
dimensions. *Nonsmooth* is the excess on sets with many equal or nearly equal records, divided by the excess of the
unchanged method, without lost runs. *Lost* counts failures and excesses above 1 among all these runs. *Few* is the
share of failures with 100 records in two dimensions. *Silent* counts points without a note that are far away from 100
records. *Large* is M with 150,000 records, for which most queries use a sample, and *passes* is how often all these
records are read.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, cast
from unittest import mock

import numpy as np
from counting import CountedSource, CountedTape, Counts
from gauntlet import CONFIRM, EDGES, HARD, SETS, Generator, Points, Yardstick, coincident, shifted

import dpmedian
from dpmedian.methods.adaptive.belief import HessianModel
from dpmedian.methods.adaptive.constants import CONSTANTS, Constants
from dpmedian.methods.adaptive.notes import DOUBTED
from dpmedian.methods.adaptive.run import Run
from dpmedian.methods.adaptive.stages import calibrate
from dpmedian.parameters import PublicParameters
from dpmedian.sources.array import ArraySource
from dpmedian.tape import Tape

RHO = dpmedian.plan(1000, 2, epsilon=1.0, delta=1e-6).cost.rho
FACTORS = (0.5, 2.0)


class Row(NamedTuple):
    """A data set of the panel, and the number of its releases. `kind` is the name of its column."""

    kind: str
    name: str
    n: int
    d: int
    runs: int


def panel(sets: Sequence[str], hard: Sequence[str], large: Sequence[str]) -> tuple[Row, ...]:
    return (
        *(Row("d = 5", name, 5000, 5, 24) for name in sets),
        *(Row("d = 50", name, 5000, 50, 6) for name in sets),
        *(Row("nonsmooth", name, 1500, d, 24) for name in hard for d in (2, 8)),
        Row("few", "gauss", 100, 2, 150),
        Row("silent", "far 1e9", 100, 2, 150),
        *(Row("large", name, 150_000, 8, 4) for name in large),
    )


TUNING = panel(("gauss", "t2", "aniso", "three", "halves"), ("lattice", "zeros", "valued", "atom"), ("gauss", "halves"))
FRESH = panel(
    ("weibull", "logistic", "scales", "gumbel", "five"), ("counts", "duplicates", "blurred"), ("logistic", "five")
)
GENERATORS: dict[str, Generator] = {
    **SETS,
    **HARD,
    **CONFIRM,
    "valued": EDGES["two values"].generate,
    "zeros": EDGES["many zeros"].generate,
    "blurred": coincident(0.75, 1e-9),
    "far 1e9": shifted(1e9),
}


@functools.lru_cache(maxsize=1024)
def data(row: Row, seed: int) -> tuple[Points, ArraySource, Yardstick, float]:
    """Return points, a source of the points, their median, and the excess that is the unit of M."""
    points = GENERATORS[row.name](np.random.default_rng([row.n, row.d, seed]), row.n, row.d)
    yardstick = Yardstick(points)
    parameters = PublicParameters.of(row.n, row.d, rho=RHO)
    return points, ArraySource.of(points, parameters), yardstick, yardstick.limit(RHO) or 1.0


@dataclass(frozen=True)
class Measured:
    """The results of one variant on the panel."""

    ratios: dict[str, float]
    """M of each kind."""
    nonsmooth: float
    lost: int
    few: float
    silent: int
    passes: float

    def row(self, name: str, usual: Measured) -> str:
        ratios = " | ".join(f"{self.ratios[kind]:.2f}" for kind in ("d = 5", "d = 50"))
        return (
            f"| {name} | {ratios} | {self.nonsmooth / usual.nonsmooth:.2f} | {self.lost} | {self.few:.0%} | "
            f"{self.silent} | {self.ratios['large']:.2f} | {self.passes:.1f} |"
        )


COLUMNS = ("variant", "M, d = 5", "M, d = 50", "nonsmooth", "lost", "few", "silent", "large", "passes")
HEAD = f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|"


def measure(constants: Constants, rows: Sequence[Row], part: float, seed: int) -> Measured:
    """Measure all rows of a panel with these constants."""
    ratios: dict[str, list[float]] = {}
    nonsmooth, lost, failures, silent, few, passes = [], 0, 0, 0, 1, []
    for row in rows:
        method = calibrate(PublicParameters.of(row.n, row.d, rho=RHO), RHO, constants)
        runs = max(round(part * row.runs), 2)
        for run in range(seed, seed + runs):
            # With few records, every run has new data, because the result depends on the data set.
            _, source, yardstick, unit = data(row, run if row.n <= 100 else seed + run % 4)
            counts = Counts()
            try:
                tape = cast(Tape, CountedTape(run, counts))
                found = method.run(CountedSource(source, counts), tape)
            except dpmedian.ReleaseFailed:
                excess, doubted = 1.0, True
            else:
                excess, doubted = yardstick.excess(found.point), DOUBTED in found.notes
            if row.kind == "few":
                few, failures = runs, failures + (excess >= 1.0)
            elif row.kind == "silent":
                silent += not doubted
            else:
                lost += excess >= 1.0
                if row.kind == "nonsmooth":
                    nonsmooth.append(max(excess, 0.0) if excess < 1.0 else 0.0)
                else:
                    ratios.setdefault(row.kind, []).append(min(excess, 1.0) / unit)
                if row.kind == "large":
                    passes.append(counts.passes)
    means = {kind: float(np.mean(values)) for kind, values in ratios.items()}
    return Measured(means, float(np.mean(nonsmooth)), lost, failures / few, silent, float(np.mean(passes)))


def others(value: float) -> Iterator[float]:
    """Yield half and twice the value. An integer changes by at least one."""
    for factor in FACTORS:
        other = factor * value
        yield other if not isinstance(value, int) else max(round(other), 0)


def without(**values: float) -> Callable[[], contextlib.AbstractContextManager[Constants]]:
    """A mechanism that is switched off by constants."""
    return lambda: contextlib.nullcontext(replace(CONSTANTS, **cast(Any, values)))


def patched(owner: type, name: str, made: Any) -> Callable[[], contextlib.AbstractContextManager[Constants]]:
    """A mechanism that is switched off by replacing a function."""

    @contextlib.contextmanager
    def patch() -> Iterator[Constants]:
        with mock.patch.object(owner, name, made):
            yield CONSTANTS

    return patch


def once(self: Run, theta: Points, isotropic: bool = False) -> None:
    """In each descent the Hessian is measured only at the beginning."""
    if self.belief.hessian.at is None:
        MEASURE(self, theta, isotropic)


MEASURE = Run.measure_hessian
ABLATIONS: dict[str, Callable[[], contextlib.AbstractContextManager[Constants]]] = {
    "no regression of the Hessian's error": patched(HessianModel, "doubt", lambda *_: 0.0),
    "no model error of far gradients": without(bend=0.0),
    "no test of gradients": without(surprising=math.inf),
    "no collapse": patched(Run, "collapse", lambda _, ball, *__: ball),
    "no search for nonsmooth points": patched(Run, "look_around", lambda _: None),
    "no later Hessian": patched(Run, "measure_hessian", once),
    "no new start": patched(Run, "may_restart", False),
    "one last gradient": without(last_gradients=1),
    "no evidence with few records": without(few=0.0),
    "no sample": without(sample_records=10**9),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="constants to vary")
    parser.add_argument("--all", action="store_true", help="vary every constant")
    parser.add_argument("--ablate", action="store_true", help="switch every mechanism off, one at a time")
    parser.add_argument("--fresh", action="store_true", help="sets and seeds that were not used to choose any constant")
    parser.add_argument("--quick", action="store_true", help="a third of the runs")
    options = parser.parse_args()
    table = {constant.name: constant for constant in fields(CONSTANTS)}
    unknown = sorted(set(options.names) - set(table))
    if unknown:
        parser.error(f"there is no constant {', '.join(unknown)}")
    names = list(table) if options.all else options.names
    if not names and not options.ablate:
        for name, constant in table.items():
            print(f"{name} = {getattr(CONSTANTS, name)}: {constant.metadata['reason']}")
        print(f"{len(table)} constants")
        return
    rows, seed, part = (FRESH, 1000, 1.0) if options.fresh else (TUNING, 0, 1.0)
    part = 1.0 / 3.0 if options.quick else 1.0
    usual = measure(CONSTANTS, rows, part, seed)
    print(f"{HEAD}\n{usual.row('as it is', usual)}", flush=True)
    if options.ablate:
        for name, ablation in ABLATIONS.items():
            with ablation() as constants:
                print(measure(constants, rows, part, seed).row(name, usual), flush=True)
    for name in names:
        for other in others(getattr(CONSTANTS, name)):
            try:
                found = measure(replace(CONSTANTS, **{name: other}), rows, part, seed)
            except ValueError as error:
                print(f"| {name} = {other}: no plan ({error}) | | | | | | | | |")
                continue
            print(found.row(f"{name} = {other:g}", usual), flush=True)


if __name__ == "__main__":
    main()
