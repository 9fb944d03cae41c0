"""One entry for every method, statistic and source of the package, with data on which its contract is tested."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmedian import statistics
from dpmedian._core import Points, Sensitivity, Statistic, Tape
from dpmedian.files import open_points
from dpmedian.methods.registry import METHODS
from dpmedian.parameters import PublicParameters
from dpmedian.profile import Profile
from dpmedian.sources.array import ArraySource
from dpmedian.sources.dask import DaskSource, Holders
from dpmedian.sources.groups import Grouped
from dpmedian.sources.partitioned import PartitionedSource
from dpmedian.sources.records import as_records

Array = NDArray[np.float64]


class MethodCase(NamedTuple):
    """Arguments of `plan` and the shape of the data. `audit` is the row of tests/audit.py that covers it."""

    method: str
    n: int
    d: int
    arguments: dict[str, Any]
    audit: str
    capped: bool = False
    """Whether the run decides while it runs how much it spends, under a cap that is charged."""


LOCALIZED = {"radius": 30.0, "resolution": 0.5}

METHOD_CASES = {
    "adaptive": MethodCase("adaptive", 120, 3, {"rho": 2.0}, "adaptive", capped=True),
    "adaptive, radius": MethodCase("adaptive", 60, 1, {"rho": 2.0, **LOCALIZED}, "adaptive", capped=True),
    "adaptive, sample": MethodCase("adaptive", 41_000, 2, {"rho": 2.0}, "adaptive", capped=True),
    "dpgd": MethodCase("dpgd", 60, 3, {"rho": 0.5, "radius": 20.0}, "dpgd"),
    "dpgd, paper": MethodCase("dpgd", 60, 2, {"rho": 0.5, "radius": 20.0, "profile": "paper"}, "dpgd, paper's profile"),
    "loc_dpgd": MethodCase("loc_dpgd", 120, 2, {"rho": 2.0, **LOCALIZED}, "loc_dpgd"),
    "loc_dpgd, paper": MethodCase(
        "loc_dpgd", 300, 2, {"rho": 40.0, **LOCALIZED, "profile": "paper"}, "loc_dpgd, paper's profile"
    ),
    "loc_cutting_plane": MethodCase("loc_cutting_plane", 120, 2, {"rho": 2.0, **LOCALIZED}, "loc_cutting_plane"),
    "inverse_sensitivity, line": MethodCase(
        "inverse_sensitivity", 40, 1, {"epsilon": 1.0, **LOCALIZED}, "inverse_sensitivity"
    ),
    "inverse_sensitivity, plane": MethodCase(
        "inverse_sensitivity", 40, 2, {"epsilon": 1.0, **LOCALIZED}, "inverse_sensitivity"
    ),
    "inverse_sensitivity, space": MethodCase(
        "inverse_sensitivity", 40, 3, {"epsilon": 1.0, **LOCALIZED}, "inverse_sensitivity"
    ),
}


RELATION_CASES = [
    (name, relation)
    for name, case in METHOD_CASES.items()
    for relation in sorted(
        METHODS[case.method].relations & Profile.named(case.arguments.get("profile", "default")).relations
    )
]
"""Every case with every relation that its method and its profile are proved for."""


def _hidden() -> Any:
    return Tape.draw(bytes(32)).hidden()


class StatisticCase(NamedTuple):
    """The parameters of the query at a point of dimension d with n public records, and the parameters of its bound,
    without the bits of its lattice. Statistics without a lattice have None.
    """

    parameters: Callable[[Array, int], dict[str, Any]]
    bound: Callable[[Array, int], dict[str, Any]]
    bits: int | None = 24

    def query(self, name: str, at: Array, n: int) -> Statistic:
        return Statistic(name, **self.parameters(at, n), **self._lattice)

    def stated(self, name: str, at: Array, n: int) -> tuple[Sensitivity, int]:
        return statistics.bound(name, **self.bound(at, n), **self._lattice)

    @property
    def _lattice(self) -> dict[str, int]:
        return {} if self.bits is None else {"bits": self.bits}


_RADII = [0.5, 1.0, 4.0]


def _candidates(at: Array) -> Array:
    return np.concatenate([at, at + 0.5, at - 0.25])


def _cells(at: Array) -> NDArray[np.uint64]:
    return np.arange(4 ** min(len(at), 2), dtype=np.uint64)


STATISTIC_CASES = {
    "gradient": StatisticCase(lambda at, n: {"theta": at}, lambda at, n: {"d": len(at)}, 32),
    "ball size": StatisticCase(lambda at, n: {"theta": at, "radius": 1.5}, lambda at, n: {}, 21),
    "mean shift": StatisticCase(lambda at, n: {"theta": at, "radius": 1.5}, lambda at, n: {"d": len(at)}, 32),
    "robust step": StatisticCase(lambda at, n: {"center": at, "threshold": 0.7}, lambda at, n: {"d": len(at)}, 32),
    "ranks": StatisticCase(lambda at, n: {"thresholds": at}, lambda at, n: {"d": len(at)}, 10),
    "distance counts": StatisticCase(lambda at, n: {"theta": at}, lambda at, n: {}, 10),
    "curvature": StatisticCase(lambda at, n: {"theta": at, "radius": 2}, lambda at, n: {}),
    "hessian": StatisticCase(
        lambda at, n: {"theta": at, "radius": 1.5, "weight": 1.2}, lambda at, n: {"d": len(at), "weight": 1.2}
    ),
    "gradient and directions": StatisticCase(
        lambda at, n: {"theta": at, "weight": 0.7}, lambda at, n: {"d": len(at), "weight": 0.7}
    ),
    "shells and directions": StatisticCase(
        lambda at, n: {"theta": at, "scale": 1.5, "weight": 2.0}, lambda at, n: {"d": len(at), "weight": 2.0}
    ),
    "grid cells": StatisticCase(
        lambda at, n: {
            "theta": at,
            "axes": np.eye(len(at))[:2].ravel(),
            "scale": 0.5,
            "reach": 1e300,
            "side": 8.0,
            "level": 2,
            "cells": _cells(at),
        },
        lambda at, n: {"cells": len(_cells(at))},
    ),
    "cluster gradients": StatisticCase(
        lambda at, n: {
            "centers": _candidates(at),
            "radii": np.full(3, 0.5),
            "scale": 1.0,
            "reach": np.inf,
            "weights": (1.0, 0.6),
        },
        lambda at, n: {"k": 3, "d": len(at), "weights": (1.0, 0.6)},
    ),
    "size": StatisticCase(lambda at, n: {}, lambda at, n: {}, 10),
    "pair counts": StatisticCase(
        lambda at, n: {"radii": _RADII, "pairings": 3, "stream": _hidden()}, lambda at, n: {"pairings": 3}, 10
    ),
    "largest ball counts": StatisticCase(
        lambda at, n: {"radii": _RADII, "m": max(n // 2, 1), "n": n}, lambda at, n: {"m": max(n // 2, 1), "n": n}, None
    ),
    "objective differences": StatisticCase(
        lambda at, n: {"candidates": _candidates(at), "d": len(at)},
        lambda at, n: {"candidates": _candidates(at), "d": len(at)},
        None,
    ),
}


def _partitioned(parts: int) -> Callable[[Array, PublicParameters], PartitionedSource]:
    def make(points: Array, parameters: PublicParameters) -> PartitionedSource:
        blocks = np.array_split(np.ascontiguousarray(points), parts)
        return PartitionedSource([Points(np.ascontiguousarray(block), ball=parameters.ball) for block in blocks])

    return make


_FOLDER = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)


def _file(order: Literal["C", "F"]) -> Callable[[Array, PublicParameters], ArraySource]:
    def make(points: Array, parameters: PublicParameters) -> ArraySource:
        # A file that is removed while it is read counts as changed, so the folder lasts as long as the tests.
        folder = tempfile.mkdtemp(dir=_FOLDER.name)
        np.save(f"{folder}/points.npy", np.asarray(points, order=order))
        return ArraySource.of(open_points(f"{folder}/points.npy"), parameters)

    return make


class _Future:
    def __init__(self, value: Any) -> None:
        self.value, self.key = value, str(id(self))

    def result(self, timeout: float | None = None) -> Any:
        return self.value

    def done(self) -> bool:
        return True

    def exception(self) -> None:
        return None


def _futures(argument: Any) -> bool:
    return isinstance(argument, list) and isinstance(argument[0], _Future)


class _Actor:
    """An object whose methods return futures."""

    def __init__(self, held: Any) -> None:
        self._held = held

    def __getattr__(self, name: str) -> Callable[..., _Future]:
        return lambda *arguments: _Future(getattr(self._held, name)(*arguments))


class _Cluster:
    """The part of Dask's client that a source uses, with two workers in this process. tests/test_dask.py uses real
    workers.
    """

    def who_has(self, futures: Sequence[_Future]) -> dict[str, list[str]]:
        return {future.key: [f"worker {i % 2}"] for i, future in enumerate(futures)}

    def submit(self, make: Any, *arguments: Any, **_: Any) -> _Future:
        plain = [argument if not _futures(argument) else [part.value for part in argument] for argument in arguments]
        return _Future(_Actor(make(*plain)))


def _dask(points: Array, parameters: PublicParameters) -> DaskSource:
    blocks = [as_records(np.ascontiguousarray(block)) for block in np.array_split(np.asarray(points), 5)]
    sizes = [len(block.array) for block in blocks]
    parts = tuple(_Future(Grouped(block, np.array([0, size]))) for block, size in zip(blocks, sizes, strict=True))
    return DaskSource(Holders.of(_Cluster(), parts, parameters, "raise"), sizes, points.shape[1])


SOURCES: dict[str, Callable[[Array, PublicParameters], Any]] = {
    "array": ArraySource.of,
    "file": _file("C"),
    "file, by column": _file("F"),
    "one part": _partitioned(1),
    "three parts": _partitioned(3),
    "eight parts": _partitioned(8),
    "dask": _dask,
}
"""Ways to hold the same records, by name."""


def cloud(n: int, d: int, seed: int) -> Array:
    """A cloud away from the origin. A fifth of its records are equal, and a few are far away."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, d)) + 3.0
    points[: n // 5] = points[n // 5]
    points[-max(n // 20, 1) :] *= 50.0
    return points
