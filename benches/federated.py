"""Trains models federatedly under privacy and attack, with Flower's strategies and messages and real digits.

    python benches/federated.py                 # all parts, as Markdown: docs/tables/federated.md
    python benches/federated.py mlp budgets     # parts: logistic, mlp, many, cnn, budgets, cost
    python benches/federated.py mlp --seeds 3   # means over three seeds, with the smallest and the largest value
    python benches/federated.py --keep FOLDER # keeps finished runs, so that an interrupted bench can go on after them
    python benches/federated.py --quick         # two rounds of everything: a check that it runs, not a measurement

Part `many` is the MLP with twice as many clients. Part `mlp` draws the accuracy over the rounds into federated.png.

Each client has ten of scikit-learn's handwritten digits, of five classes. 360 digits are held back as a test set. In
every round each client sends the model moved by the gradient of its examples. An aggregation rule receives these models
and returns the next model. Accuracies are means over the last three rounds, and over the seeds. A seed fixes the first
model, the clients' examples and the noise.

FedAvg, FedMedian, Krum and the private rules of this package are Flower strategies, which aggregate Flower messages.
Krum is told the number of hostile clients. FedMedian and Krum see 200 clients, because they take long. DP-FedAvg is the
mean of clipped updates with Gaussian noise. It is written here because it is better with steps that shrink from round
to round, which Flower does not have. All private rules spend the same rho in every round. All rounds together cost
epsilon at delta = 1e-5, under the relation in which one neighbor has one client more than the other. The private step
and the private median have the defaults of `dpmedian.flower.PrivateGeometricMedian`. DP-FedAvg knows the number of
clients, and the best of five clipping norms is chosen by the accuracy on the test set. Both favor DP-FedAvg.

A fifth of the clients is hostile. They know all honest updates and send:

* flip: their own update, reversed and ten times as long;
* reversed mean: the mean of the honest updates, reversed (inner-product manipulation), with its own length, ten times
  as long, or with the median length of the honest updates, at which no rule gives it a smaller weight;
* a little: the mean of the honest updates minus 0.3 standard deviations in every coordinate ("a little is enough");
* labels: the gradient for 9 minus the label.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import dpmedian

Vector = NDArray[np.float32]
Matrix = NDArray[np.float32]
Labels = NDArray[np.int64]

EXAMPLES, CLASSES, HOSTILE, DELTA = 10, 5, 0.2, 1e-5
# The clipping norms for DP-FedAvg. The length of a typical update is between the smallest and the largest of them.
NORMS = (0.1, 0.3, 1.0, 3.0, 10.0)
ATTACKS = (
    "none",
    "flip x 10",
    "reversed mean x 10",
    "reversed mean",
    "a little",
    "labels",
    "reversed mean, median length",
)


class Model(NamedTuple):
    """Shapes of the layers, the start, and the gradients of clients' examples."""

    shapes: tuple[tuple[int, ...], ...]
    forward: Callable[[list[Matrix], Matrix], tuple[Matrix, list[Matrix]]]
    backward: Callable[[list[Matrix], list[Matrix], Matrix, list[Matrix]], None]
    local_rate: float = 0.5

    @property
    def d(self) -> int:
        """The number of parameters."""
        return sum(int(np.prod(shape)) for shape in self.shapes)

    def start(self, rng: np.random.Generator) -> Vector:
        """Return normal weights with a variance of two divided by the number of inputs. Biases are zero, and so is a
        single layer.
        """
        if len(self.shapes) == 2:
            return np.zeros(self.d, dtype=np.float32)
        parts = [
            rng.normal(size=shape) * np.sqrt(2.0 / np.prod(shape[:-1])) if len(shape) > 1 else np.zeros(shape)
            for shape in self.shapes
        ]
        return np.concatenate([part.ravel() for part in parts]).astype(np.float32)

    def layers(self, flat: Matrix) -> list[Matrix]:
        """Return the layers of one model, or of several models if `flat` is a matrix with one model in each row,
        without a copy.
        """
        ends = np.cumsum([int(np.prod(shape)) for shape in self.shapes])[:-1]
        parts = np.split(flat, ends, axis=-1)
        return [part.reshape(flat.shape[:-1] + shape) for part, shape in zip(parts, self.shapes, strict=True)]

    def update(self, flat: Vector, features: Matrix, labels: Labels, made: Matrix) -> None:
        """Write minus the gradient of the examples of each client, of the shape (clients, examples, 64), to its row."""
        layers, clients = self.layers(flat), len(features)
        scores, seen = self.forward(layers, features.reshape(-1, 64))
        error = _softmax(scores)
        error[np.arange(len(error)), labels.ravel()] -= 1.0
        error *= -self.local_rate / features.shape[1]
        self.backward(layers, seen, error.reshape(clients, -1, 10), self.layers(made))

    def accuracy(self, flat: Vector, features: Matrix, labels: Labels) -> float:
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


