"""Wrong input raises an error before any budget is spent, results do not depend on threads, and Ctrl-C and
forks work.
"""

import csv
import math
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import dpmedian
from dpmedian import _core

POINTS = np.random.default_rng(0).normal(size=(200, 3))
BUDGET = {"epsilon": 1.0, "delta": 1e-6}
DPGD = {**BUDGET, "method": "dpgd", "radius": 10.0}


@pytest.mark.parametrize(
    ("points", "error", "message"),
    [
        (np.zeros(5), ValueError, r"shape \(n, d\), got shape \(n,\)"),
        (np.zeros((2, 2, 2)), ValueError, "shape"),
        (np.zeros((1, 2)), ValueError, "n must be at least 2"),
        (np.zeros((5, 0)), ValueError, "d must be at least 1"),
        (np.array([["a", "b"]] * 3), TypeError, "dtype"),
        (np.zeros((5, 2), dtype=complex), TypeError, "complex"),
        (np.zeros((5, 2), dtype=bool), TypeError, "bool"),
        ([[1.0, 2.0], [3.0]], ValueError, "rectangular"),
        (None, TypeError, "numbers"),
        ([[1.0, None]] * 200, (TypeError, ValueError), "points"),
        (np.array([[0.0, 1.0], [np.nan, 2.0]] * 100), ValueError, r"points\[1, 0\] is not finite"),
        (np.array([[0.0, np.inf], [1.0, 2.0]] * 100), ValueError, r"points\[0, 1\] is not finite"),
    ],
)
def test_bad_points_are_refused_and_nothing_is_charged(points, error, message):
    ledger = dpmedian.Ledger(epsilon=10.0, delta=1e-5)
    with pytest.raises(error, match=message):
        dpmedian.geometric_median(points, **DPGD, ledger=ledger)
    assert ledger.entries == ()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"epsilon": 0.0}, ValueError, "epsilon"),
        ({"epsilon": -1.0}, ValueError, "epsilon"),
        ({"epsilon": float("nan")}, ValueError, "epsilon"),
        ({"epsilon": "one"}, TypeError, "epsilon"),
        ({"delta": 1.0}, ValueError, "delta"),
        ({"delta": -0.1}, ValueError, "delta"),
        ({"rho": 0.1}, ValueError, "rho"),
        ({"epsilon": None, "delta": None}, ValueError, "epsilon"),
        ({"radius": 0.0}, ValueError, "radius must be positive"),
        ({"radius": -2.0}, ValueError, "radius"),
        ({"radius": float("inf")}, ValueError, "radius"),
        ({"radius": "far"}, TypeError, "radius"),
        ({"radius": None}, ValueError, "needs radius="),
        ({"resolution": 10.0}, ValueError, "resolution must be smaller than radius"),
        ({"resolution": -1.0}, ValueError, "resolution"),
        ({"center": [0.0]}, ValueError, r"center must have shape \(3,\)"),
        ({"center": [0.0, np.nan, 0.0]}, ValueError, "center"),
        ({"center": "here"}, TypeError, "center"),
        ({"method": "magic"}, ValueError, "method must be"),
        ({"profile": "fast"}, ValueError, "profile must be one of"),
        ({"failure_probability": 1.0}, ValueError, "failure_probability"),
        ({"nonfinite": "skip"}, ValueError, "nonfinite must be"),
        ({"nonfinite": "drop"}, ValueError, "neighbours='add_remove'"),
        ({"seed": -1}, ValueError, "seed"),
        ({"seed": 1.5}, TypeError, "seed"),
        ({"radius": 10**400}, ValueError, "radius must be positive and finite"),
        ({"resolution": 10**400}, ValueError, "resolution must be positive and finite"),
        ({"center": [10**400, 0, 0]}, ValueError, "center must be finite"),
        ({"failure_probability": 10**400}, ValueError, "failure_probability"),
        ({"scales": [10**400, 1, 1]}, ValueError, "scales must be positive and finite"),
        ({"name": "\ud800"}, ValueError, "name must be text that UTF-8 can encode"),
    ],
)
def test_bad_arguments_are_named_and_nothing_is_charged(change, error, message):
    ledger = dpmedian.Ledger(epsilon=10.0, delta=1e-5)
    with pytest.raises(error, match=message):
        dpmedian.geometric_median(POINTS, **{**DPGD, **change}, ledger=ledger)
    assert ledger.entries == ()


