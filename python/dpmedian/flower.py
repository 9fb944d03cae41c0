"""The private geometric median of the clients' updates as a Flower strategy (needs `dpmedian[flower]`).

>>> from dpmedian.flower import PrivateGeometricMedian
>>> strategy = PrivateGeometricMedian(rho=0.02, clients=3000)
>>> round(strategy.signal_to_noise(parameters=50), 1)  # n sqrt(rho/d): if it is several tens, the median is found
60.0
>>> strategy.method(parameters=50), strategy.method(parameters=1_000_000)
('median', 'step')
"""

from __future__ import annotations

import math
import secrets
import warnings
from collections.abc import Iterable
from logging import INFO, WARNING
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmedian.accounting import PrivacyCost
from dpmedian.dataset import Dataset
from dpmedian.dataset.arriving import Arriving
from dpmedian.dataset.reading import Reading
from dpmedian.flower_limits import refuse_if_hopeless
from dpmedian.flower_messages import arriving, flat, floating, measured, moved, updates
from dpmedian.flower_plans import RoundPlans, rho_of_round
from dpmedian.ledger import BudgetExceeded, Ledger
from dpmedian.planning.plan import Plan
from dpmedian.release import Release, ReleaseFailed
from dpmedian.sources.weights import WHOLE_WEIGHT
from dpmedian.step import Step
from dpmedian.stepping import taken_step
from dpmedian.steps.lengths import Lengths
from dpmedian.warning import LikelyFailureWarning

try:
    from flwr.app import ArrayRecord, ConfigRecord, Message, MessageType, MetricRecord, RecordDict
    from flwr.common.logger import log
    from flwr.serverapp import Grid
    from flwr.serverapp.strategy import FedAvg
    from flwr.serverapp.strategy.strategy_utils import sample_nodes
except ImportError as error:
    raise ImportError("dpmedian.flower needs Flower 1.22 or newer: pip install 'dpmedian[flower]'") from error

__all__ = ["PrivateGeometricMedian"]

# The share of each movement that is repeated. `benches/federated.py` prints how well training works with this share.
_MOMENTUM = 0.5

# In simulations the noisy median length has the seed of the step plus this number, so the two seeds differ.
_OTHER_SEED = 2**32


