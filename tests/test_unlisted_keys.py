"""Keys that nobody has listed: the threshold, the privacy of groups that are shown, and no trace of the others."""

import itertools
import json
import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr

import dpmedian
from dpmedian.accounting.parallel import cost_of_groups
from dpmedian.accounting.threshold import discrete_tail, threshold_of
from dpmedian.mechanisms.key_selection import KeySelection
from dpmedian.parameters import PublicParameters
from rows import group_records
from test_group_records import refuted
from test_verify import valid, with_value

BUDGET = {"epsilon": 1.0, "delta": 1e-6}


# The threshold.


@pytest.mark.parametrize("sigma", [3, 20, 1000])
@pytest.mark.parametrize("deviations", [0.5, 2.0, 4.7, 6.0])
def test_the_tail_bounds_the_exact_one_and_is_near_it(sigma, deviations):
    least = max(round(deviations * sigma), 1)
    weights = np.exp(-(np.arange(-40 * sigma, 40 * sigma + 1, dtype=float) ** 2) / (2.0 * sigma**2))
    exact = math.fsum(weights[40 * sigma + least :]) / math.fsum(weights)
    assert exact <= discrete_tail(sigma, least)
    # The bound is the tail of continuous noise from one unit earlier. Within one unit, at t standard deviations, a tail
    # falls by a relative amount of at most about (1 + t)/sigma.
    assert discrete_tail(sigma, least) <= exact * math.exp(2.0 * (1.0 + deviations) / sigma + (2.0 / sigma) ** 2)


@pytest.mark.parametrize("lone_delta", [0.2, 1e-3, 1e-7, 1e-40])
@pytest.mark.parametrize("bits", [25, 28, 31])
def test_the_threshold_is_the_least_one_that_a_lone_contribution_reaches_rarely_enough(lone_delta, bits):
    sigma = 2**32 + 12345
    threshold = threshold_of(sigma, bits, lone_delta)
    natural = math.ldexp(float(sigma), -bits)

    def shown(least):
        """The probability that a size of 1 with this noise is rounded to `least` or more."""
        return float(ndtr(-(least - 1.5) / natural))

    assert shown(threshold) <= lone_delta < shown(threshold - 1) * (1.0 + 1e-6)


def test_half_of_the_groups_at_the_threshold_are_shown():
    """The figures of key_selection.md."""
    selection = dpmedian.plan_groups(None, 2, **BUDGET).selection
    assert selection.threshold == 72
    assert (selection.size_found(0.5), selection.size_found(0.99)) == (72, 103)
    assert selection.found(selection.size_found(0.99)) >= 0.99
    assert selection.found(1) <= selection.lone_delta
    assert dpmedian.plan_groups(None, 2, unit="person", max_groups_per_unit=4, **BUDGET).selection.threshold == 148


# The privacy of the noisy sizes that are shown: the exact divergence of the distributions of the output.


def law(selection, size):
    """The probabilities of the views of a group of this size: nothing, or a whole number from the threshold on."""
    if size == 0:
        return {None: 1.0}
    edges = np.arange(selection.threshold, math.ceil(size + 12.0 * selection.noise) + 2) - 0.5
    below = ndtr((edges - size) / selection.noise)
    above = ndtr(-(edges - size) / selection.noise)
    cells = np.where(edges[1:] > size, above[:-1] - above[1:], below[1:] - below[:-1])
    found = {selection.threshold + i: float(p) for i, p in enumerate(cells)}
    return {None: float(below[0]), **found, "beyond": float(above[-1])}


def losses(selection, here, there):
    """The privacy losses log P(here)/P(there) of the view of one group, with their probabilities under `here`."""
    ours, theirs = law(selection, here), law(selection, there)
    return [(math.log(p / q) if (q := theirs.get(seen, 0.0)) > 0.0 else math.inf, p) for seen, p in ours.items() if p]


