"""The robust step: its released values, its cost, and the same bits for arriving records as for an array."""

from __future__ import annotations

import hashlib
import itertools
import json

import numpy as np
import pytest

import dpmedian
from conftest import EXTREMES, opened
from contract.registry import SOURCES
from dpmedian import Dataset, Ledger, ReleaseFailed, robust_step
from dpmedian.sources.arriving import ArrivingSource, layers_of
from dpmedian.stepping import plan_step
from dpmedian.tape import Tape
from test_verify import valid

KEY = (7).to_bytes(32, "little")
RELATIONS = pytest.mark.parametrize("relation", ["replace", "add_remove"])


def cloud(n=400, d=30, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)) + 0.5


def arriving(records, plan, n=None):
    return ArrivingSource(((layers_of(record), 1 << 20) for record in records), plan.d, False, n)


def outcome(plan, source, tape):
    try:
        step = plan.calibrated.run(source, tape)
    except ReleaseFailed as failed:
        return failed.message
    return step.point.tobytes(), step.size, step.coherence, step.coherence_interval


@RELATIONS
@pytest.mark.parametrize("threshold", [0.0, 3.0])
def test_the_point_is_the_mean_of_clipped_unit_vectors(relation, threshold):
    points, center = cloud(), np.linspace(-1.0, 1.0, 30)
    step = robust_step(points, center=center, threshold=threshold, rho=1e6 / 400**2, neighbours=relation, seed=1)
    away = points - center
    expected = (away / np.maximum(np.linalg.norm(away, axis=1), threshold)[:, None]).mean(axis=0)
    size = 400 if step.size is None else step.size
    # Six standard deviations of each of 30 coordinates.
    assert np.abs(step.point * size / 400 - expected).max() < 6.0 * step.noise_std
    low, high = step.coherence_interval
    assert low - 0.02 < np.linalg.norm(expected) < high + 0.02
    assert step.withstands == step.coherence / (1.0 + step.coherence)


@RELATIONS
def test_it_replays_on_neighbors(relation):
    """The releases are the same, and exact values are within the sensitivity, for any records in any order of arrival.

    Hostile records cannot give another record more influence, although some of them are broken, huge or tiny.
    """
    rng, points = np.random.default_rng(1), cloud(40, 5)
    points[20:28] = rng.choice([*EXTREMES, np.nan, np.inf], size=(8, 5))
    points[28] = -1e9 * points[:20].sum(axis=0)
    n = 40 if relation == "replace" else None
    plan = plan_step(n, 5, rho=0.5, neighbours=relation)
    tape = Tape.record(KEY, relation)
    expected = outcome(plan, arriving(points, plan, n), tape)
    records = [-points[3], 1e6 * points[0], np.full(5, np.nan), *rng.choice(EXTREMES, size=(12, 5))]
    for place, record in itertools.product((0, 17, 39), records):
        rest = np.delete(points, place, axis=0)
        others = [[*rest[:place], record, *rest[place:]]] if relation == "replace" else [[*points, record], rest]
        for other in others:
            replayed = tape.replay()
            assert outcome(plan, arriving(rng.permutation(np.array(other)), plan, n), replayed) == expected
            assert len(replayed.entries()) == len(tape.entries()) == (1 if relation == "replace" else 2)


def other_way(record, center):
    """The record on the other side of the center, which has the opposite contribution, up to rounding."""
    with np.errstate(all="ignore"):
        return 2.0 * center - record