@pytest.mark.parametrize("most", [-1, 0, 2**64, 10**400, 3])
def test_a_number_of_groups_that_cannot_be_is_named_before_rows_are_grouped(most):
    ledger = dpmedian.Ledger(rho=10.0)
    with pytest.raises(ValueError, match="max_groups_per_unit must lie between 1 and the number of keys, 2, got"):
        dpmedian.geometric_medians(
            POINTS,
            ["a", "b"] * 100,
            keys=["a", "b"],
            unit=range(200),
            max_groups_per_unit=most,
            rho=1.0,
            ledger=ledger,
        )
    assert ledger.entries == ()


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: dpmedian.plan(3000, 2**64, **BUDGET), "d must be at least 1 and at most"),
        (lambda: dpmedian.plan(3000, 10**400, **BUDGET), "d must be at least 1 and at most"),
        (lambda: dpmedian.plan(3000, 2, **BUDGET, weight_max=10**400), "weight_max must be positive and finite"),
        (lambda: dpmedian.required_n(2, **BUDGET, excess=10**400), "excess must be positive and finite"),
        (lambda: dpmedian.plan_k_medians(3000, 2, 3, **BUDGET, trim=10**400), "trim must be at least 0 and below"),
        (lambda: dpmedian.plan_groups(["\ud800"], 2, **BUDGET), "a key must be text that UTF-8 can encode"),
    ],
)
def test_numbers_that_no_double_holds_are_named(call, name):
    with pytest.raises(ValueError, match=name):
        call()


def test_a_plan_refuses_points_of_another_shape():
    with pytest.raises(ValueError, match=r"shape \(300, 3\), got \(200, 3\)"):
        dpmedian.plan(300, 3, **DPGD).run(POINTS)


def test_an_empty_ledger_refuses_before_the_data_are_looked_at():
    ledger = dpmedian.Ledger(epsilon=0.5, delta=1e-6)
    with pytest.raises(ValueError, match="budget"):
        dpmedian.geometric_median(np.full((200, 3), np.nan), **DPGD, ledger=ledger)


def test_nonfinite_rows_can_become_the_center():
    broken = POINTS.copy()
    broken[7, 1] = np.nan
    replaced = POINTS.copy()
    replaced[7] = [1.0, 2.0, 3.0]
    options = {**DPGD, "center": [1.0, 2.0, 3.0], "seed": 3}
    point = dpmedian.geometric_median(broken, **options, nonfinite="center").point
    assert np.array_equal(point, dpmedian.geometric_median(replaced, **options).point)


def test_a_seed_warns():
    with pytest.warns(dpmedian.InsecureSeedWarning):
        dpmedian.geometric_median(POINTS, **DPGD, seed=1)


def test_without_a_seed_no_two_releases_are_alike():
    points = [dpmedian.geometric_median(POINTS, **DPGD).point for _ in range(2)]
    assert not np.array_equal(*points)


def test_the_same_bits_for_every_container_and_thread_count():
    points = POINTS.astype(np.float32)
    expected = dpmedian.geometric_median(points, **DPGD, seed=1).point
    wide = np.zeros((400, 6), dtype=np.float32)
    wide[::2, ::2] = points
    for same in (points.astype(np.float64), np.asfortranarray(points), points.tolist(), wide[::2, ::2]):
        assert np.array_equal(dpmedian.geometric_median(same, **DPGD, seed=1).point, expected)
    for threads in (1, 2, 4):
        dpmedian.set_threads(threads)
        assert np.array_equal(dpmedian.geometric_median(points, **DPGD, seed=1).point, expected)
    dpmedian.set_threads(None)


@pytest.mark.parametrize("threads", [0, -1, 5000])
def test_a_number_of_threads_that_cannot_be_is_refused(threads):
    with pytest.raises(ValueError, match=f"threads must be None or lie between 1 and 1024, got {threads}"):
        dpmedian.set_threads(threads)


def test_frames_keep_their_column_names():
    pandas, polars, arrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    expected = dpmedian.geometric_median(POINTS, **DPGD, seed=1).point
    columns = {name: POINTS[:, i] for i, name in enumerate("abc")}
    for frame in (pandas.DataFrame(columns), polars.DataFrame(columns), arrow.table(columns)):
        release = dpmedian.geometric_median(frame, **DPGD, seed=1)
        assert np.array_equal(release.point, expected)
        assert list(release.to_series().index) == ["a", "b", "c"]


