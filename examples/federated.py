"""
Federated updates and hostile clients
=====================================

A federated server moves its model by the private geometric median of the updates. A tenth of the clients are hostile.

3,000 clients fit one linear model together. A hostile client sends its update reversed and thirty times as long.
Updates that are longer than the public radius are shortened to this radius. All rounds share one ledger in rho. Run
with a number to make the noise reproducible: federated.py 1
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

import dpmedian

CLIENTS, HOSTILE, EXAMPLES, DIMENSION, ROUNDS = 3000, 300, 20, 20, 6


def updates(weights: np.ndarray, truth: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return one gradient step of every client, on examples that only this client sees."""
    features = rng.normal(size=(CLIENTS, EXAMPLES, DIMENSION))
    residuals = features @ (truth - weights) + 0.1 * rng.normal(size=(CLIENTS, EXAMPLES))
    steps = np.einsum("ce,ced->cd", residuals, features) / EXAMPLES
    steps[:HOSTILE] *= -30.0
    return steps


def main(seed: int | None = None) -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=DIMENSION)
    ledger = dpmedian.Ledger(rho=0.12)
    plan = dpmedian.plan(CLIENTS, DIMENSION, rho=0.02, radius=100.0)
    trusting, robust = np.zeros(DIMENSION), np.zeros(DIMENSION)
    history = []
    print("distance to the true model")
    print(f"{'round':>5}{'mean of updates':>18}{'private median':>17}{'rho left':>11}")
    for number in range(1, ROUNDS + 1):
        trusting = trusting + 0.8 * updates(trusting, truth, rng).mean(axis=0)
        release = plan.run(updates(robust, truth, rng), ledger=ledger, seed=None if seed is None else seed + number)
        robust = robust + 0.8 * release.point
        errors = [np.linalg.norm(weights - truth) for weights in (trusting, robust)]
        print(f"{number:5}{errors[0]:18.3g}{errors[1]:17.3g}{ledger.remaining:11.2f}")
        history.append(errors)
    # State the whole budget as the cost, even if the server stops early, because it may stop because of results.
    print(f"all rounds together: epsilon = {ledger.budget.epsilon_at(1e-6):.3g} at delta = 1e-6")
    draw(np.array(history))


def draw(history: np.ndarray) -> None:
    _, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    rounds = np.arange(1, len(history) + 1)
    ax.semilogy(rounds, history[:, 0], marker="x", color="#7f8c9b", label="mean of updates")
    ax.semilogy(rounds, history[:, 1], marker="o", color="#b2182b", label="private median")
    ax.set(xlabel="round", ylabel="distance to the true model", title="A tenth of 3,000 clients lie")
    ax.legend()
    plt.show()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
