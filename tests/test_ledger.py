"""The ledger never allows more than its budget, even with races, crashes and copies."""

from __future__ import annotations

import contextlib
import copy
import errno
import json
import math
import multiprocessing
import os
import pickle
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dpmedian.accounting import Budget, PrivacyCost, calibrate
from dpmedian.ledger import BrokenChain, BudgetExceeded, Charge, Ledger, as_ledger, spending
from dpmedian.ledger.store import FileStore
from dpmedian.release import ReleaseFailed
from dpmedian.warning import ConversionWarning


def gaussian(epsilon: float, delta: float) -> PrivacyCost:
    """A Gaussian release that uses up the pair."""
    rho = calibrate(lambda rho: PrivacyCost(mu_squared=2 * rho), Budget.of(epsilon, delta))
    return PrivacyCost(mu_squared=2 * rho).requested(epsilon, delta)


def concentrated(rho: float) -> PrivacyCost:
    return PrivacyCost(mu_squared=2 * rho)


@pytest.fixture(params=["memory", "file"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return tmp_path / "ledger.json" if request.param == "file" else None


# What is charged.


def test_entries_say_what_happened(place: Path | None) -> None:
    ledger = Ledger(rho=1.0, path=place)
    charge = ledger.charge("homes", "adaptive", concentrated(0.25))
    (pending,) = ledger.entries
    assert (pending.name, pending.method, pending.cost) == ("homes", "adaptive", concentrated(0.25))
    assert (pending.state, pending.remaining) == ("pending", 0.75)
    assert pending.time.endswith("+00:00")
    charge.mark("released")
    assert ledger.entries[0].state == "released"
    assert ledger.spent == concentrated(0.25)
    assert ledger.remaining == 0.75


@pytest.mark.parametrize("state", ["released", "failed", "interrupted", None])
def test_every_state_counts_as_spent(place: Path | None, state: str | None) -> None:
    ledger = Ledger(rho=1.0, path=place)
    charge = ledger.charge("a", "dpgd", concentrated(0.75))
    if state is not None:
        charge.mark(state)  # type: ignore[arg-type]
    with pytest.raises(BudgetExceeded):
        ledger.charge("b", "dpgd", concentrated(0.5))
    ledger.charge("c", "dpgd", concentrated(0.25))
    assert ledger.remaining == 0.0


def test_refusal_names_asked_spent_and_left(place: Path | None) -> None:
    ledger = Ledger(epsilon=1.0, delta=1e-6, path=place)
    ledger.charge("a", "adaptive", gaussian(0.75, 1e-6))
    asked = gaussian(0.9, 1e-6)
    with pytest.raises(BudgetExceeded) as refused:
        ledger.check(asked)
    text = str(refused.value)
    assert "budget of epsilon = 1, delta = 1e-06: it costs epsilon = 0.9, delta = 1e-06" in text
    assert "epsilon = 0.25 is left, because the filter 'gaussian' counts epsilon = 0.75 as spent" in text
    assert isinstance(refused.value, ValueError)
    assert refused.value.asked == asked
    assert str(pickle.loads(pickle.dumps(refused.value))) == text
    assert len(ledger.entries) == 1


def test_check_charges_nothing(place: Path | None) -> None:
    ledger = Ledger(rho=1.0, path=place)
    for _ in range(3):
        ledger.check(concentrated(1.0))
    assert ledger.entries == ()


def test_budget_can_be_used_up_exactly(place: Path | None) -> None:
    ledger = Ledger(epsilon=1.0, delta=1e-6, path=place)
    ledger.charge("all", "adaptive", gaussian(1.0, 1e-6))
    with pytest.raises(BudgetExceeded):
        ledger.check(gaussian(1e-3, 1e-7))


@pytest.mark.parametrize("parts", [3, 7, 10])
def test_equal_parts_of_a_pure_budget_fit_despite_rounding(parts: int) -> None:
    ledger = Ledger(epsilon=parts / 10)
    for _ in range(parts):
        ledger.charge("part", "inverse_sensitivity", PrivacyCost.pure_dp(0.1))
    with pytest.raises(BudgetExceeded):
        ledger.check(PrivacyCost.pure_dp(1e-9))


def test_gaussian_releases_compose_better_than_their_pairs() -> None:
    ledger = Ledger(epsilon=1.0, delta=1e-6)
    # Adding up the pairs would allow ten releases.
    for _ in range(40):
        ledger.charge("a", "adaptive", gaussian(0.1, 1e-7))


def test_pairs_that_add_up_to_the_budget_always_fit() -> None:
    """Neither bound on this mixture is exact, but basic composition of the two pairs is a bound, too."""
    many = PrivacyCost(bounded_ranges=(0.05,) * 200)
    many = many.requested(many.epsilon_at(1e-6), 1e-6)
    pure = PrivacyCost.pure_dp(2.0).requested(2.0, 0.0)
    assert many.epsilon is not None
    budget = Budget.of(many.epsilon + 2.0, 1e-6)
    assert not budget.fits(many + pure)
    for composition in ("pairs", "costs_fixed_beforehand"):
        ledger = Ledger(epsilon=budget.epsilon, delta=budget.delta, composition=composition)
        ledger.charge("selections", "dpgd", many)
        ledger.charge("pure", "inverse_sensitivity", pure)
        assert ledger.remaining == 0.0
        # A pair that the cost does not satisfy is ignored.
        with pytest.raises(BudgetExceeded):
            Ledger(epsilon=1.0, delta=1e-6, composition=composition).check(concentrated(5.0).requested(1.0, 1e-6))


def test_budget_without_delta_refuses_gaussians_and_says_why() -> None:
    with pytest.raises(BudgetExceeded, match="admits only pure releases"):
        Ledger(epsilon=1.0).check(concentrated(1e-6))
    with pytest.raises(BudgetExceeded, match="in rho without delta does not admit"):
        Ledger(rho=1.0).check(PrivacyCost(delta0=1e-9))


def test_mark_is_checked(place: Path | None) -> None:
    charge = Ledger(rho=1.0, path=place).charge("a", "dpgd", concentrated(0.1))
    with pytest.raises(ValueError, match="state must be 'released', 'failed' or 'interrupted', got 'pending'"):
        charge.mark("pending")  # type: ignore[arg-type]
    charge.mark("failed")
    charge.mark("failed")
    with pytest.raises(ValueError, match=r"entry 0 \(a\) is already marked as failed, not released"):
        charge.mark("released")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: Ledger(), ValueError, "no privacy budget"),
        (lambda: Ledger(epsilon=1.0, rho=1.0), ValueError, "two budgets at once"),
        (lambda: Ledger(epsilon=-1.0), ValueError, "epsilon must be"),
        (lambda: Ledger(rho=1.0).check(0.5), TypeError, "cost must be a PrivacyCost, got 0.5 of type float"),
        (lambda: Ledger(rho=1.0).charge(1, "a", PrivacyCost()), TypeError, "name must be a string, got 1 of type int"),
        (lambda: Ledger(rho=1.0).charge("a", None, PrivacyCost()), TypeError, "method must be a string, got None"),
        (
            lambda: as_ledger("ledger"),
            TypeError,
            r"ledger must be a dpmedian.Ledger, .* got 'ledger' of type str; .* dpmedian.Ledger.open\('ledger'\)",
        ),
        (lambda: Ledger(rho=1.0, path="no/such/folder/ledger.json"), FileNotFoundError, "no/such/folder"),
    ],
)
def test_bad_input_is_refused_by_name(call: Callable[[], object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


# Threads, processes, crashes.


def test_racing_threads_cannot_overspend(place: Path | None, monkeypatch: pytest.MonkeyPatch) -> None:
    # Reading, deciding and recording must be one step: give the other threads time in the middle of it.
    decide = Budget.fits
    monkeypatch.setattr(Budget, "fits", lambda *args, **options: (decide(*args, **options), time.sleep(1e-3))[0])
    ledger = Ledger(rho=1.0, path=place)
    granted: list[Charge] = []
    start = threading.Barrier(8)

    def spend() -> None:
        start.wait()
        for _ in range(4):
            try:
                charge = ledger.charge("race", "dpgd", concentrated(0.0625))
            except BudgetExceeded:
                return
            granted.append(charge)
            charge.mark("released")

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # 32 charges were requested, and 16 fit.
    assert len(granted) == 16
    assert [entry.state for entry in ledger.entries] == ["released"] * 16
    assert ledger.spent.rho == 1.0


def spend_until_refused(path: Path, ready: Path, report: Path) -> None:
    ledger = Ledger.open(path)
    (ready / str(os.getpid())).touch()
    while len(list(ready.iterdir())) < 2:
        pass
    granted = 0
    try:
        while True:
            ledger.charge(f"process {os.getpid()}", "dpgd", concentrated(1 / 64)).mark("released")
            granted += 1
    except BudgetExceeded:
        (report / str(os.getpid())).write_text(str(granted))


@pytest.mark.slow
def test_two_racing_processes_cannot_overspend(tmp_path: Path) -> None:
    path, ready, report = tmp_path / "ledger.json", tmp_path / "ready", tmp_path / "report"
    ready.mkdir()
    report.mkdir()
    Ledger(rho=1.0, path=path)
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=spend_until_refused, args=(path, ready, report)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
        assert process.exitcode == 0
    ledger = Ledger.open(path)
    assert sum(int(file.read_text()) for file in report.iterdir()) == len(ledger.entries) == 64
    assert ledger.spent.rho == 1.0
    # Both processes were active; otherwise the test would show nothing.
    assert len({entry.name for entry in ledger.entries}) == 2


CHARGE_AND_WAIT = """
import sys, time
from dpmedian.accounting import PrivacyCost
from dpmedian.ledger import Ledger
Ledger.open(sys.argv[1]).charge("killed", "adaptive", PrivacyCost(mu_squared=1.5))
print("charged", flush=True)
time.sleep(600)
"""

HOLD_THE_LOCK = """
import sys, time
from dpmedian.ledger import Ledger
ledger = Ledger.open(sys.argv[1])
with ledger._store._lock():
    print("locked", flush=True)
    time.sleep(600)
"""


def kill_after_first_line(script: str, path: Path) -> str:
    with subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        process.kill()
        process.wait()
    if sys.platform != "win32":
        assert process.returncode == -signal.SIGKILL
    return line.strip()


def test_process_killed_between_charge_and_release_stays_charged(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    ledger = Ledger(rho=1.0, path=path)
    assert kill_after_first_line(CHARGE_AND_WAIT, path) == "charged"
    (entry,) = ledger.entries
    assert (entry.name, entry.state, entry.remaining) == ("killed", "pending", 0.25)
    with pytest.raises(BudgetExceeded):
        ledger.charge("next", "adaptive", concentrated(0.5))


def test_lock_of_a_killed_process_blocks_nobody(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    ledger = Ledger(rho=1.0, path=path)
    assert kill_after_first_line(HOLD_THE_LOCK, path) == "locked"
    ledger.charge("next", "adaptive", concentrated(0.5)).mark("released")


def test_crash_while_writing_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger(rho=1.0, path=tmp_path / "ledger.json")
    ledger.charge("a", "dpgd", concentrated(0.25))
    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
        with pytest.raises(OSError, match="disk full"):
            ledger.charge("b", "dpgd", concentrated(0.25))
    assert [entry.name for entry in ledger.entries] == ["a"]
    ledger.charge("c", "dpgd", concentrated(0.25))
    assert [entry.name for entry in ledger.entries] == ["a", "c"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_copy_of_an_in_memory_ledger_cannot_spend() -> None:
    ledger = Ledger(rho=1.0)
    child = os.fork()
    if child == 0:
        try:
            ledger.charge("child", "dpgd", concentrated(0.5))
        except RuntimeError as error:
            os._exit(0 if "belongs to process" in str(error) else 2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


# Copies.


def test_in_memory_ledger_refuses_to_be_copied() -> None:
    ledger = Ledger(rho=1.0)
    for duplicate in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match=r"every copy could spend the whole budget: use a file"):
            duplicate(ledger)


def test_file_backed_ledger_pickles_by_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ledger = Ledger(rho=1.0, path="ledger.json")
    pickled = pickle.dumps(ledger)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    for twin in (pickle.loads(pickled), copy.copy(ledger), copy.deepcopy(ledger)):
        twin.charge("twin", "dpgd", concentrated(0.25))
    assert ledger.remaining == 0.25
    assert b"entries" not in pickled


# The file.


def test_file_is_readable_and_restores_every_bit(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    ledger = Ledger(epsilon=3, delta=1e-6, path=path)
    cost = (
        PrivacyCost.gaussian(3, 2**31 + 7, 5, 11) + PrivacyCost.pure_dp(0.1) + PrivacyCost.bounded_range(1 / 3)
    ).requested(1.0, 1e-7)
    ledger.charge("Zürich homes", "loc_cutting_plane", cost).mark("released")
    stored = json.loads(path.read_text(encoding="utf-8"))
    assert stored["format"] == "dpmedian ledger 3"
    assert stored["budget"] == {"epsilon": 3.0, "delta": 1e-6}
    assert (stored["composition"], stored["neighbours"], stored["unit"]) == ("gaussian", "replace", "record")
    assert stored["log"][0]["name"] == "Zürich homes"
    assert (stored["log"][1]["entry"], stored["log"][1]["state"]) == (0, "released")
    assert Ledger.open(path).entries[0].cost == cost
    assert Ledger.open(path).budget == ledger.budget
    assert "Zürich" in path.read_text(encoding="utf-8")


def test_existing_file_is_opened_only_under_its_own_budget(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    Ledger(epsilon=1.0, path=path).charge("a", "inverse_sensitivity", PrivacyCost.pure_dp(0.5))
    assert Ledger(epsilon=1.0, path=path).remaining == 0.5
    assert Ledger(epsilon=1.0, delta=0.0, path=path).remaining == 0.5
    with pytest.raises(ValueError, match=r"has the budget epsilon = 1, not epsilon = 2: open it with Ledger.open"):
        Ledger(epsilon=2.0, path=path)
    with pytest.raises(ValueError, match="has the budget epsilon = 1, not rho = 1"):
        Ledger(rho=1.0, path=path)


def test_lost_file_is_an_error_not_a_new_budget(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    with pytest.raises(FileNotFoundError, match="there is no ledger at"):
        Ledger.open(path)
    ledger = Ledger(rho=1.0, path=path)
    path.unlink()
    with pytest.raises(FileNotFoundError, match="a new ledger would not know what was spent"):
        ledger.charge("a", "dpgd", concentrated(0.5))
    assert not path.exists()


def test_budget_raised_in_the_file_behind_its_back_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    ledger = Ledger(rho=1.0, path=path)
    path.write_text(path.read_text().replace('"rho": 1.0', '"rho": 2.0'))
    with pytest.raises(BrokenChain, match=r"is not consistent: .*head"):
        ledger.charge("a", "dpgd", concentrated(0.5))
    path.unlink()
    Ledger(rho=2.0, path=path)
    with pytest.raises(
        ValueError, match="was changed since it was opened: it now has the budget rho = 2, not rho = 1; open it again"
    ):
        ledger.charge("a", "dpgd", concentrated(0.5))


ENTRY = {"name": "a", "method": "m", "time": "t", "cost": {}, "state": "released", "remaining": 1.0}
TERMS = {"format": "dpmedian ledger 2", "budget": {"rho": 1.0}, "neighbours": "replace", "unit": "record"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"format": "dpmedian ledger 1"',
        json.dumps({"format": "dpmedian ledger 4", "budget": {"rho": 1.0}, "entries": []}),
        json.dumps({"format": "dpmedian ledger 3", "budget": {"rho": 1.0}, "entries": []}),
        '{"format": ' * 100_000,
        json.dumps({"format": "dpmedian ledger 2", "budget": {"rho": 1.0}, "entries": []}),
        json.dumps({**TERMS, "composition": "gaussian", "entries": []}),
        json.dumps({**TERMS, "composition": "free", "entries": []}),
        json.dumps({**TERMS, "composition": "concentrated", "neighbours": "swap", "entries": []}),
        json.dumps({**TERMS, "composition": "concentrated", "entries": [ENTRY | {"seeded": "no"}]}),
        json.dumps({"format": "dpmedian ledger 1", "budget": {}, "entries": []}),
        json.dumps({"format": "dpmedian ledger 1", "budget": {"rho": 1.0, "gamma": 2}, "entries": []}),
        json.dumps({"format": "dpmedian ledger 1", "budget": {"rho": 1.0}, "entries": [{"name": "a"}]}),
        json.dumps({"format": "dpmedian ledger 1", "budget": {"rho": 1.0}, "entries": [ENTRY | {"state": "free"}]}),
        json.dumps(
            {"format": "dpmedian ledger 1", "budget": {"rho": 1.0}, "entries": [ENTRY | {"cost": {"mu_squared": -1}}]}
        ),
        json.dumps({"format": "dpmedian ledger 1", "budget": {"rho": 1.0}, "entries": [ENTRY | {"cost": {"mu": 1}}]}),
    ],
)
def test_damaged_file_is_refused_and_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "ledger.json"
    path.write_text(text)
    for open_it in (lambda: Ledger.open(path), lambda: Ledger(rho=1.0, path=path)):
        with pytest.raises(ValueError, match="is not a ledger that this version can read, and was not changed"):
            open_it()
    assert path.read_text() == text


@pytest.mark.skipif(sys.platform == "win32", reason="permissions and links of POSIX")
def test_replacing_keeps_permissions_and_links(tmp_path: Path) -> None:
    path, link = tmp_path / "ledger.json", tmp_path / "link.json"
    Ledger(rho=1.0, path=path)
    path.chmod(0o640)
    link.symlink_to(path)
    Ledger.open(link).charge("a", "dpgd", concentrated(0.5))
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert Ledger.open(path).remaining == 0.5


# Files of version 0.1.0.

FORMER = """{
  "format": "dpmedian ledger 1",
  "budget": {
    "epsilon": 1.0,
    "delta": 1e-06
  },
  "entries": [
    {
      "name": "typical place",
      "method": "adaptive",
      "time": "2025-11-03T09:00:00+00:00",
      "cost": {
        "mu_squared": 0.01,
        "slack": 2.1684043449710089e-17,
        "epsilon": 0.3964,
        "delta": 1e-06
      },
      "state": "released",
      "remaining": 0.603
    },
    {
      "name": "line",
      "method": "inverse_sensitivity",
      "time": "2025-11-04T09:00:00+00:00",
      "cost": {
        "pure": [
          0.01
        ],
        "ranges": [
          0.02
        ]
      },
      "state": "failed",
      "remaining": 0.59
    }
  ]
}
"""


def test_a_file_of_version_0_1_0_is_read_and_held_to_a_filter(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    path.write_text(FORMER)
    ledger = Ledger.open(path)
    assert (ledger.composition, ledger.neighbours, ledger.unit) == ("gaussian", "replace", "record")
    first, second = ledger.entries
    assert first.cost.discretization == 2.1684043449710089e-17
    assert (second.cost.pure_epsilons, second.cost.bounded_ranges) == ((0.01,), (0.02,))
    assert (first.seeded, first.record, second.state) == (False, None, "failed")
    assert path.read_text() == FORMER  # Reading does not change the file.
    assert len(Ledger(epsilon=1.0, delta=1e-6, path=path).entries) == 2
    # It cannot be declared afterwards that the costs were fixed.
    with pytest.raises(ValueError, match="has composition = 'gaussian', not 'costs_fixed_beforehand'"):
        Ledger(epsilon=1.0, delta=1e-6, path=path, composition="costs_fixed_beforehand")
    ledger.charge("next", "adaptive", concentrated(0.001)).mark("released")
    stored = json.loads(path.read_text())
    assert (stored["format"], stored["composition"]) == ("dpmedian ledger 3", "gaussian")
    assert stored["taken_over"] == 2
    assert stored["log"][2]["cost"] == {"pure_epsilons": [0.01], "bounded_ranges": [0.02]}
    assert [entry.cost for entry in Ledger.open(path).entries][:2] == [first.cost, second.cost]


@pytest.mark.parametrize(("budget", "composition"), [({"rho": 1.0}, "concentrated"), ({"epsilon": 1.0}, "pure")])
def test_other_budgets_of_version_0_1_0_have_the_filter_that_they_had(
    tmp_path: Path, budget: dict[str, float], composition: str
) -> None:
    path = tmp_path / "ledger.json"
    entry = {**ENTRY, "cost": {"pure": [0.75]}}
    path.write_text(json.dumps({"format": "dpmedian ledger 1", "budget": budget, "entries": [entry]}))
    ledger = Ledger.open(path)
    assert ledger.composition == composition
    assert ledger.remaining == pytest.approx(0.25 if "epsilon" in budget else 1 - 0.75 * math.tanh(0.375))


def test_an_overspent_file_admits_nothing_more(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    entries = [{**ENTRY, "cost": {"mu_squared": 0.01}}, {**ENTRY, "cost": {"pure": [0.5]}}]
    budget = {"epsilon": 1.0, "delta": 1e-6}
    path.write_text(json.dumps({"format": "dpmedian ledger 1", "budget": budget, "entries": entries}))
    ledger = Ledger.open(path)
    assert (ledger.remaining, ledger.split(1)) == (0.0, 0.0)
    with pytest.raises(BudgetExceeded, match="only epsilon = 0 is left"):
        ledger.check(concentrated(1e-9))


# Creation.


def test_creation_leaves_a_ledger_alone_that_it_did_not_see(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ledger.json"
    Ledger(rho=1.0, path=path).charge("a", "dpgd", concentrated(0.5))
    before, read, calls = path.read_text(), Path.read_text, []

    def blind(self: Path, *args: object, **options: object) -> str:
        calls.append(self)
        if len(calls) == 1:
            raise FileNotFoundError(self)
        return read(self, *args, **options)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_text", blind)
        patched.setattr(Path, "exists", lambda self: False)
        patched.setattr(os.path, "exists", lambda path: False)
        assert Ledger(rho=1.0, path=path).remaining == 0.5
    assert path.read_text() == before


@pytest.mark.parametrize("where", ["read_text", "link"])
def test_an_error_of_the_disk_creates_and_overwrites_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    path = tmp_path / "ledger.json"
    Ledger(rho=1.0, path=path).charge("a", "dpgd", concentrated(0.5))
    before = path.read_text()

    def broken(*_: object, **__: object) -> str:
        raise OSError(errno.EIO, "input/output error")

    with monkeypatch.context() as patched:
        if where == "read_text":
            patched.setattr(Path, "read_text", broken)
        else:
            # The file is neither seen nor linked: even the path without links must not overwrite it.
            patched.setattr(os, "link", broken)
            patched.setattr(FileStore, "_read", lambda self: (_ for _ in ()).throw(FileNotFoundError("blind")))
        with pytest.raises(OSError, match=r"input/output error|blind"):
            Ledger(rho=1.0, path=path)
    assert path.read_text() == before


def test_creation_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(OSError(errno.EPERM, "no links here")))
    path = tmp_path / "ledger.json"
    Ledger(rho=1.0, path=path).charge("a", "dpgd", concentrated(0.5))
    assert Ledger.open(path).remaining == 0.5
    assert sorted(file.name for file in tmp_path.iterdir()) == ["ledger.json", "ledger.json.lock"]


def create_and_spend(path: Path, ready: Path, count: int) -> None:
    (ready / str(os.getpid())).touch()
    while len(list(ready.iterdir())) < count:
        pass
    ledger = Ledger(rho=1.0, path=path)
    for _ in range(8):
        ledger.charge(f"process {os.getpid()}", "dpgd", concentrated(1 / 64)).mark("released")


@pytest.mark.slow
def test_processes_that_create_one_ledger_at_once_share_it(tmp_path: Path) -> None:
    path, ready, count = tmp_path / "ledger.json", tmp_path / "ready", 4
    ready.mkdir()
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=create_and_spend, args=(path, ready, count)) for _ in range(count)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
        assert process.exitcode == 0
    entries = Ledger.open(path).entries
    assert len(entries) == 8 * count
    assert len({entry.name for entry in entries}) == count
    assert {entry.state for entry in entries} == {"released"}


@pytest.mark.skipif(sys.platform == "win32", reason="flock is POSIX")
def test_a_file_system_without_locks_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    def unsupported(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    ledger = Ledger(rho=1.0, path=tmp_path / "ledger.json")
    monkeypatch.setattr(fcntl, "flock", unsupported)
    with pytest.raises(OSError, match=r"cannot be locked, so two processes could .* \(No locks available\)"):
        ledger.charge("a", "dpgd", concentrated(0.5))
    assert ledger.entries == ()


def spend_most(ledger: Ledger, outcome: list[object]) -> threading.Thread:
    def spend() -> None:
        try:
            outcome.append(ledger.charge("race", "dpgd", concentrated(0.8)))
        except BudgetExceeded as refused:
            outcome.append(refused)

    thread = threading.Thread(target=spend)
    thread.start()
    return thread


def test_a_deleted_lock_file_lets_nobody_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one charge is being decided, somebody deletes the lock file, and another charge arrives."""
    ledger, lock = Ledger(rho=1.0, path=tmp_path / "ledger.json"), tmp_path / "ledger.json.lock"
    inside, go_on, fits, outcome = threading.Event(), threading.Event(), Budget.fits, []

    def slowly(*args: object, **options: object) -> bool:
        if not inside.is_set():
            inside.set()
            go_on.wait(60)
        return fits(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Budget, "fits", slowly)
    first = spend_most(ledger, outcome)
    assert inside.wait(60)
    lock.unlink()
    second = spend_most(ledger, outcome)
    second.join(0.3)
    go_on.set()
    for thread in (first, second):
        thread.join(60)
    assert sorted(type(result).__name__ for result in outcome) == ["BudgetExceeded", "Charge"]
    assert len(ledger.entries) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="flock is POSIX")
@pytest.mark.parametrize("which", ["_lock", "_content_lock"])
def test_a_process_that_waited_for_a_replaced_file_waits_for_the_new_one(tmp_path: Path, which: str) -> None:
    import fcntl

    path = tmp_path / "ledger.json"
    Ledger(rho=1.0, path=path)
    store = FileStore(path)
    locked = path if which == "_content_lock" else tmp_path / "ledger.json.lock"
    entered = threading.Event()

    def enter() -> None:
        with getattr(store, which)():
            entered.set()

    with open(locked, "r+b") as old:
        fcntl.flock(old, fcntl.LOCK_EX)
        waiting = threading.Thread(target=enter)
        waiting.start()
        time.sleep(0.2)
        fresh = tmp_path / "fresh"
        fresh.write_bytes(locked.read_bytes())
        with open(fresh, "r+b") as new:
            fcntl.flock(new, fcntl.LOCK_EX)
            fresh.rename(locked)
            fcntl.flock(old, fcntl.LOCK_UN)
            assert not entered.wait(0.3)
        assert entered.wait(60)
    waiting.join(60)


@pytest.mark.skipif(sys.platform == "win32", reason="flock is POSIX")
def test_a_lock_whose_file_is_never_the_same_is_an_error_and_not_a_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(rho=1.0, path=tmp_path / "ledger.json")
    monkeypatch.setattr("dpmedian.ledger.store._has_name", lambda *_: False)
    with pytest.raises(OSError, match=r"cannot be locked, .* \(ledger.json.lock is replaced again and again\)"):
        ledger.charge("a", "dpgd", concentrated(0.5))
    assert ledger.entries == ()


@pytest.mark.skipif(sys.platform == "win32", reason="links of POSIX")
def test_a_ledger_with_two_names_is_refused_and_the_budget_is_spent_once(tmp_path: Path) -> None:
    """A charge replaces the file under one name. The other name would keep the old content, and its budget."""
    path, other = tmp_path / "ledger.json", tmp_path / "other.json"
    ledger = Ledger(rho=1.0, path=path)
    charge = ledger.charge("before", "dpgd", concentrated(0.25))
    os.link(path, other)
    for name in (path, other):
        with pytest.raises(ValueError, match=r"has 2 names \(hard links\).*back the ledger up as a copy"):
            Ledger.open(name).charge("a", "dpgd", concentrated(0.25))
    with pytest.raises(ValueError, match="has 2 names"):
        charge.mark("released")
    assert [entry.name for entry in Ledger.open(other).entries] == ["before"]
    other.unlink()
    charge.mark("released")
    ledger.charge("after", "dpgd", concentrated(0.75))


@pytest.mark.skipif(sys.platform == "win32", reason="links of POSIX")
def test_what_a_crash_during_creation_left_is_not_written_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file was linked to its name, and the power failed before its first name was removed."""
    path, fresh = tmp_path / "ledger.json", tmp_path / "ledger.json.new"
    ledger = Ledger(rho=1.0, path=path)
    os.link(path, fresh)
    before = path.read_text()
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", lambda *_, **__: (_ for _ in ()).throw(OSError("disk full")))
        with pytest.raises(OSError, match="disk full"):
            ledger.charge("a", "dpgd", concentrated(0.5))
    assert path.read_text() == before
    ledger.charge("a", "dpgd", concentrated(0.5))
    assert not fresh.exists()
    assert ledger.remaining == 0.5


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
def test_a_ledger_that_is_read_only_can_be_charged(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    ledger = Ledger(rho=1.0, path=path)
    path.chmod(0o444)
    ledger.charge("a", "dpgd", concentrated(0.5)).mark("released")
    assert ledger.entries[0].state == "released"


# Seeds and records.


def test_seeded_entries_are_recognised_in_every_rendering(place: Path | None) -> None:
    ledger = Ledger(rho=1.0, path=place)
    with spending(ledger, "dpgd", concentrated(0.25), "trial", seeded=True):
        pass
    with spending(ledger, "dpgd", concentrated(0.25), "earnest"):
        pass
    assert [entry.seeded for entry in ledger.entries] == [True, False]
    trial, earnest = (line for line in str(ledger).splitlines() if line.startswith(("trial", "earnest")))
    assert trial.split()[-2:] == ["yes", "0.75"]
    assert earnest.split()[-2:] == ["no", "0.5"]
    page = ledger._repr_html_()
    assert page.index(">seeded<") < page.index(">yes<") < page.index(">no<")
    assert [entry["seeded"] for entry in ledger.to_dict()["entries"]] == [True, False]
    if place is not None:
        log = json.loads(place.read_text())["log"]
        assert [line["seeded"] for line in log if "seeded" in line] == [True, False]


def test_a_record_is_stored_as_given(place: Path | None) -> None:
    ledger, record = Ledger(rho=1.0, path=place), {"n": 3000, "stages": [{"name": "size", "rho": 0.1}], "unit": None}
    ledger.charge("a", "dpgd", concentrated(0.25), record=record)
    record["n"] = 1
    assert ledger.entries[0].record == {"n": 3000, "stages": [{"name": "size", "rho": 0.1}], "unit": None}
    assert ledger.to_dict()["entries"][0]["record"]["n"] == 3000
    with pytest.raises(TypeError, match="record must be a mapping that JSON can hold, or None, got 3"):
        ledger.charge("b", "dpgd", concentrated(0.25), record=3)  # type: ignore[arg-type]
    for bad, error in (({"x": object()}, TypeError), ({"x": math.nan}, ValueError)):
        with pytest.raises(error, match="record must be a mapping that JSON can hold: "):
            ledger.charge("b", "dpgd", concentrated(0.25), record=bad)
    with pytest.raises(TypeError, match="seeded must be True or False, got 1"):
        ledger.charge("b", "dpgd", concentrated(0.25), seeded=1)  # type: ignore[arg-type]
    assert len(ledger.entries) == 1


# Neighbors and units.


def test_a_ledger_converts_what_can_be_converted(place: Path | None) -> None:
    ledger = Ledger(rho=10.0, path=place)
    added = PrivacyCost(mu_squared=1.0, neighbours="add_remove")
    said = "protects one record that is added or removed, but this ledger counts one record that is replaced, so its "
    with pytest.warns(
        ConversionWarning, match=said + r"rho is charged 4 times\..* create FILE --rho 10 --neighbours add_remove$"
    ):
        ledger.charge("added", "adaptive", added)
    user = PrivacyCost(mu_squared=0.125, neighbours="add_remove", unit="user")
    with pytest.warns(ConversionWarning, match=r"charged 16 times\. .* --rho 10 --neighbours add_remove --unit user$"):
        ledger.charge("added user", "adaptive", user)
    assert [entry.cost for entry in ledger.entries] == [PrivacyCost(4.0), PrivacyCost(2.0)]
    assert [entry.factor for entry in ledger.entries] == [4.0, 16.0]
    assert ledger.entries[1].converted_from == "one user that is added or removed"
    assert ledger.remaining == 7.0
    # The refused cost is the cost that would be charged.
    with pytest.raises(
        BudgetExceeded, match=r"counts 4 times here, but only once .* create FILE --rho 10 --neighbours add_remove$"
    ):
        ledger.check(PrivacyCost(mu_squared=3.6, neighbours="add_remove"))
    with pytest.raises(
        ValueError, match=r"or removed, .* create FILE --delta 1e-06 --rho 1 --neighbours add_remove`, or"
    ):
        Ledger(rho=1.0, delta=1e-6).check(PrivacyCost(delta0=1e-9, neighbours="add_remove"))


def test_a_ledger_refuses_what_cannot_be_converted(place: Path | None) -> None:
    ledger = Ledger(rho=10.0, neighbours="add_remove", unit="user", path=place)
    assert ledger.spent == PrivacyCost(neighbours="add_remove", unit="user")
    own = PrivacyCost(mu_squared=1.0, neighbours="add_remove", unit="user")
    ledger.charge("a", "adaptive", own)
    with pytest.raises(
        ValueError, match=r"cannot be converted to 'add_remove': the release treats the number of records as public"
    ):
        ledger.charge("b", "adaptive", PrivacyCost(mu_squared=1.0, unit="user"))
    for unit in ("record", "household"):
        with pytest.raises(
            ValueError, match=rf"protects the unit 'user', and the cost holds for one '{unit}': .*for_group"
        ):
            ledger.charge("b", "adaptive", PrivacyCost(mu_squared=1.0, neighbours="add_remove", unit=unit))
    # A replaced record may change the number of users.
    with pytest.raises(ValueError, match="gives no bound for one 'record'"):
        Ledger(rho=10.0).charge("b", "adaptive", PrivacyCost(mu_squared=1.0, unit="user"))
    # The advice in the message works.
    with pytest.raises(ValueError, match=r"for_group\(k, unit='user'\) if each has at most k of the units 'record'"):
        ledger.check(PrivacyCost(neighbours="add_remove"))
    with pytest.raises(
        ValueError, match=r"for_group\(k, unit='user', exactly=True\) if each has, in all .*, exactly k"
    ):
        Ledger(rho=10.0, unit="user").check(PrivacyCost())
    Ledger(rho=10.0, unit="user").check(PrivacyCost(mu_squared=0.25).for_group(2, unit="user", exactly=True))
    ledger.charge("c", "adaptive", PrivacyCost(mu_squared=0.25, neighbours="add_remove").for_group(2, unit="user"))
    assert ledger.spent == PrivacyCost(2.0, neighbours="add_remove", unit="user")
    assert ledger.split(9) == 1.0
    assert "neighbours: add_remove one user" in str(ledger)
    if place is not None:
        assert Ledger.open(place).unit == "user"
        with pytest.raises(ValueError, match="has neighbours = 'add_remove', not 'replace'"):
            Ledger(rho=10.0, path=place)


# Accountants of other libraries.


class Accountant:
    """The two methods of diffprivlib's BudgetAccountant, with basic composition."""

    def __init__(self, epsilon: float, delta: float) -> None:
        self.epsilon, self.delta = epsilon, delta
        self.spends: list[tuple[float, float]] = []

    def check(self, epsilon: float, delta: float) -> bool:
        spends = [*self.spends, (epsilon, delta)]
        if sum(e for e, _ in spends) > self.epsilon or sum(d for _, d in spends) > self.delta:
            raise OverflowError("not permissible")
        return True

    def spend(self, epsilon: float, delta: float) -> Accountant:
        self.check(epsilon, delta)
        self.spends.append((epsilon, delta))
        return self


def test_accountant_is_charged_the_pair_that_was_asked() -> None:
    accountant = Accountant(1.0, 1e-5)
    ledger = as_ledger(accountant)
    ledger.check(gaussian(0.75, 1e-6))
    assert accountant.spends == []
    ledger.charge("a", "adaptive", gaussian(0.75, 1e-6)).mark("failed")
    assert accountant.spends == [(0.75, 1e-6)]
    # The accountant's own error is passed on before anything is charged.
    with pytest.raises(OverflowError, match="not permissible"):
        ledger.check(gaussian(0.75, 1e-6))
    with pytest.raises(OverflowError, match="not permissible"):
        ledger.charge("b", "adaptive", gaussian(0.75, 1e-6))
    assert accountant.spends == [(0.75, 1e-6)]


def test_accountant_is_charged_a_true_pair_for_a_cost_in_rho() -> None:
    accountant = Accountant(10.0, 1e-3)
    cost = concentrated(0.1) + PrivacyCost(delta0=1e-4)
    as_ledger(accountant).charge("a", "adaptive", cost)
    as_ledger(accountant).charge("b", "inverse_sensitivity", PrivacyCost.pure_dp(0.5))
    (epsilon, delta), pure = accountant.spends
    assert delta == pytest.approx(1e-4 + 1e-6)
    assert cost.delta_at(epsilon) <= delta
    assert pure == (0.5, 0.0)
    with pytest.raises(ValueError, match=r"no \(epsilon, delta\) pair states the cost .* use a Ledger in rho"):
        as_ledger(accountant).check(concentrated(0.1) + PrivacyCost(delta0=1.0))


def test_accountant_is_not_charged_a_pair_the_cost_exceeds() -> None:
    accountant = Accountant(math.inf, 1.0)
    as_ledger(accountant).charge("a", "adaptive", concentrated(5.0).requested(1.0, 1e-6))
    assert accountant.spends[0][0] > 10.0


def test_accountant_is_told_of_neighbours_that_it_does_not_know() -> None:
    accountant = Accountant(10.0, 1.0)
    for cost, spent in (
        (PrivacyCost(pure_epsilons=(0.5,), neighbours="add_remove"), 1.0),
        (PrivacyCost(pure_epsilons=(0.5,), unit="user", neighbours="add_remove"), 2.0),
    ):
        with pytest.warns(UserWarning, match=rf"knows neither neighbours nor units: .* epsilon = {spent:g}, delta = 0"):
            as_ledger(accountant).charge("a", "adaptive", cost)
    for spend in (as_ledger(accountant).check, lambda cost: as_ledger(accountant).charge("a", "adaptive", cost)):
        with pytest.raises(ValueError, match="gives no bound for one 'record'"):
            spend(PrivacyCost(pure_epsilons=(0.5,), unit="user"))
    assert accountant.spends == [(1.0, 0.0), (2.0, 0.0)]


def test_accountant_that_answers_false_is_obeyed() -> None:
    accountant = Accountant(1.0, 1.0)
    accountant.check = lambda epsilon, delta: False  # type: ignore[method-assign]
    with pytest.raises(ValueError, match=r"the accountant refuses epsilon = 0\.5, delta = 0"):
        as_ledger(accountant).charge("a", "inverse_sensitivity", PrivacyCost.pure_dp(0.5))
    assert accountant.spends == []


def test_no_ledger_allows_everything_and_a_ledger_is_itself() -> None:
    nothing = as_ledger(None)
    nothing.check(concentrated(100.0))
    nothing.charge("a", "dpgd", concentrated(100.0)).mark("released")
    with pytest.raises(ValueError, match="state must be"):
        nothing.charge("a", "dpgd", concentrated(100.0)).mark("done")  # type: ignore[arg-type]
    ledger = Ledger(rho=1.0)
    assert as_ledger(ledger) is ledger


# Displaying a ledger.


def test_table_fits_a_terminal(tmp_path: Path) -> None:
    ledger = Ledger(epsilon=5.0, delta=1e-5)
    title = "Ledger: epsilon = 5, delta = 1e-05; left: epsilon = 5, 100.0 % of rho"
    assert str(ledger) == f"{title}\nfilter: gaussian\nno entries"
    ledger.charge(
        "a name that is much longer than any table has room for, and then some", "adaptive", gaussian(1, 1e-6)
    )
    ledger.charge("short", "inverse_sensitivity", PrivacyCost.pure_dp(0.123456789)).mark("interrupted")
    ledger.charge("rho", "loc_cutting_plane", concentrated(0.01)).mark("failed")
    lines = str(ledger).splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert lines[2].split() == ["name", "method", "date", "cost", "share", "state", "seeded", "left"]
    assert "~" in lines[4]
    assert "pending" in lines[4]
    assert "interrupted" in lines[5]
    assert len(lines) == 9
    assert lines[7].startswith("share: of the budget in rho")


def test_long_table_shows_the_latest() -> None:
    ledger = Ledger(rho=1.0)
    for number in range(45):
        ledger.charge(f"release {number}", "dpgd", concentrated(0.001))
    text = str(ledger)
    assert "(5 earlier entries)" in text
    assert "release 44" in text
    assert "release 4 " not in text
    assert "(5 earlier entries)" in ledger._repr_html_()


def test_representations(tmp_path: Path) -> None:
    ledger = Ledger(rho=1.0)
    ledger.charge("<script>", "dpgd", concentrated(0.25))
    assert repr(ledger) == "<Ledger rho = 1: 1 entry, rho = 0.75 left>"
    assert "&lt;script&gt;" in ledger._repr_html_()
    assert "<script>" not in ledger._repr_html_()
    path = tmp_path / "ledger.json"
    assert str(path) in repr(Ledger(rho=1.0, path=path))
    assert str(path) in str(Ledger(rho=1.0, path=path))


def test_a_release_is_not_lost_when_the_ledger_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(rho=1.0, path=tmp_path / "ledger.json")

    def run(name: str, failure: ReleaseFailed | None) -> None:
        with monkeypatch.context() as patched, spending(ledger, "dpgd", concentrated(0.25), name):
            patched.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
            if failure:
                raise failure

    with pytest.warns(UserWarning, match="could not mark 'a' as released; its cost is spent"):
        run("a", None)
    with pytest.warns(UserWarning, match="as failed"), pytest.raises(ReleaseFailed, match="too few"):
        run("b", ReleaseFailed("too few", concentrated(0.25)))
    assert [entry.state for entry in ledger.entries] == ["pending", "pending"]
    assert ledger.spent.rho == 0.5


def unreadable(path: Path, older: str) -> None:
    path.write_text("damaged")


def restored(path: Path, older: str) -> None:
    path.write_text(older)


def restored_and_charged(path: Path, older: str) -> None:
    path.write_text(older)
    Ledger.open(path).charge("another", "dpgd", concentrated(0.5))


def other_terms(path: Path, older: str) -> None:
    path.write_text(path.read_text().replace('"rho": 1.0', '"rho": 2.0'))


def lost(path: Path, older: str) -> None:
    path.unlink()


def of_another_kind(path: Path, older: str) -> None:
    path.unlink()
    path.mkdir()


ACCIDENTS = [unreadable, restored, restored_and_charged, other_terms, lost, of_another_kind]


@pytest.mark.parametrize("accident", ACCIDENTS)
@pytest.mark.parametrize("as_errors", [False, True])
def test_whatever_becomes_of_the_ledger_the_outcome_of_a_run_is_kept(
    tmp_path: Path, accident: Callable[[Path, str], None], as_errors: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(name: str, error: Exception | None) -> str:
        path = tmp_path / f"{name}.json"
        ledger = Ledger(rho=1.0, path=path)
        older = path.read_text()
        with spending(ledger, "dpgd", concentrated(0.25), name):
            accident(path, older)
            if error:
                raise error
        return "the point"

    def warned(state: str) -> contextlib.AbstractContextManager[object]:
        """The message appears as a warning, or on stderr if warnings are errors, as in these tests."""
        what = rf"the ledger could not mark '\w+' as {state}; its cost is spent and stays charged: "
        return contextlib.nullcontext() if as_errors else pytest.warns(UserWarning, match=what)

    with warned("released"):
        assert run("a", None) == "the point"
    with warned("failed"), pytest.raises(ReleaseFailed, match="too few") as failed:
        run("b", ReleaseFailed("too few", concentrated(0.25)))
    assert failed.value.cost == concentrated(0.25)
    with warned("interrupted"), pytest.raises(ZeroDivisionError, match="original"):
        run("c", ZeroDivisionError("original"))
    printed = capsys.readouterr().err
    assert printed.count("is spent and stays charged") == (3 if as_errors else 0)
    if accident is restored_and_charged:
        # The entry in its place belongs to another release and is unchanged.
        assert [entry.state for entry in Ledger.open(tmp_path / "a.json").entries] == ["pending"]


def test_an_entry_that_was_lost_is_named(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    ledger = Ledger(rho=1.0, path=path)
    older = path.read_text()
    charge = ledger.charge("a", "dpgd", concentrated(0.25))
    path.write_text(older)
    with pytest.raises(ValueError, match=r"lost entry 0 \(a\), whose cost, rho = 0.25, is spent all the same"):
        charge.mark("released")


@pytest.mark.parametrize("name", ["name", "method"])
def test_what_no_file_takes_is_refused_by_name_before_the_charge(tmp_path: Path, name: str) -> None:
    ledger = Ledger(rho=1.0, path=tmp_path / "ledger.json")
    told = {"name": "a", "method": "m", name: "\ud800"}
    with pytest.raises(ValueError, match=rf"^{name} must be text that UTF-8 can encode, .* got '\\ud800'"):
        ledger.charge(**told, cost=concentrated(0.5))
    with pytest.raises(ValueError, match=r"record must be .*without lone surrogates"):
        ledger.charge("a", "m", concentrated(0.5), record={"x": "\ud800"})
    deep: dict[str, object] = {}
    for _ in range(100_000):
        deep = {"x": deep}
    with pytest.raises(ValueError, match="record must be a mapping that JSON can hold: it nests too deep"):
        ledger.charge("a", "m", concentrated(0.5), record=deep)
    with pytest.raises(ValueError, match="unit must be text that UTF-8 can encode"):
        Ledger(rho=1.0, unit="\ud800")
    with pytest.raises(ValueError, match="k must be at most 1000000000 releases, got 1000000000000"):
        ledger.split(10**12)
    assert ledger.remaining == 1.0