def _dense_backward(layers: list[Matrix], seen: list[Matrix], error: Matrix, made: list[Matrix]) -> None:
    """Write the gradients of each client, from the last layer to the first."""
    for at in range(len(seen) - 1, -1, -1):
        _written(seen[at], error, made[2 * at : 2 * at + 2])
        if at > 0:
            error = _back(error, layers[2 * at], seen[at])


def _back(error: Matrix, weight: Matrix, seen: Matrix) -> Matrix:
    """Propagate the error of each client's examples back through a layer with this weight, whose inputs were
    rectified.
    """
    before = (error.reshape(-1, error.shape[-1]) @ weight.T).reshape(*error.shape[:-1], -1)
    before *= seen.reshape(before.shape) > 0.0
    return before


def _written(inputs: Matrix, error: Matrix, made: list[Matrix]) -> None:
    """Write the gradients of a layer's weight and bias, summed over the examples and places of each client."""
    inputs = inputs.reshape(len(error), -1, inputs.shape[-1])
    error = error.reshape(len(error), -1, error.shape[-1])
    np.matmul(inputs.transpose(0, 2, 1), error, out=made[0])
    np.sum(error, axis=1, out=made[1])


LOGISTIC = Model(((64, 10), (10,)), _dense_forward, _dense_backward)
MLP = Model(((64, 256), (256,), (256, 64), (64,), (64, 10), (10,)), _dense_forward, _dense_backward)

# The network has two convolutions of 3 x 3, the second with a stride of two, computed as products with patches, and
# then two dense layers.
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
    return scores, [first, hidden, second, *dense]


def _cnn_backward(layers: list[Matrix], seen: list[Matrix], error: Matrix, made: list[Matrix]) -> None:
    (first, hidden, second), dense = seen[:3], seen[3:]
    _dense_backward(layers[4:], dense, error, made[4:])
    clients, n = len(error), len(first)
    error = _back(_back(error, layers[6], dense[1]), layers[4], dense[0]).reshape(clients, -1, CHANNELS[1])
    _written(second, error, made[2:4])
    patches = (error.reshape(-1, CHANNELS[1]) @ layers[2].T).reshape(n, 4, 4, 3, 3, CHANNELS[0])
    spread = np.zeros((n, 10, 10, CHANNELS[0]), dtype=np.float32)
    for i in range(3):
        for j in range(3):
            spread[:, i : i + 8 : 2, j : j + 8 : 2] += patches[:, :, :, i, j]
    error = spread[:, 1:9, 1:9].reshape(n, 64, CHANNELS[0]) * (hidden > 0.0)
    _written(first, error.reshape(clients, -1, CHANNELS[0]), made[:2])


CNN = Model(((9, 16), (16,), (144, 32), (32,), (512, 200), (200,), (200, 10), (10,)), _cnn_forward, _cnn_backward)

# A rule gets the model, the models that the clients send, and the number of the round from 0, and returns the next
# model.
Rule = Callable[[Vector, Matrix, int], Vector]


class Setting(NamedTuple):
    """The conditions of training, which are the same for all rules."""

    model: Model
    clients: int = 1000
    epsilon: float = 8.0
    rounds: int = 20

    @property
    def rho(self) -> float:
        """The budget of one round."""
        return dpmedian.Ledger(epsilon=self.epsilon, delta=DELTA, neighbours="add_remove").split(self.rounds)

    @property
    def hostile(self) -> int:
        return int(HOSTILE * self.clients)


