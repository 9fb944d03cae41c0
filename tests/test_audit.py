"""The short audit: 2,000 runs a side from fixed keys. `make audit` plays ten times as many and prints the table."""

import pytest

import audit
from dpmedian import set_threads

RUNS = 2_000


@pytest.fixture(autouse=True)
def _one_thread():
    """The inputs are tiny: a pool would only wait for itself."""
    set_threads(1)
    yield
    set_threads(None)


@pytest.mark.parametrize("name", audit.GAMES)
def test_no_release_shows_more_than_it_claims(name):
    """An honest row fails with probability at most ALPHA, and the keys are fixed: what passes once always passes."""
    game = audit.GAMES[name](1.0)
    for view, seen in audit.observe(game, RUNS).items():
        verdict = audit.judge(game.claim, seen)
        assert not verdict.refuted, (view, verdict)


@pytest.mark.parametrize("name", audit.GAMES)
def test_half_the_noise_is_noticed(name):
    """The power of the test above: at half the noise the same claim is refuted, in every view."""
    game = audit.GAMES[name](0.5)
    for view, seen in audit.observe(game, RUNS).items():
        verdict = audit.judge(game.claim, seen)
        assert verdict.refuted, (view, verdict)
