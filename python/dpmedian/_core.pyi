"""The compiled core. `stubtest` checks this file against it."""

from collections.abc import Callable
from typing import final

import numpy as np
from numpy.typing import NDArray

__all__: list[str]
__version__: str

_Pulse = Callable[[float], None] | None

@final
class Points:
    def __new__(
        cls,
        array: NDArray[np.float64],
        *,
        ball: tuple[list[float], float] | None = None,
        replacement: list[float] | None = None,
    ) -> Points: ...
    @property
    def shape(self) -> tuple[int, int]: ...
    def gradient(self, theta: NDArray[np.float64], bits: int, pulse: _Pulse = None) -> NDArray[np.int64]: ...
    def pair_counts(
        self, tape: Tape, radii: list[float], pairings: int, pulse: _Pulse = None
    ) -> NDArray[np.int64]: ...
    def top_count_sums(self, radii: list[float], m: int, pulse: _Pulse = None) -> NDArray[np.int64]: ...
    def descend(
        self,
        tape: Tape,
        name: str,
        *,
        start: list[float],
        balls: list[tuple[list[float], float]],
        step: float,
        steps: int,
        bits: int,
        sigma: int,
        pulse: _Pulse = None,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...

@final
class Tape:
    @staticmethod
    def draw(key: bytes | None = None) -> Tape: ...
    @staticmethod
    def record(key: bytes) -> Tape: ...
    def replay(self) -> Tape: ...
    def entries(self) -> list[tuple[str, float, float, NDArray[np.int64], NDArray[np.int64]]]: ...
    def gaussian(self, name: str, exact: NDArray[np.int64], sigma: int, sensitivity: float) -> NDArray[np.int64]: ...
    def laplace(
        self, name: str, exact: NDArray[np.int64], rate: tuple[int, int], sensitivity: float
    ) -> NDArray[np.int64]: ...
    def geometric(
        self, name: str, exact: NDArray[np.int64], rate: tuple[int, int], sensitivity: float
    ) -> NDArray[np.int64]: ...
    def uniform(self, bound: int, count: int) -> NDArray[np.uint64]: ...

def set_threads(threads: int | None = None) -> None: ...
def threads() -> int: ...
def gradient_sensitivity(d: int, bits: int) -> float: ...
