"""A fuzzer of the public functions, of files, of records and of ledgers: `python tests/fuzz.py`, or `make fuzz`.

Every case is made from valid input in which a few values are replaced by odd ones. A finding is an event that must
never happen:

* an error of another kind than those that callers are promised, including a panic of the core;
* a case that takes more than ten seconds, or a process that needs more than 1 GB;
* a bad argument that is charged: an error, other than a failure of the method, after which a ledger has an entry;
* a release that its own ledger does not authenticate;
* a record or a ledger with changed content that is accepted as the original one.

The cases follow from `--seed`, and `--only KIND:NUMBER` repeats one of them.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import gzip
import io
import json
import math
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import dpmedian
from dpmedian import building_blocks as blocks
from dpmedian.accounting import PrivacyCost
from dpmedian.digests import canonical, sealed
from dpmedian.files import open_points, read_points
from dpmedian.ledger import Ledger
from dpmedian.report import page

# The limits of processor time and memory. A case that waits for something, such as a lock or a pipe, uses no processor
# time, so it also ends after this many seconds of wall time; the limit is large because other programs may be running.
SECONDS, WAITED, GIGABYTE = 10, 60, 2**20  # ru_maxrss is in KiB.

# The errors that callers are promised. A Unicode error is a ValueError that names no argument, so it is a finding.
PROMISED = (ValueError, TypeError, OSError, ImportError, dpmedian.ReleaseFailed)

NUMBERS: list[Any] = [
    *(0, -1, 1, 2, 3, 7, 2**31, 2**53 + 1, 2**63, 2**64, -(2**63), 10**400, -(10**400)),
    *(0.0, -0.0, 0.5, 1.0, 1.5, 1e-320, 1e-300, 1e-9, 1e9, 1e300, 1.7e308, math.inf, -math.inf, math.nan),
    *(Fraction(1, 3), Decimal("0.1"), Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), 1j, True, False),
    *(np.float32(0.5), np.int64(3), np.uint8(200), np.float64("nan"), np.bool_(True), np.longdouble("1e4000")),
]
ODD: list[Any] = [
    *NUMBERS,
    *(None, "", "x", "record", "replace", "add_remove", "1", "\ud800", "\0", "é" * 1000, b"x", bytearray(b"1")),
    *([], (), {}, set(), [1, 2], (0.0, 0.0), [None], [[]], ["a", "b"], {"x": 1.0}, {"a": None}, range(3), object()),
    *(np.zeros(0), np.zeros((2, 2)), np.array("x"), np.array([None]), np.array([math.nan] * 2), date(2026, 1, 31)),
    *(print, int, Exception("odd"), Ellipsis, NotImplemented, memoryview(b"xy")),
]

RNG = random.Random(0)


def odd_points(n: int = 80) -> Any:
    """Records of any kind, most of them wrong or extreme."""
    normal = np.random.default_rng(RNG.randrange(2**32)).normal(size=(n, RNG.choice((1, 2, 2, 3))))
    makers: list[Callable[[], Any]] = [
        lambda: normal,
        lambda: normal * RNG.choice((1e300, 1e-300, 0.0, 1e16)),
        lambda: normal.astype(RNG.choice((np.float32, np.float16, np.int32, np.int8, bool, complex, object))),
        lambda: normal.tolist(),
        lambda: [*normal.tolist(), RNG.choice(ODD)],
        lambda: np.where(normal > 1.0, RNG.choice((math.nan, math.inf)), normal),
        lambda: np.ma.masked_array(normal, normal > 2.0),
        lambda: np.asfortranarray(normal)[::2],
        lambda: normal[:0],
        lambda: normal[:, :0],
        lambda: normal.ravel(),
        lambda: normal[None],
        lambda: iter([normal, normal]),
        lambda: dict(enumerate(normal.T)),
        lambda: np.array([[RNG.choice(ODD) for _ in range(2)] for _ in range(n)] + [[None, None]], dtype=object),
        lambda: RNG.choice(ODD),
    ]
    return RNG.choice(makers)()


def changed(arguments: dict[str, Any], least: int = 0) -> dict[str, Any]:
    """The arguments with a few of them replaced by odd values."""
    found = dict(arguments)
    for name in RNG.sample(sorted(found), k=min(RNG.choice((least, least, 1, 1, 2, 3)), len(found))):
        if name != "ledger":
            found[name] = RNG.choice(ODD)
    return found


BUDGETS = ({"rho": 2.0}, {"rho": 2.0}, {"epsilon": 4.0, "delta": 1e-6}, {"epsilon": 4.0}, {"rho": 2.0, "delta": 1e-6})
COMMON = {"failure_probability": 0.05, "neighbours": "replace"}


def ids(n: int) -> Any:
    return RNG.choice([list(range(n)), np.arange(n) // 2, [str(i % 7) for i in range(n)], None, RNG.choice(ODD)])


def api_call(ledger: Ledger) -> Callable[[], Any]:
    """One call of the public functions, with a ledger if the function takes one."""
    normal = np.random.default_rng(RNG.randrange(2**32)).normal(size=(RNG.choice((60, 400, 1200)), 2))
    points = normal if RNG.random() < 0.75 else odd_points()
    n, budget = len(normal), dict(RNG.choice(BUDGETS))
    gaussian = ("auto", "auto", "adaptive", "dpgd", "loc_dpgd", "loc_cutting_plane")
    method = RNG.choice(gaussian) if budget != {"epsilon": 4.0} else RNG.choice(("auto", "inverse_sensitivity"))
    ball = {"radius": 20.0, "resolution": 0.5, "center": [0.0, 0.0]}
    run = {"ledger": ledger, "name": "fuzz", "nonfinite": "raise", "copy": False, "columns": None, "seed": None}
    plan = {**budget, **COMMON, "method": method, **ball, "scales": None, "inference": True, "profile": "default"}
    groups = {"max_groups_per_unit": 1, "minimum": None, "keys": ["a", "b"], **budget, "neighbours": "add_remove"}
    labels = RNG.choice([["a", "b"] * (n // 2), RNG.choice(ODD)])
    some = {"epsilon": 1.0, "ledger": ledger, "neighbours": "replace", "seed": None}

    def median() -> Any:
        given = changed({**plan, **run, "unit": None, "unit_reduce": "median", "weight_max": None, "n": None})
        if RNG.random() < 0.2:
            given |= {"unit": ids(n), "neighbours": "add_remove", "method": "adaptive"}
        if RNG.random() < 0.1:
            given |= {"sample_weight": RNG.choice([np.ones(n), [1.0] * n, RNG.choice(ODD)]), "weight_max": 1.0}
        return dpmedian.geometric_median(points, **given)

    def medians() -> Any:
        given = changed({**groups, "ledger": ledger, "name": None, "nonfinite": "raise", "unit": None, "n": None})
        return dpmedian.geometric_medians(points, labels, **given)

    def several() -> Any:
        given = changed({**budget, **COMMON, "trim": 0.0, "k": 2, "ledger": ledger, "name": None, "scales": None})
        return dpmedian.k_medians(points, **given)

    def session() -> Any:
        with dpmedian.session(points, **changed({"rho": 1.0, "ledger": ledger, "neighbours": "replace"})) as s:
            try:
                asked = changed({"center": [0.0, 0.0], "radius": 1.0, "rho": 0.1})
                return s.count(**asked) if RNG.random() < 0.5 else s.gradient(**changed({"at": [0.0, 0.0], "rho": 0.1}))
            except PROMISED as error:  # The session is charged already, and a bad query costs nothing more.
                return plain(error)

    def costs() -> Any:
        cost = PrivacyCost(**changed({"mu_squared": 0.1, "delta0": 0.0, "pure_epsilons": (0.1,), "unit": "record"}))
        asked = RNG.choice(ODD)
        uses = [cost.delta_at, cost.epsilon_at, cost.for_group, cost.under, lambda x: cost + x, lambda x: str(cost)]
        return RNG.choice(uses)(asked)

    def ledgers() -> Any:
        made = Ledger(**changed({**budget, "composition": None, "neighbours": "replace", "unit": "record"}))
        cost = RNG.choice((PrivacyCost(mu_squared=0.1), PrivacyCost.pure_dp(0.1), RNG.choice(ODD)))
        uses: list[Callable[[], Any]] = [
            lambda: made.charge(**changed({"name": "a", "method": "m", "cost": cost, "record": None, "seeded": False})),
            lambda: made.split(RNG.choice(ODD)),
            lambda: made.per_release(RNG.choice(ODD)),
            lambda: made.enter(**changed({"name": "a", "cost": cost, "rho": None, "epsilon": None, "delta": None})),
            lambda: made.charge("a", "m", PrivacyCost()).mark(**changed({"state": "released", "digest": None})),
        ]
        return RNG.choice(uses)(), made.to_dict(), str(made)

    one = {"sensitivity": 1, **some}
    calls: list[Callable[[], Any]] = [
        *(3 * [median]),
        lambda: dpmedian.plan(**changed({"n": 3000, "d": 2, **plan, "unit": None, "weight_max": None}, 1)),
        lambda: dpmedian.plan_groups(**changed({"d": 2, "n": 2000, **groups, "unit": None}, 1)),
        lambda: dpmedian.plan_k_medians(**changed({"n": 5000, "d": 2, "k": 3, **budget, **COMMON, "trim": 0.0}, 1)),
        lambda: dpmedian.required_n(**changed({"d": 2, **budget, "excess": 1e-2, "failure_probability": 0.05}, 1)),
        *(medians, several, session, costs, ledgers),
        lambda: dpmedian.Dataset.of(**changed({"points": points, "unit": None, "columns": None, "scales": None})).shape,
        lambda: blocks.above_threshold(**changed({"queries": [1, 900], "threshold": 500, **one})),
        lambda: blocks.exponential_mechanism(**changed({"scores": [3, 1, 2], "bounded_range": None, **one})),
        lambda: blocks.noisy_bisection(
            **changed(
                {
                    "count": lambda i: i,
                    "low": 0,
                    "high": 9,
                    "target": 4.0,
                    "sensitivity": 1,
                    "rho": 1.0,
                    "ledger": ledger,
                }
            )
        ),
        lambda: blocks.find_radius(**changed({"points": points, **ball, "rho": 1.0, "ledger": ledger})),
        lambda: dpmedian.verify(RNG.choice(ODD), RNG.choice((None, ledger, "nowhere.json"))),
    ]
    return RNG.choice(calls)


def plain(error: BaseException) -> None:
    """Raise an error for a message that names no argument, although the type of the error is a promised one."""
    if isinstance(error, UnicodeError):
        raise Finding(f"{type(error).__name__}: {error}") from error


# Arguments that are functions or iterators run after the charge; an error that they raise is the caller's, and is
# charged.
LATE = ("queries", "the run stopped after its cost was charged")


def api(folder: Path) -> str:
    ledger = Ledger(rho=1e4, delta=1e-3)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            made = api_call(ledger)()
    except dpmedian.ReleaseFailed:
        return "failed, charged"
    except PROMISED as error:
        plain(error)
        if ledger.entries:
            raise Finding(f"a bad argument was charged: {type(error).__name__}: {error}") from error
        return "refused"
    except RuntimeError as error:
        if ledger.entries and any(text in str(error) for text in LATE) and "integers, got" in str(error):
            return "refused by the caller's own function"
        raise
    if isinstance(made, (dpmedian.Release, dpmedian.Releases)) and ledger.entries:
        found = dpmedian.verify(made, ledger)
        if found.wrong and not any("seed" in text for text in found.wrong):
            raise Finding(f"a release is not verified: {found.wrong}")
    return "accepted"


# Files.


def valid_files() -> dict[str, bytes]:
    """The content of one file of each format."""
    points = np.random.default_rng(0).normal(size=(200, 2))
    text = "x,y\n" + "\n".join(f"{x},{y}" for x, y in points)
    array, archive = io.BytesIO(), io.BytesIO()
    np.save(array, points)
    np.savez_compressed(archive, points=points)
    found = {"csv": text.encode(), "tsv": text.replace(",", "\t").encode(), "csv.gz": gzip.compress(text.encode())}
    found |= {"npy": array.getvalue(), "npz": archive.getvalue()}
    with contextlib.suppress(ImportError):
        import pyarrow as arrow
        import pyarrow.feather as feather
        import pyarrow.parquet as parquet

        table = arrow.table({"x": points[:, 0], "y": points[:, 1]})
        for name, write in (("parquet", parquet.write_table), ("arrow", feather.write_feather)):
            stream = io.BytesIO()
            write(table, stream)
            found[name] = stream.getvalue()
    return found


FILES: dict[str, bytes] = {}


def damaged(content: bytes) -> bytes:
    """The bytes with a few changes, cuts and repetitions."""
    found = bytearray(content)
    for _ in range(RNG.choice((1, 1, 2, 5, 20))):
        if not found:
            return b""
        at = min(int(RNG.expovariate(1.0 / 60.0)), len(found) - 1) if RNG.random() < 0.5 else RNG.randrange(len(found))
        kind = RNG.randrange(6)
        if kind == 0:
            found[at] ^= 1 << RNG.randrange(8)
        elif kind == 1:
            found[at] = RNG.choice((0, 255, 10, 44, 34, 45, 57))
        elif kind == 2:
            del found[at:]
        elif kind == 3:
            del found[at : at + RNG.randrange(1, 9)]
        elif kind == 4:
            found[at:at] = RNG.choice((b"\0", b"nan", b"1e999", b",", b"\n", b'"', b"\xff\xfe", b"9" * 40, b"(", b"-"))
        else:
            found[at : at + 8] = RNG.choice((2**63, 2**31, 2**64 - 1, 0)).to_bytes(8, "little")
    return bytes(found)


def file(folder: Path) -> str:
    if not FILES:
        FILES.update(valid_files())
    name = RNG.choice(sorted(FILES))
    content = damaged(FILES[name])
    path = folder / f"case.{name if RNG.random() < 0.9 else RNG.choice(sorted(FILES))}"
    path.write_bytes(content)
    given = changed({"columns": None, "header": None, "nonfinite": "center", "d": None}) if RNG.random() < 0.2 else {}
    ledger = Ledger(rho=1e4)
    try:
        read = RNG.choice((open_points, read_points))
        points = read(path, **given)
        if points.shape[0] > 10**6 or points.shape[1] > 50:
            return "opened"
        dpmedian.geometric_median(points, rho=1.0, ledger=ledger, nonfinite=RNG.choice(("raise", "center")))
    except dpmedian.ReleaseFailed:
        return "failed, charged"
    except PROMISED as error:
        plain(error)
        if ledger.entries:
            raise Finding(f"a bad file was charged: {type(error).__name__}: {error}") from error
        return "refused"
    finally:
        path.unlink()
    return "released"


# Records and ledgers.

JSON_ODD: list[Any] = [
    *(None, True, False, 0, 1, -1, 2**63, 10**400, 0.5, -1e308, 1e-320, "", "x", "released", "\ud800", [], {}, [1]),
    *({"a": 1}, [[1.0]], "sha256:" + "0" * 64, "2100-01-01T00:00:00+00:00", "9.9", [None] * 3),
]


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if at:
        yield at
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in parts:
        yield from places(part, (*at, name))


def mutated(value: Any) -> Any:
    """JSON with a few values replaced, removed, doubled or moved."""
    copy = json.loads(json.dumps(value))
    for _ in range(RNG.choice((1, 1, 1, 2, 4))):
        where = list(places(copy))
        if not where:
            break
        at = RNG.choice(where)
        part = copy
        for step in at[:-1]:
            part = part[step]
        old, kind = part[at[-1]], RNG.randrange(6)
        if kind == 0:
            del part[at[-1]]
        elif kind == 1 and isinstance(part, list):
            part.insert(at[-1], old)
        elif kind == 2 and isinstance(old, (int, float)) and not isinstance(old, bool):
            part[at[-1]] = old * RNG.choice((2, -1, 0.5, 1 + 1e-12, 10)) if abs(old) < 1e300 else 0
        else:
            part[at[-1]] = RNG.choice(JSON_ODD)
    return copy


class Originals:
    """Real records and the ledger that was charged for them, made once."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "ledger.json"
        ledger = Ledger(rho=100.0, path=self.path)
        points = np.random.default_rng(0).normal(size=(3000, 2))
        labels = ["a", "b"] * 1500
        asked: dict[str, Any] = {"rho": 0.5, "ledger": ledger}
        made = [
            dpmedian.geometric_median(points, **asked, name="homes"),
            dpmedian.geometric_median(points, **asked, method="loc_dpgd", radius=30.0, resolution=0.1),
            dpmedian.geometric_medians(points, labels, keys=["a", "b"], neighbours="replace", **asked),
            dpmedian.k_medians(points, 2, **asked),
        ]
        try:
            dpmedian.geometric_median(points[:80] + 1e12, rho=0.02, ledger=ledger, failure_probability=0.99)
        except dpmedian.ReleaseFailed as failed:
            made.append(failed)  # type: ignore[arg-type]
        except ValueError:
            pass
        self.records = [json.loads(one.to_json()) for one in [*made, made[0].plan]]
        self.text = self.path.read_text(encoding="utf-8")
        self.content = canonical(json.loads(self.text))


