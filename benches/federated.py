"""Federated training under privacy and attack: private steps compared with clipping, plain, median and Krum
aggregation.

    python benches/federated.py                 # the table of the MLP, and its picture federated.png
    python benches/federated.py --slow          # with FedMedian and Krum, which take the longest
    python benches/federated.py --model cnn     # a convolutional network
    python benches/federated.py --quick         # a few rounds: a check that it runs, not a measurement
    python benches/federated.py --cost          # processor time and memory of one round, beside a plain sum

1,000 clients have ten handwritten digits each (scikit-learn's, of five classes), and a test set is held back.
In every round each client sends the gradient of its examples, and the server moves the model. All private rules spend
the same rho in every round, for neighbors of which one has one client more, so that all rounds together cost epsilon =
8 at delta = 1e-5. The private step has the defaults of `dpmedian.flower.PrivateGeometricMedian`, which are the same for
all models and attacks. For DP-FedAvg five clipping norms are tried, and the best one of each column is shown; this
choice is not private and favors DP-FedAvg. FedAvg, FedMedian and Krum move the model by their whole aggregate.
Accuracies are means over the last three rounds.

A fifth of the clients is hostile: *flip* sends its own update reversed and ten times as long; *against* sends the mean
of all honest updates, reversed and ten times as long (inner-product manipulation); *a little* sends the mean minus 0.3
standard deviations in every coordinate (the attack "a little is enough"); *labels* trains on 9 minus the label.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import dpmedian

Vector = NDArray[np.float32]
Matrix = NDArray[np.float32]

CLIENTS, EXAMPLES, CLASSES, HOSTILE = 1000, 10, 5, 0.2
EPSILON, DELTA = 8.0, 1e-5
# The defaults of the strategy's steps: their length, as a share of the length of the first model, which shrinks evenly;
# and the momentum.
STEP, MOMENTUM = 0.1, 0.5
# The clipping norms that DP-FedAvg may choose from; the length of a typical update is between them.
NORMS = (0.1, 0.3, 1.0, 3.0, 10.0)
ATTACKS = ("none", "flip", "against", "a little", "labels")


class Model(NamedTuple):
    """Shapes of the layers, the start, and the gradients of clients' examples."""

    shapes: tuple[tuple[int, ...], ...]
    forward: Callable[[list[Matrix], Matrix], tuple[Matrix, list[Matrix]]]
    backward: Callable[[list[Matrix], list[Matrix], Matrix], list[Matrix]]
    local_rate: float

    @property
    def d(self) -> int:
        """The number of parameters."""
        return sum(int(np.prod(shape)) for shape in self.shapes)

    def start(self, rng: np.random.Generator) -> Vector:
        """Normal weights whose variance is two over the number of inputs, and biases of zero."""
        parts = [
            rng.normal(size=shape) * np.sqrt(2.0 / np.prod(shape[:-1])) if len(shape) > 1 else np.zeros(shape)
            for shape in self.shapes
        ]
        return np.concatenate([part.ravel() for part in parts]).astype(np.float32)

    def layers(self, flat: Vector) -> list[Matrix]:
        """The layers of a model that is given as a flat vector."""
        ends = np.cumsum([int(np.prod(shape)) for shape in self.shapes])[:-1]
        return [part.reshape(shape) for part, shape in zip(np.split(flat, ends), self.shapes, strict=True)]

    def updates(self, flat: Vector, features: Matrix, labels: NDArray[np.int64]) -> Matrix:
        """One row for each client: minus the gradient of its examples, which have the shape (clients, examples, 64)."""
        layers, clients = self.layers(flat), len(features)
        scores, seen = self.forward(layers, features.reshape(-1, 64))
        error = _softmax(scores)
        error[np.arange(len(error)), labels.ravel()] -= 1.0
        error *= -self.local_rate / features.shape[1]
        made = self.backward(layers, seen, error.reshape(clients, -1, 10))
        return np.concatenate([part.reshape(clients, -1) for part in made], axis=1)

    def accuracy(self, flat: Vector, features: Matrix, labels: NDArray[np.int64]) -> float:
        """The share of examples that are classified correctly."""
        return float(np.mean(self.forward(self.layers(flat), features)[0].argmax(axis=1) == labels))


