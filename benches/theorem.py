"""Compares the utility theorem of the stripped method (docs/default-method.md) with measured runs.

    python benches/theorem.py             # 1,000 runs at six sizes, two kinds of data: some minutes
    python benches/theorem.py --quick     # a tenth of the runs

The stripped method consists of a bisection for the median of every coordinate, a bisection for the core radius, one
noisy Hessian, and Newton steps, the last of which gets most of the budget. All these parts are mechanisms of the
package. The bound is computed from the exact data, so it is not private. It holds with probability at least 1 -
FAILURE.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmedian import nonprivate
from dpmedian.mechanisms.distance import DistanceCount, radius_of
from dpmedian.mechanisms.gaussian import Gaussian
from dpmedian.mechanisms.gradient import NoisyGradient
from dpmedian.mechanisms.hessian import Hessian
from dpmedian.parameters import PublicParameters
from dpmedian.sources.array import ArraySource
from dpmedian.statistics import Bound
from dpmedian.tape import Tape

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

RHO, DIMENSION = 0.1, 10
SIZES = (8_000, 16_000, 32_000, 64_000, 128_000, 256_000)
# The probability with which the bound may fail. Half of this probability is for the searches, a quarter for the Hessian
# and the first Newton steps, and a quarter for the last Newton step.
FAILURE = 0.05
# Shares of rho: the search for the center, the search for the core radius, the Hessian, the first Newton steps, the
# last Newton step.
CENTER, CORE_RADIUS, HESSIAN, FIRST, LAST = 0.2, 0.02, 0.08, 0.2, 0.5
# The center lies in a public cube. The first number is half of the side of the cube, and the second is the number of
# halvings. 24 halvings leave an error of 2^-9 in each coordinate.
SIDE, HALVINGS = 2.0**15, 24
# The range of quarter octaves of the core radius, and the number of halvings after which one quarter octave is left.
QUARTERS, RADIUS_HALVINGS = (-64, 64), 7
CORE, SMOOTHING = 0.4, 0.3
FIRST_STEPS = 5
# The rounding of a second moment for one record and one entry, in units of 1/smoothing radius: see hessian.md.
ROUNDING = 2.0**-19
# This number replaces a distance of zero. For such a record the other bound applies.
_TINY = 1e-30


@dataclass(frozen=True, eq=False)
class Stripped:
    """The stripped method, calibrated from n, d and rho."""

    n: int
    d: int
    ranks: Gaussian
    counts: DistanceCount
    hessian: Hessian
    gradients: tuple[NoisyGradient, ...]

    @classmethod
    def of(cls, n: int, d: int, rho: float) -> Stripped:
        p = PublicParameters.of(n, d, rho=rho)
        ranks = Gaussian.calibrate(
            "center",
            Bound.of("ranks", p.protection, d=d, centered=True),
            CENTER * rho,
            largest=n,
            coordinates=d,
            releases=HALVINGS,
            coarsest=1,
        )
        counts = DistanceCount.of("core radius", CORE_RADIUS * rho, p, releases=RADIUS_HALVINGS)
        first = NoisyGradient.of("first steps", FIRST * rho / FIRST_STEPS, p, releases=1)
        last = NoisyGradient.of("last step", LAST * rho, p, releases=1)
        hessian = Hessian.of("hessian", HESSIAN * rho, p)
        return cls(n, d, ranks, counts, hessian, (*[first] * FIRST_STEPS, last))

    def run(self, source: ArraySource, tape: Tape) -> Vector:
        low, high = np.full(self.d, -SIDE), np.full(self.d, SIDE)
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            above = self.ranks.query(source, tape, thresholds=middle, centered=True) >= 0.0
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        theta = 0.5 * (low + high)
        below, beyond = QUARTERS
        for _ in range(RADIUS_HALVINGS):
            quarter = (below + beyond) // 2
            enough = self.counts.within(source, tape, theta, quarter, self.n) >= CORE * self.n
            below, beyond = (below, quarter) if enough else (quarter, beyond)
        radius = SMOOTHING * radius_of(beyond)
        curvature, moments = self.hessian.at(source, tape, theta, radius)
        traceless = moments - np.trace(moments) / self.d * np.eye(self.d)
        released = (curvature * np.eye(self.d) - traceless) / radius
        if np.linalg.eigvalsh(released)[0] <= 0.0:
            return theta
        for gradient in self.gradients:
            theta = theta - np.linalg.solve(released, gradient.at(source, tape, theta))
        return theta


class Exact:
    """The quantities of the data that occur in the bound: distances from the median, and the Hessian at the median."""

    def __init__(self, points: Matrix) -> None:
        self.points, (self.n, self.d) = points, points.shape
        self.median = nonprivate.geometric_median(points)
        self.best = nonprivate.objective(points, self.median)
        offsets = self.median - points
        self.distances = np.sort(np.linalg.norm(offsets, axis=1))
        units = offsets / np.linalg.norm(offsets, axis=1)[:, None]
        inverse = 1.0 / np.linalg.norm(offsets, axis=1)
        self.hessian = inverse.sum() * np.eye(self.d) - (units * inverse[:, None]).T @ units
        eigenvalues = np.linalg.eigvalsh(self.hessian)
        self.softest, self.stiffest = float(eigenvalues[0]), float(eigenvalues[-1])
        self.trace_of_inverse = float((1.0 / eigenvalues).sum())

    def excess(self, point: Vector) -> float:
        """F(point) - F(median)."""
        return nonprivate.objective(self.points, point) - self.best

    def gradient_error(self, eta: float) -> float:
        """Return E(eta) of Lemma 1, the largest distance of the gradient from its linear approximation within eta of
        the median.
        """
        s = self.distances
        gap = np.maximum(s - eta, _TINY * s)
        return float(np.minimum(eta**2 / math.sqrt(3.0) / gap**2, 2.0 + eta / s).sum())

    def hessian_error(self, eta: float, radius: float) -> float:
        """Return G(eta) of Lemma 2, the largest distance from H of a Hessian that is smoothed at a radius and taken
        within eta of the median.
        """
        s = self.distances
        gap = np.maximum(s - eta, _TINY * s)
        smooth = np.minimum(2.0 / math.sqrt(3.0) * eta / gap**2, 1.0 / gap)
        return float(np.where(gap >= radius, smooth, np.maximum(1.0 / radius, 1.0 / s)).sum())

    def start_error(self, quantile: float) -> float:
        """Return the largest distance from the median of a point that Lemma 3 allows, whose ranks have an error of at
        most `quantile`.
        """
        resolution = SIDE / 2.0**HALVINGS
        ordered = np.sort(self.points, axis=0)
        low, high = math.floor(0.5 * self.n - quantile) - 1, math.ceil(0.5 * self.n + quantile)
        if low < 0 or high >= self.n:
            return math.inf
        sides = np.maximum(np.abs(ordered[low] - self.median), np.abs(ordered[high] - self.median)) + resolution
        return float(np.linalg.norm(sides))

    def radii(self, start: float, quantile: float) -> list[float]:
        """The smoothing radii that Lemma 3 allows."""
        low, high = math.floor(CORE * self.n - quantile) - 1, math.ceil(CORE * self.n + quantile)
        if low < 0 or high >= self.n:
            return []
        least, most = self.distances[low] - start, self.distances[high] + start
        chosen = [radius_of(k) for k in range(*QUARTERS) if max(least, 0.0) <= radius_of(k)]
        return [SMOOTHING * radius for radius in chosen if radius <= 2.0**0.25 * most]


@dataclass(frozen=True)
class Guarantee:
    """The bound of the theorem on F(point) - F(median), and its parts."""

    excess: float
    start: float
    hessian: float
    leading: float


def bound(exact: Exact, method: Stripped, failure: float) -> Guarantee:
    """Return the bound of the theorem for the worst of the smoothing radii that a run may choose."""
    d = exact.d
    tests = 2 * d * HALVINGS + 2 * RADIUS_HALVINGS
    z = math.sqrt(2.0 * math.log(tests / (0.5 * failure)))
    early = math.sqrt(2.0 * math.log((4 + FIRST_STEPS) / (0.25 * failure)))
    late = math.sqrt(2.0 * math.log(1.0 / (0.25 * failure)))
    start = exact.start_error(z * method.ranks.noise)
    radii = exact.radii(start, z * method.counts.noise) if math.isfinite(start) else []
    noise = method.hessian.noise
    relative = math.inf if not radii else 0.0
    for radius in radii:
        omega = noise * (math.sqrt(2.0 * d) + early) + noise / method.hessian.weight * early
        rounding = exact.n * (d + 1) * ROUNDING
        relative = max(relative, (exact.hessian_error(start, radius) + (omega + rounding) / radius) / exact.softest)
    leading = exact.trace_of_inverse / (LAST * RHO)
    if relative >= 1.0:
        return Guarantee(math.inf, start, relative, leading)
    root, error = math.sqrt(exact.softest), math.sqrt(exact.stiffest) * start
    for gradient in method.gradients:
        t = late if gradient is method.gradients[-1] else early
        noisy = gradient.noise * (math.sqrt(exact.trace_of_inverse) + t / root)
        error = (relative * error + exact.gradient_error(error / root) / root + noisy) / (1.0 - relative)
    excess = 0.5 * error**2 + error / root * exact.gradient_error(error / root)
    return Guarantee(excess, start, relative, leading)


def cloud(rng: np.random.Generator, n: int) -> Matrix:
    """A normal cloud at 1,000 in every coordinate."""
    return 1000.0 + rng.normal(size=(n, DIMENSION))


def contaminated(rng: np.random.Generator, n: int) -> Matrix:
    """The same with standard deviations from 1 to 2, and a tenth of the records 10^4 away in one direction."""
    points = 1000.0 + rng.normal(size=(n, DIMENSION)) * np.linspace(1.0, 2.0, DIMENSION)
    points[: n // 10, 0] += 1e4
    return points


def row(points: Matrix, runs: int) -> str:
    n, d = points.shape
    exact, method = Exact(points), Stripped.of(n, d, RHO)
    made = bound(exact, method, FAILURE)
    source = ArraySource.of(points, PublicParameters.of(n, d, rho=RHO))
    excess = np.array(
        [exact.excess(method.run(source, Tape.draw(run.to_bytes(32, "little"), "replace"))) for run in range(runs)]
    )
    high = float(np.quantile(excess, 1.0 - FAILURE))
    shown = [made.start, made.hessian, made.leading / exact.best, excess.mean() / exact.best, high / exact.best]
    rest = [made.excess / exact.best, made.excess / high]
    above = int((excess > made.excess).sum())
    cells = " | ".join(f"{value:.2g}" for value in [*shown, *rest])
    return f"| {n} | {cells} | {above} of {runs} |"


HEAD = (
    "| n | start a | delta | tr(H^-1)/(0.5 rho F) | mean excess | 95 % quantile | bound | bound/quantile | above |\n"
    "|---|---|---|---|---|---|---|---|---|"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the runs")
    parser.add_argument("--runs", type=int, default=1000)
    options = parser.parse_args()
    runs = options.runs // 10 if options.quick else options.runs
    for generate in (cloud, contaminated):
        print(f"\n{generate.__doc__} d = {DIMENSION}, rho = {RHO}, failure probability {FAILURE}.\n\n{HEAD}")
        for n in SIZES:
            print(row(generate(np.random.default_rng([n, 7]), n), runs), flush=True)


if __name__ == "__main__":
    main()
