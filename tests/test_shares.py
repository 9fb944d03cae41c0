"""Ledgers that show shares that add up, equal parts of what is left, and costs of other libraries."""

import json
import math

import numpy as np
import pytest

import dpmedian
from dpmedian.accounting import PrivacyCost
from dpmedian.accounting.events import cost_of_event
from dpmedian.cli import main
from dpmedian.ledger import BudgetExceeded, Ledger

LEDGERS = [
    {"rho": 1.0},
    {"rho": 1.0, "delta": 1e-6},
    {"epsilon": 1.0, "delta": 1e-6},
    {"epsilon": 1.0, "delta": 1e-6, "composition": "concentrated"},
    {"epsilon": 1.0, "delta": 1e-6, "composition": "costs_fixed_beforehand"},
    {"epsilon": 1.0, "delta": 1e-6, "composition": "pairs"},
    {"epsilon": 1.0},
]


def cost_of(share):
    """A cost with this share: fine Gaussian noise, or a pure release, or a release requested as a pair."""
    if "rho" in share:
        return PrivacyCost.gaussian(2.0**32, 2.0**32 / math.sqrt(2.0 * share["rho"]) * (1.0 + 1e-9), 2)
    if share.get("delta"):
        return PrivacyCost.pure_dp(share["epsilon"]).requested(share["epsilon"], share["delta"])
    return PrivacyCost.pure_dp(share["epsilon"])


@pytest.mark.parametrize("terms", LEDGERS)
def test_the_requested_number_of_releases_fits_and_their_shares_are_equal_and_add_up(terms):
    ledger = Ledger(**terms)
    share = ledger.per_release(12)
    for number in range(12):
        ledger.charge(str(number), "m", cost_of(share)).mark("released")
        shares, left = ledger.shares
        assert math.isclose(math.fsum(shares) + left, 1.0, rel_tol=1e-9)
        assert all(math.isclose(one, 1.0 / 12.0, rel_tol=2e-3) for one in shares), shares
        assert math.isclose(left, 1.0 - (number + 1) / 12.0, abs_tol=2e-3)
    with pytest.raises(BudgetExceeded):
        ledger.charge("one more", "m", cost_of(share))
    told = ledger.to_dict()
    assert [entry["share"] for entry in told["entries"]] == shares
    assert (told["shares_of"], told["share_left"]) == (ledger.additive, left)


def test_epsilon_falls_unevenly_and_the_table_shows_equal_shares_beside_it():
    ledger = Ledger(epsilon=3.5, delta=1e-6)
    share = ledger.per_release(12)
    left = [ledger.remaining]
    for number in range(12):
        ledger.charge(f"release {number}", "m", cost_of(share)).mark("released")
        left.append(ledger.remaining)
    steps = -np.diff(left)
    assert steps[0] > 3.0 * steps[-1]
    text = str(ledger)
    assert text.count(" 8.3 %  released") == 12
    assert "In epsilon costs do not add\n  up" in text
    assert "< 0.1 % of rho" in text.splitlines()[0]
    page = ledger._repr_html_()
    assert page.count("8.3 %") == 12
    assert "costs do not add up" in page


def test_a_ledger_that_is_overspent_or_empty_has_shares():
    assert Ledger(rho=1.0).shares == ([], 1.0)
    assert Ledger(epsilon=1.0).shares == ([], 1.0)
    ledger = Ledger(rho=1.0)
    ledger.charge("nothing", "m", PrivacyCost())
    assert ledger.shares == ([0.0], 1.0)
    ledger.charge("all", "m", PrivacyCost(mu_squared=2.0))
    assert ledger.shares == ([0.0, 1.0], 0.0)