def _softmax(scores: Matrix) -> Matrix:
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(scores / scores.sum(axis=1, keepdims=True), dtype=np.float32)


def _dense_forward(layers: list[Matrix], x: Matrix) -> tuple[Matrix, list[Matrix]]:
    seen = [x]
    for weight, bias in zip(layers[:-2:2], layers[1:-2:2], strict=True):
        seen.append(np.maximum(seen[-1] @ weight + bias, 0.0))
    return seen[-1] @ layers[-2] + layers[-1], seen


def _dense_backward(layers: list[Matrix], seen: list[Matrix], error: Matrix) -> list[Matrix]:
    """Gradients of each client, from the last layer to the first."""
    clients, made = len(error), []
    for at in range(len(seen) - 1, -1, -1):
        inputs = seen[at].reshape(clients, -1, seen[at].shape[-1])
        made = [inputs.transpose(0, 2, 1) @ error, error.sum(axis=1), *made]
        error = (error @ layers[2 * at].T) * (inputs > 0.0)
    return made


MLP = Model(((64, 256), (256,), (256, 64), (64,), (64, 10), (10,)), _dense_forward, _dense_backward, 0.5)

# Two convolutions of 3 x 3, the second with a stride of two, as products with patches; then two dense layers.
CHANNELS = (16, 32)


def _patches(images: Matrix, stride: int) -> Matrix:
    """Images (n, side, side, c) as patches (n, places, 9 c), with a border of zeros."""
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))[:, ::stride, ::stride]
    n, side = len(images), windows.shape[1]
    return np.ascontiguousarray(windows.transpose(0, 1, 2, 4, 5, 3)).reshape(n, side * side, -1)


def _cnn_forward(layers: list[Matrix], x: Matrix) -> tuple[Matrix, list[Matrix]]:
    n = len(x)
    first = _patches(x.reshape(n, 8, 8, 1), 1)
    hidden = np.maximum(first @ layers[0] + layers[1], 0.0)
    second = _patches(hidden.reshape(n, 8, 8, CHANNELS[0]), 2)
    pooled = np.maximum(second @ layers[2] + layers[3], 0.0)
    scores, dense = _dense_forward(layers[4:], pooled.reshape(n, -1))
    return scores, [first, hidden, second, pooled, *dense]


def _cnn_backward(layers: list[Matrix], seen: list[Matrix], error: Matrix) -> list[Matrix]:
    clients = len(error)
    (first, hidden, second, pooled), dense = seen[:4], seen[4:]
    top = _dense_backward(layers[4:], dense, error)
    n = len(first)
    error = (error @ layers[6].T) * (dense[1].reshape(clients, -1, dense[1].shape[-1]) > 0.0)
    error = (error @ layers[4].T).reshape(n, 16, CHANNELS[1]) * (pooled > 0.0)
    made = _convolved(second, error, clients)
    patches = (error @ layers[2].T).reshape(n, 4, 4, 3, 3, CHANNELS[0])
    spread = np.zeros((n, 10, 10, CHANNELS[0]), dtype=np.float32)
    for i in range(3):
        for j in range(3):
            spread[:, i : i + 8 : 2, j : j + 8 : 2] += patches[:, :, :, i, j]
    error = spread[:, 1:9, 1:9].reshape(n, 64, CHANNELS[0]) * (hidden > 0.0)
    return [*_convolved(first, error, clients), *made, *top]


