"""The distribution of hidden choices, which a replay with the same random numbers cannot test.

Weighted pairs are formed among the records that hidden coins keep. If a changed weight adds or removes a record in a
middle row, the same random numbers pair the later records in another way. The bound holds because the distribution of a
pairing does not depend on the rows. Here the distribution in the core is compared with an enumerated one, and the
distributions for neighbors are coupled.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from conftest import opened
from dpmedian._core import Coins, Points
from dpmedian.sources.weights import WHOLE_WEIGHT
from dpmedian.statistics import Statistic
from dpmedian.tape import Tape

# Pairs within 1 are, apart from small differences, pairs of equal records: 0 to 3 of them.
LINE = np.array([[0.0], [5.0], [0.1], [5.1], [0.2], [10.0], [5.2]])
WHOLE, HALF = WHOLE_WEIGHT, WHOLE_WEIGHT // 2

# With this many keys, all cumulative frequencies are within 0.0225 of their probabilities, except for one in a million
# distributions (Dvoretzky, Kiefer, Wolfowitz, Massart: alpha = 2 exp(-2 keys margin^2)).
KEYS, ALPHA = 14_400, 1e-6
MARGIN = math.sqrt(math.log(2.0 / ALPHA) / (2.0 * KEYS))


def count(weights: list[int], key: int, pairings: int = 1, line: np.ndarray = LINE) -> int:
    """The exact count of the core, with the coins and pairings of a key."""
    tape = Tape.record(key.to_bytes(32, "little"))
    points = Points(line).weighted(Coins.of(tape.hidden()), np.array(weights, dtype=np.uint32))
    counts = Statistic("pair counts", stream=tape.hidden(), radii=[1.0], pairings=pairings, bits=0)
    return int(opened(points.answer(counts))[0])


def enumerated(weights: list[int]) -> dict[int, Fraction]:
    """The distribution of the count: all sets of kept records, and all orders of each, which give the uniform
    matching.
    """
    law: Counter[int] = Counter()
    for kept in itertools.product((False, True), repeat=len(LINE)):
        shares = [Fraction(w, WHOLE) if keep else 1 - Fraction(w, WHOLE) for w, keep in zip(weights, kept, strict=True)]
        probability = math.prod(shares)
        if not probability:
            continue
        values = [float(LINE[row, 0]) for row in range(len(LINE)) if kept[row]]
        orders = list(itertools.permutations(values))
        for order in orders:
            found = sum(abs(a - b) <= 1.0 for a, b in zip(order[::2], order[1::2], strict=False))
            law[found] += probability / len(orders)  # type: ignore[assignment]
    assert sum(law.values()) == 1
    return dict(law)  # type: ignore[arg-type]


def cumulative(law: dict[int, Fraction], t: int) -> float:
    return float(sum(probability for value, probability in law.items() if value <= t))


MIDDLE = 2
BEFORE = [WHOLE, WHOLE, WHOLE, WHOLE, HALF, WHOLE, WHOLE]


def with_weight(weight: int) -> list[int]:
    return [weight if row == MIDDLE else own for row, own in enumerate(BEFORE)]


@pytest.mark.parametrize("weight", [WHOLE, HALF, 0])
def test_the_pairs_of_kept_records_have_the_distribution_of_a_uniform_matching_for_any_row(weight):
    weights = with_weight(weight)
    law = enumerated(weights)
    drawn = Counter(count(weights, key) for key in range(KEYS))
    for t in range(4):
        frequency = sum(times for value, times in drawn.items() if value <= t) / KEYS
        assert abs(frequency - cumulative(law, t)) <= MARGIN, (t, frequency)


@pytest.mark.parametrize("other", [HALF, 0])
def test_the_distributions_for_neighbors_are_coupled_within_one_pair(other):
    """By Strassen's theorem, on the line there is a coupling within 1 if and only if each cumulative distribution lies
    between the two shifted versions of the other.
    """
    here, there = enumerated(with_weight(WHOLE)), enumerated(with_weight(other))
    for t in range(-1, 5):
        assert cumulative(there, t - 1) <= cumulative(here, t) <= cumulative(there, t + 1)
    assert here != there


def test_the_same_random_numbers_are_no_coupling_for_a_middle_row():
    """A changed weight in a middle row moves some counts by more than the bound. In the last row it moves no count by
    more than the bound.
    """
    last = len(LINE) - 1
    gone = [0 if row == last else own for row, own in enumerate(BEFORE)]
    bound, keys = 1, range(400)
    in_the_middle = [abs(count(BEFORE, key) - count(with_weight(0), key)) for key in keys]
    assert max(in_the_middle) > bound
    assert max(abs(count(BEFORE, key) - count(gone, key)) for key in keys) <= bound
