"""The command as a user sees it: exit codes, one-line errors, JSON, and a ledger that two commands share."""

import gzip
import io
import json
import os
import select
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import dpmedian
from dpmedian.cli import main
from dpmedian.data import POSITIONS
from dpmedian.methods.registry import METHODS

BUDGET = ["--epsilon", "1", "--delta", "1e-6"]
METHOD = ["--method", "dpgd", "--radius", "1000"]


@pytest.fixture
def run(capsys):
    """Run the command in this process, and return the exit code, stdout and stderr."""

    def command(*arguments):
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as stop:
            code = stop.code
        written = capsys.readouterr()
        return code, written.out, written.err

    return command


def one_line(text):
    return text.startswith("dpmedian: ") and text.count("\n") == 1 and text.endswith("\n")


def test_release_prints_the_json_of_the_same_release_as_the_library(run):
    code, out, err = run("release", POSITIONS, *BUDGET, *METHOD, "--seed", 7)
    expected = dpmedian.geometric_median(
        dpmedian.data.load_positions(), epsilon=1.0, delta=1e-6, method="dpgd", radius=1000.0, seed=7
    )
    printed = json.loads(out)
    assert code == 0
    assert list(printed["point"]) == ["east_km", "north_km"]
    assert list(printed["point"].values()) == expected.point.tolist()
    assert printed["cost"]["rho"] == expected.cost.rho
    assert (printed["cost"]["epsilon"], printed["cost"]["delta"]) == (1.0, 1e-6)
    assert (printed["method"], printed["n"], printed["version"]) == ("dpgd", 2000, dpmedian.__version__)
    assert one_line(err)
    assert "warning: a fixed seed" in err


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        (["--minimum", 5], "--by"),
        (["--max-groups-per-unit", 2], "--by"),
        (["--keys", "keys.txt"], "--by"),
        (["--unit-reduce", "mean"], "--unit"),
        (["--n", 2000], "--neighbours add_remove"),
        (["--cache", ".", "--unit", "person"], "--unit loads the rows"),
        (["--cache", ".", "--weight", "w", "--weight-max", 2], "--weight loads the rows"),
        (["--cache", ".", "--scales", "1,2"], "--scales loads the rows"),
        (["--cache", ".", "--geometry", "sphere"], "--geometry sphere loads the rows"),
        (["--cache", ".", "--by", "side"], "--by loads the rows"),
        (["--cache", "nosuch"], "no such folder"),
        (["--axes", 0.1, "--by", "side"], "--axes cannot be combined with --by"),
        (["--axes", 0.1, "--clusters", 3], "--clusters"),
        (["--no-inference", "--clusters", 3], "--clusters"),
        (["--keys", "nosuch.txt", "--by", "side"], "--keys nosuch.txt: there is no such file"),
    ],
)
def test_no_argument_of_a_release_is_ignored_and_no_file_is_opened_to_say_so(run, given, missing):
    code, out, err = run("release", "nosuch.csv", *BUDGET, *given)
    assert (code, out) == (2, "")
    assert one_line(err)
    assert given[0] in err
    assert missing in err


def test_release_without_a_seed_is_quiet_and_random(run):
    results = [run("release", POSITIONS, *BUDGET, *METHOD) for _ in range(2)]
    assert [(code, err) for code, _, err in results] == [(0, ""), (0, "")]
    assert results[0][1] != results[1][1]


def test_release_as_a_table(run):
    code, out, _ = run("release", POSITIONS, *BUDGET, *METHOD, "--output", "table", "--columns", "north_km")
    assert code == 0
    assert out.startswith("Release\n")
    assert "d = 1" in out


def test_release_as_comma_separated_values(run):
    arguments = [POSITIONS, *BUDGET, "--seed", 7]
    code, out, _ = run("release", *arguments, "--output", "csv")
    header, row = out.splitlines()
    assert (code, header.split(",")[:4]) == (0, ["east_km", "north_km", "east_km_low", "east_km_high"])
    printed = json.loads(run("release", *arguments)[1])
    assert [float(x) for x in row.split(",")[:2]] == list(printed["point"].values())


