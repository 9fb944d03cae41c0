"""
Flower with hostile clients
===========================

300 clients train a network of 33,738 parameters on handwritten digits with Flower. Every client has 20 digits from five
of the ten classes. Every fifth client sends its update reversed and ten times as long. We compare ``FedAvg``,
``FedMedian`` and ``dpmedian.flower.PrivateGeometricMedian``. Only the last of these three strategies protects the
clients. It takes private robust steps, because a private median of so many parameters would be mostly noise. All rounds
share one ledger.

.. image:: /pictures/flower.png
   :alt: Accuracy over the rounds. FedAvg fails from the first round on; the private step learns like FedMedian.

The script needs scikit-learn for the digits, and ``flwr[simulation]``, which installs Ray. ``make flower`` installs
both
and runs the script. Run with a number to make the noise reproducible: ``flower_simulation.py 1``.
"""

import itertools
import logging
import os
import sys
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

os.environ.update(FLWR_TELEMETRY_ENABLED="0", RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0")  # nothing is reported

from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAvg, FedMedian
from flwr.simulation import run_simulation

import dpmedian
from dpmedian.flower import PrivateGeometricMedian

CLIENTS, HOSTILE, EXAMPLES, CLASSES, ROUNDS = 300, 5, 20, 5, 10
LAYERS = (64, 256, 64, 10)
FEATURES, LABELS = load_digits(return_X_y=True)
FEATURES = (FEATURES / 16.0).astype(np.float32)
TRAINING, TEST = np.split(np.random.default_rng(0).permutation(len(LABELS)), [1437])


def first_model() -> list[np.ndarray]:
    """Weights and biases of every layer."""
    rng, model = np.random.default_rng(1), []
    for inputs, outputs in itertools.pairwise(LAYERS):
        weights = rng.normal(size=(inputs, outputs)) * np.sqrt(2.0 / inputs)
        model += [weights.astype(np.float32), np.zeros(outputs, dtype=np.float32)]
    return model


def scores(model: list[np.ndarray], features: np.ndarray) -> list[np.ndarray]:
    """The inputs of every layer, and the scores of the classes."""
    seen = [features]
    for weights, bias in zip(model[::2], model[1::2], strict=True):
        seen.append(np.maximum(seen[-1], 0.0) @ weights + bias)
    return seen


def trained(model: list[np.ndarray], features: np.ndarray, labels: np.ndarray) -> list[np.ndarray]:
    """Three steps of gradient descent on the examples of one client."""
    model = [layer.copy() for layer in model]
    for _ in range(3):
        seen = scores(model, features)
        error = np.exp(seen[-1] - seen[-1].max(axis=1, keepdims=True))
        error = (error / error.sum(axis=1, keepdims=True) - np.eye(10, dtype=np.float32)[labels]) / len(labels)
        for at in reversed(range(len(LAYERS) - 1)):
            inputs, before = np.maximum(seen[at], 0.0), (error @ model[2 * at].T) * (seen[at] > 0.0)
            model[2 * at] -= 0.3 * inputs.T @ error
            model[2 * at + 1] -= 0.3 * error.sum(axis=0)
            error = before
    return model


client = ClientApp()


@client.train()
def train(message, context):
    number = int(context.node_config["partition-id"])
    rng = np.random.default_rng([number, 1])
    own = TRAINING[np.isin(LABELS[TRAINING], rng.choice(10, size=CLASSES, replace=False))]
    own = rng.choice(own, size=EXAMPLES, replace=False)
    received = message.content["arrays"].to_numpy_ndarrays()
    sent = trained(received, FEATURES[own], LABELS[own])
    if number % HOSTILE == 0:
        sent = [before - 10.0 * (after - before) for before, after in zip(received, sent, strict=True)]
    arrays, metrics = ArrayRecord(sent), MetricRecord({"num-examples": EXAMPLES})
    return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)


def accuracies(strategy) -> list[float]:
    """The accuracy on the digits of the test set, before the first round and after each."""
    history: list[float] = []

    def evaluate(server_round: int, arrays: ArrayRecord) -> MetricRecord:
        with np.errstate(all="ignore"):  # A hostile client can make FedAvg's model as large as it likes.
            found = scores(arrays.to_numpy_ndarrays(), FEATURES[TEST])[-1].argmax(axis=1)
        history.append(float(np.mean(found == LABELS[TEST])))
        return MetricRecord({"accuracy": history[-1]})

    server = ServerApp()

    @server.main()
    def main(grid, context) -> None:
        strategy.start(grid, ArrayRecord(first_model()), num_rounds=ROUNDS, evaluate_fn=evaluate)

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
    ledger = dpmedian.Ledger(epsilon=8.0, delta=1e-5, neighbours="add_remove", unit="client")
    # Without `min_available_nodes` the first round would begin with the few clients that are connected already.
    private = PrivateGeometricMedian(
        ledger=ledger, rounds=ROUNDS, clients=CLIENTS, min_available_nodes=CLIENTS, seed=seed
    )
    parameters = sum(layer.size for layer in first_model())
    print(f"{CLIENTS} clients, every fifth hostile; {parameters:,} parameters: a private {private.method(parameters)}")
    waiting = {"min_train_nodes": CLIENTS, "min_available_nodes": CLIENTS, "fraction_evaluate": 0.0}
    history = {
        "FedAvg": accuracies(FedAvg(**waiting)),
        "FedMedian": accuracies(FedMedian(**waiting)),
        "private step": accuracies(private),
    }
    print("accuracy after every round")
    print("round" + "".join(f"{name:>16}" for name in history))
    for number, row in enumerate(zip(*history.values(), strict=True)):
        print(f"{number:5}" + "".join(f"{value:16.3f}" for value in row))
    epsilon = ledger.spent.epsilon_at(1e-5)
    print(f"the private one cost each client epsilon = {epsilon:.2f} at delta = 1e-5, all rounds together")
    last = private.releases[-1]
    print(f"in the last round: coherence {last.coherence:.2f}, withstands {last.withstands:.0%} more hostile clients")
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
