"""The budget of a training round of the Flower strategy, and the plans of the releases of the round."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpmedian.accounting import PrivacyCost
from dpmedian.accounting.calibration import calibrate
from dpmedian.accounting.protection import relation_of
from dpmedian.api import plan
from dpmedian.ledger import Ledger
from dpmedian.methods.contract import hopeless
from dpmedian.parameters import integer
from dpmedian.planning.plan import Plan
from dpmedian.stepping import plan_step
from dpmedian.steps.lengths import LENGTHS_SHARE, Lengths

__all__ = ["RoundPlans", "rho_of_round"]

# Parts of a budget are reduced by this relative amount, so that rounding does not make their sum exceed the budget.
_ROUNDING = 1e-9


def rho_of_round(
    ledger: Ledger | None, rounds: int | None, rho: float | None, epsilon: float | None, delta: float | None
) -> float | None:
    """Return the rho of a round, or None if the budget of a round is an epsilon. If `rounds` is given, this number of
    rounds shares the rest of the ledger.
    """
    own = (rho, epsilon, delta) != (None, None, None)
    if rounds is None and ledger is not None and not own:
        raise ValueError(
            "a ledger is the budget of all rounds: also pass the number of rounds, rounds=..., or the budget of one "
            "round, rho=..."
        )
    if rounds is None:
        return rho
    if ledger is None or own:
        raise ValueError(
            f"rounds = {rounds} divides the rest of a ledger's budget: pass rounds= with ledger= and without rho, "
            "epsilon and delta"
        )
    if integer("rounds", rounds) < 1:
        raise ValueError(f"rounds must be at least 1, got {rounds}")
    share = ledger.split(rounds)
    if share == 0.0:
        raise ValueError("nothing is left of the ledger's budget that the rounds could share")
    return share


@dataclass(frozen=True)
class RoundPlans:
    """The budget of a round and the public parameters of its releases."""

    rho: float | None
    epsilon: float | None
    delta: float | None
    radius: float | None
    neighbours: str
    unit: str
    clients: int | None
    """A public guess of the number of clients, or None."""
    aggregate: str
    threshold: float | str
    """The public threshold of steps, or "auto" if the median length of the updates gives it."""
    tracked: bool
    """Whether a noisy number per round tracks the median length of the updates."""

    @property
    def public_number(self) -> bool:
        """Whether the number of clients is public."""
        return relation_of(self.neighbours).size_is_public

    def method(self, d: int, clients: int | None = None) -> str:
        """Return "median" or "step": how a model of this size moves with this or the guessed number of clients."""
        if self.aggregate != "auto":
            return self.aggregate
        n = self.clients if clients is None else clients
        if n is None:
            return "step"
        made = self.median(n, d)
        enough = made.prediction.failure <= made.parameters.failure_probability
        return "median" if enough and hopeless(made.calibrated, made.parameters) is None else "step"

    def signal_to_noise(self, d: int) -> float:
        """Return the signal n sqrt(rho/d) with the guessed number of clients."""
        if self.clients is None:
            raise ValueError("clients is not given, so n sqrt(rho/d) is not known")
        return self.clients * math.sqrt(self.median(self.clients, d).cost.rho / d)

    def of_round(self, clients: int, d: int, lengths: Lengths | None) -> Plan:
        """Return the plan of the release that moves the model. The number of clients is used only if it is public."""
        n = clients if self.public_number else self.clients
        return self.step(n, d, lengths) if self.method(d, n) == "step" else self.median(n, d)

    def cost(self, made: Plan) -> PrivacyCost:
        """Return the cost of a round: the release and, for steps, the number that tracks the median length."""
        if made.method != "robust_step" or not self.tracked:
            return made.cost
        return made.cost + self.lengths(made.n, made.d).cost

    def median(self, n: int | None, d: int) -> Plan:
        """Return the plan of a median with the whole budget of a round."""
        return plan(
            n,
            d,
            rho=self.rho,
            epsilon=self.epsilon,
            delta=self.delta,
            radius=self.radius,
            neighbours=self.neighbours,
            unit=self.unit,
        )

    def whole_step(self, n: int | None, d: int) -> Plan:
        """Return the plan of a step with the whole budget of a round."""
        return plan_step(
            n if self.public_number else None,
            d,
            0.0 if isinstance(self.threshold, str) else self.threshold,
            rho=self.rho,
            epsilon=self.epsilon,
            delta=self.delta,
            neighbours=self.neighbours,
            unit=self.unit,
        )

    def step(self, n: int | None, d: int, lengths: Lengths | None) -> Plan:
        """Return the plan of a step with the part of the budget that the number for the median length leaves."""
        if not self.tracked:
            return self.whole_step(n, d)
        threshold = 0.0 if lengths is None else lengths.threshold
        if not isinstance(self.threshold, str):
            threshold = self.threshold
        return self._step(n, d, threshold, self._rho_of_parts(d))

    def _step(self, n: int | None, d: int, threshold: float, rho: float) -> Plan:
        """Return the plan of a step with its part of this rho."""
        n, rho = n if self.public_number else None, (1.0 - LENGTHS_SHARE) * rho
        return plan_step(n, d, threshold, rho=rho, neighbours=self.neighbours, unit=self.unit)

    def _lengths(self, n: int | None, rho: float) -> Plan:
        """Return the plan of the number that tracks the median length, with its part of this rho."""
        n, rho = 2 if n is None else n, (1.0 - _ROUNDING) * LENGTHS_SHARE * rho
        return plan_step(n, 1, rho=rho, neighbours=self.neighbours, unit=self.unit)

    def _rho_of_parts(self, d: int) -> float:
        """Return the rho that the two parts share, so that both together fit the budget of a round.

        Neither cost depends on the number of clients. The noise of a part may lie on another lattice than that of a
        step with the whole budget, so the two parts are calibrated together.
        """
        whole = self.whole_step(2, d)
        if self.epsilon is None:
            return whole.cost.rho
        return calibrate(
            lambda rho: self._step(2, d, 0.0, rho).cost + self._lengths(2, rho).cost, whole.parameters.budget
        )

    def lengths(self, n: int | None, d: int) -> Plan:
        """Return the plan of the number that tracks the median length.

        Its budget and the budget of the step in d dimensions are shares of the same cost, so that the shares add up to
        this cost. The cost does not depend on the number of clients.
        """
        return self._lengths(n, self._rho_of_parts(d))