def test_a_cache_is_refused_for_a_file_that_is_not_converted(run, tmp_path):
    code, out, err = run("release", POSITIONS, *BUDGET, "--cache", tmp_path)
    assert (code, out) == (2, "")
    assert "--cache) is only for Arrow and Parquet files" in err


def test_regions_and_axes_can_be_chosen(run):
    arguments = [POSITIONS, *BUDGET, "--seed", 7]
    without = json.loads(run("release", *arguments, "--no-inference")[1])
    expected = dpmedian.geometric_median(
        dpmedian.data.load_positions(), epsilon=1.0, delta=1e-6, seed=7, inference=False
    )
    assert list(without["point"].values()) == expected.point.tolist()
    assert without["moments"] is None
    code, out, _ = run("release", *arguments, "--axes", 0.1, "--output", "table")
    axes = dpmedian.geometric_median(dpmedian.data.load_positions(), epsilon=1.0, delta=1e-6, seed=7, axes=0.1).axes()
    assert code == 0
    assert out.endswith(f"\n{axes}\n")
    plans = [run("plan", 2000, 2, *BUDGET, *given)[1] for given in ([], ["--no-inference"], ["--axes", 0.1])]
    assert len(set(plans)) == 3
    by = [run("plan", 2000, 2, *BUDGET, "--by", "side", *given)[1] for given in ([], ["--no-inference"])]
    assert by[0] != by[1]


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX pipes")
def test_a_reader_who_leaves_early_is_no_error_of_what_can_be_printed_again(run, tmp_path):
    record = tmp_path / "record.json"
    record.write_text(run("release", POSITIONS, *BUDGET)[1])
    told = json.loads(record.read_text())
    told["cost"]["rho"] /= 2.0
    (tmp_path / "wrong.json").write_text(json.dumps(told))
    for arguments, code in (
        (["verify", record], 0),
        (["verify", tmp_path / "wrong.json"], 6),
        (["plan", "2000", "2", *BUDGET], 0),
    ):
        reading, writing = os.pipe()
        os.close(reading)
        command = [sys.executable, "-m", "dpmedian", *map(str, arguments)]
        done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=60)
        os.close(writing)
        assert (done.returncode, "pipe" in done.stderr.lower()) == (code, False), done.stderr


def test_plan_prints_the_table_and_its_json(run):
    code, out, err = run("plan", 3000, 200, "--epsilon", "2", "--delta", "1/3000", *METHOD)
    expected = dpmedian.plan(3000, 200, epsilon=2.0, delta=1 / 3000, method="dpgd", radius=1000.0)
    assert (code, out, err) == (0, f"{expected}\n", "")
    code, out, _ = run("plan", 3000, 200, "--epsilon", "2", "--delta", "1/3000", *METHOD, "--output", "json")
    printed = json.loads(out)
    assert printed["cost"]["rho"] == expected.cost.rho
    assert printed["stages"][0]["sensitivity"] == expected.stages[0].sensitivity
    assert printed["prediction"]["excess_distance_bound"] == expected.prediction.excess_distance_bound


ADDED = ["--neighbours", "add_remove"]


def test_the_number_of_records_can_be_private(run, tmp_path):
    code, out, _ = run("release", POSITIONS, *BUDGET, *METHOD, *ADDED, "--n", 1500, "--seed", 7)
    printed = json.loads(out)
    options = {"method": "dpgd", "radius": 1000.0, "neighbours": "add_remove", "n": 1500}
    points = dpmedian.data.load_positions()
    expected = dpmedian.geometric_median(points, epsilon=1.0, delta=1e-6, **options, seed=7)
    assert (code, printed["n"], printed["size"], printed["neighbours"]) == (0, None, expected.size, "add_remove")
    assert list(printed["point"].values()) == expected.point.tolist()
    assert "2000" not in out
    broken = tmp_path / "broken.csv"
    broken.write_text(POSITIONS.read_text() + "nothing,1\n")
    code, dropped, _ = run("release", broken, *BUDGET, *METHOD, *ADDED, "--n", 1500, "--seed", 7, "--nonfinite", "drop")
    assert (code, json.loads(dropped)["point"]) == (0, printed["point"])
    code, out, err = run("release", broken, *BUDGET, *METHOD, "--nonfinite", "drop")
    assert (code, out) == (2, "")
    assert one_line(err)
    assert "add_remove" in err


