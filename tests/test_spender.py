"""A budget that is spent during a run never exceeds its cap, for any requests."""

import math

import numpy as np
import pytest

import dpmedian
from dpmedian.mechanisms.gaussian import Gaussian
from dpmedian.mechanisms.search import Found
from dpmedian.mechanisms.spender import Allowance, Exhausted, Offer, Spender
from dpmedian.tape import Tape


def offer(times: int = 1000, releases: int = 1, largest: float = 1.0) -> Offer[Gaussian]:
    return Offer(
        lambda rho: Gaussian.of_stated("count", 1.0, rho, largest=1000, releases=releases), times, largest, "as it goes"
    )


def opened(*offers: Offer[Gaussian], rho: float = 0.5) -> tuple[Spender, Tape]:
    tape = Tape.record(bytes(32))
    return Spender(Allowance(rho, offers), tape), tape


def one(made: Gaussian, tape: Tape) -> float:
    return float(made.release(tape, made.stated(7))[0])


def spent(tape: Tape) -> float:
    return math.fsum((sensitivity / sigma) ** 2 / 2.0 for _, sensitivity, sigma, _, _ in tape.entries())


def test_any_requests_stay_below_the_cap_and_use_it_up():
    """Requested costs range from far too small to far too large, until nothing is left."""
    kind, rng = offer(), np.random.default_rng(1)
    spender, tape = opened(kind)

    def ask_on() -> None:
        for _ in range(1001):
            spender.release(kind, 10.0 ** rng.uniform(-12.0, 2.0) * spender.left, one)

    with pytest.raises(Exhausted):
        ask_on()
    assert spent(tape) == pytest.approx(0.5, rel=1e-5)
    assert spent(tape) <= spender.allowance.cost.rho
    assert spender.spent == pytest.approx(spent(tape), rel=1e-12)


def test_a_kind_is_released_at_most_as_often_as_the_plan_says():
    kind = offer(times=3)
    spender, tape = opened(kind)
    for _ in range(3):
        spender.release(kind, 0.01, one)
    with pytest.raises(Exhausted, match="3 times"):
        spender.release(kind, 0.01, one)
    assert len(tape.entries()) == 3


def test_queries_that_a_search_did_not_make_are_not_paid():
    kind = offer(releases=10)
    spender, tape = opened(kind)

    def search(made: Gaussian, tape: Tape) -> Found[int]:
        for _ in range(4):
            one(made, tape)
        return Found(3, queries=4)

    assert spender.search(kind, 0.1, search) == 3
    assert spender.spent == pytest.approx(0.04, rel=1e-6)
    assert spender.spent == pytest.approx(spent(tape), rel=1e-12)


def test_the_noise_is_that_of_the_cost():
    kind = offer(largest=0.1)
    spender, tape = opened(kind)
    assert spender.noise(kind, 0.02) == pytest.approx(5.0, rel=1e-6)
    _, noise = spender.release(kind, 0.02, one)
    assert noise == pytest.approx(5.0, rel=1e-6)
    # No more than the largest share of one kind.
    assert spender.release(kind, 0.5, one)[1] == pytest.approx(math.sqrt(10.0), rel=1e-6)
    assert spent(tape) == pytest.approx(0.07, rel=1e-6)


def test_the_checks_of_the_cap_are_no_asserts(monkeypatch):
    search = offer(releases=10)
    spender, tape = opened(search)
    with pytest.raises(RuntimeError, match="`search`"):
        spender.release(search, 0.1, one)
    for asked in (-1, 11):
        with pytest.raises(RuntimeError, match="reports"):
            spender.search(search, 0.01, lambda made, tape, asked=asked: Found(3, queries=asked))
    monkeypatch.setattr(Spender, "affordable", lambda self, offer, rho: rho)
    with pytest.raises(RuntimeError, match="would exceed the cap"):
        spender.search(search, 0.6, lambda made, tape: Found(one(made, tape), queries=1))
    assert not tape.entries()


@pytest.mark.parametrize(
    ("n", "d", "rho"),
    [(2**30, 3, 8.0), (2**30, 1, 1e-12), (10, 2, 1e5), (2, 1, 1.0), (1000, 5000, 0.1), (5000, 4000, 0.1)],
)
def test_every_release_that_could_happen_fits_a_lattice(n, d, rho):
    """This is tested at the smallest and at the largest cost, and at costs in between."""
    allowance = dpmedian.plan(n, d, rho=rho, method="adaptive").calibrated.allowance
    for kind in allowance.offers:
        for exponent in np.linspace(math.log(1e-6), math.log(kind.largest), 9):
            assert 2**30 <= kind.make(math.exp(exponent) * allowance.rho).sigma <= 2**50
    assert allowance.cost.discretization < 1e-11


def test_a_budget_that_fits_no_lattice_is_refused_at_planning():
    with pytest.raises(ValueError, match="fits no lattice"):
        dpmedian.plan(1000, 2, rho=1e-16, method="adaptive")
