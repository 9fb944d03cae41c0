"""The privacy cost of releases.

A `PrivacyCost` describes the releases themselves instead of a single number, so the conversion to (epsilon, delta) is
exact if a closed form exists. `PrivacyCost.delta_at` computes the smallest of these bounds, which accounting.md proves.

* Gaussian releases. Noise of standard deviation sigma is added to values of L2 sensitivity D. All such releases compose
  to one Gaussian with mu^2 = sum (D/sigma)^2 and delta_mu(epsilon) = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 -
  epsilon/mu).
* Discretization. The noise is a discrete Gaussian. The total variation distance between this noise and a Gaussian that
  is rounded to integers is at most 1/(40 sigma^2) per coordinate (1/(19 sigma^2) if sigma is below 7). Replacing one
  noise by the other for both data sets adds (1 + e^epsilon) times the sum of these distances to delta.
* Pure and bounded-range releases. Each release is replaced by a privacy loss with finitely many values, which dominates
  the true loss. If the sum of the losses has the value l with probability w, delta(epsilon) is the sum of w
  delta_mu(epsilon - l). An epsilon0-DP release has the losses of randomized response, +epsilon0 and -epsilon0. For a
  bounded range eta the losses have the density e^(l/2)/(4 sinh(eta/2)) on [-eta, eta], moved to finitely many points.
* Zero-concentration. All releases together have rho = mu^2/2 + sum epsilon tanh(epsilon/2) + sum eta^2/8, also with
  discrete noise. Then delta(epsilon) = min over a > 1 of exp((a - 1)(a rho - epsilon))/(a - 1) * (1 - 1/a)^a (Canonne,
  Kamath, Steinke 2020).
* An event of probability delta0 without any guarantee. The event turns delta into delta0 + (1 - delta0) delta.

Every number is rounded toward more cost: sums are rounded up, and delta and epsilon are slightly too large.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace

from dpmedian.accounting.arguments import DELTA_LIMIT, not_negative, positive, probability, usable_delta, whole, within
from dpmedian.accounting.composition import composed_delta
from dpmedian.accounting.concentrated import concentrated_delta, pure_rho, range_rho
from dpmedian.accounting.losses import losses_of
from dpmedian.accounting.normal import DELTA_FLOOR, DELTA_MARGIN, pure_mu_squared
from dpmedian.accounting.protection import RECORD, REPLACE, Neighbours, Protection, neighbours_of, unit_of
from dpmedian.accounting.rounding import half_up, integer_up, product_up, sum_up, up
from dpmedian.accounting.search import border
from dpmedian.documented import documented

__all__ = ["PrivacyCost"]

# The field names of version 0.1.0. Files with these names can still be read.
_FORMER_NAMES = {"pure": "pure_epsilons", "ranges": "bounded_ranges", "slack": "discretization"}


@dataclass(frozen=True)
class PrivacyCost:
    """The privacy cost of a release, or of several releases. Costs are added with `+`.

    `epsilon` and `delta` are the requested pair. A sum of costs has no pair, because the sum of pairs would be too
    large. Use `epsilon_at(delta)` or `delta_at(epsilon)` instead.

    >>> cost = PrivacyCost.gaussian(sensitivity=1, sigma=2**30, coordinates=3) + PrivacyCost.pure_dp(0.1)
    >>> cost.epsilon_at(1e-6) < 0.11
    True
    """

    mu_squared: float = 0.0
    """The sum of (sensitivity/sigma)^2 over the Gaussian releases."""
    discretization: float = 0.0
    """The total variation distance between discrete and rounded Gaussian noise, summed over all coordinates."""
    pure_epsilons: tuple[float, ...] = ()
    """The epsilon of every release under pure DP."""
    bounded_ranges: tuple[float, ...] = ()
    """The eta of every bounded-range release. Such a release is an exponential mechanism whose log-odds move by at most
    eta.
    """
    delta0: float = 0.0
    """The probability of an event in which nothing is guaranteed."""
    epsilon: float | None = None
    """The epsilon that was requested, or None."""
    delta: float | None = None
    """The delta that was requested, or None."""
    neighbours: Neighbours = "replace"
    """The relation for which the cost holds: "replace" (one unit is replaced; public size) or "add_remove"."""
    unit: str = RECORD
    """The unit that differs between neighbors: "record" for one row, or a label such as "user"."""

    def __post_init__(self) -> None:
        for name in ("mu_squared", "discretization", "delta0"):
            object.__setattr__(self, name, not_negative(name, getattr(self, name)))
        for name in ("pure_epsilons", "bounded_ranges"):
            object.__setattr__(self, name, tuple(not_negative(name, value) for value in getattr(self, name)))
        if self.epsilon is not None:
            object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))
        if self.delta is not None:
            object.__setattr__(self, "delta", probability("delta", self.delta))
        Protection(self.neighbours, self.unit)  # This raises an error if the relation or the unit is invalid.

    @functools.cached_property
    def protection(self) -> Protection:
        """The neighbors and the unit that the cost is about."""
        return Protection(self.neighbours, self.unit)

    @classmethod
    def gaussian(cls, sensitivity: float, sigma: float, coordinates: int, releases: int = 1) -> PrivacyCost:
        """The cost of discrete Gaussian noise on an integer vector.

        Parameters
        ----------
        sensitivity : float
            The L2 sensitivity of the vector, in lattice units.
        sigma : float
            The standard deviation of the noise, in lattice units, at least 1.
        coordinates : int
            The length of the vector.
        releases : int
            The number of such vectors that are released.

        Returns
        -------
        PrivacyCost
            The cost, with `mu_squared` and `discretization` rounded up.
        """
        sensitivity = not_negative("sensitivity", sensitivity)
        accepted = "a finite number that is at least 1 (in lattice units)"
        sigma = within("sigma", sigma, accepted, lambda x: x >= 1.0, down=True)
        coordinates = whole("coordinates", coordinates)
        releases = whole("releases", releases)
        # accounting.md proves the bound with 40 if sigma lies between 7 and 2^50, as in all releases of this package,
        # and with 19 if sigma is smaller.
        share = 40.0 if sigma >= 7.0 else 19.0
        ratio = up(sensitivity / sigma)
        return cls(
            mu_squared=up(up(ratio * ratio) * integer_up(releases)),
            discretization=up(up(up(integer_up(releases * coordinates) / share) / sigma) / sigma),
        )

    @classmethod
    def pure_dp(cls, epsilon: float) -> PrivacyCost:
        """The cost of an epsilon-DP release, such as AboveThreshold or discrete Laplace noise."""
        return cls(pure_epsilons=(positive("epsilon", epsilon),))

    @classmethod
    def bounded_range(cls, eta: float) -> PrivacyCost:
        """The cost of an exponential mechanism whose log-odds between any two outputs move by at most eta."""
        return cls(bounded_ranges=(positive("eta", eta),))

    @classmethod
    def total(cls, costs: Iterable[PrivacyCost]) -> PrivacyCost:
        """The cost of several releases together. The result is that of `+`, but it is rounded up only once.

        Parameters
        ----------
        costs : iterable of PrivacyCost
            Costs of the same relation and unit. For no costs at all, the result is a cost of zero under "replace".

        Returns
        -------
        PrivacyCost
            The composed cost, without a requested pair.

        Raises
        ------
        ValueError
            If the costs have different neighbors or units. Convert them first with `under` or `for_group`.
        """
        costs = tuple(costs)
        first = costs[0] if costs else cls()
        for cost in costs:
            first._require_alike(cost)
        return cls(
            mu_squared=sum_up(cost.mu_squared for cost in costs),
            discretization=sum_up(cost.discretization for cost in costs),
            pure_epsilons=tuple(epsilon for cost in costs for epsilon in cost.pure_epsilons),
            bounded_ranges=tuple(eta for cost in costs for eta in cost.bounded_ranges),
            delta0=sum_up(cost.delta0 for cost in costs),
            neighbours=first.neighbours,
            unit=first.unit,
        )

    def _require_alike(self, other: PrivacyCost) -> None:
        if self.neighbours != other.neighbours:
            raise ValueError(
                f"costs under neighbours = {self.neighbours!r} and {other.neighbours!r} cannot be added: convert costs "
                "under 'add_remove' with cost.under('replace'); the opposite conversion is impossible"
            )
        if self.unit != other.unit:
            raise ValueError(
                f"costs of the units {self.unit!r} and {other.unit!r} cannot be added. Under 'add_remove', "
                "convert a cost "
                "per 'record' with cost.for_group(k, unit=...), where k is the largest number of records of a unit, or "
                "convert a cost per unit with cost.per_record()"
            )

    def __add__(self, other: PrivacyCost) -> PrivacyCost:
        if not isinstance(other, PrivacyCost):
            return NotImplemented
        return PrivacyCost.total((self, other))

    def requested(self, epsilon: float | None, delta: float | None) -> PrivacyCost:
        """A copy of the cost with the pair that was requested."""
        return replace(self, epsilon=epsilon, delta=delta)

    asked = requested  # The name of this method in 0.2.0.

    def for_group(self, k: int, *, unit: str | None = None, exactly: bool = False) -> PrivacyCost:
        """The cost for neighbors that differ in up to k units at once (group privacy).

        Parameters
        ----------
        k : int
            The size of the group.
        unit : str, optional
            The label of the group, such as "user", if the group becomes the new unit. Under "add_remove", no group may
            have more than k records.
        exactly : bool
            A statement of the caller that each unit has exactly k records in every possible data set. Under "replace" a
            new unit is refused without this statement, because replacing a unit with 1 record by a unit with 2 records
            would change the number of records, and a release under "replace" may reveal this number.

        Returns
        -------
        PrivacyCost
            A cost with k^2 mu^2, k epsilon and k eta for every release, and the same discretization. For k > 1 this
            cost has no requested pair.

        Raises
        ------
        ValueError
            If the cost has a `delta0`, for which no group bound is proved. If the new unit is "record" (use
            `per_record`). If the relation is "replace", there is a new unit, and `exactly` is False.
        """
        k, label = whole("k", k), self.unit if unit is None else unit_of(unit)
        self.protection.require_group(label, k, exactly)
        if self.delta0 > 0.0:
            raise ValueError(
                f"no group bound is proved for a cost with delta0 = {self.delta0:g}, such as the cost of groups "
                "without keys=: make the release for the right unit, or with neighbours='replace'"
            )
        if k == 1:
            return replace(self, unit=label)
        return PrivacyCost(
            mu_squared=product_up(k * k, self.mu_squared),
            discretization=self.discretization,
            pure_epsilons=tuple(product_up(k, epsilon) for epsilon in self.pure_epsilons),
            bounded_ranges=tuple(product_up(k, eta) for eta in self.bounded_ranges),
            neighbours=self.neighbours,
            unit=label,
        )

    def under(self, neighbours: Neighbours) -> PrivacyCost:
        """The cost under another relation.

        Parameters
        ----------
        neighbours : {"replace", "add_remove"}
            The relation of the new cost.

        Returns
        -------
        PrivacyCost
            The same cost if the relation does not change. From "add_remove" to "replace", the cost is `for_group(2)`,
            because a replacement is a removal and an addition.

        Raises
        ------
        ValueError
            If there is a `delta0`. From "replace" to "add_remove", because a release may reveal the number of records.
        """
        if neighbours_of(neighbours) == self.neighbours:
            return self
        if self.protection.relation is REPLACE:
            raise ValueError(
                "a cost under neighbours = 'replace' cannot be converted to 'add_remove': the release treats the "
                "number of records as public and may show it. Use a ledger under 'replace' instead"
            )
        return replace(self.for_group(2), neighbours="replace")

    def per_record(self) -> PrivacyCost:
        """The cost for one record instead of one unit, under "add_remove". This is the cost for two units.

        A row that is added to a unit or removed from a unit changes the contribution of the unit. This has the effect
        of removing one unit and adding another. A ValueError is raised if there is a `delta0`, and under "replace",
        because a row that moves to another unit may change the public number of units.
        """
        if self.unit == RECORD:
            return self
        self.protection.require_records()
        return replace(self.for_group(2), unit=RECORD)

    # The total of a cost.

    @property
    def rho(self) -> float:
        """The zero-concentrated cost of everything except delta0."""
        return sum_up(
            (
                half_up(self.mu_squared),
                *(pure_rho(epsilon) for epsilon in self.pure_epsilons),
                *(range_rho(eta) for eta in self.bounded_ranges),
            )
        )

    @property
    def dominating_mu_squared(self) -> float:
        """The mu^2 of a single Gaussian that dominates everything except delta0 and the discretization."""
        pure = (*self.pure_epsilons, *(half_up(eta) for eta in self.bounded_ranges))
        return sum_up((self.mu_squared, *(pure_mu_squared(epsilon) for epsilon in pure)))

    @property
    def is_pure(self) -> bool:
        """Whether the cost is pure: it has no Gaussian release and no delta0."""
        return self.mu_squared == 0.0 and self.delta0 == 0.0

    @property
    def _pure_sum(self) -> float:
        return sum_up((*self.pure_epsilons, *self.bounded_ranges))

    def delta_at(self, epsilon: float) -> float:
        """The smallest delta that is proved for this epsilon, rounded up.

        Parameters
        ----------
        epsilon : float
            At least 0.

        Returns
        -------
        float
            A delta for which the release is (epsilon, delta)-DP, at most 1.
        """
        epsilon = not_negative("epsilon", epsilon, down=True)
        rest = min(self._composed_delta(epsilon), concentrated_delta(self.rho, epsilon))
        if rest == 0.0:
            return min(self.delta0, 1.0)
        if self.delta0 >= 1.0:
            return 1.0
        return min(up(self.delta0 + (1.0 - self.delta0) * rest * DELTA_MARGIN), 1.0)

    @documented
    def epsilon_at(self, delta: float) -> float:
        """The smallest epsilon that is proved for this delta, rounded up.

        Parameters
        ----------
        delta : float
            0 or at least 1e-100, and below 1.

        Returns
        -------
        float
            An epsilon for which the release is (epsilon, delta)-DP, or infinity if there is no such epsilon.
        """
        delta = usable_delta(delta)
        if delta < self.delta0:
            return math.inf
        low, high = 0.0, self._pure_sum
        if self.mu_squared == 0.0 and delta == self.delta0:
            return high
        if self.mu_squared > 0.0:
            left = (delta - self.delta0) / (1.0 - self.delta0)
            if left < DELTA_LIMIT:
                return math.inf
            # This closed form of Bun and Steinke is never below the epsilon of the best conversion.
            high = self.rho + 2.0 * math.sqrt(self.rho * math.log(1.0 / left))
            while self.delta_at(high) > delta:
                low, high = high, 2.0 * high
        if self.delta_at(low) <= delta:
            return low

        def excess(epsilon: float) -> float:
            """Positive if and only if delta is exceeded."""
            return math.log(max(self.delta_at(epsilon), DELTA_FLOOR) / delta)

        return border(excess, good=high, bad=low, relative=1e-11)

    def _composed_delta(self, epsilon: float) -> float:
        if self.mu_squared == 0.0 and epsilon >= self._pure_sum:
            return 0.0
        losses = losses_of(self.pure_epsilons, self.bounded_ranges)
        return max(composed_delta(self.mu_squared, self.discretization, losses, epsilon), DELTA_FLOOR)

    # Storing a cost.

    def __repr__(self) -> str:
        return f"PrivacyCost({self})"

    def __str__(self) -> str:
        if self.epsilon is not None:
            pair = f"epsilon = {self.epsilon:.6g}" + ("" if not self.delta else f", delta = {self.delta:.6g}")
        elif self.is_pure:
            pair = f"epsilon = {self._pure_sum:.6g}"
        else:
            pair = f"rho = {self.rho:.6g}" + (f", delta = {self.delta0:.6g}" if self.delta0 else "")
        text = pair if self.epsilon is None or not self.rho else f"{pair} (rho = {self.rho:.6g})"
        if not self.protection.is_default:
            text += f" under {self.neighbours} of one {self.unit}"
        return text

    def to_dict(self) -> dict[str, float | str | list[float] | None]:
        """The fields that differ from their defaults, as JSON. `from_dict` restores an equal cost."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        defaults = {field.name: field.default for field in fields(self)}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in values.items()
            if value != defaults[name]
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, object]) -> PrivacyCost:
        """The cost that `to_dict` stored. Costs from version 0.1.0, in which fields had other names, can be read, too.

        Raises
        ------
        ValueError
            If there are fields that this version does not know, because the cost could be too small without them.
        """
        renamed = {name: value for name, value in stored.items() if name not in _FORMER_NAMES}
        for former, name in _FORMER_NAMES.items():
            if former in stored:
                if name in stored:
                    raise ValueError(f"a stored cost has both {name!r} and its former name {former!r}")
                renamed[name] = stored[former]
        unknown = sorted(set(renamed) - {field.name for field in fields(cls)})
        if unknown:
            raise ValueError(f"a stored cost has the unknown fields {unknown}: a newer version may have written it")
        return cls(**renamed)  # type: ignore[arg-type]  # __post_init__ checks every value.
