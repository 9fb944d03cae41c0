"""The private geometric median of the clients' updates as a Flower strategy (needs `dpmedian[flower]`).

>>> from dpmedian.flower import PrivateGeometricMedian
>>> strategy = PrivateGeometricMedian(rho=0.02, clients=3000)
>>> round(strategy.signal_to_noise(parameters=50), 1)  # n sqrt(rho/d): some tens are fine, near one all is noise
60.0
"""

from __future__ import annotations

import math
import secrets
import warnings
from collections.abc import Iterable, Mapping
from logging import INFO, WARNING
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmedian.accounting import PrivacyCost
from dpmedian.api import plan, required_n
from dpmedian.ledger import BudgetExceeded, Ledger
from dpmedian.parameters import whole
from dpmedian.planning.plan import Plan
from dpmedian.release import Release, ReleaseFailed
from dpmedian.warning import LikelyFailureWarning

try:
    from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MessageType, MetricRecord, RecordDict
    from flwr.common.logger import log
    from flwr.serverapp import Grid
    from flwr.serverapp.strategy import FedAvg
    from flwr.serverapp.strategy.strategy_utils import sample_nodes
except ImportError as error:
    raise ImportError("dpmedian.flower needs Flower 1.22 or newer: pip install 'dpmedian[flower]'") from error

__all__ = ["PrivateGeometricMedian"]

# The excess for which an error message says how many clients it would take.
_USEFUL_EXCESS = 0.01