@pytest.mark.parametrize("name", [3, 0, b"place"])
def test_a_name_is_text(name):
    with pytest.raises(TypeError, match="name must be a string, got"):
        dpmedian.geometric_median(POINTS, **DPGD, name=name)
    with pytest.raises(TypeError, match="name must be a string, got"):
        dpmedian.geometric_medians(POINTS, ["a"] * len(POINTS), keys=["a"], rho=0.5, name=name)


def test_without_pandas_a_series_says_what_it_needs(monkeypatch):
    release = dpmedian.geometric_median(POINTS, **DPGD, seed=1)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="to_series needs pandas: pip install pandas"):
        release.to_series()


def test_a_private_copy_is_made_before_the_run():
    """Changing the array during a run has no effect. The callback changes it as early as possible."""
    points = np.random.default_rng(0).normal(size=(20_000, 10))
    plan = dpmedian.plan(*points.shape, rho=1.0, method="dpgd", radius=10.0)
    expected = plan.run(points.copy(), seed=1).point
    changed = []

    def change(done: float) -> None:
        if done > 0.0 and not changed:
            changed.append(done)
            points[:] = 1000.0

    assert np.array_equal(plan.run(points, seed=1, progress=change, copy=True).point, expected)
    assert changed
    assert changed[0] < 0.9, "the array was changed while most of the run was still to come"


@pytest.mark.parametrize("options", [{"method": "adaptive"}, {"method": "dpgd", "radius": 3.0}])
def test_float32_releases_what_the_widened_array_does(options):
    singles = np.random.default_rng(0).normal(size=(500, 3)).astype(np.float32)
    plan = dpmedian.plan(*singles.shape, rho=1.0, **options)
    expected = plan.run(singles.astype(np.float64), seed=1).point
    backwards = np.ascontiguousarray(singles[::-1])[::-1]
    misaligned = np.frombuffer(b"\0" + singles.tobytes(), dtype=np.uint8)[1:].view(np.float32).reshape(singles.shape)
    assert not misaligned.flags.aligned
    for points in (singles, np.asfortranarray(singles), backwards, misaligned, singles.astype(">f4")):
        assert np.array_equal(plan.run(points, seed=1).point, expected)
    # Records outside of the ball are projected when they are loaded, and records that are not finite are replaced.
    singles[5, 1], doubles = np.inf, singles.astype(np.float64)
    doubles[5] = 0.0
    assert np.array_equal(plan.run(singles, seed=1, nonfinite="center").point, plan.run(doubles, seed=1).point)


def test_the_core_reads_arrays_in_c_order_only():
    with pytest.raises(ValueError, match="C order"):
        _core.Points(np.asfortranarray(np.ones((3, 2))))
    with pytest.raises(TypeError, match="float32"):
        _core.Points(np.ones((3, 2), dtype=np.int64))  # type: ignore[arg-type]


def test_a_released_point_cannot_be_changed():
    release = dpmedian.geometric_median(POINTS, **DPGD, seed=1)
    with pytest.raises(ValueError, match="read-only"):
        release.point[0] = 0.0


def _release(seed):
    return dpmedian.geometric_median(POINTS, **DPGD, seed=seed).point


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process")
def test_a_forked_pool_works_after_a_call_in_the_parent():
    expected = _release(1)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        for point in pool.map_async(_release, [1, 1]).get(timeout=60):
            assert np.array_equal(point, expected)


@pytest.mark.slow
def test_an_interrupt_ends_a_long_run_and_stays_charged(tmp_path):
    script = textwrap.dedent("""
        import sys, numpy as np, dpmedian
        ledger = dpmedian.Ledger(rho=100.0, path=sys.argv[1])
        points = np.random.default_rng(0).normal(size=(200_000, 20))
        plan = dpmedian.plan(*points.shape, rho=50.0, method="dpgd", radius=10.0)
        print("ready", flush=True)
        try:
            plan.run(points, ledger=ledger)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """)
    path = tmp_path / "ledger.json"
    with subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "ready\n"
        time.sleep(1.0)
        sent = time.monotonic()
        run.send_signal(signal.SIGINT)
        assert run.stdout.readline() == "interrupted\n"
        # One second is promised; the rest is for a busy machine.
        assert time.monotonic() - sent < 5.0
        assert run.wait(timeout=60) == 0
    assert [entry.state for entry in dpmedian.Ledger.open(path).entries] == ["interrupted"]


