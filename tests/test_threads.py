"""Threads share plans, ledgers and tapes, with and without the GIL.

The workflow `test` runs this file on a free-threaded interpreter, with only numpy and pytest installed.
"""

import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable

import numpy as np
import pytest

import dpmedian
from dpmedian._core import Exact, Tape
from dpmedian.ledger import BudgetExceeded, Ledger

THREADS = 8
POINTS = np.random.default_rng(0).normal(size=(400, 2))


def together(work: Callable[[int], object]) -> list[object]:
    """Return the results or exceptions of `work` in each of the threads, which all start at once."""
    start, results = threading.Barrier(THREADS), [None] * THREADS

    def run(index: int) -> None:
        start.wait()
        try:
            results[index] = work(index)
        except Exception as error:
            results[index] = error

    threads = [threading.Thread(target=run, args=(index,)) for index in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_threads_that_share_a_plan_release_what_one_thread_releases():
    plan = dpmedian.plan(len(POINTS), 2, epsilon=2.0, delta=1e-6)
    alone = [plan.run(POINTS, seed=seed).point.tolist() for seed in range(THREADS)]
    shared = together(lambda seed: plan.run(POINTS, seed=seed).point.tolist())
    assert shared == alone


def test_threads_that_share_a_ledger_spend_no_more_than_it_has():
    """Five releases fit, and each of eight threads requests one."""
    plan = dpmedian.plan(len(POINTS), 2, rho=0.2)
    ledger = Ledger(rho=1.0 + 1e-9)
    results = together(lambda seed: plan.run(POINTS, seed=seed, ledger=ledger))
    refused = [result for result in results if isinstance(result, BudgetExceeded)]
    assert len(refused) == THREADS - 5, results
    assert len(ledger.entries) == 5
    assert ledger.spent.rho == pytest.approx(1.0)


def test_threads_that_share_a_tape_draw_no_more_than_it_allows_and_nothing_twice():
    """Forty draws with a standard deviation of twice the sensitivity fit.

    A tape that is in use refuses a draw, at no cost.
    """
    tape, exact = Tape.draw(bytes(32)), Exact.stated(np.zeros(64, dtype=np.int64), 1.0)
    tape.allow(10.0, 0.0)
    drawn: list[bytes] = []
    busy: list[RuntimeError] = []

    def draw(_index: int) -> None:
        while True:
            try:
                drawn.append(tape.gaussian("shared", exact, 1.0).tobytes())
            except RuntimeError as error:
                if "borrowed" not in str(error):
                    raise
                busy.append(error)

    refusals = together(draw)
    assert all("would exceed the allowance" in str(error) for error in refusals)
    alone = Tape.draw(bytes(32))
    assert sorted(drawn) == sorted(alone.gaussian("shared", exact, 1.0).tobytes() for _ in range(40))


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this interpreter has a lock")
def test_importing_the_package_leaves_the_interpreter_without_a_lock():
    check = "import sys, dpmedian; sys.exit(sys._is_gil_enabled())"
    subprocess.run([sys.executable, "-c", check], check=True)