# What hostile senders may send who know the public center and even the record that they want to expose.
HOSTILE = {
    "none": lambda record, center: [],
    "not finite": lambda record, center: [np.full(4, np.nan), np.array([np.inf, 1.0, -np.inf, 0.0])],
    "huge": lambda record, center: [np.full(4, 1.7e308), np.array([-1e300, 1.0, 0.0, 1e150])],
    "tiny": lambda record, center: [center + 5e-324, center + 1e-200, np.nextafter(center, np.inf)],
    "the center": lambda record, center: [center],
    "the same record": lambda record, center: [record],
    "the opposite": lambda record, center: [other_way(record, center)],
    "nearly the same": lambda record, center: [np.nextafter(record, 0.0), record * (1.0 + 1e-12)],
    "a sum of ties": lambda record, center: [center + np.full(4, 0.5), center - np.eye(4)[0]],
}


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("threshold", [0.0, 1e-3, 2.0])
def test_no_company_gives_a_record_more_influence_than_the_sensitivity(kind, threshold):
    """The exact sums with and without a record, or with another record, differ by at most the stated sensitivity."""
    center = np.array([0.3, -1e-3, 7.0, 0.0])
    statistic = dpmedian.statistics.Statistic("robust step", center=center, threshold=threshold, bits=34)

    def exact(records):
        source = ArrivingSource(((layers_of(x), 1 << 20) for x in records), 4, False, None)
        return opened(source.answer(statistic)).astype(float)

    rng, most = np.random.default_rng(3), 0.0
    for record in [center + 3.0, center + 1e-9, center, np.full(4, -1e300), *rng.normal(size=(6, 4))]:
        others = 50 * HOSTILE[kind](record, center) + list(rng.normal(size=(5, 4)))
        without, with_it = exact(others), exact([*others, record])
        most = max(most, np.linalg.norm(with_it - without))
        assert np.linalg.norm(with_it - without) <= statistic.sensitivity.add_remove
        for other in (other_way(record, center), np.full(4, np.inf), center, np.array([0.0, 1e9, -1e9, 1.0])):
            assert np.linalg.norm(with_it - exact([*others, other])) <= statistic.sensitivity.replace
    # The bound is reached, so that a record with more influence would be noticed.
    assert most > (1.0 - 1e-9) * 2.0**34


@RELATIONS
@pytest.mark.parametrize("source", SOURCES)
def test_records_that_arrive_have_the_bits_of_every_other_source(relation, source):
    points = cloud(60, 7)
    plan = plan_step(60 if relation == "replace" else None, 7, rho=0.5, neighbours=relation)
    whole = outcome(plan, SOURCES[source](points, plan.parameters), Tape.draw(KEY, relation))
    n = plan.parameters.n
    assert outcome(plan, arriving(points[::-1], plan, n), Tape.draw(KEY, relation)) == whole
    layers = ([row[:2], row[2:2], row[2:].reshape(5, 1)] for row in points)
    assert outcome(plan, arriving(layers, plan, n), Tape.draw(KEY, relation)) == whole