@pytest.mark.parametrize("rows", [0, 1])
def test_a_file_with_hardly_any_records_is_no_error_where_their_number_is_private(run, tmp_path, rows):
    few = tmp_path / "few.csv"
    few.write_text("x,y\n" + "1.5,2.5\n" * rows)
    code, out, err = run("release", few, *BUDGET, *ADDED, "--seed", 3)
    assert code == 4
    assert "a noisy number" in err
    assert json.loads(out)["outcome"] == "failed"


def test_a_plan_of_a_private_number_of_records(run):
    code, out, _ = run("plan", "private", 2, *BUDGET, *ADDED)
    assert code == 0
    assert out.startswith("Plan: adaptive, add_remove, n private (no guess), d = 2")
    assert run("plan", 3000, 2, *BUDGET, *ADDED)[1].startswith("Plan: adaptive, add_remove, n private (guess 3000)")
    code, _, err = run("plan", "private", 2, *BUDGET)
    assert code == 2
    assert one_line(err)
    assert "n may be None only with neighbours='add_remove' or weights" in err
    assert run("plan", "some", 2, *BUDGET)[0] == 2


def test_a_ledger_has_neighbours_and_a_unit(run, tmp_path):
    path = tmp_path / "ledger.json"
    assert run("ledger", "create", path, "--rho", 1, *ADDED, "--unit", "user")[0] == 0
    ledger = dpmedian.Ledger.open(path)
    assert (ledger.neighbours, ledger.unit) == ("add_remove", "user")
    code, _, err = run("release", POSITIONS, "--rho", 0.1, *METHOD, "--ledger", path)
    assert code == 2
    assert "protects the unit 'user'" in err


def test_ledger_is_created_charged_and_shown(run, tmp_path):
    path = tmp_path / "ledger.json"
    code, out, _ = run("ledger", "create", path, "--epsilon", 1.2, "--delta", 1e-5)
    assert code == 0
    assert "epsilon = 1.2" in out
    assert run("release", POSITIONS, *BUDGET, *METHOD, "--ledger", path)[0] == 0
    code, out, err = run("release", POSITIONS, *BUDGET, *METHOD, "--ledger", path)
    assert (code, out) == (3, "")
    assert one_line(err)
    assert "would exceed the ledger's budget" in err
    code, out, _ = run("ledger", "show", path)
    assert code == 0
    assert "released" in out
    shown = json.loads(run("ledger", "show", path, "--output", "json")[1])
    assert [entry["state"] for entry in shown["entries"]] == ["released"]
    assert shown["budget"] == {"epsilon": 1.2, "delta": 1e-5}
    assert 0.0 < shown["remaining"] < 1.0
    # An existing ledger is opened if the budget is the same, and never replaced.
    assert run("ledger", "create", path, "--epsilon", 1.2, "--delta", 1e-5)[0] == 0
    assert run("ledger", "create", path, "--epsilon", 9, "--delta", 1e-5)[0] == 2
    assert len(dpmedian.Ledger.open(path).entries) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "required: COMMAND"),
        (["release", POSITIONS], "no privacy budget"),
        (["release", POSITIONS, "--epsilon", "-1"], "epsilon"),
        (["release", POSITIONS, "--epsilon", "one"], "'one' is not a number"),
        (["release", POSITIONS, *BUDGET, "--rho", "1"], "two budgets"),
        (["release", POSITIONS, *BUDGET, "--method", "magic"], "magic"),
        (["release", POSITIONS, *BUDGET, "--method", "dpgd"], "needs radius="),
        (["release", POSITIONS, *BUDGET, *METHOD, "--columns", "west"], "the columns are 'east_km', 'north_km'"),
        (["release", POSITIONS, *BUDGET, *METHOD, "--center", "1"], "center must have shape"),
        (["release", "nowhere.csv", *BUDGET, *METHOD], "there is no file 'nowhere.csv'"),
        (["release", POSITIONS, *BUDGET, *METHOD, "--ledger", "no.json"], "dpmedian ledger create no.json"),
        (["plan", "1", "2", *BUDGET, *METHOD], "n must be at least 2"),
        (["ledger", "show", "no.json"], "there is no ledger"),
    ],
)
def test_errors_are_one_line_on_stderr_with_exit_code_2(run, arguments, message):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert one_line(err)
    assert message in err