def clipped_mean(norm: float, setting: Setting, seed: int) -> Rule:
    """Return the rule DP-FedAvg: the mean of updates clipped to a norm, with Gaussian noise. Its steps shrink
    evenly.
    """
    deviation = norm / np.sqrt(2.0 * setting.rho)

    def rule(flat: Vector, sent: Matrix, number: int) -> Vector:
        updates = np.subtract(
            sent, flat, out=sent
        )  # The memory of `sent` is reused, because the models are not needed any more.
        shares = np.minimum(norm / np.maximum(np.sqrt(np.einsum("ij,ij->i", updates, updates)), 1e-30), 1.0)
        noise = deviation * np.random.default_rng([seed, number]).normal(size=flat.size)
        left = 1.0 - number / setting.rounds
        return np.asarray(flat + left * (shares @ updates + noise) / len(sent), dtype=np.float32)

    return rule


def flower(make: Callable[..., Any], setting: Setting, seed: int) -> Rule:
    """The rule of a Flower strategy, with Flower's messages."""
    from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
    from flwr.supercore.task_identity import TaskIdentity

    # Flower's runtime sets these values, and a message needs them.
    TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1
    strategy = make(setting, seed)
    metrics = MetricRecord({"num-examples": EXAMPLES})

    class Nodes:
        """All nodes are connected."""

        def get_node_ids(self) -> Iterable[int]:
            return range(1, setting.clients + 1)

    def rule(flat: Vector, sent: Matrix, number: int) -> Vector:
        model = ArrayRecord({"model": Array(flat)})
        asked = strategy.configure_train(number + 1, model, ConfigRecord(), Nodes())
        replies = []
        for message in asked:
            record = ArrayRecord({"model": Array(sent[message.metadata.dst_node_id - 1])})
            replies.append(Message(RecordDict({"arrays": record, "metrics": metrics}), reply_to=message))
        arrays, _ = strategy.aggregate_train(number + 1, replies)
        return np.asarray(arrays["model"].numpy(), dtype=np.float32)

    return rule


def private(aggregate: str, setting: Setting, seed: int) -> Any:
    """The strategy of this package, with its defaults."""
    from dpmedian.flower import PrivateGeometricMedian

    ledger = dpmedian.Ledger(epsilon=setting.epsilon, delta=DELTA, neighbours="add_remove", unit="client")
    guess = setting.clients if aggregate == "median" else None
    return PrivateGeometricMedian(
        ledger=ledger, rounds=setting.rounds, aggregate=aggregate, clients=guess, seed=1000 * seed
    )


def public(name: str, setting: Setting, seed: int) -> Any:
    """One of Flower's strategies without privacy."""
    from flwr.serverapp import strategy

    arguments = {"num_malicious_nodes": setting.hostile} if name == "Krum" else {}
    return getattr(strategy, name)(**arguments)


STEP = partial(flower, partial(private, "step"))
CLIPPED = {f"DP-FedAvg, norm {norm:g}": partial(clipped_mean, norm) for norm in NORMS}
PRIVATE = {"private step": STEP, "private median": partial(flower, partial(private, "median")), **CLIPPED}
FEDAVG = {"FedAvg, not private": partial(flower, partial(public, "FedAvg"))}
# FedMedian sorts every coordinate, and Krum compares all pairs of updates, so they see fewer clients.
FEW = 200
SLOW = {
    f"{name} of {FEW} clients, not private": partial(flower, partial(public, name)) for name in ("FedMedian", "Krum")
}


@cache
def data() -> tuple[Matrix, Labels, Matrix, Labels]:
    """Features and labels of 1,437 digits to train with, and of 360 to test."""
    from sklearn.datasets import load_digits

    found = load_digits()
    order = np.random.default_rng(0).permutation(len(found.target))
    features, labels = (found.data[order] / 16.0).astype(np.float32), found.target[order]
    return features[:1437], labels[:1437], features[1437:], labels[1437:]


def owned(clients: int, rng: np.random.Generator) -> tuple[Matrix, Labels]:
    """The examples of every client, of a few classes."""
    features, labels, _, _ = data()
    chosen = [np.flatnonzero(np.isin(labels, rng.choice(10, size=CLASSES, replace=False))) for _ in range(clients)]
    rows = np.stack([rng.choice(own, size=EXAMPLES, replace=False) for own in chosen])
    return features[rows], labels[rows]


