"""What releases cost, and what a budget allows.

A `PrivacyCost` records what happened (Gaussian releases, pure steps, bounded-range steps, an approximate part) instead
of a single number, so that the conversion to (epsilon, delta) is exact where a closed form exists. A `Budget` is what
may be spent. `calibrate` goes from one to the other.

Neighbours are data sets of the same public size that differ in one replaced record. The bounds of
`PrivacyCost.delta_at` are these; their proofs lie beside this file, in accounting.md.

* Gaussian releases with noise of standard deviation sigma on values of L2 sensitivity D compose to one Gaussian with
  mu^2 = sum (D/sigma)^2: delta_mu(epsilon) = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu). The noise is a
  discrete Gaussian, which lies within total variation 1/(40 sigma^2) of a rounded one, per coordinate; replacing the
  one by the other on both sides adds (1 + e^epsilon) * (sum of these distances).
* The other steps are dominated by a privacy loss that takes finitely many values l with probabilities w, so together
  delta(epsilon) = sum of w delta_mu(epsilon - l). An epsilon0-DP step has the losses of randomised response,
  +-epsilon0; an eta-bounded-range step has losses within +-eta with the density e^(l/2) / (4 sinh(eta/2)).
* Everything is zero-concentrated with rho = mu^2/2 + sum epsilon tanh(epsilon/2) + sum eta^2/8, also for discrete
  noise, without slack, and delta(epsilon) = min over a > 1 of exp((a - 1)(a rho - epsilon)) / (a - 1) * (1 - 1/a)^a
  (Canonne, Kamath, Steinke 2020).
* An approximate part, an event of probability delta0 on which nothing is promised, turns delta into
  delta0 + (1 - delta0) delta.

Each of them is valid, so their minimum is. Every number errs to the private side: delta and epsilon are reported
slightly too large.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from numbers import Real

__all__ = ["Budget", "PrivacyCost", "calibrate"]

# The normal tail is evaluated to a relative error below 1e-11 (a test compares it with many digits), so this factor
# keeps delta an upper bound.
_DELTA_MARGIN = 1.0 + 1e-10

# No delta below this is told apart from it: near it doubles lose their relative precision, and no budget asks for so
# little.
_DELTA_FLOOR = 1e-299

# Where the accounting is tested. Outside, a budget is refused rather than answered with fewer digits than promised.
_EPSILON_LIMITS = (1e-9, 1e3)
_DELTA_LIMIT = 1e-100
_RHO_LIMITS = (1e-20, 1e5)

# A bounded-range step is given 2 * 8 + 1 losses: twice as many would gain less than a thousandth in noise.
_RANGE_INTERVALS = 16

# The losses of all steps are gathered on at most this many intervals, and no more than so many steps are told apart:
# both bound the time of a conversion, and cost little where there are few steps.
_LOSS_INTERVALS = 64
_LOSS_STEPS = 32

_ROOT_TWO = math.sqrt(2.0)
_ROOT_TWO_PI = math.sqrt(2.0 * math.pi)

# Gauss-Legendre with eight nodes on [0, 1], exact to double precision for the smooth integrand it is used on.
_QUADRATURE = tuple(
    (0.5 + side * node / 2.0, weight / 2.0)
    for node, weight in (
        (0.1834346424956498, 0.3626837833783620),
        (0.5255324099163290, 0.3137066458778873),
        (0.7966664774136267, 0.2223810344533745),
        (0.9602898564975363, 0.1012285362903763),
    )
    for side in (-1.0, 1.0)
)


def _mills_complement(t: float) -> float:
    """1 - t R(t) for t > -1, R the Mills ratio (upper normal tail over density): the slope of -R."""
    if t < 10.0:
        return 1.0 - t * _mills(t)
    # The asymptotic series of 1 - t R(t); its terms shrink until about k = t^2/2, far below double precision.
    square, term, total, k = t * t, 1.0, 0.0, 1
    while abs(term) > 1e-17 * abs(total) and k < 40:
        term *= -(2 * k - 1) / square
        total -= term
        k += 1
    return total


def _mills(t: float) -> float:
    """The Mills ratio of the normal distribution for t > -1."""
    if t < 10.0:
        return _ROOT_TWO_PI / 2.0 * math.exp(t * t / 2.0) * math.erfc(t / _ROOT_TWO)
    return (1.0 - _mills_complement(t)) / t


def _upper_tail(t: float) -> float:
    return 0.5 * math.erfc(t / _ROOT_TWO)


def _gaussian_delta(mu: float, epsilon: float) -> float:
    """Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu) for any real epsilon, without cancellation.

    With a = epsilon/mu - mu/2 and b = a + mu the density obeys phi(a) = e^epsilon phi(b), so delta is
    phi(a) (R(a) - R(b)), R the Mills ratio. For small mu the two nearly agree, and their difference is the integral of
    -R' = 1 - t R(t) over [a, b], whose terms are all positive.
    """
    if epsilon < 0.0:
        # The hockey-stick divergence of a symmetric pair: the part below zero follows from the part above it.
        return -math.expm1(epsilon) + math.exp(epsilon) * _gaussian_delta(mu, -epsilon)
    if mu == 0.0:
        return 0.0
    a = epsilon / mu - mu / 2.0
    if a > 37.0:
        return _DELTA_FLOOR  # The tail beyond 37 is below 6e-300.
    density = math.exp(-a * a / 2.0) / _ROOT_TWO_PI
    if mu < 1.0:
        delta = density * mu * sum(weight * _mills_complement(a + mu * node) for node, weight in _QUADRATURE)
    elif a < 0.0:
        delta = _upper_tail(a) - density * _mills(a + mu)
    else:
        delta = density * (_mills(a) - _mills(a + mu))
    return max(delta, _DELTA_FLOOR)


def _concentrated_delta(rho: float, epsilon: float) -> float:
    """The conversion of Canonne, Kamath and Steinke: any order gives a valid bound, we take a nearly best one."""
    if rho == 0.0:
        return 0.0
    # With s = a - 1 the derivative of the exponent is (2s + 1) rho - epsilon - log(1 + 1/s): increasing and concave, so
    # Newton's method started to the left of the root climbs to it. Both starting points lie to the left.
    s = 1.0 / math.expm1(min(max(rho - epsilon, 0.0) + math.sqrt(2.0 * rho), 700.0))
    s = max(s, (epsilon - rho) / (2.0 * rho))
    for _ in range(60):
        step = (epsilon + math.log1p(1.0 / s) - (2.0 * s + 1.0) * rho) / (2.0 * rho + 1.0 / (s * (s + 1.0)))
        s += max(step, 0.0)
        if step <= 1e-9 * s:
            break
    exponent = s * ((s + 1.0) * rho - epsilon) - math.log(s) - (s + 1.0) * math.log1p(1.0 / s)
    if exponent >= 0.0:
        return 1.0
    return max(math.exp(exponent), _DELTA_FLOOR)


_Losses = tuple[tuple[float, float], ...]
"""Values of a privacy loss, each with its probability."""


@functools.lru_cache(maxsize=64)
def _losses(pure: tuple[float, ...], ranges: tuple[float, ...]) -> _Losses:
    """The privacy loss that dominates these steps together."""
    steps = sorted(
        [*((epsilon, _pure_losses) for epsilon in pure), *((eta, _range_losses) for eta in ranges)],
        reverse=True,
        key=lambda step: step[0],
    )
    losses: _Losses = ((0.0, 1.0),)
    for size, losses_of in steps[: _LOSS_STEPS - 1]:
        if size > 0.0:
            losses = _compose(losses, losses_of(size))
    # The smallest of many steps count as one pure step of their sum.
    rest = math.fsum(size for size, _ in steps[_LOSS_STEPS - 1 :])
    return _compose(losses, _pure_losses(rest)) if rest > 0.0 else losses


def _pure_losses(epsilon: float) -> _Losses:
    """Randomised response, which dominates every epsilon-DP step."""
    likely = 1.0 / (1.0 + math.exp(-epsilon))
    return (epsilon, likely), (-epsilon, math.exp(-epsilon) * likely)


def _range_losses(eta: float) -> _Losses:
    """The loss with density e^(l/2) / (4 sinh(eta/2)) on [-eta, eta], spread onto evenly spaced points.

    Spreading the mass between two neighbouring points onto them, so that both distributions keep their total, gives
    the trapezoidal rule with its sum made exactly 1.
    """
    step = 2.0 * eta / _RANGE_INTERVALS
    scale = 2.0 * math.tanh(step / 4.0) / -math.expm1(-eta)
    inner = ((j * step - eta, scale * math.exp(j * step / 2.0 - eta)) for j in range(1, _RANGE_INTERVALS))
    return (-eta, scale * math.exp(-eta) / 2.0), *inner, (eta, scale / 2.0)


def _compose(one: _Losses, other: _Losses) -> _Losses:
    """The losses of independent steps add; when they become too many they are spread onto evenly spaced points.

    A value between two points becomes the one or the other, with both distributions' totals kept: whoever sees the
    points can forget which one it was, so the spread pair dominates the original.
    """
    losses = tuple((loss + more, weight * times) for loss, weight in one for more, times in other)
    if len(losses) <= _LOSS_INTERVALS + 1:
        return losses
    low, high = min(loss for loss, _ in losses), max(loss for loss, _ in losses)
    step = (high - low) / _LOSS_INTERVALS
    weights = [0.0] * (_LOSS_INTERVALS + 1)
    for loss, weight in losses:
        j = min(int((loss - low) / step), _LOSS_INTERVALS - 1)
        share = min(max(math.expm1(low + j * step - loss) / math.expm1(-step), 0.0), 1.0)
        weights[j] += weight * (1.0 - share)
        weights[j + 1] += weight * share
    return tuple((low + j * step, weight) for j, weight in enumerate(weights))


def _border(
    excess: Callable[[float], float], *, good: float, bad: float, absolute: float = 0.0, relative: float = 0.0
) -> float:
    """The argument nearest to `bad`, to a precision, whose excess was found to be at most 0, as it is at `good`.

    By the rule of false position, in its Illinois form, which needs few steps where the excess is smooth; where it is
    infinite, and every fourth time, the middle is taken. Candidates keep a distance from both ends, so that the last
    ones fall on either side of the border and the interval closes.
    """
    below, above = excess(good), excess(bad)
    moved, tries = 0, 0
    while (length := abs(bad - good)) > (width := absolute + relative * max(abs(good), abs(bad))):
        margin = 0.4 * width
        tries += 1
        share = below / (below - above) if tries % 4 and math.isfinite(above - below) else 0.5
        candidate = good + math.copysign(min(max(share * length, margin), length - margin), bad - good)
        value = excess(candidate)
        if value <= 0.0:
            good, below, above = candidate, value, above * (0.5 if moved < 0 else 1.0)
            moved = -1
        else:
            bad, above, below = candidate, value, below * (0.5 if moved > 0 else 1.0)
            moved = 1
    return good


def _up(x: float) -> float:
    return math.nextafter(x, math.inf)


def _number(name: str, value: object, accepted: str) -> float:
    """A real number as a double, or a TypeError that names the argument."""
    if type(value) is float:  # A plan makes hundreds of costs, and the check of an abstract type is slow.
        return value
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be {accepted}, got {value!r} of type {type(value).__name__}")
    return float(value)


def _within(name: str, value: object, accepted: str, test: Callable[[float], bool]) -> float:
    number = _number(name, value, accepted)
    if not (math.isfinite(number) and test(number)):
        raise ValueError(f"{name} must be {accepted}, got {value!r}")
    return number


def _not_negative(name: str, value: object) -> float:
    return _within(name, value, "a finite number that is at least 0", lambda x: x >= 0.0)


def _positive(name: str, value: object) -> float:
    return _within(name, value, "a finite number greater than 0", lambda x: x > 0.0)


def _probability(name: str, value: object) -> float:
    return _within(name, value, "a number in [0, 1)", lambda x: 0.0 <= x < 1.0)


@dataclass(frozen=True)
class PrivacyCost:
    """The privacy cost of a release, or of several: costs add up with `+`.

    `epsilon` and `delta` are the pair that was asked for; a sum has none, since two pairs do not add up to a sensible
    one: ask `epsilon_at(delta)` or `delta_at(epsilon)`.
    """

    mu_squared: float = 0.0
    """Sum of (sensitivity/sigma)^2 over the Gaussian releases."""
    slack: float = 0.0
    """Total variation between discrete and rounded Gaussian noise, summed over the released coordinates."""
    pure: tuple[float, ...] = ()
    """Epsilons of the pure-DP steps."""
    ranges: tuple[float, ...] = ()
    """Etas of the bounded-range steps (exponential mechanisms)."""
    delta0: float = 0.0
    """Probability of the events on which nothing is promised."""
    epsilon: float | None = None
    delta: float | None = None

    def __post_init__(self) -> None:
        for name in ("mu_squared", "slack", "delta0"):
            object.__setattr__(self, name, _not_negative(name, getattr(self, name)))
        for name in ("pure", "ranges"):
            object.__setattr__(self, name, tuple(_not_negative(name, value) for value in getattr(self, name)))
        if self.epsilon is not None:
            object.__setattr__(self, "epsilon", _positive("epsilon", self.epsilon))
        if self.delta is not None:
            object.__setattr__(self, "delta", _probability("delta", self.delta))

    # What happened.

    @classmethod
    def gaussian(cls, sensitivity: float, sigma: float, coordinates: int, releases: int = 1) -> PrivacyCost:
        """Discrete Gaussian noise on an integer vector, `releases` times; L2 sensitivity and sigma in lattice units."""
        sensitivity = _not_negative("sensitivity", sensitivity)
        # Below 1 the total variation can exceed 1/(40 sigma^2); no release of this package comes near.
        sigma = _within("sigma", sigma, "a finite number that is at least 1 (in lattice units)", lambda x: x >= 1.0)
        coordinates = _count("coordinates", coordinates)
        releases = _count("releases", releases)
        ratio = _up(sensitivity / sigma)
        return cls(
            mu_squared=_up(_up(ratio * ratio) * releases),
            slack=_up(_up(releases * coordinates / (40.0 * sigma)) / sigma),
        )

    @classmethod
    def pure_dp(cls, epsilon: float) -> PrivacyCost:
        """An epsilon-DP step, AboveThreshold and discrete Laplace noise included."""
        return cls(pure=(_positive("epsilon", epsilon),))

    @classmethod
    def bounded_range(cls, eta: float) -> PrivacyCost:
        """An exponential mechanism whose log-odds between any two outputs move by at most eta."""
        return cls(ranges=(_positive("eta", eta),))

    @classmethod
    def approximate(cls, delta0: float) -> PrivacyCost:
        """An event of probability at most delta0 on which nothing is promised."""
        return cls(delta0=_probability("delta0", delta0))

    @classmethod
    def total(cls, costs: Iterable[PrivacyCost]) -> PrivacyCost:
        """The cost of all of them, chosen one after the other; the same as `+`, with less rounding."""
        costs = tuple(costs)
        return cls(
            mu_squared=math.fsum(cost.mu_squared for cost in costs),
            slack=math.fsum(cost.slack for cost in costs),
            pure=tuple(epsilon for cost in costs for epsilon in cost.pure),
            ranges=tuple(eta for cost in costs for eta in cost.ranges),
            delta0=math.fsum(cost.delta0 for cost in costs),
        )

    def __add__(self, other: PrivacyCost) -> PrivacyCost:
        if not isinstance(other, PrivacyCost):
            return NotImplemented
        return PrivacyCost.total((self, other))

    def asked(self, epsilon: float | None, delta: float | None) -> PrivacyCost:
        """The same cost, carrying the pair that was asked for."""
        return replace(self, epsilon=epsilon, delta=delta)

    # What it amounts to.

    @property
    def rho(self) -> float:
        """The zero-concentrated cost of everything but delta0."""
        return math.fsum(
            (
                self.mu_squared / 2.0,
                *(epsilon * math.tanh(epsilon / 2.0) for epsilon in self.pure),
                *(eta * eta / 8.0 for eta in self.ranges),
            )
        )

    @property
    def _pure_sum(self) -> float:
        return math.fsum((*self.pure, *self.ranges))

    def delta_at(self, epsilon: float) -> float:
        """The smallest delta we can prove for this epsilon, rounded up."""
        epsilon = _not_negative("epsilon", epsilon)
        rest = min(self._composed_delta(epsilon), _concentrated_delta(self.rho, epsilon))
        if rest == 0.0:
            return min(self.delta0, 1.0)
        if self.delta0 >= 1.0:
            return 1.0
        return min(_up(self.delta0 + (1.0 - self.delta0) * rest * _DELTA_MARGIN), 1.0)

    def epsilon_at(self, delta: float) -> float:
        """The smallest epsilon we can prove for this delta, rounded up; infinite when no epsilon will do."""
        delta = _probability("delta", delta)
        if 0.0 < delta < _DELTA_LIMIT:
            raise ValueError(f"delta must be 0 or at least {_DELTA_LIMIT:g}, got {delta!r}")
        if delta < self.delta0:
            return math.inf
        low, high = 0.0, self._pure_sum
        if self.mu_squared == 0.0 and delta == self.delta0:
            return high
        if self.mu_squared > 0.0:
            left = (delta - self.delta0) / (1.0 - self.delta0)
            if left < _DELTA_LIMIT:
                return math.inf
            # The closed form of Bun and Steinke is never below the best conversion.
            high = self.rho + 2.0 * math.sqrt(self.rho * math.log(1.0 / left))
            while self.delta_at(high) > delta:
                low, high = high, 2.0 * high
        if self.delta_at(low) <= delta:
            return low

        def excess(epsilon: float) -> float:
            """Positive exactly where delta is exceeded."""
            return math.log(max(self.delta_at(epsilon), _DELTA_FLOOR) / delta)

        return _border(excess, good=high, bad=low, relative=1e-11)

    def _composed_delta(self, epsilon: float) -> float:
        """Gaussians and the losses of the other steps, by the exact formula, with the slack of discrete noise."""
        mu, losses = math.sqrt(self.mu_squared), _losses(self.pure, self.ranges)
        if mu == 0.0 and epsilon >= self._pure_sum:
            return 0.0

        def composed(at: float) -> float:
            return math.fsum(weight * _gaussian_delta(mu, at - loss) for loss, weight in losses)

        # Without Gaussian sensitivity the noise is the same on both sides, discrete or not.
        if mu == 0.0 or self.slack == 0.0:
            return composed(epsilon)

        def slope(at: float) -> float:
            """Minus the derivative of `composed` in e^epsilon."""
            tails = ((loss, weight, _upper_tail((at - loss) / mu + mu / 2.0)) for loss, weight in losses)
            return math.fsum(weight * math.exp(min(-loss, 700.0)) * tail for loss, weight, tail in tails)

        # The true delta falls with epsilon, but the bound is convex in e^epsilon and rises where the slack exceeds the
        # slope: there the bound at the smaller epsilon where the two agree is better, and holds for this epsilon too.
        if slope(epsilon) < self.slack:
            low, high = 0.0, epsilon
            for _ in range(60):
                middle = 0.5 * (low + high)
                low, high = (middle, high) if slope(middle) > self.slack else (low, middle)
            epsilon = low
        if epsilon > 700.0:
            return 1.0
        return composed(epsilon) + (1.0 + math.exp(epsilon)) * self.slack

    # How it reads and is stored.

    def __str__(self) -> str:
        if self.epsilon is not None:
            pair = f"epsilon = {self.epsilon:.6g}" + ("" if not self.delta else f", delta = {self.delta:.6g}")
        elif self.mu_squared == 0.0 and self.delta0 == 0.0:
            pair = f"epsilon = {self._pure_sum:.6g}"
        else:
            pair = f"rho = {self.rho:.6g}" + (f", delta = {self.delta0:.6g}" if self.delta0 else "")
        return pair if self.epsilon is None or not self.rho else f"{pair} (rho = {self.rho:.6g})"

    def to_dict(self) -> dict[str, float | list[float] | None]:
        """The fields that are not empty, as JSON can hold them; `from_dict` restores an equal cost."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in values.items()
            if value is not None and value != () and (value != 0.0 or name == "delta")
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, object]) -> PrivacyCost:
        unknown = sorted(set(stored) - {field.name for field in fields(cls)})
        if unknown:
            raise ValueError(f"a stored cost has the unknown fields {unknown}: a newer version may have written it")
        return cls(**stored)  # type: ignore[arg-type]  # __post_init__ checks every value.


