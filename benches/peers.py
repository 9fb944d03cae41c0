"""Runs private location estimators of other authors, each from a checkout of its authors' code. None of this code is
copied here.

    python benches/peers.py DIRECTORY [--runs 10]

The bench prints the distance of each location from the center of the inliers, and its excess F(point)/F(median) - 1,
beside the results of this library. DIRECTORY contains checkouts, named like their repositories: coin-press
(twistedcubic), BalloonMean and PTR-PD-Median (12ramsake), google-research (google-research, of which hst_clustering/
suffices). A peer without a checkout is left out, and its name is printed. The peers need numpy only, because their
other imports (torch, cupy) are for parts that are not used here.

All peers get the same budget: rho for zero-concentrated privacy, mu = sqrt(2 rho) for Gaussian privacy, and for the two
peers that need (epsilon, delta), the epsilon that rho gives at this delta. The last table says which information about
the data each peer gets. The constants of the peers are the constants of the authors' experiments. No constant was
tuned, for the peers or for this library.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import math
import sys
import time
import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import dpmedian
from dpmedian import PrivacyCost, nonprivate

Points = NDArray[np.float64]


@dataclass(frozen=True)
class Told:
    """The public numbers: the budget, a radius around the origin that contains the inliers, and the scale of the
    inliers.
    """

    rho: float
    radius: float
    scale: float
    delta: float = 1e-6

    @property
    def epsilon(self) -> float:
        return PrivacyCost.gaussian(2.0**30, 2.0**30 / math.sqrt(2.0 * self.rho), 1).epsilon_at(self.delta)


Release = Callable[[Points, Told], Points | None]


@dataclass(frozen=True)
class Peer:
    """A peer and its release. A failed release returns None or raises an exception."""

    name: str
    checkout: str
    told: str
    load: Callable[[Path], Release]


def module(path: Path, name: str, **stand_ins: types.ModuleType) -> types.ModuleType:
    """A module of a checkout; `stand_ins` replace imports that are not used here."""
    sys.path.insert(0, str(path))
    before = {key: sys.modules.get(key) for key in stand_ins}
    sys.modules.update(stand_ins)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return importlib.import_module(name)
    finally:
        sys.path.remove(str(path))
        for key, value in before.items():
            sys.modules.pop(key) if value is None else sys.modules.update({key: value})


def coinpress(path: Path) -> Release:
    """Biswas, Dong, Kamath, Ullman 2020: the mean of a Gaussian of known covariance in a known ball."""
    code = module(path, "algos", torch=types.ModuleType("torch"), utils=types.ModuleType("utils"))

    def release(points: Points, told: Told) -> Points:
        # The shares of the budget are the shares of the authors' code: for four steps, and if the ball is large, for
        # ten steps.
        steps = 4 if told.radius < 1e3 * told.scale else 10
        shares = [told.rho / (4 * (steps - 1))] * (steps - 1) + [0.75 * told.rho]
        d = points.shape[1]
        found = code.multivariate_mean_iterative(
            points / told.scale, np.zeros(d), told.radius / told.scale, steps, shares
        )
        return np.asarray(found) * told.scale

    return release


def gdp_huber(path: Path) -> Release:
    """Yu, Ren, Zhou 2024: noisy descent on Huber's loss, from the origin, with a private scale."""
    code = module(path, "Huber_GDP")

    def release(points: Points, told: Told) -> Points:
        return np.asarray(code.m_est(points).noisy_adaptive_huber(epsilon=math.sqrt(2.0 * told.rho))[0])

    return release


def instance_optimal(path: Path) -> Release:
    """Huang, Liang, Yi 2021: a rotation, coordinate medians, and a mean clipped at a private quantile."""
    code = module(path, "instance_opt_method")
    code.mp = types.SimpleNamespace(cpu_count=lambda: 1)

    def release(points: Points, told: Told) -> Points:
        n, d = points.shape
        # Hadamard matrices exist for powers of two, so the vectors are padded with zeros.
        power = 1 << (d - 1).bit_length()
        padded = np.hstack([points, np.zeros((n, power - d))])
        return np.asarray(code.random_rotation_mean(padded, power, told.radius, told.rho))[:d]

    return release