ORIGINALS: dict[Path, Originals] = {}


def originals(folder: Path) -> Originals:
    if folder not in ORIGINALS:
        ORIGINALS[folder] = Originals(folder)
    return ORIGINALS[folder]


def record(folder: Path) -> str:
    known = originals(folder)
    original = RNG.choice(known.records)
    other = mutated(original)
    if RNG.random() < 0.5 and isinstance(other, dict):
        with contextlib.suppress(ValueError):
            other = sealed(other)
    text = json.dumps(other)
    if RNG.random() < 0.1:
        text = damaged(text.encode()).decode(errors="replace")
    try:
        found = dpmedian.verify(text, known.path)
        same = canonical(json.loads(text)) == canonical(original)
        if found.holds and not same:
            raise Finding("a record with another content is authenticated by the ledger")
        str(found)
        for use in (lambda: page(json.loads(text)), lambda: dpmedian.Release.from_json(text)):
            with contextlib.suppress(ValueError):
                use()
    except ValueError as error:
        plain(error)
        return "no record"
    return "holds" if found.holds else "refuted"


def ledger(folder: Path) -> str:
    known, path = originals(folder), folder / "case.json"
    if RNG.random() < 0.6:
        text = json.dumps(mutated(json.loads(known.text)))
    else:
        text = damaged(known.text.encode()).decode(errors="replace")
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    try:
        opened = Ledger.open(path)
        if canonical(json.loads(text)) != known.content:
            raise Finding("a ledger with another content fits together")
        opened.charge("next", "m", PrivacyCost(mu_squared=0.1)).mark("released")
        str(opened)
    except ValueError as error:
        plain(error)
        return "refused"
    finally:
        path.unlink()
    return "as it was"


