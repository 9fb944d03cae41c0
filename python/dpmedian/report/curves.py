"""Curves as SVG, which browsers show and printers print without scripts. A script on the page adds tooltips."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from dpmedian.accounting import PrivacyCost
from dpmedian.planning.prediction_curves import PredictionCurves

__all__ = ["Curve", "chart", "epsilon_curve", "error_by_budget", "error_by_size"]

_WIDTH, _HEIGHT = 460, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 14, 14, 50

_STEPS = 25


@dataclass(frozen=True)
class Curve:
    """A curve on logarithmic or linear axes, with a gap at each point whose y is None. `here` is the point of this
    release.
    """

    title: str
    x_label: str
    y_label: str
    x: tuple[float, ...]
    y: tuple[float | None, ...]
    here: tuple[float, float] | None
    log_y: bool = True
    words: str = "{x}: {y}"
    """The text of the tooltip of a point."""


def epsilon_curve(cost: PrivacyCost, delta: float) -> Curve | None:
    """Return the curve of all pairs of delta and epsilon that the cost implies, of which one was requested, or None for
    a pure cost.
    """
    if cost.is_pure:
        return None
    middle = delta if delta > 0.0 else 1e-6
    exponents = [math.log10(middle) - 6.0 + 12.0 * step / (_STEPS - 1) for step in range(_STEPS)]
    deltas = [10.0**exponent for exponent in exponents if exponent < -0.5]
    epsilons = [cost.epsilon_at(value) for value in deltas]
    return Curve(
        "Epsilon for every delta",
        "delta",
        "epsilon",
        tuple(deltas),
        tuple(value if math.isfinite(value) else None for value in epsilons),
        (middle, cost.epsilon_at(middle)),
        log_y=False,
        words="delta {x}: epsilon {y}",
    )


def error_by_size(curves: PredictionCurves) -> Curve:
    """Return the curve of the predicted error as a function of the number of records."""
    n = curves.sizes[1]
    sizes = sorted({max(round(n * 2.0 ** (-4.0 + 8.0 * step / (_STEPS - 1))), 2) for step in range(_STEPS)} | {n})
    errors = tuple(curves.predicted(size, curves.amount) for size in sizes)
    label = f"number of records ({curves.plan.parameters.budget})"
    return Curve(
        "With more or fewer records",
        label,
        curves.label,
        tuple(float(size) for size in sizes),
        errors,
        (float(n), curves.here),
        words="{x} records: {y}",
    )


def error_by_budget(curves: PredictionCurves) -> Curve:
    """Return the curve of the predicted error as a function of the budget."""
    budget = curves.plan.parameters.budget
    values = [curves.amount * 2.0 ** (-3.0 + 6.0 * step / (_STEPS - 1)) for step in range(_STEPS)]
    delta = f", delta = {budget.delta:.3g}" if budget.delta else ""
    return Curve(
        "With more or less budget",
        f"{budget.measure} (n = {curves.sizes[1]:,}{delta})",
        curves.label,
        tuple(values),
        tuple(curves.predicted(curves.sizes[1], value) for value in values),
        (curves.amount, curves.here),
        words=budget.measure + " {x}: {y}",
    )


@dataclass(frozen=True)
class _Axis:
    """A map from values between `low` and `high` to positions between `first` and `last`."""

    low: float
    high: float
    first: float
    last: float
    logarithmic: bool

    def place(self, value: float) -> float:
        low, high, at = (
            (math.log10(v) for v in (self.low, self.high, value))
            if self.logarithmic
            else (
                self.low,
                self.high,
                value,
            )
        )
        return self.first + (at - low) / ((high - low) or 1.0) * (self.last - self.first)

    def ticks(self) -> list[float]:
        if not self.logarithmic:
            step = _round_step((self.high - self.low) / 5.0)
            first = math.ceil(self.low / step)
            return [step * k for k in range(first, math.floor(self.high / step) + 1)]
        decades = math.log10(self.high / self.low)
        marks = (1.0, 2.0, 5.0) if decades < 2.5 else (1.0,)
        stride = max(1, round(decades / 6.0))
        exponents = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        found = [m * 10.0**e for e in exponents if e % stride == 0 for m in marks]
        return [tick for tick in found if self.low * 0.999 <= tick <= self.high * 1.001]


def _round_step(rough: float) -> float:
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * m for m in (1.0, 2.0, 5.0, 10.0) if power * m >= rough)


def _number(value: float) -> str:
    """Return a number as a short text, for an axis."""
    if value == 0.0:
        return "0"
    if 0.001 <= abs(value) < 100_000:
        return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    mantissa, exponent = f"{value:.0e}".split("e")
    return f"1e{int(exponent)}" if mantissa == "1" else f"{value:.1e}"


def chart(curve: Curve) -> str:
    """Return the curve as an HTML figure. The script of the page uses the numbers in the figure, and the label
    describes the figure for readers who cannot see it.
    """
    known = [y for y in curve.y if y is not None and (y > 0.0 or not curve.log_y)]
    if len(known) < 2:
        return ""
    low, high = min(known), max(known)
    if curve.log_y:
        low, high = low / 1.3, high * 1.3
    else:
        low, high = 0.0, high * 1.08
    across = _Axis(curve.x[0], curve.x[-1], _LEFT, _WIDTH - _RIGHT, True)
    up = _Axis(low, high, _HEIGHT - _BOTTOM, _TOP, curve.log_y)
    width, height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
    parts = [f'<rect class="frame" x="{_LEFT}" y="{_TOP}" width="{width}" height="{height}"/>']
    for tick in across.ticks():
        at = across.place(tick)
        parts.append(f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="{_TOP}" y2="{_HEIGHT - _BOTTOM}"/>')
        parts.append(_text("tick", at, _HEIGHT - _BOTTOM + 16, "middle", _number(tick)))
    for tick in up.ticks():
        at = up.place(tick)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(_text("tick", _LEFT - 7, at + 4, "end", _number(tick)))
    points = [
        None if y is None else (round(across.place(x), 1), round(up.place(y), 1), x, y)
        for x, y in zip(curve.x, curve.y, strict=True)
    ]
    parts += [f'<polyline class="line" points="{line}"/>' for line in _pieces(points)]
    if curve.here is not None and low <= curve.here[1] <= high:
        x, y = across.place(curve.here[0]), up.place(curve.here[1])
        parts.append(f'<circle class="here" cx="{x:.1f}" cy="{y:.1f}" r="5.5"/>')
    parts.append(_text("label", _LEFT + width / 2.0, _HEIGHT - 10, "middle", curve.x_label))
    hover = json.dumps(
        [
            [left, top, curve.words.format(x=_number(x), y=_exact(y))]
            for left, top, x, y in (point for point in points if point is not None)
        ]
    )
    text = f"{curve.y_label} against {curve.x_label}"
    here = "" if curve.here is None else f": here {_exact(curve.here[1])} at {_number(curve.here[0])}"
    return (
        f'<figure class="chart"><figcaption><b>{escape(curve.title)}</b><span>{escape(curve.y_label)}</span>'
        f'</figcaption><svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(text + here)}" '
        f'data-points="{escape(hover)}">{"".join(parts)}</svg></figure>'
    )


def _text(kind: str, x: float, y: float, anchor: str, text: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _exact(value: float) -> str:
    return f"{value:.3g}"


def _pieces(points: Sequence[tuple[float, float, float, float] | None]) -> list[str]:
    """Return the pieces of the curve between gaps."""
    lines: list[list[str]] = [[]]
    for point in points:
        if point is None:
            lines.append([])
        else:
            lines[-1].append(f"{point[0]},{point[1]}")
    return [" ".join(line) for line in lines if len(line) > 1]
