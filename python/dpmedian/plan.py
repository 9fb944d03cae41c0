"""Plan, then run: everything that affects privacy is decided before the data are looked at."""

from __future__ import annotations

import functools
import math
import textwrap
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from html import escape
from itertools import zip_longest
from typing import Any

from numpy.typing import ArrayLike

from dpmedian.accounting import Budget, PrivacyCost, calibrate
from dpmedian.ledger import as_ledger, spending
from dpmedian.methods import (
    Method,
    Prediction,
    Recipe,
    Stage,
    adaptive,
    dpgd,
    inverse_sensitivity,
    loc_cutting_plane,
    loc_dpgd,
)
from dpmedian.problem import Problem, positive, whole
from dpmedian.progress import Progress
from dpmedian.release import Release, ReleaseFailed
from dpmedian.source import ArraySource, Tape, as_array

__all__ = ["InsecureSeedWarning", "Plan", "geometric_median", "plan", "required_n", "tape_of"]

METHODS: dict[str, Method] = {
    method.name: method for method in (adaptive, dpgd, loc_dpgd, loc_cutting_plane, inverse_sensitivity)
}

_WIDTH = 80


class InsecureSeedWarning(UserWarning):
    """A seed makes the noise predictable: for simulations only, never for a release that leaves the house."""