def projection_depth(path: Path) -> Release:
    """Ramsay, Jagannath, Chenouri 2022: propose, test, release; then Langevin steps from a point near the origin."""
    array = types.ModuleType("cupy")
    array.__dict__.update(np.__dict__)
    array.asnumpy = np.asarray  # type: ignore[attr-defined]
    code = module(path, "PD_Median_Functions_opt_for_sims", cupy=array)
    functions = {"mu": code.med, "sigma": code.mad, "joint": code.S_med_mad_b_joint}

    def release(points: Points, told: Told) -> Points | None:
        d = points.shape[1]
        vectors, steps = (500, 500) if d <= 2 else (500, 1000) if d <= 10 else (1000, 1500)
        with contextlib.redirect_stdout(io.StringIO()):
            found = code.compute_PTR_PD_Median(
                points / told.scale, functions, 5, 0.01, told.epsilon, told.delta, nvec=vectors,
                mrng=np.random.default_rng(), step_l=0.00015, nstep=steps,
            )  # fmt: skip
        return None if isinstance(found, str) else np.ravel(found) * told.scale

    return release


def one_median(path: Path) -> Release:
    """Objective perturbation of a smoothed sum of distances, with data in the unit ball (google-research)."""
    config = types.ModuleType("hst_clustering.experiment_config")
    code = module(path, "hst_clustering.dp_one_median", **{"hst_clustering.experiment_config": config})

    def release(points: Points, told: Told) -> Points:
        inside = points / np.maximum(1.0, np.linalg.norm(points, axis=1, keepdims=True) / told.radius) / told.radius
        smoothing, accuracy = 0.05, 1e-7
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = code.get_private_kmed_center(inside, smoothing, told.epsilon, told.delta, accuracy)
        return np.asarray(found[1]) * told.radius

    return release


PEERS = (
    Peer("COINPRESS", "coin-press", "radius, scale", coinpress),
    Peer("GDP Huber", "BalloonMean", "a start near the data", gdp_huber),
    Peer("Huang-Liang-Yi", "BalloonMean", "radius", instance_optimal),
    Peer("projection depth", "PTR-PD-Median", "a start near the data, scale", projection_depth),
    Peer("1-median", "google-research", "radius", one_median),
)


def available(directory: Path) -> dict[str, Release]:
    """Return the peers whose checkouts are there, and print the names of the others."""
    found = {}
    for peer in PEERS:
        path = directory / peer.checkout
        if path.is_dir():
            found[peer.name] = peer.load(path)
        else:
            print(f"{peer.name} is left out: there is no {path}", file=sys.stderr)
    return found


@dataclass(frozen=True)
class Case:
    """Data whose inliers have a center that the bench knows, and the information that the peers get about them.

    Peers that take minutes on such data run only `once`.
    """

    name: str
    n: int
    d: int
    told: Told
    distance: float
    outliers: float = 0.0
    heavy: bool = False
    once: tuple[str, ...] = ()

    def draw(self, rng: np.random.Generator) -> tuple[Points, Points]:
        """Points, and the center of the inliers."""
        center = rng.normal(size=self.d)
        center *= self.distance / np.linalg.norm(center)
        noise = rng.standard_cauchy((self.n, self.d)) if self.heavy else rng.normal(size=(self.n, self.d))
        points = center + noise
        far = int(self.outliers * self.n)
        if far:
            direction = rng.normal(size=self.d)
            points[:far] = center + 50.0 * direction / np.linalg.norm(direction) + 0.1 * noise[:far]
        return rng.permutation(points), center  # Some peers pair records by their positions.


NEAR, FAR = Told(0.1, 100.0, 1.0), Told(0.1, 1e5, 1.0)
CASES = (
    Case("Gauss", 4000, 16, NEAR, 20.0),
    Case("10 % at 50", 4000, 16, NEAR, 20.0, outliers=0.1),
    Case("30 % at 50", 4000, 16, NEAR, 20.0, outliers=0.3),
    Case("Cauchy", 4000, 16, NEAR, 20.0, heavy=True),
    Case("Gauss, 2e4 away", 4000, 16, FAR, 2e4),
    Case("10 % at 50, 2e4 away", 4000, 16, FAR, 2e4, outliers=0.1),
    Case("Gauss, n = 400", 400, 16, NEAR, 20.0),
    Case(
        "Gauss at the origin, n = 50000, d = 2",
        50_000,
        2,
        Told(0.1, 10.0, 1.0, delta=2e-4),
        0.0,
        once=("1-median", "projection depth"),
    ),
)


