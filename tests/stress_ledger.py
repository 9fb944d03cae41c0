"""Eight processes charge one ledger while it is disturbed: `python tests/stress_ledger.py`, or `make stress`.

Every process is to make fifty charges with names of its own. Meanwhile processes are killed with SIGKILL at random
moments and restarted, the lock file of the ledger is deleted repeatedly, and the clock of each process jumps by years.
A worker writes down what it does before and after every step, in a file next to the ledger, so that afterwards it is
known

* which charges certainly happened: `charge` returned; none of them may be lost;
* which charges may have happened: the process was killed within `charge`;
* which charges were marked, and with which digest.

No entry may occur twice or without a request, the chain must be intact, the spent budget must equal the cost of the
entries, and the budget, which is smaller than all charges together, must not be exceeded.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from dpmedian.accounting import PrivacyCost
from dpmedian.ledger import BudgetExceeded, Ledger

WORKER = """
import random, sys
from pathlib import Path
from dpmedian.accounting import PrivacyCost
from dpmedian.ledger import BudgetExceeded, Ledger
import dpmedian.ledger.ledger as ledger_module

path, name, first, last, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
rng = random.Random(seed)
# The clock of this process jumps by decades, back and forth.
ledger_module.now = lambda: f"{rng.randrange(1970, 2100)}-01-01T00:00:00+00:00"
diary = open(f"{path}.{name}", "a", buffering=1)
ledger = Ledger.open(path)
for number in range(first, last):
    entry = f"{name} {number}"
    diary.write(f"asked {number}\\n")
    try:
        charge = ledger.charge(entry, "m", PrivacyCost(mu_squared=2.0))
    except BudgetExceeded:
        diary.write(f"refused {number}\\n")
        continue
    diary.write(f"charged {number}\\n")
    if rng.random() < 0.9:
        charge.mark("released", digest=f"sha256:{entry}")
        diary.write(f"marked {number}\\n")
print("done")
"""


def diary(path: Path, name: str) -> list[tuple[str, int]]:
    """The lines that a worker wrote. A line that was truncated by the worker's death is left out."""
    file = Path(f"{path}.{name}")
    lines = file.read_text().split("\n")[:-1] if file.exists() else []
    return [(kind, int(number)) for kind, number in (line.split() for line in lines)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--charges", type=int, default=50, help="of each process; default: %(default)s")
    parser.add_argument("--kills", type=int, default=40, help="how many processes are killed; default: %(default)s")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    names = [f"p{index}" for index in range(options.processes)]
    # A tenth less than all charges together, so that the last ones are refused.
    allowed = round(0.9 * options.processes * options.charges)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.json"
        Ledger(rho=float(allowed), path=path)
        killed, deleted = disturb(path, names, options)
        wrong = found(path, names, allowed)
        entries = Ledger.open(path).entries
        states = Counter(entry.state for entry in entries)
        asked = sum(kind == "asked" for name in names for kind, _ in diary(path, name))
        refused = sum(kind == "refused" for name in names for kind, _ in diary(path, name))
    print(
        f"{options.processes} processes, {asked} charges asked for, {len(entries)} entries of {allowed} allowed "
        f"({', '.join(f'{count} {state}' for state, count in sorted(states.items()))}), {refused} refused"
    )
    print(f"{killed} processes killed with SIGKILL, the lock file deleted {deleted} times, the clock jumped each time")
    for text in wrong:
        print(f"WRONG: {text}")
    print("no charge lost or doubled, the chain holds" if not wrong else f"{len(wrong)} findings")
    return 1 if wrong else 0


def disturb(path: Path, names: list[str], options: argparse.Namespace) -> tuple[int, int]:
    """Run the workers until all of them are done. Meanwhile kill workers, delete the lock file and restart workers."""
    rng, killed, deleted = random.Random(options.seed), 0, 0
    running: dict[str, subprocess.Popen[bytes]] = {}
    done: set[str] = set()
    while len(done) < len(names):
        for name in names:
            if name in done:
                continue
            worker = running.get(name)
            if worker is None or worker.poll() not in (None, 0):
                if worker is not None and worker.returncode != -signal.SIGKILL:
                    raise SystemExit(f"the worker {name} ended with {worker.returncode}")
                # It continues with the next charge; whether the charge during which it died was made is up to the
                # ledger.
                first = max((number for kind, number in diary(path, name) if kind == "asked"), default=-1) + 1
                told = [str(path), name, str(first), str(options.charges), str(rng.randrange(2**31))]
                command = [sys.executable, "-c", WORKER, *told]
                running[name] = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            elif worker.poll() == 0:
                done.add(name)
        time.sleep(rng.expovariate(50.0))
        lock = path.with_name(path.name + ".lock")
        if rng.random() < 0.5 and lock.exists():
            lock.unlink(missing_ok=True)
            deleted += 1
        alive = [name for name in names if name in running and running[name].poll() is None]
        begun = [name for name in alive if diary(path, name)]
        if killed < options.kills and begun and rng.random() < 0.3:
            worker = running[rng.choice(begun)]
            os.kill(worker.pid, signal.SIGKILL)
            worker.wait()
            killed += 1
    return killed, deleted


def found(path: Path, names: list[str], allowed: int) -> list[str]:
    """The errors of the ledger according to the workers' notes. Opening the ledger checks the chain."""
    ledger, wrong = Ledger.open(path), []
    times = Counter(entry.name for entry in ledger.entries)
    wrong += [f"{name} is there {count} times" for name, count in times.items() if count > 1]
    state = {entry.name: (entry.state, entry.digest) for entry in ledger.entries}
    for name in names:
        told = diary(path, name)
        asked = {f"{name} {number}" for kind, number in told if kind == "asked"}
        refused = {f"{name} {number}" for kind, number in told if kind == "refused"}
        wrong += [f"{entry} was charged and is lost" for entry in entries_of(told, name, "charged") - set(times)]
        wrong += [f"{entry} was refused and is there" for entry in refused & set(times)]
        wrong += [f"{entry} was never asked for" for entry in set(times) - asked if entry.startswith(f"{name} ")]
        for entry in entries_of(told, name, "marked"):
            if state.get(entry) != ("released", f"sha256:{entry}"):
                wrong.append(f"{entry} was marked, and the ledger says {state.get(entry)}")
    spent = ledger.spent.rho
    if spent != len(ledger.entries) or spent > allowed:
        wrong.append(f"{spent} is spent by {len(ledger.entries)} entries of a budget of {allowed}")
    if not any(kind == "refused" for name in names for kind, _ in diary(path, name)):
        with_room = allowed - len(ledger.entries)
        try:
            for _ in range(with_room + 1):
                ledger.charge("rest", "m", PrivacyCost(mu_squared=2.0))
            wrong.append("more than the budget fits")
        except BudgetExceeded:
            pass
    return wrong


def entries_of(told: list[tuple[str, int]], name: str, kind: str) -> set[str]:
    return {f"{name} {number}" for one, number in told if one == kind}


if __name__ == "__main__":
    sys.exit(main())
