"""Every argument of `geometric_median` is converted once, and no check of it runs twice.

`python tests/test_walk.py` prints, for each argument, the functions that it passes through, its conversions and its
checks.
"""

from __future__ import annotations

import ast
import re
import sys
import warnings
from collections import Counter, defaultdict
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
import pytest

import dpmedian

PACKAGE = Path(dpmedian.__file__).parent

# The functions that convert an argument. Other arguments are numbers, flags and names, which their checks convert.
CONVERSIONS = {
    "points": ("sources/units.py", "as_row_records"),
    "unit": ("sources/labels.py", "as_labels"),
    "sample_weight": ("sources/weights.py", "as_weights"),
    "scales": ("sources/scales.py", "scales_by_column"),
    "columns": ("dataset/memory.py", "_divided"),
    "center": ("parameters.py", "_center"),
    "rho": ("accounting/budget.py", "__post_init__"),
    "profile": ("profile.py", "named"),
    "seed": ("tape.py", "seed_bytes"),
    "ledger": ("ledger/foreign.py", "as_ledger"),
    "neighbours": ("accounting/protection.py", "relation_of"),
    "weight_max": ("parameters.py", "positive_number"),
    "radius": ("parameters.py", "positive_number"),
    "resolution": ("parameters.py", "positive_number"),
    "failure_probability": ("parameters.py", "positive_number"),
    "axes": ("parameters.py", "_share"),
    "n": ("parameters.py", "_records"),
}


class Site(NamedTuple):
    """A function that raises an error about an argument."""

    module: str
    function: str


def first_line(function: ast.FunctionDef) -> int:
    """The line that a frame of the function reports: that of its first decorator."""
    return min(node.lineno for node in (function, *function.decorator_list))


def messages() -> dict[tuple[str, int], tuple[Site, str]]:
    """The texts of all errors that each function of the package raises itself."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        for function in (
            node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.FunctionDef)
        ):
            raised = [node for node in ast.walk(function) if isinstance(node, ast.Raise) and node.exc is not None]
            if raised:
                site = Site(path.relative_to(PACKAGE).as_posix(), function.name)
                found[str(path), first_line(function)] = (site, "\n".join(ast.unparse(node) for node in raised))
    return found


def plain(value: object) -> object:
    """A value that is equal for equal texts and numbers. Other objects are compared by identity."""
    return (type(value), value) if isinstance(value, (str, int, float, type(None))) else id(value)


class Walk:
    """What a call does with its arguments."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        self.hops: dict[str, set[Site]] = defaultdict(set)
        self.conversions: Counter[str] = Counter()
        self.checks: dict[str, Counter[tuple[Site, Any]]] = defaultdict(Counter)
        self._arguments, self._messages = arguments, messages()
        self._kept: list[object] = []  # References, so that no identity is used twice.
        sys.setprofile(self._called)
        try:
            dpmedian.geometric_median(**arguments)
        finally:
            sys.setprofile(None)

    def _called(self, frame: FrameType, event: str, _: object) -> None:
        code, caller = frame.f_code, frame.f_back
        if event != "call" or not code.co_filename.startswith(str(PACKAGE)):
            return
        site = Site(Path(code.co_filename).relative_to(PACKAGE).as_posix(), code.co_name)
        given = dict(frame.f_locals)
        self._kept.append(given)
        for name, value in self._arguments.items():
            if value is not None and not isinstance(value, bool) and any(own is value for own in given.values()):
                self.hops[name].add(site)
            if CONVERSIONS.get(name) == site and not _of_a_value(caller):
                # Some functions convert several arguments, and get the name of the argument.
                label = given.get(
                    "argument", given.get("name") if code.co_name in ("positive_number", "_share") else name
                )
                self.conversions[name] += label == name
        if (code.co_filename, code.co_firstlineno) not in self._messages or _of_a_value(caller):
            return
        text = self._messages[code.co_filename, code.co_firstlineno][1]
        values = tuple(plain(value) for value in given.values())
        for name in self._arguments:
            about = re.search(rf"['\"]{name}( must|=| =|:)", text) or ("{name}" in text and given.get("name") == name)
            if about:
                self.checks[name][site, values] += 1


def _of_a_value(caller: FrameType | None) -> bool:
    """Whether a value is checked when it is made, or a ledger checks what it stores.

    Every cost contains a `Protection`, which is checked when it is made. A ledger may be charged by anybody, so it
    checks the name that a session has checked before.
    """
    while caller is not None and "dpmedian" in caller.f_code.co_filename:
        module, function = Path(caller.f_code.co_filename).name, caller.f_code.co_name
        if (module, function) in (("protection.py", "__post_init__"), ("ledger.py", "charge"), ("ledger.py", "check")):
            return True
        caller = caller.f_back
    return False


def walked() -> Walk:
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(rng.normal(size=(3000, 3)), columns=["east", "north", "other"])
    frame = frame.assign(person=np.arange(3000) // 2, importance=1.0)
    arguments = {
        "points": frame,
        "rho": 0.5,
        "method": "adaptive",
        "radius": 50.0,
        "resolution": 1e-6,
        "center": [0.0, 0.25],
        "failure_probability": 0.1,
        "profile": "default",
        "neighbours": "add_remove",
        "n": 1500,
        "inference": True,
        "axes": 0.125,
        "ledger": dpmedian.Ledger(rho=5.0, neighbours="add_remove", unit="person"),
        "seed": 3,
        "progress": False,
        "nonfinite": "drop",
        "name": "a walk",
        "columns": ["east", "north"],
        "copy": False,
        "unit": "person",
        "unit_reduce": "mean",
        "geometry": "euclidean",
        "sample_weight": "importance",
        "weight_max": 2.0,
        "scales": {"east": 3.0, "north": 7.0},
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Walk(arguments)


@pytest.fixture(scope="module")
def walk() -> Walk:
    return walked()


def test_every_argument_is_converted_once(walk):
    assert {name: walk.conversions[name] for name in CONVERSIONS} == dict.fromkeys(CONVERSIONS, 1)


def test_no_check_of_an_argument_runs_twice(walk):
    twice = {
        name: [site for (site, _), times in counts.items() if times > 1]
        for name, counts in walk.checks.items()
        if counts.most_common(1)[0][1] > 1
    }
    assert twice == {}


def test_the_walk_sees_the_checks(walk):
    """If the walk saw no checks, the test above would always pass."""
    checked = {"rho", "method", "radius", "neighbours", "nonfinite", "name", "unit_reduce", "geometry", "weight_max"}
    assert checked <= set(walk.checks)
    assert Site("sources/units.py", "check_reducer") in {site for site, _ in walk.checks["unit_reduce"]}


def main() -> None:
    walk = walked()
    print("| argument | functions | conversions | checks | most runs of a check |\n|---|---|---|---|---|")
    for name in walk._arguments:
        counts = walk.checks.get(name, Counter())
        sites = {site for site, _ in counts}
        most = max(counts.values(), default=0)
        print(f"| {name} | {len(walk.hops[name])} | {walk.conversions[name]} | {len(sites)} | {most} |")


if __name__ == "__main__":
    main()