def test_the_command_says_what_each_of_several_releases_may_cost_and_its_line_works(tmp_path, capsys):
    path, points = tmp_path / "ledger.json", tmp_path / "points.csv"
    np.savetxt(points, np.random.default_rng(0).normal(size=(3000, 2)), delimiter=",")
    assert main(["ledger", "create", str(path), "--epsilon", "1", "--delta", "1e-6", "--neighbours", "add_remove"]) == 0
    capsys.readouterr()
    assert main(["ledger", "split", str(path), "3"]) == 0
    said, command = capsys.readouterr().out.splitlines()
    assert said.startswith("3 more releases fit: rho = ")
    assert said.endswith("33.3 % of rho")
    words = command.replace("FILE", str(points)).split()
    assert words[:2] == ["dpmedian", "release"]
    assert words[-2:] == ["--neighbours", "add_remove"]
    for _ in range(3):
        assert main(words[1:]) == 0
    assert main(words[1:]) == 3
    capsys.readouterr()
    assert main(["ledger", "split", str(path), "3", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["releases"] == 3
    assert told["rho"] < 1e-4
    assert main(["ledger", "split", str(path), "0"]) == 2


def test_what_another_program_has_released_is_charged(tmp_path, capsys):
    path = tmp_path / "ledger.json"
    Ledger(rho=0.1, delta=1e-6, path=path)
    enter = ["ledger", "enter", str(path), "--name", "counts", "--library", "opendp"]
    assert main([*enter, "--rho", "0.02"]) == 0
    assert main([*enter, "--epsilon", "0.2", "--delta", "1e-7"]) == 0
    assert main([*enter, "--epsilon", "0.2", "--delta", "1e-5"]) == 3
    assert main([*enter, "--rho", "0.02", "--delta", "1e-9"]) == 2
    assert main(enter) == 2
    first, second = Ledger.open(path).entries
    assert (first.cost.rho, first.method, first.state) == (0.02, "opendp", "released")
    assert (second.cost.pure_epsilons, second.cost.delta0) == ((0.2,), 1e-7)
    capsys.readouterr()
    assert main([*enter, "--rho", "0.001", "--neighbours", "add_remove"]) == 0
    assert "its rho is charged 4 times" in capsys.readouterr().err
    assert Ledger.open(path).entries[2].cost.rho == pytest.approx(0.004)


def test_an_entered_pair_adds_up_in_a_ledger_of_pairs_and_a_rho_only_where_rho_adds_up():
    pairs = Ledger(epsilon=1.0, delta=1e-6, composition="pairs")
    for _ in range(4):
        pairs.enter("a", epsilon=0.25, delta=2.5e-7)
    with pytest.raises(BudgetExceeded):
        pairs.enter("a", epsilon=0.01)
    for terms in ({"epsilon": 1.0, "delta": 1e-6}, {"epsilon": 1.0}):
        with pytest.raises(ValueError, match="which cannot use rho alone"):
            Ledger(**terms).enter("a", rho=0.01)
    Ledger(epsilon=1.0, delta=1e-6, composition="concentrated").enter("a", rho=0.001)
    for wrong in ({}, {"epsilon": 1.0, "rho": 1.0}, {"rho": 0.1, "delta": 1e-9}, {"cost": PrivacyCost(), "rho": 1.0}):
        with pytest.raises(ValueError, match="give one of"):
            Ledger(rho=1.0).enter("a", **wrong)


def test_events_of_dp_accounting_cost_what_they_say():
    event = pytest.importorskip("dp_accounting.dp_event")
    accounting = pytest.importorskip("dp_accounting.pld")
    gaussian, laplace = event.GaussianDpEvent(7.3), event.LaplaceDpEvent(9.7)
    assert cost_of_event(gaussian).mu_squared == pytest.approx(1.0 / 7.3**2, rel=1e-15)
    assert cost_of_event(laplace).pure_epsilons == (pytest.approx(1.0 / 9.7, rel=1e-15),)
    assert cost_of_event(event.DiscreteLaplaceDpEvent(0.25, 2)).pure_epsilons == (0.5,)
    assert cost_of_event(event.NoOpDpEvent()) == PrivacyCost()
    whole = event.ComposedDpEvent([event.SelfComposedDpEvent(gaussian, 5), laplace, event.NoOpDpEvent()])
    found = cost_of_event(whole, "add_remove", "person")
    assert (found.neighbours, found.unit) == ("add_remove", "person")
    # The library's own accountant, which is pessimistic by its discretization, agrees.
    delta = accounting.PLDAccountant().compose(whole).get_delta(1.0)
    # Here a Laplace release counts as any pure release, and therefore slightly more.
    assert 0.999 * delta <= found.delta_at(1.0) <= 1.05 * delta
    ledger = Ledger(epsilon=2.0, delta=1e-6, neighbours="add_remove", unit="person")
    ledger.enter("counts", whole, library="dp_accounting")
    assert ledger.entries[0].cost == found
    assert ledger.entries[0].factor is None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda e: e.PoissonSampledDpEvent(0.1, e.GaussianDpEvent(1.0)), "no exact cost for a PoissonSampledDpEvent"),
        (lambda e: e.ZCDpEvent(0.1), r"ledger\.enter\(name, rho=\.\.\.\)"),
        (lambda e: e.NonPrivateDpEvent(), "no exact cost for a NonPrivateDpEvent"),
        (lambda e: e.GaussianDpEvent(0.0), "noise_multiplier must be"),
        (lambda e: e.GaussianDpEvent(float("nan")), "noise_multiplier must be"),
        (lambda e: e.LaplaceDpEvent(-1.0), "noise_multiplier must be"),
        (lambda e: e.SelfComposedDpEvent(e.GaussianDpEvent(1.0), 10**9), "count must be at most"),
        (lambda e: e.ComposedDpEvent([e.NonPrivateDpEvent()]), "no exact cost for a NonPrivateDpEvent"),
        (lambda e: object(), "no exact cost for a object"),
    ],
)
def test_an_event_without_a_bound_is_refused_and_not_charged(make, message):
    ledger = Ledger(rho=10.0)
    with pytest.raises(ValueError, match=message):
        ledger.enter("a", make(pytest.importorskip("dp_accounting.dp_event")))
    assert ledger.entries == ()


def test_the_page_of_a_release_shows_shares(tmp_path):
    ledger = Ledger(epsilon=1.0, delta=1e-6)
    points = np.random.default_rng(0).normal(size=(3000, 2))
    release = dpmedian.geometric_median(points, **ledger.per_release(4), ledger=ledger)
    page = release.report(tmp_path / "page.html", ledger=ledger).read_text()
    assert 'data-name="share">25.0 %<' in page
    assert "Shares are fractions of the budget in rho, in which costs add up; 75.0 % of it is left." in page
