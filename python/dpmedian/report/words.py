"""What a release says to those who are no statisticians: plain sentences, made from the record alone."""

from __future__ import annotations

import math

from dpmedian.accounting import PrivacyCost

__all__ = ["QUESTIONS", "guarantee", "odds", "power"]

QUESTIONS = {
    "gradient": "In which direction do most records lie, seen from a point?",
    "mean shift": "In which direction do the nearby records lie, seen from a point?",
    "ranks": "In every coordinate, how many records lie below a value?",
    "distance counts": "How many records lie within some distance of a point?",
    "curvature": "How densely do records lie around a point?",
    "hessian": "How densely, and in which directions, do records lie around a point?",
    "gradient and directions": "In which direction do most records lie, and how do all directions spread?",
    "size": "How many records are there?",
    "pair counts": "How many random pairs of records are close together?",
    "largest ball counts": "How many others do the records in the densest places have near them?",
    "objective differences": "Which of a few candidates has the smallest sum of distances to the records?",
    "records to change": "How many records would have to change to make a place the median?",
}
"""What a statistic asks of the data, in words."""

# The false alarms at which an attacker is judged.
_ALARMS = 0.05


def odds(cost: PrivacyCost, delta: float) -> float:
    """By which factor the odds of anything can change, but for an event of probability delta."""
    return math.exp(min(cost.epsilon_at(delta), 700.0))


def power(cost: PrivacyCost, alarms: float = _ALARMS) -> float:
    """How often somebody who raises a false alarm this often can at best be right about one unit of privacy.

    For every epsilon the probability of an event changes to at most e^epsilon times itself plus delta(epsilon): the
    smallest of these bounds over a grid of epsilons.
    """
    grid = (0.02 * 1.15**step for step in range(64))
    bounds = (math.exp(epsilon) * alarms + cost.delta_at(epsilon) for epsilon in grid if epsilon < 20.0)
    return min(1.0, alarms + cost.delta_at(0.0), *bounds)


def guarantee(cost: PrivacyCost, delta: float) -> list[str]:
    """The promise, in sentences that need no formula."""
    unit, epsilon = cost.unit, cost.epsilon_at(delta)
    change = (
        f"the data of any one {unit} had been different"
        if cost.neighbours == "replace"
        else f"any one {unit} had not been in the data, or one more had been"
    )
    more = "" if delta == 0.0 else f" plus {delta:.2g}"
    return [
        f"Whatever is published here would have come out nearly as likely if {change}. The probability of any "
        f"conclusion that anybody draws from it is at most {odds(cost, delta):.3g} times what it would have been "
        f"then{more}: that factor is e to the power of epsilon = {epsilon:.3g}.",
        f"What that is worth: take somebody who knows everything about all others, and who wants to tell from this "
        f"whether a suspicion about one {unit} is true. If 5 % of the false suspicions are to be believed, at most "
        f"{100.0 * power(cost):.3g} % of the true ones can be. Blind guessing believes 5 % of either.",
        "This holds whatever else is known or becomes known later, and for every way to look at the result. It does "
        "not add up by itself: every further release about the same people costs more, which is what a ledger is for.",
    ]