def test_bad_cells_are_named_before_the_ledger_is_charged(run, tmp_path):
    ledger, data = tmp_path / "ledger.json", tmp_path / "data.csv"
    run("ledger", "create", ledger, "--rho", 1)
    data.write_text("x,y\n" + "1,2\n" * 50 + "3,\n" + "1,2\n" * 50)
    arguments = ["release", data, "--rho", 0.5, *METHOD, "--ledger", ledger]
    code, _, err = run(*arguments)
    assert code == 2
    assert "row 51 (line 52), column 'y': the value is missing" in err
    assert dpmedian.Ledger.open(ledger).entries == ()
    assert run(*arguments, "--nonfinite", "center")[0] == 0


def test_stdin_and_the_options_of_files(run, tmp_path, monkeypatch):
    lines = [f"{x:.1f};{2 * x:.1f}".replace(".", ",") for x in range(100)]
    text = "\n".join(["Größe;Länge", *lines, ""]).encode("latin-1")
    told = ["--delimiter", ";", "--decimal", ",", "--encoding", "latin-1", "--seed", 1]
    arguments = ["release", "-", "--rho", 0.5, *METHOD]
    for format in ([], ["--format", "csv.gz"]):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(text) if format else text)))
        code, out, _ = run(*arguments, *told, *format)
        assert code == 0
        assert list(json.loads(out)["point"]) == ["Größe", "Länge"]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert "stdin: line 1 is not valid utf-8: state the encoding, such as" in err
    (tmp_path / "a.csv").write_bytes(text)
    code, out, err = run("release", tmp_path / "a.csv", "--rho", 0.5, *METHOD, "--encoding", "latin-1")
    assert (code, out) == (2, "")
    assert "'0,0' is not a number" in err
    assert "if the comma is a decimal sign, decimal=',' (--decimal ,)" in err


def test_an_unattended_command_shows_nothing_of_a_record(run, tmp_path):
    """A line with any content changes neither the exit code nor stderr, and the ledger is charged."""
    ledger, data = tmp_path / "ledger.json", tmp_path / "data.csv"
    run("ledger", "create", ledger, "--rho", 10)
    seen = set()
    for line in (b"1,2", b"secret,2", b"1", b'"', b"\xff\xfe,\0", b"", b"1,2,3", b"1e999,-inf"):
        data.write_bytes(b"x,y\n" + b"1,2\n" * 50 + line + b"\n" + b"1,2\n" * 50)
        options = ["--rho", 0.5, *METHOD, "--ledger", ledger, "--nonfinite", "center", "--seed", 1]
        code, out, err = run("release", data, *options)
        seen.add((code, err, json.loads(out)["n"]))
    assert len(seen) == 1
    assert seen.pop()[::2] == (0, 101)
    assert len(dpmedian.Ledger.open(ledger).entries) == 8


def test_a_failed_release_has_its_own_exit_code_and_its_record(run, monkeypatch):
    def fail(self, *arguments, **options):
        raise dpmedian.ReleaseFailed("no heavy cell", self.cost, plan=self)

    monkeypatch.setattr(dpmedian.Plan, "run", fail)
    for output in ("json", "table"):
        code, out, err = run("release", POSITIONS, *BUDGET, *METHOD, "--output", output)
        assert code == 4
        assert one_line(err)
        assert "the budget is spent" in err
        if output == "json":
            record = json.loads(out)
            assert (record["outcome"], record["message"], record["cost"]["epsilon"]) == ("failed", "no heavy cell", 1.0)
        else:
            assert out == ""