@pytest.mark.parametrize("seed", range(3))
def test_many_records_in_many_dimensions_have_the_bits_of_an_array_in_any_order(seed):
    """Contributions are added in 32 bits, and the sums are moved to 64 bits before they overflow."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(150, 6000)).astype(np.float32) * rng.exponential(size=(150, 1)).astype(np.float32)
    points[:5, 0] *= 1e3
    plan = plan_step(None, 6000, rho=0.1)
    whole = outcome(plan, SOURCES["array"](points, plan.parameters), Tape.draw(KEY, "add_remove"))
    assert outcome(plan, arriving(rng.permutation(points), plan), Tape.draw(KEY, "add_remove")) == whole


def test_singles_and_layers_of_any_shape_are_not_converted():
    rows = cloud(50, 12).astype(np.float32)
    flat = robust_step(iter(rows), d=12, rho=1.0, seed=1, n=50)
    layered = robust_step(([row[:4].reshape(2, 2), row[4:]] for row in rows), d=12, rho=1.0, seed=1, n=50)
    doubles = robust_step(Dataset.of(rows.astype(float)), rho=1.0, seed=1, n=50)
    assert flat.point.tolist() == layered.point.tolist() == doubles.point.tolist()
    assert layers_of(rows[0])[0].dtype == np.float32


@RELATIONS
def test_the_recorded_cost_is_the_charged_cost(relation):
    plan = plan_step(300 if relation == "replace" else None, 4, rho=0.25, neighbours=relation)
    tape = Tape.record(KEY, relation)
    outcome(plan, arriving(cloud(300, 4), plan, plan.parameters.n), tape)
    spent = sum((sensitivity / scale) ** 2 for _, sensitivity, scale, _, _ in tape.entries())
    assert spent == pytest.approx(plan.cost.mu_squared, rel=1e-9)
    assert plan.cost.rho <= 0.25


def test_the_cost_is_charged_before_the_first_record_is_read():
    ledger = Ledger(rho=0.5, neighbours="add_remove")
    seen = []

    def records():
        seen.append(ledger.spent.rho)
        yield from cloud(500, 3)

    step = robust_step(records(), d=3, rho=0.5, ledger=ledger, name="round 1")
    assert seen[0] == ledger.spent.rho == step.cost.rho == pytest.approx(0.5)
    with pytest.raises(dpmedian.BudgetExceeded):
        robust_step(records(), d=3, rho=0.5, ledger=ledger)
    assert len(seen) == 1, "nothing is read for a release that is not charged"


def test_a_failure_is_an_output_and_stays_charged():
    ledger = Ledger(rho=0.5, neighbours="add_remove")
    with pytest.raises(ReleaseFailed, match="may be noise only") as failed:
        robust_step(iter([]), d=3, rho=0.1, ledger=ledger, seed=1)
    assert failed.value.cost.rho == ledger.spent.rho == pytest.approx(0.1)
    assert dpmedian.verify(failed.value.to_json()).wrong == (
        "the noise came from a seed: anybody who finds the seed can remove the noise, so nobody is protected",
    )

    def broken():
        yield np.zeros(3)
        raise OSError("the connection is lost")

    with pytest.raises(RuntimeError, match="after its cost was charged"):
        robust_step(broken(), d=3, rho=0.1, ledger=ledger)
    assert ledger.spent.rho == pytest.approx(0.2)


def test_records_that_do_not_arrive_are_there_where_their_number_is_public():
    points = cloud(50, 4)
    few = robust_step(points[:30], neighbours="replace", n=50, rho=4.0, seed=1)
    zeros = robust_step(np.vstack([points[:30], np.zeros((20, 4))]), neighbours="replace", rho=4.0, seed=1)
    broken = robust_step(np.vstack([points[:30], np.full((20, 4), np.inf)]), neighbours="replace", rho=4.0, seed=1)
    assert few.point.tolist() == zeros.point.tolist() == broken.point.tolist()
    with pytest.raises(RuntimeError, match="50 records arrived, but their public number is n = 40"):
        robust_step(iter(points), 4, neighbours="replace", n=40, rho=1.0)


def test_weights_multiply_what_a_record_contributes():
    points = cloud(60, 4)
    weights = np.arange(60) % 3
    weighted = robust_step(points, rho=3.0, n=60, sample_weight=weights, weight_max=2.0, seed=1)
    copies = robust_step(np.repeat(points, weights, axis=0), rho=3.0, n=120, seed=2)
    assert np.abs(weighted.point - copies.point).max() < 5.0 * (weighted.noise_std + copies.noise_std)
    noisy = robust_step(points, rho=3.0, sample_weight=weights, weight_max=2.0, seed=1)
    assert abs(noisy.size - weights.sum() / 2) < 12.0
    assert dpmedian.verify(weighted.to_json()).wrong[0].startswith("the noise came from a seed")


@RELATIONS
def test_the_record_verifies_and_follows_the_schema(relation, tmp_path):
    step = robust_step(cloud(300, 4), rho=0.5, neighbours=relation, name="round 3", unit="client")
    told = json.loads(step.to_json())
    assert valid(told) == []
    assert dpmedian.verify(step).holds
    again = dpmedian.Release.from_json(step.to_json())
    assert (again.coherence, again.coherence_interval, again.noise_std) == (
        step.coherence,
        step.coherence_interval,
        step.noise_std,
    )
    page = step.report(tmp_path / "step.html").read_text()
    assert "cannot reverse the step" in page
    assert "of all records may be hostile" in repr(step)
    assert "Robust step" in step._repr_html_()
    planned = plan_step(None, 4, rho=0.5)
    assert dpmedian.verify(planned).holds
    assert "mean direction" in planned.report(tmp_path / "plan.html").read_text()
    told["stages"][-1]["sigma"] /= 2.0
    assert not dpmedian.verify(told).holds


def test_the_record_of_a_large_step_has_the_digest_of_its_point(tmp_path):
    ledger = Ledger(rho=1.0, neighbours="add_remove")
    step = robust_step(iter(cloud(300, 10_001)), d=10_001, rho=0.5, ledger=ledger)
    told = json.loads(step.to_json())
    assert told["point"] is None
    assert told["point_sha256"] == hashlib.sha256(step.point.astype("<f8").tobytes()).hexdigest()
    assert valid(told) == []
    assert dpmedian.verify(step).holds
    assert dpmedian.verify(step.to_json(), ledger).holds
    assert told["point_sha256"] in step.report(tmp_path / "step.html").read_text()
    with pytest.raises(ValueError, match="digest of a large step"):
        dpmedian.Release.from_json(step.to_json())


def test_the_interval_covers_the_coherence():
    """About 190 of 200 intervals cover. Fewer than 178 have a probability below 1e-3 (binomial)."""
    points = cloud(200, 50) + 0.2
    exact = np.linalg.norm((points / np.linalg.norm(points, axis=1)[:, None]).mean(axis=0))
    steps = [robust_step(points, rho=0.05, n=200, seed=seed) for seed in range(200)]
    assert sum(low <= exact <= high for low, high in (step.coherence_interval for step in steps)) >= 178


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"points": iter([])}, "give d= or center="),
        ({"points": iter([]), "d": 3, "neighbours": "replace"}, "pass n="),
        ({"points": "file.csv", "d": 3}, "Dataset.of"),
        ({"points": np.zeros(3), "d": 3}, "shape"),
        ({"points": np.zeros((5, 3)), "d": 4}, "d = 4 columns, got 3"),
        ({"center": [0.0, 1.0], "d": 3}, "center must have 3"),
        ({"center": [0.0, np.inf, 1.0]}, "center must be finite"),
        ({"threshold": -1.0}, "threshold"),
        ({"threshold": "large"}, "threshold"),
        ({"sample_weight": [1.0] * 5}, "given together"),
        ({"weight_max": 2.0}, "given together"),
        ({"rho": None, "epsilon": 1.0}, "pass delta"),
    ],
)
def test_wrong_arguments_are_named_and_cost_nothing(arguments, message):
    ledger = Ledger(rho=1e5, neighbours=arguments.get("neighbours", "add_remove"))
    with pytest.raises((ValueError, TypeError), match=message):
        robust_step(**{"points": np.zeros((5, 3)), "rho": 0.1, "ledger": ledger, **arguments})
    assert ledger.spent.rho == 0.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sample_weight": "1" * 10, "weight_max": 1.0}, "sample_weight must be one number for each record, got str"),
        ({"sample_weight": True, "weight_max": 1.0}, "sample_weight must be one number for each record, got bool"),
        (
            {"sample_weight": [1.0] * 9, "weight_max": 1.0},
            "must have one weight for each record, but has another length$",
        ),
        ({"n": 9, "neighbours": "replace"}, "n = 9, but there are 10 records"),
    ],
)
def test_lengths_that_do_not_fit_cost_nothing(arguments, message):
    ledger = Ledger(rho=1.0)
    with pytest.raises((TypeError, ValueError), match=message):
        robust_step(cloud(10, 3), rho=0.5, ledger=ledger, **arguments)
    assert not ledger.entries


def test_records_that_arrive_answer_nothing_else():
    plan = plan_step(None, 3, rho=0.1)
    source = arriving(cloud(5, 3), plan)
    with pytest.raises(ValueError, match="do not answer the statistic 'size'"):
        source.answer(dpmedian.statistics.Statistic("size", bits=10))
    plan.calibrated.step.toward(source, Tape.draw(KEY, "add_remove"), None, 0.0)
    with pytest.raises(ValueError, match="already queried"):
        plan.calibrated.step.toward(source, Tape.draw(KEY, "add_remove"), None, 0.0)