def composed(parts, step=2e-5):
    """The losses of several groups, rounded up to multiples of a step, which give a nearly exact upper bound on the
    divergence.

    Outcomes that are rarer than 1e-18 are replaced by a probability of 1e-18 for an infinite loss.
    """
    total, never = {0: 1.0}, 0.0
    for part in parts:
        loss = np.array([x for x, p in part if math.isfinite(x) and p > 1e-18])
        probability = np.array([p for x, p in part if math.isfinite(x) and p > 1e-18])
        infinite = math.fsum(p for x, p in part if not math.isfinite(x)) + 1e-18
        places, have = np.array(list(total)), np.array(list(total.values()))
        sums = (places[:, None] + np.ceil(loss / step)[None, :]).astype(np.int64)
        found, inverse = np.unique(sums, return_inverse=True)
        mass = np.bincount(inverse.ravel(), weights=(have[:, None] * probability[None, :]).ravel())
        kept = mass > 1e-18
        total = dict(zip(found[kept].tolist(), mass[kept].tolist(), strict=True))
        never += infinite * (1.0 - never)
    places, have = np.array(list(total)), np.array(list(total.values()))
    return lambda epsilon: never + float(np.sum(have * np.maximum(0.0, -np.expm1(epsilon - step * places))))


def selection_of(groups, neighbours="add_remove", rho=0.5, delta=1e-3):
    """The selection of a plan whose budget is mostly for sizes, so that their divergence is what matters."""
    parameters = PublicParameters.of(None, 1, rho=rho, neighbours="add_remove", lone_delta=delta / groups)
    selection = KeySelection.of("size", rho / groups, parameters)
    return selection, cost_of_groups([replace(selection.cost, neighbours="add_remove")], groups, neighbours)


EPSILONS = (0.25, 0.5, 1.0, 2.0, 3.0, 5.0)


@pytest.mark.parametrize("groups", [1, 2, 3])
def test_no_unit_added_or_removed_shows_more_than_the_claim(groups):
    """Every mixture of new and existing groups, with sizes near the threshold, in both directions."""
    selection, claim = selection_of(groups)
    sizes = (0, 1, selection.threshold - 2, selection.threshold + 3)
    most = 0.0
    for touched in itertools.combinations_with_replacement(sizes, groups):
        for sign in (0, 1):
            pairs = [(size + sign, size + 1 - sign) for size in touched]
            divergence = composed([losses(selection, here, there) for here, there in pairs])
            for epsilon in EPSILONS:
                found = divergence(epsilon)
                assert found <= claim.delta_at(epsilon) * (1.0 + 1e-3), (touched, sign, epsilon)
                most = max(most, found / claim.delta_at(epsilon))
    assert most > 0.85, "the claim is nearly attained"


@pytest.mark.parametrize("groups", [1, 2, 3])
def test_no_replaced_unit_shows_more_than_the_claim(groups):
    """One unit leaves some groups, and another unit enters others."""
    selection, claim = selection_of(groups, "replace")
    threshold = selection.threshold
    left = itertools.combinations_with_replacement([(1, 0), (threshold, threshold - 1)], groups)
    entered = itertools.combinations_with_replacement([(0, 1), (threshold, threshold + 1)], groups)
    for gone, come in itertools.product(left, entered):
        divergence = composed([losses(selection, here, there) for here, there in (*gone, *come)], step=2e-4)
        for epsilon in EPSILONS:
            assert divergence(epsilon) <= claim.delta_at(epsilon) * (1.0 + 1e-3), (gone, come, epsilon)


@pytest.mark.parametrize("groups", [1, 2, 3])
def test_a_lower_threshold_or_less_noise_would_break_the_claim(groups):
    """If noise or threshold were smaller, the tests above would fail."""
    selection, claim = selection_of(groups)
    lower = replace(selection, threshold=selection.threshold - 2)
    fresh = composed([losses(lower, 1, 0)] * groups)
    assert any(fresh(epsilon) > claim.delta_at(epsilon) for epsilon in EPSILONS)
    noisy = replace(selection, noise_multiplier=selection.noise_multiplier * 0.8)
    full = composed([losses(noisy, selection.threshold + 12, selection.threshold + 11)] * groups)
    assert any(full(epsilon) > claim.delta_at(epsilon) for epsilon in EPSILONS)


# Which groups are shown.


def rows(people=6000, seed=0):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(seed)
    n = 3 * people
    frame = pandas.DataFrame({"x": rng.normal(size=n), "y": rng.normal(size=n) + 5.0})
    frame["district"] = rng.choice(["10", "9", "east"], size=n)
    frame["month"] = rng.choice(["2026-01", "2026-02"], size=n)
    frame["person"] = rng.integers(people, size=n)
    return frame


