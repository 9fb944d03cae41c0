"""The short audit: 2,000 runs a side (250 of slow methods) from fixed keys; `make audit` plays ten times as many."""

import pytest

import audit
from dpmedian import set_threads

RUNS = 2_000
# For methods that take milliseconds.
RUNS_SLOW = 250


@pytest.fixture(autouse=True)
def _one_thread():
    """The inputs are tiny: a pool would only wait for itself."""
    set_threads(1)
    yield
    set_threads(None)


@pytest.mark.parametrize("name", audit.GAMES)
def test_no_release_shows_more_than_it_claims(name):
    """An honest row fails with probability at most ALPHA, and the keys are fixed: what passes once always passes."""
    row = audit.GAMES[name]
    game = row.make(1.0)
    for view, seen in audit.observe(game, RUNS_SLOW if row.slow else RUNS).items():
        verdict = audit.judge(game.claim, seen)
        assert not verdict.refuted, (view, verdict)


@pytest.mark.parametrize("name", [name for name, row in audit.GAMES.items() if not row.slow])
def test_a_fraction_of_the_noise_is_noticed(name):
    """The power of the test above: with less noise (mostly half of it) the same claim is refuted, in every view."""
    row = audit.GAMES[name]
    game = row.make(row.weak)
    for view, seen in audit.observe(game, RUNS).items():
        verdict = audit.judge(game.claim, seen)
        assert verdict.refuted, (view, verdict)