def attack(name: str, updates: Matrix, hostile: int) -> None:
    """Replace the updates of the first clients by hostile updates. For "labels", their updates are already hostile."""
    honest = updates[hostile:]
    if name == "flip x 10":
        updates[:hostile] *= -10.0
    elif name == "reversed mean, median length":
        mean = honest.mean(axis=0)
        updates[:hostile] = -np.median(np.linalg.norm(honest, axis=1)) / max(np.linalg.norm(mean), 1e-30) * mean
    elif name.startswith("reversed mean"):
        updates[:hostile] = (-10.0 if name.endswith("x 10") else -1.0) * honest.mean(axis=0)
    elif name == "a little":
        updates[:hostile] = honest.mean(axis=0) - 0.3 * honest.std(axis=0)


@cache
def room(clients: int, d: int) -> Matrix:
    """The memory of all updates, which is used again in every round."""
    return np.empty((clients, d), dtype=np.float32)


# The folder in which finished runs are kept, if there is one. The name of a run does not contain the version of the
# package.
KEPT: list[Path] = []


def run(setting: Setting, title: str, make: Callable[[Setting, int], Rule], name: str, seed: int) -> list[float]:
    """Return the accuracies after every round, computed or read from a finished run."""
    told = f"{setting.model.d}-{setting.clients}-{setting.epsilon:g}-{setting.rounds}-{title}-{name}-{seed}.json"
    for file in (folder / told.replace(" ", "_") for folder in KEPT):
        if not file.exists():
            file.write_text(json.dumps(train(setting, make(setting, seed), name, seed)), encoding="utf-8")
        return [float(value) for value in json.loads(file.read_text("utf-8"))]
    return train(setting, make(setting, seed), name, seed)


def train(setting: Setting, rule: Rule, name: str, seed: int) -> list[float]:
    """The accuracies after every round."""
    model, rng = setting.model, np.random.default_rng([seed, 7])
    _, _, test, answers = data()
    flat = model.start(rng)
    features, labels = owned(setting.clients, rng)
    hostile = 0 if name == "none" else setting.hostile
    if name == "labels":
        labels[:hostile] = 9 - labels[:hostile]
    sent, history = room(setting.clients, model.d), []
    for number in range(setting.rounds):
        with np.errstate(all="ignore"):
            model.update(flat, features, labels, sent)
            attack(name, sent, hostile)
            sent += flat
            # A model that an attack has destroyed stays finite, so that training can go on.
            flat = np.clip(np.nan_to_num(rule(flat, sent, number)), -1e6, 1e6)
            history.append(model.accuracy(flat, test, answers))
    return history


# The accuracy after every round, with one row for each seed, of every rule under every attack.
Curves = dict[str, dict[str, NDArray[np.float64]]]


def measured(setting: Setting, rules: Mapping[str, Any], attacks: Sequence[str], seeds: int) -> Curves:
    """The accuracies of every rule under every attack; a rule that refuses has none."""
    found: Curves = {title: {} for title in rules}
    for title, make in rules.items():
        its = setting._replace(clients=FEW) if title in SLOW else setting
        for name in attacks:
            start = time.process_time()
            try:
                runs = [run(its, title, make, name, seed) for seed in range(1, seeds + 1)]
            except (
                ValueError
            ) as refused:  # The private median refuses a model that is too large, before anything is spent.
                if "too few for the median" not in str(refused):
                    raise
                break
            found[title][name] = np.array(runs)
            print(f"{title}, {name}: {time.process_time() - start:.1f} s", file=sys.stderr, flush=True)
    return found


def last(curves: Mapping[str, NDArray[np.float64]], attacks: Sequence[str]) -> list[NDArray[np.float64]]:
    """The accuracies of all seeds at the end of training under every attack."""
    return [curves[name][:, -3:].mean(axis=1) for name in attacks]


def best(found: Curves, attacks: Sequence[str]) -> list[NDArray[np.float64]]:
    """The accuracies of DP-FedAvg with the clipping norm that has the best mean under each attack."""
    return [max((last(found[title], [name])[0] for title in CLIPPED), key=np.mean) for name in attacks]