def _convolved(patches: Matrix, error: Matrix, clients: int) -> list[Matrix]:
    inputs = patches.reshape(clients, -1, patches.shape[-1])
    error = error.reshape(clients, -1, error.shape[-1])
    return [inputs.transpose(0, 2, 1) @ error, error.sum(axis=1)]


CNN = Model(((9, 16), (16,), (144, 32), (32,), (512, 200), (200,), (200, 10), (10,)), _cnn_forward, _cnn_backward, 0.5)


def _attacked(attack: str, updates: Matrix, hostile: int) -> Matrix:
    """The updates with those of the first `hostile` clients replaced; the labels of an attack are in them already."""
    if attack in ("none", "labels"):
        return updates
    if attack == "flip":
        updates[:hostile] *= -10.0
        return updates
    honest = updates[hostile:]
    mean = honest.mean(axis=0)
    updates[:hostile] = -10.0 * mean if attack == "against" else mean - 0.3 * honest.std(axis=0)
    return updates


# A rule gets the updates and the number of the round, and returns the movement of the model.
Rule = Callable[[Matrix, int], Vector]


def private_step(rho: float, length: float, rounds: int) -> Callable[[], Rule]:
    """One robust step per round, with this length in the first round if all updates have one direction; nothing is
    tuned.
    """

    def make() -> Rule:
        last: list[Vector] = []

        def rule(updates: Matrix, number: int) -> Vector:
            again = MOMENTUM * last[-1] if last else None
            step = dpmedian.robust_step(iter(updates), updates.shape[1], again, rho=rho, seed=number)
            movement = length * (1.0 - number / rounds) * step.point
            last.append((movement if again is None else movement + again).astype(np.float32))
            return last[-1]

        return rule

    return make


def clipped_mean(rho: float, norm: float, rounds: int) -> Callable[[], Rule]:
    """DP-FedAvg: updates clipped to a norm, their mean with Gaussian noise, in steps that shrink evenly, too.

    The number of clients is given to it.
    """

    def rule(updates: Matrix, number: int) -> Vector:
        shares = np.minimum(norm / np.maximum(np.linalg.norm(updates, axis=1), 1e-30), 1.0)
        noise = np.random.default_rng([number, 1]).normal(size=updates.shape[1]) * norm / np.sqrt(2.0 * rho)
        movement = (shares.astype(np.float32) @ updates + noise) / len(updates)
        return (movement * (1.0 - number / rounds)).astype(np.float32)

    return lambda: rule


def mean(updates: Matrix, number: int) -> Vector:
    """FedAvg."""
    return updates.mean(axis=0)


def median(updates: Matrix, number: int) -> Vector:
    """FedMedian: the median of every coordinate."""
    return np.concatenate([np.median(part, axis=0) for part in np.array_split(updates, 32, axis=1)])


def krum(updates: Matrix, number: int) -> Vector:
    """Krum: the update whose n - f - 2 nearest others are nearest."""
    squares = np.einsum("ij,ij->i", updates, updates)
    distances = squares[:, None] + squares[None, :] - 2.0 * (updates @ updates.T)
    np.fill_diagonal(distances, np.inf)
    near = len(updates) - int(HOSTILE * len(updates)) - 2
    return updates[np.partition(distances, near, axis=1)[:, :near].sum(axis=1).argmin()]


def data() -> tuple[Matrix, NDArray[np.int64], Matrix, NDArray[np.int64]]:
    """Features and labels of 1,437 digits to train with, and of 360 to test."""
    from sklearn.datasets import load_digits

    found = load_digits()
    order = np.random.default_rng(0).permutation(len(found.target))
    features, labels = (found.data[order] / 16.0).astype(np.float32), found.target[order]
    return features[:1437], labels[:1437], features[1437:], labels[1437:]