def _count(name: str, value: object) -> int:
    number = _within(name, value, "a positive whole number", lambda x: x >= 1.0 and x == int(x))
    return int(number)


@dataclass(frozen=True)
class Budget:
    """What may be spent: (epsilon, delta), epsilon alone (pure), rho (zero-concentrated), or rho with delta."""

    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None

    def __post_init__(self) -> None:
        kinds = "pass epsilon and delta, epsilon alone, rho, or rho and delta"
        if self.epsilon is not None and self.rho is not None:
            raise ValueError(f"two budgets at once, epsilon = {self.epsilon!r} and rho = {self.rho!r}: {kinds}")
        if self.epsilon is None and self.rho is None:
            got = "" if self.delta is None else f", delta = {self.delta!r} alone is not one"
            raise ValueError(f"no privacy budget{got}: {kinds}")
        for name, value, (smallest, largest) in (
            ("epsilon", self.epsilon, _EPSILON_LIMITS),
            ("rho", self.rho, _RHO_LIMITS),
        ):
            if value is not None:
                number = _positive(name, value)
                if not smallest <= number <= largest:
                    raise ValueError(f"{name} must lie between {smallest:g} and {largest:g}, got {value!r}")
                object.__setattr__(self, name, number)
        if self.delta is not None:
            delta = _probability("delta", self.delta)
            if 0.0 < delta < _DELTA_LIMIT:
                raise ValueError(f"delta must be 0 or at least {_DELTA_LIMIT:g}, got {self.delta!r}")
            object.__setattr__(self, "delta", delta)

    @classmethod
    def of(cls, epsilon: float | None = None, delta: float | None = None, rho: float | None = None) -> Budget:
        return cls(epsilon=epsilon, delta=delta, rho=rho)

    @property
    def pure(self) -> bool:
        """Whether only pure differential privacy will do."""
        return self.epsilon is not None and not self.delta

    def fits(self, cost: PrivacyCost, *, rounding: float = 0.0) -> bool:
        """Whether the cost is within the budget; `rounding` is a relative allowance for sums of decimal numbers."""
        return self.excess(cost, rounding=rounding) <= 0.0

    def excess(self, cost: PrivacyCost, *, rounding: float = 0.0) -> float:
        """At most 0 exactly if the cost fits: the logarithm of its delta, or rho, over the budget's."""
        grown = 1.0 + rounding
        delta = (self.delta or 0.0) * grown
        if self.rho is not None:
            spent, allowed = (cost.rho, self.rho * grown) if cost.delta0 <= delta else (math.inf, 1.0)
        else:
            assert self.epsilon is not None
            spent, allowed = cost.delta_at(self.epsilon * grown), delta
        if allowed == 0.0:
            return -math.inf if spent == 0.0 else math.inf
        # A quotient of doubles is rounded to 1 only if they are equal, so the sign is exact.
        quotient = spent / allowed
        return math.log(quotient) if quotient > 0.0 else -math.inf

    def remaining(self, cost: PrivacyCost) -> float:
        """What the cost leaves, in the budget's own unit: rho, or epsilon at the budget's delta; 0 if nothing."""
        if self.rho is not None:
            return max(self.rho - cost.rho, 0.0) if cost.delta0 <= (self.delta or 0.0) else 0.0
        assert self.epsilon is not None
        return max(self.epsilon - cost.epsilon_at(self.delta or 0.0), 0.0)

    @property
    def unit(self) -> str:
        return "epsilon" if self.rho is None else "rho"

    def describe(self) -> str:
        value = self.epsilon if self.rho is None else self.rho
        return f"{self.unit} = {value:.6g}" + (f", delta = {self.delta:.6g}" if self.delta else "")

    __str__ = describe