def tuned(found: Curves) -> str:
    """The clipping norm that is the best without an attack."""
    return max(CLIPPED, key=lambda title: float(np.mean(last(found[title], ["none"]))))


def row(cells: Iterable[Any]) -> None:
    print("| " + " | ".join(cell if isinstance(cell, str) else _cell(cell) for cell in cells) + " |")


def _cell(scores: NDArray[np.float64]) -> str:
    """The mean, and if there are several seeds the smallest and the largest value."""
    several = f" ({min(scores):.2f}-{max(scores):.2f})" if len(scores) > 1 else ""
    return f"{np.mean(scores):.3f}{several}"


def header(cells: Sequence[str], texts: int = 1) -> None:
    row(cells)
    print("|" + "---|" * texts + "---:|" * (len(cells) - texts))


def table(title: str, setting: Setting, attacks: Sequence[str], seeds: int, rules: Mapping[str, Any]) -> Curves:
    """Print and return the accuracy of the rules under every attack."""
    found = measured(setting, rules, attacks, seeds)
    signal = setting.clients * np.sqrt(setting.rho / setting.model.d)
    print(f"### {title}: {setting.model.d:,} parameters\n")
    print(
        f"{setting.clients:,} clients, {setting.rounds} rounds, epsilon = {setting.epsilon:g}; rho of a round: "
        f"{setting.rho:.4f}, n sqrt(rho/d) = {signal:.2g}. {_told(seeds)}.\n"
    )
    header(["rule", *(name if name != "none" else "no attack" for name in attacks)])
    for rule, curves in found.items():
        if rule == next(iter(CLIPPED)):
            row(["DP-FedAvg, best norm of each column", *best(found, attacks)])
        told = ", the best without attack" if rule == tuned(found) else ""
        row([rule + told, *(last(curves, attacks) if curves else ["refused"] * len(attacks))])
    print(flush=True)
    return found


def _told(seeds: int) -> str:
    return "One seed" if seeds == 1 else f"Means over {seeds} seeds, with the smallest and the largest value"


def budgets(rounds: int, seeds: int) -> None:
    """Print the accuracy of private rules for other budgets and other numbers of clients."""
    attacks = ATTACKS[:2]
    print(f"### Other budgets and numbers of clients: the MLP\n\n{_told(seeds)}.\n")
    header(["clients", "epsilon", "rule", "no attack", *attacks[1:]], 3)
    for clients, epsilon in ((200, 8.0), (1000, 2.0), (1000, 4.0)):
        setting = Setting(MLP, clients, epsilon, rounds)
        found = measured(setting, {"private step": STEP, **CLIPPED}, attacks, seeds)
        told = [f"{clients:,}", f"{epsilon:g}"]
        row([*told, "private step", *last(found["private step"], attacks)])
        row([*told, "DP-FedAvg, best norm of each column", *best(found, attacks)])
    print(flush=True)


