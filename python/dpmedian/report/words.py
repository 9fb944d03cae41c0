"""Plain sentences about a release, made from the audit record alone, for readers who are not statisticians."""

from __future__ import annotations

import math
from fractions import Fraction

from dpmedian.accounting import RECORD, PrivacyCost

__all__ = ["chance", "change", "guarantee", "limits", "odds", "power", "who"]

# The rate of false alarms for which the page states the success of an attacker.
_ALARMS = 0.05

# The page also states the guarantee for a person with this number of rows.
_ROWS = 5

# The unit that needs no explanation, and a part of the sentence about all other units.
_PERSON = "person"
_APPROVES = "the person who approves the release must know this."

# A larger factor is not printed, because it promises nothing useful.
_FACTOR_MAX = 1e4


def odds(cost: PrivacyCost, delta: float) -> float:
    """Return the largest factor by which the probability of an event can change, apart from an event of probability
    delta.
    """
    return math.exp(min(cost.epsilon_at(delta), 700.0))


def power(cost: PrivacyCost, alarms: float = _ALARMS) -> float:
    """Return an upper bound on the rate of correct detections by an attacker with this rate of false alarms.

    For every epsilon, the probability of an event on one data set is at most e^epsilon times its probability on a
    neighbor, plus delta(epsilon). The result is the smallest of these bounds over a grid of epsilons.
    """
    grid = (0.02 * 1.15**step for step in range(64))
    bounds = (math.exp(epsilon) * alarms + cost.delta_at(epsilon) for epsilon in grid if epsilon < 20.0)
    return min(1.0, alarms + cost.delta_at(0.0), *bounds)


def change(cost: PrivacyCost) -> str:
    """Return what the guarantee compares the data with, as the end of a sentence with "if"."""
    if cost.protection.relation.size_is_public:
        whose = "any one record" if cost.unit == RECORD else f"the data of any one {cost.unit}"
        return f"{whose} had been different"
    return f"any one {cost.unit} had not been in the data, or one more had been"


def who(cost: PrivacyCost, delta: float) -> list[str]:
    """Return sentences about the protected unit, and about the condition under which the unit is a person."""
    unit = cost.unit
    size = (
        f"The number of {_plural(unit)} is treated as public."
        if cost.protection.relation.size_is_public
        else f"The number of {_plural(unit)} is private, too."
    )
    if unit != RECORD:
        return [
            f"This protects each {unit} with everything that the {unit} contributed, however many rows that is. The "
            f"ids in the data say which rows belong to the same {unit}. If a {unit} has several ids, each id is "
            f"protected on its own, and not all its ids together. {size}",
            *([] if unit == _PERSON else [f"The record does not say whether one {unit} is one person: {_APPROVES}"]),
        ]
    texts = [
        f"This protects one record, which is one row of the table. {size} The record of this release does not say "
        f"whether one row is one person: {_APPROVES}"
    ]
    if cost.delta0 == 0.0:
        factor = odds(cost.for_group(_ROWS), delta)
        text = f"the factor of {odds(cost, delta):.3g} below becomes "
        text += f"{factor:.3g}" if factor < _FACTOR_MAX else "so large that it promises nothing"
        texts.append(
            f"If a person has several rows, the promise for that person is weaker. With {_ROWS} rows of the same "
            f"person, {text}. A release made with unit= protects all rows of a person."
        )
    return texts


def chance(delta: float) -> str:
    """Return a probability as text, also in the form "1 in k". k has two digits and is rounded down."""
    most = math.floor(1 / Fraction(repr(delta)))
    step = 10 ** max(len(str(most)) - 2, 0)
    return f"{delta:.2g} (1 in {most // step * step:,})"


def guarantee(cost: PrivacyCost, delta: float) -> list[str]:
    """Return the guarantee, in sentences without formulas."""
    unit, epsilon, factor = cost.unit, cost.epsilon_at(delta), odds(cost, delta)
    most = 100.0 * power(cost)
    attack = (
        f"tries to find out from this result whether a guess about one {unit} is true. If they accept 5 % of the "
        f"guesses that are false, they accept at most {most:.3g} % of the guesses that are true. Somebody who has not "
        "seen the result and decides at random accepts 5 % of both."
        if cost.protection.relation.size_is_public
        else f"tries to find out from this result whether one {unit} is in the data. If they say yes for 5 % of those "
        f"that are not in the data, they say yes for at most {most:.3g} % of those in the data. Somebody who has not "
        "seen the result and decides at random says yes for 5 % of both."
    )
    return [
        "The result was made with random noise. Compare what was released with what would have been released if "
        f"{change(cost)}. The probability of any result, and of any conclusion that anybody draws from it, is at most "
        f"{factor:.3g} times as large as it would have been then{_apart(delta)}. The factor is e to the power of "
        f"epsilon = {epsilon:.3g}.",
        f"The factor has this meaning. Suppose that somebody knows the data of everybody else, and {attack}",
        *([] if cost.protection.relation.size_is_public else [_replaced(unit, epsilon, delta)]),
    ]


def _replaced(unit: str, epsilon: float, delta: float) -> str:
    """Return the guarantee under add/remove for a unit whose data had been different, which is a removal and an
    addition.
    """
    factor, more = math.exp(min(2.0 * epsilon, 700.0)), (1.0 + math.exp(min(epsilon, 700.0))) * delta
    text = f"The promise is about being in the data or not. If the data of one {unit} had been different instead, "
    if factor >= _FACTOR_MAX or more >= 1.0:
        return f"{text}it is so weak that it promises nothing."
    return f"{text}it is weaker: the factor is at most {factor:.3g}{_apart(more)}."


def _apart(delta: float) -> str:
    """Return the end of a sentence about a factor: the probability with which the factor may not hold."""
    return "" if delta == 0.0 else f", apart from a probability of at most {chance(delta)}"


def limits() -> list[str]:
    """Return sentences about the limits of the guarantee."""
    return [
        "It does not promise that nothing can be learned about anybody. If the result says something about all people "
        "together, this may be true of each of them, also of people whose data were not used.",
        "It is about this result alone. Every further result from data about the same people can reveal more about "
        "them. A ledger adds up the costs of all results.",
        "It assumes that nobody else could read the memory of the computer that made the result, and that the "
        "settings were chosen without looking at the data.",
    ]


def _plural(unit: str) -> str:
    return "people" if unit == "person" else f"{unit}s"
