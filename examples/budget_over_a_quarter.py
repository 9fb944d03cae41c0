"""
A budget over a quarter
=======================

Thirteen weekly releases share one budget. The fourteenth release is refused. A table helps the privacy review.

The people of a city move a little every week. One ledger holds the budget of all releases. With `path=...` several
processes can share the ledger. Run with a number to make the noise reproducible: budget_over_a_quarter.py 1
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

import dpmedian
from dpmedian.data import load_positions
from dpmedian.ledger import BudgetExceeded

WEEKS = 13


def main(seed: int | None = None) -> None:
    positions, rng = load_positions(), np.random.default_rng(0)
    # Thirteen releases at epsilon 0.7 cost far less than 13 times 0.7, because Gaussian noise composes well.
    ledger = dpmedian.Ledger(epsilon=2.5, delta=1e-5)
    plan = dpmedian.plan(*positions.shape, epsilon=0.7, delta=5e-7)
    left = [ledger.remaining]
    for week in range(1, WEEKS + 2):
        positions = positions + rng.normal([0.1, 0.05], 0.3, size=positions.shape)
        try:
            release = plan.run(positions, ledger=ledger, seed=None if seed is None else seed + week)
        except dpmedian.ReleaseFailed as failed:
            print(f"week {week:2}: {failed.message}")
        except BudgetExceeded as refused:
            print(f"week {week:2}: refused, {refused.remaining:.3g} of epsilon is left")
        else:
            print(f"week {week:2}: {np.round(release.point, 2)}")
        left.append(ledger.remaining)
    print()
    print(ledger)
    draw(left)


def draw(left: list[float]) -> None:
    """Draw the epsilon that is left after each week. It follows from the plan alone, so it is not private."""
    _, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    ax.step(range(len(left)), left, where="post", color="#b2182b")
    ax.axvspan(WEEKS, WEEKS + 1, color="#7f8c9b", alpha=0.2, linewidth=0, label="refused")
    ax.set(
        xlabel="week", ylabel="epsilon left", xlim=(0, WEEKS + 1), ylim=(0, None), title="One budget, thirteen weeks"
    )
    ax.legend()
    plt.show()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