def draw(found: Curves, title: str) -> None:
    """The accuracy over the rounds, with one picture for each attack."""
    import matplotlib.pyplot as plt

    shown = {
        "private step": ("private step", "#b2182b", "-"),
        tuned(found): (tuned(found) + " (best of five)", "#2171b5", "-"),
    }
    for rule, color in zip([*FEDAVG, *SLOW], ("#7f8c9b", "#4d9221", "#b8860b"), strict=True):
        shown[rule] = (rule, color, "--")
    figure, axes = plt.subplots(2, 3, figsize=(8.4, 5.2), layout="constrained", sharex=True, sharey=True)
    for ax, name in zip(axes.flat, ATTACKS[:6], strict=True):
        for rule, (label, color, style) in shown.items():
            curve = found[rule][name].mean(axis=0)
            ax.plot(range(1, len(curve) + 1), curve, color=color, linestyle=style, label=label)
        ax.set_title("no attack" if name == "none" else name, fontsize=10)
        ax.set_ylim(0, 1)
    for ax in axes[1]:
        ax.set_xlabel("round")
    for ax in axes[:, 0]:
        ax.set_ylabel("accuracy")
    figure.suptitle(title)
    figure.legend(*axes.flat[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    figure.savefig("federated.png", dpi=100)


def costs(quick: bool) -> None:
    """Print processor time and memory of rounds, each measured in a process of its own."""
    print("### Cost of a round\n")
    print("Processor time of one thread, the least of five runs, beside the plain sum of the same updates in single")
    print("precision. The memory of a step is the peak beyond that of the updates.\n")
    header(["parameters", "clients", "plain sum, s", "step, s", "of which release, s", "ratio", "bytes a parameter"], 2)
    # Freed memory is returned to the system, so that memory of earlier arrays does not count as memory of the step.
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536"}
    for d, clients in ((10_000, 20),) if quick else ((1_000_000, 1000), (10_000_000, 200)):
        subprocess.run([sys.executable, __file__, "--of", str(d), str(clients)], check=True, env=environment)
    print(flush=True)


def cost(d: int, clients: int) -> None:
    """Print the processor seconds of a plain sum and of a step, the least of five runs, and the memory of the step."""
    made = [np.random.default_rng(k).normal(size=d).astype(np.float32) for k in range(max(3, 20_000_000 // d))]

    def arriving(count: int) -> Iterable[Vector]:
        return (made[k % len(made)] for k in range(count))

    def plain() -> None:
        total = np.zeros(d, dtype=np.float32)
        for update in arriving(clients):
            total += update

    def step(count: int) -> None:
        dpmedian.robust_step(arriving(count), d=d, rho=0.05, n=clients, seed=2)

    def seconds(work: Callable[[], None]) -> float:
        start = time.process_time()
        work()
        return time.process_time() - start

    dpmedian.robust_step(np.ones((2, 10)), rho=0.5, n=2, seed=1)  # load what is loaded once
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")  # This resets the peak.
    floor = _resident("VmRSS")
    step(clients)
    peak = _resident("VmHWM") - floor
    runs = [(seconds(plain), seconds(lambda: step(clients)), seconds(lambda: step(1))) for _ in range(5)]
    sum_, whole, release = np.min(runs, axis=0)
    times = (f"{sum_:.2f}", f"{whole:.2f}", f"{release:.2f}", f"{whole / sum_:.1f}")
    row([f"{d:,}", f"{clients:,}", *times, f"{peak / d:.1f}"])


def _resident(name: str) -> int:
    """The bytes that the process has in memory, now or at most."""
    with open("/proc/self/status", encoding="ascii") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith(name))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = ("logistic", "mlp", "many", "cnn", "budgets", "cost")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(parts)}; all of them by default")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep finished runs there; empty it after changes")
    parser.add_argument(
        "--quick", action="store_true", help="two rounds, one seed and two attacks: a check that it runs"
    )
    parser.add_argument("--of", nargs=2, type=int, metavar=("D", "CLIENTS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not set(options.parts) <= set(parts):
        parser.error(f"the parts are {', '.join(parts)}")
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    if options.of:
        dpmedian.set_threads(1)
        cost(*options.of)
        return
    if options.keep is not None:
        options.keep.mkdir(parents=True, exist_ok=True)
        KEPT.append(options.keep)
    chosen = options.parts or parts
    rounds, seeds = (2, 1) if options.quick else (options.rounds, options.seeds)
    attacks = ATTACKS[:2] if options.quick else ATTACKS
    # The network with convolutions has few clients, because its updates take the most memory and time.
    settings = {
        "logistic": ("Logistic regression", Setting(LOGISTIC), attacks),
        "mlp": ("MLP", Setting(MLP), attacks),
        "many": ("MLP with many clients", Setting(MLP, 2000), [*attacks[:3], *attacks[4:5]]),
        "cnn": ("Convolutional network", Setting(CNN, 500), attacks),
    }
    for part in chosen:
        if part == "budgets":
            budgets(rounds, seeds)
        elif part == "cost":
            costs(options.quick)
        else:
            title, setting, under = settings[part]
            setting = setting._replace(rounds=rounds)
            rules = {"logistic": PRIVATE, "many": {**PRIVATE, **FEDAVG}}.get(part, {**PRIVATE, **FEDAVG, **SLOW})
            found = table(title, setting, under, seeds, rules)
            if part == "mlp" and not options.quick:
                draw(
                    found,
                    f"{setting.model.d:,} parameters, a fifth of {setting.clients:,} clients hostile, epsilon = 8",
                )


if __name__ == "__main__":
    main()