# The cases.


class Finding(Exception):
    """An event that must never happen."""


def too_long(*_: object) -> None:
    raise Finding(f"it took more than {SECONDS} s of the processor, or {WAITED} s of the clock")


KINDS: dict[str, tuple[Callable[[Path], str], int]] = {
    "calls": (api, 10_000),
    "files": (file, 2_000),
    "records": (record, 2_000),
    "ledgers": (ledger, 1_000),
}


def case(kind: str, number: int, seed: int, folder: Path) -> tuple[str, str | None]:
    """Run one case, and return its outcome and the finding."""
    originals(folder)
    RNG.seed(f"{seed} {kind} {number}")
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.setitimer(signal.ITIMER_REAL, WAITED)
    # If the core does not return to the interpreter, the process ends and prints the position.
    faulthandler.dump_traceback_later(2 * WAITED, exit=True)
    try:
        outcome = KINDS[kind][0](folder)
        return outcome, None
    except Finding as finding:
        return "FOUND", f"{kind}:{number}: {finding}"
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # A panic of the core is not an Exception.
        return "FOUND", f"{kind}:{number}: {type(error).__name__}: {error}\n{traceback.format_exc(limit=-4)}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        faulthandler.cancel_dump_traceback_later()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for kind, (_, usual) in KINDS.items():
        parser.add_argument(f"--{kind}", type=int, default=usual, help=f"default: {usual}")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=30.0, help="no case begins later; default: %(default)s")
    parser.add_argument("--only", metavar="KIND:NUMBER", help="repeat one case")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for kind in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(kind, too_long)
    start, found, outcomes, longest = time.monotonic(), [], Counter(), 0.0
    todo = [(kind, number) for kind in KINDS for number in range(getattr(options, kind))]
    if options.only:
        kind, _, number = options.only.partition(":")
        todo = [(kind, int(number))]
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        for kind, number in todo:
            if time.monotonic() - start > 60.0 * options.minutes:
                found.append("the time was over before the last case")
                break
            began = time.process_time()
            outcome, finding = case(kind, number, options.seed, Path(name))
            taken = time.process_time() - began
            longest = max(longest, taken)
            if taken > SECONDS and not finding:
                finding = f"{kind}:{number}: it took {taken:.0f} s of the processor"
            outcomes[kind, outcome] += 1
            if finding:
                found.append(finding)
                print(finding, flush=True)
        os.chdir("/")
    for kind in KINDS:
        told = ", ".join(f"{times} {outcome}" for (one, outcome), times in sorted(outcomes.items()) if one == kind)
        print(f"{kind}: {sum(times for (one, _), times in outcomes.items() if one == kind)} ({told})")
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if largest > GIGABYTE:
        found.append(f"the process needed {largest} KiB")
    print(f"longest case: {longest:.1f} s of the processor; largest size of the process: {largest / 1024:.0f} MiB")
    print(f"{len(found)} findings ({time.monotonic() - start:.0f} s)")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