def train(model: Model, rule: Rule, attack: str, rounds: int, clients: int = CLIENTS) -> list[float]:
    """The accuracies after every round."""
    features, labels, test, answers = data()
    rng = np.random.default_rng(1)
    flat = model.start(rng)
    hostile = 0 if attack == "none" else int(HOSTILE * clients)
    owned = np.stack([_owned(labels, rng) for _ in range(clients)])
    told = labels[owned]
    if attack == "labels":
        told[:hostile] = 9 - told[:hostile]
    history = []
    for number in range(rounds):
        with np.errstate(all="ignore"):
            updates = _attacked(attack, model.updates(flat, features[owned], told), hostile)
            moved = flat + rule(updates, number)
        flat = np.where(np.isfinite(moved), np.clip(moved, -1e6, 1e6), 0.0).astype(np.float32)
        with np.errstate(all="ignore"):
            history.append(model.accuracy(flat, test, answers))
    return history


def _owned(labels: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """The examples of one client, of a few classes."""
    own = np.flatnonzero(np.isin(labels, rng.choice(10, size=CLASSES, replace=False)))
    return rng.choice(own, size=EXAMPLES, replace=False)


def table(name: str, model: Model, rounds: int, attacks: Iterable[str], slow: bool) -> Mapping[str, list[float]]:
    """Prints and returns the accuracy of every rule under every attack."""
    rho = dpmedian.Ledger(epsilon=EPSILON, delta=DELTA, neighbours="add_remove").split(rounds)
    length = STEP * float(np.linalg.norm(model.start(np.random.default_rng(1))))
    signal = CLIENTS * np.sqrt(rho / model.d)
    print(
        f"{name}: {model.d:,} parameters, {CLIENTS:,} clients, {rounds} rounds, epsilon = {EPSILON:g}, delta {DELTA:g}"
    )
    print(f"rho of a round: {rho:.4f}; n sqrt(rho/d) = {signal:.2g}; a step of full agreement: {length:.3g}")
    first = model.updates(model.start(np.random.default_rng(1)), *_first_clients())
    units = first / np.linalg.norm(first, axis=1, keepdims=True)
    print(
        f"median length of the first updates: {np.median(np.linalg.norm(first, axis=1)):.3g}; "
        f"their coherence: {np.linalg.norm(units.mean(axis=0)):.2f}, which withstands a share of "
        f"{np.linalg.norm(units.mean(axis=0)) / (1 + np.linalg.norm(units.mean(axis=0))):.0%}"
    )
    try:
        dpmedian.plan(CLIENTS, model.d, rho=rho, neighbours="add_remove").refuse_if_hopeless()
        refused = "possible"
    except ValueError:
        refused = "refused before spending"
    print(f"the private median of a round: {refused}")
    attacks = list(attacks)
    print(f"{'':<34}" + "".join(f"{attack:>10}" for attack in attacks), flush=True)
    rules: dict[str, list[Callable[[], Rule]]] = {
        "private step": [private_step(rho, length, rounds)],
        "DP-FedAvg, best of five norms": [clipped_mean(rho, norm, rounds) for norm in NORMS],
        "FedAvg (not private)": [lambda: mean],
        **({"FedMedian (not private)": [lambda: median], "Krum (not private)": [lambda: krum]} if slow else {}),
    }
    found: dict[str, list[float]] = {}
    for title, candidates in rules.items():
        scores = np.array(
            [[float(np.mean(train(model, make(), attack, rounds)[-3:])) for attack in attacks] for make in candidates]
        )
        found[title] = scores.max(axis=0).tolist()
        print(f"{title:<34}" + "".join(f"{score:10.3f}" for score in found[title]), flush=True)
        if len(candidates) > 1:
            tuned = int(scores[:, 0].argmax())
            found[f"DP-FedAvg, norm {NORMS[tuned]:g}"] = scores[tuned].tolist()
            for norm, row in zip(NORMS, scores, strict=True):
                told = ", tuned without attack" if norm == NORMS[tuned] else ""
                print(f"{f'  norm {norm:g}{told}':<34}" + "".join(f"{score:10.3f}" for score in row), flush=True)
    return found


def _first_clients() -> tuple[Matrix, NDArray[np.int64]]:
    features, labels, _, _ = data()
    rng = np.random.default_rng(2)
    owned = np.stack([_owned(labels, rng) for _ in range(CLIENTS)])
    return features[owned], labels[owned]


def draw(found: Mapping[str, list[float]], title: str) -> None:
    """Bars of every rule, in groups of one attack."""
    import matplotlib.pyplot as plt

    shown = {name: row for name, row in found.items() if "best of five" not in name}
    colors = ("#b2182b", "#2171b5", "#7f8c9b", "#a6bddb", "#c7c7c7")
    figure, ax = plt.subplots(figsize=(7.2, 3.6), layout="constrained")
    width = 0.8 / len(shown)
    for index, ((name, row), color) in enumerate(zip(shown.items(), colors, strict=False)):
        ax.bar(np.arange(len(row)) + index * width - 0.4 + width / 2, row, width, label=name, color=color)
    ax.set_xticks(range(len(ATTACKS)), ["no attack", *ATTACKS[1:]])
    ax.set(ylabel="accuracy", ylim=(0, 1), title=title)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=3, frameon=False)
    figure.savefig("federated.png", dpi=100)


