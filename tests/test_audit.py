"""The short audit: 2,000 runs a side (150 or fewer of slow methods) from fixed keys; `make audit` plays 20,000."""

import pytest

import audit
from dpmedian import set_threads

RUNS = 2_000
# For methods that take milliseconds.
RUNS_SLOW = 150

# Their runs are quick, but there are many for the power of their test.
LONG = {"dpgd, add_remove", "dpgd, paper's profile", "weights"}

ROWS = [pytest.param(name, marks=[pytest.mark.slow] * (row.slow or name in LONG)) for name, row in audit.GAMES.items()]


@pytest.fixture(autouse=True)
def _one_thread():
    """The inputs are tiny: a pool would only wait for itself."""
    set_threads(1)
    yield
    set_threads(None)


@pytest.mark.parametrize("name", ROWS)
def test_no_release_shows_more_than_it_claims(name):
    """An honest row fails with probability at most ALPHA, and the keys are fixed: what passes once always passes."""
    row = audit.GAMES[name]
    game = row.make(1.0)
    for view, seen in audit.observe(game, RUNS_SLOW if row.slow else RUNS).items():
        verdict = audit.judge(game.claim, seen)
        assert not verdict.refuted, (view, verdict)


@pytest.mark.parametrize("name", [row for row in ROWS if row.values != ("loc_dpgd, paper's profile",)])
def test_a_fraction_of_the_noise_is_noticed(name):
    """The power of the test above: with half of the noise the same claim is refuted, in every view.

    So few runs of a slow method notice a quarter of it, in all that is released on the way; the steps of the paper's
    profile, which grow with the budget, would take too long.
    """
    row = audit.GAMES[name]
    game = row.make(audit.WEAK / 2 if row.slow else audit.WEAK)
    for view, seen in audit.observe(game, RUNS_SLOW if row.slow else RUNS).items():
        if view == "transcript" or not row.slow:
            verdict = audit.judge(game.claim, seen)
            assert verdict.refuted, (view, verdict)
