"""The experiment of the figure in the paper: the loss ratio as a function of the public radius, with the published
curve.

Data: 90 % of the records are normal around a random point at distance 50 from the origin, 10 % are uniform in the ball
of radius 100. The data do not depend on the radius R that the methods get, and the loss of a good method does not
depend on R either. The loss ratio is F(released)/F(median), where F is the sum of distances. Data are simulated, so
runs are seeded.
"""

from __future__ import annotations

import csv
import math
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmedian import nonprivate
from dpmedian.api import plan
from dpmedian.dataset import Dataset
from dpmedian.methods.registry import METHODS
from dpmedian.planning.plan import Plan
from dpmedian.progress import Progress
from dpmedian.release import MethodResult, ReleaseFailed
from dpmedian.running import Session
from dpmedian.warning import InsecureSeedWarning

__all__ = ["CURVES", "PUBLISHED", "Curve", "Experiment", "Run", "draw", "run", "simulate", "table", "write"]

RADII = tuple(10.0**k for k in range(3, 11))


def _curve(*ratios: float) -> dict[float, float]:
    return dict(zip(RADII, ratios, strict=True))


# Values that were read off the published figure, to about two digits. The keys are method and epsilon, and then R.
PUBLISHED: dict[tuple[str, float], dict[float, float]] = {
    ("loc_dpgd", 2.0): _curve(1.0, 1.03, 1.2, 3.0, 3.3, 13.0, 23.0, 23.0),
    ("dpgd", 2.0): _curve(1.2, 1.35, 7.3, 90.0, 900.0, 8.8e3, 9e4, 9e5),
    ("loc_dpgd", 3.0): _curve(1.0, 1.0, 1.0, 1.0, 1.0, 1.01, 1.03, 1.05),
    ("dpgd", 3.0): _curve(1.1, 1.05, 2.5, 34.0, 330.0, 3.3e3, 3.4e4, 3.5e5),
}


@dataclass(frozen=True)
class Curve:
    """A method with a profile, and the color of its curve."""

    method: str
    profile: str
    color: str

    @property
    def label(self) -> str:
        return f"{self.method}, {self.profile}"


CURVES = (
    Curve("loc_dpgd", "default", "tab:blue"),
    Curve("loc_dpgd", "paper", "tab:orange"),
    Curve("dpgd", "paper", "tab:gray"),
)


@dataclass(frozen=True)
class Experiment:
    """The settings of the figure. The sigma of the inliers is that of the authors' code. The text of the paper has
    0.01.
    """

    n: int = 3000
    d: int = 200
    epsilons: tuple[float, ...] = (2.0, 3.0)
    delta: float | None = None
    radii: tuple[float, ...] = RADII
    resolution: float = 0.05
    deviation: float = 0.1
    failure_probability: float = 0.05
    repeats: int = 10
    seed: int = 0
    curves: tuple[Curve, ...] = field(default=CURVES)

    def quick(self) -> Experiment:
        """Few radii and repeats, and one epsilon, so that the experiment takes a minute or two."""
        return replace(self, epsilons=(2.0,), radii=(1e3, 1e6, 1e10), repeats=3)


@dataclass(frozen=True)
class Run:
    """One release. The loss ratio of a failed release is NaN."""

    method: str
    profile: str
    epsilon: float
    radius: float
    repeat: int
    loss_ratio: float
    scale: float | None
    seconds: float


def simulate(experiment: Experiment, repeat: int) -> NDArray[np.float64]:
    """The data of one repeat."""
    n, d = experiment.n, experiment.d
    rng = np.random.default_rng((experiment.seed, repeat))

    def directions(count: int) -> NDArray[np.float64]:
        vectors = rng.normal(size=(count, d))
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))

    inliers = round(0.9 * n)
    points = 50.0 * directions(1) + experiment.deviation * rng.normal(size=(n, d))
    points[inliers:] = 100.0 * directions(n - inliers) * rng.random((n - inliers, 1)) ** (1.0 / d)
    return points


def run(experiment: Experiment, progress: bool | None = None) -> list[Run]:
    """All runs, repeat by repeat."""
    delta = 1.0 / experiment.n if experiment.delta is None else experiment.delta
    settings = [
        (curve, epsilon, radius)
        for curve in experiment.curves
        for epsilon in experiment.epsilons
        for radius in experiment.radii
    ]
    plans = [
        plan(
            experiment.n,
            experiment.d,
            epsilon=epsilon,
            delta=delta,
            method=curve.method,
            profile=curve.profile,
            radius=radius,
            # Plain descent does not use a resolution.
            resolution=experiment.resolution if "resolution" in METHODS[curve.method].uses else None,
            failure_probability=experiment.failure_probability,
        )
        for curve, epsilon, radius in settings
    ]
    work = [made.calibrated.passes for made in plans]
    runs = []
    with warnings.catch_warnings(), Progress(math.fsum(work) * experiment.repeats, progress) as meter:
        # The data are simulated, so a seed does no harm.
        warnings.simplefilter("ignore", InsecureSeedWarning)
        for repeat in range(experiment.repeats):
            points = simulate(experiment, repeat)
            best = nonprivate.objective(points, nonprivate.geometric_median(points))
            for number, ((curve, epsilon, radius), made, passes) in enumerate(zip(settings, plans, work, strict=True)):
                started = time.perf_counter()
                seed = (experiment.seed * experiment.repeats + repeat) * len(settings) + number
                release = _released(made, points, seed, meter.span(passes))
                ratio, scale = math.nan, None
                if release is not None:
                    ratio, scale = nonprivate.objective(points, release.point) / best, release.scale
                seconds = time.perf_counter() - started
                runs.append(Run(curve.method, curve.profile, epsilon, radius, repeat, ratio, scale, seconds))
    return runs


