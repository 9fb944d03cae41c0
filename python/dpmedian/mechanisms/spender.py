"""A budget that a run divides among its releases while it runs. Proof: spender.md."""

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

# The smallest part of the budget that a release can have. This number limits the noise, so that the lattice can be
# checked before the run.
_LEAST = 1e-6


class Exhausted(Exception):
    """The budget, or the number of releases of a kind, is used up."""


@dataclass(frozen=True)
class Offer(Generic[Mechanism_co]):
    """A kind of query with at most `times` uses. A use is one release or one search.

    `make(rho)` calibrates the mechanism of one use. `largest` is the largest part of the budget that one use may cost.
    """

    make: Callable[[float], Mechanism_co]
    times: int
    largest: float
    rule: str
    """The number of uses in words, for the plan."""


@dataclass(frozen=True)
class Allowance:
    """The cap on a run. For all possible answers, the sum of mu^2 over the Gaussian releases of the run is at most 2
    rho.

    Neighbors and sensitivities: the kinds of query state them. Cost: the cap. Failure: `Exhausted` is raised before a
    release that would exceed the cap.
    """

    rho: float
    offers: tuple[Offer[Gaussian], ...]

    def __post_init__(self) -> None:
        """Raise an error if a possible release has noise that does not fit any lattice.

        Only the largest and the smallest cost of each kind are checked, because all other costs lie between them.
        """
        for offer in self.offers:
            offer.make(_LEAST * self.rho)
        _ = self._dearest  # Calibrates every kind at its largest cost, which raises if no lattice fits.

    @functools.cached_property
    def _dearest(self) -> tuple[Gaussian, ...]:
        """The mechanism of every kind at its largest cost. The result is cached because a plan needs it many times."""
        return tuple(offer.make(offer.largest * self.rho) for offer in self.offers)

    @property
    def mu_squared(self) -> float:
        """The cap on the sum of mu^2, with room for the rounding of sums."""
        return 2.0 * self.rho * (1.0 + CAP_ROUNDING)

    @property
    def coordinates(self) -> int:
        """The largest number of values that a run can release."""
        made = zip(self.offers, self._dearest, strict=True)
        return sum(offer.times * gaussian.releases * gaussian.coordinates for offer, gaussian in made)

    @property
    def cost(self) -> PrivacyCost:
        """The cost of all releases of a run. Every sigma is at least 2^30 lattice units."""
        return Gaussian.cap(self.rho, self.coordinates)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """One row for each kind of query, with the largest cost of this kind. All kinds together cost at most the
        cap.
        """
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
    """The state of an allowance during one run. All releases of the run are made through this object."""

    def __init__(self, allowance: Allowance, tape: Tape) -> None:
        self.allowance = allowance
        self._tape = tape
        self._mu_squared = 0.0
        self._used = dict.fromkeys(allowance.offers, 0)

    @property
    def spent(self) -> float:
        """The budget that was spent, in rho."""
        return self._mu_squared / 2.0

    @property
    def left(self) -> float:
        """The budget that is left, in rho."""
        return max(self.allowance.rho - self.spent, 0.0)

    @property
    def cost(self) -> PrivacyCost:
        """The cost of all releases so far. A privacy filter in rho may charge this cost, because each release was paid
        for before it was made.
        """
        return Gaussian.cap(self.spent, self.allowance.coordinates)

    def affordable(self, offer: Offer[Mechanism], rho: float) -> float:
        """The cost of one use: `rho`, raised or lowered to the limits of the lattice and of the budget that is left."""
        requested = min(max(rho, _LEAST * self.allowance.rho), offer.largest * self.allowance.rho, self.left)
        if requested < _LEAST * self.allowance.rho or self._used[offer] >= offer.times:
            raise Exhausted(f"{offer.rule!r} was used {self._used[offer]} times, and rho = {self.left:.3g} is left")
        return requested

    def noise(self, offer: Offer[Mechanism], rho: float) -> float:
        """The standard deviation that a release of this cost would have, in natural units."""
        return offer.make(self.affordable(offer, rho)).noise

    def release(
        self, offer: Offer[Mechanism], rho: float, ask: Callable[[Mechanism, Tape], Value]
    ) -> tuple[Value, float]:
        """Return one release of about this cost, and its standard deviation. `ask` makes the release."""
        made = self._buy(offer, rho)
        if made.releases != 1:
            raise RuntimeError(f"{made.name!r} makes {made.releases} releases: call `search`, not `release`")
        return ask(made, self._tape), made.noise

    def search(self, offer: Offer[Mechanism], rho: float, ask: Callable[[Mechanism, Tape], Found[Value]]) -> Value:
        """Return the result of one search of at most this cost. Only the queries that the search made are charged."""
        made = self._buy(offer, rho)
        found = ask(made, self._tape)
        if not 0 <= found.queries <= made.releases:
            raise RuntimeError(f"{made.name!r} reports {found.queries} of {made.releases} releases")
        self._mu_squared -= made.cost.mu_squared * (made.releases - found.queries) / made.releases
        return found.value

    def sample(self, sample: HiddenSample, source: Source) -> Source:
        """Draw a sample, which costs nothing."""
        return sample.draw(source, self._tape)

    def _buy(self, offer: Offer[Mechanism], rho: float) -> Mechanism:
        """Pay for one use before anything is released. The sum of all payments never exceeds the cap."""
        made = offer.make(self.affordable(offer, rho))
        after = self._mu_squared + made.cost.mu_squared
        if not after <= self.allowance.mu_squared:
            raise RuntimeError(f"{made.name!r} would exceed the cap: mu^2 {after} of {self.allowance.mu_squared}")
        self._mu_squared, self._used[offer] = after, self._used[offer] + 1
        return made
