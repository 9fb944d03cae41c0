"""Plain sentences about a release, for readers who are not statisticians, made from the record alone."""

from __future__ import annotations

import math
from fractions import Fraction

from dpmedian.accounting import RECORD, PrivacyCost

__all__ = ["chance", "change", "guarantee", "limits", "odds", "power", "who"]

# The rate of false alarms at which an attacker is judged.
_ALARMS = 0.05

# A page states the guarantee for this number of rows of one person.
_ROWS = 5

# The unit that needs no explanation, and the sentence about all other units.
_PERSON = "person"
_APPROVES = "whoever approves the release has to know that."

# A larger factor is not printed, because it gives no useful bound.
_FACTOR_MAX = 1e4


def odds(cost: PrivacyCost, delta: float) -> float:
    """The largest factor by which the probability of an event can change, apart from an event of probability delta."""
    return math.exp(min(cost.epsilon_at(delta), 700.0))


def power(cost: PrivacyCost, alarms: float = _ALARMS) -> float:
    """An upper bound on the rate of correct detections by an attacker with this rate of false alarms.

    For every epsilon, the probability of an event becomes at most e^epsilon times itself plus delta(epsilon). The
    result is the smallest of these bounds over a grid of epsilons.
    """
    grid = (0.02 * 1.15**step for step in range(64))
    bounds = (math.exp(epsilon) * alarms + cost.delta_at(epsilon) for epsilon in grid if epsilon < 20.0)
    return min(1.0, alarms + cost.delta_at(0.0), *bounds)


def change(cost: PrivacyCost) -> str:
    """The comparison of the guarantee, as the end of a sentence that begins with "if"."""
    if cost.protection.relation.size_is_public:
        whose = "any one record" if cost.unit == RECORD else f"the data of any one {cost.unit}"
        return f"{whose} had been different"
    return f"any one {cost.unit} had not been in the data, or one more had been"


def who(cost: PrivacyCost, delta: float) -> list[str]:
    """The protected unit, and the condition under which the unit is a person."""
    unit = cost.unit
    size = (
        f"The number of {_plural(unit)} is treated as public."
        if cost.protection.relation.size_is_public
        else f"How many {_plural(unit)} there are is private as well."
    )
    if unit != RECORD:
        return [
            f"This protects each {unit} with everything that the {unit} contributed, however many rows that is. "
            f"Which rows belong to the same {unit} was read from the ids in the data: of a {unit} with several ids, "
            f"each id is protected on its own, and not all of them together. {size}",
            *([] if unit == _PERSON else [f"The record does not say whether one {unit} is one person: {_APPROVES}"]),
        ]
    texts = [
        f"This protects one record, which is one row of the table. {size} What is stored about this release does not "
        f"say whether one row is one person: {_APPROVES}"
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
    """A probability as text, also in the form "1 in k", with two digits, rounded to the larger probability."""
    most = math.floor(1 / Fraction(repr(delta)))
    step = 10 ** max(len(str(most)) - 2, 0)
    return f"{delta:.2g} (1 in {most // step * step:,})"


def guarantee(cost: PrivacyCost, delta: float) -> list[str]:
    """The guarantee, in sentences without formulas."""
    unit, epsilon, factor = cost.unit, cost.epsilon_at(delta), odds(cost, delta)
    most = 100.0 * power(cost)
    attack = (
        f"tries to find out from this result whether a guess about one {unit} is true. If they accept 5 % of the "
        f"guesses that are false, they accept at most {most:.3g} % of the guesses that are true. Somebody who "
        "has not seen "
        "the result and decides at random accepts 5 % of both."
        if cost.protection.relation.size_is_public
        else f"tries to find out from this result whether one {unit} is in the data. If they say yes for 5 % of those "
        f"that are not in the data, they say yes for at most {most:.3g} % of those in the data. Somebody who "
        "has not seen "
        "the result and decides at random says yes for 5 % of both."
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
    """The guarantee under add/remove, restated for a unit whose data had been different (a removal and an addition)."""
    factor, more = math.exp(min(2.0 * epsilon, 700.0)), (1.0 + math.exp(min(epsilon, 700.0))) * delta
    text = f"The promise is about being in the data or not. If the data of one {unit} had been different instead, "
    if factor >= _FACTOR_MAX or more >= 1.0:
        return f"{text}it is so weak that it promises nothing."
    return f"{text}it is weaker: the factor is at most {factor:.3g}{_apart(more)}."


def _apart(delta: float) -> str:
    """The end of a sentence about a factor: the probability with which the factor may not hold."""
    return "" if delta == 0.0 else f", apart from a probability of at most {chance(delta)}"


def limits() -> list[str]:
    """The limits of the guarantee."""
    return [
        "It does not promise that nothing can be learned about anybody. What the result says about everybody together "
        "may be true of each of them, also of people whose data were not used.",
        "It is about this result alone. Every further result from data about the same people can add to what is "
        "learned; a ledger adds up what all of them cost.",
        "It assumes that the computer that made the result was not read by others, and that the settings were chosen "
        "without looking at the data.",
    ]


def _plural(unit: str) -> str:
    return "people" if unit == "person" else f"{unit}s"
