"""The exponential mechanism by exact enumeration: its bounded range is the claim, and its draws have the exact
weights.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

import dpmedian
from conftest import EXTREMES, opened
from dpmedian.mechanisms.exponential import Exponential, Selection, eta_of_rho
from dpmedian.parameters import PublicParameters
from dpmedian.sources.array import ArraySource
from dpmedian.statistics import Exact, Statistic
from dpmedian.tape import Tape


def weights(scores, rate: tuple[int, int]) -> np.ndarray:
    """The exact probabilities, from the same ratio of integers."""
    smallest = min(scores)
    found = np.array([math.exp(-float((score - smallest) * Fraction(*rate))) for score in scores])
    return found / found.sum()


def rate_of(mechanism: Exponential, bounded_range: int) -> tuple[int, int]:
    """The ratio of integers that the tape uses to draw, for ranges below 2^33."""
    return math.floor(math.ldexp(mechanism.eta, 30)), bounded_range << 30


def renyi(p: np.ndarray, q: np.ndarray, order: float) -> float:
    return math.log(float(np.sum(p**order * q ** (1.0 - order)))) / (order - 1.0)


@pytest.mark.parametrize("bounded_range", [2, 5])
def test_the_worst_log_odds_equal_the_claim_and_the_concentrated_cost_holds(bounded_range):
    mechanism = Exponential.of("test", 0.9)
    rate = rate_of(mechanism, bounded_range)
    worst = 0.0
    moves = range(bounded_range + 1)
    for scores in itertools.product((0, 3, 7), repeat=3):
        here = weights(scores, rate)
        for move in itertools.product(moves, repeat=3):
            there = weights([s + m for s, m in zip(scores, move, strict=True)], rate)
            ratios = np.log(here) - np.log(there)
            worst = max(worst, float(np.ptp(ratios)))
            assert ratios.min() <= 0.0 <= ratios.max()
            for order in (1.1, 2.0, 10.0, 100.0):
                assert renyi(here, there, order) <= order * mechanism.cost.rho * (1.0 + 1e-9)
    assert worst == pytest.approx(mechanism.eta, rel=1e-8)
    assert bounded_range * Fraction(*rate) <= Fraction(mechanism.eta)


@pytest.mark.parametrize("scores", [[5, 5, 5, 5], [0, 1, 2, 3, 40], [-(2**62), 2**62, -(2**62) + 3], [7]])
def test_the_program_draws_the_exact_weights(scores):
    """A chi-square test over 20,000 draws with alpha = 1e-6 (from scipy's chi2). Expected counts below 5 are pooled."""
    mechanism, runs = Exponential.of("test", 1.1), 20_000
    rate = rate_of(mechanism, 3)
    expected = runs * weights(scores, rate)
    tape = Tape.draw(bytes(32))
    exact = Exact.stated(np.array(scores, dtype=np.int64), 3.0, scores=True)
    seen = np.bincount([mechanism.release(tape, exact) for _ in range(runs)], minlength=len(scores))
    common = expected >= 5.0
    assert seen[~common].sum() <= 60
    seen, expected = seen[common], expected[common]
    statistic = float(np.sum((seen - expected) ** 2 / expected))
    assert statistic <= (chi2.isf(1e-6, len(seen) - 1) if len(seen) > 1 else 0.0)


def source(points: np.ndarray) -> ArraySource:
    n, d = points.shape
    return ArraySource.of(points, PublicParameters.of(max(n, 2), d, rho=1.0))


def test_selection_draws_the_exact_weights_of_the_objective():
    """Chi-square as above, against weights exp(-c F) computed in numpy with c = eta/range."""
    rng = np.random.default_rng(4)
    points, candidates = rng.normal(size=(30, 3)), 0.3 * rng.normal(size=(6, 3))
    mechanism, runs = Selection.of("test", 3.0), 20_000
    statistic = Statistic("objective differences", candidates=candidates.ravel(), d=candidates.shape[1])
    exponent, bounded_range = statistic.exponent, int(statistic.sensitivity.replace)
    objective = np.linalg.norm(points[:, None] - candidates, axis=2).sum(axis=0)
    exact = np.exp(-(objective - objective.min()) * mechanism.eta / math.ldexp(bounded_range, exponent))
    expected = runs * exact / exact.sum()
    tape, data = Tape.draw(bytes(32)), source(points)
    seen = np.bincount([mechanism.among(data, tape, candidates) for _ in range(runs)], minlength=6)
    assert expected.min() > 50
    assert expected.max() / expected.min() > 1.5
    assert float(np.sum((seen - expected) ** 2 / expected)) < chi2.isf(1e-6, 5)


def test_the_range_of_a_selection_holds_for_all_records_and_is_nearly_reached():
    """All pairs of records from a grid with extremes are enumerated, with all pairs of candidates."""
    values = [*EXTREMES, -2.0, 0.5, 3.0]
    records = [np.array([[a, b]]) for a in values for b in (0.0, 1.0, -1e300, 1e300)]
    for candidates in (
        np.array([[0.0, 0.0], [1.0, 0.0], [0.3, -0.2]]),
        np.array([[1e16, 1.0], [1e16, 0.0], [1e16, 3.0]]),
        np.array([[1e-300, 0.0], [0.0, 0.0], [0.0, 2e-300]]),
    ):
        statistic = Statistic("objective differences", candidates=candidates.ravel(), d=candidates.shape[1])
        exponent, bounded_range = statistic.exponent, int(statistic.sensitivity.replace)
        diameter = max(math.hypot(*(a - b)) for a in candidates for b in candidates)
        assert math.ldexp(bounded_range, exponent) == pytest.approx(2.0 * diameter, rel=1e-8)
        scores = np.array([opened(source(record).answer(statistic)) for record in records])
        moves = scores[:, None, :] - scores[None, :, :]
        widest = int(np.ptp(moves, axis=2).max())
        assert 0.9 * bounded_range < widest <= bounded_range


def test_equal_candidates_do_not_query_the_data():
    tape = Tape.record(bytes(32))
    assert Selection.of("test", 1.0).among(source(np.ones((5, 2))), tape, np.full((4, 2), 3.0)) == 0
    assert tape.entries() == []


def test_a_larger_diameter_only_flattens_the_weights():
    candidates = np.array([[0.0], [1.0]])
    tape = Tape.record(bytes(32))
    mechanism = Selection.of("test", 2.0)
    mechanism.among(source(np.zeros((5, 1))), tape, candidates)
    mechanism.among(source(np.zeros((5, 1))), tape, candidates, diameter=50.0)
    mechanism.among(source(np.zeros((5, 1))), tape, candidates, diameter=0.1)
    own, wide, narrow = (scale for _, _, scale, _, _ in tape.entries())
    assert wide == pytest.approx(50.0 * own, rel=1e-6)
    assert narrow == own


@pytest.mark.parametrize("rho", [1e-6, 0.01, 2.0])
def test_the_building_block_costs_what_was_asked(rho):
    block = dpmedian.building_blocks.exponential_mechanism([3, 1, 2], sensitivity=1, rho=rho, seed=1)
    assert block.value in (0, 1, 2)
    assert 0.999 * rho <= block.cost.rho <= rho
    assert eta_of_rho(rho) ** 2 / 8.0 <= rho
    pure = dpmedian.building_blocks.exponential_mechanism([3, 1, 2], bounded_range=1, epsilon=rho, seed=1).cost
    assert 0.99 * rho <= pure.epsilon_at(0.0) <= rho


def test_a_sensitivity_is_half_a_range():
    """4,000 draws each, with the same keys. 6 standard deviations are exceeded with a probability below 1e-8."""
    runs, scores = 4_000, [0, 4]
    calls = [{"sensitivity": 3}, {"bounded_range": 6}]
    counts = [
        sum(
            dpmedian.building_blocks.exponential_mechanism(scores, epsilon=1.0, seed=seed, **call).value
            for seed in range(runs)
        )
        for call in calls
    ]
    assert counts[0] == counts[1], "the same seeds draw the same coins"
    expected = runs / (1.0 + math.exp(4.0 / 6.0))
    assert abs(counts[0] - expected) < 6.0 * math.sqrt(runs * 0.25)


@pytest.mark.filterwarnings("ignore::dpmedian.WeakPrivacyWarning")
def test_huge_scores_are_exact():
    scores = [10**40 + 5, 10**40, 10**50]
    assert dpmedian.building_blocks.exponential_mechanism(scores, sensitivity=1, epsilon=100.0, seed=1).value == 1


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({}, ValueError, "either sensitivity= or bounded_range="),
        ({"sensitivity": 1, "bounded_range": 1}, ValueError, "either sensitivity= or bounded_range="),
        ({"sensitivity": 0}, ValueError, "sensitivity must be positive"),
        ({"bounded_range": 2**63}, ValueError, "bounded_range must be positive"),
        ({"sensitivity": 0.5}, TypeError, "sensitivity must be an integer"),
    ],
)
def test_wrong_arguments_are_refused(arguments, error, match):
    with pytest.raises(error, match=match):
        dpmedian.building_blocks.exponential_mechanism([1, 2], epsilon=1.0, **arguments)


def test_wrong_scores_are_named():
    with pytest.raises(RuntimeError, match=r"after its cost was charged .* integers"):
        dpmedian.building_blocks.exponential_mechanism([1.5], sensitivity=1, epsilon=1.0)
    with pytest.raises(RuntimeError, match=r"after its cost was charged .* empty"):
        dpmedian.building_blocks.exponential_mechanism(iter(()), sensitivity=1, epsilon=1.0)
    with pytest.raises(ValueError, match="no privacy budget"):
        dpmedian.building_blocks.exponential_mechanism([1], sensitivity=1)