class PrivateGeometricMedian(FedAvg):  # type: ignore[misc, unused-ignore]
    """A Flower strategy that moves the model by a private geometric median of the updates of the clients.

    An update is the model that a client returns minus the model that the client received, flattened into one vector of
    d coordinates (arrays of floating-point numbers only). If fewer than half of all clients are hostile, they cannot
    move the median far away. The update of a client stays private. The server sees the updates, so it must be trusted.

    **Two ways to aggregate.** Let n be the number of clients in a round and rho its budget. If the signal n sqrt(rho/d)
    is several tens, the model moves by the private median of the updates. Otherwise it moves by a private robust step,
    the mean of the unit vectors of the updates. The noise of a step averages out over rounds, so models with millions
    of parameters can be trained. The coherence c is the length of the mean unit vector of the honest updates, which
    every round estimates. A step moves toward the honest mean if the share of hostile clients is below c/(1 + c).

    Parameters
    ----------
    rho, epsilon, delta : float, optional
        The budget of one round: rho, or epsilon and delta. There is no default.
    ledger : Ledger, optional
        The budget of all rounds, `Ledger(..., neighbours="add_remove", unit="client")`. If too little is left for a
        round, nothing is trained, and the model stays unchanged.
    rounds : int, optional
        The number of rounds that share the rest of the budget of the ledger, instead of a budget of one round.
    neighbours : {"add_remove", "replace"}
        Neighbors differ in one added or removed client (the default), or in one replaced client. Under "add_remove" the
        number of clients is private: clients that drop out are left out, and a noisy number of clients is released.
        Under "replace" the number is public, and a client that drops out counts as an update of zero.
    aggregate : {"auto", "median", "step"}
        How the model moves. "auto" takes the median if its predicted error is small enough, and otherwise steps.
    clients : int, optional
        Under "add_remove", a public guess of the number of clients that answer. Never count the clients for it. Without
        a guess "auto" takes steps. Under "replace" the clients are counted.
    radius : float, optional
        For medians: a public bound on the length of an update. Longer updates are shortened. A radius helps if there
        are few clients.
    threshold : float or "auto"
        For steps: updates shorter than this length have a weight proportional to their length; with 0 they count fully.
        "auto", the default, is 0.7 of the median length of the updates, which one noisy number per round tracks for a
        twentieth of its budget; updates longer than 1.5 of it count less. A number must be public.
    step_length : float or "auto"
        For steps: the distance that the model moves if all updates have one direction. "auto", the default, is 1.5
        times the tracked median length of the updates, and less if the noise is large. A number is a share of the
        length of the first model (1 if that model is zero). With `rounds` the steps shrink evenly, to zero at the end.
    momentum : float
        For steps: this share of the last velocity is added to the step, and updates are measured from the point to
        which the momentum alone would move the model.
    fraction_train : float
        The share of the connected nodes that take part in each round. Under "add_remove" each node is chosen with this
        probability, independently. The stated cost does not use this sampling.
    server_learning_rate : float
        The factor by which the median, or the velocity of steps, is multiplied before the model moves by it. As in
        FedAvgM, the velocity itself does not contain this factor.
    min_train_nodes, min_available_nodes, arrayrecord_key, configrecord_key
        As in `flwr.serverapp.strategy.FedAvg`.
    unit : str
        The name of a node in costs and ledgers.
    seed : int, optional
        Predictable noise, for simulations and tests, with an `InsecureSeedWarning`.

    Notes
    -----
    *Neighbors.* Two runs are neighbors if they differ in everything that one client (one node) sends in all rounds.
    *Sensitivity and cost.* Each round is a release of `dpmedian.geometric_median` or `dpmedian.robust_step` with one
    record per client, charged before the updates are read, and the costs of the rounds are added. A step reads each
    update once, and keeps a single sum and the length of each update. If the lengths are tracked, they are the records
    of a second robust step in one dimension, in which a client adds at most 1, too. Both steps together cost at most
    the budget of the round. The record of a client depends on its own reply only. A reply with wrong names, shapes or
    types, or with values that are not finite, counts as a drop-out. Only the first reply of a client counts. *Failure*:
    the model does not change, and the cost stays charged.

    Other values that clients report (losses, numbers of examples) are not used, because they would not be private. So
    updates are not weighted, and clients do not evaluate the model. Evaluate the model on the server by `evaluate_fn`.

    Under "add_remove", keep the log of Flower private: a round begins when `min_available_nodes` are connected, and
    until then Flower logs their exact number.
    """

    def __init__(
        self,
        *,
        rho: float | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        ledger: Ledger | None = None,
        rounds: int | None = None,
        neighbours: str = "add_remove",
        aggregate: str = "auto",
        clients: int | None = None,
        radius: float | None = None,
        threshold: float | str = "auto",
        step_length: float | str = "auto",
        momentum: float = _MOMENTUM,
        fraction_train: float = 1.0,
        server_learning_rate: float = 1.0,
        min_train_nodes: int = 2,
        min_available_nodes: int = 2,
        arrayrecord_key: str = "arrays",
        configrecord_key: str = "config",
        unit: str = "client",
        seed: int | None = None,
    ) -> None:
        rho = rho_of_round(ledger, rounds, rho, epsilon, delta)
        if not 0.0 < fraction_train <= 1.0:
            raise ValueError(f"fraction_train must lie in (0, 1], got {fraction_train}")
        if not math.isfinite(server_learning_rate) or server_learning_rate <= 0.0:
            raise ValueError(f"server_learning_rate must be positive, got {server_learning_rate}")
        if aggregate not in ("auto", "median", "step"):
            raise ValueError(f"aggregate must be 'auto', 'median' or 'step', got {aggregate!r}")
        if isinstance(threshold, str) and threshold != "auto":
            raise ValueError(f"threshold must be 'auto' or a public length of at least 0, got {threshold!r}")
        if step_length != "auto" and not (isinstance(step_length, (int, float)) and 0.0 < step_length < math.inf):
            raise ValueError(f"step_length must be 'auto' or a positive number, got {step_length!r}")
        if not 0.0 <= momentum < 1.0:
            raise ValueError(f"momentum must lie in [0, 1), got {momentum}")
        if ledger is not None and (ledger.neighbours, ledger.unit) != (neighbours, unit):
            raise ValueError(
                f"the ledger counts {ledger.unit}s under {ledger.neighbours!r} and the strategy {unit}s under "
                f"{neighbours!r}: create it with Ledger(..., neighbours={neighbours!r}, unit={unit!r})"
            )
        super().__init__(
            fraction_train=fraction_train,
            min_train_nodes=min_train_nodes,
            min_available_nodes=min_available_nodes,
            arrayrecord_key=arrayrecord_key,
            configrecord_key=configrecord_key,
        )
        self.fraction_evaluate = 0.0  # Values that clients would report have no noise.
        self.rho, self.epsilon, self.delta, self.radius = rho, epsilon, delta, radius
        self.ledger, self.neighbours, self.unit, self.clients, self.seed = ledger, neighbours, unit, clients, seed
        self.server_learning_rate = server_learning_rate
        self.aggregate, self.threshold, self.step_length, self.momentum = aggregate, threshold, step_length, momentum
        tracked = "auto" in (threshold, step_length)
        self._plans = RoundPlans(
            rho, epsilon, delta, radius, neighbours, unit, clients, aggregate, threshold, tracked=tracked
        )
        self.releases: list[Release | ReleaseFailed] = []
        self._model: ArrayRecord | None = None
        self._nodes: list[int] | None = None
        self._first_length: float | None = None
        self._velocity: NDArray[np.float64] | None = None
        self._lengths: Lengths | None = None
        self._followed: list[Step] = []
        self._rounds = rounds
        # This raises if arguments are wrong.
        self._plans.median(2 if clients is None and self._plans.public_number else clients, 1)
        self._plans.step(2, 1, None)

    def signal_to_noise(self, parameters: int) -> float:
        """The signal n sqrt(rho/d) for a model with this many parameters and the guessed number of clients."""
        return self._plans.signal_to_noise(parameters)

    def method(self, parameters: int, clients: int | None = None) -> str:
        """Whether a model of this size moves by a "median" or a "step", with this or the guessed number of clients."""
        return self._plans.method(parameters, clients)

    @property
    def cost(self) -> PrivacyCost | None:
        """The cost of all rounds so far together, or None before the first round."""
        costs = [release.cost for release in (*self.releases, *self._followed)]
        return sum(costs[1:], costs[0]) if costs else None

    def summary(self) -> None:
        """Log the configuration."""
        log(INFO, "\t├──> Private geometric median of the updates:")
        log(INFO, "\t│\t├── Neighbours: %s, the unit is a %s", self.neighbours, self.unit)
        log(INFO, "\t│\t└── Budget of a round: %s", self._plans.whole_step(2, 1).parameters.budget)
        super().summary()

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Choose clients for training, but none if too little is left. Raise an error if a release would be useless."""
        self._model, self._nodes = arrays, None
        nodes = self._choose(grid)
        start = flat(arrays)
        if self._first_length is None:
            self._first_length = float(np.linalg.norm(start)) or 1.0
            self._lengths = Lengths(self._first_length) if self._plans.tracked else None
        made = self._plans.of_round(len(nodes), start.size, self._lengths)
        if made.method != "robust_step":
            budget = {"rho": self.rho, "epsilon": self.epsilon, "delta": self.delta}
            refuse_if_hopeless(made, radius=self.radius, neighbours=self.neighbours, **budget)
        failure = made.prediction.failure
        if failure > made.parameters.failure_probability:
            log(
                WARNING,
                "configure_train: the release of this round is predicted to fail with probability %.2g",
                failure,
            )
        if self.ledger is not None:
            try:
                self.ledger.check(self._plans.cost(made))
            except BudgetExceeded as refused:
                log(WARNING, "configure_train: no client trains, and the model stays as it is: %s", refused)
                return []
        self._nodes = nodes
        log(INFO, "configure_train: asked %s nodes", len(nodes) if self._plans.public_number else "the chosen")
        config["server-round"] = server_round
        record = RecordDict({self.arrayrecord_key: arrays, self.configrecord_key: config})
        return self._construct_messages(record, nodes, MessageType.TRAIN)  # type: ignore[no-any-return, unused-ignore]

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Return the model moved by the private median or by the step, or the unchanged model if the release fails."""
        model, nodes = self._model, self._nodes
        if model is None or nodes is None:  # Too little is left in the ledger for this round.
            return None, None
        start = flat(model)
        made = self._plans.of_round(len(nodes), start.size, self._lengths)
        options: dict[str, Any] = {
            "ledger": self.ledger,
            "seed": None if self.seed is None else self.seed + server_round,
            "name": f"round {server_round}",
        }
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", LikelyFailureWarning)  # The warning came before the clients were asked.
                release: Release
                if made.method == "robust_step":
                    left = self._left(server_round)
                    release, movement = self._stepped(made, replies, model, start, nodes, left, options)
                else:
                    rows = updates(replies, model, start, nodes, only_there=not self._plans.public_number)
                    release = self._median(made, rows, options)
                    self.releases.append(release)
                    movement = release.point
        except BudgetExceeded as refused:
            log(WARNING, "aggregate_train: the model stays as it is: %s", refused)
            return model, None
        except ReleaseFailed as failed:
            self.releases.append(failed)
            log(WARNING, "aggregate_train: round %s failed and is charged; the model stays as it is", server_round)
            return model, self._metrics(None)
        return moved(model, self.server_learning_rate * movement), self._metrics(release)

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """Return None, because values that clients report have no noise."""
        return None

    def _median(self, made: Plan, updates: NDArray[np.float64], options: dict[str, Any]) -> Release:
        ids = range(len(updates))
        return made.run(updates, unit=ids, unit_reduce="first", progress=False, **options)  # Each client has one row.

    def _stepped(
        self,
        made: Plan,
        replies: Iterable[Message],
        model: ArrayRecord,
        start: NDArray[np.float64],
        nodes: list[int],
        left: float,
        options: dict[str, Any],
    ) -> tuple[Step, NDArray[np.float64]]:
        """Return the step of a round and the velocity. Each reply is read once and added to a single sum.

        Updates are measured from the point to which the model would move by its momentum alone.
        """
        again = None if self._velocity is None or self.momentum == 0.0 else self.momentum * self._velocity
        single = all(array.numpy().dtype == np.float32 for array in model.values() if floating(array))
        center = start if again is None else start + self.server_learning_rate * again
        public = len(nodes) if self._plans.public_number else None
        sent, lengths = arriving(replies, model, nodes), list[float]()
        if self._lengths is not None:
            sent = measured(sent, center, lengths, self._lengths.shortening if self.threshold == "auto" else None)
        records = Arriving(sent, start.size, public, self.unit)
        step = taken_step(
            made,
            Dataset(records, Reading(unit=self.unit)),
            center.astype(np.float32) if single and again is None else center,
            **options,
        )
        self.releases.append(step)
        self._follow(lengths, step.size if public is None else public, start.size, options)
        length = left * self._whole_length(step.noise_std * math.sqrt(start.size))
        movement = length * step.point if again is None else again + length * step.point
        self._velocity = movement if self.momentum > 0.0 else None
        return step, movement

    def _follow(self, lengths: list[float], size: int | None, d: int, options: dict[str, Any]) -> None:
        """Track the median length of the updates by a robust step in one dimension from the public guess."""
        if self._lengths is None or size is None or size < 2:
            return
        records = Arriving(((([np.array([x])]), WHOLE_WEIGHT) for x in lengths), 1, size, self.unit)
        seed = options["seed"]
        options = {
            "ledger": self.ledger,
            "seed": None if seed is None else seed + _OTHER_SEED,
            "name": f"{options['name']}, length",
        }
        try:
            made, data = self._plans.lengths(size, d), Dataset(records, Reading(unit=self.unit))
            found = taken_step(made, data, [self._lengths.guess], **options)
        except BudgetExceeded as refused:  # Another release has spent the budget since the round began.
            log(WARNING, "aggregate_train: the threshold stays as it is: %s", refused)
            return
        self._followed.append(found)
        self._lengths.follow(float(found.point[0]))

    def _whole_length(self, noise: float) -> float:
        """Return how far the model moves in the first round if all updates agree and the noise has this length."""
        if isinstance(self.step_length, str):
            return 0.0 if self._lengths is None else self._lengths.step(noise)
        return self.step_length * (self._first_length or 1.0)

    def _left(self, server_round: int) -> float:
        """Return the share of rounds that is left, including this round, or 1 if their number is not known."""
        return 1.0 if self._rounds is None else max(1.0 - (server_round - 1) / self._rounds, 0.0)

    def _choose(self, grid: Grid) -> list[int]:
        """Choose the nodes of a round. Under "add_remove" each node is chosen independently of the other nodes."""
        if self._plans.public_number:
            wanted = max(int(len(list(grid.get_node_ids())) * self.fraction_train), self.min_train_nodes)
            return sorted(sample_nodes(grid, self.min_available_nodes, wanted)[0])
        _, nodes = sample_nodes(grid, self.min_available_nodes, 1)
        coin = secrets.SystemRandom()
        return sorted(node for node in nodes if self.fraction_train == 1.0 or coin.random() < self.fraction_train)

    def _metrics(self, release: Release | None) -> MetricRecord:
        """Return the values that may be shown about a round: released values and costs."""
        shown: dict[str, int | float | list[int] | list[float]] = {"failed": float(release is None)}
        if self.cost is not None:
            shown["rho-spent"] = self.cost.rho
        if release is not None:
            values: dict[str, Any] = {"error-radius": release.error_radius, "scale": release.scale}
            if isinstance(release, Step):
                values |= {"coherence": release.coherence, "withstands": release.withstands}
            if isinstance(release, Step) and self._followed and self._lengths is not None:
                values |= {"length": self._lengths.guess}
            shown |= {name: float(value) for name, value in values.items() if value is not None}
        return MetricRecord(shown)
