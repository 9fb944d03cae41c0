"""The Flower strategy with Flower's own messages: one record per client, for anything that a client sends."""

import dataclasses
import itertools
import logging
import math

import numpy as np
import pytest

import dpmedian
from dpmedian import Ledger, ReleaseFailed

pytest.importorskip("flwr", reason="Flower supports Python 3.11 and newer")

from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, MetricRecord, RecordDict
from flwr.serverapp import Grid
from flwr.supercore.task_identity import TaskIdentity

from dpmedian.flower import PrivateGeometricMedian
from dpmedian.flower_messages import measured, updates
from dpmedian.steps.lengths import Lengths
from dpmedian.tape import Tape

logging.getLogger("flwr").setLevel(logging.CRITICAL)

# Flower's runtime sets these values, and a message needs them.
TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1

CLIENTS = 400
TARGET = {"weight": np.array([[1.0, -2.0], [0.5, 3.0]], dtype=np.float32), "bias": np.array([4.0, 0.0])}


def model(**arrays):
    return ArrayRecord({key: Array(np.asarray(value)) for key, value in arrays.items()})


def start():
    return model(weight=np.zeros((2, 2), dtype=np.float32), bias=np.zeros(2), count=np.array(7), scalar=np.float64(1.0))


def honest(node, arrays):
    """An honest client sends the target with a little noise of its own. `count` differs for every client."""
    rng = np.random.default_rng(node)
    sent = {key: value + 0.1 * rng.normal(size=value.shape) for key, value in TARGET.items()}
    return model(**sent, count=np.array(node), scalar=np.float64(1.0))


class Clients(Grid):
    """Nodes in this process: `behaviour(node, arrays)` is an ArrayRecord, an Error, or None for no reply."""

    def __init__(self, behaviour=honest, nodes=range(1, CLIENTS + 1)):
        self.behaviour, self.nodes, self.sent = behaviour, list(nodes), []

    def set_run(self, run_id):
        pass

    @property
    def run(self):
        return None

    def create_message(self, *args, **kwargs):
        raise NotImplementedError

    def push_messages(self, messages):
        raise NotImplementedError

    def pull_messages(self, message_ids):
        raise NotImplementedError

    def get_node_ids(self):
        return self.nodes

    def send_and_receive(self, messages, *, timeout=None):
        replies = []
        for message in messages:
            node = message.metadata.dst_node_id
            self.sent.append(node)
            answer = self.behaviour(node, message.content["arrays"])
            for content in answer if isinstance(answer, list) else [answer]:
                if isinstance(content, ArrayRecord):
                    content = RecordDict({"arrays": content, "metrics": MetricRecord({"num-examples": 10 * node})})
                if content is not None:
                    replies.append(Message(content, reply_to=message))
        return replies


@pytest.fixture
def strategy():
    def make(**arguments):
        arguments = {"rho": 0.5, "seed": 1, "clients": CLIENTS, **arguments}
        return PrivateGeometricMedian(**{key: value for key, value in arguments.items() if value is not ...})

    return make


def error(arrays):
    return max(np.abs(arrays[key].numpy() - value).max() for key, value in TARGET.items())


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_the_model_moves_to_the_median_in_its_own_shapes_and_types(strategy, neighbours):
    made = strategy(neighbours=neighbours)
    result = made.start(Clients(), start(), num_rounds=1)
    assert error(result.arrays) < 0.2
    assert {key: (array.shape, array.dtype) for key, array in result.arrays.items()} == {
        key: (array.shape, array.dtype) for key, array in start().items()
    }
    # Counters are not weights: the counter of the server stays.
    assert result.arrays["count"].numpy() == 7
    assert made.cost.rho == pytest.approx(0.5)
    assert (made.cost.neighbours, made.cost.unit) == (neighbours, "client")


@pytest.mark.slow
def test_hostile_clients_do_not_move_it(strategy):
    def behaviour(node, arrays):
        sent = honest(node, arrays)
        if node % 5:
            return sent
        return model(**{key: -1e6 * sent[key].numpy() for key in TARGET}, count=np.array(0), scalar=np.float64(1e9))

    assert error(strategy().start(Clients(behaviour), start(), num_rounds=2).arrays) < 0.5