@dataclass(frozen=True, eq=False)
class Plan:
    """A calibrated release: stages, noise, cost and what to expect. Nothing here depends on the data."""

    problem: Problem
    method: str
    recipe: Recipe = field(repr=False)
    reason: str = ""

    @property
    def n(self) -> int:
        return self.problem.n

    @property
    def d(self) -> int:
        return self.problem.d

    @property
    def stages(self) -> tuple[Stage, ...]:
        return self.recipe.stages

    @functools.cached_property
    def cost(self) -> PrivacyCost:
        budget = self.problem.budget
        return self.recipe.cost.asked(budget.epsilon, budget.delta)

    @property
    def prediction(self) -> Prediction:
        """What to expect of the error, and the probability of failure."""
        return self.recipe.predict()

    @property
    def notes(self) -> tuple[str, ...]:
        return self.recipe.notes

    def refuse_if_hopeless(self) -> None:
        """Raises, before anything is spent, if the run would fail more often than not."""
        failure = self.prediction.failure
        if failure > 0.5:
            further = ", a radius" if self.problem.radius is None else ""
            raise ValueError(
                f"refused before spending: method {self.method!r} would fail with probability {failure:.2g} at "
                f"n={self.n}, d={self.d} under this budget; give more records{further} or a larger budget"
            )

    def run(
        self,
        points: ArrayLike,
        *,
        ledger: Any = None,
        seed: int | None = None,
        progress: bool | Callable[[float], object] | None = None,
        nonfinite: str = "raise",
    ) -> Release:
        """Spends the budget on these points.

        The order: shape and parameters, the ledger's check, finite values, the charge of the full planned cost, and
        only then the first release. `ReleaseFailed` and interruptions stay charged.
        """
        array, columns = as_array(points)
        if array.shape != (self.n, self.d):
            raise ValueError(f"this plan is for points of shape ({self.n}, {self.d}), got {array.shape}")
        if nonfinite not in ("raise", "center"):
            raise ValueError(f"nonfinite must be 'raise' or 'center', got {nonfinite!r}")
        tape = tape_of(seed)
        self.refuse_if_hopeless()
        account = as_ledger(ledger)
        account.check(self.cost)
        meter = Progress(self.recipe.passes, progress)
        source = ArraySource(array, self.problem, meter, nonfinite)
        with spending(account, self.method, self.cost, "geometric median"):
            try:
                outcome = self.recipe.run(source, tape)
            except ReleaseFailed:
                raise
            except Exception as error:
                raise RuntimeError(f"the run stopped after its cost was charged ({self.cost}): {error}") from error
            finally:
                meter.close()
        return Release(
            point=outcome.point,
            scale=outcome.scale,
            error_radius=outcome.error_radius,
            cost=self.cost,
            method=self.method,
            n=self.n,
            plan=self,
            notes=outcome.notes,
            columns=columns,
        )

    def plot(self, ax: Any = None) -> Any:
        """The predicted error against the budget and the number of records (needs matplotlib)."""
        from dpmedian.plot import plot_plan

        return plot_plan(self, ax)

    def _facts(self) -> list[str]:
        predicted = self.prediction
        facts = [f"cost: {self.cost}"]
        if predicted.excess is not None:
            worst = "" if predicted.excess_at_most is None else f", at a kink at most {predicted.excess_at_most:.2g}"
            facts.append(f"predicted excess F(point)/F(median) - 1: {predicted.excess:.2g}{worst}")
        if predicted.error_radius is not None:
            facts.append(f"predicted distance to the median: {predicted.error_radius:.2g} spreads")
        if predicted.loss is not None:
            facts.append(f"predicted bound on the average excess distance: {predicted.loss:.3g}")
        # Smaller probabilities are extrapolated, and nobody has counted that many runs.
        failure = "below 1e-6" if predicted.failure < 1e-6 else f"{predicted.failure:.2g}"
        facts.append(f"predicted probability of failure: {failure}")
        return facts + ([self.reason] if self.reason else []) + [f"note: {note}" for note in self.notes]

    def _table(self) -> list[tuple[str, ...]]:
        head = ("stage", "steps", "noise", "sensitivity", "rho")
        rows = [(s.name, s.steps, s.noise, f"{s.sensitivity:.4g}", f"{s.cost.rho:.4g}") for s in self.stages]
        return [head, *rows]

    def __str__(self) -> str:
        """A table that fits a terminal: the two columns of words are wrapped when they have to be."""
        head, *rows = self._table()
        for wrap in range(40, 15, -1):
            cells = [[textwrap.wrap(cell, wrap, break_long_words=False) for cell in row] for row in (head, *rows)]
            widths = [max(len(line) for cell in column for line in cell) for column in zip(*cells, strict=True)]
            if sum(widths) + 2 * len(widths) - 2 <= _WIDTH:
                break
        lines = [
            "  ".join(part.ljust(width) for part, width in zip(parts, widths, strict=True)).rstrip()
            for row in cells
            for parts in zip_longest(*row, fillvalue="")
        ]
        rule = "-" * max(len(line) for line in lines)
        title = f"Plan: {self.method}, n = {self.n}, d = {self.d}, {self.problem.budget.describe()}"
        facts = [textwrap.fill(fact, _WIDTH, subsequent_indent="  ") for fact in self._facts()]
        return "\n".join([title, rule, lines[0], rule, *lines[1:], rule, *facts])

    def _repr_html_(self) -> str:
        head, *rows = self._table()
        cells = "".join(f"<th>{escape(cell)}</th>" for cell in head)
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        facts = "".join(f"<li>{escape(fact)}</li>" for fact in self._facts())
        title = escape(f"{self.method}, n = {self.n}, d = {self.d}, {self.problem.budget.describe()}")
        return f"<table><caption>Plan: {title}</caption><tr>{cells}</tr>{body}</table><ul>{facts}</ul>"


def plan(
    n: int,
    d: int,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    method: str = "auto",
    radius: float | None = None,
    resolution: float | None = None,
    center: ArrayLike | None = None,
    failure_probability: float = 0.05,
    profile: str = "default",
) -> Plan:
    """Calibrates a release of n points in d dimensions from public parameters.

    Budget: (epsilon, delta), rho, rho with delta, or epsilon alone for pure differential privacy; there is no default.
    Neighbours are data sets of the same public size n that differ in one replaced record.
    """
    budget = Budget.of(epsilon=epsilon, delta=delta, rho=rho)
    problem = Problem.of(
        n,
        d,
        budget,
        radius=radius,
        resolution=resolution,
        center=center,
        failure_probability=failure_probability,
        profile=profile,
    )
    if method == "auto":
        return _choose(problem)
    if method not in METHODS:
        raise ValueError(f"method must be 'auto' or one of {sorted(METHODS)}, got {method!r}")
    return _calibrated(problem, METHODS[method])


def _calibrated(problem: Problem, method: Method) -> Plan:
    method.check(problem)
    largest = calibrate(lambda rho: method.prepare(problem, rho).cost, problem.budget)
    return Plan(problem, method.name, method.prepare(problem, largest))