def cost(d: int, clients: int) -> None:
    """Processor seconds and peak memory of one round in a separate process, and those of a plain sum of singles."""
    made = [np.random.default_rng(k).normal(size=d).astype(np.float32) for k in range(max(3, 20_000_000 // d))]

    def arriving() -> Iterable[Vector]:
        return (made[k % len(made)] for k in range(clients))

    total, start = np.zeros(d, dtype=np.float32), time.process_time()
    for update in arriving():
        total += update
    plain = time.process_time() - start
    del total
    dpmedian.robust_step(np.ones((2, 10)), rho=0.5, n=2, seed=1)  # load what is loaded once
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    floor = _resident()
    start = time.process_time()
    dpmedian.robust_step(arriving(), d=d, rho=0.05, n=clients, seed=2)
    spent = time.process_time() - start
    peak = max(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, before) * 1024 - floor
    start = time.process_time()
    dpmedian.robust_step(iter(made[:1]), d=d, rho=0.05, n=clients, seed=2)
    noise = time.process_time() - start
    print(
        f"d = {d:>10,}, {clients:,} clients: plain sum {plain:.2f} s, step {spent:.2f} s (release {noise:.2f} s), "
        f"ratio {spent / plain:.2f}; peak memory {peak / d:.1f} bytes a parameter",
        flush=True,
    )


def _resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=("mlp", "cnn"), default="mlp")
    parser.add_argument("--slow", action="store_true", help="also the coordinate-wise median and Krum")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--attacks", nargs="*", choices=ATTACKS, default=ATTACKS)
    parser.add_argument("--quick", action="store_true", help="two rounds and two attacks")
    parser.add_argument("--cost", action="store_true", help="processor time and memory of a round")
    parser.add_argument("--of", nargs=2, type=int, metavar=("D", "CLIENTS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.of:
        dpmedian.set_threads(1)
        cost(*options.of)
    elif options.cost:
        for d, clients in ((10_000, 20) if options.quick else (1_000_000, 1000), (10_000_000, 100)):
            subprocess.run([sys.executable, __file__, "--of", str(d), str(clients)], check=True)
            if options.quick:
                break
    else:
        attacks = ATTACKS[:2] if options.quick else options.attacks
        model, rounds = MLP if options.model == "mlp" else CNN, 2 if options.quick else options.rounds
        found = table(options.model.upper(), model, rounds, attacks, options.slow)
        if tuple(attacks) == ATTACKS:
            draw(found, f"{model.d:,} parameters, a fifth of {CLIENTS:,} clients hostile, epsilon = {EPSILON:g}")


if __name__ == "__main__":
    main()