def ours(points: Points, told: Told) -> Points:
    return dpmedian.geometric_median(points, rho=told.rho).point


def mean_of_ball(points: Points, told: Told) -> Points:
    """Clip the records to the public ball, average them, and add Gaussian noise, which is the simplest private
    location.
    """
    n, d = points.shape
    inside = points / np.maximum(1.0, np.linalg.norm(points, axis=1, keepdims=True) / told.radius)
    return inside.mean(axis=0) + 2.0 * told.radius / n / math.sqrt(2.0 * told.rho) * np.random.default_rng().normal(
        size=d
    )


def runs_of(release: Release, points: Points, told: Told, runs: int, first: int = 0) -> list[Points | None]:
    """Releases of the same points; None for a release that failed or is not finite."""
    found: list[Points | None] = []
    for run in range(first, first + runs):
        np.random.seed(run)  # noqa: NPY002 (the peers draw from the generator of numpy's module)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                point = release(points.copy(), told)
        except Exception:  # A peer may raise any error on data for which it was not made.
            point = None
        found.append(point if point is not None and np.all(np.isfinite(point)) else None)
    return found


def measure(case: Case, methods: dict[str, Release], runs: int) -> dict[str, Points]:
    """Return the distance to the center of the inliers, the excess and the seconds of every run. They are infinite for
    a failed run.
    """
    found: dict[str, list[list[float]]] = {name: [] for name in methods}
    for run in range(runs):
        points, center = case.draw(np.random.default_rng([run, case.n, case.d]))
        median = nonprivate.geometric_median(points)
        best = nonprivate.objective(points, median)
        found.setdefault("exact median", []).append([float(np.linalg.norm(median - center)), 0.0, 0.0])
        for name, release in methods.items():
            if run and name in case.once:
                continue
            start = time.perf_counter()
            (point,) = runs_of(release, points, case.told, 1, first=run)
            seconds = time.perf_counter() - start
            if point is None:
                found[name].append([math.inf, math.inf, seconds])
                continue
            excess = nonprivate.objective(points, point) / best - 1.0
            found[name].append([float(np.linalg.norm(point - center)), excess, seconds])
    return {name: np.array(values) for name, values in found.items()}


def cell(value: float, least: float) -> str:
    text = "failed" if not math.isfinite(value) else f"{value:.2g}"
    return f"**{text}**" if value == least else text


def tables(directory: Path, runs: int) -> None:
    methods: dict[str, Release] = {"dpmedian": ours, "clipped mean": mean_of_ball}
    methods |= available(directory)
    columns = [*methods, "exact median"]
    results = {case.name: measure(case, methods, runs) for case in CASES}
    titles = ("Distance to the center of the inliers", "Excess F(point)/F(median) - 1", "Seconds")
    for column, title in enumerate(titles):
        print(f"\n### {title}, median of {runs} runs\n")
        print(f"| data | {' | '.join(columns if column == 0 else list(methods))} |")
        print("|---" * (len(columns) + (column == 0)) + "|")
        for name, values in results.items():
            medians = {key: float(np.median(made[:, column])) for key, made in values.items()}
            least = min(medians[key] for key in methods)
            cells = [cell(medians[key], least) for key in methods]
            cells += [f"{medians['exact median']:.2g}"] * (column == 0)
            print(f"| {name} | {' | '.join(cells)} |", flush=True)
    print(
        "\n| method | gets, in addition to the budget |\n|---|---|\n| dpmedian | nothing |\n| clipped mean | radius |"
    )
    for peer in PEERS:
        if peer.name in methods:
            print(f"| {peer.name} | {peer.told} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path, help="the folder with the checkouts")
    parser.add_argument("--runs", type=int, default=10, help="runs of every row")
    options = parser.parse_args()
    tables(options.directory, options.runs)


if __name__ == "__main__":
    main()