def test_large_groups_are_shown_in_an_order_of_their_own_and_small_ones_leave_nothing():
    frame = rows()
    frame.loc[:20, "district"] = "secret place"
    frame.loc[21, "month"] = "secret month"
    calls = []
    ledger = dpmedian.Ledger(rho=1.0, delta=1e-5, neighbours="add_remove", unit="person")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = dpmedian.geometric_medians(
            frame,
            ["district", "month"],
            unit="person",
            max_groups_per_unit=3,
            ledger=ledger,
            progress=calls.append,
            **BUDGET,
        )
    expected = [(district, month) for district in ("9", "10", "east") for month in ("2026-01", "2026-02")]
    assert list(found) == expected
    assert found.by == ("district", "month")
    assert found.plan.keys is None
    assert len([call for call in calls if call > 0.0]) <= len(expected) + 1
    text = "\n".join([str(found), found._repr_html_(), found.to_json(), found.to_csv(), json.dumps(ledger.to_dict())])
    assert "secret" not in text
    shown = found.to_frame()
    assert shown.index.names == ["district", "month"]
    assert shown.loc[("9", "2026-01"), "outcome"] == "released"
    assert (shown["size"] >= found.plan.selection.threshold).all()
    assert found.to_csv().splitlines()[0].startswith("district,month,x,y,x_low")
    (entry,) = ledger.entries
    assert entry.cost == found.cost
    assert entry.cost.delta0 > 0.0
    assert "keys: not listed; a group is shown if its noisy size is" in str(found.plan)


def test_a_run_that_shows_no_group_is_a_valid_output():
    few = rows(20).drop(columns="month")
    found = dpmedian.geometric_medians(few, "district", epsilon=1.0, delta=1e-6)
    assert len(found) == 0
    assert "no group is shown, because no noisy size reached the threshold" in str(found)
    coordinates = [name for name in few if name != "district"]
    assert found.columns == tuple(coordinates) != ("x0", "x1")
    assert found.to_csv().startswith(",".join(["district", *coordinates]))
    assert found.to_frame().empty
    assert dpmedian.verify(found).holds
    several = dpmedian.geometric_medians(rows(20), ["district", "month"], epsilon=1.0, delta=1e-6)
    assert several.to_frame().index.names == ["district", "month"]


def test_the_seed_of_a_group_follows_from_its_key():
    """So the noise of a group does not depend on the other groups, listed or not."""
    frame = rows().drop(columns="month")
    keys = {"seed": 3, "epsilon": 2.0, "delta": 1e-6}
    two = dpmedian.geometric_medians(frame, "district", keys=["9", "10"], **keys)
    three = dpmedian.geometric_medians(frame, "district", keys=["east", "10", "9"], **keys)
    assert two["9"].point.tolist() == three["9"].point.tolist()
    assert three["east"].size != three["9"].size
    alone = dpmedian.geometric_medians(frame[frame.district == "9"], "district", **keys)
    beside = dpmedian.geometric_medians(frame, "district", **keys)
    assert alone["9"].size == beside["9"].size
    assert alone["9"].point.tolist() == beside["9"].point.tolist()


def array_of(grouped, group):
    return grouped.records_of(group).array


@pytest.mark.parametrize("odd", [None, math.nan, "text", 7.5, b"\xff\xfe", True])
def test_no_label_renames_a_group_or_moves_a_unit(odd):
    """If a row's label turns a column of integers into doubles or text, the groups and choices of other rows stay the
    same.
    """
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(1)
    people = np.repeat(np.arange(400), 4)
    labels = rng.choice([2, 10, 33], size=len(people))
    points = rng.normal(size=(len(people), 2))
    plain = group_records(points, pandas.Series(labels), None, people, most=1)
    other = group_records(
        np.vstack([points, [[9.0, 9.0]]]), pandas.Series([*labels.tolist(), odd]), None, np.append(people, 400), most=1
    )
    assert plain.labels == [b"10", b"2", b"33"]
    fresh = [label for label in other.labels if label not in plain.labels]
    assert len(fresh) <= 1
    for place, label in enumerate(plain.labels):
        assert array_of(other, other.labels.index(label)).tobytes() == array_of(plain, place).tobytes()
    assert sum(len(array_of(other, i)) for i in range(len(other.labels))) <= len(plain.records.array) + 1
    if odd == b"\xff\xfe":
        assert len(array_of(other, other.labels.index(odd))) == 0, "a label that is no UTF-8 has no rows"