def calibrate(cost_of: Callable[[float], PrivacyCost], budget: Budget) -> float:
    """The largest rho, to nine digits, whose cost fits the budget; the returned value itself fits.

    `cost_of` maps a rho to the cost of what would be done with it, and must grow with rho. It may refuse a rho that is
    out of its reach with a ValueError; if it refuses all that could fit, the error says so.
    """
    guess = _likely_rho(budget)
    too_much = ""
    refusal: ValueError | None = None

    @functools.cache
    def excess(octave: float) -> float:
        """At guess * 2^octave."""
        nonlocal too_much, refusal
        rho = guess * 2.0**octave
        try:
            cost, refusal = cost_of(rho), None
        except ValueError as error:
            refusal = error
            return math.inf
        found = budget.excess(cost)
        if found > 0.0:
            too_much = f"at rho = {rho:.3g} the cost is {cost}"
        return found

    # From the guess, which is nearly exact for Gaussian costs, by growing factors to the other side of the border.
    upwards = excess(0.0) <= 0.0
    near = 0.0
    for stride in (2.0**-20, 2.0**-6, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0):
        far = stride if upwards else -stride
        if (excess(far) <= 0.0) != upwards:
            break
        near = far
    else:
        if upwards:
            largest = guess * 2.0**near
            raise ValueError(f"at rho = {largest:.3g} the cost is still within {budget}: it does not grow with rho")
        if budget.pure and too_much:
            raise ValueError(f"nothing fits the budget {budget}: {too_much}, and without delta only pure steps fit")
        raise ValueError(f"nothing fits the budget {budget}: {refusal or too_much}") from refusal
    good, bad = (near, far) if upwards else (far, near)
    octaves = _border(excess, good=good, bad=bad, absolute=1e-9)
    return guess * math.pow(2.0, octaves)


def _likely_rho(budget: Budget) -> float:
    """Where the search starts: near the answer when the cost is mostly Gaussian."""
    if budget.rho is not None:
        return budget.rho
    assert budget.epsilon is not None
    if not budget.delta:
        return budget.epsilon * math.tanh(budget.epsilon / 2.0)
    # The solution of epsilon = rho + 2 sqrt(rho log(1/delta)) is never too large for one Gaussian.
    log = math.log(1.0 / budget.delta)
    safe = (budget.epsilon / (math.sqrt(log + budget.epsilon) + math.sqrt(log))) ** 2

    def excess(octave: float) -> float:
        return budget.excess(PrivacyCost(mu_squared=2.0 * safe * math.pow(2.0, octave)))

    return safe * math.pow(2.0, _border(excess, good=0.0, bad=8.0, absolute=1e-9)) if excess(8.0) > 0.0 else safe