def test_other_threads_run_while_a_kernel_works():
    """The GIL is released, so a counter in another thread advances during one long call of the core.

    If the GIL were held, the counter could advance only at the two ends of the call.
    """
    points = np.random.default_rng(0).normal(size=(12_000, 60))
    ticks, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            ticks[0] += 1
            time.sleep(0.001)

    counter = threading.Thread(target=count)
    counter.start()
    try:
        before = ticks[0]
        _core.nonprivate_ball_counts(points, [1.0, 2.0], pairwise=True)
        after = ticks[0]
    finally:
        stop.set()
        counter.join()
    assert after - before >= 10


@pytest.mark.parametrize("n", [200, 4_000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_progress_goes_from_0_to_1_and_never_back(n):
    """This also holds for a run that ends before the first report. The longer run has thousands of steps."""
    seen: list[float] = []
    points = np.random.default_rng(0).normal(size=(n, 20))
    dpmedian.plan(*points.shape, rho=1.0, method="dpgd", radius=10.0).run(points, progress=seen.append)
    assert seen == sorted(seen)
    assert (seen[0], seen[-1]) == (0.0, 1.0)
    assert len(seen) > 2 or n < 1000


def test_importing_starts_no_threads():
    code = "import dpmedian, os; print(len(os.listdir('/proc/self/task')))"
    if not os.path.isdir("/proc/self/task"):
        pytest.skip("no /proc here")
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    assert subprocess.check_output([sys.executable, "-c", code], env=environment).strip() == b"1"


def test_a_point_at_the_border_of_the_public_ball_has_a_note():
    """A radius far from the data gives the median of the records' projections, and the release says so."""
    points = np.random.default_rng(0).normal(loc=(48.0, 11.5), size=(2000, 2))
    release = dpmedian.geometric_median(points, **BUDGET, radius=1e-4, seed=1)
    assert any("border of the public ball" in note for note in release.notes)
    assert "border of the public ball" in str(release)
    inside = dpmedian.geometric_median(points, **BUDGET, radius=100.0, seed=1)
    assert not any("border of the public ball" in note for note in inside.notes)


def test_a_release_and_its_entry_carry_their_name():
    ledger = dpmedian.Ledger(epsilon=10.0, delta=1e-5)
    release = dpmedian.geometric_median(POINTS, **DPGD, ledger=ledger, name="typical place", seed=1)
    assert release.name == "typical place"
    assert [(entry.name, entry.seeded) for entry in ledger.entries] == [("typical place", True)]
    assert "typical place" in str(release)
    assert "seeded" in str(release)


def test_a_callback_that_stumbles_over_the_last_report_loses_no_point():
    def stumble(done: float) -> None:
        if done == 1.0:
            raise RuntimeError("no window to draw in")

    assert dpmedian.geometric_median(POINTS, **DPGD, progress=stumble).point.shape == (3,)


def test_a_program_without_stderr_can_release(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    assert dpmedian.geometric_median(POINTS, **DPGD).point.shape == (3,)


def test_the_smallest_radius_runs_and_smaller_ones_are_refused():
    radius = 2.0**-1000
    points = radius * np.random.default_rng(0).uniform(-0.5, 0.5, size=(2000, 2))
    release = dpmedian.geometric_median(points, **BUDGET, method="adaptive", radius=radius, seed=1)
    assert np.all(np.abs(release.point) <= radius)
    with pytest.raises(ValueError, match=r"radius must be at least 2\*\*-1000"):
        dpmedian.plan(2000, 2, **BUDGET, radius=1e-308)


def test_a_building_block_that_stops_after_its_charge_says_so():
    ledger = dpmedian.Ledger(epsilon=10.0)
    blocks = dpmedian.building_blocks
    with pytest.raises(ValueError, match="threshold must be"):
        blocks.above_threshold([1], 10**30, sensitivity=1, epsilon=1.0, ledger=ledger)
    assert not ledger.entries
    with pytest.raises(RuntimeError, match="after its cost was charged"):
        blocks.above_threshold([1.5], 10, sensitivity=1, epsilon=1.0, ledger=ledger)
    with pytest.raises(RuntimeError, match="after its cost was charged"):
        blocks.exponential_mechanism(iter(()), sensitivity=1, epsilon=1.0, ledger=ledger)
    assert [entry.state for entry in ledger.entries] == ["interrupted", "interrupted"]


@pytest.mark.parametrize(
    ("name", "arguments", "match"),
    [
        ("above_threshold", (None, 5), "queries must be an iterable"),
        ("above_threshold", (7, 5), "queries must be an iterable"),
        ("exponential_mechanism", (None,), "scores must be an iterable"),
        ("exponential_mechanism", ([],), "scores must not be empty"),
        ("noisy_bisection", (np.zeros(5), 0, 4, 2), "count must be a function"),
        ("noisy_bisection", (lambda index: index, 0, 4, "2"), "target must be a finite number"),
        ("noisy_bisection", (lambda index: index, 0, 4, math.nan), "target must be a finite number"),
    ],
)
def test_building_blocks_check_public_arguments_before_the_charge(name, arguments, match):
    ledger = dpmedian.Ledger(rho=10.0)
    with pytest.raises((TypeError, ValueError), match=match):
        getattr(dpmedian.building_blocks, name)(*arguments, sensitivity=1, rho=0.1, ledger=ledger)
    assert not ledger.entries


def test_the_tape_of_a_building_block_is_capped(monkeypatch):
    """The tape stops a mechanism that makes one query more than it is charged for."""
    from dpmedian.mechanisms.bisection import NoisyBisection

    release = NoisyBisection.release

    def twice(self, tape, count, target):
        release(self, tape, count, target)
        return release(self, tape, count, target)

    monkeypatch.setattr(NoisyBisection, "release", twice)
    with pytest.raises(RuntimeError, match="would exceed the allowance"):
        dpmedian.building_blocks.noisy_bisection(lambda index: index, 0, 8, 4.0, sensitivity=1, rho=0.1)


@pytest.mark.parametrize("budget", [{"epsilon": 1000.0, "delta": 1e-6}, {"epsilon": 1.0, "delta": 0.5}, {"rho": 100.0}])
def test_a_budget_that_promises_next_to_nothing_warns(budget):
    with pytest.warns(dpmedian.WeakPrivacyWarning, match="almost nothing") as caught:
        dpmedian.geometric_median(POINTS, **budget, method="dpgd", radius=10.0)
    assert [warning.filename for warning in caught] == [__file__]


def test_building_blocks_warn_of_weak_budgets_too():
    blocks, weak = dpmedian.building_blocks, pytest.warns(dpmedian.WeakPrivacyWarning, match="almost nothing")
    with weak:
        blocks.above_threshold([1, 9], 5, sensitivity=1, epsilon=100.0)
    with weak:
        blocks.noisy_bisection(lambda index: index, 0, 8, 4.0, sensitivity=1, rho=100.0)
    with weak:
        blocks.dpgd(POINTS, rho=100.0, radius=10.0)


def test_epsilon_without_delta_says_to_pass_delta():
    for d in (2, 5):
        with pytest.raises(ValueError, match="pass delta too, for example delta=1e-6"):
            dpmedian.plan(1000, d, epsilon=1.0)


def test_only_public_names_are_listed():
    listed = dir(dpmedian)
    assert set(dpmedian.__all__) <= set(listed)
    assert not {"running", "sources", "tape", "Any"} & set(listed)


def test_large_results_print_for_people():
    points = np.random.default_rng(0).normal(size=(4_000, 60))
    release = dpmedian.geometric_median(points, epsilon=1.0, delta=1e-6, seed=1)
    region = repr(release.confidence_region())
    assert region.startswith("Region: ")
    assert "and 54 more" in region
    assert len(region) < 400
    assert repr(release.cost) == f"PrivacyCost({release.cost})"
    assert repr(dpmedian.verify(release.plan)).endswith("The claim holds.")


def test_one_release_as_comma_separated_values():
    points = np.random.default_rng(0).normal(size=(2000, 2))
    release = dpmedian.geometric_median(points, epsilon=1.0, delta=1e-6, seed=1)
    names, values = (line.split(",") for line in release.to_csv().splitlines())
    row = dict(zip(names, values, strict=True))
    assert [float(row["x0"]), float(row["x1"])] == release.point.tolist()
    assert float(row["x0_low"]) == release.confidence_region().intervals[0, 0]
    assert (row["size"], row["outcome"], row["reason"]) == ("2000", "released", "")


def test_a_coordinate_keeps_its_name_in_tables_whatever_it_is_called():
    pandas = pytest.importorskip("pandas")
    names = ["size", "scale", "outcome", "size_low", "release_size"]
    frame = pandas.DataFrame(np.random.default_rng(0).normal(size=(4000, 5)), columns=names)
    told = {"rho": 1.0, "seed": 1, "progress": False}
    release = dpmedian.geometric_median(frame, **told)
    header, values = csv.reader(release.to_csv().splitlines())
    assert len(set(header)) == len(header)
    row = dict(zip(header, values, strict=True))
    assert [float(row[name]) for name in names] == release.point.tolist()
    assert (row["release_release_size"], row["release_outcome"]) == ("4000", "released")
    assert float(row["release_size_low"]) == release.confidence_region().intervals[0, 0]
    groups = dpmedian.geometric_medians(frame.assign(side=np.arange(4000) % 2), "side", keys=[0, 1], **told)
    table = groups.to_frame()
    assert table.loc[0, names].tolist() == groups[0].point.tolist()
    assert table.loc[0, "release_release_size"] == groups[0].size
    places = dpmedian.k_medians(frame.rename(columns={"scale": "center_size"}), 2, **told)
    assert places.to_frame().shape == (2, 8)
    assert sum(map(places.centers[0].__contains__, places.to_frame().iloc[0])) == 5
    assert len(set(places.to_csv().splitlines()[0].split(","))) == 9


# Columns of text in unattended runs.

TEXT = {"name": ["anna", "bert", "carl", "dora"] * 500}
CENTER_NOTE = "to which nonfinite='center' moves every record with a cell that is not a number"


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("options", [{}, {"method": "dpgd", "radius": 50.0}, {"center": [7.0]}])
def test_text_sent_to_the_center_is_noted_and_never_refused_for_its_cells(library, options):
    """A refusal would depend on cells, because a reader gives different types to the columns "12", "13" and "12",
    "unknown".
    """
    module = pytest.importorskip(library)
    told = {"rho": 1.0, "seed": 1, "nonfinite": "center", "progress": False, **options}
    release = dpmedian.geometric_median(module.DataFrame(TEXT), **told)
    assert any(CENTER_NOTE in note for note in release.notes)
    numbers = [str(x) for x in np.random.default_rng(0).normal(3.0, 1.0, 2000)]
    for first in ("1.5", "unknown"):
        frame = module.DataFrame({"x": [first, *numbers[1:]]})
        assert not any(CENTER_NOTE in note for note in dpmedian.geometric_median(frame, **told).notes)


def test_places_and_groups_of_text_have_the_note_too():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(TEXT)
    told = {"rho": 1.0, "seed": 1, "nonfinite": "center", "progress": False}
    places = dpmedian.k_medians(frame, 2, **told)
    assert any(CENTER_NOTE in note for note in places.notes)
    assert np.isfinite(places.centers).all()
    groups = dpmedian.geometric_medians(frame, np.arange(2000) % 2, keys=[0, 1], **told)
    assert all(any(CENTER_NOTE in note for note in release.notes) for release in groups.values())


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
@pytest.mark.parametrize("options", [{}, {"unit": "id"}, {"scales": [2.0]}])
def test_text_in_a_stored_schema_is_refused_before_the_charge_whatever_the_cells(ending, options, tmp_path):
    """The schema of a file is public, and the same in neighboring files, so the refusal depends on nothing else."""
    arrow = pytest.importorskip("pyarrow")
    path, messages = tmp_path / f"a.{ending}", set()
    for cells in (TEXT["name"], ["1", "2", "3", "4"] * 500, ["1", "2", "3", None] * 500):
        table = arrow.table({"name": arrow.array(cells, arrow.string()), "id": np.arange(2000)})
        if ending == "parquet":
            pytest.importorskip("pyarrow.parquet").write_table(table, path)
        else:
            pytest.importorskip("pyarrow.feather").write_feather(table, path)
        ledger = dpmedian.Ledger(rho=1.0)
        with pytest.raises(TypeError, match="column 'name' has type string, which is not a number") as error:
            dpmedian.geometric_median(
                path, rho=1.0, nonfinite="center", columns=["name"], ledger=ledger, progress=False, **options
            )
        messages.add(str(error.value))
        assert ledger.entries == ()
    assert len(messages) == 1