class PrivateGeometricMedian(FedAvg):  # type: ignore[misc, unused-ignore]
    """A Flower strategy that moves the model by a private geometric median of the clients' updates.

    An update is what a client sends back minus what it was sent, all arrays of floating-point numbers flattened into
    one vector of d coordinates. Hostile clients, up to nearly a half, cannot pull the median far away, and no client's
    update shows. The server sees the updates: it is trusted, as in Flower's own central differential privacy.

    **The limit is n sqrt(rho/d)**, n clients a round and rho the budget of a round: some tens or more are fine, near
    one everything is noise, and no clipping bound, learning rate or patience changes that. A model with a million
    parameters needs tens of thousands of clients a round. So train few parameters: the last layer over a public
    backbone, low-rank adapters, or a public random projection of the update to some hundred coordinates. What cannot
    work is refused before any client trains, with the number of clients that it would take.

    Parameters
    ----------
    rho, epsilon, delta : float, optional
        The budget of one round: rho, or epsilon and delta. There is no default.
    ledger : Ledger, optional
        The budget of all rounds, `Ledger(..., neighbours="add_remove", unit="client")`. A round that does not fit is
        not trained, and the model stays as it is.
    rounds : int, optional
        In place of a budget of one round: `ledger.split(rounds)`, so that this many rounds share what the ledger has
        left.
    neighbours : {"add_remove", "replace"}
        Whether a neighbour has one client more or less, the default, or one client replaced by another. Under
        "add_remove" the number of clients is private: drop-outs are left out, and the number is released with noise.
        Under "replace" it is public: whoever drops out counts as an update of zero.
    clients : int, optional
        Under "add_remove" a public guess of the number of clients that answer, never counted; without one nothing can
        be refused beforehand. Under "replace" they are counted.
    radius : float, optional
        A public bound on the length of an update; longer ones are shortened to it. Not needed, but it helps few
        clients.
    fraction_train : float
        The share of the connected nodes that is asked in each round. Under "add_remove" every node is asked with this
        probability, independently. The cost is stated without regard to it.
    server_learning_rate : float
        How much of the median the model moves by.
    min_train_nodes, min_available_nodes, arrayrecord_key, configrecord_key
        As in `flwr.serverapp.strategy.FedAvg`.
    unit : str
        What a node is called in costs and ledgers.
    seed : int, optional
        Predictable noise, for simulations and tests, with an `InsecureSeedWarning`.

    Notes
    -----
    *Neighbours.* Runs that differ in all that one client (one node) sends in all rounds. *Sensitivity and cost.* Each
    round is a release of `dpmedian.geometric_median` of one record per client, charged before the updates are looked
    at; rounds compose. What a client sends is turned into its record by itself: with wrong names, shapes or types, with
    values that are not finite, or not at all, it counts as a drop-out, and of several replies one counts. *Failure*
    keeps the model, and stays charged.

    What clients report besides their arrays (losses, numbers of examples) is neither used nor aggregated, since none of
    it would be private: updates are not weighted, and there is no evaluation on clients. Evaluate on the server, with
    public data, through `evaluate_fn`.

    Under "add_remove" Flower's own waiting is not private: a round begins once `min_available_nodes` are connected, and
    until then Flower logs how many are. Keep that log to those who run the server.
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
        clients: int | None = None,
        radius: float | None = None,
        fraction_train: float = 1.0,
        server_learning_rate: float = 1.0,
        min_train_nodes: int = 2,
        min_available_nodes: int = 2,
        arrayrecord_key: str = "arrays",
        configrecord_key: str = "config",
        unit: str = "client",
        seed: int | None = None,
    ) -> None:
        if rounds is None and ledger is not None and (rho, epsilon, delta) == (None, None, None):
            raise ValueError(
                "a ledger is the budget of all rounds: say how many share it, rounds=..., or the budget of one, rho=..."
            )
        if rounds is not None:
            if ledger is None or (rho, epsilon, delta) != (None, None, None):
                raise ValueError(
                    f"rounds = {rounds} shares what a ledger has left: pass it with ledger= and without rho, epsilon "
                    "and delta"
                )
            if whole("rounds", rounds) < 1:
                raise ValueError(f"rounds must be at least 1, got {rounds}")
            rho = ledger.split(rounds)
            if rho == 0.0:
                raise ValueError("nothing is left in the ledger that rounds could share")
        if not 0.0 < fraction_train <= 1.0:
            raise ValueError(f"fraction_train must lie in (0, 1], got {fraction_train}")
        if not math.isfinite(server_learning_rate) or server_learning_rate <= 0.0:
            raise ValueError(f"server_learning_rate must be positive, got {server_learning_rate}")
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
        self.fraction_evaluate = 0.0  # What clients would report is not private.
        self.rho, self.epsilon, self.delta, self.radius = rho, epsilon, delta, radius
        self.ledger, self.neighbours, self.unit, self.clients, self.seed = ledger, neighbours, unit, clients, seed
        self.server_learning_rate = server_learning_rate
        self.releases: list[Release | ReleaseFailed] = []
        self._model: ArrayRecord | None = None
        self._asked: list[int] | None = None
        self._plan_of(2 if clients is None and neighbours == "replace" else clients, 1)  # wrong arguments raise here

    def signal_to_noise(self, parameters: int) -> float:
        """The number n sqrt(rho/d) of a model with so many parameters, for the guessed number of clients."""
        if self.clients is None:
            raise ValueError("clients is not given, so n sqrt(rho/d) is not known")
        return self.clients * math.sqrt(self._plan_of(self.clients, parameters).cost.rho / parameters)

    @property
    def cost(self) -> PrivacyCost | None:
        """What all rounds so far cost together; None before the first."""
        costs = [release.cost for release in self.releases]
        return sum(costs[1:], costs[0]) if costs else None

    def summary(self) -> None:
        """Logs the configuration."""
        log(INFO, "\t├──> Private geometric median of the updates:")
        log(INFO, "\t│\t├── Neighbours: %s, the unit is a %s", self.neighbours, self.unit)
        log(INFO, "\t│\t└── Budget of a round: %s", self._plan_of(self.clients or 1000, 1).parameters.budget)
        super().summary()

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Asks clients to train, unless the release could not work (an error) or would not fit the ledger (nobody)."""
        self._model, self._asked = arrays, None
        nodes = self._choose(grid)
        made = self._plan_of(len(nodes) if self.neighbours == "replace" else self.clients, _flat(arrays).size)
        self._refuse_if_hopeless(made)
        failure = made.prediction.failure
        if failure > made.parameters.failure_probability:
            log(
                WARNING,
                "configure_train: the release of this round is predicted to fail with probability %.2g",
                failure,
            )
        if self.ledger is not None:
            try:
                self.ledger.check(made.cost)
            except BudgetExceeded as refused:
                log(WARNING, "configure_train: nobody is asked, the model stays as it is: %s", refused)
                return []
        self._asked = nodes
        log(INFO, "configure_train: asked %s nodes", len(nodes) if self.neighbours == "replace" else "the chosen")
        config["server-round"] = server_round
        record = RecordDict({self.arrayrecord_key: arrays, self.configrecord_key: config})
        return self._construct_messages(record, nodes, MessageType.TRAIN)  # type: ignore[no-any-return, unused-ignore]

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """The model moved by the private median of the updates, or as it was where the release fails."""
        model, asked = self._model, self._asked
        if model is None or asked is None:  # The ledger cannot pay for this round.
            return None, None
        start = _flat(model)
        updates = self._updates(replies, model, start, asked)
        made = self._plan_of(len(updates) if self.neighbours == "replace" else self.clients, start.size)
        seed = None if self.seed is None else self.seed + server_round
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", LikelyFailureWarning)  # said before the clients were asked
                release = made.run(
                    updates,
                    unit=range(len(updates)),
                    unit_reduce="first",  # there is one row of each
                    ledger=self.ledger,
                    seed=seed,
                    name=f"round {server_round}",
                    progress=False,
                )
        except BudgetExceeded as refused:
            log(WARNING, "aggregate_train: the model stays as it is: %s", refused)
            return model, None
        except ReleaseFailed as failed:
            self.releases.append(failed)
            log(WARNING, "aggregate_train: round %s failed and is charged; the model stays as it is", server_round)
            return model, self._metrics(None)
        self.releases.append(release)
        return _moved(model, self.server_learning_rate * release.point), self._metrics(release)

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """None: what clients report about themselves is not private."""
        return None

    def _plan_of(self, n: int | None, d: int) -> Plan:
        return plan(
            n,
            d,
            rho=self.rho,
            epsilon=self.epsilon,
            delta=self.delta,
            radius=self.radius,
            neighbours=self.neighbours,
            unit=self.unit,
        )

    def _choose(self, grid: Grid) -> list[int]:
        """The nodes of a round. With neighbours that have one client more, each must be chosen on its own."""
        if self.neighbours == "replace":
            wanted = max(int(len(list(grid.get_node_ids())) * self.fraction_train), self.min_train_nodes)
            return sorted(sample_nodes(grid, self.min_available_nodes, wanted)[0])
        _, nodes = sample_nodes(grid, self.min_available_nodes, 1)
        coin = secrets.SystemRandom()
        return sorted(node for node in nodes if self.fraction_train == 1.0 or coin.random() < self.fraction_train)

    def _refuse_if_hopeless(self, made: Plan) -> None:
        try:
            made.refuse_if_hopeless()
        except ValueError as refused:
            n, d, rho = made.n or 0, made.d, made.cost.rho  # what is refused has a number of clients
            try:
                least = required_n(
                    d,
                    excess=_USEFUL_EXCESS,
                    rho=self.rho,
                    epsilon=self.epsilon,
                    delta=self.delta,
                    radius=self.radius,
                    neighbours=self.neighbours,
                )
                needed = f"{least:,} clients a round would do (dpmedian.required_n, excess {_USEFUL_EXCESS:g})"
            except ValueError:
                needed = "no number of clients would do"
            raise ValueError(
                f"{n:,} clients a round are too few for a model of {d:,} parameters at rho = {rho:.3g} a round: "
                f"n sqrt(rho/d) = {n * math.sqrt(rho / d):.2g}, and {needed}. Train fewer parameters (the last "
                "layer, an adapter, a random projection of the update), ask more clients, or spend more."
            ) from refused

    def _updates(
        self, replies: Iterable[Message], model: ArrayRecord, start: NDArray[np.float64], asked: list[int]
    ) -> NDArray[np.float64]:
        """One row per client: its update, made of its own first reply alone. Others have no row, or one of zeros."""
        rows: dict[int, NDArray[np.float64]] = {}
        chosen = set(asked)
        for message in replies:
            node = message.metadata.src_node_id
            sent = None if node in rows or node not in chosen else self._sent(message, model)
            if sent is None:
                continue
            with np.errstate(all="ignore"):
                update = sent - start
            if np.all(np.isfinite(update)):
                rows[node] = update
        zero = np.zeros_like(start)
        if self.neighbours == "replace":
            return np.array([rows.get(node, zero) for node in asked])
        return np.array([rows[node] for node in sorted(rows)]).reshape(len(rows), start.size)

    def _sent(self, message: Message, model: ArrayRecord) -> NDArray[np.float64] | None:
        """The flattened arrays of a reply, or None where they are not of the model's names and shapes."""
        try:
            if message.has_error():
                return None
            (record,) = message.content.array_records.values()
            if set(record) != set(model):
                return None
            arrays = {key: record[key].numpy() for key in model}
            if any(arrays[key].shape != array.numpy().shape for key, array in model.items()):
                return None
            if any(arrays[key].dtype.kind not in "fiu" for key in model):
                return None
            return _flat(record, like=model)
        except Exception:  # A client may send anything; whatever is wrong with it concerns this client alone.
            return None

    def _metrics(self, release: Release | None) -> MetricRecord:
        """What may be shown of a round: released values and costs only."""
        shown: dict[str, int | float | list[int] | list[float]] = {"failed": float(release is None)}
        if self.cost is not None:
            shown["rho-spent"] = self.cost.rho
        if release is not None:
            values: Mapping[str, Any] = {"error-radius": release.error_radius, "scale": release.scale}
            shown |= {name: float(value) for name, value in values.items() if value is not None}
        return MetricRecord(shown)


def _floating(array: Array) -> bool:
    return np.dtype(array.dtype).kind == "f"


def _flat(arrays: ArrayRecord, like: ArrayRecord | None = None) -> NDArray[np.float64]:
    """All floating-point arrays in one vector, in the order of the model. Others, such as counters, are left out."""
    order = arrays if like is None else like
    parts = [np.asarray(arrays[key].numpy(), dtype=np.float64).ravel() for key in order if _floating(order[key])]
    if not parts:
        raise ValueError("the model has no array of floating-point numbers")
    return np.concatenate(parts)


def _moved(model: ArrayRecord, step: NDArray[np.float64]) -> ArrayRecord:
    """The model with a flat step added to its floating-point arrays, in their shapes and types."""
    moved, at = ArrayRecord(), 0
    for key, array in model.items():
        value = array.numpy()
        if _floating(array):
            part = step[at : at + value.size].reshape(value.shape)
            moved[key] = Array(np.asarray(value + part, dtype=value.dtype))
            at += value.size
        else:
            moved[key] = array
    return moved
