"""Private k-medians: the clusters that are found, the cost, and the same result for every source."""

from __future__ import annotations

import itertools
import json
import pickle

import numpy as np
import pytest

import dpmedian
from contract.registry import SOURCES
from dpmedian.clusters import grid, refinement, start
from dpmedian.mechanisms.clusters import shell_ends
from dpmedian.release import ClusterResult
from dpmedian.statistics import SHELLS
from dpmedian.tape import Tape

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
KEY = bytes(range(32))
RELATIONS = pytest.mark.parametrize("relation", ["replace", "add_remove"])


def clouds(n: int, d: int, k: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Records around k centers on the corners of a cube with sides of 12 standard deviations, and the centers."""
    rng = np.random.default_rng(seed)
    corners = np.array(list(itertools.islice(itertools.product([0.0, 12.0], repeat=d), k)))
    return corners[rng.integers(k, size=n)] + rng.normal(size=(n, d)), corners


def farthest(centers: np.ndarray, found: np.ndarray) -> float:
    """The largest distance of a true center from the nearest released one."""
    return float(np.linalg.norm(centers[:, None] - found[None], axis=2).min(axis=1).max())


@RELATIONS
@pytest.mark.parametrize("d", [2, 3, 8])
def test_separated_clusters_are_found(relation, d):
    """The centers of four clusters of about 2000 records are found to within half a standard deviation of the data,
    which is far more than the error of a step.
    """
    points, centers = clouds(8000, d, 4)
    found = dpmedian.k_medians(points + 1e6, 4, **BUDGET, neighbours=relation, seed=1)
    assert farthest(centers + 1e6, found.centers) < 0.5
    assert found.sizes == pytest.approx(np.full(4, 2000.0), abs=300.0)
    assert np.all(np.diff(found.sizes) <= 0.0)
    assert found.point.tolist() == found.centers[0].tolist()
    nearest = np.linalg.norm(points[:, None] - centers[None], axis=2).min(axis=1)
    assert found.radii == pytest.approx(np.full(4, np.median(nearest)), rel=0.25)
    assert found.notes == ()


@pytest.mark.parametrize(("d", "k"), [(1, 1), (1, 2), (2, 1)])
def test_one_center_and_the_line(d, k):
    points, centers = clouds(4000, d, k)
    found = dpmedian.k_medians(points, k, **BUDGET, seed=2)
    assert found.centers.shape == (k, d)
    assert farthest(centers, found.centers) < 0.3


def test_clusters_without_a_middle_are_found():
    """Between four equal clusters on the line every point is nearly a median, and a noisy point has a gradient."""
    rng = np.random.default_rng(0)
    centers = np.array([[0.0], [20.0], [40.0], [60.0]])
    points = centers[rng.integers(4, size=10_000)] + rng.normal(size=(10_000, 1))
    for seed in range(6):
        found = dpmedian.k_medians(points, 4, **BUDGET, seed=seed)
        assert farthest(centers, found.centers) < 0.3


@RELATIONS
def test_it_replays_with_a_neighbor(replay, relation):
    """With the same noisy answers a neighbor gives the same run, and each exact answer moves by at most its
    sensitivity.
    """
    for n, d in ((400, 2), (300, 3)):
        points, _ = clouds(n, d, 3)
        made = dpmedian.plan_k_medians(n, d, 3, rho=2.0, neighbours=relation)
        if relation == "add_remove":
            others = [points[:-1]]
        else:
            others = [np.vstack([points[:-1], record]) for record in (np.full(d, 1e9), np.zeros(d), points[0])]
        assert replay(made, points, others) >= 10


@RELATIONS
def test_a_run_spends_what_was_charged_and_no_more(relation):
    points, _ = clouds(3000, 3, 3)
    made = dpmedian.plan_k_medians(3000, 3, 3, rho=0.1, neighbours=relation)
    tape = Tape.record(KEY, relation)
    made.calibrated.run(SOURCES["array"](points, made.parameters), tape)
    spent = sum((sensitivity / scale) ** 2 for _, sensitivity, scale, _, _ in tape.entries())
    assert spent <= made.cost.mu_squared
    assert spent == pytest.approx(made.cost.mu_squared, rel=1e-6)


def result(plan: dpmedian.Plan, source: object, tape: Tape) -> tuple[float, ...]:
    found = plan.calibrated.run(source, tape)
    assert isinstance(found, ClusterResult)
    return (*found.centers.ravel().tolist(), *found.sizes.tolist(), *found.radii.tolist())


@RELATIONS
@pytest.mark.parametrize("source", [name for name in SOURCES if name != "array"])
def test_the_same_bits_on_any_partition(relation, source):
    points, _ = clouds(2000, 3, 3)
    made = dpmedian.plan_k_medians(2000, 3, 3, rho=0.5, neighbours=relation)
    whole = result(made, SOURCES["array"](points, made.parameters), Tape.draw(KEY, relation))
    assert result(made, SOURCES[source](points, made.parameters), Tape.draw(KEY, relation)) == whole


def test_the_same_bits_on_any_threads():
    points, _ = clouds(20_000, 4, 5)
    made = dpmedian.plan_k_medians(20_000, 4, 5, rho=0.05)
    found = set()
    for threads in (1, 2, 4):
        dpmedian.set_threads(threads)
        found.add(result(made, SOURCES["array"](points, made.parameters), Tape.draw(KEY, "replace")))
    dpmedian.set_threads(None)
    assert len(found) == 1


@RELATIONS
@pytest.mark.parametrize("d", [2, 4])
def test_plans_and_records_are_verified_and_read_back(relation, d):
    made = dpmedian.plan_k_medians(5000, d, 3, **BUDGET, neighbours=relation, trim=0.05)
    assert dpmedian.verify(made).holds
    points, _ = clouds(5000, d, 3)
    found = made.run(points, seed=3, name="three places")
    told = found.to_dict()
    assert told["clusters"] == 3
    assert told["trim"] == 0.05
    # `verify` finds nothing wrong except the seed.
    assert [text for text in dpmedian.verify(found).wrong if "seed" not in text] == []
    again = dpmedian.Release.from_json(found.to_json())
    assert isinstance(again, dpmedian.Places)
    assert again.to_dict() == told
    assert np.array_equal(again.centers, found.centers)
    assert again.size_sigma == found.size_sigma


def test_a_record_with_a_wrong_cluster_is_refused():
    points, _ = clouds(3000, 2, 2)
    told = dpmedian.k_medians(points, 2, **BUDGET, seed=1).to_dict()
    for name, value in (("sizes", told["sizes"][:1]), ("centers", told["centers"][::-1]), ("radii", ["a", 1.0])):
        with pytest.raises(ValueError, match=r"must|first"):
            dpmedian.Release.from_json(json.dumps({**told, name: value}))


def test_a_stage_with_another_number_of_coordinates_is_wrong():
    told = dpmedian.plan_k_medians(5000, 3, 3, **BUDGET).to_dict()
    for name in ("shells", "cells", "clusters"):
        changed = json.loads(json.dumps(told))
        stage = next(stage for stage in changed["stages"] if stage["name"] == name)
        stage["coordinates"] -= 1
        assert any("coordinates" in text for text in dpmedian.verify(changed).wrong), name


def test_a_ledger_is_charged_once_and_keeps_the_plan():
    points, _ = clouds(4000, 2, 3)
    ledger = dpmedian.Ledger(epsilon=2.0, delta=1e-5)
    found = dpmedian.k_medians(points, 3, **BUDGET, ledger=ledger, name="places")
    assert [entry.name for entry in ledger.entries] == ["places"]
    assert found.cost.rho == pytest.approx(ledger.entries[0].cost.rho)


def test_weights_units_and_the_sphere(tmp_path):
    rng = np.random.default_rng(0)
    points, centers = clouds(6000, 2, 3)
    found = dpmedian.k_medians(
        points, 3, **BUDGET, sample_weight=rng.choice([1.0, 2.0], 6000), weight_max=2.0, n=4500, seed=1
    )
    assert farthest(centers, found.centers) < 0.5
    assert found.sizes.sum() == pytest.approx(4500.0, rel=0.1)
    ids = np.repeat(np.arange(3000), 2)
    rows = np.repeat(points[:3000], 2, axis=0)
    found = dpmedian.k_medians(rows, 3, **BUDGET, unit=ids, seed=1)
    assert farthest(centers, found.centers) < 0.5
    assert found.n == 3000
    cities = np.array([[179.5, 10.0], [-60.0, -30.0], [20.0, 50.0]])
    positions = cities[rng.integers(3, size=6000)] + rng.normal(size=(6000, 2))
    found = dpmedian.k_medians(positions, 3, **BUDGET, geometry="sphere", seed=1)
    east = np.remainder(found.centers[:, None, 0] - cities[None, :, 0] + 180.0, 360.0) - 180.0
    apart = np.hypot(east, found.centers[:, None, 1] - cities[None, :, 1]).min(axis=0)
    assert apart.max() < 0.5
    assert found.to_frame()["radius_km"].to_numpy() == pytest.approx(found.radii * 111.195, rel=1e-4)
    np.save(tmp_path / "points.npy", points)
    from_file = dpmedian.k_medians(tmp_path / "points.npy", 3, **BUDGET, seed=5)
    assert np.array_equal(from_file.centers, dpmedian.k_medians(points, 3, **BUDGET, seed=5).centers)


def test_public_scales_divide_the_columns_and_centers_are_in_their_units(tmp_path, capsys):
    """Powers of two divide without rounding, so the values are the same to the last bit."""
    from dpmedian.cli import main

    points, _ = clouds(4000, 2, 3)
    factors = np.array([4096.0, 8.0])
    plain = dpmedian.k_medians(points, 3, **BUDGET, seed=1)
    for scales in ([4096.0, 8.0], {1: 4096.0, 2: 8.0}):
        found = dpmedian.k_medians(points * factors, 3, **BUDGET, scales=scales, seed=1)
        assert np.array_equal(found.centers, plain.centers * factors)
        assert np.array_equal(found.point, found.centers[0])
        assert np.array_equal(found.radii, plain.radii)
    made = dpmedian.plan_k_medians(4000, 2, 3, **BUDGET, scales=[4096.0, 8.0])
    assert np.array_equal(made.run(points * factors, seed=1).centers, found.centers)
    again = dpmedian.Release.from_json(found.to_json())
    assert np.array_equal(again.centers, found.centers)
    assert "public scales" in str(found)
    assert "The scales are" in found.report(tmp_path / "page.html").read_text()
    np.savetxt(tmp_path / "points.csv", points * factors, delimiter=",", header="a,b", comments="", fmt="%.17g")
    command = ["release", str(tmp_path / "points.csv"), "--epsilon", "1", "--delta", "1e-6", "--clusters", "3"]
    assert main([*command, "--seed", "1", "--scales", "a=4096,b=8"]) == 0
    assert json.loads(capsys.readouterr().out)["centers"] == found.centers.tolist()


def test_columns_named_like_a_fact_of_a_cluster_keep_their_values():
    pandas = pytest.importorskip("pandas")
    points, _ = clouds(3000, 2, 2)
    found = dpmedian.k_medians(pandas.DataFrame(points, columns=["size", "radius"]), 2, **BUDGET, seed=1)
    table = found.to_frame()
    assert list(table.columns) == ["center_size", "center_radius", "size", "size_sigma", "radius"]
    assert np.array_equal(table[["center_size", "center_radius"]], found.centers)
    assert np.array_equal(table["size"], found.sizes)


def test_several_centers_have_no_series_and_no_axes():
    points, _ = clouds(3000, 2, 2)
    found = dpmedian.k_medians(points, 2, **BUDGET, seed=1)
    with pytest.raises(ValueError, match="to_frame"):
        found.to_series()
    for asked in (found.axes, found.shape):
        with pytest.raises(ValueError, match="'k_medians' does not release directions"):
            asked()


def test_trimmed_records_take_no_center():
    """4 % of the records are together, at a distance of 500 from two clusters. They attract one of two centers unless
    they are trimmed.
    """
    points, centers = clouds(6000, 2, 2)
    points[:240] = 500.0 + np.random.default_rng(1).normal(size=(240, 2))
    whole = dpmedian.k_medians(points, 2, **BUDGET, seed=1)
    assert np.linalg.norm(whole.centers - 500.0, axis=1).min() < 10.0
    trimmed = dpmedian.k_medians(points, 2, **BUDGET, trim=0.06, seed=1)
    assert farthest(centers, trimmed.centers) < 0.5


def test_few_records_are_refused_before_spending_and_the_error_says_how_many_would_do():
    ledger = dpmedian.Ledger(epsilon=2.0, delta=1e-5)
    points, _ = clouds(300, 2, 4)
    with pytest.raises(ValueError, match=r"refused before spending.*would do"):
        dpmedian.k_medians(points, 4, epsilon=0.5, delta=1e-6, ledger=ledger)
    assert len(ledger.entries) == 0


def test_empty_clusters_are_noted():
    points = np.random.default_rng(0).normal(size=(4000, 2)) * 1e-3
    found = dpmedian.k_medians(points, 12, epsilon=2.0, delta=1e-6, seed=1)
    small = np.flatnonzero(found.sizes < 3.0 * found.size_sigma)
    assert bool(len(small)) == any("may consist of noise" in note for note in found.notes)


@pytest.mark.parametrize("factor", [5e298, 1e-310])
def test_records_as_far_away_as_doubles_reach_give_finite_centers(factor):
    points, centers = clouds(3000, 3, 2)
    found = dpmedian.k_medians(points * factor, 2, **BUDGET, seed=1)
    assert np.all(np.isfinite(found.centers))
    if factor > 1.0:
        assert farthest(centers, found.centers / factor) < 0.5


def test_records_beyond_a_point_where_half_of_them_coincide_are_noted():
    points, _ = clouds(3000, 2, 3)
    points[:1600] = 0.0
    found = dpmedian.k_medians(points, 3, **BUDGET, seed=1)
    assert any("have (nearly) the same values" in note for note in found.notes)


def test_bad_arguments_are_refused():
    points, _ = clouds(1000, 2, 2)
    for k in (0, 101, 2.0, True):
        with pytest.raises((ValueError, TypeError), match="k must"):
            dpmedian.k_medians(points, k, **BUDGET)
    for trim in (-0.1, 0.5, "a"):
        with pytest.raises((ValueError, TypeError), match="trim must"):
            dpmedian.k_medians(points, 2, **BUDGET, trim=trim)
    with pytest.raises(ValueError, match=r"pass delta too, for example delta=1e-6, or pass rho$"):
        dpmedian.k_medians(points, 2, epsilon=1.0)
    with pytest.raises(ValueError, match="k_medians"):
        dpmedian.geometric_median(points, **BUDGET, method="k_medians")


def test_a_plan_is_pickled_and_says_which_clusters_are_found():
    made = dpmedian.plan_k_medians(10_000, 2, 5, **BUDGET)
    again = pickle.loads(pickle.dumps(made))
    assert str(again) == str(made)
    assert "nineteen of twenty" in made.notes[0]
    dearer = dpmedian.plan_k_medians(10_000, 2, 5, epsilon=2.0, delta=1e-6)
    assert dearer.calibrated.smallest_cluster < made.calibrated.smallest_cluster


def test_frames_text_page_and_csv(tmp_path):
    pandas = pytest.importorskip("pandas")
    points, _ = clouds(4000, 2, 3)
    frame = pandas.DataFrame(points, columns=["east", "north"])
    found = dpmedian.k_medians(frame, 3, **BUDGET, seed=1, name="<places>")
    table = found.to_frame()
    assert list(table.columns) == ["east", "north", "size", "size_sigma", "radius"]
    assert len(table) == 3
    assert found.to_csv().splitlines()[0] == "cluster,east,north,size,size_sigma,radius"
    assert "3 private medians: <places>" in str(found)
    assert "&lt;places&gt;" in found._repr_html_()
    page = found.report(tmp_path / "page.html").read_text()
    assert "These are several typical places" in page
    assert f"{found.centers[2, 1]:.6g}" in page


def test_pictures_show_the_centers():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    for d in (1, 2, 5):
        points, _ = clouds(3000, d, 2)
        found = dpmedian.k_medians(points, 2, **BUDGET, seed=1)
        texts = [text.get_text() for text in found.plot(points).texts]
        assert any("do not publish" in text for text in texts)
        assert not any("do not publish" in text.get_text() for text in found.plot().texts)
    with pytest.raises(ValueError, match="d = 5"):
        found.plot(np.zeros((3, 2)))
    pyplot.close("all")


def test_a_map_is_not_cut_between_its_centers():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    rng = np.random.default_rng(0)
    positions = np.array([[179.0, 10.0], [-175.0, 12.0]])[rng.integers(2, size=4000)] + rng.normal(size=(4000, 2))
    positions[:, 0] = np.remainder(positions[:, 0] + 180.0, 360.0) - 180.0
    west, east = dpmedian.k_medians(positions, 2, **BUDGET, geometry="sphere", seed=1).plot(positions).get_xlim()
    assert east - west < 20.0
    pyplot.close("all")


def test_compression_and_expansion_are_inverse():
    lengths = np.concatenate([np.linspace(0.0, 5.0, 101), 2.0 ** np.linspace(1, 17, 50)])
    assert grid.expanded(grid.compressed(lengths)) == pytest.approx(lengths, rel=1e-12)


def test_the_reach_is_that_of_the_outermost_shells_that_stand_out():
    counts = np.zeros(SHELLS)
    counts[12], counts[30] = 1000.0, 40.0
    assert grid.reach_of(counts, 10.0) == shell_ends()[31]
    assert grid.reach_of(counts, 20.0) == shell_ends()[13]
    counts[30:34] = 18.0
    assert grid.reach_of(counts, 10.0) == shell_ends()[34]


def test_a_wide_cluster_beside_a_compact_one_stays_in_the_cells():
    """The compact cluster determines the scale, so the wide one covers many cells, each with few records."""
    rng = np.random.default_rng(0)
    wide = np.array([24.0, 0.0]) + 3.0 * rng.normal(size=(5000, 2))
    points = np.concatenate([0.5 * rng.normal(size=(5000, 2)), wide])
    made = grid.grid_of(np.zeros(2), np.eye(2), 0.6, 2048.0)
    lengths = np.linalg.norm(points, axis=1) / made.scale
    places = points / made.scale * (grid.compressed(lengths) / lengths)[:, None]

    def count(level: int, indices: np.ndarray) -> np.ndarray:
        cells = np.floor((places / made.side + 1.0) / 2.0 * 2**level).astype(int)
        table = np.zeros((2**level, 2**level))
        np.add.at(table, tuple(cells.T), 1.0)
        return table[tuple(indices.T)] + 25.0 * rng.normal(size=len(indices))

    leaves = grid.search(made, 25.0, 10_000.0, 2, count)
    there = np.linalg.norm(leaves.places - np.array([40.0, 0.0]), axis=1) < 25.0
    assert 4500 < leaves.weights[there].sum() < 5200


def test_leaves_are_trimmed_as_far_away_as_the_farthest_records():
    """The shells of the records end at 1, 2^(1/2), ...: 100 records lie beyond 64, and 300 between 8 and 2^(7/2)."""
    counts = np.zeros(SHELLS)
    counts[12], counts[18], counts[24] = 600.0, 300.0, 100.0
    counts[30] = 15.0  # A count that is noise.
    leaves = grid.Leaves(np.array([[1.2, 0.0], [9.0, 0.0], [70.0, 0.0]]), np.array([500.0, 150.0, 30.0]))
    for far, weight in ((50.0, 15.0), (100.0, 30.0), (200.0, 80.0), (400.0, 180.0)):
        assert grid.trimmed_weight(counts, 10.0, leaves, far) == pytest.approx(weight)


def test_weights_are_trimmed_from_the_farthest_on():
    weights, distances = np.array([1.0, 2.0, 1.0]), np.array([3.0, 1.0, 2.0])
    assert start.trimmed(weights, distances, 0.375).tolist() == [0.0, 2.0, 1.0]
    # More than half of the second point would be left out, so all of it is.
    assert start.trimmed(weights, distances, 0.4).tolist() == [0.0, 2.0, 0.0]
    assert start.trimmed(weights, distances, 0.12).tolist() == weights.tolist()


def test_weighted_k_medians_ignore_what_is_trimmed():
    points = np.array([[0.0], [0.1], [10.0], [10.1], [1000.0]])
    weights = np.array([10.0, 10.0, 10.0, 10.0, 1.0])
    found = np.sort(start.weighted_k_medians(points, weights, 2, trim=0.05)[:, 0])
    assert found == pytest.approx([0.05, 10.05], abs=0.06)


def seen_of(counts: np.ndarray, shells: np.ndarray) -> refinement.Seen:
    """The values of a release with a noise of 5 records."""
    return refinement.Seen(counts, shells, np.zeros((len(counts), 2)), 5.0, 5.0, 5.0)


def test_the_reach_of_trimmed_records_is_that_of_the_other_ones():
    shells = np.zeros((2, SHELLS))
    shells[:, 12], shells[0, 20], shells[1, 30] = 450.0, 40.0, 60.0
    seen = seen_of(np.array([490.0, 510.0]), shells)
    assert refinement.reach_of(seen, 2.0, 0.07, 1000.0) == 2.0 * shell_ends()[20]
    assert refinement.reach_of(seen, 2.0, 0.15, 1000.0) == 2.0 * shell_ends()[12]
    # Records that were not seen count as trimmed, up to a part of the share.
    assert refinement.reach_of(seen, 2.0, 0.07, 1040.0) == 2.0 * shell_ends()[30]


def test_a_center_without_records_moves_into_the_costliest_cluster_unless_it_is_far_away():
    shells = np.zeros((3, SHELLS))
    shells[0, 12], shells[1, 14] = 400.0, 600.0
    seen = seen_of(np.array([400.0, 600.0, 3.0]), shells)
    for last, moved in ((6.0, True), (1e3, False)):
        points = np.array([[0.0, 0.0], [3.0, 0.0], [last, 0.0]])
        found = refinement.revived(refinement.Centers(points, np.full(3, 1.0), seen.counts), seen, 1.0)
        assert np.array_equal(found.points[0], points[0])
        assert np.array_equal(found.points[2], points[2]) is not moved
        if moved:
            assert found.sizes.tolist() == [400.0, 300.0, 300.0]
            assert found.points[1:].mean(axis=0) == pytest.approx([3.0, 0.0])
            assert np.linalg.norm(found.points[1] - found.points[2]) == pytest.approx(1.0)


def test_required_n_finds_equal_clusters():
    wanted = dpmedian.required_n(2, k=5, **BUDGET)
    enough = dpmedian.plan_k_medians(wanted, 2, 5, **BUDGET).prediction.failure
    fewer = dpmedian.plan_k_medians(wanted - 1, 2, 5, **BUDGET).prediction.failure
    assert enough <= 0.05 < fewer
    with pytest.raises(ValueError, match="leave these out"):
        dpmedian.required_n(2, k=5, excess=0.1, **BUDGET)


def test_the_command_line_releases_and_plans_clusters(tmp_path, capsys):
    from dpmedian.cli import main

    points, centers = clouds(4000, 2, 3)
    np.savetxt(tmp_path / "points.csv", points, delimiter=",", header="east,north", comments="")
    arguments = ["--epsilon", "1", "--delta", "1e-6", "--clusters", "3"]
    assert main(["release", str(tmp_path / "points.csv"), *arguments, "--seed", "1", "--trim", "1/100"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert farthest(centers, np.array(told["centers"])) < 0.5
    assert (told["clusters"], told["trim"]) == (3, 0.01)
    assert main(["release", str(tmp_path / "points.csv"), *arguments, "--seed", "1", "--output", "csv"]) == 0
    assert capsys.readouterr().out.startswith("cluster,east,north,size,size_sigma,radius\n0,")
    assert main(["plan", "4000", "2", *arguments]) == 0
    assert "k_medians" in capsys.readouterr().out
    for wrong in (["--method", "dpgd"], ["--by", "district"], ["--profile", "paper"]):
        assert main(["plan", "4000", "2", *arguments, *wrong]) == 2
    assert main(["plan", "4000", "2", "--epsilon", "1", "--delta", "1e-6", "--trim", "0.1"]) == 2
