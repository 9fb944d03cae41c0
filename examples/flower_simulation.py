"""
Flower with hostile clients
===========================

300 clients train a classifier with Flower; every fifth of them sends its update reversed and ten times as long. Three
strategies see the same clients: ``FedAvg``, ``FedMedian``, and ``dpmedian.flower.PrivateGeometricMedian``, which alone
hides each client. Every client has 20 examples of two of the five classes. All rounds share one ledger.

.. image:: /pictures/flower.png
   :alt: Accuracy over the rounds. FedAvg is ruined in the first; the private geometric median learns like FedMedian.

Needs ``flwr[simulation]``, which brings Ray: ``make flower`` sets it up and runs this script. A number fixes the noise,
as in ``flower_simulation.py 1``; Flower numbers its clients anew each time, so the last digits vary all the same.
"""

import logging
import os
import sys
import warnings

import matplotlib.pyplot as plt
import numpy as np

os.environ.update(FLWR_TELEMETRY_ENABLED="0", RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0")  # nothing is reported

from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAvg, FedMedian
from flwr.simulation import run_simulation

import dpmedian
from dpmedian.flower import PrivateGeometricMedian

CLIENTS, HOSTILE, EXAMPLES, ROUNDS = 300, 5, 20, 8
CLASSES, FEATURES = 5, 8
CENTERS = 2.0 * np.random.default_rng(7).normal(size=(CLASSES, FEATURES)) / np.sqrt(2.0)


def examples(rng: np.random.Generator, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Features around the center of each class, with a one for the intercept, and the labels."""
    features = CENTERS[labels] + rng.normal(size=(len(labels), FEATURES))
    return np.hstack([features, np.ones((len(labels), 1))]), labels


def trained(weights: np.ndarray, features: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Ten steps of logistic regression on the examples of one client."""
    for _ in range(10):
        scores = np.exp(features @ weights - (features @ weights).max(axis=1, keepdims=True))
        scores /= scores.sum(axis=1, keepdims=True)
        weights = weights - 0.3 * features.T @ (scores - np.eye(CLASSES)[labels]) / len(labels)
    return weights


client = ClientApp()


@client.train()
def train(message, context):
    number = int(context.node_config["partition-id"])
    rng = np.random.default_rng([number, 1])
    features, labels = examples(rng, rng.choice(rng.choice(CLASSES, size=2, replace=False), size=EXAMPLES))
    received = message.content["arrays"]["weights"].numpy()
    sent = trained(received, features, labels)
    if number % HOSTILE == 0:
        sent = received - 10.0 * (sent - received)
    metrics = MetricRecord({"num-examples": EXAMPLES})
    return Message(RecordDict({"arrays": ArrayRecord({"weights": Array(sent)}), "metrics": metrics}), reply_to=message)


def accuracies(strategy) -> list[float]:
    """The accuracy on public examples, before the first round and after each."""
    rng = np.random.default_rng(0)
    features, labels = examples(rng, rng.integers(CLASSES, size=2000))
    history: list[float] = []

    def evaluate(server_round: int, arrays: ArrayRecord) -> MetricRecord:
        weights = arrays["weights"].numpy()
        history.append(float(np.mean((features @ weights).argmax(axis=1) == labels)))
        return MetricRecord({"accuracy": history[-1]})

    server = ServerApp()

    @server.main()
    def main(grid, context) -> None:
        zeros = ArrayRecord({"weights": Array(np.zeros((FEATURES + 1, CLASSES)))})
        strategy.start(grid, zeros, num_rounds=ROUNDS, evaluate_fn=evaluate)

    backend = {
        "init_args": {"log_to_driver": False, "logging_level": logging.ERROR},
        "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
    }
    run_simulation(server, client, num_supernodes=CLIENTS, backend_config=backend)
    return history


def main(seed: int | None = None) -> None:
    for name in ("flwr", "ray"):
        logging.getLogger(name).setLevel(logging.ERROR)
    warnings.simplefilter("ignore", dpmedian.InsecureSeedWarning)
    ledger = dpmedian.Ledger(rho=0.5, neighbours="add_remove", unit="client")
    # The first round would otherwise begin with the few clients that are there, and fail.
    private = PrivateGeometricMedian(
        ledger=ledger, rounds=ROUNDS, clients=CLIENTS, min_available_nodes=CLIENTS, seed=seed
    )
    parameters = (FEATURES + 1) * CLASSES
    print(
        f"n sqrt(rho/d) = {private.signal_to_noise(parameters):.1f}, with {CLIENTS} clients and {parameters} parameters"
    )
    waiting = {"min_train_nodes": CLIENTS, "min_available_nodes": CLIENTS, "fraction_evaluate": 0.0}
    history = {
        "FedAvg": accuracies(FedAvg(**waiting)),
        "FedMedian": accuracies(FedMedian(**waiting)),
        "private median": accuracies(private),
    }
    print("accuracy after every round")
    print("round" + "".join(f"{name:>16}" for name in history))
    for number, row in enumerate(zip(*history.values(), strict=True)):
        print(f"{number:5}" + "".join(f"{value:16.3f}" for value in row))
    epsilon = ledger.budget.epsilon_at(1e-5)
    print(f"the private one cost each client epsilon = {epsilon:.2f} at delta = 1e-5, all rounds together")
    draw(history)


def draw(history: dict[str, list[float]]) -> None:
    figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
    for (name, values), marker, color in zip(history.items(), "x^o", ("#7f8c9b", "#2171b5", "#b2182b"), strict=True):
        ax.plot(values, marker=marker, color=color, label=name + (" (not private)" if name[:3] == "Fed" else ""))
    ax.set(xlabel="round", ylabel="accuracy", ylim=(0, 1), title=f"Every fifth of {CLIENTS} clients is hostile")
    ax.legend(loc="center right")
    figure.savefig("flower.png", dpi=100)
    plt.show()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