def _possible(problem: Problem, method: Method) -> Plan | None:
    """The plan of a method, or None where an argument is missing or out of its reach."""
    try:
        return _calibrated(problem, method)
    except ValueError:
        return None


def _excess(made: Plan) -> float:
    """The predicted excess; infinite where nothing is predicted."""
    predicted = made.prediction.excess
    return math.inf if predicted is None else predicted


def _choose(problem: Problem) -> Plan:
    """The default: the adaptive method, unless it cannot succeed and a method that knows the radius may.

    Near the median the adaptive method's error is of second order in the noise and relative to the data's spread, so
    a bound that is a share of the public radius can be smaller only where the adaptive method finds nothing.
    """
    if problem.budget.pure:
        chosen = _calibrated(problem, inverse_sensitivity)
        return replace(chosen, reason="chosen by auto: pure differential privacy was asked for")
    best = _calibrated(problem, adaptive)
    if problem.d == 1 and problem.radius is not None and problem.resolution is not None:
        exact = _possible(problem, inverse_sensitivity)
        if exact is not None and _excess(exact) < _excess(best):
            return replace(exact, reason="chosen by auto: on the line the exact draw has the smallest predicted error")
    failure = best.prediction.failure
    if failure <= 0.5:
        return replace(best, reason="chosen by auto: smallest predicted error, and it needs no radius")
    others = []
    for method in METHODS.values():
        other = _possible(problem, method)
        if other is not None and other.prediction.loss is not None and other.prediction.failure <= 0.5:
            others.append(other)
    if not others:
        return replace(best, reason=f"chosen by auto, but it would fail with probability {failure:.2g}")
    chosen = min(others, key=lambda other: other.prediction.loss or 0.0)
    return replace(chosen, reason=f"chosen by auto: 'adaptive' would fail with probability {failure:.2g}")


def required_n(
    d: int,
    *,
    excess: float,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    method: str = "adaptive",
    radius: float | None = None,
    resolution: float | None = None,
    failure_probability: float = 0.05,
    profile: str = "default",
) -> int:
    """The smallest n whose plan predicts an excess and a probability of failure of at most the ones asked for."""
    excess = positive("excess", excess)

    def enough(n: int) -> bool:
        made = plan(
            n,
            d,
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            method=method,
            radius=radius,
            resolution=resolution,
            failure_probability=failure_probability,
            profile=profile,
        )
        predicted = made.prediction
        if predicted.excess is None:
            raise ValueError(f"method {method!r} predicts no relative excess; use method 'adaptive'")
        return predicted.excess <= excess and predicted.failure <= failure_probability

    low, high = 1, 2
    while not enough(high):
        low, high = high, 2 * high
        if high > 2**30:
            raise ValueError(f"no number of records up to 2**30 reaches an excess of {excess} under this budget")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def geometric_median(
    points: ArrayLike,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    method: str = "auto",
    radius: float | None = None,
    resolution: float | None = None,
    center: ArrayLike | None = None,
    failure_probability: float = 0.05,
    profile: str = "default",
    ledger: Any = None,
    seed: int | None = None,
    progress: bool | Callable[[float], object] | None = None,
    nonfinite: str = "raise",
) -> Release:
    """A differentially private geometric median of the points: `plan(...)` for their shape, then `run`."""
    array, _ = as_array(points)
    made = plan(
        *array.shape,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        method=method,
        radius=radius,
        resolution=resolution,
        center=center,
        failure_probability=failure_probability,
        profile=profile,
    )
    return made.run(points, ledger=ledger, seed=seed, progress=progress, nonfinite=nonfinite)


def tape_of(seed: int | None) -> Tape:
    """Fresh noise from the operating system, or from a seed with the warning that it deserves."""
    if seed is None:
        return Tape.draw(None)
    seed = whole("seed", seed)
    if not 0 <= seed < 2**256:
        raise ValueError(f"seed must lie between 0 and 2**256 - 1, got {seed}")
    warnings.warn(
        "seed= makes the noise predictable: use it for simulations and tests only", InsecureSeedWarning, stacklevel=3
    )
    return Tape.draw(seed.to_bytes(32, "little"))