def _released(
    made: Plan, points: NDArray[np.float64], seed: int, pulse: Callable[[float], object]
) -> MethodResult | None:
    """The result of the method, or None if it failed.

    Useless releases are not refused here, because the figure shows them, too.
    """
    try:
        session = Session(made.cost, method=made.method, seed=seed)
        return session.run(
            made.calibrated, Dataset.of(points), made.parameters, progress=pulse, finish=lambda found: found
        )
    except ReleaseFailed:
        return None


def write(runs: Iterable[Run], path: Path) -> None:
    """One line per run."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(Run.__dataclass_fields__))
        writer.writeheader()
        writer.writerows(vars(run) for run in runs)


def _quartiles(runs: Sequence[Run]) -> tuple[float, float, float]:
    """The quartiles of the loss ratio. A failed release counts as infinite."""
    ratios = [math.inf if math.isnan(run.loss_ratio) else run.loss_ratio for run in runs]
    low, middle, high = np.quantile(ratios, [0.25, 0.5, 0.75], method="nearest")
    return float(low), float(middle), float(high)


def _select(runs: Iterable[Run], curve: Curve, epsilon: float, radius: float) -> list[Run]:
    wanted = (curve.method, curve.profile, epsilon, radius)
    return [run for run in runs if (run.method, run.profile, run.epsilon, run.radius) == wanted]


def table(experiment: Experiment, runs: Sequence[Run]) -> str:
    """The median loss ratio of every curve, the median seconds of a run, and the published values."""
    lines = []
    for epsilon in experiment.epsilons:
        heads = [f"{curve.label:>28}" for curve in experiment.curves]
        lines.append(f"epsilon = {epsilon:g}" + "".join(heads) + "    published: loc_dpgd, dpgd")
        for radius in experiment.radii:
            cells = []
            for curve in experiment.curves:
                chosen = _select(runs, curve, epsilon, radius)
                seconds = float(np.median([run.seconds for run in chosen]))
                cells.append(f"{_quartiles(chosen)[1]:>16.6g} ({seconds:7.2f} s)")
            known = [PUBLISHED.get((name, epsilon), {}).get(radius) for name in ("loc_dpgd", "dpgd")]
            published = ", ".join("-" if value is None else f"{value:g}" for value in known)
            lines.append(f"R = {radius:<7.0e}" + "".join(f"{cell:>28}" for cell in cells) + f"    {published}")
    return "\n".join(lines)


def draw(experiment: Experiment, runs: Sequence[Run], path: Path) -> None:
    """Draw the loss ratio against R on log axes, with median and quartiles, one column per epsilon. This needs the
    extra `plot`.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("a picture needs matplotlib: pip install 'dpmedian[plot]'; the CSV is written") from error
    columns = len(experiment.epsilons)
    figure = Figure(figsize=(5.2 * columns, 6.4), layout="constrained")
    # The runs are drawn twice: as loss ratio, like in the paper, and as excess, which shows small differences from 1.
    rows: Any = figure.subplots(2, columns, sharex=True, sharey="row", squeeze=False)
    for panels, subtracted in zip(rows, (0.0, 1.0), strict=True):
        for panel, epsilon in zip(panels, experiment.epsilons, strict=True):
            _draw_panel(panel, experiment, runs, epsilon, subtracted)
    for panel, epsilon in zip(rows[0], experiment.epsilons, strict=True):
        panel.set_title(f"epsilon = {epsilon:g}")
    for panel in rows[1]:
        panel.set_xlabel("public radius R")
    rows[0, 0].set_ylabel("loss ratio F(released)/F(median)")
    rows[1, 0].set_ylabel("excess: loss ratio - 1")
    rows[0, 0].legend(fontsize="small", loc="upper left")
    figure.suptitle(
        f"n = {experiment.n}, d = {experiment.d}, {experiment.repeats} runs: median and quartiles", fontsize="medium"
    )
    figure.savefig(path, dpi=150)


def _draw_panel(panel: Any, experiment: Experiment, runs: Sequence[Run], epsilon: float, subtracted: float) -> None:
    for curve in experiment.curves:
        chosen = [_quartiles(_select(runs, curve, epsilon, radius)) for radius in experiment.radii]
        low, middle, high = np.array(chosen).T - subtracted
        panel.plot(experiment.radii, middle, "o-", color=curve.color, label=curve.label, markersize=4)
        panel.fill_between(experiment.radii, low, high, color=curve.color, alpha=0.25)
    for name, marker in (("loc_dpgd", "s"), ("dpgd", "D")):
        known = [(radius, ratio - subtracted) for radius, ratio in PUBLISHED.get((name, epsilon), {}).items()]
        shown = [(radius, value) for radius, value in known if value > 0.0]
        style = {"color": "black", "linestyle": ":", "marker": marker, "markersize": 5, "fillstyle": "none"}
        panel.plot([radius for radius, _ in shown], [value for _, value in shown], label=f"{name}, published", **style)
    panel.set(xscale="log", yscale="log")
    panel.grid(alpha=0.3)