@pytest.mark.parametrize("arguments", [["--help"], ["release", "--help"], ["plan", "--help"], ["ledger", "--help"]])
def test_help_fits_a_terminal(run, arguments, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = run(*arguments)
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80


def start(*arguments):
    command = [sys.executable, "-m", "dpmedian", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_commands_started_at_once_on_one_ledger_never_overspend_together(tmp_path):
    path = tmp_path / "ledger.json"
    dpmedian.Ledger(epsilon=2.0, delta=2e-6, path=path)
    together = [
        start("release", POSITIONS, "--epsilon", 0.9, "--delta", 1e-7, *METHOD, "--ledger", path) for _ in range(6)
    ]
    ends = [(process.communicate(timeout=120), process.returncode) for process in together]
    codes = [code for _, code in ends]
    ledger = dpmedian.Ledger.open(path)
    assert set(codes) == {0, 3}, ends
    assert codes.count(0) == len(ledger.entries)
    assert {entry.state for entry in ledger.entries} == {"released"}
    # As many releases as fit one after the other, and no more.
    assert ledger.spent.delta_at(2.0) <= 2e-6
    with pytest.raises(ValueError, match="budget"):
        ledger.check(ledger.entries[0].cost)


@pytest.mark.skipif(os.name == "nt", reason="no SIGKILL")
@pytest.mark.parametrize(("sent", "state"), [(signal.SIGKILL, "pending"), (signal.SIGINT, "interrupted")])
@pytest.mark.slow
def test_a_command_that_dies_after_its_charge_leaves_the_charge(tmp_path, sent, state):
    path, data = tmp_path / "ledger.json", tmp_path / "data.npy"
    ledger = dpmedian.Ledger(rho=100.0, path=path)
    np.save(data, np.random.default_rng(0).normal(size=(200_000, 20)))
    with start("release", data, "--rho", 50, *METHOD, "--ledger", path) as process:
        try:
            deadline = time.monotonic() + 60.0
            while not ledger.entries and time.monotonic() < deadline:
                time.sleep(0.01)
            assert [entry.state for entry in ledger.entries] == ["pending"]
            time.sleep(0.5)  # Back into the run: an earlier interrupt leaves it pending.
            process.send_signal(sent)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert out == ""
    assert [entry.state for entry in ledger.entries] == [state]
    assert ledger.remaining == pytest.approx(50.0, rel=1e-6)
    if sent == signal.SIGINT:
        assert process.returncode == 130
        # The line after the warning that such a budget promises next to nothing.
        assert one_line(err.splitlines(keepends=True)[-1])
    # The lock of the killed command is gone, so the next command runs. The charge of the killed command stays.
    with start("release", POSITIONS, "--rho", 60, *METHOD, "--ledger", path) as process:
        process.communicate(timeout=60)
    assert process.returncode == 3


@pytest.mark.skipif(os.name == "nt", reason="no pseudo-terminals")
@pytest.mark.parametrize("quiet", [False, True])
@pytest.mark.slow
def test_a_long_run_shows_a_bar_on_a_terminal_only(tmp_path, quiet):
    data = tmp_path / "data.npy"
    np.save(data, np.random.default_rng(0).normal(size=(200_000, 20)))
    command = [sys.executable, "-m", "dpmedian", "release", data, "--rho", "50", *METHOD, *["--quiet"] * quiet]
    terminal, theirs = os.openpty()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs) as process:
        try:
            # The bar appears after two seconds of running; the rest is for starting on a busy machine.
            deadline, shown = time.monotonic() + (6.0 if quiet else 60.0), b""
            while b"dpmedian [" not in shown and time.monotonic() < deadline:
                if select.select([terminal], [], [], 0.1)[0]:
                    shown += os.read(terminal, 1000)
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
            os.close(theirs)
    os.close(terminal)
    assert (b"dpmedian [" in shown) is not quiet


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", [(200, 1), (10_000_000, 3)])
def test_plans_fit_a_terminal(run, method, shape):
    budget = ["--epsilon", 1] if method == "inverse_sensitivity" else BUDGET
    resolution = ["--resolution", 1e-3] if "resolution" in METHODS[method].uses else []
    code, out, err = run("plan", *shape, *budget, "--method", method, "--radius", 1e6, *resolution)
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80


def test_the_bundled_data_can_be_written_and_overwrite_nothing(run, tmp_path):
    file = tmp_path / "positions.csv"
    assert run("example", file)[0] == 0
    assert file.read_bytes() == POSITIONS.read_bytes()
    assert run("example", file)[0] == 0, "the same again is no harm"
    file.write_text("mine")
    code, _, err = run("example", file)
    assert (code, file.read_text()) == (2, "mine")
    assert "contains something else" in err
