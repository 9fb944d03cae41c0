"""AboveThreshold by exact enumeration: its worst log-ratio is the claim, and its draws have the enumerated
distribution.
"""

import itertools
import math

import numpy as np
import pytest

import dpmedian
from dpmedian.mechanisms.above_threshold import AboveThreshold, epsilon_of_rho
from dpmedian.tape import Tape

# Noise beyond this has a mass below exp(-60) at the rates of these tests.
FAR = 1500


def noise(kind: str, rate: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values of the noise, their probabilities, and the probability of at least each value."""
    if kind == "laplace":
        values = np.arange(-FAR, FAR + 1)
        mass = np.tanh(rate / 2.0) * np.exp(-rate * np.abs(values))
        upper = np.where(
            values > 0,
            np.exp(-rate * values) / (1.0 + math.exp(-rate)),
            1.0 - np.exp(rate * (values - 1)) / (1.0 + math.exp(-rate)),
        )
    else:
        values = np.arange(0, FAR + 1)
        mass = -np.expm1(-rate) * np.exp(-rate * values)
        upper = np.exp(-rate * values)
    return values, mass, upper


def outputs(kind: str, rates: tuple[float, float], gaps: list[tuple[int, int]]) -> np.ndarray:
    """Probabilities of each output, "none" last, for queries given as (value - threshold, how many of them)."""
    values, mass, _ = noise(kind, rates[0])
    _, _, upper = noise(kind, rates[1])

    def reaches(gap: int) -> np.ndarray:
        """P(query + noise >= threshold + rho) for every rho."""
        wanted = values - gap
        if kind == "laplace":
            return upper[np.clip(wanted + FAR, 0, 2 * FAR)]
        return np.where(wanted <= 0, 1.0, upper[np.clip(wanted, 0, FAR)])

    open_, found = np.log(mass), []
    for gap, copies in gaps:
        chance = reaches(gap)
        with np.errstate(divide="ignore"):
            below = copies * np.log1p(-chance)
        found.append(np.exp(open_) @ (-np.expm1(below)))
        open_ = open_ + below
    return np.array([*found, np.exp(open_).sum()])


def rates_of(mechanism: AboveThreshold) -> tuple[float, float]:
    return 1.0 / mechanism.scales[0], 1.0 / mechanism.scales[1]


@pytest.mark.parametrize("sensitivity", [1, 3])
def test_the_worst_log_ratio_of_the_exponential_form_equals_the_claim(sensitivity):
    mechanism = AboveThreshold.of("test", sensitivity, 0.8, "exponential")
    rates = rates_of(mechanism)
    moves = list(itertools.product((-sensitivity, 0, sensitivity), repeat=3))
    worst = 0.0
    for gaps in itertools.product((-9, -1, 0, 2, 5), repeat=3):
        here = outputs("exponential", rates, [(gap, 1) for gap in gaps])
        assert here.sum() == pytest.approx(1.0, abs=1e-12)
        for move in moves:
            there = outputs("exponential", rates, [(gap + by, 1) for gap, by in zip(gaps, move, strict=True)])
            worst = max(worst, float(np.max(np.abs(np.log(here) - np.log(there)))))
    assert worst == pytest.approx(mechanism.epsilon, rel=1e-9)
    assert mechanism.epsilon <= 0.8


@pytest.mark.parametrize("sensitivity", [1, 3])
def test_the_log_ratio_of_the_textbook_form_comes_near_the_claim_and_never_above(sensitivity):
    mechanism = AboveThreshold.of("test", sensitivity, 0.8, "laplace")
    rates = rates_of(mechanism)
    worst = 0.0
    for high, low, copies in itertools.product((-60, -9, 0, 5, 30), (-120, -40, -9, 0, 5), (1, 100, 10**6)):
        here = outputs("laplace", rates, [(high, copies), (low, 1)])
        for up, down in itertools.product((-sensitivity, 0, sensitivity), repeat=2):
            there = outputs("laplace", rates, [(high + up, copies), (low + down, 1)])
            worst = max(worst, float(np.max(np.abs(np.log(here) - np.log(there)))))
    assert 0.97 * mechanism.epsilon <= worst <= mechanism.epsilon * (1.0 + 1e-9)


@pytest.mark.parametrize("kind", ["laplace", "exponential"])
def test_the_program_draws_the_enumerated_distribution(kind):
    """A chi-square test over 5 outputs and 20,000 runs, which fails with probability 1e-6 (4 degrees of freedom)."""
    mechanism = AboveThreshold.of("test", 2, 1.0, kind)
    queries, threshold = [-8, -2, 0, 5], 3
    shift = threshold + mechanism.recentring
    expected = outputs(kind, rates_of(mechanism), [(query - shift, 1) for query in queries])
    tape, runs, seen = Tape.draw(bytes(32)), 20_000, np.zeros(5)
    for _ in range(runs):
        index = mechanism.release(tape, map(mechanism.stated, queries), threshold)
        seen[4 if index is None else index] += 1
    assert np.sum((seen - runs * expected) ** 2 / (runs * expected)) < 33.38


def test_queries_after_the_crossing_are_not_made():
    asked = []

    def queries():
        for value in (-(10**6), 10**6, 10**6):
            asked.append(value)
            yield value

    result = dpmedian.building_blocks.above_threshold(queries(), 0, sensitivity=1, epsilon=1.0, seed=1)
    assert (result.value, len(asked)) == (1, 2)
    assert result.cost.pure_epsilons == (pytest.approx(1.0, rel=1e-8),)


def test_a_query_at_the_threshold_is_above_it_about_half_of_the_time():
    """2,000 runs of one query at the threshold; for noise of this scale the probability is between 0.35 and 0.65."""
    mechanism = AboveThreshold.of("test", 1, 0.05, "exponential")
    tape = Tape.draw(bytes(32))
    crossed = sum(mechanism.release(tape, [mechanism.stated(100)], 100) is not None for _ in range(2000))
    assert 700 <= crossed <= 1300


def test_nothing_above_is_a_failed_release_that_carries_its_cost_and_is_charged():
    ledger = dpmedian.Ledger(epsilon=2.0)
    with pytest.raises(dpmedian.ReleaseFailed) as failed:
        dpmedian.building_blocks.above_threshold([-(10**6)] * 3, 0, sensitivity=1, epsilon=1.0, ledger=ledger, seed=1)
    assert failed.value.cost.epsilon_at(0.0) <= 1.0
    assert [entry.state for entry in ledger.entries] == ["failed"]


@pytest.mark.parametrize("rho", [1e-6, 0.01, 0.5, 3.0, 50.0])
def test_epsilon_of_rho_is_the_largest_that_fits(rho):
    epsilon = epsilon_of_rho(rho)
    assert epsilon * math.tanh(epsilon / 2.0) <= rho < 1.000001 * epsilon * math.tanh(1.000001 * epsilon / 2.0)
    assert epsilon >= math.sqrt(2.0 * rho), "the paper's sqrt(2 rho) is the smaller one"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"sensitivity": 1}, ValueError),
        ({"sensitivity": 1, "epsilon": 1.0, "rho": 1.0}, ValueError),
        ({"sensitivity": 0, "epsilon": 1.0}, ValueError),
        ({"sensitivity": 1.5, "epsilon": 1.0}, TypeError),
        ({"sensitivity": 1, "epsilon": 1.0, "noise": "uniform"}, ValueError),
        ({"sensitivity": 1, "epsilon": -1.0}, ValueError),
    ],
)
def test_wrong_arguments_are_refused_before_a_query_is_made(arguments, error):
    def queries():
        raise AssertionError("asked")
        yield 0

    with pytest.raises(error):
        dpmedian.building_blocks.above_threshold(queries(), 0, **arguments)


def test_bisection_finds_the_place_of_a_step_and_costs_what_it_says():
    asked = []
    result = dpmedian.building_blocks.noisy_bisection(
        lambda j: asked.append(j) or (0 if j < 37 else 10_000), 0, 1000, 5000, sensitivity=1, rho=0.5, seed=3
    )
    assert result.value == 37
    assert len(asked) == 10 == math.ceil(math.log2(1001))
    assert result.cost.rho == pytest.approx(0.5, rel=1e-6)
    assert result.cost.rho <= 0.5 * (1.0 + 1e-12)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 9])
def test_bisection_reaches_every_index_with_the_same_number_of_queries(size):
    for place in range(size):
        asked = []
        result = dpmedian.building_blocks.noisy_bisection(
            lambda j, place=place, asked=asked: asked.append(j) or (10**6 if j >= place else -(10**6)),
            0, size - 1, 0, sensitivity=1, rho=1.0, seed=1,
        )  # fmt: skip
        assert result.value == place
        assert len(asked) == max(1, math.ceil(math.log2(size)))


def test_bisection_never_queries_its_last_index():
    """With noise alone every index is a possible result, and the count at the last index is never evaluated."""
    for seed in range(200):
        asked = []
        count = lambda j, asked=asked: asked.append(j) or 0  # noqa: E731
        result = dpmedian.building_blocks.noisy_bisection(count, 0, 5, 0, sensitivity=1, rho=1e-4, seed=seed)
        assert 0 <= result.value <= 5
        assert max(asked) <= 4
        assert len(asked) == 3