def test_a_new_unit_makes_a_limited_number_of_groups_for_any_number_of_labels():
    points, labels, ids = np.zeros((50, 1)), [f"place {i}" for i in range(50)], ["one"] * 50
    for most in range(1, 13):
        grouped = group_records(points, labels, None, ids, most=most)
        assert int((np.diff(grouped.starts) > 0).sum()) == most
        assert len(grouped.records.array) == most


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("budget", [BUDGET, {"rho": 0.3, "delta": 1e-6}])
@pytest.mark.parametrize("most", [1, 2, 5, 12])
def test_the_budget_covers_selection_and_medians(neighbours, budget, most):
    made = dpmedian.plan_groups(None, 2, unit="person", max_groups_per_unit=most, neighbours=neighbours, **budget)
    assert made.budget.fits(made.cost)
    assert made.cost.neighbours == neighbours
    assert made.cost.delta0 == pytest.approx(made.plans[0].parameters.lone_delta * most, rel=1e-12)
    assert 0.0 < made.cost.delta0 <= made.budget.delta
    factor = 4 if neighbours == "replace" else 1
    assert made.cost.mu_squared == pytest.approx(factor * most * made.plans[0].cost.mu_squared, rel=1e-9)
    grown = replace(made.cost, mu_squared=1.001 * made.cost.mu_squared)
    assert not made.budget.fits(grown), "nothing of the budget is left over"
    assert dpmedian.verify(made).holds


def test_what_unlisted_keys_need():
    with pytest.raises(ValueError, match=r"needs a delta, but the budget is rho = 0.5: pass delta, for example 1e-6"):
        dpmedian.plan_groups(None, 2, rho=0.5)
    with pytest.raises(ValueError, match="needs a delta, but the budget is epsilon = 1"):
        dpmedian.plan_groups(None, 1, epsilon=1.0, method="inverse_sensitivity", radius=1.0, resolution=0.1)
    with pytest.raises(TypeError, match="n must be one guess for all groups"):
        dpmedian.plan_groups(None, 2, n={"north": 5}, **BUDGET)
    with pytest.raises(ValueError, match="between 1 and 1048576, got 0"):
        dpmedian.plan_groups(None, 2, unit="person", max_groups_per_unit=0, **BUDGET)
    made = dpmedian.plan_groups(None, 2, **BUDGET)
    with pytest.raises(ValueError, match="neighbours='replace'"):
        made.cost.under("replace")


@pytest.fixture(scope="module")
def releases():
    return dpmedian.geometric_medians(rows(), ["district", "month"], unit="person", max_groups_per_unit=2, **BUDGET)


def test_the_record_verifies_and_fits_the_schema(releases):
    for record in (releases.to_dict(), releases.plan.to_dict()):
        assert valid(json.loads(json.dumps(record))) == []
    for told in (releases, releases.plan, releases.to_json()):
        found = dpmedian.verify(told)
        assert found.holds, str(found)
    for release in releases.released.values():
        assert dpmedian.verify(release).holds


@pytest.mark.parametrize(
    ("place", "value", "wrong"),
    [
        (("groups", 0, "size"), 12, "is shown, but its noisy size is below the threshold"),
        (("groups", 0, "key"), ["zoo", "2026-01"], "not in the order of their keys"),
        (("groups", 0, "key"), ["9", "2026-02"], "keys must differ"),
        (("cost", "delta0"), 1e-9, "delta0 of the cost is stated as 1e-09"),
        (("plans", 0, "lone_delta"), None, "the plan has no threshold"),
        (("plans", 0, "lone_delta"), 1e-3, "delta0 is stated as"),
        (("plans", 0, "stages", 0, "rule"), "1 per group; shown if the noisy size is 2 or more", "the threshold is"),
        (("plan_of_key",), [0], "but plan_of_key assigns a plan to each key"),
        (("keys",), [["9", "2026-01"]], "the keys are listed, but a plan has a threshold"),
    ],
)
def test_what_is_wrong_with_a_selection_is_named(releases, place, value, wrong):
    told = refuted(with_value(releases.to_dict(), place, value))
    assert any(wrong in text for text in told), told