MALFORMED = {
    "nothing": lambda sent: None,
    "an error": lambda sent: Error(code=1, reason="out of memory"),
    "other names": lambda sent: model(**TARGET),
    "other shapes": lambda sent: model(**{**{k: sent[k].numpy() for k in sent}, "bias": np.zeros(3)}),
    "not a number": lambda sent: model(**{**{k: sent[k].numpy() for k in sent}, "bias": np.array([np.nan, 0.0])}),
    "text": lambda sent: model(**{**{k: sent[k].numpy() for k in sent}, "bias": np.array(["a", "b"])}),
    "two records": lambda sent: RecordDict({"arrays": sent, "more": sent}),
    "no array": lambda sent: RecordDict(
        {"arrays": ArrayRecord({"bias": Array("float64", (2,), "numpy.ndarray", b"x")})}
    ),
}


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("kind", MALFORMED)
def test_whatever_a_client_sends_concerns_its_own_record_alone(kind, neighbours):
    """A malformed reply is a drop-out: under "replace" a row of zeros, and under "add_remove" no row."""

    def rows(behaviour):
        grid = Clients(behaviour, nodes=range(1, 11))
        requests = [
            Message(RecordDict({"arrays": start()}), dst_node_id=node, message_type="train") for node in grid.nodes
        ]
        flat = np.array([0, 0, 0, 0, 0, 0, 1.0])
        only_there = neighbours == "add_remove"
        return updates(grid.send_and_receive(requests), start(), flat, grid.nodes, only_there=only_there)

    everyone = rows(honest)
    one_less = rows(lambda node, arrays: MALFORMED[kind](honest(node, arrays)) if node == 4 else honest(node, arrays))
    assert everyone.shape == (10, 7)
    if neighbours == "add_remove":
        assert np.array_equal(one_less, np.delete(everyone, 3, axis=0))
    else:
        assert np.array_equal(np.delete(one_less, 3, axis=0), np.delete(everyone, 3, axis=0))
        assert not np.any(one_less[3])


def test_a_client_has_one_record_however_often_it_replies():
    def twice(node, arrays):
        return [honest(node, arrays), honest(node + 1000, arrays)]

    requests = [Message(RecordDict({"arrays": start()}), dst_node_id=node, message_type="train") for node in (1, 2, 3)]
    replies = Clients(twice).send_and_receive(requests)
    assert len(replies) == 6
    for asked in ([1, 2, 3], [1, 2]):
        assert updates(replies, start(), np.zeros(7), asked, only_there=True).shape == (len(asked), 7)


def test_a_failure_keeps_the_model_and_stays_charged(strategy):
    """If nobody replies, the noisy number shows that nothing can be found. The noisy number has its cost
    nevertheless.
    """
    ledger = Ledger(rho=1.0, neighbours="add_remove", unit="client")
    made = strategy(ledger=ledger)
    result = made.start(Clients(lambda node, arrays: None), start(), num_rounds=1)
    assert [type(release) for release in made.releases] == [ReleaseFailed]
    assert result.arrays["bias"].numpy().tolist() == [0.0, 0.0]
    assert result.train_metrics_clientapp[1]["failed"] == 1.0
    assert ledger.spent.rho == made.cost.rho > 0.0


def test_nobody_to_ask_is_a_release_too(strategy):
    """If the number of clients is private, zero clients must look like one client."""
    made = strategy(fraction_train=1e-9)
    made.start(Clients(), start(), num_rounds=1)
    assert [type(release) for release in made.releases] == [ReleaseFailed]


