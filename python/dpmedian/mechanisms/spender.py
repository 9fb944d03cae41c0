"""A budget that a run spends as it goes: every release chooses its noise from what is left. Proof: spender.md."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from dpmedian._core import Tape
from dpmedian.accounting import PrivacyCost
from dpmedian.accounting.rounding import product_up
from dpmedian.mechanisms.gaussian import CAP_ROUNDING, Gaussian
from dpmedian.mechanisms.sample import HiddenSample
from dpmedian.mechanisms.search import Found
from dpmedian.mechanisms.stage import Noise, Stage
from dpmedian.sources.protocol import Source

__all__ = ["Allowance", "Exhausted", "Offer", "Spender"]

Mechanism = TypeVar("Mechanism", bound=Gaussian)
Mechanism_co = TypeVar("Mechanism_co", bound=Gaussian, covariant=True)
Value = TypeVar("Value")

# The least part of the budget that a release gets. It bounds the noise, so that a lattice can be checked beforehand.
_LEAST = 1e-6


class Exhausted(Exception):
    """The budget, or the number of releases of a kind, is used up."""


@dataclass(frozen=True)
class Offer(Generic[Mechanism_co]):
    """A kind of query with at most `times` uses; a use is one release or one search.

    `make(rho)` calibrates it; its `releases` are those of one time. `largest` is the part of the budget that one time
    may cost at most.
    """

    make: Callable[[float], Mechanism_co]
    times: int
    largest: float
    rule: str
    """The number of uses in words, for the plan."""


@dataclass(frozen=True)
class Allowance:
    """The cap on a run: Gaussian releases of these kinds, with a sum of mu^2 of at most 2 rho for all possible answers.

    Neighbors and sensitivities: those of the kinds. Cost: the cap. Failure: `Exhausted`, before the release that would
    not fit.
    """

    rho: float
    offers: tuple[Offer[Gaussian], ...]

    def __post_init__(self) -> None:
        """Raises if the noise of a release that could happen fits no lattice: the extremes bound all others."""
        for offer in self.offers:
            offer.make(_LEAST * self.rho)
        _ = self._dearest  # Calibrates every kind at its largest cost, which raises if no lattice fits.

    @functools.cached_property
    def _dearest(self) -> tuple[Gaussian, ...]:
        """One time of every kind at the most that it may cost: a plan asks for them again and again."""
        return tuple(offer.make(offer.largest * self.rho) for offer in self.offers)

    @property
    def mu_squared(self) -> float:
        """The cap, with room for the rounding of sums."""
        return 2.0 * self.rho * (1.0 + CAP_ROUNDING)

    @property
    def coordinates(self) -> int:
        """The most numbers that a run can release."""
        made = zip(self.offers, self._dearest, strict=True)
        return sum(offer.times * gaussian.releases * gaussian.coordinates for offer, gaussian in made)

    @property
    def cost(self) -> PrivacyCost:
        """Of everything, and of every part: on lattices of 2^30 units or more."""
        return Gaussian.cap(self.rho, self.coordinates)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """One row for each kind, with the cost that it could have at most; together they cost no more than the cap."""
        return tuple(self._stage(offer, made) for offer, made in zip(self.offers, self._dearest, strict=True))

    def _stage(self, offer: Offer[Gaussian], least: Gaussian) -> Stage:
        alone = product_up(offer.times, least.cost.mu_squared)
        most = PrivacyCost(mu_squared=min(alone, self.mu_squared), discretization=self.cost.discretization)
        return replace(
            least.stage,
            noise=Noise("Gaussian", least.noise, "at least"),
            releases=offer.times * least.releases,
            cost=most,
            rule=offer.rule,
            capped=True,
            times=offer.times,
        )


class Spender:
    """What is left of an allowance during one run, and the only way to spend it."""

    def __init__(self, allowance: Allowance, tape: Tape) -> None:
        self.allowance = allowance
        self._tape = tape
        self._mu_squared = 0.0
        self._used = dict.fromkeys(allowance.offers, 0)

    @property
    def spent(self) -> float:
        """In rho."""
        return self._mu_squared / 2.0

    @property
    def left(self) -> float:
        """In rho."""
        return max(self.allowance.rho - self.spent, 0.0)

    @property
    def cost(self) -> PrivacyCost:
        """Of what was released so far. Each release was paid before it was made, so a filter in rho may charge this."""
        return Gaussian.cap(self.spent, self.allowance.coordinates)

    def affordable(self, offer: Offer[Mechanism], rho: float) -> float:
        """What one time would cost: as asked, but at least and at most what fits the lattice, and what is left."""
        asked = min(max(rho, _LEAST * self.allowance.rho), offer.largest * self.allowance.rho, self.left)
        if asked < _LEAST * self.allowance.rho or self._used[offer] >= offer.times:
            raise Exhausted(f"asked {self._used[offer]} times for {offer.rule!r}, rho = {self.left:.3g} is left")
        return asked

    def noise(self, offer: Offer[Mechanism], rho: float) -> float:
        """The standard deviation that a release of this cost would have, in natural units."""
        return offer.make(self.affordable(offer, rho)).noise

    def release(
        self, offer: Offer[Mechanism], rho: float, ask: Callable[[Mechanism, Tape], Value]
    ) -> tuple[Value, float]:
        """One release of about this cost, and its standard deviation. `ask` makes it."""
        made = self._buy(offer, rho)
        if made.releases != 1:
            raise RuntimeError(f"{made.name!r} makes {made.releases} releases: `search` asks for it, not `release`")
        return ask(made, self._tape), made.noise

    def search(self, offer: Offer[Mechanism], rho: float, ask: Callable[[Mechanism, Tape], Found[Value]]) -> Value:
        """One search of at most this cost. Only the queries that it made are paid for."""
        made = self._buy(offer, rho)
        found = ask(made, self._tape)
        if not 0 <= found.asked <= made.releases:
            raise RuntimeError(f"{made.name!r} says that it made {found.asked} of {made.releases} releases")
        self._mu_squared -= made.cost.mu_squared * (made.releases - found.asked) / made.releases
        return found.value

    def sample(self, sample: HiddenSample, source: Source) -> Source:
        """Drawing it costs nothing."""
        return sample.draw(source, self._tape)

    def _buy(self, offer: Offer[Mechanism], rho: float) -> Mechanism:
        """Pays for one time before anything is released; the sum never exceeds the cap."""
        made = offer.make(self.affordable(offer, rho))
        after = self._mu_squared + made.cost.mu_squared
        if not after <= self.allowance.mu_squared:
            raise RuntimeError(f"{made.name!r} would exceed the cap: mu^2 {after} of {self.allowance.mu_squared}")
        self._mu_squared, self._used[offer] = after, self._used[offer] + 1
        return made
