"""The short audit: 2,000 runs per side (150 or fewer for slow methods) with fixed keys; `make audit` plays 20,000."""

import pytest

import audit
from dpmedian import set_threads

RUNS = 2_000
# The number of runs for methods that take milliseconds.
RUNS_SLOW = 150

# Their runs are fast, but the test of their power needs many of them.
LONG = {"dpgd, add_remove", "dpgd, paper's profile", "weights"}

ROWS = [pytest.param(name, marks=[pytest.mark.slow] * (row.slow or name in LONG)) for name, row in audit.GAMES.items()]


@pytest.fixture(autouse=True)
def _one_thread():
    """The inputs are tiny, so more threads would only wait."""
    set_threads(1)
    yield
    set_threads(None)


@pytest.mark.parametrize("name", ROWS)
def test_no_release_shows_more_than_it_claims(name):
    """An honest row fails with probability at most ALPHA, and the keys are fixed, so a test passes always or never."""
    row = audit.GAMES[name]
    game = row.make(1.0)
    for view, seen in audit.observe(game, RUNS_SLOW if row.slow else RUNS).items():
        verdict = audit.judge(game.claim, seen)
        assert not verdict.refuted, (view, verdict)


@pytest.mark.parametrize("name", [row for row in ROWS if row.values != ("loc_dpgd, paper's profile",)])
def test_a_fraction_of_the_noise_is_noticed(name):
    """The power of the test above. With half of the noise the same claim is refuted, in every view.

    For slow methods, with few runs, a quarter of the noise is noticed in the intermediate releases. Methods of the
    paper's profile are left out, because their steps grow with the budget and would take too long.
    """
    row = audit.GAMES[name]
    game = row.make(audit.WEAK / 2 if row.slow else audit.WEAK)
    for view, seen in audit.observe(game, RUNS_SLOW if row.slow else RUNS).items():
        if view == "transcript" or not row.slow:
            verdict = audit.judge(game.claim, seen)
            assert verdict.refuted, (view, verdict)