@pytest.mark.slow
def test_rounds_share_a_ledger_and_nobody_is_asked_when_it_is_used_up(strategy):
    ledger = Ledger(rho=1.0, neighbours="add_remove", unit="client")
    made, grid = strategy(rho=..., ledger=ledger, rounds=2), Clients()
    result = made.start(grid, start(), num_rounds=3)
    assert len(made.releases) == 2
    assert len(grid.sent) == 2 * CLIENTS
    assert ledger.spent.rho == pytest.approx(1.0)
    assert list(result.train_metrics_clientapp) == [1, 2]


def test_what_cannot_work_is_refused_before_anyone_trains(strategy):
    ledger = Ledger(rho=1.0, neighbours="add_remove", unit="client")
    made, grid = strategy(ledger=ledger, rho=0.01, aggregate="median"), Clients()
    large = model(weight=np.zeros((100, 200)))
    with pytest.raises(
        ValueError, match=r"n sqrt\(rho/d\) = 0.28\. Use aggregate='step' .* Or give radius="
    ) as refused:
        made.start(grid, large, num_rounds=1)
    least = dpmedian.required_n(20_000, excess=0.01, rho=0.01, neighbours="add_remove")
    assert f"{least:,} clients per round would be enough" in str(refused.value)
    assert (grid.sent, ledger.spent.rho) == ([], 0.0)


LARGE = 20_000
AWAY = np.linspace(-1.0, 1.0, LARGE).astype(np.float32)


def large(node, arrays):
    """The update of an honest client: a common direction plus an equally large part of its own."""
    noise = np.random.default_rng(node).normal(size=LARGE) * 0.6
    return model(weight=(arrays["weight"].numpy().ravel() + AWAY + noise).astype(np.float32).reshape(100, 200))


def beginning():
    return model(weight=np.full((100, 200), 0.1, dtype=np.float32))


def direction(result):
    movement = result.arrays["weight"].numpy().ravel().astype(float) - 0.1
    return float(movement @ AWAY / np.linalg.norm(movement) / np.linalg.norm(AWAY))


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_a_large_model_moves_by_steps_that_hostile_clients_do_not_turn_around(strategy, neighbours):
    def behaviour(node, arrays):
        if node % 5:
            return large(node, arrays)
        return model(weight=arrays["weight"].numpy() - 1e9 * AWAY.reshape(100, 200))

    made = strategy(neighbours=neighbours, aggregate="auto", rho=0.05)
    assert made.method(LARGE, CLIENTS) == "step"
    result = made.start(Clients(behaviour), beginning(), num_rounds=3)
    assert direction(result) > 0.2
    assert result.arrays["weight"].numpy().dtype == np.float32
    assert set(result.train_metrics_clientapp[1]) == {"failed", "rho-spent", "coherence", "withstands", "length"}
    # The expected coherence is 0.8 times the honest coherence 0.69, minus 0.2 for the hostile fifth.
    assert all(abs(release.coherence - 0.35) < 0.1 for release in made.releases)
    assert made.cost.rho == pytest.approx(0.15)
    assert (made.cost.neighbours, made.cost.unit) == (neighbours, "client")


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("kind", [kind for kind in MALFORMED if kind not in ("other names", "text", "not a number")])
def test_a_malformed_reply_is_a_drop_out_of_a_step(strategy, kind, neighbours):
    """The bits are the same as without this client, or under "replace" as if the client had not moved."""

    def bits(behaviour):
        made = strategy(neighbours=neighbours, aggregate="step", rho=1.0)
        made.start(Clients(behaviour, nodes=range(1, 41)), start(), num_rounds=1)
        (release,) = made.releases
        return release.point.tolist()

    def still(node, arrays):
        return arrays if neighbours == "replace" else None

    broken = bits(lambda node, arrays: MALFORMED[kind](honest(node, arrays)) if node == 4 else honest(node, arrays))
    assert broken == bits(lambda node, arrays: still(node, arrays) if node == 4 else honest(node, arrays))


# Records of hostile clients that know the model, the point from which updates are measured, and the victim's model.
KNOWING = {
    "not finite": lambda victim, center: np.where(np.arange(LARGE) % 2, np.nan, np.inf),
    "huge": lambda victim, center: np.full(LARGE, 1e300),
    "the center": lambda victim, center: center,
    "the same": lambda victim, center: victim,
    "the opposite": lambda victim, center: 2.0 * center - victim,
    "as long as the victim's": lambda victim, center: (
        center + np.linalg.norm(victim - center) * AWAY / np.linalg.norm(AWAY)
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("kind", KNOWING)
def test_hostile_clients_that_adapt_to_the_model_learn_no_more_about_a_client(strategy, monkeypatch, kind, neighbours):
    """Noisy values of a run are replayed with another update of one client, or without the client.

    Everything that is released and every movement of the model is the same, and the tape raises if an exact value
    differs by more than its sensitivity. Hostile clients choose their updates from the models that they saw before.
    """

    def run(tape, victim):
        monkeypatch.setattr("dpmedian.running.capped_tape", lambda cost, key=None: tape())
        seen = []

        def behaviour(node, arrays):
            now = arrays["weight"].numpy().ravel().astype(float)
            if not seen or (seen[-1] != now).any():
                seen.append(now)
            if node == 1 and victim != "honest":
                return None if victim is None else model(weight=np.full((100, 200), 1e9))
            honest = large(node, arrays)["weight"].numpy().ravel().astype(float)
            if node % 3:
                return large(node, arrays)
            center = now + (0.5 * (now - seen[-2]) if len(seen) > 1 else 0.0)
            return model(weight=KNOWING[kind](honest, center).reshape(100, 200))

        made = strategy(neighbours=neighbours, aggregate="step", rho=1.0)
        made.start(Clients(behaviour, nodes=range(1, 41)), beginning(), num_rounds=3)
        return [now.tolist() for now in seen]

    tapes = []

    def record():
        tapes.append(Tape.record(len(tapes).to_bytes(32, "little"), neighbours))
        return tapes[-1]

    models = run(record, "honest")
    assert len(models) == 3
    assert len(tapes) == 6, "a step and a length in each round"
    for victim in ["another"] if neighbours == "replace" else [None]:
        again = iter(tapes)
        assert run(lambda again=again: next(again).replay(), victim) == models


def test_a_client_has_one_record_in_a_step_however_often_it_replies(strategy):
    def bits(behaviour):
        made = strategy(aggregate="step", rho=1.0)
        made.start(Clients(behaviour, nodes=range(1, 41)), start(), num_rounds=1)
        return made.releases[0].point.tolist()

    assert bits(honest) == bits(lambda node, arrays: [honest(node, arrays), honest(node + 1000, arrays)])


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_the_threshold_follows_the_median_length_within_the_budget_of_the_rounds(strategy, neighbours):
    """Updates have lengths near 5, and the first model has the length 160. The noise of a count of 200 is 5 at this
    budget.
    """
    unit = np.ones(256) / 16.0

    def behaviour(node, arrays):
        length = 5.0 * np.exp(0.3 * np.random.default_rng(node).normal())
        return model(weight=arrays["weight"].numpy() + length * unit)

    ledger = Ledger(rho=4.0, neighbours=neighbours, unit="client")
    made = strategy(
        rho=..., ledger=ledger, rounds=12, aggregate="step", neighbours=neighbours, momentum=0.0, clients=200
    )
    thresholds = []
    for number in range(1, 13):
        grid = Clients(behaviour, nodes=range(1, 201))
        messages = list(made.configure_train(number, model(weight=np.full(256, 10.0)), ConfigRecord(), grid))
        assert len(messages) == 200
        made.aggregate_train(number, grid.send_and_receive(messages))
        thresholds.append(made._lengths.threshold)
    assert all(0.7 * 3.5 < threshold < 0.7 * 7.0 for threshold in thresholds[-4:]), thresholds
    # The numbers are charged together with the steps, and all rounds fit the ledger that they share.
    assert ledger.spent.rho == pytest.approx(made.cost.rho) == pytest.approx(4.0)
    assert len(ledger.entries) == 24
    assert not list(made.configure_train(13, model(weight=np.full(256, 10.0)), ConfigRecord(), grid))


def test_a_threshold_that_is_given_costs_nothing_and_is_kept(strategy):
    made = strategy(aggregate="step", rho=1.0, threshold=3.0, step_length=0.1)
    made.start(Clients(large, nodes=range(1, 41)), beginning(), num_rounds=2)
    assert [release.cost.rho for release in made.releases] == pytest.approx([1.0, 1.0])
    assert made.cost.rho == pytest.approx(2.0)


def test_the_guess_of_a_length_begins_with_no_threshold_and_ends_beside_the_median():
    for truth in (1e-6, 0.03, 1.0, 400.0):
        lengths, sizes = Lengths(1.0), truth * np.exp(0.3 * np.random.default_rng(1).normal(size=1001))
        assert lengths.threshold == 0.0
        history = []
        for _ in range(30):
            lengths.follow(float(np.mean(np.sign(sizes - lengths.guess))))
            history.append((lengths.guess, lengths.threshold))
        assert all(threshold <= 0.7 * 1.5 * truth for _, threshold in history[12:])
        assert all(truth / 1.4 < guess < 1.4 * truth for guess, _ in history[20:]), (truth, history[20:])


@pytest.mark.parametrize("threshold", ["auto", 0.0])
def test_a_step_has_one_and_a_half_times_the_tracked_length(strategy, threshold):
    """Updates have the length 5 and one direction, and the guess begins at 160/16 = 10."""
    unit = np.ones(256) / 16.0

    def behaviour(node, arrays):
        return model(weight=arrays["weight"].numpy() + 5.0 * unit)

    ledger = Ledger(rho=8.0, neighbours="add_remove", unit="client")
    made = strategy(rho=..., ledger=ledger, rounds=8, aggregate="step", momentum=0.0, threshold=threshold)
    history, guesses = [], [10.0]

    def keep(number, arrays):
        history.append(arrays["weight"].numpy())
        if number > 0:
            guesses.append(made._lengths.guess)

    made.start(Clients(behaviour, nodes=range(1, 201)), model(weight=np.full(256, 10.0)), 8, evaluate_fn=keep)
    moves = zip(np.diff(history, axis=0), made.releases, itertools.pairwise(guesses), strict=True)
    for number, (moved, release, pair) in enumerate(moves):
        assert np.allclose(moved, (1.0 - number / 8) * 1.5 * min(pair) * release.point)
    assert guesses[-1] == pytest.approx(5.0, rel=0.2)
    assert made._plans.step(None, 256, made._lengths).parameters.threshold == (
        0.7 * guesses[-1] if threshold == "auto" else 0.0
    )
    assert ledger.spent.rho == pytest.approx(8.0)


def test_the_weight_of_a_long_update_falls_with_the_cube_of_its_length_once_lengths_are_known():
    lengths = Lengths(16.0)
    assert lengths.shortening(1000.0) == 1.0
    lengths.follow(0.9)  # Nearly all updates are longer, so the guess says little about them.
    assert lengths.shortening(1000.0) == 1.0
    lengths.follow(0.0)
    longest = 1.5 * lengths.guess
    assert lengths.shortening(0.99 * longest) == 1.0 == lengths.shortening(math.nan)
    for factor in (1.01, 2.0, 10.0):
        left = lengths.shortening(factor * longest) * factor * longest
        assert left / lengths.threshold == pytest.approx(factor**-3)
    assert lengths.shortening(math.inf) == 0.0
    lengths.follow(-0.1)
    assert lengths.shortening(longest) == 1.0, "a guess that just moved down shortens no update further"


def test_the_record_of_a_client_is_shortened_by_its_own_length_alone():
    rng, center = np.random.default_rng(3), np.full(3, 2.0)
    records = [(center + scale * rng.normal(size=3)).astype(np.float32) for scale in (1.0, 5.0, 100.0, 1e38)]
    records.append(np.array([1.0, math.inf, 1.0], dtype=np.float32))
    shortening, lengths = (lambda length: 1.0 if length <= 10.0 else 5.0 / length), []
    sent = list(measured(((list(np.split(x, [1])), 1) for x in records), center, lengths, shortening))
    for x, (parts, _), length in zip(records, sent, lengths, strict=True):
        alone: list[float] = []
        ((again, _),) = measured([([x], 1)], center, alone, shortening)
        assert np.concatenate(parts).tobytes() == again[0].tobytes()
        assert alone == [length]
        left = again[0] - center
        if not np.all(np.isfinite(x)):
            assert not np.all(np.isfinite(left)), "a value that is not finite still removes its record"
        elif length > 10.0:
            assert np.allclose(left, 5.0 / length * (x - center), atol=1e-5)
        else:
            assert again[0].tobytes() == x.tobytes()


def test_updates_that_are_much_too_long_hardly_count(strategy):
    """A third of the clients sends updates that are ten times too long, against the others."""
    unit = np.ones(256) / 16.0

    def behaviour(node, arrays):
        return model(weight=arrays["weight"].numpy() + (-50.0 if node % 3 == 0 else 5.0) * unit)

    def last(**options):
        made = strategy(rho=8.0, aggregate="step", momentum=0.0, **options)
        made.start(Clients(behaviour, nodes=range(1, 301)), model(weight=np.full(256, 10.0)), 8)
        return float(made.releases[-1].point @ unit)

    assert last() > 0.6 > 0.4 > last(threshold=0.0)


def test_a_step_with_long_noise_is_shorter():
    lengths = Lengths(16.0)
    assert lengths.step(0.5) == lengths.step(1.5) == pytest.approx(1.5)
    assert lengths.step(15.0) == pytest.approx(0.15)


@pytest.mark.slow
@pytest.mark.parametrize("rate", [1.0, 0.25])
def test_momentum_repeats_a_share_of_the_last_movement(strategy, rate):
    """The velocity is v = m v + step, and the model moves by the rate times v, as in FedAvgM."""
    made = strategy(aggregate="step", rho=2.0, momentum=0.5, step_length=1.0, server_learning_rate=rate)
    history = []
    made.start(
        Clients(large),
        beginning(),
        num_rounds=2,
        evaluate_fn=lambda _, arrays: history.append(arrays["weight"].numpy()),
    )
    first, second = (np.ravel(b.astype(float) - a) for a, b in itertools.pairwise(history))
    length = rate * np.linalg.norm(beginning()["weight"].numpy())
    assert np.allclose(first, length * made.releases[0].point, atol=1e-5)
    assert np.allclose(second, 0.5 * first + length * made.releases[1].point, atol=1e-5)


def test_updates_are_measured_from_the_point_to_which_momentum_moves_the_model(strategy):
    """In the second round, all clients send the point to which the model would move by its momentum alone."""
    begun = beginning()["weight"].numpy()

    def behaviour(node, arrays):
        weight = arrays["weight"].numpy()
        return large(node, arrays) if np.array_equal(weight, begun) else model(weight=weight + 0.5 * (weight - begun))

    made = strategy(aggregate="step", rho=2.0, momentum=0.5, step_length=1.0, threshold=0.1, server_learning_rate=0.25)
    made.start(Clients(behaviour), beginning(), num_rounds=2)
    first, second = (release.coherence for release in made.releases)
    assert first > 0.5
    assert second < 0.1


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize(("d", "epsilon"), [(1, 0.1), (1000, 0.1), (10**7, 0.1), (10**9, 1.0), (10**10, 4.0)])
def test_a_step_and_its_length_cost_no_more_than_the_round(strategy, neighbours, d, epsilon):
    """In very many dimensions the noise of a step with a part of the budget may lie on another lattice."""
    plans = strategy(rho=None, epsilon=epsilon, delta=1e-9, neighbours=neighbours, aggregate="step")._plans
    budget = plans.whole_step(CLIENTS, d).parameters.budget
    cost = plans.cost(plans.step(CLIENTS, d, None))
    assert budget.fits(cost)
    assert not dataclasses.replace(budget, epsilon=0.99 * epsilon).fits(cost)


def test_auto_takes_the_median_if_it_will_be_found_and_steps_otherwise(strategy):
    assert strategy().method(10) == "median"
    assert strategy(clients=None).method(10) == "step"
    assert strategy(rho=0.01).method(20_000) == "step"
    assert strategy(aggregate="median", rho=0.01).method(20_000) == "median"


@pytest.mark.slow
def test_what_clients_report_is_not_aggregated(strategy):
    """Losses and numbers of examples are not private, so a round shows released values and its cost only."""
    result = strategy().start(Clients(), start(), num_rounds=1)
    assert set(result.train_metrics_clientapp[1]) == {"failed", "rho-spent", "error-radius", "scale"}
    assert result.evaluate_metrics_clientapp == {}


def test_each_client_is_asked_on_its_own_where_their_number_is_private(strategy):
    """Neighbors differ in one node, and with a fixed share of nodes another node could take its place. Binomial(4000,
    1/2) is outside of 2000 +- 190 with probability below 1e-8.
    """
    sizes = []
    for _ in range(10):
        grid = Clients(lambda node, arrays: None)
        made = strategy(fraction_train=0.5)
        list(made.configure_train(1, start(), ConfigRecord(), grid))
        sizes.append(len(made._nodes))
    assert abs(sum(sizes) - 2000) < 190
    assert len(set(sizes)) > 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rho": ...}, "no privacy budget"),
        ({"rounds": 3}, "rounds = 3 divides the rest of a ledger's budget"),
        ({"ledger": {"neighbours": "replace", "unit": "client"}}, "counts clients under 'replace' and the strategy"),
        ({"ledger": {"neighbours": "add_remove"}}, "counts records under 'add_remove'"),
        ({"rho": ..., "ledger": {"neighbours": "add_remove", "unit": "client"}}, "pass the number of rounds, rounds="),
        (
            {"rho": ..., "rounds": 0, "ledger": {"neighbours": "add_remove", "unit": "client"}},
            "rounds must be at least 1, got 0",
        ),
        ({"fraction_train": 0.0}, r"fraction_train must lie in \(0, 1\], got 0.0"),
        ({"aggregate": "mean"}, "aggregate must be 'auto', 'median' or 'step', got 'mean'"),
        ({"step_length": 0.0}, "step_length must be 'auto' or a positive number"),
        ({"step_length": "long"}, "step_length must be 'auto' or a positive number"),
        ({"momentum": 1.0}, r"momentum must lie in \[0, 1\)"),
        ({"threshold": -1.0}, "threshold"),
        ({"threshold": "median"}, "threshold must be 'auto' or a public length of at least 0, got 'median'"),
        ({"server_learning_rate": math.nan}, "server_learning_rate must be positive, got nan"),
        ({"neighbours": "swap"}, "swap"),
        ({"radius": -1.0}, "radius"),
    ],
)
def test_wrong_arguments_are_named(strategy, arguments, message):
    if "ledger" in arguments:
        arguments = {**arguments, "ledger": Ledger(rho=1.0, **arguments["ledger"])}
    with pytest.raises((ValueError, TypeError), match=message):
        strategy(**arguments)


@pytest.mark.slow
def test_steps_of_a_known_number_of_rounds_shrink_evenly(strategy):
    ledger = Ledger(rho=2.0, neighbours="add_remove", unit="client")
    made = strategy(rho=..., ledger=ledger, rounds=4, aggregate="step", momentum=0.0, step_length=0.1)
    history = []

    def keep(_, arrays):
        history.append(arrays["weight"].numpy().ravel().astype(float))

    made.start(Clients(large), beginning(), num_rounds=4, evaluate_fn=keep)
    length = 0.1 * np.linalg.norm(beginning()["weight"].numpy())
    for moved, release, share in zip(np.diff(history, axis=0), made.releases, (1.0, 0.75, 0.5, 0.25), strict=True):
        assert np.allclose(moved, share * length * release.point, atol=1e-6)
